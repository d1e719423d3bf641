//! Clocks: what to add to each stream's own time to put all on the first stream's.
//!
//! In: messages and collective operations, which arrive no earlier than they were sent. Out: one [`StreamClock`] per stream,
//! with the bound of its error.
//!
//! Streams of one process have one clock. Where the archive says how all clocks run (Score-P) its times are common and
//! stay, and so do recorded times that contradict no message.
//!
//! Otherwise a message that leaves at time s on clock i and arrives at time r on clock j bounds the offset between the
//! two: at most `r - s`. The tightest of all messages of each ordered pair is an edge of weight min(r - s); the
//! shortest path from the first clock bounds an offset on one side, the shortest path back on the other. The truth lies
//! between, and where it lies is shared out by the number of edges on each side, as every edge hides one message's way
//! (two ranks that exchange messages both ways: the middle). Half the distance between the bounds is the error. This
//! needs no pair that talks both ways: a ring is enough.
//!
//! Where no contradiction is larger than what the bounds leave open, clocks are common but for small errors of reading
//! them: then each is moved back by the least that satisfies all bounds, and not into the middle of them.
//!
//! Drift: the same from the first and from the last third of the recording; it is believed when the two offsets
//! differ by more than their errors, taken off, and fitted again. Cost: three passes over the messages, and
//! O(clocks x pairs) for the paths.
//!
//! Rejected: least squares over all messages, which is pulled by waiting times; convex hulls per pair, which need
//! both directions. Facts: Duda et al. 1987; Jezequel 1989.

use crate::base::time::Ns;
use crate::event::operation::Operations;
use foldhash::HashMap;

/// From a stream's own time to the common one.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StreamClock {
    /// Own time at which `offset` holds.
    pub origin: Ns,
    /// To add there.
    pub offset: Ns,
    /// Added per nanosecond after `origin`.
    pub drift: f64,
    /// How far the offset may be off; `None` where messages to and from the first stream do not bound it.
    pub error: Option<Ns>,
}

impl StreamClock {
    /// A time of the stream on the common line.
    pub fn common(&self, local: Ns) -> Ns {
        local + self.offset + self.drifted(local)
    }

    fn drifted(&self, local: Ns) -> Ns {
        if self.drift == 0.0 { 0 } else { (self.drift * (local - self.origin) as f64).round() as Ns }
    }
}

/// Sent by `from` at its time `sent`, there on `to` at its time `received`.
#[derive(Clone, Copy)]
struct TimedMessage {
    from: u32,
    to: u32,
    sent: Ns,
    received: Ns,
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
        (all.first().map_or(0, |o| o.start), all.last().map_or(0, |o| o.end))
    };
    let lives: Vec<(Ns, Ns)> = (0..sequences.len() as u32).map(life).collect();
    let same = |common: StreamClock| lives.iter().map(|l| StreamClock { origin: l.0, ..common }).collect();
    if sequences.len() < 2 || operations.one_clock {
        return same(StreamClock { error: Some(0), ..StreamClock::default() });
    }
    let fit = ClockFit::new(operations, &lives);
    let mut clocks = vec![StreamClock::default(); fit.clocks];
    let edges = fit.smallest(&clocks, |_| true);
    if edges.iter().all(|(_, _, least)| *least >= 0) {
        let bounds = fit.bounds(&clocks, |_| true);
        let error = bounds.into_iter().map(|b| b.and_then(|(offset, error)| Some(offset.abs() + error?))).collect();
        return fit.streams(&clocks, &lives, error);
    }
    let whole = fit.bounds(&clocks, |_| true);
    let open = whole.iter().map(|b| b.and_then(|(_, error)| error)).try_fold(0, |most, e| Some(e?.max(most)));
    let back = least_moves(fit.clocks, &edges);
    let most = back.iter().map(|moved| moved.abs()).max().unwrap_or(0);
    if open.is_none_or(|open| most <= open) {
        let first = back.first().copied().unwrap_or(0);
        clocks.iter_mut().zip(&back).for_each(|(clock, moved)| clock.offset = moved - first);
        let error = whole.iter().zip(&clocks).map(|(bound, clock)| {
            let (middle, error) = (*bound)?;
            Some((middle - clock.offset).abs() + error?)
        });
        return fit.streams(&clocks, &lives, error.collect());
    }
    fit.drifts(&mut clocks);
    let whole = fit.bounds(&clocks, |_| true);
    let error = whole.iter().map(|b| b.and_then(|(_, error)| error)).collect();
    for (clock, bound) in clocks.iter_mut().zip(&whole) {
        clock.offset = bound.map_or(0, |(offset, _)| offset);
    }
    fit.streams(&clocks, &lives, error)
}

/// What each clock must be moved back by so that no message arrives before it was sent: the least that suffices when
/// none is moved forward. A clock that sends must not be ahead of those that receive.
fn least_moves(clocks: usize, edges: &[(u32, u32, Ns)]) -> Vec<Ns> {
    let mut moved: Vec<Ns> = vec![0; clocks];
    for _ in 0..clocks {
        let mut changed = false;
        for (from, to, least) in edges {
            let at_most = moved[*to as usize].saturating_add(*least);
            if moved[*from as usize] > at_most {
                moved[*from as usize] = at_most;
                changed = true;
            }
        }
        if !changed {
            break;
        }
    }
    moved
}

/// The streams, by clock.
struct ClockFit<'a> {
    operations: &'a Operations,
    /// By stream: position of its clock.
    clock_of: Vec<u32>,
    clocks: usize,
    /// By clock: from, to.
    lives: Vec<(Ns, Ns)>,
}

impl<'a> ClockFit<'a> {
    fn new(operations: &'a Operations, lives: &[(Ns, Ns)]) -> Self {
        let mut known: HashMap<u32, u32> = HashMap::default();
        let mut fit = ClockFit { operations, clock_of: Vec::new(), clocks: 0, lives: Vec::new() };
        for (sequence, life) in operations.sequences.iter().zip(lives) {
            let new = fit.clocks as u32;
            let clock = sequence.process.map_or(new, |process| *known.entry(process).or_insert(new));
            match fit.lives.get_mut(clock as usize) {
                Some(whole) if *whole == (0, 0) => *whole = *life,
                Some(whole) if *life != (0, 0) => *whole = (whole.0.min(life.0), whole.1.max(life.1)),
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

    /// From clocks to streams.
    fn streams(&self, clocks: &[StreamClock], lives: &[(Ns, Ns)], error: Vec<Option<Ns>>) -> Vec<StreamClock> {
        let stream = |(clock, life): (&u32, &(Ns, Ns))| {
            let fitted = clocks.get(*clock as usize).copied().unwrap_or_default();
            let error = error.get(*clock as usize).copied().flatten();
            let offset = fitted.offset + fitted.drifted(life.0);
            StreamClock { origin: life.0, offset, error: if *clock == 0 { Some(0) } else { error }, ..fitted }
        };
        self.clock_of.iter().zip(lives).map(stream).collect()
    }

    /// Set the drift of those clocks whose offset is another at the end than at the beginning.
    fn drifts(&self, clocks: &mut [StreamClock]) {
        for (clock, life) in clocks.iter_mut().zip(&self.lives) {
            clock.origin = life.0;
        }
        let third = |f: &TimedMessage| {
            let (start, end) = self.lives[f.from as usize];
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
            if let (Some((before, Some(e0))), Some((after, Some(e1)))) = (early[at], late[at]) {
                let between = (self.lives[at].1 - self.lives[at].0) as f64 * 2.0 / 3.0;
                let drift = (after - before) as f64 / between.max(1.0);
                if (after - before).abs() > e0 + e1 + SMALLEST_DRIFT && drift.abs() < LARGEST_DRIFT {
                    clock.drift = drift;
                }
            }
        }
    }

    /// By ordered pair of clocks: the smallest received minus sent, drift taken off.
    fn smallest(&self, clocks: &[StreamClock], keep: impl Fn(&TimedMessage) -> bool) -> Vec<(u32, u32, Ns)> {
        let operations = self.operations;
        let mut least: HashMap<(u32, u32), Ns> = HashMap::default();
        let mut add = |mut flight: TimedMessage| {
            let of = |stream: u32| self.clock_of.get(stream as usize).copied();
            let (Some(from), Some(to)) = (of(flight.from), of(flight.to)) else { return };
            (flight.from, flight.to) = (from, to);
            let (Some(a), Some(b)) = (clocks.get(from as usize), clocks.get(to as usize)) else { return };
            if from != to && keep(&flight) {
                let between = flight.received + b.drifted(flight.received) - flight.sent - a.drifted(flight.sent);
                let least = least.entry((from, to)).or_insert(between);
                *least = (*least).min(between);
            }
        };
        for m in &operations.messages {
            add(TimedMessage { from: m.from.stream, to: m.to.stream, sent: m.sent, received: m.received });
        }
        // Nobody leaves before all have come: as if the first member sent to and received from each of the others.
        for collective in operations.collectives.iter().filter(|m| m.exchange.all_wait()) {
            let mut members = collective.members.iter().filter_map(|p| Some((p.stream, operations.get(*p)?)));
            let Some((hub, at_hub)) = members.next() else { continue };
            for (member, there) in members {
                add(TimedMessage { from: hub, to: member, sent: at_hub.start, received: there.end });
                add(TimedMessage { from: member, to: hub, sent: there.start, received: at_hub.end });
            }
        }
        let mut edges: Vec<_> = least.into_iter().map(|((from, to), least)| (from, to, least)).collect();
        edges.sort_unstable();
        edges
    }

    /// By clock: what to add to its time, and how far that may be off, which nobody knows where messages only went one
    /// way: then the fastest took no time. `None` for clocks that nothing ties to the first.
    fn bounds(&self, clocks: &[StreamClock], keep: impl Fn(&TimedMessage) -> bool) -> Vec<Option<(Ns, Option<Ns>)>> {
        let edges = self.smallest(clocks, keep);
        let forth = shortest(clocks.len(), edges.iter().copied());
        let back = shortest(clocks.len(), edges.iter().map(|(from, to, least)| (*to, *from, *least)));
        // The clock is ahead of the first by at most the way forth and at least minus the way back.
        let bound = |call_sites: (Option<Way>, Option<Way>)| match call_sites {
            (Some((up, up_edges)), Some((down, down_edges))) => {
                let slack = i128::from(up) + i128::from(down);
                let share = slack * i128::from(up_edges) / i128::from((up_edges + down_edges).max(1));
                Some((share as Ns - up, Some((slack.unsigned_abs() / 2) as Ns)))
            }
            (Some((up, _)), None) => Some((-up, None)),
            (None, Some((down, _))) => Some((down, None)),
            (None, None) => None,
        };
        forth.into_iter().zip(back).map(bound).collect()
    }
}

/// Length of a path, and edges in it.
type Way = (Ns, Ns);

/// Shortest paths from clock 0. Each round lengthens paths by one edge; where clocks contradict
/// each other (drift inside the span looked at) rounds end after as many as there are clocks.
fn shortest(clocks: usize, edges: impl Iterator<Item = (u32, u32, Ns)> + Clone) -> Vec<Option<Way>> {
    let mut best: Vec<Option<Way>> = vec![None; clocks];
    if let Some(first) = best.first_mut() {
        *first = Some((0, 0));
    }
    for _ in 0..clocks {
        let mut changed = false;
        for (from, to, length) in edges.clone() {
            let Some((there, hops)) = best[from as usize] else { continue };
            let found = (there.saturating_add(length), hops + 1);
            if to != 0 && best[to as usize].is_none_or(|known| found.0 < known.0) {
                best[to as usize] = Some(found);
                changed = true;
            }
        }
        if !changed {
            break;
        }
    }
    best
}
