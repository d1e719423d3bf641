//! What every fuzz target asks of a trace, and what must hold of the answer whatever the bytes are.
//!
//! In: the bytes of `metadata` and of one stream file. They go through real files, as a user's do, so that opening,
//! indexing and mapping are covered too; the folder is in memory where `/dev/shm` is there. Must hold: no panic; an
//! answer within bounds (libFuzzer's own limits of time and memory); a trace without a fault is read alike by the
//! three ways through it: counting, which steps over values, the whole decode, and a second decode.
//!
//! By hand, in `fuzz/`: `cargo run --example seeds`, then `cargo +nightly fuzz run packet -- -max_total_time=1200` (also
//! `metadata_text`, `metadata_json`, `schema_and_packet`; `-dict=tsdl.dict` or `-dict=json.dict` helps the first two; `perf_data`,
//! `trace_dat`, `archive`, `database`, `executable`, `declared`, `command_line`, `keys`). `tests/replay.rs` asks the same of seeds,
//! of what was found, and of mutations, with a stable compiler.

use std::ffi::OsString;
use std::io::{self, Write};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::{env, fs, process};
use whyslow::analysis::symbols::elf;
use whyslow::base::work::Work;
use whyslow::cli;
use whyslow::compare::condition::FailIf;
use whyslow::compare::filter::Filter;
use whyslow::event::{declared, task};
use whyslow::input::otf2::Archive;
use whyslow::input::{self, Argument, Opened, count};
use whyslow::model::database::Database;
use whyslow::state::kernel::Handlers;
use whyslow::view::clean;
use whyslow::view::dump::{self, Form, Sizes};
use whyslow::view::tui::keyboard::Decoder;
use whyslow::view::tui::theme::{Depth, Source, Theme};

/// Text beyond this is not waited for: a few bytes may hold very many empty events.
const MOST_TEXT: usize = 16 << 20;

/// Counts lines and keeps a sum of what is written.
#[derive(Default, PartialEq, Eq, Debug)]
struct Listing {
    lines: u64,
    bytes: usize,
    sum: u64,
}

impl Write for Listing {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        self.bytes += text.len();
        if self.bytes > MOST_TEXT {
            return Err(io::Error::other("enough"));
        }
        for byte in text {
            self.lines += u64::from(*byte == b'\n');
            self.sum = (self.sum ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The folder of this process, made at the first call.
pub fn folder() -> io::Result<PathBuf> {
    let shared = PathBuf::from("/dev/shm");
    let base = if shared.is_dir() { shared } else { env::temp_dir() };
    let folder = base.join(format!("whyslow-fuzz-{}", process::id()));
    fs::create_dir_all(&folder)?;
    Ok(folder)
}

/// Open a recording that is one file and read it: an answer, and as many lines as events.
pub fn ask_file(name: &str, bytes: &[u8]) {
    let path = folder().expect("a folder for the recording").join(name);
    fs::write(&path, bytes).expect("the recording");
    let work = Work::new(1);
    let opened = input::open(&[Argument { label: None, path }], &work);
    let Ok(Opened::Traces(sources)) = opened else { return };
    let (counts, _) = count::count(&sources, &work).expect("nobody cancels");
    let mut listing = Listing::default();
    if dump::write(&sources, Form::Canonical, &Sizes::default(), &work, &mut listing).is_ok() {
        assert_eq!(listing.lines, counts.events);
    }
}

/// Open a trace of one stream and read it in every way.
pub fn ask(metadata: &[u8], stream: Option<&[u8]>) {
    let folder = folder().expect("a folder for the trace");
    fs::write(folder.join("metadata"), metadata).expect("metadata");
    if let Some(stream) = stream {
        fs::write(folder.join("stream"), stream).expect("stream");
    }
    let argument = Argument { label: None, path: folder };
    let Ok(Opened::Traces(sources)) = input::open(&[argument], &Work::new(1)) else { return };
    for source in &sources {
        source.trace.compile_whole();
    }
    let work = Work::new(1);
    let list = |workers, sizes: &Sizes| {
        let mut listing = Listing::default();
        let work = Work::new(workers);
        dump::write(&sources, Form::Canonical, sizes, &work, &mut listing).ok().map(|notices| (listing, notices))
    };
    let Some((listing, mut notices)) = list(1, &Sizes::default()) else { return };
    let pieces = Sizes { sample: 3, chunk: 7, window: 64 };
    assert_eq!(list(2, &pieces).map(|(again, _)| again).as_ref(), Some(&listing), "two readings of one trace differ");
    sources.iter().for_each(|s| notices.merge(&s.trace.notices()));
    let (counts, _) = count::count(&sources, &work).expect("nobody cancels");
    if !notices.has_fault() {
        assert_eq!(counts.events, listing.lines, "counting and decoding disagree");
    }
}

/// Files of a sound archive: anchor, global definitions, events and definitions of its first location.
const ARCHIVE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../fixtures/archives/late_sender/trace");

/// Read an archive one of whose files is replaced: the first byte says which.
pub fn ask_archive(bytes: &[u8]) {
    let sound = if Path::new(ARCHIVE).is_dir() { ARCHIVE } else { "fixtures/archives/late_sender/trace" };
    let target = folder().expect("a folder").join("archive");
    fs::create_dir_all(target.join("traces")).expect("a folder for the archive");
    let files = ["traces.otf2", "traces.def", "traces/0.evt", "traces/0.def"];
    let (choice, bytes) = bytes.split_first().map_or((0, bytes), |(c, rest)| (usize::from(*c) % files.len(), rest));
    for (at, file) in files.iter().enumerate() {
        let path = target.join(file);
        match at == choice {
            true => fs::write(path, bytes).expect("the file"),
            false => drop(fs::copy(Path::new(sound).join(file), path).expect("a sound file")),
        }
    }
    let Ok(archive) = Archive::open(&target.join("traces.otf2")) else { return };
    for at in 0..archive.definitions.locations.len().min(4) {
        let files = archive.open_location(whyslow::input::otf2::LocationId::at(at));
        let mut reader = files.reader();
        while reader.next().is_some() {}
    }
}

/// Open a database and read each model; what it says of its length and of the checksum of its table is put right before.
pub fn ask_database(bytes: &[u8]) {
    const HEADER: usize = 32;
    let mut bytes = bytes.to_vec();
    if bytes.len() >= HEADER {
        let length = (bytes.len() as u64).to_le_bytes();
        bytes[16..24].copy_from_slice(&length);
        bytes[24..32].fill(0);
        let count = u32::from_le_bytes([bytes[12], bytes[13], bytes[14], bytes[15]]) as usize;
        let begin = count.saturating_mul(HEADER).saturating_add(HEADER).min(bytes.len());
        // Of the sections as well, where they lie within it.
        for at in (HEADER..begin.saturating_sub(HEADER - 1)).step_by(HEADER) {
            let number = |at: usize| bytes[at..at + 8].iter().rev().fold(0u64, |n, b| n << 8 | u64::from(*b)) as usize;
            let (offset, length) = (number(at + 16), number(at + 24));
            if let Some(section) = offset.checked_add(length).and_then(|end| bytes.get(offset..end)) {
                let sum = crc32fast::hash(section).to_le_bytes();
                bytes[at + 12..at + 16].copy_from_slice(&sum);
            }
        }
        let sum = crc32fast::hash(&bytes[..begin]).to_le_bytes();
        bytes[28..32].copy_from_slice(&sum);
    }
    let path = folder().expect("a folder").join("database");
    fs::write(&path, bytes).expect("the database");
    let Ok(database) = Database::open(&path) else { return };
    for task in 0..database.tasks.len().min(4) {
        let _ = database.durations(task);
        let _ = database.model(task, &Work::new(1));
    }
}

/// Look up addresses in an executable, as main and as debug file.
pub fn ask_executable(bytes: &[u8]) {
    let path = folder().expect("a folder").join("executable");
    fs::write(&path, bytes).expect("the executable");
    let _ = (elf::identity(&path), elf::fixed_span(&path));
    let addresses: Vec<u64> = (0..64).map(|i| i * 0x133).chain([u64::MAX, 1 << 47]).collect();
    for count in [elf::Count::Own, elf::Count::Loaded, elf::Count::Offset] {
        let _ = elf::places(&path, Some(&path), count, &addresses);
    }
}

/// Read a text as each file that an option names.
pub fn ask_declared(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let _ = declared::tasks(&text, &[]);
    let _ = Handlers::with_own(&text);
    let source = Source { name: "fuzzed".to_owned(), text: text.into_owned() };
    let _ = Theme::compile(&source, Depth::True);
}

/// Parse words, each behind a zero.
pub fn ask_command_line(bytes: &[u8]) {
    let words: Vec<OsString> = bytes.split(|b| *b == 0).map(|word| OsString::from_vec(word.to_vec())).collect();
    if let cli::Parsed::Wrong(said) = cli::parse([OsString::from("whyslow")].into_iter().chain(words.iter().cloned())) {
        let line = clean::line(&said);
        assert!(!line.contains(['\n', '\u{1b}']), "{line:?}");
    }
    for word in words.iter().filter_map(|w| w.to_str()) {
        // What was understood can be written, and is understood again.
        if let Ok(filter) = word.parse::<Filter>() {
            let again = filter.to_string();
            assert_eq!(again.parse::<Filter>().map(|f| f.to_string()).ok(), Some(again));
        }
        let _ = word.parse::<FailIf>();
        let _ = task::parse(word, &[], &[]);
    }
}

/// Feed bytes as they come, and byte by byte with pauses.
pub fn ask_keys(bytes: &[u8]) {
    let mut taken = 0usize;
    let mut whole = Decoder::default();
    whole.feed(bytes, |_| taken += 1);
    whole.pause(|_| taken += 1);
    let mut slow = Decoder::default();
    for byte in bytes {
        slow.feed(&[*byte], |_| taken += 1);
        slow.pause(|_| taken += 1);
    }
    assert!(taken <= 4 * bytes.len() + 4, "{taken} inputs of {} bytes", bytes.len());
    // Nothing waits for a byte that never comes: the next key is that key.
    let mut last = None;
    slow.feed(b"q", |input| last = Some(input));
    assert!(last.is_some(), "the next key is lost");
}
