//! `whyslow export`: databases as tables of columns, for other engines.

use super::console::Console;
use super::{Outcome, Question};
use crate::base::notice::Notices;
use crate::confinement::Files;
use crate::options::InputOptions;
use crate::session::Session;
use anyhow::Context;
use clap::Args;
use std::path::PathBuf;

/// An error where this program has no Parquet.
pub(super) fn check_parquet() -> anyhow::Result<()> {
    if !cfg!(feature = "parquet") {
        anyhow::bail!(
            "this whyslow was built without Parquet: build it with `cargo build --features parquet`, or take a release"
        );
    }
    Ok(())
}

#[derive(Args, Debug)]
pub struct ExportOptions {
    /// The folder to write into, which is made; files of an earlier export of the same recordings are replaced
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
    #[command(flatten)]
    input: InputOptions,
}

impl Question for ExportOptions {
    fn input(&self) -> &InputOptions {
        &self.input
    }

    fn files(&self) -> Files<'_> {
        Files { tables: Some(&self.output), ..Files::default() }
    }

    fn shows_notices(&self) -> bool {
        false
    }

    fn prepare(&self) -> anyhow::Result<()> {
        check_parquet()?;
        let made = std::fs::create_dir_all(&self.output);
        made.with_context(|| format!("{}: the folder cannot be made", self.output.display()))
    }

    fn run(&self, session: Session, console: &mut Console<'_>) -> anyhow::Result<Outcome> {
        let title = session.title();
        if let Session::Partials(partials) = &session {
            console.with_progress(|ctx| partials.export(&self.output, ctx))?;
            console.stage("export");
            return Ok(Notices::default().into());
        }
        let Session::Databases(databases) = session else {
            anyhow::bail!("{title}: not a database: build one with `whyslow build`, and export it");
        };
        console.with_progress(|ctx| databases.export(&self.output, ctx))?;
        console.stage("export");
        Ok(databases.notices().into())
    }
}
