//! Bytes on the heap of opened traces: what a trace owns, and what the traces of one schema share.
//!
//! Labels of enumerations are shared between fields and counted for none; they are few.

use super::ids::EventIds;
use super::plan::CtfPlan;
use super::schema::{Choice, EventClass, Field, Kind, Member, Schema, StreamClass};
use super::trace::{ClassTables, CtfTrace};
use crate::base::heap::{HeapSize, block, with_elements};
use std::sync::Arc;

impl HeapSize for CtfTrace {
    /// Without what is shared.
    fn heap_bytes(&self) -> usize {
        let packets = block(&self.packets) + self.packets.iter().map(block).sum::<usize>();
        let streams = self.streams.iter().map(|s| block(&s.packets) + block(&s.losses) + s.name.capacity());
        packets + block(&self.streams) + streams.sum::<usize>() + block(&self.files) + block(&self.chunks)
    }
}

impl HeapSize for CtfPlan {
    /// Without the steps of bodies, which are few.
    fn heap_bytes(&self) -> usize {
        let headers = self.headers.iter().map(|header| block(&header.templates));
        block(&self.headers) + headers.sum::<usize>() + block(&self.bodies)
    }
}

impl HeapSize for ClassTables {
    fn heap_bytes(&self) -> usize {
        let ids = self.ids.iter().map(|ids| match ids {
            EventIds::Dense(table) => block(table),
            EventIds::Only(_) | EventIds::Sparse(_) => 0,
        });
        let names = self.classes.iter().map(|class| class.name.capacity());
        block(&self.classes) + names.sum::<usize>() + block(&self.ids) + ids.sum::<usize>() + block(&self.firsts)
    }
}

impl HeapSize for Schema {
    fn heap_bytes(&self) -> usize {
        with_elements(&self.streams)
    }
}

impl HeapSize for StreamClass {
    fn heap_bytes(&self) -> usize {
        let fields = [&self.packet_context, &self.event_header, &self.common_context];
        let fields = fields.into_iter().flatten().map(HeapSize::heap_bytes);
        let events = self.events.iter().map(|event: &Arc<EventClass>| size_of::<EventClass>() + event.heap_bytes());
        block(&self.events) + fields.sum::<usize>() + events.sum::<usize>()
    }
}

impl HeapSize for EventClass {
    fn heap_bytes(&self) -> usize {
        let fields = [&self.specific_context, &self.payload].into_iter().flatten().map(HeapSize::heap_bytes);
        self.name.as_deref().map_or(0, str::len) + fields.sum::<usize>()
    }
}

impl HeapSize for Field {
    fn heap_bytes(&self) -> usize {
        match &self.kind {
            Kind::Struct(members) => with_elements(members),
            Kind::Variant { options, .. } => with_elements(options),
            Kind::Array { element: field, .. } | Kind::Optional { field, .. } => {
                size_of::<Field>() + field.heap_bytes()
            }
            Kind::Bits(bits) => block(&bits.saves),
            Kind::Variable { saves, .. } => block(saves),
            Kind::Real { .. } | Kind::Text(_) | Kind::SizedText(..) | Kind::Blob { .. } => 0,
        }
    }
}

impl HeapSize for Member {
    fn heap_bytes(&self) -> usize {
        self.written.len() + self.field.heap_bytes()
    }
}

impl HeapSize for Choice {
    fn heap_bytes(&self) -> usize {
        self.written.len() + block(&self.ranges) + self.field.heap_bytes()
    }
}
