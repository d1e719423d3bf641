//! What anomalies of CTF traces are found in: one kernel pass, the operations of all threads, and the executions of a
//! task with who held them up.

use super::asked::KernelPass;
use super::traces::Traces;
use crate::analysis::executions::Rule;
use crate::analysis::patterns::Mined;
use crate::analysis::symbols::files::Places;
use crate::analysis::{operation_stacks, operations};
use crate::base::ctx::Ctx;
use crate::explain;
use crate::explain::Stacks;
use crate::explain::mining::{MinedExecutions, Mining};
use crate::reading::tasks;
use crate::state::timeline::{HostId, Mark, ThreadId};

impl Traces {
    /// Patterns of each thread's system calls and user-space events, and the executions of a task with who held them
    /// up: without `typed` those of the task that `explain` chooses. Where call stacks were recorded, the operations
    /// know their functions.
    pub fn mine(&mut self, typed: Option<&str>, places: &Places, ctx: &Ctx) -> anyhow::Result<Mining> {
        self.fit_clocks(ctx)?;
        let mut tasks = self.candidates(typed.as_slice())?;
        let candidates = tasks.len();
        // An exit may not tell of which function: it ends `function`.
        tasks.extend(tasks::function("function", &self.tasks().classes));
        let mut asked = self.pass(tasks, places, ctx)?;
        let is_users = |mark: &Mark| asked.tasks.get(mark.task as usize).is_some_and(|task| !self.is_kernels(task));
        let named = |mark: &Mark| asked.name(mark).filter(|_| is_users(mark));
        let mut operations = operations::of_recording(&asked.recording, named);
        let stacks = Stacks::new(&asked.recording, places, &mut asked.notices, ctx)?;
        let laid = (&stacks.spaces, &stacks.timelines, &stacks.symbols);
        operation_stacks::lay(&asked.recording, laid, &mut operations, places, &mut asked.notices, ctx)?;
        let served = self.served(&mut asked, &stacks, candidates, typed, places, ctx)?;
        let mined = Mined::new(operations, ctx)?;
        let declares_calls = self.found().iter().any(tasks::is_system_call);
        Ok(Mining { mined, served, notices: asked.notices, declares_calls, is_run: false })
    }

    /// The executions, with who held them up; none where the scheduler was not recorded, which tells that.
    fn served(
        &self,
        asked: &mut KernelPass,
        stacks: &Stacks,
        candidates: usize,
        typed: Option<&str>,
        places: &Places,
        ctx: &Ctx,
    ) -> anyhow::Result<Option<MinedExecutions>> {
        let hosts = asked.recording.hosts.len();
        if !(0..hosts).any(|host| asked.recording.is_scheduled(HostId::at(host))) {
            return Ok(None);
        }
        let with_contributions = |asked: &KernelPass, chosen: usize, rule: Rule| {
            let request = self.request(asked, chosen, rule, places, &[]);
            Ok(explain::with_contributions(&asked.recording, stacks, &request, &asked.notices, ctx)?)
        };
        let made = if typed.is_none() && self.tasks().declared == 0 {
            self.choose_in(asked, candidates, places, &with_contributions, ctx)?
        } else {
            let chosen = asked.begun().find(|at| *at < candidates);
            chosen.map(|chosen| with_contributions(asked, chosen, asked.rule(chosen)?)).transpose()?
        };
        let made = made.filter(|(model, _)| !model.executions.is_empty());
        if let (None, Some(task)) = (&made, typed) {
            anyhow::bail!("{}", self.nothing(ctx, &format!("task {task} has no executions that end in it"))?);
        }
        // What ran too seldom to be compared, and is none of the program's own, delimits nothing.
        let made = made.filter(|(model, _)| model.choice.as_ref().is_none_or(|choice| !choice.profile));
        let threads: Vec<ThreadId> = operations::streams(&asked.recording).collect();
        let error = self.clocks().iter().filter_map(|clock| clock.error).max().unwrap_or(0);
        Ok(made.map(|(model, contributions)| MinedExecutions::new(model, contributions, &threads, error)))
    }
}
