//! What the whole machine counts: faults, reclaim, NUMA and pressure; of each CPU its stolen time and its frequency.

use super::files::{named_counts, pressure, text};
use crate::model::environment::{STEAL_MS, SampledTable, SampledValue, SampledValues};
use std::path::Path;

/// Figures of `/proc/vmstat`.
const VMSTAT: [&str; 14] = [
    "pgmajfault",
    "pgscan_direct",
    "pgsteal_direct",
    "allocstall",
    "allocstall_dma",
    "allocstall_dma32",
    "allocstall_normal",
    "allocstall_movable",
    "compact_stall",
    "compact_fail",
    "numa_hint_faults",
    "numa_pages_migrated",
    "pswpin",
    "pswpout",
];
/// CPUs whose frequency is read.
const MOST_CPUS: usize = 1024;

/// The counters of the machine.
pub(super) fn machine(proc: &Path) -> SampledValues {
    let mut values = SampledValues::new();
    let vmstat = text(&proc.join("vmstat")).unwrap_or_default();
    for (name, value) in named_counts(&vmstat, &VMSTAT) {
        // One name for the allocations that stalled in any zone.
        let name = if name.starts_with("allocstall") { "allocstall" } else { name };
        match values.get_mut(name) {
            Some(SampledValue::Count(sum)) => *sum = sum.saturating_add(value),
            _ => drop(values.insert(name.to_owned(), SampledValue::Count(value))),
        }
    }
    for of in ["cpu", "memory", "io"] {
        pressure(&text(&proc.join("pressure").join(of)).unwrap_or_default(), of, &mut values);
    }
    values
}

/// By CPU: the time that the hypervisor gave to others, and the frequency.
pub(super) fn cpus(root: &Path) -> SampledTable {
    let stat = text(&root.join("proc/stat")).unwrap_or_default();
    let ticks = rustix::param::clock_ticks_per_second().max(1);
    let mut table = SampledTable::new();
    for line in stat.lines().take(MOST_CPUS + 1) {
        // `cpuN user nice system idle iowait irq softirq steal guest guest_nice`; `cpu` alone is all of them.
        let mut words = line.split_whitespace();
        let Some(cpu) = words.next().and_then(|name| name.strip_prefix("cpu")).filter(|n| !n.is_empty()) else {
            continue;
        };
        let Some(steal) = words.nth(7).and_then(|ticks| ticks.parse::<u64>().ok()) else { continue };
        let mut values = SampledValues::new();
        values.insert(STEAL_MS.to_owned(), SampledValue::Count(steal.saturating_mul(1000) / ticks));
        let frequency = root.join(format!("sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_cur_freq"));
        if let Some(khz) = text(&frequency).and_then(|khz| khz.trim().parse().ok()) {
            values.insert("khz".to_owned(), SampledValue::Count(khz));
        }
        table.insert(cpu.to_owned(), values);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machine_and_cpus_are_read() {
        let root = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("proc/vmstat", "nr_free_pages 4\npgmajfault 12\nallocstall_normal 3\nallocstall_movable 4\n");
        write("proc/pressure/io", "some avg10=0.00 total=5\nfull avg10=0.00 total=3\n");
        write("proc/stat", "cpu  1 2 3 4 5 6 7 90 0 0\ncpu0 1 2 3 4 5 6 7 20 0 0\ncpu1 1 2 3 4 5 6 7 70 0 0\nintr 1\n");
        write("sys/devices/system/cpu/cpu1/cpufreq/scaling_cur_freq", "1800000\n");
        let count = SampledValue::Count;
        let machine = machine(&root.path().join("proc"));
        assert_eq!(machine.get("pgmajfault"), Some(&count(12)));
        assert_eq!(machine.get("allocstall"), Some(&count(7)));
        assert_eq!(machine.get("pressure.io.full_us"), Some(&count(3)));
        let cpus = cpus(root.path());
        let tick = 1000 / rustix::param::clock_ticks_per_second();
        assert_eq!(
            cpus["1"],
            SampledValues::from([(STEAL_MS.into(), count(70 * tick)), ("khz".into(), count(1_800_000))])
        );
        assert_eq!(cpus["0"], SampledValues::from([(STEAL_MS.into(), count(20 * tick))]));
        assert_eq!(cpus.len(), 2);
    }
}
