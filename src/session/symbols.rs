//! Where the symbols of a session's traces are.
//!
//! In: the places that the command line names. Out: the same, with what the traces say themselves: kernel symbols that
//! they hold, their clocks, and whether they are of this machine since it started. Of such a trace this machine's files
//! and the symbols of its kernel are those that were recorded.

use super::traces::Traces;
use crate::base::time::Ns;
use crate::input::Trace;
use crate::reading::bind::is_kernel;
use crate::reading::dialect::RELEASES;
use crate::saved::SavedFileError;
use crate::symbols::files::SymbolPaths;
use crate::symbols::kernel;
use crate::symbols::machine::{RecordedMachine, ThisMachine};
use crate::symbols::perf_map::TEMPORARY;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// How the formats of perf's recordings begin.
const PERF: &str = "perf.data";

impl Traces {
    /// `places`, with what the recordings say themselves; of a history file its own alone.
    pub(super) fn with_recorded(&self, places: &SymbolPaths) -> Result<SymbolPaths, SavedFileError> {
        if let Some(reopened) = &self.reopened {
            let wants_kernel = reopened.facts().traces.iter().any(|trace| trace.format.starts_with(PERF));
            return Ok(SymbolPaths { wants_kernel, ..reopened.symbols()? });
        }
        Ok(with_recorded_of(&self.traces(), places))
    }
}

/// `places`, with what some traces say themselves; a trace has its number among these.
pub(super) fn with_recorded_of(traces: &[&Trace], places: &SymbolPaths) -> SymbolPaths {
    let local = local(traces);
    let recorded = traces.iter().filter_map(|trace| trace.code().kernel_symbols).map(Into::into);
    let recorded: Vec<_> = if places.kernel.is_empty() { recorded.collect() } else { Vec::new() };
    let mut kernel = places.kernel.clone();
    let is_local = |at: usize| u32::try_from(at).is_ok_and(|at| local.contains_key(&at));
    let mut kernels = traces.iter().enumerate().filter(|(_, trace)| is_kernel(trace)).peekable();
    let runs = kernels.peek().is_some() && kernels.all(|(at, _)| is_local(at));
    if kernel.is_empty() && recorded.is_empty() && runs && kernel::is_running_readable() {
        kernel.push(PathBuf::from(kernel::RUNNING));
    }
    let mut beside = places.beside.clone();
    // Process ids are those of one boot.
    if !traces.is_empty() && (0..traces.len()).all(is_local) {
        beside.push(PathBuf::from(TEMPORARY));
    }
    let code = traces.iter().map(|trace| trace.code().kernel_code).filter(|code| !code.is_empty());
    let code = code.map(Into::into).collect();
    let (monotonic, wants_kernel) = (monotonic(traces), traces.iter().any(|trace| trace.as_perf().is_some()));
    SymbolPaths { kernel, recorded, code, beside, local, monotonic, wants_kernel, ..places.clone() }
}

/// Those of some traces that are of this machine since it started, by number, with what is added to their times to
/// give wall-clock time.
fn local(traces: &[&Trace]) -> BTreeMap<u32, Ns> {
    let machine = ThisMachine::read(Path::new("/"));
    let of = |(at, trace): (u32, &&Trace)| Some((at, machine.recorded(&recorded_machine(trace))?));
    (0..).zip(traces).filter_map(of).collect()
}

/// What a trace says about the machine that it is of.
fn recorded_machine(trace: &Trace) -> RecordedMachine<'_> {
    let ends = trace.streams().iter().flat_map(|stream| &stream.packets).filter_map(|packet| packet.end);
    RecordedMachine {
        host: trace.host(),
        release: RELEASES.iter().find_map(|entry| trace.environment(entry)),
        boot: trace.clock_uuid(),
        last: ends.max(),
        written: trace.files().iter().filter_map(|file| file.written()).max(),
    }
}

/// What the time line adds to the monotonic clock, where all traces that have it agree.
fn monotonic(traces: &[&Trace]) -> Option<Ns> {
    let mut offsets = traces.iter().filter_map(|trace| trace.monotonic());
    let first = offsets.next()?;
    offsets.all(|offset| offset == first).then_some(first)
}
