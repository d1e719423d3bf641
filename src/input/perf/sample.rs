//! The places of a sample's parts, which follow from its `perf_event_attr`, and the parts themselves.
//!
//! A sample is its parts one after the other, in the order of `include/uapi/linux/perf_event.h`; those up to the period
//! have 8 bytes each, so their places are fixed. Records that are no samples end with some of the same parts
//! (`sample_id`), found from their end.

use super::attr::{
    Attr, BRANCH_STACK, CALLCHAIN, COUNTERS, CPU, FIXED, HW_INDEX, IP, PERIOD, RAW, READ, REGS_USER, SAMPLE_ID_ALL,
    STACK_USER, TID, TIME, TRAILER,
};
use crate::base::cursor::{ByteOrder, Bytes, bits};

/// Offsets of the parts of a sample, in bytes from the end of its header.
#[derive(Clone, Copy, Debug)]
pub struct SampleLayout {
    address: Option<usize>,
    tid: Option<usize>,
    time: Option<usize>,
    cpu: Option<usize>,
    fixed: usize,
    sample_type: u64,
    read_format: u64,
    branch_type: u64,
    registers: u64,
    /// The end of records that are no samples, where it has these parts.
    trailer: Option<TrailerLayout>,
    byte_order: ByteOrder,
}

/// Offsets of the parts at the end of a record that is no sample, in bytes from its end.
#[derive(Clone, Copy, Debug)]
struct TrailerLayout {
    tid: Option<usize>,
    time: Option<usize>,
    cpu: Option<usize>,
}

/// Process and thread of a sample, in perf's own namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadIds {
    /// The process.
    pub pid: i32,
    /// The thread.
    pub tid: i32,
}

/// Time and CPU of a record that is no sample, where they are recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimeAndCpu {
    /// Time, by the recorder's clock.
    pub time: Option<u64>,
    pub cpu: Option<u32>,
}

/// The registers of user space at a sample, and the stack from its pointer on.
#[derive(Clone, Copy, Debug)]
pub struct Copied<'a> {
    /// By bit of [`Self::mask`], words of 8 bytes.
    registers: &'a [u8],
    mask: u64,
    byte_order: ByteOrder,
    /// The bytes from the stack pointer on.
    pub stack: &'a [u8],
}

impl Copied<'_> {
    /// A register by its number in `arch/*/include/uapi/asm/perf_regs.h`; `None` where it was not recorded.
    pub fn register(&self, number: u32) -> Option<u64> {
        if self.mask >> number & 1 == 0 {
            return None;
        }
        let before = (self.mask & ((1u64 << number) - 1)).count_ones();
        bits(self.registers, u64::from(before) * 64, 64, self.byte_order)
    }
}

/// `PERF_SAMPLE_REGS_ABI_64`: the program runs in 64 bits.
const ABI_64: u64 = 2;

/// The parts of a sample of variable length.
#[derive(Clone, Copy, Debug, Default)]
pub struct Variable<'a> {
    /// The call chain, addresses of 8 bytes.
    pub chain: &'a [u8],
    /// The tracepoint's record.
    pub raw: &'a [u8],
}

/// The offset of one of the first parts of a sample, where it has it.
fn place(kind: u64, part: u64) -> Option<usize> {
    let before = FIXED.iter().take_while(|p| **p != part).filter(|p| kind & **p != 0).count();
    (kind & part != 0).then_some(before * 8)
}

/// The offset of the period in the samples of an attr, where they have it.
pub fn period_at(attr: &Attr) -> Option<usize> {
    place(attr.sample_type, PERIOD)
}

impl SampleLayout {
    /// The layout of an attr's samples.
    pub fn of(attr: &Attr) -> SampleLayout {
        let kind = attr.sample_type;
        let place = |part: u64| place(kind, part);
        let from_end = |part: u64| {
            let after = TRAILER.iter().skip_while(|p| **p != part).filter(|p| kind & **p != 0).count();
            (kind & part != 0).then_some(after * 8)
        };
        SampleLayout {
            address: place(IP),
            tid: place(TID),
            time: place(TIME),
            cpu: place(CPU),
            fixed: FIXED.iter().filter(|p| kind & **p != 0).count() * 8,
            sample_type: kind,
            read_format: attr.read_format,
            branch_type: attr.branch_type,
            registers: attr.registers,
            trailer: attr.flag(SAMPLE_ID_ALL).then(|| TrailerLayout {
                tid: from_end(TID),
                time: from_end(TIME),
                cpu: from_end(CPU),
            }),
            byte_order: attr.byte_order,
        }
    }

    fn word(&self, sample: &[u8], at: Option<usize>, size: u32) -> Option<u64> {
        bits(sample, at? as u64 * 8, size * 8, self.byte_order)
    }

    /// Time of a sample.
    #[inline(always)]
    pub fn time(&self, sample: &[u8]) -> Option<u64> {
        self.word(sample, self.time, 8)
    }

    /// True where samples name their CPU.
    pub fn names_cpu(&self) -> bool {
        self.cpu.is_some()
    }

    /// CPU of a sample.
    #[inline(always)]
    pub fn cpu(&self, sample: &[u8]) -> Option<u32> {
        self.word(sample, self.cpu, 4).map(|cpu| cpu as u32)
    }

    /// The bytes of the address at which a sample was taken.
    pub fn address<'a>(&self, sample: &'a [u8]) -> Option<&'a [u8]> {
        sample.get(self.address?..)?.get(..8)
    }

    /// Process and thread of a sample, in perf's own namespace.
    pub fn ids(&self, sample: &[u8]) -> Option<ThreadIds> {
        let pid = self.word(sample, self.tid, 4)?;
        let tid = self.word(sample, self.tid.map(|at| at + 4), 4)?;
        Some(ThreadIds { pid: pid as u32 as i32, tid: tid as u32 as i32 })
    }

    /// Time and CPU of a record that is no sample.
    pub fn time_and_cpu(&self, body: &[u8]) -> TimeAndCpu {
        let Some(TrailerLayout { time, cpu, .. }) = self.trailer else { return TimeAndCpu::default() };
        let from = |back: Option<usize>| body.len().checked_sub(back?);
        TimeAndCpu { time: self.word(body, from(time), 8), cpu: self.word(body, from(cpu), 4).map(|cpu| cpu as u32) }
    }

    /// Thread of a record that is no sample, in perf's own namespace.
    pub fn thread_of_record(&self, body: &[u8]) -> Option<i32> {
        let tid = self.trailer?.tid?;
        self.word(body, Some(body.len().checked_sub(tid)? + 4), 4).map(|tid| tid as u32 as i32)
    }

    /// The number of bytes of these parts at the end of a record that is no sample.
    pub fn trailer_bytes(&self) -> usize {
        let parts = TRAILER.iter().filter(|p| self.sample_type & **p != 0).count();
        if self.trailer.is_some() { parts * 8 } else { 0 }
    }

    /// Call chain and raw data of a sample; `None` where a length passes its end.
    #[inline(always)]
    pub fn variable<'a>(&self, sample: &'a [u8]) -> Option<Variable<'a>> {
        self.parts(sample).map(|(found, _)| found)
    }

    /// The copied stack of a sample; `None` where it has none, as for kernel threads, or for a 32-bit program.
    pub fn copied<'a>(&self, sample: &'a [u8]) -> Option<Copied<'a>> {
        if self.sample_type & REGS_USER == 0 || self.sample_type & STACK_USER == 0 {
            return None;
        }
        let (_, mut rest) = self.parts(sample)?;
        if self.sample_type & BRANCH_STACK != 0 {
            let n = usize::try_from(rest.u64(self.byte_order)?).ok()?;
            let has = |bit: u32| usize::from(self.branch_type >> bit & 1 == 1);
            let bytes = n.checked_mul(24 + 8 * has(COUNTERS))?.checked_add(8 * has(HW_INDEX))?;
            rest.take(bytes)?;
        }
        if rest.u64(self.byte_order)? != ABI_64 {
            return None;
        }
        let registers = rest.take(self.registers.count_ones() as usize * 8)?;
        let stack = rest.counted_u64(self.byte_order)?;
        // The bytes in use; none follow where none were copied.
        let used = if stack.is_empty() { 0 } else { usize::try_from(rest.u64(self.byte_order)?).ok()? };
        let stack = stack.get(..used).unwrap_or(stack);
        Some(Copied { registers, mask: self.registers, byte_order: self.byte_order, stack })
    }

    /// Call chain and raw data, and what follows them.
    #[inline(always)]
    fn parts<'a>(&self, sample: &'a [u8]) -> Option<(Variable<'a>, Bytes<'a>)> {
        let mut rest = Bytes::new(sample.get(self.fixed..)?);
        if self.sample_type & READ != 0 {
            self.skip_read(&mut rest)?;
        }
        let mut found = Variable::default();
        if self.sample_type & CALLCHAIN != 0 {
            let n = usize::try_from(rest.u64(self.byte_order)?).ok()?;
            found.chain = rest.take(n.checked_mul(8)?)?;
        }
        if self.sample_type & RAW != 0 {
            found.raw = rest.counted_u32(self.byte_order)?;
        }
        Some((found, rest))
    }

    /// `read_format`: 1 time enabled, 2 time running, 4 id, 8 group, 16 lost.
    fn skip_read(&self, rest: &mut Bytes<'_>) -> Option<()> {
        let has = |bit: u64| usize::from(self.read_format & bit != 0);
        let times = has(1) + has(2);
        let words = if has(8) == 1 {
            let n = usize::try_from(rest.u64(self.byte_order)?).ok()?;
            n.checked_mul(1 + has(4) + has(16))?.checked_add(times)?
        } else {
            1 + times + has(4) + has(16)
        };
        rest.take(words.checked_mul(8)?).map(|_| ())
    }
}

#[cfg(test)]
mod tests {
    use super::super::attr::IDENTIFIER;
    use super::*;

    fn attr(sample_type: u64, read_format: u64) -> Attr {
        let mut bytes = vec![0u8; 128];
        bytes[24..32].copy_from_slice(&sample_type.to_le_bytes());
        bytes[32..40].copy_from_slice(&read_format.to_le_bytes());
        bytes[40..48].copy_from_slice(&(1u64 << SAMPLE_ID_ALL).to_le_bytes());
        Attr::parse(&bytes, ByteOrder::Little).unwrap()
    }

    #[test]
    fn sample_layout_finds_each_part_of_a_sample() {
        let layout =
            SampleLayout::of(&attr(IDENTIFIER | IP | TID | TIME | CPU | PERIOD | READ | CALLCHAIN | RAW, 8 | 4 | 1));
        let mut sample: Vec<u8> = Vec::new();
        for word in [7u64, 0xffff_8000, 5 << 32 | 4, 1234, 3, 1, 2, 99, 1, 2, 3, 4, 2, 0xaa, 0xbb] {
            sample.extend(word.to_le_bytes());
        }
        sample.extend(4u32.to_le_bytes());
        sample.extend([1, 2, 3, 4]);
        assert_eq!(
            (layout.time(&sample), layout.cpu(&sample), layout.ids(&sample)),
            (Some(1234), Some(3), Some(ThreadIds { pid: 4, tid: 5 }))
        );
        let variable = layout.variable(&sample).unwrap();
        assert_eq!((variable.chain.len(), variable.raw), (16, &[1u8, 2, 3, 4][..]));
        assert!((0..sample.len()).all(|n| layout.variable(&sample[..n]).is_none()));
        let trailer: Vec<u8> = [0u64, 4, 77, 2, 7].iter().flat_map(|w| w.to_le_bytes()).collect();
        assert_eq!(layout.time_and_cpu(&trailer), TimeAndCpu { time: Some(77), cpu: Some(2) });
    }

    #[test]
    fn sample_layout_refuses_lengths_past_the_end() {
        let layout = SampleLayout::of(&attr(TIME | CALLCHAIN | RAW, 0));
        let words: Vec<u8> = [1u64, u64::MAX, 0].iter().flat_map(|w| w.to_le_bytes()).collect();
        assert!(layout.variable(&words).is_none());
        let group = SampleLayout::of(&attr(READ, 8 | 16));
        assert!(group.variable(&u64::MAX.to_le_bytes()).is_none());
    }
}
