//! Opens a trace.dat.
//!
//! In: a path. Out: the recording: formats become classes, the pages of a CPU the packets of a stream. Compressed pages
//! are unpacked into a temporary file. Cost: the heads of all pages, by all workers.

use super::classes::{Classes, PrintClass, classes};
use super::cpu_pages::CpuPages;
use super::index::{CpuIndex, OverlongPages, PageIndex, PageIndexer};
use super::marker::MarkerClasses;
use super::sections::{Buffer, CpuData, Sections};
use super::storage::{FtraceStorage, FtraceTrace};
use super::undescribed::UndescribedEvents;
use super::unpack;
use super::unpack::{CHUNK_COUNT, Compression, UnpackedChunks};
use crate::base::ctx::Ctx;
use crate::base::mapped::Mapped;
use crate::base::notice::{Notice, Notices};
use crate::base::temporary;
use crate::input::tracepoint::{ClockLoss, CpuStream, RecorderClock, TraceParts, head};
use crate::input::{OpenError, Unreadable};
use std::io::Write;
use std::path::Path;
use std::sync::OnceLock;

/// Open a trace.dat.
pub fn open(path: &Path, ctx: &Ctx) -> Result<FtraceTrace, OpenError> {
    let name = path.display().to_string();
    let file = Mapped::open(path).map_err(|e| Unreadable::from(e).at(path))?;
    let mut sections = Sections::read(file.bytes()).map_err(|e| Unreadable::from(e).at(path))?;
    let formats = head::parse_formats(&sections.formats, &sections.head, ctx)?;
    let mut notices = std::mem::take(&mut sections.notices);
    sections.coverage.notice(file.bytes(), &name, &mut notices);
    let plain = match sections.compression {
        Compression::None => None,
        _ => Some(unpacked(&file, &mut sections, &mut notices).map_err(|e| Unreadable::from(e).at(path))?),
    };
    let clock = RecorderClock {
        name: sections.use_one_clock(&mut notices),
        base: i128::from(sections.offset),
        ..RecorderClock::default()
    };
    let pages = plain.as_ref().unwrap_or(&file).bytes();
    let cpus = cpus(&sections, pages, &name, &mut notices);
    let Classes { mut schemas, mut rules, names, relations, print } = classes(&sections, formats);
    let markers = print.as_ref().map(|print| &print.search);
    let PageIndex { cpus: indices, has_markers } =
        PageIndexer { rules: &rules, pages, cpus: &cpus, markers }.read(ctx)?;
    if has_markers && let Some(PrintClass { class, search }) = print {
        let markers = MarkerClasses::new(class, &search, schemas.len());
        let print = schemas.get(class.index()).cloned().unwrap_or_default();
        schemas.extend(markers.schemas(&print));
        rules.markers = Some(markers);
    }
    for (pages, index) in cpus.iter().zip(&indices) {
        let OverlongPages { pages: overlong, first } = index.overlong;
        notices.add(Notice::PartsUnclaimed, overlong, || {
            format!("{name}: what is after the data of the page at byte {}", pages.at + first)
        });
    }
    let used = sections.buffers.iter().flat_map(|buffer| used_cpus(buffer).map(move |cpu| (buffer, cpu)));
    let cpu_streams =
        used.zip(indices).map(|((buffer, cpu), index)| cpu_stream(buffer, cpu, index, &sections)).collect();
    if sections.guests {
        notices.add(Notice::GuestUnaligned, 1, || name.clone());
    }
    let environment = ["hostname", "kernel_release", "architecture"].into_iter().zip(sections.uname.drain(..).skip(1));
    let environment = environment.collect();
    let version = format!("trace.dat {}", sections.head.version);
    let (commands, symbols, maps) = (sections.commands, sections.symbols, sections.maps);
    let threads = OnceLock::new();
    let undescribed = UndescribedEvents::new(&cpus);
    let storage = FtraceStorage {
        file,
        plain,
        name,
        cpus,
        rules,
        commands,
        symbols,
        maps,
        names,
        relations,
        threads,
        undescribed,
    };
    Ok(FtraceTrace::new(TraceParts { storage, version, schemas, cpu_streams, environment, clock, notices }))
}

/// Unpacks the pages of all CPUs into one file, and sets the places in `sections` to those in the new file.
fn unpacked(file: &Mapped, sections: &mut Sections, notices: &mut Notices) -> std::io::Result<Mapped> {
    temporary::mapped(|out| unpack_into(out, file, sections, notices))
}

fn unpack_into(
    mut out: &mut dyn Write,
    file: &Mapped,
    sections: &mut Sections,
    notices: &mut Notices,
) -> std::io::Result<()> {
    // A chunk belongs to one CPU, so all of them have as many packed bytes as the file at most.
    let (mut at, mut left) = (0, file.bytes().len());
    let (compression, byte_order) = (sections.compression, sections.head.byte_order);
    for cpu in sections.buffers.iter_mut().flat_map(|b| &mut b.cpus).filter(|cpu| cpu.bytes > 0) {
        let packed = file.bytes().get(cpu.at..).unwrap_or(&[]);
        let packed = packed.get(..left).unwrap_or(packed);
        let UnpackedChunks { bytes, read, complete } = unpack::chunks(compression, packed, byte_order, &mut out)?;
        left = left.saturating_sub(read);
        let failed = u64::from(!complete);
        notices.add(Notice::DamagedStream, failed, || format!("cpu {}: a chunk cannot be unpacked", cpu.cpu));
        // The size does not count the number of chunks before them.
        let after = (cpu.bytes + CHUNK_COUNT).saturating_sub(read);
        notices.add(Notice::PartsUnclaimed, u64::from(complete && after > 0), || {
            format!("cpu {}: {after} bytes after its chunks", cpu.cpu)
        });
        (cpu.at, cpu.bytes) = (at, bytes);
        at += bytes;
    }
    Ok(())
}

/// The CPUs of a buffer that have any data.
fn used_cpus(buffer: &Buffer) -> impl Iterator<Item = &CpuData> {
    buffer.cpus.iter().filter(|cpu| cpu.bytes > 0)
}

/// The pages of all CPUs, as far as the file has them.
fn cpus(sections: &Sections, pages: &[u8], name: &str, notices: &mut Notices) -> Vec<CpuPages> {
    // A page belongs to one CPU.
    let (mut cpus, mut left) = (Vec::new(), pages.len());
    for (buffer, cpu) in sections.buffers.iter().flat_map(|buffer| used_cpus(buffer).map(move |cpu| (buffer, cpu))) {
        let bytes = pages.len().saturating_sub(cpu.at).min(cpu.bytes).min(left);
        left -= bytes;
        if bytes < cpu.bytes {
            notices.add(Notice::DamagedStream, 1, || format!("{name}: the data of cpu {} are cut off", cpu.cpu));
        }
        cpus.push(CpuPages { at: cpu.at, bytes, page: buffer.page });
    }
    cpus
}

/// The stream of a CPU.
fn cpu_stream(buffer: &Buffer, cpu: &CpuData, index: CpuIndex, sections: &Sections) -> CpuStream {
    let CpuIndex { packets, mut losses, .. } = index;
    let of_buffer = if buffer.name.is_empty() { String::new() } else { format!("{} ", buffer.name) };
    // Counted by the CPU and reported by no page: overwritten before the first.
    let of_cpu = sections.lost.iter().filter(|lost| lost.cpu == cpu.cpu && lost.buffer == buffer.name);
    let counted = of_cpu.map(|lost| lost.events).fold(0, u64::saturating_add);
    let reported = losses.iter().filter_map(|loss| loss.events).fold(0, u64::saturating_add);
    if counted > reported {
        let begin = packets.first().map_or(0, |packet| packet.begin);
        losses.insert(0, ClockLoss { from: begin, to: begin, events: Some(counted - reported) });
    }
    CpuStream { name: format!("{of_buffer}cpu {}", cpu.cpu), cpu: Some(cpu.cpu), packets, losses }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// The sections of a fixture in which one CPU is named 1,000 times more.
    fn with_shared_pages(file: &Mapped) -> Sections {
        let mut sections = Sections::read(file.bytes()).unwrap();
        let cpus = &mut sections.buffers[0].cpus;
        let again = cpus.iter().find(|cpu| cpu.bytes > 0).unwrap().to_owned();
        cpus.extend(std::iter::repeat_n(again, 1000));
        sections
    }

    #[test]
    fn cpus_that_share_their_pages_have_no_more_than_the_file() {
        let file = Mapped::open(Path::new("fixtures/recorders/v6.dat")).unwrap();
        let mut notices = Notices::default();
        let shared = cpus(&with_shared_pages(&file), file.bytes(), "v6.dat", &mut notices);
        assert!(shared.iter().map(|cpu| cpu.bytes).sum::<usize>() <= file.bytes().len());
        assert!(shared.len() > 1000 && notices.count(Notice::DamagedStream) > 900);
    }

    #[test]
    fn chunks_that_cpus_share_are_not_unpacked_again_and_again() {
        let file = Mapped::open(Path::new("fixtures/recorders/v7.dat")).unwrap();
        let (mut notices, mut whole) = (Notices::default(), Sections::read(file.bytes()).unwrap());
        assert_ne!(whole.compression, Compression::None);
        let plain = unpacked(&file, &mut whole, &mut notices).unwrap().bytes().len();
        assert_eq!(notices.count(Notice::DamagedStream), 0);
        let mut shared = with_shared_pages(&file);
        let more = unpacked(&file, &mut shared, &mut notices).unwrap().bytes().len();
        assert!(more <= 2 * plain && notices.count(Notice::DamagedStream) > 900, "{plain}, {more}");
    }
}
