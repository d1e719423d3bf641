//! The vocabulary of background jobs: requests, results, and the progress of a running job.

use super::bookmarks::Bookmark;
use super::counts::HistogramCounts;
use super::heat_cells::{CountedMap, HeatQuestion};
use super::report::AnomalyReport;
use crate::base::file::Existing;
use crate::base::time::Span;
use crate::base::time_left::TimeLeft;
use crate::compare::arranged::{ArrangedTree, Arrangement, KernelFrames, TreeDirection};
use crate::compare::calls::aligned::PairedCalls;
use crate::compare::moments::Divergence;
use crate::compare::{Comparison, ComparisonRequest};
use crate::model::Model;
use crate::model::concurrent::{ConcurrentQuestion, ConcurrentUse};
use crate::model::execution::ExecutionId;
use crate::model::overview::RecordingOverview;
use crate::model::settings::Settings;
use crate::model::thread_lanes::{ThreadsAnswer, ThreadsQuestion};
use crate::model::weights::RankedValues;
use crate::view::compared_causes::ComparedCauses;
use crate::view::report::{Invocation, ReportFormat};
use std::path::PathBuf;
use std::sync::Arc;

/// A request for a background job.
#[derive(Clone, Debug)]
pub enum Job {
    /// Analyse the trace for a task (`None`: the one that the command line or the trace chooses).
    Analyse {
        /// Name of the task.
        task: Option<String>,
    },
    /// Open the input anew, together with a recording or one of its labels as the fast side, and analyse the task.
    SetBaseline {
        /// The recording or label as typed; `None`: without one.
        baseline: Option<String>,
        /// Name of the task.
        task: Option<String>,
    },
    /// Compare two groups and count the histograms.
    Compare {
        /// Of these executions.
        model: Arc<Model>,
        /// The groups.
        request: ComparisonRequest,
        /// The arrangement of the tree on the screen.
        arrangement: Arrangement,
        /// The direction of the tree on the screen.
        direction: TreeDirection,
    },
    /// Count the cells of the heat map.
    CountCells { question: HeatQuestion },
    /// Arrange the tree of a comparison.
    Arrange {
        /// Of these executions.
        model: Arc<Model>,
        /// The comparison on the screen.
        comparison: Arc<Comparison>,
        arrangement: Arrangement,
        direction: TreeDirection,
        /// The tree with callers first is in this arrangement already: the other one alone is asked for.
        has_callers_first: bool,
    },
    /// Mine patterns, unless that is done; then find the anomalies under these settings, and their causes.
    Mine {
        /// q and s.
        settings: Settings,
    },
    /// Find out how many executions each task has, and how long they take.
    Survey,
    /// Read the timelines of some executions.
    Timelines {
        /// Their numbers.
        executions: Vec<ExecutionId>,
        /// Whether their calls have the kernel's functions.
        kernel: KernelFrames,
    },
    /// Find the threads that used the same things as one of a timeline.
    Concurrent {
        /// The thread, CPU and span asked about.
        question: ConcurrentQuestion,
    },
    /// How busy CPUs, disks and network were over a span, or over the whole recording.
    Overview { span: Option<Span> },
    /// Lanes of many threads, and what a thread does at a moment.
    Threads { question: Box<ThreadsQuestion> },
    /// Write a result to a file.
    Export {
        /// The result.
        what: Exported,
        /// The file.
        path: PathBuf,
        /// For a file that exists.
        existing: Existing,
    },
}

/// Results that can be written to a file.
#[derive(Clone, Debug)]
pub enum Exported {
    /// The comparison, and the propagation path that is selected.
    Comparison {
        /// The executions.
        model: Arc<Model>,
        /// Their groups.
        comparison: Arc<Comparison>,
        path: Option<SelectedPath>,
        /// Places with notes.
        bookmarks: Vec<Bookmark>,
    },
    /// Patterns, anomalies and paths, and the path that is selected.
    Anomalies {
        found: Arc<AnomalyReport>,
        /// Position of a path.
        path: Option<usize>,
        /// The comparison's result beside them.
        compared: Option<ComparedCauses>,
    },
    /// The comparison as a report for people or for another tool.
    Report {
        /// The executions.
        model: Arc<Model>,
        /// Their groups.
        comparison: Arc<Comparison>,
        /// The command that gives the same answer.
        command: String,
        format: ReportFormat,
    },
    /// A database of the current task, which opens without the trace.
    Database,
}

/// A path among all.
#[derive(Clone, Debug)]
pub struct SelectedPath {
    pub found: Arc<AnomalyReport>,
    /// The position of the selected one.
    pub at: usize,
}

/// The requests that a request makes obsolete are those of its lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobLane {
    /// About executions; goes first.
    Executions,
    /// The heat map, which is soon counted.
    Cells,
    Patterns,
    /// About the whole recording.
    Overview,
    /// About many threads over time.
    Threads,
}

impl JobLane {
    /// In the order in which waiting jobs begin.
    pub const ALL: [JobLane; LANES] =
        [JobLane::Executions, JobLane::Cells, JobLane::Patterns, JobLane::Overview, JobLane::Threads];

    /// True where a request of this lane need not wait for a running one of the other: it is more urgent, and its job
    /// is short or makes the other one's question old.
    pub fn interrupts(self, running: JobLane) -> bool {
        matches!(self, JobLane::Executions | JobLane::Cells) && (self as usize) < running as usize
    }
}

/// The number of lanes.
pub const LANES: usize = 5;

impl Job {
    pub fn lane(&self) -> JobLane {
        match self {
            Job::CountCells { .. } => JobLane::Cells,
            Job::Mine { .. } => JobLane::Patterns,
            Job::Overview { .. } => JobLane::Overview,
            Job::Threads { .. } => JobLane::Threads,
            Job::Analyse { .. }
            | Job::SetBaseline { .. }
            | Job::Compare { .. }
            | Job::Arrange { .. }
            | Job::Survey
            | Job::Timelines { .. }
            | Job::Concurrent { .. }
            | Job::Export { .. } => JobLane::Executions,
        }
    }

    /// Its name while it runs.
    pub fn name(&self) -> &'static str {
        match self {
            Job::Analyse { .. } | Job::SetBaseline { .. } => "analysing",
            Job::Compare { .. } => "comparing",
            Job::Arrange { .. } => "arranging",
            Job::Mine { .. } => "mining",
            Job::Survey | Job::CountCells { .. } => "counting",
            Job::Timelines { .. } | Job::Concurrent { .. } | Job::Overview { .. } | Job::Threads { .. } => "reading",
            Job::Export { .. } => "exporting",
        }
    }
}

/// A running job, as the screen shows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Busy {
    /// `analysing`, `comparing`, `inverting`, `mining`, `counting`, `reading`, `exporting`.
    pub what: &'static str,
    pub stage: &'static str,
    /// Units done in the stage.
    pub done: u64,
    /// Units in the stage; 0 while unknown.
    pub total: u64,
    /// Events read so far.
    pub events: u64,
    /// How long the job will still take, where that is known.
    pub left: Option<TimeLeft>,
}

/// A task that has executions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskSummary {
    pub name: String,
    /// How many executions it has.
    pub executions: u64,
    /// The median of their durations.
    pub p50_ns: i64,
    /// The 99th percentile.
    pub p99_ns: i64,
}

impl TaskSummary {
    /// The summary of durations; `None` of none.
    pub fn new(name: &str, durations: &RankedValues) -> Option<TaskSummary> {
        let (p50_ns, p99_ns) = (durations.nearest_rank(50.0)?, durations.nearest_rank(99.0)?);
        Some(TaskSummary { name: name.to_owned(), executions: durations.count(), p50_ns, p99_ns })
    }

    /// About what the slowest twentieth of the executions takes beyond the median.
    pub fn tail_ns(&self) -> i64 {
        let slowest = i64::try_from(self.executions / 20).unwrap_or(i64::MAX).max(1);
        self.p99_ns.saturating_sub(self.p50_ns).saturating_mul(slowest)
    }
}

/// The reason why a job has no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JobError {
    /// The backend cannot answer; the reason and the remedy in one line.
    #[error("{0}")]
    Failed(String),
    /// The backend panicked with this message.
    #[error("whyslow failed here; this is an error in whyslow, not in the trace: {0}")]
    Panicked(String),
}

/// A comparison, and its trees in the arrangement that is on the screen.
#[derive(Clone, Debug)]
pub struct ComparedGroups {
    pub comparison: Arc<Comparison>,
    pub trees: ArrangedTrees,
}

/// The trees of a comparison in one arrangement.
#[derive(Clone, Debug, Default)]
pub struct ArrangedTrees {
    /// With callers first; `None` where it is that of the comparison.
    pub callers_first: Option<Arc<ArrangedTree>>,
    /// With callees first, where it is on the screen.
    pub callees_first: Option<Arc<ArrangedTree>>,
}

/// One or two executions as timelines.
#[derive(Clone, Debug)]
pub struct ReadTimelines {
    /// It has their timelines.
    pub model: Arc<Model>,
    /// Their calls, aligned.
    pub calls: Arc<PairedCalls>,
    /// Where two begin to differ most.
    pub divergence: Option<Divergence>,
}

/// The input as it is open after its baseline was changed.
#[derive(Clone, Debug)]
pub struct BaselineInput {
    /// The baseline as typed, if there is one.
    pub baseline: Option<String>,
    /// The traces, as the header names them.
    pub title: String,
    /// The command line without the groups.
    pub command_line: Invocation,
    /// The groups: those of the baseline and of everything else, or empty.
    pub request: ComparisonRequest,
    /// The executions of the task.
    pub model: Arc<Model>,
}

/// A result, or a part of it.
#[derive(Clone, Debug)]
pub enum Done {
    /// The analysis is done.
    Analysed(Result<Arc<Model>, JobError>),
    /// The input is open with another baseline, and analysed.
    BaselineSet(Result<Box<BaselineInput>, JobError>),
    /// The histograms are counted.
    Counted(Arc<HistogramCounts>),
    /// The cells of the heat map are counted; none where there is no map.
    Cells(Box<HeatQuestion>, Box<Result<Option<CountedMap>, JobError>>),
    /// The comparison is done.
    Compared(Result<ComparedGroups, JobError>),
    /// The tree is in this arrangement.
    Arranged(Arrangement, Result<ArrangedTrees, JobError>),
    /// Patterns are mined, and these are the anomalies under these settings.
    Mined(Settings, Result<Arc<AnomalyReport>, JobError>),
    /// The tasks that have executions.
    Surveyed(Result<Arc<[TaskSummary]>, JobError>),
    /// The timelines of these executions.
    Timelines(Vec<ExecutionId>, Result<ReadTimelines, JobError>),
    /// A span of the recording, or the whole of it.
    Overview(Option<Span>, Result<Arc<RecordingOverview>, JobError>),
    /// Many threads over time.
    Threads(Box<ThreadsQuestion>, Result<Box<ThreadsAnswer>, JobError>),
    /// The threads that used the same things.
    Concurrent(ConcurrentQuestion, Result<ConcurrentUse, JobError>),
    /// The file is written, or not.
    Exported {
        /// The file.
        path: PathBuf,
        outcome: WriteOutcome,
    },
}

/// The outcome of writing a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WriteOutcome {
    /// Bytes written.
    Written(u64),
    /// Such a file exists, and the user has not agreed to replace it.
    Exists,
    /// The error.
    Failed(String),
}
