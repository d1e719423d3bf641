//! Waiting in totals: each wait state by hand, and generated runs with steady imbalance, serialisation, steps of other
//! structure and nothing at all, through the whole program: they are written as OTF2 archives, and `anomalies` is
//! asked. The efficiencies of a run, by hand.

use crate::support::{ask, operations, otf2, random};
use operations::{MS, OperationsBuilder, US};
use random::Random;
use serde_json::Value;
use std::collections::BTreeMap;
use whyslow::parts::analysis::mpi::WaitAnalysis;
use whyslow::parts::base::ctx::Ctx;
use whyslow::parts::base::time::{Ns, Timestamp};
use whyslow::parts::event::operation::{CollectiveInstance, CollectiveKind, Message, OperationKind, Operations};
use whyslow::parts::model::carrier::Carrier;

/// The waits of its ranks.
fn waiting(run: OperationsBuilder) -> (Operations, WaitAnalysis) {
    let operations = run.finish();
    let clocks = whyslow::parts::analysis::offsets::fit(&operations);
    let waiting = WaitAnalysis::new(&operations, &clocks, &Ctx::new(1)).unwrap();
    (operations, waiting)
}

/// The answer of `whyslow anomalies` to the archive of a run.
fn recorded(run: OperationsBuilder) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let archive = otf2::recording::record(&run.finish(), folder.path());
    let found = ask::json(&["anomalies", "--json", archive.to_str().unwrap()]);
    assert_eq!(found["warnings"], serde_json::json!([]));
    found
}

fn totals(run: OperationsBuilder) -> BTreeMap<&'static str, Ns> {
    let (_, waiting) = waiting(run);
    let state = |s: &whyslow::parts::analysis::mpi::WaitStateRows| (s.kind.name(), s.ns);
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

// ---- efficiencies, computed by hand --------------------------------------------------------------------------------

/// The length on an ideal network and that of the run, in microseconds.
fn lengths(run: OperationsBuilder) -> (Ns, Ns) {
    let (_, waiting) = waiting(run);
    let efficiency = waiting.efficiency.unwrap();
    let product = efficiency.load_balance * efficiency.serialisation * efficiency.transfer;
    assert!((efficiency.parallel - product).abs() < 1e-9, "{efficiency:?}");
    (efficiency.ideal_ns / US, waiting.window.len() / US)
}

#[test]
fn efficiencies_of_a_pipeline_equal_those_by_hand() {
    let mut run = OperationsBuilder::on_one_clock(2);
    run.work(0, "assemble", 6 * MS);
    run.work(1, "assemble", 2 * MS);
    // The message is 2 ms on its way.
    let send = run.work(0, "MPI_Send", MS);
    let receive = run.until(1, "MPI_Recv", OperationKind::Receive, 8 * MS);
    run.send(send, receive);
    run.work(1, "smooth", 2 * MS);
    let (_, waiting) = waiting(run);
    let e = waiting.efficiency.unwrap();
    // On an ideal network the receive ends when the sending call begins, after 6 ms.
    assert_eq!((e.ideal_ns, waiting.window.len()), (8 * MS, 10 * MS));
    // Useful: 6 and 4 ms.
    let expected = [5.0 / 6.0, 6.0 / 8.0, 8.0 / 10.0, 6.0 / 10.0, 5.0 / 10.0];
    let measured = [e.load_balance, e.serialisation, e.transfer, e.communication, e.parallel];
    assert!(measured.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-9), "{e:?}");
}

#[test]
fn ideal_length_keeps_serialisation_and_drops_transfer() {
    // One rank after another: each computes when it has the message of the one before.
    let mut serial = OperationsBuilder::on_one_clock(4);
    for rank in 0..4 {
        serial.work(rank, "assemble", MS);
        if rank < 3 {
            serial.message(rank, rank + 1);
            serial.now[rank + 1] = serial.now[rank + 1].max(serial.now[rank]);
        }
    }
    assert_eq!(lengths(serial).0, 4_000, "nothing overlaps");
    // All at once; an exchange of both ways takes 3 ms.
    let mut exchange = OperationsBuilder::on_one_clock(2);
    for rank in 0..2 {
        exchange.work(rank, "assemble", 2 * MS);
    }
    let calls = [0, 1].map(|rank| exchange.until(rank, "MPI_Sendrecv", OperationKind::Receive, 5 * MS));
    exchange.send(calls[0], calls[1]);
    exchange.send(calls[1], calls[0]);
    for rank in 0..2 {
        exchange.work(rank, "smooth", MS);
    }
    assert_eq!(lengths(exchange), (3_000, 6_000));
}

#[test]
fn ideal_length_of_collectives_is_that_of_the_ranks_they_need() {
    // What the ranks compute before and after the call, in ms.
    let ideal = |exchange, before: [Ns; 3], after: [Ns; 3]| {
        let mut run = OperationsBuilder::on_one_clock(3);
        for (rank, ms) in before.into_iter().enumerate() {
            run.work(rank, "assemble", ms * MS);
        }
        run.meet("MPI_Something", exchange);
        for (rank, ms) in after.into_iter().enumerate() {
            run.work(rank, "smooth", ms * MS);
        }
        lengths(run).0 / 1_000
    };
    let (before, after) = ([1, 3, 6], [7, 6, 1]);
    assert_eq!(ideal(CollectiveKind::All, before, after), 6 + 7, "all leave after 6 ms");
    assert_eq!(ideal(CollectiveKind::FromOne(Some(1)), before, after), 3 + 7, "the first waits for the root");
    assert_eq!(ideal(CollectiveKind::ToOne(Some(0)), before, after), 6 + 7, "the root waits for the third");
    assert_eq!(ideal(CollectiveKind::ToOne(Some(2)), before, after), 3 + 6, "the others go on at once");
    assert_eq!(ideal(CollectiveKind::Prefix, before, after), 3 + 6, "no rank waits for a later rank");
    assert_eq!(ideal(CollectiveKind::Prefix, [6, 3, 1], [1, 3, 7]), 6 + 7, "the third waits for the first");
}

#[test]
fn ideal_length_counts_synchronous_sends_and_no_flow_control() {
    for (carrier, ideal) in [(Carrier::Rendezvous, 6_000), (Carrier::FlowControl, 5_000)] {
        let mut run = OperationsBuilder::on_one_clock(2);
        run.work(1, "assemble", 4 * MS);
        run.work(0, "assemble", 3 * MS);
        let send = run.until(0, "MPI_Send", OperationKind::Send, 5 * MS);
        let receive = run.until(1, "MPI_Recv", OperationKind::Receive, 5 * MS);
        let time = Timestamp::new(5 * MS);
        run.operations.messages.push(Message { carrier, from: receive, to: send, sent: time, received: time });
        run.send(send, receive);
        run.work(0, "smooth", 2 * MS);
        assert_eq!(lengths(run), (ideal, 7_000), "{carrier:?}");
    }
}

#[test]
fn ideal_length_follows_the_threads_of_a_rank() {
    let mut run = OperationsBuilder::on_one_clock(3);
    run.operations.sequences[1].worker = true;
    // The master of rank 0 forks after 1 ms; its worker needs 5 ms, the master 2; they meet, and rank 2 gets a message.
    let fork = run.work(0, "assemble", MS);
    let idle = run.until(1, "(idle)", OperationKind::Receive, MS);
    let at = Timestamp::new(MS);
    run.operations.messages.push(Message { carrier: Carrier::Fork, from: fork, to: idle, sent: at, received: at });
    run.work(0, "smooth", 2 * MS);
    run.work(1, "smooth", 5 * MS);
    let members = [0, 1].map(|s| run.until(s, "barrier", OperationKind::Collective, 6 * MS + 500 * US)).to_vec();
    let exchange = CollectiveKind::TeamBarrier;
    run.operations.collectives.push(CollectiveInstance { exchange, members });
    let send = run.work(0, "MPI_Send", 500 * US);
    let receive = run.until(2, "MPI_Recv", OperationKind::Receive, 8 * MS);
    run.send(send, receive);
    run.work(2, "smooth", 3 * MS);
    assert_eq!(lengths(run), (9_000, 11_000), "1 + 5 on the worker, and 3 behind the message");
}

#[test]
fn ideal_length_of_contradicting_dependencies_is_found() {
    // Each receives before it sends: no order of these calls is possible.
    let mut run = OperationsBuilder::on_one_clock(2);
    let receives = [0, 1].map(|rank| run.until(rank, "MPI_Recv", OperationKind::Receive, MS));
    let sends = [0, 1].map(|rank| run.work(rank, "MPI_Send", MS));
    run.send(sends[0], receives[1]);
    run.send(sends[1], receives[0]);
    for rank in 0..2 {
        run.work(rank, "smooth", 2 * MS);
    }
    assert_eq!(lengths(run), (2_000, 4_000));
}

#[test]
fn ideal_length_lies_between_computation_and_recorded_length() {
    for seed in 0..40 {
        let trouble =
            [Trouble::Nothing, Trouble::Imbalance, Trouble::Serialisation, Trouble::OtherSteps][seed as usize % 4];
        let (_, waiting) = waiting(generate(trouble, 3_000 + seed).0);
        let e = waiting.efficiency.unwrap();
        let useful =
            waiting.regions.iter().flat_map(|r| &r.by_stream).fold(BTreeMap::new(), |mut sums, (stream, ns)| {
                *sums.entry(*stream).or_insert(0) += ns;
                sums
            });
        let most = useful.into_values().max().unwrap();
        assert!((most..=waiting.window.len()).contains(&e.ideal_ns), "seed {seed}: {most} {e:?}");
        // A step of these runs takes 3 ms, its messages and collectives at most 150 us one after another.
        assert!(e.transfer > 0.94, "seed {seed}: {e:?}");
    }
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
        let first = &found["imbalance"][0];
        named += usize::from(first["rank"] == culprit && first["function"] == region);
        let sentence = found["steady"].as_str().unwrap_or_default();
        assert!(first.is_null() || sentence.contains("rank "), "seed {seed}: {sentence}");
    }
    println!("steady imbalance and serialisation: {named} of 100 named first");
    assert!(named >= 95, "{named} of 100");
}

#[test]
fn steps_of_other_structure_are_the_first_sources() {
    let mut first = 0;
    for seed in 0..100 {
        let (run, culprit, region, times) = generate(Trouble::OtherSteps, 1_000 + seed);
        let found = recorded(run);
        let mut sources: Vec<&Value> = Vec::new();
        for source in found["paths"].as_array().unwrap().iter().map(|path| &path["steps"][0]) {
            if !sources.contains(&source) {
                sources.push(source);
            }
        }
        let right = |source: &&&Value| source["rank"] == culprit && source["what"] == region;
        first += usize::from(sources.iter().take(times).filter(right).count() == times);
    }
    println!("steps of other structure: {first} of 100 first");
    assert!(first >= 95, "{first} of 100");
}

#[test]
fn balanced_runs_name_no_rank() {
    for seed in 0..50 {
        let (run, ..) = generate(Trouble::Nothing, 2_000 + seed);
        let found = recorded(run);
        for list in ["imbalance", "paths", "sources"] {
            assert!(found[list].as_array().is_some_and(Vec::is_empty), "seed {seed}: {list} {}", found[list]);
        }
        assert!(found["steady"].is_null(), "seed {seed}: {}", found["steady"]);
    }
}
