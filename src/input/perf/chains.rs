//! Call stacks of user space that do not stand in their samples: those that the kernel wrote later, when the thread
//! went back to user space (`--call-graph fp,defer`, Linux 6.19), and those that were unwound from copies of the stack
//! ([`super::copies`]).
//!
//! In: addresses by the place of their sample. Out: the addresses of a sample. A sample whose stack is deferred ends
//! its chain with a marker and a cookie; `PERF_RECORD_CALLCHAIN_DEFERRED` of the same thread has the same cookie. Cost:
//! a binary search in the samples of a packet for each look-up.

use super::attr::Attrs;
use super::header::{outside, record};
use super::walk::{USER_SPACE, WalkRules, behind};
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
    /// By stream and packet, in order of their samples.
    packets: HashMap<(usize, usize), Vec<Chain>>,
    /// So many of the stacks do not reach to their outermost function.
    pub cut_off: u64,
}

/// Those of one packet.
#[derive(Clone, Copy, Debug, Default)]
pub struct OfPacket<'a> {
    words: &'a [u8],
    chains: &'a [Chain],
}

impl StackStore {
    /// Add the stacks of a packet: the places of their records, ascending, and addresses, innermost first.
    pub fn add(&mut self, (stream, packet): (usize, usize), stacks: Vec<(usize, Vec<u64>)>, byte_order: ByteOrder) {
        let mut chains = Vec::with_capacity(stacks.len());
        for (at, addresses) in stacks {
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
            self.packets.insert((stream, packet), chains);
        }
    }

    /// Those of a packet.
    pub fn of(&self, stream: usize, packet: usize) -> OfPacket<'_> {
        let chains = self.packets.get(&(stream, packet)).map_or(&[][..], |chains| chains);
        OfPacket { words: &self.words, chains }
    }
}

impl<'a> OfPacket<'a> {
    /// The stack of the sample whose record begins at `at`.
    pub fn get(self, at: usize, byte_order: ByteOrder) -> Option<IntegerArray<'a>> {
        let found = self.chains.binary_search_by_key(&at, |chain| chain.at).ok()?;
        let chain = self.chains.get(found)?;
        let bytes = self.words.get(chain.from..chain.to).filter(|bytes| !bytes.is_empty())?;
        Some(IntegerArray { bytes, width: 8, byte_order })
    }
}

/// Cookies distinguish a thread's deferred stacks.
type Cookie = (i32, u64);

/// The stacks that were written behind their samples.
#[derive(Clone, Debug, Default)]
pub struct Deferred(HashMap<Cookie, Vec<u64>>);

impl Deferred {
    /// Gather those among the records of a file.
    pub fn gather(&mut self, ways: &WalkRules, bytes: &[u8], data: Range<usize>) {
        let mut at = data.start;
        let data = bytes.get(..data.end).unwrap_or(bytes);
        while let Some(rest) = data.get(at..).filter(|rest| !rest.is_empty()) {
            // The index has reported the damage.
            let Some((kind, _, size)) = record(rest, ways.byte_order) else { return };
            let Some(body) = rest.get(8..size) else { return };
            let Some(more) = outside(kind, body, ways.byte_order) else { return };
            if kind == CALLCHAIN_DEFERRED {
                self.0.extend(deferred(&ways.attrs, body, ways.byte_order));
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
        let cookie = behind(chain, DEFERRED, byte_order)?.iter().next()?;
        self.0.get(&(thread, cookie))
    }
}

fn deferred(attrs: &Attrs, body: &[u8], byte_order: ByteOrder) -> Option<(Cookie, Vec<u64>)> {
    let thread = attrs.of_record(body)?.thread_of_record(body)?;
    let (cookie, n) = (bits(body, 0, 64, byte_order)?, usize::try_from(bits(body, 64, 64, byte_order)?).ok()?);
    let bytes = body.get(16..)?.get(..n.checked_mul(8)?)?;
    let addresses = behind(bytes, USER_SPACE, byte_order).map_or_else(Vec::new, |words| words.iter().collect());
    Some(((thread, cookie), addresses))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacks_are_found_by_the_place_of_their_sample() {
        for byte_order in ByteOrder::BOTH {
            let mut chains = StackStore::default();
            chains.add((0, 3), vec![(16, vec![1, 2]), (80, Vec::new()), (96, vec![3])], byte_order);
            let get =
                |packet, at| chains.of(0, packet).get(at, byte_order).map(|words| words.iter().collect::<Vec<_>>());
            assert_eq!((get(3, 16), get(3, 96)), (Some(vec![1, 2]), Some(vec![3])));
            assert_eq!((get(3, 80), get(3, 17), get(2, 16)), (None, None, None));
        }
    }
}
