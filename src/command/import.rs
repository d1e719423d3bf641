//! `whyslow import`: exported tables as a database again.

use super::console::Console;
use super::{Depth, Outcome, Question};
use crate::base::notice::Notices;
use crate::confinement::Files;
use crate::input::Argument;
use crate::options::InputOptions;
use crate::session::{self, Session};
use clap::Args;
use std::path::PathBuf;

#[derive(Args, Debug)]
pub struct ImportOptions {
    /// The file to write; an existing database is replaced
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    #[command(flatten)]
    input: InputOptions,
}

impl Question for ImportOptions {
    fn input(&self) -> &InputOptions {
        &self.input
    }

    fn files(&self) -> Files<'_> {
        Files { output: Some(&self.output), ..Files::default() }
    }

    /// The folders, whatever is in them.
    fn traces(&self) -> Vec<Argument> {
        self.input.traces.clone()
    }

    fn depth(&self) -> Depth {
        Depth::Nothing
    }

    fn shows_notices(&self) -> bool {
        false
    }

    fn prepare(&self) -> anyhow::Result<()> {
        super::export::check_parquet()
    }

    fn run(&self, _: Session, console: &mut Console<'_>) -> anyhow::Result<Outcome> {
        let folders: Vec<PathBuf> = self.input.traces.iter().map(|folder| folder.path.clone()).collect();
        console.with_progress(|ctx| session::import(&folders, console.output()?, ctx))?;
        console.stage("import");
        Ok(Notices::default().into())
    }
}
