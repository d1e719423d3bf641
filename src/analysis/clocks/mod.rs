//! Clock correction: a straight line from each host's time to the first host's.
//!
//! In: traces of several hosts, each with its own time. Out: for each clock a correction with the bound of its error,
//! fitted from the packets between the hosts. A pass of its own over the network events (`flights`) matches the packets
//! that left one host and arrived at another; [`line`] fits two clocks; this module joins the pairs: a spanning tree
//! from the clock of the first trace, best pairs first, along which lines are composed and errors add up. Traces of one
//! clock uuid share a clock and need no fit; a clock that shares no packet with the others is left as recorded, with an
//! unknown error. A user-space trace on another clock than the only kernel trace of its host is aligned with that by
//! the CPUs on which its events ran (`users`). Loopback packets are not used. Cost: one reading of the traces with
//! network events, and only if there are two clocks whose hosts may have exchanged packets. ALGORITHMS.md section 4.5.

mod flights;
mod line;
mod users;

use crate::model::clock::HostClock;
pub use line::{FittedCorrection, Points, fit};

use crate::base::ctx::{Cancelled, Ctx};
use crate::base::notice::{Notice, Notices};
use crate::base::time::{ClockCorrection, Ns, Span, Timestamp};
use crate::input::Source;
use crate::reading::bind::is_kernel;
use flights::Flight;
use foldhash::HashMap;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use users::UserRuns;

/// The clocks of some traces: one for each clock uuid, or, without, for each host.
fn clocks(sources: &[Source]) -> Vec<HostClock> {
    let mut known: HashMap<(Option<&str>, &str, &str), usize> = HashMap::default();
    let mut clocks: Vec<HostClock> = Vec::new();
    for (i, source) in sources.iter().enumerate() {
        let host = source.trace.host().unwrap_or("");
        let key = match source.trace.clock_uuid() {
            Some(uuid) => (Some(uuid), "", ""),
            None => (None, host, if source.labelled { source.label.as_str() } else { "" }),
        };
        let at = *known.entry(key).or_insert(clocks.len());
        if at == clocks.len() {
            let correction = ClockCorrection::default();
            let (host, traces) = (host.to_owned(), Vec::new());
            clocks.push(HostClock { host, correction, error: None, beside_kernel: None, packets: 0, traces });
        }
        if let Some(clock) = clocks.get_mut(at) {
            clock.traces.push(i);
        }
    }
    clocks
}

/// From the first packet to the last of a clock's traces.
fn life(sources: &[Source], clock: &HostClock) -> Span {
    let traces = clock.traces.iter().filter_map(|i| sources.get(*i));
    let packets = || traces.clone().flat_map(|s| s.trace.streams()).flat_map(|s| &s.packets);
    let start = packets().filter_map(|p| p.begin).min().unwrap_or_default();
    Span::new(start, packets().filter_map(|p| p.end).max().unwrap_or(start))
}

/// Find the clocks of some traces and align all with the first one: times that are read after this are corrected.
pub fn align(sources: &mut [Source], notices: &mut Notices, ctx: &Ctx) -> Result<Vec<HostClock>, Cancelled> {
    let mut clocks = clocks(sources);
    if let Some(first) = clocks.first_mut() {
        first.error = Some(0);
    }
    if clocks.len() < 2 {
        return Ok(clocks);
    }
    let lives: Vec<Span> = clocks.iter().map(|clock| life(sources, clock)).collect();
    let flights = flights::find(sources, &clocks, &lives, ctx)?;
    let tied = tie_users(sources, &mut clocks, notices, ctx)?;
    join(&mut clocks, &lives, &flights, &tied);
    let fitted = clocks.iter().filter(|c| c.packets > 0);
    let first = fitted.clone().map(|c| format!("{} by {} ns", c.host, c.correction.offset));
    notices.add(Notice::ClocksFitted, fitted.count() as u64, || first.clone().next().unwrap_or_default());
    let early = |flight: &&Flight| flight.received < flight.sent;
    notices.add(Notice::ClockSkew, flights.iter().filter(early).count() as u64, String::new);
    for clock in &clocks {
        for at in clock.traces.iter().filter(|_| clock.correction != ClockCorrection::default()) {
            if let Some(source) = sources.get_mut(*at) {
                source.trace.correct_clocks(clock.correction);
            }
        }
    }
    Ok(clocks)
}

/// The lines between the clocks of user-space traces and those of the only kernel trace of their host, both ways.
fn tie_users(
    sources: &[Source],
    clocks: &mut [HostClock],
    notices: &mut Notices,
    ctx: &Ctx,
) -> Result<BTreeMap<(usize, usize), FittedCorrection>, Cancelled> {
    let traces = |clock: &HostClock, kernel: bool| -> Vec<&crate::input::Trace> {
        let all = clock.traces.iter().filter_map(|at| sources.get(*at)).map(|source| &source.trace);
        all.filter(|trace| is_kernel(trace) == kernel).collect()
    };
    let label =
        |clock: &HostClock| clock.traces.first().and_then(|at| sources.get(*at)).map(|s| (s.labelled, &s.label));
    let same = |a: &HostClock, b: &HostClock| {
        let (a_label, b_label) = (label(a).filter(|l| l.0), label(b).filter(|l| l.0));
        a.host == b.host && !a.host.is_empty() && a_label == b_label
    };
    let mut runs: BTreeMap<usize, UserRuns> = BTreeMap::new();
    let mut tied = BTreeMap::new();
    let mut errors: Vec<Option<Ns>> = vec![None; clocks.len()];
    for (own, clock) in clocks.iter().enumerate().filter(|(_, clock)| traces(clock, true).is_empty()) {
        let kernels =
            clocks.iter().enumerate().filter(|(_, other)| same(clock, other) && !traces(other, true).is_empty());
        let kernels: Vec<usize> = kernels.map(|(at, _)| at).collect();
        let [kernel] = kernels[..] else { continue };
        if let Entry::Vacant(vacant) = runs.entry(kernel) {
            vacant.insert(UserRuns::of(&traces(&clocks[kernel], true), ctx)?);
        }
        let place = || clock.host.clone();
        errors[own] = Some(Ns::MAX);
        match runs.get(&kernel).and_then(|runs| runs.fit(&traces(clock, false))) {
            Some(fitted) => {
                let line = |offset| {
                    let correction = ClockCorrection { origin: Timestamp::ZERO, offset, drift: 0 };
                    FittedCorrection { correction, error: Some(fitted.error), packets: 0 }
                };
                errors[own] = Some(fitted.error);
                tied.insert((own, kernel), line(fitted.offset));
                tied.insert((kernel, own), line(-fitted.offset));
                let place = || format!("{} by {} ns, within {} ns", clock.host, fitted.offset, fitted.error);
                notices.add(Notice::UserClockFitted, 1, place);
            }
            None => notices.add(Notice::UserClockUnbound, 1, place),
        }
    }
    clocks.iter_mut().zip(errors).for_each(|(clock, error)| clock.beside_kernel = error);
    Ok(tied)
}

/// Compose the corrections along a spanning tree of the clocks that packets connect: from the first clock of each
/// connected group, best pairs first.
fn join(
    clocks: &mut [HostClock],
    lives: &[Span],
    flights: &[Flight],
    tied: &BTreeMap<(usize, usize), FittedCorrection>,
) {
    let mut pairs: BTreeMap<(usize, usize), Points> = BTreeMap::new();
    for f in flights {
        let (from, to) = (usize::from(f.from), usize::from(f.to));
        pairs.entry((to, from)).or_default().not_before(f.received, f.sent);
        pairs.entry((from, to)).or_default().not_after(f.sent, f.received);
    }
    let fits: BTreeMap<(usize, usize), FittedCorrection> = pairs
        .into_iter()
        .filter_map(|((own, other), points)| Some(((own, other), fit(points, *lives.get(own)?)?)))
        .chain(tied.iter().map(|(pair, line)| (*pair, *line)))
        .collect();
    let mut inside = vec![false; clocks.len()];
    for root in 0..clocks.len() {
        if inside[root] {
            continue;
        }
        inside[root] = true;
        loop {
            let across = fits.iter().filter(|((own, other), _)| !inside[*own] && inside[*other]);
            // A bounded error before an unknown one, then the smaller error.
            let Some((&(own, other), line)) = across.min_by_key(|(at, l)| (l.error.is_none(), l.error, **at)) else {
                break;
            };
            inside[own] = true;
            let above = clocks[other].clone();
            clocks[own].correction = line.correction.then(above.correction);
            let error = line.error.zip(above.error).map(|(a, b)| a.saturating_add(b));
            // The error is unknown in a group that does not contain the first clock.
            clocks[own].error = error.filter(|_| root == 0);
            clocks[own].packets = line.packets;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock() -> HostClock {
        HostClock {
            host: String::new(),
            correction: ClockCorrection::default(),
            error: None,
            beside_kernel: None,
            packets: 0,
            traces: Vec::new(),
        }
    }

    /// Packets every microsecond between two clocks that are ahead by these offsets; `way` is the transit time.
    fn exchange(flights: &mut Vec<Flight>, (a, ahead): (u16, Ns), (b, ahead_b): (u16, Ns), way: Ns) {
        for t in (0..1_000_000).step_by(1000).map(Timestamp::new) {
            flights.push(Flight { from: a, to: b, sent: t + ahead, received: t + way + ahead_b });
            flights.push(Flight { from: b, to: a, sent: t + ahead_b, received: t + way + ahead });
        }
    }

    #[test]
    fn join_takes_the_better_pairs_and_adds_errors_up() {
        let mut clocks = vec![clock(), clock(), clock(), clock()];
        clocks[0].error = Some(0);
        let lives = vec![Span::of_ns(0, 1_000_000); 4];
        let mut flights = Vec::new();
        // 0 and 2 exchange packets too, but slow ones; 3 exchanges none.
        exchange(&mut flights, (0, 0), (1, 5_000), 10);
        exchange(&mut flights, (1, 5_000), (2, -70_000), 20);
        exchange(&mut flights, (0, 0), (2, -70_000), 4_000);
        join(&mut clocks, &lives, &flights, &BTreeMap::new());
        for (clock, truth) in clocks.iter().zip([500_000, 495_000, 570_000, 500_000]) {
            assert!(clock.correction.apply(Timestamp::new(500_000)).abs_diff(Timestamp::new(truth)) <= 2, "{clock:?}");
        }
        let fitted: Vec<_> = clocks.iter().map(|c| (c.error.is_some(), c.packets)).collect();
        assert_eq!(fitted, [(true, 0), (true, 2000), (true, 2000), (false, 0)]);
        let (one, two) = (clocks[1].error.unwrap(), clocks[2].error.unwrap());
        assert!((10..40).contains(&one) && (one + 20..one + 80).contains(&two), "{one} {two}");
    }
}
