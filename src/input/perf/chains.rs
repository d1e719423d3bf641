//! Call stacks of user space that are not part of their samples: those that the kernel wrote later, when the thread
//! returned to user space (`--call-graph fp,defer`, Linux 6.19), and those that were unwound from copies of the stack
//! ([`super::copies`]).
//!
//! In: addresses, with the place of their sample. Out: the addresses of a sample. The chain of a sample whose stack is
//! deferred ends with a marker and a cookie; `PERF_RECORD_CALLCHAIN_DEFERRED` of the same thread has the same cookie.
//! Cost: a binary search in the samples of a packet for each look-up.

use super::attrs::Attrs;
use super::chain_parts::{USER_SPACE, after_marker};
use super::header::{RecordHeader, bytes_after, record};
use super::walk_rules::WalkRules;
use crate::base::cursor::{ByteOrder, bits};
use crate::input::record::IntegerArray;
use foldhash::HashMap;
use std::ops::Range;

const CALLCHAIN_DEFERRED: u32 = 22;
/// `PERF_CONTEXT_USER_DEFERRED`: one cookie follows.
const DEFERRED: u64 = -640i64 as u64;

/// The addresses of one sample, among those of all.
#[derive(Clone, Copy, Debug)]
struct Chain {
    /// Offset of its record in the packet.
    at: usize,
    from: usize,
    to: usize,
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub struct StackStore {
    /// Addresses of 8 bytes, in the byte order of the recording.
    words: Vec<u8>,
    /// The stacks of each packet, in order of their samples.
    packets: HashMap<PacketKey, Vec<Chain>>,
    /// The number of stacks that do not reach their outermost function.
    pub cut_off: u64,
}

/// A packet of a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct PacketKey {
    /// Number of the stream.
    pub stream: usize,
    /// Number of the packet in it.
    pub packet: usize,
}

/// A stack and its sample.
#[derive(Clone, Debug)]
pub struct SampleStack {
    /// Offset of the sample's record in its packet.
    pub at: usize,
    /// Addresses, innermost first.
    pub addresses: Vec<u64>,
}

/// The stacks of one packet.
#[derive(Clone, Copy, Debug, Default)]
pub struct PacketStacks<'a> {
    words: &'a [u8],
    chains: &'a [Chain],
}

impl StackStore {
    /// Add the stacks of a packet, in the order of their samples.
    pub fn add(&mut self, packet: PacketKey, stacks: Vec<SampleStack>, byte_order: ByteOrder) {
        let mut chains = Vec::with_capacity(stacks.len());
        for SampleStack { at, addresses } in stacks {
            let from = self.words.len();
            for address in addresses {
                self.words.extend(if byte_order == ByteOrder::Big {
                    address.to_be_bytes()
                } else {
                    address.to_le_bytes()
                });
            }
            chains.push(Chain { at, from, to: self.words.len() });
        }
        if !chains.is_empty() {
            self.packets.insert(packet, chains);
        }
    }

    /// The stacks of a packet.
    pub fn of(&self, packet: PacketKey) -> PacketStacks<'_> {
        let chains = self.packets.get(&packet).map_or(&[][..], |chains| chains);
        PacketStacks { words: &self.words, chains }
    }
}

impl<'a> PacketStacks<'a> {
    /// The stack of the sample whose record begins at `at`.
    pub fn get(self, at: usize, byte_order: ByteOrder) -> Option<IntegerArray<'a>> {
        let found = self.chains.binary_search_by_key(&at, |chain| chain.at).ok()?;
        let chain = self.chains.get(found)?;
        let bytes = self.words.get(chain.from..chain.to).filter(|bytes| !bytes.is_empty())?;
        Some(IntegerArray { bytes, width: 8, byte_order })
    }
}

/// Identifies a deferred stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct StackCookie {
    thread: i32,
    /// Distinguishes the stacks of the thread.
    cookie: u64,
}

/// The stacks that the kernel wrote after their samples.
#[derive(Clone, Debug, Default)]
pub struct Deferred(HashMap<StackCookie, Vec<u64>>);

impl Deferred {
    /// Collect the deferred stacks of a file.
    pub fn gather(&mut self, rules: &WalkRules, bytes: &[u8], data: Range<usize>) {
        let mut at = data.start;
        let data = bytes.get(..data.end).unwrap_or(bytes);
        while let Some(rest) = data.get(at..).filter(|rest| !rest.is_empty()) {
            // The index has reported the damage.
            let Some(RecordHeader { kind, size, .. }) = record(rest, rules.byte_order) else { return };
            let Some(body) = rest.get(8..size) else { return };
            let Some(more) = bytes_after(kind, body, rules.byte_order) else { return };
            if kind == CALLCHAIN_DEFERRED {
                self.0.extend(deferred(&rules.attrs, body, rules.byte_order));
            }
            at = at.saturating_add(size).saturating_add(more);
        }
    }

    /// True where there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The stack of a sample of this thread with this chain.
    pub fn of(&self, thread: i32, chain: &[u8], byte_order: ByteOrder) -> Option<&Vec<u64>> {
        let cookie = after_marker(chain, DEFERRED, byte_order)?.iter().next()?;
        self.0.get(&StackCookie { thread, cookie })
    }
}

fn deferred(attrs: &Attrs, body: &[u8], byte_order: ByteOrder) -> Option<(StackCookie, Vec<u64>)> {
    let thread = attrs.of_record(body)?.thread_of_record(body)?;
    let (cookie, n) = (bits(body, 0, 64, byte_order)?, usize::try_from(bits(body, 64, 64, byte_order)?).ok()?);
    let bytes = body.get(16..)?.get(..n.checked_mul(8)?)?;
    let addresses = after_marker(bytes, USER_SPACE, byte_order).map_or_else(Vec::new, |words| words.iter().collect());
    Some((StackCookie { thread, cookie }, addresses))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stack_store_finds_stacks_by_the_place_of_their_sample() {
        for byte_order in ByteOrder::BOTH {
            let mut chains = StackStore::default();
            let stack = |(at, addresses)| SampleStack { at, addresses };
            let stacks = [(16, vec![1, 2]), (80, Vec::new()), (96, vec![3])].map(stack);
            chains.add(PacketKey { stream: 0, packet: 3 }, stacks.into(), byte_order);
            let get = |packet, at| {
                chains
                    .of(PacketKey { stream: 0, packet })
                    .get(at, byte_order)
                    .map(|words| words.iter().collect::<Vec<_>>())
            };
            assert_eq!((get(3, 16), get(3, 96)), (Some(vec![1, 2]), Some(vec![3])));
            assert_eq!((get(3, 80), get(3, 17), get(2, 16)), (None, None, None));
        }
    }
}
