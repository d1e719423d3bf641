//! Tasks: what delimits executions. Definitions only: `reading/tasks.rs` finds them among the record classes of a trace
//! and parses `--task`, `reading/declared.rs` reads files of them, `analysis/executions.rs` pairs their events.
//! ALGORITHMS.md 6.1.

use super::derived::Derived;
use crate::base::op::Op;
use crate::input::record::Value;

/// An event that begins or ends an execution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delimiter {
    /// Name of the event.
    pub event: String,
    /// Fields, in the payload or a context, whose values together pair begin and end (see [`Pairing`]); none to pair on
    /// the thread.
    pub key: Vec<String>,
    /// The event counts only where all of these hold.
    pub conditions: Vec<Condition>,
}

/// A condition on a field, without which an event does not count. It does not hold for an absent field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// The field, in the payload or a context.
    pub field: String,
    /// The comparison.
    pub op: Op,
    /// The value to compare with.
    pub value: Literal,
}

/// A value to compare with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Literal {
    /// A whole number of either sign and any width.
    Number(i128),
    /// Text, as bytes.
    Text(Vec<u8>),
}

impl Condition {
    /// True where a field's value passes. Numbers and texts never equal each other.
    pub fn holds(&self, value: Value<'_>) -> bool {
        let order = match (value, &self.value) {
            (Value::Unsigned(n), Literal::Number(wanted)) => i128::from(n).cmp(wanted),
            (Value::Signed(n), Literal::Number(wanted)) => i128::from(n).cmp(wanted),
            (Value::Text(text), Literal::Text(wanted)) => text.cmp(wanted),
            _ => return false,
        };
        self.op.holds(order)
    }
}

/// How a begin finds its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pairing {
    /// On the same thread.
    Thread,
    /// By equal keys within the host, across threads and processes.
    Key,
    /// By equal keys within the process (descriptors), across its threads.
    ProcessKey,
    /// On the same thread, as calls nest; the key of a begin is the address of its function.
    Function,
    /// No events delimit it: its begins and ends are known once the recording is.
    Derived(Derived),
}

/// A task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskDefinition {
    /// As listed by `info` and given to `--task`.
    pub name: String,
    /// Any of these begins an execution.
    pub begins: Vec<Delimiter>,
    /// Any of these ends it.
    pub ends: Vec<Delimiter>,
    /// How they find each other.
    pub pairing: Pairing,
    /// Payload field of the begin (else the end) event that names the type of the execution.
    pub kind: Option<String>,
    /// A second begin opens an inner execution; else it restarts the outer.
    pub nest: bool,
}

impl TaskDefinition {
    /// A task that no event delimits.
    pub fn derived(name: String, derived: Derived) -> TaskDefinition {
        let (begins, ends) = (Vec::new(), Vec::new());
        TaskDefinition { name, begins, ends, pairing: Pairing::Derived(derived), kind: None, nest: false }
    }
}
