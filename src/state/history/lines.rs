//! The values of the attributes that a pattern matches, at instants or over a span, as the `query` command prints them.
//!
//! In: a pattern (`threads/*/state`) and a [`Time`]. Out: one [`HistoryLine`] per attribute, its spans in order of
//! time. Unlike a search of the tree, a line also contains the spans in which the value is unknown. All attributes of a
//! pattern are found by one search, which reads each node once; each unknown span costs two small searches. The points
//! of a span are cells: of states, the one with most time in the cell, from the history's summary, at a cost that does
//! not grow with the number of intervals; of other values, the one at its start. The longest intervals come from a
//! segment store, which sorts only as many of them as are requested.

use super::History;
use super::interval::{Interval, StateValue};
use super::search::{When, Which};
use crate::base::ctx::{Cancel, Cancelled, Ctx};
use crate::base::spans::{SpanStore, StoredSpan};
use crate::base::time::{Ns, Span, Timestamp};
use crate::state::attributes::AttributeId;
use crate::state::summary::most;

/// The value of an attribute during a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    pub span: Span,
    /// `None` where it is unknown.
    pub value: Option<StateValue>,
}

/// The values of one attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryLine {
    pub attribute: AttributeId,
    /// In order of time, disjoint.
    pub held: Vec<Held>,
}

/// The time of a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Time {
    /// The values at these instants, in any order.
    Instants(Vec<Timestamp>),
    /// All values within a span; the first and last one may reach beyond it.
    Range(Span),
    /// A span cut into so many cells (2^20 at most) of equal width. The value of a cell is the state with most time in
    /// it, of two equal ones the lower; where values are no states, the value at its start.
    Points(Span, usize),
    /// The longest intervals.
    Longest(Longest),
}

/// The intervals that meet a span, longest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Longest {
    pub span: Span,
    /// So many at most.
    pub count: usize,
    /// Of this value alone, as it is shown.
    pub value: Option<String>,
}

impl History {
    /// The value of `attribute` at `t`, known or not.
    pub fn held(&self, attribute: AttributeId, t: Timestamp) -> Held {
        match self.tree.at(attribute, t) {
            Some(interval) => Held { span: interval.span, value: Some(interval.value) },
            None => Held { span: self.gap(attribute, t), value: None },
        }
    }

    /// The lines of all attributes that `pattern` matches, in order of their paths. An attribute without any interval
    /// (such as `threads`, which only has others below it) has no line, unless the pattern names it.
    pub fn lines(&self, pattern: &str, time: &Time, cancel: &Cancel) -> Result<Vec<HistoryLine>, Cancelled> {
        let mut attributes = self.attributes.matching(pattern);
        if attributes.len() > 1 {
            attributes.retain(|attribute| self.tree.life(*attribute).is_some());
        }
        let instants = match time {
            Time::Instants(instants) => {
                let mut instants = instants.clone();
                instants.sort_unstable();
                instants
            }
            Time::Range(_) => Vec::new(),
            Time::Points(span, points) => points_of(*span, *points),
            Time::Longest(longest) => return self.longest(attributes, longest, cancel),
        };
        let mut lines = Vec::with_capacity(attributes.len());
        if let Time::Points(span, _) = time {
            let states: Vec<AttributeId>;
            (states, attributes) = attributes.into_iter().partition(|attribute| self.is_state(*attribute));
            for attribute in states {
                cancel.check()?;
                lines.push(self.fill_cells(attribute, *span, &instants, cancel)?);
            }
        }
        let when = match time {
            Time::Range(span) => When::within(*span),
            _ => When::instants(instants.iter().copied()),
        };
        let which = Which::these(attributes.iter().copied());
        let mut found: Vec<Interval> = self.tree.search(which, when, cancel).collect();
        cancel.check()?;
        found.sort_unstable();
        let mut found = found.as_slice();
        for attribute in attributes {
            cancel.check()?;
            let (own, rest) = found.split_at(found.partition_point(|i| i.attribute == attribute));
            found = rest;
            let mut line = HistoryLine { attribute, held: Vec::with_capacity(own.len()) };
            match time {
                Time::Range(span) if span.is_empty() => {}
                Time::Range(span) => self.fill_range(&mut line, own, *span),
                _ => self.fill_instants(&mut line, own, &instants),
            }
            lines.push(line);
        }
        // Attributes are numbered in the order of their paths.
        lines.sort_by_key(|line| line.attribute);
        Ok(lines)
    }

    /// True for attributes whose values are states.
    fn is_state(&self, attribute: AttributeId) -> bool {
        let first = self.tree.life(attribute).and_then(|life| self.tree.at(attribute, life.start));
        first.is_some_and(|interval| matches!(interval.value, StateValue::Code(_)))
    }

    /// The state with most time in each of the cells of `span` that begin at `starts`.
    fn fill_cells(
        &self,
        attribute: AttributeId,
        span: Span,
        starts: &[Timestamp],
        cancel: &Cancel,
    ) -> Result<HistoryLine, Cancelled> {
        let ctx = Ctx { cancel: cancel.clone(), ..Ctx::new(1) };
        let summary = self.summary(&ctx)?;
        let ends = starts.iter().skip(1).copied().chain([span.end]);
        let cell = |(start, end): (&Timestamp, Timestamp)| {
            let span = Span::new(*start, end);
            Held { span, value: most(&summary.times(&self.tree, attribute, span)).map(StateValue::Code) }
        };
        Ok(HistoryLine { attribute, held: starts.iter().zip(ends).map(cell).collect() })
    }

    /// The longest intervals of some attributes.
    fn longest(
        &self,
        attributes: Vec<AttributeId>,
        Longest { span, count, value: wanted }: &Longest,
        cancel: &Cancel,
    ) -> Result<Vec<HistoryLine>, Cancelled> {
        let is_wanted = |interval: &Interval| wanted.as_ref().is_none_or(|wanted| self.show(interval.value).is(wanted));
        let found = self.tree.search(Which::these(attributes), When::within(*span), cancel);
        let found: Vec<Interval> = found.filter(is_wanted).collect();
        cancel.check()?;
        let segment = |(item, interval): (usize, &Interval)| StoredSpan { span: interval.span, item: item as u32 };
        let segments = SpanStore::new(found.iter().enumerate().map(segment).collect());
        let line = |segment: StoredSpan| {
            let interval = found.get(segment.item as usize)?;
            let held = vec![Held { span: interval.span, value: Some(interval.value) }];
            Some(HistoryLine { attribute: interval.attribute, held })
        };
        Ok(segments.longest(*span).take(*count).filter_map(line).collect())
    }

    /// Add `own`, all intervals within `span`, and the unknown spans between them to `line`.
    fn fill_range(&self, line: &mut HistoryLine, own: &[Interval], span: Span) {
        let mut known_to = span.start;
        for interval in own {
            if known_to < interval.span.start {
                line.held.push(Held { span: self.gap(line.attribute, known_to), value: None });
            }
            line.held.push(Held { span: interval.span, value: Some(interval.value) });
            known_to = interval.span.end;
        }
        if known_to < span.end {
            line.held.push(Held { span: self.gap(line.attribute, known_to), value: None });
        }
    }

    /// Add the values at `instants`, ascending, to `line`; `own` are all intervals at these instants.
    fn fill_instants(&self, line: &mut HistoryLine, own: &[Interval], instants: &[Timestamp]) {
        let mut own = own.iter().peekable();
        let mut written_to = None;
        for t in instants {
            if written_to.is_some_and(|to| *t < to) {
                continue;
            }
            let held = match own.next_if(|interval| interval.span.contains(*t)) {
                Some(interval) => Held { span: interval.span, value: Some(interval.value) },
                None => Held { span: self.gap(line.attribute, *t), value: None },
            };
            line.held.push(held);
            written_to = Some(held.span.end.max(t.saturating_add(1)));
        }
    }

    /// The span around `t` in which `attribute` is unknown; it ends with the trace where there is no interval before or
    /// after.
    fn gap(&self, attribute: AttributeId, t: Timestamp) -> Span {
        let window = Span::new(self.window.start.min(t), self.window.end.max(t.saturating_add(1)));
        let Some(life) = self.tree.life(attribute) else { return window };
        if t < life.start {
            return Span::new(window.start.min(life.start), life.start);
        }
        if t >= life.end {
            return Span::new(life.end, window.end.max(life.end));
        }
        // There are intervals before and after: search near `t` first, then farther and farther away.
        let search = |span| {
            let which = Which::these([attribute]);
            self.tree.search(which, When::within(span), &Cancel::default()).map(|interval| interval.span)
        };
        let (mut before, mut after) = (None, None);
        let mut reach = (life.len() / 1024).max(1);
        while before.is_none() || after.is_none() {
            before = before.or_else(|| search(Span::new(t.saturating_sub(reach), t)).map(|s| s.end).max());
            after = after.or_else(|| search(Span::new(t, t.saturating_add(reach))).map(|s| s.start).min());
            if reach == Ns::MAX {
                break;
            }
            reach = reach.saturating_mul(8);
        }
        Span::new(before.unwrap_or(life.start), after.unwrap_or(life.end))
    }
}

/// More points than any screen shows.
const MOST_POINTS: usize = 1 << 20;

/// So many instants of `span` at equal distances, the first at its start; fewer where it has fewer nanoseconds.
pub(super) fn points_of(span: Span, points: usize) -> Vec<Timestamp> {
    let length = u128::from(span.end.abs_diff(span.start));
    if span.is_empty() || points == 0 {
        return Vec::new();
    }
    let points = (points.min(MOST_POINTS) as u128).min(length);
    (0..points).map(|i| span.start.wrapping_add((length * i / points) as u64)).collect()
}
