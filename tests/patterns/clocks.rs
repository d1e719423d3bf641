//! Recorded times that no message contradicts stay as they are.

use super::operations::{MS, OperationsBuilder, US};
use whyslow::parts::analysis::offsets::{StreamClock, fit};
use whyslow::parts::base::time::{Ns, Timestamp};
use whyslow::parts::event::operation::{Message, OperationKind, Operations};
use whyslow::parts::model::carrier::Carrier;

/// A message that leaves and arrives at these times of its ranks' own clocks.
fn message(run: &mut OperationsBuilder, ranks: [u32; 2], sent: Ns, received: Ns) {
    let from = run.add(ranks[0], "MPI_Send", OperationKind::Work, sent, sent + US);
    let to = run.add(ranks[1], "MPI_Recv", OperationKind::Receive, received - US, received);
    let [sent, received] = [sent, received].map(Timestamp::new);
    run.operations.messages.push(Message { carrier: Carrier::Message, from, to, sent, received });
}

/// Two ranks that exchange messages; those back arrive 60 ms later. Rank 1's clock is `behind` by this much.
fn exchange(behind: Ns) -> Operations {
    let mut run = OperationsBuilder::new(2);
    for step in 1..20 {
        message(&mut run, [0, 1], step * 100 * MS, step * 100 * MS - behind);
        message(&mut run, [1, 0], step * 100 * MS + 10 * MS, step * 100 * MS + 70 * MS);
    }
    run.finish()
}

fn offsets(clocks: &[StreamClock]) -> Vec<Ns> {
    clocks.iter().map(|clock| clock.offset).collect()
}

#[test]
fn times_that_satisfy_all_bounds_stay() {
    for late in [0, 3 * MS] {
        let clocks = fit(&exchange(-late));
        assert_eq!(offsets(&clocks), [0, 0], "the middle between the bounds is 30 ms away");
        assert!(clocks.iter().all(|clock| clock.drift == 0.0));
    }
}

#[test]
fn small_contradiction_moves_a_clock_by_the_least() {
    assert_eq!(offsets(&fit(&exchange(4 * US))), [0, 4 * US], "4 us, not 30 ms");
}

#[test]
fn streams_of_one_process_share_a_clock() {
    let mut run = OperationsBuilder::new(4);
    for (stream, process) in [(0, 0), (1, 0), (2, 1), (3, 1)] {
        run.operations.sequences[stream].process = Some(process);
    }
    // The clock of the second process is 50 ms ahead; its second stream receives nothing.
    for step in 1..20 {
        let now = step * 10 * MS;
        message(&mut run, [0, 2], now, now + 50 * MS + 10 * US);
        message(&mut run, [2, 1], now + 52 * MS, now + 2 * MS + 10 * US);
        run.add(3, "smooth", OperationKind::Work, now + 50 * MS, now + 51 * MS);
    }
    let offsets = offsets(&fit(&run.finish()));
    assert_eq!((offsets[0], offsets[2]), (offsets[1], offsets[3]));
    assert!((offsets[2] + 50 * MS).abs() <= 10 * US, "{offsets:?}");
}
