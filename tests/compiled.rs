//! Code that programs compiled while they ran, in recordings by perf of Node.js, Java and Python
//! (`fixtures/recorders/compiled`): its functions are named by the maps and the dump beside the recordings. What names
//! are missing is said before the answer.

use crate::support::ask;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use whyslow::parts::base::ctx::Ctx;
use whyslow::parts::base::names::Names;
use whyslow::parts::base::notice::Notices;
use whyslow::parts::input::{self, Argument};
use whyslow::parts::kernel;
use whyslow::parts::symbols::cache::SymbolCache;
use whyslow::parts::symbols::files::SymbolPaths;
use whyslow::parts::symbols::images::Spaces;
use whyslow::parts::symbols::{AddressKind, ProcessStack, StackResolver, unnamed};
use whyslow::parts::timeline::questions::Asker;

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/recorders/compiled").join(name)
}

/// The number of samples by their innermost function, and the notices.
fn sampled(recording: &Path, has_maps: bool) -> (BTreeMap<String, usize>, Notices) {
    let input::Opened::Traces(sources) =
        input::open(&[Argument::parse(recording.to_str().unwrap())], &Ctx::new(1)).unwrap()
    else {
        panic!("no trace")
    };
    let traces: Vec<_> = sources.iter().map(|s| &s.trace).collect();
    let (timeline, _) = kernel::record(&traces, &[], &kernel::Options::default(), &Ctx::new(1)).unwrap();
    let beside = if has_maps { vec![recording.parent().unwrap().to_owned()] } else { Vec::new() };
    let places = SymbolPaths { beside, monotonic: traces[0].monotonic(), ..SymbolPaths::default() };
    let cache = SymbolCache::default();
    let spaces = Spaces::with_code(timeline.images(), &places, &cache);
    let reader = timeline.reader(Asker::Stacks);
    let mut stacks = Vec::new();
    for (id, thread) in timeline.threads_by_id() {
        let (host, pid, addresses) = (thread.host, thread.pid, AddressKind::Sampled);
        for sample in reader.samples(id).all() {
            let (space, code) = (spaces.at(host, pid, sample.time), spaces.code_since(pid, sample.time));
            stacks.extend(sample.user.map(|stack| ProcessStack { host, pid, space, code, stack, addresses }));
        }
    }
    let (mut names, mut notices) = (Names::default(), Notices::default());
    unnamed::compiled(&timeline, &spaces, stacks.iter(), (&places, &cache), &mut notices);
    let resolver = StackResolver::new(&timeline, &spaces, &places, &cache);
    let found = resolver.resolve(&stacks, &mut names, &mut Notices::default(), &Ctx::new(1)).unwrap();
    let mut counts = BTreeMap::new();
    for frame in found.iter().filter_map(|frames| frames.last()) {
        *counts.entry(names.get(frame.name).to_owned()).or_default() += 1;
    }
    (counts, notices)
}

/// The samples in a function, in all forms in which the runtime compiled it.
fn of(counts: &BTreeMap<String, usize>, function: &str) -> usize {
    counts.iter().filter(|(name, _)| name.contains(function)).map(|(_, n)| n).sum()
}

#[test]
fn compiled_functions_are_named_by_map_or_dump() {
    for (recording, functions) in [
        ("node.data", ["*priceBasket", "*readRules"]),
        ("java.data", ["Prices.priceBasket(int)", "Prices.readRules(int)"]),
        ("jitdump.data", ["*priceBasket", "*readRules"]),
    ] {
        let (counts, notices) = sampled(&fixture(recording), true);
        let all: usize = counts.values().sum();
        let [price, rules] = functions.map(|function| of(&counts, function));
        assert!(price > 3 && rules > 3 && 3 * (price + rules) > all, "{recording}: {counts:?}");
        assert_eq!(of(&counts, "unknown"), 0, "{recording}: {counts:?}");
        assert!(notices.is_empty(), "{recording}: {:?}", notices.sentences());
    }
}

#[test]
fn missing_map_is_said_with_the_option_of_the_runtime() {
    for (recording, remedy) in [("node.data", "--perf-basic-prof"), ("java.data", "-XX:+DumpPerfMapAtExit")] {
        let (counts, notices) = sampled(&fixture(recording), false);
        assert!(of(&counts, "unknown") > 10, "{recording}: {counts:?}");
        let said = notices.sentences().concat();
        assert!(said.contains("1 process") && said.contains(remedy), "{recording}: {said}");
    }
}

/// Python's functions are callers of those of its interpreter: the answer names them, not the interpreter.
#[test]
fn functions_of_python_are_named_in_place_of_the_interpreters() {
    let explained = |folder: &Path| {
        let words = ["explain", "--json", "python.data"];
        let out = ask::run(ask::whyslow(words).current_dir(folder));
        serde_json::from_slice::<serde_json::Value>(&out.stdout).unwrap()
    };
    let answer = explained(&fixture(""));
    for (cause, function) in ["py::price_basket", "py::read_rules"].iter().enumerate() {
        let named = answer["causes"][cause]["by"]["function"].as_str().unwrap();
        assert_eq!(named, format!("{function}:/opt/prices/prices.py"));
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::copy(fixture("python.data"), folder.path().join("python.data")).unwrap();
    let warnings = explained(folder.path())["warnings"].to_string();
    assert!(warnings.contains("start it with -X perf"), "{warnings}");
}

/// A dump that is damaged anywhere gives an answer, and no name that it does not hold.
#[test]
fn damaged_dump_is_answered() {
    let folder = tempfile::tempdir().unwrap();
    let recording = folder.path().join("perf.data");
    std::fs::copy(fixture("jitdump.data"), &recording).unwrap();
    let whole = std::fs::read(fixture("jit-26935.dump")).unwrap();
    for at in [0, 4, 8, 40, 44, 48, 72, 80, 88, 100, whole.len() / 2, whole.len() - 1] {
        for end in [at, whole.len()] {
            let mut bytes = whole[..end].to_vec();
            bytes.get_mut(at..(at + 4).min(end)).unwrap_or_default().fill(0xff);
            std::fs::write(folder.path().join("jit-26935.dump"), &bytes).unwrap();
            let out = ask::program().args(["info", "--full", "--json"]).arg(&recording).output().unwrap();
            assert!(out.status.code().is_some_and(|code| code < 2), "{at} {end}: {out:?}");
        }
    }
}

/// Kernel functions without names are what an answer lacks most: the first line says so, and what to pass.
#[test]
fn missing_kernel_symbols_are_said_before_the_answer() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("perf.data");
    std::fs::copy(Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/recorders/planted/lock.data"), &data).unwrap();
    let asked = |words: &[&str]| {
        let out = ask::program().args(words).arg(&data).output().unwrap();
        String::from_utf8(out.stdout).unwrap()
    };
    let (explained, listed) = (asked(&["explain"]), asked(&["info", "--full"]));
    assert!(explained.starts_with("note: functions of the kernel have no names"), "{explained}");
    assert!(explained.contains("--kallsyms") && listed.contains("--kallsyms"), "{explained}{listed}");
    std::fs::write(folder.path().join("kallsyms"), b"ffffffff81000000 T _text\n").unwrap();
    let (explained, listed) = (asked(&["explain"]), asked(&["info", "--full"]));
    assert!(!explained.contains("--kallsyms") && !listed.contains("--kallsyms"), "{explained}{listed}");
}
