//! Two executions side by side, moment by moment: the moments that both have, and those that one of them has in
//! between.
//!
//! In: the moments of both, each a context of the critical path and its length, in order of time. Out: rows that pair
//! equal contexts (the common subsequence with the largest common time); a moment without a partner has a row of its
//! own. Each nanosecond of either execution is in exactly one row.
//!
//! Long executions have more moments than anyone reads: contexts are cut at the depth at which neither execution has
//! more than `MOST`, equal neighbours become one, and the result names the depth. Cost: MOST² steps and a byte each.

use super::CompareError;
use super::sequence::{Paired, paired};
use crate::base::time::Ns;
use crate::model::Model;
use crate::model::context::ContextId;
use crate::model::execution::ExecutionId;
use crate::model::execution_timeline::TimelineSegment;

/// Moments of an execution that are aligned, at most.
const MOST: usize = 2000;

/// A part of an execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExecutionPart {
    /// Begin, since the begin of the execution.
    pub start_ns: Ns,
    /// Length.
    pub ns: Ns,
}

/// A moment of one execution or of both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// The calling context.
    pub context: ContextId,
    /// The first execution's part.
    pub a: Option<ExecutionPart>,
    /// The second's.
    pub b: Option<ExecutionPart>,
}

impl Moment {
    /// Length in the first execution minus length in the second.
    pub fn delta_ns(&self) -> Ns {
        let ns = |p: Option<ExecutionPart>| p.map_or(0, |p| p.ns);
        ns(self.a) - ns(self.b)
    }
}

/// Two executions aligned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alignment {
    /// The first.
    pub a: ExecutionId,
    /// The second.
    pub b: ExecutionId,
    /// Frames to which contexts were cut, where they were.
    pub depth: Option<u32>,
    /// In order of time.
    pub moments: Vec<Moment>,
}

/// Where two executions begin to differ most: times since their begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Divergence {
    /// In the first.
    pub a_ns: Ns,
    /// In the second.
    pub b_ns: Ns,
    /// The first's time in that moment minus the second's.
    pub delta_ns: Ns,
}

impl Alignment {
    /// The begin of the moment with the largest difference; `None` where all moments are equally long. An execution
    /// that does not have the moment diverges at the end of its moments before it.
    pub fn divergence(&self) -> Option<Divergence> {
        let (mut a_ns, mut b_ns) = (0, 0);
        let mut found: Option<Divergence> = None;
        for moment in &self.moments {
            let delta_ns = moment.delta_ns();
            if delta_ns.abs() > found.map_or(0, |d| d.delta_ns.abs()) {
                found = Some(Divergence { a_ns, b_ns, delta_ns });
            }
            a_ns += moment.a.map_or(0, |part| part.ns);
            b_ns += moment.b.map_or(0, |part| part.ns);
        }
        found
    }
}

/// Align two executions whose timelines the model holds.
pub fn align(model: &Model, a: ExecutionId, b: ExecutionId) -> Result<Alignment, CompareError> {
    let of = |e: ExecutionId| {
        model.timelines.get(&e).map(|timeline| timeline.segments.as_slice()).ok_or_else(|| unknown_execution(model, e))
    };
    let (first, second) = (of(a)?, of(b)?);
    let deepest = first.iter().chain(second).map(|s| model.contexts.depth(s.context)).max().unwrap_or(0);
    let cut = |depth: u32| (parts(model, first, depth), parts(model, second, depth));
    let fits = |depth: u32| {
        let (first, second) = cut(depth);
        first.len().max(second.len()) <= MOST
    };
    // Deeper contexts make more moments, so the deepest that fits is found by halving; the root always fits.
    let (mut fit, mut too_deep) = (0, deepest + 1);
    while too_deep - fit > 1 {
        let middle = fit + (too_deep - fit) / 2;
        if fits(middle) {
            fit = middle;
        } else {
            too_deep = middle;
        }
    }
    let (first, second) = cut(fit);
    Ok(Alignment { a, b, depth: (fit < deepest).then_some(fit), moments: common(&first, &second) })
}

/// The error for a number that no execution has.
pub fn unknown_execution(model: &Model, execution: ExecutionId) -> CompareError {
    CompareError::UnknownExecution { execution: execution.raw(), last: model.executions.len().saturating_sub(1) }
}

/// Moments with contexts of at most `depth` frames above them, equal neighbours joined.
fn parts(model: &Model, segments: &[TimelineSegment], depth: u32) -> Vec<(ContextId, ExecutionPart)> {
    let mut all: Vec<(ContextId, ExecutionPart)> = Vec::new();
    let mut at = 0;
    for TimelineSegment { context, ns, .. } in segments {
        let (mut context, ns) = (*context, *ns);
        while let Some(parent) = model.contexts.parent(context).filter(|_| model.contexts.depth(context) > depth) {
            context = parent;
        }
        match all.last_mut() {
            Some((last, part)) if *last == context => part.ns += ns,
            _ => all.push((context, ExecutionPart { start_ns: at, ns })),
        }
        at += ns;
    }
    all
}

/// The common subsequence with the largest common time, and the moments in between.
fn common(a: &[(ContextId, ExecutionPart)], b: &[(ContextId, ExecutionPart)]) -> Vec<Moment> {
    let worth = |(context, part): &(ContextId, ExecutionPart), (other, theirs): &(ContextId, ExecutionPart)| {
        (context == other).then(|| 1 + part.ns.min(theirs.ns))
    };
    let moment = |pair| match pair {
        Paired::Both(i, j) => Moment { context: a[i].0, a: Some(a[i].1), b: Some(b[j].1) },
        Paired::First(i) => Moment { context: a[i].0, a: Some(a[i].1), b: None },
        Paired::Second(j) => Moment { context: b[j].0, a: None, b: Some(b[j].1) },
    };
    paired(a, b, worth).into_iter().map(moment).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::statistics::Random;
    use crate::model::context::{Frame, FrameKind};
    use crate::model::execution::ContextTime;
    use crate::model::execution_timeline::ExecutionTimeline;
    use crate::model::wait_kind::WaitKind;

    /// A model of two executions from moments as letters: `r` is the root, others are below it, capitals below those.
    fn model(a: &[(char, u64)], b: &[(char, u64)]) -> Model {
        let mut model = Model::default();
        let mut context = |c: char| {
            let mut at = None;
            let path = [Some('r'), (c != 'r').then_some(c.to_ascii_lowercase()), c.is_ascii_uppercase().then_some(c)];
            for step in path.into_iter().flatten() {
                let name = model.names.intern(&step.to_string());
                at = Some(model.contexts.child(at, Frame { kind: FrameKind::Function, name }));
            }
            at.unwrap()
        };
        let moments = [a, b].map(|m| m.iter().map(|(c, ns)| ContextTime { context: context(*c), ns: *ns }).collect());
        let timeline = |(at, moments): (usize, Vec<ContextTime>)| {
            let mut timeline = ExecutionTimeline::default();
            for ContextTime { context, ns } in moments {
                let (start_ns, ns) = (timeline.ns, ns as i64);
                let (thread, state, cpu) = (0, WaitKind::Cpu, None);
                timeline.segments.push(TimelineSegment { start_ns, ns, thread, state, cpu, context });
                timeline.ns += ns;
            }
            (ExecutionId::at(at), timeline)
        };
        model.timelines = moments.into_iter().enumerate().map(timeline).collect();
        model
    }

    fn aligned(a: &[(char, u64)], b: &[(char, u64)]) -> Vec<(String, i64, i64)> {
        let model = model(a, b);
        let rows = align(&model, ExecutionId::at(0), ExecutionId::at(1)).unwrap();
        let ns = |p: Option<ExecutionPart>| p.map_or(-1, |p| p.ns);
        let name = |m: &Moment| model.names.get(model.contexts.frame(m.context).name).to_owned();
        rows.moments.iter().map(|m| (name(m), ns(m.a), ns(m.b))).collect()
    }

    #[test]
    fn align_pairs_equal_contexts() {
        let rows = aligned(&[('x', 5), ('y', 70), ('x', 3), ('z', 4)], &[('x', 6), ('x', 2), ('z', 9), ('w', 1)]);
        let row = |n: &str, a, b| (n.to_owned(), a, b);
        assert_eq!(rows, [row("x", 5, 8), row("y", 70, -1), row("x", 3, -1), row("z", 4, 9), row("w", -1, 1)]);
    }

    #[test]
    fn divergence_is_the_begin_of_the_largest_difference() {
        let model = model(&[('x', 5), ('y', 70), ('x', 3), ('z', 4)], &[('x', 6), ('z', 90), ('w', 1)]);
        let rows = align(&model, ExecutionId::at(0), ExecutionId::at(1)).unwrap();
        assert_eq!(rows.divergence(), Some(Divergence { a_ns: 78, b_ns: 6, delta_ns: -86 }));
        let same = align(&model, ExecutionId::at(1), ExecutionId::at(1)).unwrap();
        assert_eq!(same.divergence(), None);
    }

    #[test]
    fn align_puts_every_nanosecond_in_one_row() {
        let mut random = Random::new(4);
        for _ in 0..50 {
            let mut some = |n: usize| -> Vec<(char, u64)> {
                (0..n).map(|_| (b"rabAB"[random.below(5)].into(), 1 + random.below(9) as u64)).collect()
            };
            let (a, b) = (some(30), some(20));
            let model = model(&a, &b);
            let rows = align(&model, ExecutionId::at(0), ExecutionId::at(1)).unwrap().moments;
            for (moments, of) in [(&a, (|m: &Moment| m.a) as fn(&Moment) -> Option<ExecutionPart>), (&b, |m| m.b)] {
                let mut at = 0;
                for part in rows.iter().filter_map(of) {
                    assert_eq!(part.start_ns, at);
                    at += part.ns;
                }
                assert_eq!(at, moments.iter().map(|(_, ns)| *ns as i64).sum::<i64>());
            }
        }
    }

    #[test]
    fn align_cuts_too_many_moments_to_fewer_frames() {
        let many: Vec<(char, u64)> = (0..6000).map(|i| (if i % 2 == 0 { 'A' } else { 'a' }, 1)).collect();
        let model = model(&many, &[('b', 4)]);
        let rows = align(&model, ExecutionId::at(0), ExecutionId::at(1)).unwrap();
        assert_eq!((rows.depth, rows.moments.len()), (Some(1), 2));
        assert!(align(&model, ExecutionId::at(0), ExecutionId::at(9)).is_err());
    }
}
