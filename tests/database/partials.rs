//! Partial results: they add up in any order to the same bytes, to those of the whole, and to the answers of databases.

use super::merge::{cut, number_of_thread};
use super::*;
use serde_json::Value;
use std::collections::BTreeMap;
use whyslow::parts::base::digest::Digester;
use whyslow::parts::compare::members::members;
use whyslow::parts::model::ThreadInfoId;
use whyslow::parts::model::context::{ContextId, Frame, FrameKind};
use whyslow::parts::model::partials::{ContextTotals, HostTotals, totals};
use whyslow::parts::saved::partials::{FoundTotals, GroupTexts, PartialSums, PartialsFile, SumsError};

/// A model whose threads are on several hosts.
fn model_on_hosts(executions: usize, seed: u64, hosts: usize) -> Model {
    let mut model = random_model::model(executions, seed);
    for i in 0..model.who.len() {
        model.who[i].host = model.names.intern(&format!("host-{}", i % hosts));
    }
    model
}

/// The partial results of a model, in the canonical form of its database, for groups by duration.
fn found(model: &Model, milliseconds: u32) -> FoundTotals {
    let database = open(&written(std::slice::from_ref(model))).unwrap();
    let source = database.contents.recordings[0].parts[0].content;
    let model = database.model(0, &Ctx::new(1)).unwrap();
    let texts = [format!("duration>={milliseconds}ms"), format!("duration<{milliseconds}ms")];
    let [slow, fast] = texts.each_ref().map(|text| members(&model, &[text.parse().unwrap()], &[]).unwrap());
    let hosts = totals(&model, source, [&slow, &fast]);
    let [slow, fast] = texts.map(|text| vec![text]);
    FoundTotals::new("app:request".into(), GroupTexts { slow, fast }, &model, hosts)
}

/// The bytes of the file of sums.
fn saved(sums: &PartialSums<'_>) -> Vec<u8> {
    let folder = folder();
    let path = folder.path().join("sums");
    sums.save(Output::open(&path).unwrap(), &Ctx::new(1)).unwrap();
    std::fs::read(path).unwrap()
}

fn of_found(all: Vec<FoundTotals>) -> Vec<u8> {
    let all = all.into_iter().map(|found| (found, PathBuf::from("found"))).collect();
    saved(&PartialSums::of_found(all).unwrap())
}

/// Files of these bytes, opened.
fn files(folder: &Path, all: &[&[u8]]) -> Vec<PartialsFile> {
    let file = |(at, bytes): (usize, &&[u8])| {
        let path = folder.join(at.to_string());
        std::fs::write(&path, bytes).unwrap();
        PartialsFile::open(&path).unwrap()
    };
    all.iter().enumerate().map(file).collect()
}

fn united(all: &[&[u8]]) -> Vec<u8> {
    let folder = folder();
    saved(&PartialSums::of_files(&files(folder.path(), all), &Ctx::new(2)).unwrap())
}

/// The totals by host with the names of contexts, without what they are of.
fn listed(bytes: &[u8]) -> Vec<(String, HostTotals, Vec<String>)> {
    let folder = folder();
    let files = files(folder.path(), &[bytes]);
    let sums = PartialSums::of_files(&files, &Ctx::new(1)).unwrap();
    let tables = sums.task(0).unwrap().1;
    let name = |id: ContextId| tables.names.get(tables.contexts.frame(id).name).to_owned();
    let paths: Vec<String> = (0..tables.contexts.len())
        .map(|at| tables.contexts.path(ContextId::at(at)).into_iter().map(name).collect::<Vec<_>>().join(";"))
        .collect();
    let mut all = Vec::new();
    sums.each_host(0, &Ctx::new(1), |host, totals| {
        all.push((host.to_owned(), HostTotals { sources: Default::default(), ..totals.clone() }, paths.clone()));
        Ok::<(), SumsError>(())
    })
    .unwrap();
    all
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn sums_are_a_commutative_monoid(seed in any::<u64>(), n in 1..60_usize) {
        let of = |n: usize, seed: u64| of_found(vec![found(&model_on_hosts(n, seed, 3), 5)]);
        let (a, b, c) = (of(n, seed), of(n / 2 + 1, seed ^ 1), of(9, seed ^ 2));
        let none = united(&[]);
        let all = united(&[&a, &b, &c]);
        for order in [[&b, &a, &c], [&c, &b, &a], [&b, &c, &a]] {
            prop_assert!(united(&order.map(|bytes| bytes.as_slice())) == all);
        }
        prop_assert!(united(&[&united(&[&a, &b]), &c]) == all);
        prop_assert!(united(&[&a, &united(&[&c, &b])]) == all);
        prop_assert!(united(&[&none, &a]) == a && united(&[&a, &none]) == a);
        // What is there already counts no second time.
        prop_assert!(united(&[&all, &a, &all, &united(&[&b, &c])]) == all);
    }

    /// The totals of a model cut by thread are those of the whole, to the last number.
    #[test]
    fn sums_of_a_cut_model_are_those_of_the_model(seed in any::<u64>(), n in 1..80_usize, parts in 1..9_usize) {
        let whole = model_on_hosts(n, seed, 2);
        let cut: Vec<Model> = cut(&whole, parts, number_of_thread(&whole, parts));
        let together = of_found(cut.iter().map(|part| found(part, 5)).collect());
        let files: Vec<Vec<u8>> = cut.iter().map(|part| of_found(vec![found(part, 5)])).collect();
        prop_assert!(united(&files.iter().map(Vec::as_slice).collect::<Vec<_>>()) == together);
        prop_assert!(listed(&together) == listed(&of_found(vec![found(&whole, 5)])));
    }
}

#[test]
fn sums_refuse_other_groups_and_what_they_have_in_part() {
    let of = |seed: u64, milliseconds| of_found(vec![found(&model_on_hosts(30, seed, 1), milliseconds)]);
    let (a, b, c) = (of(1, 5), of(2, 5), of(3, 5));
    let folder = folder();
    let error = |all: &[&[u8]]| {
        let files = files(folder.path(), all);
        PartialSums::of_files(&files, &Ctx::new(1)).err().map(|error| error.to_string())
    };
    let other = error(&[&a, &of(4, 6)]).unwrap();
    assert!(other.contains("`duration>=6ms` and `duration<6ms`, but those of"), "{other}");
    let in_part = error(&[&united(&[&a, &b]), &united(&[&b, &c])]).unwrap();
    assert!(in_part.contains("some recordings of") && in_part.contains("host `host-0`"), "{in_part}");
    assert!(!in_part.contains('\n') && !other.contains('\n'));
    assert_eq!(error(&[&united(&[&a, &b]), &b]), None);
}

#[test]
fn damaged_partial_results_are_refused() {
    let bytes = of_found(vec![found(&model_on_hosts(12, 9, 2), 5)]);
    let folder = folder();
    let path = folder.path().join("damaged");
    let survives = |bytes: &[u8]| {
        std::fs::write(&path, bytes).unwrap();
        let opened = PartialsFile::open(&path).map(|file| [file]);
        let read = opened.map_err(SumsError::from).and_then(|files| {
            PartialSums::of_files(&files, &Ctx::new(1))?.each_host(0, &Ctx::new(1), |_, _| Ok::<(), SumsError>(()))
        });
        if let Err(error) = &read {
            let said = error.to_string();
            assert!(!said.contains('\n') && said.contains("whyslow"), "{said}");
        }
        read.is_ok()
    };
    assert!(survives(&bytes));
    for length in (0..bytes.len()).filter(|length| *length < 300 || length % 5 == 0) {
        assert!(!survives(&bytes[..length]), "the first {length} bytes");
    }
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1 << (at % 8);
        assert!(!survives(&damaged), "byte {at}");
    }
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value}"))
}

/// The figures of partial results are those of the executions: sums and means exactly, percentiles within 1 %.
fn check_answer(of_sums: &Value, of_executions: &Value) {
    assert_eq!(of_sums["extra_ns"], of_executions["extra_ns"]);
    for group in ["slow", "fast"] {
        let [sums, executions] = [&of_sums[group], &of_executions[group]];
        assert_eq!((&sums["count"], &sums["mean_ns"]), (&executions["count"], &executions["mean_ns"]));
        for key in ["p50_ns", "p95_ns", "p99_ns", "max_ns"] {
            let (within, exact) = (number(&sums[key]), number(&executions[key]));
            assert!(within >= exact && within <= exact * 1.01 + 1.0, "{group} {key}: {within}, {exact}");
        }
    }
    let nodes = |document: &Value| document["tree"].as_array().unwrap().clone();
    let (sums, executions) = (nodes(of_sums), nodes(of_executions));
    assert_eq!(sums.len(), executions.len());
    for (sums, executions) in sums.iter().zip(&executions) {
        for key in ["name", "depth", "parent", "slow_mean_ns", "fast_mean_ns", "delta_ns", "self_delta_ns"] {
            assert_eq!(sums[key], executions[key], "{key} of {executions}");
        }
        assert_eq!(sums["deviations"], executions["deviations"], "{executions}");
        assert_eq!(sums["slow_affected"], executions["slow_affected"]);
    }
    // No cause without a place, and together they are the difference.
    let causes = of_sums["causes"].as_array().unwrap();
    let sum: i64 = causes.iter().map(|cause| cause["extra_ns"].as_i64().unwrap()).sum();
    assert_eq!(Some(sum), of_sums["extra_ns"].as_i64());
}

#[test]
fn diff_of_partial_results_has_the_figures_of_the_executions() {
    let folder = folder();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    for (trace, slow, fast) in [(LOCK, "duration>=20ms", "duration<20ms"), (CPU, "duration>=6ms", "duration<=5ms")] {
        let file = built(folder.path(), trace, &[]);
        let groups = ["--slow", slow, "--fast", fast];
        let task = ["--task", "app:request"];
        answer(&[&["build", "--partial", &file, "-o", &path("p")][..], &groups, &task].concat());
        let json = |words: &[&str]| serde_json::from_slice(&answer(words)).unwrap();
        let of_sums: Value = json(&["diff", "--json", &path("p")]);
        let of_executions: Value = json(&[&["diff", "--json", &file][..], &groups, &task].concat());
        check_answer(&of_sums, &of_executions);
        // The first cause is in the same place.
        let first = |document: &Value| document["causes"][0].clone();
        let (sums, executions) = (first(&of_sums), first(&of_executions));
        assert_eq!((&sums["kind"], &sums["extra_ns"]), (&executions["kind"], &executions["extra_ns"]));
        let text = String::from_utf8(answer(&["diff", &path("p")])).unwrap();
        assert!(text.contains("from partial results") && text.contains("tracebox"), "{text}");
    }
}

/// Lengths are united first, and give the groups of all hosts.
#[test]
fn groups_are_those_of_united_lengths() {
    let folder = folder();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let databases = [built(folder.path(), LOCK, &[]), built(folder.path(), CPU, &[])];
    for (at, database) in databases.iter().enumerate() {
        answer(&["build", "--partial", database, "-o", &path(&format!("lengths-{at}"))]);
    }
    let all = path("lengths");
    answer(&["merge", &path("lengths-0"), &path("lengths-1"), "-o", &all]);
    refuses(&["diff", &all], 1, &["lengths of executions alone", "--groups", "--slow 'duration>="]);
    for (at, database) in databases.iter().enumerate() {
        answer(&["build", "--partial", "--groups", &all, database, "-o", &path(&format!("groups-{at}"))]);
    }
    let [one, other] = [path("groups-0"), path("groups-1")];
    let of_files: Value = serde_json::from_slice(&answer(&["diff", "--json", &one, &other])).unwrap();
    answer(&["merge", &other, &one, "-o", &path("groups")]);
    let of_sums: Value = serde_json::from_slice(&answer(&["diff", "--json", &path("groups")])).unwrap();
    assert_eq!(of_files, of_sums);
    let filter = |group: &str| of_sums[group]["filters"][0].as_str().unwrap().to_owned();
    let groups = ["--slow", &filter("slow"), "--fast", &filter("fast"), "--task", of_sums["task"].as_str().unwrap()];
    let words = [&["diff", "--json", &databases[0], &databases[1]][..], &groups].concat();
    check_answer(&of_sums, &serde_json::from_slice(&answer(&words)).unwrap());
    let count = |group: &str| of_sums[group]["count"].as_f64().unwrap() / of_sums["executions"].as_f64().unwrap();
    assert!((0.04..0.12).contains(&count("slow")) && (0.45..0.6).contains(&count("fast")), "{of_sums}");
}

#[test]
fn partial_results_are_refused_where_executions_are_needed() {
    let folder = folder();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (file, sums) = (built(folder.path(), LOCK, &[]), path("sums"));
    let build = ["build", "--partial", &file, "-o", &sums];
    for (filter, why) in [
        ("duration>=p95", "a percentile is another one on each host"),
        ("start>1s", "times since the begin of a recording"),
        ("execution=3", "are other ones on each host"),
    ] {
        refuses(&[&build[..], &["--slow", filter]].concat(), 2, &[why]);
    }
    refuses(&["build", "--partial", LOCK, "-o", &sums], 1, &["not a database", "whyslow build"]);
    refuses(&[&build[..], &["--history"]].concat(), 2, &["--history"]);
    answer(&[&build[..], &["--slow", "duration>=20ms"]].concat());
    for command in [&["explain"][..], &["stats", "count"], &["dump"], &["info"], &["anomalies"]] {
        refuses(&[command, &[&sums]].concat(), 1, &["sums without executions", "on the databases"]);
    }
    refuses(&["diff", &sums, "--slow", "duration>1ms"], 2, &["have their groups"]);
    // Which of several tasks is answered, and which others there are, is said where none was named.
    answer(&[&build[..], &["--slow", "duration>=20ms", "--fast", "duration<=5ms"]].concat());
    let asked = |words: &[&str]| -> Value {
        serde_json::from_slice(&answer(&[&["diff", "--json", &sums][..], words].concat())).unwrap()
    };
    let first = asked(&[]);
    assert_eq!((&first["task"], first["warnings"].as_array().unwrap().len()), (&"app:request".into(), 1));
    assert_eq!(first["warnings"][0], "the first of 2 tasks; --task names another: `client:call`");
    assert_eq!(asked(&["--task", "app:request"])["warnings"], serde_json::json!([]));
    refuses(&["diff", &sums, &file], 1, &["not a database"]);
    refuses(&["diff", &sums, LOCK], 1, &["no partial results", "whyslow build --partial"]);
    // A host whose executions pass no filter is there.
    answer(&[&build[..], &["--slow", "duration>=900s"]].concat());
    refuses(&["diff", &sums], 1, &["a group is empty", "duration>=900s"]);
}

/// Sums of 10^9 executions of a fleet, in as many contexts as a large program has.
fn fleet(hosts: usize, contexts: usize) -> FoundTotals {
    let (mut model, mut random) = (random_model::model(1, 1), Random::new(7));
    let mut nodes = vec![ContextId::at(0)];
    while nodes.len() < contexts {
        let name = model.names.intern(&format!("a_function_of_the_program_{}", nodes.len()));
        let kind = if nodes.len() % 9 == 0 { FrameKind::Call } else { FrameKind::Function };
        let parent = nodes[random.below(nodes.len())];
        nodes.push(model.contexts.child(Some(parent), Frame { kind, name }));
    }
    let of_host = |host: usize| {
        let mut digester = Digester::default();
        digester.add(&host.to_le_bytes());
        let mut totals = HostTotals { sources: [digester.finish()].into(), ..HostTotals::default() };
        for (group, executions) in [50_000, 500_000].into_iter().enumerate() {
            let sums = &mut totals.groups[group];
            (0..700).for_each(|i| sums.by_length.put(1_000_000 + i * 70_000, 1));
            sums.by_length.counts.values_mut().for_each(|count| *count = executions / 700);
            totals.by_length.add(&sums.by_length);
            sums.durations.n = executions;
            sums.squared_weights = executions.into();
            sums.durations.s1 = u128::from(executions) * 20_000_000;
            sums.durations.s2 = u128::from(executions) * 500_000_000_000_000;
            for context in &nodes {
                let mean = 1 + random.below(1 << 20) as u128;
                let having = 1 + random.below(executions as usize) as u64;
                let (sum, squares) = (mean * u128::from(having), mean * mean * u128::from(having));
                sums.contexts.push((*context, ContextTotals { having, sum, squares }));
            }
        }
        (format!("host-{host:04}"), totals)
    };
    let hosts: BTreeMap<String, HostTotals> = (0..hosts).map(of_host).collect();
    let groups = GroupTexts { slow: vec!["duration>=48ms".into()], fast: vec!["duration<=20ms".into()] };
    FoundTotals::new("app:request".into(), groups, &model, hosts)
}

#[test]
#[ignore = "slow: sums of 1,000 hosts in 2,000 contexts; prints how long a release binary takes"]
fn fleet_of_a_thousand_hosts_is_answered_within_a_gibibyte() {
    let folder = folder();
    let path = folder.path().join("fleet.partial");
    std::fs::write(&path, of_found(vec![fleet(1_000, 2_000)])).unwrap();
    let start = Instant::now();
    let out = answer(&["diff", "--json", "--threads", "2", "--memory", "1GiB", path.to_str().unwrap()]);
    let took = start.elapsed();
    let document: Value = serde_json::from_slice(&out).unwrap();
    assert_eq!((number(&document["slow"]["count"]), document["hosts"].as_array().unwrap().len()), (5e7, 1_000));
    println!("{} bytes of file, {took:?}", std::fs::metadata(&path).unwrap().len());
}

#[test]
fn hostile_names_of_hosts_and_tasks_are_drawn_clean() {
    let mut model = model_on_hosts(40, 3, 1);
    let host = model.names.intern("a\u{1b}[31m\nb");
    model.who.iter_mut().for_each(|who| who.host = host);
    let folder = folder();
    let path = folder.path().join("p");
    std::fs::write(&path, of_found(vec![found(&model, 5)])).unwrap();
    let text = String::from_utf8(answer(&["diff", path.to_str().unwrap()])).unwrap();
    assert!(!text.contains('\u{1b}') && text.contains("31m"), "{text}");
    assert_eq!(model.who[ThreadInfoId::at(0).index()].host, host);
}
