//! The slot algebra: what the events of a chunk do to one slot of a state machine, without knowing its value before.
//!
//! In: changes of one slot in order of time, each a function of the value before: [`Change::Set`] or [`Change::If`].
//! Out: the intervals in which it held each value, given to a `sink` as soon as both ends are decided. ALGORITHMS.md
//! 10.3, after the enumerative execution of Mytkowicz, limited to a short prefix.
//!
//! A slot that begins in the dark keeps its changes until one sets it whatever it was (the *prefix*); from there on
//! it runs as if nothing were unknown, except that nobody knows yet since when it holds its first value: the prefix may
//! have set it to what it was. [`Slot::append`] joins the slot of a later chunk: its prefix is played on the
//! value at hand, the rest is taken over. That is associative, so chunks may be joined in any bracketing, and a
//! slot that [`Slot::known`] begins makes every later one known. Cost of joining: the right side's prefix.
//!
//! Changes of one time are one change (the last one's value counts), so no interval is empty and setting what already
//! holds is no change. What is appended must begin later than what is there ends.

use crate::base::time::{Span, Timestamp};

/// What an event does to a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change<V> {
    /// It holds this from now on.
    Set(V),
    /// If it holds the first, then from now on the second.
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

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slot<V> {
    /// Changes up to and with the time of the first [`Change::Set`]; none in a known slot.
    prefix: Vec<(Timestamp, Change<V>)>,
    /// What holds after the prefix; `None` as long as that depends on the left.
    value: Option<V>,
    /// Since when; `None` as long as that depends on the left.
    since: Option<Timestamp>,
    /// When the value that the prefix left ended: the end of an interval that begins on the left.
    held: Option<Timestamp>,
    /// Changes of the last time, composed: time, value afterwards.
    pending: Option<(Timestamp, V)>,
}

impl<V> Default for Slot<V> {
    fn default() -> Self {
        Slot { prefix: Vec::new(), value: None, since: None, held: None, pending: None }
    }
}

impl<V: Copy + PartialEq> Slot<V> {
    /// A slot that holds `value` from `since` on.
    pub fn known(value: V, since: Timestamp) -> Slot<V> {
        Slot { value: Some(value), since: Some(since), ..Slot::default() }
    }

    /// What it holds after all changes so far; `None` where that depends on the left.
    pub fn value(&self) -> Option<V> {
        self.pending.map_or(self.value, |(_, value)| Some(value))
    }

    /// Time of the last change so far that set it, or was kept.
    pub fn last(&self) -> Option<Timestamp> {
        let prefix = self.prefix.last().map(|(t, _)| *t);
        self.pending.map(|(t, _)| t).or(self.since).or(prefix)
    }

    /// Time of the first change, where the left is not known.
    pub fn begins(&self) -> Option<Timestamp> {
        self.prefix.first().map(|(t, _)| *t)
    }

    /// From when on it does not depend on the left.
    pub fn decided(&self) -> Option<Timestamp> {
        self.value?;
        self.prefix.last().map(|(t, _)| *t)
    }

    /// Change it at `t`, which is no earlier than the changes before.
    pub fn change(&mut self, t: Timestamp, change: Change<V>, sink: &mut impl FnMut(V, Span)) {
        let in_prefix = self.pending.is_none() && self.since.is_none();
        if in_prefix && (self.value.is_none() || self.prefix.last().is_some_and(|(last, _)| *last >= t)) {
            self.prefix.push((t, change));
            self.value = match (change, self.value) {
                (Change::Set(value), _) => Some(value),
                (change, value) => value.map(|value| change.on(value)),
            };
            return;
        }
        if self.pending.is_some_and(|(at, _)| at < t) {
            self.settle(sink);
        }
        if let Some(before) = self.value() {
            self.pending = Some((self.pending.map_or(t, |(at, _)| at), change.on(before)));
        }
    }

    /// No more changes come at the time of the last one.
    fn settle(&mut self, sink: &mut impl FnMut(V, Span)) {
        if let Some((at, next)) = self.pending.take()
            && self.value != Some(next)
        {
            self.end(at, sink);
            (self.value, self.since) = (Some(next), Some(at));
        }
    }

    /// What it holds ends at `at`.
    fn end(&mut self, at: Timestamp, sink: &mut impl FnMut(V, Span)) {
        match (self.value, self.since) {
            (Some(value), Some(since)) if since < at => sink(value, Span::new(since, at)),
            (Some(_), None) => self.held = Some(at),
            _ => {}
        }
    }

    /// Join what a later chunk did.
    pub fn append(&mut self, right: Slot<V>, sink: &mut impl FnMut(V, Span)) {
        for (t, change) in right.prefix {
            self.change(t, change, sink);
        }
        if right.value.is_none() {
            return;
        }
        // The prefix ends with the same value whatever was before: both sides agree on it.
        self.settle(sink);
        if let Some(held) = right.held {
            self.end(held, sink);
            (self.value, self.since) = (right.value, right.since);
        }
        self.pending = right.pending;
    }

    /// Everything ends at `end`; what it holds, if it began no earlier, is not told.
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

    type Changes = Vec<(Timestamp, Change<u8>)>;
    const END: Timestamp = 130;

    fn slot(changes: &[(Timestamp, Change<u8>)], found: &mut Vec<(Timestamp, Timestamp, u8)>) -> Slot<u8> {
        let mut slot = Slot::default();
        changes.iter().for_each(|(t, change)| slot.change(*t, *change, &mut into(found)));
        slot
    }

    fn into(found: &mut Vec<(Timestamp, Timestamp, u8)>) -> impl FnMut(u8, Span) {
        |value, span| found.push((span.start, span.end, value))
    }

    /// The obvious way: the value of every instant, changes of one instant one after the other.
    fn serial(changes: &Changes, initial: u8) -> Vec<(Timestamp, Timestamp, u8)> {
        let (mut value, mut left) = (initial, changes.iter().peekable());
        let mut intervals: Vec<(Timestamp, Timestamp, u8)> = Vec::new();
        for t in -1..END {
            while let Some((_, change)) = left.next_if(|(at, _)| *at == t) {
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
    fn joined(parts: &[Changes], initial: u8, mut pick: impl FnMut(usize) -> usize) -> Vec<(Timestamp, Timestamp, u8)> {
        let mut found = Vec::new();
        let mut slots: Vec<Slot<u8>> = vec![Slot::known(initial, -1)];
        slots.extend(parts.iter().map(|part| slot(part, &mut found)));
        while slots.len() > 1 {
            let at = pick(slots.len() - 1) % (slots.len() - 1);
            let right = slots.remove(at + 1);
            slots[at].append(right, &mut into(&mut found));
        }
        slots.pop().unwrap().close(END, &mut into(&mut found));
        found.sort_unstable();
        found
    }

    #[test]
    fn every_short_history_equals_the_serial_one_in_every_cut_and_bracketing() {
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
                    assert_eq!(joined(&parts, initial, |n| n - 1), *want, "{changes:?} {cuts:?} from the right");
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
        fn random_cuts_and_bracketings_equal_the_serial_history(
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
    fn what_was_waited_for_is_decided_where_it_is_set() {
        let mut found = Vec::new();
        let changes = [(5, Change::If(1, 2)), (7, Change::Set(0)), (9, Change::Set(0)), (12, Change::Set(3))];
        let right = slot(&changes, &mut found);
        assert_eq!((right.begins(), right.decided(), right.value()), (Some(5), Some(7), Some(3)));
        assert_eq!(found, []);
    }
}
