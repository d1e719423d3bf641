//! Environments that were recorded beside traces, on the time line of these.
//!
//! In: opened traces, and the timeline made of them. Out: the environment of each host whose recorder used a clock that
//! the environment has, too. One that cannot be placed, is of another host, or of another time, is not used, and a
//! notice says so: counters of another moment would be no evidence.

use crate::base::notice::{Notice, Notices};
use crate::base::time::{Span, Timestamp};
use crate::input::{Source, Trace};
use crate::model::environment::{Environment, EnvironmentClocks, PlacedEnvironment};
use crate::timeline::RecordedTimeline;
use std::sync::Arc;

/// Give each host of a timeline its environment.
pub(super) fn place(sources: &[Source], timeline: &mut RecordedTimeline, notices: &mut Notices) {
    let mut known: Vec<&Arc<Environment>> = Vec::new();
    for environment in sources.iter().filter_map(|source| source.environment.as_ref()) {
        if !known.iter().any(|other| Arc::ptr_eq(other, environment)) {
            known.push(environment);
        }
    }
    let span = timeline.span();
    for environment in known {
        notices.merge(&environment.notices);
        let is_its = |source: &Source| source.environment.as_ref().is_some_and(|own| Arc::ptr_eq(own, environment));
        let mut its = sources.iter().enumerate().filter(|(_, source)| is_its(source));
        let placed = its.find_map(|(at, source)| {
            let host = timeline.traces().get(at).filter(|origin| origin.kernel)?.host;
            Some((host, placed(environment, &source.trace, span)?))
        });
        match placed {
            Some((host, placed)) => timeline.set_environment(host, placed),
            None => notices.add(Notice::EnvironmentApart, 1, || environment.place.clone()),
        }
    }
}

/// An environment on the clock of a trace.
fn placed(values: &Arc<Environment>, trace: &Trace, span: Span) -> Option<PlacedEnvironment> {
    let is_other = |host: &str| trace.host().is_some_and(|own| own != host);
    if values.host.as_deref().is_some_and(is_other) {
        return None;
    }
    let (base, clock): (i64, fn(&EnvironmentClocks) -> i64) = match trace.monotonic() {
        Some(base) => (base, |clocks| clocks.monotonic_ns),
        None => (trace.boottime()?, |clocks| clocks.boottime_ns),
    };
    let time = |clocks| Timestamp::clamped(i128::from(clock(clocks)) + i128::from(base));
    let times: Vec<Timestamp> = values.lines.iter().map(time).collect();
    let (first, last) = (*times.first()?, *times.last()?);
    // Two samples around some of the recording.
    let is_of_it = times.is_sorted() && first < span.end && last > span.start;
    is_of_it.then(|| PlacedEnvironment { values: Arc::clone(values), times })
}
