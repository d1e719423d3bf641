//! The iterations of each stream's outermost loop.
//!
//! In: the table of patterns. Out: [`Iterations`] by stream. Of the loops that nothing encloses, the body that takes
//! most of the stream's time is the iteration. A loop that polls is none: it asks whether something has happened
//! (`MPI_Test`) and does nothing else than the program's own work. As its length varies, it also hides the loop around
//! it, so a stream that polls is mined once more with one poll in place of each series of polls. Where that leaves no
//! loop, the loop that polls is all that the stream does. Cost: linear in the top of the table; for streams that poll,
//! that of mining them.

use super::analysis::PatternAnalysis;
use super::grammar;
use super::table::{PatternId, PatternPart, PatternTable};
use crate::base::ctx::Cancel;
use crate::base::time::Span;
use crate::event::operation::{Operation, OperationPlace, Operations};
use std::collections::{BTreeMap, BTreeSet};

impl PatternAnalysis {
    /// The iterations of each stream's outermost loop.
    pub fn iterations(&self) -> Vec<Iterations> {
        find(self)
    }
}

/// The executions of an MPI run: one stream's iterations of the outermost loop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Iterations {
    /// Position of the stream.
    pub stream: u32,
    /// The pattern that is repeated.
    pub pattern: IterationPattern,
    /// Its iterations, on the stream's own clock.
    pub spans: Vec<Span>,
}

/// The pattern of an iteration.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum IterationPattern {
    /// One of the table.
    Mined(PatternId),
    /// The name of one that contains polls, of which any number counts as one.
    Polling(String),
}

impl IterationPattern {
    pub fn name(&self, mined: &PatternAnalysis) -> String {
        match self {
            IterationPattern::Mined(id) => mined.table.name(*id, &mined.operations.names),
            IterationPattern::Polling(name) => name.clone(),
        }
    }
}

/// The iterations of all streams. Streams without a loop are left out.
fn find(mined: &PatternAnalysis) -> Vec<Iterations> {
    (0..).zip(&mined.table.tops).filter_map(|(stream, top)| of_stream(mined, stream, top)).collect()
}

fn of_stream(mined: &PatternAnalysis, stream: u32, top: &[PatternPart]) -> Option<Iterations> {
    let operations = &mined.operations;
    around_polls(operations, stream).or_else(|| {
        let at = |operation| operations.get(OperationPlace { stream, operation });
        let LoopIterations { body, spans } = longest(&mined.table, top, at)?;
        Some(Iterations { stream, pattern: IterationPattern::Mined(body), spans })
    })
}

/// The body of a loop, and where it was repeated.
struct LoopIterations {
    body: PatternId,
    spans: Vec<Span>,
}

/// Of the loops that nothing encloses, the one whose body takes most time. `at`: an operation by position.
fn longest<'a>(
    table: &PatternTable,
    top: &[PatternPart],
    at: impl Fn(u32) -> Option<&'a Operation>,
) -> Option<LoopIterations> {
    let mut spans: BTreeMap<PatternId, Vec<Span>> = BTreeMap::new();
    let bodies: BTreeSet<PatternId> = top.iter().filter_map(|part| Some(table.iterations(*part)?.0)).collect();
    let mut first = 0;
    for part in top {
        let (body, iterations) = match (*part, table.iterations(*part)) {
            (_, Some((body, iterations))) => (body, iterations),
            // An iteration before or after the loop is an iteration too.
            (PatternPart::Pattern(id), None) if bodies.contains(&id) => (id, 1),
            _ => {
                first += table.length(*part);
                continue;
            }
        };
        let length = table.patterns[body.index()].length;
        for iteration in 1..=iterations {
            let next = first + length;
            // An iteration lasts until the next begins; the last one until its last operation ends.
            let end = if iteration < iterations { at(next).map(|o| o.start) } else { at(next - 1).map(|o| o.end) };
            if let (Some(begin), Some(end)) = (at(first), end) {
                spans.entry(body).or_default().push(Span::new(begin.start, end));
            }
            first = next;
        }
    }
    let covered = |spans: &[Span]| spans.iter().map(|s| s.len()).sum::<i64>();
    // Of equals the first, for the same answer every time.
    let longest = spans.into_iter().max_by_key(|(id, spans)| (covered(spans), std::cmp::Reverse(*id)));
    longest.map(|(body, spans)| LoopIterations { body, spans })
}

/// The iterations of a stream of which each series of polls, with the program's own work between them, is one poll.
fn around_polls(operations: &Operations, stream: u32) -> Option<Iterations> {
    let all = &operations.sequences.get(stream as usize)?.operations;
    let kept = last_polls(operations, all);
    if kept.len() == all.len() {
        return None;
    }
    let symbols: Vec<u32> = kept.iter().map(|o| o.symbol.raw()).collect();
    let table = PatternTable::new(&[grammar::mine(&symbols, &Cancel::default())], &Cancel::default()).ok()?;
    let top = table.tops.first()?;
    let LoopIterations { body, spans } = longest(&table, top, |at| kept.get(at as usize).copied())?;
    let pattern = IterationPattern::Polling(table.name(body, &operations.names));
    Some(Iterations { stream, pattern, spans })
}

/// The operations without those from a poll up to the next poll of the same name, if there is only the program's own
/// work between them.
fn last_polls<'a>(operations: &Operations, all: &'a [Operation]) -> Vec<&'a Operation> {
    let mut kept: Vec<&Operation> = Vec::with_capacity(all.len());
    // Position in `kept` of the last poll that only the program's own work follows.
    let mut poll: Option<usize> = None;
    for operation in all {
        if operations.is_poll(operation.symbol) {
            if let Some(before) = poll.filter(|at| kept.get(*at).is_some_and(|o| o.symbol == operation.symbol)) {
                kept.truncate(before);
            }
            poll = Some(kept.len());
        } else if !operations.is_program(operation.symbol) {
            poll = None;
        }
        kept.push(operation);
    }
    kept
}
