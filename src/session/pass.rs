//! The kernel pass for some tasks: their definitions, and their begin and end events.

use super::UsageError;
use crate::analysis::conversations::NoConversation;
use crate::analysis::derived::{self, Known};
use crate::analysis::executions::PairingRule;
use crate::analysis::functions::{self, FunctionNames};
use crate::analysis::processes;
use crate::analysis::stack_tables::LazyStackTables;
use crate::base::ctx::{Cancelled, Ctx};
use crate::base::notice::Notices;
use crate::event::task::{Pairing, TaskDefinition};
use crate::symbols::files::SymbolPaths;
use crate::timeline::questions::Asker;
use crate::timeline::{MarkRow, ThreadId, Timeline};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Result of the kernel pass for some tasks.
pub(super) struct KernelPass {
    pub tasks: Vec<TaskDefinition>,
    /// By task: the names of the functions that were entered, where its marks are entries and exits of functions.
    pub functions: Vec<FunctionNames>,
    pub timeline: Timeline,
    pub notices: Notices,
    /// By task: what is worth knowing of how it was delimited.
    pub of_tasks: Vec<Notices>,
    pub stacks: LazyStackTables,
    /// By name or pid: the threads of the processes that were asked about so far.
    pub threads: RefCell<BTreeMap<String, Arc<BTreeSet<ThreadId>>>>,
}

impl KernelPass {
    /// The name of the task that a begin or end event belongs to: the function that was entered, else the task's own.
    pub fn name(&self, mark: MarkRow) -> Option<&str> {
        let (at, task) = (mark.task as usize, self.tasks.get(mark.task as usize)?);
        let called = (task.pairing == Pairing::Function).then(|| functions::called(&self.timeline, mark)).flatten();
        Some(match called {
            Some(function) => self.functions.get(at)?.name(function),
            None => &task.name,
        })
    }

    /// How the begin and end events of each task pair.
    pub fn rules(&self) -> Result<Vec<PairingRule>, UsageError> {
        (0..self.tasks.len()).map(|at| self.rule(at)).collect()
    }

    /// How the begin and end events of a task pair. Error: the task is a function that was not called; it suggests
    /// functions of similar names.
    pub fn rule(&self, at: usize) -> Result<PairingRule, UsageError> {
        let (task, functions) = (&self.tasks[at], &self.functions[at]);
        let mut rule = PairingRule::of(task);
        if task.pairing == Pairing::Function {
            let meant = functions.matching(task.own_name());
            if meant.is_empty() {
                let hint = match functions.alike(task.own_name()).join("` or `") {
                    none if none.is_empty() => "`whyslow info --full` lists both".into(),
                    alike => format!("did you mean `{alike}`?"),
                };
                let why = "no such task, and no such function was called";
                return Err(UsageError(format!("--task {}: {why}; {hint}", task.name)));
            }
            rule.called = Some(meant);
        }
        if let Some(process) = &task.process {
            rule.threads = Some(self.threads_of(process)?);
        }
        Ok(rule)
    }

    /// The threads of the processes of a name, or pid; looked for once, since many tasks may be of one process.
    pub fn threads_of(&self, process: &str) -> Result<Arc<BTreeSet<ThreadId>>, UsageError> {
        let mut known = self.threads.borrow_mut();
        let threads =
            known.entry(process.to_owned()).or_insert_with(|| Arc::new(processes::threads_of(&self.timeline, process)));
        if threads.is_empty() {
            Err(UsageError(format!("--process {process}: {}", NoConversation::Process)))
        } else {
            Ok(Arc::clone(threads))
        }
    }

    /// All notices, with those of a task.
    pub fn notices_with(&self, all: &Notices, task: usize) -> Notices {
        let mut notices = all.clone();
        self.of_tasks.get(task).into_iter().for_each(|of| notices.merge(of));
        notices
    }

    /// Positions of the tasks with a begin event on a known thread.
    pub fn begun(&self) -> impl Iterator<Item = usize> {
        let reader = self.timeline.reader(Asker::Explain);
        let marks = reader.marks().filter(|m| m.thread.is_some());
        let begun: BTreeSet<usize> = marks.map(|m| m.task as usize).collect();
        begun.into_iter().filter(|task| *task < self.tasks.len())
    }

    /// Add a task that no event delimits; returns its position.
    pub fn add(&mut self, task: TaskDefinition, places: &SymbolPaths, ctx: &Ctx) -> Result<usize, Cancelled> {
        let at = self.tasks.len();
        let mut notices = Notices::default();
        if let Pairing::Derived(derived) = &task.pairing {
            let found = derived::marks(&self.timeline, at as u32, derived, &self.stacks, places, &mut notices, ctx)?;
            if let Known::Yes(marks) = found {
                self.timeline = std::mem::take(&mut self.timeline).delimited_by(marks);
            }
        }
        self.of_tasks.push(notices);
        self.tasks.push(task);
        self.functions.push(FunctionNames::default());
        Ok(at)
    }
}
