//! Computing and waiting over time: a small grid of streams and cells of time.
//!
//! In: the activities of streams, their waits, a window. Out: for each row (one stream, or several neighbours) and each
//! cell the part of the time spent computing and waiting, in per cent. Cost: one step per event in the window.

use super::profile::Streams;
use super::wait_states::RankWait;
use crate::base::ctx::{Cancelled, Ctx};
use crate::base::parallel::in_order;
use crate::base::time::{Ns, Span, Timestamp};
use std::ops::Range;

/// Some streams over time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StripRow {
    /// Positions of the streams.
    pub streams: Range<u32>,
    /// By cell, in per cent of their time.
    pub computing: Vec<u8>,
    /// By cell, in per cent; the rest was spent in libraries or is unknown.
    pub waiting: Vec<u8>,
}

/// All rows of a window.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Strip {
    /// The window that the cells divide.
    pub window: Span,
    /// In order of the streams.
    pub rows: Vec<StripRow>,
}

/// The most rows of the strip of a whole run.
const ROWS: usize = 64;
/// The number of cells of a strip.
pub const CELLS: usize = 128;

/// Time by cell of a window.
pub(super) struct Cells {
    window: Span,
    /// The begin of each cell, and the end of the last.
    edges: Vec<Timestamp>,
    pub(super) sums: Vec<Ns>,
    /// The cell of the last span: the next one is near.
    last: usize,
}

impl Cells {
    pub(super) fn new(window: Span) -> Self {
        let edge = |cell: usize| window.start + (i128::from(window.len()) * cell as i128 / CELLS as i128) as Ns;
        Cells { window, edges: (0..=CELLS).map(edge).collect(), sums: vec![0; CELLS], last: 0 }
    }

    pub(super) fn add(&mut self, span: Span) {
        let span = Span::new(span.start.max(self.window.start), span.end.min(self.window.end));
        if span.is_empty() {
            return;
        }
        let mut cell = self.last;
        if !(self.edges[cell]..self.edges[cell + 1]).contains(&span.start) {
            cell = self.edges.partition_point(|edge| *edge <= span.start).saturating_sub(1).min(CELLS - 1);
            self.last = cell;
        }
        let mut at = span.start;
        while at < span.end && cell < CELLS {
            let end = self.edges[cell + 1].min(span.end);
            self.sums[cell] += (end - at).max(0);
            at = at.max(end);
            cell += 1;
        }
    }

    /// The sums in per cent of the time of `streams` streams.
    fn shares(&self, streams: usize) -> Vec<u8> {
        let share = |(cell, sum): (usize, &Ns)| {
            let whole = (self.edges[cell + 1] - self.edges[cell]).max(1).saturating_mul(streams.max(1) as Ns);
            (i128::from(*sum) * 100 / i128::from(whole)).clamp(0, 100) as u8
        };
        self.sums.iter().enumerate().map(share).collect()
    }
}

/// The waits of one stream in a window.
fn waiting(waits: &[RankWait], stream: u32, window: Span) -> Cells {
    let mut waiting = Cells::new(window);
    let first = waits.partition_point(|w| w.place.stream < stream);
    for wait in waits[first..].iter().take_while(|w| w.place.stream == stream).filter(|w| !w.kind.has_no_late_rank()) {
        waiting.add(Span::new(wait.start, wait.until));
    }
    waiting
}

/// The strip of a whole run: neighbours share a row where there are many streams. Waits are sorted by place; the
/// computing time is given by stream and cell.
pub fn whole(computed: &[Vec<Ns>], waits: &[RankWait], window: Span, ctx: &Ctx) -> Result<Strip, Cancelled> {
    let n = computed.len();
    let per_row = n.div_ceil(ROWS).max(1);
    let row = |at: usize| {
        let of_row = at * per_row..((at + 1) * per_row).min(n);
        let (mut computing, mut waited) = (Cells::new(window), Cells::new(window));
        for stream in of_row.clone() {
            let own = computed.get(stream).map_or(&[][..], Vec::as_slice);
            computing.sums.iter_mut().zip(own).for_each(|(sum, ns)| *sum += ns);
            let own = waiting(waits, stream as u32, window).sums;
            waited.sums.iter_mut().zip(own).for_each(|(sum, ns)| *sum += ns);
        }
        let count = of_row.len();
        let streams = of_row.start as u32..of_row.end as u32;
        StripRow { streams, computing: computing.shares(count), waiting: waited.shares(count) }
    };
    let mut rows = Vec::new();
    in_order(ctx, n.div_ceil(per_row), row, |_, row| rows.push(row))?;
    Ok(Strip { window, rows })
}

/// A strip of some streams, one row each. Here the whole time of a call that can wait counts as waiting.
pub fn around(streams: &Streams<'_>, chosen: &[u32], window: Span) -> Strip {
    let row = |stream: &u32| {
        let (mut computing, mut waiting) = (Cells::new(window), Cells::new(window));
        for activity in streams.back(*stream, window) {
            if streams.is_useful(&activity) {
                computing.add(activity.span);
            } else if activity.kind.waits() {
                waiting.add(activity.span);
            }
        }
        StripRow { streams: *stream..*stream + 1, computing: computing.shares(1), waiting: waiting.shares(1) }
    };
    Strip { window, rows: chosen.iter().map(row).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn add_divides_time_over_cells_without_loss() {
        for (from, to) in [(0, 1_280), (5, 17), (1_279, 1_280), (-50, 3), (640, 5_000)] {
            let mut cells = Cells::new(Span::of_ns(0, 1_280));
            cells.add(Span::of_ns(from, to));
            assert_eq!(cells.sums.iter().sum::<Ns>(), to.min(1_280) - from.max(0), "{from}..{to}");
        }
        let mut cells = Cells::new(Span::of_ns(0, 1_280));
        cells.add(Span::of_ns(10, 25));
        assert_eq!(cells.sums[..4], [0, 10, 5, 0]);
        assert_eq!(cells.shares(2)[..4], [0, 50, 25, 0]);
        let mut tiny = Cells::new(Span::of_ns(0, 3));
        tiny.add(Span::of_ns(0, 3));
        assert_eq!(tiny.sums.iter().sum::<Ns>(), 3, "fewer nanoseconds than cells");
    }
}
