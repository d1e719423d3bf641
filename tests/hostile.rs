//! Hostile input gets an answer: exit status 0 or 1 with one line, no panic, bounded memory and time; and one damaged
//! stream never takes the others with it.

use crate::support::{ask, random};
use ask::{copy, fixture};
use random::Random;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};
use whyslow::parts::base::ctx::Ctx;
use whyslow::parts::base::notice::Notice;
use whyslow::parts::input::{self, Argument, Opened, count};

const LAYOUTS: [&str; 3] = ["split-files", "snap", "lost-events"];
const COMMANDS: [&[&str]; 6] = [
    &["stats", "count", "--json"],
    &["dump", "--canonical"],
    &["info", "--json"],
    &["explain", "--json"],
    &["query", "--json", "--attribute", "threads/*/state", "--points", "3"],
    &["timeline", "--rows", "5"],
];
const PATIENCE: Duration = Duration::from_secs(20);

fn files(folder: &Path, into: &mut Vec<PathBuf>) {
    let mut entries: Vec<_> = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() { files(&path, into) } else { into.push(path) }
    }
}

/// Run under 4 GiB of address space.
fn ask(words: &[&str], trace: &Path) -> Output {
    let started = Instant::now();
    let out = Command::new("sh")
        .args(["-c", "ulimit -v 4194304; exec \"$@\"", "sh", ask::PROGRAM])
        .args(words)
        .arg(trace)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(started.elapsed() < PATIENCE, "{words:?} took {:?}", started.elapsed());
    out
}

/// Exit status 0, or 1 with an error in the last line; nothing that controls a terminal.
fn answered(out: &Output, what: &str) {
    let said = String::from_utf8_lossy(&out.stderr);
    assert!(!said.contains("panicked"), "{what}: {said}");
    match out.status.code() {
        Some(0) => {}
        Some(1) => assert!(said.trim().lines().last().is_some_and(|l| l.starts_with("whyslow: ")), "{what}: {said}"),
        other => panic!("{what}: exit status {other:?}: {said}"),
    }
    let steers = |c: char| c.is_control() && c != '\n' && c != '\t';
    assert!(!String::from_utf8_lossy(&out.stdout).contains(steers) && !said.contains(steers), "{what}");
}

fn damage(data: &mut Vec<u8>, dice: &mut Random) {
    let at = dice.below(data.len());
    let until = (at + 1 + dice.below(64)).min(data.len());
    match dice.below(6) {
        0 => data.truncate(at),
        1 => data.iter_mut().skip(at).take(1).for_each(|b| *b ^= 1 << 3),
        2 => data[at..until].fill(0),
        3 => data[at..until].fill(0xff),
        4 => {
            let block = data[at..until].to_vec();
            data.splice(at..at, block);
        }
        _ => drop(data.splice(at..until, *b"\x1b[2J\x07\x00\xc3\x28%s")),
    }
}

#[test]
fn damaged_recordings_are_answered() {
    let folder = tempfile::tempdir().unwrap();
    let mut dice = Random::new(0x5eed_0f1e_01d5);
    for round in 0..90 {
        let name = LAYOUTS[round % LAYOUTS.len()];
        let trace = folder.path().join(format!("{name}-{round}"));
        copy(&fixture(name), &trace);
        let mut all = Vec::new();
        files(&trace, &mut all);
        all.retain(|f| !f.ends_with("README.md") && !f.ends_with("oracle.json"));
        for _ in 0..1 + dice.below(2) {
            let file = &all[dice.below(all.len())];
            let mut data = std::fs::read(file).unwrap();
            for _ in 0..1 + dice.below(4) {
                damage(&mut data, &mut dice);
            }
            std::fs::write(file, data).unwrap();
        }
        let words = COMMANDS[dice.below(COMMANDS.len())];
        answered(&ask(words, &trace), &format!("round {round}, {name}, {words:?}"));
        std::fs::remove_dir_all(&trace).unwrap();
    }
}

/// An answer, and the same one on one worker and on two.
fn answered_by_all(words: &[&str], path: &Path, what: &str) {
    let [one, two] = ["1", "2"].map(|workers| {
        let out = ask(&[words, &["--threads", workers]].concat(), path);
        answered(&out, what);
        (out.status.code(), out.stdout)
    });
    assert!(one == two, "{what}: the number of workers changes the answer");
}

/// Packs bytes.
type Pack = fn(&[u8]) -> Vec<u8>;

fn gzip(plain: &[u8]) -> Vec<u8> {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(plain).unwrap();
    packed.finish().unwrap()
}

fn zstd(plain: &[u8]) -> Vec<u8> {
    ruzstd::encoding::compress_to_vec(plain, ruzstd::encoding::CompressionLevel::Fastest)
}

/// Texts and profiles, damaged before they were packed, after that, or not packed.
#[test]
fn damaged_texts_are_answered() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("recording");
    let texts = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/texts");
    let mut waits = Vec::new();
    flate2::read::GzDecoder::new(&*std::fs::read(texts.join("waits.txt.gz")).unwrap()).read_to_end(&mut waits).unwrap();
    let of = |name: &str| (name.to_owned(), std::fs::read(texts.join(name)).unwrap());
    let all = [("waits".to_owned(), waits), of("profile.txt"), of("folded.txt"), of("firefox.json")];
    let packings: [Pack; 3] = [<[u8]>::to_vec, gzip, zstd];
    let mut dice = Random::new(0x7e87_0f1e);
    for round in 0..48 {
        let (name, data) = &all[round % all.len()];
        let mut data = data.clone();
        let pack = packings[round / all.len() % packings.len()];
        let is_packed_first = dice.below(4) == 0;
        if is_packed_first {
            data = pack(&data);
        }
        for _ in 0..1 + dice.below(4) {
            damage(&mut data, &mut dice);
        }
        if !is_packed_first {
            data = pack(&data);
        }
        std::fs::write(&path, data).unwrap();
        let words = COMMANDS[dice.below(COMMANDS.len())];
        answered_by_all(words, &path, &format!("round {round}, {name}, {words:?}"));
    }
}

/// What runtimes write about the code that they compile.
#[test]
fn damaged_maps_and_dumps_are_answered() {
    let folder = tempfile::tempdir().unwrap();
    let compiled = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/recorders/compiled");
    let recording = folder.path().join("perf.data");
    let mut dice = Random::new(0x0171_ca5e);
    for (data, beside) in [("node.data", "perf-26906.map"), ("jitdump.data", "jit-26935.dump")] {
        std::fs::copy(compiled.join(data), &recording).unwrap();
        let whole = std::fs::read(compiled.join(beside)).unwrap();
        for round in 0..12 {
            let mut bytes = whole.clone();
            for _ in 0..1 + dice.below(6) {
                damage(&mut bytes, &mut dice);
            }
            std::fs::write(folder.path().join(beside), bytes).unwrap();
            let words = [&["explain", "--json"], &["info", "--full", "--json"][..]][round % 2];
            answered_by_all(words, &recording, &format!("round {round}, {beside}, {words:?}"));
        }
    }
}

/// Every stream is cut at some places, the stream's index is left as it was, so that it contradicts the stream.
#[test]
fn prefixes_are_answered() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("t");
    copy(&fixture("split-files"), &trace);
    let mut all = Vec::new();
    files(&trace, &mut all);
    all.retain(|f| !f.ends_with("README.md") && !f.ends_with("oracle.json"));
    for file in all {
        let whole = std::fs::read(&file).unwrap();
        for part in [0, 1, 7, 40, whole.len() / 2, whole.len().saturating_sub(1)] {
            std::fs::write(&file, &whole[..part.min(whole.len())]).unwrap();
            answered(&ask(&["stats", "count"], &trace), &format!("{} cut at {part}", file.display()));
        }
        std::fs::write(&file, whole).unwrap();
    }
}

#[test]
fn damaged_stream_leaves_the_others() {
    let events = |trace: &Path| {
        let out = ask(&["stats", "count", "--json"], trace);
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        serde_json::from_slice::<serde_json::Value>(&out.stdout).unwrap()["events"].as_u64().unwrap()
    };
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("t");
    copy(&fixture("lost-events"), &trace);
    let stream = trace.join("kernel/k_0");
    let whole = std::fs::read(&stream).unwrap();
    std::fs::remove_file(&stream).unwrap();
    let others = events(&trace);
    assert!(others > 0);
    let mut garbage = whole.clone();
    garbage[..4096].fill(0xff);
    for damaged in [&garbage[..], &whole[..10], &whole[..whole.len() / 2]] {
        std::fs::write(&stream, damaged).unwrap();
        assert!(events(&trace) >= others, "{} bytes of k_0", damaged.len());
    }
}

/// A file that shrinks while it is read (a recording that is cleared, a full disk) ends in damage, not in a signal.
#[test]
fn stream_that_shrinks_while_read_is_a_notice() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("t");
    copy(&fixture("lost-events"), &trace);
    let open = || match input::open(&[Argument::new(trace.clone())], &Ctx::new(2)).unwrap() {
        Opened::Traces(sources) => sources,
        Opened::Otf2(_) => unreachable!(),
    };
    let (whole, sources) = (open(), open());
    let count = |sources: &[input::Source]| count::count(sources, &Ctx::new(2)).unwrap();
    let (before, notices) = count(&whole);
    assert_eq!(notices.count(Notice::MappingLost), 0);
    let stream = trace.join("kernel/k_0");
    let bytes = std::fs::metadata(&stream).unwrap().len();
    std::fs::OpenOptions::new().write(true).open(&stream).unwrap().set_len(bytes / 3).unwrap();
    let (after, notices) = count(&sources);
    assert_eq!(notices.count(Notice::MappingLost), 1, "{:?}", notices.sentences());
    assert!(notices.has_fault() && 0 < after.events && after.events < before.events);
}

/// Claims of a file are no reason to allocate, to recurse or to wait. The metadata is written in line: its hostile text
/// is what is tested.
#[test]
fn claimed_sizes_allocate_nothing() {
    let head = "/* CTF 1.8 */\ntrace { major = 1; minor = 8; byte_order = le; };\n";
    let deep = |n: usize| format!("{}integer {{ size = 8; }} x; {}", "struct { ".repeat(n), "} x; ".repeat(n));
    let event =
        |fields: &str| format!("{head}stream {{}};\nevent {{ name = \"e\"; fields := struct {{ {fields} }}; }};\n");
    let long = "integer { size = 64; align = 8; } n; integer { size = 8; } a[n];";
    let nothing = "integer { size = 64; align = 8; } n; struct { } a[n];";
    let context = "stream { packet.context := struct { integer { size = 64; } packet_size; integer { size = 64; } content_size; }; };";
    let bombs = [
        ("deep", event(&deep(100_000)), vec![1; 64]),
        ("array", event("integer { size = 8; } a[1152921504606846976];"), vec![1; 64]),
        ("arrays", event("integer { size = 8; } a[4000000000][4000000000][4000000000];"), vec![1; 64]),
        ("sequence", event(long), vec![0xff; 64]),
        ("sequence-of-nothing", event(nothing), [&[0, 0, 0, 0, 0, 0, 0, 0x10][..], &[0; 8]].concat()),
        ("packet", format!("{head}{context}\nevent {{ name = \"e\"; fields := struct {{ }}; }};\n"), vec![0xff; 64]),
        ("braces", format!("{head}{}", "{".repeat(1 << 20)), vec![]),
        ("no-bits", event(""), vec![1; 64]),
    ];
    let folder = tempfile::tempdir().unwrap();
    for (name, metadata, stream) in bombs {
        let trace = folder.path().join(name);
        std::fs::create_dir(&trace).unwrap();
        std::fs::write(trace.join("metadata"), metadata).unwrap();
        std::fs::write(trace.join("stream"), stream).unwrap();
        for words in COMMANDS {
            answered(&ask(words, &trace), &format!("{name}, {words:?}"));
        }
    }
}

/// Another program overwrites a trace while it is read: damage, never a crash.
#[test]
fn trace_overwritten_while_read_is_answered() {
    use std::os::unix::fs::FileExt;
    use std::sync::atomic::{AtomicBool, Ordering};
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("t");
    copy(&fixture("lost-events"), &trace);
    let recorders = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/recorders");
    let archive = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/archives/late_sender/trace");
    copy(&archive, &folder.path().join("archive"));
    for name in ["v7.dat", "file.data"] {
        std::fs::copy(recorders.join(name), folder.path().join(name)).unwrap();
    }
    let inputs: Vec<PathBuf> =
        ["t", "archive/traces.otf2", "v7.dat", "file.data"].iter().map(|n| folder.path().join(n)).collect();
    let mut all = Vec::new();
    files(folder.path(), &mut all);
    let all: Vec<(PathBuf, Vec<u8>)> = all.into_iter().map(|f| (f.clone(), std::fs::read(f).unwrap())).collect();
    let ended = AtomicBool::new(false);
    let mut answers = Vec::new();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut dice = Random::new(0x5eed_0012);
            let opened: Vec<_> =
                all.iter().map(|(f, _)| std::fs::OpenOptions::new().write(true).open(f).unwrap()).collect();
            while !ended.load(Ordering::Relaxed) {
                let at = dice.below(opened.len());
                let (file, bytes) = (&opened[at], &all[at].1);
                let from = dice.below(bytes.len());
                // Mostly as it was, so that much is understood until the next stroke.
                let byte =
                    if dice.below(8) == 0 { dice.below(256) as u8 } else { bytes.get(from).copied().unwrap_or(0) };
                file.write_all_at(&[byte], from as u64).unwrap();
            }
        });
        for round in 0..6 {
            for words in
                [&["stats", "count", "--json"][..], &["dump"], &["explain", "--json"], &["anomalies", "--json"]]
            {
                for input in &inputs {
                    answers.push((format!("{words:?} of {} in round {round}", input.display()), ask(words, input)));
                }
            }
        }
        ended.store(true, Ordering::Relaxed);
    });
    answers.iter().for_each(|(what, out)| answered(out, what));
}
