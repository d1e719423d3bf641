//! Operations of MPI ranks, as a tracer would have recorded them: written by hand or by a generator, then mined.
//!
//! An operation is added with its times, or goes on where its rank was (`now`), as in generated runs. Times are
//! nanoseconds since the origin of the rank's clock.
#![allow(dead_code, clippy::unwrap_used)]

use whyslow::parts::analysis::patterns::PatternAnalysis;
use whyslow::parts::base::ctx::Ctx;
use whyslow::parts::base::time::{Ns, Timestamp};
use whyslow::parts::delays::anomalies;
use whyslow::parts::event::operation::{
    CollectiveInstance, CollectiveKind, Message, Operation, OperationKind, OperationPlace, Operations, Sequence,
};
use whyslow::parts::model::anomalies::Anomalies;
use whyslow::parts::model::carrier::Carrier;
use whyslow::parts::model::settings::Settings;

pub const MS: Ns = 1_000_000;
pub const US: Ns = 1_000;

/// A run in the making.
pub struct OperationsBuilder {
    pub operations: Operations,
    /// By rank, the end of its last operation that was added without times.
    pub now: Vec<Ns>,
}

impl OperationsBuilder {
    /// Ranks whose clocks are not known to agree.
    pub fn new(ranks: u32) -> Self {
        let sequence = |rank| Sequence {
            stream: format!("rank {rank}"),
            rank: Some(rank),
            process: Some(rank),
            ..Sequence::default()
        };
        let sequences = (0..ranks).map(sequence).collect();
        OperationsBuilder {
            operations: Operations { sequences, ..Operations::default() },
            now: vec![0; ranks as usize],
        }
    }

    /// Ranks with one clock.
    pub fn on_one_clock(ranks: u32) -> Self {
        let mut run = OperationsBuilder::new(ranks);
        run.operations.one_clock = true;
        run
    }

    /// An operation with its times.
    pub fn add(&mut self, stream: u32, name: &str, kind: OperationKind, start: Ns, end: Ns) -> OperationPlace {
        let symbol = self.operations.names.intern(name);
        let all = &mut self.operations.sequences[stream as usize].operations;
        all.push(Operation { symbol, kind, start: Timestamp::new(start), end: Timestamp::new(end) });
        OperationPlace { stream, operation: all.len() as u32 - 1 }
    }

    /// A message that leaves at the end of one operation and arrives at the end of another.
    pub fn send(&mut self, from: OperationPlace, to: OperationPlace) {
        let (sent, received) = (self.operations.get(from).unwrap().end, self.operations.get(to).unwrap().end);
        self.operations.messages.push(Message { carrier: Carrier::Message, from, to, sent, received });
    }

    /// An operation from now until a time; regions that are not MPI's are the program's own.
    pub fn until(&mut self, rank: usize, name: &str, kind: OperationKind, end: Ns) -> OperationPlace {
        let place = self.add(rank as u32, name, kind, self.now[rank], end);
        let symbol = self.operations.get(place).unwrap().symbol.index();
        let program = &mut self.operations.program;
        program.resize(program.len().max(symbol + 1), false);
        program[symbol] = !name.starts_with("MPI_") && kind == OperationKind::Work;
        self.now[rank] = end;
        place
    }

    pub fn work(&mut self, rank: usize, name: &str, length: Ns) -> OperationPlace {
        self.until(rank, name, OperationKind::Work, self.now[rank] + length)
    }

    /// A message from one rank, received by another as soon as it can be.
    pub fn message(&mut self, from: usize, to: usize) {
        let sent = self.now[from];
        let send = self.work(from, "MPI_Send", 5 * US);
        let end = self.now[to].max(sent) + 10 * US;
        let receive = self.until(to, "MPI_Recv", OperationKind::Receive, end);
        self.operations.messages.push(Message {
            carrier: Carrier::Message,
            from: send,
            to: receive,
            sent: Timestamp::new(sent),
            received: Timestamp::new(end),
        });
    }

    /// A collective of all ranks: each leaves when the ranks for which it waits have come.
    pub fn meet(&mut self, name: &str, exchange: CollectiveKind) {
        let last = *self.now.iter().max().unwrap();
        let from = match exchange {
            CollectiveKind::FromOne(root) => self.now[root.unwrap() as usize],
            _ => last,
        };
        let waits = |rank: usize| match exchange {
            CollectiveKind::ToOne(root) => root == Some(rank as u32),
            _ => true,
        };
        let end = |(rank, now): (usize, &Ns)| if waits(rank) { *now.max(&from) } else { *now } + 10 * US;
        let ends: Vec<Ns> = self.now.iter().enumerate().map(end).collect();
        let members = ends
            .iter()
            .enumerate()
            .map(|(rank, end)| self.until(rank, name, OperationKind::Collective, *end))
            .collect();
        self.operations.collectives.push(CollectiveInstance { exchange, members });
    }

    /// The operations, with messages in the order that the analysis expects.
    pub fn finish(mut self) -> Operations {
        self.operations.messages.sort_by_key(|m| (m.to, m.received, m.from));
        self.operations
    }

    /// Its patterns and anomalies.
    pub fn analyse(self, settings: &Settings, threads: usize) -> (PatternAnalysis, Anomalies) {
        let ctx = Ctx::new(threads);
        let mined = PatternAnalysis::new(self.finish(), &ctx).unwrap();
        let found = anomalies::of_patterns(&mined, settings, &ctx).unwrap();
        (mined, found)
    }
}
