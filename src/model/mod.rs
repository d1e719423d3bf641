//! The model: plain data that can be compared or saved without the trace: threads, contexts, executions, metrics.
//!
//! A [`Model`] is built once per analysis and then only read. It holds no reference to the trace, so that it can be
//! written to a database file and opened without it.

pub mod anomalies;
pub mod carrier;
pub mod categories;
pub mod choice;
pub mod clock;
pub mod column_values;
pub mod concurrent;
pub mod context;
pub mod counts;
pub mod elapsed;
pub mod environment;
pub mod event_kind;
pub mod execution;
pub mod execution_timeline;
pub mod facts;
pub mod histogram;
pub mod history;
pub mod join;
pub mod metric;
pub mod need;
pub mod overview;
pub mod profile;
pub mod propagation;
pub mod recorded;
pub mod recorder;
pub mod root_cause;
pub mod runtimes;
pub mod selection;
pub mod settings;
pub mod stored;
pub mod survey;
pub mod thread;
pub mod timeline;
pub mod unexplained;
pub mod usage;
pub mod wait_kind;
pub mod wait_state;
pub mod waiting;

use crate::base::names::{NameId, Names};
use crate::base::notice::Notices;
use crate::base::time::{Span, Timestamp};
use choice::TaskChoice;
use recorded::Recorded;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

crate::base::names::handle! {
    /// A thread of the model.
    ThreadInfoId,
    /// A trace given on the command line.
    TraceId,
}

/// A thread as executions and causes name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadInfo {
    pub host: NameId,
    pub process: NameId,
    /// Process id.
    pub pid: i32,
    /// Thread id.
    pub tid: i32,
    pub thread: NameId,
}

/// The level at which a trace was recorded: it decides which options can add what is missing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TraceLevel {
    /// A machine's threads, by its kernel or by its programs.
    #[default]
    Machine,
    /// The calls of an MPI run's ranks.
    MpiRun,
}

/// A trace given on the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceInfo {
    /// Label, or path as given.
    pub label: String,
    /// The level of recording.
    pub level: TraceLevel,
    /// First and last event.
    pub span: Span,
    /// What it recorded; `None` if that is unknown.
    pub recorded: Option<Recorded>,
}

/// The data of one task that is independent of the trace.
#[derive(Clone, Debug, Default)]
pub struct Model {
    /// All names used below.
    pub names: Names,
    /// Traces by [`TraceId`].
    pub traces: Vec<TraceInfo>,
    /// Names of all tasks found, in the order of PRODUCT.md ("Tasks found by themselves").
    pub tasks: Arc<Vec<String>>,
    /// The task whose executions these are.
    pub task: usize,
    /// The reason for this task, if the user named none.
    pub choice: Option<TaskChoice>,
    /// Threads by [`ThreadInfoId`].
    pub who: Vec<ThreadInfo>,
    /// The union of all executions' context trees.
    pub contexts: context::Contexts,
    /// All executions of the task, in columns.
    pub executions: execution::Executions,
    /// Set where the executions are the samples of a profiler.
    pub profile: Option<profile::Profile>,
    /// Of the executions that were asked for.
    pub timelines: BTreeMap<execution::ExecutionId, execution_timeline::ExecutionTimeline>,
    /// How far the events of each host with a kernel trace agree, in the order of the recording's hosts.
    pub quality: Vec<facts::HostQuality>,
    /// Losses, unknowns, caveats.
    pub notices: Notices,
    /// Time to subtract so that the first event of the recording is at zero, for people.
    pub origin: Timestamp,
}

impl Model {
    /// From the first to the last event of all traces.
    pub fn span(&self) -> Span {
        let spans = || self.traces.iter().map(|trace| trace.span);
        let start = spans().map(|span| span.start).min().unwrap_or(self.origin);
        Span::new(start, spans().map(|span| span.end).max().unwrap_or(start))
    }

    /// The names of the hosts of its threads.
    pub fn hosts(&self) -> BTreeSet<&str> {
        let names = self.who.iter().map(|who| self.names.get(who.host));
        names.filter(|host| !host.is_empty()).collect()
    }

    /// The name of a value of unit [`Unit::Name`](metric::Unit::Name); empty for a value that is no name.
    pub fn name_of(&self, value: i64) -> &str {
        u32::try_from(value).map_or("", |id| self.names.get(NameId::from_raw(id)))
    }

    /// A value of a metric for people: three digits and the unit, or the name.
    pub fn value_text(&self, unit: metric::Unit, value: i64) -> String {
        match unit {
            metric::Unit::Name => self.name_of(value).to_owned(),
            _ => unit.rounded(value),
        }
    }
}
