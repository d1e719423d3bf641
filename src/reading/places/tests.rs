//! Chunks that go on from where others left a packet: each record is passed once, whatever the order in which chunks
//! are read, and nothing that is read depends on which places were known, also where a packet is damaged.

use super::StreamPlaces;
use crate::base::ctx::{Cancel, Ctx};
use crate::input::record::ClassId;
use crate::input::trace::{Plan, Trace};
use crate::input::{self, Argument, Opened, Source};
use crate::reading::bind::Binding;
use crate::reading::chunks::{Chunk, ChunkSide, ChunkTarget, PacketRange, RangeOutcome, StreamSource, cut};
use std::cell::Cell;
use std::fmt::Write as _;
use std::path::Path;

fn opened(arguments: Vec<Argument>) -> Vec<Source> {
    let Ok(Opened::Traces(sources)) = input::open(&arguments, &Ctx::new(1)) else { panic!("{arguments:?}: no traces") };
    sources
}

/// Some traces, with their bindings and plans.
struct Traces<'s> {
    all: Vec<&'s Trace>,
    bound: Vec<(Binding, Plan)>,
}

impl<'s> Traces<'s> {
    fn of(sources: &'s [Source]) -> Traces<'s> {
        let all: Vec<&Trace> = sources.iter().map(|source| &source.trace).collect();
        let bound = |trace: &&Trace| {
            let binding = Binding::new(trace, &[]);
            let plan = trace.compile(&binding.projection);
            (binding, plan)
        };
        let bound = all.iter().map(bound).collect();
        Traces { all, bound }
    }

    /// No place is known in any stream.
    fn unread(&self) -> Vec<Vec<StreamPlaces>> {
        let of = |trace: &&Trace| trace.streams().iter().map(|_| StreamPlaces::default()).collect();
        self.all.iter().map(of).collect()
    }

    /// Read the packets of a stream for a chunk; `passed` counts the wanted records that the reader goes past.
    fn read(
        &self,
        places: &[Vec<StreamPlaces>],
        chunk: &Chunk,
        range: &PacketRange,
        passed: &Cell<u64>,
        mut take: impl FnMut(String),
    ) -> RangeOutcome {
        let (binding, plan) = &self.bound[range.trace];
        let places = &places[range.trace][range.stream.index()];
        let source = StreamSource { trace: self.all[range.trace], plan, places };
        let checkpoint = |class: ClassId| {
            passed.set(passed.get() + 1);
            binding.is_switch(class)
        };
        range.read(source, chunk, &Cancel::default(), checkpoint, |record, side| {
            let before = if side == ChunkSide::Before { "before " } else { "" };
            take(format!("{before}{:?} {} {} {:?}", record.class, record.time.ns(), record.cpu, record.values));
        })
    }

    /// All that is read of a chunk, and what is said.
    fn text(&self, places: &[Vec<StreamPlaces>], chunk: &Chunk) -> String {
        let mut text = String::new();
        for range in &chunk.ranges {
            let mut lines = String::new();
            let outcome = self.read(places, chunk, range, &Cell::new(0), |record| writeln!(lines, "{record}").unwrap());
            let RangeOutcome { notices, damaged } = outcome;
            writeln!(text, "{} {:?}\n{lines}{notices:?} {damaged:?}", range.trace, range.stream).unwrap();
        }
        text
    }
}

/// Copies of a recording have all packets open at once. However they are cut, each record is passed once.
#[test]
fn chunks_pass_each_record_once() {
    for (path, labels) in [("traces/lock-contention", 6), ("recorders/v6.dat", 8), ("recorders/switch.data", 8)] {
        let argument = |i| Argument::parse(format!("{i}=fixtures/{path}"));
        let sources = opened((0..labels).map(argument).collect());
        let traces = Traces::of(&sources);
        let read = |target| {
            let (places, passed, mut taken) = (traces.unread(), Cell::new(0), 0u64);
            let chunks = cut(&traces.all, target, 1);
            for (chunk, range) in chunks.iter().flat_map(|chunk| chunk.ranges.iter().map(move |range| (chunk, range))) {
                traces.read(&places, chunk, range, &passed, |record| taken += u64::from(!record.starts_with("before")));
            }
            (chunks.len(), taken, passed.get())
        };
        let (_, all, _) = read(ChunkTarget::Whole);
        let (chunks, taken, passed) = read(ChunkTarget::Bytes(1));
        assert!(chunks > 10 && all > 100, "{path}: {chunks} chunks, {all} records");
        assert_eq!((taken, passed), (all, all), "{path}: {chunks} chunks");
    }
}

/// Whatever chunks have been read before, in any order, the same is read of each, also of damaged packets.
#[test]
fn places_change_nothing_that_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let damaged = folder.path().join("damaged");
    std::fs::create_dir(&damaged).unwrap();
    let whole = Path::new("fixtures/traces/pid-buffers/kernel");
    for entry in std::fs::read_dir(whole).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_file()) {
        let mut bytes = std::fs::read(&entry).unwrap();
        if !entry.ends_with("metadata") {
            let length = bytes.len();
            // An event in the middle of some packets.
            for at in (2_500..length).step_by(6_000) {
                bytes[at..(at + 24).min(length)].fill(0xff);
            }
        }
        std::fs::write(damaged.join(entry.file_name().unwrap()), bytes).unwrap();
    }
    let fixtures = ["traces/lost-events", "traces/rotated", "recorders/v7.dat", "recorders/dwarf.data"];
    let fixtures = fixtures.iter().map(|name| Path::new("fixtures").join(name));
    for path in fixtures.chain([damaged.clone()]) {
        let sources = opened(vec![Argument::new(path.clone())]);
        let traces = Traces::of(&sources);
        for target in [ChunkTarget::Packet, ChunkTarget::Bytes(1), ChunkTarget::Bytes(40 << 10)] {
            let chunks = cut(&traces.all, target, 1);
            let alone: Vec<String> = chunks.iter().map(|chunk| traces.text(&traces.unread(), chunk)).collect();
            // A stride that is prime to most numbers; the first order is that of the chunks.
            for stride in [1, 7, chunks.len() - 1] {
                let places = traces.unread();
                for at in (0..2 * chunks.len()).map(|i| i * stride % chunks.len()) {
                    let found = traces.text(&places, &chunks[at]);
                    assert!(found == alone[at], "{}, {target:?}, chunk {at}, by {stride}", path.display());
                }
            }
            if path == damaged {
                let said = alone.iter().filter(|text| text.contains("DamagedPacket")).count();
                assert!(said > 0, "nothing is damaged");
            }
        }
    }
}
