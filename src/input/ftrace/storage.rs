//! The records of a trace.dat: the pages of each CPU, and the names of threads that are in them.
//!
//! In: the file, its sections parsed (`open.rs`). Out: a walk through a packet, which is sixteen pages of a CPU; names
//! and processes of threads, from one pass over all records when the first is asked for.

use super::classes::NameFields;
use super::cpu_pages::CpuPages;
use super::format::FORMAT;
use super::maps::MappedFile;
use super::pages::{PageRules, PageWalk};
use super::processes::ProcessRecords;
use super::sections::{SavedName, SymbolText};
use super::undescribed::UndescribedEvents;
use crate::base::cursor::{ByteOrder, bits};
use crate::base::mapped::Mapped;
use crate::base::notice::{Notice, Notices};
use crate::input::format::InputFormat;
use crate::input::recorded_code::RecordedCode;
use crate::input::tracepoint;
use crate::input::tracepoint::threads::Threads;
use crate::input::tracepoint::{PacketPlace, Walk, WalkStep};
use std::sync::OnceLock;

/// An opened trace.dat.
pub type FtraceTrace = tracepoint::TracepointTrace<FtraceStorage>;

/// The records of the recording.
#[derive(Debug)]
pub struct FtraceStorage {
    pub(super) file: Mapped,
    /// The pages, where they were compressed.
    pub(super) plain: Option<Mapped>,
    pub(super) name: String,
    pub(super) cpus: Vec<CpuPages>,
    pub(super) rules: PageRules,
    /// Last names of threads.
    pub(super) commands: Vec<SavedName>,
    pub(super) symbols: SymbolText,
    /// The files that processes had mapped.
    pub(super) maps: Vec<MappedFile>,
    /// The fields that name threads.
    pub(super) names: Vec<NameFields>,
    /// The records that relate threads to processes.
    pub(super) relations: ProcessRecords,
    pub(super) threads: OnceLock<Threads>,
    pub(super) undescribed: UndescribedEvents,
}

impl FtraceStorage {
    pub(super) fn pages(&self) -> &[u8] {
        self.plain.as_ref().unwrap_or(&self.file).bytes()
    }

    /// Names from switches and similar records, and the saved names of all other threads.
    pub(super) fn thread_names(&self) -> Threads {
        let mut threads = Threads::default();
        let byte_order = self.rules.byte_order;
        let mut relations = self.relations.clone();
        for (stream, cpu) in self.cpus.iter().enumerate() {
            for packet in 0..cpu.bytes.div_ceil(cpu.packet()) {
                let Some(mut walk) = tracepoint::Storage::walk(self, stream, packet) else { continue };
                while let WalkStep::Record(raw) = walk.next() {
                    relations.note(&raw, byte_order, &mut threads);
                    for NameFields { tid, name, .. } in self.names.iter().filter(|fields| fields.class == raw.class) {
                        let tid =
                            bits(raw.body, tid.at as u64 * 8, tid.size as u32 * 8, byte_order).map(|id| id as i32);
                        let text = tracepoint::bytes_of(raw.body, name, byte_order);
                        if let (Some(tid), Some(text)) = (tid.filter(|tid| *tid != 0), text) {
                            let text = text.get(..memchr::memchr(0, text).unwrap_or(text.len())).unwrap_or(text);
                            threads.named(tid, raw.clock, text);
                        }
                    }
                }
                tracepoint::Storage::walked(self, stream, packet, &walk);
            }
        }
        for SavedName { tid, name } in &self.commands {
            if threads.name(*tid, 0).is_none() {
                threads.named(*tid, 0, name);
            }
        }
        threads.named(0, 0, b"swapper");
        threads.seal();
        relations.finish(&mut threads);
        threads
    }
}

impl tracepoint::Storage for FtraceStorage {
    type Walk<'a> = PageWalk<'a>;

    fn walk(&self, stream: usize, packet: usize) -> Option<PageWalk<'_>> {
        let cpu = self.cpus.get(stream)?;
        let pages = self.pages().get(cpu.at..)?;
        let pages = pages.get(..cpu.bytes).unwrap_or(pages);
        let from = packet.checked_mul(cpu.packet())?;
        let rest = pages.get(from..)?;
        Some(PageWalk::new(&self.rules, rest, rest.len().min(cpu.packet()), cpu.page))
    }

    fn walked(&self, stream: usize, packet: usize, walk: &PageWalk<'_>) {
        self.undescribed.keep(stream, packet, walk.undescribed());
    }

    fn threads(&self) -> &Threads {
        self.threads.get_or_init(|| self.thread_names())
    }

    fn place(&self, stream: usize, packet: usize) -> PacketPlace<'_> {
        let at = self.cpus.get(stream).map_or(0, |cpu| cpu.at + packet * cpu.packet());
        PacketPlace { file: &self.name, at: at as u64 }
    }

    fn notices(&self) -> Notices {
        let mut notices = Notices::default();
        notices.add(Notice::MappingLost, u64::from(self.file.lost()), || self.name.clone());
        self.undescribed.notice(&mut notices);
        notices
    }

    fn byte_order(&self) -> ByteOrder {
        self.rules.byte_order
    }

    fn code(&self) -> RecordedCode<'_> {
        let symbols = match &self.symbols {
            SymbolText::InFile(place) => self.file.bytes().get(place.clone()),
            SymbolText::Unpacked(symbols) => Some(&**symbols),
        };
        let kernel_symbols = symbols.filter(|symbols| !symbols.is_empty());
        // As they were mapped when the processes or the recording ended.
        RecordedCode { kernel_symbols, mapped_files: &self.maps, ..RecordedCode::default() }
    }

    fn files(&self) -> Vec<&Mapped> {
        std::iter::once(&self.file).chain(&self.plain).collect()
    }

    fn format(&self) -> &'static InputFormat {
        &FORMAT
    }
}
