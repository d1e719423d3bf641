//! The parts of a call chain: the kernel's addresses, and those of user space, each after a marker.
//!
//! In: the words of a chain. Out: those after a marker, up to the next one (`perf_event.h`, PERF_CONTEXT_*).

use crate::base::cursor::ByteOrder;
use crate::input::record::IntegerArray;
use crate::input::tracepoint::StackSide;

/// Markers among the addresses of a call chain: those after it are the kernel's, or user space's.
const KERNEL: u64 = -128i64 as u64;
/// See [`KERNEL`].
pub const USER_SPACE: u64 = -512i64 as u64;
const FIRST_MARKER: u64 = -4095i64 as u64;

/// The addresses after the marker of the kernel, or of user space, up to the next marker.
pub fn part(chain: &[u8], side: StackSide, byte_order: ByteOrder) -> Option<IntegerArray<'_>> {
    let marker = match side {
        StackSide::Kernel => KERNEL,
        StackSide::User => USER_SPACE,
    };
    after_marker(chain, marker, byte_order)
}

fn is_marker(address: u64) -> bool {
    address >= FIRST_MARKER
}

/// The words after a marker up to the next one.
pub fn after_marker(chain: &[u8], marker: u64, byte_order: ByteOrder) -> Option<IntegerArray<'_>> {
    let (words, _) = chain.as_chunks::<8>();
    let address = |word: &[u8; 8]| match byte_order {
        ByteOrder::Little => u64::from_le_bytes(*word),
        ByteOrder::Big => u64::from_be_bytes(*word),
    };
    let from = words.iter().position(|word| address(word) == marker)? + 1;
    let length = words.get(from..)?.iter().position(|word| is_marker(address(word)));
    let bytes = chain.get(from * 8..)?;
    let bytes = bytes.get(..length.map_or(bytes.len() / 8 * 8, |n| n * 8))?;
    (!bytes.is_empty()).then_some(IntegerArray { bytes, width: 8, byte_order })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn part_divides_a_chain_at_its_markers() {
        let chain: Vec<u8> =
            [KERNEL, 1, 2, USER_SPACE, 3, 4, -640i64 as u64, 99].iter().flat_map(|w| w.to_le_bytes()).collect();
        let addresses = |side| part(&chain, side, ByteOrder::Little).map(|w| w.iter().collect::<Vec<_>>());
        assert_eq!((addresses(StackSide::Kernel), addresses(StackSide::User)), (Some(vec![1, 2]), Some(vec![3, 4])));
        assert!(part(&chain[..8], StackSide::Kernel, ByteOrder::Little).is_none());
        assert!(part(&[], StackSide::User, ByteOrder::Little).is_none());
    }
}
