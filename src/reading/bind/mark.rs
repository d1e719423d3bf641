//! Marks: events that begin or end executions.
//!
//! In: the delimiters of tasks to which a class belongs, and the values of its records. Out: a [`MarkBody`] per record
//! that meets the delimiter's conditions, with its key, its type and all numbers of its payload.

use super::DelimiterPlace;
use super::paths::{NOWHERE, Paths, Slot};
use super::read::Values;
use crate::event::task::{Condition, TaskDefinition};
use crate::input::record::Value;
use crate::reading::batch::{Batch, MarkBody, MarkKey};

/// A delimiter bound to a class.
#[derive(Clone, Debug)]
pub(super) struct BoundMark {
    task: u32,
    begins: bool,
    key: Vec<Slot>,
    kind: Slot,
    conditions: Vec<(Slot, Condition)>,
    fields: Vec<(String, Slot)>,
}

impl BoundMark {
    /// The delimiters at `places`, bound to the class.
    pub(super) fn all(paths: &mut Paths<'_>, tasks: &[TaskDefinition], places: &[DelimiterPlace]) -> Vec<BoundMark> {
        if places.is_empty() {
            return Vec::new();
        }
        let fields = paths.trace.payload_fields(paths.class);
        let numbers: Vec<String> =
            fields.into_iter().filter(|field| field.is_integer).map(|field| field.name.to_owned()).collect();
        let bound = places.iter().filter_map(|place| {
            let task = tasks.get(place.task as usize)?;
            let delimiter = if place.begins { &task.begins } else { &task.ends }.get(place.at)?;
            let key = delimiter.key.iter().map(|field| paths.any(field)).collect();
            let kind = task.kind.as_ref().map_or(NOWHERE, |field| paths.any(field));
            let conditions = delimiter.conditions.iter().map(|c| (paths.any(&c.field), c.clone())).collect();
            let fields = numbers.iter().map(|field| (field.clone(), paths.payload(field))).collect();
            Some(BoundMark { task: place.task, begins: place.begins, key, kind, conditions, fields })
        });
        bound.collect()
    }

    /// The mark of a record; `None` where a condition of the delimiter does not hold or the key is absent.
    pub(super) fn read(&self, values: Values<'_, '_>, batch: &mut Batch) -> Option<MarkBody> {
        if !self.conditions.iter().all(|(slot, condition)| condition.holds(values.at(*slot))) {
            return None;
        }
        let key = match self.key.as_slice() {
            [] => None,
            [slot] => Some(match values.at(*slot) {
                Value::Text(text) => MarkKey::Text(batch.text(text)),
                value => MarkKey::Number(value.as_i64()?),
            }),
            several => Some(together(several, values, batch)?),
        };
        let kind = match values.at(self.kind) {
            Value::Text(text) => Some(batch.text(text)),
            Value::Unsigned(n) => Some(batch.text(n.to_string().as_bytes())),
            Value::Signed(n) => Some(batch.text(n.to_string().as_bytes())),
            _ => None,
        };
        let number = |(name, slot): &(String, Slot)| {
            let value = values.at(*slot).as_i64()?;
            Some((batch.text(name.as_bytes()), value))
        };
        let fields = self.fields.iter().filter_map(number).collect();
        Some(MarkBody { task: self.task, begins: self.begins, key, kind, fields })
    }
}

/// Several values as one key: each with its length before it, so that different lists of values give different keys.
fn together(slots: &[Slot], values: Values<'_, '_>, batch: &mut Batch) -> Option<MarkKey> {
    let mut all: Vec<u8> = Vec::new();
    for slot in slots {
        let number;
        let value: &[u8] = match values.at(*slot) {
            Value::Text(text) => text,
            value => {
                number = value.as_i64()?.to_string().into_bytes();
                &number
            }
        };
        all.extend(format!("{}:", value.len()).bytes());
        all.extend(value);
    }
    Some(MarkKey::Text(batch.text(&all)))
}
