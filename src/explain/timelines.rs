//! Computing and waiting over time, with the names of ranks: of a whole run, and of the ranks around each source.
//!
//! In: mined operations, and the paths. Out: strips that hold no reference to the archive. Cost: the events of a few
//! ranks during each of the first sources.

use crate::analysis::mpi::profile::Streams;
use crate::analysis::mpi::strip::{self, Strip};
use crate::analysis::patterns::PatternAnalysis;
use crate::base::time::{Ns, Span};
use crate::event::operation::Operations;
use crate::model::propagation::PropagationPath;
use crate::model::timeline::{RankRow, RankTimeline};
use std::collections::BTreeSet;

/// Streams around a source, itself included.
const AROUND: usize = 12;

/// Sources with a timeline.
const SOURCES: u32 = 10;

/// Of the source's length before it begins and after its last victim.
const MARGIN: Ns = 2;

/// The strip of a whole run.
pub fn whole(strip: &Strip, operations: &Operations) -> RankTimeline {
    named(strip, operations, None)
}

/// Around each of the first sources of ranks and threads that wait for each other, by number of the source.
pub fn around(mined: &PatternAnalysis, paths: &[PropagationPath]) -> Vec<RankTimeline> {
    if !mined.is_run() {
        return Vec::new();
    }
    let streams = Streams::new(&mined.operations, &mined.clocks);
    let of_sources = paths.chunk_by(|a, b| a.source == b.source).take_while(|p| p[0].source < SOURCES);
    let line = |paths: &[PropagationPath]| {
        let Some(first) = paths.first().and_then(|p| p.steps.first()) else { return RankTimeline::default() };
        let steps = || paths.iter().flat_map(|p| &p.steps);
        let mut chosen = BTreeSet::from([first.stream]);
        for step in steps() {
            if chosen.len() < AROUND {
                chosen.insert(step.stream);
            }
        }
        let end = steps().filter(|s| chosen.contains(&s.stream)).map(|s| s.span.end).max().unwrap_or(first.span.end);
        let margin = first.span.len() / MARGIN;
        let window = Span::new(first.span.start - margin, end + margin);
        let chosen: Vec<u32> = chosen.into_iter().collect();
        named(&strip::around(&streams, &chosen, window), &mined.operations, Some(first.stream))
    };
    of_sources.map(line).collect()
}

fn named(strip: &Strip, operations: &Operations, source: Option<u32>) -> RankTimeline {
    let rank = |stream: u32| {
        let sequence =
            operations.sequences.get(stream as usize).filter(|s| s.label == format!("rank {}", s.rank.unwrap_or(0)));
        sequence.and_then(|s| s.rank)
    };
    let row = |row: &strip::StripRow| {
        let (first, last) = (row.streams.start, row.streams.end.saturating_sub(1));
        let label = match (first == last, rank(first), rank(last)) {
            (false, Some(a), Some(b)) => format!("ranks {a}-{b}"),
            (false, ..) => format!("{} to {}", operations.label(first), operations.label(last)),
            _ => operations.label(first).to_owned(),
        };
        let source = source.is_some_and(|s| row.streams.contains(&s));
        RankRow { label, source, computing: row.computing.clone(), waiting: row.waiting.clone() }
    };
    RankTimeline { window: strip.window, rows: strip.rows.iter().map(row).collect() }
}
