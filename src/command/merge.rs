//! `whyslow merge`: one database of the recordings of several, or one file of several partial results.

use super::build::{sample_size, sampling};
use super::console::Console;
use super::{Outcome, Question};
use crate::base::clean;
use crate::base::notice::Notices;
use crate::compare::filter::Filters;
use crate::confinement::Files;
use crate::options::InputOptions;
use crate::session::{Session, UsageError};
use crate::view::stderr::say;
use clap::Args;
use std::path::PathBuf;

#[derive(Args, Debug)]
pub struct MergeOptions {
    /// The file to write; an existing one of the same kind is replaced
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Keep all slow executions, and of the others one in N, with weights that all later figures honour; a part that is
    /// a sample already stays as it is
    #[arg(long, value_name = "N", value_parser = sample_size())]
    sample: Option<u64>,
    /// The executions that are all kept (default: the slow group of `explain` of each recording)
    #[arg(long, value_name = "FILTER", requires = "sample")]
    slow: Vec<Filters>,
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
            if self.sample.is_some() {
                let why = "partial results are sums: sample the databases";
                return Err(UsageError(format!("--sample: {title}: {why}")).into());
            }
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
        let sampling = sampling(self.sample, &self.slow);
        let lines = console.with_progress(|ctx| match &sampling {
            Some(sampling) => plan.save_sample(sampling, console.output()?, ctx),
            None => plan.save(console.output()?, ctx).map(|_| Vec::new()),
        })?;
        console.stage("merge");
        for remark in plan.remarks.iter().chain(&lines) {
            say(&format!("note: {}", clean::line(remark)));
        }
        Ok(notices.into())
    }
}
