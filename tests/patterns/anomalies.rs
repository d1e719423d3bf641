//! Limits, responsible events and propagation paths: the examples of ALGORITHMS.md 9.4 and 9.5.

use super::generator::{CALL, LATENCY};
use super::operations::{MS, OperationsBuilder};
use whyslow::parts::analysis::patterns::PatternAnalysis;
use whyslow::parts::base::ctx::Ctx;
use whyslow::parts::base::notice::Notices;
use whyslow::parts::base::time::Ns;
use whyslow::parts::delays::anomalies;
use whyslow::parts::event::operation::{OperationKind, SendCompletion};
use whyslow::parts::explain;
use whyslow::parts::explain::iterations;
use whyslow::parts::model::anomalies::Anomalies;
use whyslow::parts::model::carrier::Carrier;
use whyslow::parts::model::execution::ContextTime;
use whyslow::parts::model::settings::{PatternVerdict, Settings, ThresholdRule};

/// One stream that repeats `a b` with the given durations, then stops.
fn repeated(durations_ms: &[Ns]) -> OperationsBuilder {
    let (mut run, mut now) = (OperationsBuilder::new(1), 0);
    for d in durations_ms {
        run.add(0, "a", OperationKind::Work, now, now + MS / 2);
        run.add(0, "b", OperationKind::Work, now + MS / 2, now + d * MS);
        now += d * MS;
    }
    run
}

#[test]
fn limits_equal_those_of_the_handbook() {
    let settings = Settings::default();
    let (_, found) = repeated(&[10, 10, 10, 11, 11, 11, 12, 12, 13, 30]).analyse(&settings, 1);
    let pattern = found.patterns.iter().find(|p| !p.is_loop).unwrap();
    assert_eq!((pattern.max_ref_ns, pattern.limit_ns, pattern.verdict), (12 * MS, 24 * MS, PatternVerdict::Selected));
    assert_eq!(found.anomalies.len(), 1);
    let anomaly = &found.anomalies[0];
    assert_eq!((anomaly.local.len(), anomaly.factor), (30 * MS, 2.5));
    let blamed: Vec<_> = anomaly.responsible.iter().map(|r| r.what.as_str()).collect();
    assert_eq!(blamed, ["b"]);

    let (_, found) = repeated(&[10, 10, 10, 11, 11, 11, 12, 12, 13, 23]).analyse(&settings, 1);
    assert_eq!(found.patterns.iter().find(|p| !p.is_loop).unwrap().verdict, PatternVerdict::Regular);
    assert!(found.anomalies.is_empty());

    let (_, found) = repeated(&[10, 10, 10, 11, 11, 11, 12, 12, 30]).analyse(&settings, 1);
    assert!(found.patterns.iter().all(|p| p.verdict == PatternVerdict::TooFew), "nine are too few");
}

#[test]
fn settings_change_without_mining_again() {
    let (mined, _) = repeated(&[10, 10, 10, 11, 11, 11, 12, 12, 13, 30]).analyse(&Settings::default(), 1);
    let with = |q, s, limit| {
        let found = anomalies::of_patterns(&mined, &Settings { q, s, limit }, &Ctx::new(1)).unwrap();
        found.patterns.iter().find(|p| !p.is_loop).map(|p| (p.max_ref_ns / MS, p.limit_ns / MS)).unwrap()
    };
    assert_eq!(with(0.5, 2.0, ThresholdRule::Quotient), (11, 22));
    assert_eq!(with(1.0, 2.0, ThresholdRule::Quotient), (30, 60));
    assert_eq!(with(0.75, 3.0, ThresholdRule::Quotient), (12, 36));
    // Median 11, median absolute deviation 1: 11 + 5 * 1.4826.
    assert_eq!(with(0.75, 2.0, ThresholdRule::Robust), (12, 18));
}

#[test]
fn clock_granularity_makes_no_anomalies() {
    let mut run = OperationsBuilder::new(1);
    for i in 0..100 {
        // Durations of 0 to 900 ns: nothing reaches twice a microsecond.
        let now = i * 1_000;
        run.add(0, "a", OperationKind::Work, now, now + i % 10 * 10);
        run.add(0, "b", OperationKind::Work, now + 200, now + 200 + i % 7 * 100);
    }
    let (_, found) = run.analyse(&Settings::default(), 1);
    assert!(found.anomalies.is_empty(), "{:?}", found.anomalies);
}

// ---- 9.5: responsible events and paths -----------------------------------------------------------------------------

/// The worked example in the manner of the paper's Fig. 3b, after 20 usual turns (all events 5).
fn figure_3b(thread_1_is_usual: bool) -> Anomalies {
    let mut run = OperationsBuilder::new(3);
    let usual = |run: &mut OperationsBuilder, now: Ns| {
        let five = |n: Ns| (now + 5 * n * MS, now + 5 * (n + 1) * MS);
        let each = |run: &mut OperationsBuilder, stream, names: &[(&str, OperationKind)]| {
            for (n, (name, kind)) in (0..).zip(names) {
                run.add(stream, name, *kind, five(n).0, five(n).1);
            }
        };
        each(run, 0, &[("SEND", OperationKind::Work), ("WORK", OperationKind::Work), ("RECV", OperationKind::Receive)]);
        each(run, 1, &[("RECV", OperationKind::Receive), ("SEND", OperationKind::Work)]);
        each(run, 2, &[("RECV", OperationKind::Receive), ("SEND", OperationKind::Work)]);
    };
    for turn in 0..20 {
        usual(&mut run, turn * 15 * MS);
    }
    if thread_1_is_usual {
        // Occurrences on thread 1 that make 45 usual: its limit is over it.
        for _ in 0..80 {
            let now = run.operations.sequences[1].operations.last().unwrap().end.ns();
            run.add(1, "OTHER", OperationKind::Receive, now, now + 40 * MS);
            run.add(1, "SEND2", OperationKind::Work, now + 40 * MS, now + 45 * MS);
        }
    }
    let start = run.operations.sequences.iter().map(|s| s.operations.last().unwrap().end).max().unwrap().ns();
    let (receive_1, send_1) = if thread_1_is_usual { ("OTHER", "SEND2") } else { ("RECV", "SEND") };
    let mut at =
        |stream, name: &str, kind, from: Ns, to: Ns| run.add(stream, name, kind, start + from * MS, start + to * MS);
    let send_0 = at(0, "SEND", OperationKind::Work, 0, 40);
    at(0, "WORK", OperationKind::Work, 40, 45);
    let recv_2 = at(0, "RECV", OperationKind::Receive, 45, 56);
    let recv_0 = at(1, receive_1, OperationKind::Receive, 2, 42);
    let send_1 = at(1, send_1, OperationKind::Work, 42, 47);
    let recv_1 = at(2, "RECV", OperationKind::Receive, 3, 49);
    let send_2 = at(2, "SEND", OperationKind::Work, 49, 54);
    run.send(send_0, recv_0);
    run.send(send_1, recv_1);
    run.send(send_2, recv_2);
    run.analyse(&Settings::default(), 1).1
}

fn steps(found: &Anomalies) -> Vec<Vec<(u32, &str)>> {
    found.paths.iter().map(|p| p.steps.iter().map(|s| (s.stream, s.what.as_str())).collect()).collect()
}

#[test]
fn path_follows_the_example_of_figure_3b() {
    let found = figure_3b(false);
    assert_eq!(steps(&found), [vec![(0, "SEND"), (1, "RECV"), (2, "RECV"), (0, "RECV")]]);
    assert_eq!((found.summary.sources, found.summary.longest_path, found.summary.anomalies), (1, 3, 3));
    let excess: Vec<Ns> = found.paths[0].steps.iter().map(|s| s.excess_ns / MS).collect();
    assert_eq!(excess, [35, 35, 41, 6]);
    let sources: Vec<u32> = found.anomalies.iter().filter(|a| a.source).map(|a| a.stream).collect();
    assert_eq!(sources, [0], "the occurrence of thread 0 holds both the source and the end of the path");
}

#[test]
fn path_begins_after_a_usual_occurrence() {
    let found = figure_3b(true);
    let behind = vec![(2, "RECV"), (0, "RECV")];
    assert!(steps(&found).contains(&behind), "{:?}", steps(&found));
    assert_eq!(found.summary.longest_path, 1);
}

/// Rank 0 sends to rank 1, then to rank 2, which is now and then late to receive and for which no rank waits. Once rank
/// 1 computes 40 ms too long: a message of this many bytes waits for it, if it is too large to be copied.
fn late_receiver(bytes: u32) -> (PatternAnalysis, Anomalies) {
    let mut run = OperationsBuilder::new(3);
    run.operations.one_clock = true;
    let mut now: [Ns; 3] = [0; 3];
    for turn in 0..40 {
        now[0] += 5 * MS;
        now[1] += if turn == 20 { 45 } else { 5 } * MS;
        now[2] += if turn % 4 == 0 { 6 * MS } else { 0 };
        let (sends, posts) = (now[0], now[1]);
        let done = sends.max(posts) + MS / 10;
        let send = run.add(0, "MPI_Send", OperationKind::Work, sends, done);
        let receive = run.add(1, "MPI_Recv", OperationKind::Receive, posts, done);
        run.send(send, receive);
        run.operations.send_completions.push(SendCompletion {
            from: send,
            done: send.operation,
            posted: receive,
            bytes,
        });
        let copied = done + MS / 100;
        let second = run.add(0, "MPI_Send", OperationKind::Work, done, copied);
        let there = copied.max(now[2]) + LATENCY;
        let receive = run.add(2, "MPI_Recv", OperationKind::Receive, now[2], there);
        run.send(second, receive);
        let (from, done_by) = (second, second.operation);
        run.operations.send_completions.push(SendCompletion { from, done: done_by, posted: receive, bytes: 8 });
        run.add(1, "MPI_Test", OperationKind::Work, done, done + CALL);
        run.add(2, "MPI_Test", OperationKind::Work, there, there + CALL);
        now = [copied, done + CALL, there + CALL];
    }
    run.analyse(&Settings::default(), 1)
}

#[test]
fn late_receiver_holds_its_sender() {
    let (mined, found) = late_receiver(100_000);
    assert_eq!(steps(&found), [vec![(1, "after MPI_Test"), (0, "MPI_Send"), (2, "MPI_Recv")]]);
    let carrier: Vec<_> = found.paths[0].steps.iter().map(|s| s.carrier).collect();
    assert_eq!(carrier, [None, Some(Carrier::Rendezvous), Some(Carrier::Message)]);
    assert_eq!(found.summary.sources, 1);
    // Both victims waited 40 ms less what they usually wait.
    assert!((75..80).contains(&(found.paths[0].affected_ns / MS)), "{}", found.paths[0].affected_ns);
    let kinds: Vec<_> = found.paths[0].steps.iter().map(|s| s.kind.name()).collect();
    assert_eq!(kinds, ["gap", "send", "receive"]);
    // And the sender's slow iteration is the receiver's computation.
    let notices = Notices::default();
    let model = iterations::iterations(&mined, 0, "run", "host", &notices, &Ctx::new(1)).unwrap();
    assert!(explain::check(&model, 1).is_empty());
    let senders = (0..model.executions.len()).filter(|e| model.executions.who.at(*e).raw() == 0);
    let spent = senders.flat_map(|e| model.executions.own.row(e)).map(|ContextTime { context, ns }| {
        let above = std::iter::successors(Some(context), |c| model.contexts.parent(*c));
        let mut names: Vec<&str> = above.map(|c| model.names.get(model.contexts.frame(c).name)).collect();
        names.reverse();
        (ns / MS as u64, names.join(" > "))
    });
    let (ms, path) = spent.max().unwrap();
    // But for what rank 1 began its computation earlier by.
    assert_eq!((ms, path.as_str()), (39, "rank > MPI_Send > rank 1 > computation after MPI_Test"));
}

#[test]
fn small_send_held_by_its_receiver_is_flow_control() {
    // Others of 8 bytes were left before their receive, so that no size is too large to be copied: there was no room.
    let (_, found) = late_receiver(8);
    assert_eq!(steps(&found)[0], [(1, "after MPI_Test"), (0, "MPI_Send"), (2, "MPI_Recv")]);
    assert_eq!(found.paths[0].steps[1].carrier, Some(Carrier::FlowControl));
}
