//! The questions of the fuzz targets, and the properties that every answer must have for any bytes.
//!
//! In: the bytes of `metadata` and of one stream file. They go through real files, as a user's do, so that opening,
//! indexing and mapping are covered too; the folder is in memory where `/dev/shm` is there. Must hold: no panic; an
//! answer within bounds (libFuzzer's own limits of time and memory); each record is an event, describes others, or was
//! skipped for a reason that is said; a trace without a fault is read alike by the three ways through it: counting,
//! which steps over values, the whole decode, and a second decode.
//!
//! By hand, in `fuzz/`: `cargo run --example seeds`, then
//! `cargo +nightly fuzz run TARGET corpus/TARGET kept/TARGET -- -max_total_time=1200`. [`TARGETS`] has the names;
//! `-dict=tsdl.dict` and `-dict=json.dict` help those of metadata. `kept/` holds the smallest inputs that reach all
//! code that was once reached (see `kept/README.md`), `found/` those that once failed; `tests/replay.rs` asks the same
//! of both and of mutations, with a stable compiler.

pub mod saved;
pub mod seeds;
#[allow(dead_code)]
#[path = "../../tests/support"]
mod support {
    pub mod interface;
    pub mod model_parts;
    pub mod random;
}

use std::ffi::OsString;
use std::io::{self, Write};
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::{env, fs, process};
use support::interface::Session;
pub use support::random;
use whyslow::parts::base::clean;
use whyslow::parts::base::ctx::Ctx;
use whyslow::parts::base::time::Timestamp;
use whyslow::parts::compare::condition::FailIf;
use whyslow::parts::compare::filter::Filter;
use whyslow::parts::dump::{Form, Sizes};
use whyslow::parts::input::otf2::Archive;
use whyslow::parts::input::{self, Argument, Opened, Source, checked_account, count};
use whyslow::parts::kernel::Handlers;
use whyslow::parts::options::configuration::Configuration;
use whyslow::parts::reading::{declared, tasks};
use whyslow::parts::saved::executions::Database;
use whyslow::parts::session::{self, LeafChecks, OpenOptions};
use whyslow::parts::symbols::compiled::CodeBuilder;
use whyslow::parts::symbols::files::SymbolPaths;
use whyslow::parts::symbols::{elf, jitdump, perf_map};
use whyslow::parts::tui::keyboard::{InputDecoder, TerminalEvent};
use whyslow::parts::tui::message::UiMessage;
use whyslow::parts::tui::theme::{ColourDepth, Theme, ThemeSource};
use whyslow::parts::{cli, dump};

/// The questions about an input.
pub type Ask = fn(&[u8]);

/// All targets by name; each has a file in `fuzz_targets/`.
pub const TARGETS: [(&str, Ask); 21] = [
    ("metadata_text", ask_metadata_text),
    ("metadata_json", ask_metadata_json),
    ("packet", ask_packet),
    ("schema_and_packet", ask_schema_and_packet),
    ("perf_data", ask_perf_data),
    ("trace_dat", ask_trace_dat),
    ("translated", ask_translated),
    ("script", ask_script),
    ("folded", ask_folded),
    ("firefox", ask_firefox),
    ("packed", ask_packed),
    ("archive", ask_archive),
    ("database", ask_database),
    ("history_file", ask_history_file),
    ("tables", ask_tables),
    ("executable", ask_executable),
    ("jitdump", ask_jitdump),
    ("declared", ask_declared),
    ("command_line", ask_command_line),
    ("keys", ask_keys),
    ("interface", ask_interface),
];

/// The signature before made-up metadata, so that it is taken for metadata.
pub const TEXT_BEGINS: &[u8] = b"/* CTF 1.8 */\n";
/// The same of CTF 2.
pub const JSON_BEGINS: &[u8] = b"\x1e{\"type\": \"preamble\", \"version\": 2}\n";
/// A short stream, so that what was understood of the metadata is also run.
const STREAM: [u8; 16] = [0xc1, 0x1f, 0xfc, 0xc1, 0, 0, 0, 0, 1, 2, 3, 0x80, 0xff, 0, 0, 0];

/// Keys that the interface is given at most: more of them reach nothing else, and take longer.
const MOST_KEYS: usize = 64;

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
    let work = Ctx::new(1);
    let opened = input::open(&[Argument::new(path)], &work);
    let Ok(Opened::Traces(sources)) = opened else { return };
    assert_accounted(&sources);
    let (counts, _) = count::count(&sources, &work).expect("it is not cancelled");
    let mut listing = Listing::default();
    if dump::write(&sources, Form::Canonical, &Sizes::default(), &work, &mut listing).is_ok() {
        assert_eq!(listing.lines, counts.events);
    }
}

/// What became of each record is known: bytes that are neither read nor counted are a failure.
fn assert_accounted(sources: &[Source]) {
    for source in sources {
        let checked = checked_account::of_source(source, &Ctx::new(1)).expect("it is not cancelled");
        assert_eq!(checked.broken, None);
    }
}

/// As the metadata of a CTF 1.8 trace.
pub fn ask_metadata_text(bytes: &[u8]) {
    ask(&[TEXT_BEGINS, bytes].concat(), Some(&STREAM));
}

/// As the fragments of a CTF 2 trace.
pub fn ask_metadata_json(bytes: &[u8]) {
    ask(&[JSON_BEGINS, bytes].concat(), Some(&STREAM));
}

/// As a stream of a fixed schema that has every kind of field, in CTF 1.8 or CTF 2 as the first bit says.
pub fn ask_packet(bytes: &[u8]) {
    let Some((choice, stream)) = bytes.split_first() else { return };
    ask(if choice & 1 == 0 { seeds::EVERY_FIELD } else { seeds::EVERY_FIELD_JSON }, Some(stream));
}

/// The bytes before the first zero are metadata, the rest the stream.
pub fn ask_schema_and_packet(bytes: &[u8]) {
    let cut = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
    ask(&bytes[..cut], Some(bytes.get(cut + 1..).unwrap_or(&[])));
}

/// As a perf.data.
pub fn ask_perf_data(bytes: &[u8]) {
    ask_file("perf.data", bytes);
}

/// As a trace.dat.
pub fn ask_trace_dat(bytes: &[u8]) {
    ask_file("trace.dat", bytes);
}

/// As a file of another platform: DTrace, ETW or Perfetto, as its first bytes say.
pub fn ask_translated(bytes: &[u8]) {
    ask_file("trace", bytes);
}

/// As the text of `perf script`, behind a line that makes it one.
pub fn ask_script(bytes: &[u8]) {
    ask_file("script", &[b"app 1/1 [000] 1.000000: 1 cycles:\n\n", bytes].concat());
}

/// As folded stacks, behind a line that makes them so.
pub fn ask_folded(bytes: &[u8]) {
    ask_file("folded", &[b"app;main 1\n", bytes].concat());
}

/// As a profile of the Firefox profiler, behind a member that makes it one.
pub fn ask_firefox(bytes: &[u8]) {
    ask_file("firefox", &[b"{\"meta\":{\"preprocessedProfileVersion\":46},", bytes].concat());
}

/// As a file that gzip or zstd packed.
pub fn ask_packed(bytes: &[u8]) {
    ask_file("packed", bytes);
}

/// Open a trace of one stream and read it in every way.
pub fn ask(metadata: &[u8], stream: Option<&[u8]>) {
    let folder = folder().expect("a folder for the trace");
    fs::write(folder.join("metadata"), metadata).expect("metadata");
    if let Some(stream) = stream {
        fs::write(folder.join("stream"), stream).expect("stream");
    }
    let argument = Argument::new(folder);
    let Ok(Opened::Traces(sources)) = input::open(&[argument], &Ctx::new(1)) else { return };
    assert_accounted(&sources);
    for source in &sources {
        source.trace.compile_whole();
    }
    let work = Ctx::new(1);
    let list = |workers, sizes: &Sizes| {
        let mut listing = Listing::default();
        let work = Ctx::new(workers);
        dump::write(&sources, Form::Canonical, sizes, &work, &mut listing).ok().map(|notices| (listing, notices))
    };
    let Some((listing, mut notices)) = list(1, &Sizes::default()) else { return };
    let pieces = Sizes { sample: 3, chunk: 7, window: 64 };
    assert_eq!(list(2, &pieces).map(|(again, _)| again).as_ref(), Some(&listing), "two readings of one trace differ");
    sources.iter().for_each(|s| notices.merge(&s.trace.notices()));
    let (counts, _) = count::count(&sources, &work).expect("it is not cancelled");
    if !notices.has_fault() {
        assert_eq!(counts.events, listing.lines, "counting and decoding disagree");
    }
}

/// Read an archive one of whose files is replaced: the first byte says which.
pub fn ask_archive(bytes: &[u8]) {
    let target = folder().expect("a folder").join("archive");
    fs::create_dir_all(target.join("traces")).expect("a folder for the archive");
    let files = seeds::ARCHIVE;
    let (choice, bytes) = bytes.split_first().map_or((0, bytes), |(c, rest)| (usize::from(*c) % files.len(), rest));
    for (at, file) in files.iter().enumerate() {
        let path = target.join(file);
        match at == choice {
            true => fs::write(path, bytes).expect("the file"),
            false => drop(fs::copy(seeds::archive().join(file), path).expect("a sound file")),
        }
    }
    let Ok(archive) = Archive::open(&target.join("traces.otf2")) else { return };
    let checked = checked_account::of_archive(&archive, &Ctx::new(1)).expect("it is not cancelled");
    assert_eq!(checked.broken, None);
}

/// Open a database and read each model; what it says of its length and its checksums is put right before.
pub fn ask_database(bytes: &[u8]) {
    let path = folder().expect("a folder").join("database");
    fs::write(&path, saved::put_right(bytes)).expect("the database");
    let Ok(database) = Database::open(&path) else { return };
    for (task, name) in database.contents.tasks().iter().enumerate().take(4) {
        let _ = database.durations(name, |_| true, &Ctx::new(1));
        let _ = database.model(task, &Ctx::new(1));
    }
}

/// Open a history file and ask it for executions and states, its leaves read when it is opened, or when they are asked
/// for; what it says of its length and its checksums is put right before.
pub fn ask_history_file(bytes: &[u8]) {
    let path = folder().expect("a folder").join("history");
    fs::write(&path, saved::put_right(bytes)).expect("the history file");
    for leaves in [LeafChecks::AtOpening, LeafChecks::WhenRead] {
        let (options, argument) = (OpenOptions { leaves, ..OpenOptions::default() }, Argument::parse(path.clone()));
        let Ok(mut session) = session::Session::open(&[argument], &options, &Ctx::new(1)) else { continue };
        let _ = session.model(None, &SymbolPaths::default(), &[], &Ctx::new(1));
        let _ = session.history("query", &Ctx::new(1));
    }
}

/// Import exported tables of which the first byte says which one has the other bytes; a database that comes of it can
/// be read. Without Parquet the command refuses before it reads any.
pub fn ask_tables(bytes: &[u8]) {
    let Some((which, bytes)) = bytes.split_first() else { return };
    let below = folder().expect("a folder").join("tables");
    let sound = seeds::tables();
    let changed = sound.get(usize::from(*which) % sound.len().max(1)).map(|(path, _)| path);
    for (path, sound) in sound {
        let file = below.join(path);
        fs::create_dir_all(file.parent().expect("a folder")).expect("the folder of a table");
        fs::write(&file, if Some(path) == changed { bytes } else { sound }).expect("a table");
    }
    let output = below.with_extension("why");
    fs::remove_file(&output).ok();
    if seeds::run("import", &output, &below) {
        let database = Database::open(&output).expect("what was imported is a database");
        (0..database.contents.tasks().len()).for_each(|task| drop(database.model(task, &Ctx::new(1)).expect("a task")));
    }
}

/// Look up addresses in an executable, as main and as debug file.
pub fn ask_executable(bytes: &[u8]) {
    let path = folder().expect("a folder").join("executable");
    fs::write(&path, bytes).expect("the executable");
    let _ = (elf::identity(&path), elf::fixed_span(&path));
    let addresses: Vec<u64> = (0..64).map(|i| i * 0x133).chain([u64::MAX, 1 << 47]).collect();
    for count in [elf::AddressBase::Own, elf::AddressBase::Loaded, elf::AddressBase::Offset] {
        let _ = elf::symbols_at(&path, Some(&path), count, &addresses);
    }
}

/// Read a dump of compiled code, and its bytes as a map: each address has at most one function at a time.
pub fn ask_jitdump(bytes: &[u8]) {
    for monotonic in [None, Some(0), Some(i64::MAX)] {
        let mut code = CodeBuilder::default();
        let _ = jitdump::read(bytes, monotonic, &mut code);
        let _ = perf_map::read(bytes, &mut code);
        let code = code.finish();
        assert!(code.is_sorted() && code.changes().is_sorted());
        for address in (0..64).map(|i| i * 0x133).chain([u64::MAX, 1 << 47]) {
            let _ = code.at(address, Timestamp::default());
        }
    }
}

/// Read a text as each file that an option names.
pub fn ask_declared(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let _ = declared::tasks(&text, &[]);
    let _ = Handlers::with_own(&text);
    let source = ThemeSource { name: "fuzzed".to_owned(), text: text.into_owned() };
    let _ = Theme::compile(&source, ColourDepth::True);
}

/// Parse words, each behind a zero.
pub fn ask_command_line(bytes: &[u8]) {
    let words: Vec<OsString> = bytes.split(|b| *b == 0).map(|word| OsString::from_vec(word.to_vec())).collect();
    if let cli::Parsed::Wrong(said) =
        cli::parse([OsString::from("whyslow")].into_iter().chain(words.iter().cloned()), &Configuration::default())
    {
        let line = clean::line(&said);
        assert!(!line.contains(['\n', '\u{1b}']), "{line:?}");
    }
    for word in words.iter().filter_map(|w| w.to_str()) {
        // A filter that was understood can be written, and is understood again.
        if let Ok(filter) = word.parse::<Filter>() {
            let again = filter.to_string();
            assert_eq!(again.parse::<Filter>().map(|f| f.to_string()).ok(), Some(again));
        }
        let _ = word.parse::<FailIf>();
        let _ = tasks::parse(word, &[], &[]);
    }
}

/// Feed bytes as they come, and byte by byte with pauses.
pub fn ask_keys(bytes: &[u8]) {
    let mut taken = 0usize;
    let mut whole = InputDecoder::default();
    whole.feed(bytes, |_| taken += 1);
    whole.pause(|_| taken += 1);
    let mut slow = InputDecoder::default();
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

/// Type bytes into the interface over a made-up recording, and draw what it shows then, at the size that the first two
/// bytes say.
pub fn ask_interface(bytes: &[u8]) {
    thread_local! {
    /// With its results, before the first key.
    static READY: Session = { let mut session = Session::new(80, 24, ColourDepth::True).again(); session.ready(); session }; }
    let [columns, lines, bytes @ ..] = bytes else { return };
    let mut session = READY.with(Session::again);
    session.send(UiMessage::Resize(u16::from(*columns), u16::from(*lines)));
    let mut inputs = Vec::new();
    let mut decoder = InputDecoder::default();
    // A pause behind each zero: what is no key.
    for piece in bytes.split(|b| *b == 0) {
        decoder.feed(piece, |input| inputs.push(input));
        decoder.pause(|input| inputs.push(input));
    }
    for input in inputs.into_iter().take(MOST_KEYS) {
        let drawn = matches!(input, TerminalEvent::Click(..));
        session.send(match input {
            TerminalEvent::Key(key) => UiMessage::Key(key),
            TerminalEvent::Paste(text) => UiMessage::Paste(text),
            TerminalEvent::Wheel(lines) => UiMessage::Wheel(lines),
            TerminalEvent::Click(column, line) => UiMessage::Click(column, line),
            TerminalEvent::Drag(column, line) => UiMessage::Drag(column, line),
            TerminalEvent::Background(background) => UiMessage::Background(background),
            TerminalEvent::Resized | TerminalEvent::Closed => continue,
        });
        // A click refers to what was drawn.
        if drawn {
            session.draw();
        }
        if session.ended {
            return;
        }
    }
    let shown = session.draw();
    assert_eq!((shown.area.width, shown.area.height), (u16::from(*columns), u16::from(*lines)));
}
