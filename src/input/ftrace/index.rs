//! The packets and losses of each CPU, and whether any text in the pages is a marker.
//!
//! In: the pages of all CPUs. Out: [`PageIndex`]. A part is up to [`PART`] bytes of whole packets of one CPU; all
//! workers read parts, each the headers of its pages and, where the recording may have markers, all of its bytes once.
//! So the pages are first touched by the workers, and what is left for one of them is to join packets. Cost: memory is
//! read once. Invariant: the index does not depend on the size of parts: a record never leaves its page, and a page's
//! loss needs the last record of the page before it, which is found whatever part that page is in.

use super::cpu_pages::CpuPages;
use super::marker::MarkerSearch;
use super::pages::{PageHeader, PageLoss, PageRules, PageWalk};
use crate::base::ctx::{Cancelled, Ctx};
use crate::base::parallel::in_order;
use crate::input::tracepoint::{ClockLoss, CpuPacket, Walk, WalkStep};

/// Bytes of pages that a worker reads at a time, about.
const PART: usize = 1 << 20;

/// The packets and losses of a CPU.
#[derive(Clone, Debug, Default)]
pub struct CpuIndex {
    /// Packets in order.
    pub packets: Vec<CpuPacket>,
    /// The losses that its pages report.
    pub losses: Vec<ClockLoss>,
    /// Pages with more than their headers describe.
    pub overlong: OverlongPages,
}

/// Pages that hold more than their headers describe: the kernel fills what is after their data with zeros.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OverlongPages {
    /// Their number.
    pub pages: u64,
    /// The place of the first, in bytes from the first page of its CPU.
    pub first: usize,
}

/// See the module.
#[derive(Debug)]
pub struct PageIndex {
    /// By CPU.
    pub cpus: Vec<CpuIndex>,
    /// True where a text is a marker.
    pub has_markers: bool,
}

/// A run of whole packets of a CPU, in bytes of its pages.
#[derive(Clone, Copy, Debug)]
struct Part {
    cpu: usize,
    from: usize,
    to: usize,
}

/// What is found in a part.
#[derive(Debug, Default)]
struct PartIndex {
    packets: Vec<FoundPacket>,
    losses: Vec<ClockLoss>,
    overlong: OverlongPages,
}

/// A packet before its end is known, which is the beginning of the next one.
#[derive(Clone, Copy, Debug)]
struct FoundPacket {
    /// The time of its first page; `None` where the file ends inside that page's header.
    begin: Option<u64>,
    bytes: u64,
}

/// Reads the index.
#[derive(Clone, Copy, Debug)]
pub struct PageIndexer<'a> {
    /// The rules of all pages.
    pub rules: &'a PageRules,
    /// The bytes that the places of CPUs count in.
    pub pages: &'a [u8],
    pub cpus: &'a [CpuPages],
    /// The search for markers, where the recording has the event of texts.
    pub markers: Option<&'a MarkerSearch>,
}

impl PageIndexer<'_> {
    /// Read the pages of all CPUs.
    pub fn read(&self, ctx: &Ctx) -> Result<PageIndex, Cancelled> {
        self.read_in(PART, ctx)
    }

    /// The index, read in parts of about `size` bytes.
    fn read_in(&self, size: usize, ctx: &Ctx) -> Result<PageIndex, Cancelled> {
        let parts = self.parts(size);
        let mut cpus = vec![CpuIndex::default(); self.cpus.len()];
        let make = |i: usize| parts.get(i).and_then(|part| Some((part.cpu, self.part(*part)?)));
        in_order(ctx, parts.len(), make, |_, found| {
            let Some((cpu, found)) = found else { return };
            if let Some(cpu) = cpus.get_mut(cpu) {
                cpu.append(found);
            }
        })?;
        for (cpu, pages) in cpus.iter_mut().zip(self.cpus) {
            if let (Some(packet), Some(end)) = (cpu.packets.last_mut(), self.last_of(pages)) {
                packet.end = end.max(packet.begin);
            }
        }
        Ok(PageIndex { cpus, has_markers: self.markers.is_some_and(MarkerSearch::has_found) })
    }

    fn parts(&self, size: usize) -> Vec<Part> {
        let of_cpu = |(cpu, pages): (usize, &CpuPages)| {
            let (bytes, step) = (pages.bytes, size.next_multiple_of(pages.packet()));
            (0..bytes).step_by(step).map(move |from| Part { cpu, from, to: from.saturating_add(step).min(bytes) })
        };
        self.cpus.iter().enumerate().flat_map(of_cpu).collect()
    }

    fn part(&self, Part { cpu, from, to }: Part) -> Option<PartIndex> {
        let pages = self.cpus.get(cpu)?;
        let bytes = self.pages.get(pages.at..)?.get(..to)?;
        if let Some(markers) = self.markers {
            markers.search(bytes.get(from..)?);
        }
        let mut found = PartIndex::default();
        for from in (from..to).step_by(pages.packet()) {
            let to = from.saturating_add(pages.packet()).min(to);
            let mut begin = None;
            for at in (from..to).step_by(pages.page) {
                let page = bytes.get(at..to.min(at + pages.page))?;
                let Some(header) = self.rules.page(page) else { continue };
                begin.get_or_insert(self.rules.ns(header.time));
                if self.rules.after_data(page, header).iter().any(|byte| *byte != 0) {
                    found.overlong.add(OverlongPages { pages: 1, first: at });
                }
                found.losses.extend(self.loss(pages, at, header));
            }
            found.packets.push(FoundPacket { begin, bytes: (to - from) as u64 });
        }
        Some(found)
    }

    /// The loss that a page reports: from the last record of the previous page to its own time.
    fn loss(&self, pages: &CpuPages, at: usize, header: PageHeader) -> Option<ClockLoss> {
        let PageLoss { events } = header.loss?;
        let to = self.rules.ns(header.time);
        let before = at.checked_sub(pages.page).and_then(|previous| self.last(pages, previous));
        Some(ClockLoss { from: before.map_or(to, |before| before.min(to)), to, events })
    }

    /// Time of the last record of a CPU's last page whose header is in the file.
    fn last_of(&self, pages: &CpuPages) -> Option<u64> {
        let bytes = self.pages.get(pages.at..)?.get(..pages.bytes)?;
        let starts = || (0..pages.bytes).step_by(pages.page);
        let at = starts().rev().find(|at| bytes.get(*at..).is_some_and(|page| self.rules.page(page).is_some()))?;
        self.last(pages, at)
    }

    /// Time of the last record of a page.
    fn last(&self, pages: &CpuPages, page: usize) -> Option<u64> {
        let bytes = self.pages.get(pages.at.checked_add(page)?..)?;
        let size = pages.page.min(bytes.len());
        let mut walk = PageWalk::new(self.rules, bytes.get(..size)?, size, pages.page);
        let mut last = None;
        while let WalkStep::Record(raw) = walk.next() {
            last = Some(raw.clock);
        }
        last
    }
}

impl CpuIndex {
    /// Append what was found in the part after it.
    fn append(&mut self, found: PartIndex) {
        for FoundPacket { begin, bytes } in found.packets {
            let before = self.packets.last_mut();
            let begin = begin.unwrap_or_else(|| before.as_ref().map_or(0, |packet| packet.begin));
            if let Some(before) = before {
                before.end = begin;
            }
            self.packets.push(CpuPacket { begin, end: begin, bytes });
        }
        self.losses.extend(found.losses);
        self.overlong.add(found.overlong);
    }
}

impl OverlongPages {
    /// Add those after these.
    fn add(&mut self, after: OverlongPages) {
        if self.pages == 0 {
            self.first = after.first;
        }
        self.pages += after.pages;
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::base::cursor::ByteOrder;
    use crate::input::ftrace::pages::StackClasses;
    use crate::input::record::ClassId;
    use crate::input::tracepoint::format::Format;

    const PAGE: usize = 64;
    const PRINT: &str = "name: print\nID: 5\n\tfield:char buf[]; offset:8; size:0; signed:0;\n";

    fn rules() -> PageRules {
        PageRules {
            byte_order: ByteOrder::Little,
            long: 8,
            data: 16,
            classes: vec![None, None, None, None, None, Some(ClassId::at(0))],
            stacks: StackClasses::default(),
            markers: None,
            ticks: None,
        }
    }

    /// A page with one record, 7 ns behind its own time.
    fn page(time: u64, lost: Option<u64>, text: &str) -> Vec<u8> {
        let flags = if lost.is_some() { 3 << 30 } else { 0 };
        let mut page = [time.to_le_bytes(), (20u64 | flags).to_le_bytes()].concat();
        page.extend((7u32 << 5 | 4).to_le_bytes());
        page.extend(5u64.to_le_bytes());
        page.extend(format!("{text:\0<8}").as_bytes());
        page.extend(lost.unwrap_or(0).to_le_bytes());
        page.resize(PAGE, 0);
        page
    }

    /// The pages of a CPU: every seventh reports a loss. The last one is cut off inside its header.
    fn pages(first: u64, count: u64, texts: &[(u64, &str)]) -> Vec<u8> {
        let text = |n: u64| texts.iter().find(|(at, _)| *at == n).map_or("plain", |(_, text)| text);
        let page = |n: u64| page(first + n * 100, (n % 7 == 3).then_some(n), text(n));
        let mut all: Vec<u8> = (0..count).flat_map(page).collect();
        all.extend([0; 10]);
        all
    }

    fn index(bytes: &[&[u8]], size: usize, workers: usize) -> PageIndex {
        let (rules, all) = (rules(), bytes.concat());
        let mut at = 0;
        let place = |bytes: &&[u8]| {
            at += bytes.len();
            CpuPages { at: at - bytes.len(), bytes: bytes.len(), page: PAGE }
        };
        let cpus: Vec<CpuPages> = bytes.iter().map(place).collect();
        let search = MarkerSearch::new(&Format::parse("ftrace", PRINT, 8).unwrap(), ByteOrder::Little).unwrap();
        let indexer = PageIndexer { rules: &rules, pages: &all, cpus: &cpus, markers: Some(&search) };
        indexer.read_in(size, &Ctx::new(workers)).unwrap()
    }

    #[test]
    fn read_finds_the_same_for_any_parts_and_workers() {
        let (long, short) = (pages(1_000, 100, &[]), pages(5_000, 37, &[]));
        let one = index(&[&long, &short], usize::MAX / 2, 1);
        let [first, second] = one.cpus.as_slice() else { panic!("{one:?}") };
        // 16 pages of 64 bytes are a packet; it ends where the next one begins, and the last with the last record.
        let packet = |packet: &CpuPacket| (packet.begin, packet.end, packet.bytes);
        assert_eq!(first.packets.len(), 7);
        assert_eq!(first.packets.first().map(packet), Some((1_000, 2_600, 1024)));
        assert_eq!(first.packets.last().map(packet), Some((10_600, 10_907, 4 * 64 + 10)));
        assert_eq!(second.packets.last().map(packet), Some((8_200, 8_607, 5 * 64 + 10)));
        // From the last record of the page before, whatever packet that is in.
        let loss = |loss: &ClockLoss| (loss.from, loss.to, loss.events);
        let expected = |n: u64| (1_000 + n * 100 - 93, 1_000 + n * 100, Some(n));
        assert_eq!(
            first.losses.iter().map(loss).collect::<Vec<_>>(),
            (3..100).step_by(7).map(expected).collect::<Vec<_>>()
        );
        for size in [1, 1024, 3_000, 5_000] {
            for workers in [1, 2, 3, 7] {
                let other = index(&[&long, &short], size, workers);
                assert_eq!(format!("{other:?}"), format!("{one:?}"), "{size} bytes, {workers} workers");
            }
        }
    }

    #[test]
    fn read_finds_markers_in_records_of_print_alone() {
        let has = |n: u64, text: &str| index(&[&pages(0, 40, &[]), &pages(0, 40, &[(n, text)])], 1, 2).has_markers;
        for n in [0, 15, 16, 39] {
            assert!(has(n, "B|1|name") && has(n, "S|1|n|2") && !has(n, "B|1") && !has(n, "C|1|n"), "{n}");
        }
        // The same text where another event has it.
        let other = pages(0, 40, &[(7, "B|1|name")]);
        let other: Vec<u8> = other
            .chunks(PAGE)
            .flat_map(|page| page.iter().enumerate())
            .map(|(at, byte)| if at == 20 { 6 } else { *byte })
            .collect();
        assert!(!index(&[&other], 1, 1).has_markers);
    }
}
