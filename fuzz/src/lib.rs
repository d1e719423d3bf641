//! What every fuzz target asks of a trace, and what must hold of the answer whatever the bytes are.
//!
//! In: the bytes of `metadata` and of one stream file. They go through real files, as a user's do, so that opening,
//! indexing and mapping are covered too; the folder is in memory where `/dev/shm` is there. Must hold: no panic; an
//! answer within bounds (libFuzzer's own limits of time and memory); a trace without a fault is read alike by the
//! three ways through it: counting, which steps over values, the whole decode, and a second decode.
//!
//! By hand, in `fuzz/`: `cargo run --example seeds`, then `cargo +nightly fuzz run packet -- -max_total_time=1200` (also
//! `metadata_text`, `metadata_json`, `schema_and_packet`; `-dict=tsdl.dict` or `-dict=json.dict` helps the first two).

use std::io::{self, Write};
use std::path::PathBuf;
use std::{env, fs, process};
use whyslow::base::work::Work;
use whyslow::input::{self, Argument, Opened, count};
use whyslow::view::dump::{self, Form, Sizes};

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
fn folder() -> io::Result<PathBuf> {
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
