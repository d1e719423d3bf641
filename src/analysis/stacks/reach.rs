//! The time for which a sample holds: to the middle between it and its neighbours, over waits, within its program, and
//! no longer than a number of sampling periods of running time.

use super::Sample;
use super::placement::Placement;
use crate::base::time::{Span, Timestamp};
use crate::event::stack::StackOrigin;
use crate::timeline::SegmentKind;

impl Placement<'_> {
    /// Without recorded system calls, the stack with which a thread leaves the CPU to wait is the stack of a call: it
    /// holds for the wait and says nothing about the code before and after it.
    pub(super) fn around_waits(&self, span: Span, samples: &[Sample]) -> Vec<(Span, Sample)> {
        let mut parts = Vec::with_capacity(samples.len());
        let (mut from, mut first) = (span.start, 0);
        for (i, sample) in samples.iter().enumerate() {
            let Some(wait) = self.wait_from(sample).map(|end| Span::new(sample.time, end).clip(span)) else { continue };
            parts.extend(self.spread(Span::new(from, wait.start), &samples[first..i]));
            parts.push((wait, *sample));
            (from, first) = (wait.end.max(from), i + 1);
        }
        parts.extend(self.spread(Span::new(from, span.end), &samples[first..]));
        parts
    }

    /// The end of the time off the CPU that begins with a sample, where the thread waited in it.
    fn wait_from(&self, sample: &Sample) -> Option<Timestamp> {
        if sample.origin != StackOrigin::SwitchOut {
            return None;
        }
        let mut segments = self.reader.segments(self.id);
        let (mut waits, mut end) = (false, None);
        let mut off = segments.first_after(sample.time);
        while let Some(segment) = off.filter(|segment| !segment.kind.is_on_cpu()) {
            waits |= segment.kind != SegmentKind::Preempted;
            end = Some(segment.span.end);
            off = segments.next_row();
        }
        end.filter(|_| waits)
    }

    /// The time for which each of `samples` (all inside `span`) holds.
    pub(super) fn spread(&self, span: Span, samples: &[Sample]) -> Vec<(Span, Sample)> {
        let mut parts = Vec::with_capacity(samples.len());
        let mut from = span.start;
        for (i, sample) in samples.iter().enumerate() {
            let to = samples.get(i + 1).map_or(span.end, |next| self.meeting(sample, next));
            let part = Span::new(self.backward(sample.time, from), self.forward(sample.time, to));
            let part = part.clip(self.program_life(sample.time));
            if !part.is_empty() {
                parts.push((part, *sample));
            }
            from = to;
        }
        parts
    }

    /// The moment at which one sample gives way to the next.
    fn meeting(&self, a: &Sample, b: &Sample) -> Timestamp {
        if let (Some(before), Some(after)) = (a.user, b.user)
            && self.program(before) != self.program(after)
        {
            let began = after.space.and_then(|s| self.inputs.spaces.get(s)).map_or(b.time, |s| s.from);
            return began.clamp(a.time, b.time);
        }
        let middle = a.time + (b.time - a.time) / 2;
        match self.reader.segments(self.id).first_after(middle) {
            Some(e)
                if !e.kind.is_on_cpu() && e.span.contains(middle) && a.time <= e.span.start && e.span.end <= b.time =>
            {
                if e.span.start - a.time <= b.time - e.span.end {
                    e.span.end
                } else {
                    e.span.start
                }
            }
            _ => middle,
        }
    }

    /// The time after `t` when the thread has run for the reach of a sample, at most `end`.
    fn forward(&self, t: Timestamp, end: Timestamp) -> Timestamp {
        let mut left = self.inputs.reach;
        if end.since(t) <= left {
            return end;
        }
        for e in self.reader.segments(self.id).within(Span::new(t, end)) {
            let part = e.span.clip(Span::new(t, end));
            if e.kind.is_on_cpu() {
                if part.len() > left {
                    return part.start + left;
                }
                left -= part.len();
            }
        }
        end
    }

    /// The moment before `t` by as much running time, at least `start`.
    fn backward(&self, t: Timestamp, start: Timestamp) -> Timestamp {
        let mut left = self.inputs.reach;
        if t.since(start) <= left {
            return start;
        }
        let mut segments = self.reader.segments(self.id);
        let mut before = segments.last_begun(t.saturating_sub(1));
        while let Some(e) = before.filter(|e| e.span.end > start) {
            let part = e.span.clip(Span::new(start, t));
            if e.kind.is_on_cpu() {
                if part.len() > left {
                    return part.end - left;
                }
                left -= part.len();
            }
            before = segments.previous_row();
        }
        start
    }
}
