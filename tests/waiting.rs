//! Waiting in totals: each wait state by hand, and generated runs with steady imbalance, serialisation, steps of other
//! structure and nothing at all. The generated runs are written as OTF2 archives and read back.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

#[path = "support/operations.rs"]
mod operations;
#[path = "support/otf2/mod.rs"]
mod otf2;
#[path = "support/random.rs"]
mod random;

use operations::{MS, OperationsBuilder, US};
use random::Random;
use std::collections::BTreeMap;
use whyslow::analysis::mpi::WaitAnalysis;
use whyslow::analysis::patterns::PatternAnalysis;
use whyslow::base::ctx::Ctx;
use whyslow::base::time::{Ns, Timestamp};
use whyslow::event::mpi;
use whyslow::event::operation::{CollectiveKind, Message, OperationKind, Operations};
use whyslow::explain::anomalies;
use whyslow::input::otf2::Archive;
use whyslow::model::anomalies::Anomalies;
use whyslow::model::carrier::Carrier;
use whyslow::model::settings::Settings;

/// The waits of its ranks.
fn waiting(run: OperationsBuilder) -> (Operations, WaitAnalysis) {
    let operations = run.finish();
    let clocks = whyslow::analysis::offsets::fit(&operations);
    let waiting = WaitAnalysis::new(&operations, &clocks, &Ctx::new(1)).unwrap().unwrap();
    (operations, waiting)
}

/// Written as an archive, read back, analysed.
fn recorded(run: OperationsBuilder) -> Anomalies {
    let folder = tempfile::tempdir().unwrap();
    let archive = Archive::open(&otf2::recording::record(&run.finish(), folder.path())).unwrap();
    let ctx = Ctx::new(1);
    let run = mpi::read(&archive, &ctx).unwrap();
    assert!(run.notices.is_empty(), "{:?}", run.notices.sentences());
    let mined = PatternAnalysis::new(run.into_operations(&archive), &ctx).unwrap();
    anomalies::of_patterns(&mined, &Settings::default(), &ctx).unwrap()
}

fn totals(run: OperationsBuilder) -> BTreeMap<&'static str, Ns> {
    let (_, waiting) = waiting(run);
    let state = |s: &whyslow::analysis::mpi::WaitStateRows| (s.kind.name(), s.ns);
    waiting.states.iter().map(state).filter(|(kind, _)| *kind != "completion").collect()
}

// ---- each wait state -----------------------------------------------------------------------------------------------

#[test]
fn late_sender_is_the_wait_of_a_receive() {
    let mut run = OperationsBuilder::on_one_clock(2);
    run.work(0, "assemble", 7 * MS);
    run.work(1, "assemble", 2 * MS);
    run.message(0, 1);
    assert_eq!(totals(run), [("late_sender", 5 * MS)].into());
}

#[test]
fn wrong_order_is_a_wait_state_of_its_own() {
    let mut run = OperationsBuilder::on_one_clock(3);
    // Rank 0's message is there, but rank 1's is received first.
    let early = run.work(0, "MPI_Send", 5 * US);
    run.work(1, "assemble", 6 * MS);
    run.message(1, 2);
    let end = run.now[2] + 10 * US;
    let receive = run.until(2, "MPI_Recv", OperationKind::Receive, end);
    let (sent, received) = (Timestamp::ZERO, Timestamp::new(end));
    run.operations.messages.push(Message { carrier: Carrier::Message, from: early, to: receive, sent, received });
    assert_eq!(totals(run), [("wrong_order", 6 * MS)].into());
}

#[test]
fn late_receiver_and_flow_control_are_waits_of_a_send() {
    for (carrier, kind) in [(Carrier::Rendezvous, "late_receiver"), (Carrier::FlowControl, "flow_control")] {
        let mut run = OperationsBuilder::on_one_clock(2);
        run.work(1, "assemble", 4 * MS);
        let send = run.until(0, "MPI_Send", OperationKind::Send, 4 * MS + 10 * US);
        let receive = run.work(1, "MPI_Recv", 10 * US);
        let sent = Timestamp::new(4 * MS);
        let message = Message { carrier, from: receive, to: send, sent, received: sent + 10 * US };
        run.operations.messages.push(message);
        assert_eq!(totals(run), [(kind, 4 * MS)].into());
    }
}

#[test]
fn waitall_of_both_sides_counts_the_late_sender() {
    let mut run = OperationsBuilder::on_one_clock(3);
    // Rank 0 completes a receive from rank 1 and a send to rank 2, which posts its receive a little later.
    run.work(1, "assemble", 4 * MS);
    run.work(2, "assemble", 5 * MS);
    let wait = run.until(0, "MPI_Waitall", OperationKind::Receive, 5 * MS + 10 * US);
    let sent = run.work(1, "MPI_Isend", 5 * US);
    let posted = run.work(2, "MPI_Irecv", 5 * US);
    let message = |carrier, from, sent| {
        let (sent, received) = (Timestamp::new(sent), Timestamp::new(5 * MS + 10 * US));
        Message { carrier, from, to: wait, sent, received }
    };
    run.operations.messages.push(message(Carrier::Message, sent, 4 * MS));
    run.operations.messages.push(message(Carrier::Rendezvous, posted, 5 * MS));
    assert_eq!(totals(run), [("late_sender", 4 * MS)].into());
}

#[test]
fn collectives_wait_for_the_ranks_they_need() {
    let late = |exchange| {
        let mut run = OperationsBuilder::on_one_clock(3);
        // The root is the second; the last is the third.
        for (rank, ms) in [(0, 1), (1, 3), (2, 6)] {
            run.work(rank, "assemble", ms * MS);
        }
        run.meet("MPI_Something", exchange);
        totals(run)
    };
    assert_eq!(late(CollectiveKind::All), [("n_to_n", 8 * MS)].into());
    assert_eq!(late(CollectiveKind::Barrier), [("barrier", 8 * MS)].into());
    assert_eq!(late(CollectiveKind::TeamBarrier), [("thread_barrier", 8 * MS)].into());
    assert_eq!(late(CollectiveKind::FromOne(Some(1))), [("late_broadcast", 2 * MS)].into());
    assert_eq!(late(CollectiveKind::ToOne(Some(1))), [("early_reduce", 3 * MS)].into());
    assert_eq!(late(CollectiveKind::Prefix), BTreeMap::new(), "a rank that comes later has waited for none");
}

#[test]
fn locks_teams_and_accelerators_have_wait_states() {
    for (carrier, kind) in
        [(Carrier::Lock, "lock"), (Carrier::Fork, "idle_threads"), (Carrier::Accelerator, "accelerator")]
    {
        let mut run = OperationsBuilder::on_one_clock(2);
        let from = run.work(0, "assemble", 3 * MS);
        let to = run.until(1, "wait", OperationKind::Receive, 3 * MS);
        let end = Timestamp::new(3 * MS);
        run.operations.messages.push(Message { carrier, from, to, sent: end, received: end });
        assert_eq!(totals(run), [(kind, 3 * MS)].into());
    }
}

#[test]
fn delay_costs_are_charged_to_the_first_late_rank() {
    let mut run = OperationsBuilder::on_one_clock(3);
    run.work(0, "assemble", 9 * MS);
    run.work(1, "smooth", MS);
    run.work(2, "smooth", MS);
    run.message(0, 1);
    run.message(1, 2);
    let (operations, waiting) = waiting(run);
    let first = &waiting.costs[0];
    assert_eq!((first.stream, operations.names.get(first.region.name)), (0, "assemble"));
    assert!(first.ns > 15 * MS && first.ns <= waiting.waited_ns(), "{first:?}");
}

// ---- generated runs ------------------------------------------------------------------------------------------------

/// The problem of a run.
#[derive(Clone, Copy, PartialEq)]
enum Trouble {
    Nothing,
    Imbalance,
    Serialisation,
    OtherSteps,
}

/// A run of a ring or of collectives alone; the culprit, its region, and the number of its other steps.
fn generate(trouble: Trouble, seed: u64) -> (OperationsBuilder, u32, &'static str, usize) {
    let mut random = Random::new(seed);
    let ranks = 4 + random.below(6);
    let mut run = OperationsBuilder::on_one_clock(ranks as u32);
    let (culprit, ring) = (random.below(ranks), random.below(2) == 0);
    let region = match trouble {
        Trouble::Imbalance => ["assemble", "smooth"][random.below(2)],
        Trouble::Serialisation => "partition",
        _ => ["regrid", "checkpoint"][random.below(2)],
    };
    let factor = 140 + random.below(100) as Ns;
    let (steps, mut others) = (30 + random.below(30), Vec::new());
    while others.len() < 3 {
        let step = 3 + random.below(steps - 6);
        if !others.contains(&step) {
            others.push(step);
        }
    }
    for step in 0..steps {
        for rank in 0..ranks {
            for (name, us) in [("assemble", 800), ("smooth", 2_000)] {
                let slow = trouble == Trouble::Imbalance && rank == culprit && name == region;
                let length = random.around(us * US, 4);
                run.work(rank, name, if slow { length * factor / 100 } else { length });
            }
            if trouble == Trouble::OtherSteps && rank == culprit && others.contains(&step) {
                let length = (10 + random.below(50) as Ns) * MS;
                run.work(rank, region, length);
            }
        }
        if trouble == Trouble::Serialisation {
            let length = random.around(1_500 * US, 10);
            run.work(culprit, region, length);
            run.meet("MPI_Bcast", CollectiveKind::FromOne(Some(culprit as u32)));
        }
        if ring {
            for rank in 0..ranks {
                run.message(rank, (rank + 1) % ranks);
            }
        }
        run.meet("MPI_Allreduce", CollectiveKind::All);
    }
    (run, culprit as u32, region, if trouble == Trouble::OtherSteps { 3 } else { 0 })
}

#[test]
fn steady_imbalance_and_serialisation_are_named() {
    let mut named = 0;
    for seed in 0..100 {
        let trouble = if seed % 2 == 0 { Trouble::Imbalance } else { Trouble::Serialisation };
        let (run, culprit, region, _) = generate(trouble, seed);
        let found = recorded(run);
        let first = found.waiting.as_ref().and_then(|w| w.imbalances.first());
        named += usize::from(first.is_some_and(|i| i.at.rank == Some(culprit) && i.at.function == region));
        let sentence = found.waiting.as_ref().and_then(|w| w.sentence());
        assert!(first.is_none() || sentence.is_some_and(|s| s.contains("rank ")), "seed {seed}");
    }
    assert!(named >= 95, "{named} of 100");
}

#[test]
fn steps_of_other_structure_are_the_first_sources() {
    let mut first = 0;
    for seed in 0..100 {
        let (run, culprit, region, times) = generate(Trouble::OtherSteps, 1_000 + seed);
        let found = recorded(run);
        let mut sources: Vec<(u32, &str, Timestamp)> = Vec::new();
        for path in &found.paths {
            let source = (path.steps[0].stream, path.steps[0].what.as_str(), path.steps[0].span.start);
            if !sources.contains(&source) {
                sources.push(source);
            }
        }
        let right = |(stream, what, _): &&(u32, &str, Timestamp)| *stream == culprit && *what == region;
        first += usize::from(sources.iter().take(times).filter(right).count() == times);
    }
    assert!(first >= 95, "{first} of 100");
}

#[test]
fn balanced_runs_name_no_rank() {
    for seed in 0..50 {
        let (run, ..) = generate(Trouble::Nothing, 2_000 + seed);
        let found = recorded(run);
        let waiting = found.waiting.as_ref().unwrap();
        assert!(waiting.imbalances.is_empty(), "seed {seed}: {:?}", waiting.sentence());
        assert!(found.paths.is_empty(), "seed {seed}: {:?}", found.paths[0].steps[0]);
    }
}
