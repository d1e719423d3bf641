//! Micro-scenarios of the kernel machine: what happened, as a list of events, and what it knows of lives, CPUs, requests,
//! functions and user-space events. Critical paths are cases of the conformance suite (`conformance/`).
//!
//! Each is named by what it shows. Threads are written by their tid; a segment reads `tid Kind from..to`. The kernel is
//! 6.1, on one host.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use whyslow::analysis::path::{PathSegment, label, walk};
use whyslow::base::time::{Ns, Span};
use whyslow::event::host::TraceOrigin;
use whyslow::event::kind::{Context, Event, Kind, RequestStep, TextId, WakeSource, WhoId, WorkStep};
use whyslow::event::prev_state::Generation;
use whyslow::reading::batch::{Batch, BlockRequest, DumpedThread, MarkBody, ThreadContext};
use whyslow::state::kernel::{Handlers, Machine};
use whyslow::state::timeline::{HostId, SegmentKind, ThreadId, Timeline};

const SLEEP: u16 = 1;
const DISK_SLEEP: u16 = 2;
const READY: u16 = 0;
const PREEMPTED: u16 = 0x100;
const DEAD: u16 = 0x10;

/// A recording in the making: kernel traces of two hosts and a user-space trace. Each (trace, CPU) is a stream.
struct Scene {
    batch: Batch,
    streams: std::collections::BTreeMap<(u16, u16), Vec<Event>>,
    kernel: Generation,
    handlers: Handlers,
    host: u16,
}

fn scene() -> Scene {
    Scene {
        batch: Batch::default(),
        streams: Default::default(),
        kernel: Generation::New,
        handlers: Handlers::built_in(),
        host: 0,
    }
}

impl Scene {
    fn at(&mut self, t: Ns, cpu: u16, kind: Kind) -> &mut Self {
        self.by(t, cpu, WhoId::NOBODY, kind)
    }

    fn by(&mut self, t: Ns, cpu: u16, who: WhoId, kind: Kind) -> &mut Self {
        let event = Event { time: t, who, trace: self.host, cpu, kind };
        self.streams.entry((self.host, cpu)).or_default().push(event);
        self
    }

    fn text(&mut self, text: &str) -> TextId {
        self.batch.text(text.as_bytes())
    }

    /// `prev` leaves the CPU in `state`, `next` gets it; 0 is the idle task.
    fn switch(&mut self, t: Ns, cpu: u16, prev: i32, prev_state: u16, next: i32) -> &mut Self {
        let (prev_name, next_name) = (TextId::NONE, TextId::NONE);
        self.at(t, cpu, Kind::Switch { prev, next, prev_state, prev_name, next_name })
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
        let who = self.batch.who(ThreadContext { tid: Some(tid), name: Some(name), ..ThreadContext::default() });
        self.by(t, cpu, who, Kind::CallEntry { name })
    }

    fn recording(&mut self) -> Timeline {
        let streams: Vec<Vec<Event>> = std::mem::take(&mut self.streams).into_values().collect();
        self.batch.merge(&streams);
        let names = ["host0", "host1"].map(|name| (name.to_owned(), None)).to_vec();
        let origin = |host, kernel| TraceOrigin { host: HostId::from_raw(host), kernel, generation: self.kernel };
        let origins = vec![origin(0, true), origin(1, true), origin(0, false)];
        let mut machine = Machine::new(names, origins, self.handlers.clone());
        machine.absorb(&self.batch);
        machine.close(Vec::new()).0
    }

    /// The path of the thread that has `tid` at `from`, as text without markers.
    fn path(&mut self, tid: i32, from: Ns, to: Ns) -> Vec<String> {
        let recording = self.recording();
        let thread = recording.find_thread(HostId::at(0), tid, from).unwrap();
        check(&recording, thread, Span::new(from, to));
        shown(&recording, &walk(&recording, thread, Span::new(from, to)))
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

/// The walk tiles its span and says of every instant what the definition says; paths of parts join to that of the whole.
fn check(recording: &Timeline, thread: ThreadId, span: Span) {
    let path = walk(recording, thread, span);
    let mut at = span.start;
    for segment in &path {
        assert_eq!(segment.span.start, at, "{path:#?}");
        at = segment.span.end;
        for t in segment.span.start..segment.span.end {
            assert_eq!(label(recording, thread, t), (segment.thread, segment.kind), "at {t}");
        }
    }
    assert_eq!(at, span.end);
    let instants = |path: &[PathSegment]| -> Vec<(Ns, ThreadId, SegmentKind)> {
        path.iter().flat_map(|s| (s.span.start..s.span.end).map(|t| (t, s.thread, s.kind))).collect()
    };
    for cut in span.start..span.end {
        let mut parts = walk(recording, thread, Span::new(span.start, cut));
        parts.extend(walk(recording, thread, Span::new(cut, span.end)));
        assert_eq!(instants(&parts), instants(&path), "cut at {cut}");
    }
}

/// Position of the user-space trace of host 0.
const USER_TRACE: u16 = 2;

#[test]
fn a_thread_that_moves_while_it_waits_for_a_cpu_waits_for_the_new_one() {
    let mut s = scene();
    s.switch(0, 0, 0, READY, 1).switch(5, 0, 1, PREEMPTED, 2).at(8, 1, Kind::Migrate { tid: 1, cpu: 1 });
    s.switch(12, 1, 3, SLEEP, 1).switch(15, 1, 1, SLEEP, 0);
    let recording = s.recording();
    let thread = recording.find_thread(HostId::at(0), 1, 0).unwrap();
    let path = walk(&recording, thread, Span::new(0, 15));
    let cpus: Vec<_> = path.iter().filter(|s| !s.span.is_empty()).map(|s| (s.kind, s.span.start, s.cpu)).collect();
    let want = [
        (SegmentKind::Running, 0, 0),
        (SegmentKind::Preempted, 5, 0),
        (SegmentKind::Preempted, 8, 1),
        (SegmentKind::Running, 12, 1),
    ];
    assert_eq!(cpus, want);
}

#[test]
fn a_reused_id_is_another_thread() {
    let mut s = scene();
    s.switch(0, 0, 0, READY, 1).fork(1, 0, 1, 7).wake_new(1, 0, 7).switch(2, 0, 1, SLEEP, 7);
    s.at(5, 0, Kind::Exit { tid: 7 }).wake(6, 0, 1).switch(6, 0, 7, DEAD, 1);
    s.fork(8, 0, 1, 7).wake_new(8, 0, 7).at(9, 0, Kind::Free { tid: 7 }).switch(10, 0, 1, SLEEP, 7);
    s.at(14, 0, Kind::Exit { tid: 7 }).switch(15, 0, 7, DEAD, 0).at(16, 0, Kind::Free { tid: 7 });
    let recording = s.recording();
    let lives: Vec<Span> = recording.threads.iter().filter(|t| t.tid == 7).map(|t| t.life).collect();
    assert_eq!(lives, [Span::new(1, 6), Span::new(8, 15)]);
}

#[test]
fn a_lost_exit_ends_where_the_id_is_forked_again() {
    let mut s = scene();
    s.switch(0, 0, 0, READY, 1).fork(1, 0, 1, 7).wake_new(1, 0, 7).fork(5, 0, 1, 7).wake_new(5, 0, 7);
    s.switch(6, 0, 1, SLEEP, 7).switch(9, 0, 7, DEAD, 0);
    let recording = s.recording();
    let lives: Vec<Span> = recording.threads.iter().filter(|t| t.tid == 7).map(|t| t.life).collect();
    assert_eq!(lives, [Span::new(1, 5), Span::new(5, 9)]);
}

#[test]
fn exec_by_another_thread_takes_over_the_leaders_id() {
    let mut s = scene();
    let path = s.text("./other");
    s.switch(0, 0, 0, READY, 10).fork(1, 0, 10, 11).wake_new(1, 0, 11).switch(2, 0, 10, SLEEP, 11);
    s.at(5, 0, Kind::Exec { tid: 10, old_tid: 11, path }).switch(9, 0, 10, SLEEP, 0);
    let recording = s.recording();
    let lives: Vec<Span> = recording.threads.iter().filter(|t| t.tid == 10).map(|t| t.life).collect();
    assert_eq!(lives, [Span::new(0, 5), Span::new(1, 9)]);
    let after = recording.threads.iter().position(|t| t.life == Span::new(1, 9)).unwrap();
    let path = walk(&recording, ThreadId::at(after), Span::new(2, 9));
    assert_eq!(shown(&recording, &path), ["10 Running 2..9"]);
}

#[test]
fn a_journal_thread_makes_the_wait_one_for_the_disk() {
    let mut s = scene();
    s.named(0, 1, 9, "jbd2/vda1-8").switch(0, 0, 0, READY, 1).switch(4, 0, 1, DISK_SLEEP, 0);
    s.wake_onto(9, 1, 1, 0).switch(10, 0, 0, READY, 1).switch(12, 0, 1, SLEEP, 0);
    let recording = s.recording();
    let thread = recording.find_thread(HostId::at(0), 1, 0).unwrap();
    let path = walk(&recording, thread, Span::new(4, 10));
    let inside: Vec<_> = path.iter().map(|s| (s.depth, format!("{:?}", s.entered), s.span.len())).collect();
    let want = [(0, "Start", 0), (1, "Disk", 0), (1, "Disk", 5), (0, "Start", 1)];
    assert_eq!(inside, want.map(|(depth, entered, len)| (depth, entered.to_owned(), len)));
    assert!(recording.is_disk_wait(&recording.threads[thread.index()].segments[1]));
}

#[test]
fn waits_that_wait_for_each_other_end() {
    // Damage: each seems to be woken by the other at the end of overlapping waits.
    let mut s = scene();
    s.switch(0, 0, 0, READY, 1).switch(0, 1, 0, READY, 2).switch(2, 0, 1, SLEEP, 0).switch(2, 1, 2, SLEEP, 0);
    let recording = {
        let mut recording = s.recording();
        let (a, b) = (ThreadId::at(1), ThreadId::at(3));
        for (me, other) in [(a, b), (b, a)] {
            let edges = &mut recording.threads[me.index()].segments;
            let last = edges.last_mut().unwrap();
            assert_eq!(last.kind, SegmentKind::Running);
            last.span.end = 2;
            let mut wait = *last;
            wait.span = Span::new(2, 8);
            wait.kind = SegmentKind::Blocked;
            wait.waker = Some((other, 8));
            edges.push(wait);
        }
        recording
    };
    check(&recording, ThreadId::at(1), Span::new(0, 8));
    let path = walk(&recording, ThreadId::at(1), Span::new(0, 8));
    assert_eq!(shown(&recording, &path), ["1 Running 0..2", "2 Blocked 2..8"]);
}

/// A user-space event of thread `vtid` of process `vpid`, in a trace of its own on the same host.
fn user_mark(s: &mut Scene, t: Ns, vtid: i32, vpid: i32) {
    let body = MarkBody { task: 0, begins: true, key: None, kind: None, fields: Vec::new() };
    let mark = s.batch.mark(body);
    let who = s.batch.who(ThreadContext { vtid: Some(vtid), vpid: Some(vpid), ..ThreadContext::default() });
    let event = Event { time: t, who, trace: USER_TRACE, cpu: 0, kind: Kind::Mark(mark) };
    s.streams.entry((USER_TRACE, 0)).or_default().push(event);
}

/// Tids of the threads that the marks were attached to.
fn attached(s: &mut Scene) -> Vec<Option<i32>> {
    let recording = s.recording();
    recording.marks.iter().map(|m| m.thread.and_then(|t| recording.thread(t)).map(|t| t.tid)).collect()
}

#[test]
fn user_space_events_belong_to_the_thread_of_the_same_id() {
    let mut s = scene();
    s.switch(0, 0, 0, READY, 7).switch(20, 0, 7, SLEEP, 0);
    user_mark(&mut s, 5, 7, 7);
    assert_eq!(attached(&mut s), [Some(7)]);
}

#[test]
fn a_containers_ids_are_mapped_by_the_enumeration() {
    // Thread 5007 is number 7 in its container; the host has a thread 7 of its own.
    let mut s = scene();
    s.at(0, 0, Kind::Namespace { tid: 5007, vtid: 5007, vpid: 5007, level: 0 });
    s.at(0, 0, Kind::Namespace { tid: 5007, vtid: 7, vpid: 7, level: 1 });
    s.switch(1, 0, 0, READY, 7).switch(2, 0, 7, SLEEP, 5007).switch(20, 0, 5007, SLEEP, 0);
    let who = s.batch.who(ThreadContext { tid: Some(7), pid: Some(3), ..ThreadContext::default() });
    let name = s.text("kthread");
    s.by(1, 1, who, Kind::CallEntry { name });
    user_mark(&mut s, 5, 7, 7);
    assert_eq!(attached(&mut s), [Some(5007)]);
}

#[test]
fn what_could_belong_to_two_threads_belongs_to_none() {
    // Two containers with a thread 7 of a process 7 each.
    let mut s = scene();
    for tid in [5007, 6007] {
        s.at(0, 0, Kind::Namespace { tid, vtid: 7, vpid: 7, level: 1 });
    }
    s.switch(20, 0, 5007, SLEEP, 0);
    user_mark(&mut s, 5, 7, 7);
    assert_eq!(attached(&mut s), [None]);
}

/// The stacks that function events leave on thread 1: when, and the functions as letters, outermost first.
fn functions(s: &mut Scene) -> Vec<(Ns, String)> {
    let recording = s.recording();
    let thread = recording.find_thread(HostId::at(0), 1, 0).unwrap();
    let text = |stack: Option<_>| -> String {
        let addresses = stack.map_or(&[][..], |stack| recording.stacks.get(stack));
        // Callers stand one behind their first address.
        let letter = |(depth, a): (usize, &u64)| (*a as u8 - u8::from(depth > 0)) as char;
        addresses.iter().enumerate().map(letter).collect::<Vec<_>>().into_iter().rev().collect()
    };
    recording.thread(thread).unwrap().samples.iter().map(|s| (s.time, text(s.user))).collect()
}

#[test]
fn functions_nest_and_lost_exits_are_closed_by_the_next_outer_one() {
    let mut s = scene();
    s.switch(0, 0, 0, READY, 1);
    let function = |enters, letter: char| Kind::Function { enters, address: letter as u64 };
    s.at(1, 0, function(false, 'Z')).at(2, 0, function(true, 'A')).at(3, 0, function(true, 'B'));
    s.at(4, 0, function(true, 'C')).at(5, 0, function(false, 'B')).at(6, 0, function(true, 'D'));
    // The fast variant's exit does not say which.
    s.at(7, 0, Kind::Function { enters: false, address: 0 }).at(8, 0, function(false, 'Q'));
    s.at(9, 0, Kind::Exec { tid: 1, old_tid: 1, path: TextId::NONE }).at(10, 0, function(false, 'A'));
    let told = |t, stack: &str| (t, stack.to_owned());
    let wanted = [told(2, "A"), told(3, "AB"), told(4, "ABC"), told(5, "A"), told(6, "AD"), told(7, "A"), told(9, "")];
    assert_eq!(functions(&mut s), wanted);
}

#[test]
fn endless_recursion_is_bounded_and_comes_back() {
    let mut s = scene();
    s.switch(0, 0, 0, READY, 1);
    for t in 0..1000 {
        s.at(1 + t, 0, Kind::Function { enters: true, address: 65 });
    }
    for t in 0..1000 {
        s.at(2000 + t, 0, Kind::Function { enters: false, address: 65 });
    }
    let all = functions(&mut s);
    assert_eq!((all.len(), all.last().unwrap().1.as_str()), (256, ""));
}

#[test]
fn the_length_of_a_call_tells_where_calls_are_not_recorded() {
    let mut s = scene();
    s.switch(0, 0, 0, READY, 1).at(300, 0, Kind::Latency { ns: 200 }).at(350, 0, Kind::Latency { ns: 120 });
    let recording = s.recording();
    let thread = recording.find_thread(HostId::at(0), 1, 0).unwrap();
    let spans: Vec<_> = recording.thread(thread).unwrap().calls.iter().map(|c| (c.span.start, c.span.end)).collect();
    assert_eq!(spans, [(100, 300), (300, 350)]);
}

#[test]
fn a_disk_request_belongs_to_its_submitter() {
    let mut s = scene();
    let request = BlockRequest { device: 8, sector: 64, bytes: 4096, write: true, tid: Some(5) };
    let id = s.batch.request(request);
    let done = s.batch.request(BlockRequest { tid: None, bytes: 0, ..request });
    s.switch(0, 0, 0, READY, 5).at(3, 0, Kind::Block { step: RequestStep::Issue, request: id });
    s.switch(4, 0, 5, DISK_SLEEP, 0).irq(9, 0, 31, "virtio2-req.0");
    s.at(9, 0, Kind::Block { step: RequestStep::Complete, request: done }).wake(10, 0, 5);
    s.leave(11, 0, Context::Irq(31)).switch(12, 0, 0, READY, 5);
    let recording = s.recording();
    let of = recording.disk[0].submitter.and_then(|t| recording.thread(t)).unwrap();
    assert_eq!((of.tid, recording.disk[0].span, recording.disk[0].bytes), (5, Span::new(3, 9), 4096));
}

#[test]
fn a_disk_request_of_queued_work_is_known_to_be_of_who_queued_it() {
    let mut s = scene();
    let request = BlockRequest { device: 8, sector: 64, bytes: 4096, write: false, tid: Some(7) };
    let id = s.batch.request(request);
    let issue = Kind::Block { step: RequestStep::Issue, request: id };
    let work = |step| Kind::Work { step, address: 0xabc };
    s.switch(0, 0, 0, READY, 9).switch(0, 1, 0, READY, 7).at(2, 0, work(WorkStep::Queue));
    s.at(3, 1, work(WorkStep::Begin)).at(4, 1, issue).at(5, 1, work(WorkStep::End));
    let recording = s.recording();
    let tid = |t: Option<ThreadId>| t.and_then(|t| recording.thread(t)).map(|t| t.tid);
    assert_eq!((tid(recording.disk[0].submitter), tid(recording.disk[0].queued_by)), (Some(7), Some(9)));
}

#[test]
fn a_handler_of_the_users_own_table() {
    let mut s = scene();
    s.handlers = Handlers::with_own("disk = [\"fastcard*\"]").unwrap();
    s.switch(0, 0, 0, READY, 1).switch(5, 0, 1, DISK_SLEEP, 0).irq(30, 0, 31, "fastcard0").wake(31, 0, 1);
    s.leave(32, 0, Context::Irq(31)).switch(33, 0, 0, READY, 1);
    assert_eq!(s.path(1, 5, 33), ["1 Disk 5..31", "1 Preempted 31..33"]);
}

/// The context of an event on a thread.
fn on(s: &mut Scene, tid: i32) -> WhoId {
    s.batch.who(ThreadContext { tid: Some(tid), ..ThreadContext::default() })
}

fn called(s: &mut Scene, t: Ns, tid: i32, call: &str, ret: Option<i64>) {
    let (who, name) = (on(s, tid), s.text(call));
    s.by(t, 0, who, ret.map_or(Kind::CallEntry { name }, |ret| Kind::CallExit { name, ret }));
}

#[test]
fn a_second_switch_with_a_stack_moves_nobody() {
    let mut s = scene();
    let stack = s.batch.stacks.intern(&[1, 2]);
    s.switch(0, 0, 0, READY, 1).switch(10, 0, 1, SLEEP, 2);
    let who = on(&mut s, 1);
    let (user, origin) = (Some(stack), whyslow::event::stack::StackOrigin::SwitchOut);
    s.by(14, 0, who, Kind::Stack { origin, user, kernel: None, witness: false });
    s.wake(20, 0, 1).switch(30, 0, 2, SLEEP, 1).switch(40, 0, 1, SLEEP, 0);
    let recording = s.recording();
    assert_eq!((recording.quality[0].gaps, recording.quality[0].contradictions), (0, 0));
    let one = recording.find_thread(HostId::at(0), 1, 0).unwrap();
    // Told late: it was taken when the thread left.
    assert_eq!(recording.thread(one).unwrap().samples[0].time, 10);
    let want = ["1 Running 0..10", "2 Running 10..20", "1 Preempted 20..30", "1 Running 30..40"];
    assert_eq!(shown(&recording, &walk(&recording, one, Span::new(0, 40))), want);
}

#[test]
fn a_call_that_timed_out_was_ended_by_its_timer() {
    for (call, ret, kind) in [("futex", -110, "Timer"), ("poll", 0, "Timer"), ("nanosleep", 0, "Timer")] {
        let mut s = scene();
        s.switch(0, 0, 0, READY, 1);
        called(&mut s, 5, 1, call, None);
        // Thread 2 only runs there when the interrupt comes, which is not recorded.
        s.switch(10, 0, 1, SLEEP, 2).wake(20, 0, 1).switch(25, 0, 2, READY, 1);
        called(&mut s, 30, 1, call, Some(ret));
        let want = [format!("1 {kind} 10..20"), "1 Preempted 20..25".into(), "1 Running 25..30".into()];
        assert_eq!(s.path(1, 10, 30), want, "{call}");
    }
}

#[test]
fn who_is_in_no_call_wakes_nobody() {
    let mut s = scene();
    s.switch(0, 1, 0, READY, 1).switch(0, 0, 0, READY, 2);
    called(&mut s, 3, 2, "read", None);
    called(&mut s, 4, 2, "read", Some(0));
    s.switch(10, 1, 1, SLEEP, 0).wake_onto(20, 0, 1, 1).switch(25, 1, 0, READY, 1).switch(30, 1, 1, SLEEP, 0);
    assert_eq!(s.path(1, 10, 30), ["1 Blocked 10..20", "1 Preempted 20..25", "1 Running 25..30"]);
}

#[test]
fn who_has_just_got_its_data_waited_for_the_disk() {
    let mut s = scene();
    let who = on(&mut s, 1);
    let request = |s: &mut Scene, t, step| {
        let request = s.batch.request(BlockRequest { sector: 8, bytes: 4096, tid: Some(1), ..BlockRequest::default() });
        s.by(t, 0, if step == RequestStep::Complete { WhoId::NOBODY } else { who }, Kind::Block { step, request });
    };
    s.switch(0, 0, 0, READY, 1);
    request(&mut s, 5, RequestStep::Issue);
    s.switch(10, 0, 1, DISK_SLEEP, 0);
    request(&mut s, 19, RequestStep::Complete);
    s.wake(20, 0, 1).switch(25, 0, 0, READY, 1).switch(30, 0, 1, SLEEP, 0);
    assert_eq!(s.path(1, 10, 25), ["1 Disk 10..20", "1 Preempted 20..25"]);
}

#[test]
fn the_place_of_the_woken_is_that_of_the_switch_that_follows() {
    let mut s = scene();
    s.switch(0, 0, 0, READY, 1).switch(0, 1, 0, READY, 2).switch(5, 0, 1, SLEEP, 3);
    // The waker names CPU 0, where it ran last; it comes up on CPU 1.
    s.wake_onto(10, 1, 1, 0).switch(20, 1, 2, SLEEP, 1).switch(30, 1, 1, SLEEP, 0);
    let recording = s.recording();
    let one = recording.find_thread(HostId::at(0), 1, 0).unwrap();
    let path = walk(&recording, one, Span::new(10, 20));
    assert_eq!((path.last().unwrap().kind, path.last().unwrap().cpu), (SegmentKind::Preempted, 1));
}

#[test]
fn switches_that_were_never_traced_leave_the_unknown() {
    // CPU 0 seems idle from 10 on; at 40 thread 1, woken at 20, turns out to run there.
    let mut s = scene();
    let (idle, one) = (on(&mut s, 0), on(&mut s, 1));
    let call = Kind::CallExit { name: s.text("read"), ret: 1 };
    s.switch(0, 0, 0, READY, 1).switch(10, 0, 1, SLEEP, 0);
    s.by(20, 0, idle, Kind::Wake { tid: 1, cpu: 0, source: WakeSource::Waking, name: TextId::NONE });
    s.by(40, 0, one, call).switch(50, 0, 1, SLEEP, 0);
    assert_eq!(s.path(1, 0, 50), ["1 Running 0..10", "1 Blocked 10..20", "1 Unknown 20..40", "1 Running 40..50"]);
}

#[test]
fn after_a_loss_calls_begin_there_at_the_earliest() {
    let mut s = scene();
    s.switch(10, 0, 0, READY, 1);
    called(&mut s, 20, 1, "read", None);
    s.at(30, 0, Kind::Lost { until: None });
    called(&mut s, 50, 1, "futex", Some(0));
    let recording = s.recording();
    let one = recording.find_thread(HostId::at(0), 1, 20).unwrap();
    let calls: Vec<_> = recording.thread(one).unwrap().calls.iter().map(|c| (c.span.start, c.span.end)).collect();
    assert_eq!(calls, [(20, 30), (30, 50)]);
}

#[test]
fn without_switches_only_what_was_seen_ran() {
    let mut s = scene();
    let one = on(&mut s, 1);
    s.by(0, 0, one, Kind::PageFault);
    called(&mut s, 10, 1, "read", None);
    called(&mut s, 30, 1, "read", Some(1));
    s.by(45, 0, one, Kind::PageFault).wake(50, 0, 9);
    let want = ["1 Running 0..10", "1 Unknown 10..30", "1 Running 30..45", "1 Unknown 45..50"];
    let recording = s.recording();
    let one = recording.find_thread(HostId::at(0), 1, 0).unwrap();
    assert_eq!(shown(&recording, &walk(&recording, one, Span::new(0, 50))), want);
    assert!(!recording.is_scheduled(HostId::at(0)));
}

#[test]
fn a_cpu_without_a_stream_keeps_its_threads_to_itself() {
    let mut s = scene();
    s.switch(0, 0, 0, READY, 1).switch(5, 0, 1, SLEEP, 2).wake_onto(10, 0, 1, 7);
    s.switch(20, 0, 2, SLEEP, 1).switch(30, 0, 1, SLEEP, 0);
    let streams: Vec<Vec<Event>> = std::mem::take(&mut s.streams).into_values().collect();
    s.batch.merge(&streams);
    let origins = vec![TraceOrigin { host: HostId::at(0), kernel: true, generation: s.kernel }];
    let mut machine = Machine::new(vec![("h".to_owned(), None)], origins, Handlers::built_in());
    machine.expect_cpu(HostId::at(0), 0);
    machine.absorb(&s.batch);
    let (recording, notices) = machine.close(Vec::new());
    let one = recording.find_thread(HostId::at(0), 1, 0).unwrap();
    let want = ["1 Running 0..5", "2 Running 5..10", "1 Unknown 10..20", "1 Running 20..30"];
    assert_eq!(shown(&recording, &walk(&recording, one, Span::new(0, 30))), want);
    assert_eq!(notices.count(whyslow::base::notice::Notice::CpusMissing), 1);
}

#[test]
fn a_small_id_inside_a_container_is_no_kernel_threads() {
    let mut s = scene();
    let name = s.text("kworker/0:1");
    let kworker = DumpedThread { tid: 5, pid: 5, ppid: 2, status: 5, cpu: Some(0), name };
    let id = s.batch.process(kworker);
    s.at(0, 0, Kind::Process(id)).switch(1, 0, 0, READY, 900);
    let who = s.batch.who(ThreadContext { vtid: Some(5), vpid: Some(5), ..ThreadContext::default() });
    let mark = s.batch.mark(MarkBody { task: 0, begins: true, key: None, kind: None, fields: Vec::new() });
    let event = Event { time: 5, who, trace: 2, cpu: 0, kind: Kind::Mark(mark) };
    s.streams.entry((2, 0)).or_default().push(event);
    s.switch(9, 0, 900, SLEEP, 0);
    let recording = s.recording();
    let thread = recording.marks[0].thread.and_then(|t| recording.thread(t)).unwrap();
    assert_eq!(thread.tid, 900);
}

#[test]
fn an_idle_task_that_is_never_traced_leaving_contradicts_nothing() {
    // From the idle task of CPU 0 to 1 no switch is recorded; from that of CPU 1 one is.
    let story = |leaves: bool| {
        let mut s = scene();
        s.switch(1, 1, 3, SLEEP, 0).switch(2, 1, 0, READY, 3);
        for i in 0..20 {
            let t = i * 100;
            s.switch(t + 10, 0, 1, SLEEP, 2).switch(t + 20, 0, 2, SLEEP, 0).wake(t + 30, 1, 1);
            if leaves && i == 0 {
                s.switch(t + 40, 0, 0, READY, 2).switch(t + 45, 0, 2, SLEEP, 0);
            }
        }
        s.recording()
    };
    let quality = |leaves| story(leaves).quality[0];
    let (never, once) = (quality(false), quality(true));
    assert_eq!((never.contradictions, never.gaps), (0, 19));
    assert_eq!((once.contradictions, once.gaps), (19, 0));
    // Since when the woken thread ran is not known: neither running nor queued.
    let recording = story(false);
    let one = recording.find_thread(HostId::at(0), 1, 0).unwrap();
    let path = shown(&recording, &walk(&recording, one, Span::new(130, 310)));
    assert_eq!(path, ["1 Unknown 130..210", "3 Running 210..230", "1 Unknown 230..310"]);
}

#[test]
fn who_wakes_the_journal_hands_it_work_until_it_rests() {
    let mut s = scene();
    let waits_for_disk = DISK_SLEEP;
    s.named(0, 0, 1, "db").named(0, 0, 2, "logger").named(0, 0, 7, "jbd2/vda-8").named(0, 0, 8, "rcu_sched");
    s.switch(1, 0, 0, READY, 7).switch(2, 0, 7, SLEEP, 8).switch(3, 0, 8, SLEEP, 1);
    // Woken by 1; it waits for the disk, is woken again, and rests.
    s.wake(10, 0, 7).wake(11, 0, 8).switch(12, 0, 1, SLEEP, 7).switch(15, 0, 7, waits_for_disk, 2).wake(20, 0, 7);
    s.switch(22, 0, 2, PREEMPTED, 7).switch(30, 0, 7, SLEEP, 2).wake(40, 0, 7).switch(45, 0, 2, SLEEP, 8);
    s.switch(50, 0, 8, SLEEP, 7).switch(60, 0, 7, SLEEP, 0);
    let recording = s.recording();
    let tid = |thread: ThreadId| recording.thread(thread).unwrap().tid;
    let services: Vec<_> = recording.services.iter().map(|s| (tid(s.thread), s.span, tid(s.client), s.since)).collect();
    assert_eq!(services, [(7, Span::new(10, 30), 1, 10), (7, Span::new(40, 60), 2, 40)]);
    let journal = recording.services[0].thread;
    assert_eq!(recording.services_in(journal, Span::new(30, 40)), []);
    assert_eq!(recording.services_in(journal, Span::new(29, 41)).len(), 2);
}

#[test]
fn an_exec_renames_at_once() {
    let mut s = scene();
    s.named(1, 0, 7, "bash");
    let path = s.text("/usr/bin/a-rather-long-program-name");
    s.at(10, 0, Kind::Exec { tid: 7, old_tid: 7, path });
    let recording = s.recording();
    let thread = recording.thread(recording.find_thread(HostId::at(0), 7, 1).unwrap()).unwrap();
    let name = |t| recording.names.get(thread.name_at(t).unwrap());
    assert_eq!((name(9), name(10)), ("bash", "a-rather-long-p"));
}
