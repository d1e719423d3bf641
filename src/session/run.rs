//! The archive of one MPI run: nothing delimits its executions, so patterns are looked for, and what broke them; the
//! turns of each rank's outermost loop are its executions.

use super::Wrong;
use crate::analysis::patterns::{Mined, Mining};
use crate::base::work::Work;
use crate::event::mpi;
use crate::input::otf2::Archive;
use crate::model::Model;
use crate::model::build::iterations;
use std::sync::{Arc, OnceLock};

/// An MPI run.
pub struct Run {
    /// What was recorded.
    pub archive: Box<Archive>,
    /// Known once somebody asks: patterns and iterations come of it.
    mined: OnceLock<Arc<Mining>>,
}

impl Run {
    /// A run whose archive is open.
    pub fn new(archive: Box<Archive>) -> Run {
        Run { archive, mined: OnceLock::new() }
    }

    /// The archive as people name it.
    pub fn title(&self) -> String {
        self.archive.path.display().to_string()
    }

    /// Events per type and messages. The notices say what was odd about the records.
    pub fn read(&self, work: &Work) -> anyhow::Result<mpi::MpiRun> {
        Ok(mpi::read(&self.archive, work)?)
    }

    /// The iterations of all ranks, explained; with a task, those that are turns of that pattern.
    pub fn model(&self, task: Option<&str>, work: &Work) -> anyhow::Result<Model> {
        let mining = self.mine(work)?;
        let (mined, notices) = &*mining;
        let tasks = iterations::tasks(mined);
        let title = self.title();
        if tasks.is_empty() {
            anyhow::bail!(
                "{title}: no rank repeats anything, so there are no iterations; `whyslow info` says what is in it"
            );
        }
        let task = task.unwrap_or(iterations::ITERATION);
        let Some(at) = tasks.iter().position(|t| t == task) else {
            return Err(Wrong(format!("--task {task}: {title} has {}", tasks.join(", "))).into());
        };
        Ok(iterations::iterations(mined, at, &title, &self.archive.anchor.machine, notices, work)?)
    }

    /// Patterns of each rank's operations; messages and collectives carry delays from rank to rank. Mined once.
    pub fn mine(&self, work: &Work) -> anyhow::Result<Arc<Mining>> {
        if let Some(mining) = self.mined.get() {
            return Ok(Arc::clone(mining));
        }
        let run = self.read(work)?;
        let notices = run.notices.clone();
        let mining = Arc::new((Mined::new(run.into_operations(&self.archive), work)?, notices));
        Ok(Arc::clone(self.mined.get_or_init(|| mining)))
    }
}
