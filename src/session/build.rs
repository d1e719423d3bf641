//! A database of the executions of traces.
//!
//! In: opened traces, and the tasks that are wanted. Out: a database in the making, of all executions or of a sample.
//! Cost: one pass over the traces; each task is explained and packed before the next one.

use super::sampling::{Sampling, weighed};
use super::traces::{Traces, named};
use crate::base::ctx::Ctx;
use crate::explain;
use crate::saved::executions::Writer;
use crate::symbols::files::SymbolPaths;

impl Traces {
    /// A database of the executions of the tasks that are named; without names, of all that are worth a look by
    /// themselves; with a sampling a sample of them.
    pub fn build(
        &mut self,
        typed: &[&str],
        places: &SymbolPaths,
        sampling: Option<&Sampling>,
        ctx: &Ctx,
    ) -> anyhow::Result<Writer> {
        self.alone("build")?;
        self.fit_clocks(ctx)?;
        let pass = self.ask(typed, places, ctx)?;
        let rules = pass.rules()?;
        let labelled = self.given_labels().iter().all(|(_, labelled)| *labelled);
        let mut writer = Writer::new(self.facts(), pass.notices.clone()).labelled(labelled);
        let mut held = vec![false; pass.tasks.len()];
        let placed = self.place_stacks(&pass, places, ctx)?;
        for chosen in pass.begun() {
            let model = self.explain((&pass, &placed), chosen, rules[chosen].clone(), places, &[], ctx)?;
            if let Some(violation) = explain::check(&model, 1).pop() {
                anyhow::bail!("an invariant does not hold: {violation}; please report this");
            }
            held[chosen] = !model.executions.is_empty();
            if held[chosen] {
                writer.add(weighed(sampling, model, ctx)?, ctx)?;
            }
        }
        let missing = pass.tasks.iter().zip(&held).filter(|(_, held)| !**held).map(|(t, _)| t.name.as_str());
        let missing: Vec<&str> = missing.collect();
        if missing.len() == held.len() || (!typed.is_empty() && !missing.is_empty()) {
            anyhow::bail!("{}", self.nothing(ctx, &format!("{} has no executions", named(&missing)))?);
        }
        Ok(writer)
    }
}
