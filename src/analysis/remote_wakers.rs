//! The threads that woke others on another CPU, where the recording does not say which thread ran there.
//!
//! In: futex waits that ended by a wake-up from another CPU. Out: the thread that must have woken them. A thread that
//! waits for a futex is woken by one that runs, and here on another CPU than its own. Where one thread alone of its
//! process ran on other CPUs during the whole wait, it was that thread: no clock and no delay of the wake-up is
//! assumed. Two other things could end the wait: a timer, whose interrupt another CPU served, or a process that shares
//! the futex. So the thread counts only if the recording shows a thread of its name that woke one with the same call
//! stack directly. A wait is left alone where a thread of the process has unknown time in it, where several ran, and in
//! processes of more than [`THREADS`] threads. Cost: for each such wait a search in each thread of the process.
//! ALGORITHMS.md section 4.4.

use crate::base::names::{NameId, fold_digits};
use crate::base::time::{Span, Timestamp};
use crate::event::host::HostId;
use crate::event::stack::{RawStackId, StackOrigin};
use crate::timeline::questions::Asker;
use crate::timeline::reader::RowReader;
use crate::timeline::{SegmentKind, ThreadId, Timeline, Waker};
use foldhash::{HashMap, HashSet};

/// The most threads of a process among which the waker is looked for.
const THREADS: usize = 256;

/// A wait for a futex.
#[derive(Clone, Copy, Debug)]
pub(super) struct FutexWait {
    thread: ThreadId,
    span: Span,
    /// The user stack with which it began.
    user: RawStackId,
    /// The CPU on which the thread was put into the run queue.
    cpu: u32,
}

type Process = (HostId, i32);

/// Who woke threads that waited at a place, directly: process and stack of the waits, and the waker's name.
type Seen = HashSet<(Process, RawStackId, String)>;

/// The search for wakers on other CPUs: threads by process, and the wakers that the recording shows.
#[derive(Debug)]
pub(super) struct RemoteWakers<'t> {
    timeline: &'t Timeline,
    reader: RowReader<'t>,
    threads: HashMap<Process, Vec<ThreadId>>,
    seen: Seen,
}

impl<'t> RemoteWakers<'t> {
    pub(super) fn new(timeline: &'t Timeline) -> RemoteWakers<'t> {
        let mut threads: HashMap<Process, Vec<ThreadId>> = HashMap::default();
        for (id, thread) in timeline.threads_by_id().filter(|(_, thread)| !thread.idle) {
            threads.entry((thread.host, thread.pid)).or_default().push(id);
        }
        RemoteWakers { timeline, reader: timeline.reader(Asker::Wakers), threads, seen: Seen::default() }
    }

    fn process(&self, thread: ThreadId) -> Option<Process> {
        self.timeline.thread(thread).map(|thread| (thread.host, thread.pid))
    }

    fn name(&self, thread: ThreadId, t: Timestamp) -> String {
        let name: Option<NameId> = self.timeline.thread(thread).and_then(|thread| thread.name_at(t));
        name.map_or_else(String::new, |name| fold_digits(self.timeline.names().get(name)))
    }

    /// The wait of a thread that ended at `t`, if it was one for a futex and its stack was recorded; `is_futex` says
    /// whether functions of the kernel are those of a futex.
    pub(super) fn wait(
        &self,
        thread: ThreadId,
        t: Timestamp,
        is_futex: impl FnMut(RawStackId) -> bool,
    ) -> Option<FutexWait> {
        let mut segments = self.reader.segments(thread);
        let segment = segments.at(t.saturating_sub(1)).filter(|segment| segment.span.end == t)?;
        let cpu = segments.at(t)?.cpu;
        let sample = self.reader.samples(thread).last_begun(t.saturating_sub(1))?;
        let is_out = sample.origin == StackOrigin::SwitchOut && sample.kernel.is_some_and(is_futex);
        Some(FutexWait { thread, span: segment.span, user: sample.user.filter(|_| is_out)?, cpu })
    }

    /// The recording shows who ended a wait.
    pub(super) fn see(&mut self, wait: FutexWait) {
        let segment = self.reader.segments(wait.thread).at(wait.span.start);
        let Some(waker) = segment.and_then(|segment| segment.waker) else { return };
        let (process, by) = (self.process(wait.thread), self.process(waker.thread));
        if let Some(process) = process.filter(|process| by == Some(*process)) {
            self.seen.insert((process, wait.user, self.name(waker.thread, waker.at)));
        }
    }

    /// The thread that ended a wait from another CPU.
    pub(super) fn waker(&self, wait: FutexWait) -> Option<Waker> {
        let process = self.process(wait.thread)?;
        let threads = self.threads.get(&process).filter(|threads| threads.len() <= THREADS)?;
        let mut found: Option<Waker> = None;
        for thread in threads.iter().copied().filter(|thread| *thread != wait.thread) {
            if let Some(at) = self.ran_elsewhere(thread, wait)? {
                if found.is_some() {
                    return None;
                }
                found = Some(Waker { thread, at });
            }
        }
        found.filter(|waker| self.seen.contains(&(process, wait.user, self.name(waker.thread, waker.at))))
    }

    /// The last moment of a wait at which a thread ran on another CPU; `None` where that is unknown.
    fn ran_elsewhere(&self, thread: ThreadId, wait: FutexWait) -> Option<Option<Timestamp>> {
        let mut last = None;
        for segment in self.reader.segments(thread).within(wait.span) {
            match segment.kind {
                SegmentKind::Unknown => return None,
                SegmentKind::Running | SegmentKind::Interrupted if segment.cpu != wait.cpu => {
                    last = Some(segment.span.end.min(wait.span.end));
                }
                _ => {}
            }
        }
        Some(last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::timeline_builder::{TimelineBuilder, thread};
    use crate::base::time::Ns;
    use crate::timeline::ThreadName;

    /// A segment on a CPU.
    fn on(builder: &mut TimelineBuilder, n: usize, cpu: u32, from: Ns, to: Ns, kind: SegmentKind) {
        builder.segment(n, from, to, kind, 0);
        builder.0.threads[n - 1].rows.segments.last_mut().unwrap().cpu = cpu;
    }

    /// A wait of a thread for a futex, which runs on CPU 0 afterwards.
    fn waits(builder: &mut TimelineBuilder, n: usize, from: Ns, to: Ns, waker: usize) {
        builder.segment(n, from, to, SegmentKind::Blocked, waker);
        on(builder, n, 0, to, to + 10, SegmentKind::Running);
        let kernel = builder.0.tables.stacks.intern(&[9]);
        builder.sample(n, from, StackOrigin::SwitchOut, "AL");
        builder.0.threads[n - 1].rows.samples.last_mut().unwrap().kernel = Some(kernel);
    }

    /// Thread 3 waits from 10 to 100 and is woken by thread 2 directly; thread 1 waits from 300 to 400 and is woken
    /// from CPU 1, where thread 2 ran until 380.
    fn recorded() -> TimelineBuilder {
        let mut builder = TimelineBuilder::new(4);
        for (at, name) in ["worker", "journal", "worker", "other"].into_iter().enumerate() {
            let name = builder.0.tables.names.intern(name);
            builder.0.threads[at].thread.names = vec![ThreadName { from: Timestamp::ZERO, name }];
        }
        waits(&mut builder, 3, 10, 100, 2);
        waits(&mut builder, 1, 300, 400, 0);
        on(&mut builder, 2, 1, 250, 380, SegmentKind::Running);
        builder
    }

    /// The waker of the wait of thread 1, where that of thread 3 was recorded.
    fn found(builder: &TimelineBuilder) -> Option<Waker> {
        let timeline = builder.sealed();
        let mut wakers = RemoteWakers::new(&timeline);
        let seen = wakers.wait(thread(3), Timestamp::new(100), |_| true);
        seen.into_iter().for_each(|wait| wakers.see(wait));
        wakers.waker(wakers.wait(thread(1), Timestamp::new(400), |_| true)?)
    }

    #[test]
    fn waker_is_the_only_thread_that_ran_on_another_cpu() {
        let waker = Waker { thread: thread(2), at: Timestamp::new(380) };
        assert_eq!(found(&recorded()), Some(waker));
        // Not one that ran on the CPU of the woken thread, or before the wait.
        let mut builder = recorded();
        on(&mut builder, 4, 1, 200, 300, SegmentKind::Running);
        on(&mut builder, 4, 0, 320, 390, SegmentKind::Running);
        assert_eq!(found(&builder), Some(waker));
    }

    #[test]
    fn waker_is_unknown_where_another_thread_may_have_been_it() {
        for kind in [SegmentKind::Running, SegmentKind::Interrupted, SegmentKind::Unknown] {
            let mut builder = recorded();
            on(&mut builder, 4, 1, 385, 395, kind);
            assert_eq!(found(&builder), None, "{kind:?}");
        }
    }

    #[test]
    fn waker_is_unknown_where_no_thread_of_its_name_is_recorded_as_one() {
        // None is recorded.
        let mut builder = recorded();
        builder.0.threads[2].rows.segments[0].waker = None;
        assert_eq!(found(&builder), None);
        // Thread 4 is, not thread 2.
        builder.0.threads[2].rows.segments[0].waker = Some(Waker { thread: thread(4), at: Timestamp::new(100) });
        assert_eq!(found(&builder), None);
        // Thread 2 is, but of a wait with another call stack.
        let mut builder = recorded();
        builder.0.threads[2].rows.samples[0].user = Some(builder.0.tables.stacks.intern(&[1, 2]));
        assert_eq!(found(&builder), None);
        // It is a thread of another process.
        let mut builder = recorded();
        builder.0.threads[1].thread.pid += 1;
        assert_eq!(found(&builder), None);
    }

    #[test]
    fn wait_is_one_for_a_futex_with_a_stack() {
        let timeline = recorded().sealed();
        let wakers = RemoteWakers::new(&timeline);
        let wait = |t, futex| wakers.wait(thread(1), Timestamp::new(t), |_| futex).map(|wait| wait.span);
        assert_eq!(wait(400, true), Some(Span::of_ns(300, 400)));
        assert_eq!((wait(400, false), wait(399, true), wait(900, true)), (None, None, None));
        let mut builder = recorded();
        builder.0.threads[0].rows.samples[0].user = None;
        let timeline = builder.sealed();
        let wakers = RemoteWakers::new(&timeline);
        assert!(wakers.wait(thread(1), Timestamp::new(400), |_| true).is_none());
    }
}
