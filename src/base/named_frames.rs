//! Frames of call stacks that were recorded by their names: words in place of addresses.
//!
//! A reader that finds names where others find addresses gives each name a number, and puts a word that no address can
//! be in its place; whoever names the stack later finds the name by that word.

use super::names::NameId;

/// Marks addresses that are none: no machine has code with this bit alone in front.
const NAMED: u64 = 1 << 63;

/// The address that represents a thing with a name and no address on a stack.
pub fn named(name: NameId) -> u64 {
    NAMED | u64::from(name.raw())
}

/// The name that an address represents.
pub fn name_of(address: u64) -> Option<NameId> {
    u32::try_from(address ^ NAMED).ok().map(NameId::from_raw)
}

/// The frame of a function that was recorded by its name: `FUNCTION`, a tab, and the file that holds it. The name of
/// a file in brackets alone is code of that file of which no function is known.
pub const FRAME_FILE: char = '\t';

/// A word of a stack with another name in place of a recorded one, by number. A caller's word is one more than that of
/// its name, as a return address is behind its call. Words that name nothing stay.
pub fn renamed(depth: usize, word: u64, number: impl FnOnce(u32) -> Option<u32>) -> u64 {
    let behind = u64::from(depth > 0);
    let other = name_of(word.wrapping_sub(behind)).and_then(|name| number(name.raw()));
    other.map_or(word, |other| (NAMED | u64::from(other)) + behind)
}
