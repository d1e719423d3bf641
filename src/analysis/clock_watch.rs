//! Pauses of single CPUs, by the timer interrupts that were due on them and did not come.
//!
//! In: the segments of threads in order of time, and the moments of their events. Out: for each CPU the spans in which
//! nothing at all happened on it although a thread ran. A hypervisor that gives a CPU to another machine, a machine
//! that is paused, firmware, and code that keeps interrupts off look so; whatever ran there took longer for no reason
//! of its own, and a thread that waited for the CPU did not wait for the one that seemed to run.
//!
//! A busy CPU has a timer interrupt each period (1 to 10 ms), which is one for all CPUs of a kernel. The *clock* is a
//! handler whose name says that it is a timer's and which comes so regularly that [`REGULAR`] of the distances between
//! two of its interrupts during one run, and [`LEAST_NEAR`] of them, are within a tenth of a period; the period is the
//! distance that has most others so near. Other timers shorten some. Pauses lengthen some, so that distances of
//! [`MISSING`] periods and more do not count: where runs are short, most may be of pauses. A CPU was paused where a
//! thread ran on it for [`MISSING`] periods without its clock, and nothing else happened there for all but two periods:
//! from the moment at which the clock was due.
//!
//! The clock's interrupt is among the first events when a CPU goes on. So where threads leave a CPU after such times,
//! as often as the clock ends one or more often, the CPU does without a clock (`nohz_full`): nothing is said of it, nor
//! of one on which other events happen in such a time. Half as often, its pauses are doubtful: it may do without a
//! clock, or events were lost. So are, where timers interrupt and none of them is regular (threads that run too briefly
//! meet the clock seldom, other timers often), the times of [`LONG_WITHOUT`] that a timer ended. Memory: [`SAMPLED`]
//! distances for each clock, and the long ones. ALGORITHMS.md 7.7.

use crate::base::names::{NameId, Names};
use crate::base::time::{Ns, Span, Timestamp};
use crate::event::kind::SOFT_IRQS;
use crate::timeline::{Segment, SegmentKind, known_cpu};
use smallvec::SmallVec;
use std::collections::{BTreeMap, BTreeSet};

/// Distances of a clock from which its period follows.
const SAMPLED: usize = 512;
/// So many of them must be within a tenth of the period: of 20 that come at random 8 are in one case of a thousand.
const LEAST_NEAR: usize = 8;
/// Percent of the distances, but for those of pauses, that must be within a tenth of the period.
const REGULAR: usize = 30;
/// Periods without an interrupt of the clock.
const MISSING: Ns = 5;
/// A shorter time is no pause, whatever the period.
const LEAST: Ns = 4_000_000;
/// A shorter time is no pause where timers interrupt, and none of them regularly enough to be the clock.
const LONG_WITHOUT: Ns = 20_000_000;
/// Events in a time without the clock that are kept; more show that the CPU worked.
const MOST_EVENTS: usize = 64;

/// The pauses of each CPU of a host, by its number, in order of time.
pub type CpuPauses = BTreeMap<u32, Vec<Span>>;

/// The pauses that were found.
#[derive(Debug, Default)]
pub(super) struct FoundPauses {
    pub sure: CpuPauses,
    /// Of CPUs that may do without a clock, or whose events were lost.
    pub doubtful: CpuPauses,
}

/// The timer interrupts of a host, as the segments of its threads show them.
#[derive(Debug, Default)]
pub(super) struct ClockWatch {
    clocks: BTreeMap<NameId, Clock>,
    /// By CPU: long times without an interrupt, at whose ends a thread left it.
    tails: BTreeMap<u32, Vec<Ns>>,
    /// Times without the clock that are long enough, as far as its period is known.
    gaps: Vec<Gap>,
    /// Those of the thread that is read: from here on.
    of_thread: usize,
    run: Option<Run>,
    /// By name of a handler, where it is known.
    is_clock: Vec<Option<bool>>,
}

#[derive(Debug, Default)]
struct Clock {
    distances: Vec<Ns>,
    /// The period once there are enough distances; `Some(None)`: they are not regular.
    period: Option<Option<Ns>>,
}

/// A thread on a CPU, without a break.
#[derive(Debug)]
struct Run {
    cpu: u32,
    start: Timestamp,
    end: Timestamp,
    /// The last interrupts of clocks.
    last: SmallVec<[(NameId, Timestamp); 1]>,
    /// Interruptions since the last one of a clock.
    interruptions: Vec<Span>,
    /// The end of the last interruption.
    interrupted: Timestamp,
}

/// A time without a clock's interrupt, which one ends.
#[derive(Debug)]
struct Gap {
    clock: NameId,
    cpu: u32,
    span: Span,
    /// Interruptions in it by other handlers.
    interruptions: Vec<Span>,
    /// Moments of events in it.
    events: Vec<Timestamp>,
}

impl ClockWatch {
    /// Another thread follows.
    pub fn begin_thread(&mut self) {
        self.run = None;
        self.of_thread = self.gaps.len();
    }

    /// The next segment of the thread.
    pub fn segment(&mut self, segment: &Segment, names: &Names) {
        let Some(cpu) = known_cpu(segment.cpu).filter(|_| segment.kind.is_on_cpu()) else {
            return self.end_run(segment);
        };
        let Span { start, end } = segment.span;
        match &mut self.run {
            Some(run) if run.cpu == cpu && run.end == start => run.end = end,
            _ => {
                let (last, interruptions) = (SmallVec::new(), Vec::new());
                self.run = Some(Run { cpu, start, end, last, interruptions, interrupted: start });
            }
        }
        if segment.kind != SegmentKind::Interrupted {
            return;
        }
        if let Some(run) = &mut self.run {
            run.interrupted = end;
        }
        let clock = segment.qualifier.filter(|name| self.is_clock(*name, names));
        match (clock, &mut self.run) {
            (Some(name), _) => self.tick(name, start),
            (None, Some(run)) if run.interruptions.len() <= MOST_EVENTS => run.interruptions.push(segment.span),
            _ => {}
        }
    }

    /// The thread left the CPU, and `next` follows.
    fn end_run(&mut self, next: &Segment) {
        let Some(run) = self.run.take() else { return };
        let tail = run.end.since(run.interrupted);
        if tail >= LEAST && next.kind != SegmentKind::Unknown && next.span.start == run.end {
            let tails = self.tails.entry(run.cpu).or_default();
            tails.extend((tails.len() < MOST_EVENTS).then_some(tail));
        }
    }

    /// True for the name of a timer's handler; each is looked at once.
    fn is_clock(&mut self, name: NameId, names: &Names) -> bool {
        if self.is_clock.len() <= name.index() {
            self.is_clock.resize(names.len().max(name.index() + 1), None);
        }
        self.is_clock.get_mut(name.index()).is_some_and(|known| *known.get_or_insert_with(|| is_clock(names.get(name))))
    }

    /// A clock's interrupt in the open run.
    fn tick(&mut self, name: NameId, t: Timestamp) {
        let Some(run) = &mut self.run else { return };
        let cpu = run.cpu;
        let clock = self.clocks.entry(name).or_default();
        let last = run.last.iter_mut().find(|(of, _)| *of == name);
        if let Some((_, last)) = &last {
            clock.add(t.since(*last));
        }
        let since = last.as_ref().map_or(run.start, |(_, last)| *last);
        let interruptions = std::mem::take(&mut run.interruptions);
        match last {
            Some((_, last)) => *last = t,
            None => run.last.push((name, t)),
        }
        if t.since(since) >= clock.least_gap() {
            self.gaps.push(Gap { clock: name, cpu, span: Span::new(since, t), interruptions, events: Vec::new() });
        }
    }

    /// Something happened in the thread whose segments were read last.
    pub fn event(&mut self, t: Timestamp) {
        let gaps = self.gaps.get_mut(self.of_thread..).unwrap_or_default();
        let at = gaps.partition_point(|gap| gap.span.end <= t);
        for gap in gaps.iter_mut().skip(at).take_while(|gap| gap.span.start <= t) {
            gap.events.extend((gap.events.len() <= MOST_EVENTS).then_some(t));
        }
    }

    /// True where a clock comes regularly, so that its absence shows pauses.
    pub fn has_clock(&mut self) -> bool {
        self.clocks.values_mut().any(|clock| clock.settled().is_some())
    }

    /// The pauses of the CPUs.
    pub fn finish(mut self) -> FoundPauses {
        // With the least length of a pause.
        let mut found: BTreeMap<u32, (Ns, Vec<Span>)> = BTreeMap::new();
        let mut without: BTreeSet<u32> = BTreeSet::new();
        let has_clock = self.has_clock();
        for gap in std::mem::take(&mut self.gaps) {
            let (period, least) = match self.clocks.get_mut(&gap.clock).and_then(Clock::settled) {
                Some(period) => (period, LEAST.max(MISSING * period)),
                None if has_clock => continue,
                None => (LEAST, LONG_WITHOUT),
            };
            if gap.span.len() < least {
                continue;
            }
            let cpu = gap.cpu;
            match gap.quiet(period) {
                Quiet::All(span) => found.entry(cpu).or_insert((least, Vec::new())).1.push(span),
                Quiet::Handler => {}
                Quiet::Part => {
                    without.insert(cpu);
                }
            }
        }
        let tails = |cpu: u32, least: Ns| {
            let all = self.tails.get(&cpu).map_or(&[][..], Vec::as_slice);
            all.iter().filter(|tail| **tail >= least).count()
        };
        let mut all = FoundPauses::default();
        for (cpu, (least, mut spans)) in found.into_iter().filter(|(cpu, _)| !without.contains(cpu)) {
            spans.sort_by_key(|span| (span.start, span.end));
            // Two clocks of one CPU see the same.
            spans.dedup_by(|next, kept| next.start < kept.end);
            match tails(cpu, least) {
                tails if tails * 2 < spans.len() && has_clock => _ = all.sure.insert(cpu, spans),
                tails if tails < spans.len() => _ = all.doubtful.insert(cpu, spans),
                _ => {}
            }
        }
        all
    }
}

impl Clock {
    fn add(&mut self, distance: Ns) {
        if self.period.is_none() {
            self.distances.push(distance);
            if self.distances.len() >= SAMPLED {
                self.settled();
            }
        }
    }

    /// From here on a time without it is kept.
    fn least_gap(&self) -> Ns {
        match self.period {
            None => LEAST,
            Some(period) => LEAST.max(period.map_or(LONG_WITHOUT, |period| MISSING.saturating_mul(period))),
        }
    }

    /// Its period, `None` where it is not regular.
    fn settled(&mut self) -> Option<Ns> {
        *self.period.get_or_insert_with(|| {
            let mut all = std::mem::take(&mut self.distances);
            all.sort_unstable();
            let until = |most: Ns| all.partition_point(|distance| *distance <= most);
            let near = |period: Ns| until(period + period / 10) - until(period - period / 10 - 1);
            let is_regular = |period: &Ns| {
                let few = until(MISSING.saturating_mul(*period));
                near(*period) >= LEAST_NEAR && near(*period) * 100 >= few * REGULAR
            };
            all.iter().copied().filter(is_regular).max_by_key(|distance| (near(*distance), *distance))
        })
    }
}

/// What happened in a time without the clock.
#[derive(Debug, PartialEq, Eq)]
enum Quiet {
    /// Nothing, but for less than two periods at its ends: from where the clock was due.
    All(Span),
    /// A handler lasted for most of it, during which the clock's interrupts are no segments.
    Handler,
    /// Something, and the clock did not come: the CPU does without it.
    Part,
}

impl Gap {
    fn quiet(mut self, period: Ns) -> Quiet {
        if self.events.len() > MOST_EVENTS || self.interruptions.len() > MOST_EVENTS {
            return Quiet::Part;
        }
        let Span { start, end } = self.span;
        self.events.extend(self.interruptions.iter().flat_map(|span| [span.start, span.end]));
        self.events.extend([start, end]);
        self.events.sort_unstable();
        let spans = self.events.iter().zip(self.events.iter().skip(1)).map(|(from, to)| Span::new(*from, *to));
        let longest = spans.max_by_key(|span| span.len()).unwrap_or_default();
        let is_handled = self.interruptions.iter().any(|span| span.start <= longest.start && span.end >= longest.end);
        match longest.len() >= self.span.len() - 2 * period {
            _ if is_handled => Quiet::Handler,
            true => Quiet::All(Span::new(longest.start.max(start.saturating_add(period)), longest.end)),
            false => Quiet::Part,
        }
    }
}

/// True for the handler of a timer that interrupts by itself.
fn is_clock(handler: &str) -> bool {
    let is_timer = |word: &[u8]| word.eq_ignore_ascii_case(b"timer");
    handler.as_bytes().windows(5).any(is_timer) && !SOFT_IRQS.contains(&handler)
}

#[cfg(test)]
mod tests;
