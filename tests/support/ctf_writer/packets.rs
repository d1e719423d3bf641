//! The packets of one stream: where the writer cuts a list of encoded events.
//!
//! In: events as time and bytes, in their order, and the losses of their CPU. Out: packets; each counts the events that
//! were discarded before it.

use super::super::random::Random;
use super::{Channel, Record};
use whyslow::parts::base::time::Ns;

/// Events in a packet.
const PACKET: usize = 500;

/// A packet before it is encoded.
pub struct Packet<'a> {
    pub number: u64,
    /// Events of the stream that were discarded before it.
    pub discarded: u64,
    pub end: Ns,
    pub records: &'a [Record],
}

/// Packets of [`PACKET`] events, cut where the tracer discarded some.
pub fn full<'a>(cpu: u32, records: &'a [Record], channel: &Channel) -> Vec<Packet<'a>> {
    let losses: Vec<(Ns, u64)> =
        channel.discarded.iter().filter(|(c, _, _)| *c == cpu).map(|(_, t, n)| (*t, *n)).collect();
    let mut parts: Vec<Packet<'a>> = Vec::new();
    let (mut from, mut discarded) = (0, 0);
    for at in 1..=records.len() {
        let here = records[at - 1].0;
        let next = records.get(at).map_or(Ns::MAX, |r| r.0);
        let lost = || losses.iter().filter(|(t, _)| here <= *t && *t < next);
        let count: u64 = lost().map(|(_, n)| n).sum();
        if at == records.len() || count > 0 || at - from == PACKET {
            let end = lost().map(|(t, _)| *t).min().unwrap_or(here);
            parts.push(Packet { number: parts.len() as u64, discarded, end, records: &records[from..at] });
            (from, discarded) = (at, discarded + count);
        }
    }
    parts
}

/// Packets of a few dozen events; with `loses` one in 8 is missing.
pub fn drawn(mut records: &[Record], mut random: Random, loses: bool) -> Vec<Packet<'_>> {
    let (mut parts, mut discarded, mut number) = (Vec::new(), 0, 0);
    while !records.is_empty() {
        let (own, rest) = records.split_at((5 + random.below(40)).min(records.len()));
        records = rest;
        number += 1;
        if loses && random.once_in(8) {
            discarded += if random.once_in(2) { own.len() as u64 } else { 0 };
            continue;
        }
        parts.push(Packet { number, discarded, end: own[own.len() - 1].0, records: own });
    }
    parts
}
