//! `whyslow anomalies`: patterns, their abnormal occurrences, and the root causes of delays.

use super::console::Console;
use super::{Outcome, Question, places};
use crate::compare;
use crate::confinement::Files;
use crate::model::settings::{Settings, ThresholdRule};
use crate::options::{InputOptions, SymbolOptions, TaskOptions, quotient, threshold};
use crate::session::{self, Session};
use crate::view::anomalies;
use crate::view::anomalies::ListBounds;
use crate::view::compared_causes::ComparedCauses;
use clap::Args;

#[derive(Args, Debug)]
pub struct AnomaliesOptions {
    /// Fraction of a pattern's occurrences, the fastest ones, that are its reference
    #[arg(short, value_name = "QUOTIENT", default_value_t = 0.75, value_parser = quotient)]
    q: f64,
    /// Factor from which an occurrence is abnormal: its duration over that of the slowest in the reference
    #[arg(short, value_name = "THRESHOLD", default_value_t = 2.0, value_parser = threshold)]
    s: f64,
    /// Derive limits from the median and the median deviation, instead of from -q and -s
    #[arg(long)]
    robust: bool,
    /// The task whose delayed executions come first (default: as `explain` chooses).
    #[command(flatten)]
    asked: TaskOptions,
    #[command(flatten)]
    symbols: SymbolOptions,
    /// Print all root causes, victims, waits and patterns, not the first of each
    #[arg(long)]
    all: bool,
    /// Print one JSON document (schema whyslow.anomalies/1)
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    input: InputOptions,
}

impl Question for AnomaliesOptions {
    fn input(&self) -> &InputOptions {
        &self.input
    }

    fn files(&self) -> Files<'_> {
        Files { symbols: Some(&self.symbols), ..Files::default() }
    }

    fn run(&self, mut session: Session, console: &mut Console<'_>) -> anyhow::Result<Outcome> {
        let limit = if self.robust { ThresholdRule::Robust } else { ThresholdRule::Quotient };
        let settings = Settings { q: self.q, s: self.s, limit };
        let places = places(&self.input.traces, &self.symbols);
        let mining = console.with_progress(|work| session.mine(self.asked.asked().as_deref(), &places, work))?;
        console.stage("mine");
        console.time("detection", mining.mined.detection);
        let found = console.with_progress(|work| Ok(mining.anomalies(&settings, work)?))?;
        console.stage("judge");
        // Patterns have an answer even if the executions cannot be compared.
        let compared = mining.executions().and_then(|model| {
            let comparison = session::compare(model, &compare::ComparisonRequest::default(), console.ctx).ok()?;
            Some(ComparedCauses::new(model, &comparison, &found))
        });
        console.stage("compare");
        let shown = if self.all { ListBounds::ALL } else { ListBounds::FIRST };
        console.answer(
            self.json,
            || anomalies::json(&found, &mining.notices, compared.clone()),
            |_| anomalies::text(&found, &mining.notices, compared.as_ref(), shown),
        )?;
        Ok(mining.notices.clone().into())
    }
}
