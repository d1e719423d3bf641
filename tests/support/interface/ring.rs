//! A made-up MPI run for tests of the interface: ranks in a ring, delays that spread and noise that does not.

use super::START;
use super::random::Random;
use whyslow::parts::base::time::Timestamp;
use whyslow::parts::event::operation::{Message, Operation, OperationKind, OperationPlace, Operations, Sequence};
use whyslow::parts::model::carrier::Carrier;

/// Ranks in a ring, each receiving from the one before: once one computes too long, twice another is interrupted.
pub fn ring(ranks: u32, turns: u64) -> Operations {
    ring_with(ranks, turns, &[])
}

/// The same, where the first rank is interrupted in these turns, too.
pub fn ring_with(ranks: u32, turns: u64, interrupted: &[u64]) -> Operations {
    let mut operations = Operations { one_clock: true, ..Operations::default() };
    let [receive, send, test] = ["MPI_Recv", "MPI_Send", "MPI_Test"].map(|n| operations.names.intern(n));
    let rank = |r| Sequence { stream: format!("P#{r}T#0"), rank: Some(r), ..Sequence::default() };
    operations.sequences = (0..ranks).map(rank).collect();
    let (mut random, mut now) = (Random::new(3), vec![START; ranks as usize]);
    let add = |operations: &mut Operations, r: u32, symbol, kind, start, end| {
        let all = &mut operations.sequences[r as usize].operations;
        all.push(Operation { symbol, kind, start, end });
        OperationPlace { stream: r, operation: all.len() as u32 - 1 }
    };
    for turn in 0..turns {
        let mut sent: Option<(OperationPlace, Timestamp)> = None;
        for r in 0..ranks {
            let mut at = now[r as usize];
            if let Some((from, left)) = sent {
                let end = (at + 2_000).max(left + 3_000);
                let to = add(&mut operations, r, receive, OperationKind::Receive, at, end);
                operations.messages.push(Message { carrier: Carrier::Message, from, to, sent: left, received: end });
                at = end;
            } else {
                add(&mut operations, r, test, OperationKind::Work, at, at + 2_000);
                at += 2_000;
            }
            at += random.around(900_000, 33);
            if turn == turns / 3 && r == 1 {
                at += 40_000_000;
            }
            let long = turn == turns / 2 && r == 2 || r == 0 && (turn == turns / 4 || interrupted.contains(&turn));
            let end = at + if long { 9_000_000 } else { 2_000 };
            sent = Some((add(&mut operations, r, send, OperationKind::Work, at, end), end));
            now[r as usize] = end;
        }
    }
    operations.messages.sort_by_key(|m| (m.to, m.received, m.from));
    operations
}
