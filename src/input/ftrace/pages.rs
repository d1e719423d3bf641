//! Walks from record to record through the pages of one CPU.
//!
//! A page is a time stamp, a word with the number of bytes of data and a flag for events lost before them, and records:
//! 5 bits of type or length, 27 bits of time since the previous record (`kernel/trace/ring_buffer.c`). Times ascend
//! within a CPU. The stack events that the tracer writes after an event belong to it: they are searched for among the
//! next records of the same thread, past records that interrupts may have written between.

use super::marker::MarkerClasses;
use super::undescribed::UndescribedOfWalk;
use crate::base::cursor::{ByteOrder, bits};
use crate::input::record::{ClassId, IntegerArray};
use crate::input::tracepoint::{Raw, StackSide, Walk, WalkPosition, WalkStep};

/// Type of padding.
pub const PADDING: u32 = 29;
/// Type of the high bits of a time difference.
pub const EXTEND: u32 = 30;
/// Type of an absolute time.
pub const ABSOLUTE: u32 = 31;
/// The bits of a page's length of data; the bits above are flags.
const COMMIT: u64 = (1 << 27) - 1;
/// Flag: events were lost before the page.
const MISSED: u64 = 1 << 31;
/// Flag: the number of lost events follows the data.
const COUNTED: u64 = 1 << 30;
/// The bits that an absolute time does not have.
const ABOVE_ABSOLUTE: u64 = !((1 << 59) - 1);
/// The number of records after an event among which its stack is searched for.
const NEAR: usize = 16;

/// The properties that all walks through a file share.
#[derive(Debug)]
pub struct PageRules {
    /// The order of the bytes of numbers.
    pub byte_order: ByteOrder,
    /// Bytes of a kernel's `long`.
    pub long: usize,
    /// Offset of the data in a page.
    pub data: usize,
    /// Classes by the number of their format.
    pub classes: Vec<Option<ClassId>>,
    /// The classes of stacks.
    pub stacks: StackClasses,
    /// The classes of markers, where the recording holds any.
    pub markers: Option<MarkerClasses>,
    /// The scale of the clock, where it does not count nanoseconds.
    pub ticks: Option<TickScale>,
}

/// The classes of the events that hold stacks.
#[derive(Clone, Copy, Debug, Default)]
pub struct StackClasses {
    /// Stacks in the kernel.
    pub kernel: Option<ClassId>,
    /// Stacks in user space.
    pub user: Option<ClassId>,
}

/// The scale of a clock's ticks: `(ticks * multiplier >> shift) + offset` are nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TickScale {
    /// Factor.
    pub multiplier: u32,
    /// Bits to shift right.
    pub shift: u32,
    /// Nanoseconds to add.
    pub offset: u64,
}

impl PageRules {
    /// The clock's ticks to ns.
    #[inline(always)]
    pub fn ns(&self, time: u64) -> u64 {
        match self.ticks {
            None => time,
            Some(TickScale { multiplier, shift, offset }) => {
                let ns = (u128::from(time) * u128::from(multiplier)).checked_shr(shift).unwrap_or(0);
                (ns as u64).wrapping_add(offset)
            }
        }
    }

    /// The number of the format of a record; `None` where it is too short to have one.
    #[inline(always)]
    pub fn format_of(&self, data: &[u8]) -> Option<usize> {
        bits(data, 0, 16, self.byte_order).map(|id| id as usize)
    }

    /// The header of a page; `None` where the page is cut off inside it.
    pub fn page(&self, page: &[u8]) -> Option<PageHeader> {
        let word = |at: usize, size: usize| bits(page, at as u64 * 8, size as u32 * 8, self.byte_order);
        let (time, commit) = (word(0, 8)?, word(8, self.long)?);
        let end = self.data + (commit & COMMIT) as usize;
        let loss = match (commit & MISSED != 0, commit & COUNTED != 0) {
            (false, _) => None,
            (true, false) => Some(PageLoss { events: None }),
            (true, true) => Some(PageLoss { events: word(end, self.long) }),
        };
        Some(PageHeader { time, end, loss })
    }

    /// What is after the data of a page and the number of events that were lost before it.
    pub fn after_data<'a>(&self, page: &'a [u8], header: PageHeader) -> &'a [u8] {
        let count = header.loss.and_then(|loss| loss.events).map_or(0, |_| self.long);
        page.get(header.end + count..).unwrap_or(&[])
    }
}

/// The header of a page.
#[derive(Clone, Copy, Debug)]
pub struct PageHeader {
    /// Its time stamp, in ticks of the clock.
    pub time: u64,
    /// End of its data, in bytes from its beginning.
    pub end: usize,
    /// The events that were lost before it, if any were.
    pub loss: Option<PageLoss>,
}

/// Events that were lost before a page.
#[derive(Clone, Copy, Debug)]
pub struct PageLoss {
    /// Their number, where it is recorded.
    pub events: Option<u64>,
}

/// See the module.
#[derive(Clone, Debug)]
pub struct PageWalk<'a> {
    rules: &'a PageRules,
    /// The pages of the packet and what follows them on the same CPU.
    pages: &'a [u8],
    /// Bytes of the packet.
    bytes: usize,
    size: usize,
    at: usize,
    /// End of the data of the page that contains `at`; 0 before the first.
    end: usize,
    time: u64,
    undescribed: UndescribedOfWalk,
}

impl<'a> PageWalk<'a> {
    /// A walk through the first `bytes` of the pages, which have `size` bytes each.
    pub fn new(rules: &'a PageRules, pages: &'a [u8], bytes: usize, size: usize) -> PageWalk<'a> {
        let undescribed = UndescribedOfWalk::default();
        PageWalk { rules, pages, bytes, size, at: 0, end: 0, time: 0, undescribed }
    }

    /// The events without a format among the records so far.
    pub fn undescribed(&self) -> UndescribedOfWalk {
        self.undescribed
    }

    /// Go to the page that begins at `start`, a multiple of the page size.
    fn open(&mut self, start: usize) -> Result<(), &'static str> {
        let page = self.pages.get(start..).map(|rest| rest.get(..self.size).unwrap_or(rest)).unwrap_or(&[]);
        let PageHeader { time, end, .. } = self.rules.page(page).ok_or("a page is cut off")?;
        if end > page.len() {
            return Err("the data of a page pass its end");
        }
        (self.at, self.end, self.time) = (start + self.rules.data, start + end, time);
        Ok(())
    }

    #[inline(always)]
    fn word(&self, at: usize) -> Option<u32> {
        if at + 4 > self.end {
            return None;
        }
        bits(self.pages, at as u64 * 8, 32, self.rules.byte_order).map(|w| w as u32)
    }

    /// The data of the next record, and its time.
    #[inline(always)]
    fn record(&mut self) -> Result<Option<&'a [u8]>, &'static str> {
        loop {
            if self.at >= self.end {
                let next =
                    if self.end == 0 { 0 } else { (self.at.max(self.end) - 1) / self.size * self.size + self.size };
                if next >= self.bytes {
                    (self.at, self.end) = (self.bytes, self.bytes);
                    return Ok(None);
                }
                self.open(next)?;
                continue;
            }
            let cut = "a record passes the end of its page";
            let word = self.word(self.at).ok_or(cut)?;
            let (kind, delta) = match self.rules.byte_order {
                ByteOrder::Little => (word & 31, u64::from(word >> 5)),
                ByteOrder::Big => (word >> 27, u64::from(word & ((1 << 27) - 1))),
            };
            let (from, length) = match kind {
                0 => {
                    let length = self.word(self.at + 4).ok_or(cut)? as usize;
                    (self.at + 8, length.checked_sub(4).ok_or("a record without length")?)
                }
                PADDING if delta == 0 => {
                    self.at = self.end;
                    continue;
                }
                PADDING => {
                    // It may pass the end of the data, but not that of the page: the pages after it would be skipped.
                    let length = (self.word(self.at + 4).ok_or(cut)? as usize).next_multiple_of(4).max(4);
                    let end = self.at / self.size * self.size + self.size;
                    self.at = (self.at + 4).checked_add(length).filter(|to| *to <= end).ok_or(cut)?;
                    self.time = self.time.wrapping_add(delta);
                    continue;
                }
                EXTEND | ABSOLUTE => {
                    let high = u64::from(self.word(self.at + 4).ok_or(cut)?) << 27;
                    self.time = match kind {
                        EXTEND => self.time.wrapping_add(delta).wrapping_add(high),
                        _ => self.time & ABOVE_ABSOLUTE | delta | high,
                    };
                    self.at += 8;
                    continue;
                }
                n => (self.at + 4, n as usize * 4),
            };
            let to = from.checked_add(length.next_multiple_of(4)).filter(|to| *to <= self.end).ok_or(cut)?;
            self.time = self.time.wrapping_add(delta);
            self.at = to;
            return Ok(self.pages.get(from..from + length));
        }
    }

    fn class(&self, data: &[u8]) -> Option<ClassId> {
        let class = self.rules.classes.get(self.rules.format_of(data)?).copied().flatten()?;
        Some(self.rules.markers.as_ref().map_or(class, |markers| markers.class(class, data)))
    }

    fn tid(&self, data: &[u8]) -> Option<u64> {
        bits(data, 32, 32, self.rules.byte_order)
    }
}

impl<'a> Walk<'a> for PageWalk<'a> {
    #[inline(always)]
    fn next(&mut self) -> WalkStep<'a> {
        loop {
            match self.record() {
                Err(what) => return WalkStep::Damage(what),
                Ok(None) => return WalkStep::End,
                Ok(Some(data)) => {
                    let Some(class) = self.class(data) else {
                        self.undescribed.meet(self.rules.format_of(data));
                        continue;
                    };
                    let clock = self.rules.ns(self.time);
                    let around = self.pages.get(self.at..).unwrap_or(&[]);
                    return WalkStep::Record(Raw { class, clock, body: data, around, chain: &[] });
                }
            }
        }
    }

    fn position(&self) -> WalkPosition {
        WalkPosition { at: self.at as u64, clock: self.time }
    }

    fn go(&mut self, WalkPosition { at, clock }: WalkPosition) {
        let at = at as usize;
        self.undescribed.leave_out();
        let inside = at % self.size >= self.rules.data;
        // If no page was entered, the next step enters one.
        if inside && self.open(at / self.size * self.size).is_ok() {
            (self.at, self.time) = (at, clock);
        } else if at > 0 {
            (self.at, self.end) = (at, at);
        } else {
            (self.at, self.end) = (0, 0);
        }
    }

    fn thread(&self, raw: &Raw<'a>) -> Option<i32> {
        self.tid(raw.body).map(|tid| tid as u32 as i32)
    }

    fn process(&self, _raw: &Raw<'a>) -> Option<i32> {
        None
    }

    fn stack(&self, raw: &Raw<'a>, side: StackSide) -> Option<IntegerArray<'a>> {
        let StackClasses { kernel, user } = self.rules.stacks;
        let wanted = match side {
            StackSide::Kernel => kernel?,
            StackSide::User => user?,
        };
        let thread = self.tid(raw.body);
        let mut ahead = PageWalk { bytes: self.pages.len(), ..self.clone() };
        for _ in 0..NEAR {
            let data = ahead.record().ok()??;
            if self.tid(data) != thread {
                continue;
            }
            let class = self.class(data)?;
            if class == wanted {
                return self.rules.addresses(data, side);
            }
            if ![kernel, user].contains(&Some(class)) {
                // The next event of the thread, so the event has no stack.
                return None;
            }
        }
        None
    }
}

impl PageRules {
    /// The addresses of a recorded stack. A kernel stack has a count at byte 8 and that many addresses from byte 16 on
    /// (12 where a `long` has 4 bytes), even if the format describes it otherwise; a user stack has eight addresses
    /// from the same place on, with zeros after the last.
    fn addresses<'a>(&self, data: &'a [u8], side: StackSide) -> Option<IntegerArray<'a>> {
        let long = self.long;
        let words = |bytes| IntegerArray { bytes, width: long as u8, byte_order: self.byte_order };
        let (all, count) = match side {
            StackSide::Kernel => (data.get(8 + long..)?, bits(data, 64, 32, self.byte_order)? as usize),
            StackSide::User => {
                let all = data.get(8 + long..)?;
                (all, words(all).iter().take(8).position(|address| address == 0).unwrap_or(8))
            }
        };
        let bytes = all.get(..count.checked_mul(long)?.min(all.len() / long * long))?;
        (!bytes.is_empty()).then_some(words(bytes))
    }
}
