//! Rows are sealed while the pass runs: those that no later event reads or changes go to the store.
//!
//! Every so many events ([`SEAL_EVERY`] by default; more seldom where there are many threads) all settled rows move.
//! Threads that no event has changed since the last time are not looked at. A thread keeps its last row of each kind,
//! and the segments that the end of its open or next system call may relabel ([`NEAR`] at most). Until a host had a
//! switch its rows stay: without any they are made anew when the pass ends. Page faults, values of counters and work of
//! kernel threads are settled when they come, disk requests as far as none before them is open (`requests`); they move
//! where they are worth a leaf ([`LEAST_PART`]). Few changes come later than that (a packet whose send follows, a call
//! whose entry was lost): they are kept and made in the sealed leaves. When rows are sealed depends on the events and
//! on their number alone ([`SealMoments`]): a worker that does not know the events before its chunk knows these moments
//! as well.
//!
//! The machine only moves the rows, as *slabs* by number; the pass makes them leaves, on another thread. Where these
//! slabs and the rows of threads would pass their part of the memory budget, the machine makes them leaves itself,
//! before it goes on: that takes the time of its own thread, and changes no leaf.

use super::machine::Machine;
use super::sealed_rows::{
    KEPT, LateChange, NEAR, NumberedSlabs, SealMoments, SegmentChange, SegmentNumber, clear, move_first, move_lines,
    shrink,
};
use super::thread_state::{OpenCall, Sched, ThreadState};
use crate::base::heap::block;
use crate::base::time::Timestamp;
use crate::kernel::threads::Visit;
use crate::timeline::store::builder::OpenBytes;
use crate::timeline::store::parts::RowPlace;
use crate::timeline::store::pool::LeafPool;
use crate::timeline::store::row_builders::{OpenSlabs, RowBuilders, SealedSlabs};
use crate::timeline::{ThreadId, ThreadRows};
use get_size2::GetSize;
use std::sync::Arc;

/// Events for each living thread between two slabs.
const PER_THREAD: usize = 4;
/// A family of which few events make rows waits until it has a row for each this many of the least events between two
/// slabs (1,024, half a leaf): else each slab would have a leaf for a few rows of it.
const LEAST_PART: usize = 8;

impl ThreadState {
    /// Its last segment so far.
    pub(super) fn last_segment(&self) -> Option<SegmentNumber> {
        let last = self.rows.segments.len().checked_sub(1)?;
        Some(SegmentNumber(self.sealed.dropped + self.sealed.stored + last))
    }

    /// Number of segments that no event of the thread reads or changes any more. The exit of a system call relabels
    /// segments since its entry, or, where that was lost, since the call before.
    fn settled_segments(&self) -> usize {
        let segments = &self.rows.segments;
        let since = match (self.call, self.rows.calls.last()) {
            _ if self.sched == Sched::Dead => Timestamp::MAX,
            (Some(OpenCall { since, .. }), _) => since,
            (None, Some(last)) => last.span.end,
            (None, None) => self.thread.life.start,
        };
        let settled = segments.partition_point(|segment| segment.span.end <= since);
        settled.max(segments.len().saturating_sub(NEAR)).min(segments.len().saturating_sub(1))
    }

    /// True if its rows stay as they are until an event changes them.
    pub(super) fn is_sealed(&self) -> bool {
        let ThreadRows { segments, calls, samples, .. } = &self.rows;
        let is_small = segments.capacity().max(calls.capacity()).max(samples.capacity()) <= 2 * KEPT;
        is_small && segments.len().max(calls.len()).max(samples.len()) <= 1
    }

    /// Move its settled rows; `scheduled` is true where its host had switches.
    fn seal_rows(&mut self, line: usize, begin: Timestamp, scheduled: bool, into: &mut RowBuilders) {
        if self.rows.segments.len().max(self.rows.calls.len()).max(self.rows.samples.len()) <= 1 {
            shrink(&mut self.rows.segments, 0);
            shrink(&mut self.rows.calls, 0);
            shrink(&mut self.rows.samples, 0);
            return;
        }
        if self.thread.life.start < begin {
            self.clip_rows(begin);
        }
        let samples = self.rows.samples.len().saturating_sub(1);
        self.seal_samples(line, samples, into);
        if !scheduled {
            return;
        }
        let segments = self.settled_segments();
        self.seal_segments(line, segments, into);
        let calls = self.rows.calls.len().saturating_sub(1);
        self.seal_calls(line, calls, into);
    }

    /// Move its first segments.
    pub(super) fn seal_segments(&mut self, line: usize, count: usize, into: &mut RowBuilders) {
        move_first(&mut self.rows.segments, count, line, &mut into.segments);
        self.sealed.stored += count;
    }

    /// Move its first samples.
    pub(super) fn seal_samples(&mut self, line: usize, count: usize, into: &mut RowBuilders) {
        if count > 0 && !self.rows.has_earlier_samples {
            self.rows.has_earlier_samples = true;
            if self.rows.samples.first().is_some_and(|first| first.user.is_some()) {
                self.thread.runs_program();
            }
        }
        move_first(&mut self.rows.samples, count, line, &mut into.samples);
    }

    /// Move its first calls.
    pub(super) fn seal_calls(&mut self, line: usize, count: usize, into: &mut RowBuilders) {
        if count > 0 {
            self.thread.runs_program();
        }
        move_first(&mut self.rows.calls, count, line, &mut into.calls);
    }
}

impl Machine {
    /// Seal rows every so many events on average.
    pub(super) fn set_seal_every(&mut self, events: usize) {
        self.seal_moments = SealMoments::every(events);
    }

    /// The most bytes that rows have held before they were leaves: the store keeps the memory of slabs.
    pub(super) fn most_open_bytes(&self) -> usize {
        self.slabs.most_outside + self.sealed.open_bytes().all
    }

    /// Rows that are in no leaf have this many bytes at most, unless those of threads and of one slab have more;
    /// `None`: any.
    pub(super) fn bound_open_rows(&mut self, bytes: Option<u64>) {
        self.slabs.room = bytes;
    }

    /// Leaves that memory has no room for go to a pool.
    pub(super) fn keep_leaves_in(&mut self, pool: Option<Arc<LeafPool>>) {
        self.sealed.pool = pool;
    }

    /// Move all settled rows to the store, at one of the moments for it, unless there were few events since the last.
    pub(super) fn seal_rows(&mut self) {
        if self.unsealed_events < self.seal_moments.least.max(PER_THREAD * (self.threads.len() - self.ended)) {
            return;
        }
        self.unsealed_events = 0;
        let Some(begin) = self.start else { return };
        let scheduled: Vec<bool> = self.out.tables.quality.iter().map(|quality| quality.switches > 0).collect();
        let is_scheduled = |host: usize| scheduled.get(host) == Some(&true);
        let (mut before, mut after) = (self.slabs.in_threads, self.slabs.in_threads);
        self.threads.visit_changed(|line, state| {
            let bytes = state.rows.get_heap_size();
            before = before + bytes - state.row_bytes;
            after -= state.row_bytes;
            let scheduled = is_scheduled(state.thread.host.index());
            state.seal_rows(line, begin, scheduled, &mut self.sealed);
            if state.sched == Sched::Dead {
                // There may be many more of them than live at a time.
                state.rows.shrink_to_fit();
                self.ended += usize::from(!std::mem::replace(&mut state.has_ended, true));
            }
            if scheduled && state.is_at_rest() {
                return Visit::Ended;
            }
            state.row_bytes = state.rows.get_heap_size();
            after += state.row_bytes;
            if state.is_sealed() { Visit::Known } else { Visit::Again }
        });
        self.slabs.in_threads = after;
        self.slabs.most_outside = self.slabs.most_outside.max(before + self.bytes_of_others());
        self.seal_others();
        for (line, cpu) in self.cpus.iter_mut().enumerate().filter(|(_, cpu)| is_scheduled(cpu.host.index())) {
            self.sealed.runs.push(line, &cpu.runs);
            cpu.runs.clear();
        }
        let slabs = self.sealed.take_slabs();
        self.slabs.largest = self.slabs.largest.max(slabs.bytes());
        self.slabs.open.push(NumberedSlabs { number: self.slabs.count, slabs });
        self.slabs.count += 1;
    }

    /// Move the rows of the families that no switch changes, if they are worth a leaf.
    fn seal_others(&mut self) {
        let least = self.seal_moments.least / LEAST_PART;
        self.requests.seal(least, &mut self.sealed.requests);
        self.services.seal(least, &mut self.sealed.services);
        if let Some(faults) = self.out.page_faults.as_mut().filter(|faults| faults.len() >= least) {
            move_lines(faults, |fault| fault.thread.index(), &mut self.sealed.page_faults);
        }
        // All at a time: where there are many counters, a few values of each wait.
        let counters = &mut self.out.counters;
        if counters.iter().map(|counter| counter.values.len()).sum::<usize>() >= least {
            for counter in counters {
                self.sealed.counter(counter.name).push(&mut counter.values);
                clear(&mut counter.values);
            }
        }
    }

    /// Bytes of their rows that are in no slab.
    fn bytes_of_others(&self) -> usize {
        let counters: usize = self.out.counters.iter().map(|counter| block(&counter.values)).sum();
        let faults = self.out.page_faults.as_ref().map_or(0, block);
        self.requests.get_heap_size() + self.services.get_heap_size() + faults + counters
    }

    /// True if the next slabs have room beside those that wait to be leaves.
    pub(super) fn has_room_for_slabs(&self) -> bool {
        let Some(room) = self.slabs.room else { return true };
        let (OpenBytes { all, spare }, next) = (self.sealed.open_bytes(), self.slabs.largest);
        (self.slabs.most_outside + all + next.saturating_sub(spare)) as u64 <= room
    }

    /// Take back the rows that went to the slab of a moment that did not come.
    pub(super) fn take_back_rows(&mut self) {
        for (line, segments) in self.sealed.segments.take_lines() {
            self.threads[ThreadId::at(line)].take_back(segments);
        }
        for (line, calls) in self.sealed.calls.take_lines() {
            self.threads[ThreadId::at(line)].rows.calls.splice(0..0, calls);
        }
        for (line, samples) in self.sealed.samples.take_lines() {
            self.threads[ThreadId::at(line)].rows.samples.splice(0..0, samples);
        }
        for (line, runs) in self.sealed.runs.take_lines() {
            if let Some(cpu) = self.cpus.iter_mut().nth(line) {
                cpu.runs.splice(0..0, runs);
            }
        }
    }

    /// Use the memory of slabs that are leaves again.
    pub(super) fn give_back(&mut self, empty: impl IntoIterator<Item = OpenSlabs>) {
        empty.into_iter().for_each(|slabs| self.sealed.give_back(slabs));
    }

    /// Add slabs that were taken and made leaves to the store, in the order in which they were filled.
    pub(super) fn add_slabs(&mut self, sealed: Vec<NumberedSlabs<SealedSlabs>>) {
        self.slabs.sealed.extend(sealed.into_iter().map(|of| (of.number, of.slabs)));
        while let Some(slabs) = self.slabs.sealed.remove(&self.slabs.added) {
            self.sealed.add_slabs(slabs);
            self.slabs.added += 1;
        }
    }

    /// Make leaves of the slabs that were not taken.
    pub(super) fn seal_slabs(&mut self) {
        for NumberedSlabs { number, mut slabs } in self.slabs.take() {
            let sealed = NumberedSlabs { number, slabs: slabs.seal() };
            self.sealed.give_back(slabs);
            self.add_slabs(vec![sealed]);
        }
    }

    /// Change a segment, sealed or not.
    pub(super) fn change_segment(&mut self, thread: ThreadId, segment: SegmentNumber, change: SegmentChange) {
        let state = &mut self.threads[thread];
        let Some(row) = segment.0.checked_sub(state.sealed.dropped) else { return };
        match row.checked_sub(state.sealed.stored) {
            Some(open) => {
                let segment = state.rows.segments.get_mut(open);
                segment.into_iter().for_each(|segment| change.apply(segment, &self.reasons));
            }
            None => {
                let place = RowPlace { line: thread.index(), row };
                self.late_changes.push(LateChange { place, change });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::kind::{Event, Kind, ThreadContextId};

    #[test]
    fn seal_moments_are_as_frequent_in_copies_of_a_recording() {
        let moments = SealMoments::every(1000);
        for copies in [1_u16, 64] {
            let event = |i: usize| Event {
                time: Timestamp::new(1_700_000_000_000_000_000 + (i / usize::from(copies)) as i64 * 7919),
                who: ThreadContextId::ABSENT,
                trace: i as u16 % copies,
                cpu: (i / usize::from(copies)) as u16 % 2,
                kind: Kind::Exit { tid: 1 },
            };
            let at: Vec<usize> = (0..1_000_000).filter(|i| moments.holds(&event(*i))).collect();
            let longest = at.windows(2).map(|pair| pair[1] - pair[0]).max();
            // One in 500 events.
            assert!((1500..2700).contains(&at.len()), "{copies}: {}", at.len());
            assert!(longest.is_some_and(|events| events < 6000), "{copies}: {longest:?}");
        }
    }
}
