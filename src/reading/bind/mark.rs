//! Marks: events that begin or end executions.
//!
//! In: the delimiters of tasks to which a class belongs, and the values of its records. Out: a [`MarkBody`] per record
//! that meets the delimiter's conditions, with its key, its type and all numbers of its payload. Names of fields are
//! looked up once for each stream of a batch. Cost: O(1) for each number.

use super::delimiters::DelimiterPlace;
use super::paths::{NOWHERE, Paths, Slot};
use super::values::Values;
use crate::base::op::Op;
use crate::event::kind::{MarkId, TextId};
use crate::event::task::{Condition, Literal, TaskDefinition};
use crate::input::record::Value;
use crate::reading::batch::{Batch, MarkBody, MarkKey};
use crate::reading::delimiter_names::{ARGUMENTS, FIRST_ARGUMENT, NUMBER};

/// A delimiter bound to a class.
#[derive(Clone, Debug)]
pub(super) struct BoundMark {
    task: u32,
    begins: bool,
    key: Vec<BoundKey>,
    kind: Slot,
    conditions: Vec<(Slot, Condition)>,
    fields: Vec<BoundNumber>,
}

/// A part of a key, bound to a class.
#[derive(Clone, Copy, Debug)]
enum BoundKey {
    Field(Slot),
    /// The first argument of a call that is recorded by its number.
    Argument(Slot),
}

impl BoundKey {
    fn new(paths: &mut Paths<'_>, field: &str, place: &DelimiterPlace) -> BoundKey {
        match paths.any(field) {
            NOWHERE if place.call.is_some() && field == FIRST_ARGUMENT => BoundKey::Argument(paths.any(ARGUMENTS)),
            slot => BoundKey::Field(slot),
        }
    }

    fn value<'v>(self, values: Values<'v, '_>) -> Value<'v> {
        match self {
            BoundKey::Field(slot) => values.at(slot),
            BoundKey::Argument(slot) => {
                let first = values.at(slot).as_words().and_then(|words| words.iter().next());
                first.map_or(Value::Absent, |word| Value::Signed(i64::from(word as i32)))
            }
        }
    }
}

/// A number of the payload, bound to a class.
#[derive(Clone, Debug)]
struct BoundNumber {
    name: String,
    slot: Slot,
    /// Its position among the numbers of all delimiters of the binding.
    number: usize,
}

impl BoundMark {
    /// The delimiters at `places`, bound to the class. `numbers` counts the numbers of all delimiters of the binding.
    pub(super) fn all(
        paths: &mut Paths<'_>,
        tasks: &[TaskDefinition],
        places: &[DelimiterPlace],
        numbers: &mut usize,
    ) -> Vec<BoundMark> {
        if places.is_empty() {
            return Vec::new();
        }
        let fields = paths.trace.payload_fields(paths.class);
        let names: Vec<&str> = fields.into_iter().filter(|field| field.is_integer).map(|field| field.name).collect();
        let bound = places.iter().filter_map(|place| {
            let task = tasks.get(place.task as usize)?;
            let delimiter = if place.begins { &task.begins } else { &task.ends }.get(place.at)?;
            let key = delimiter.key.iter().map(|field| BoundKey::new(paths, field, place)).collect();
            let kind = task.kind.as_ref().map_or(NOWHERE, |field| paths.any(field));
            let of_call = place.call.map(|call| {
                let value = Literal::Number(call.into());
                Condition { field: NUMBER.to_owned(), op: Op::Equal, value }
            });
            let conditions = delimiter.conditions.iter().cloned().chain(of_call);
            let conditions = conditions.map(|c| (paths.any(&c.field), c)).collect();
            let number = |name: &&str| {
                *numbers += 1;
                BoundNumber { name: (*name).to_owned(), slot: paths.payload(name), number: *numbers - 1 }
            };
            let fields = names.iter().map(number).collect();
            Some(BoundMark { task: place.task, begins: place.begins, key, kind, conditions, fields })
        });
        bound.collect()
    }

    /// Store the mark of a record; `None` where a condition of the delimiter does not hold or the key is absent.
    /// `names` has the names of the binding's numbers that were stored before.
    pub(super) fn read(&self, values: Values<'_, '_>, names: &mut [TextId], batch: &mut Batch) -> Option<MarkId> {
        if !self.conditions.iter().all(|(slot, condition)| condition.holds(values.at(*slot))) {
            return None;
        }
        let key = match self.key.as_slice() {
            [] => None,
            [one] => Some(match one.value(values) {
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
        for field in &self.fields {
            if let (Some(value), Some(name)) = (values.at(field.slot).as_i64(), names.get_mut(field.number)) {
                if *name == TextId::NONE {
                    *name = batch.text(field.name.as_bytes());
                }
                batch.mark_field(*name, value);
            }
        }
        Some(batch.mark(MarkBody { task: self.task, begins: self.begins, key, kind }))
    }
}

/// Several values as one key: each with its length before it, so that different lists of values give different keys.
fn together(keys: &[BoundKey], values: Values<'_, '_>, batch: &mut Batch) -> Option<MarkKey> {
    let mut all: Vec<u8> = Vec::new();
    for key in keys {
        let number;
        let value: &[u8] = match key.value(values) {
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
