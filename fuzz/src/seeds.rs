//! The first inputs of every target, from the fixtures: a fuzzer begins with them, and `tests/replay.rs` mutates them.
//!
//! The schemas in `fuzz/schemas/` are written by hand, without the CTF writer of the tests: the targets mutate this
//! text, and it has every kind of field, which no tracer writes.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use whyslow::parts::options::configuration::Configuration;
use whyslow::parts::{cli, command};

/// A schema that has every kind of field, as text.
pub const EVERY_FIELD: &[u8] = include_bytes!("../schemas/every-field.tsdl");
/// The same in CTF 2.
pub const EVERY_FIELD_JSON: &[u8] = include_bytes!("../schemas/every-field.json");
/// Files of an archive: anchor, global definitions, events and definitions of its first location.
pub const ARCHIVE: [&str; 4] = ["traces.otf2", "traces.def", "traces/0.evt", "traces/0.def"];

/// A byte of metadata that begins a fragment.
const FRAGMENT: u8 = 0x1e;

/// The folder of the crate, from its tests and from the fuzzers.
pub fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let outer = here.parent().filter(|_| here.join("fuzz_targets").is_dir());
    outer.unwrap_or(here).to_path_buf()
}

fn read(path: &str) -> Vec<u8> {
    fs::read(root().join(path)).unwrap_or_else(|e| panic!("{path}: {e}"))
}

/// The sound archive that one file of which is replaced.
pub fn archive() -> PathBuf {
    root().join("fixtures/archives/late_sender/trace")
}

/// A decode case, `fixtures/ctf/README.md`.
struct Case {
    is_json: bool,
    metadata: Vec<u8>,
    stream: Vec<u8>,
}

fn cases() -> Vec<Case> {
    let entries = fs::read_dir(root().join("fixtures/ctf")).expect("the decode cases");
    let mut paths: Vec<PathBuf> = entries.map(|e| e.expect("a decode case").path()).collect();
    paths.retain(|p| p.extension().is_some_and(|e| e == "case"));
    paths.sort();
    paths.iter().map(|p| case(p)).collect()
}

fn case(path: &Path) -> Case {
    let text = fs::read_to_string(path).expect("a decode case");
    let is_json = path.file_name().is_some_and(|name| name.to_string_lossy().contains("-2-"));
    let mut case = Case { is_json, metadata: Vec::new(), stream: Vec::new() };
    for part in text.split("\n--- ").skip(1) {
        let (heading, body) = part.split_once('\n').unwrap_or((part, ""));
        match heading {
            "metadata" => case.metadata = body.replace("%\n", "\x1e\n").into_bytes(),
            "metadata hex" => case.metadata = bytes(body),
            _ if heading.starts_with("stream ") && case.stream.is_empty() => case.stream = bytes(body),
            _ => {}
        }
    }
    case
}

/// Hexadecimal digits with comments.
fn bytes(text: &str) -> Vec<u8> {
    let digits: Vec<char> =
        text.lines().flat_map(|l| l.split('#').next().unwrap_or("").chars()).filter(|c| !c.is_whitespace()).collect();
    digits.chunks(2).filter_map(|pair| u8::from_str_radix(&String::from_iter(pair), 16).ok()).collect()
}

/// What `build` writes of a small recording in this version: a database, or with `more` a history file.
fn built(more: &[&str]) -> Vec<u8> {
    let path = super::folder().expect("a folder").join("seed.whyslow");
    fs::remove_file(&path).ok();
    let trace = root().join("fixtures/traces/snap");
    let words = ["whyslow", "build", "--no-sandbox", "-o"].into_iter().map(OsString::from);
    let words = words.chain([path.clone().into(), trace.into()]).chain(more.iter().map(OsString::from));
    let cli::Parsed::Run(command) = cli::parse(words, &Configuration::default()) else {
        panic!("`build` is a command")
    };
    let built = command::run(&command);
    assert!(matches!(built, Ok(0)), "a file can be built: {built:?}");
    super::saved::unpacked(&fs::read(path).expect("the file"))
}

/// Run a command that writes `output` and reads `input`. Returns whether it succeeded.
pub fn run(command: &str, output: &Path, input: &Path) -> bool {
    let words = ["whyslow", command, "--no-sandbox", "-o"].into_iter().map(OsString::from);
    let words = words.chain([output.into(), input.into()]);
    let cli::Parsed::Run(parsed) = cli::parse(words, &Configuration::default()) else {
        panic!("`{command}` is a command")
    };
    matches!(command::run(&parsed), Ok(0))
}

/// The tables of a small recording that import reads, by their paths; none without Parquet.
pub fn tables() -> &'static [(PathBuf, Vec<u8>)] {
    static TABLES: OnceLock<Vec<(PathBuf, Vec<u8>)>> = OnceLock::new();
    TABLES.get_or_init(|| {
        let folder = super::folder().expect("a folder");
        let (file, tables) = (folder.join("tables.why"), folder.join("sound"));
        fs::remove_file(&file).ok();
        assert!(run("build", &file, &root().join("fixtures/traces/snap")), "a database can be built");
        if !run("export", &tables, &file) {
            return Vec::new();
        }
        let mut found = Vec::new();
        let mut folders = ["recordings", "contexts", "threads", "executions", "spent"].map(|t| tables.join(t)).to_vec();
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).expect("a table") {
                let path = entry.expect("a file").path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    let bytes = fs::read(&path).expect("a table");
                    found.push((path.strip_prefix(&tables).expect("below").to_path_buf(), bytes));
                }
            }
        }
        found.sort();
        found
    })
}

/// Fragments without the preamble, which the target writes itself.
fn without_preamble(metadata: &[u8]) -> Vec<u8> {
    let second = metadata.iter().skip(1).position(|b| *b == FRAGMENT).map_or(metadata.len(), |at| at + 1);
    metadata[second..].to_vec()
}

/// The recordings in a folder, by name.
fn below(folder: &str) -> Vec<Vec<u8>> {
    let entries = fs::read_dir(root().join(folder)).expect(folder);
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect(folder).path()).collect();
    paths.retain(|path| path.extension().is_some_and(|ending| ending != "md" && ending != "py"));
    paths.sort();
    paths.into_iter().map(|path| fs::read(path).expect(folder)).collect()
}

/// The first inputs of a target.
pub fn seeds(target: &str) -> Vec<Vec<u8>> {
    let texts = |all: &[&str]| all.iter().map(|t| t.as_bytes().to_vec()).collect();
    let recorded = |all: &[&str]| all.iter().map(|name| read(&format!("fixtures/recorders/{name}"))).collect();
    let of_cases = |one: fn(Case) -> Option<Vec<u8>>| cases().into_iter().filter_map(one);
    match target {
        "metadata_text" => of_cases(|c| (!c.is_json).then_some(c.metadata)).chain([EVERY_FIELD.to_vec()]).collect(),
        "metadata_json" => of_cases(|c| c.is_json.then(|| without_preamble(&c.metadata)))
            .chain([without_preamble(EVERY_FIELD_JSON)])
            .collect(),
        "packet" => {
            let streams: Vec<_> = of_cases(|c| Some(c.stream)).collect();
            [0u8, 1].iter().flat_map(|way| streams.iter().map(move |s| [&[*way], &s[..]].concat())).collect()
        }
        "schema_and_packet" => of_cases(|c| Some([&c.metadata[..], &[0], &c.stream].concat())).collect(),
        "perf_data" => recorded(&["zstd.data", "pipe.data", "overwrite.data"]),
        "trace_dat" => recorded(&["v7.dat"]),
        "translated" => below("fixtures/other-platforms"),
        "script" => vec![
            read("fixtures/texts/profile.txt"),
            b"app 5/6 [001] 1.000000: sched:sched_switch: prev_comm=app prev_pid=6 prev_prio=120 prev_state=S ==> \
              next_comm=b next_pid=7 next_prio=120\n\tffffffff8225 __schedule+0x1 ([kernel.kallsyms])\n\n\
              b 7 [001] 1.000100: sched:sched_waking: comm=app pid=6 prio=120 target_cpu=001\n\n\
              b 7 [001] 1.000200: raw_syscalls:sys_exit: NR 16 = -11\n\n\
              b 7 [001] 1.000300: block:block_rq_issue: 254,0 WS 4096 () 1234 + 8 [b]\n\n\
              b 7 [001] 1.000400: PERF_RECORD_FORK(5:8):(5:6)\n"
                .to_vec(),
        ],
        "folded" => vec![read("fixtures/texts/folded.txt")],
        // Without the members that the target writes itself.
        "firefox" => {
            let text = read("fixtures/texts/firefox.json");
            let libs = text.windows(7).position(|part| part == b"\"libs\":").unwrap_or(0);
            vec![text[libs..].to_vec()]
        }
        "packed" => vec![read("fixtures/texts/waits.txt.gz"), b"\x28\xb5\x2f\xfd\0".to_vec()],
        "archive" => {
            let part = |(number, file): (usize, &&str)| {
                [&[number as u8][..], &fs::read(archive().join(file)).expect("a sound file")].concat()
            };
            ARCHIVE.iter().enumerate().map(part).collect()
        }
        "database" => vec![built(&[])],
        "history_file" => vec![built(&["--history"])],
        "tables" => {
            let seed = |(at, (_, bytes)): (usize, &(PathBuf, Vec<u8>))| [&[at as u8], &bytes[..]].concat();
            tables().iter().enumerate().map(seed).collect()
        }
        "executable" => vec![read("fixtures/traces/disk-contention/bin/auditlogd")],
        "jitdump" => recorded(&["compiled/jit-26935.dump", "compiled/perf-26906.map"]),
        "declared" => texts(&[
            "[[task]]\nname = \"a\"\nbegin = \"b\"\nend = { event = \"c\", when = { x = 1 } }\nkey = [\"k\"]\n",
            include_str!("../../themes/dark.toml"),
            "network = [\"eth\", \"mlx5\"]\ndisk = [\"nvme\"]\n",
        ]),
        "command_line" => texts(&[
            "explain\0--slow\0duration>=1.5ms\0--fast\0cpu in 0..1us\0--fail-if\0p95>+5%\0/t",
            "build\0-o\0x\0--task\0begin=a,end=b,key=c\0old=/t",
            "query\0--attribute\0threads/*/state\0--at\x0012.5ms\0--memory\x00512MiB\0t",
        ]),
        "keys" => texts(&[
            "\x1b[A\x1b[1;5C\x1b[<0;10;10M\x1b[200~paste\x1b[201~\x1b]11;rgb:ffff/ffff/ffff\x07q",
            "\x1bOP\x1b[?62c",
        ]),
        // The size, then keys: panes, overlays, searches, filters, a task, an export.
        "interface" => texts(&[
            "\x50\x181>>>s\x1b[1;2C\x1b\0xgu",
            "\x78\x28/write\r\r i\x1b\0 w\x1b\0?\x1b[6~\x1b\0T\x1b[B\r",
            "\x78\x3c3\r\x1b[B4m[]{}RfpjjEnter",
            "\x28\x0ae\x15a.json\r:th\r\x1b[<0;10;5Mq",
        ]),
        other => panic!("no target {other}"),
    }
}

/// The inputs in `kept/` or `found/` of a target.
pub fn stored(folder: &str, target: &str) -> Vec<Vec<u8>> {
    let entries = fs::read_dir(root().join("fuzz").join(folder).join(target));
    let mut files: Vec<PathBuf> = entries.into_iter().flatten().flatten().map(|e| e.path()).collect();
    files.sort();
    files.iter().map(|f| fs::read(f).expect("a stored input")).collect()
}
