//! The archive of one MPI run: nothing delimits its executions, so patterns are looked for, and what broke them.

use crate::analysis::patterns::Mined;
use crate::base::notice::Notices;
use crate::base::work::Work;
use crate::event::mpi;
use crate::input::otf2::Archive;

/// An MPI run.
pub struct Run {
    /// What was recorded.
    pub archive: Box<Archive>,
}

impl Run {
    /// The archive as people name it.
    pub fn title(&self) -> String {
        self.archive.path.display().to_string()
    }

    /// Events per type and messages. The notices say what was odd about the records.
    pub fn read(&self, work: &Work) -> anyhow::Result<mpi::MpiRun> {
        Ok(mpi::read(&self.archive, work)?)
    }

    /// Patterns of each rank's operations; messages and collectives carry delays from rank to rank.
    pub fn mine(&self, work: &Work) -> anyhow::Result<(Mined, Notices)> {
        let run = self.read(work)?;
        let notices = run.notices.clone();
        Ok((Mined::new(run.into_operations(&self.archive), work)?, notices))
    }
}
