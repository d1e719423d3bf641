//! `dump` writes events in the order that is promised, and the same bytes on any number of workers, however the work is
//! cut: on recorded traces, damaged copies of them, and generated ones whose times are equal, go back, contradict their
//! packets or are missing.
//!
//! `WHYSLOW_CORPUS=... cargo test --release --test all dump:: -- --ignored` does the same on the corpus.

use crate::support::{random, recordings};
use proptest::prelude::*;
use random::Random;
use recordings::{damage, fixtures, of_corpus, split_files};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use whyslow::parts::base::ctx::Ctx;
use whyslow::parts::dump;
use whyslow::parts::dump::{DumpError, Form, Sizes};
use whyslow::parts::input::{Argument, Opened, Source, open};

const SIZES: [Sizes; 5] = [
    Sizes { sample: 1, chunk: 1, window: 1 },
    Sizes { sample: 1, chunk: 100, window: 1000 },
    Sizes { sample: 64, chunk: 999, window: 20_000 },
    Sizes { sample: 4 << 10, chunk: 30_000, window: 100_000 },
    Sizes { sample: 16 << 10, chunk: 512 << 10, window: 16 << 20 },
];

fn load(paths: &[PathBuf]) -> Option<Vec<Source>> {
    let arguments: Vec<Argument> = paths.iter().map(|path| Argument::new(path.clone())).collect();
    match open(&arguments, &Ctx::new(2)) {
        Ok(Opened::Traces(sources)) => Some(sources),
        _ => None,
    }
}

fn text(sources: &[Source], form: Form, sizes: &Sizes, workers: usize) -> (Vec<u8>, Vec<String>) {
    let mut out = Vec::new();
    let notices = dump::write(sources, form, sizes, &Ctx::new(workers), &mut out).unwrap();
    (out, notices.sentences())
}

/// Compares some ways of cutting with none; returns the canonical text.
fn check(name: &str, sources: &[Source], sizes: &[Sizes]) -> Vec<u8> {
    let mut canonical = Vec::new();
    for form in [Form::Readable, Form::Canonical] {
        let serial = text(sources, form, &Sizes::default(), 1);
        for sizes in sizes {
            for workers in [2, 3, 7] {
                let found = text(sources, form, sizes, workers);
                // Not assert_eq: some of the texts are megabytes.
                let at = found.0.iter().zip(&serial.0).position(|(a, b)| a != b).unwrap_or(0);
                let lengths = (found.0.len(), serial.0.len());
                assert!(
                    found.0 == serial.0,
                    "{name}: {form:?}, {workers} workers, {sizes:?}: byte {at} of {lengths:?}"
                );
                assert_eq!(found.1, serial.1, "{name}: {form:?}, {workers} workers, {sizes:?}");
            }
        }
        canonical = serial.0;
    }
    canonical
}

#[test]
fn dump_of_recorded_traces_does_not_depend_on_chunks() {
    for path in fixtures() {
        if let Some(sources) = load(std::slice::from_ref(&path)) {
            check(&path.display().to_string(), &sources, &SIZES[3..]);
        }
    }
    let all: Vec<PathBuf> = fixtures().into_iter().filter(|path| load(std::slice::from_ref(path)).is_some()).collect();
    assert!(all.len() > 5, "only {} fixtures", all.len());
    check("all together", &load(&all).unwrap(), &SIZES[3..4]);
}

#[test]
fn dump_of_damaged_copies_does_not_depend_on_chunks() {
    let mut checked = 0;
    for seed in 0..24u64 {
        let folder = tempfile::tempdir().unwrap();
        let mut random = Random::new(seed);
        damage(&split_files(), folder.path(), 8, &mut |n| random.below(n));
        if let Some(sources) = load(&[folder.path().to_owned()]) {
            check(&format!("damaged {seed}"), &sources, &SIZES[1..4]);
            checked += 1;
        }
    }
    assert!(checked > 12, "only {checked} copies could be opened");
}

/// An event of a generated trace: its time; and whether it is whole, or has a selector that selects nothing.
type Event = (u8, bool);

/// A packet: the time that it says it begins at, and its events.
type Packet = (u8, Vec<Event>);

/// Write a trace of some streams, with a clock or without. Metadata and packets are written here: no tracer, and so not
/// the writer of the other tests, leaves out the clock, lets a packet begin after its events, or selects no option.
fn written(folder: &Path, streams: &[Vec<Packet>], clock: bool) {
    let map = if clock { "map = clock.c.value;" } else { "" };
    let metadata = format!(
        "/* CTF 1.8 */ typealias integer {{ size = 8; }} := u8; typealias integer {{ size = 32; }} := u32;\n\
         trace {{ major = 1; minor = 8; byte_order = le; }};\n\
         clock {{ name = c; freq = 7; }};\n\
         stream {{ packet.context := struct {{ u32 content_size; u32 packet_size; integer {{ size = 8; {map} }} {begin}; }};\n\
         event.header := struct {{ integer {{ size = 64; {map} }} {time}; }}; }};\n\
         event {{ name = e; fields := struct {{ u8 n; enum : u8 {{ a }} t; variant <t> {{ u8 a; }} v; }}; }};\n",
        begin = if clock { "timestamp_begin" } else { "other_begin" },
        time = if clock { "timestamp" } else { "other" },
    );
    std::fs::write(folder.join("metadata"), metadata).unwrap();
    let mut n = 0u8;
    for (number, packets) in streams.iter().enumerate() {
        let mut bytes = Vec::new();
        for (begin, events) in packets {
            let bits = (9 + 11 * events.len() as u32) * 8;
            bytes.extend(bits.to_le_bytes());
            bytes.extend(bits.to_le_bytes());
            bytes.push(*begin);
            for (time, whole) in events {
                bytes.extend(u64::from(*time).to_le_bytes());
                bytes.extend([n, u8::from(!whole), 7]);
                n = n.wrapping_add(1);
            }
        }
        std::fs::write(folder.join(format!("s{number}")), bytes).unwrap();
    }
}

/// The expected canonical text: of the next events of all streams always the least by (time, stream).
fn expected(streams: &[Vec<Packet>], clock: bool) -> String {
    let mut n = 0u8;
    let mut left: Vec<Vec<(Option<u64>, u8)>> = Vec::new();
    for packets in streams {
        let mut events = Vec::new();
        for (_, packet) in packets {
            let mut broken = false;
            for (time, whole) in packet {
                broken |= !whole;
                if !broken {
                    events.push((clock.then(|| u64::from(*time)), n));
                }
                n = n.wrapping_add(1);
            }
        }
        events.reverse();
        left.push(events);
    }
    let mut text = String::new();
    let ns = |cycles: u64| (1e9 * cycles as f64 / 7.0) as u64;
    while let Some((_, stream)) = left.iter().enumerate().filter_map(|(i, events)| Some((events.last()?.0, i))).min() {
        let (time, n) = left[stream].pop().unwrap();
        let time = time.map_or("-".to_owned(), |time| ns(time).to_string());
        text += &format!("{time}\t-\te\t-\t-\t{{n={n},t=0(a),v=7}}\n");
    }
    text
}

fn a_trace() -> impl Strategy<Value = Vec<Vec<Packet>>> {
    // Few different times, so that many are equal; mostly in order, some not.
    let event = (0u8..6, prop::bool::weighted(0.97));
    let packet = (0u8..40, prop::collection::vec(event, 0..12));
    let stream = prop::collection::vec(packet, 1..10).prop_map(|mut packets: Vec<Packet>| {
        let mut now = 0u8;
        for (i, (begin, events)) in packets.iter_mut().enumerate() {
            let contradicts = *begin > 33;
            if !contradicts {
                *begin = now;
            }
            for (time, _) in events.iter_mut() {
                // Every third packet has times that go back.
                now = if *time < 5 { now.saturating_add(*time % 2) } else { now };
                *time = if i % 3 == 2 { now.saturating_sub(*time) } else { now };
            }
        }
        packets
    });
    prop::collection::vec(stream, 1..5)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn dump_of_generated_traces_is_in_order(streams in a_trace(), clock: bool, sizes in 0usize..4) {
        let folder = tempfile::tempdir().unwrap();
        written(folder.path(), &streams, clock);
        let sources = load(&[folder.path().to_owned()]).unwrap();
        let found = check("generated", &sources, &SIZES[sizes..=sizes]);
        prop_assert_eq!(String::from_utf8(found).unwrap(), expected(&streams, clock));
    }
}

/// Takes some bytes, then the pipe is closed.
struct Closed<'c> {
    left: usize,
    writes: &'c AtomicUsize,
}

impl Write for Closed<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writes.fetch_add(1, Ordering::Relaxed);
        match self.left.checked_sub(bytes.len()) {
            Some(left) => self.left = left,
            None => return Err(io::ErrorKind::BrokenPipe.into()),
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn dump_ends_with_a_closed_pipe_and_when_cancelled() {
    let sources = load(&[split_files()]).unwrap();
    for workers in [1, 2, 3] {
        let writes = AtomicUsize::new(0);
        let mut out = Closed { left: 1000, writes: &writes };
        let ended = dump::write(&sources, Form::Canonical, &SIZES[1], &Ctx::new(workers), &mut out);
        assert!(matches!(ended, Err(DumpError::Output(e)) if e.kind() == io::ErrorKind::BrokenPipe));
        // Nothing is offered to a pipe that is closed.
        let failed = writes.load(Ordering::Relaxed);
        assert!(workers == 1 || failed <= 12, "{failed} writes");

        let work = Ctx::new(workers);
        work.cancel.cancel();
        let ended = dump::write(&sources, Form::Canonical, &SIZES[1], &work, &mut Vec::new());
        assert!(matches!(ended, Err(DumpError::Cancelled(_))));
    }
}

#[test]
#[ignore = "needs the corpus, and minutes"]
fn dump_of_the_corpus_does_not_depend_on_chunks() {
    let mut found = 0;
    for path in of_corpus() {
        if let Some(sources) = load(std::slice::from_ref(&path)) {
            check(&path.display().to_string(), &sources, &SIZES[3..]);
            found += 1;
        }
    }
    println!("{found} recordings");
}
