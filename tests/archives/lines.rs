//! Ranks as lines of a timeline, through `query`: states of archives with a known answer, regions and computation of
//! recorded archives compared with a plain walk over their dumped records, waiting compared with Scalasca's.

use super::*;
use serde_json::Value as Json;

/// An interval: from, to, value.
type Interval = (i64, i64, Option<String>);

const FIXTURES: [&str; 3] = ["hybrid", "late_sender", "regridding"];

fn fixture(name: &str) -> String {
    format!("fixtures/archives/{name}")
}

/// By attribute: the intervals of a pattern.
fn query(archive: &str, pattern: &str, more: &[&str]) -> BTreeMap<String, Vec<Interval>> {
    let words = ["query", "--json", "--check", "--attribute", pattern];
    let found = ask::json(&[&words, more, &[archive]].concat());
    let mut all: BTreeMap<String, Vec<Interval>> = BTreeMap::new();
    for interval in found["intervals"].as_array().unwrap() {
        let time = |key: &str| interval[key].as_i64().unwrap();
        let value = interval["value"].as_str().map(str::to_owned);
        let of = all.entry(interval["attribute"].as_str().unwrap().to_owned()).or_default();
        of.push((time("start_ns"), time("end_ns"), value));
    }
    all
}

fn known(from: u64, to: u64, value: &str) -> Interval {
    (from as i64, to as i64, Some(value.to_owned()))
}

/// Rank 1 waits for a message of rank 0, then both for rank 2 in a barrier; rank 0 waits for what no rank sends.
fn late() -> Recording {
    let mut run = Recording::new(3);
    let world = run.world;
    run.work(0, "assemble", MS, 5 * MS);
    run.call(0, "MPI_Send", 5 * MS, 5 * MS + US, |e| e.send(5 * MS + 100, 1, world, 1, 64));
    run.call(1, "MPI_Recv", 2 * MS, 5 * MS + 2 * US, |e| e.recv(5 * MS + 2 * US, 0, world, 1, 64));
    run.work(0, "MPI_Recv", 6 * MS, 7 * MS);
    let meeting = [(8 * MS, 10 * MS), (8 * MS, 10 * MS), (9 * MS, 10 * MS)];
    run.meet("MPI_Barrier", 0, None, &meeting);
    run
}

#[test]
fn states_of_ranks_are_computing_waiting_and_transferring() {
    let (_folder, path) = late().finish();
    let states = query(path.to_str().unwrap(), "threads/*/state", &[]);
    let expected = [
        (
            "threads/rank 0/state",
            vec![
                known(0, 6 * MS, "running"),
                known(6 * MS, 7 * MS, "blocked"),
                known(7 * MS, 8 * MS, "running"),
                known(8 * MS, 9 * MS, "blocked"),
                known(9 * MS, 10 * MS, "network"),
                known(10 * MS, 11 * MS, "running"),
            ],
        ),
        (
            "threads/rank 1/state",
            vec![
                known(0, 2 * MS, "running"),
                known(2 * MS, 5 * MS, "blocked"),
                known(5 * MS, 5 * MS + 2 * US, "network"),
                known(5 * MS + 2 * US, 8 * MS, "running"),
                known(8 * MS, 9 * MS, "blocked"),
                known(9 * MS, 10 * MS, "network"),
                known(10 * MS, 11 * MS, "running"),
            ],
        ),
        (
            "threads/rank 2/state",
            vec![known(0, 9 * MS, "running"), known(9 * MS, 10 * MS, "network"), known(10 * MS, 11 * MS, "running")],
        ),
    ];
    assert_eq!(states, expected.map(|(name, intervals)| (name.to_owned(), intervals)).into());
    let at = query(path.to_str().unwrap(), "threads/rank 1/region", &["--at", "3ms"]);
    assert_eq!(at["threads/rank 1/region"], [known(2 * MS, 5 * MS + 2 * US, "MPI_Recv")]);
    let longest = query(path.to_str().unwrap(), "threads/*/state", &["--value", "blocked", "--longest", "1"]);
    assert_eq!(longest["threads/rank 1/state"], [known(2 * MS, 5 * MS, "blocked")]);
    // The state of most of a cell.
    let cells = query(path.to_str().unwrap(), "threads/rank 2/state", &["--points", "2"]);
    let values = cells["threads/rank 2/state"].iter().map(|cell| cell.2.as_deref());
    assert_eq!(values.collect::<Vec<_>>(), [Some("running"), Some("running")]);
    let glance = ask::json(&["query", "--json", "--overview", "--points", "11", path.to_str().unwrap()]);
    assert_eq!(glance["cpus"], 3);
    let of = |cell: usize, key: &str| glance["cells"][cell][key].as_f64().unwrap();
    assert_eq!((of(0, "cpu_use"), of(9, "on_network"), of(9, "cpu_use")), (1.0, 3.0, 0.0));
    assert!((of(3, "cpu_use") - 2.0 / 3.0).abs() < 1e-9, "rank 1 waits");
}

#[test]
fn two_locations_of_one_name_are_two_lines() {
    let mut run = Recording::new(1);
    let queues = ["queue", "queue"].map(|name| run.writer.queue(0, name));
    for (queue, at) in queues.into_iter().zip([MS, 2 * MS]) {
        run.work(queue, "kernel", at, at + MS);
    }
    let (_folder, path) = run.finish();
    let regions = query(path.to_str().unwrap(), "threads/*/region", &["--value", "kernel"]);
    let spans: Vec<(i64, i64)> = regions.values().map(|of| (of[0].0, of[0].1)).collect();
    let ms = MS as i64;
    assert_eq!(spans, [(ms, 2 * ms), (2 * ms, 3 * ms)], "{regions:?}");
}

/// A plain walk over the dumped records: by rank or thread the changes of the innermost region.
fn walked(archive: &str) -> BTreeMap<String, Vec<Interval>> {
    let dumped = String::from_utf8(ask::output(&["dump", archive]).stdout).unwrap();
    let mut open: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut since: BTreeMap<String, i64> = BTreeMap::new();
    let mut all: BTreeMap<String, Vec<Interval>> = BTreeMap::new();
    for line in dumped.lines() {
        let words: Vec<&str> = line.split('\t').collect();
        let (time, place): (i64, String) = (words[0].parse().unwrap(), format!("threads/{}/region", words[1]));
        let regions = open.entry(place.clone()).or_default();
        let from = since.insert(place.clone(), time).unwrap_or(time);
        let intervals = all.entry(place).or_default();
        match intervals.last_mut().filter(|last| last.2 == regions.last().cloned()) {
            Some(last) => last.1 = time,
            None if from < time => intervals.push((from, time, regions.last().cloned())),
            None => {}
        }
        match words[2] {
            "Enter" => regions.push(words[3].to_owned()),
            "Leave" => assert_eq!(regions.pop().as_deref(), Some(words[3])),
            _ => {}
        }
    }
    all
}

#[test]
fn regions_are_those_of_a_plain_walk_over_the_records() {
    for name in FIXTURES {
        let archive = fixture(name);
        let known = |mut all: BTreeMap<String, Vec<Interval>>| {
            all.values_mut().for_each(|of| of.retain(|interval| interval.2.is_some()));
            all
        };
        let (found, expected) = (known(query(&archive, "threads/*/region", &[])), known(walked(&archive)));
        assert_eq!(found, expected, "{name}");
        assert!(expected.values().flatten().count() > 100, "{name}");
    }
}

#[test]
fn ranks_compute_outside_of_calls_that_communicate() {
    let total = |intervals: &[Interval], is: &dyn Fn(&str) -> bool| -> i64 {
        let of = intervals.iter().filter(|interval| interval.2.as_deref().is_some_and(is));
        of.map(|(from, to, _)| to - from).sum()
    };
    // All MPI calls of this run communicate but those at its begin.
    let archive = fixture("late_sender");
    let (states, regions) = (query(&archive, "threads/*/state", &[]), walked(&archive));
    let quick = ["MPI_Comm_rank", "MPI_Comm_size", "MPI_Send"];
    for (place, own) in &states {
        let regions = &regions[&place.replace("/state", "/region")];
        let known: Vec<&Interval> = own.iter().filter(|interval| interval.2.is_some()).collect();
        let life = known.last().unwrap().1 - known[0].0;
        let inside = total(regions, &|name| name.starts_with("MPI_") && !quick.contains(&name));
        let sending = total(regions, &|name| name == "MPI_Send");
        let away = total(own, &|state| state != "running");
        assert!((inside..=inside + sending).contains(&away), "{place}: {inside} + {sending}, {away}");
        assert_eq!(life, total(own, &|_| true), "{place}: states tile the life");
    }
    // Scalasca's late senders, of fixtures/archives/README.md; and the flow control of late receivers.
    let receives = |place: &str| {
        let regions = &regions[&place.replace("/state", "/region")];
        regions.iter().filter(|region| region.2.as_deref() == Some("MPI_Recv")).cloned().collect::<Vec<_>>()
    };
    let late: i64 = states
        .iter()
        .map(|(place, own)| {
            let receives = receives(place);
            let in_receive = |state: &&Interval| {
                let at = receives.partition_point(|receive| receive.1 <= state.0);
                state.2.as_deref() == Some("blocked") && receives.get(at).is_some_and(|receive| receive.0 <= state.0)
            };
            own.iter().filter(in_receive).map(|(from, to, _)| to - from).sum::<i64>()
        })
        .sum();
    assert_eq!((late + 5_000) / 10_000, 74_794, "747.94 ms");
}

#[test]
fn history_file_of_a_run_answers_queries_like_its_archive() {
    let folder = tempfile::tempdir().unwrap();
    for name in FIXTURES {
        let archive = fixture(name);
        let kept = |workers: &str| {
            let file = folder.path().join(format!("{name}-{workers}.history")).to_str().unwrap().to_owned();
            ask::output(&["build", "--history", "--check", "--threads", workers, &archive, "-o", &file]);
            file
        };
        let files = ["1", "2", "7"].map(kept);
        let [one, two, seven] = files.each_ref().map(|file| std::fs::read(file).unwrap());
        assert!(one == two && two == seven, "{name}: serial equals parallel");
        let questions: [&[&str]; 5] = [
            &["--attribute", "threads/*/state"],
            &["--attribute", "threads/*/region", "--longest", "20"],
            &["--attribute", "threads/*/state", "--points", "50"],
            &["--attribute", "threads/*/region", "--at", "300ms", "--at", "1ms"],
            &["--overview"],
        ];
        for question in questions {
            let answer = |of: &str| ask::json(&[&["query", "--json", "--check"], question, &[of]].concat());
            let (from_file, from_archive): (Json, Json) = (answer(&files[0]), answer(&archive));
            assert_eq!(from_file, from_archive, "{name} {question:?}");
        }
    }
    let file = folder.path().join("hybrid-1.history").to_str().unwrap().to_owned();
    let other = folder.path().join("other").to_str().unwrap().to_owned();
    let build = format!("build -o {other}");
    for question in ["explain", "diff", "report", "anomalies", "stats cpu", "stats io", "info --full", &build] {
        let words: Vec<&str> = question.split(' ').chain([file.as_str()]).collect();
        ask::refuses(&words, 1, &["ask other questions of the archive"]);
    }
}
