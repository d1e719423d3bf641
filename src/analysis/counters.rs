//! Hardware counters along a path: how much each grew while the path's threads ran.
//!
//! In: a path. Out: for each counter of the recording, its value at the end minus its value at the start, summed over
//! the path's running segments (and those in which it is unknown whether the thread ran); `None` where no segment has
//! both values. A value holds until the next event that names the thread (for a CPU's counter: until the next event on
//! the CPU). A thread's counter does not change while the thread does not run, so it resumes with the value of its last
//! switch-out. Cost: two binary searches per segment and counter. ALGORITHMS.md section 6.2.

use super::path::PathSegment;
use crate::timeline::reader::RowReader;
use crate::timeline::{CounterOwner, SegmentKind, Timeline};

/// The growth of each counter of the recording along a path.
pub fn along(reader: &RowReader<'_>, path: &[PathSegment]) -> Vec<Option<i64>> {
    let timeline = reader.timeline();
    let growth = |counter| {
        let grown =
            path.iter().filter(|s| matches!(s.kind, SegmentKind::Running | SegmentKind::Unknown) && !s.span.is_empty());
        let grown = grown.filter_map(|s| grown_over(timeline, reader, counter, s));
        grown.fold(None, |sum: Option<i64>, n| Some(sum.unwrap_or(0).saturating_add(n)))
    };
    (0..timeline.counters().len()).map(growth).collect()
}

fn grown_over(timeline: &Timeline, reader: &RowReader<'_>, counter: usize, segment: &PathSegment) -> Option<i64> {
    let owner = match timeline.first_owner(counter)? {
        CounterOwner::Thread(_) => CounterOwner::Thread(segment.thread),
        CounterOwner::Cpu(..) => CounterOwner::Cpu(timeline.thread(segment.thread)?.host, segment.cpu),
    };
    let mut values = reader.counter(counter, owner);
    let end = values.last_begun(segment.span.end)?;
    // A counter that is first read inside the segment has no known value before.
    let start = values.last_begun(segment.span.start).or_else(|| values.first())?;
    i64::try_from(end.value.checked_sub(start.value)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::path::walk;
    use crate::analysis::timeline_builder::{HOST, TimelineBuilder, thread};
    use crate::base::time::{Span, Timestamp};
    use crate::timeline::questions::Asker;
    use crate::timeline::{Counter, CounterValue};

    #[test]
    fn along_sums_running_segments_and_gives_none_without_values() {
        let mut builder = TimelineBuilder::new(3);
        builder.segment(1, 0, 10, SegmentKind::Running, 0).segment(1, 10, 30, SegmentKind::Blocked, 2);
        builder.segment(1, 30, 40, SegmentKind::Running, 0).segment(2, 0, 40, SegmentKind::Running, 0);
        builder.segment(3, 0, 40, SegmentKind::Running, 0);
        let of =
            |n, time, value| CounterValue { owner: CounterOwner::Thread(thread(n)), time: Timestamp::new(time), value };
        let thread_values = vec![of(1, 0, 100), of(1, 10, 150), of(1, 40, 175), of(2, 12, 1000), of(2, 30, 1007)];
        let cpu = |time, value| CounterValue { owner: CounterOwner::Cpu(HOST, 0), time: Timestamp::new(time), value };
        let cpu_values = vec![cpu(0, 5), cpu(10, 25), cpu(30, 45), cpu(40, 90)];
        let name = |builder: &mut TimelineBuilder, text| builder.0.tables.names.intern(text);
        let (a, b) = (name(&mut builder, "perf_thread_instructions"), name(&mut builder, "perf_cpu_cycles"));
        builder.0.counters = vec![Counter { name: a, values: thread_values }, Counter { name: b, values: cpu_values }];
        let along = |n, from, to| {
            along(&builder.sealed().reader(Asker::Counts), &walk(&builder.sealed(), thread(n), Span::of_ns(from, to)))
        };
        // 50 and 25 of the thread itself, 7 of the thread that it waited for.
        assert_eq!(along(1, 0, 40), [Some(82), Some(85)]);
        assert_eq!(along(3, 0, 40), [None, Some(85)]);
    }
}
