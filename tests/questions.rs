//! The questions that analyses ask of a timeline are those of the table in ALGORITHMS.md 8.10, and no more of them.

use std::collections::BTreeMap;
use std::path::Path;
use whyslow::parts::analysis::candidates::{self, CandidateSources, Programs};
use whyslow::parts::analysis::executions::{self, PairingRule};
use whyslow::parts::analysis::path::walk;
use whyslow::parts::analysis::stack_tables::LazyStackTables;
use whyslow::parts::analysis::{operations, survey};
use whyslow::parts::base::ctx::Ctx;
use whyslow::parts::base::notice::Notices;
use whyslow::parts::base::question_counts::CountedQuestion;
use whyslow::parts::base::span_list::SpanRoom;
use whyslow::parts::event::task::{Delimiter, Pairing, TaskDefinition};
use whyslow::parts::explain;
use whyslow::parts::input::{Argument, Opened, open};
use whyslow::parts::kernel::{Options, record};
use whyslow::parts::symbols::files::SymbolPaths;
use whyslow::parts::timeline::Timeline;
use whyslow::parts::timeline::history::StateHistory;
use whyslow::parts::timeline::history::lines::Time;
use whyslow::parts::timeline::questions::Asker;

/// Analysis, rows, access.
type Question = (String, String, String);

/// A line of the table: the most questions per unit, where a figure is given.
struct Known {
    most: Option<f64>,
    unit: String,
}

fn table() -> BTreeMap<Question, Known> {
    let text =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/timeline/QUESTIONS.md")).unwrap();
    let section = text.split("## 8.10 ").nth(1).unwrap().split("\n## ").next().unwrap();
    let mut known = BTreeMap::new();
    for line in section.lines().filter(|line| line.starts_with('|')) {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        if let [asker, family, access, most, unit] = cells[..]
            && Asker::ALL.iter().any(|one| one.name() == asker)
        {
            let question = (asker.to_owned(), family.to_owned(), access.to_owned());
            let before = known.insert(question, Known { most: most.parse().ok(), unit: unit.to_owned() });
            assert!(before.is_none(), "twice: {line}");
        }
    }
    known
}

fn asked(timeline: &Timeline) -> BTreeMap<Question, u64> {
    let all = timeline.questions().unwrap().all().into_iter();
    all.map(|(CountedQuestion { asker, family, access }, cost)| {
        ([asker, family, access].map(str::to_owned).into(), cost.asked)
    })
    .collect()
}

/// Some system calls that the fixtures have, and the time between two of them.
fn tasks() -> Vec<TaskDefinition> {
    let delimiter = |event: &str| Delimiter { event: event.to_owned(), key: Vec::new(), conditions: Vec::new() };
    let task = |name: &str, begin: String, end: String| TaskDefinition {
        name: name.to_owned(),
        begins: vec![delimiter(&begin)],
        ends: vec![delimiter(&end)],
        pairing: Pairing::Thread,
        kind: None,
        nest: false,
        process: None,
    };
    let call = |name: &str| task(name, format!("syscall_entry_{name}"), format!("syscall_exit_{name}"));
    let calls = ["futex", "read", "write", "pread64", "fsync", "nanosleep", "clock_nanosleep", "poll"].map(call);
    let between = task("between", "syscall_exit_futex".to_owned(), "syscall_entry_futex".to_owned());
    calls.into_iter().chain([between]).collect()
}

/// The questions asked of one timeline, and the number of its units.
struct Asked {
    questions: BTreeMap<Question, u64>,
    units: BTreeMap<&'static str, u64>,
}

/// Everything that `explain` asks of one recording, for each task; then the questions of `info --full`, `anomalies` and
/// `query`.
fn questions(folder: &Path) -> [Asked; 2] {
    let ctx = Ctx::new(2);
    let Ok(Opened::Traces(sources)) = open(&[Argument::new(folder.to_owned())], &ctx) else {
        panic!("{}: no traces", folder.display());
    };
    let traces: Vec<_> = sources.iter().map(|source| &source.trace).collect();
    let tasks = tasks();
    let (timeline, _) = record(&traces, &tasks, &Options::default(), &ctx).unwrap();
    let (explained, surveyed) = (timeline.counted(), timeline.counted());
    let mut notices = Notices::default();
    let threads = timeline.threads().len() as u64;
    let mut units = BTreeMap::from([("recording", tasks.len() as u64), ("thread", threads * tasks.len() as u64)]);
    for (number, task) in (0..).zip(&tasks) {
        let rule = PairingRule::of(task);
        let request = explain::TaskRequest {
            tasks: vec![task.name.clone()].into(),
            marks: number,
            rule: rule.clone(),
            ..Default::default()
        };
        explain::build(&explained, &request, &Notices::default(), &ctx).unwrap();
        let all = executions::pair(&timeline, number, &rule, &mut notices);
        for one in executions::covered(&timeline, all, &mut notices) {
            *units.entry("execution").or_default() += 1;
            *units.entry("segment").or_default() += walk(&timeline, one.thread, one.span).len() as u64;
        }
    }
    survey::survey(&surveyed, &[], &mut notices);
    operations::of_recording(&surveyed, |_| None, &ctx).unwrap();
    let programs = Programs::new(&surveyed, None);
    programs.busiest(&surveyed);
    let (stacks, symbol_paths) = (&LazyStackTables::default(), &SymbolPaths::default());
    let room = &SpanRoom::of(&ctx);
    let sources = CandidateSources { timeline: &surveyed, stacks, symbol_paths, functions: None, room };
    candidates::candidates(sources, &programs, &ctx).unwrap();
    explain::overview::disk_requests(&surveyed);
    let mut others = asked(&surveyed);
    // What `query` asks of the rows about all of its attributes, over the whole recording and at a moment.
    let view = StateHistory::new(surveyed.counted(), None);
    let middle = timeline.span().start + timeline.span().len() / 2;
    for time in [Time::Range(timeline.span()), Time::Instants(vec![middle])] {
        for pattern in ["threads/*/*", "cpus/*/*"] {
            view.lines(pattern, &time, &ctx.cancel).unwrap();
        }
    }
    others.extend(asked(view.timeline()));
    // The paths of the survey are those of all system calls.
    others.retain(|(asker, ..), _| asker != Asker::Path.name());
    let reader = timeline.reader(Asker::Tasks);
    let [segments, calls] = timeline.threads_by_id().fold([0, 0], |[segments, calls], (id, _)| {
        [segments + reader.segments(id).len() as u64, calls + reader.calls(id).len() as u64]
    });
    let rows = BTreeMap::from([("recording", 1), ("thread", threads), ("row", segments.max(calls))]);
    [Asked { questions: asked(&explained), units }, Asked { questions: others, units: rows }]
}

#[test]
fn analyses_ask_the_questions_of_the_table() {
    let known = table();
    let mut seen: BTreeMap<Question, f64> = BTreeMap::new();
    let mut wrong = Vec::new();
    for name in ["cpu-contention", "disk-contention", "lock-contention", "lost-events", "snap"] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/traces").join(name);
        for Asked { questions, units } in questions(&folder) {
            for (question, count) in questions {
                let unit = known.get(&question).map_or("recording", |known| &known.unit);
                let per = count as f64 / units.get(unit).copied().unwrap_or(0).max(1) as f64;
                let most = seen.entry(question).or_default();
                *most = most.max(per);
            }
        }
    }
    for (question, per) in &seen {
        let (asker, family, access) = question;
        match known.get(question) {
            Some(Known { most: Some(most), .. }) if per <= most => {}
            Some(Known { unit, most }) => {
                wrong.push(format!("| {asker} | {family} | {access} | {per:.3} | {unit} | {most:?}"))
            }
            None => wrong.push(format!("| {asker} | {family} | {access} | {per:.3} | recording | not in the table")),
        }
    }
    let unseen = known.iter().filter(|(question, known)| known.most.is_some() && !seen.contains_key(*question));
    wrong.extend(unseen.map(|((asker, family, access), _)| format!("{asker} {family} {access}: not asked")));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Files below a folder that are Rust sources.
fn sources(folder: &Path, found: &mut Vec<std::path::PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => sources(&path, found),
            false if path.extension().is_some_and(|ending| ending == "rs") => found.push(path),
            false => {}
        }
    }
}

#[test]
fn rows_are_copied_by_tests_alone() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut all = Vec::new();
    sources(&root, &mut all);
    let copies = |path: &std::path::PathBuf| {
        let text = std::fs::read_to_string(path).unwrap();
        text.split("#[cfg(test)]").next().unwrap_or("").contains("TimelineDraft::of(")
    };
    // Modules of tests have files of their own.
    let is_test = |path: &std::path::PathBuf| {
        path.file_stem().and_then(|name| name.to_str()).is_some_and(|name| name == "tests" || name.ends_with("_tests"))
    };
    let copying: Vec<_> = all.into_iter().filter(|path| !is_test(path) && copies(path)).collect();
    assert!(copying.is_empty(), "{copying:?}: ask a reader");
}
