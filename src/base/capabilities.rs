//! The capabilities that root gives up before it reads its input.
//!
//! Root needs them for files of others: to read a recording of another user, and to put an output into another user's
//! folder. Those two are kept while the sandbox says which files they reach. All others go, from the bounding set too,
//! so that nothing can bring them back. A user without capabilities loses nothing.

use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, remove_capability_from_bounding_set, set_capabilities,
};

/// Drop all capabilities but those for reading files and, if `writes`, for making them. What the kernel refuses stays:
/// the sandbox does not depend on it.
pub(super) fn drop_but(writes: bool) {
    let Ok(has) = capabilities(None) else { return };
    if (has.permitted | has.inheritable).is_empty() {
        return;
    }
    let kept = if writes {
        CapabilitySet::DAC_READ_SEARCH | CapabilitySet::DAC_OVERRIDE
    } else {
        CapabilitySet::DAC_READ_SEARCH
    };
    let kept = has.effective & kept;
    // The bounding set needs a capability to shrink, so it goes first.
    for one in CapabilitySet::all().iter().filter(|one| !kept.contains(*one)) {
        let _ = remove_capability_from_bounding_set(one);
    }
    let sets = CapabilitySets { effective: kept, permitted: kept, inheritable: CapabilitySet::empty() };
    let _ = set_capabilities(None, sets);
}
