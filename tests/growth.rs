//! Twice the input takes about twice the time and memory, whichever part of it grows: at most 2.6 times, measured as
//! CPU time and peak memory of the program.
//!
//! The input is doubled twice, and both doublings together may take 2.6 times 2.6 as much: a linear cost grows 4 times,
//! a quadratic one 16 times, and the measure of a busy machine cannot confuse these. If the first measure exceeds the
//! limit, others follow, and the least of each counts.

use crate::support::{ask, ctf_writer, otf2};
use ask::{fixture, run, said, whyslow};
use ctf_writer::{Channel, Context, Event, Task, TraceWriter, Value};
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;
use std::rc::Rc;
use whyslow::parts::base::time::Ns;

/// Grows no faster than this when its input doubles.
const MOST: f64 = 2.6;
/// Measures at most.
const RUNS: usize = 3;

/// The metadata below is written in line, without the writer of the other tests: its text is what is measured.
const TYPES: &str = "/* CTF 1.8 */\ntypealias integer { size = 8; } := u8;\ntypealias integer { size = 32; } := u32;\n\
    trace { major = 1; minor = 8; byte_order = le; packet.header := struct { u32 stream_id; }; };\n";
const STREAM: &str = "stream { id = 0; event.header := struct { u32 id; }; };\n";
const EVENT: &str = "event { name = \"e\"; id = 0; stream_id = 0; fields := struct { u8 x; }; };\n";

/// The texts of `one` for the first `n` numbers.
fn many(n: usize, one: impl Fn(usize) -> String) -> String {
    (0..n).map(one).collect()
}

fn event(fields: &str) -> String {
    format!("{TYPES}{STREAM}event {{ name = \"e\"; id = 0; stream_id = 0; fields := struct {{ {fields} }}; }};\n")
}

/// Metadata in which there are `n` of something.
type Metadata = (&'static str, usize, fn(usize) -> String);

const TSDL: [Metadata; 14] = [
    ("values of the environment", 100_000, |n| {
        format!("{TYPES}env {{ {} }};\n{STREAM}{EVENT}", many(n, |i| format!("a{i} = \"v\"; ")))
    }),
    ("clocks", 50_000, |n| {
        let clock = |i| format!("clock {{ name = c{i}; uuid = \"{i:08x}-0000-0000-0000-000000000000\"; }};\n");
        format!("{TYPES}{}{STREAM}{EVENT}", many(n, clock))
    }),
    ("repetitions of a clock", 50_000, |n| {
        format!("{TYPES}{}{STREAM}{EVENT}", many(n, |_| "clock { name = c; };\n".to_owned()))
    }),
    ("stream classes", 25_000, |n| {
        let stream = |i| {
            let context = "packet.context := struct { u8 n; u8 y[n]; };";
            let event = format!("event {{ name = \"e{i}\"; id = 0; stream_id = {i}; fields := struct {{ u8 x; }}; }};");
            format!("stream {{ id = {i}; {context} event.header := struct {{ u32 id; }}; }};\n{event}\n")
        };
        format!("{TYPES}{}", many(n, stream))
    }),
    ("event classes", 40_000, |n| {
        let one = |i| {
            format!("event {{ name = \"e{i}\"; id = {i}; stream_id = 0; fields := struct {{ u8 n; u8 x[n]; }}; }};\n")
        };
        format!("{TYPES}{STREAM}{}", many(n, one))
    }),
    ("members", 100_000, |n| event(&many(n, |i| format!("u8 f{i}; ")))),
    ("lengths", 50_000, |n| event(&many(n, |i| format!("u8 f{i}; u8 s{i}[f{i}]; ")))),
    ("types", 100_000, |n| {
        format!("{TYPES}{}{STREAM}{EVENT}", many(n, |i| format!("typealias integer {{ size = 8; }} := t{i};\n")))
    }),
    ("labels and options", 50_000, |n| {
        let (labels, options) = (many(n, |i| format!("l{i}, ")), many(n, |i| format!("u8 l{i}; ")));
        event(&format!("enum : u32 {{ {labels} }} x; variant <x> {{ {options} }} v;"))
    }),
    ("attributes of a string", 100_000, |n| event(&format!("string {{ {} }} x;", many(n, |i| format!("a{i} = 1; "))))),
    ("attributes of an integer", 100_000, |n| {
        event(&format!("integer {{ size = 8; {} }} x;", many(n, |i| format!("a{i} = 1; "))))
    }),
    ("attributes of a float", 100_000, |n| {
        event(&format!("floating_point {{ exp_dig = 8; mant_dig = 24; {} }} x;", many(n, |i| format!("a{i} = 1; "))))
    }),
    ("dimensions of arrays", 30_000, |n| event(&many(n, |i| format!("u8 f{i}[2][2][2]; ")))),
    ("nested blocks", 30_000, |n| event(&many(n, |i| format!("struct {{ struct {{ u8 a; }} b; }} f{i}; ")))),
];

/// Fragments, each behind the byte 0x1E.
fn fragments(all: &[String]) -> String {
    all.iter().fold(String::new(), |mut text, one| {
        writeln!(text, "\u{1e}{one}").unwrap();
        text
    })
}

const PREAMBLE: &str = r#"{"type":"preamble","version":2}"#;
const DATA_STREAM: &str = r#"{"type":"data-stream-class","id":0}"#;
const HEADED: &str = r#"{"type":"data-stream-class","id":0,"event-record-header-field-class":{"type":"structure","member-classes":[{"name":"id","field-class":{"type":"fixed-length-unsigned-integer","length":32,"byte-order":"little-endian","roles":["event-record-class-id"]}}]}}"#;

fn json(before: &[String], stream: &str, behind: &[String]) -> String {
    fragments(&[&[PREAMBLE.to_owned()], before, &[stream.to_owned()], behind].concat())
}

const JSON: [Metadata; 5] = [
    ("keys of an object", 200_000, |n| {
        let keys = many(n, |i| format!("\"k{i}\":{i},"));
        json(
            &[format!(r#"{{"type":"trace-class","environment":{{{}}}}}"#, keys.trim_end_matches(','))],
            DATA_STREAM,
            &[],
        )
    }),
    ("clock classes", 50_000, |n| {
        let clock = |i| format!(r#"{{"type":"clock-class","id":"c{i}","frequency":1000}}"#);
        json(&(0..n).map(clock).collect::<Vec<_>>(), DATA_STREAM, &[])
    }),
    ("aliases", 50_000, |n| {
        let class = r#"{"type":"fixed-length-unsigned-integer","length":8,"byte-order":"little-endian"}"#;
        let alias = |i| format!(r#"{{"type":"field-class-alias","name":"a{i}","field-class":{class}}}"#);
        json(&(0..n).map(alias).collect::<Vec<_>>(), DATA_STREAM, &[])
    }),
    ("data stream classes", 50_000, |n| {
        let header = r#"{"type":"trace-class","packet-header-field-class":{"type":"structure","member-classes":[{"name":"s","field-class":{"type":"fixed-length-unsigned-integer","length":32,"byte-order":"little-endian","roles":["data-stream-class-id"]}}]}}"#;
        let stream = |i| format!(r#"{{"type":"data-stream-class","id":{i}}}"#);
        json(&[header.to_owned()], DATA_STREAM, &(1..n).map(stream).collect::<Vec<_>>())
    }),
    ("event record classes", 50_000, |n| {
        let event = |i| format!(r#"{{"type":"event-record-class","name":"e{i}","id":{}}}"#, n - i);
        json(&[], HEADED, &(0..n).map(event).collect::<Vec<_>>())
    }),
];

/// CPU seconds and peak KiB of a run that ends well.
fn cost(words: &[&str], trace: &Path) -> (f64, f64) {
    let quiet = "\"$@\" > /dev/null || exit 9; times";
    let mut command = Command::new("sh");
    command.current_dir(trace).args(["-c", quiet, "sh", ask::PROGRAM]).args(words).arg("--timings").arg(trace);
    let out = run(&mut command);
    assert!(out.status.success(), "{words:?}: {}", said(&out));
    let times = String::from_utf8_lossy(&out.stdout).into_owned();
    let seconds = |text: &str| -> f64 {
        let (minutes, seconds) = text.trim_end_matches('s').split_once('m').unwrap();
        minutes.parse::<f64>().unwrap() * 60.0 + seconds.parse::<f64>().unwrap()
    };
    let children = times.lines().nth(1).unwrap().split_whitespace().map(seconds).sum();
    let peak =
        said(&out).lines().find_map(|l| l.trim().strip_prefix("memory")?.trim().strip_suffix("kB").map(str::to_owned));
    (children, peak.unwrap().trim().parse().unwrap())
}

/// Below a few clock ticks there is nothing to measure: a quadratic cost is beyond that at these sizes.
const LEAST: f64 = 0.05;

/// The costs of a small and a large input, if the large one exceeds the limit; `write` gets the number and a new
/// folder.
fn outgrows(what: &str, n: usize, words: &[&str], write: &dyn Fn(usize, &Path)) -> Option<String> {
    let folder = tempfile::tempdir().unwrap();
    let sizes = [n / 8, n / 2].map(|n| {
        let trace = folder.path().join(n.to_string());
        std::fs::create_dir(&trace).unwrap();
        write(n, &trace);
        trace
    });
    let mut least = [(f64::MAX, f64::MAX); 2];
    for _ in 0..RUNS {
        for (least, trace) in least.iter_mut().zip(&sizes) {
            let (time, memory) = cost(words, trace);
            *least = (least.0.min(time), least.1.min(memory));
        }
        let [(time, memory), (large_time, large_memory)] = least;
        if large_time <= MOST * MOST * time.max(LEAST) && large_memory <= MOST * MOST * memory {
            return None;
        }
    }
    Some(format!("{what}, {words:?}: seconds and KiB of {} and {}: {least:?}\n", n / 8, n / 2))
}

fn metadata_grows(all: &[Metadata]) {
    let mut wrong = String::new();
    for (what, n, metadata) in all {
        let write = |n: usize, folder: &Path| {
            std::fs::write(folder.join("metadata"), metadata(n)).unwrap();
            std::fs::write(folder.join("stream"), [0; 64]).unwrap();
        };
        wrong.extend(outgrows(what, *n, &["info"], &write));
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn metadata_takes_time_and_memory_in_proportion() {
    metadata_grows(&TSDL);
}

#[test]
fn metadata_in_fragments_takes_time_and_memory_in_proportion() {
    metadata_grows(&JSON);
}

/// A recording in which each of `n` tasks ran once.
fn tasks(n: usize, folder: &Path) {
    let on = Rc::new(Task { vtid: 77, vpid: 77, ..Task::default() });
    let event = |name: String, time: Ns| {
        let fields = vec![("n", Value::U8(0))];
        Event { time, cpu: 0, name: name.into(), fields, on: Rc::clone(&on), stack: None }
    };
    let pair = |i: usize| {
        let begin = 1000 + 100 * i as Ns;
        [event(format!("p:t{i}_begin"), begin), event(format!("p:t{i}_end"), begin + 50)]
    };
    let mut trace = TraceWriter::new("h", "ust", 0x61, 0x62);
    trace.span = (1000, 1000);
    let contexts = vec![Context::Vtid, Context::Vpid];
    let events = (0..n).flat_map(pair).collect();
    trace.channels.push(Channel { name: "stream".into(), contexts, events, discarded: Vec::new() });
    trace.write(folder);
    let declared = many(n, |i| format!("[[task]]\nname = \"d{i}\"\nbegin = \"p:t{i}_begin\"\nend = \"p:t{i}_end\"\n"));
    std::fs::write(folder.with_extension("toml"), declared).unwrap();
}

#[test]
fn tasks_take_time_and_memory_in_proportion() {
    let mut wrong = String::new();
    let output = tempfile::tempdir().unwrap();
    let output = output.path().join("a.whyslow");
    for words in [
        &["info", "--full"][..],
        &["stats", "count"],
        &["anomalies"],
        &["explain"],
        &["build", "-o", output.to_str().unwrap()],
    ] {
        wrong.extend(outgrows("tasks", 8_000, words, &tasks));
    }
    assert!(wrong.is_empty(), "{wrong}");
    // An error is no long line either.
    let folder = tempfile::tempdir().unwrap();
    tasks(2_000, folder.path());
    std::fs::write(folder.path().join("stream_0"), []).unwrap();
    let out = run(whyslow(["explain"]).arg(folder.path()));
    assert!(out.status.code() == Some(1) && out.stderr.len() < 1000, "{} bytes: {}", out.stderr.len(), said(&out));
}

/// The same recording, its tasks declared in a file in a folder of its own: the trace would count it as a stream.
#[test]
fn declared_tasks_take_time_and_memory_in_proportion() {
    let (folder, declared) = (tempfile::tempdir().unwrap(), "declared.toml");
    let output = folder.path().join("a.whyslow");
    let mut wrong = String::new();
    for words in [&["info", "--full"][..], &["build", "-o", output.to_str().unwrap()]] {
        let write = |n: usize, trace: &Path| {
            tasks(n, trace);
            std::fs::rename(trace.with_extension("toml"), trace.join(format!(".{declared}"))).unwrap();
        };
        // Named from within the trace's own folder, whose hidden files are no streams.
        wrong.extend(outgrows("declared tasks", 8_000, &[words, &["--tasks", ".declared.toml"]].concat(), &write));
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// An archive with this many regions, and as many texts and call sites that name them.
#[test]
fn definitions_of_an_archive_take_time_and_memory_in_proportion() {
    let mut wrong = String::new();
    let regions = |n: usize, folder: &Path| {
        let mut writer = otf2::ArchiveWriter::new(folder);
        for i in 0..n {
            writer.region(&format!("function_{i}"));
        }
        let rank = writer.rank();
        writer.write_events(rank, otf2::Events::default());
        writer.finish();
    };
    let ranks = |n: usize, folder: &Path| {
        let mut writer = otf2::ArchiveWriter::new(folder);
        for _ in 0..n {
            let rank = writer.rank();
            writer.write_events(rank, otf2::Events::default());
        }
        writer.finish();
    };
    wrong.extend(outgrows("regions", 400_000, &["info"], &regions));
    wrong.extend(outgrows("ranks", 8_000, &["info"], &ranks));
    assert!(wrong.is_empty(), "{wrong}");
}

/// An option that may be given often, given often: filters, symbol lists.
#[test]
fn options_take_time_and_memory_in_proportion() {
    let recorded = fixture("snap");
    let mut wrong = String::new();
    for (option, value) in [("--slow", "duration>=1us"), ("--fast", "duration>=1us"), ("--symbols", ".")] {
        let words = |n: usize| {
            let mut words = vec!["explain"];
            (0..n).for_each(|_| words.extend([option, value]));
            // The other group, where one is given.
            match option {
                "--slow" => words.extend(["--fast", "duration<=p50"]),
                "--fast" => words.extend(["--slow", "duration>=p95"]),
                _ => {}
            }
            words
        };
        let sizes = [words(500), words(2_000)].map(|words| cost(&words, &recorded));
        let [(time, memory), (large_time, large_memory)] = sizes;
        if large_time > MOST * MOST * time.max(LEAST) || large_memory > MOST * MOST * memory {
            writeln!(wrong, "{option}: {sizes:?}").unwrap();
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// A file that an option names: old and new names of functions, handlers of interrupts.
#[test]
fn files_of_options_take_time_and_memory_in_proportion() {
    let rename = |i| format!("\"old{i}\" = \"new{i}\"\n");
    let handler = |i| format!("\"device{i}\", ");
    // A hidden file is no stream.
    let name = ".option.toml";
    let mut wrong = String::new();
    for option in ["--functions", "--handlers"] {
        let write = |n: usize, trace: &Path| {
            ask::copy(&fixture("snap"), trace);
            let text = match option {
                "--functions" => many(n, rename),
                _ => format!("network = [{}]\n", many(n, handler)),
            };
            std::fs::write(trace.join(name), text).unwrap();
        };
        wrong.extend(outgrows(option, 40_000, &["explain", option, name], &write));
    }
    assert!(wrong.is_empty(), "{wrong}");
}
