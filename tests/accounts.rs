//! Nothing is lost unsaid: of each recording, sound or damaged, every record is an event, describes others, or was
//! skipped for a reason that a notice names.

use crate::support::ask::{copy, output, said};
use crate::support::random::Random;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use whyslow::parts::base::ctx::Ctx;
use whyslow::parts::base::notice::{Notice, Notices};
use whyslow::parts::input::checked_account::{self, CheckedAccount};
use whyslow::parts::input::{self, Argument, Opened};

/// Damaged copies of each recording in an ordinary run; `WHYSLOW_ROUNDS` is another number.
const ROUNDS: usize = 12;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures")
}

/// All recordings below a folder: files by their endings, and folders that are recordings as a whole.
fn recordings(below: &Path) -> Vec<PathBuf> {
    let (mut found, mut folders) = (Vec::new(), vec![below.to_owned()]);
    while let Some(folder) = folders.pop() {
        let entries = || std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
        let is_archive = entries().any(|path| path.extension().is_some_and(|ending| ending == "otf2"));
        let is_whole = ["metadata", "data"].iter().any(|name| folder.join(name).is_file());
        if is_archive || is_whole {
            found.push(folder);
            continue;
        }
        for path in entries() {
            let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
            let is_text = folder.ends_with("texts") || folder.ends_with("other-platforms");
            match ending {
                _ if path.is_dir() => folders.push(path),
                "data" | "dat" | "pftrace" => found.push(path),
                "txt" | "csv" | "json" | "gz" if is_text => found.push(path),
                _ => {}
            }
        }
    }
    found.sort();
    found
}

/// What a recording is, and what became of its records.
struct Accounts {
    format: String,
    checked: Vec<CheckedAccount>,
    /// All that was said.
    notices: Notices,
}

/// The accounts of what is at a path; none where it cannot be opened.
fn accounts(path: &Path, workers: usize) -> Option<Accounts> {
    let ctx = Ctx::new(workers);
    let argument = Argument::new(path.to_owned());
    let (mut checked, mut notices) = (Vec::new(), Notices::default());
    let format = match input::open(&[argument], &ctx).ok()? {
        Opened::Traces(sources) => {
            checked.extend(sources.iter().map(|source| checked_account::of_source(source, &ctx).unwrap()));
            sources.iter().for_each(|source| notices.merge(&source.trace.notices()));
            sources.first()?.trace.version()
        }
        Opened::Otf2(archives) => {
            for one in &archives {
                checked.push(checked_account::of_archive(&one.archive, &ctx).unwrap());
                notices.merge(&one.archive.notices);
            }
            "OTF2".to_owned()
        }
    };
    Some(Accounts { format, checked, notices })
}

/// What no sound recording has.
const DAMAGE: [Notice; 5] = [
    Notice::EventsUndescribed,
    Notice::FormatsMissing,
    Notice::HeaderUnread,
    Notice::RecordingUnfinished,
    Notice::PartsUnclaimed,
];

/// Of all recordings below a folder the sums are right, and the same for any number of workers; nothing is missing.
/// Returns the events of each format.
fn events_by_format(below: &Path) -> BTreeMap<String, u64> {
    let mut formats = BTreeMap::new();
    for path in recordings(below) {
        let Some(Accounts { format, checked, notices }) = accounts(&path, 1) else { continue };
        for CheckedAccount { account, broken } in &checked {
            assert_eq!(*broken, None, "{}", path.display());
            *formats.entry(format.clone()).or_default() += account.given;
        }
        println!("{} ({format}): {}", path.display(), checked[0].account);
        let damage = DAMAGE.iter().map(|notice| notices.count(*notice)).sum::<u64>();
        assert_eq!(damage, 0, "{}: {:?}", path.display(), notices.sentences());
        assert_eq!(accounts(&path, 3).unwrap().checked, checked, "{}", path.display());
    }
    formats
}

#[test]
fn each_fixture_accounts_for_its_records() {
    let formats = events_by_format(&root());
    // CTF 2, and damage of each kind in CTF: `decode.rs`.
    for reader in [
        "CTF 1.8",
        "Chrome JSON",
        "DTrace text",
        "ETW text (tracerpt)",
        "ETW text (xperf)",
        "Firefox profile",
        "OTF2",
        "Perfetto",
        "folded stacks",
        "perf script text",
        "perf.data",
        "perf.data (pipe)",
        "trace.dat 6",
        "trace.dat 7",
    ] {
        assert!(formats.get(reader).is_some_and(|events| *events > 0), "no fixture of {reader}: {formats:?}");
    }
}

#[test]
#[ignore = "needs target/corpus"]
fn each_recording_of_the_corpus_accounts_for_its_records() {
    let corpus = std::env::var("WHYSLOW_CORPUS").unwrap_or_else(|_| "target/corpus".to_owned());
    for part in ["kernel", "mpi", "npb", "scorep"] {
        assert!(!events_by_format(&Path::new(&corpus).join(part)).is_empty(), "{part}");
    }
}

/// Cut at a place, one byte changed, or one to four strokes of other kinds.
fn damage(bytes: &mut Vec<u8>, dice: &mut Random) {
    let at = dice.below(bytes.len());
    match dice.below(3) {
        0 => bytes.truncate(at),
        1 => bytes.iter_mut().skip(at).take(1).for_each(|byte| *byte ^= 1 << dice.below(8)),
        _ => {
            for _ in 0..1 + dice.below(4) {
                let at = dice.below(bytes.len());
                let until = (at + 1 + dice.below(64)).min(bytes.len());
                match dice.below(5) {
                    0 => bytes[at..until].fill(0),
                    1 => bytes[at..until].fill(0xff),
                    2 => drop(bytes.drain(at..until)),
                    3 => {
                        let block = bytes[at..until].to_vec();
                        bytes.splice(at..at, block);
                    }
                    _ => bytes[at..until].iter_mut().for_each(|byte| *byte = dice.below(256) as u8),
                }
            }
        }
    }
}

/// The files of a recording that may be damaged.
fn files(recording: &Path) -> Vec<PathBuf> {
    if recording.is_file() {
        return vec![recording.to_owned()];
    }
    let (mut found, mut folders) = (Vec::new(), vec![recording.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { folders.push(path) } else { found.push(path) }
        }
    }
    found.sort();
    found
}

/// A number that the environment gives, or another one.
fn number(name: &str, otherwise: usize) -> usize {
    std::env::var(name).ok().and_then(|number| number.parse().ok()).unwrap_or(otherwise)
}

/// Damage a copy of a recording, and hold what can be read of it to its accounts. False if nothing can be read.
fn damaged_copy_accounts_for_its_records(recording: &Path, below: &Path, dice: &mut Random, round: usize) -> bool {
    let target = below.join(recording.file_name().unwrap());
    match recording.is_dir() {
        true => copy(recording, &target),
        false => drop(std::fs::copy(recording, &target).unwrap()),
    }
    let all = files(&target);
    let damaged = &all[dice.below(all.len())];
    let mut bytes = std::fs::read(damaged).unwrap();
    if !bytes.is_empty() {
        damage(&mut bytes, dice);
        std::fs::write(damaged, bytes).unwrap();
    }
    let read = accounts(&target, 1);
    for CheckedAccount { broken, .. } in read.iter().flat_map(|accounts| &accounts.checked) {
        let kept = Path::new(env!("CARGO_TARGET_TMPDIR")).join("unaccounted");
        if broken.is_some() {
            drop(std::fs::copy(damaged, &kept));
        }
        assert_eq!(*broken, None, "{}, {damaged:?}, round {round}: {}", recording.display(), kept.display());
    }
    if target.is_dir() {
        std::fs::remove_dir_all(&target).unwrap();
    } else {
        std::fs::remove_file(&target).unwrap();
    }
    read.is_some()
}

/// Whatever happened to a recording, what can be read of it accounts for each record.
#[test]
fn damaged_recordings_account_for_what_is_left() {
    let (rounds, seed) = (number("WHYSLOW_ROUNDS", ROUNDS), number("WHYSLOW_SEED", 1));
    let (folder, mut dice) = (tempfile::tempdir().unwrap(), Random::new(0xacc0_0000_0000_0000 | seed as u64));
    let (mut opened, mut refused) = (0, 0);
    for recording in recordings(&root()) {
        for round in 0..rounds {
            match damaged_copy_accounts_for_its_records(&recording, folder.path(), &mut dice, round) {
                true => opened += 1,
                false => refused += 1,
            }
        }
    }
    println!("{opened} were read, {refused} refused");
    assert!(opened > refused, "{opened} were read, {refused} refused");
}

/// Recordings of at most this many bytes are damaged: reading one takes no longer than copying it.
const MOST_BYTES: u64 = 8 << 20;

/// The formats by turns, so that many small recordings of one don't crowd out few large ones of another.
#[test]
#[ignore = "needs target/corpus"]
fn damaged_recordings_of_the_corpus_account_for_what_is_left() {
    let (rounds, seed) = (number("WHYSLOW_ROUNDS", 300), number("WHYSLOW_SEED", 1));
    let corpus = std::env::var("WHYSLOW_CORPUS").unwrap_or_else(|_| "target/corpus".to_owned());
    let mut formats: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
    for recording in recordings(Path::new(&corpus)).into_iter().chain(recordings(&root())) {
        let bytes: u64 = files(&recording).iter().map(|file| file.metadata().unwrap().len()).sum();
        if bytes <= MOST_BYTES {
            let format = accounts(&recording, 1).map_or_else(|| "refused".to_owned(), |accounts| accounts.format);
            formats.entry(format).or_default().push(recording);
        }
    }
    let formats: Vec<(String, Vec<PathBuf>)> = formats.into_iter().collect();
    let (folder, mut dice) = (tempfile::tempdir().unwrap(), Random::new(0xacc1_0000_0000_0000 | seed as u64));
    let mut counts: BTreeMap<&str, [usize; 2]> = BTreeMap::new();
    for round in 0..rounds {
        let (format, of_format) = &formats[round % formats.len()];
        let recording = &of_format[dice.below(of_format.len())];
        let is_read = damaged_copy_accounts_for_its_records(recording, folder.path(), &mut dice, round);
        counts.entry(format).or_default()[usize::from(!is_read)] += 1;
    }
    println!("read, refused of each format: {counts:?}");
    assert!(counts.len() > 12, "{counts:?}");
}

/// Replaces the first text by another one of the same length.
fn replaced(bytes: &[u8], what: &[u8], with: &[u8]) -> Vec<u8> {
    assert_eq!(what.len(), with.len());
    let at = bytes.windows(what.len()).position(|window| window == what).unwrap();
    [&bytes[..at], with, &bytes[at + what.len()..]].concat()
}

fn fixture(name: &str) -> Vec<u8> {
    std::fs::read(root().join(name)).unwrap()
}

/// A recording that has lost something, and what has to be said of it.
struct Loss {
    name: &'static str,
    bytes: Vec<u8>,
    /// By notice: how often it has to be counted.
    said: Vec<(Notice, u64)>,
    /// Lines that the dump still has.
    lines: usize,
}

/// A line that is longer than any that is read, before the last of a text.
fn with_long_line(text: &[u8], begin: &str) -> Vec<u8> {
    let at = text.trim_ascii_end().iter().rposition(|byte| *byte == b'\n').unwrap() + 1;
    [&text[..at], begin.as_bytes(), &vec![b'x'; 70_000], b"\n", &text[at..]].concat()
}

fn losses() -> Vec<Loss> {
    let (v6, v7, pipe) = (fixture("recorders/v6.dat"), fixture("recorders/v7.dat"), fixture("recorders/pipe.data"));
    let [dtrace, xperf, tracerpt] =
        ["dtrace.txt", "xperf.csv", "tracerpt.csv"].map(|name| fixture(&format!("other-platforms/{name}")));
    let unread = || vec![(Notice::LinesUnread, 1)];
    // Where version 7 says where its options are.
    let mut without_options = v7.clone();
    without_options[25..33].fill(0);
    // The number of chunks of the first CPU.
    let mut fewer_chunks = v7.clone();
    fewer_chunks[3336] -= 1;
    // The first record of the first page becomes a padding that would pass the pages after it.
    let mut long_padding = v6.clone();
    long_padding[0xc010..0xc018].copy_from_slice(&[61, 0, 0, 0, 0, 0x20, 0, 0]);
    // The size of the first event of pipe mode, and the number of the first tracepoint.
    let mut without_event = pipe.clone();
    without_event[28..30].copy_from_slice(&[0, 1]);
    let mut without_format = pipe.clone();
    without_format[32..36].copy_from_slice(&9999u32.to_le_bytes());
    let loss = |name, bytes, said, lines| Loss { name, bytes, said, lines };
    vec![
        loss(
            "format.dat",
            replaced(&v6, b"name: sched_switch\nID: 314", b"name: sched_switch\nID: 914"),
            vec![(Notice::EventsUndescribed, 48)],
            1360,
        ),
        loss("tag.dat", replaced(&v6, b"flyrecord\0", b"flyrecorx\0"), vec![(Notice::RecordingUnfinished, 1)], 0),
        loss("options.dat", without_options, vec![(Notice::RecordingUnfinished, 1)], 0),
        loss("chunks.dat", fewer_chunks, vec![(Notice::PartsUnclaimed, 1)], 0),
        loss("padding.dat", long_padding, vec![(Notice::DamagedPacket, 1)], 0),
        loss("event.data", without_event, vec![(Notice::HeaderUnread, 1), (Notice::EventsUndescribed, 43)], 54),
        loss("formats.data", without_format, vec![(Notice::FormatsMissing, 1)], 97),
        loss("dtrace.txt", with_long_line(&dtrace, "9\t0\tbegin\t"), unread(), 270),
        loss("xperf.csv", with_long_line(&xperf, "CSwitch, "), unread(), 0),
        loss("tracerpt.csv", with_long_line(&tracerpt, "Thread, "), unread(), 0),
        loss("folded.txt", with_long_line(&fixture("texts/folded.txt"), "a;b"), unread(), 0),
    ]
}

/// What is lost is said with its count, by every command that reads events, and `--strict` ends with 1.
#[test]
fn losses_are_said_with_their_counts() {
    let folder = tempfile::tempdir().unwrap();
    for Loss { name, bytes, said: expected, lines } in losses() {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        let path = path.to_str().unwrap();
        for words in [["dump"].as_slice(), &["stats", "count"], &["dump", "--threads", "1"]] {
            let out = output(&[words, &[path]].concat());
            let said = said(&out) + &String::from_utf8_lossy(&out.stdout);
            assert!(out.status.success(), "{name}, {words:?}: {said}");
            for (notice, count) in &expected {
                let sentence = notice.sentence(*count);
                assert!(said.contains(&sentence), "{name}, {words:?}: {sentence}, but {said}");
            }
            if words[0] == "dump" && lines > 0 {
                assert_eq!(String::from_utf8_lossy(&out.stdout).lines().count(), lines, "{name}");
            }
            let strict = output(&[words, &["--strict", path]].concat());
            assert_eq!(strict.status.code(), Some(1), "{name}, {words:?}");
        }
    }
}

/// An analysis that finds no events says why there are none.
#[test]
fn a_recording_without_its_end_is_no_empty_one() {
    let folder = tempfile::tempdir().unwrap();
    for Loss { name, bytes, said: expected, .. } in losses() {
        let unfinished = expected.iter().find(|(notice, _)| *notice == Notice::RecordingUnfinished);
        let Some((notice, count)) = unfinished else { continue };
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        let out = output(&["explain", path.to_str().unwrap()]);
        let whole = format!("the trace holds no events: {}", notice.sentence(*count));
        assert!(out.status.code() == Some(1) && said(&out).contains(&whole), "{name}: {}", said(&out));
    }
}

/// `--check` says what became of the records, and the sums are those of the answer.
#[test]
fn check_says_what_became_of_the_records() {
    let path = root().join("recorders/v6.dat");
    let out = output(&["dump", "--check", path.to_str().unwrap()]);
    let lines = String::from_utf8_lossy(&out.stdout).lines().count();
    let expected = format!("check: {}: {lines} records: {lines} are events, 0 describe others", path.display());
    assert!(out.status.success() && said(&out).contains(&expected), "{expected}: {}", said(&out));
    let archive = root().join("archives/late_sender/trace");
    let out = output(&["anomalies", "--check", archive.to_str().unwrap()]);
    assert!(out.status.success() && said(&out).contains(" are events, "), "{}", said(&out));
}

/// An event file of no location, a type byte that ends a file early: both are said.
#[test]
fn archives_say_what_nothing_describes() {
    let folder = tempfile::tempdir().unwrap();
    let archive = folder.path().join("late");
    copy(&root().join("archives/late_sender/trace"), &archive);
    let words = ["dump", archive.to_str().unwrap()];
    assert!(!said(&output(&words)).contains("note:"), "{}", said(&output(&words)));
    let one = archive.join("traces/0.evt");
    std::fs::copy(&one, archive.join("traces/4711.evt")).unwrap();
    let said_now = said(&output(&words));
    assert!(said_now.contains(&Notice::PartsUnclaimed.sentence(1)) && said_now.contains("4711.evt"), "{said_now}");
    std::fs::remove_file(archive.join("traces/4711.evt")).unwrap();
    // The first record behind the header of the chunk becomes the end of the file.
    let mut bytes = std::fs::read(&one).unwrap();
    bytes[18] = 2;
    std::fs::write(&one, bytes).unwrap();
    let said_now = said(&output(&words));
    assert!(said_now.contains("0 of 342 records of a chunk"), "{said_now}");
    assert_eq!(output(&["dump", "--strict", archive.to_str().unwrap()]).status.code(), Some(1));
}
