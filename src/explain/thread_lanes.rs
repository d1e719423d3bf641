//! The states of many threads over time, from the state history.
//!
//! In: a history, and which threads in which time. Out: [`ThreadLanes`]. First the nodes and leaves that meet the time
//! say who was active in it: time on a CPU, ready for one, or waiting for a disk. The busiest threads have lanes of
//! their own, those of one process share one where there are more than fit, and all others share the last. Then the
//! same nodes and leaves give the cells: a node is taken as a whole where it is inside a column and its lines are in
//! one lane. Sums are exact. Cost: twice the nodes and leaves that meet the time, and a sort of the threads that live
//! in it; lanes of CPUs cost the runs of these.

use crate::analysis::leaders::Leaders;
use crate::analysis::stacks::stack_of_sample;
use crate::base::column_grid::ColumnGrid;
use crate::base::ctx::{Cancelled, Ctx};
use crate::base::names::Names;
use crate::base::notice::Notices;
use crate::base::parallel::in_order;
use crate::base::time::{Span, Timestamp};
use crate::event::host::HostId;
use crate::model::execution_timeline::TimelineThread;
use crate::model::thread_lanes::{
    CellTimes, KINDS, LaneOwner, LaneThread, LanesRequest, ThreadLane, ThreadLanes, ThreadMoment, is_active,
};
use crate::model::wait_kind::SegmentKind;
use crate::symbols::StackResolver;
use crate::symbols::cache::SymbolCache;
use crate::symbols::files::SymbolPaths;
use crate::symbols::images::Spaces;
use crate::timeline::history::{Slots, StateHistory};
use crate::timeline::questions::Asker;
use crate::timeline::window::{LaneQuestion, LaneTable, StateSet};
use crate::timeline::{StackSample, Thread, ThreadId, Timeline};
use foldhash::{HashMap, HashSet};
use std::cmp::Reverse;
use std::sync::Arc;

/// A history, and the first threads of its processes.
#[derive(Clone, Copy)]
pub struct LaneSource<'h> {
    pub history: &'h StateHistory,
    pub leaders: &'h Leaders,
}

/// What names the functions of single samples: the images of processes, and the symbols of their files.
#[derive(Debug)]
pub struct MomentSymbols {
    places: SymbolPaths,
    spaces: Spaces,
    symbols: Arc<SymbolCache>,
}

impl MomentSymbols {
    /// Of a timeline; no file is read before it is asked for.
    pub fn new(timeline: &Timeline, places: SymbolPaths) -> MomentSymbols {
        let symbols = places.known.clone().unwrap_or_default();
        let spaces = Spaces::with_code(timeline.images(), &places, &symbols);
        MomentSymbols { places, spaces, symbols }
    }

    /// The functions of the program on the stack of a sample, outermost first.
    fn functions(
        &self,
        history: &StateHistory,
        thread: ThreadId,
        sample: &StackSample,
        ctx: &Ctx,
    ) -> Result<Vec<String>, Cancelled> {
        let timeline = history.timeline();
        let Some(stack) = stack_of_sample(timeline, &self.spaces, thread, sample).user else { return Ok(Vec::new()) };
        let (mut names, mut unreported) = (Names::default(), Notices::default());
        let resolver = StackResolver::new(timeline, &self.spaces, &self.places, &self.symbols);
        let frames = resolver.resolve(&[stack], &mut names, &mut unreported, ctx)?;
        let known = frames.iter().flatten().filter(|frame| !frame.folded);
        Ok(known.map(|frame| names.get(frame.name).to_owned()).collect())
    }
}

/// The threads of a lane; all others are in the last one.
struct ChosenLanes {
    lanes: Vec<Vec<u32>>,
    others: Vec<u32>,
}

impl LaneSource<'_> {
    /// The lanes that a request asks for.
    pub fn lanes(self, request: &LanesRequest, ctx: &Ctx) -> Result<ThreadLanes, Cancelled> {
        let of_ranks = self.history.timeline().is_of_ranks();
        let grid = ColumnGrid::of(request.span.clip(self.history.window()), request.columns);
        ctx.progress.enter("threads", 0);
        let living = self.living(request, grid.whole());
        let activity = self.activity(&living, grid.whole(), ctx)?;
        let chosen = self.choose(request, living, &activity);
        let mut lanes = if request.cpus { self.cpus(&grid, ctx)? } else { Vec::new() };
        lanes.extend(self.cells(chosen, &grid, ctx)?);
        let (hosts, recorded) = (self.history.timeline().hosts().len(), self.history.window());
        Ok(ThreadLanes { grid, of_ranks, hosts, recorded, lanes })
    }

    fn thread(&self, number: u32) -> Option<&Thread> {
        self.history.timeline().thread(ThreadId::from_raw(number))
    }

    /// The threads that live in a span and have a word of the request.
    fn living(&self, request: &LanesRequest, span: Span) -> Vec<u32> {
        let timeline = self.history.timeline();
        let name = |thread: &Thread| thread.name_at(span.end).map_or("", |name| timeline.names().get(name));
        let has = |thread: &Thread, word: &String| match word.parse::<i32>() {
            Ok(id) => id == thread.tid || id == thread.pid || timeline.is_of_ranks() && name(thread) == word,
            Err(_) => {
                name(thread).contains(word.as_str())
                    || name(self.leaders.of(timeline, thread, span.end)).contains(word.as_str())
            }
        };
        let is_wanted = |thread: &Thread| {
            let is_alive = !thread.idle && !thread.life.clip(span).is_empty();
            is_alive && (request.only.is_empty() || request.only.iter().any(|word| has(thread, word)))
        };
        timeline.threads_by_id().filter(|(_, thread)| is_wanted(thread)).map(|(id, _)| id.raw()).collect()
    }

    /// The time in which each thread of some is active.
    fn activity(&self, of: &[u32], span: Span, ctx: &Ctx) -> Result<Vec<u64>, Cancelled> {
        let timeline = self.history.timeline();
        let mut lanes = vec![LaneTable::NONE; timeline.threads().len()];
        for number in of {
            lanes[*number as usize] = *number;
        }
        let kinds = SegmentKind::ALL.into_iter().filter(|kind| is_active(*kind, timeline.is_of_ranks()));
        let active = StateSet::of(kinds.map(|kind| kind as usize));
        let slots = Slots { count: lanes.len(), lanes: lanes.len(), of: |lane, _, _| lane };
        let (grid, lanes) = (&ColumnGrid::of(span, 1), &LaneTable::new(lanes));
        self.history.lane_times(&LaneQuestion { grid, lanes, states: active }, &slots, ctx)
    }

    /// Which threads have which lane.
    fn choose(&self, request: &LanesRequest, mut living: Vec<u32>, activity: &[u64]) -> ChosenLanes {
        let most = request.most.max(2);
        let first = self.first(request, &living);
        let room = most.saturating_sub(first.len()).max(1);
        let is_first: HashSet<u32> = first.iter().copied().collect();
        living.retain(|number| !is_first.contains(number));
        let active = |number: u32| activity.get(number as usize).copied().unwrap_or(0);
        if !self.history.timeline().is_of_ranks() || living.len() > room {
            living.sort_by_key(|number| (Reverse(active(*number)), *number));
        }
        let mut lanes: Vec<Vec<u32>> = first.into_iter().map(|number| vec![number]).collect();
        if living.len() <= room {
            lanes.extend(living.into_iter().map(|number| vec![number]));
            return ChosenLanes { lanes, others: Vec::new() };
        }
        let process = |number: u32| self.thread(number).map(|thread| (thread.host, thread.pid));
        let mut places: HashMap<Option<(HostId, i32)>, usize> = HashMap::default();
        let mut processes: Vec<(u64, Vec<u32>)> = Vec::new();
        for number in &living {
            let place = *places.entry(process(*number)).or_insert(processes.len());
            if place == processes.len() {
                processes.push((0, Vec::new()));
            }
            processes[place].0 += active(*number);
            processes[place].1.push(*number);
        }
        // Lanes that processes leave are those of the busiest threads.
        let spare = room.saturating_sub(processes.len());
        let open: HashSet<_> = request.open.iter().map(|number| process(*number)).collect();
        let busiest = living.iter().filter(|number| active(**number) > 0).take(spare);
        let own: HashSet<u32> = busiest.copied().collect();
        processes.sort_by_key(|(active, threads)| (Reverse(*active), threads.first().copied()));
        let mut folded: Vec<Vec<u32>> = Vec::new();
        for (_, threads) in processes {
            let is_open = threads.first().is_some_and(|number| open.contains(&process(*number)));
            let (own, rest): (Vec<u32>, Vec<u32>) =
                threads.into_iter().partition(|number| is_open || own.contains(number));
            folded.extend(own.into_iter().map(|number| vec![number]));
            folded.extend((!rest.is_empty()).then_some(rest));
        }
        let others = if folded.len() > room { folded.split_off(room - 1) } else { Vec::new() };
        lanes.extend(folded);
        if self.history.timeline().is_of_ranks() {
            lanes.sort();
        }
        ChosenLanes { lanes, others: others.concat() }
    }

    /// The threads that a request names for lanes of their own, those of causes first.
    fn first(&self, request: &LanesRequest, living: &[u32]) -> Vec<u32> {
        let timeline = self.history.timeline();
        let host =
            |thread: &Thread| timeline.hosts().get(thread.host.index()).map(|host| timeline.names().get(host.name));
        let is_cause = |number: &u32, (of, tid): &(String, i32)| {
            self.thread(*number).is_some_and(|thread| thread.tid == *tid && host(thread).is_none_or(|name| name == of))
        };
        let causes = request.causes.iter();
        let mut first: Vec<u32> =
            causes.flat_map(|cause| living.iter().filter(|number| is_cause(number, cause)).copied()).collect();
        first.extend(request.own.iter().filter(|number| living.binary_search(number).is_ok()));
        let mut seen = HashSet::default();
        first.retain(|number| seen.insert(*number));
        first.truncate(request.most.max(2) - 1);
        first
    }

    /// The cells of all lanes.
    fn cells(&self, chosen: ChosenLanes, grid: &ColumnGrid, ctx: &Ctx) -> Result<Vec<ThreadLane>, Cancelled> {
        let ChosenLanes { mut lanes, others } = chosen;
        let named = lanes.len();
        lanes.extend((!others.is_empty()).then_some(others));
        let mut table = vec![LaneTable::NONE; self.history.timeline().threads().len()];
        for (lane, threads) in (0_u32..).zip(&lanes) {
            threads.iter().for_each(|number| table[*number as usize] = lane);
        }
        let columns = grid.columns();
        let slots = Slots {
            count: lanes.len() * columns * KINDS,
            lanes: lanes.len(),
            of: |lane: usize, column: usize, kind: usize| (lane * columns + column) * KINDS + kind,
        };
        let asked = LaneQuestion { grid, lanes: &LaneTable::new(table), states: StateSet::ALL };
        let sums = self.history.lane_times(&asked, &slots, ctx)?;
        let mut cells = sums.as_chunks::<KINDS>().0.chunks(columns.max(1)).map(<[CellTimes]>::to_vec);
        let lane = |(at, threads): (usize, Vec<u32>)| {
            let first = threads.first().copied().unwrap_or(0);
            let owner = match threads.len() {
                count if at >= named => LaneOwner::Others { threads: count },
                1 => LaneOwner::Thread(self.named(first, grid.whole().end)),
                count => LaneOwner::Process { first: self.named(first, grid.whole().end), threads: count },
            };
            ThreadLane { owner, cells: cells.next().unwrap_or_default() }
        };
        Ok(lanes.into_iter().enumerate().map(lane).collect())
    }

    /// The use of each CPU.
    fn cpus(&self, grid: &ColumnGrid, ctx: &Ctx) -> Result<Vec<ThreadLane>, Cancelled> {
        let timeline = self.history.timeline();
        let cpus: Vec<(HostId, u32)> = timeline.cpus().collect();
        let is_idle = |thread: ThreadId| timeline.thread(thread).is_none_or(|thread| thread.idle);
        let lane = |at: usize| {
            let (host, cpu) = cpus.get(at).copied()?;
            let mut cells = vec![[0; KINDS]; grid.columns()];
            let reader = timeline.reader(Asker::History);
            let runs = reader.runs(host, cpu).within(grid.whole());
            for run in runs.filter(|run| !is_idle(run.thread)) {
                for (column, ns) in grid.parts(run.span.start.ns()..run.span.end.ns()) {
                    cells[column][SegmentKind::Running as usize] += ns;
                }
            }
            let host = timeline.hosts().get(host.index()).map_or("", |host| timeline.names().get(host.name)).to_owned();
            Some(ThreadLane { owner: LaneOwner::Cpu { host, cpu }, cells })
        };
        let mut lanes = Vec::new();
        in_order(ctx, cpus.len(), lane, |_, lane| lanes.extend(lane))?;
        Ok(lanes)
    }

    /// A thread with its names at a moment.
    fn named(&self, number: u32, at: Timestamp) -> LaneThread {
        let timeline = self.history.timeline();
        let name = |name| timeline.names().get(name).to_owned();
        let names = self.thread(number).map_or_else(TimelineThread::default, |thread| TimelineThread {
            host: timeline.hosts().get(thread.host.index()).map_or_else(String::new, |host| name(host.name)),
            process: self.leaders.of(timeline, thread, at).name_at(at).map_or_else(String::new, name),
            name: thread.name_at(at).map_or_else(String::new, name),
            pid: thread.pid,
            tid: thread.tid,
        });
        LaneThread { number, names }
    }

    /// What a thread does at a moment; `None` outside of its life. Its functions where `symbols` name them.
    pub fn moment(
        self,
        number: u32,
        at: Timestamp,
        symbols: Option<&MomentSymbols>,
        ctx: &Ctx,
    ) -> Result<Option<ThreadMoment>, Cancelled> {
        let timeline = self.history.timeline();
        let reader = timeline.reader(Asker::History);
        let thread = ThreadId::from_raw(number);
        let Some(segment) = reader.segments(thread).at(at) else { return Ok(None) };
        let call = reader.calls(thread).last_begun(at).filter(|call| call.span.end > at);
        // The stack with which it entered the call in which it waits is recorded before the wait.
        let since = call.map_or(segment.span.start, |call| call.span.start.min(segment.span.start));
        let sample = reader.samples(thread).last_begun(at).filter(|sample| sample.time >= since);
        let functions = match (sample, symbols) {
            (Some(sample), Some(symbols)) => symbols.functions(self.history, thread, &sample, ctx)?,
            _ => Vec::new(),
        };
        let text = |name| timeline.names().get(name).to_owned();
        Ok(Some(ThreadMoment {
            thread: self.named(number, at),
            span: segment.span,
            kind: segment.kind,
            qualifier: segment.qualifier.map_or_else(String::new, text),
            cpu: segment.known_cpu(),
            call: call.map_or_else(String::new, |call| text(call.name)),
            functions,
            waker: segment.waker.map(|waker| (self.named(waker.thread.raw(), waker.at), waker.at)),
        }))
    }
}
