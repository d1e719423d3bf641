//! No nanosecond is lost: in every fixture (and in the corpus, where it is unpacked) the segments of the critical path
//! tile every execution of every task and every system call, and the contexts' times add up to it, for the tasks that
//! programs delimit and the most frequent calls.

use crate::support::corpus;
use corpus::corpus;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use whyslow::parts::analysis::executions::{self, PairingRule};
use whyslow::parts::analysis::path::{tiles, walk};
use whyslow::parts::analysis::survey::survey;
use whyslow::parts::base::ctx::Ctx;
use whyslow::parts::base::notice::Notices;
use whyslow::parts::event::task::TaskDefinition;
use whyslow::parts::explain;
use whyslow::parts::input::record::ClassId;
use whyslow::parts::input::{Argument, Opened, Source, open};
use whyslow::parts::kernel::{Options, record};
use whyslow::parts::reading::bind::is_kernel;
use whyslow::parts::reading::tasks::{EventSignature, PayloadField, discover};
use whyslow::parts::timeline::Timeline;
use whyslow::parts::timeline::questions::Asker;

fn folders(root: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(root) else { return Vec::new() };
    let mut all: Vec<_> = entries.map(|e| e.unwrap().path()).filter(|p| p.is_dir()).collect();
    all.sort();
    all
}

fn opened(folder: &Path) -> Option<Vec<Source>> {
    let Ok(Opened::Traces(sources)) = open(&[Argument::new(folder.to_owned())], &Ctx::new(2)) else {
        return None;
    };
    Some(sources)
}

fn tasks(sources: &[Source]) -> Vec<TaskDefinition> {
    let signatures = |s: &Source| -> Vec<Arc<EventSignature>> {
        let kernel = is_kernel(&s.trace);
        let class = |(i, class): (usize, &whyslow::parts::input::stream::Class)| {
            Arc::new(EventSignature {
                name: class.known().to_owned(),
                shown: class.name.clone(),
                kernel,
                fields: s.trace.payload_fields(ClassId::at(i)).into_iter().map(PayloadField::from).collect(),
                contexts: Vec::new(),
            })
        };
        s.trace.classes().iter().enumerate().map(class).collect()
    };
    discover(&sources.iter().flat_map(signatures).collect::<Vec<_>>())
}

/// Paths tile every execution and every completed system call; returns their number.
fn paths_tile(recording: &Timeline, tasks: &[TaskDefinition], name: &str) -> usize {
    let mut seen = 0;
    let mut check = |thread, span| {
        assert!(tiles(&walk(recording, thread, span), span), "{name}: {thread:?} {span:?}");
        seen += 1;
    };
    for (number, task) in tasks.iter().enumerate() {
        for execution in executions::pair(recording, number as u32, &PairingRule::of(task), &mut Notices::default()) {
            check(execution.thread, execution.span);
        }
    }
    let reader = recording.reader(Asker::Survey);
    for (id, _) in recording.threads_by_id() {
        reader.calls(id).all().for_each(|call| check(id, call.span));
    }
    seen
}

/// Contexts add up, task by task; returns the number of executions.
fn trees_add_up(recording: &Timeline, tasks: &[TaskDefinition], name: &str, work: &Ctx) -> usize {
    let mut marks = vec![0; tasks.len()];
    recording.reader(Asker::Survey).marks().for_each(|m| marks[m.task as usize] += 1);
    // All tasks that programs delimit, and the most frequent calls: each reads the whole recording.
    let mut chosen: Vec<usize> = (0..tasks.len()).filter(|t| marks[*t] > 0).collect();
    chosen.sort_by_key(|t| (!tasks[*t].name.contains(':'), std::cmp::Reverse(marks[*t])));
    let mut seen = 0;
    for number in chosen.into_iter().take(8) {
        let task = &tasks[number];
        let request = explain::TaskRequest {
            tasks: vec![task.name.clone()].into(),
            marks: number as u32,
            rule: PairingRule::of(task),
            ..Default::default()
        };
        let model = explain::build(recording, &request, &Notices::default(), work).unwrap();
        let wrong = explain::check(&model, 3);
        assert!(wrong.is_empty(), "{name}, {}: {wrong:?}", task.name);
        seen += model.executions.len();
    }
    seen
}

fn holds(folder: &Path) -> Option<(usize, usize)> {
    let sources = opened(folder)?;
    let traces: Vec<_> = sources.iter().map(|s| &s.trace).collect();
    let (tasks, work) = (tasks(&sources), Ctx::new(2));
    let name = folder.display().to_string();
    let (recording, _) = record(&traces, &tasks, &Options::default(), &work).unwrap();
    Some((paths_tile(&recording, &tasks, &name), trees_add_up(&recording, &tasks, &name, &work)))
}

#[test]
fn paths_and_trees_of_fixtures_lose_no_time() {
    let all = folders(&Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/traces"));
    let counts: Vec<(usize, usize)> = all.iter().map(|f| holds(f).unwrap()).collect();
    let (paths, trees) = counts.iter().fold((0, 0), |sum, c| (sum.0 + c.0, sum.1 + c.1));
    assert!(paths > 10_000 && trees > 1_000, "{paths} paths, {trees} trees");
}

#[test]
#[ignore = "needs the corpus"]
fn paths_and_trees_of_the_corpus_lose_no_time() {
    let all: Vec<_> =
        ["kernel", "kernel/extras", "public/real"].iter().flat_map(|part| folders(&corpus(part))).collect();
    let counts: Vec<_> = all.iter().filter_map(|f| holds(f)).collect();
    assert!(counts.len() > 10, "{} recordings only", counts.len());
}

/// At least 95 % of the time off the CPU on critical paths has a cause; the rest has a reason.
#[test]
fn waits_of_fixtures_have_causes() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/traces");
    have_causes(["lock-contention", "cpu-contention", "disk-contention"].map(|n| fixtures.join(n)).into());
}

#[test]
#[ignore = "needs the corpus"]
fn waits_of_the_corpus_have_causes() {
    have_causes(folders(&corpus("kernel")).into_iter().filter(|f| f.join("kernel").is_dir()).collect());
}

fn have_causes(all: Vec<PathBuf>) {
    let mut all_off = 0;
    for folder in all {
        let sources = opened(&folder).unwrap();
        let traces: Vec<_> = sources.iter().map(|s| &s.trace).collect();
        let tasks: Vec<_> = tasks(&sources).into_iter().filter(|t| t.name.contains(':')).collect();
        let (recording, _) = record(&traces, &tasks, &Options::default(), &Ctx::new(2)).unwrap();
        let found = survey(&recording, &tasks, &mut Notices::default());
        let name = folder.display();
        let (unknown, off) = (found.unknown.ns(), found.unknown.off_cpu_ns);
        assert!(unknown * 20 <= off, "{name}: {unknown} of {off} ns: {:?}", found.unknown.reasons);
        all_off += off;
        assert!(found.tasks.values().all(|t| t.unknown.reasons.keys().all(|reason| !reason.is_empty())));
        // System calls are listed as well.
        let calls: i64 = found.tasks.iter().filter(|(n, _)| !n.contains(':')).map(|(_, t)| t.unknown.off_cpu_ns).sum();
        assert!(calls > 0, "{name}");
    }
    assert!(all_off > 100_000_000, "{all_off} ns off the CPU say nothing");
}
