//! Wake-ups on a held CPU.
//!
//! In: a wake-up. Out: the worker's machine after it, or the wake-up left, where the cause of the wait that it ends, or
//! the woken thread, is not known without the events before the chunk. Cost: that of finding the cause, twice.

use super::Preparation;
use crate::event::host::HostId;
use crate::event::kernel_thread::is_handed_work;
use crate::event::kind::{Event, Kind};
use crate::event::stack::RawStackId;
use crate::kernel::cpu::CpuId;
use crate::kernel::label::COMPLETION_WAKES_WITHIN;
use crate::kernel::prepared::Due;
use crate::kernel::thread_state::Sched;
use crate::kernel::threads::HostTid;
use crate::timeline::{SegmentKind, ThreadId};

impl Preparation<'_> {
    pub(super) fn wake(&mut self, c: CpuId, thread: ThreadId, host: HostId, event: &Event, chain: Option<RawStackId>) {
        let Kind::Wake { tid, name, .. } = event.kind else { return };
        let woken = self.machine.threads.alive(HostTid::new(host, tid));
        let is_known = tid == 0 || woken.is_some_and(|woken| self.knows_wake(c, thread, woken, event));
        if !is_known {
            woken.into_iter().for_each(|woken| self.release_thread(woken));
            return self.mirror(c, event, chain, |machine| machine.cpus[c].see(event.time));
        }
        if let Some(woken) = woken {
            self.need_name(name);
            let sched = self.machine.threads[woken].sched;
            let known = &mut self.threads[woken.index()].known;
            known.queue |= matches!(sched, Sched::Running(_));
            known.early_wake |= matches!(sched, Sched::Running(_));
            chain.into_iter().for_each(|stack| self.need_stack(stack));
            self.ids.wake_chain = chain;
        }
        self.step(event);
        let woke = self.machine.out.tables.wake_stacks.pop();
        woke.into_iter().for_each(|woke| self.due(Due::Woke(woke)));
    }

    /// True if the cause of the wait that a wake-up ends is known without what came before.
    fn knows_wake(&mut self, c: CpuId, waker: ThreadId, woken: ThreadId, event: &Event) -> bool {
        let Kind::Wake { source, name, .. } = event.kind else { return false };
        let t = event.time;
        let cpu = &self.machine.cpus[c];
        let sched = self.machine.threads[woken].sched;
        if matches!(sched, Sched::Dead | Sched::Ready) {
            return true;
        }
        let is_first_host = self.machine.out.tables.hosts.len() < 2;
        let completed = self.cpus[c.index()].completed;
        let may_be_completed =
            cpu.context().is_none() && completed.is_some_and(|at| t.since(at) <= COMPLETION_WAKES_WITHIN);
        let knows_call = self.threads[waker.index()].known.call || self.machine.threads[waker].thread.idle;
        let asks_call = cpu.context().is_none() || cpu.is_own() && cpu.delivery().is_none();
        if !is_first_host && cpu.delivery().is_some() || may_be_completed || asks_call && !knows_call {
            return false;
        }
        let label = self.machine.label(c, t, woken, source);
        if label.qualifier == Some(self.machine.reasons.interrupt) && !self.machine.threads[waker].thread.idle {
            // The waker may turn out to have been in a call.
            return false;
        }
        let last_name = self.machine.threads[woken].thread.names.last();
        let last_name = last_name.map(|last| self.machine.out.tables.names.get(last.name));
        let may_work = self.batch.text_of(name).or(last_name).is_none_or(is_handed_work);
        !(label.waker.is_some() && label.kind == SegmentKind::Blocked && may_work)
    }
}
