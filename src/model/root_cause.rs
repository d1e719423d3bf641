//! Root causes: what began delays, one row for all times at which it did.

use crate::base::time::{Ns, Span};
use crate::model::carrier::Carrier;
use crate::model::event_kind::EventKind;
use crate::model::propagation::{InnerFunction, Noise, RouteChange};

/// One time that a source caused a delay.
#[derive(Clone, Debug, PartialEq)]
pub struct CausedDelay {
    /// Position of its anomaly: of a source with victims the one of its first path.
    pub anomaly: u32,
    /// Position of its first path; `None` for a wait for work, which is on no path.
    pub path: Option<u32>,
    /// Its paths, which are adjacent.
    pub paths: u32,
    pub span: Span,
    /// The delay that it caused.
    pub affected_ns: Ns,
    /// Functions below that of its source, with their parts of `affected_ns`, the longest first.
    pub inner: Vec<InnerFunction>,
    /// Longer than usual by this.
    pub excess_ns: Ns,
    /// Times its reference; of what usually does not happen, times a microsecond.
    pub factor: f64,
    /// It usually does not happen: there is nothing of which it is this many times.
    pub is_new: bool,
    /// Executions that it delayed.
    pub executions: Vec<u32>,
}

impl CausedDelay {
    /// Times its reference, where it has one.
    pub fn times(&self) -> Option<f64> {
        (!self.is_new).then_some(self.factor)
    }
}

/// The last thread that waited for a root cause.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Victim {
    /// Name of the thread.
    pub name: String,
    /// Its function, where stacks were recorded.
    pub function: Option<String>,
}

/// A row: the same thread, function, carriers and victim's function; under MPI the same rank and phase.
#[derive(Clone, Debug, PartialEq)]
pub struct RootCause {
    /// Positions of the streams (threads, ranks) that were this root cause, ascending.
    pub streams: Vec<u32>,
    /// Name of the thread; with `*` where threads of a pool differ by their number only. `rank 4` under MPI. Of an
    /// interrupt its own: `softirq NET_RX`.
    pub name: String,
    /// Name of its process; empty under MPI.
    pub process: String,
    /// Its call, or what it did.
    pub what: String,
    pub kind: EventKind,
    /// The function, where stacks were recorded.
    pub function: Option<String>,
    /// Carriers of the delay, from the source to the last victim.
    pub carriers: Vec<Carrier>,
    /// The last victim, where it is another thread.
    pub victim: Option<Victim>,
    /// Noise of the system.
    pub noise: Option<Noise>,
    /// The difference between the calls of its executions (or iterations) and the others'; of all its occurrences.
    pub route: Option<RouteChange>,
    /// Waits for work: neither source nor victim.
    pub idle: bool,
    pub in_executions: bool,
    /// Functions below `function` by which delays of the thread are named, too, with their parts of `affected_ns`, the
    /// longest first.
    pub inner: Vec<InnerFunction>,
    /// All the delay that it caused.
    pub affected_ns: Ns,
    /// Longer than usual by this, all occurrences together.
    pub excess_ns: Ns,
    /// The largest of its occurrences.
    pub factor: f64,
    /// Executions that it delayed.
    pub executions: u64,
    /// In order of time.
    pub occurrences: Vec<CausedDelay>,
}

impl RootCause {
    /// The time from its first occurrence to its last.
    pub fn span(&self) -> Span {
        let start = self.occurrences.iter().map(|o| o.span.start).min().unwrap_or_default();
        let end = self.occurrences.iter().map(|o| o.span.end).max().unwrap_or(start);
        Span::new(start, end)
    }

    /// The largest of its occurrences' times their references; `None` where none has one.
    pub fn times(&self) -> Option<f64> {
        self.occurrences.iter().filter_map(CausedDelay::times).reduce(f64::max)
    }
}
