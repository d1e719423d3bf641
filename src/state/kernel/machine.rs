//! The kernel machine: typed events in their total order go in, a sealed [`Timeline`] comes out.
//!
//! It keeps the primitive slots of ALGORITHMS.md 3.1 (who runs on each CPU and in which interrupt context; what the
//! scheduler does with each thread) and derives the segments of threads while it steps. Cost: O(1) for each event, a
//! hash look-up where the event names a thread that does not run. Ids of batches are renumbered here, in the order of
//! the events, so the result does not depend on how the events were cut into batches.
//!
//! Contradictions (lost events, damage) never stop it: the event is believed, the slot is set from it, and one
//! inconsistency is counted. The parts: `step` (which event concerns which slots), `sched` (switch, wake, fork ...),
//! `who` (thread ids to incarnations), `label` (what a wake-up means).

use super::copies::Copies;
use super::cpu::Cpu;
use super::functions::Pairs;
use super::handlers::Handlers;
use super::losses::Losses;
use super::packets::Packets;
use super::requests::Requests;
use super::services::Services;
use super::thread_state::{Reasons, ThreadState};
use super::user::Guess;
use crate::base::names::NameId;
use crate::base::notice::{Notice, Notices};
use crate::base::time::Timestamp;
use crate::event::host::TraceOrigin;
use crate::event::kind::TextId;
use crate::event::stack::RawStackId;
use crate::model::facts::Quality;
use crate::reading::batch::{Batch, BatchNames};
use crate::reading::sources::HostName;
use crate::state::threads::ThreadTable;
use crate::state::timeline::{Host, HostId, RawStacks, SegmentKind, ThreadId, Timeline};
use foldhash::HashMap;
use smallvec::SmallVec;
use std::collections::BTreeSet;

/// More CPUs than any machine has.
const MOST_CPUS: u32 = 1 << 14;

/// See the module.
#[derive(Debug)]
pub struct Machine {
    pub(super) origins: Vec<TraceOrigin>,
    /// By host: its kernel was traced.
    pub(super) kernel_traced: Vec<bool>,
    pub(super) handlers: Handlers,
    /// By name of a handler: its label, once it was asked for.
    pub(super) handler_kinds: Vec<Option<SegmentKind>>,
    pub(super) out: Timeline,
    pub(super) threads: ThreadTable<ThreadState>,
    pub(super) by_vtid: HashMap<(HostId, i32), SmallVec<[ThreadId; 2]>>,
    /// Ids of user space, and whose they seem to be.
    pub(super) guesses: HashMap<(HostId, i32, i32), Guess>,
    /// Positions of the images of processes whose ids nobody answered to yet, by these.
    pub(super) unclaimed: HashMap<(HostId, i32), Vec<usize>>,
    pub(super) cpus: Vec<Cpu>,
    cpu_of: Vec<Vec<u32>>,
    pub(super) packets: Packets,
    pub(super) requests: Requests,
    pub(super) services: Services,
    pub(super) copies: Copies,
    pub(super) pairs: Pairs,
    pub(super) lines: HashMap<(HostId, i32), NameId>,
    pub(super) reasons: Reasons,
    pub(super) losses: Losses,
    /// The kernel's part of the call chain that came last: its CPU and time, and its id in the batch.
    pub(super) chain: Option<(usize, Timestamp, RawStackId)>,
    /// By host: the CPUs that were recorded; none where that is not told.
    recorded: Vec<BTreeSet<u32>>,
    /// CPUs that events speak of and that were not recorded.
    pub(super) unrecorded: BTreeSet<(HostId, u32)>,
    pub(super) start: Option<Timestamp>,
    pub(super) end: Timestamp,
    pub(super) notices: Notices,
}

/// Ids of one batch to ids of the timeline, filled on first use.
pub(super) struct BatchIds<'b> {
    pub batch: &'b Batch,
    names: BatchNames<'b>,
    stacks: Vec<Option<RawStackId>>,
}

impl BatchIds<'_> {
    pub fn name(&mut self, out: &mut Timeline, id: TextId) -> Option<NameId> {
        self.names.name(&mut out.names, id)
    }

    pub fn stack(&mut self, out: &mut RawStacks, id: Option<RawStackId>) -> Option<RawStackId> {
        let id = id?;
        let slot = self.stacks.get_mut(id.index())?;
        Some(*slot.get_or_insert_with(|| out.intern(self.batch.stacks.get(id))))
    }
}

impl Machine {
    /// A machine for traces with these origins; hosts in the order of their ids.
    pub fn new(hosts: Vec<HostName>, origins: Vec<TraceOrigin>, handlers: Handlers) -> Machine {
        let mut out = Timeline::default();
        for HostName { name, kernel_release } in hosts {
            let name = out.names.intern(&name);
            out.hosts.push(Host { name, kernel_release });
        }
        let mut reason = |text| out.names.intern(text);
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
        };
        out.quality = vec![Quality::default(); out.hosts.len()];
        let hosts = (0..out.hosts.len()).map(HostId::at);
        let hosts_number = out.hosts.len();
        Machine {
            kernel_traced: hosts.map(|host| origins.iter().any(|o| o.kernel && o.host == host)).collect(),
            origins,
            handlers,
            handler_kinds: Vec::new(),
            cpu_of: vec![Vec::new(); out.hosts.len()],
            out,
            threads: ThreadTable::default(),
            by_vtid: HashMap::default(),
            guesses: HashMap::default(),
            unclaimed: HashMap::default(),
            cpus: Vec::new(),
            packets: Packets::default(),
            requests: Requests::default(),
            services: Services::default(),
            copies: Copies::default(),
            pairs: Pairs::default(),
            lines: HashMap::default(),
            losses: Losses::default(),
            recorded: vec![BTreeSet::new(); hosts_number],
            unrecorded: BTreeSet::new(),
            reasons,
            chain: None,
            start: None,
            end: Timestamp::MIN,
            notices: Notices::default(),
        }
    }

    /// Switches of a CPU are recorded. Where none is named all are taken to be.
    pub fn expect_cpu(&mut self, host: HostId, cpu: u32) {
        if let Some(recorded) = self.recorded.get_mut(host.index()) {
            recorded.insert(cpu);
        }
    }

    /// False for a CPU whose switches were not recorded, which is noted.
    pub(super) fn is_recorded(&mut self, host: HostId, cpu: u32) -> bool {
        let recorded = self.recorded.get(host.index()).is_none_or(|all| all.is_empty() || all.contains(&cpu));
        // What a damaged record says is no CPU.
        if !recorded && cpu < MOST_CPUS {
            self.unrecorded.insert((host, cpu));
        }
        recorded
    }

    /// Step through the events of a batch; batches come in order of time.
    pub fn absorb(&mut self, batch: &Batch) {
        let stacks = vec![None; batch.stacks.len()];
        let mut ids = BatchIds { batch, names: BatchNames::new(batch), stacks };
        // Ids of a batch mean nothing in the next one; a chunk never parts an event from its stack.
        self.chain = None;
        for event in &batch.events {
            self.step(event, &mut ids);
        }
    }

    /// Time of the first event so far.
    pub(super) fn start(&self) -> Timestamp {
        self.start.unwrap_or(0)
    }

    pub(super) fn inconsistent(&mut self, t: Timestamp) {
        self.notices.add(Notice::Inconsistent, 1, || format!("at {t} ns"));
    }

    /// Position of a CPU in `cpus`, made on first sight.
    pub(super) fn cpu(&mut self, host: HostId, number: u16, t: Timestamp) -> Option<usize> {
        let known = self.cpu_of.get_mut(host.index())?;
        let at = usize::from(number);
        if known.len() <= at {
            known.resize(at + 1, u32::MAX);
        }
        if known[at] == u32::MAX {
            known[at] = self.cpus.len() as u32;
            self.cpus.push(Cpu::new(host, u32::from(number), t));
        }
        Some(known[at] as usize)
    }

    /// From here on page faults are part of the result.
    pub fn expect_page_faults(&mut self) {
        self.out.page_faults.get_or_insert_default();
    }
}
