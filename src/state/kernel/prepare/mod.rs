//! The work of the kernel machine that a worker does for its chunk, without the states before it.
//!
//! In: a batch of events in their order. Out: the events that the machine has to step through, and rows of running
//! threads in place of the others ([`Prepared`]). The idea: between two switches of a CPU, most events concern no
//! thread but the one that runs there: calls with entry and exit, stack samples, interruptions in which nothing
//! happens. Their rows are kept with the CPU ([`Lane`]) until an event comes that may ask for the thread or change it:
//! it names the thread's id or the CPU, or it is a switch. Then they are put before that event as one [`RunPart`]. All
//! events that may meet keep their order so, and the machine ends in the same state; where something is not known, the
//! event is left to the machine. ALGORITHMS.md section 10.2.
//!
//! - An event that names a thread puts its rows first; if it may end the thread or move it, the thread is not known
//!   from there to the next switch of its CPU.
//! - A user-space event may ask for any thread by ids that are not known here; all rows come first, unless it only
//!   delimits an execution.
//! - Names and stacks get their ids in the order of all events, whichever are made rows.
//!
//! - [`lane`]: what is known of a CPU
//! - [`follow`]: the events that become rows
//! - [`chains`]: call chains of wake-ups
//!
//! Cost: some nanoseconds for each event, a hash look-up for those that name threads.

mod chains;
mod follow;
mod lane;

#[cfg(test)]
mod tests;

use super::prepared::{Due, DueAt, LaneRows, Prepared};
use super::seal::SealMoments;
use crate::event::host::TraceOrigin;
use crate::event::kind::{Event, Kind, TextId, ThreadContextId};
use crate::event::prev_state::Leaves;
use crate::event::stack::RawStackId;
use crate::reading::batch::Batch;
use crate::state::timeline::HostId;
pub(super) use chains::WakeChains;
use foldhash::HashMap;
use lane::{ContextFit, KnownCall, Lane};

/// The id of idle tasks.
const IDLE: i32 = 0;

/// The effect of an event on a thread whose id it names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NamedBy {
    /// Its state is asked for.
    Reader,
    /// Its ids or its name may change.
    Description,
    /// It may end, or be somewhere else.
    Change,
}

/// A worker at its chunk.
struct Preparation<'b> {
    batch: &'b Batch,
    origins: &'b [TraceOrigin],
    options: PrepareOptions,
    /// The events, those that are left in front.
    events: Vec<Event>,
    /// Number of those that are left.
    left: usize,
    lanes: Vec<Lane>,
    /// By host and CPU.
    lane_ids: Vec<Vec<Option<usize>>>,
    /// The lane of each thread that is known to run.
    running: HashMap<(HostId, i32), usize>,
    /// The calls of threads that do not run.
    calls: HashMap<(HostId, i32), KnownCall>,
    /// By text and stack: it has an id.
    has_name: Vec<bool>,
    has_stack: Vec<bool>,
    chains: WakeChains,
    /// Memory for rows.
    spare_rows: Vec<LaneRows>,
    out: Prepared,
}

/// What a worker has to know of the machine.
#[derive(Clone, Copy, Debug)]
pub(super) struct PrepareOptions {
    /// Delimiters may be entries and exits of functions.
    pub has_pairs: bool,
    pub seal_moments: SealMoments,
}

/// Prepare the events of a batch: those that become rows leave it. `spare` gives its memory.
pub(super) fn prepare(
    batch: &mut Batch,
    origins: &[TraceOrigin],
    options: PrepareOptions,
    mut spare: Prepared,
) -> Prepared {
    let events = std::mem::take(&mut batch.events);
    let hosts = origins.iter().map(|origin| origin.host.index() + 1).max().unwrap_or(0);
    let mut preparation = Preparation {
        batch,
        origins,
        options,
        left: 0,
        lanes: Vec::new(),
        lane_ids: vec![Vec::new(); hosts],
        running: HashMap::default(),
        calls: HashMap::default(),
        has_name: vec![false; batch.texts()],
        has_stack: vec![false; batch.stacks.len()],
        chains: WakeChains::default(),
        spare_rows: std::mem::take(&mut spare.rows),
        out: spare,
        events,
    };
    for at in 0..preparation.events.len() {
        let event = preparation.events[at];
        preparation.next(event);
    }
    preparation.flush_all();
    let Preparation { mut events, left, mut out, lanes, spare_rows, .. } = preparation;
    events.truncate(left);
    batch.events = events;
    out.rows.extend(lanes.into_iter().map(|lane| lane.rows).chain(spare_rows));
    out
}

impl Preparation<'_> {
    fn next(&mut self, event: Event) {
        if self.options.seal_moments.holds(&event) {
            self.flush_all();
            self.due(Due::Seal);
        }
        let Some(origin) = self.origins.get(usize::from(event.trace)).copied() else { return self.leave(event) };
        self.meet_named(origin.host, event.kind);
        if origin.kernel {
            self.kernel(origin, event);
        } else {
            self.user(origin.host, &event);
            self.leave(event);
        }
    }

    /// Leave an event to the machine.
    fn leave(&mut self, event: Event) {
        self.events[self.left] = event;
        self.left += 1;
    }

    fn due(&mut self, due: Due) {
        self.out.due.push(DueAt { at: self.left as u32, due });
    }

    /// Threads that an event of any trace names by their ids.
    fn meet_named(&mut self, host: HostId, kind: Kind) {
        match kind {
            Kind::Wake { tid, .. } | Kind::Namespace { tid, .. } | Kind::Name { tid, .. } => {
                self.meet(host, tid, NamedBy::Description);
            }
            Kind::Fork { parent, child, .. } => {
                self.meet(host, parent, NamedBy::Reader);
                self.meet(host, child, NamedBy::Change);
            }
            Kind::Exec { tid, old_tid, .. } => {
                self.meet(host, tid, NamedBy::Change);
                self.meet(host, old_tid, NamedBy::Change);
            }
            Kind::Exit { tid } | Kind::Free { tid } => self.meet(host, tid, NamedBy::Change),
            Kind::Process(id) => {
                if let Some(process) = self.batch.process_of(id) {
                    self.meet(host, process.tid, NamedBy::Change);
                }
            }
            // The names of interrupt lines are looked up when rows are added.
            Kind::Line { .. } => self.flush_all(),
            _ => {}
        }
    }

    fn meet(&mut self, host: HostId, tid: i32, by: NamedBy) {
        if by == NamedBy::Change {
            self.calls.remove(&(host, tid));
        }
        let Some(lane) = self.running.get(&(host, tid)).copied() else { return };
        self.flush(lane);
        match by {
            NamedBy::Reader => {}
            NamedBy::Description => self.lanes[lane].describe_anew(TextId::NONE),
            NamedBy::Change => self.end(lane),
        }
    }

    /// The thread of a lane is not known any more.
    fn end(&mut self, lane: usize) {
        self.flush(lane);
        let of = &mut self.lanes[lane];
        if let Some(tid) = of.tid {
            self.running.remove(&(of.host, tid));
        }
        of.end();
    }

    /// A user-space event.
    fn user(&mut self, host: HostId, event: &Event) {
        if !matches!(event.kind, Kind::Mark(_)) || self.options.has_pairs {
            self.flush_all();
            if matches!(event.kind, Kind::CallEntry { .. } | Kind::CallExit { .. } | Kind::Latency { .. }) {
                self.calls.clear();
                self.lanes.iter_mut().for_each(|lane| lane.call = KnownCall::Unknown);
            }
            return;
        }
        // The thread that runs on its CPU and the one that has its id: are they programs?
        if let Some(lane) = self.lane_ids[host.index()].get(usize::from(event.cpu)).copied().flatten() {
            self.flush(lane);
        }
        let context = self.batch.context(event.who);
        if let Some(tid) = context.and_then(|context| context.vtid.or(context.tid)) {
            self.meet(host, tid, NamedBy::Reader);
        }
    }

    fn lane(&mut self, host: HostId, cpu: u16) -> usize {
        let ids = &mut self.lane_ids[host.index()];
        let at = usize::from(cpu);
        if ids.len() <= at {
            ids.resize(at + 1, None);
        }
        *ids[at].get_or_insert_with(|| {
            self.lanes.push(Lane::new(host, cpu, self.spare_rows.pop().unwrap_or_default()));
            self.lanes.len() - 1
        })
    }

    /// An event of a kernel trace.
    fn kernel(&mut self, origin: TraceOrigin, event: Event) {
        let host = origin.host;
        let lane = self.lane(host, event.cpu);
        let chain = self.chains.next(host, &event);
        let batch = self.batch;
        let context = batch.context(event.who);
        let fit = self.lanes[lane].fit(event.who, context);
        let is_switch = matches!(event.kind, Kind::Switch { .. });
        match (fit, context) {
            (ContextFit::Other, Some(context)) => {
                let tid = context.tid.unwrap_or(0);
                if is_switch || matches!(event.kind, Kind::Stack { witness: false, .. }) {
                    self.meet(host, tid, NamedBy::Description);
                } else {
                    // Another thread seems to run here.
                    self.meet(host, tid, NamedBy::Change);
                    self.end(lane);
                }
            }
            (ContextFit::Changed, Some(context)) => {
                self.flush(lane);
                self.lanes[lane].describe(event.who, context);
                self.lanes[lane].change_context(event.kind);
            }
            _ => {
                let is_known = self.lanes[lane].tid.is_some() && !is_switch;
                if is_known && self.follow(lane, &event, fit) {
                    return;
                }
            }
        }
        if let Kind::Switch { prev, next, .. } = event.kind {
            self.leave_elsewhere(host, lane, [prev, next]);
        }
        self.leave_kernel(lane, origin, event, fit, chain);
    }

    /// A switch of a lane names threads: they run nowhere else.
    fn leave_elsewhere(&mut self, host: HostId, lane: usize, tids: [i32; 2]) {
        for tid in tids {
            if self.running.get(&(host, tid)).is_some_and(|other| *other != lane) {
                self.meet(host, tid, NamedBy::Change);
            }
        }
    }

    /// Leave an event of a kernel trace to the machine, after what it may need of the worker.
    fn leave_kernel(
        &mut self,
        lane: usize,
        origin: TraceOrigin,
        event: Event,
        fit: ContextFit,
        chain: Option<RawStackId>,
    ) {
        let is_known = self.lanes[lane].tid.is_some();
        if is_known {
            self.need_rows(lane, event.kind);
        }
        if let Some(stack) = chain {
            self.due(Due::WakeChain(stack));
        }
        let mut who = event.who;
        if is_known && !matches!(event.kind, Kind::Switch { .. } | Kind::Stack { witness: false, .. }) {
            let of = &mut self.lanes[lane];
            match (fit, self.batch.context(who)) {
                (ContextFit::Known, _) => who = ThreadContextId::CONFIRMED,
                (ContextFit::New, Some(context)) => of.describe(who, context),
                _ => {}
            }
            of.learn_call(&event);
        }
        self.leave(Event { who, ..event });
        match event.kind {
            Kind::Switch { .. } => self.switch(lane, origin, event),
            Kind::Lost { .. } => self.end(lane),
            // It counts after its own context.
            Kind::Wake { tid, .. } | Kind::Namespace { tid, .. } | Kind::Name { tid, .. }
                if self.lanes[lane].tid == Some(tid) =>
            {
                self.lanes[lane].describe_anew(TextId::NONE);
            }
            _ => {}
        }
    }

    /// Put the rows of a lane before an event that is left, where it may need them.
    fn need_rows(&mut self, lane: usize, kind: Kind) {
        match kind {
            Kind::Mark(_) if self.options.has_pairs => self.flush_all(),
            // These need neither its calls nor its contexts.
            Kind::Mark(_)
            | Kind::Counter { .. }
            | Kind::PageFault
            | Kind::Raise { .. }
            | Kind::Migrate { .. }
            | Kind::Mapped { .. }
            | Kind::Exit { .. }
            | Kind::Free { .. }
            | Kind::Process(_)
            | Kind::Namespace { .. }
            | Kind::Name { .. } => {}
            // These need its contexts alone.
            Kind::Send(_) | Kind::Receive(_) | Kind::Block { .. } | Kind::Work { .. } => {
                if !self.lanes[lane].held.is_empty() {
                    self.flush(lane);
                }
            }
            _ => self.flush(lane),
        }
    }

    /// A switch: the thread that leaves, and the one that comes, is known from here on.
    fn switch(&mut self, lane: usize, origin: TraceOrigin, event: Event) {
        let Kind::Switch { prev, next, prev_state, next_name, .. } = event.kind else { return };
        let host = origin.host;
        let of = &self.lanes[lane];
        let dies = [false, true].iter().any(|exited| origin.generation.decode(prev_state, *exited) == Leaves::Dead);
        // On a CPU an id names the thread that runs there, even one that ended and whose id a later thread has.
        let is_latest = next != prev && of.tid.is_some_and(|running| running != next);
        let kept = self.calls.remove(&(host, next)).filter(|_| is_latest);
        self.calls.remove(&(host, prev));
        // Nothing is pending. What the thread that leaves has raised is known, and stays raised.
        if let Some(tid) = of.tid {
            self.running.remove(&(host, tid));
        }
        let is_kept = of.tid == Some(prev) && of.is_latest && ![IDLE, next].contains(&prev) && !dies;
        if is_kept && of.call != KnownCall::Unknown {
            self.calls.insert((host, prev), of.call);
        }
        self.lanes[lane].begin(next, next_name, is_latest, kept.unwrap_or_default());
        if next != IDLE {
            self.running.insert((host, next), lane);
        }
    }

    fn need_name(&mut self, name: TextId) {
        if let Some(has_name) = self.has_name.get_mut(name.index())
            && !std::mem::replace(has_name, true)
        {
            self.due(Due::Name(name));
        }
    }

    fn need_stack(&mut self, stack: RawStackId) {
        if let Some(has_stack) = self.has_stack.get_mut(stack.index())
            && !std::mem::replace(has_stack, true)
        {
            self.due(Due::Stack(stack));
        }
    }

    fn flush_all(&mut self) {
        (0..self.lanes.len()).for_each(|lane| self.flush(lane));
    }

    /// Put the rows of a lane, then the events that it holds, before the next event that is left.
    fn flush(&mut self, lane: usize) {
        let of = &mut self.lanes[lane];
        if of.pending.events == 0 && of.pending.contexts.is_empty() && of.held.is_empty() {
            return;
        }
        if of.pending.events > 0 || !of.pending.contexts.is_empty() {
            self.out.parts.push(of.take_part(lane));
            self.out.due.push(DueAt { at: self.left as u32, due: Due::Part });
        }
        let held = std::mem::take(&mut self.lanes[lane].held);
        held.into_iter().for_each(|event| self.leave(event));
    }
}
