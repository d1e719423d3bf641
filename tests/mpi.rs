//! OTF2 archives: written here byte by byte (both byte orders, chunks, id maps, clocks, all that surprises), read back;
//! damaged in every way, read without harm; and the recorded corpus against its oracle, where it is unpacked.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "support/corpus.rs"]
mod corpus;

use corpus::corpus;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use whyslow::analysis::patterns::Mined;
use whyslow::analysis::patterns::measure::Settings;
use whyslow::base::ctx::Ctx;
use whyslow::base::notice::Notice;
use whyslow::event::mpi::{self, MpiRun};
use whyslow::event::operation::Place;
use whyslow::input::otf2::Archive;
use whyslow::model::build::{self, iterations};
use whyslow::model::context::FrameKind;
use whyslow::model::metric::Metric;
use whyslow::model::pattern::Anomalies;
use whyslow::session::Run;
use whyslow::view::archive::{self, Facts};
use whyslow::view::stats::Table;

// ---- a writer ------------------------------------------------------------------------------------------------------

/// Bytes of OTF2 in one byte order.
#[derive(Clone, Default)]
struct Bytes {
    data: Vec<u8>,
    big: bool,
}

impl Bytes {
    fn u8(mut self, v: u8) -> Self {
        self.data.push(v);
        self
    }
    fn full(mut self, v: u64, width: usize) -> Self {
        let bytes = v.to_le_bytes();
        if self.big {
            self.data.extend(bytes[..width].iter().rev())
        } else {
            self.data.extend(&bytes[..width])
        }
        self
    }
    fn packed(self, v: u64) -> Self {
        let width = 8 - v.leading_zeros() as usize / 8;
        self.u8(width as u8).full(v, width)
    }
    fn undefined(self) -> Self {
        self.u8(0xff)
    }
    fn string(mut self, text: &str) -> Self {
        self.data.extend(text.bytes());
        self.u8(0)
    }
    fn packs(self, values: &[u64]) -> Self {
        values.iter().fold(self, |b, v| b.packed(*v))
    }
    /// A record with a length; the long form where `long`.
    fn record(self, kind: u8, payload: &Bytes, long: bool) -> Self {
        let n = payload.data.len();
        let head = self.u8(kind);
        let mut head = if long || n > 254 { head.u8(0xff).full(n as u64, 8) } else { head.u8(n as u8) };
        head.data.extend(&payload.data);
        head
    }
}

/// Records, put into chunks of a given size when done.
struct File {
    big: bool,
    chunk: usize,
    records: Vec<Vec<u8>>,
}

impl File {
    fn bytes(&self) -> Bytes {
        Bytes { data: Vec::new(), big: self.big }
    }
    fn push(&mut self, record: Bytes) {
        self.records.push(record.data);
    }
    fn finish(self) -> Vec<u8> {
        let mark = if self.big { 0x23 } else { 0x42 };
        let head = || self.bytes().u8(3).u8(mark).full(1, 8).full(0, 8).data;
        let mut file = Vec::new();
        let mut chunk = head();
        for record in &self.records {
            if chunk.len() + record.len() + 2 > self.chunk {
                chunk.push(0);
                chunk.resize(self.chunk, 0);
                file.append(&mut chunk);
                chunk = head();
            }
            chunk.extend(record);
        }
        chunk.extend([2, 1]);
        file.extend(chunk);
        file
    }
}

const RANKS: u64 = 3;
const TURNS: u64 = 40;
const NUMBERS: [u64; 3] = [0, 715_827_882, 1_431_655_764];
const REGIONS: [&str; 7] =
    ["Working", "MPI_Irecv", "mpi_isend_", "MPI_Waitall", "MPI_Barrier", "MPI_Recv", "EZTrace finalize"];

/// How an archive is written.
#[derive(Clone, Copy)]
struct Style {
    big: bool,
    chunk: usize,
    /// Ticks that rank r's clock is behind by, per r; written as ClockOffset records when `corrected`.
    skew: u64,
    corrected: bool,
}

fn definitions(style: Style) -> Vec<u8> {
    let mut file = File { big: style.big, chunk: style.chunk, records: Vec::new() };
    let new = || Bytes { data: Vec::new(), big: style.big };
    let mut add = |kind, payload: Bytes| {
        let record = file.bytes().record(kind, &payload, kind == 18);
        file.push(record);
    };
    // Communicators and groups before what they refer to; the group id 0 twice; a type that nobody knows.
    add(22, new().packs(&[0, 20, 0]).undefined());
    add(22, new().packs(&[9, 20, 7]).undefined());
    add(18, new().packs(&[0, 20]).u8(4).packed(RANKS).packs(&NUMBERS).u8(4).u8(4).packed(0));
    add(18, new().packs(&[0, 20]).u8(5).packed(RANKS).packs(&[0, 1, 2]).u8(5).u8(4).packed(0));
    add(18, new().packs(&[7, 20]).u8(5).packed(RANKS).packs(&[0, 1, 2]).u8(5).u8(4).packed(0));
    add(200, new().packs(&[1, 2, 3]));
    for (rank, number) in NUMBERS.into_iter().enumerate() {
        add(14, new().packs(&[number, 30 + rank as u64]).u8(1).packs(&[2, rank as u64]));
        add(13, new().packs(&[rank as u64, 40 + rank as u64]).u8(1).packed(0));
        add(10, new().packed(30 + rank as u64).string(&format!("P#{rank}T#0")));
        add(10, new().packed(40 + rank as u64).string(&format!("P#{rank}")));
        for (region, _) in REGIONS.iter().enumerate() {
            let id = number + region as u64;
            add(15, new().packs(&[id, 50 + region as u64, 0]).u8(0).packs(&[0, 0, 0]));
        }
    }
    add(5, new().packs(&[500_000_000, 0, 1_000]));
    for (region, name) in REGIONS.iter().enumerate() {
        add(10, new().packed(50 + region as u64).string(name));
    }
    add(10, new().packed(20).string("MPI_COMM_WORLD"));
    file.finish()
}

fn local_definitions(style: Style, rank: u64) -> Vec<u8> {
    let mut file = File { big: style.big, chunk: style.chunk, records: Vec::new() };
    let new = || Bytes { data: Vec::new(), big: style.big };
    // Rank 1 maps its regions densely, rank 2 sparsely.
    let map = match rank {
        1 => Some(new().u8(3).packed(7).u8(0).packs(&(0..7).map(|r| NUMBERS[1] + r).collect::<Vec<_>>())),
        2 => {
            Some(new().u8(3).packed(7).u8(1).packs(&(0..7).flat_map(|r| [100 + r, NUMBERS[2] + r]).collect::<Vec<_>>()))
        }
        _ => None,
    };
    for map in map.into_iter() {
        let record = file.bytes().record(5, &map, false);
        file.push(record);
    }
    if style.corrected {
        for time in [0, 10_000_000_u64] {
            let payload = new().full(time, 8).packed(style.skew * rank).full(0, 8);
            let record = file.bytes().record(6, &payload, false);
            file.push(record);
        }
    }
    file.finish()
}

/// A ring: each turn post two receives from the left (tags 1 and 1), send two to the right, complete the second request
/// first. Then a barrier every tenth turn, and a receive from nobody at the end.
fn events(style: Style, rank: u64) -> Vec<u8> {
    let mut file = File { big: style.big, chunk: style.chunk, records: Vec::new() };
    let new = || Bytes { data: Vec::new(), big: style.big };
    let local_region = |r: u64| match rank {
        1 => r,
        2 => 100 + r,
        _ => NUMBERS[0] + r,
    };
    let (left, right) = ((rank + RANKS - 1) % RANKS, (rank + 1) % RANKS);
    // A record and its time: with a stamp of its own only where the time changed. A new chunk repeats the stamp, so here
    // records of one time stay together.
    let mut last = None;
    let mut record = |time: u64, body: Bytes| {
        let own = time - style.skew * rank;
        if last != Some(own) {
            file.push(new().u8(5).full(own, 8));
            last = Some(own);
        }
        if let Some(together) = file.records.last_mut() {
            together.extend(body.data);
        }
    };
    let enter = |r: u64| new().u8(12).packed(local_region(r));
    let leave = |r: u64| new().u8(13).packed(local_region(r));
    let mut t = 1_000 + style.skew * RANKS;
    record(t, new().record(63, &new().undefined().packed(0), false));
    record(t, enter(0));
    for turn in 0..TURNS {
        t += 10_000;
        for n in 0..2 {
            let at = t + 12 * n;
            record(at, enter(1));
            record(at, new().u8(17).packed((2 * turn + n) << 32));
            record(at + 10, leave(1));
        }
        for n in 0..2 {
            let at = t + 25 + 7 * n;
            // With an attribute list, which stands between time stamp and record.
            let mut body = new().record(6, &new().packed(1).packed(1).u8(8).full(7, 8), turn % 3 == 0);
            body.data.extend(enter(2).data);
            record(at, body);
            let payload = new().packs(&[right, 0, 1, 8 + n, 2 + n]);
            record(at + 1, new().record(15, &payload, turn % 5 == 0));
            record(at + 5, leave(2));
        }
        record(t + 40, enter(3));
        // An unknown type, then the completions in the other order; the communicator is wrong (9 instead of 0).
        record(t + 50, new().record(250, &new().packed(1), false));
        for request in [2 * turn + 1, 2 * turn] {
            let payload = new().packs(&[left, 9, 1, 8, request << 32]);
            record(t + 60, new().record(19, &payload, false));
        }
        record(t + 60, new().u8(16).packed(2));
        record(t + 60, leave(3));
        if turn % 10 == 9 {
            record(t + 70, enter(4));
            record(t + 70, new().record(22, &new(), false));
            record(t + 90, new().record(23, &new().u8(0).packed(0).undefined().packs(&[0, 0]), false));
            record(t + 95, leave(4));
        }
    }
    record(t + 100, enter(5));
    record(t + 101, new().record(18, &new().packs(&[4_294_967_294, 0, 4_294_967_295, 0]), false));
    record(t + 102, leave(5));
    // Not nested at the end.
    record(t + 110, enter(6));
    record(t + 120, leave(0));
    record(t + 120, new().record(65, &new().undefined().packed(0), false));
    record(t + 130, leave(6));
    file.finish()
}

fn anchor(style: Style) -> Vec<u8> {
    let mark = if style.big { 0x23 } else { 0x42 };
    let head = Bytes { data: Vec::new(), big: style.big }.u8(3).u8(mark).string("OTF2");
    let head = [3, 2, 3, 0, 2].into_iter().fold(head, Bytes::u8);
    let head = head.full(style.chunk as u64, 8).full(style.chunk as u64, 8).u8(1).u8(1).full(RANKS, 8).full(60, 8);
    let head = head.string("machine").string("a test").string("").full(1, 4).string("KEY").string("value");
    head.full(77, 8).full(0, 4).full(0, 4).u8(2).u8(1).u8(0).data
}

const PLAIN: Style = Style { big: false, chunk: 400, skew: 0, corrected: false };

struct Written {
    folder: tempfile::TempDir,
}

impl Written {
    fn new(style: Style) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let inside = folder.path().join("trace");
        std::fs::create_dir(&inside).unwrap();
        std::fs::write(folder.path().join("trace.otf2"), anchor(style)).unwrap();
        std::fs::write(folder.path().join("trace.def"), definitions(style)).unwrap();
        for (rank, number) in (0..).zip(NUMBERS) {
            std::fs::write(inside.join(format!("{number}.def")), local_definitions(style, rank)).unwrap();
            std::fs::write(inside.join(format!("{number}.evt")), events(style, rank)).unwrap();
        }
        Written { folder }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn files(&self) -> Vec<PathBuf> {
        let at = |name: &str| self.path().join(name);
        let local = NUMBERS.iter().flat_map(|n| [at(&format!("trace/{n}.def")), at(&format!("trace/{n}.evt"))]);
        [at("trace.otf2"), at("trace.def")].into_iter().chain(local).collect()
    }
}

fn read(path: &Path) -> (Archive, MpiRun) {
    let archive = Archive::open(path).unwrap();
    let run = mpi::read(&archive, &Ctx::new(1)).unwrap();
    (archive, run)
}

/// Positions of matched records: sending location, record, receiving location, record.
fn pairs(run: &MpiRun) -> Vec<(u32, u32, u32, u32)> {
    let mut all: Vec<_> = run
        .pairs
        .iter()
        .map(|p| {
            let send = run.locations[p.send.0 as usize].sends[p.send.1 as usize];
            let receive = run.locations[p.receive.0 as usize].receives[p.receive.1 as usize];
            (p.send.0, send.record, p.receive.0, receive.record)
        })
        .collect();
    all.sort_unstable();
    all
}

// ---- reading -------------------------------------------------------------------------------------------------------

#[test]
fn an_archive_is_read_in_both_byte_orders_and_any_chunks() {
    let mut seen = Vec::new();
    for (big, chunk) in [(false, 400), (true, 400), (false, 4096), (true, 1 << 24)] {
        let written = Written::new(Style { big, chunk, ..PLAIN });
        let (archive, run) = read(written.path());
        assert_eq!(archive.anchor.properties, [("KEY".to_owned(), "value".to_owned())]);
        assert_eq!(archive.anchor.creator, "a test");
        let ranks: Vec<_> = archive.definitions.locations.iter().map(|l| (l.name.as_str(), l.rank)).collect();
        assert_eq!(ranks, [("P#0T#0", Some(0)), ("P#1T#0", Some(1)), ("P#2T#0", Some(2))]);
        let counts = run.counts();
        assert_eq!((counts.sends, counts.receives, counts.matched), (240, 243, 240), "three receives are from nobody");
        assert_eq!(counts.per_name["MpiIsend"], 240);
        assert_eq!(counts.per_name["type 250"], 120);
        assert_eq!(counts.streams, 3);
        assert_eq!(run.notices.count(Notice::UnknownRecords), 120);
        assert_eq!(run.notices.count(Notice::DamagedPacket), 0);
        assert_eq!(run.notices.count(Notice::UnmatchedMessages), 0);
        assert_eq!(run.notices.count(Notice::EndWithoutBegin), 0);
        assert_eq!(run.notices.count(Notice::TimeBackwards), 0);
        seen.push((counts, pairs(&run)));
    }
    assert!(seen.windows(2).all(|w| w[0] == w[1]));
}

#[test]
fn messages_match_in_posting_order() {
    let written = Written::new(PLAIN);
    let (_, run) = read(written.path());
    for (sender, sent, receiver, received) in pairs(&run) {
        assert_eq!(receiver, (sender + 1) % 3);
        let send = run.locations[sender as usize].sends.iter().position(|s| s.record == sent).unwrap();
        let receives = &run.locations[receiver as usize].receives;
        // The first send belongs to the receive posted first, which completes second.
        let mut turn: Vec<_> = receives.iter().filter(|r| r.peer().is_some()).map(|r| r.record).collect();
        turn.sort_unstable();
        let order = turn.iter().position(|r| *r == received).unwrap();
        assert_eq!((order / 2, order % 2), (send / 2, 1 - send % 2));
    }
}

#[test]
fn operations_are_named_for_people_and_enclose_nothing() {
    let written = Written::new(PLAIN);
    let (archive, run) = read(written.path());
    let operations = run.into_operations(&archive);
    for sequence in &operations.sequences {
        let name = |i: usize| operations.names.get(sequence.operations[i].symbol);
        let turn: Vec<_> = (0..6).map(name).collect();
        assert_eq!(turn, ["MPI_Irecv", "MPI_Irecv", "MPI_Isend", "MPI_Isend", "MPI_Waitall", "MPI_Irecv"]);
        assert_eq!(name(sequence.operations.len() - 1), "EZTrace finalize");
        assert!(sequence.operations.windows(2).all(|w| w[0].end <= w[1].start));
        // 500 MHz: a call of 10 ticks takes 20 ns.
        assert_eq!(sequence.operations[0].span().len(), 20);
    }
    assert_eq!(operations.messages.len(), 240);
    // The first send of each turn completes in the wait of its turn; of the second nobody saw it.
    assert_eq!(operations.handovers.len(), 120);
    let call = |place| operations.names.get(operations.get(place).unwrap().symbol);
    for h in &operations.handovers {
        assert_eq!([call(h.from), call(h.left()), call(h.posted)], ["MPI_Isend", "MPI_Waitall", "MPI_Irecv"]);
        assert_eq!((h.bytes, h.left().operation - h.from.operation), (8, 2));
        let turn = |place: Place| operations.get(place).unwrap().start / 20_000;
        assert_eq!(turn(h.from), turn(h.posted), "{h:?}");
    }
    assert_eq!(operations.meetings.len(), 4);
    assert!(operations.meetings.iter().all(|m| m.members.len() == 3 && m.exchange.all_wait()));
}

#[test]
fn clocks_come_from_the_archive_or_from_messages() {
    let at_common = |style: Style| {
        let written = Written::new(style);
        let (archive, run) = read(written.path());
        let mined = Mined::new(run.into_operations(&archive), &Ctx::new(1)).unwrap();
        let offsets: Vec<i64> = mined.clocks.iter().map(|c| c.offset).collect();
        (offsets, mined.clocks.iter().map(|c| c.error.unwrap()).collect::<Vec<_>>())
    };
    // Rank r is r * 1000 ticks, 2 us each, behind.
    let (offsets, errors) = at_common(Style { skew: 1_000, ..PLAIN });
    for (rank, offset) in (0..).zip(&offsets) {
        assert!(
            (offset - 2_000 * rank).abs() <= errors[rank as usize] && errors[rank as usize] < 200,
            "{offsets:?} {errors:?}"
        );
    }
    let (offsets, _) = at_common(Style { skew: 1_000, corrected: true, ..PLAIN });
    assert!(offsets.iter().all(|o| o.abs() < 200), "the archive's own offsets are applied: {offsets:?}");
}

#[test]
fn any_number_of_workers_reads_the_same() {
    let written = Written::new(PLAIN);
    let archive = Archive::open(written.path()).unwrap();
    let answer = |threads| {
        let work = Ctx::new(threads);
        let run = mpi::read(&archive, &work).unwrap();
        let notices = run.notices.clone();
        let mined = Mined::new(run.into_operations(&archive), &work).unwrap();
        let found = Anomalies::new(&mined, &Settings::default(), &work).unwrap();
        serde_json::to_string(&whyslow::view::anomalies::json(&found, &notices, None)).unwrap()
    };
    let one = answer(1);
    assert!([2, 3, 7].into_iter().all(|threads| answer(threads) == one));
}

#[test]
fn iterations_are_the_turns_of_the_outermost_loop() {
    let written = Written::new(PLAIN);
    let (archive, run) = read(written.path());
    let mined = Mined::new(run.into_operations(&archive), &Ctx::new(1)).unwrap();
    let iterations = mined.iterations();
    assert_eq!(iterations.len(), 3);
    for one in iterations {
        // Ten turns and a barrier, four times; a turn starts every 10 000 ticks.
        assert_eq!(one.spans.len(), 4);
        assert!(one.spans.iter().take(3).all(|s| s.len() == 200_000), "{:?}", one.spans);
    }
}

#[test]
fn iterations_are_executions_whose_time_is_somebodys() {
    let written = Written::new(PLAIN);
    let (archive, run) = read(written.path());
    let notices = run.notices.clone();
    let mined = Mined::new(run.into_operations(&archive), &Ctx::new(1)).unwrap();
    let tasks = iterations::tasks(&mined);
    assert_eq!(tasks[0], "iteration");
    let model = iterations::iterations(&mined, 0, "run", "node", &notices, &Ctx::new(1)).unwrap();
    assert_eq!(build::check(&model, 10), Vec::<String>::new(), "all time is in some context");
    assert_eq!(model.executions.len(), 12, "four turns of three ranks");
    let starts = &model.executions.start;
    assert!(starts.is_sorted() && starts[0] >= model.origin);
    let ranks = &model.executions.column(&Metric::Field("rank".into())).unwrap().values;
    assert!((0..3).all(|rank| ranks.iter().filter(|r| **r == rank).count() == 4), "{ranks:?}");
    let frames = |kind: fn(&FrameKind) -> bool| -> BTreeSet<&str> {
        let all = model.contexts.nodes().map(|(_, frame)| frame).filter(|f| kind(&f.kind));
        all.map(|f| model.names.get(f.name)).collect()
    };
    assert!(frames(|k| *k == FrameKind::Function).contains("MPI_Waitall"));
    assert!(frames(|k| *k == FrameKind::Function).iter().any(|f| f.starts_with("computation after MPI_")));
    // A rank's own time is never spent by itself from afar without a wait between.
    for (parent, frame) in model.contexts.nodes() {
        if matches!(frame.kind, FrameKind::Thread(_)) {
            assert_eq!(model.contexts.frame(parent.unwrap()).kind, FrameKind::Function);
        }
    }
    // Each pattern alone makes the same executions.
    let one = |task| iterations::iterations(&mined, task, "run", "node", &notices, &Ctx::new(1)).unwrap();
    assert_eq!((1..tasks.len()).map(|task| one(task).executions.len()).sum::<usize>(), 12);
}

#[test]
fn a_run_is_mined_once_for_patterns_and_for_iterations() {
    let written = Written::new(PLAIN);
    let (run, work) = (Run::new(Box::new(Archive::open(written.path()).unwrap())), Ctx::new(2));
    work.cancel.cancel();
    assert!(run.mine(&work).is_err(), "what was cancelled is not kept");
    let work = Ctx::new(2);
    let first = run.mine(&work).unwrap();
    drop(written);
    let model = run.model(None, &work).expect("the archive is not read again");
    assert!(!model.executions.is_empty() && std::sync::Arc::ptr_eq(&first, &run.mine(&work).unwrap()));
}

#[test]
fn count_info_and_dump_say_what_is_there() {
    let written = Written::new(PLAIN);
    let (archive, run) = read(written.path());
    let count = serde_json::to_value(Table::messages(&run.counts(), &run.notices)).unwrap();
    assert_eq!(count["messages"], serde_json::json!({"sends": 240, "receives": 243, "matched": 240}));
    assert!(count.get("packets").is_none(), "an archive has none");
    let events = run.counts().events;
    let mined = Mined::new(run.into_operations(&archive), &Ctx::new(1)).unwrap();
    let found = Anomalies::new(&mined, &Settings::default(), &Ctx::new(1)).unwrap();
    let info = serde_json::to_value(Facts::new(&archive, Some((&mined, &found)), &archive.notices)).unwrap();
    assert_eq!(info["traces"][0]["format"], "OTF2 3.0.2");
    assert_eq!((&info["tasks"][0]["executions"], &info["tasks"][0]["p50_ns"]), (&12.into(), &200_000.into()));
    assert_eq!(info["clocks"][2]["stream"], "P#2T#0");
    let mut lines = Vec::new();
    archive::dump(&archive, &Default::default(), &mut lines).unwrap();
    let lines = String::from_utf8(lines).unwrap();
    assert_eq!(lines.lines().count() as u64, events);
    let times: Vec<i64> = lines.lines().map(|l| l.split('\t').next().unwrap().parse().unwrap()).collect();
    assert!(times.is_sorted());
    let send = "rank 0\tMpiIsend\tto rank 1, MPI_COMM_WORLD, tag 1, 8 bytes, request 0x2";
    assert!(lines.contains(send), "{}", &lines[..2000]);
    assert!(lines.contains("rank 0\tMpiRecv\tfrom an unknown rank"));
}

// ---- what is not an archive, what is damaged -----------------------------------------------------------------------

#[test]
fn errors_name_file_and_remedy() {
    let written = Written::new(PLAIN);
    let fails = |path: &Path| Archive::open(path).unwrap_err().to_string();
    let nothing = tempfile::tempdir().unwrap();
    assert!(fails(nothing.path()).contains("give the file NAME.otf2"));
    let anchor_file = written.path().join("trace.otf2");
    let original = std::fs::read(&anchor_file).unwrap();
    let with = |data: &[u8]| {
        std::fs::write(&anchor_file, data).unwrap();
        fails(written.path())
    };
    assert!(with(b"hello").contains("trace.otf2: not an OTF2 anchor file"));
    assert!(with(&original[..30]).contains("cut short"));
    let mut zipped = original.clone();
    zipped[2 + 5 + 5 + 16 + 1] = 2;
    assert!(with(&zipped).contains("compressed"));
    std::fs::write(&anchor_file, &original).unwrap();
    std::fs::remove_file(written.path().join("trace.def")).unwrap();
    assert!(fails(written.path()).contains("trace.def"));
}

#[test]
fn a_missing_location_is_a_notice() {
    let written = Written::new(PLAIN);
    std::fs::remove_file(written.path().join(format!("trace/{}.evt", NUMBERS[1]))).unwrap();
    std::fs::remove_file(written.path().join(format!("trace/{}.def", NUMBERS[0]))).unwrap();
    let (_, run) = read(written.path());
    assert_eq!(run.notices.count(Notice::DamagedStream), 1);
    assert_eq!(run.counts().matched, 80, "from rank 2 to rank 0");
}

#[test]
fn damage_ends_a_chunk_and_not_the_location() {
    let written = Written::new(PLAIN);
    let file = written.path().join(format!("trace/{}.evt", NUMBERS[0]));
    let mut data = std::fs::read(&file).unwrap();
    let all = read(written.path()).1.counts().events;
    // In the third chunk: a time stamp becomes a record whose length leads out of the chunk.
    data[2 * 400 + 18] = 14;
    data[2 * 400 + 19] = 0xfe;
    data[2 * 400 + 20] = 0xff;
    std::fs::write(&file, &data).unwrap();
    let (_, run) = read(written.path());
    assert!(run.notices.count(Notice::DamagedPacket) >= 1, "{:?}", run.notices.sentences());
    assert!(run.notices.sentences()[0].contains("0.evt at byte"), "{:?}", run.notices.sentences());
    let lost = all - run.counts().events;
    assert!((10..60).contains(&lost), "{lost} events in one chunk of 400 bytes");
}

/// Analyse whatever it is; the answer does not matter, that there is one does.
fn survives(path: &Path) {
    let Ok(archive) = Archive::open(path) else { return };
    let work = Ctx::new(1);
    let run = mpi::read(&archive, &work).unwrap();
    let mined = Mined::new(run.into_operations(&archive), &work).unwrap();
    let found = Anomalies::new(&mined, &Settings::default(), &work).unwrap();
    let notices = Default::default();
    let shown = (
        whyslow::view::anomalies::json(&found, &notices, None),
        whyslow::view::anomalies::text(&found, &notices, None, whyslow::view::anomalies::Shown::FIRST),
    );
    let _ = (mined.iterations(), shown);
}

#[test]
fn any_prefix_and_any_mutation_has_an_answer() {
    let written = Written::new(PLAIN);
    let started = std::time::Instant::now();
    let mut state = 1_u64;
    let mut random = |n: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % n.max(1)
    };
    for file in written.files() {
        let original = std::fs::read(&file).unwrap();
        for _ in 0..40 {
            std::fs::write(&file, &original[..random(original.len())]).unwrap();
            survives(written.path());
        }
        for _ in 0..120 {
            let mut data = original.clone();
            for _ in 0..1 + random(4) {
                let at = random(data.len());
                data[at] = match random(4) {
                    0 => data[at] ^ (1 << random(8)),
                    1 => 0xff,
                    2 => 0,
                    _ => random(256) as u8,
                };
            }
            std::fs::write(&file, &data).unwrap();
            survives(written.path());
        }
        std::fs::write(&file, &original).unwrap();
    }
    assert!(started.elapsed().as_secs() < 120);
}

#[test]
fn bombs_do_not_go_off() {
    let written = Written::new(PLAIN);
    let new = || Bytes::default();
    let write = |name: &str, records: Vec<Bytes>| {
        let mut file = File { big: false, chunk: 400, records: Vec::new() };
        records.into_iter().for_each(|r| file.push(r));
        std::fs::write(written.path().join(name), file.finish()).unwrap();
    };
    let evt = format!("trace/{}.evt", NUMBERS[0]);
    let def = format!("trace/{}.def", NUMBERS[0]);
    // Lengths and counts of all ones; times at the end of the world; a mapping table that claims 2^60 entries.
    write(&evt, vec![new().u8(5).full(u64::MAX, 8), new().u8(12).packed(0)]);
    survives(written.path());
    write(&evt, vec![new().u8(5).full(5, 8), new().u8(14).u8(0xff).full(u64::MAX, 8)]);
    survives(written.path());
    write(
        &evt,
        vec![new().u8(5).full(1 << 62, 8), new().u8(12).packed(0), new().u8(5).full(0, 8), new().u8(13).packed(0)],
    );
    survives(written.path());
    write(&def, vec![new().record(5, &new().u8(3).packed(1 << 60).u8(0), false)]);
    survives(written.path());
    let steep = [(0, 0), (1, u64::MAX / 2), (u64::MAX, 1 << 63)];
    write(&def, steep.iter().map(|(t, o)| new().record(6, &new().full(*t, 8).packed(*o).full(0, 8), false)).collect());
    survives(written.path());
    write("trace.def", vec![new().record(18, &new().packs(&[0, 20]).u8(4).packed(u32::MAX.into()), false)]);
    survives(written.path());
    // An anchor that claims four thousand million properties.
    let mut bomb = anchor(PLAIN);
    let at = bomb.len() - (3 + 4 + 4 + 8 + 6 + 4 + 4);
    bomb[at..at + 4].copy_from_slice(&[0xff; 4]);
    std::fs::write(written.path().join("trace.otf2"), bomb).unwrap();
    assert!(Archive::open(written.path()).unwrap_err().to_string().contains("cut short"));
}

// ---- the corpus ----------------------------------------------------------------------------------------------------

/// Folders of the corpus that hold an OTF2 archive and its oracle.
fn archives(part: &str) -> Vec<PathBuf> {
    let folders = std::fs::read_dir(corpus(part)).unwrap();
    let mut all: Vec<PathBuf> = folders.map(|f| f.unwrap().path()).filter(|f| f.join("oracle.json").exists()).collect();
    all.sort();
    assert!(!all.is_empty(), "no archive in {part}");
    all
}

fn parsed(path: &Path) -> serde_json::Value {
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// `MpiIsend` as the oracle writes it: `MPI_ISEND`.
fn screaming(name: &str) -> String {
    let mut out = String::new();
    for c in name.chars() {
        if c.is_uppercase() && !out.is_empty() {
            out.push('_');
        }
        out.push(c.to_ascii_uppercase());
    }
    out
}

#[test]
#[ignore = "needs the corpus"]
fn recorded_archives_agree_with_their_oracles() {
    for folder in ["mpi", "npb"].into_iter().flat_map(archives) {
        let oracle = parsed(&folder.join("oracle.json"));
        let (archive, run) = read(&folder.join("trace"));
        let counts = run.counts();
        let name = folder.display();
        assert_eq!(counts.events, oracle["records"].as_u64().unwrap(), "{name}");
        let expected = oracle["records_by_type"].as_object().unwrap();
        let mut found: BTreeMap<String, u64> = BTreeMap::new();
        for (class, n) in &counts.per_name {
            let class = screaming(class);
            *found.entry(if expected.contains_key(&class) { class } else { "OTHER".into() }).or_default() += n;
        }
        let expected: BTreeMap<String, u64> =
            expected.iter().map(|(k, v)| (k.clone(), v.as_u64().unwrap())).filter(|(_, n)| *n > 0).collect();
        assert_eq!(found, expected, "{name}");
        for ((location, run), expected) in
            archive.definitions.locations.iter().zip(&run.locations).zip(oracle["locations"].as_array().unwrap())
        {
            assert_eq!(location.number, expected["id"].as_u64().unwrap(), "{name}");
            assert_eq!(location.name, expected["name"].as_str().unwrap(), "{name}");
            assert_eq!(run.records, expected["records"].as_u64().unwrap(), "{name}");
            let ends = [&expected["first"], &expected["last"]].map(|t| i128::from(t.as_i64().unwrap()));
            assert_eq!(run.ticks.map(|(a, b)| [a, b]), Some(ends), "{name} {}", location.name);
        }
        let messages = &oracle["messages"];
        let figures = [counts.sends, counts.receives, counts.matched];
        assert_eq!(figures, ["sends", "receives", "matched"].map(|k| messages[k].as_u64().unwrap()), "{name}");
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        for (s, i, r, j) in pairs(&run) {
            for byte in format!("{s}:{i}:{r}:{j}\n").bytes() {
                hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
            }
        }
        assert_eq!(format!("{hash:016x}"), messages["pairs_fnv1a64"].as_str().unwrap(), "{name}");
    }
}

#[test]
#[ignore = "needs the corpus"]
fn clocks_of_recorded_runs_are_found_within_5_us() {
    for folder in archives("mpi") {
        let Ok(truth) = std::fs::read_to_string(folder.join("ground_truth.json")) else { continue };
        let truth: serde_json::Value = serde_json::from_str(&truth).unwrap();
        let Some(expected) = truth["trace_clock_plus_this_is_common"].as_array() else { continue };
        let (archive, run) = read(&folder.join("trace"));
        if run.pairs.is_empty() {
            continue;
        }
        let mined = Mined::new(run.into_operations(&archive), &Ctx::new(0)).unwrap();
        let first = expected[0].as_i64().unwrap();
        for (clock, expected) in mined.clocks.iter().zip(expected) {
            let off = clock.offset - (expected.as_i64().unwrap() - first);
            assert!(off.abs() <= 5_000, "{}: {off} ns off", folder.display());
        }
    }
}
