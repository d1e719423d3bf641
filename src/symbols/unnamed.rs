//! Code that has no names because a file about it is missing.
//!
//! In: the stacks and images of a recording, and what was found about them. Out: notices that name the option or the
//! file that gives the names: the kernel's symbols, and what a runtime writes about the code that it compiled. Cost:
//! linear in the addresses of distinct stacks.

use super::ProcessStack;
use super::cache::SymbolCache;
use super::compiled::is_code_memory;
use super::compiled_files;
use super::files::SymbolPaths;
use super::images::Spaces;
use crate::base::notice::{Notice, Notices};
use crate::event::host::HostId;
use crate::event::stack::RawStackId;
use crate::model::runtimes;
use crate::timeline::Timeline;
use std::collections::{BTreeMap, BTreeSet};

/// Addresses of the kernel's code begin here on machines of 64 bits with the kernel in their upper half; after them
/// are the page of old system calls, which is the user's, and numbers that are no addresses.
const KERNEL: std::ops::Range<u64> = 0xffff_0000_0000_0000..0xffff_ffff_ff00_0000;

/// A notice about the stacks with kernel addresses, where no symbols of the kernel are known.
pub fn kernel(timeline: &Timeline, notices: &mut Notices) {
    let stacks = timeline.stacks();
    let is_kernels = |at: &usize| stacks.get(RawStackId::at(*at)).iter().any(|address| KERNEL.contains(address));
    notices.add(Notice::KernelSymbolsMissing, (0..stacks.len()).filter(is_kernels).count() as u64, String::new);
}

/// A notice about the processes with compiled code of which no name is known.
pub fn compiled<'a>(
    timeline: &Timeline,
    spaces: &Spaces,
    stacks: impl Iterator<Item = &'a ProcessStack>,
    (symbol_paths, cache): (&SymbolPaths, &SymbolCache),
    notices: &mut Notices,
) {
    let names = timeline.names();
    let mut processes: BTreeMap<(HostId, i32), ProcessStack> = BTreeMap::new();
    let mut seen: BTreeSet<ProcessStack> = BTreeSet::new();
    for stack in stacks {
        if processes.contains_key(&(stack.host, stack.pid)) || !seen.insert(*stack) {
            continue;
        }
        let is_compiled = |address: &u64| {
            let image = stack.space.and_then(|space| spaces.image(space, stack.host, *address));
            image.is_some_and(|image| image.build_id.is_none() && is_code_memory(names.get(image.path)))
        };
        if timeline.stacks().get(stack.stack).iter().any(is_compiled) {
            processes.insert((stack.host, stack.pid), *stack);
        }
    }
    for ((_, pid), stack) in processes {
        if compiled_files::code(pid, symbol_paths, cache).code.is_empty() {
            let paths = stack.space.into_iter().flat_map(|space| spaces.paths(space));
            let paths: Vec<&str> = paths.map(|path| names.get(path)).collect();
            let (runtime, option) = runtimes::remedy(paths.iter().copied());
            let runtime = if runtime.is_empty() { String::new() } else { format!(", {runtime}") };
            notices.add(Notice::CompiledCodeUnnamed, 1, || format!("process {pid}{runtime}: {option}"));
        }
    }
}
