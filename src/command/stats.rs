//! `whyslow stats`: events by name, CPU time, bytes read and written.

use super::console::Console;
use super::{Outcome, Question};
use crate::base::ctx::Ctx;
use crate::base::notice::Notices;
use crate::model::usage::CpuTotals;
use crate::options::InputOptions;
use crate::session::{Invariants, MpiRuns, Session, Traces};
use crate::view::stats::StatsTable;
use clap::{Args, ValueEnum};

#[derive(Args, Debug)]
pub struct StatsOptions {
    /// The quantity to count
    what: Counted,
    /// Print one JSON document (schema whyslow.stats.*/1)
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    input: InputOptions,
}

/// A quantity to count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Counted {
    /// Events per type.
    Count,
    /// CPU time per CPU and thread.
    Cpu,
    /// Bytes read and written per process.
    Io,
}

impl Question for StatsOptions {
    fn input(&self) -> &InputOptions {
        &self.input
    }

    fn run(&self, session: Session, console: &mut Console<'_>) -> anyhow::Result<Outcome> {
        let (table, notices) = match &session {
            Session::Traces(traces) => console.with_progress(|ctx| self.of_traces(traces, ctx))?,
            Session::Run(run) => console.with_progress(|ctx| self.of_run(run, ctx))?,
            Session::Databases(databases) => return databases.refuse("stats"),
            Session::Partials(partials) => return partials.refuse("stats"),
        };
        console.stage("read");
        console.answer(self.json, || &table, |_| table.text())?;
        Ok(notices.into())
    }
}

impl StatsOptions {
    fn of_traces(&self, traces: &Traces, ctx: &Ctx) -> anyhow::Result<(StatsTable, Notices)> {
        let invariants = if self.input.check { Invariants::Checked } else { Invariants::Assumed };
        Ok(match self.what {
            Counted::Count => {
                let (counts, notices) = traces.count(ctx)?;
                (StatsTable::count(&counts, &notices), notices)
            }
            Counted::Cpu => {
                let (CpuTotals { cpus, threads }, notices) = traces.cpu_totals(invariants, ctx)?;
                (StatsTable::cpu(&cpus, threads, &notices), notices)
            }
            Counted::Io => {
                let (processes, notices) = traces.transfers(invariants, ctx)?;
                (StatsTable::io(processes, &notices), notices)
            }
        })
    }

    fn of_run(&self, run: &MpiRuns, ctx: &Ctx) -> anyhow::Result<(StatsTable, Notices)> {
        run.alone("stats")?;
        if self.what == Counted::Cpu {
            anyhow::bail!(
                "{}: an OTF2 archive has no scheduler events; `stats count` and `stats io` work",
                run.title()
            );
        }
        let read = run.read(ctx)?;
        let table = match self.what {
            Counted::Io => StatsTable::transfers(&read.transfers(&run.archive), &read.notices),
            Counted::Count | Counted::Cpu => StatsTable::messages(&read.counts(), &read.notices),
        };
        Ok((table, read.notices))
    }
}
