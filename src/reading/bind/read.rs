//! Records to events, as their class is bound.
//!
//! In: the values of a record. Out: its events, in their batch: stacks, counters and marks first, then the event of the
//! payload (`payload`). A field that the class does not have is an absent value. Cost: the fields of the event; a
//! context is interned where it changes.

use super::paths::{Slot, StackSlots};
use super::payload::Payload;
use super::recent::Recent;
use super::values::{EventStacks, Values, chain, stack};
use super::{Binding, Bound, BoundStack};
use crate::event::kind::{Event, Kind, TextId, ThreadContextId, WeightId};
use crate::event::stack::{RawStackId, renamed};
use crate::input::record::{ClassId, Record, Value};
use crate::reading::batch::{Batch, WeightBody};
use crate::reading::classes::Shape;
use smallvec::SmallVec;

/// Turns the records of one stream into events of a batch.
#[derive(Debug)]
pub struct Binder<'b> {
    binding: &'b Binding,
    trace: u16,
    /// Recent names and contexts of threads.
    recent: Recent,
    /// Names of classes in the batch.
    texts: Vec<TextId>,
    /// Names of the numbers of delimiters in the batch.
    numbers: Vec<TextId>,
    /// Names of functions on call stacks in the batch.
    frames: Vec<TextId>,
}

impl<'b> Binder<'b> {
    /// A binder for one stream of the trace at position `trace`.
    pub fn new(binding: &'b Binding, trace: u16) -> Binder<'b> {
        let [texts, numbers] = [binding.classes.len(), binding.numbers].map(|names| vec![TextId::NONE; names]);
        let frames = vec![TextId::NONE; binding.frames.len()];
        Binder { binding, trace, recent: Recent::default(), texts, numbers, frames }
    }

    /// Append the events of a record.
    pub fn read(&mut self, record: &Record<'_, '_>, batch: &mut Batch, events: &mut Vec<Event>) {
        let binding = self.binding;
        let Some(Some(bound)) = binding.classes.get(record.class.index()) else { return };
        let values = Values(record.values);
        let who = bound.context.map_or(ThreadContextId::ABSENT, |slots| self.who(values, slots, batch));
        let cpu = values.at(bound.cpu).as_u64().unwrap_or_else(|| record.cpu.into());
        let cpu = u16::try_from(cpu).unwrap_or(u16::MAX);
        let trace = self.trace;
        let event = |kind| Event { time: record.time, who, trace, cpu, kind };
        let is_elsewhere = bound.followed_elsewhere.as_ref().is_some_and(|covered| covered.holds(cpu, record.time));
        let followed = !bound.twin && !is_elsewhere;
        if let Some(BoundStack { origin, addresses }) = bound.stack {
            let EventStacks { user, kernel } = match addresses {
                StackSlots::Chain(both) => chain(values.at(both), batch),
                StackSlots::Apart { user, kernel } => EventStacks {
                    user: self.user_stack(values.at(user), batch),
                    kernel: stack(values.at(kernel), batch),
                },
            };
            let weight = match bound.shape {
                Shape::Tick => self.weight(record.class, bound, values, batch),
                _ => WeightId::NONE,
            };
            if user.is_some() || kernel.is_some() || weight != WeightId::NONE {
                let witness = followed && bound.shape != Shape::Switch;
                events.push(event(Kind::Stack { origin, user, kernel, witness, weight }));
            }
        }
        if !followed {
            return;
        }
        for (name, slot) in &bound.counters {
            if let Some(value) = values.at(*slot).as_u64() {
                events.push(event(Kind::Counter { name: batch.text(name.as_bytes()), value }));
            }
        }
        for mark in &bound.marks {
            if let Some(id) = mark.read(values, &mut self.numbers, batch) {
                events.push(event(Kind::Mark(id)));
            }
        }
        let text = self.text(record.class, bound, batch);
        let machine = self.binding.machine.as_deref();
        let mut payload = Payload { bound, values, text, machine, batch, recent: &mut self.recent };
        if let Some(kind) = payload.kind() {
            events.push(Event { time: record.time, who, trace, cpu, kind });
        }
    }

    /// The name that a class gives its events.
    fn text(&mut self, class: ClassId, bound: &Bound, batch: &mut Batch) -> TextId {
        let text = &mut self.texts[class.index()];
        if let (&mut TextId::NONE, Some(name)) = (&mut *text, &bound.text)
            && !name.is_empty()
        {
            *text = batch.text(name.as_bytes());
        }
        *text
    }

    /// What a sample counts for; one event where the record does not say how many.
    fn weight(&mut self, class: ClassId, bound: &Bound, values: Values<'_, '_>, batch: &mut Batch) -> WeightId {
        let period = bound.fields.first().and_then(|slot| values.at(*slot).as_u64());
        let event = self.text(class, bound, batch);
        batch.weight(WeightBody { event, amount: period.unwrap_or(1) })
    }

    /// The stack in user space: functions that are recorded by name have their texts of the batch on it.
    fn user_stack(&mut self, value: Value<'_>, batch: &mut Batch) -> Option<RawStackId> {
        if self.frames.is_empty() {
            return stack(value, batch);
        }
        let mut words: SmallVec<[u64; 128]> = value.as_words()?.iter().collect();
        for (depth, word) in words.iter_mut().enumerate() {
            *word = renamed(depth, *word, |frame| {
                let text = self.frames.get_mut(frame as usize)?;
                if *text == TextId::NONE {
                    *text = batch.text(self.binding.frames.get(frame as usize)?.as_bytes());
                }
                Some(text.raw())
            });
        }
        (!words.is_empty()).then(|| batch.stacks.intern(&words))
    }

    fn who(&mut self, values: Values<'_, '_>, slots: [Slot; 6], batch: &mut Batch) -> ThreadContextId {
        let ids = std::array::from_fn(|i| values.at(slots[i]).as_i64());
        self.recent.context(ids, values.at(slots[5]).as_text().unwrap_or(b""), batch)
    }
}
