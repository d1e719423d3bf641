//! trace.dat: the kernel's ring buffers, as `trace-cmd record` (and `extract`) writes them.
//!
//! ```text
//! head, sections, options -> formats -> classes
//! pages of each CPU, unpacked where they are compressed -> packets -> walk -> records of tracepoint::TracepointReader
//! ```
//! A stream is one CPU of one buffer; a packet is some of its pages. The loss that a page reports is between the last
//! record of the previous page and its first record; events that only the counters of the CPU report were overwritten
//! before the first page.

mod maps;
mod marker;
mod pages;
mod processes;
mod sections;
mod unpack;

pub use maps::MappedFile;
pub use sections::TraceDatError;

use super::record::ClassId;
use super::tracepoint::threads::Threads;
use super::tracepoint::{
    self, ClassSchema, ClockLoss, CpuPacket, CpuStream, PacketPlace, RecorderClock, TraceParts, Walk, WalkStep,
};
use super::{OpenError, Unreadable};
use crate::base::ctx::{Cancelled, Ctx};
use crate::base::cursor::{ByteOrder, bits};
use crate::base::mapped::Mapped;
use crate::base::notice::{Notice, Notices};
use crate::input::tracepoint::format::{Field, FieldType, Format};
use marker::MarkerClasses;
use pages::{PageLoss, PageRules, PageWalk, StackClasses};
use processes::ProcessRecords;
use sections::{Buffer, CpuData, SavedName, Sections};
use std::path::Path;
use std::sync::OnceLock;
use unpack::{Compression, UnpackedChunks};

/// An opened trace.dat.
pub type FtraceTrace = tracepoint::TracepointTrace<FtraceStorage>;

/// Pages of a packet.
const PAGES: usize = 16;

/// The pages of one CPU of one buffer.
#[derive(Clone, Copy, Debug)]
struct CpuPages {
    at: usize,
    bytes: usize,
    page: usize,
}

/// The records of the recording.
#[derive(Debug)]
pub struct FtraceStorage {
    file: Mapped,
    /// The pages, where they were compressed.
    plain: Option<Mapped>,
    name: String,
    cpus: Vec<CpuPages>,
    rules: PageRules,
    /// Last names of threads.
    commands: Vec<SavedName>,
    symbols: Vec<u8>,
    /// The files that processes had mapped.
    maps: Vec<MappedFile>,
    /// The fields that name threads.
    names: Vec<NameFields>,
    /// The records that relate threads to processes.
    relations: ProcessRecords,
    threads: OnceLock<Threads>,
}

impl FtraceTrace {
    /// The files that processes had mapped when they or the recording ended.
    pub fn mapped_files(&self) -> &[MappedFile] {
        &self.storage().maps
    }
}

/// The fields of a class that name a thread.
#[derive(Clone, Debug)]
struct NameFields {
    class: ClassId,
    tid: Field,
    name: Field,
}

impl NameFields {
    /// The fields of a class, where its format has them.
    fn of(naming: &NamingEvent, class: ClassId, format: &Format) -> Option<NameFields> {
        let field = |name: &str| format.fields.iter().find(|field| field.name == name).cloned();
        let tid = field(naming.tid).filter(|tid| matches!(tid.field_type, FieldType::Number { .. }))?;
        Some(NameFields { class, tid, name: field(naming.name)? })
    }
}

impl FtraceStorage {
    fn pages(&self) -> &[u8] {
        self.plain.as_ref().unwrap_or(&self.file).bytes()
    }

    /// Names from switches and similar records, and the saved names of all other threads.
    fn thread_names(&self) -> Threads {
        let mut threads = Threads::default();
        let byte_order = self.rules.byte_order;
        let mut relations = self.relations.clone();
        for (stream, cpu) in self.cpus.iter().enumerate() {
            for packet in 0..cpu.bytes.div_ceil(cpu.page * PAGES) {
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
        let from = packet.checked_mul(cpu.page * PAGES)?;
        let rest = pages.get(from..)?;
        Some(PageWalk::new(&self.rules, rest, rest.len().min(cpu.page * PAGES), cpu.page))
    }

    fn threads(&self) -> &Threads {
        self.threads.get_or_init(|| self.thread_names())
    }

    fn place(&self, stream: usize, packet: usize) -> PacketPlace<'_> {
        let at = self.cpus.get(stream).map_or(0, |cpu| cpu.at + packet * cpu.page * PAGES);
        PacketPlace { file: &self.name, at: at as u64 }
    }

    fn notices(&self) -> Notices {
        let mut notices = Notices::default();
        notices.add(Notice::MappingLost, u64::from(self.file.lost()), || self.name.clone());
        notices
    }

    fn byte_order(&self) -> ByteOrder {
        self.rules.byte_order
    }

    fn kernel_symbols(&self) -> Option<&[u8]> {
        (!self.symbols.is_empty()).then_some(&*self.symbols)
    }
}

/// True for the first bytes of a trace.dat.
pub fn is_one(begin: &[u8]) -> bool {
    begin.starts_with(tracepoint::head::MAGIC)
}

/// Open a trace.dat.
pub fn open(path: &Path, ctx: &Ctx) -> Result<FtraceTrace, OpenError> {
    let name = path.display().to_string();
    let file = Mapped::open(path).map_err(|e| Unreadable::from(e).at(path))?;
    let mut sections = Sections::read(file.bytes()).map_err(|e| Unreadable::from(e).at(path))?;
    let mut notices = Notices::default();
    let plain = match sections.compression {
        Compression::None => None,
        _ => Some(unpacked(&file, &mut sections, &mut notices).map_err(|e| Unreadable::from(e).at(path))?),
    };
    let pages = plain.as_ref().unwrap_or(&file).bytes();
    let Classes { schemas, rules, names } = classes(&sections, pages, ctx)?;
    let relations = ProcessRecords::of(&sections.formats, &rules);
    let clock = RecorderClock {
        name: sections.use_one_clock(&mut notices),
        base: i128::from(sections.offset),
        ..RecorderClock::default()
    };
    let mut storage = FtraceStorage {
        file,
        plain,
        name,
        cpus: Vec::new(),
        rules,
        commands: std::mem::take(&mut sections.commands),
        symbols: std::mem::take(&mut sections.symbols),
        maps: std::mem::take(&mut sections.maps),
        names,
        relations,
        threads: OnceLock::new(),
    };
    let mut cpu_streams = Vec::new();
    for buffer in &sections.buffers {
        for cpu in buffer.cpus.iter().filter(|cpu| cpu.bytes > 0) {
            cpu_streams.push(storage.add(buffer, cpu, &sections, &mut notices));
        }
    }
    if sections.guests {
        notices.add(Notice::GuestUnaligned, 1, || storage.name.clone());
    }
    let environment = ["hostname", "kernel_release", "architecture"].into_iter().zip(sections.uname.drain(..).skip(1));
    let environment = environment.collect();
    let format = format!("trace.dat {}", sections.head.version);
    Ok(FtraceTrace::new(TraceParts { storage, format, schemas, cpu_streams, environment, clock, notices }))
}

/// Unpacks the pages of all CPUs into one file, and sets the places in `sections` to those in the new file.
fn unpacked(file: &Mapped, sections: &mut Sections, notices: &mut Notices) -> std::io::Result<Mapped> {
    let mut out = tempfile::NamedTempFile::new()?;
    let mut at = 0;
    let (compression, byte_order) = (sections.compression, sections.head.byte_order);
    for cpu in sections.buffers.iter_mut().flat_map(|b| &mut b.cpus).filter(|cpu| cpu.bytes > 0) {
        let packed = file.bytes().get(cpu.at..).unwrap_or(&[]);
        let UnpackedChunks { bytes, complete } = unpack::chunks(compression, packed, byte_order, &mut out)?;
        let failed = u64::from(!complete);
        notices.add(Notice::DamagedStream, failed, || format!("cpu {}: a chunk cannot be unpacked", cpu.cpu));
        (cpu.at, cpu.bytes) = (at, bytes);
        at += bytes;
    }
    // The mapping keeps the bytes when the name is gone.
    Mapped::open(out.path())
}

/// Fields of an event that name a thread.
struct NamingEvent {
    event: &'static str,
    tid: &'static str,
    name: &'static str,
}

const NAMING_EVENTS: [NamingEvent; 6] = [
    NamingEvent { event: "sched_switch", tid: "prev_pid", name: "prev_comm" },
    NamingEvent { event: "sched_switch", tid: "next_pid", name: "next_comm" },
    NamingEvent { event: "sched_wakeup_new", tid: "pid", name: "comm" },
    NamingEvent { event: "task_rename", tid: "pid", name: "newcomm" },
    NamingEvent { event: "task_newtask", tid: "pid", name: "comm" },
    NamingEvent { event: "sched_process_fork", tid: "child_pid", name: "child_comm" },
];

/// The classes of a recording.
struct Classes {
    schemas: Vec<ClassSchema>,
    rules: PageRules,
    names: Vec<NameFields>,
}

fn classes(sections: &Sections, pages: &[u8], ctx: &Ctx) -> Result<Classes, Cancelled> {
    let mut rules = PageRules {
        byte_order: sections.head.byte_order,
        long: usize::from(sections.head.long),
        data: sections.page_data,
        classes: Vec::new(),
        stacks: StackClasses::default(),
        markers: None,
        ticks: sections.ticks,
    };
    let (mut schemas, mut names) = (Vec::new(), Vec::new());
    for format in &sections.formats {
        let class = ClassId::at(schemas.len());
        let Ok(id) = u16::try_from(format.id).map(usize::from) else { continue };
        if rules.classes.len() <= id {
            rules.classes.resize(id + 1, None);
        }
        if let Some(place) = rules.classes.get_mut(id) {
            *place = Some(class);
        }
        let own = format.system == "ftrace";
        match format.name.as_str() {
            "kernel_stack" if own => rules.stacks.kernel = Some(class),
            "user_stack" if own => rules.stacks.user = Some(class),
            _ => {}
        }
        let naming = NAMING_EVENTS.iter().filter(|naming| naming.event == format.name);
        names.extend(naming.filter_map(|naming| NameFields::of(naming, class, format)));
        schemas.push(schema(format));
    }
    let print = sections.formats.iter().find(|format| format.system == "ftrace" && format.name == "print");
    if let Some(format) = print
        && let Some(class) = usize::try_from(format.id).ok().and_then(|id| *rules.classes.get(id)?)
        && let Some(markers) = MarkerClasses::find(class, format, pages, rules.byte_order, schemas.len(), ctx)?
    {
        schemas.extend(markers.schemas(&schema(format)));
        rules.markers = Some(markers);
    }
    Ok(Classes { schemas, rules, names })
}

fn schema(format: &Format) -> ClassSchema {
    // The tracer's own events hold stacks and text; they have no stack themselves.
    let own = format.system == "ftrace";
    ClassSchema {
        name: format.name.clone(),
        common: format.common.iter().filter(|f| tracepoint::is_of_interest(&f.name)).cloned().collect(),
        fields: format.fields.clone(),
        threads: tracepoint::RecordedIds::Initial,
        stacks: !own,
        known_as: tracepoint::known_as(format),
    }
}

impl FtraceStorage {
    /// The stream of a CPU.
    fn add(&mut self, buffer: &Buffer, cpu: &CpuData, sections: &Sections, notices: &mut Notices) -> CpuStream {
        let there = self.pages().len().saturating_sub(cpu.at).min(cpu.bytes);
        if there < cpu.bytes {
            let name = self.name.clone();
            notices.add(Notice::DamagedStream, 1, || format!("{name}: the data of cpu {} are cut off", cpu.cpu));
        }
        let pages = CpuPages { at: cpu.at, bytes: there, page: buffer.page };
        let stream = self.cpus.len();
        self.cpus.push(pages);
        let name = if buffer.name.is_empty() { String::new() } else { format!("{} ", buffer.name) };
        let mut cpu_stream =
            CpuStream { name: format!("{name}cpu {}", cpu.cpu), cpu: Some(cpu.cpu), ..CpuStream::default() };
        let packet = pages.page * PAGES;
        let (mut reported, mut previous) = (0u64, None);
        for from in (0..there).step_by(packet) {
            let mut begin = None;
            let to = (from + packet).min(there);
            for at in (from..to).step_by(pages.page) {
                let page = self.pages().get(pages.at + at..pages.at + to).unwrap_or(&[]);
                let Some(header) = self.rules.page(page) else { continue };
                let time = self.rules.ns(header.time);
                begin.get_or_insert(time);
                if let Some(PageLoss { events }) = header.loss {
                    // The time of the last record of the previous page.
                    let before = previous.and_then(|page| self.last(stream, page)).unwrap_or(time);
                    cpu_stream.losses.push(ClockLoss { from: before.min(time), to: time, events });
                    reported = reported.saturating_add(events.unwrap_or(0));
                }
                previous = Some(at);
            }
            let begin = begin.unwrap_or_else(|| cpu_stream.packets.last().map_or(0, |packet: &CpuPacket| packet.end));
            if let Some(last) = cpu_stream.packets.last_mut() {
                last.end = begin;
            }
            cpu_stream.packets.push(CpuPacket { begin, end: begin, bytes: (to - from) as u64 });
        }
        let end = previous.and_then(|page| self.last(stream, page));
        let begin = cpu_stream.packets.first().map_or(0, |packet| packet.begin);
        if let (Some(last), Some(end)) = (cpu_stream.packets.last_mut(), end) {
            last.end = end.max(last.begin);
        }
        // Counted by the CPU and reported by no page: overwritten before the first.
        let of_cpu = sections.lost.iter().filter(|l| l.cpu == cpu.cpu && l.buffer == buffer.name);
        let counted = of_cpu.map(|l| l.events).sum::<u64>();
        if counted > reported {
            cpu_stream.losses.insert(0, ClockLoss { from: begin, to: begin, events: Some(counted - reported) });
        }
        cpu_stream
    }

    /// Time of the last record of a page.
    fn last(&self, stream: usize, page: usize) -> Option<u64> {
        let cpu = self.cpus.get(stream)?;
        let bytes = self.pages().get(cpu.at + page..)?;
        let mut walk =
            PageWalk::new(&self.rules, bytes.get(..cpu.page).unwrap_or(bytes), cpu.page.min(bytes.len()), cpu.page);
        let mut last = None;
        while let WalkStep::Record(raw) = walk.next() {
            last = Some(raw.clock);
        }
        last
    }
}
