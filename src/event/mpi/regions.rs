//! Regions of an archive as symbols: their readable names, and the kind of wait that a call of one is.
//!
//! Writers differ: Score-P declares role and paradigm of every region, EZTrace declares each a plain function, so the
//! names of MPI calls count as well. Cost: linear in the definitions.

use crate::base::demangle::demangle;
use crate::base::names::{NameId, Names};
use crate::event::operation::OperationKind;
use crate::input::otf2::{Archive, RegionDefinition};
use foldhash::HashMap;

/// The class of a region, as far as it matters for waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// A function or a part of one: the program's own work.
    Program,
    /// A call into MPI, or into the run-time library of OpenMP, pthreads or an accelerator.
    Library,
    /// A barrier of the threads of a team.
    Barrier,
    /// A part of the program that one thread after another may enter: a wait until its lock is acquired.
    Critical,
    /// A wait for the tasks that this one made.
    TaskWait,
    /// A wait for a thread to end.
    Join,
    /// Hands work to an accelerator.
    Launch,
    /// A wait of the host for an accelerator.
    Synchronise,
    /// The tracer writes out its buffer.
    Flush,
    /// Made up by the tracer: it only encloses others.
    Artificial,
}

/// A region as the rest of the program knows it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Symbol {
    pub(super) name: NameId,
    pub(super) kind: OperationKind,
    pub(super) class: Class,
    /// Asks whether something is there, and is asked again when it is not.
    pub(super) polls: bool,
}

/// Symbols of all regions.
pub(super) struct Symbols {
    pub(super) names: Names,
    by_region: HashMap<u32, Symbol>,
    /// Symbols of small ids, which Score-P's are, by id.
    dense: Vec<Option<Symbol>>,
    nameless: Symbol,
    /// Name of the time in which a thread of a team has nothing to do.
    pub(super) idle: NameId,
    /// Name of the time in which the tracer wrote out its buffer.
    pub(super) flush: NameId,
}

/// Ids below this are looked up by position.
const DENSE: u32 = 1 << 12;

/// The name that Score-P gives to writing out its buffer.
pub const FLUSH: &str = "TRACE BUFFER FLUSH";

/// The name of the time of a team's threads between two parallel regions.
pub const IDLE: &str = "(idle)";

impl Symbols {
    pub(super) fn new(archive: &Archive) -> Self {
        let mut names = Names::default();
        let recorded = &archive.definitions.names;
        let by_region = archive.definitions.regions().map(|(id, region)| {
            let name = readable(recorded.get(region.name));
            let class = class(&region, &name);
            let polls = name.starts_with("MPI_Test") || matches!(name.as_str(), "MPI_Iprobe" | "MPI_Improbe");
            (id, Symbol { name: names.intern(&name), kind: kind(class, &name), class, polls })
        });
        let by_region: HashMap<u32, Symbol> = by_region.collect();
        let dense = (0..DENSE).map(|id| by_region.get(&id).copied()).collect();
        let name = names.intern("(undefined region)");
        let nameless = Symbol { name, kind: OperationKind::Work, class: Class::Program, polls: false };
        let (idle, flush) = (names.intern(IDLE), names.intern(FLUSH));
        Symbols { names, by_region, dense, nameless, idle, flush }
    }

    /// The symbol of a region, by global id.
    #[inline]
    pub(super) fn of(&self, region: u32) -> Symbol {
        let known = self.dense.get(region as usize).copied();
        known.unwrap_or_else(|| self.by_region.get(&region).copied()).unwrap_or(self.nameless)
    }

    /// By name: it is the program's own work.
    pub(super) fn program(&self) -> Vec<bool> {
        self.names_of(|s| s.class == Class::Program && s.kind == OperationKind::Work)
    }

    /// By name: it polls.
    pub(super) fn polls(&self) -> Vec<bool> {
        self.names_of(|s| s.polls)
    }

    fn names_of(&self, is: impl Fn(&Symbol) -> bool) -> Vec<bool> {
        let mut marked = vec![false; self.names.len()];
        for symbol in self.by_region.values().filter(|s| is(s)) {
            if let Some(mark) = marked.get_mut(symbol.name.index()) {
                *mark = true;
            }
        }
        marked
    }
}

/// `mpi_waitall_`, the Fortran symbol, is shown as `MPI_Waitall`; both occur in one archive. Mangled names are read.
fn readable(name: &str) -> String {
    let fortran = name.strip_prefix("mpi_").map(|rest| rest.trim_end_matches('_'));
    match fortran.and_then(|rest| rest.split_at_checked(1)) {
        Some((first, rest)) => format!("MPI_{}{rest}", first.to_ascii_uppercase()),
        None if name.starts_with("_Z") || name.starts_with("_R") => demangle(name),
        None => name.to_owned(),
    }
}

// OTF2's numbers of roles and paradigms (PUB OTF2_Definitions.h, OTF2_GeneralDefinitions.h).
const ROLE_CRITICAL: u8 = 12;
const ROLE_BARRIER: u8 = 15;
const ROLE_IMPLICIT_BARRIER: u8 = 16;
const ROLE_FLUSH: u8 = 17;
const ROLE_ORDERED: u8 = 18;
const ROLE_TASK_CREATE: u8 = 21;
const ROLE_TASK_WAIT: u8 = 22;
const ROLE_ARTIFICIAL: u8 = 31;
const ROLE_THREAD_WAIT: u8 = 33;
const PARADIGM_OPENMP: u8 = 3;
const PARADIGM_MPI: u8 = 4;
const PARADIGM_CUDA: u8 = 5;
const PARADIGM_MEASUREMENT: u8 = 6;
const PARADIGM_PTHREAD: u8 = 7;
const PARADIGM_OPENCL: u8 = 19;
const PARADIGM_HIP: u8 = 23;

fn class(region: &RegionDefinition, name: &str) -> Class {
    let accelerator = matches!(region.paradigm, PARADIGM_CUDA | PARADIGM_HIP | PARADIGM_OPENCL);
    // Copies without `Async` in their name return when they are done.
    let copies = |n: &str| n.contains("Memcpy") && !n.contains("Async");
    let waits = |n: &str| n.contains("Synchronize") || copies(n) || n == "clFinish" || n.starts_with("clWait");
    let launches = |n: &str| n.contains("Launch") || n.contains("Memcpy") || n.starts_with("clEnqueue");
    match region.role {
        _ if name == FLUSH => Class::Flush,
        ROLE_ARTIFICIAL if region.paradigm == PARADIGM_MEASUREMENT => Class::Artificial,
        // EZTrace puts this region around all that a location does.
        _ if name == "Working" => Class::Artificial,
        ROLE_BARRIER | ROLE_IMPLICIT_BARRIER if region.paradigm == PARADIGM_OPENMP => Class::Barrier,
        ROLE_CRITICAL | ROLE_ORDERED if region.paradigm == PARADIGM_OPENMP => Class::Critical,
        ROLE_TASK_WAIT => Class::TaskWait,
        ROLE_FLUSH | ROLE_TASK_CREATE if region.paradigm == PARADIGM_OPENMP => Class::Library,
        ROLE_THREAD_WAIT => Class::Join,
        _ if accelerator && waits(name) => Class::Synchronise,
        _ if accelerator && launches(name) => Class::Launch,
        _ if accelerator || region.paradigm == PARADIGM_PTHREAD || region.paradigm == PARADIGM_MPI => Class::Library,
        _ if name.starts_with("MPI_") || name.starts_with("omp_") => Class::Library,
        _ => Class::Program,
    }
}

/// True where an archive defines a function of the program.
pub fn has_program_regions(archive: &Archive) -> bool {
    let names = &archive.definitions.names;
    archive.definitions.regions().any(|(_, region)| {
        let name = readable(names.get(region.name));
        class(&region, &name) == Class::Program && kind_by_name(&name) == OperationKind::Work
    })
}

/// The kind of wait of a region's calls, where their records do not give it.
fn kind(class: Class, name: &str) -> OperationKind {
    match class {
        Class::Barrier => OperationKind::Collective,
        Class::Synchronise | Class::TaskWait | Class::Join => OperationKind::Receive,
        _ => kind_by_name(name),
    }
}

fn kind_by_name(name: &str) -> OperationKind {
    let Some(call) = name.strip_prefix("MPI_") else { return OperationKind::Work };
    let begins = |words: &[&str]| words.iter().any(|w| call.starts_with(w));
    // These return at once in every case.
    if begins(&["Win_start", "Win_complete", "Win_wait", "Win_lock", "Win_unlock", "Win_flush"]) {
        return OperationKind::Receive;
    }
    if begins(&[
        "Win_post",
        "Win_test",
        "Alloc_mem",
        "Reduce_local",
        "Comm_rank",
        "Comm_size",
        "Comm_get",
        "Comm_set",
        "Cart_coords",
        "Cart_rank",
        "Cart_get",
        "Cart_shift",
    ]) {
        OperationKind::Work
    } else if begins(&["Recv", "Mrecv", "Probe", "Mprobe", "Wait", "Sendrecv"]) && call != "Recv_init" {
        OperationKind::Receive
    } else if begins(&[
        "Barrier", "Bcast", "Gather", "Scatter", "All", "Reduce", "Scan", "Exscan", "Comm_", "Init", "Finalize",
        "Win_", "Cart_", "Graph_", "File_",
    ]) {
        OperationKind::Collective
    } else {
        OperationKind::Work
    }
}
