//! Input of the search for anomalies in traces: one kernel pass, the operations of all threads, and the executions of a
//! task with who held them up.

use super::pass::KernelPass;
use super::traces::Traces;
use super::trials::OwnTasks;
use crate::analysis::executions::PairingRule;
use crate::analysis::operation_stacks::{self, StackSources};
use crate::analysis::operations;
use crate::analysis::patterns::PatternAnalysis;
use crate::base::ctx::Ctx;
use crate::delays::mined_executions::MinedExecutions;
use crate::delays::mining::Mining;
use crate::event::host::HostId;
use crate::explain;
use crate::explain::RecordingTables;
use crate::reading::tasks;
use crate::symbols::files::SymbolPaths;
use crate::timeline::{MarkRow, ThreadId, Timeline};

impl Traces {
    /// Patterns of each thread's system calls and user-space events, and the executions of a task with who held them
    /// up: without `typed` those of the task that `explain` chooses. Where call stacks were recorded, the operations
    /// know their functions.
    pub fn mine(&mut self, typed: Option<&str>, places: &SymbolPaths, ctx: &Ctx) -> anyhow::Result<Mining> {
        self.alone("anomalies")?;
        self.expect_stages(ctx);
        self.fit_clocks(ctx)?;
        let mut tasks = self.candidates(typed.as_slice())?;
        let candidates = tasks.len();
        // The exit event of a function may not name it: it ends `function`.
        tasks.extend(tasks::function("function", &self.tasks().classes));
        let mut pass = self.pass(tasks, places, ctx)?;
        let is_users = |mark: MarkRow| pass.tasks.get(mark.task as usize).is_some_and(|task| !self.is_kernels(task));
        let named = |mark: MarkRow| pass.name(mark).filter(|_| is_users(mark));
        let mut operations = operations::of_recording(&pass.timeline, named, ctx)?;
        let mut notices = std::mem::take(&mut pass.notices);
        let stacks = self.stacks(&pass, places, &mut notices, ctx)?;
        pass.notices = notices;
        let tables = &stacks.tables;
        let sources = StackSources { spaces: &tables.spaces, stacks: &tables.timelines, symbols: &tables.symbols };
        let recorded = &self.with_recorded(places)?;
        operation_stacks::attach(&pass.timeline, sources, &mut operations, recorded, &mut pass.notices, ctx)?;
        // What mining needs for a while is free again before executions are explained.
        let mined = PatternAnalysis::new(operations, ctx)?;
        let served = self.served(&mut pass, &stacks, candidates, typed, places, ctx)?;
        let declares_calls = self.found().iter().any(tasks::is_system_call);
        Ok(Mining { mined, served, notices: pass.notices, declares_calls, is_run: false })
    }

    /// The executions, with the threads that delayed them; none without scheduler events, which show these threads.
    fn served(
        &self,
        pass: &mut KernelPass,
        stacks: &RecordingTables,
        candidates: usize,
        typed: Option<&str>,
        places: &SymbolPaths,
        ctx: &Ctx,
    ) -> anyhow::Result<Option<MinedExecutions>> {
        if !has_switches(&pass.timeline) {
            return Ok(None);
        }
        let with_contributions = |pass: &KernelPass, chosen: usize, rule: PairingRule| {
            let request = self.request(pass, chosen, rule, places, &[])?;
            let notices = pass.notices_with(&pass.notices, chosen);
            Ok(explain::with_contributions(&pass.timeline, stacks, &request, &notices, ctx)?)
        };
        let asked = self.asked(typed);
        let made = if asked.task.is_none() && self.tasks().declared == 0 {
            let own = OwnTasks { pairs: candidates, process: asked.process };
            self.choose_in(pass, own, places, &with_contributions, ctx)?
        } else {
            let chosen = pass.begun().find(|at| *at < candidates);
            chosen.map(|chosen| with_contributions(pass, chosen, pass.rule(chosen)?)).transpose()?
        };
        let made = made.filter(|(model, _)| !model.executions.is_empty());
        if let (None, Some(task)) = (&made, typed) {
            anyhow::bail!("{}", self.nothing(ctx, &format!("task {task} has no executions that end in it"))?);
        }
        // A task that ran too seldom to be compared, and is not one of the program's own, delimits nothing.
        let made = made.filter(|(model, _)| model.choice.as_ref().is_none_or(|choice| !choice.profile));
        let threads: Vec<ThreadId> = operations::streams(&pass.timeline).collect();
        let error = self.clocks().iter().filter_map(|clock| clock.error).max().unwrap_or(0);
        let mined =
            made.map(|(model, contributions)| MinedExecutions::new(model, contributions, &threads, error, &ctx.cancel));
        Ok(mined.transpose()?)
    }
}

/// True where switches of any host were recorded.
fn has_switches(timeline: &Timeline) -> bool {
    (0..timeline.hosts().len()).any(|host| timeline.is_scheduled(HostId::at(host)))
}
