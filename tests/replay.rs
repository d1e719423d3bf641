//! What the fuzzers ask (`fuzz/src/lib.rs`), of seeds, of what they once found (`fuzz/found/TARGET/`) and of mutations of both, with
//! a stable compiler: no panic, and each target's own promises. `WHYSLOW_INPUTS` says of how many mutations for each target.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, unused_qualifications)]

#[path = "../fuzz/src/lib.rs"]
mod targets;

use std::path::{Path, PathBuf};

/// Of each target in an ordinary run; the slow ones get a tenth.
const INPUTS: usize = 3_000;

struct Target {
    name: &'static str,
    ask: fn(&[u8]),
    seeds: Vec<Vec<u8>>,
    /// Inputs of this target go through files.
    slow: bool,
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &str) -> Vec<u8> {
    std::fs::read(root().join(path)).unwrap()
}

/// A file of the archive behind its number.
fn part(number: u8, path: &str) -> Vec<u8> {
    [vec![number], read(&format!("fixtures/archives/late_sender/trace/{path}"))].concat()
}

fn targets() -> Vec<Target> {
    let folder = tempfile::tempdir().unwrap();
    let database = folder.path().join("a.whyslow");
    let built = std::process::Command::new(env!("CARGO_BIN_EXE_whyslow"))
        .args(["build", "-o"])
        .arg(&database)
        .arg(root().join("fixtures/traces/snap"))
        .status();
    assert!(built.unwrap().success());
    let texts = |all: &[&str]| all.iter().map(|t| t.as_bytes().to_vec()).collect::<Vec<_>>();
    let (text, json) = (read("fuzz/schemas/every-field.tsdl"), read("fuzz/schemas/every-field.json"));
    let both = [text.clone(), vec![0; 80]].concat();
    let preamble = |json: &[u8]| json.split(|b| *b == b'\n').skip(1).collect::<Vec<_>>().join(&b'\n');
    let target = |name, ask, seeds, slow| Target { name, ask, seeds, slow };
    const STREAM: [u8; 16] = [0xc1, 0x1f, 0xfc, 0xc1, 0, 0, 0, 0, 1, 2, 3, 0x80, 0xff, 0, 0, 0];
    vec![
        target("metadata_text", |b| targets::ask(&[b"/* CTF 1.8 */\n", b].concat(), Some(&STREAM)), vec![text], true),
        target(
            "metadata_json",
            |b| targets::ask(&[b"\x1e{\"type\": \"preamble\", \"version\": 2}\n", b].concat(), Some(&STREAM)),
            vec![preamble(&json)],
            true,
        ),
        target(
            "packet",
            |b| targets::ask(include_bytes!("../fuzz/schemas/every-field.tsdl"), Some(b)),
            vec![STREAM.to_vec(), vec![0; 300]],
            true,
        ),
        target(
            "schema_and_packet",
            |b| {
                let cut = b.iter().position(|b| *b == 0).unwrap_or(b.len());
                targets::ask(&b[..cut], Some(b.get(cut + 1..).unwrap_or(&[])));
            },
            vec![both],
            true,
        ),
        target(
            "perf_data",
            |b| targets::ask_file("perf.data", b),
            vec![read("fixtures/recorders/zstd.data"), read("fixtures/recorders/pipe.data")],
            true,
        ),
        target("trace_dat", |b| targets::ask_file("trace.dat", b), vec![read("fixtures/recorders/v7.dat")], true),
        target(
            "archive",
            targets::ask_archive,
            vec![part(0, "traces.otf2"), part(1, "traces.def"), part(2, "traces/0.evt"), part(3, "traces/0.def")],
            true,
        ),
        target("database", targets::ask_database, vec![std::fs::read(database).unwrap()], true),
        target(
            "executable",
            targets::ask_executable,
            vec![read("fixtures/traces/lock-contention/bin/ledgerclient")],
            true,
        ),
        target(
            "declared",
            targets::ask_declared,
            texts(&[
                "[[task]]\nname = \"a\"\nbegin = \"b\"\nend = { event = \"c\", when = { x = 1 } }\nkey = [\"k\"]\n",
                include_str!("../themes/dark.toml"),
                "[[handler]]\nname = \"eth0\"\nmeans = \"network\"\n",
            ]),
            false,
        ),
        target(
            "command_line",
            targets::ask_command_line,
            texts(&[
                "explain\0--slow\0duration>=1.5ms\0--fast\0cpu in 0..1us\0--fail-if\0p95>+5%\0/t",
                "build\0-o\0x\0--task\0begin=a,end=b,key=c\0old=/t",
                "query\0--attribute\0threads/*/state\0--at\x0012.5ms\0--memory\x00512MiB\0t",
            ]),
            false,
        ),
        target(
            "keys",
            targets::ask_keys,
            texts(&[
                "\x1b[A\x1b[1;5C\x1b[<0;10;10M\x1b[200~paste\x1b[201~\x1b]11;rgb:ffff/ffff/ffff\x07q",
                "\x1bOP\x1b[?62c",
            ]),
            false,
        ),
    ]
}

/// A small generator of one's own: the same inputs on every machine.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % sides.max(1) as u64) as usize
    }
}

/// One to four strokes: bytes changed, removed, doubled, put elsewhere; numbers at the edges.
fn mutated(seeds: &[Vec<u8>], dice: &mut Dice) -> Vec<u8> {
    let mut bytes = seeds[dice.roll(seeds.len())].clone();
    for _ in 0..1 + dice.roll(4) {
        let at = dice.roll(bytes.len());
        let until = (at + 1 + dice.roll(16)).min(bytes.len());
        match dice.roll(8) {
            _ if bytes.is_empty() => bytes.push(dice.roll(256) as u8),
            0 => bytes[at] ^= 1 << dice.roll(8),
            1 => bytes[at] = dice.roll(256) as u8,
            2 => bytes[at..until].fill([0, 0xff, 0x7f, 0x80][dice.roll(4)]),
            3 => drop(bytes.drain(at..until)),
            4 => {
                let piece = bytes[at..until].to_vec();
                let to = dice.roll(bytes.len());
                bytes.splice(to..to, piece);
            }
            5 => bytes.truncate(at),
            6 => {
                let other = &seeds[dice.roll(seeds.len())];
                let from = dice.roll(other.len());
                let piece = other[from..(from + 1 + dice.roll(64)).min(other.len())].to_vec();
                bytes.splice(at..until, piece);
            }
            _ => bytes[at] = bytes[at].wrapping_add(1),
        }
    }
    bytes
}

fn found(name: &str) -> Vec<Vec<u8>> {
    let entries = std::fs::read_dir(root().join("fuzz/found").join(name));
    let mut files: Vec<PathBuf> = entries.into_iter().flatten().map(|e| e.unwrap().path()).collect();
    files.sort();
    files.iter().map(|f| std::fs::read(f).unwrap()).collect()
}

/// Where the input is kept that is being asked about, should it end the process.
fn last() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("replay-last")
}

#[test]
fn what_the_fuzzers_ask_is_answered() {
    let wanted: Option<usize> = std::env::var("WHYSLOW_INPUTS").ok().and_then(|n| n.parse().ok());
    let only = std::env::var("WHYSLOW_TARGET").ok();
    let start: u64 = std::env::var("WHYSLOW_SEED").ok().and_then(|n| n.parse().ok()).unwrap_or(1);
    for mut target in targets() {
        if only.as_ref().is_some_and(|only| only != target.name) {
            continue;
        }
        target.seeds.extend(found(target.name));
        let inputs = wanted.unwrap_or(if target.slow { INPUTS / 10 } else { INPUTS });
        let mut dice = Dice(0x5eed_0000_0000_0000 | start);
        target.seeds.iter().for_each(|seed| (target.ask)(seed));
        for number in 0..inputs {
            let input = mutated(&target.seeds, &mut dice);
            let asked = std::panic::catch_unwind(|| (target.ask)(&input));
            if asked.is_err() {
                std::fs::write(last(), &input).unwrap();
                panic!("{}: mutation {number} is kept as {}", target.name, last().display());
            }
        }
        println!("{}: {} seeds, {inputs} mutations", target.name, target.seeds.len());
    }
    std::fs::remove_dir_all(targets::folder().unwrap()).unwrap();
}
