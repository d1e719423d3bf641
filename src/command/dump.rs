//! `whyslow dump`: every event in time order.

use super::console::{Console, STDOUT};
use super::{Outcome, Question};
use crate::dump::{self, DumpError, archive};
use crate::options::InputOptions;
use crate::session::Session;
use anyhow::Context;
use clap::Args;

#[derive(Args, Debug)]
pub struct DumpOptions {
    /// Write the exact format in which CTF readers are compared (docs/CANONICAL.md)
    #[arg(long)]
    canonical: bool,
    #[command(flatten)]
    input: InputOptions,
}

impl Question for DumpOptions {
    fn input(&self) -> &InputOptions {
        &self.input
    }

    fn shows_notices(&self) -> bool {
        false
    }

    fn run(&self, session: Session, console: &mut Console<'_>) -> anyhow::Result<Outcome> {
        let notices = match session {
            Session::Traces(traces) => {
                let write = if self.canonical { dump::canonical } else { dump::readable };
                let written = write(traces.opened("dump")?, console.ctx, &mut std::io::stdout());
                let mut notices = written.map_err(reason).context(STDOUT)?;
                notices.merge(&traces.notices());
                notices
            }
            Session::Run(run) => {
                run.alone("dump")?;
                if self.canonical {
                    anyhow::bail!("{}: --canonical is defined for CTF only; leave it out", run.title());
                }
                let written = archive::dump(&run.archive, &console.ctx.cancel, &mut std::io::stdout().lock());
                written.map_err(reason).context(STDOUT)?
            }
            Session::Databases(databases) => return databases.refuse("dump"),
            Session::Partials(partials) => return partials.refuse("dump"),
        };
        Ok(notices.into())
    }
}

/// The reason by itself: an error that contains it would repeat its text.
fn reason(error: DumpError) -> anyhow::Error {
    match error {
        DumpError::Output(e) => e.into(),
        DumpError::Cancelled(e) => e.into(),
    }
}
