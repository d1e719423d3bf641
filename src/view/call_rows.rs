//! The rows of two aligned executions that are shown: chains joined, short calls beside each other in one row.
//!
//! In: aligned calls, which rows are open, and the least time of a row. Out: rows in pre-order, each with its level and
//! its name. A chain of calls, each the only one in the one before it and with the same time but for 2 %, is one row.
//! Neighbours below the least time share a row with their sums, unless that is open. Screen and text share it. Cost:
//! linear in the rows below open ones.

use super::words;
use crate::base::demangle::abbreviated;
use crate::base::figure;
use crate::base::time::Ns;
use crate::compare::calls::aligned::{AlignedRow, PairedCalls, RowCalls};
use crate::model::Model;
use crate::model::context::ContextId;

/// Percent of the time above it that a call of a chain has.
const CHAINED: i64 = 98;

/// A row that is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShownCalls {
    /// Rows above it.
    pub level: usize,
    /// The row; of a chain the first one, of short calls the first of them.
    pub first: u32,
    /// The row; of a chain the last one, whose calls are below it.
    pub last: u32,
    /// Short calls in it; 0 for a call or a run.
    pub short: usize,
    /// Time in the first execution.
    pub a_ns: Ns,
    /// Time in the second.
    pub b_ns: Ns,
    /// What is below it is shown.
    pub is_open: bool,
}

/// Time of a row in both executions.
fn times(row: &AlignedRow) -> [Ns; 2] {
    [row.a, row.b].map(|calls| calls.map_or(0, |calls| calls.ns))
}

/// The last row of the chain that begins with one.
pub fn end_of_chain(calls: &PairedCalls, first: u32) -> u32 {
    let mut last = first;
    while let Some(row) = calls.rows.get(last as usize) {
        let mut below = calls.children(Some(last));
        let (Some(only), None) = (below.next(), below.next()) else { break };
        let Some(next) = calls.rows.get(only as usize) else { break };
        let is_all = times(next).iter().zip(times(row)).all(|(part, whole)| part * 100 >= whole * CHAINED);
        if row.is_run() || next.is_run() || !is_all {
            break;
        }
        last = only;
    }
    last
}

/// The rows that are shown. `is_open`: by row, whether what is below it is shown; for short calls it is asked about the
/// first of them.
pub fn shown(calls: &PairedCalls, least: Ns, is_open: impl Fn(u32) -> bool) -> Vec<ShownCalls> {
    let mut found = Vec::new();
    let mut todo: Vec<(usize, u32)> = Vec::new();
    let open = |todo: &mut Vec<(usize, u32)>, level: usize, at: Option<u32>| {
        let below: Vec<u32> = calls.children(at).collect();
        todo.extend(below.into_iter().rev().map(|at| (level, at)));
    };
    let is_short = |at: u32| calls.rows.get(at as usize).is_some_and(|row| times(row).iter().all(|ns| *ns < least));
    open(&mut todo, 0, None);
    while let Some((level, at)) = todo.pop() {
        let Some(row) = calls.rows.get(at as usize) else { break };
        if is_short(at) && !is_open(at) {
            let mut short = ShownCalls { level, first: at, last: at, short: 1, a_ns: 0, b_ns: 0, is_open: false };
            let add = |short: &mut ShownCalls, row: &AlignedRow| {
                let [a, b] = times(row);
                (short.a_ns, short.b_ns) = (short.a_ns + a, short.b_ns + b);
            };
            add(&mut short, row);
            // Those beside it, of the same level.
            while let Some((_, next)) = todo.last().copied().filter(|(of, next)| *of == level && is_short(*next))
                && !is_open(next)
                && calls.rows.get(next as usize).map(|next| next.parent) == Some(row.parent)
            {
                todo.pop();
                short.last = next;
                short.short += 1;
                calls.rows.get(next as usize).into_iter().for_each(|row| add(&mut short, row));
            }
            found.push(short);
            continue;
        }
        let last = end_of_chain(calls, at);
        let has_below = calls.rows.get(last as usize).is_some_and(|row| row.size > 1);
        let is_open = has_below && is_open(last);
        let [a_ns, b_ns] = times(row);
        found.push(ShownCalls { level, first: at, last, short: 0, a_ns, b_ns, is_open });
        if is_open {
            open(&mut todo, level + 1, Some(last));
        }
    }
    found
}

/// The name of a row that is shown.
pub fn label(model: &Model, calls: &PairedCalls, shown: &ShownCalls) -> String {
    if shown.short > 1 {
        return figure::plural(shown.short as u64, "short call");
    }
    let name = |context: ContextId| abbreviated(&words::frame(model, context)).to_string();
    let mut names = Vec::new();
    let mut at = Some(shown.last);
    while let Some(row) = at.and_then(|at| calls.rows.get(at as usize)) {
        names.push(name(row.context));
        at = row.parent.filter(|_| at != Some(shown.first));
    }
    names.reverse();
    let text = names.join(" › ");
    let Some(row) = calls.rows.get(shown.last as usize).filter(|row| row.is_run()) else { return text };
    let count = |calls: Option<RowCalls>| calls.map_or(0, |calls| calls.times);
    format!("{} × {}, × {}", unit_text(calls.unit(row).map(name)), count(row.a), count(row.b))
}

/// Names of a unit that are shown, at most.
const MOST_NAMES: usize = 4;

/// The calls of a unit: `read`, or `2 read, parse`.
fn unit_text(names: impl Iterator<Item = String>) -> String {
    let names: Vec<String> = names.collect();
    let runs: Vec<&[String]> = names.chunk_by(|a, b| a == b).collect();
    let named = runs.iter().take(MOST_NAMES).map(|run| match run {
        [one] => one.clone(),
        several => format!("{} {}", several.len(), several[0]),
    });
    let more = if runs.len() > MOST_NAMES { Some("…".to_owned()) } else { None };
    named.chain(more).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::ctx::Cancel;
    use crate::compare::arranged::KernelFrames;
    use crate::model::context::{Frame, FrameKind};
    use crate::model::execution::ExecutionId;
    use crate::model::execution_timeline::{ExecutionTimeline, TimelineSegment};
    use crate::model::wait_kind::WaitKind;

    /// Two executions of segments as (path, length), aligned.
    fn of(executions: [&[(&str, Ns)]; 2]) -> (Model, PairedCalls) {
        let mut model = Model::default();
        for (at, segments) in executions.iter().enumerate() {
            let mut timeline = ExecutionTimeline::default();
            for (path, ns) in *segments {
                let mut context = None;
                for name in path.split(' ') {
                    let name = model.names.intern(name);
                    context = Some(model.contexts.child(context, Frame { kind: FrameKind::Function, name }));
                }
                let (start_ns, state, context) = (timeline.ns, WaitKind::Cpu, context.unwrap());
                timeline.segments.push(TimelineSegment { start_ns, ns: *ns, thread: 0, state, cpu: None, context });
                timeline.ns += ns;
            }
            model.timelines.insert(ExecutionId::at(at), timeline);
        }
        let [a, b] = [0, 1].map(ExecutionId::at);
        let calls = PairedCalls::new(&model, a, Some(b), KernelFrames::Shown, &Cancel::default()).unwrap();
        (model, calls)
    }

    fn drawn(executions: [&[(&str, Ns)]; 2], least: Ns, is_open: impl Fn(u32) -> bool) -> Vec<String> {
        let (model, calls) = of(executions);
        let rows = shown(&calls, least, is_open);
        let line = |row: &ShownCalls| {
            format!("{}{} {}|{}", " ".repeat(row.level), label(&model, &calls, row), row.a_ns, row.b_ns)
        };
        rows.iter().map(line).collect()
    }

    #[test]
    fn shown_joins_chains_and_short_neighbours() {
        let a: &[(&str, Ns)] = &[("p main parse", 50), ("p main log", 1), ("p main send", 2), ("p main read page", 40)];
        let b: &[(&str, Ns)] = &[("p main parse", 30), ("p main read page", 60)];
        let expected = ["p › main 93|90", " parse 50|30", " 2 short calls 3|0", " read › page 40|60"];
        assert_eq!(drawn([a, b], 10, |_| true).len(), 5, "short calls that are open have rows of their own");
        assert_eq!(drawn([a, b], 10, |row| row < 3), expected);
        assert_eq!(drawn([a, b], 10, |_| false), ["p › main 93|90"]);
    }

    #[test]
    fn label_says_how_often_each_execution_repeats() {
        let a: &[(&str, Ns)] = &[("p x", 5), ("p", 1), ("p x", 5), ("p", 1), ("p x", 5)];
        let b: &[(&str, Ns)] = &[("p x", 5), ("p", 9)];
        assert_eq!(drawn([a, b], 1, |row| row == 0), ["p 17|14", " x × 3, × 1 15|5"]);
        let names = |text: &str| unit_text(text.split(' ').map(str::to_owned));
        assert_eq!([names("a"), names("a a b"), names("a b c d e")], ["a", "2 a, b", "a, b, c, d, …"]);
    }

    #[test]
    fn shown_rows_have_all_time_of_the_open_ones() {
        let mut random = crate::base::statistics::Random::new(6);
        for _ in 0..60 {
            let mut some = || {
                let path = |_| (["p", "p a", "p a b", "p c", "p c a"][random.below(5)], 1 + random.below(20) as Ns);
                (0..25).map(path).collect::<Vec<_>>()
            };
            let (a, b) = (some(), some());
            let (_, calls) = of([&a, &b]);
            let rows = shown(&calls, 12, |_| true);
            let top: Ns = rows.iter().filter(|row| row.level == 0).map(|row| row.a_ns).sum();
            assert_eq!(top, a.iter().map(|(_, ns)| ns).sum::<Ns>());
            for (at, row) in rows.iter().enumerate().filter(|(_, row)| row.is_open) {
                let below = rows[at + 1..].iter().take_while(|below| below.level > row.level);
                let sum: Ns = below.filter(|below| below.level == row.level + 1).map(|below| below.a_ns).sum();
                let expected: Ns = calls.children(Some(row.last)).map(|at| times(&calls.rows[at as usize])[0]).sum();
                assert_eq!(sum, expected);
            }
        }
    }
}
