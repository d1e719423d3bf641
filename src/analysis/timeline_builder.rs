//! A builder of timelines for tests: threads are numbered from 1 in one process, functions are single letters (their
//! addresses), stacks come from samples, and times are nanoseconds since the origin.

use crate::base::time::{Ns, Span, Timestamp};
use crate::event::host::HostId;
use crate::event::stack::{OptionalWeight, StackOrigin};
use crate::timeline::RecordedTimeline;
use crate::timeline::store::row_builders::RowBuilders;
use crate::timeline::{
    Call, CpuRun, CpuTimeline, DiskRequest, Mark, Segment, SegmentKind, StackSample, Thread, ThreadDraft, ThreadId,
    ThreadName, ThreadRows, Timeline, TimelineDraft, Waker,
};

pub(crate) const HOST: HostId = HostId::at(0);
pub(crate) const PID: i32 = 100;

pub(crate) struct TimelineBuilder(pub TimelineDraft);

/// Thread number `n`.
pub(crate) fn thread(n: usize) -> ThreadId {
    ThreadId::at(n - 1)
}

impl TimelineBuilder {
    /// `threads` threads, named by their number, that live over `[0, 1000)`.
    pub fn new(threads: usize) -> Self {
        let mut timeline = TimelineDraft::default();
        timeline.tables.span = Span::of_ns(0, 1000);
        for i in 1..=threads {
            let name = timeline.tables.names.intern(&i.to_string());
            let mut thread = Thread::new(HOST, i as i32, timeline.tables.span);
            (thread.pid, thread.names) = (PID, vec![ThreadName { from: Timestamp::ZERO, name }]);
            timeline.threads.push(ThreadDraft { thread, rows: ThreadRows::default() });
        }
        TimelineBuilder(timeline)
    }

    /// The timeline as it is so far.
    pub fn sealed(&self) -> Timeline {
        self.recorded().seal()
    }

    pub fn recorded(&self) -> RecordedTimeline {
        self.0.clone().recorded(RowBuilders::default())
    }

    /// A segment of a thread; `waker` 0 for none.
    pub fn segment(&mut self, n: usize, start: Ns, end: Ns, kind: SegmentKind, waker: usize) -> &mut Self {
        let waker = (waker > 0).then(|| Waker { thread: thread(waker), at: Timestamp::new(end) });
        let segment = Segment { span: Span::of_ns(start, end), kind, waker, qualifier: None, cpu: 0 };
        self.0.threads[n - 1].rows.segments.push(segment);
        self
    }

    /// A system call `call`, without a sample.
    pub fn silent_call(&mut self, n: usize, start: Ns, end: Ns) -> &mut Self {
        let name = self.0.tables.names.intern("call");
        self.0.threads[n - 1].rows.calls.push(Call {
            span: Span::of_ns(start, end),
            name,
            ret: Some(1),
            descriptor: None,
        });
        self
    }

    /// A system call `call` with a sample of the stack (outermost first) at its entry, which makes the stack exact.
    pub fn call(&mut self, n: usize, start: Ns, end: Ns, stack: &str) -> &mut Self {
        self.silent_call(n, start, end);
        self.sample(n, start, StackOrigin::CallEntry, stack)
    }

    /// A stack sample, outermost function first.
    pub fn sample(&mut self, n: usize, time: Ns, origin: StackOrigin, stack: &str) -> &mut Self {
        let addresses: Vec<u64> = stack.bytes().rev().map(u64::from).collect();
        let user = Some(self.0.tables.stacks.intern(&addresses));
        self.0.threads[n - 1].rows.samples.push(StackSample {
            time: Timestamp::new(time),
            origin,
            user,
            kernel: None,
            weight: OptionalWeight::NONE,
        });
        self
    }

    /// The threads on CPU 0: (from, to, thread).
    pub fn runs(&mut self, runs: &[(Ns, Ns, usize)]) -> &mut Self {
        let run = |(start, end, n): &(Ns, Ns, usize)| CpuRun { span: Span::of_ns(*start, *end), thread: thread(*n) };
        self.0.cpus = vec![CpuTimeline { host: HOST, cpu: 0, runs: runs.iter().map(run).collect() }];
        self
    }

    /// A request of 4 KiB of a thread to disk 8.
    pub fn request(&mut self, start: Ns, end: Ns, n: usize) -> &mut Self {
        self.0.disk.push(DiskRequest {
            host: HOST,
            device: 8,
            sector: 0,
            bytes: 4096,
            write: false,
            submitter: Some(thread(n)),
            queued_by: None,
            span: Span::of_ns(start, end),
            is_completed: true,
            issued: Timestamp::new(start),
        });
        self
    }

    /// A delimiting event of task 0.
    pub fn mark(&mut self, time: Ns, begins: bool, n: usize, key: Option<i64>) -> &mut Self {
        self.0.marks.push(Mark {
            time: Timestamp::new(time),
            task: 0,
            begins,
            thread: Some(thread(n)),
            trace: 0,
            cpu: 0,
            key,
            kind: None,
            fields: Vec::new(),
        });
        self
    }

    /// Addresses of a raw stack as letters, outermost first.
    pub fn letters(&self, stack: crate::event::stack::RawStackId) -> String {
        self.0.tables.stacks.get(stack).iter().rev().map(|a| *a as u8 as char).collect()
    }
}
