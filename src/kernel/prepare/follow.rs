//! The events of a CPU, one by one: stepped through by the worker's machine, or left.
//!
//! In: an event of a kernel trace. Out: the worker's machine after it, or the event left for the joining machine, with
//! the state that it may read handed over and the state that it may write dropped. Where only the reads of an event are
//! unknown, and its effect on the held CPU and thread is known, it is *mirrored*: left, and applied here as well; the
//! worker's rows of it are dropped.
//! ALGORITHMS.md section 10.7 says what each kind of event needs.

use super::{Preparation, is_thread_event};
use crate::event::descriptor::NamedDescriptor;
use crate::event::host::TraceOrigin;
use crate::event::kind::{Context, Event, Kind, TextId, WeightId};
use crate::event::prev_state::PrevState;
use crate::event::stack::RawStackId;
use crate::event::waiting_calls::{may_have_timed_out, timed_out};
use crate::kernel::cpu::{CpuId, bit};
use crate::kernel::fork::NewThread;
use crate::kernel::machine::Machine;
use crate::kernel::prepared::{Due, is_sender, sender_of};
use crate::kernel::step::rests;
use crate::kernel::thread_state::{OpenCall, Sched};
use crate::kernel::threads::HostTid;
use crate::reading::batch::ThreadContext;
use crate::timeline::{Segment, SegmentKind, ThreadId, VirtualIds};

impl Preparation<'_> {
    /// An event of a CPU that is not held is left.
    pub(super) fn on_other(&mut self, c: CpuId, origin: TraceOrigin, event: &Event, chain: Option<RawStackId>) {
        let host = origin.host;
        let number = u32::from(event.cpu);
        let named = self.batch.context(event.who).and_then(|context| context.tid);
        let is_running = !matches!(event.kind, Kind::Switch { .. } | Kind::Stack { witness: false, .. });
        if let Some(tid) = named.filter(|tid| Some(*tid) != self.cpus[c.index()].running) {
            let key = HostTid::on_cpu(host, number, tid);
            self.release_tid(key);
            if is_running {
                self.cpus[c.index()].runs_another(tid, self.number);
                self.runs_on(Some(c), key);
            }
        }
        self.meet_named(host, event.kind);
        self.cpus[c.index()].follow_raised(event.kind);
        match event.kind {
            Kind::Switch { .. } => return self.leave_switch(c, event, chain),
            Kind::Lost { resumes, .. } => {
                self.release_all();
                self.packets.forget();
                self.cpus[c.index()].running = None;
                self.machine.losses.begin(host, number, event.time, resumes);
            }
            Kind::Block { request, .. } => {
                let tid = self.batch.request_of(request).and_then(|request| request.tid);
                tid.into_iter().for_each(|tid| self.release_tid(HostTid::on_cpu(host, number, tid)));
            }
            _ => {}
        }
        self.leave_with(event, chain);
        self.hold_caller(c, event);
    }

    /// A switch is left. What it makes of the CPU and of the thread that comes is held where that one is known to be
    /// the thread that has its id: on a CPU an id names the thread that runs there, even one that ended.
    fn leave_switch(&mut self, c: CpuId, event: &Event, chain: Option<RawStackId>) {
        let Kind::Switch { prev, next, next_name, .. } = event.kind else { return };
        self.has_switches.insert(self.machine.cpus[c].host);
        let cpu = &self.machine.cpus[c];
        let keys = [prev, next].map(|tid| HostTid::on_cpu(cpu.host, cpu.number, tid));
        if self.cpus[c.index()].is_held {
            self.release_cpu(c);
            self.cpus[c.index()].follow_raised(event.kind);
        }
        let running = self.cpus[c.index()].running;
        keys.into_iter().for_each(|key| {
            self.release_tid(key);
            self.runs_on(Some(c), key);
        });
        self.leave_with(event, chain);
        let may_hold = next != prev && next_name != TextId::NONE;
        // An id of another thread than the one that runs there names the thread that has it.
        let is_another = running.is_some_and(|running| running != next);
        if may_hold && (is_another || self.has_its_id(c, keys[1])) {
            self.hold_cpu(c, event.time, next, next_name);
        } else {
            self.cpus[c.index()].runs_another(next, self.number);
        }
    }

    /// An event of a held CPU.
    pub(super) fn on_held(&mut self, c: CpuId, origin: TraceOrigin, event: &Event, chain: Option<RawStackId>) {
        let Some(thread) = self.machine.cpus[c].thread else { return self.leave_with(event, chain) };
        if let Some(context) = self.batch.context(event.who)
            && let Some(tid) = context.tid
        {
            if tid != self.machine.threads[thread].thread.tid {
                return self.on_another(c, origin, event, chain);
            }
            self.describe(thread, event, *context);
        }
        match event.kind {
            Kind::Switch { .. } => self.switch(c, thread, origin, event, chain),
            Kind::CallEntry { name, descriptor } => self.call_entry(c, thread, event, name, descriptor),
            Kind::CallExit { name, ret } => self.call_exit(c, thread, event, name, ret),
            Kind::Stack { user, kernel, weight, .. } => self.sample(thread, event, [user, kernel], weight),
            Kind::Raise { soft_irq } => {
                if !self.machine.cpus[c].is_interrupted() {
                    self.cpus[c.index()].unknown_raised &= !bit(soft_irq);
                }
                self.step(event);
            }
            Kind::Enter { context, name } => self.enter(c, event, context, name),
            Kind::Leave { .. } | Kind::IdleState { .. } => self.step(event),
            Kind::Wake { .. } => self.wake(c, thread, origin.host, event, chain),
            Kind::Migrate { tid, .. } => {
                let woken = self.machine.threads.alive(HostTid::new(origin.host, tid));
                match woken {
                    None if tid != 0 => self.leave_on(c, thread, event),
                    _ => {
                        woken.into_iter().for_each(|woken| self.threads[woken.index()].known.queue = true);
                        self.step(event);
                    }
                }
            }
            Kind::Send(packet) => {
                self.confirm(c, event);
                if let Some(of) = self.batch.packet_of(packet)
                    && let Some(sender) = self.machine.sender(c, event.time, of)
                {
                    let is_known = !is_sender(sender.thread);
                    let route = self.packets.send(origin.host, of, sender, is_known);
                    self.due(Due::Send { host: origin.host, packet, route });
                }
            }
            Kind::Receive(packet) => {
                self.confirm(c, event);
                self.machine.cpus[c].see(event.time);
                if let Some(of) = self.batch.packet_of(packet) {
                    self.machine.cpus[c].deliver(*of, Some(sender_of(self.packets.receives())));
                    let route = self.packets.receive(origin.host, of);
                    self.due(Due::Receive { host: origin.host, packet, route });
                }
            }
            Kind::Exit { tid } => match self.machine.threads.alive(HostTid::new(origin.host, tid)) {
                Some(exits) => {
                    self.threads[exits.index()].knows_exit = true;
                    self.step(event);
                }
                None => self.leave_on(c, thread, event),
            },
            _ => self.leave_held(c, thread, origin, event, chain),
        }
    }

    /// An event of a kind that is always left.
    fn leave_held(
        &mut self,
        c: CpuId,
        thread: ThreadId,
        origin: TraceOrigin,
        event: &Event,
        chain: Option<RawStackId>,
    ) {
        let host = origin.host;
        match event.kind {
            Kind::Mark(_) if !self.options.has_pairs => self.leave_on(c, thread, event),
            Kind::Counter { .. } | Kind::PageFault => self.leave_on(c, thread, event),
            Kind::Block { step, request } => self.block(c, thread, event, (step, request), chain),
            Kind::Work { .. } => {
                self.threads[thread.index()].may_work = true;
                self.mirror(c, event, chain, |_| {});
            }
            Kind::Fork { parent, child, child_pid, child_vtid, name } => {
                self.ends(host, event.kind);
                self.release_tid(HostTid::new(host, child));
                if !self.cpus[c.index()].is_held {
                    // The child has the id of the running thread.
                    return self.leave_with(event, chain);
                }
                // The id of idle tasks names no other thread.
                let holds = name != TextId::NONE && child != 0;
                let parent = self.machine.threads.alive(HostTid::new(host, parent));
                match parent.filter(|_| holds) {
                    Some(parent) => {
                        self.confirm(c, event);
                        let new = NewThread { tid: child, pid: child_pid, vtid: child_vtid, name };
                        self.hold_child(host, event.time, parent, new);
                    }
                    None => {
                        self.machine.running(c, event, &mut self.ids);
                        parent.into_iter().for_each(|parent| self.hand_over_thread(parent));
                        self.leave_on(c, thread, event);
                    }
                }
            }
            Kind::Function { .. } if !self.options.has_pairs => {
                self.threads[thread.index()].known.sample = false;
                self.mirror(c, event, chain, |_| {});
            }
            // No state depends on them.
            Kind::Remark(_) => self.confirm(c, event),
            Kind::Latency { .. } => self.mirror(c, event, chain, |_| {}),
            Kind::Line { .. } => self.leave_on(c, thread, event),
            kind if is_thread_event(kind) => {
                self.meet_named(host, kind);
                if self.cpus[c.index()].is_held {
                    self.leave_on(c, thread, event);
                } else {
                    self.leave_with(event, chain);
                }
            }
            Kind::Lost { .. } => {
                self.release_all();
                self.on_other(c, origin, event, chain);
            }
            _ => {
                self.release_all();
                self.leave_with(event, chain);
            }
        }
    }

    /// The context of an event of a held CPU names another thread than the one that runs there.
    fn on_another(&mut self, c: CpuId, origin: TraceOrigin, event: &Event, chain: Option<RawStackId>) {
        let cpu = &self.machine.cpus[c];
        let tid = self.batch.context(event.who).and_then(|context| context.tid).unwrap_or_default();
        let key = HostTid::on_cpu(cpu.host, cpu.number, tid);
        let late = matches!(event.kind, Kind::Stack { witness: false, .. });
        if late
            && let Some(thread) = self.machine.threads.alive(key)
            && !matches!(self.machine.threads[thread].sched, Sched::Running(_))
            && self.threads[thread.index()].known.sample
            && let Some(context) = self.batch.context(event.who)
        {
            self.describe(thread, event, *context);
            if let Kind::Stack { user, kernel, weight, .. } = event.kind {
                self.sample(thread, event, [user, kernel], weight);
            }
            return;
        }
        if late {
            // The thread that runs has no part in it. One that ran there before may have lost its id.
            if self.ended.contains_key(&key) {
                self.hand_over_cpu(c);
            }
            self.release_tid(key);
            return self.leave_with(event, chain);
        }
        self.release_cpu(c);
        self.on_other(c, origin, event, chain);
    }

    /// Leave an event that needs of the CPU its thread alone.
    pub(super) fn leave_on(&mut self, c: CpuId, thread: ThreadId, event: &Event) {
        self.confirm(c, event);
        self.out.unsealed -= 1;
        self.due(Due::On(thread));
        self.leave(event);
    }

    /// Leave an event of a held CPU. The worker's machine makes the same `change` of the CPU and its thread.
    pub(super) fn mirror(
        &mut self,
        c: CpuId,
        event: &Event,
        chain: Option<RawStackId>,
        change: impl FnOnce(&mut Machine),
    ) {
        if !self.cpus[c.index()].is_held {
            return self.leave_with(event, chain);
        }
        self.hand_over_cpu(c);
        self.leave_with(event, chain);
        self.machine.running(c, event, &mut self.ids);
        change(&mut self.machine);
        if let Some(thread) = self.machine.cpus[c].thread {
            let rows = &mut self.machine.threads[thread].rows;
            rows.segments.clear();
            rows.calls.clear();
            rows.samples.clear();
        }
    }

    /// An event of the running thread that the worker's machine does not step through.
    pub(super) fn confirm(&mut self, c: CpuId, event: &Event) {
        self.machine.running(c, event, &mut self.ids);
        self.stepped(event);
    }

    /// The context of an event describes a held thread. Ids in a namespace are looked up by others: the machine gets
    /// them at once.
    fn describe(&mut self, thread: ThreadId, event: &Event, context: ThreadContext) {
        if self.ids.has_described(event.who, thread, self.machine.threads[thread].description) {
            return;
        }
        context.name.into_iter().for_each(|name| self.need_name(name));
        let state = &self.machine.threads[thread];
        if let (Some(tid), Some(pid)) = (context.vtid, context.vpid)
            && tid != state.thread.tid
            && state.thread.virtual_ids != Some(VirtualIds { tid, pid })
        {
            self.hand_over_thread(thread);
            self.due(Due::Describe { thread, who: event.who, t: event.time });
            let state = &mut self.machine.threads[thread];
            state.thread.virtual_ids = Some(VirtualIds { tid, pid });
            state.change_description();
        }
    }

    fn switch(&mut self, c: CpuId, thread: ThreadId, origin: TraceOrigin, event: &Event, chain: Option<RawStackId>) {
        let Kind::Switch { prev, next, prev_state, prev_name, next_name, .. } = event.kind else { return };
        let t = event.time;
        let cpu = &self.machine.cpus[c];
        let (number, state) = (cpu.number, &self.machine.threads[thread]);
        let leaves = [state.exited, true].map(|exited| origin.generation.decode(prev_state, exited));
        let held = &self.threads[thread.index()];
        // The call that it is in ends with a thread.
        let knows_end =
            (leaves[0] == leaves[1] || held.knows_exit) && (leaves[0] != PrevState::Dead || held.known.call);
        // Rows may be sealed from the first switch of a host on: the machine has to know it by then.
        let has_switches = self.has_switches.contains(&origin.host);
        let is_known = knows_end && held.known.early_wake && has_switches;
        if state.thread.tid != prev || prev == next || !is_known || next_name == TextId::NONE {
            return self.leave_switch(c, event, chain);
        }
        let key = HostTid::on_cpu(cpu.host, number, next);
        let coming = self.machine.threads.alive(key);
        if let Some(coming) = coming {
            let state = &self.machine.threads[coming];
            let is_running = matches!(state.sched, Sched::Running(_));
            let waits_for_disk = state.sched == Sched::Blocked && state.uninterruptible;
            if is_running || waits_for_disk {
                return self.leave_switch(c, event, chain);
            }
            if state.sched == Sched::Ready && state.placed_by_waker && state.cpu != number {
                self.due(Due::QueuedElsewhere(t));
            }
        }
        self.resumes(c);
        [prev_name, next_name].into_iter().for_each(|name| self.need_name(name));
        let known = &mut self.threads[thread.index()].known;
        known.queue = true;
        if coming.is_some() {
            self.step(event);
        } else {
            self.machine.named(c, event, &mut self.ids);
            self.machine.name(thread, t, prev_name, &mut self.ids);
            self.machine.leave_cpu(c, t, thread, leaves[0]);
            self.machine.threads[thread].left_with(prev_state);
            self.runs_on(None, key);
            let left_idle_state = self.machine.cpus[c].idle_state.left();
            self.due(Due::GetCpu { cpu: c, t, tid: next, name: next_name, left_idle_state });
            self.hold_next(c, t, next, next_name);
            self.stepped(event);
        }
        if self.threads[thread.index()].may_work && rests(leaves[0], prev_state) {
            self.threads[thread.index()].may_work = false;
            self.due(Due::Rest { thread, t });
        }
        if leaves[0] == PrevState::Dead {
            self.release_thread(thread);
        }
    }

    fn call_entry(
        &mut self,
        c: CpuId,
        thread: ThreadId,
        event: &Event,
        name: TextId,
        descriptor: Option<NamedDescriptor>,
    ) {
        self.resumes(c);
        if name == TextId::NONE || self.threads[thread.index()].known.call {
            self.need_name(name);
            return self.step(event);
        }
        self.mirror(c, event, None, |_| {});
        self.need_name(name);
        let name = self.ids.known_name(name);
        self.machine.resume_thread(c);
        let state = &mut self.machine.threads[thread];
        state.rows.segments.clear();
        state.call = name.map(|name| OpenCall { since: event.time, name, descriptor });
        state.has_called = true;
        self.threads[thread.index()].known.call = true;
    }

    fn call_exit(&mut self, c: CpuId, thread: ThreadId, event: &Event, name: TextId, ret: i64) {
        self.resumes(c);
        let state = &self.machine.threads[thread];
        if let Some(OpenCall { since, name: entered, .. }) =
            state.call.filter(|_| self.threads[thread.index()].known.call)
        {
            let is_same = name == TextId::NONE || self.ids.known_name(name) == Some(entered);
            // A call that a timer ended changes the cause of a wait, which may have been handed over.
            // Waits for packets of unknown senders may still become one.
            let segments = &state.rows.segments;
            let is_open = |segment: &Segment| segment.waker.is_some_and(|waker| is_sender(waker.thread));
            let is_wait = |first: &Segment| !matches!(first.kind, SegmentKind::Running | SegmentKind::Interrupted);
            let reaches = |first: &Segment| first.span.end <= since || first.span.start <= since && !is_wait(first);
            let has_all = segments.first().map_or(state.start_of_segment() <= since, reaches);
            let has_rows = || has_all && !segments.iter().rev().take_while(|last| last.span.end >= since).any(is_open);
            let entered = self.machine.out.tables.names.get(entered);
            let ends_wait = timed_out(entered, ret) || may_have_timed_out(entered, ret);
            if is_same && (!ends_wait || has_rows()) {
                return self.step(event);
            }
        }
        self.mirror(c, event, None, |machine| machine.resume_thread(c));
        let state = &mut self.machine.threads[thread];
        state.call = None;
        state.has_called = true;
        self.threads[thread.index()].known.call = true;
    }

    /// A stack sample of a held thread; idle tasks have none.
    fn sample(&mut self, thread: ThreadId, event: &Event, stacks: [Option<RawStackId>; 2], weight: WeightId) {
        if !self.machine.threads[thread].thread.idle {
            stacks.into_iter().flatten().for_each(|stack| self.need_stack(stack));
            self.batch.weight_of(weight).into_iter().for_each(|weight| self.need_name(weight.event));
            self.threads[thread.index()].known.sample = true;
        }
        self.step(event);
    }

    /// The running thread continues: all contexts are over, and what it has raised before.
    fn resumes(&mut self, c: CpuId) {
        if self.machine.cpus[c].context().is_some() {
            self.cpus[c.index()].unknown_raised = 0;
        }
    }

    fn enter(&mut self, c: CpuId, event: &Event, context: Context, name: TextId) {
        let bit = if let Context::SoftIrq(soft_irq) = context { bit(soft_irq) } else { 0 };
        let cpu = &mut self.cpus[c.index()];
        let is_unknown = cpu.unknown_raised & bit != 0 && self.machine.cpus[c].may_own(context);
        // The names of interrupt lines are looked up, and that of the thread shows whether it is interrupted.
        let names_thread = self.batch.context(event.who).is_some_and(|context| context.tid.and(context.name).is_some());
        let has_name = |thread: ThreadId| names_thread || !self.machine.threads[thread].thread.names.is_empty();
        let is_named = (name != TextId::NONE || !matches!(context, Context::Irq(_)))
            && self.machine.cpus[c].thread.is_none_or(has_name);
        if is_unknown || !is_named {
            self.release_cpu(c);
            self.cpus[c.index()].follow_raised(event.kind);
            return self.leave(event);
        }
        cpu.unknown_raised &= !bit;
        self.need_name(name);
        self.step(event);
    }
}
