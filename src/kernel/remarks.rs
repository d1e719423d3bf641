//! Remarks on threads and CPUs from the events of a chunk, and their table for the whole recording.
//!
//! In: the events of a batch in their order. Out: [`Remark`]s in that order. A worker looks for them in its chunk. Of
//! priorities it keeps those that differ from the one that its small table has of the thread, so that an entry that
//! another thread took makes a remark more, never one less. Whether a CPU serves timers when a packet is sent is
//! unknown until the chunk shows one begin or end there; such a packet is kept with that condition. The machine drops
//! priorities that say nothing new, and settles the conditions; so the result does not depend on how the events were
//! cut. Cost: two comparisons for each switch.

use crate::base::heap::table;
use crate::event::host::{HostId, TraceOrigin};
use crate::event::kind::{Context, Event, Kind, SoftIrq};
use crate::event::remark::{Priority, Remark, RemarkKind};
use crate::reading::batch::Batch;
use foldhash::HashMap;
use get_size2::GetSize;

/// Threads whose last priority a worker has.
const ENTRIES: usize = 1024;
/// The soft interrupt in which the kernel's timers expire, those of TCP among them.
const TIMERS: Context = Context::SoftIrq(SoftIrq::Timer);

/// What the machine knows after a batch.
#[derive(Debug, Default)]
pub(super) struct LastRemarks {
    /// By host and id.
    pub priorities: HashMap<(HostId, i32), Priority>,
    /// By host and CPU: it serves timers.
    pub serve_timers: HashMap<(HostId, u32), bool>,
}

/// A remark, which counts only under a condition if it has one.
#[derive(Clone, Copy, Debug, GetSize)]
pub(super) struct Found {
    pub remark: Remark,
    /// Its CPU served timers when the chunk began.
    pub if_timers: bool,
}

/// The remarks of a batch.
#[derive(Debug, Default, Clone, GetSize)]
pub(super) struct BatchRemarks {
    pub found: Vec<Found>,
    /// By host and CPU, of those that began or ended to serve timers: they serve them at the end.
    #[get_size(size_fn = table)]
    pub serve_timers: HashMap<(HostId, u32), bool>,
}

/// Find the remarks of a batch, whose events are given in their order.
pub(super) fn find(batch: &Batch, events: &[Event], origins: &[TraceOrigin]) -> BatchRemarks {
    let (mut last, mut out) = (vec![None; ENTRIES], BatchRemarks::default());
    for event in events {
        let Some(kind) = look(event) else { continue };
        let Some(origin) = origins.get(usize::from(event.trace)).filter(|origin| origin.kernel) else { continue };
        let (host, cpu) = (origin.host, u32::from(event.cpu));
        let remark = |tid, kind| Remark { time: event.time, host, cpu, tid, kind };
        match kind {
            Looked::Priorities(both) => {
                for (tid, priority) in both {
                    let Some(entry) = last.get_mut(tid as usize % ENTRIES) else { continue };
                    if tid > 0 && priority.is_known() && *entry != Some((host, tid, priority)) {
                        *entry = Some((host, tid, priority));
                        let remark = remark(tid, RemarkKind::Priority(priority));
                        out.found.push(Found { remark, if_timers: false });
                    }
                }
            }
            Looked::Timers(serves) => _ = out.serve_timers.insert((host, cpu), serves),
            Looked::Sends => {
                let serves = out.serve_timers.get(&(host, cpu)).copied();
                if serves != Some(false) {
                    let remark = remark(-1, RemarkKind::TimerSends);
                    out.found.push(Found { remark, if_timers: serves.is_none() });
                }
            }
            Looked::Remark(kind) => {
                let running = batch.context(event.who).and_then(|context| context.tid).unwrap_or(-1);
                out.found.push(Found { remark: remark(running, kind), if_timers: false });
            }
        }
    }
    out
}

/// What is of interest in an event.
enum Looked {
    Priorities([(i32, Priority); 2]),
    Timers(bool),
    Sends,
    Remark(RemarkKind),
}

fn look(event: &Event) -> Option<Looked> {
    Some(match event.kind {
        Kind::Switch { prev, next, priorities: [of_prev, of_next], .. } => {
            Looked::Priorities([(prev, of_prev), (next, of_next)])
        }
        Kind::Enter { context: TIMERS, .. } => Looked::Timers(true),
        Kind::Leave { context: TIMERS } | Kind::Lost { .. } => Looked::Timers(false),
        Kind::Send(_) => Looked::Sends,
        Kind::Remark(kind) => Looked::Remark(kind),
        _ => return None,
    })
}
