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
pub mod event_name;
pub mod execution;
pub mod execution_timeline;
pub mod facts;
pub mod histogram;
pub mod history;
pub mod ids;
pub mod join;
pub mod metric;
pub mod need;
pub mod overview;
pub mod partials;
pub mod profile;
pub mod propagation;
pub mod recorded;
pub mod recorder;
pub mod root_cause;
pub mod runtimes;
pub mod sample;
pub mod selection;
pub mod settings;
pub mod stored;
pub mod survey;
pub mod table_columns;
pub mod thread;
pub mod thread_lanes;
pub mod timeline;
pub mod trace_info;
pub mod unexplained;
pub mod united;
pub mod usage;
pub mod wait_kind;
pub mod wait_state;
pub mod waiting;
pub mod weights;

pub use ids::{ThreadInfoId, TraceId};
pub use trace_info::{TraceInfo, TraceLevel};

use crate::base::figure;
use crate::base::names::{NameId, Names};
use crate::base::notice::Notices;
use crate::base::time::{Span, Timestamp};
use choice::TaskChoice;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A thread as executions and causes name it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ThreadInfo {
    pub host: NameId,
    pub process: NameId,
    /// Process id.
    pub pid: i32,
    /// Thread id.
    pub tid: i32,
    pub thread: NameId,
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

    /// An amount of what executions are measured in: a time, but for profiles of other events than clocks.
    pub fn amount(&self, amount: f64) -> String {
        self.profile.as_ref().map_or_else(|| figure::time(amount), |profile| profile.amount(amount))
    }

    /// The noun for its executions: `execution`, or `sample` in a profile.
    pub fn noun(&self) -> &'static str {
        if self.profile.is_some() { "sample" } else { "execution" }
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
