//! The kernel machine: typed events in their total order go in, a
//! [`Timeline`](crate::timeline::Timeline) comes out.
//!
//! It keeps the slots of ALGORITHMS.md 3.1 (the thread and the interrupt context of each CPU; the scheduler's state of
//! each thread) and derives the segments of threads while it steps. Cost: O(1) for each event, a hash look-up where the
//! event names a thread that does not run. Ids of batches are renumbered here, in the order of the events, so the
//! result does not depend on how the events were cut into batches.
//!
//! Contradictions (lost events, damage) never stop it: the event counts, the slot is set from it, and one inconsistency
//! is counted. The modules: `step` (which event changes which slots), `sched` (switch, wake-up, fork ...), `identity`
//! (from thread ids to instances), `label` (the cause of a wait by its wake-up).

use super::copies::Copies;
use super::cpu::Cpus;
use super::functions::Pairs;
use super::handlers::Handlers;
use super::losses::Losses;
use super::packets::Packets;
use super::prepare::WakeChains;
use super::reasons::Reasons;
use super::remarks::{self, BatchRemarks, Found, LastRemarks};
use super::requests::Requests;
use super::sealed_rows::{FilledSlabs, LateChange, SEAL_EVERY, SealMoments};
use super::services::Services;
use super::thread_state::{DescriptionVersion, ThreadState};
use super::threads::Guess;
use crate::base::names::NameId;
use crate::base::notice::{Notice, Notices};
use crate::base::time::Timestamp;
use crate::event::host::{HostId, TraceOrigin};
use crate::event::kind::{Event, TextId, ThreadContextId};
use crate::event::remark::RemarkKind;
use crate::event::stack::{RawStackId, renamed};
use crate::kernel::threads::ThreadTable;
use crate::model::facts::Quality;
use crate::model::wait_kind::{BY_SIGNAL, BY_TRACER, IDLE_EXIT};
use crate::reading::batch::{Batch, BatchNames};
use crate::reading::sources::HostName;
use crate::timeline::store::row_builders::RowBuilders;
use crate::timeline::{Host, SegmentKind, Tables, ThreadId, TimelineDraft};
use foldhash::HashMap;
use smallvec::SmallVec;
use std::collections::BTreeSet;

/// More CPUs than any machine has; a larger number comes from a damaged record.
const MOST_CPUS: u32 = 1 << 14;

/// The state of all threads and CPUs, and the part of the timeline that is known so far.
#[derive(Debug)]
pub struct Machine {
    pub(super) origins: Vec<TraceOrigin>,
    /// By host: true if its kernel was traced.
    pub(super) kernel_traced: Vec<bool>,
    pub(super) handlers: Handlers,
    /// By name of a handler: the kind of wait that it ends, where it was looked up.
    pub(super) handler_kinds: Vec<Option<SegmentKind>>,
    pub(super) out: TimelineDraft,
    /// The rows that no later event changes.
    pub(super) sealed: RowBuilders,
    pub(super) slabs: FilledSlabs,
    /// Changes of sealed segments nevertheless, in their order.
    pub(super) late_changes: Vec<LateChange>,
    pub(super) seal_moments: SealMoments,
    /// Events since rows were sealed.
    pub(super) unsealed_events: usize,
    pub(super) threads: ThreadTable<ThreadState>,
    /// Number of threads that had ended when rows were sealed.
    pub(super) ended: usize,
    pub(super) by_vtid: HashMap<(HostId, i32), SmallVec<[ThreadId; 2]>>,
    /// The threads that seem to have certain ids in user space, by host, thread id and process id.
    pub(super) guesses: HashMap<(HostId, i32, i32), Guess>,
    /// Positions of images by the virtual process id that their events named, where no thread is known to have it.
    pub(super) unclaimed: HashMap<(HostId, i32), Vec<usize>>,
    pub(super) cpus: Cpus,
    pub(super) packets: Packets,
    pub(super) requests: Requests,
    pub(super) services: Services,
    pub(super) copies: Copies,
    pub(super) pairs: Pairs,
    /// Names of interrupt lines.
    pub(super) lines: HashMap<(HostId, i32), NameId>,
    pub(super) reasons: Reasons,
    pub(super) losses: Losses,
    pub(super) last_remarks: LastRemarks,
    /// By host: the CPUs whose switches were recorded; empty where the recording does not show it.
    recorded: Vec<BTreeSet<u32>>,
    /// CPUs that events name and whose switches were not recorded.
    pub(super) unrecorded: BTreeSet<(HostId, u32)>,
    /// The memory in which a batch notes which threads its contexts have described.
    pub(super) spare_described: Vec<Option<Described>>,
    pub(super) start: Option<Timestamp>,
    pub(super) end: Timestamp,
    pub(super) notices: Notices,
}

/// A thread that a context has described.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Described {
    thread: ThreadId,
    version: DescriptionVersion,
}

/// The ids of the timeline for the ids of one batch, filled on first use.
pub(super) struct BatchIds<'b> {
    pub batch: &'b Batch,
    names: BatchNames<'b>,
    stacks: Vec<Option<RawStackId>>,
    /// By context: the thread that it described last.
    described: Vec<Option<Described>>,
    /// The call chains of wake-ups, where no worker has looked for them.
    chains: Option<WakeChains>,
    /// The call chain that was recorded with the next wake-up.
    pub wake_chain: Option<RawStackId>,
}

impl<'b> BatchIds<'b> {
    /// No text and no stack has an id yet.
    pub fn new(batch: &'b Batch) -> BatchIds<'b> {
        BatchIds::in_memory_of(Vec::new(), batch)
    }

    /// No text and no stack has an id yet; the memory of another batch's descriptions is used again.
    pub fn in_memory_of(mut described: Vec<Option<Described>>, batch: &'b Batch) -> BatchIds<'b> {
        described.clear();
        described.resize(batch.contexts(), None);
        let stacks = vec![None; batch.stacks.len()];
        BatchIds { batch, names: BatchNames::new(batch), stacks, described, chains: None, wake_chain: None }
    }

    /// For the machine of a worker: no text has an id yet, stacks have those of the batch.
    pub fn of_worker(batch: &'b Batch) -> BatchIds<'b> {
        let stacks = (0..batch.stacks.len()).map(|at| Some(RawStackId::at(at))).collect();
        BatchIds { stacks, ..BatchIds::new(batch) }
    }

    /// The next event of a kernel trace: the call chain of a wake-up is known then.
    pub fn follow_chains(&mut self, host: HostId, event: &Event) {
        if let Some(chains) = &mut self.chains {
            self.wake_chain = chains.next(host, event);
        }
    }

    /// True if a context has described a thread, and nothing has changed its description since.
    pub fn has_described(&self, who: ThreadContextId, thread: ThreadId, version: DescriptionVersion) -> bool {
        self.described.get(who.index()) == Some(&Some(Described { thread, version }))
    }

    /// A context has described a thread.
    pub fn set_described(&mut self, who: ThreadContextId, thread: ThreadId, version: DescriptionVersion) {
        if let Some(slot) = self.described.get_mut(who.index()) {
            *slot = Some(Described { thread, version });
        }
    }

    pub fn name(&mut self, out: &mut TimelineDraft, id: TextId) -> Option<NameId> {
        self.names.name(&mut out.tables.names, id)
    }

    /// The name of a text that has one already.
    pub fn known_name(&self, id: TextId) -> Option<NameId> {
        self.names.known(id)
    }

    /// The id of a stack that has one already.
    #[inline]
    pub fn known_stack(&self, id: Option<RawStackId>) -> Option<RawStackId> {
        *self.stacks.get(id?.index())?
    }

    /// The ids of the stacks that have one already.
    pub fn stacks(&self) -> &[Option<RawStackId>] {
        &self.stacks
    }

    /// The ids of the stacks once all events were stepped through, and the memory of descriptions.
    pub fn into_parts(self) -> (Vec<Option<RawStackId>>, Vec<Option<Described>>) {
        (self.stacks, self.described)
    }

    pub fn stack(&mut self, out: &mut Tables, id: Option<RawStackId>) -> Option<RawStackId> {
        let id = id?;
        if let Some(known) = *self.stacks.get(id.index())? {
            return Some(known);
        }
        let recorded = self.batch.stacks.get(id);
        // Texts of the batch become names of the recording.
        let mut name = |text: u32| self.names.name(&mut out.names, TextId::from_raw(text)).map(NameId::raw);
        let named: SmallVec<[u64; 128]> =
            recorded.iter().enumerate().map(|(depth, word)| renamed(depth, *word, &mut name)).collect();
        let known = out.stacks.intern(&named);
        *self.stacks.get_mut(id.index())? = Some(known);
        Some(known)
    }
}

impl Machine {
    /// A machine for traces with these origins; hosts in the order of their ids.
    pub fn new(hosts: Vec<HostName>, origins: Vec<TraceOrigin>, handlers: Handlers) -> Machine {
        let mut out = TimelineDraft::default();
        for HostName { name, kernel_release } in hosts {
            let name = out.tables.names.intern(&name);
            out.tables.hosts.push(Host { name, kernel_release });
        }
        let mut reason = |text| out.tables.names.intern(text);
        let reasons = Reasons {
            unresolved: reason("no wake-up recorded"),
            ended: reason("recording ended"),
            unseen: reason("before its first event"),
            lost: reason("events lost"),
            gap: reason("switches missing"),
            untracked: reason("other processes left out"),
            elsewhere: reason("on a CPU that was not recorded"),
            unscheduled: reason("no scheduler events"),
            interrupt: reason("an interrupt that was not recorded"),
            remote: reason("woken from another CPU"),
            signal: reason(BY_SIGNAL),
            tracer: reason(BY_TRACER),
            idle_exit: reason(IDLE_EXIT),
        };
        out.tables.quality = vec![Quality::default(); out.tables.hosts.len()];
        let hosts = (0..out.tables.hosts.len()).map(HostId::at);
        Machine {
            kernel_traced: hosts.clone().map(|host| origins.iter().any(|o| o.kernel && o.host == host)).collect(),
            origins,
            handlers,
            handler_kinds: Vec::new(),
            cpus: Cpus::new(hosts.len()),
            recorded: vec![BTreeSet::new(); hosts.len()],
            out,
            sealed: RowBuilders::default(),
            slabs: FilledSlabs::default(),
            late_changes: Vec::new(),
            seal_moments: SealMoments::every(SEAL_EVERY),
            unsealed_events: 0,
            threads: ThreadTable::default(),
            ended: 0,
            by_vtid: HashMap::default(),
            guesses: HashMap::default(),
            unclaimed: HashMap::default(),
            packets: Packets::default(),
            requests: Requests::default(),
            services: Services::default(),
            copies: Copies::default(),
            pairs: Pairs::default(),
            lines: HashMap::default(),
            losses: Losses::default(),
            last_remarks: LastRemarks::default(),
            unrecorded: BTreeSet::new(),
            reasons,
            spare_described: Vec::new(),
            start: None,
            end: Timestamp::MIN,
            notices: Notices::default(),
        }
    }

    /// The switches of a CPU are recorded. Where no CPU is named all of them are assumed to be.
    pub fn expect_cpu(&mut self, host: HostId, cpu: u32) {
        if let Some(recorded) = self.recorded.get_mut(host.index()) {
            recorded.insert(cpu);
        }
    }

    /// False for a CPU whose switches were not recorded.
    pub(super) fn has_recorded(&self, host: HostId, cpu: u32) -> bool {
        self.recorded.get(host.index()).is_none_or(|all| all.is_empty() || all.contains(&cpu))
    }

    /// False for a CPU whose switches were not recorded; it is remembered for a notice.
    pub(super) fn is_recorded(&mut self, host: HostId, cpu: u32) -> bool {
        let recorded = self.has_recorded(host, cpu);
        if !recorded && cpu < MOST_CPUS {
            self.unrecorded.insert((host, cpu));
        }
        recorded
    }

    /// Step through all events of a batch; batches come in order of time.
    pub fn absorb(&mut self, batch: &Batch) {
        self.packets.drop_unused();
        self.take_remarks(remarks::find(batch, &batch.events, &self.origins));
        // Ids of a batch are not valid in the next one; an event and its stack are always in one chunk.
        let ids = BatchIds::in_memory_of(std::mem::take(&mut self.spare_described), batch);
        let mut ids = BatchIds { chains: Some(WakeChains::default()), ..ids };
        for event in &batch.events {
            if self.seal_moments.holds(event) {
                self.seal_rows();
                if !self.has_room_for_slabs() {
                    self.seal_slabs();
                }
            }
            self.step(event, &mut ids);
            self.unsealed_events += 1;
        }
        self.spare_described = ids.described;
    }

    /// Time of the first event so far.
    pub(super) fn start(&self) -> Timestamp {
        self.start.unwrap_or_default()
    }

    pub(super) fn inconsistent(&mut self, t: Timestamp) {
        self.notices.add(Notice::Inconsistent, 1, || format!("at {t} ns"));
    }

    /// The recording has page faults: they are part of the result.
    pub fn expect_page_faults(&mut self) {
        self.out.page_faults.get_or_insert_default();
    }
}

impl Machine {
    /// Add the remarks of the next batch.
    pub(super) fn take_remarks(&mut self, batch: BatchRemarks) {
        let LastRemarks { priorities, serve_timers } = &mut self.last_remarks;
        self.out.tables.remarks.extend(batch.found.into_iter().filter_map(|Found { remark, if_timers }| {
            let holds = match remark.kind {
                RemarkKind::Priority(now) => priorities.insert((remark.host, remark.tid), now) != Some(now),
                _ => !if_timers || serve_timers.get(&(remark.host, remark.cpu)) == Some(&true),
            };
            holds.then_some(remark)
        }));
        serve_timers.extend(batch.serve_timers);
    }
}
