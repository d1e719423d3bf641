//! Clocks: what to add to each stream's own time to put all on the first stream's.
//!
//! In: messages and collective operations, which arrive no earlier than they were sent. Out: one [`StreamClock`] per
//! stream, with the bound of its error.
//!
//! Streams of one process have one clock. Where the archive says how all clocks run (Score-P) its times are common and
//! stay, and so do recorded times that contradict no message.
//!
//! Otherwise a message that leaves at time s on clock i and arrives at time r on clock j bounds the offset between the
//! two: at most `r - s`. The tightest of all messages of each ordered pair is an edge of weight min(r - s); the
//! shortest path from the first clock bounds an offset on one side, the shortest path back on the other. The true
//! offset is between the bounds. The estimate divides the distance by the number of edges on each side, as every edge
//! contains the transit time of one message (for two ranks that exchange messages both ways it is the middle). Half the
//! distance between the bounds is the error. No pair needs to exchange messages both ways: a ring is enough.
//!
//! Where no contradiction exceeds the errors, the clocks are common except for small reading errors: then each is moved
//! back by the least that satisfies all bounds, and not into their middle.
//!
//! Drift: the same from the first and from the last third of the recording; it is believed when the two offsets
//! differ by more than their errors, taken off, and fitted again. Cost: three passes over the messages, and
//! O(clocks x pairs) for the paths.
//!
//! Rejected: least squares over all messages, which is pulled by waiting times; convex hulls per pair, which need
//! both directions. Facts: Duda et al. 1987; Jezequel 1989.

use crate::base::time::{Ns, Span, Timestamp};
use crate::event::operation::Operations;
use foldhash::HashMap;

/// From a stream's own time to the common one.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StreamClock {
    /// The stream's own time at which `offset` holds.
    pub origin: Timestamp,
    /// Added to the stream's time at the origin.
    pub offset: Ns,
    /// Added per nanosecond after `origin`.
    pub drift: f64,
    /// The largest error of the offset; `None` where messages to and from the first stream do not bound it.
    pub error: Option<Ns>,
}

impl StreamClock {
    /// A time of the stream on the common line.
    #[inline]
    pub fn common(&self, local: Timestamp) -> Timestamp {
        local + self.offset + self.drifted(local)
    }

    #[inline]
    fn drifted(&self, local: Timestamp) -> Ns {
        if self.drift == 0.0 { 0 } else { (self.drift * (local - self.origin) as f64).round() as Ns }
    }
}

/// A message from the stream or clock `from`, at its time `sent`, to `to`, at its time `received`.
#[derive(Clone, Copy)]
struct TimedMessage {
    from: u32,
    to: u32,
    sent: Timestamp,
    received: Timestamp,
}

/// Drifts that differ by less than this over the recording are the granularity of clocks, not drift.
const SMALLEST_DRIFT: Ns = 200;
/// Clocks that drift by more than one part in a thousand are not clocks: such a fit is noise.
const LARGEST_DRIFT: f64 = 1e-3;

/// Fit all clocks. The first stream's is the identity; so are all where the streams share one clock.
pub fn fit(operations: &Operations) -> Vec<StreamClock> {
    let sequences = &operations.sequences;
    let life = |stream: u32| {
        let all = sequences.get(stream as usize).map_or(&[][..], |s| &s.operations);
        Span::new(all.first().map_or(Timestamp::ZERO, |o| o.start), all.last().map_or(Timestamp::ZERO, |o| o.end))
    };
    let lives: Vec<Span> = (0..sequences.len() as u32).map(life).collect();
    let same = |common: StreamClock| lives.iter().map(|l| StreamClock { origin: l.start, ..common }).collect();
    if sequences.len() < 2 || operations.one_clock {
        return same(StreamClock { error: Some(0), ..StreamClock::default() });
    }
    let fit = ClockFit::new(operations, &lives);
    let mut clocks = vec![StreamClock::default(); fit.clocks];
    let edges = fit.smallest(&clocks, |_| true);
    if edges.iter().all(|edge| edge.least >= 0) {
        let bounds = fit.bounds(&clocks, |_| true);
        let error = bounds.into_iter().map(|b| b.and_then(|b| Some(b.offset.abs() + b.error?))).collect();
        return fit.streams(&clocks, &lives, error);
    }
    let whole = fit.bounds(&clocks, |_| true);
    let open = whole.iter().map(|b| b.and_then(|b| b.error)).try_fold(0, |most, e| Some(e?.max(most)));
    let back = least_moves(fit.clocks, &edges);
    let most = back.iter().map(|moved| moved.abs()).max().unwrap_or(0);
    if open.is_none_or(|open| most <= open) {
        let first = back.first().copied().unwrap_or(0);
        clocks.iter_mut().zip(&back).for_each(|(clock, moved)| clock.offset = moved - first);
        let error = whole.iter().zip(&clocks).map(|(bound, clock)| {
            let bound = (*bound)?;
            Some((bound.offset - clock.offset).abs() + bound.error?)
        });
        return fit.streams(&clocks, &lives, error.collect());
    }
    fit.drifts(&mut clocks);
    let whole = fit.bounds(&clocks, |_| true);
    let error = whole.iter().map(|b| b.and_then(|b| b.error)).collect();
    for (clock, bound) in clocks.iter_mut().zip(&whole) {
        clock.offset = bound.map_or(0, |bound| bound.offset);
    }
    fit.streams(&clocks, &lives, error)
}

/// The least move of each clock so that no message arrives before it was sent, when clocks are moved back only. A clock
/// that sends must not be ahead of those that receive.
fn least_moves(clocks: usize, edges: &[ClockEdge]) -> Vec<Ns> {
    let mut moved: Vec<Ns> = vec![0; clocks];
    for _ in 0..clocks {
        let mut changed = false;
        for edge in edges {
            let at_most = moved[edge.to as usize].saturating_add(edge.least);
            if moved[edge.from as usize] > at_most {
                moved[edge.from as usize] = at_most;
                changed = true;
            }
        }
        if !changed {
            break;
        }
    }
    moved
}

/// The bound that the messages between two clocks give.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct ClockEdge {
    from: u32,
    to: u32,
    /// The smallest time of receipt minus time of sending, each on its own clock.
    least: Ns,
}

/// The smallest times by ordered pair of clocks. Messages come receiver by receiver: those to one clock are kept by
/// position of their sender until one to another clock comes.
struct LeastTimes {
    by_pair: HashMap<(u32, u32), Ns>,
    /// The receiver of the last message.
    to: u32,
    /// By sender: the smallest time to that receiver.
    from: Vec<Option<Ns>>,
    /// The senders that have one.
    senders: Vec<u32>,
}

impl LeastTimes {
    fn new(clocks: usize) -> LeastTimes {
        LeastTimes { by_pair: HashMap::default(), to: 0, from: vec![None; clocks], senders: Vec::new() }
    }

    fn add(&mut self, from: u32, to: u32, time: Ns) {
        if to != self.to {
            self.leave_receiver();
            self.to = to;
        }
        match self.from.get_mut(from as usize) {
            Some(Some(least)) => *least = time.min(*least),
            Some(least) => {
                *least = Some(time);
                self.senders.push(from);
            }
            None => {}
        }
    }

    fn leave_receiver(&mut self) {
        for from in self.senders.drain(..) {
            let Some(time) = self.from.get_mut(from as usize).and_then(Option::take) else { continue };
            let least = self.by_pair.entry((from, self.to)).or_insert(time);
            *least = time.min(*least);
        }
    }

    fn edges(mut self) -> Vec<ClockEdge> {
        self.leave_receiver();
        let edge = |((from, to), least): ((u32, u32), Ns)| ClockEdge { from, to, least };
        let mut edges: Vec<ClockEdge> = self.by_pair.into_iter().map(edge).collect();
        edges.sort_unstable();
        edges
    }
}

/// The offset of a clock as its bounds give it.
#[derive(Clone, Copy)]
struct OffsetBound {
    /// To be added to the clock's time.
    offset: Ns,
    /// The largest error of that. `None` where messages went one way only: then the fastest counts as if it took no
    /// time.
    error: Option<Ns>,
}

/// A path from clock 0.
#[derive(Clone, Copy)]
struct ShortestPath {
    length: Ns,
    edges: u32,
}

/// The streams, by clock.
struct ClockFit<'a> {
    operations: &'a Operations,
    /// By stream: position of its clock.
    clock_of: Vec<u32>,
    clocks: usize,
    /// By clock.
    lives: Vec<Span>,
}

impl<'a> ClockFit<'a> {
    fn new(operations: &'a Operations, lives: &[Span]) -> Self {
        let mut known: HashMap<u32, u32> = HashMap::default();
        let mut fit = ClockFit { operations, clock_of: Vec::new(), clocks: 0, lives: Vec::new() };
        for (sequence, life) in operations.sequences.iter().zip(lives) {
            let new = fit.clocks as u32;
            let clock = sequence.process.map_or(new, |process| *known.entry(process).or_insert(new));
            match fit.lives.get_mut(clock as usize) {
                Some(whole) if *whole == Span::default() => *whole = *life,
                Some(whole) if *life != Span::default() => {
                    *whole = Span::new(whole.start.min(life.start), whole.end.max(life.end))
                }
                Some(_) => {}
                None => {
                    fit.lives.push(*life);
                    fit.clocks += 1;
                }
            }
            fit.clock_of.push(clock);
        }
        fit
    }

    /// The clocks of the streams.
    fn streams(&self, clocks: &[StreamClock], lives: &[Span], error: Vec<Option<Ns>>) -> Vec<StreamClock> {
        let stream = |(clock, life): (&u32, &Span)| {
            let fitted = clocks.get(*clock as usize).copied().unwrap_or_default();
            let error = error.get(*clock as usize).copied().flatten();
            let offset = fitted.offset + fitted.drifted(life.start);
            StreamClock { origin: life.start, offset, error: if *clock == 0 { Some(0) } else { error }, ..fitted }
        };
        self.clock_of.iter().zip(lives).map(stream).collect()
    }

    /// Set the drift of the clocks whose offset differs between the beginning and the end.
    fn drifts(&self, clocks: &mut [StreamClock]) {
        for (clock, life) in clocks.iter_mut().zip(&self.lives) {
            clock.origin = life.start;
        }
        let third = |f: &TimedMessage| {
            let Span { start, end } = self.lives[f.from as usize];
            let length = (end - start).max(1);
            if f.sent - start < length / 3 {
                0
            } else if f.sent - start >= length - length / 3 {
                2
            } else {
                1
            }
        };
        // Where the offset drifts inside a third, its bounds cross; their middle is that of the third all the same.
        let fit_third = |which: i32, clocks: &[StreamClock]| self.bounds(clocks, |f| third(f) == which);
        let (early, late) = (fit_third(0, clocks), fit_third(2, clocks));
        for (at, clock) in clocks.iter_mut().enumerate().skip(1) {
            let (Some(early), Some(late)) = (early[at], late[at]) else { continue };
            if let (Some(early_error), Some(late_error)) = (early.error, late.error) {
                let between = (self.lives[at].end - self.lives[at].start) as f64 * 2.0 / 3.0;
                let moved = late.offset - early.offset;
                let drift = moved as f64 / between.max(1.0);
                if moved.abs() > early_error + late_error + SMALLEST_DRIFT && drift.abs() < LARGEST_DRIFT {
                    clock.drift = drift;
                }
            }
        }
    }

    /// By ordered pair of clocks: the smallest time of receipt minus time of sending, drift subtracted.
    fn smallest(&self, clocks: &[StreamClock], keep: impl Fn(&TimedMessage) -> bool) -> Vec<ClockEdge> {
        let operations = self.operations;
        let mut least = LeastTimes::new(clocks.len());
        let mut add = |mut message: TimedMessage| {
            let of = |stream: u32| self.clock_of.get(stream as usize).copied();
            let (Some(from), Some(to)) = (of(message.from), of(message.to)) else { return };
            (message.from, message.to) = (from, to);
            let (Some(a), Some(b)) = (clocks.get(from as usize), clocks.get(to as usize)) else { return };
            if from != to && keep(&message) {
                let received = message.received + b.drifted(message.received);
                least.add(from, to, received - (message.sent + a.drifted(message.sent)));
            }
        };
        for m in &operations.messages {
            add(TimedMessage { from: m.from.stream, to: m.to.stream, sent: m.sent, received: m.received });
        }
        // No member leaves before all have entered: as if the first member exchanged messages with each of the others.
        for collective in operations.collectives.iter().filter(|m| m.exchange.all_wait()) {
            let mut members = collective.members.iter().filter_map(|p| Some((p.stream, operations.get(*p)?)));
            let Some((hub, at_hub)) = members.next() else { continue };
            for (member, there) in members {
                add(TimedMessage { from: hub, to: member, sent: at_hub.start, received: there.end });
                add(TimedMessage { from: member, to: hub, sent: there.start, received: at_hub.end });
            }
        }
        least.edges()
    }

    /// By clock: its offset; `None` for clocks that no messages connect with the first.
    fn bounds(&self, clocks: &[StreamClock], keep: impl Fn(&TimedMessage) -> bool) -> Vec<Option<OffsetBound>> {
        let edges = self.smallest(clocks, keep);
        let forth = shortest(clocks.len(), edges.iter().copied());
        let back = shortest(clocks.len(), edges.iter().map(|e| ClockEdge { from: e.to, to: e.from, least: e.least }));
        // The clock is ahead of the first by at most the length forth and at least minus the length back.
        let bound = |paths: (Option<ShortestPath>, Option<ShortestPath>)| match paths {
            (Some(forth), Some(back)) => {
                let slack = i128::from(forth.length) + i128::from(back.length);
                let share = slack * i128::from(forth.edges) / i128::from((forth.edges + back.edges).max(1));
                let error = Some((slack.unsigned_abs() / 2) as Ns);
                Some(OffsetBound { offset: share as Ns - forth.length, error })
            }
            (Some(forth), None) => Some(OffsetBound { offset: -forth.length, error: None }),
            (None, Some(back)) => Some(OffsetBound { offset: back.length, error: None }),
            (None, None) => None,
        };
        forth.into_iter().zip(back).map(bound).collect()
    }
}

/// Shortest paths from clock 0. Each round lengthens paths by one edge. Where clocks contradict each other (drift
/// inside the examined time) the search ends after as many rounds as there are clocks.
fn shortest(clocks: usize, edges: impl Iterator<Item = ClockEdge> + Clone) -> Vec<Option<ShortestPath>> {
    let mut best: Vec<Option<ShortestPath>> = vec![None; clocks];
    if let Some(first) = best.first_mut() {
        *first = Some(ShortestPath { length: 0, edges: 0 });
    }
    for _ in 0..clocks {
        let mut changed = false;
        for edge in edges.clone() {
            let Some(path) = best[edge.from as usize] else { continue };
            let found = ShortestPath { length: path.length.saturating_add(edge.least), edges: path.edges + 1 };
            if edge.to != 0 && best[edge.to as usize].is_none_or(|known| found.length < known.length) {
                best[edge.to as usize] = Some(found);
                changed = true;
            }
        }
        if !changed {
            break;
        }
    }
    best
}
