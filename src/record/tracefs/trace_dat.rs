//! Writes a trace.dat of version 7: what the kernel says of its events, and the raw pages of all CPUs.
//!
//! In: the folders of the recorded events, pages, names. Out: the file, not compressed. A section follows another one;
//! options with their places are last, and the head, which is written at the end, points to them: a file that was not
//! finished says so by an offset of 0. Follows trace-cmd's `trace-cmd.dat.v7.txt`, but that the size of a page follows
//! the clock in the option of a buffer, as trace-cmd writes it.

use super::pages::DrainedCpu;
use super::threads::ProcessTable;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// Bytes of the longest text of a header, which is a page at most.
const MOST_OF_HEADER: usize = 1 << 16;

/// The events of the kernel's tracers, which are no events of a system, that an instance can have.
const STACKS: [&str; 2] = ["kernel_stack", "user_stack"];

/// Numbers of options, and of the sections to which those of 16 and more lead.
mod id {
    pub const DONE: u16 = 0;
    pub const CPUSTAT: u16 = 2;
    pub const BUFFER: u16 = 3;
    pub const TRACECLOCK: u16 = 4;
    pub const UNAME: u16 = 5;
    pub const OFFSET: u16 = 7;
    pub const CPUCOUNT: u16 = 8;
    pub const VERSION: u16 = 9;
    pub const PROCMAPS: u16 = 10;
    pub const HEADER_INFO: u16 = 16;
    pub const FTRACE_EVENTS: u16 = 17;
    pub const EVENT_FORMATS: u16 = 18;
    pub const KALLSYMS: u16 = 19;
    pub const PRINTK: u16 = 20;
    pub const CMDLINES: u16 = 21;
}

/// The instance of the kernel that was recorded, at its end.
pub struct RecordedBuffer {
    pub name: String,
    /// What each CPU has counted, as the kernel writes it.
    pub stats: Vec<String>,
    pub cpus: Vec<DrainedCpu>,
}

/// Everything of a recording.
pub struct TraceDat<'a> {
    pub tracefs: &'a Path,
    /// The folders of the recorded events.
    pub events: Vec<PathBuf>,
    pub buffers: Vec<RecordedBuffer>,
    /// `None` beside another recorder, which knows the threads and has all call stacks.
    pub processes: Option<ProcessTable>,
}

/// The file while it is written.
struct Writer {
    file: File,
    options: Vec<u8>,
}

impl TraceDat<'_> {
    /// Write the file; the bytes of all pages.
    pub fn write(self, path: &Path) -> io::Result<u64> {
        let mut to = Writer { file: File::create(path)?, options: Vec::new() };
        let page = rustix::param::page_size();
        let mut head = b"\x17\x08\x44tracing7\0".to_vec();
        head.extend([u8::from(cfg!(target_endian = "big")), size_of::<usize>() as u8]);
        head.extend((page as u32).to_ne_bytes());
        head.extend(b"none\0\0");
        let place_of_options = head.len() as u64;
        head.extend(0_u64.to_ne_bytes());
        to.file.write_all(&head)?;
        self.describe(&mut to)?;
        let cpus: usize = self.buffers.iter().map(|buffer| buffer.cpus.len()).max().unwrap_or(0);
        to.option(id::CPUCOUNT, &(cpus as u32).to_ne_bytes());
        let mut bytes = 0;
        for buffer in self.buffers {
            bytes += buffer.write(&mut to, page as u64)?;
        }
        to.option(id::DONE, &0_u64.to_ne_bytes());
        let options = std::mem::take(&mut to.options);
        let place = to.section(id::DONE, &options)?;
        to.file.seek(SeekFrom::Start(place_of_options))?;
        to.file.write_all(&place.to_ne_bytes())?;
        Ok(bytes)
    }

    /// Everything but the pages.
    fn describe(&self, to: &mut Writer) -> io::Result<()> {
        let events = self.tracefs.join("events");
        let mut pages = Vec::new();
        for name in ["header_page", "header_event"] {
            let text = read_at_once(&events.join(name))?;
            pages.extend(name.as_bytes());
            pages.push(0);
            pages.extend((text.len() as u64).to_ne_bytes());
            pages.extend(text);
        }
        to.pointed_section(id::HEADER_INFO, &pages)?;
        to.pointed_section(id::FTRACE_EVENTS, &formats(&STACKS.map(|name| events.join("ftrace").join(name)))?)?;
        to.pointed_section(id::EVENT_FORMATS, &self.event_formats()?)?;
        let counted = |text: &[u8]| [&(text.len() as u32).to_ne_bytes()[..], text].concat();
        if let Some(processes) = &self.processes {
            to.pointed_section(id::KALLSYMS, &counted(&std::fs::read("/proc/kallsyms").unwrap_or_default()))?;
            let names = processes.names();
            to.pointed_section(id::CMDLINES, &[&(names.len() as u64).to_ne_bytes()[..], &names].concat())?;
            processes.maps().for_each(|maps| to.text_option(id::PROCMAPS, maps));
        }
        let strings = std::fs::read(self.tracefs.join("printk_formats")).unwrap_or_default();
        to.pointed_section(id::PRINTK, &counted(&strings))?;
        to.text_option(id::TRACECLOCK, "local [mono]");
        let system = rustix::system::uname();
        let words = [system.sysname(), system.nodename(), system.release(), system.machine()];
        to.text_option(id::UNAME, &words.map(|word| word.to_string_lossy().into_owned()).join(" "));
        to.text_option(id::OFFSET, &wall_time_offset().to_string());
        to.text_option(id::VERSION, concat!("whyslow ", env!("CARGO_PKG_VERSION")));
        Ok(())
    }

    /// The formats of the recorded events by system.
    fn event_formats(&self) -> io::Result<Vec<u8>> {
        let mut systems: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
        for folder in &self.events {
            let system = folder.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy().into_owned();
            systems.entry(system).or_default().push(folder.clone());
        }
        let mut content = (systems.len() as u32).to_ne_bytes().to_vec();
        for (system, mut folders) in systems {
            folders.sort_unstable();
            folders.dedup_by(|a, b| a.file_name() == b.file_name());
            content.extend(system.as_bytes());
            content.push(0);
            content.extend(formats(&folders)?);
        }
        Ok(content)
    }
}

impl RecordedBuffer {
    /// Write its pages, and its options; the bytes of the pages.
    fn write(self, to: &mut Writer, page: u64) -> io::Result<u64> {
        let section = to.file.stream_position()?;
        // Its size is written when all pages are.
        to.file.write_all(&header(id::BUFFER, 0))?;
        let begin = to.file.stream_position()?;
        let mut about = [&section.to_ne_bytes()[..], self.name.as_bytes(), b"\0mono\0"].concat();
        about.extend((page as u32).to_ne_bytes());
        about.extend((self.cpus.len() as u32).to_ne_bytes());
        let mut bytes = 0;
        for cpu in self.cpus {
            let place = to.file.stream_position()?.next_multiple_of(page);
            to.file.seek(SeekFrom::Start(place))?;
            about.extend(cpu.cpu.to_ne_bytes());
            let mut pages = cpu.into_file();
            pages.seek(SeekFrom::Start(0))?;
            // The kernel copies, or shares the blocks of both files where the file system can.
            let copied = io::copy(&mut pages, &mut to.file)?;
            about.extend(place.to_ne_bytes());
            about.extend(copied.to_ne_bytes());
            bytes += copied;
        }
        let end = to.file.stream_position()?;
        to.file.seek(SeekFrom::Start(section))?;
        to.file.write_all(&header(id::BUFFER, end - begin))?;
        to.file.seek(SeekFrom::Start(end))?;
        to.option(id::BUFFER, &about);
        to.text_option(id::CPUSTAT, &format!("Buffer: {}\n", self.name));
        self.stats.iter().for_each(|stats| to.text_option(id::CPUSTAT, stats));
        Ok(bytes)
    }
}

impl Writer {
    /// Write a section; its place.
    fn section(&mut self, id: u16, content: &[u8]) -> io::Result<u64> {
        let place = self.file.stream_position()?;
        self.file.write_all(&header(id, content.len() as u64))?;
        self.file.write_all(content)?;
        Ok(place)
    }

    /// Write a section, and the option that leads to it.
    fn pointed_section(&mut self, id: u16, content: &[u8]) -> io::Result<()> {
        let place = self.section(id, content)?;
        self.option(id, &place.to_ne_bytes());
        Ok(())
    }

    fn option(&mut self, id: u16, content: &[u8]) {
        self.options.extend(id.to_ne_bytes());
        self.options.extend((content.len() as u32).to_ne_bytes());
        self.options.extend(content);
    }

    fn text_option(&mut self, id: u16, text: &str) {
        self.option(id, &[text.as_bytes(), b"\0"].concat());
    }
}

/// The header of a section: its number, no flags, no description, the bytes of its content.
fn header(id: u16, size: u64) -> [u8; 16] {
    let mut header = [0; 16];
    header[..2].copy_from_slice(&id.to_ne_bytes());
    header[8..].copy_from_slice(&size.to_ne_bytes());
    header
}

/// The number of formats, and each with its size.
fn formats(folders: &[PathBuf]) -> io::Result<Vec<u8>> {
    let mut content = (folders.len() as u32).to_ne_bytes().to_vec();
    for folder in folders {
        let text = std::fs::read(folder.join("format"))?;
        content.extend((text.len() as u64).to_ne_bytes());
        content.extend(text);
    }
    Ok(content)
}

/// A file that the kernel ends after the first read, however short that was.
fn read_at_once(path: &Path) -> io::Result<Vec<u8>> {
    let mut text = vec![0; MOST_OF_HEADER];
    let bytes = File::open(path)?.read(&mut text)?;
    text.truncate(bytes);
    Ok(text)
}

/// Nanoseconds from the zero of wall time to that of the monotonic clock, read in between two looks at the latter.
fn wall_time_offset() -> i128 {
    use rustix::time::{ClockId, clock_gettime};
    let ns = |clock| {
        let now = clock_gettime(clock);
        i128::from(now.tv_sec) * 1_000_000_000 + i128::from(now.tv_nsec)
    };
    let before = ns(ClockId::Monotonic);
    let wall = ns(ClockId::Realtime);
    wall - (before + ns(ClockId::Monotonic)) / 2
}
