//! How the rows of each family become numbers.
//!
//! Numbers that are mostly absent are zero then, and those of one leaf are of like size: see [`super::columns`].

use super::leaf::{Extent, MOST_SHOWN, StoredRow};
use crate::base::names::NameId;
use crate::base::time::{Span, Timestamp};
use crate::event::descriptor::NamedDescriptor;
use crate::event::host::HostId;
use crate::event::stack::{RawStackId, SampleWeight, StackOrigin};
use crate::timeline::{
    Call, CounterOwner, CounterValue, CpuRun, DiskRequest, PageFault, Segment, SegmentKind, Service, StackChange,
    StackSample, ThreadId, Waker,
};

/// Bits of the number of a kind; the CPU is above.
const KIND_BITS: u32 = 4;
const _: () = assert!(SegmentKind::ALL.len() <= 1 << KIND_BITS);

/// Origins of stack samples by number.
const ORIGINS: [StackOrigin; 7] = [
    StackOrigin::CallEntry,
    StackOrigin::CallExit,
    StackOrigin::Tick,
    StackOrigin::SwitchOut,
    StackOrigin::AfterCall,
    StackOrigin::Function,
    StackOrigin::Other,
];
/// Bits of the number of an origin; the user stack is above.
const ORIGIN_BITS: u32 = 3;

/// Results of calls below this, shifted, are in a column of their own: larger ones, such as addresses, are few.
const SMALL_RESULT: u64 = 0xffff;

/// The number of an id that may be absent.
pub(super) fn optional(raw: Option<u32>) -> u64 {
    raw.map_or(0, |raw| u64::from(raw) + 1)
}

/// The id of such a number.
#[inline(always)]
pub(super) fn present(number: u64) -> Option<u32> {
    number.checked_sub(1).map(|raw| raw as u32)
}

impl StoredRow for Segment {
    const EXTENT: Extent = Extent::Follows;
    const FIELDS: usize = 4;
    const SHOWN: usize = 2;
    const STATES: usize = SegmentKind::ALL.len();

    #[inline(always)]
    fn state_of(field: impl Fn(usize) -> u64) -> usize {
        kind_of(field(0)) as usize
    }

    /// State and CPU.
    #[inline(always)]
    fn shown(&self) -> [Option<u32>; MOST_SHOWN] {
        [Some(self.kind as u32).filter(|_| self.kind != SegmentKind::Unknown), Some(self.cpu)]
    }

    #[inline(always)]
    fn field(&self, number: usize) -> u64 {
        match number {
            0 => u64::from(self.cpu) << KIND_BITS | self.kind as u64,
            1 => optional(self.qualifier.map(|name| name.raw())),
            2 => optional(self.waker.map(|waker| waker.thread.raw())),
            // A wake-up ends the wait, but a packet is sent before.
            _ => self.waker.map_or(0, |waker| distance(self.span.end, waker.at)),
        }
    }

    #[inline(always)]
    fn of(span: Span, field: impl Fn(usize) -> u64) -> Segment {
        let (kind, thread) = (field(0), field(2));
        // Made for each row: whether there is one is hard to predict.
        let waker =
            Waker { thread: ThreadId::from_raw(thread.wrapping_sub(1) as u32), at: back_by(span.end, field(3)) };
        Segment {
            span,
            kind: kind_of(kind),
            waker: (thread != 0).then_some(waker),
            qualifier: present(field(1)).map(NameId::from_raw),
            cpu: (kind >> KIND_BITS) as u32,
        }
    }
}

impl StoredRow for Call {
    const EXTENT: Extent = Extent::Length;

    const FIELDS: usize = 4;
    const SHOWN: usize = 1;

    /// Its name.
    #[inline(always)]
    fn shown(&self) -> [Option<u32>; MOST_SHOWN] {
        [Some(self.name.raw()), None]
    }

    #[inline(always)]
    fn field(&self, number: usize) -> u64 {
        let ret = self.ret.map_or(0, zigzag);
        match number {
            0 => u64::from(self.name.raw()) << 1 | u64::from(self.ret.is_some()),
            1 => ret.min(SMALL_RESULT),
            2 => ret.saturating_sub(SMALL_RESULT),
            _ => self.descriptor.map_or(0, |named| named.packed() + 1),
        }
    }

    #[inline(always)]
    fn of(span: Span, field: impl Fn(usize) -> u64) -> Call {
        let name = field(0);
        let ret = (name & 1 == 1).then(|| match field(1) {
            SMALL_RESULT => unzigzag(SMALL_RESULT.wrapping_add(field(2))),
            ret => unzigzag(ret),
        });
        let descriptor = field(3).checked_sub(1).and_then(NamedDescriptor::of_packed);
        Call { span, name: NameId::from_raw((name >> 1) as u32), ret, descriptor }
    }
}

impl StoredRow for StackSample {
    const EXTENT: Extent = Extent::Instant;

    const FIELDS: usize = 4;

    #[inline(always)]
    fn field(&self, number: usize) -> u64 {
        match number {
            0 => self.origin as u64 | optional(self.user.map(|stack| stack.raw())) << ORIGIN_BITS,
            1 => optional(self.kernel.map(|stack| stack.raw())),
            2 => optional(self.weight.get().map(|weight| weight.event.raw())),
            _ => self.weight.get().map_or(0, |weight| weight.amount),
        }
    }

    #[inline(always)]
    fn of(span: Span, field: impl Fn(usize) -> u64) -> StackSample {
        let origin = field(0);
        StackSample {
            time: span.end,
            origin: ORIGINS.get(origin as usize & ((1 << ORIGIN_BITS) - 1)).copied().unwrap_or(StackOrigin::Other),
            user: present(origin >> ORIGIN_BITS).map(RawStackId::from_raw),
            kernel: present(field(1)).map(RawStackId::from_raw),
            weight: present(field(2))
                .map(|event| SampleWeight { event: NameId::from_raw(event), amount: field(3) })
                .into(),
        }
    }
}

impl StoredRow for StackChange {
    const EXTENT: Extent = Extent::Instant;

    const FIELDS: usize = 1;

    #[inline(always)]
    fn field(&self, _: usize) -> u64 {
        u64::from(self.stack)
    }

    #[inline(always)]
    fn of(span: Span, field: impl Fn(usize) -> u64) -> StackChange {
        StackChange { time: span.end, stack: field(0) as u32 }
    }
}

impl StoredRow for CpuRun {
    const EXTENT: Extent = Extent::Follows;

    const FIELDS: usize = 1;
    const SHOWN: usize = 1;

    /// The thread, of which the tid is shown.
    #[inline(always)]
    fn shown(&self) -> [Option<u32>; MOST_SHOWN] {
        [Some(self.thread.raw()), None]
    }

    fn shows_same(a: u32, b: u32, tid: impl Fn(u32) -> Option<i32>) -> Option<bool> {
        if a == b { Some(true) } else { tid(a).zip(tid(b)).map(|(a, b)| a == b) }
    }

    #[inline(always)]
    fn field(&self, _: usize) -> u64 {
        self.thread.raw().into()
    }

    #[inline(always)]
    fn of(span: Span, field: impl Fn(usize) -> u64) -> CpuRun {
        CpuRun { span, thread: ThreadId::from_raw(field(0) as u32) }
    }
}

impl StoredRow for DiskRequest {
    const EXTENT: Extent = Extent::Length;
    const FIELDS: usize = 6;

    fn field(&self, number: usize) -> u64 {
        match number {
            0 => {
                let flags = u64::from(self.is_completed) << 1 | u64::from(self.write);
                u64::from(self.host.raw()) << 34 | u64::from(self.device) << 2 | flags
            }
            1 => self.sector,
            2 => self.bytes,
            3 => optional(self.submitter.map(|thread| thread.raw())),
            4 => optional(self.queued_by.map(|thread| thread.raw())),
            _ => distance(self.span.end, self.issued),
        }
    }

    fn of(span: Span, field: impl Fn(usize) -> u64) -> DiskRequest {
        let device = field(0);
        DiskRequest {
            host: HostId::from_raw((device >> 34) as u32),
            device: (device >> 2) as u32,
            sector: field(1),
            bytes: field(2),
            write: device & 1 == 1,
            submitter: present(field(3)).map(ThreadId::from_raw),
            queued_by: present(field(4)).map(ThreadId::from_raw),
            span,
            is_completed: device & 2 == 2,
            issued: back_by(span.end, field(5)),
        }
    }
}

impl StoredRow for Service {
    const EXTENT: Extent = Extent::Length;
    const FIELDS: usize = 3;

    fn field(&self, number: usize) -> u64 {
        match number {
            0 => self.thread.raw().into(),
            1 => self.client.raw().into(),
            _ => distance(self.span.end, self.since),
        }
    }

    fn of(span: Span, field: impl Fn(usize) -> u64) -> Service {
        let [thread, client] = [0, 1].map(|number| ThreadId::from_raw(field(number) as u32));
        Service { thread, span, client, since: back_by(span.end, field(2)) }
    }
}

impl StoredRow for PageFault {
    const EXTENT: Extent = Extent::Instant;
    const FIELDS: usize = 1;

    fn field(&self, _: usize) -> u64 {
        self.thread.raw().into()
    }

    fn of(span: Span, field: impl Fn(usize) -> u64) -> PageFault {
        PageFault { thread: ThreadId::from_raw(field(0) as u32), time: span.end }
    }
}

impl StoredRow for CounterValue {
    const EXTENT: Extent = Extent::Instant;
    const FIELDS: usize = 2;

    fn field(&self, number: usize) -> u64 {
        match (number, self.owner) {
            (0, CounterOwner::Thread(thread)) => u64::from(thread.raw()) << 1,
            (0, CounterOwner::Cpu(host, cpu)) => u64::from(host.raw()) << 33 | u64::from(cpu) << 1 | 1,
            _ => self.value,
        }
    }

    fn of(span: Span, field: impl Fn(usize) -> u64) -> CounterValue {
        let owner = field(0);
        let owner = match owner & 1 {
            0 => CounterOwner::Thread(ThreadId::from_raw((owner >> 1) as u32)),
            _ => CounterOwner::Cpu(HostId::from_raw((owner >> 33) as u32), (owner >> 1) as u32),
        };
        CounterValue { owner, time: span.end, value: field(1) }
    }
}

/// The kind of a segment, of the number that it has together with the CPU.
#[inline(always)]
fn kind_of(number: u64) -> SegmentKind {
    let kind = number as usize & ((1 << KIND_BITS) - 1);
    SegmentKind::ALL.get(kind).copied().unwrap_or(SegmentKind::Unknown)
}

/// How long `t` is before `end`, or after it: the lowest bit is the sign.
#[inline(always)]
fn distance(end: Timestamp, t: Timestamp) -> u64 {
    zigzag(end.ns().wrapping_sub(t.ns()))
}

/// The moment at such a distance from `end`.
#[inline(always)]
fn back_by(end: Timestamp, distance: u64) -> Timestamp {
    end.wrapping_add((unzigzag(distance) as u64).wrapping_neg())
}

/// Small negative numbers stay small: the sign is in the lowest bit.
#[inline(always)]
pub(super) fn zigzag(n: i64) -> u64 {
    ((n << 1) ^ (n >> 63)) as u64
}

#[inline(always)]
pub(super) fn unzigzag(n: u64) -> i64 {
    (n >> 1) as i64 ^ -((n & 1) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_positions() {
        assert!((0..).zip(SegmentKind::ALL).all(|(at, kind)| kind as usize == at));
        assert!((0..).zip(ORIGINS).all(|(at, origin)| origin as usize == at));
    }
}
