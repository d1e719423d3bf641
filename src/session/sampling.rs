//! Databases of samples: all slow executions, and of the others one in so many, with weights.
//!
//! In: the models of a recording, or the parts of databases. Out: the same with weights, from which a database is made.
//! Slow is what filters say, else what `explain` divides the executions of a part into. Each part is a sample by
//! itself, so that a sample of merged databases is the merged samples of each. In memory are the packed samples.
//! ALGORITHMS.md section 6.6.

use super::UsageError;
use super::merge::MergePlan;
use crate::base::ctx::Ctx;
use crate::base::figure;
use crate::base::file::Output;
use crate::compare::filter::Filter;
use crate::compare::slow_members;
use crate::model::Model;
use crate::model::join::{self, LabelNames};
use crate::model::sample;
use crate::saved::executions::restored::RestoredDatabase;
use std::path::PathBuf;

/// Decides which executions are kept; another one keeps others of the same kind.
const SEED: u64 = 0x5A3B_1E00_0000_0001;

/// Which executions are kept.
#[derive(Clone, Debug)]
pub struct Sampling {
    /// Of those that are not slow one in so many.
    pub one_in: u64,
    /// Which are slow; none for those that `explain` calls so.
    pub slow: Vec<Filter>,
}

/// A model with weights, where a sample is wanted and not all of its executions are kept.
pub(super) fn weighed(sampling: Option<&Sampling>, model: Model, ctx: &Ctx) -> anyhow::Result<Model> {
    match sampling {
        Some(sampling) => sampling.weighed(model, ctx),
        None => Ok(model),
    }
}

impl Sampling {
    fn weighed(&self, model: Model, ctx: &Ctx) -> anyhow::Result<Model> {
        // What is kept must not depend on how the model was made.
        let mut model = join::canonical(model, LabelNames::Kept, ctx)?;
        let slow = slow_members(&model, &self.slow).map_err(|error| UsageError(error.to_string()))?;
        sample::weigh(&mut model, &slow, self.one_in, SEED);
        Ok(model)
    }
}

impl MergePlan {
    /// Write the file of the samples of all parts. Returns a line for each part that is a sample already.
    pub fn save_sample(&self, sampling: &Sampling, output: Output, ctx: &Ctx) -> anyhow::Result<Vec<String>> {
        let mut samples = RestoredDatabase::default();
        let mut before: Vec<PathBuf> = Vec::new();
        ctx.progress.enter("sampling", self.chosen.kept.len() as u64);
        for (place, kept) in &self.chosen.kept {
            let database = &self.databases[place.database];
            samples.sampled(database.contents.recordings[place.recording].clone());
            for at in kept {
                ctx.cancel.check()?;
                let part = &database.contents.recordings[place.recording].parts[*at];
                if part.whole == part.count {
                    let model = database.part_at(place.recording, *at, ctx)?;
                    samples.add_sample(part, sampling.weighed(model, ctx)?, ctx)?;
                } else {
                    before.push(database.path().to_owned());
                    samples.add_stored(database, (place.recording, *at))?;
                }
            }
            ctx.progress.step(1);
        }
        samples.save(output)?;
        let mut lines = Vec::new();
        for file in before.chunk_by(|a, b| a == b) {
            let (parts, path) = (figure::plural(file.len() as u64, "task"), file[0].display());
            lines.push(format!("{path}: {parts} of it are a sample already: kept as they are"));
        }
        Ok(lines)
    }
}
