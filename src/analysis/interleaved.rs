//! How other executions fared that took turns on a CPU with a long one.
//!
//! Where interrupts were not recorded, their time seems to be that of whoever ran. They stretch all that runs on a CPU;
//! what an execution does itself stretches it alone. So the executions that ran on a CPU between the turns of a long
//! one tell the two apart: under interrupts they take as many times longer as it does. In: a recording and the
//! executions of a task. Out: for each long one, the mean running time of those. One counts where all its running lies
//! between two turns of the long one that each last longer than an execution usually runs: then what made it long was
//! there before and after. Cost: linear in the executions' edges, and at most `MOST` others for each long one.
//! ALGORITHMS.md 7.7.

use super::executions::Execution;
use crate::base::time::{Ns, Span};
use crate::state::timeline::{HostId, SegmentKind, Thread, Timeline};
use std::collections::BTreeMap;

/// From this multiple of the usual running time on an execution is a long one.
const LONG: Ns = 3;
/// Others that are looked at for a long one.
const MOST: usize = 256;

/// The running of a thread in a span of time, clipped to it: CPU and when.
fn turns(thread: &Thread, span: Span) -> impl Iterator<Item = (u32, Span)> + '_ {
    let segments = &thread.segments[thread.first_segment_after(span.start)..];
    let inside = segments.iter().take_while(move |segment| segment.span.start < span.end);
    let running = inside.filter(|segment| segment.kind == SegmentKind::Running);
    running.map(move |segment| (segment.cpu, segment.span.clip(span))).filter(|(_, turn)| !turn.is_empty())
}

/// For each execution, which are in order of their starts: the mean running time of those that took turns with it.
/// `None` where it is not a long one, where none did, and on hosts whose interrupts were recorded or whose scheduler
/// was not.
pub fn interleaved(timeline: &Timeline, executions: &[Execution<'_>]) -> Vec<Option<i64>> {
    let asked = |host: HostId| {
        let interrupts = timeline.quality.get(host.index()).map_or(0, |quality| quality.interrupts);
        interrupts == 0 && timeline.is_scheduled(host)
    };
    let hosts: Vec<bool> = (0..timeline.hosts.len()).map(|host| asked(HostId::at(host))).collect();
    let thread = |execution: &Execution<'_>| {
        timeline.thread(execution.thread).filter(|t| hosts.get(t.host.index()).copied().unwrap_or(false))
    };
    let ran = |execution: &Execution<'_>| {
        thread(execution).map_or(0, |t| turns(t, execution.span).map(|(_, turn)| turn.len()).sum::<Ns>())
    };
    if !hosts.contains(&true) {
        return vec![None; executions.len()];
    }
    let running: Vec<Ns> = executions.iter().map(ran).collect();
    let mut sorted: Vec<Ns> = running.iter().copied().filter(|ns| *ns > 0).collect();
    sorted.sort_unstable();
    let Some(usual) = sorted.get(sorted.len() / 2).copied() else { return vec![None; executions.len()] };
    let one = |(i, execution): (usize, &Execution<'_>)| {
        let own = thread(execution).filter(|_| running[i] >= usual.saturating_mul(LONG))?;
        let mut others: Vec<Ns> = Vec::new();
        for (cpu, between) in between(own, execution.span, usual) {
            let first = executions.partition_point(|other| other.span.start < between.start);
            let begun = executions[first..].iter().zip(&running[first..]).take(MOST);
            for (other, ran) in begun.take_while(|(other, _)| other.span.start < between.end) {
                let there = thread(other).filter(|t| t.host == own.host && other.thread != execution.thread);
                let fits = |t: &Thread| turns(t, other.span).all(|(on, _)| on == cpu);
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

/// By CPU: from where a thread has run there for longer than `usual` to where as much is left of its running there.
fn between(thread: &Thread, span: Span, usual: Ns) -> Vec<(u32, Span)> {
    let mut by_cpu: BTreeMap<u32, Vec<Span>> = BTreeMap::new();
    turns(thread, span).for_each(|(cpu, turn)| by_cpu.entry(cpu).or_default().push(turn));
    let ends = by_cpu.into_iter().filter_map(|(cpu, turns)| {
        let (first, last) = (beyond(turns.iter(), usual)?, beyond(turns.iter().rev(), usual)?);
        Some((cpu, Span::new(first.end, last.start)))
    });
    ends.filter(|(_, between)| between.start < between.end).collect()
}

/// The turn in which the sum of all up to it passes `most`.
fn beyond<'a>(turns: impl Iterator<Item = &'a Span>, most: Ns) -> Option<Span> {
    let mut sum = 0;
    let mut sums = turns.map(|turn| {
        sum += turn.len();
        (sum, *turn)
    });
    sums.find(|(sum, _)| *sum > most).map(|(_, turn)| turn)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::executions::{PairingRule, pair};
    use crate::analysis::timeline_builder::TimelineBuilder;
    use crate::base::notice::Notices;
    use crate::model::facts::Quality;
    use crate::state::timeline::Host;

    /// Thread 1 runs from 1,000 to 4,000 in turns of 200 with thread 2, whose executions take `other` each turn; before
    /// that both are short.
    fn builder(other: Ns, interrupts: u64) -> TimelineBuilder {
        let mut builder = TimelineBuilder::new(2);
        let name = builder.0.names.intern("host");
        builder.0.hosts.push(Host { name, kernel_release: None });
        builder.0.quality.push(Quality { switches: 99, interrupts, ..Quality::default() });
        builder.runs(&[(0, 4_100, 1)]);
        let mut times = Vec::new();
        for i in 0..10 {
            let t = i * 100;
            builder.segment(1, t, t + 50, SegmentKind::Running, 0).segment(1, t + 50, t + 100, SegmentKind::Blocked, 0);
            times.extend([(t, true, 1), (t + 50, false, 1)]);
        }
        times.push((1_000, true, 1));
        for turn in 0..6 {
            let t = 1_000 + turn * 400;
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
    fn those_that_take_turns_with_a_long_one_are_told() {
        for (other, expected) in [(40, Some(40)), (190, Some(190))] {
            let builder = builder(other, 0);
            let executions = pair(&builder.0, 0, &PairingRule::default(), &mut Notices::default());
            let found = interleaved(&builder.0, &executions);
            let long = executions.iter().position(|e| e.span.len() > 1_000).unwrap();
            assert_eq!(found[long], expected);
            assert!(found.iter().enumerate().all(|(i, f)| i == long || f.is_none()), "{found:?}");
        }
    }

    #[test]
    fn nobody_is_asked_where_interrupts_were_recorded_or_nobody_took_turns() {
        let found = |builder: &TimelineBuilder| {
            let executions = pair(&builder.0, 0, &PairingRule::default(), &mut Notices::default());
            interleaved(&builder.0, &executions)
        };
        assert!(found(&builder(40, 7)).iter().all(Option::is_none));
        // After the last turn that is long enough nothing says what came first.
        let mut late = builder(40, 0);
        late.0.threads[0].segments.retain(|segment| segment.span.start < 1_000 || segment.span.start >= 3_000);
        assert!(found(&late).iter().all(Option::is_none));
    }
}
