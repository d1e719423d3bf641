//! Merged databases: the same bytes whatever the order, and the answers of the parts or of the whole.

use super::*;
use whyslow::parts::base::names::NameId;
use whyslow::parts::model::ThreadInfoId;
use whyslow::parts::model::context::{ContextId, Frame};
use whyslow::parts::model::execution::ContextTime;
use whyslow::parts::model::metric::Column;
use whyslow::parts::saved::executions::{chosen_parts, merge};

/// The bytes of the union of some databases, given by their bytes.
fn merged(all: &[&[u8]]) -> Vec<u8> {
    let folder = folder();
    let databases: Vec<Database> = all.iter().map(|bytes| open(bytes).unwrap()).collect();
    let contents: Vec<_> = databases.iter().map(|database| &database.contents).collect();
    let path = folder.path().join("all.why");
    let chosen = chosen_parts(&contents).unwrap();
    merge(&databases, &chosen, Output::open(&path).unwrap(), &Ctx::new(2)).unwrap();
    std::fs::read(path).unwrap()
}

/// The executions of a model that are chosen, with their part of what is said of all.
fn part_of(model: &Model, is_chosen: impl Fn(usize) -> bool) -> Model {
    let mut part = Model { executions: Default::default(), ..model.clone() };
    part.contexts.who.clear();
    let chosen: Vec<usize> = (0..model.executions.len()).filter(|i| is_chosen(*i)).collect();
    let (from, to) = (&model.executions, &mut part.executions);
    for i in &chosen {
        to.start.push(from.start.at(*i));
        to.duration.push(from.duration.at(*i));
        to.who.push(from.who.at(*i));
        to.trace.push(from.trace.at(*i));
        to.unsure.push(from.unsure.at(*i));
        to.cpu.push(from.cpu.at(*i));
        to.own.push(from.own.row(*i).collect());
    }
    for column in &from.columns {
        let values = chosen.iter().map(|i| column.values.at(*i)).collect();
        to.columns.push(Column { metric: column.metric.clone(), values });
    }
    part
}

/// A model cut by a number for each execution: executions with number `i` are in part `i`. What is said of all
/// executions together is divided so that it adds up to what the model says.
pub(super) fn cut(model: &Model, parts: usize, number: impl Fn(usize) -> usize) -> Vec<Model> {
    let all = (0..parts).map(|at| part_of(model, |i| number(i) == at));
    let mut cut: Vec<Model> = all.filter(|part| !part.executions.is_empty()).collect();
    let parts = cut.len() as u64;
    for (at, part) in cut.iter_mut().enumerate() {
        if at > 0 {
            (part.notices, part.quality) = (Notices::default(), Vec::new());
        }
        let share = |ns: u64| ns / parts + if at == 0 { ns % parts } else { 0 };
        part.contexts.who = model.contexts.who.iter().map(|(key, ns)| (*key, share(*ns))).collect();
    }
    cut
}

pub(super) fn number_of_thread(model: &Model, parts: usize) -> impl Fn(usize) -> usize + '_ {
    move |i| model.executions.who.at(i).index() % parts
}

/// Executions that begin together are in one part, as no cut by time divides them. (Two parts that each have an
/// execution of one thread and one span would be the same recording, built twice.)
fn number_by_time(model: &Model, parts: usize) -> impl Fn(usize) -> usize + '_ {
    let all = model.executions.len().max(1);
    let start = |i: usize| model.executions.start.at(i);
    move |i| (0..=i).rev().take_while(|at| start(*at) == start(i)).last().unwrap_or(i) * parts / all
}

/// What commands print of a database.
fn answers(bytes: &[u8], words: &[&str]) -> Vec<Vec<u8>> {
    let folder = folder();
    let path = folder.path().join("database.why");
    std::fs::write(&path, bytes).unwrap();
    let ask = |command: &[&str]| answer(&[command, words, &["--json", path.to_str().unwrap()]].concat());
    [&["explain"][..], &["diff"], &["executions", "--slowest", "20"]].into_iter().map(ask).collect()
}

/// A random model in which up to four executions have the same span and times, in the order of no thread.
fn model_with_ties(executions: usize, seed: u64) -> Model {
    let mut random = Random::new(seed);
    let mut head = 0;
    let heads: Vec<usize> = (0..executions)
        .map(|i| {
            if i - head > 3 || random.below(3) == 0 {
                head = i;
            }
            head
        })
        .collect();
    let model = random_model::model(executions, seed);
    let mut tied = part_of(&model, |_| true);
    tied.contexts.who = model.contexts.who.clone();
    let (from, to) = (&model.executions, &mut tied.executions);
    (to.start, to.duration, to.own) = Default::default();
    for head in &heads {
        to.start.push(from.start.at(*head));
        to.duration.push(from.duration.at(*head));
        to.own.push(from.own.row(*head).collect());
    }
    let is_time = |name: &str| ["duration", "start", "cpu"].contains(&name) || name.starts_with("blocked");
    for (column, from) in to.columns.iter_mut().zip(&from.columns).filter(|(c, _)| is_time(&c.metric.name())) {
        column.values = heads.iter().map(|head| from.values.at(*head)).collect();
    }
    tied
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn merge_is_commutative_associative_and_idempotent(seed in any::<u64>(), n in 0..60_usize) {
        let labelled = |label: &str, n: usize, seed: u64| {
            let mut model = random_model::model(n, seed);
            model.traces.iter_mut().for_each(|trace| trace.label = label.into());
            model
        };
        let other_task = other_task(labelled("b", n / 2, seed ^ 3));
        let a = written(&[labelled("a", n, seed)]);
        let b = written(&[labelled("b", n / 3, seed ^ 1), other_task]);
        let c = written(&[labelled("a", 7, seed ^ 2)]);
        let all = merged(&[&a, &b, &c]);
        for order in [[&b, &a, &c], [&c, &b, &a], [&b, &c, &a]] {
            prop_assert!(merged(&order.map(|bytes| bytes.as_slice())) == all);
        }
        prop_assert!(merged(&[&merged(&[&a, &b]), &c]) == all);
        prop_assert!(merged(&[&merged(&[&c, &b]), &a]) == all);
        prop_assert!(merged(&[&merged(&[&a, &b]), &merged(&[&b, &c])]) == all);
        prop_assert!(merged(&[&all, &a, &all]) == all);
        // Nothing is lost.
        let database = open(&all).unwrap();
        prop_assert_eq!(database.contents.tasks(), ["app:request", "app:other"]);
        let count = database.model(0, &Ctx::new(1)).unwrap().executions.len();
        prop_assert_eq!(count, n + n / 3 + 7);
    }

    /// A merged database is what its parts are together: names, contexts, threads, executions, to the last id.
    #[test]
    fn merge_of_a_cut_model_is_the_model(seed in any::<u64>(), n in 1..80_usize, parts in 1..9_usize) {
        let whole = model_with_ties(n, seed);
        let expected = open(&written(std::slice::from_ref(&whole))).unwrap().model(0, &Ctx::new(1)).unwrap();
        let by_thread = cut(&whole, parts, number_of_thread(&whole, parts));
        let by_time = cut(&whole, parts, number_by_time(&whole, parts));
        for cut in [by_thread, by_time] {
            let files: Vec<Vec<u8>> = cut.iter().map(|part| written(std::slice::from_ref(part))).collect();
            let files: Vec<&[u8]> = files.iter().map(Vec::as_slice).collect();
            let merged = open(&merged(&files)).unwrap().model(0, &Ctx::new(1)).unwrap();
            let merged = Model { traces: expected.traces.clone(), ..merged };
            same(&merged, &expected)?;
        }
    }

    /// The other way round: executions that differ in the order of contexts, names and threads only are the same.
    #[test]
    fn ids_of_a_database_follow_from_what_is_in_it(seed in any::<u64>(), n in 1..60_usize) {
        let model = model_with_ties(n, seed);
        let mut random = Random::new(seed);
        prop_assert!(written(std::slice::from_ref(&model)) == written(&[renumbered(&model, &mut random)]));
    }
}

/// The same model with other ids.
fn renumbered(model: &Model, random: &mut Random) -> Model {
    let mut order = |n: usize| {
        let mut all: Vec<usize> = (0..n).collect();
        (1..n).for_each(|i| all.swap(i, random.below(i + 1)));
        all
    };
    let mut other = Model { ..model.clone() };
    other.names = Default::default();
    let names = order(model.names.len());
    names.iter().for_each(|at| {
        other.names.intern(model.names.get(NameId::at(*at)));
    });
    let name = |id| other.names.find(model.names.get(id)).unwrap();
    let threads = order(model.who.len());
    other.who = threads.iter().map(|at| model.who[*at].clone()).collect();
    for who in &mut other.who {
        (who.host, who.process, who.thread) = (name(who.host), name(who.process), name(who.thread));
    }
    let thread = |id: ThreadInfoId| ThreadInfoId::at(threads.iter().position(|at| *at == id.index()).unwrap());
    other.contexts = Default::default();
    let mut contexts = vec![None; model.contexts.len()];
    for at in order(model.contexts.len()) {
        for id in model.contexts.path(ContextId::at(at)) {
            let frame = model.contexts.frame(id);
            let frame = Frame { name: name(frame.name), ..frame };
            let parent = model.contexts.parent(id).and_then(|parent| contexts[parent.index()]);
            contexts[id.index()] = Some(other.contexts.child(parent, frame));
        }
    }
    for ((context, who), ns) in &model.contexts.who {
        other.contexts.who.insert((contexts[context.index()].unwrap(), thread(*who)), *ns);
    }
    let mut executions = part_of(model, |_| true).executions;
    (executions.who, executions.own) = Default::default();
    for i in 0..model.executions.len() {
        executions.who.push(thread(model.executions.who.at(i)));
        let time = |time: ContextTime| ContextTime { context: contexts[time.context.index()].unwrap(), ..time };
        executions.own.push(model.executions.own.row(i).map(time).collect());
    }
    for column in executions.columns.iter_mut().filter(|c| ["trace", "type"].contains(&c.metric.name().as_str())) {
        let id = |value: i64| name(NameId::from_raw(value as u32)).raw().into();
        column.values = column.values.iter().map(id).collect();
    }
    other.executions = executions;
    other
}

/// A database of a fixture, cut into many and merged, answers to the byte as the whole.
#[test]
fn merge_of_a_cut_recording_answers_like_the_whole() {
    let folder = folder();
    let file = built(folder.path(), LOCK, &["--task", "app:request"]);
    let bytes = std::fs::read(&file).unwrap();
    let database = open(&bytes).unwrap();
    let whole = database.model(0, &Ctx::new(1)).unwrap();
    let facts = database.contents.facts();
    let notices = database.contents.notices();
    let write = |model: &Model| {
        let mut writer = Writer::new(facts.clone(), notices.clone());
        writer.add(model.clone(), &Ctx::new(1)).unwrap();
        writer.bytes().unwrap()
    };
    let expected = answers(&bytes, &[]);
    for parts in [2, 7, 50] {
        let by_thread = cut(&whole, parts, number_of_thread(&whole, parts));
        let by_time = cut(&whole, parts, number_by_time(&whole, parts));
        for cut in [by_thread, by_time] {
            let files: Vec<Vec<u8>> = cut.iter().map(write).collect();
            let files: Vec<&[u8]> = files.iter().map(Vec::as_slice).collect();
            let merged = merged(&files);
            assert!(answers(&merged, &[]) == expected, "{parts} parts");
            // What is said of the recording is said once, however many databases say it.
            let contents = open(&merged).unwrap().contents;
            assert_eq!((contents.facts(), contents.notices()), (facts.clone(), notices.clone()));
        }
    }
}

/// The answer from a merged database is the answer from its parts under their labels.
#[test]
fn merge_is_compared_like_its_parts() {
    let folder = folder();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (old, new) = (built(folder.path(), LOCK, &[]), built(folder.path(), CPU, &[]));
    let labelled = [format!("old={old}"), format!("new={new}")];
    let all = path("all.why");
    answer(&["merge", &labelled[0], &labelled[1], "-o", &all]);
    for command in ["explain", "diff"] {
        for words in [&["--task", "app:request", "--slow", "trace=old", "--fast", "trace=new"][..], &[]] {
            let words = [&[command, "--json"], words].concat();
            let of_parts = answer(&[&words[..], &[&labelled[0], &labelled[1]]].concat());
            let of_merged = answer(&[&words[..], &[&all]].concat());
            assert!(of_parts == of_merged, "{words:?}: {}", String::from_utf8_lossy(&of_merged));
            assert!(of_parts == answer(&[&words[..], &[&labelled[1], &labelled[0]]].concat()), "{words:?}");
        }
    }
    let traces = |file: &str| {
        let info: serde_json::Value = serde_json::from_slice(&answer(&["info", "--json", file])).unwrap();
        info["traces"].as_array().unwrap().len()
    };
    assert_eq!(traces(&all), traces(&old) + traces(&new));
    // A folder of databases is its databases, and merging into it again changes nothing.
    let before = std::fs::read(&all).unwrap();
    let out = output(&["merge", folder.path().to_str().unwrap(), "-o", &all]);
    assert!(out.status.success(), "{}", said(&out));
    assert!(before == std::fs::read(&all).unwrap());
    let said = said(&out);
    assert_eq!(said.matches(": left out").count(), 2, "{said}");
}

#[test]
fn merge_tells_what_it_leaves_out_and_refuses_what_would_be_lost() {
    let folder = folder();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (lock, cpu) = (built(folder.path(), LOCK, &[]), built(folder.path(), CPU, &[]));
    let copy = path("copy.why");
    std::fs::copy(&lock, &copy).unwrap();
    let all = path("all.why");
    let out = output(&["merge", &lock, &format!("x={copy}"), &cpu, "-o", &all]);
    assert!(out.status.success(), "{}", said(&out));
    assert_eq!(said(&out).matches("its recording is in ").count(), 1, "{}", said(&out));
    // One label in place of two.
    let both = path("both.why");
    answer(&["merge", &format!("old={lock}"), &format!("new={cpu}"), "-o", &both]);
    refuses(&["merge", &format!("x={both}"), "-o", &all], 2, &["labels `new`, `old`", "without a label"]);
    // The same executions with other names of functions.
    let bare = path("bare.why");
    answer(&["build", "--symbols-only", folder.path().to_str().unwrap(), LOCK, "-o", &bare]);
    refuses(
        &["merge", &lock, &bare, "-o", &all],
        1,
        &["app:request", "would count twice", "bare.why", "lock-contention.why"],
    );
    refuses(&["merge", LOCK, "-o", &all], 1, &["not a database", "whyslow build"]);
    // Other versions and damage: a line for each, and the output stays.
    let before = std::fs::read(&all).unwrap();
    let mut bytes = std::fs::read(&cpu).unwrap();
    bytes[8] = 3;
    std::fs::write(path("older.why"), &bytes).unwrap();
    std::fs::write(path("cut.why"), &std::fs::read(&cpu).unwrap()[..500]).unwrap();
    let out = output(&["merge", &lock, &path("older.why"), &path("cut.why"), "-o", &all]);
    let said = said(&out);
    assert_eq!((out.status.code(), said.lines().count()), (Some(1), 3), "{said}");
    assert!(said.contains("version 3") && said.contains("cut.why") && said.contains("2 databases"), "{said}");
    assert!(before == std::fs::read(&all).unwrap());
}

/// The same recording under one label counts once, under two it is compared with itself.
#[test]
fn a_repeated_recording_counts_once() {
    let folder = folder();
    let file = built(folder.path(), LOCK, &["--task", "app:request"]);
    let document = |words: &[&str]| -> serde_json::Value {
        serde_json::from_slice(&answer(&[&["explain", "--json"], words].concat())).unwrap()
    };
    let (once, twice) = (document(&[&file]), document(&[&file, &file]));
    assert_eq!((&once["slow"], &once["causes"]), (&twice["slow"], &twice["causes"]));
    assert!(twice["warnings"].to_string().contains("named twice"), "{}", twice["warnings"]);
    let labelled = [format!("a={file}"), format!("b={file}")];
    let both = document(&["--slow", "trace=a", "--fast", "trace=b", &labelled[0], &labelled[1]]);
    assert_eq!(both["slow"]["count"], both["fast"]["count"]);
}
