//! What `explain`, `diff` and `report` answer from: the model of the chosen task, and the comparison of its groups.

use super::console::Console;
use super::{places, sound};
use crate::compare::{Comparison, ComparisonRequest};
use crate::model::Model;
use crate::model::execution::ExecutionId;
use crate::model::settings::Settings;
use crate::options::{GroupOptions, InputOptions};
use crate::session::{self, Session};
use crate::view::anomalies;

/// The filters of both groups.
pub(super) fn request(groups: &GroupOptions, input: &InputOptions, session: &Session) -> ComparisonRequest {
    let request = groups.request(input);
    let by_trace = request.slow.is_empty() && request.fast.is_empty() && session.has_two_labels();
    ComparisonRequest { by_trace: request.by_trace || by_trace, ..request }
}

/// Say in the verdict which rank delayed others most in the whole run, where the input is one MPI run.
pub(super) fn with_delays(
    session: &mut Session,
    mut comparison: Comparison,
    console: &mut Console<'_>,
) -> anyhow::Result<Comparison> {
    if let Session::Run(run) = session
        && run.is_alone()
    {
        let found = console.with_progress(|ctx| Ok(run.mine(ctx)?.anomalies(&Settings::default(), ctx)?))?;
        console.stage("mine");
        comparison.verdict.delays = Some(anomalies::beside_comparison(&found, &comparison));
    }
    Ok(comparison)
}

/// The model of the chosen task, with the timelines of some executions, and the comparison of the chosen groups.
pub(super) fn compared(
    input: &InputOptions,
    groups: &GroupOptions,
    timelines: &[ExecutionId],
    session: &mut Session,
    console: &mut Console<'_>,
) -> anyhow::Result<(Model, Comparison)> {
    let renamed = session::renamed(groups.functions.as_deref())?;
    let model = console.with_progress(|ctx| {
        let model = session.model(
            groups.asked().as_deref(),
            &places(&groups.traces(input), &groups.symbols),
            timelines,
            ctx,
        )?;
        session::rename(model, &renamed, ctx)
    })?;
    console.stage("analyse");
    if input.check {
        sound(crate::explain::check(&model, 1).pop())?;
    }
    let request = request(groups, input, session);
    let comparison = console.with_progress(|ctx| session::compare(&model, &request, ctx))?;
    console.stage("compare");
    Ok((model, comparison))
}
