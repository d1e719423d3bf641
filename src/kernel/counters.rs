//! Hardware counters that the tracer adds to its events, with their values at each event that names its thread.
//!
//! `perf_thread_*` counts per thread, `perf_cpu_*` per CPU. In: values in order of time. Out: a list of them for each
//! counter, which moves to the store while the pass runs. Cost: a comparison with each counter.

use super::cpu::CpuId;
use super::machine::Machine;
use crate::base::names::NameId;
use crate::base::time::Timestamp;
use crate::timeline::{Counter, CounterOwner, CounterValue, ThreadId};

impl Machine {
    /// A counter had the value `value` when `thread` ran on CPU `c`.
    pub(super) fn record_counter(
        &mut self,
        c: CpuId,
        thread: Option<ThreadId>,
        t: Timestamp,
        name: NameId,
        value: u64,
    ) {
        let cpu = &self.cpus[c];
        let owner = match thread {
            _ if self.out.tables.names.get(name).starts_with("perf_cpu_") => CounterOwner::Cpu(cpu.host, cpu.number),
            Some(thread) => CounterOwner::Thread(thread),
            None => return,
        };
        let counters = &mut self.out.counters;
        let known = counters.iter().position(|c| c.name == name);
        let at = known.unwrap_or(counters.len());
        if known.is_none() {
            counters.push(Counter { name, values: Vec::new() });
        }
        counters[at].values.push(CounterValue { owner, time: t, value });
    }

    /// Sort the counters by name.
    pub(super) fn close_counters(&mut self) {
        let names = &self.out.tables.names;
        self.out.counters.sort_by(|a, b| names.get(a.name).cmp(names.get(b.name)));
    }
}
