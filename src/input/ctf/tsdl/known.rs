//! Event blocks that several metadata texts have in common.
//!
//! Recordings of one kernel, chunks of a session, processes that run one program: their metadata differ in a few lines
//! and declare the same thousand events. Once one text has been read, a block of another text that is byte-identical to
//! one of its blocks is not parsed again: the resolved and bound event class is reused. That is sound where everything
//! that a block may refer to is equal as well ([`Context`]), and only for blocks that refer to nothing else (no number
//! of the environment, no length in a stream's own structures) and caused no warning.

use crate::base::cursor::ByteOrder;
use crate::input::ctf::schema::{EventClass, Field, Schema, StreamClass};
use foldhash::HashMap;
use std::borrow::Cow;
use std::sync::Arc;

/// A type that has a name.
#[derive(Debug, PartialEq)]
pub(super) struct Declared {
    pub(super) field: Field,
    /// The number of fields in it.
    pub(super) fields: usize,
}

/// The declarations that an event block's types may refer to.
#[derive(Debug, PartialEq)]
pub(super) struct Context<'t> {
    pub(super) byte_order: ByteOrder,
    /// Names of the clocks.
    pub(super) clocks: Vec<String>,
    pub(super) packet_header: Option<Field>,
    /// Without their events.
    pub(super) streams: Vec<StreamClass>,
    /// Types declared outside of blocks.
    pub(super) types: HashMap<Cow<'t, str>, Declared>,
    /// True where all of them are declared before the first event.
    pub(super) types_first: bool,
}

/// An event block that was read.
#[derive(Debug)]
pub(in crate::input::ctf) struct KnownEvent {
    /// The `stream_id` that it gives.
    pub(super) stream: Option<u64>,
    pub(super) class: Arc<EventClass>,
}

/// An event block that may be reused once it is bound.
#[derive(Debug)]
pub(super) struct Block<'t> {
    pub(super) text: &'t str,
    pub(super) stream: Option<u64>,
    /// Position of its stream class.
    pub(super) stream_class: usize,
    /// Position of its event class in the stream class.
    pub(super) event_class: usize,
}

/// The event blocks of a text, and their context.
#[derive(Debug)]
pub(in crate::input::ctf) struct Blocks<'t> {
    pub(super) context: Context<'t>,
    pub(super) blocks: Vec<Block<'t>>,
}

/// The event blocks of a text.
#[derive(Debug)]
pub(in crate::input::ctf) struct Known<'t> {
    pub(super) context: Context<'t>,
    events: HashMap<&'t str, KnownEvent>,
    /// Slots that their classes use.
    pub(super) slots: usize,
}

impl<'t> Known<'t> {
    /// The reusable blocks of a text whose lengths and selectors have been bound: all of its blocks or none. If only
    /// some were reused, the others would be bound again in other slots.
    pub(in crate::input::ctf) fn new(found: Blocks<'t>, schema: &Schema) -> Option<Known<'t>> {
        let known = |block: Block<'t>| {
            let class = schema.streams.get(block.stream_class)?.events.get(block.event_class)?;
            class.alone.then(|| (block.text, KnownEvent { stream: block.stream, class: class.clone() }))
        };
        let events: HashMap<&str, KnownEvent> = found.blocks.into_iter().filter_map(known).collect();
        let all = events.len() == schema.streams.iter().map(|s| s.events.len()).sum::<usize>();
        (all && found.context.types_first).then_some(Known { context: found.context, events, slots: schema.slots })
    }

    pub(super) fn event(&self, text: &str) -> Option<&KnownEvent> {
        self.events.get(text)
    }
}
