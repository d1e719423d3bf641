//! Micro-scenarios of the kernel machine: a list of events, and the resulting threads, CPUs, requests, functions and
//! user-space events. Critical paths are cases of the conformance suite (`conformance/`).
//!
//! Threads are written by their tid; a segment reads `tid Kind from..to`. The kernel is
//! 6.1, on one host.

mod calls;
mod threads;
mod waits;

use crate::support::spans;
use spans::{instants, span};
use whyslow::parts::analysis::path::{PathSegment, label, walk};
use whyslow::parts::base::time::{Ns, Span, Timestamp};
use whyslow::parts::event::host::{HostId, TraceOrigin};
use whyslow::parts::event::kind::{
    Context, Event, Kind, LossSource, RequestStep, TextId, ThreadContextId, WakeSource, WeightId, WorkStep,
};
use whyslow::parts::event::prev_state::Generation;
use whyslow::parts::event::remark::Priority;
use whyslow::parts::kernel::{Handlers, Machine};
use whyslow::parts::reading::batch::{Batch, BlockRequest, DumpStatus, DumpedThread, MarkBody, ThreadContext};
use whyslow::parts::reading::sources::HostName;
use whyslow::parts::timeline::questions::Asker;
use whyslow::parts::timeline::{SegmentKind, ThreadId, Timeline, TimelineDraft, Waker};

const SLEEP: u16 = 1;

const DISK_SLEEP: u16 = 2;

const READY: u16 = 0;

const PREEMPTED: u16 = 0x100;

const DEAD: u16 = 0x10;

/// A recording in the making: kernel traces of two hosts and a user-space trace. Each (trace, CPU) is a stream.
struct KernelEvents {
    batch: Batch,
    streams: std::collections::BTreeMap<(u16, u16), Vec<Event>>,
    kernel: Generation,
    handlers: Handlers,
    host: u16,
}

fn kernel_events() -> KernelEvents {
    KernelEvents {
        batch: Batch::default(),
        streams: Default::default(),
        kernel: Generation::New,
        handlers: Handlers::built_in(),
        host: 0,
    }
}

impl KernelEvents {
    fn at(&mut self, t: Ns, cpu: u16, kind: Kind) -> &mut Self {
        self.by(t, cpu, ThreadContextId::ABSENT, kind)
    }

    fn by(&mut self, t: Ns, cpu: u16, who: ThreadContextId, kind: Kind) -> &mut Self {
        let event = Event { time: Timestamp::new(t), who, trace: self.host, cpu, kind };
        self.streams.entry((self.host, cpu)).or_default().push(event);
        self
    }

    fn text(&mut self, text: &str) -> TextId {
        self.batch.text(text.as_bytes())
    }

    /// `prev` leaves the CPU in `state`, `next` gets it; 0 is the idle task.
    fn switch(&mut self, t: Ns, cpu: u16, prev: i32, prev_state: u16, next: i32) -> &mut Self {
        let (prev_name, next_name) = (TextId::NONE, TextId::NONE);
        self.at(
            t,
            cpu,
            Kind::Switch { prev, next, prev_state, prev_name, next_name, priorities: [Priority::UNKNOWN; 2] },
        )
    }

    fn wake(&mut self, t: Ns, cpu: u16, tid: i32) -> &mut Self {
        self.at(t, cpu, Kind::Wake { tid, cpu, source: WakeSource::Waking, name: TextId::NONE })
    }

    /// The same, put into the run queue of another CPU.
    fn wake_onto(&mut self, t: Ns, cpu: u16, tid: i32, queue: u16) -> &mut Self {
        self.at(t, cpu, Kind::Wake { tid, cpu: queue, source: WakeSource::Waking, name: TextId::NONE })
    }

    fn wake_new(&mut self, t: Ns, cpu: u16, tid: i32) -> &mut Self {
        self.at(t, cpu, Kind::Wake { tid, cpu, source: WakeSource::New, name: TextId::NONE })
    }

    fn fork(&mut self, t: Ns, cpu: u16, parent: i32, child: i32) -> &mut Self {
        self.at(t, cpu, Kind::Fork { parent, child, child_pid: parent, child_vtid: 0, name: TextId::NONE })
    }

    fn leave(&mut self, t: Ns, cpu: u16, context: Context) -> &mut Self {
        self.at(t, cpu, Kind::Leave { context })
    }

    fn irq(&mut self, t: Ns, cpu: u16, irq: i32, handler: &str) -> &mut Self {
        let name = self.text(handler);
        self.at(t, cpu, Kind::Enter { context: Context::Irq(irq), name })
    }

    fn named(&mut self, t: Ns, cpu: u16, tid: i32, name: &str) -> &mut Self {
        let name = self.text(name);
        let who = self.batch.context_id(ThreadContext { tid: Some(tid), name: Some(name), ..ThreadContext::default() });
        self.by(t, cpu, who, Kind::CallEntry { name, descriptor: None })
    }

    fn recording(&mut self) -> Timeline {
        let streams: Vec<Vec<Event>> = std::mem::take(&mut self.streams).into_values().collect();
        self.batch.merge(&streams);
        let names = ["host0", "host1"].map(|name| HostName { name: name.to_owned(), kernel_release: None }).to_vec();
        let origin = |host, kernel| TraceOrigin { host: HostId::from_raw(host), kernel, generation: self.kernel };
        let origins = vec![origin(0, true), origin(1, true), origin(0, false)];
        let mut machine = Machine::new(names, origins, self.handlers.clone());
        machine.absorb(&self.batch);
        machine.close(Vec::new(), Vec::new()).0.seal()
    }

    /// The path of the thread that has `tid` at `from`, as text without markers.
    fn path(&mut self, tid: i32, from: Ns, to: Ns) -> Vec<String> {
        let recording = self.recording();
        let thread = recording.find_thread(HostId::at(0), tid, Timestamp::new(from)).unwrap();
        check(&recording, thread, span(from, to));
        shown(&recording, &walk(&recording, thread, span(from, to)))
    }
}

fn shown(recording: &Timeline, path: &[PathSegment]) -> Vec<String> {
    let text = |s: &PathSegment| {
        let thread = recording.thread(s.thread).unwrap();
        let host = if thread.host == HostId::at(0) { String::new() } else { format!("host{}:", thread.host.raw()) };
        format!("{host}{} {:?} {}..{}", thread.tid, s.kind, s.span.start, s.span.end)
    };
    path.iter().filter(|s| !s.span.is_empty()).map(text).collect()
}

/// The walk tiles its span and agrees with the definition at every instant; paths of parts join to that of the whole.
fn check(recording: &Timeline, thread: ThreadId, span: Span) {
    let path = walk(recording, thread, span);
    let mut at = span.start;
    for segment in &path {
        assert_eq!(segment.span.start, at, "{path:#?}");
        at = segment.span.end;
        for t in instants(segment.span) {
            assert_eq!(label(recording, thread, t), (segment.thread, segment.kind), "at {t}");
        }
    }
    assert_eq!(at, span.end);
    let labels = |path: &[PathSegment]| -> Vec<(Timestamp, ThreadId, SegmentKind)> {
        path.iter().flat_map(|s| instants(s.span).map(|t| (t, s.thread, s.kind))).collect()
    };
    for cut in instants(span) {
        let mut parts = walk(recording, thread, Span::new(span.start, cut));
        parts.extend(walk(recording, thread, Span::new(cut, span.end)));
        assert_eq!(labels(&parts), labels(&path), "cut at {cut}");
    }
}

/// Position of the user-space trace of host 0.
const USER_TRACE: u16 = 2;

/// The context of an event on a thread.
fn on(s: &mut KernelEvents, tid: i32) -> ThreadContextId {
    s.batch.context_id(ThreadContext { tid: Some(tid), ..ThreadContext::default() })
}

fn called(s: &mut KernelEvents, t: Ns, tid: i32, call: &str, ret: Option<i64>) {
    let (who, name) = (on(s, tid), s.text(call));
    s.by(t, 0, who, ret.map_or(Kind::CallEntry { name, descriptor: None }, |ret| Kind::CallExit { name, ret }));
}
