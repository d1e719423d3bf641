//! What is asked of the executions of one task.

use crate::analysis::executions::PairingRule;
use crate::model::TraceInfo;
use crate::model::execution::ExecutionId;
use crate::symbols::files::SymbolPaths;
use std::sync::Arc;

#[derive(Clone, Debug, Default)]
pub struct TaskRequest {
    /// Names of all tasks found; there may be many, and a model of each.
    pub tasks: Arc<Vec<String>>,
    /// The one to explain, a position in `tasks`.
    pub task: usize,
    /// Position of that task in the list that the pass was given (`Mark::task`).
    pub marks: u32,
    /// How its begin and end events pair.
    pub rule: PairingRule,
    /// The traces, in the order given to the pass.
    pub traces: Vec<TraceInfo>,
    /// Folders of symbol files.
    pub places: SymbolPaths,
    /// Executions whose timelines are wanted.
    pub timelines: Vec<ExecutionId>,
}
