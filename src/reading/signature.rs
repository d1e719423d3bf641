//! The signature of an event: its name and its fields, as a task is found by them or given by them.

use crate::input::stream::SimpleField;
use crate::input::tracepoint::PROBED;

/// The events of text that programs wrote into `trace_marker`.
pub(super) const MARKERS: &str = "trace_marker:";

/// The events of spans that programs recorded themselves, in whatever file.
pub(super) const SPANS: &str = "span:";

/// A record class as discovery sees it: names and fields.
#[derive(Clone, Debug)]
pub struct EventSignature {
    /// Event name as tasks use it: LTTng's where LTTng has the same event.
    pub name: String,
    /// The name that its recorder shows.
    pub shown: String,
    /// Recorded by the kernel tracer.
    pub kernel: bool,
    /// Direct payload members that are integers or texts.
    pub fields: Vec<PayloadField>,
    /// Which of [`CONTEXTS`] its events carry.
    pub contexts: Vec<String>,
}

/// A member of the payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PayloadField {
    pub name: String,
    /// True for an integer, false for a text.
    pub is_integer: bool,
}

impl From<SimpleField<'_>> for PayloadField {
    fn from(field: SimpleField<'_>) -> Self {
        PayloadField { name: field.name.to_owned(), is_integer: field.is_integer }
    }
}

impl EventSignature {
    /// True for the events of a probe that a user placed on a function.
    pub fn is_probe(&self) -> bool {
        self.fields.iter().any(|field| PROBED.contains(&field.name.as_str()))
    }

    /// True for events that the user placed in a program, although the kernel's tracer recorded them.
    pub fn is_placed(&self) -> bool {
        self.is_probe() || [MARKERS, SPANS].iter().any(|group| self.name.starts_with(group))
    }

    pub(super) fn has_integer(&self, name: &str) -> bool {
        self.fields.iter().any(|field| field.is_integer && field.name == name)
    }

    pub(super) fn has_text(&self, name: &str) -> bool {
        self.fields.iter().any(|field| !field.is_integer && field.name == name)
    }
}

/// Contexts by which executions may be paired and chosen.
pub const CONTEXTS: [&str; 8] = ["tid", "pid", "ppid", "vtid", "vpid", "procname", "pthread_id", "prio"];
