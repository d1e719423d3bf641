//! The slot algebra: the effect of a chunk's events on one slot of a state machine, without its value before the chunk.
//!
//! In: changes of one slot in order of time, each a function of the value before: [`Change::Set`] or [`Change::If`].
//! Out: the intervals in which it held each value, passed to a `sink` as soon as both ends are decided. ALGORITHMS.md
//! 10.3, after the enumerative execution of Mytkowicz, limited to a short prefix.
//!
//! A slot without a known initial state keeps its changes until one sets it whatever its value was (the *prefix*).
//! After that its value is known, but not yet since when: the prefix may have set it to the value that it had.
//! [`Slot::append`] joins the slot of the next chunk: its prefix is applied to the current value, the rest is taken
//! over. That is associative, so chunks may be joined in any order of joins, and a slot that begins with
//! [`Slot::known`] makes every later one known. Cost of joining: the prefix of the later slot.
//!
//! Changes at one time are one change (the last value counts), so no interval is empty, and setting the current value
//! is no change. The changes of an appended slot must be later than all changes before.

use crate::base::time::{Span, Timestamp};

/// A change of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change<V> {
    /// The slot has this value from now on.
    Set(V),
    /// If the slot has the first value, it has the second from now on.
    If(V, V),
}

impl<V: Copy + PartialEq> Change<V> {
    fn on(self, value: V) -> V {
        match self {
            Change::Set(to) => to,
            Change::If(from, to) => {
                if from == value {
                    to
                } else {
                    value
                }
            }
        }
    }
}

/// A change, and when it happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct TimedChange<V> {
    at: Timestamp,
    change: Change<V>,
}

/// The changes at one time, composed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PendingChange<V> {
    at: Timestamp,
    /// The value afterwards.
    value: V,
}

/// A slot and its open interval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slot<V> {
    /// Changes up to and with the time of the first [`Change::Set`]; none in a known slot.
    prefix: Vec<TimedChange<V>>,
    /// The value after the prefix; `None` as long as it depends on the carried-in value.
    value: Option<V>,
    /// Since when; `None` as long as that depends on the carried-in value.
    since: Option<Timestamp>,
    /// When the value after the prefix ended: the end of an interval that may begin in a previous chunk.
    held_until: Option<Timestamp>,
    /// The changes at the last time.
    pending: Option<PendingChange<V>>,
}

impl<V> Default for Slot<V> {
    fn default() -> Self {
        Slot { prefix: Vec::new(), value: None, since: None, held_until: None, pending: None }
    }
}

impl<V: Copy + PartialEq> Slot<V> {
    /// A slot that has the value `value` from `since` on.
    pub fn known(value: V, since: Timestamp) -> Slot<V> {
        Slot { value: Some(value), since: Some(since), ..Slot::default() }
    }

    /// Its value after all changes so far; `None` where it depends on the carried-in value.
    pub fn value(&self) -> Option<V> {
        self.pending.map_or(self.value, |pending| Some(pending.value))
    }

    /// Time of the last change so far that set it or is in the prefix.
    pub fn last(&self) -> Option<Timestamp> {
        let prefix = self.prefix.last().map(|change| change.at);
        self.pending.map(|pending| pending.at).or(self.since).or(prefix)
    }

    /// Time of the first change, where the carried-in value is not known.
    pub fn begins(&self) -> Option<Timestamp> {
        self.prefix.first().map(|change| change.at)
    }

    /// Change it at `t`, which is no earlier than the changes before.
    pub fn change(&mut self, t: Timestamp, change: Change<V>, sink: &mut impl FnMut(V, Span)) {
        let in_prefix = self.pending.is_none() && self.since.is_none();
        if in_prefix && (self.value.is_none() || self.prefix.last().is_some_and(|last| last.at >= t)) {
            self.prefix.push(TimedChange { at: t, change });
            self.value = match (change, self.value) {
                (Change::Set(value), _) => Some(value),
                (change, value) => value.map(|value| change.on(value)),
            };
            return;
        }
        if self.pending.is_some_and(|pending| pending.at < t) {
            self.settle(sink);
        }
        if let Some(before) = self.value() {
            let at = self.pending.map_or(t, |pending| pending.at);
            self.pending = Some(PendingChange { at, value: change.on(before) });
        }
    }

    /// No more changes come at the time of the last one.
    fn settle(&mut self, sink: &mut impl FnMut(V, Span)) {
        if let Some(PendingChange { at, value }) = self.pending.take()
            && self.value != Some(value)
        {
            self.end(at, sink);
            (self.value, self.since) = (Some(value), Some(at));
        }
    }

    /// Its current value ends at `at`.
    fn end(&mut self, at: Timestamp, sink: &mut impl FnMut(V, Span)) {
        match (self.value, self.since) {
            (Some(value), Some(since)) if since < at => sink(value, Span::new(since, at)),
            (Some(_), None) => self.held_until = Some(at),
            _ => {}
        }
    }

    /// Join the changes of the next chunk.
    pub fn append(&mut self, next: Slot<V>, sink: &mut impl FnMut(V, Span)) {
        for TimedChange { at, change } in next.prefix {
            self.change(at, change, sink);
        }
        if next.value.is_none() {
            return;
        }
        // The prefix ends with the same value whatever was before: both slots have it.
        self.settle(sink);
        if let Some(held_until) = next.held_until {
            self.end(held_until, sink);
            (self.value, self.since) = (next.value, next.since);
        }
        self.pending = next.pending;
    }

    /// Its current value ends at `end`; there is no interval if the value began no earlier.
    pub fn close(mut self, end: Timestamp, sink: &mut impl FnMut(V, Span)) {
        self.settle(sink);
        if let (Some(value), Some(since)) = (self.value, self.since)
            && since < end
        {
            sink(value, Span::new(since, end));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    type Changes = Vec<(i64, Change<u8>)>;
    const END: i64 = 130;

    fn slot(changes: &[(i64, Change<u8>)], found: &mut Vec<(i64, i64, u8)>) -> Slot<u8> {
        let mut slot = Slot::default();
        changes.iter().for_each(|(t, change)| slot.change(Timestamp::new(*t), *change, &mut into(found)));
        slot
    }

    fn into(found: &mut Vec<(i64, i64, u8)>) -> impl FnMut(u8, Span) {
        |value, span| found.push((span.start.ns(), span.end.ns(), value))
    }

    /// The reference: the value at every instant, with the changes of one instant applied one after the other.
    fn serial(changes: &Changes, initial: u8) -> Vec<(i64, i64, u8)> {
        let (mut value, mut rest) = (initial, changes.iter().peekable());
        let mut intervals: Vec<(i64, i64, u8)> = Vec::new();
        for t in -1..END {
            while let Some((_, change)) = rest.next_if(|(at, _)| *at == t) {
                value = change.on(value);
            }
            match intervals.last_mut() {
                Some(last) if last.2 == value => last.1 = t + 1,
                _ => intervals.push((t, t + 1, value)),
            }
        }
        intervals
    }

    /// Cut before the given positions, moved back to where time advances.
    fn cut(changes: &Changes, cuts: &[usize]) -> Vec<Changes> {
        let mut bounds: Vec<usize> = cuts.iter().map(|at| at % (changes.len() + 1)).collect();
        for bound in &mut bounds {
            while *bound > 0 && *bound < changes.len() && changes[*bound].0 == changes[*bound - 1].0 {
                *bound -= 1;
            }
        }
        bounds.extend([0, changes.len()]);
        bounds.sort_unstable();
        bounds.windows(2).map(|w| changes[w[0]..w[1]].to_vec()).collect()
    }

    /// Join parts in the order that `pick` chooses, then begin with `initial`.
    fn joined(parts: &[Changes], initial: u8, mut pick: impl FnMut(usize) -> usize) -> Vec<(i64, i64, u8)> {
        let mut found = Vec::new();
        let mut slots: Vec<Slot<u8>> = vec![Slot::known(initial, Timestamp::new(-1))];
        slots.extend(parts.iter().map(|part| slot(part, &mut found)));
        while slots.len() > 1 {
            let at = pick(slots.len() - 1) % (slots.len() - 1);
            let next = slots.remove(at + 1);
            slots[at].append(next, &mut into(&mut found));
        }
        slots.pop().unwrap().close(Timestamp::new(END), &mut into(&mut found));
        found.sort_unstable();
        found
    }

    #[test]
    fn append_equals_the_serial_history_for_all_short_histories_and_cuts() {
        let kinds = [Change::Set(0), Change::Set(1), Change::If(0, 1), Change::If(1, 2), Change::If(2, 0)];
        for number in 0..kinds.len().pow(4) * 8 {
            let (mut rest, mut t) = (number / 8, 0);
            let mut changes = Changes::new();
            for i in 0..4 {
                t += if i > 0 && number >> (i - 1) & 1 == 1 { 0 } else { 2 };
                changes.push((t, kinds[rest % kinds.len()]));
                rest /= kinds.len();
            }
            let want = [0, 1, 2].map(|initial| serial(&changes, initial));
            for cuts in 0..8usize {
                let cuts: Vec<usize> = (0..3).filter(|i| cuts >> i & 1 == 1).map(|i| i + 1).collect();
                let parts = cut(&changes, &cuts);
                for (initial, want) in (0..).zip(&want) {
                    assert_eq!(joined(&parts, initial, |_| 0), *want, "{changes:?} {cuts:?}");
                    assert_eq!(joined(&parts, initial, |n| n - 1), *want, "{changes:?} {cuts:?}, last ones first");
                }
            }
        }
    }

    prop_compose! {
        fn histories()(steps in prop::collection::vec((0..4i64, 0..4u8, 0..4u8, any::<bool>()), 0..40)) -> Changes {
            let mut t = 0;
            let step = |(after, from, to, sets): (i64, u8, u8, bool)| {
                t += after;
                (t, if sets { Change::Set(to) } else { Change::If(from, to) })
            };
            steps.into_iter().map(step).collect()
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]
        #[test]
        fn append_equals_the_serial_history_for_random_cuts(
            changes in histories(),
            cuts in prop::collection::vec(0..50usize, 0..6),
            order in prop::collection::vec(0..50usize, 8),
            initial in 0..4u8,
        ) {
            let mut order = order.into_iter();
            let found = joined(&cut(&changes, &cuts), initial, |_| order.next().unwrap_or(0));
            prop_assert_eq!(found, serial(&changes, initial));
        }
    }

    #[test]
    fn begins_is_the_time_of_the_first_change() {
        let mut found = Vec::new();
        let changes = [(5, Change::If(1, 2)), (7, Change::Set(0)), (9, Change::Set(0)), (12, Change::Set(3))];
        let slot = slot(&changes, &mut found);
        assert_eq!((slot.begins(), slot.value()), (Some(Timestamp::new(5)), Some(3)));
        assert_eq!(found, []);
    }
}
