//! The processes of a recording: their names, control groups, allowed CPUs, priorities and limits; and those of their
//! threads that differ from them.
//!
//! Reading them costs some files for each process and thread, so [`SampleDepth::New`] reads those of new processes
//! alone and takes the others from the line before.

use super::files::{GroupPaths, text};
use super::groups::Hierarchies;
use crate::model::environment::{
    CPU_GROUP, CPUS_ALLOWED, DISK_GROUP, EnvironmentLine, PRIORITY, SampledTable, SampledValue, SampledValues,
};
use crate::record::processes;
use std::path::Path;

/// Processes of a line; where there are more, those with most CPU time.
const MOST_PROCESSES: usize = 256;

/// Threads whose settings are compared with those of their processes.
const MOST_THREADS: usize = 1024;

/// Limits that threads meet, as `/proc/PID/limits` names them, and our names.
const LIMITS: [(&str, &str); 5] = [
    ("Max open files", "max_open_files"),
    ("Max processes", "max_processes"),
    ("Max locked memory", "max_locked_memory"),
    ("Max address space", "max_address_space"),
    ("Max cpu time", "max_cpu_time"),
];
/// Names of the scheduling policies by number.
const POLICIES: [&str; 7] = ["other", "fifo", "rr", "batch", "iso", "idle", "deadline"];

/// How much a sample reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SampleDepth {
    /// The settings of all processes and their threads.
    All,
    /// Those of processes that the line before does not have.
    New,
}

/// A sample of processes.
#[derive(Debug, Default)]
pub(super) struct ProcessSample {
    pub processes: SampledTable,
    pub threads: SampledTable,
    /// The groups that any of them is in.
    pub groups: GroupPaths,
}

/// Sample some processes with their descendants; none means all of the machine.
pub(super) fn sample(
    proc: &Path,
    pids: &[u32],
    hierarchies: &Hierarchies,
    (before, depth): (&EnvironmentLine, SampleDepth),
) -> ProcessSample {
    let mut sample = ProcessSample::default();
    if depth == SampleDepth::New {
        sample.threads.clone_from(&before.threads);
    }
    let mut left = MOST_THREADS;
    for pid in chosen(proc, pids) {
        let (name, folder) = (pid.to_string(), proc.join(pid.to_string()));
        if let Some(known) = before.processes.get(&name).filter(|_| depth == SampleDepth::New) {
            sample.processes.insert(name, known.clone());
            continue;
        }
        let Some(mut values) = settings(&folder, hierarchies, &mut sample.groups) else { continue };
        let mut threads: Vec<u32> = processes::numbers(&folder.join("task")).filter(|tid| *tid != pid).collect();
        threads.sort_unstable();
        for tid in threads.into_iter().take(left) {
            left = left.saturating_sub(1);
            let folder = folder.join("task").join(tid.to_string());
            let Some(mut own) = settings(&folder, hierarchies, &mut sample.groups) else { continue };
            // What differed once is said on, also where it is that of the process again.
            let was_said = |name: &str| before.threads.get(&tid.to_string()).is_some_and(|own| own.contains_key(name));
            own.retain(|name, value| values.get(name) != Some(value) || was_said(name));
            if !own.is_empty() {
                sample.threads.insert(tid.to_string(), own);
            }
        }
        let stat = text(&folder.join("stat")).unwrap_or_default();
        if let Some((before, _)) = stat.rsplit_once(')')
            && let Some((_, comm)) = before.split_once('(')
        {
            values.insert("comm".to_owned(), SampledValue::Text(comm.to_owned()));
        }
        limits(&text(&folder.join("limits")).unwrap_or_default(), &mut values);
        sample.processes.insert(name, values);
    }
    sample
}

/// The processes to sample, at most [`MOST_PROCESSES`]: of all those of programs, not threads of the kernel, the ones
/// with most CPU time.
fn chosen(proc: &Path, pids: &[u32]) -> Vec<u32> {
    if !pids.is_empty() {
        return processes::below(proc, pids).into_iter().take(MOST_PROCESSES).collect();
    }
    let time = |pid: u32| {
        let stat = text(&proc.join(pid.to_string()).join("stat"))?;
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        // After the name: state, parent, ..., flags (the seventh); user and system time are the twelfth and thirteenth.
        let number = |at: usize| fields.get(at)?.parse::<u64>().ok();
        const KERNEL_THREAD: u64 = 0x0020_0000;
        (number(6)? & KERNEL_THREAD == 0).then_some((number(11)?.saturating_add(number(12)?), pid))
    };
    let mut all: Vec<(u64, u32)> = processes::numbers(proc).filter_map(time).collect();
    all.sort_unstable_by_key(|(time, pid)| (std::cmp::Reverse(*time), *pid));
    let mut all: Vec<u32> = all.into_iter().take(MOST_PROCESSES).map(|(_, pid)| pid).collect();
    all.sort_unstable();
    all
}

/// The settings of a process or thread; `None` where it has ended.
fn settings(folder: &Path, hierarchies: &Hierarchies, groups: &mut GroupPaths) -> Option<SampledValues> {
    let mut values = SampledValues::new();
    let status = text(&folder.join("status"))?;
    let allowed = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    values.insert(CPUS_ALLOWED.to_owned(), SampledValue::Text(allowed.trim().to_owned()));
    let stat = text(&folder.join("stat"))?;
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    if let (Some(nice), Some(policy)) = (fields.get(16), fields.get(38)) {
        let name = policy.parse::<usize>().ok().and_then(|policy| POLICIES.get(policy)).copied().unwrap_or("unknown");
        values.insert(PRIORITY.to_owned(), SampledValue::Text(format!("{nice} {name}")));
    }
    for (controller, group) in hierarchies.of_thread(&text(&folder.join("cgroup"))?) {
        let name = match controller {
            "cpu" => CPU_GROUP,
            "io" => DISK_GROUP,
            _ => "memory_group",
        };
        values.insert(name.to_owned(), SampledValue::Text(group.clone()));
        groups.insert(group);
    }
    Some(values)
}

/// Limits that are any.
fn limits(text: &str, into: &mut SampledValues) {
    for line in text.lines() {
        let Some((named, name)) = LIMITS.iter().find(|(named, _)| line.starts_with(named)) else { continue };
        let soft = line.get(named.len()..).and_then(|rest| rest.split_whitespace().next());
        if let Some(limit) = soft.and_then(|soft| soft.parse().ok()) {
            into.insert((*name).to_owned(), SampledValue::Count(limit));
        }
    }
}
