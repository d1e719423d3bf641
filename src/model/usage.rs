//! Use of CPUs, and what was read and written: `stats cpu` and `stats io`.

use crate::base::time::Ns;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuUse {
    pub cpu: u32,
    /// Time on threads other than the idle task.
    pub active_ns: Ns,
    /// Time in which it is known who ran, the idle task included.
    pub total_ns: Ns,
}

/// One thread's share of all CPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadUse {
    /// Thread id.
    pub tid: i32,
    /// Process id.
    pub pid: i32,
    pub name: String,
    /// Time on any CPU.
    pub cpu_ns: Ns,
}

/// All CPUs and threads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CpuTotals {
    /// By number.
    pub cpus: Vec<CpuUse>,
    /// Those with the most time first.
    pub threads: Vec<ThreadUse>,
}

/// One process's reads and writes: what its system calls returned.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IoUse {
    /// Process id.
    pub pid: i32,
    /// Name of its main thread, else of that of its threads that has the lowest id.
    pub name: String,
    /// Bytes that reads returned, and reads that returned.
    pub read: Moved,
    /// Bytes that writes took, and writes that returned.
    pub written: Moved,
}

/// Reads or writes, in total.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    /// Bytes that the calls returned.
    pub bytes: u64,
    /// Calls that returned.
    pub calls: u64,
}

/// The file transfers of one process of an MPI run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessTransfers {
    /// Position of the process among the definitions.
    pub index: u32,
    /// Name of the process, or its rank.
    pub name: String,
    pub sum: FileTransfers,
}

/// Bytes that went to and from files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileTransfers {
    pub read_bytes: u64,
    pub written_bytes: u64,
    /// Operations that read.
    pub reads: u64,
    /// Operations that wrote.
    pub writes: u64,
}
