//! Frames of call stacks that were recorded by their names: words in place of addresses.
//!
//! A reader that finds names where others find addresses gives each name a number, and puts a word that no address can
//! be in its place; the step that names the stack later finds the name by that word.

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
/// its name, as a return address is after its call. Words that name nothing stay.
pub fn renamed(depth: usize, word: u64, number: impl FnOnce(u32) -> Option<u32>) -> u64 {
    let after = u64::from(depth > 0);
    let other = name_of(word.wrapping_sub(after)).and_then(|name| number(name.raw()));
    other.map_or(word, |other| (NAMED | u64::from(other)) + after)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn renamed_keeps_addresses_and_the_distance_of_callers() {
        let other = |number: u32| (number < 5).then_some(number + 10);
        assert_eq!(renamed(0, NAMED | 4, other), NAMED | 14);
        assert_eq!(renamed(1, (NAMED | 4) + 1, other), (NAMED | 14) + 1);
        for address in [0, 0x40_1000, NAMED | 7, u64::MAX, 0xffff_ffff_8100_0000] {
            assert_eq!(renamed(0, address, other), address);
        }
    }
}
