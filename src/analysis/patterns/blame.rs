//! The occurrences that took too long, and which of their events are to blame.
//!
//! In: patterns, durations, limits. Out: [`LateOccurrence`] occurrences, each with its responsible events.
//! ALGORITHMS.md 9.5: event by event against the reference occurrence; an event is responsible when it reaches s times
//! its reference, and (\[OWN\]) when its excess is at least a tenth of the occurrence's: the microseconds by which some
//! other call was slower at the same time explain nothing. Where none qualifies the event with the largest excess
//! represents all and the occurrence is *diffuse*.
//!
//! An occurrence of a larger pattern is only reported when what is late inside it does not already explain most of its
//! excess. Cost: linear in the occurrences, plus the events of those that are late.

use super::Treatment;
use super::measure::{Durations, PatternLimits, SMALLEST};
use super::table::{Occurrence, PatternId, PatternTable};
use crate::base::ctx::Cancel;
use crate::base::time::{Ns, Span};
use crate::event::operation::Operations;
use crate::model::settings::PatternVerdict;
use std::collections::BTreeMap;

/// An event's position in its stream: twice that of its operation, plus one for the gap after it.
pub type EventIndex = u32;

/// An event to blame.
#[derive(Clone, Copy, Debug)]
pub struct ResponsibleEvent {
    /// Which.
    pub event: EventIndex,
    /// When, on the stream's own clock.
    pub local: Span,
    /// Longer than in the reference by this.
    pub excess: Ns,
    /// How long it takes there.
    pub reference: Ns,
}

/// An occurrence that took too long.
#[derive(Clone, Debug)]
pub struct LateOccurrence {
    /// Of what; `None` of an event that was found by what waited for it and is part of no pattern's occurrence that is
    /// late.
    pub pattern: Option<PatternId>,
    /// The position.
    pub occurrence: Occurrence,
    /// Operations in it.
    pub length: u32,
    /// When, on the stream's own clock.
    pub local: Span,
    /// Over the reference occurrence.
    pub excess: Ns,
    /// No single event is to blame.
    pub diffuse: bool,
    /// It waited for work: its events are no cause and have none.
    pub idle: bool,
    /// In order.
    pub blamed: Vec<ResponsibleEvent>,
}

impl LateOccurrence {
    /// Keep the events that are to blame; where there are none, those of waiting for work. False where nothing is left.
    pub(super) fn sort_out(&mut self, treat: &impl Fn(u32, &ResponsibleEvent) -> Treatment) -> bool {
        let stream = self.occurrence.stream;
        let treated: Vec<Treatment> = self.blamed.iter().map(|b| treat(stream, b)).collect();
        if treated.iter().all(|t| *t == Treatment::Judged) {
            return true;
        }
        self.idle = !treated.contains(&Treatment::Judged);
        let kept = if self.idle { Treatment::Idle } else { Treatment::Judged };
        let mut treated = treated.into_iter();
        self.blamed.retain(|_| treated.next() == Some(kept));
        self.excess = self.blamed.iter().map(|b| b.excess).sum();
        !self.blamed.is_empty()
    }
}

/// Of a diffuse occurrence, at least this part of its excess must be explained for it not to be reported again.
const EXPLAINED: f64 = 0.5;
/// Responsible events have at least one part in this many of the occurrence's excess.
const SHARE: Ns = 10;

/// All occurrences that took too long, in order of their patterns, units first; once cancelled, some of them.
pub fn find(
    table: &PatternTable,
    durations: &[Durations],
    limits: &[PatternLimits],
    operations: &Operations,
    s: f64,
    cancel: &Cancel,
) -> Vec<LateOccurrence> {
    // By stream and first operation: excess already accounted for.
    let mut explained: BTreeMap<(u32, u32), Ns> = BTreeMap::new();
    let mut found = Vec::new();
    let (units, others): (Vec<_>, Vec<_>) = table.measured().partition(|(_, p)| p.unit);
    // Others in order of their ids: what a pattern uses comes before it.
    for (id, pattern) in units.into_iter().chain(others).take_while(|_| !cancel.is_cancelled()) {
        let (durations, limits) = (&durations[id.index()], &limits[id.index()]);
        let occurrences = &table.occurrences[id.index()];
        let length = pattern.length as usize;
        for (occurrence, duration) in occurrences.iter().zip(&durations.each) {
            let character = limits.of(*occurrence);
            let Some(reference) = character.reference else { continue };
            if character.verdict != PatternVerdict::Selected || *duration < character.limit {
                continue;
            }
            let excess = duration - durations.each[reference];
            let inside = (occurrence.stream, occurrence.first)..(occurrence.stream, occurrence.first + pattern.length);
            let known: Ns = explained.range(inside).map(|(_, e)| *e).sum();
            if !pattern.unit && known as f64 >= EXPLAINED * excess as f64 {
                continue;
            }
            let usual = durations.events(operations, occurrences[reference], length);
            let events = durations.events(operations, *occurrence, length);
            let mut late = LateOccurrence {
                pattern: Some(id),
                occurrence: *occurrence,
                length: pattern.length,
                local: events.span(),
                excess,
                diffuse: false,
                idle: false,
                blamed: Vec::new(),
            };
            let compared = (0..events.count().min(usual.count())).map(|event| {
                let (local, reference) = (events.span_of(event), usual.span_of(event).len());
                let event = 2 * occurrence.first + event as u32;
                ResponsibleEvent { event, local, excess: local.len() - reference, reference }
            });
            let compared: Vec<ResponsibleEvent> = compared.collect();
            let is_responsible = |b: &ResponsibleEvent| {
                b.local.len() as f64 >= s * b.reference.max(SMALLEST) as f64 && b.excess.saturating_mul(SHARE) >= excess
            };
            late.blamed = compared.iter().filter(|b| is_responsible(b)).copied().collect();
            if late.blamed.is_empty() {
                late.diffuse = true;
                late.blamed.extend(compared.iter().max_by_key(|b| (b.excess, std::cmp::Reverse(b.event))));
            }
            *explained.entry((occurrence.stream, occurrence.first)).or_default() += excess;
            found.push(late);
        }
    }
    found
}
