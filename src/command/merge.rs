//! `whyslow merge`: one database of the recordings of several, or one file of several partial results.

use super::console::Console;
use super::{Outcome, Question};
use crate::base::clean;
use crate::base::notice::Notices;
use crate::confinement::Files;
use crate::options::InputOptions;
use crate::session::Session;
use crate::view::stderr::say;
use clap::Args;
use std::path::PathBuf;

#[derive(Args, Debug)]
pub struct MergeOptions {
    /// The file to write; an existing one of the same kind is replaced
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    #[command(flatten)]
    input: InputOptions,
}

impl Question for MergeOptions {
    fn input(&self) -> &InputOptions {
        &self.input
    }

    fn files(&self) -> Files<'_> {
        Files { output: Some(&self.output), ..Files::default() }
    }

    fn shows_notices(&self) -> bool {
        false
    }

    fn run(&self, session: Session, console: &mut Console<'_>) -> anyhow::Result<Outcome> {
        let title = session.title();
        if let Session::Partials(partials) = &session {
            for line in console.with_progress(|ctx| partials.merge(console.output()?, ctx))? {
                say(&format!("note: {}", clean::line(&line)));
            }
            console.stage("merge");
            return Ok(Notices::default().into());
        }
        let Session::Databases(databases) = session else {
            anyhow::bail!("{title}: not a database: build one of each recording with `whyslow build`, and merge them");
        };
        let notices = databases.notices();
        let plan = databases.merge_plan()?;
        console.with_progress(|ctx| plan.save(console.output()?, ctx))?;
        console.stage("merge");
        for remark in &plan.remarks {
            say(&format!("note: {}", clean::line(remark)));
        }
        Ok(notices.into())
    }
}
