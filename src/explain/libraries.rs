//! Calls of libraries in an MPI run: what names a cause is the program's region around them.
//!
//! In: operations with their call paths. Out: marked names. A call of MPI, OpenMP, pthreads or an accelerator's library
//! within a region of the program says less than that region; the outermost region is around everything and says
//! nothing, so it names no cause either. The time in which a thread had nothing to do or the tracer wrote is no call.
//! Cost: linear in the call paths.

use crate::base::names::{NameId, Names};
use crate::event::mpi::{FLUSH, IDLE};
use crate::event::operation::{CallPathNode, NO_PATH, Operations};
use std::collections::BTreeSet;

/// Mark the names that give way to the region around them.
pub(super) fn mark(operations: &Operations, names: &mut Names) {
    let mut outermost = BTreeSet::new();
    let mut nested = BTreeSet::new();
    for at in 0..operations.paths.len() as u32 {
        match operations.paths.get(at) {
            Some(CallPathNode { parent: NO_PATH, name }) => outermost.insert(name),
            Some(CallPathNode { name, .. }) => nested.insert(name),
            None => continue,
        };
    }
    let text = |name: NameId| operations.names.get(name);
    let is_library = |name: &NameId| !operations.is_program(*name) && ![IDLE, FLUSH].contains(&text(*name));
    let libraries = nested.iter().copied().filter(is_library);
    let around = outermost.difference(&nested).copied().filter(|name| operations.is_program(*name));
    for name in libraries.chain(around) {
        let name = names.intern(text(name));
        names.mark_runtime(name);
    }
}
