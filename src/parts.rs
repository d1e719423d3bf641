//! What the tests, benchmarks and fuzz targets use of the modules, which are private.
//!
//! In: nothing. Out: the modules' items under their own paths. The list is explicit so that rustc finds what nothing
//! uses; the program is built without it (`--cfg program`, in `.ci/run`), so that what only tests use is found, too.

pub mod advice {
    pub mod missing {
        pub use crate::advice::missing::missing;
    }
    pub mod questions {
        pub use crate::advice::questions::questions;
    }
}
pub mod analysis {
    pub mod candidates {
        pub use crate::analysis::candidates::{CandidateSources, Programs, candidates};
    }
    pub mod clocks {
        pub use crate::analysis::clocks::align;
    }
    pub mod executions {
        pub use crate::analysis::executions::{PairingRule, covered, pair};
    }
    pub mod leaders {
        pub use crate::analysis::leaders::Leaders;
    }
    pub mod mpi {
        pub use crate::analysis::mpi::{WaitAnalysis, WaitStateRows};
    }
    pub mod offsets {
        pub use crate::analysis::offsets::{StreamClock, fit};
    }
    pub mod operations {
        pub use crate::analysis::operations::of_recording;
    }
    pub mod path {
        pub use crate::analysis::path::{PathSegment, label, tiles, walk};
    }
    pub mod patterns {
        pub use crate::analysis::patterns::PatternAnalysis;
        pub mod grammar {
            pub use crate::analysis::patterns::grammar::{Grammar, GrammarRule, GrammarSymbol, mine};
        }
    }
    pub mod pauses {
        pub use crate::analysis::pauses::pauses;
    }
    pub mod stack_tables {
        pub use crate::analysis::stack_tables::LazyStackTables;
    }
    pub mod survey {
        pub use crate::analysis::survey::survey;
    }
    pub mod usage {
        pub use crate::analysis::usage::Usage;
    }
}
pub mod base {
    pub mod budget {
        pub use crate::base::budget::Budget;
    }
    pub mod clean {
        pub use crate::base::clean::line;
    }
    pub mod column_grid {
        pub use crate::base::column_grid::ColumnGrid;
    }
    pub mod ctx {
        pub use crate::base::ctx::{Cancel, Cancelled, Ctx};
    }
    pub mod cursor {
        pub use crate::base::cursor::ByteOrder;
    }
    pub mod digest {
        pub use crate::base::digest::Digester;
    }
    pub mod figure {
        pub use crate::base::figure::{count, deviations, extra, plural, share, stamp, time};
    }
    pub mod file {
        pub use crate::base::file::{Existing, Output};
    }
    pub mod heap {
        pub use crate::base::heap::MemoryPart;
    }
    pub mod mapped {
        pub use crate::base::mapped::Mapped;
    }
    pub mod names {
        pub use crate::base::names::{NameId, Names};
    }
    pub mod notice {
        pub use crate::base::notice::{Notice, Notices};
    }
    pub mod op {
        pub use crate::base::op::Op;
    }
    pub mod parallel {
        pub use crate::base::parallel::in_order;
    }
    pub mod question_counts {
        pub use crate::base::question_counts::CountedQuestion;
    }
    pub mod span_list {
        pub use crate::base::span_list::SpanRoom;
    }
    pub mod spill {
        pub use crate::base::spill::SpillFile;
    }
    pub mod statistics {
        pub use crate::base::statistics::{Sums, divide_rounded, mann_whitney, nearest_rank};
    }
    pub mod time {
        pub use crate::base::time::{Ns, Span, Timestamp};
    }
}
pub mod cli {
    pub use crate::cli::{Parsed, parse};
}
pub mod command {
    pub use crate::command::{interface::backend, run};
}
pub mod compare {
    pub use crate::compare::{Comparison, ComparisonRequest, DiffNode, compare, share_of_group};
    pub mod calls {
        pub use crate::compare::calls::CallTree;
        pub use crate::compare::calls::aligned::PairedCalls;
    }
    pub mod condition {
        pub use crate::compare::condition::FailIf;
    }
    pub mod filter {
        pub use crate::compare::filter::Filter;
    }
    pub mod functions {
        pub use crate::compare::functions::{by_function, sandwich};
    }
    pub mod arranged {
        pub use crate::compare::arranged::{Arrangement, KernelFrames, TreeDirection, arrange, invert};
    }
    pub mod heat_map {
        pub use crate::compare::heat_map::{HeatBox, HeatMap, HeatSize, axes};
    }
    pub mod members {
        pub use crate::compare::members::members;
    }
    pub mod moments {
        pub use crate::compare::moments::align;
    }
    pub mod ranks {
        pub use crate::compare::ranks::{RankComparison, ranks};
    }
}
pub mod delays {
    pub mod anomalies {
        pub use crate::delays::anomalies::of_patterns;
    }
    pub mod mining {
        pub use crate::delays::mining::Mining;
    }
}
pub mod dump {
    pub use crate::dump::{DumpError, Form, Sizes, canonical, write};
    pub mod archive {
        pub use crate::dump::archive::dump;
    }
}
pub mod event {
    pub mod host {
        pub use crate::event::host::{HostId, TraceOrigin};
    }
    pub mod image {
        pub use crate::event::image::ImageChange;
    }
    pub mod kind {
        pub use crate::event::kind::{
            Context, Event, Kind, LossSource, RequestStep, SoftIrq, TextId, ThreadContextId, WakeSource, WeightId,
            WorkStep,
        };
    }
    pub mod mpi {
        pub use crate::event::mpi::{MpiRun, operations, read};
    }
    pub mod operation {
        pub use crate::event::operation::{
            CollectiveInstance, CollectiveKind, Message, Operation, OperationKind, OperationPlace, Operations,
            SendCompletion, Sequence,
        };
    }
    pub mod prev_state {
        pub use crate::event::prev_state::Generation;
    }
    pub mod remark {
        pub use crate::event::remark::Priority;
    }
    pub mod stack {
        pub use crate::event::stack::{RawStackId, StackOrigin};
    }
    pub mod task {
        pub use crate::event::task::{Delimiter, Pairing, TaskDefinition};
    }
    pub mod transfer {
        pub use crate::event::transfer::{Transfer, transfer};
    }
}
pub mod explain {
    pub use crate::explain::{TaskRequest, build, check};
    pub mod facts {
        pub use crate::explain::facts::{archive_facts, iteration_durations};
    }
    pub mod iterations {
        pub use crate::explain::iterations::{iterations, tasks};
    }
    pub mod overview {
        pub use crate::explain::overview::disk_requests;
    }
    pub mod thread_lanes {
        pub use crate::explain::thread_lanes::LaneSource;
    }
}
pub mod input {
    pub use crate::input::{Argument, OpenError, Opened, Source, Trace, open};
    pub mod checked_account {
        pub use crate::input::checked_account::{CheckedAccount, of_archive, of_source};
    }
    pub mod count {
        pub use crate::input::count::count;
    }
    pub mod ctf {
        pub use crate::input::ctf::{Real, Sink};
    }
    pub mod otf2 {
        pub use crate::input::otf2::Archive;
    }
    pub mod record {
        pub use crate::input::record::{ClassId, FieldPath, IntegerArray, Projection, Scope, StreamId, Value};
    }
    pub mod records {
        pub use crate::input::records::PassedRecord;
    }
    pub mod stream {
        pub use crate::input::stream::Class;
    }
    pub mod trace {
        pub use crate::input::trace::{Plan, Trace};
    }
}
pub mod kernel {
    pub use crate::kernel::{Handlers, Machine, Options, RowsBy, record};
}
pub mod model {
    pub use crate::model::{Model, ThreadInfo, ThreadInfoId, TraceId, TraceInfo, TraceLevel};
    pub mod anomalies {
        pub use crate::model::anomalies::Anomalies;
    }
    pub mod carrier {
        pub use crate::model::carrier::Carrier;
    }
    pub mod choice {
        pub use crate::model::choice::{ChosenBy, ExecutionKind, ProgramTask, TaskChoice};
    }
    pub mod clock {
        pub use crate::model::clock::HostClock;
    }
    pub mod column_values {
        pub use crate::model::column_values::ColumnValues;
    }
    pub mod concurrent {
        pub use crate::model::concurrent::{ConcurrentQuestion, ConcurrentThread, ConcurrentUse};
    }
    pub mod context {
        pub use crate::model::context::{ContextId, Frame, FrameKind};
    }
    pub mod environment {
        pub use crate::model::environment::{
            CPU_GROUP, CPUS_ALLOWED, ENVIRONMENT_FILE, EnvironmentClocks, EnvironmentLine, NR_THROTTLED, PERIOD_US,
            PRIORITY, QUOTA_US, STEAL_MS, SampledTable, SampledValue, SampledValues, THROTTLED_US,
        };
    }
    pub mod execution {
        pub use crate::model::execution::{ContextTime, ExecutionId};
    }
    pub mod execution_timeline {
        pub use crate::model::execution_timeline::{
            ExecutionTimeline, TimelineEvent, TimelineEventKind, TimelineSegment, TimelineThread, TimelineWait,
        };
    }
    pub mod facts {
        pub use crate::model::facts::{Facts, Lost, TraceFacts};
    }
    pub mod histogram {
        pub use crate::model::histogram::ValueRange;
    }
    pub mod join {
        pub use crate::model::join::{LabelNames, Renamed, canonical, join, label};
    }
    pub mod metric {
        pub use crate::model::metric::{ABSENT, Column, Metric};
    }
    pub mod table_columns {
        pub use crate::model::table_columns::context_keys;
    }
    pub mod partials {
        pub use crate::model::partials::{ContextTotals, HostTotals, totals};
    }
    pub mod overview {
        pub use crate::model::overview::{OverviewCell, RecordingOverview, RequestRecord};
    }
    pub mod propagation {
        pub use crate::model::propagation::Noise;
    }
    pub mod sample {
        pub use crate::model::sample::{kept, weigh};
    }
    pub mod selection {
        pub use crate::model::selection::{Linked, Selection};
    }
    pub mod settings {
        pub use crate::model::settings::{PatternVerdict, Settings, ThresholdRule};
    }
    pub mod thread {
        pub use crate::model::thread::ThreadIdentity;
    }
    pub mod thread_lanes {
        pub use crate::model::thread_lanes::{
            KINDS, LaneOwner, LaneThread, LanesRequest, ThreadLane, ThreadLanes, ThreadMoment, ThreadsAnswer,
            ThreadsQuestion,
        };
    }
    pub mod wait_kind {
        pub use crate::model::wait_kind::{SegmentKind, WaitKind};
    }
    pub mod weights {
        pub use crate::model::weights::{KeptNumbers, RankedValues};
    }
}
pub mod options {
    pub mod configuration {
        pub use crate::options::configuration::Configuration;
    }
}
pub mod reading {
    pub mod batch {
        pub use crate::reading::batch::{Batch, BlockRequest, DumpStatus, DumpedThread, MarkBody, ThreadContext};
    }
    pub mod bind {
        pub use crate::reading::bind::{Binding, Focus, is_kernel};
    }
    pub mod chunks {
        pub use crate::reading::chunks::{ChunkTarget, cut};
    }
    pub mod declared {
        pub use crate::reading::declared::tasks;
    }
    pub mod engine {
        pub use crate::reading::engine::{ChunkStart, ChunkStep, EngineOptions, Hooks};
    }
    pub mod sources {
        pub use crate::reading::sources::HostName;
    }
    pub mod tasks {
        pub use crate::reading::signature::{EventSignature, PayloadField};
        pub use crate::reading::tasks::{discover, parse};
    }
}
pub mod record {
    pub use crate::record::{
        CallGraph, EndTrigger, Recorder, RecordingEnd, RecordingProgress, RecordingRequest, report, run,
    };
    pub mod capabilities {
        pub use crate::record::capabilities::{Capabilities, Tool};
    }
    pub mod plan {
        pub use crate::record::plan::{PlanUse, plan};
    }
    pub mod script {
        pub use crate::record::script::ScriptMode;
    }
    pub mod shell {
        pub use crate::record::shell::ShellCommand;
    }
}
pub mod saved {
    pub use crate::saved::{SavedFileError, SavedKind};
    pub mod container {
        pub use crate::saved::container::{SavedFile, SectionName};
        pub use crate::saved::writing::SavedFileWriter;
    }
    pub mod executions {
        pub use crate::saved::executions::merge::merge;
        pub use crate::saved::executions::recordings::{ChosenParts, chosen_parts};
        pub use crate::saved::executions::{Database, Writer};
    }
    pub mod partials {
        pub use crate::saved::partials::{FoundTotals, GroupTexts, PartialSums, PartialsFile, SumsError};
    }
    pub mod states {
        pub use crate::saved::states::{LeafChecks, StatesOf, read, write};
    }
}
pub mod session {
    pub use crate::session::{LeafChecks, MpiRuns, OpenOptions, Session, compare};
}
pub mod symbols;
pub mod timeline {
    pub use crate::timeline::{
        Call, CpuRun, CpuTimeline, Host, ImageEvent, Segment, SegmentKind, Tables, Thread, ThreadDraft, ThreadId,
        ThreadName, ThreadRows, Timeline, TimelineDraft, Waker,
    };
    pub mod attributes {
        pub use crate::timeline::attributes::AttributeId;
    }
    pub mod history {
        pub use crate::timeline::history::{STATES, Shown, StateHistory, StateValue, ThreadActivity, Times, most};
        pub mod lines {
            pub use crate::timeline::history::lines::{Held, HistoryLine, Longest, Time};
        }
    }
    pub mod questions {
        pub use crate::timeline::questions::{Access, Asker, Family};
    }
    pub mod slabs {
        pub use crate::timeline::slabs::SegmentSlab;
    }
    pub mod window {
        pub use crate::timeline::window::{LaneQuestion, LaneTable, StateSet};
    }
}
pub mod tui;
pub mod view;
