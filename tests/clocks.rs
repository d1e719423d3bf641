//! Hosts whose clocks differ: the packets between them lay all on one time line, and the critical path crosses it.
//!
//! The traces are written here, by hosts whose true offset and drift is known.

use crate::support::{ask, kernel_trace, spans};
use kernel_trace::{KernelTrace, segment};
use serde_json::Value;
use spans::span;
use std::path::PathBuf;
use whyslow::parts::analysis::clocks;
use whyslow::parts::analysis::path::walk;
use whyslow::parts::base::ctx::Ctx;
use whyslow::parts::base::notice::{Notice, Notices};
use whyslow::parts::base::time::{Ns, Timestamp};
use whyslow::parts::event::host::HostId;
use whyslow::parts::input::{Argument, Opened, Source, open};
use whyslow::parts::kernel::{Options, record};
use whyslow::parts::model::clock::HostClock;
use whyslow::parts::timeline::{SegmentKind, Timeline};

const SECOND: Ns = 1_000_000_000;
const START: Ns = 1_700_000_000 * SECOND;
const REQUESTS: Ns = 400;
const PERIOD: Ns = 10_000_000;
const CLIENT: i32 = 10;
const SERVER: i32 = 20;

/// The true time of a packet's way.
fn way(i: Ns) -> Ns {
    40_000 + i * 7919 % 90_000
}

/// The server works a millisecond, every 40th time nine.
fn work(i: Ns) -> Ns {
    if i % 40 == 7 { 9_000_000 } else { 1_000_000 }
}

/// The times of request `i`, by the true time: sent, arrived, answered, arrived.
fn course(i: Ns) -> [Ns; 4] {
    let sent = START + i * PERIOD + 1_000;
    let arrived = sent + way(i);
    let answered = arrived + 5_000 + work(i);
    [sent, arrived, answered, answered + way(i + 13)]
}

/// A client asks a server on another host; each writes by its own clock. `replies`: the answers are recorded as sent.
fn talk(a: &mut KernelTrace, b: &mut KernelTrace, replies: bool) {
    a.switch(START - 9_000, 0, 0, 0, CLIENT);
    b.switch(START - 9_000, 0, 0, 0, SERVER).switch(START - 5_000, 0, SERVER, 1, 0);
    for i in 0..REQUESTS {
        let seq = i as u32 * 100;
        let [sent, arrived, answered, back] = course(i);
        a.call_entry(sent - 1_000, 0, CLIENT, "ask").sent(sent, 0, CLIENT, segment(1, 2, seq));
        a.switch(sent + 2_000, 0, CLIENT, 1, 0);
        b.soft_irq_entry(arrived, 0, 0, 3).received(arrived, 0, 0, segment(1, 2, seq));
        b.waking(arrived + 1_000, 0, 0, SERVER, 0).soft_irq_exit(arrived + 2_000, 0, 0, 3);
        b.switch(arrived + 4_000, 0, 0, 0, SERVER);
        if replies {
            b.sent(answered, 0, SERVER, segment(2, 1, seq));
        }
        b.switch(answered + 1_000, 0, SERVER, 1, 0);
        a.soft_irq_entry(back, 0, 0, 3).received(back, 0, 0, segment(2, 1, seq));
        a.waking(back + 1_000, 0, 0, CLIENT, 0).soft_irq_exit(back + 2_000, 0, 0, 3);
        a.switch(back + 4_000, 0, 0, 0, CLIENT).call_exit(back + 6_000, 0, CLIENT, "ask", 1);
    }
}

struct Pair {
    _folder: tempfile::TempDir,
    paths: [PathBuf; 2],
}

/// Two recordings of the talk; the second host's clock as given.
fn recorded(uuids: [u128; 2], clock: impl Fn(Ns) -> Ns + 'static, replies: bool) -> Pair {
    let folder = tempfile::tempdir().unwrap();
    let paths = ["a", "b"].map(|name| folder.path().join(name));
    let mut a = KernelTrace::new("alpha", uuids[0]);
    let mut b = KernelTrace::new("beta", uuids[1]).with_clock(clock);
    talk(&mut a, &mut b, replies);
    a.write(&paths[0]);
    b.write(&paths[1]);
    Pair { _folder: folder, paths }
}

const TWO: [u128; 2] = [0x11, 0x22];

fn fitted(pair: &Pair, threads: usize) -> (Vec<Source>, Vec<HostClock>, Notices) {
    let arguments: Vec<Argument> = pair.paths.iter().map(|p| Argument::new(p.clone())).collect();
    let Opened::Traces(mut sources) = open(&arguments, &Ctx::new(2)).unwrap() else { panic!("no CTF") };
    let mut notices = Notices::default();
    let clocks = clocks::align(&mut sources, &mut notices, &Ctx::new(threads)).unwrap();
    (sources, clocks, notices)
}

fn recording(sources: &[Source]) -> Timeline {
    let traces: Vec<_> = sources.iter().map(|s| &s.trace).collect();
    record(&traces, &[], &Options::default(), &Ctx::new(2)).unwrap().0.seal()
}

/// The path of request `i`: whose time, of which kind, how long.
fn path(recording: &Timeline, i: Ns) -> Vec<(i32, SegmentKind, Ns)> {
    let client = recording.find_thread(HostId::at(0), CLIENT, Timestamp::new(START)).unwrap();
    let [sent, .., back] = course(i);
    let path = walk(recording, client, span(sent - 1_000, back + 6_000));
    let found = |s: &whyslow::parts::analysis::path::PathSegment| {
        (recording.thread(s.thread).unwrap().tid, s.kind, s.span.len())
    };
    path.iter().filter(|s| !s.span.is_empty()).map(found).collect()
}

/// The path goes over to the server: its own wait for the request, its work, the way back. `off` is how far the
/// fitted clock may be off.
fn crosses(recording: &Timeline, off: Ns) {
    for i in 1..REQUESTS {
        let found = path(recording, i);
        let kinds: Vec<_> = found.iter().map(|(tid, kind, _)| (*tid, *kind)).collect();
        let wanted = [
            (CLIENT, SegmentKind::Running),
            (SERVER, SegmentKind::Network),
            (SERVER, SegmentKind::Preempted),
            (SERVER, SegmentKind::Running),
            (CLIENT, SegmentKind::Network),
            (CLIENT, SegmentKind::Preempted),
            (CLIENT, SegmentKind::Running),
        ];
        assert_eq!(kinds, wanted, "request {i}");
        let [sent, arrived, answered, back] = course(i);
        let lengths =
            [(1, arrived + 1_000 - sent - 2_000), (3, answered - arrived - 4_000), (4, back + 1_000 - answered)];
        for (at, length) in lengths {
            assert!((found[at].2 - length).abs() <= off + 2, "request {i}, {at}: {} is not {length}", found[at].2);
        }
    }
}

#[test]
fn offset_and_drift_are_corrected_and_paths_cross_hosts() {
    for (ahead, ppm) in [(-3 * SECOND, 0), (250_000_000, 35), (0, -80), (86_400 * SECOND, 120)] {
        let clock = move |t: Ns| t + ahead + (t - START) * ppm / 1_000_000;
        let (sources, clocks, notices) = fitted(&recorded(TWO, clock, true), 2);
        assert_eq!((clocks[0].correction.offset, clocks[0].error), (0, Some(0)));
        let error = clocks[1].error.unwrap();
        assert!(error < 150_000, "{ahead} {ppm}: {error}");
        for t in [START, START + SECOND, START + REQUESTS * PERIOD] {
            let off = clocks[1].correction.apply(Timestamp::new(clock(t))).ns() - t;
            assert!(off.abs() <= error, "{ahead} {ppm}: {off} at {t}, error {error}");
        }
        assert_eq!((clocks[1].host.as_str(), clocks[1].packets), ("beta", 2 * REQUESTS as u64));
        assert_eq!(notices.count(Notice::ClocksFitted), 1);
        assert_eq!(notices.count(Notice::ClampedPackets), 0);
        assert_eq!(notices.count(Notice::ClockSkew) > 0, (ahead, ppm) != (0, 0));
        crosses(&recording(&sources), error);
    }
}

#[test]
fn one_way_traffic_bounds_the_clocks() {
    let (sources, clocks, notices) = fitted(&recorded(TWO, |t| t - 5_000_000, false), 1);
    assert_eq!((clocks[1].error, clocks[1].packets), (None, REQUESTS as u64));
    // The fastest took no time.
    let fastest = (0..REQUESTS).map(way).min().unwrap();
    assert_eq!(clocks[1].correction.offset, 5_000_000 - fastest);
    assert_eq!((notices.count(Notice::ClockSkew), notices.count(Notice::ClampedPackets)), (REQUESTS as u64, 0));
    assert!(recording(&sources).threads().iter().any(|t| t.tid == SERVER));
}

#[test]
fn one_clock_needs_no_fit() {
    let (sources, clocks, notices) = fitted(&recorded([TWO[0]; 2], |t| t, true), 2);
    assert_eq!(clocks.len(), 1);
    assert_eq!(clocks[0].traces, [0, 1]);
    assert!(notices.is_empty());
    let recording = recording(&sources);
    assert_eq!(recording.hosts().len(), 2);
    crosses(&recording, 0);
}

#[test]
fn unrelated_hosts_keep_their_clocks() {
    let pair = recorded(TWO, |t| t + SECOND, true);
    let other = tempfile::tempdir().unwrap();
    let mut c = KernelTrace::new("gamma", 0x33);
    c.switch(START, 0, 0, 0, 5).sent(START + 10, 0, 5, segment(3, 4, 1)).switch(START + 20, 0, 5, 1, 0);
    c.write(other.path());
    let mut arguments: Vec<Argument> = pair.paths.iter().map(|p| Argument::new(p.clone())).collect();
    arguments.insert(0, Argument::new(other.path().to_owned()));
    let Opened::Traces(mut sources) = open(&arguments, &Ctx::new(2)).unwrap() else { panic!("no CTF") };
    let clocks = clocks::align(&mut sources, &mut Notices::default(), &Ctx::new(1)).unwrap();
    let found: Vec<_> = clocks.iter().map(|c| (c.host.as_str(), c.error.is_some(), c.packets > 0)).collect();
    // The two that exchange packets share a time line; its offset to the first host's is not known.
    assert_eq!(found, [("gamma", true, false), ("alpha", false, false), ("beta", false, true)]);
    assert!((clocks[2].correction.offset + SECOND).abs() < 100_000);
}

fn run(pair: &Pair, words: &[&str]) -> Vec<u8> {
    let out = ask::run(ask::program().args(words).args(&pair.paths));
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    out.stdout
}

#[test]
fn commands_report_clock_corrections_on_any_workers() {
    let pair = recorded(TWO, |t| t - 2 * SECOND + (t - START) / 20_000, true);
    let explain = ["explain", "--json", "--task", "ask"];
    for words in [&["info", "--full", "--json"][..], &explain] {
        let want = run(&pair, &[words, &["--threads", "1", "--chunk", "100000000"]].concat());
        for more in [["1", "0"], ["2", "4096"], ["3", "0"], ["7", "20000"]] {
            let got = run(&pair, &[words, &["--threads", more[0], "--chunk", more[1]]].concat());
            assert!(got == want, "{words:?} {more:?}");
        }
    }
    let info: Value = serde_json::from_slice(&run(&pair, &["info", "--full", "--json"])).unwrap();
    let clock = &info["clocks"][1];
    assert_eq!(clock["host"], "beta");
    assert_eq!(clock["packets"], 2 * REQUESTS);
    let (offset, error) = (clock["offset_ns"].as_i64().unwrap(), clock["error_ns"].as_i64().unwrap());
    assert!((offset - 2 * SECOND).abs() <= error && error < 200_000, "{clock}");
    assert!((clock["drift_ppb"].as_f64().unwrap() + 50_000.0).abs() < 10_000.0, "{clock}");
    let said = info["warnings"].to_string();
    assert!(said.contains("1 host was aligned") && said.contains("sent, by the recorded clocks"), "{said}");
    // The slow requests are those in which the server works longer.
    let answer: Value = serde_json::from_slice(&run(&pair, &explain)).unwrap();
    let first = &answer["causes"][0];
    assert_eq!((first["kind"].as_str(), first["by"]["host"].as_str()), (Some("blocked.network"), Some("beta")));
    assert!((first["extra_ns"].as_i64().unwrap() - 8_000_000).abs() < 300_000, "{first:#}");
    let text = String::from_utf8(run(&pair, &["info", "--full"])).unwrap();
    assert!(text.contains("clock of beta: "), "{text}");
}
