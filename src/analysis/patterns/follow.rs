//! Delays outside patterns: a late step of another structure (a checkpoint, another grid), and the waits in it.
//!
//! In: the late occurrences. Out: more of them, without a pattern, one event each. Two kinds: long waits outside all
//! repeated patterns; and, for every long wait whose last sender or last member was late without a responsible event,
//! the activity that made it late. The search goes back as on a critical path and takes the event with most of the time
//! before the late arrival, or the wait with most of it, which is followed in the same way. Starting up (`MPI_Init`) is
//! not a delay.
//!
//! ALGORITHMS.md 9.5. Cost: one pass over the operations, and a walk over the sender's events during each wait.

use super::analysis::PatternAnalysis;
use super::late::{EventIndex, LateOccurrence, ResponsibleEvent};
use super::measure::{PatternLimits, SMALLEST};
use super::spread::last_before;
use super::table::Occurrence;
use super::triggers::{Trigger, Triggers};
use crate::analysis::offsets::StreamClock;
use crate::base::ctx::Cancel;
use crate::base::names::NameId;
use crate::base::time::{Ns, Span};
use crate::event::operation::{OperationPlace, Operations};
use crate::model::event_kind::EventKind;
use crate::model::settings::PatternVerdict;
use foldhash::{HashMap, HashSet};

/// A wait outside all patterns is long from 1/`PER_ITERATION` of an iteration on; without iterations from 1/`PER_LIFE`
/// of the stream's life.
const PER_ITERATION: Ns = 2;
const PER_LIFE: Ns = 100;
/// Shorter ones are ignored.
const SHORTEST: Ns = 100_000;
/// Fewer durations of one operation have no usual value.
const FEWEST: usize = 10;
/// The most events of the stream that ended a wait over which the wait is followed back.
const FARTHEST: usize = 10_000;

/// Add the delays outside patterns.
pub(super) fn extend(
    mined: &PatternAnalysis,
    limits: &[PatternLimits],
    s: f64,
    late: &mut Vec<LateOccurrence>,
    cancel: &Cancel,
) {
    let operations = &mined.operations;
    // For threads of a kernel recording the critical path answers this.
    if operations.sequences.iter().any(|s| s.thread.is_some()) {
        return;
    }
    let triggers = Triggers::new(operations, &mined.clocks);
    let mut search = Search { operations, clocks: &mined.clocks, triggers, usual: HashMap::default(), s };
    let mut blamed: HashMap<(u32, EventIndex), Ns> = HashMap::default();
    let mut open: Vec<LongWait> = Vec::new();
    for one in late.iter() {
        for b in &one.responsible {
            blamed.entry((one.occurrence.stream, b.event)).or_insert(b.excess);
            open.extend(search.wait(one.occurrence.stream, b));
        }
    }
    for (stream, b) in search.outside_patterns(mined, limits) {
        if blamed.insert((stream, b.event), b.excess).is_none() {
            open.extend(search.wait(stream, &b));
            late.push(single(stream, b));
        }
    }
    let mut done: HashSet<(u32, EventIndex)> = HashSet::default();
    while let Some(wait) = open.pop() {
        if cancel.is_cancelled() || !done.insert((wait.stream, wait.event)) {
            continue;
        }
        let Some((stream, found)) = search.activity_behind(&wait, &blamed) else { continue };
        if blamed.insert((stream, found.event), found.excess).is_none() {
            open.extend(search.wait(stream, &found));
            late.push(single(stream, found));
        }
    }
}

/// A late event as an occurrence without a pattern.
fn single(stream: u32, event: ResponsibleEvent) -> LateOccurrence {
    LateOccurrence {
        pattern: None,
        occurrence: Occurrence { stream, first: event.event / 2, opens: false },
        length: 1,
        local: event.local,
        excess: event.excess,
        idle: false,
        diffuse: false,
        responsible: vec![event],
    }
}

/// A long wait and its end.
struct LongWait {
    stream: u32,
    event: EventIndex,
    /// From its begin until it could end, on the common time line.
    late: Span,
    trigger: Trigger,
}

struct Search<'a> {
    operations: &'a Operations,
    clocks: &'a [StreamClock],
    triggers: Triggers<'a>,
    /// Usual durations, by name of the operation.
    usual: HashMap<NameId, UsualDurations>,
    s: f64,
}

/// Usual durations of what is frequent: of the operations of one name, and of the time after them.
struct UsualDurations {
    own: Ns,
    /// Usual time from the end of one of these to the next operation, by the name of that.
    before: HashMap<NameId, Ns>,
}

impl UsualDurations {
    fn of(operations: &Operations, name: NameId) -> UsualDurations {
        let mut own = Vec::new();
        // The times before operations of one name, and by name their position. The same name often follows again.
        let mut before: Vec<Vec<Ns>> = Vec::new();
        let mut known: HashMap<NameId, usize> = HashMap::default();
        let mut last: Option<(NameId, usize)> = None;
        for sequence in &operations.sequences {
            for (at, operation) in sequence.operations.iter().enumerate().filter(|(_, o)| o.symbol == name) {
                own.push(operation.end - operation.start);
                let Some(next) = sequence.operations.get(at + 1) else { continue };
                let position = match last {
                    Some((name, position)) if name == next.symbol => position,
                    _ => *known.entry(next.symbol).or_insert_with(|| {
                        before.push(Vec::new());
                        before.len() - 1
                    }),
                };
                last = Some((next.symbol, position));
                before[position].push(next.start - operation.end);
            }
        }
        // The third quartile, as for patterns, because two kinds of pauses may follow the same calls.
        let usual = |mut lengths: Vec<Ns>| {
            let usual = (lengths.len() * 3).div_ceil(4).saturating_sub(1);
            if lengths.len() < FEWEST { 0 } else { *lengths.select_nth_unstable(usual).1 }
        };
        UsualDurations {
            own: usual(own),
            before: known.into_iter().map(|(name, at)| (name, usual(std::mem::take(&mut before[at])))).collect(),
        }
    }
}

impl Search<'_> {
    fn clock(&self, stream: u32) -> StreamClock {
        self.clocks.get(stream as usize).copied().unwrap_or_default()
    }

    /// A responsible event as a wait, if another stream ended it and could have done so earlier.
    fn wait(&self, stream: u32, blamed: &ResponsibleEvent) -> Option<LongWait> {
        if !self.operations.kind_of(stream, blamed.event).waits() {
            return None;
        }
        let clock = self.clock(stream);
        let place = OperationPlace { stream, operation: blamed.event / 2 };
        let trigger = self.triggers.of(place, clock.common(blamed.local.end)).filter(|t| t.from.stream != stream)?;
        let from = clock.common(blamed.local.start);
        let late = Span::new(from, trigger.sent.min(clock.common(blamed.local.end)).max(from));
        let spared = (late.len() - blamed.reference).min(blamed.excess);
        (spared.saturating_mul(2) >= blamed.excess && spared > SMALLEST).then_some(LongWait {
            stream,
            event: blamed.event,
            late,
            trigger,
        })
    }

    /// The activity of the stream that ended a wait, if no responsible event there explains half of the wait.
    fn activity_behind(
        &mut self,
        wait: &LongWait,
        blamed: &HashMap<(u32, EventIndex), Ns>,
    ) -> Option<(u32, ResponsibleEvent)> {
        let stream = wait.trigger.from.stream;
        let clock = self.clock(stream);
        let whole = wait.late.len();
        let last = last_before(&wait.trigger);
        let mut most: Option<(Ns, EventIndex, Span)> = None;
        for event in (0..last).rev().take(FARTHEST) {
            let Some(local) = self.span(stream, event) else { continue };
            let span = Span::new(clock.common(local.start), clock.common(local.end));
            if span.end <= wait.late.start {
                break;
            }
            let during = span.end.min(wait.late.end) - span.start.max(wait.late.start);
            let known = blamed.get(&(stream, event)).map_or(0, |excess| (*excess).min(during));
            if known.saturating_mul(2) >= whole {
                return None;
            }
            if most.is_none_or(|(m, ..)| during > m) {
                most = Some((during, event, local));
            }
            // Before the stream's last long wait others were responsible.
            if self.operations.kind_of(stream, event).waits() && during.saturating_mul(2) >= whole {
                break;
            }
        }
        let (during, event, local) = most.filter(|(during, ..)| during.saturating_mul(4) >= whole)?;
        if blamed.contains_key(&(stream, event)) || self.starts_up(stream, event) {
            return None;
        }
        let usual = self.usual(stream, event);
        // An event of usual length causes no additional delay.
        let unusual = local.len() as f64 >= self.s * usual.max(SMALLEST) as f64;
        let excess = (local.len() - usual).min(during);
        unusual.then_some((stream, ResponsibleEvent { event, local, excess, reference: usual }))
    }

    fn starts_up(&self, stream: u32, event: EventIndex) -> bool {
        let operation = self.operations.get(OperationPlace { stream, operation: event / 2 });
        operation.is_some_and(|o| self.operations.names.get(o.symbol).starts_with("MPI_Init"))
    }

    /// An event on the stream's own clock; `None` for the gap after the last operation.
    fn span(&self, stream: u32, event: EventIndex) -> Option<Span> {
        let operation = self.operations.get(OperationPlace { stream, operation: event / 2 })?;
        if event.is_multiple_of(2) {
            return Some(operation.span());
        }
        let next = self.operations.get(OperationPlace { stream, operation: event / 2 + 1 })?;
        Some(Span::new(operation.end, next.start.max(operation.end)))
    }

    /// The usual duration of an operation of this name, or of the time between two of these names, where it is
    /// frequent; else 0.
    fn usual(&mut self, stream: u32, event: EventIndex) -> Ns {
        let operations = self.operations;
        let named = |at| operations.get(OperationPlace { stream, operation: at }).map(|o| o.symbol);
        let Some(one) = named(event / 2) else { return 0 };
        let usual = self.usual.entry(one).or_insert_with(|| UsualDurations::of(operations, one));
        if event.is_multiple_of(2) {
            return usual.own;
        }
        let next = named(event / 2 + 1);
        next.and_then(|next| usual.before.get(&next).copied()).unwrap_or(0)
    }

    /// Long waits outside all patterns that have enough occurrences for limits.
    fn outside_patterns(&self, mined: &PatternAnalysis, limits: &[PatternLimits]) -> Vec<(u32, ResponsibleEvent)> {
        let mut covered: Vec<Vec<bool>> =
            self.operations.sequences.iter().map(|s| vec![s.worker; s.operations.len()]).collect();
        for (id, pattern) in mined.table.measured() {
            let judged = limits.get(id.index()).is_some_and(|c| c.usual.verdict != PatternVerdict::TooFew);
            if !judged {
                continue;
            }
            for o in &mined.table.occurrences[id.index()] {
                let range = o.first as usize..(o.first + pattern.length) as usize;
                if let Some(part) = covered.get_mut(o.stream as usize).and_then(|c| c.get_mut(range)) {
                    part.fill(true);
                }
            }
        }
        let usual_iteration = median_iteration(mined);
        let mut found = Vec::new();
        for ((stream, sequence), covered) in (0_u32..).zip(&self.operations.sequences).zip(&covered) {
            let life = sequence
                .operations
                .last()
                .zip(sequence.operations.first())
                .map_or(0, |(last, first)| last.end - first.start);
            let long = usual_iteration.map_or(life / PER_LIFE, |iteration| iteration / PER_ITERATION).max(SHORTEST);
            for ((operation, known), at) in sequence.operations.iter().zip(covered).zip(0_u32..) {
                let local = operation.span();
                let waits = !known && EventKind::from(operation.kind).waits() && local.len() >= long;
                if waits && !self.starts_up(stream, 2 * at) {
                    found.push((stream, ResponsibleEvent { event: 2 * at, local, excess: local.len(), reference: 0 }));
                }
            }
        }
        found
    }
}

/// The median length of the iterations of all streams' outermost loops.
fn median_iteration(mined: &PatternAnalysis) -> Option<Ns> {
    let mut lengths: Vec<Ns> = mined.iterations().iter().flat_map(|i| i.spans.iter().map(|s| s.len())).collect();
    let middle = lengths.len().checked_sub(1)? / 2;
    Some(*lengths.select_nth_unstable(middle).1)
}
