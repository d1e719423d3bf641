//! Reads the records of packets by the walk of their format.
//!
//! Damage ends its packet; reading goes on with the next packet.

use super::plan::TracepointPlan;
use super::{PacketPlace, Raw, Storage, TracepointTrace, Walk, WalkPosition, WalkStep};
use crate::base::cursor::ByteOrder;
use crate::base::notice::{Notice, Notices};
use crate::base::time::Timestamp;
use crate::input::ctf::Sink;
use crate::input::format_trace::FormatTrace;
use crate::input::record::{ClassId, Record, StreamId, Value};
use crate::input::records::{PassedRecord, Records};
use crate::input::stream::{Passed, Position};
use std::ops::Range;

/// Reads a run of packets of one stream.
#[derive(Debug)]
pub struct TracepointReader<'a, S: Storage> {
    trace: &'a TracepointTrace<S>,
    plan: &'a TracepointPlan,
    stream: StreamId,
    packets: Range<usize>,
    walk: Option<S::Walk<'a>>,
    values: Vec<Value<'a>>,
    number: usize,
    cpu: u32,
    began: Position,
    notices: Notices,
}

impl<'a, S: Storage> TracepointReader<'a, S> {
    pub fn new(
        trace: &'a TracepointTrace<S>,
        plan: &'a TracepointPlan,
        stream: StreamId,
        packets: Range<usize>,
    ) -> Self {
        let cpu = trace.packet_cpu(stream, packets.start).unwrap_or(u32::MAX);
        let values = vec![Value::Absent; plan.most()];
        let (began, notices) = (Position::BEGIN, Notices::default());
        TracepointReader { trace, plan, stream, packets, walk: None, values, number: 0, cpu, began, notices }
    }

    /// Go to the next packet; false when there is none.
    fn enter(&mut self) -> bool {
        let Some(number) = self.packets.next() else { return false };
        self.number = number;
        self.walk = self.trace.storage.walk(self.stream.index(), number);
        true
    }

    /// The next record of the packet.
    #[inline(always)]
    fn raw(&mut self) -> Option<Raw<'a>> {
        match self.walk.as_mut()?.next() {
            WalkStep::Record(raw) => return Some(raw),
            WalkStep::End => {}
            WalkStep::Damage(what) => self.damaged(what),
        }
        if let Some(walk) = self.walk.take() {
            self.trace.storage.walked(self.stream.index(), self.number, &walk);
        }
        None
    }

    #[cold]
    fn damaged(&mut self, what: &str) {
        let at = self.walk.as_ref().map_or(0, Walk::offset);
        let PacketPlace { file, at: start } = self.trace.storage.place(self.stream.index(), self.number);
        self.notices.add(Notice::DamagedPacket, 1, || format!("{file}: at byte {}: {what}", start + at));
    }

    /// The next record of any packet.
    #[inline(always)]
    fn any(&mut self) -> Option<Raw<'a>> {
        loop {
            self.began = self.position();
            if let Some(raw) = self.raw() {
                return Some(raw);
            }
            if !self.enter() {
                return None;
            }
        }
    }
}

impl<'a, S: Storage> Records<'a> for TracepointReader<'a, S> {
    fn next(&mut self) -> Option<Record<'_, 'a>> {
        loop {
            let Some(raw) = self.raw() else { if self.enter() { continue } else { return None } };
            let Some(gets) = self.plan.wanted(raw.class) else { continue };
            let (storage, byte_order) = (&self.trace.storage, self.trace.storage.byte_order());
            if let Some(walk) = &self.walk {
                for (value, get) in self.values.iter_mut().zip(gets) {
                    *value = get.value(walk, &raw, storage.threads(), byte_order);
                }
            }
            return Some(Record {
                class: raw.class,
                time: self.trace.clock.ns(raw.clock),
                cpu: self.cpu,
                values: self.values.get(..gets.len()).unwrap_or(&[]),
            });
        }
    }

    fn seek(&mut self, from: Timestamp, passed: &mut Passed, checkpoint: impl Fn(ClassId) -> bool) -> Position {
        loop {
            let here = self.position();
            let Some(raw) = self.raw() else { return here };
            let time = self.trace.clock.ns(raw.clock);
            if time >= from {
                self.go(here);
                return here;
            }
            if self.plan.wanted(raw.class).is_some() {
                passed.meet(time, raw.class, here, &checkpoint);
            }
        }
    }

    fn step(&mut self) -> Option<PassedRecord> {
        self.any().map(|raw| PassedRecord { class: raw.class, clock: raw.clock })
    }

    fn show<T: Sink<'a>>(&mut self, sink: &mut T) -> Option<PassedRecord> {
        loop {
            let raw = self.any()?;
            let storage = &self.trace.storage;
            let (Some(walk), Some(show)) = (&self.walk, self.plan.show(raw.class)) else { continue };
            show.write(walk, &raw, storage.threads(), storage.byte_order(), sink);
            return Some(PassedRecord { class: raw.class, clock: raw.clock });
        }
    }

    fn count(&mut self, counts: &mut [u64]) {
        loop {
            while let Some(raw) = self.raw() {
                if let Some(count) = counts.get_mut(raw.class.index()) {
                    *count += 1;
                }
            }
            if !self.enter() {
                return;
            }
        }
    }

    fn position(&self) -> Position {
        self.walk.as_ref().map_or(Position::BEGIN, |walk| {
            let WalkPosition { at, clock } = walk.position();
            Position { at: at * 8, clock, last_order: ByteOrder::Little }
        })
    }

    fn go(&mut self, position: Position) {
        if let Some(walk) = &mut self.walk {
            walk.go(WalkPosition { at: position.at / 8, clock: position.clock });
        }
    }

    fn resume(&mut self, position: Option<Position>) {
        if self.enter() {
            position.into_iter().for_each(|position| self.go(position));
        }
    }

    fn began(&self) -> Position {
        self.began
    }

    fn packet(&self) -> usize {
        self.number
    }

    fn notices(&self) -> Notices {
        self.notices.clone()
    }
}
