//! User stacks of the corpus, resolved by us and by a script that used `nm` (`stack_oracle.txt` in each scenario).
//!
//! The script names the nearest symbol before an address, by `.symtab`, and so takes a jump table for the function
//! before it (`_init`). It knows the file of an address without a name only from `bin_info`. It knows no inlined
//! functions. It does not drop the tracer's own frames at the innermost end. Apart from these differences the stacks
//! and their counts must be equal.

use crate::support::{ask, corpus};
use corpus::corpus;
use std::collections::BTreeMap;
use std::path::Path;
use whyslow::parts::base::ctx::Ctx;
use whyslow::parts::base::names::Names;
use whyslow::parts::base::notice::Notices;
use whyslow::parts::base::time::Timestamp;
use whyslow::parts::event::stack::StackOrigin;
use whyslow::parts::input::{self, Argument};
use whyslow::parts::kernel;
use whyslow::parts::symbols::cache::SymbolCache;
use whyslow::parts::symbols::files::SymbolPaths;
use whyslow::parts::symbols::images::Spaces;
use whyslow::parts::symbols::{AddressKind, ProcessStack, StackResolver, UserFrame};
use whyslow::parts::timeline::Timeline;
use whyslow::parts::timeline::questions::Asker;

/// Stacks by the event that made the tracer take them, functions innermost first, with their counts.
type Counts = BTreeMap<(String, String), i64>;

/// Frames without a name become `[file]`, one for a run of them; stacks of such frames alone are left out.
fn count<'a>(counts: &mut Counts, made: &str, functions: impl Iterator<Item = &'a str>, n: i64) {
    let nameless = |f: &str| f.starts_with('[') || f.contains("+0x");
    let mut stack: Vec<&str> = functions.map(|f| if nameless(f) { "[file]" } else { f }).collect();
    stack.dedup_by(|b, a| *a == "[file]" && a == b);
    if stack.iter().any(|f| *f != "[file]") {
        *counts.entry((made.to_owned(), stack.join(" < "))).or_insert(0) += n;
    }
}

fn oracle(scenario: &Path) -> Counts {
    let text = std::fs::read_to_string(scenario.join("stack_oracle.txt")).unwrap();
    let mut counts = Counts::new();
    for line in text.lines().filter(|l| !l.starts_with('#')) {
        let words: Vec<&str> = line.splitn(4, " | ").collect();
        let made = ["syscall_entry", "syscall_exit", "timer"].into_iter().find(|m| words[2].starts_with(m)).unwrap();
        let functions = words[3].split(" < ").filter(|f| *f != "_init");
        let functions = functions.skip_while(|f| f.starts_with("[liblttng-ust"));
        count(&mut counts, made, functions, words[0].parse().unwrap());
    }
    counts
}

fn resolved(scenario: &Path) -> Counts {
    let traces: Vec<Argument> = vec![Argument::parse(scenario.to_str().unwrap())];
    let input::Opened::Traces(sources) = input::open(&traces, &Ctx::new(2)).unwrap() else { panic!("no CTF trace") };
    let traces: Vec<_> = sources.iter().map(|s| &s.trace).collect();
    let work = Ctx::new(1);
    let (recording, _) = kernel::record(&traces, &[], &kernel::Options::default(), &work).unwrap();
    let spaces = Spaces::new(recording.images());
    let samples = samples(&recording, &spaces);
    let places = SymbolPaths { folders: vec![scenario.join("bin")], ..SymbolPaths::default() };
    let mut names = Names::default();
    let stacks: Vec<ProcessStack> = samples.iter().map(|(_, placed)| *placed).collect();
    let cache = SymbolCache::default();
    let resolver = StackResolver::new(&recording, &spaces, &places, &cache);
    let found = resolver.resolve(&stacks, &mut names, &mut Notices::default(), &work).unwrap();
    let mut counts = Counts::new();
    for ((made, _), frames) in samples.iter().zip(found) {
        let text = |f: &UserFrame| if f.folded { "[file]" } else { names.get(f.name) };
        count(&mut counts, made, frames.iter().rev().filter(|f| !f.inlined).map(text), 1);
    }
    counts
}

fn samples(recording: &Timeline, spaces: &Spaces) -> Vec<(&'static str, ProcessStack)> {
    let mut all = Vec::new();
    let reader = recording.reader(Asker::Stacks);
    for (id, thread) in recording.threads_by_id().filter(|(_, t)| !t.idle) {
        for sample in reader.samples(id).all() {
            let made = match sample.origin {
                StackOrigin::CallEntry => "syscall_entry",
                StackOrigin::CallExit => "syscall_exit",
                _ => "timer",
            };
            let space = spaces.at(thread.host, thread.pid, sample.time);
            all.extend(sample.user.map(|stack| {
                (
                    made,
                    ProcessStack {
                        host: thread.host,
                        pid: thread.pid,
                        space,
                        code: Timestamp::default(),
                        stack,
                        addresses: AddressKind::Sampled,
                    },
                )
            }));
        }
    }
    all
}

/// Function entries and exits of a real program, against a replay of the events as `dump` prints them.
#[test]
#[ignore = "needs the corpus"]
fn open_functions_are_those_of_a_replay() {
    let trace = corpus("public/real/cyg-profile-glxgears-cyg-profile");
    let out = ask::run(ask::program().arg("dump").arg(&trace));
    let mut open: Vec<u64> = Vec::new();
    let mut wanted: Vec<Vec<u64>> = Vec::new();
    for line in String::from_utf8(out.stdout).unwrap().lines() {
        let Some((_, rest)) = line.split_once("addr=") else { continue };
        let address: u64 = rest.split(',').next().unwrap().parse().unwrap();
        if line.contains("func_entry") {
            open.push(address);
        } else if let Some(at) = open.iter().rposition(|a| *a == address) {
            open.truncate(at);
        } else {
            continue;
        }
        wanted.push(open.clone());
    }
    assert!(wanted.len() > 4_000, "{}", wanted.len());
    let input::Opened::Traces(sources) =
        input::open(&[Argument::parse(trace.to_str().unwrap())], &Ctx::new(2)).unwrap()
    else {
        panic!("no CTF trace")
    };
    let traces: Vec<_> = sources.iter().map(|s| &s.trace).collect();
    let (recording, _) = kernel::record(&traces, &[], &kernel::Options::default(), &Ctx::new(2)).unwrap();
    let reader = recording.reader(Asker::Stacks);
    let samples = recording
        .threads_by_id()
        .flat_map(|(id, _)| reader.samples(id).all())
        .filter(|s| s.origin == StackOrigin::Function);
    let found = samples.map(|s| {
        // Innermost first; callers stand one behind their first address.
        let addresses = s.user.map_or(&[][..], |stack| recording.stacks().get(stack));
        addresses.iter().enumerate().rev().map(|(depth, a)| a - u64::from(depth > 0)).collect::<Vec<_>>()
    });
    assert_eq!(found.collect::<Vec<_>>(), wanted);
}

#[test]
#[ignore = "needs the corpus"]
fn stacks_agree_with_a_script_that_used_nm() {
    let corpus = corpus("kernel");
    for scenario in ["cs1-cpu-contention", "cs2-disk-contention", "cs3-lock-contention", "cs4-rare-sleep"] {
        let folder = corpus.join(scenario);
        let (theirs, ours) = (oracle(&folder), resolved(&folder));
        assert!(ours.values().sum::<i64>() > 5_000, "{scenario}: too few stacks to say anything");
        assert_eq!(ours, theirs, "{scenario}");
    }
}
