//! `whyslow timeline`: the states of many threads over time, beside what `query` says of each.

use crate::support::ask;
use ask::{fixture, json, run, said, whyslow};
use std::collections::{BTreeMap, BTreeSet};
use whyslow::parts::base::ctx::Ctx;
use whyslow::parts::input::Argument;
use whyslow::parts::model::thread_lanes::{LaneOwner, LanesRequest};
use whyslow::parts::session::{OpenOptions, Session};
use whyslow::parts::symbols::files::SymbolPaths;

/// The output of a command that succeeds.
fn printed(words: &[&str]) -> String {
    let out = run(&mut whyslow(words));
    assert!(out.status.success(), "{words:?}: {}", said(&out));
    String::from_utf8(out.stdout).unwrap()
}

fn trace(name: &str) -> String {
    fixture(name).to_str().unwrap().to_owned()
}

#[test]
fn lanes_add_up_to_what_query_lists() {
    let lock = trace("lock-contention");
    let (from, to) = ("3s", "8.5s");
    let found = json(&["timeline", "--json", "--rows", "500", "--columns", "23", "--from", from, "--to", to, &lock]);
    let (start, end) = (found["start_ns"].as_i64().unwrap(), found["end_ns"].as_i64().unwrap());
    assert_eq!(end - start, 5_500_000_000);
    let lanes = found["lanes"].as_array().unwrap();
    let of_tid = |tid: i64| lanes.iter().find(|lane| lane["tid"] == tid);
    let range = format!("{from}..{to}");
    let states = json(&["query", "--json", "--attribute", "threads/*/state", "--range", &range, &lock]);
    let mut times: BTreeMap<i64, BTreeMap<String, i64>> = BTreeMap::new();
    for interval in states["intervals"].as_array().unwrap() {
        let tid = interval["attribute"].as_str().unwrap().split('/').nth(1).unwrap().parse().unwrap();
        let inside = interval["end_ns"].as_i64().unwrap().min(end) - interval["start_ns"].as_i64().unwrap().max(start);
        if let Some(state) = interval["value"].as_str().filter(|_| inside > 0) {
            *times.entry(tid).or_default().entry(state.to_owned()).or_default() += inside;
        }
    }
    assert!(times.len() > 50);
    for (tid, expected) in times {
        let lane = of_tid(tid).unwrap_or_else(|| panic!("{tid} has no lane"));
        let mut summed: BTreeMap<String, i64> = BTreeMap::new();
        for cell in lane["cells"].as_array().unwrap().iter().filter(|cell| !cell.is_null()) {
            for (state, ns) in cell["times_ns"].as_object().unwrap() {
                *summed.entry(state.clone()).or_default() += ns.as_i64().unwrap();
            }
        }
        summed.remove("unknown");
        assert_eq!(summed, expected, "{tid}");
    }
}

#[test]
fn text_has_a_letter_for_each_column_and_the_rest_in_one_lane() {
    let text = printed(&["timeline", "--rows", "6", "--columns", "30", "--cpus", &trace("lock-contention")]);
    let cells: Vec<&str> = text.lines().filter_map(|line| line.split_once(" |").map(|(_, cells)| cells)).collect();
    assert_eq!(cells.len(), 2 + 6, "{text}");
    assert!(cells.iter().all(|cells| cells.len() <= 30) && cells[0].contains('R'), "{text}");
    assert!(text.contains("CPU 0") && text.contains("more threads") && text.contains("the busiest threads"), "{text}");
    let legend = text.lines().last().unwrap();
    assert!(legend.contains("R running") && legend.contains("+ active for"), "{text}");
    let of_run = printed(&["timeline", fixture_archive().as_str()]);
    assert!(of_run.contains("rank 0 ") && of_run.contains("R computing, b waiting"), "{of_run}");
    assert!(of_run.find("rank 0 ").unwrap() < of_run.find("rank 1 ").unwrap(), "by number: {of_run}");
}

fn fixture_archive() -> String {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/archives/late_sender/trace");
    path.to_str().unwrap().to_owned()
}

#[test]
fn picture_is_one_file_that_loads_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("lanes.svg");
    printed(&["timeline", "-o", file.to_str().unwrap(), "--rows", "9", &trace("lock-contention")]);
    let svg = std::fs::read_to_string(&file).unwrap();
    assert!(svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\"") && svg.trim_end().ends_with("</svg>"));
    assert_eq!(svg.matches("http").count(), 1, "it names its format and nothing else");
    assert_eq!(svg.matches("<svg x=\"0\"").count(), 9);
    assert!(svg.contains("<title>") && svg.contains("ledgerd") && svg.contains(">runnable</text>"));
}

#[test]
fn wrong_questions_get_one_line() {
    let lock = trace("lock-contention");
    let cases: [(&[&str], i32, &str); 7] = [
        (&["--from", "5s", "--to", "4s"], 2, "--from: no time before --to"),
        (&["--from", "90s"], 2, "--from"),
        (&["--from", "90s", "--to", "99s"], 2, "nothing was recorded then"),
        (&["--only", "no such thread"], 1, "--only takes"),
        (&["--rows", "1"], 2, "--rows"),
        (&["--rows", "5000", "--columns", "10000"], 2, "more than 100000"),
        (&["-o", "lanes.png"], 2, "FILE.svg"),
    ];
    for (words, status, part) in cases {
        let out = run(&mut whyslow([&["timeline", &lock], words].concat()));
        let line = said(&out);
        assert_eq!((out.status.code(), line.trim_end().lines().count()), (Some(status), 1), "{words:?}: {line}");
        assert!(line.starts_with("whyslow: ") && line.contains(part), "{words:?}: {line}");
    }
    let folder = tempfile::tempdir().unwrap();
    let database = folder.path().join("a.why").to_str().unwrap().to_owned();
    printed(&["build", &lock, "-o", &database]);
    let out = run(&mut whyslow(["timeline", &database]));
    assert!(
        out.status.code() == Some(1) && said(&out).contains("run `whyslow timeline` on the original"),
        "{}",
        said(&out)
    );
}

#[test]
fn a_moment_has_functions_system_call_and_waker() {
    let ctx = Ctx::new(2);
    let folder = fixture("lock-contention");
    let traces = [Argument::new(folder.clone())];
    let mut session = Session::open(&traces, &OpenOptions::default(), &ctx).unwrap();
    let places = SymbolPaths { folders: vec![folder.join("bin")], ..SymbolPaths::default() };
    let recorded = session.history("timeline", &ctx).unwrap();
    let only = vec!["ledgerd".to_owned()];
    let span = recorded.history.window();
    let request = LanesRequest { span, columns: 400, most: 100, only, ..LanesRequest::default() };
    let lanes = recorded.lanes().lanes(&request, &ctx).unwrap();
    let mut functions = BTreeSet::new();
    let mut wakers = BTreeSet::new();
    for lane in &lanes.lanes {
        let LaneOwner::Thread(thread) = &lane.owner else { panic!("{:?} is no thread", lane.owner) };
        for column in 0..lanes.grid.columns() {
            let at = lanes.grid.span(column).start;
            let moment = recorded.moment((thread.number, at), || session.symbol_paths(&places), &ctx).unwrap();
            // A moment is outside of the thread's life, or in the segment that the cell counts.
            let Some(moment) = moment else { continue };
            assert!(moment.thread.number == thread.number && moment.span.contains(at));
            assert!(lane.cells[column][moment.kind as usize] > 0, "{:?} at {at}", thread.names);
            functions.extend(moment.functions.iter().map(|name| (thread.names.name.clone(), name.clone())));
            wakers.extend(moment.waker.map(|(waker, _)| (thread.names.name.clone(), waker.names.name)));
        }
    }
    let has = |all: &BTreeSet<(String, String)>, thread: &str, other: &str| {
        all.iter().any(|(of, name)| of == thread && name.contains(other))
    };
    assert!(
        has(&functions, "journal", "expensive_flush") && has(&functions, "worker", "handle_request"),
        "{functions:?}"
    );
    assert!(has(&wakers, "worker", "journal"), "{wakers:?}");
}
