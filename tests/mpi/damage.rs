//! Files that are no archive, and archives that are damaged or inconsistent: an error, a notice, never harm.

use super::otf2::encoding::Bytes;
use super::random::Random;
use super::raw::{File, NUMBERS, PLAIN, RingArchive, anchor};
use super::read;
use std::path::Path;
use whyslow::parts::analysis::patterns::PatternAnalysis;
use whyslow::parts::base::ctx::Ctx;
use whyslow::parts::base::notice::Notice;
use whyslow::parts::delays::anomalies;
use whyslow::parts::event::mpi;
use whyslow::parts::input::otf2::Archive;
use whyslow::parts::model::settings::Settings;

#[test]
fn errors_name_file_and_remedy() {
    let ring = RingArchive::new(PLAIN);
    let fails = |path: &Path| Archive::open(path).unwrap_err().to_string();
    let nothing = tempfile::tempdir().unwrap();
    assert!(fails(nothing.path()).contains("name the file NAME.otf2"));
    let anchor_file = ring.path().join("trace.otf2");
    let original = std::fs::read(&anchor_file).unwrap();
    let with = |data: &[u8]| {
        std::fs::write(&anchor_file, data).unwrap();
        fails(ring.path())
    };
    assert!(with(b"hello").contains("trace.otf2: not an OTF2 anchor file"));
    assert!(with(&original[..30]).contains("cut off"));
    let mut zipped = original.clone();
    zipped[2 + 5 + 5 + 16 + 1] = 2;
    assert!(with(&zipped).contains("compressed"));
    std::fs::write(&anchor_file, &original).unwrap();
    std::fs::remove_file(ring.path().join("trace.def")).unwrap();
    assert!(fails(ring.path()).contains("trace.def"));
}

#[test]
fn missing_location_is_a_notice() {
    let ring = RingArchive::new(PLAIN);
    std::fs::remove_file(ring.path().join(format!("trace/{}.evt", NUMBERS[1]))).unwrap();
    std::fs::remove_file(ring.path().join(format!("trace/{}.def", NUMBERS[0]))).unwrap();
    let (_, run) = read(ring.path());
    assert_eq!(run.notices.count(Notice::DamagedStream), 1);
    assert_eq!(run.counts().matched, 80, "from rank 2 to rank 0");
}

#[test]
fn damaged_record_ends_its_chunk_alone() {
    let ring = RingArchive::new(PLAIN);
    let file = ring.path().join(format!("trace/{}.evt", NUMBERS[0]));
    let mut data = std::fs::read(&file).unwrap();
    let all = read(ring.path()).1.counts().events;
    // In the third chunk: a time stamp becomes a record whose length leads out of the chunk.
    data[2 * 400 + 18] = 14;
    data[2 * 400 + 19] = 0xfe;
    data[2 * 400 + 20] = 0xff;
    std::fs::write(&file, &data).unwrap();
    let (_, run) = read(ring.path());
    assert!(run.notices.count(Notice::DamagedPacket) >= 1, "{:?}", run.notices.sentences());
    assert!(run.notices.sentences()[0].contains("0.evt at byte"), "{:?}", run.notices.sentences());
    let lost = all - run.counts().events;
    assert!((10..60).contains(&lost), "{lost} events in one chunk of 400 bytes");
}

/// Analyse a damaged archive: any answer will do, as long as there is one.
fn survives(path: &Path) {
    let Ok(archive) = Archive::open(path) else { return };
    let work = Ctx::new(1);
    let run = mpi::read(&archive, &work).unwrap();
    let mined = PatternAnalysis::new(run.into_operations(&archive), &work).unwrap();
    let found = anomalies::of_patterns(&mined, &Settings::default(), &work).unwrap();
    let notices = Default::default();
    let shown = (
        whyslow::parts::view::anomalies::json(&found, &notices, None),
        whyslow::parts::view::anomalies::text(
            &found,
            &notices,
            None,
            whyslow::parts::view::anomalies::ListBounds::FIRST,
        ),
    );
    let _ = (mined.iterations(), shown);
}

#[test]
fn prefixes_and_mutations_are_answered() {
    let ring = RingArchive::new(PLAIN);
    let started = std::time::Instant::now();
    let mut random = Random::new(1);
    for file in ring.files() {
        let original = std::fs::read(&file).unwrap();
        for _ in 0..40 {
            std::fs::write(&file, &original[..random.below(original.len())]).unwrap();
            survives(ring.path());
        }
        for _ in 0..120 {
            let mut data = original.clone();
            for _ in 0..1 + random.below(4) {
                let at = random.below(data.len());
                data[at] = match random.below(4) {
                    0 => data[at] ^ (1 << random.below(8)),
                    1 => 0xff,
                    2 => 0,
                    _ => random.below(256) as u8,
                };
            }
            std::fs::write(&file, &data).unwrap();
            survives(ring.path());
        }
        std::fs::write(&file, &original).unwrap();
    }
    assert!(started.elapsed().as_secs() < 120);
}

#[test]
fn claimed_sizes_allocate_nothing() {
    let ring = RingArchive::new(PLAIN);
    let new = || Bytes::default();
    let write = |name: &str, records: Vec<Bytes>| {
        let mut file = File::new(PLAIN);
        records.into_iter().for_each(|r| file.push(r));
        std::fs::write(ring.path().join(name), file.finish()).unwrap();
    };
    let evt = format!("trace/{}.evt", NUMBERS[0]);
    let def = format!("trace/{}.def", NUMBERS[0]);
    // Lengths and counts of all ones; the largest times; a mapping table that claims 2^60 entries.
    write(&evt, vec![new().u8(5).full(u64::MAX, 8), new().u8(12).packed(0)]);
    survives(ring.path());
    write(&evt, vec![new().u8(5).full(5, 8), new().u8(14).u8(0xff).full(u64::MAX, 8)]);
    survives(ring.path());
    write(
        &evt,
        vec![new().u8(5).full(1 << 62, 8), new().u8(12).packed(0), new().u8(5).full(0, 8), new().u8(13).packed(0)],
    );
    survives(ring.path());
    write(&def, vec![new().record(5, &new().u8(3).packed(1 << 60).u8(0), false)]);
    survives(ring.path());
    let steep = [(0, 0), (1, u64::MAX / 2), (u64::MAX, 1 << 63)];
    write(&def, steep.iter().map(|(t, o)| new().record(6, &new().full(*t, 8).packed(*o).full(0, 8), false)).collect());
    survives(ring.path());
    write("trace.def", vec![new().record(18, &new().packs(&[0, 20]).u8(4).packed(u32::MAX.into()), false)]);
    survives(ring.path());
    // An anchor that claims four thousand million properties.
    let mut bomb = anchor(PLAIN);
    let at = bomb.len() - (3 + 4 + 4 + 8 + 6 + 4 + 4);
    bomb[at..at + 4].copy_from_slice(&[0xff; 4]);
    std::fs::write(ring.path().join("trace.otf2"), bomb).unwrap();
    assert!(Archive::open(ring.path()).unwrap_err().to_string().contains("cut off"));
}
