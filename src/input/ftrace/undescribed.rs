//! Events whose format is not in the recording, counted by packet.
//!
//! In: the walks through whole packets, which skip such events. Out: a notice. A packet is walked several times, by
//! several workers, and each walk finds the same, so what it found is stored and not added: the notice is the same for
//! any number of workers. A walk that did not begin at the begin of its packet stores nothing. Memory: eight bytes for
//! each packet.

use super::cpu_pages::CpuPages;
use crate::base::notice::{Notice, Notices};
use std::sync::atomic::{AtomicU64, Ordering};

/// Bits of the number of a format.
const ID_BITS: u32 = 16;

/// The events without a format that a walk met.
#[derive(Clone, Copy, Debug, Default)]
pub struct UndescribedOfWalk {
    events: u64,
    /// The number of the format of the first; 0 for a record that is too short for one.
    first: u16,
    /// The walk left out a part of its packet.
    is_partial: bool,
}

impl UndescribedOfWalk {
    /// Count an event whose format has this number.
    #[cold]
    pub fn meet(&mut self, format: Option<usize>) {
        if self.events == 0 {
            self.first = format.and_then(|format| u16::try_from(format).ok()).unwrap_or(0);
        }
        self.events += 1;
    }

    /// The walk goes elsewhere in its packet.
    pub fn leave_out(&mut self) {
        self.is_partial = true;
    }
}

/// See the module.
#[derive(Debug)]
pub struct UndescribedEvents {
    /// By CPU and packet: the number of events, and in the lowest bits the number of the first format.
    cpus: Vec<Box<[AtomicU64]>>,
}

impl UndescribedEvents {
    /// None was met yet.
    pub fn new(cpus: &[CpuPages]) -> UndescribedEvents {
        let packets = |cpu: &CpuPages| (0..cpu.bytes.div_ceil(cpu.packet())).map(|_| AtomicU64::new(0)).collect();
        UndescribedEvents { cpus: cpus.iter().map(packets).collect() }
    }

    /// Keep what a walk through a packet met.
    pub fn keep(&self, cpu: usize, packet: usize, met: UndescribedOfWalk) {
        if met.is_partial || met.events == 0 {
            return;
        }
        if let Some(place) = self.cpus.get(cpu).and_then(|packets| packets.get(packet)) {
            place.store(met.events << ID_BITS | u64::from(met.first), Ordering::Relaxed);
        }
    }

    /// Add the notice about all that was met.
    pub fn notice(&self, notices: &mut Notices) {
        for met in self.cpus.iter().flatten().map(|packet| packet.load(Ordering::Relaxed)) {
            let place = || format!("no format has the number {}", met & ((1 << ID_BITS) - 1));
            notices.add(Notice::EventsUndescribed, met >> ID_BITS, place);
        }
    }
}
