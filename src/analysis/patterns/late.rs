//! The occurrences that exceed their limit, and the events in them that are responsible.
//!
//! In: patterns, durations, limits. Out: [`LateOccurrence`]s, each with its responsible events. ALGORITHMS.md 9.5: the
//! events are compared one by one with those of the reference occurrence; an event is responsible when it reaches s
//! times its reference, and (\[OWN\]) when its excess is at least a tenth of the occurrence's: the microseconds by
//! which some other call was slower at the same time explain nothing. Where none qualifies the event with the largest
//! excess represents all and the occurrence is *diffuse*.
//!
//! An occurrence of a larger pattern is reported only if the late occurrences inside it do not already explain most of
//! its excess. Cost: linear in the occurrences, plus the events of those that are late.

use super::measure::{Durations, PatternLimits, SMALLEST};
use super::table::{Occurrence, PatternId, PatternRole, PatternTable};
use crate::base::ctx::Cancel;
use crate::base::time::{Ns, Span};
use crate::event::operation::Operations;
use crate::model::settings::PatternVerdict;
use std::collections::BTreeMap;

/// The treatment of an event that took longer than usual.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Treatment {
    /// It is responsible, and its causes are searched.
    Responsible,
    /// A wait for work: neither a cause nor a delay.
    Idle,
    /// It is reported elsewhere, because it delayed executions.
    Reported,
}

/// An event's position in its stream: twice that of its operation, plus one for the gap after it.
pub type EventIndex = u32;

#[derive(Clone, Copy, Debug)]
pub struct ResponsibleEvent {
    pub event: EventIndex,
    /// Its time, on the stream's own clock.
    pub local: Span,
    /// Its duration minus that in the reference occurrence.
    pub excess: Ns,
    /// Its duration in the reference occurrence.
    pub reference: Ns,
}

/// An occurrence that exceeds its limit.
#[derive(Clone, Debug)]
pub struct LateOccurrence {
    /// Its pattern; `None` for an event that was found from a wait for it and is in no late occurrence of a pattern.
    pub pattern: Option<PatternId>,
    /// The position.
    pub occurrence: Occurrence,
    /// Operations in it.
    pub length: u32,
    /// Its time, on the stream's own clock.
    pub local: Span,
    /// Its duration minus that of the reference occurrence.
    pub excess: Ns,
    /// No single event is responsible.
    pub diffuse: bool,
    /// It waited for work: its events are no cause and have none.
    pub idle: bool,
    /// The responsible events in order.
    pub responsible: Vec<ResponsibleEvent>,
}

impl LateOccurrence {
    /// Keep the responsible events; where there are none, those of waiting for work. False where no event is left.
    pub(super) fn classify(&mut self, treat: &impl Fn(u32, &ResponsibleEvent) -> Treatment) -> bool {
        let stream = self.occurrence.stream;
        let treated: Vec<Treatment> = self.responsible.iter().map(|b| treat(stream, b)).collect();
        if treated.iter().all(|t| *t == Treatment::Responsible) {
            return true;
        }
        self.idle = !treated.contains(&Treatment::Responsible);
        let kept = if self.idle { Treatment::Idle } else { Treatment::Responsible };
        let mut treated = treated.into_iter();
        self.responsible.retain(|_| treated.next() == Some(kept));
        self.excess = self.responsible.iter().map(|b| b.excess).sum();
        !self.responsible.is_empty()
    }
}

/// A larger occurrence is not reported again where at least this part of its excess is explained.
const EXPLAINED: f64 = 0.5;
/// A responsible event has at least the occurrence's excess divided by this.
const SHARE: Ns = 10;

/// All late occurrences, in order of their patterns, units first; some of them once cancelled.
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
    let (units, others): (Vec<_>, Vec<_>) = table.measured().partition(|(_, p)| p.role == PatternRole::Unit);
    // The others are in order of their ids: the parts of a pattern come before it.
    for (id, pattern) in units.into_iter().chain(others).take_while(|_| !cancel.is_cancelled()) {
        let (durations, limits) = (&durations[id.index()], &limits[id.index()]);
        let occurrences = &table.occurrences[id.index()];
        let length = pattern.length as usize;
        for (occurrence, duration) in occurrences.iter().zip(&durations.each) {
            let limits = limits.of(*occurrence);
            let Some(reference) = limits.reference else { continue };
            if limits.verdict != PatternVerdict::Selected || *duration < limits.limit {
                continue;
            }
            let excess = duration - durations.each[reference];
            let inside = (occurrence.stream, occurrence.first)..(occurrence.stream, occurrence.first + pattern.length);
            let known: Ns = explained.range(inside).map(|(_, e)| *e).sum();
            if pattern.role == PatternRole::Composite && known as f64 >= EXPLAINED * excess as f64 {
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
                responsible: Vec::new(),
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
            late.responsible = compared.iter().filter(|b| is_responsible(b)).copied().collect();
            if late.responsible.is_empty() {
                late.diffuse = true;
                late.responsible.extend(compared.iter().max_by_key(|b| (b.excess, std::cmp::Reverse(b.event))));
            }
            *explained.entry((occurrence.stream, occurrence.first)).or_default() += excess;
            found.push(late);
        }
    }
    found
}
