//! When executions of recordings that were made one after the other began, each since the begin of its own.
//!
//! In: a model of several recordings. Out: by execution the time since the first event under its label, where no two
//! labels overlap in time. What began after a second in both is then at the same place, however many days lie between
//! the recordings. Recordings that overlap have one zero: they show the same machine. Cost: linear.

use super::Model;
use super::metric::{Column, Metric};
use crate::base::time::Span;
use std::collections::BTreeMap;

/// The span of each label, where there are several of which no two overlap.
fn spans(model: &Model) -> Option<BTreeMap<&str, Span>> {
    let mut by_label: BTreeMap<&str, Span> = BTreeMap::new();
    for trace in &model.traces {
        let all = by_label.entry(&trace.label).or_insert(trace.span);
        *all = Span::new(all.start.min(trace.span.start), all.end.max(trace.span.end));
    }
    let mut in_order: Vec<&Span> = by_label.values().collect();
    in_order.sort_by_key(|span| span.start);
    let apart = in_order.windows(2).all(|pair| pair[0].end <= pair[1].start);
    (by_label.len() > 1 && apart).then_some(by_label)
}

/// The time since the begin of the recording, by execution; `None` where all have the same zero.
pub fn values(model: &Model) -> Option<Vec<i64>> {
    let spans = spans(model)?;
    let zero = |trace: super::TraceId| Some(spans.get(model.traces.get(trace.index())?.label.as_str())?.start);
    let zeros: Option<Vec<_>> = model.executions.trace.iter().map(zero).collect();
    let starts = model.executions.start.iter();
    Some(starts.zip(zeros?).map(|(start, zero)| start.since(zero)).collect())
}

/// Put the time since the begin of each recording in the place of that since the begin of the first one.
pub fn replace_start(model: &mut Model) {
    let Some(values) = values(model) else { return };
    let columns = &mut model.executions.columns;
    if let Some(column) = columns.iter_mut().find(|column| column.metric == Metric::Start) {
        *column = Column { metric: Metric::Elapsed, values: values.into() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::time::Timestamp;
    use crate::model::{TraceId, TraceInfo, TraceLevel};

    fn model(spans: &[(&str, i64, i64)]) -> Model {
        let mut model = Model::default();
        for (at, (label, start, end)) in spans.iter().enumerate() {
            let span = Span::new(Timestamp::new(*start), Timestamp::new(*end));
            let (label, level) = ((*label).to_owned(), TraceLevel::Machine);
            model.traces.push(TraceInfo { label, level, span, recorded: None });
            model.executions.start.push(Timestamp::new(start + 5));
            model.executions.duration.push(2);
            model.executions.trace.push(TraceId::at(at));
        }
        model.executions.columns.push(Column { metric: Metric::Start, values: vec![0; spans.len()].into() });
        model
    }

    #[test]
    fn values_count_from_each_recordings_own_begin() {
        let apart = model(&[("old", 1_000, 2_000), ("new", 9_000, 9_500), ("new", 9_100, 9_900)]);
        assert_eq!(values(&apart).unwrap(), [5, 5, 105]);
        assert_eq!(values(&model(&[("a", 0, 100), ("b", 50, 200)])), None, "two hosts at the same time");
        assert_eq!(values(&model(&[("a", 0, 100), ("a", 150, 200)])), None, "one recording in two files");
    }

    #[test]
    fn replace_start_takes_the_columns_place() {
        let mut apart = model(&[("old", 1_000, 2_000), ("new", 9_000, 9_500)]);
        replace_start(&mut apart);
        let columns: Vec<&Metric> = apart.executions.columns.iter().map(|column| &column.metric).collect();
        assert_eq!(columns, [&Metric::Elapsed]);
    }
}
