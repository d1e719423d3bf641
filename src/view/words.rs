//! Words of screens and texts where JSON, databases and the model keep older names.
//!
//! In: kinds, metrics, filters and frames of the model. Out: the glossary's words for them. The one difference is
//! `preempted`, which JSON uses for all time in which a thread was ready to run without a CPU: people read `runnable`,
//! of which being preempted and the wake-up latency are parts. Filters accept both ([`Metric::named`]).

use crate::base::figure;
use crate::compare::filter::{Filter, Test};
use crate::compare::{self, Group, Spread, frame_text};
use crate::model::Model;
use crate::model::context::{ContextId, Frame};
use crate::model::metric::{Metric, RUNNABLE};
use crate::model::wait_kind::WaitKind;

/// A kind of time, for people.
pub fn kind(kind: WaitKind) -> &'static str {
    if kind == WaitKind::Preempted { RUNNABLE } else { kind.name() }
}

/// The name of a metric, for people.
pub fn metric(metric: &Metric) -> String {
    match metric {
        Metric::Time(spent) => kind(*spent).to_owned(),
        other => other.name(),
    }
}

/// A filter as one would type it.
pub fn filter(filter: &Filter) -> String {
    let text = filter.to_string();
    match text.strip_prefix(&filter.metric.name()) {
        Some(condition) => metric(&filter.metric) + condition,
        None => text,
    }
}

/// Numbers of a list that are shown.
const SHOWN: usize = 5;

/// A filter in a heading: of a long list its beginning.
pub fn filter_in_short(one: &Filter) -> String {
    match &one.test {
        Test::AnyOf(numbers) if numbers.len() > SHOWN + 1 => {
            let shown = filter(&Filter::any_of(one.metric.clone(), numbers[..SHOWN].to_vec()));
            format!("{shown} and {} more", numbers.len() - SHOWN)
        }
        _ => filter(one),
    }
}

/// How long the executions of a group take: `50 ms on average, p50 48 ms, p95 61 ms, p99 70 ms, max 71 ms`.
pub fn durations(group: &Group) -> String {
    let mean = format!("{} on average", figure::time(group.mean_ns as f64));
    let spread = group.spread.map(|spread| spread_parts(spread).map(|(name, ns)| format!("{name} {ns}")));
    std::iter::once(mean).chain(spread.into_iter().flatten()).collect::<Vec<_>>().join(", ")
}

/// Percentiles with their names, to three digits.
pub fn spread_parts(spread: Spread) -> [(&'static str, String); 4] {
    let Spread { p50_ns, p95_ns, p99_ns, max_ns } = spread;
    let parts = [("p50", p50_ns), ("p95", p95_ns), ("p99", p99_ns), ("max", max_ns)];
    parts.map(|(name, ns)| (name, figure::time(ns as f64)))
}

/// A frame as drawn: `main`, `[futex]`, `[runnable]`, `[CPU leaving idle]`, `thread journal`.
pub fn frame(model: &Model, context: ContextId) -> String {
    frame_of_path(&frame_text(model, context)).to_owned()
}

/// A frame wherever it is.
pub fn frame_in_words(model: &Model, frame: Frame) -> String {
    frame_of_path(&compare::frame_in_words(model, frame)).to_owned()
}

/// A frame of a drawn path ([`crate::compare::Cause::path`]).
pub fn frame_of_path(frame: &str) -> &str {
    if frame == "[preempted]" { "[runnable]" } else { frame }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::scenario::ModelBuilder;

    #[test]
    fn frame_of_a_runnable_thread_has_the_name_of_what_is_known() {
        let mut s = ModelBuilder::new(7);
        s.run("x", "p", "p", 1, &[("p;main;{preempted};{CPU leaving idle}", 5), ("p;main;[futex]", 2)]);
        let model = s.seal();
        let mut frames: Vec<String> = (0..model.contexts.len()).map(|at| frame(&model, ContextId::at(at))).collect();
        frames.sort();
        assert_eq!(frames, ["[CPU leaving idle]", "[futex]", "[runnable]", "main", "p"]);
    }

    #[test]
    fn runnable_is_shown_and_both_names_are_parsed() {
        let typed: Filter = "runnable>2ms".parse().unwrap();
        assert_eq!(typed, "preempted>2ms".parse().unwrap());
        assert_eq!((typed.to_string().as_str(), filter(&typed).as_str()), ("preempted>2ms", "runnable>2ms"));
        assert_eq!(filter(&"duration>=p95".parse().unwrap()), "duration>=p95");
        assert_eq!(metric(&Metric::Time(WaitKind::Disk)), "blocked.disk");
        let list: Filter = "execution=1,2,3,4,5,6,7".parse().unwrap();
        assert_eq!(filter_in_short(&list), "execution=1,2,3,4,5 and 2 more");
    }
}
