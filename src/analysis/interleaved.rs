//! The running time of executions that alternated on a CPU with a long one.
//!
//! Where interrupts were not recorded, their time counts as the interrupted thread's. Interrupts prolong everything
//! that runs on a CPU, while an execution's own work prolongs that execution alone. So the executions that ran on the
//! CPU between the time slices of a long one distinguish the two: under interrupts they take longer by the same factor.
//! In: a timeline and the executions of a task. Out: for each long one, the mean running time of those others. An
//! execution counts if all its running is between two parts of the long one that each last longer than an execution
//! usually runs, so that the cause of the delay was present before and after. Cost: linear in the executions' segments,
//! and at most `MOST` others for each long one. ALGORITHMS.md 7.7.

use super::executions::Execution;
use crate::base::time::{Ns, Span};
use crate::event::host::HostId;
use crate::timeline::questions::Asker;
use crate::timeline::reader::RowReader;
use crate::timeline::{SegmentKind, Thread, ThreadId, Timeline};
use std::collections::BTreeMap;

/// An execution is long from this multiple of the usual running time on.
const LONG: Ns = 3;
/// Other executions that are examined for a long one.
const MOST: usize = 256;

/// The time slices of a thread in a span, clipped to it, each with its CPU.
fn slices<'r>(reader: &'r RowReader<'_>, thread: ThreadId, span: Span) -> impl Iterator<Item = (u32, Span)> + use<'r> {
    let running = reader.segments(thread).within(span).filter(|segment| segment.kind == SegmentKind::Running);
    running.map(move |segment| (segment.cpu, segment.span.clip(span))).filter(|(_, slice)| !slice.is_empty())
}

/// For each execution, in order of their starts: the mean running time of those that alternated with it. `None` where
/// it is not long, where none did, and on hosts whose interrupts were recorded or whose scheduler was not.
pub fn interleaved(timeline: &Timeline, executions: &[Execution]) -> Vec<Option<i64>> {
    let reader = timeline.reader(Asker::Interleaved);
    let is_examined = |host: HostId| {
        let interrupts = timeline.quality().get(host.index()).map_or(0, |quality| quality.interrupts);
        interrupts == 0 && timeline.is_scheduled(host)
    };
    let hosts: Vec<bool> = (0..timeline.hosts().len()).map(|host| is_examined(HostId::at(host))).collect();
    let thread = |execution: &Execution| {
        timeline.thread(execution.thread).filter(|t| hosts.get(t.host.index()).copied().unwrap_or(false))
    };
    let ran = |execution: &Execution| {
        let slices = thread(execution).map(|_| slices(&reader, execution.thread, execution.span));
        slices.into_iter().flatten().map(|(_, slice)| slice.len()).sum::<Ns>()
    };
    if !hosts.contains(&true) {
        return vec![None; executions.len()];
    }
    let running: Vec<Ns> = executions.iter().map(ran).collect();
    let mut sorted: Vec<Ns> = running.iter().copied().filter(|ns| *ns > 0).collect();
    sorted.sort_unstable();
    let Some(usual) = sorted.get(sorted.len() / 2).copied() else { return vec![None; executions.len()] };
    let one = |(i, execution): (usize, &Execution)| {
        let own = thread(execution).filter(|_| running[i] >= usual.saturating_mul(LONG))?;
        let mut others: Vec<Ns> = Vec::new();
        for (cpu, between) in between(&reader, execution, usual) {
            let first = executions.partition_point(|other| other.span.start < between.start);
            let begun = executions[first..].iter().zip(&running[first..]).take(MOST);
            for (other, ran) in begun.take_while(|(other, _)| other.span.start < between.end) {
                let there = thread(other).filter(|t| t.host == own.host && other.thread != execution.thread);
                let fits = |_: &Thread| slices(&reader, other.thread, other.span).all(|(on, _)| on == cpu);
                if *ran > 0 && other.span.end <= between.end && there.is_some_and(fits) {
                    others.push(*ran);
                }
            }
        }
        let n = others.len() as Ns;
        (n > 0).then(|| others.iter().sum::<Ns>() / n)
    };
    executions.iter().enumerate().map(one).collect()
}

/// By CPU: the time between the thread's first and last running of more than `usual` there.
fn between(reader: &RowReader<'_>, execution: &Execution, usual: Ns) -> Vec<(u32, Span)> {
    let mut by_cpu: BTreeMap<u32, Vec<Span>> = BTreeMap::new();
    slices(reader, execution.thread, execution.span)
        .for_each(|(cpu, slice)| by_cpu.entry(cpu).or_default().push(slice));
    let ends = by_cpu.into_iter().filter_map(|(cpu, slices)| {
        let (first, last) = (beyond(slices.iter(), usual)?, beyond(slices.iter().rev(), usual)?);
        Some((cpu, Span::new(first.end, last.start)))
    });
    ends.filter(|(_, between)| between.start < between.end).collect()
}

/// The time slice in which the sum of all up to it exceeds `most`.
fn beyond<'a>(slices: impl Iterator<Item = &'a Span>, most: Ns) -> Option<Span> {
    let mut sum = 0;
    let mut sums = slices.map(|slice| {
        sum += slice.len();
        (sum, *slice)
    });
    sums.find(|(sum, _)| *sum > most).map(|(_, slice)| slice)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::executions::{PairingRule, pair};
    use crate::analysis::timeline_builder::TimelineBuilder;
    use crate::base::notice::Notices;
    use crate::model::facts::Quality;
    use crate::timeline::Host;

    /// From 1,000 to 4,000 thread 1 alternates every 200 with thread 2, whose executions run for `other`; before that
    /// both are short.
    fn builder(other: Ns, interrupts: u64) -> TimelineBuilder {
        let mut builder = TimelineBuilder::new(2);
        let name = builder.0.tables.names.intern("host");
        builder.0.tables.hosts.push(Host { name, kernel_release: None });
        builder.0.tables.quality.push(Quality { switches: 99, interrupts, ..Quality::default() });
        builder.runs(&[(0, 4_100, 1)]);
        let mut times = Vec::new();
        for i in 0..10 {
            let t = i * 100;
            builder.segment(1, t, t + 50, SegmentKind::Running, 0).segment(1, t + 50, t + 100, SegmentKind::Blocked, 0);
            times.extend([(t, true, 1), (t + 50, false, 1)]);
        }
        times.push((1_000, true, 1));
        for i in 0..6 {
            let t = 1_000 + i * 400;
            builder.segment(1, t, t + 200, SegmentKind::Running, 0).segment(
                1,
                t + 200,
                t + 400,
                SegmentKind::Preempted,
                0,
            );
            builder.segment(2, t + 200, t + 200 + other, SegmentKind::Running, 0);
            builder.segment(2, t + 200 + other, t + 600, SegmentKind::Blocked, 0);
            times.extend([(t + 200, true, 2), (t + 200 + other, false, 2)]);
        }
        times.push((3_500, false, 1));
        times.sort_unstable();
        times.iter().for_each(|(t, begins, n)| {
            builder.mark(*t, *begins, *n, None);
        });
        builder
    }

    #[test]
    fn interleaved_gives_the_mean_of_executions_that_alternate_with_a_long_one() {
        for (other, expected) in [(40, Some(40)), (190, Some(190))] {
            let builder = builder(other, 0);
            let timeline = builder.sealed();
            let executions = pair(&timeline, 0, &PairingRule::default(), &mut Notices::default());
            let found = interleaved(&timeline, &executions);
            let long = executions.iter().position(|e| e.span.len() > 1_000).unwrap();
            assert_eq!(found[long], expected);
            assert!(found.iter().enumerate().all(|(i, f)| i == long || f.is_none()), "{found:?}");
        }
    }

    #[test]
    fn interleaved_is_none_where_interrupts_were_recorded_or_none_alternated() {
        let found = |builder: &TimelineBuilder| {
            let timeline = builder.sealed();
            let executions = pair(&timeline, 0, &PairingRule::default(), &mut Notices::default());
            interleaved(&timeline, &executions)
        };
        assert!(found(&builder(40, 7)).iter().all(Option::is_none));
        // Without a long time slice before the others it is unknown whether the cause was there already.
        let mut late = builder(40, 0);
        late.0.threads[0]
            .rows
            .segments
            .retain(|segment| segment.span.start.ns() < 1_000 || segment.span.start.ns() >= 3_000);
        assert!(found(&late).iter().all(Option::is_none));
    }
}
