//! The use of a run's ranks: POP's efficiencies, the critical path through ranks and regions, and time by region and
//! rank.
//!
//! In: the activities of streams, and their waits. The window is the run between starting up and shutting down
//! (`MPI_Init`, `MPI_Finalize`). Definitions, those of the POP Centre of Excellence; useful is time in the program's
//! own code, and the ideal length is that of the replay on an ideal network (`replay`):
//!
//! ```text
//! load balance  = mean useful / largest useful         serialisation = largest useful / ideal length
//! transfer      = ideal length / length                communication = serialisation x transfer
//! parallel efficiency = load balance x communication   = mean useful / length
//! ```
//! The critical path goes back from the end: through the activities of a stream, and from a wait to its cause. Cost:
//! linear.

use super::profile::{Region, RegionSum, RegionSums, Streams};
use super::strip::Cells;
use super::wait_states::RankWait;
use crate::base::ctx::{Cancel, Cancelled, Ctx};
use crate::base::parallel::in_order;
use crate::base::time::{Ns, Span, Timestamp};
use crate::event::operation::{Operations, Sequence};
use crate::model::wait_state::WaitState;
use crate::model::waiting::Efficiency;
use foldhash::HashMap;

/// Time of one region by stream.
#[derive(Clone, Debug, PartialEq)]
pub struct RegionProfile {
    pub region: Region,
    /// The streams that visited it in order, each with its time.
    pub by_stream: Vec<(u32, Ns)>,
    /// The visits of all streams.
    pub visits: u64,
}

/// Time of one region of one stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegionShare {
    /// Position of the stream.
    pub stream: u32,
    pub region: Region,
    pub ns: Ns,
}

/// Useful time of the ranks' masters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UsefulTotals {
    pub mean_ns: Ns,
    /// The largest.
    pub most_ns: Ns,
}

impl UsefulTotals {
    /// POP's efficiencies of a run of a length, which on an ideal network is `ideal_ns` long; `None` where the program
    /// computed nothing.
    pub fn efficiency(self, length: Ns, ideal_ns: Ns) -> Option<Efficiency> {
        let ratio = |a: Ns, b: Ns| if b > 0 { (a as f64 / b as f64).min(1.0) } else { 0.0 };
        let load_balance = (self.most_ns > 0).then(|| ratio(self.mean_ns, self.most_ns))?;
        let (serialisation, transfer) = (ratio(self.most_ns, ideal_ns), ratio(ideal_ns, length));
        let communication = serialisation * transfer;
        let parallel = load_balance * communication;
        Some(Efficiency { parallel, load_balance, communication, serialisation, transfer, ideal_ns })
    }
}

/// Result of [`measure`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EfficiencyAnalysis {
    /// Extent of the analysis.
    pub window: Span,
    /// Useful time.
    pub useful: UsefulTotals,
    /// Useful regions, by time.
    pub regions: Vec<RegionProfile>,
    /// Useful time on the critical path by stream and region, longest first.
    pub critical_path: Vec<RegionShare>,
    /// Useful time by stream and cell of the window.
    pub computed: Vec<Vec<Ns>>,
}

/// The time from the end of the last start-up to the begin of the first shutdown.
pub fn window(streams: &Streams<'_>) -> Span {
    let operations = streams.operations();
    let call = |o: u32, s: u32, word: &str| {
        let operation = operations.sequences[s as usize].operations.get(o as usize)?;
        operations.names.get(operation.symbol).starts_with(word).then_some(operation)
    };
    let (mut begin, mut end) = (Timestamp::MAX, Timestamp::MIN);
    let (mut started, mut finishing) = (Timestamp::MIN, Timestamp::MAX);
    for (s, sequence) in (0_u32..).zip(&operations.sequences).filter(|(_, q)| !q.worker && !q.operations.is_empty()) {
        let n = sequence.operations.len() as u32;
        let (first, last) = (sequence.operations.first(), sequence.operations.last());
        begin = begin.min(first.map_or(Timestamp::MAX, |o| streams.common(s, o.start)));
        end = end.max(last.map_or(Timestamp::MIN, |o| streams.common(s, o.end)));
        let init = (0..n.min(AT_ENDS)).find_map(|o| call(o, s, "MPI_Init"));
        started = started.max(init.map_or(Timestamp::MIN, |o| streams.common(s, o.end)));
        let finalize = (n.saturating_sub(AT_ENDS)..n).find_map(|o| call(o, s, "MPI_Finalize"));
        finishing = finishing.min(finalize.map_or(Timestamp::MAX, |o| streams.common(s, o.start)));
    }
    let (from, to) = (begin.max(started), end.min(finishing));
    if from < to { Span::new(from, to) } else { Span::new(begin.min(end), end.max(begin)) }
}

/// The number of operations at each end of a stream among which start-up and shutdown are searched.
const AT_ENDS: u32 = 64;

/// The master threads of processes, which worker threads follow.
fn ranks(operations: &Operations) -> impl Iterator<Item = (u32, &Sequence)> {
    (0_u32..).zip(&operations.sequences).filter(|(_, s)| !s.worker && !s.operations.is_empty())
}

/// Useful time, regions and critical path of a [`window`].
pub fn measure(
    streams: &Streams<'_>,
    window: Span,
    waits: &[RankWait],
    ctx: &Ctx,
) -> Result<EfficiencyAnalysis, Cancelled> {
    let mut measured = EfficiencyAnalysis { window, ..EfficiencyAnalysis::default() };
    let mut regions: HashMap<Region, RegionProfile> = HashMap::default();
    let (mut useful, mut most, mut n) = (0, 0, 0);
    let sequences = &streams.operations().sequences;
    let useful_time = |stream: usize| UsefulTime::of(streams, stream as u32, window);
    in_order(ctx, sequences.len(), useful_time, |stream, time| {
        let sequence = &sequences[stream];
        let stream = stream as u32;
        measured.computed.push(time.cells);
        for (region, sum) in time.regions {
            let new = RegionProfile { region, by_stream: Vec::new(), visits: 0 };
            let profile = regions.entry(region).or_insert(new);
            profile.by_stream.push((stream, sum.ns));
            profile.visits += u64::from(sum.count);
        }
        if !sequence.worker && !sequence.operations.is_empty() {
            useful += time.ns;
            most = most.max(time.ns);
            n += 1;
        }
    })?;
    measured.regions = regions.into_values().collect();
    let whole = |r: &RegionProfile| r.by_stream.iter().map(|(_, ns)| ns).sum::<Ns>();
    measured.regions.sort_by_key(|r| (std::cmp::Reverse(whole(r)), r.region));
    measured.critical_path = critical_path(streams, waits, window, &ctx.cancel);
    measured.useful = UsefulTotals { mean_ns: if n > 0 { useful / n } else { 0 }, most_ns: most };
    Ok(measured)
}

/// The useful time of one stream in a window.
struct UsefulTime {
    ns: Ns,
    regions: Vec<(Region, RegionSum)>,
    /// By cell of the window.
    cells: Vec<Ns>,
}

impl UsefulTime {
    fn of(streams: &Streams<'_>, stream: u32, window: Span) -> UsefulTime {
        let mut ns = 0;
        let mut cells = Cells::new(window);
        let mut sums = RegionSums::new(streams.operations());
        streams.back(stream, window).each_down_to(0, |activity| {
            if streams.is_useful(&activity) {
                ns += activity.span.len();
                cells.add(activity.span);
                sums.add(&activity);
            }
        });
        UsefulTime { ns, regions: sums.iter().collect(), cells: cells.sums }
    }
}

/// Useful time along the critical path of a window.
fn critical_path(streams: &Streams<'_>, waits: &[RankWait], window: Span, cancel: &Cancel) -> Vec<RegionShare> {
    let end = |(s, q): (u32, &Sequence)| {
        let last = q.operations.partition_point(|o| streams.common(s, o.start) < window.end).checked_sub(1)?;
        Some((streams.common(s, q.operations.get(last)?.end), std::cmp::Reverse(s)))
    };
    let Some((_, std::cmp::Reverse(mut stream))) = ranks(streams.operations()).filter_map(end).max() else {
        return Vec::new();
    };
    let mut at = window.end;
    let mut by_region: HashMap<(u32, Region), Ns> = HashMap::default();
    'streams: while at > window.start && !cancel.is_cancelled() {
        for activity in streams.back(stream, Span::new(window.start, at)) {
            if streams.is_useful(&activity) {
                *by_region.entry((stream, activity.region)).or_default() += activity.span.len();
            }
            if activity.kind.waits() {
                let place = (stream, activity.event / 2);
                let first = waits.partition_point(|w| (w.place.stream, w.place.operation) < place);
                let of_place = waits[first..].iter().take_while(|w| (w.place.stream, w.place.operation) == place);
                let long = |w: &&RankWait| w.kind != WaitState::Completion && w.cause.stream != stream && w.until < at;
                if let Some(wait) = of_place.filter(long).max_by_key(|w| w.until) {
                    (stream, at) = (wait.cause.stream, wait.until);
                    continue 'streams;
                }
            }
        }
        break;
    }
    let mut path: Vec<_> =
        by_region.into_iter().map(|((stream, region), ns)| RegionShare { stream, region, ns }).collect();
    path.sort_by_key(|s: &RegionShare| (std::cmp::Reverse(s.ns), s.stream, s.region));
    path
}
