//! A small archive, written byte by byte in forms that Score-P does not use: both byte orders, chunks of any size, ids
//! that are mapped, clocks that are behind, unknown records, communicators defined behind what refers to them.
//!
//! In: a [`Style`]. Out: the archive of a ring of three ranks in a temporary folder. Ordinary archives are written by
//! `tests/support/otf2`.

use super::otf2::encoding::{ByteOrder, Bytes, Chunks};
use std::path::{Path, PathBuf};

/// Records that are put into chunks when all are there.
pub struct File {
    style: Style,
    records: Vec<Vec<u8>>,
}

impl File {
    pub fn new(style: Style) -> File {
        File { style, records: Vec::new() }
    }

    pub fn push(&mut self, record: Bytes) {
        self.records.push(record.data);
    }

    pub fn finish(self) -> Vec<u8> {
        let mut chunks = Chunks::new(self.style.chunk, self.style.order);
        self.records.iter().for_each(|record| chunks.push(record));
        chunks.finish()
    }
}

pub const RANKS: u64 = 3;
pub const TURNS: u64 = 40;
pub const NUMBERS: [u64; 3] = [0, 715_827_882, 1_431_655_764];
pub const REGIONS: [&str; 7] =
    ["Working", "MPI_Irecv", "mpi_isend_", "MPI_Waitall", "MPI_Barrier", "MPI_Recv", "EZTrace finalize"];

/// The form of an archive.
#[derive(Clone, Copy)]
pub struct Style {
    pub order: ByteOrder,
    pub chunk: usize,
    /// Ticks that rank r's clock is behind by, per r; written as ClockOffset records when `corrected`.
    pub skew: u64,
    pub corrected: bool,
}

pub fn definitions(style: Style) -> Vec<u8> {
    let mut file = File::new(style);
    let new = || Bytes::new(style.order);
    let mut add = |kind, payload: Bytes| {
        let record = new().record(kind, &payload, kind == 18);
        file.push(record);
    };
    // Communicators and groups before what they refer to; the group id 0 twice; an unknown type.
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

pub fn local_definitions(style: Style, rank: u64) -> Vec<u8> {
    let mut file = File::new(style);
    let new = || Bytes::new(style.order);
    // Rank 1 maps its regions densely, rank 2 sparsely.
    let map = match rank {
        1 => Some(new().u8(3).packed(7).u8(0).packs(&(0..7).map(|r| NUMBERS[1] + r).collect::<Vec<_>>())),
        2 => {
            Some(new().u8(3).packed(7).u8(1).packs(&(0..7).flat_map(|r| [100 + r, NUMBERS[2] + r]).collect::<Vec<_>>()))
        }
        _ => None,
    };
    for map in map.into_iter() {
        let record = new().record(5, &map, false);
        file.push(record);
    }
    if style.corrected {
        for time in [0, 10_000_000_u64] {
            let payload = new().full(time, 8).packed(style.skew * rank).full(0, 8);
            let record = new().record(6, &payload, false);
            file.push(record);
        }
    }
    file.finish()
}

/// A ring: each turn post two receives from the rank before (tags 1 and 1), send two to the one after, complete the
/// second request first. Then a barrier every tenth turn, and a receive from an unknown rank at the end.
pub fn events(style: Style, rank: u64) -> Vec<u8> {
    let mut file = File::new(style);
    let new = || Bytes::new(style.order);
    let local_region = |r: u64| match rank {
        1 => r,
        2 => 100 + r,
        _ => NUMBERS[0] + r,
    };
    let (left, right) = ((rank + RANKS - 1) % RANKS, (rank + 1) % RANKS);
    // A record and its time: with a stamp of its own only where the time changed. A new chunk repeats the stamp, so
    // here records of one time stay together.
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
            // With an attribute list, which comes between time stamp and record.
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

pub fn anchor(style: Style) -> Vec<u8> {
    let head = Bytes::new(style.order).u8(3).u8(style.order.mark()).string("OTF2");
    let head = [3, 2, 3, 0, 2].into_iter().fold(head, Bytes::u8);
    let head = head.full(style.chunk as u64, 8).full(style.chunk as u64, 8).u8(1).u8(1).full(RANKS, 8).full(60, 8);
    let head = head.string("machine").string("a test").string("").full(1, 4).string("KEY").string("value");
    head.full(77, 8).full(0, 4).full(0, 4).u8(2).u8(1).u8(0).data
}

pub const PLAIN: Style = Style { order: ByteOrder::Little, chunk: 400, skew: 0, corrected: false };

pub struct RingArchive {
    pub folder: tempfile::TempDir,
}

impl RingArchive {
    pub fn new(style: Style) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let inside = folder.path().join("trace");
        std::fs::create_dir(&inside).unwrap();
        std::fs::write(folder.path().join("trace.otf2"), anchor(style)).unwrap();
        std::fs::write(folder.path().join("trace.def"), definitions(style)).unwrap();
        for (rank, number) in (0..).zip(NUMBERS) {
            std::fs::write(inside.join(format!("{number}.def")), local_definitions(style, rank)).unwrap();
            std::fs::write(inside.join(format!("{number}.evt")), events(style, rank)).unwrap();
        }
        RingArchive { folder }
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    pub fn files(&self) -> Vec<PathBuf> {
        let at = |name: &str| self.path().join(name);
        let local = NUMBERS.iter().flat_map(|n| [at(&format!("trace/{n}.def")), at(&format!("trace/{n}.evt"))]);
        [at("trace.otf2"), at("trace.def")].into_iter().chain(local).collect()
    }
}
