//! CPU time and bytes read and written by thread and process: `stats cpu` and `stats io`.
//!
//! In: traces. Out: sums per CPU, thread and process. An [`Analysis`] of its own beside the kernel pass: it decodes the
//! switches, or the system calls that move bytes, and steps through them on the workers (`machine`); the merge joins
//! the threads and CPUs of each chunk. Linear; integers only; the parts add up to the whole (a CPU's active time is the
//! sum of its threads' runs on it). ALGORITHMS.md 10.4.

mod calls;
mod join;
mod machine;
mod slot;
mod thread;

use crate::base::ctx::{Cancel, Cancelled, Ctx};
use crate::base::notice::{Notice, Notices};
use crate::base::time::{Ns, Timestamp};
use crate::event::host::TraceOrigin;
use crate::event::kind::{Event, Kind};
use crate::input::Trace;
use crate::kernel::threads::ThreadInstance;
use crate::model::usage::{CpuUse, IoUse, ThreadUse};
use crate::reading::bind::{Binding, Focus};
use crate::reading::chunks::Chunk;
use crate::reading::engine::{self, Analysis, ChunkStart, EngineOptions};
use crate::reading::packet_times::PacketTimes;
use crate::reading::sources::{BoundTrace, BoundTraces};
use foldhash::HashMap;
use machine::{KernelTrace, UsageMachine};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use thread::{HostCpu, UsageThread};

/// The usage of all CPUs, threads and processes of some traces.
pub struct Usage(UsageMachine);

struct UsagePass<'w> {
    sources: BoundTraces,
    /// By trace; `None` for those of user space.
    traces: Vec<Option<KernelTrace>>,
    events: &'w AtomicU64,
}

impl UsagePass<'_> {
    /// Step through a chunk: from the state of `machine`, or without known initial state.
    fn step(
        &self,
        machine: &mut UsageMachine,
        notices: &mut Notices,
        traces: &[&Trace],
        chunk: &Chunk,
        start: ChunkStart,
        cancel: &Cancel,
    ) {
        // By trace and CPU: the first and the last event of any kind. Most records are of the CPU of the one before.
        let mut bounds: BTreeMap<TraceCpu, EventBounds> = BTreeMap::default();
        let mut latest: Option<(TraceCpu, EventBounds)> = None;
        let mut seen = |trace: usize, cpu: u32, t: Timestamp| {
            let place = TraceCpu { trace, cpu: u16::try_from(cpu).unwrap_or(u16::MAX) };
            let event = EventBounds { first: t, last: t };
            match &mut latest {
                Some((last, found)) if *last == place => found.widen(event),
                _ => {
                    if let Some((place, found)) = latest.replace((place, event)) {
                        bounds.entry(place).or_insert(found).widen(found);
                    }
                }
            }
        };
        let mut ran: HashMap<HostCpu, (Timestamp, i32)> = HashMap::default();
        let mut before = |event: &Event| {
            if let (Kind::Switch { next, .. }, Some(Some(kernel))) =
                (event.kind, self.traces.get(usize::from(event.trace)))
            {
                let last =
                    ran.entry(HostCpu { host: kernel.origin.host, cpu: event.cpu }).or_insert((event.time, next));
                if last.0 <= event.time {
                    *last = (event.time, next);
                }
            }
        };
        let before = (start == ChunkStart::AfterLastSwitch).then_some(&mut before as &mut dyn FnMut(&Event));
        let batch = self.sources.read(
            traces,
            chunk,
            cancel,
            notices,
            |piece, record| seen(piece.trace, record.cpu, record.time),
            before,
        );
        if let Some((place, found)) = latest {
            bounds.entry(place).or_insert(found).widen(found);
        }
        for (TraceCpu { trace, cpu }, EventBounds { first, last }) in bounds {
            match self.traces.get(trace) {
                Some(Some(kernel)) => {
                    let place = HostCpu { host: kernel.origin.host, cpu };
                    machine.see(place, first);
                    machine.see(place, last);
                }
                _ => machine.see_elsewhere(last),
            }
        }
        // In the order of CPUs: it numbers the threads.
        let mut ran: Vec<(HostCpu, (Timestamp, i32))> = ran.into_iter().collect();
        ran.sort_unstable();
        for (place, (t, tid)) in ran {
            machine.seed(place, tid, t);
        }
        machine.absorb(&batch, &self.traces);
        self.events.fetch_add(batch.events.len() as u64, Ordering::Relaxed);
        self.sources.recycle(batch);
    }
}

impl Analysis for UsagePass<'_> {
    type Partial = (UsageMachine, Notices);
    type Whole = (UsageMachine, Notices);
    type Rest = ();

    fn chunk(&self, traces: &[&Trace], chunk: &Chunk, start: ChunkStart, cancel: &Cancel) -> Self::Partial {
        let (mut machine, mut notices) = (UsageMachine::new(false), Notices::default());
        self.step(&mut machine, &mut notices, traces, chunk, start, cancel);
        (machine, notices)
    }

    fn fits(&self, (whole, _): &Self::Whole, (next, _): &Self::Partial) -> bool {
        whole.fits(next)
    }

    fn merge(&self, (whole, notices): &mut Self::Whole, (next, theirs): Self::Partial) {
        whole.append(next);
        notices.merge(&theirs);
    }

    fn finish(&self, (): ()) {}

    fn packet_times(&self) -> Option<&PacketTimes> {
        Some(self.sources.packet_times())
    }

    fn run_again(&self, (whole, notices): &mut Self::Whole, traces: &[&Trace], chunk: &Chunk, cancel: &Cancel) {
        self.step(whole, notices, traces, chunk, ChunkStart::Unknown, cancel);
    }
}

/// A CPU of a trace, by the trace's position; `u16::MAX` where the CPU is unknown.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct TraceCpu {
    trace: usize,
    cpu: u16,
}

/// The first and the last of some events.
#[derive(Clone, Copy)]
struct EventBounds {
    first: Timestamp,
    last: Timestamp,
}

impl EventBounds {
    fn widen(&mut self, other: EventBounds) {
        *self = EventBounds { first: self.first.min(other.first), last: self.last.max(other.last) };
    }
}

/// The end of the recording of each CPU: after it nothing is known of a CPU whose buffers end earlier than others'.
fn recorded_to(traces: &[&Trace], sources: &BoundTraces) -> HashMap<HostCpu, Timestamp> {
    let mut ends: HashMap<HostCpu, Timestamp> = HashMap::default();
    for ((trace, source), origin) in traces.iter().zip(&sources.all).zip(&sources.origins) {
        for stream in trace.streams().iter().filter(|s| source.binding.switches.contains(&s.stream_class)) {
            let cpu = stream.cpu.and_then(|cpu| u16::try_from(cpu).ok());
            if let Some((cpu, end)) = cpu.zip(stream.packets.last().and_then(|packet| packet.end)) {
                let last = ends.entry(HostCpu { host: origin.host, cpu }).or_insert(end);
                *last = end.max(*last);
            }
        }
    }
    ends
}

impl Usage {
    /// Read the events of some traces that `focus` selects. Traces with different labels are of different hosts.
    pub fn read(
        traces: &[&Trace],
        labels: &[Option<String>],
        focus: Focus,
        options: &EngineOptions,
        ctx: &Ctx,
    ) -> Result<(Usage, Notices), Cancelled> {
        let (traces, left_out) = traces.split_at(traces.len().min(1 << 16));
        let mut notices = Notices::default();
        notices.add(Notice::MemoryLimit, left_out.len() as u64, || "traces after the first 65,536".to_owned());
        let mut sources = BoundTraces::new(traces, labels, |trace| Binding::focused(trace, &[], focus), ctx)?;
        let (options, _) = sources.fit_buffers(traces, options, 0, ctx);
        let kernel_trace = |(origin, source): (&TraceOrigin, &BoundTrace)| {
            origin.kernel.then_some(KernelTrace { origin: *origin, follows_switches: source.binding.follows_switches })
        };
        let kernel_traces = sources.origins.iter().zip(&sources.all).map(kernel_trace).collect();
        let ends = recorded_to(traces, &sources);
        let pass = UsagePass { sources, traces: kernel_traces, events: &ctx.progress.events };
        let (mut machine, mut notices) = engine::run(&pass, (UsageMachine::new(true), notices), traces, &options, ctx)?;
        machine.close(&ends);
        let of_calls = machine.threads.iter().map(|thread| thread.calls.contradictions).sum::<u64>();
        let first = machine.contradictions.first;
        let place = || first.map_or_else(String::new, |t| format!("at {t} ns"));
        notices.add(Notice::Inconsistent, machine.contradictions.count + of_calls, place);
        Ok((Usage(machine), notices))
    }

    /// CPUs in order.
    pub fn cpus(&self) -> Vec<CpuUse> {
        let mut cpus: BTreeMap<HostCpu, CpuUse> = BTreeMap::new();
        for place in self.0.all_cpus() {
            cpus.insert(place, CpuUse { cpu: u32::from(place.cpu), active_ns: 0, total_ns: 0 });
        }
        for thread in self.0.threads.iter() {
            for (place, time) in &thread.on {
                let Some(cpu) = cpus.get_mut(place) else { continue };
                cpu.total_ns = cpu.total_ns.saturating_add(*time);
                if !thread.is_idle() {
                    cpu.active_ns = cpu.active_ns.saturating_add(*time);
                }
            }
        }
        cpus.into_values().collect()
    }

    /// Threads that ran at all, longest first.
    pub fn threads(&self) -> Vec<ThreadUse> {
        let all = self.0.threads.iter().filter(|thread| !thread.is_idle());
        let mut threads: Vec<ThreadUse> = all
            .map(|thread| ThreadUse {
                tid: thread.tid(),
                pid: thread.pid(),
                name: self.name(thread),
                cpu_ns: thread.on.values().copied().fold(0, Ns::saturating_add),
            })
            .filter(|thread| thread.cpu_ns > 0)
            .collect();
        threads.sort_by(|a, b| (b.cpu_ns, a.pid, a.tid, &a.name).cmp(&(a.cpu_ns, b.pid, b.tid, &b.name)));
        threads
    }

    /// Processes that read or wrote, most bytes first.
    pub fn processes(&self) -> Vec<IoUse> {
        let mut processes = BTreeMap::new();
        for thread in self.0.threads.iter() {
            let moved = thread.calls.read.calls + thread.calls.written.calls > 0;
            let (tid, pid) = (thread.tid(), thread.pid());
            let main = tid == pid;
            if moved || main {
                let (named, usage) = processes
                    .entry((thread.host(), pid))
                    .or_insert_with(|| ((false, i32::MAX), IoUse { pid, ..IoUse::default() }));
                // The last main thread of that id, else the lowest.
                if main || !named.0 && tid < named.1 {
                    (*named, usage.name) = ((main, tid), self.name(thread));
                }
                usage.read.join(thread.calls.read);
                usage.written.join(thread.calls.written);
            }
        }
        let mut list: Vec<IoUse> = processes.into_values().map(|(_, usage)| usage).collect();
        list.retain(|p| p.read.calls + p.written.calls > 0);
        list.sort_by_key(|p| (std::cmp::Reverse(p.read.bytes.saturating_add(p.written.bytes)), p.pid));
        list
    }

    /// The first sum that is wrong (`--check`): no CPU is used for longer than the recording lasts, and the threads use
    /// as much time as the CPUs are active.
    pub fn check(&self) -> Option<String> {
        let cpus = self.cpus();
        let duration = self.0.duration();
        let active: Ns = cpus.iter().map(|cpu| cpu.active_ns).fold(0, Ns::saturating_add);
        let used: Ns = self.threads().iter().map(|thread| thread.cpu_ns).fold(0, Ns::saturating_add);
        let over = cpus.iter().find(|cpu| cpu.active_ns > cpu.total_ns || cpu.total_ns > duration);
        over.map(|cpu| format!("CPU {} is used for {} of {} ns in {duration} ns", cpu.cpu, cpu.active_ns, cpu.total_ns))
            .or_else(|| (active != used).then(|| format!("CPUs are active for {active} ns, threads run for {used} ns")))
    }

    fn name(&self, thread: &UsageThread) -> String {
        let unknown = || "unknown".to_owned();
        thread.name().map_or_else(unknown, |name| self.0.text(name).to_owned())
    }
}
