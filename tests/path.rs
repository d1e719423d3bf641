//! Micro-scenarios: what happened, as a list of events, and the critical path, worked out by hand.
//!
//! Each is named by what it shows. Threads are written by their tid; a segment reads `tid Kind from..to`. Unless a
//! scenario says otherwise the kernel is 6.1, on one host.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use whyslow::analysis::path::{PathSegment, label, walk};
use whyslow::analysis::recording::{EdgeKind, HostId, Recording, ThreadId};
use whyslow::base::time::{Ns, Span};
use whyslow::event::batch::{Batch, Flow, Identity, MarkBody, Packet, Process, Request, Segment};
use whyslow::event::kind::{Context, Event, Kind, RequestStep, TextId, Vector, WakeSource, WhoId, WorkStep};
use whyslow::state::kernel::{Generation, Handlers, Machine, Origin};

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

    fn enter(&mut self, t: Ns, cpu: u16, context: Context) -> &mut Self {
        self.at(t, cpu, Kind::Enter { context, name: TextId::NONE })
    }

    fn leave(&mut self, t: Ns, cpu: u16, context: Context) -> &mut Self {
        self.at(t, cpu, Kind::Leave { context })
    }

    fn irq(&mut self, t: Ns, cpu: u16, irq: i32, handler: &str) -> &mut Self {
        let name = self.text(handler);
        self.at(t, cpu, Kind::Enter { context: Context::Irq(irq), name })
    }

    fn send(&mut self, t: Ns, cpu: u16, packet: Packet) -> &mut Self {
        let id = self.batch.packet(packet);
        self.at(t, cpu, Kind::Send(id))
    }

    fn receive(&mut self, t: Ns, cpu: u16, packet: Packet) -> &mut Self {
        let id = self.batch.packet(packet);
        self.at(t, cpu, Kind::Receive(id))
    }

    fn named(&mut self, t: Ns, cpu: u16, tid: i32, name: &str) -> &mut Self {
        let name = self.text(name);
        let who = self.batch.who(Identity { tid: Some(tid), name: Some(name), ..Identity::default() });
        self.by(t, cpu, who, Kind::CallEntry { name })
    }

    fn recording(&mut self) -> Recording {
        let streams: Vec<Vec<Event>> = std::mem::take(&mut self.streams).into_values().collect();
        self.batch.merge(&streams);
        let names = ["host0", "host1"].map(|name| (name.to_owned(), None)).to_vec();
        let origin = |host, kernel| Origin { host: HostId(host), kernel, generation: self.kernel };
        let origins = vec![origin(0, true), origin(1, true), origin(0, false)];
        let mut machine = Machine::new(names, origins, self.handlers.clone());
        machine.absorb(&self.batch);
        machine.close(Vec::new()).0
    }

    /// The path of the thread that has `tid` at `from`, as text without markers.
    fn path(&mut self, tid: i32, from: Ns, to: Ns) -> Vec<String> {
        let recording = self.recording();
        let thread = recording.find_thread(HostId(0), tid, from).unwrap();
        check(&recording, thread, Span::new(from, to));
        shown(&recording, &walk(&recording, thread, Span::new(from, to)))
    }
}

fn shown(recording: &Recording, path: &[PathSegment]) -> Vec<String> {
    let text = |s: &PathSegment| {
        let thread = recording.thread(s.thread).unwrap();
        let host = if thread.host == HostId(0) { String::new() } else { format!("host{}:", thread.host.0) };
        format!("{host}{} {:?} {}..{}", thread.tid, s.kind, s.span.start, s.span.end)
    };
    path.iter().filter(|s| !s.span.is_empty()).map(text).collect()
}

/// The walk tiles its span and says of every instant what the definition says; paths of parts join to that of the whole.
fn check(recording: &Recording, thread: ThreadId, span: Span) {
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
    let instants = |path: &[PathSegment]| -> Vec<(Ns, ThreadId, EdgeKind)> {
        path.iter().flat_map(|s| (s.span.start..s.span.end).map(|t| (t, s.thread, s.kind))).collect()
    };
    for cut in span.start..span.end {
        let mut parts = walk(recording, thread, Span::new(span.start, cut));
        parts.extend(walk(recording, thread, Span::new(cut, span.end)));
        assert_eq!(instants(&parts), instants(&path), "cut at {cut}");
    }
}

fn tcp(source: u128, dest: u128, seq: u32) -> Packet {
    let flow = Flow { source, dest, source_port: 40000, dest_port: 80 };
    Packet { buffer: 0, tcp: Some(Segment { flow, seq, ack: 1, flags: 0x18, len: 10 }) }
}

/// Position of the user-space trace of host 0.
const USER_TRACE: u16 = 2;

const LOOPBACK: u128 = 0x7f00_0001;

#[test]
fn the_worked_example_of_the_handbook() {
    // Thread 1 blocks at 6 and is woken by thread 2 at 9; preempted until 11.
    let mut s = scene();
    s.switch(1, 0, 0, READY, 1).wake_onto(4, 0, 2, 1).switch(4, 1, 0, READY, 2);
    s.switch(6, 0, 1, SLEEP, 3).wake_onto(9, 1, 1, 0).switch(11, 0, 3, SLEEP, 1).switch(13, 0, 1, SLEEP, 0);
    s.switch(13, 1, 2, SLEEP, 0);
    assert_eq!(s.path(1, 1, 12), ["1 Running 1..6", "2 Running 6..9", "1 Preempted 9..11", "1 Running 11..12"]);
}

#[test]
fn a_lock_is_followed_to_its_holder() {
    let mut s = scene();
    s.switch(0, 0, 0, READY, 1).switch(0, 1, 0, READY, 9);
    s.switch(5, 0, 1, SLEEP, 0).wake_onto(25, 1, 1, 0).switch(26, 0, 0, READY, 1).switch(40, 1, 9, SLEEP, 0);
    assert_eq!(s.path(1, 0, 30), ["1 Running 0..5", "9 Running 5..25", "1 Preempted 25..26", "1 Running 26..30"]);
}

#[test]
fn a_futex_with_two_waiters_goes_through_the_first() {
    // 9 holds the lock until 20 and wakes 2, which had waited too; 2 wakes 1 at 30.
    let mut s = scene();
    s.switch(0, 0, 0, READY, 1).switch(0, 1, 0, READY, 2).switch(0, 2, 0, READY, 9);
    s.switch(4, 1, 2, SLEEP, 0).switch(6, 0, 1, SLEEP, 0);
    s.wake_onto(20, 2, 2, 1).switch(22, 1, 0, READY, 2).wake_onto(30, 1, 1, 0).switch(31, 0, 0, READY, 1);
    s.switch(40, 0, 1, SLEEP, 0);
    let want = ["1 Running 0..6", "9 Running 6..20", "2 Preempted 20..22", "2 Running 22..30", "1 Preempted 30..31"];
    assert_eq!(s.path(1, 0, 31), want);
}

#[test]
fn a_pipe_is_a_wait_for_its_writer() {
    // The writer works, writes (waking the reader), and goes on.
    let mut s = scene();
    s.switch(0, 0, 0, READY, 1).switch(2, 0, 1, SLEEP, 5).wake(8, 0, 1).switch(9, 0, 5, SLEEP, 1);
    s.switch(12, 0, 1, SLEEP, 0);
    assert_eq!(s.path(1, 0, 12), ["1 Running 0..2", "5 Running 2..8", "1 Preempted 8..9", "1 Running 9..12"]);
}

#[test]
fn a_preempted_waker_is_still_its_own_time() {
    let mut s = scene();
    s.switch(0, 0, 0, READY, 1).switch(0, 1, 0, READY, 9).switch(3, 0, 1, SLEEP, 0);
    s.switch(5, 1, 9, PREEMPTED, 8).switch(15, 1, 8, SLEEP, 9).wake_onto(20, 1, 1, 0).switch(20, 0, 0, READY, 1);
    s.switch(22, 0, 1, SLEEP, 0);
    let want = ["1 Running 0..3", "9 Running 3..5", "9 Preempted 5..15", "9 Running 15..20", "1 Running 20..22"];
    assert_eq!(s.path(1, 0, 22), want);
}

#[test]
fn a_timer_is_nobodys_fault() {
    let mut s = scene();
    s.switch(0, 0, 0, READY, 1).switch(5, 0, 1, SLEEP, 0);
    s.enter(50, 0, Context::Vector(Vector::LocalTimer)).enter(51, 0, Context::Timer).wake(52, 0, 1);
    s.leave(53, 0, Context::Timer).leave(54, 0, Context::Vector(Vector::LocalTimer)).switch(55, 0, 0, READY, 1);
    s.switch(60, 0, 1, SLEEP, 0);
    assert_eq!(s.path(1, 0, 60), ["1 Running 0..5", "1 Timer 5..52", "1 Preempted 52..55", "1 Running 55..60"]);
}

#[test]
fn whoever_was_interrupted_is_not_the_waker() {
    // Thread 7 runs when the timer of thread 1 expires on its CPU.
    let mut s = scene();
    s.switch(0, 0, 0, READY, 1).switch(5, 0, 1, SLEEP, 7).enter(30, 0, Context::Timer).wake(31, 0, 1);
    s.leave(32, 0, Context::Timer).switch(33, 0, 7, PREEMPTED, 1).switch(40, 0, 1, SLEEP, 7);
    assert_eq!(s.path(1, 0, 40), ["1 Running 0..5", "1 Timer 5..31", "1 Preempted 31..33", "1 Running 33..40"]);
}

#[test]
fn a_disk_by_its_hard_interrupt() {
    let mut s = scene();
    s.switch(0, 0, 0, READY, 1).switch(5, 0, 1, DISK_SLEEP, 0).irq(30, 0, 31, "nvme0q1").wake(31, 0, 1);
    s.leave(32, 0, Context::Irq(31)).switch(33, 0, 0, READY, 1).switch(40, 0, 1, SLEEP, 0);
    assert_eq!(s.path(1, 0, 40), ["1 Running 0..5", "1 Disk 5..31", "1 Preempted 31..33", "1 Running 33..40"]);
}

#[test]
fn a_disk_by_its_soft_interrupt_on_another_cpu() {
    let mut s = scene();
    s.switch(0, 0, 0, READY, 1).switch(0, 1, 0, READY, 7).switch(5, 0, 1, DISK_SLEEP, 0);
    s.enter(30, 1, Context::SoftIrq(4)).wake_onto(31, 1, 1, 0).leave(32, 1, Context::SoftIrq(4));
    s.switch(33, 0, 0, READY, 1).switch(40, 0, 1, SLEEP, 0);
    assert_eq!(s.path(1, 0, 40), ["1 Running 0..5", "1 Disk 5..31", "1 Preempted 31..33", "1 Running 33..40"]);
}

#[test]
fn a_handler_that_nobody_knows_is_a_device() {
    let mut s = scene();
    s.switch(0, 0, 0, READY, 1).switch(5, 0, 1, SLEEP, 0).irq(30, 0, 4, "ttyS0").wake(31, 0, 1);
    s.leave(32, 0, Context::Irq(4)).switch(33, 0, 0, READY, 1).switch(40, 0, 1, SLEEP, 0);
    let recording = s.recording();
    let path = walk(&recording, ThreadId(1), Span::new(5, 31));
    assert_eq!(shown(&recording, &path), ["1 Device 5..31"]);
    assert_eq!(recording.names.get(path.last().unwrap().qualifier.unwrap()), "ttyS0");
}

#[test]
fn a_keyboard_is_a_person() {
    let mut s = scene();
    s.switch(0, 0, 0, READY, 1).switch(5, 0, 1, SLEEP, 0).irq(30, 0, 1, "i8042").wake(31, 0, 1);
    s.leave(32, 0, Context::Irq(1)).switch(33, 0, 0, READY, 1).switch(40, 0, 1, SLEEP, 0);
    assert_eq!(s.path(1, 5, 33), ["1 UserInput 5..31", "1 Preempted 31..33"]);
}

#[test]
fn the_name_of_a_line_may_come_from_the_enumeration() {
    let mut s = scene();
    let name = s.text("virtio2-req.0");
    s.at(0, 0, Kind::Line { irq: 31, name }).switch(1, 0, 0, READY, 1).switch(5, 0, 1, SLEEP, 0);
    s.enter(30, 0, Context::Irq(31)).wake(31, 0, 1).leave(32, 0, Context::Irq(31)).switch(33, 0, 0, READY, 1);
    s.switch(40, 0, 1, SLEEP, 0);
    assert_eq!(s.path(1, 5, 33), ["1 Disk 5..31", "1 Preempted 31..33"]);
}

#[test]
fn an_interrupt_nested_in_a_soft_interrupt_counts_while_it_lasts() {
    // The timer inside NET_RX wakes 1; after it the packet wakes 2.
    let mut s = scene();
    s.switch(0, 0, 0, READY, 1).switch(0, 1, 0, READY, 2).switch(0, 2, 0, READY, 7);
    s.switch(5, 0, 1, SLEEP, 0).switch(5, 1, 2, SLEEP, 0);
    s.enter(20, 2, Context::SoftIrq(3)).enter(21, 2, Context::Timer).wake_onto(22, 2, 1, 0);
    s.leave(23, 2, Context::Timer).wake_onto(24, 2, 2, 1).leave(25, 2, Context::SoftIrq(3));
    s.switch(30, 0, 0, READY, 1).switch(30, 1, 0, READY, 2);
    let recording = s.recording();
    let of = |tid| {
        let thread = recording.find_thread(HostId(0), tid, 0).unwrap();
        shown(&recording, &walk(&recording, thread, Span::new(5, 30)))
    };
    assert_eq!(of(1), ["1 Timer 5..22", "1 Preempted 22..30"]);
    assert_eq!(of(2), ["2 Network 5..24", "2 Preempted 24..30"]);
    assert_eq!(of(7), ["7 Running 5..20", "7 Interrupted 20..25", "7 Running 25..30"]);
}

#[test]
fn a_request_over_loopback_goes_into_the_server() {
    // The client sends at 3; the softirq runs in its own context and wakes the server. The server works from 6 to 20
    // and sends; the client is woken in the server's softirq.
    let mut s = scene();
    let there = tcp(LOOPBACK, LOOPBACK, 100);
    let back = Packet { tcp: there.tcp.map(|t| Segment { seq: 900, ..t }), ..there };
    let soft = Context::SoftIrq(3);
    s.switch(0, 0, 0, READY, 1).switch(0, 1, 0, READY, 9).switch(1, 1, 9, SLEEP, 0);
    s.send(3, 0, there).enter(4, 0, soft).receive(4, 0, there).wake_onto(5, 0, 9, 1).leave(5, 0, soft);
    s.switch(6, 1, 0, READY, 9).switch(8, 0, 1, SLEEP, 0);
    s.send(20, 1, back).enter(21, 1, soft).receive(21, 1, back).wake_onto(22, 1, 1, 0).leave(23, 1, soft);
    s.switch(24, 0, 0, READY, 1).switch(30, 0, 1, SLEEP, 0).switch(30, 1, 9, SLEEP, 0);
    let want = [
        "1 Running 0..4",
        "1 Interrupted 4..5",
        "1 Running 5..8",
        "9 Running 8..20",
        "1 Network 20..22",
        "1 Preempted 22..24",
        "1 Running 24..30",
    ];
    assert_eq!(s.path(1, 0, 30), want);
}

#[test]
fn a_packet_of_an_unseen_sender_is_the_network() {
    let mut s = scene();
    let soft = Context::SoftIrq(3);
    s.switch(0, 0, 0, READY, 1).switch(5, 0, 1, SLEEP, 0).enter(20, 0, soft).receive(21, 0, tcp(1 << 40, 2, 5));
    s.wake(22, 0, 1).leave(23, 0, soft).switch(24, 0, 0, READY, 1);
    assert_eq!(s.path(1, 5, 24), ["1 Network 5..22", "1 Preempted 22..24"]);
}

#[test]
fn a_forked_thread_is_explained_by_its_parent_before_it_lives() {
    // 9 was made by 1 at 10, and is what 5 waits for since 4.
    let mut s = scene();
    s.switch(0, 0, 0, READY, 1).switch(0, 1, 0, READY, 5).switch(4, 1, 5, SLEEP, 0);
    s.fork(10, 0, 1, 9).wake_new(12, 0, 9).switch(15, 0, 1, SLEEP, 9).wake_onto(20, 0, 5, 1);
    s.switch(21, 1, 0, READY, 5).switch(25, 0, 9, DEAD, 0);
    let want = [
        "5 Running 0..4",
        "1 Running 4..10",  // before 9 exists
        "1 Running 10..12", // 9 exists and waits for its first wake-up
        "9 Preempted 12..15",
        "9 Running 15..20",
        "5 Preempted 20..21",
    ];
    assert_eq!(s.path(5, 0, 21), want);
}

#[test]
fn waiting_for_a_child_goes_into_the_child() {
    let mut s = scene();
    s.switch(0, 0, 0, READY, 1).fork(2, 0, 1, 9).wake_new(3, 0, 9).switch(5, 0, 1, SLEEP, 9);
    s.at(20, 0, Kind::Exit { tid: 9 }).wake(21, 0, 1).switch(22, 0, 9, DEAD, 1).switch(25, 0, 1, SLEEP, 0);
    assert_eq!(s.path(1, 0, 25), ["1 Running 0..5", "9 Running 5..21", "1 Preempted 21..22", "1 Running 22..25"]);
}

#[test]
fn a_thread_that_moves_while_it_waits_for_a_cpu_waits_for_the_new_one() {
    let mut s = scene();
    s.switch(0, 0, 0, READY, 1).switch(5, 0, 1, PREEMPTED, 2).at(8, 1, Kind::Migrate { tid: 1, cpu: 1 });
    s.switch(12, 1, 3, SLEEP, 1).switch(15, 1, 1, SLEEP, 0);
    let recording = s.recording();
    let thread = recording.find_thread(HostId(0), 1, 0).unwrap();
    let path = walk(&recording, thread, Span::new(0, 15));
    let cpus: Vec<_> = path.iter().filter(|s| !s.span.is_empty()).map(|s| (s.kind, s.span.start, s.cpu)).collect();
    let want = [
        (EdgeKind::Running, 0, 0),
        (EdgeKind::Preempted, 5, 0),
        (EdgeKind::Preempted, 8, 1),
        (EdgeKind::Running, 12, 1),
    ];
    assert_eq!(cpus, want);
}

#[test]
fn moving_while_blocked_changes_nothing_but_the_queue() {
    let mut s = scene();
    s.switch(0, 0, 0, READY, 1).switch(0, 1, 0, READY, 9).switch(5, 0, 1, SLEEP, 0);
    s.at(6, 1, Kind::Migrate { tid: 1, cpu: 2 }).wake_onto(9, 1, 1, 2).switch(10, 2, 0, READY, 1);
    s.switch(12, 2, 1, SLEEP, 0);
    assert_eq!(s.path(1, 0, 12), ["1 Running 0..5", "9 Running 5..9", "1 Preempted 9..10", "1 Running 10..12"]);
}

#[test]
fn the_first_of_two_wake_ups_counts() {
    let mut s = scene();
    s.switch(0, 0, 0, READY, 1).switch(0, 1, 0, READY, 8).switch(0, 2, 0, READY, 9).switch(5, 0, 1, SLEEP, 0);
    s.wake_onto(10, 1, 1, 0).wake_onto(15, 2, 1, 0).switch(20, 0, 0, READY, 1).switch(25, 0, 1, SLEEP, 0);
    assert_eq!(s.path(1, 0, 25), ["1 Running 0..5", "8 Running 5..10", "1 Preempted 10..20", "1 Running 20..25"]);
}

#[test]
fn a_wake_up_of_one_that_runs_is_spurious() {
    let mut s = scene();
    s.switch(0, 0, 0, READY, 1).switch(0, 1, 0, READY, 9).wake_onto(3, 1, 1, 0);
    s.switch(6_000_000, 0, 1, SLEEP, 0).switch(6_000_010, 0, 0, READY, 1);
    let recording = s.recording();
    let thread = recording.find_thread(HostId(0), 1, 0).unwrap();
    let path = walk(&recording, thread, Span::new(0, 6_000_010));
    assert_eq!(shown(&recording, &path), ["1 Running 0..6000000", "1 Blocked 6000000..6000010"]);
}

#[test]
fn a_wake_up_just_before_the_switch_out_ends_the_wait_at_once() {
    // 9 wakes 1 while 1 is on its way out: 1 never really waits.
    let mut s = scene();
    s.switch(0, 0, 0, READY, 1).switch(0, 1, 0, READY, 9).wake_onto(5, 1, 1, 0).switch(6, 0, 1, SLEEP, 7);
    s.switch(9, 0, 7, SLEEP, 1).switch(12, 0, 1, SLEEP, 0);
    assert_eq!(s.path(1, 0, 12), ["1 Running 0..6", "1 Preempted 6..9", "1 Running 9..12"]);
}

#[test]
fn a_switch_in_without_wake_up_is_an_unresolved_wait() {
    let mut s = scene();
    s.switch(0, 0, 0, READY, 1).switch(5, 0, 1, SLEEP, 0).switch(9, 0, 0, READY, 1).switch(12, 0, 1, SLEEP, 0);
    let recording = s.recording();
    let thread = recording.find_thread(HostId(0), 1, 0).unwrap();
    let path = walk(&recording, thread, Span::new(0, 12));
    assert_eq!(shown(&recording, &path), ["1 Running 0..5", "1 Blocked 5..9", "1 Running 9..12"]);
    let reason = path.iter().find(|s| s.kind == EdgeKind::Blocked).unwrap().qualifier.unwrap();
    assert_eq!(recording.names.get(reason), "no wake-up recorded");
}

#[test]
fn an_idle_cpu_without_context_works_for_nobody() {
    let mut s = scene();
    s.switch(0, 0, 0, READY, 1).switch(0, 1, 7, SLEEP, 0).switch(5, 0, 1, SLEEP, 0).wake_onto(9, 1, 1, 0);
    s.switch(10, 0, 0, READY, 1).switch(12, 0, 1, SLEEP, 0);
    assert_eq!(s.path(1, 5, 12), ["1 Device 5..9", "1 Preempted 9..10", "1 Running 10..12"]);
}

#[test]
fn a_wake_up_at_the_time_of_the_switch_in_comes_first() {
    // Both at 9, on different CPUs, the switch in the stream of lower rank.
    let mut s = scene();
    s.switch(0, 0, 0, READY, 1).switch(0, 1, 0, READY, 9).switch(5, 0, 1, SLEEP, 0);
    s.switch(9, 0, 0, READY, 1).wake_onto(9, 1, 1, 0).switch(12, 0, 1, SLEEP, 0);
    assert_eq!(s.path(1, 0, 12), ["1 Running 0..5", "9 Running 5..9", "1 Running 9..12"]);
}

#[test]
fn first_seen_in_a_wake_up_it_had_waited_since_the_beginning() {
    let mut s = scene();
    s.switch(0, 0, 0, READY, 9).switch(0, 1, 7, SLEEP, 0).wake_onto(9, 0, 1, 1).switch(10, 1, 0, READY, 1);
    s.switch(12, 1, 1, SLEEP, 0);
    assert_eq!(s.path(1, 0, 12), ["9 Running 0..9", "1 Preempted 9..10", "1 Running 10..12"]);
}

#[test]
fn first_seen_leaving_a_cpu_it_had_run_since_the_cpus_first_event() {
    let mut s = scene();
    s.switch(0, 1, 7, SLEEP, 0).leave(4, 0, Context::Timer).switch(9, 0, 1, SLEEP, 0);
    assert_eq!(s.path(1, 0, 9), ["1 Unknown 0..4", "1 Running 4..9"]);
}

#[test]
fn the_enumeration_is_not_carried_back() {
    let mut s = scene();
    let name = s.text("sleeper");
    let process = s.batch.process(Process { tid: 1, pid: 1, ppid: 0, status: 5, cpu: Some(0), name });
    s.switch(0, 0, 7, SLEEP, 9).at(4, 0, Kind::Process(process)).wake(8, 0, 1).switch(9, 0, 9, SLEEP, 1);
    s.switch(12, 0, 1, SLEEP, 0);
    assert_eq!(s.path(1, 0, 12), ["1 Unknown 0..4", "9 Running 4..8", "1 Preempted 8..9", "1 Running 9..12"]);
}

#[test]
fn an_exit_from_a_context_that_was_lost_pops_through() {
    // The exit of the timer is lost; that of the interrupt line ends both.
    let mut s = scene();
    s.switch(0, 0, 0, READY, 9).switch(0, 1, 0, READY, 1).switch(3, 1, 1, SLEEP, 0);
    s.irq(4, 0, 31, "eth0").enter(5, 0, Context::Timer).leave(7, 0, Context::Irq(31)).wake_onto(9, 0, 1, 1);
    s.switch(10, 1, 0, READY, 1).switch(12, 1, 1, SLEEP, 0);
    let want = ["9 Running 3..4", "9 Interrupted 4..7", "9 Running 7..9", "1 Preempted 9..10", "1 Running 10..12"];
    assert_eq!(s.path(1, 3, 12), want);
}

#[test]
fn after_lost_events_the_thread_is_unknown_until_it_is_seen() {
    let mut s = scene();
    s.switch(0, 0, 0, READY, 1).at(5, 0, Kind::Lost).switch(9, 0, 1, SLEEP, 0);
    assert_eq!(s.path(1, 0, 9), ["1 Running 0..5", "1 Unknown 5..9"]);
}

#[test]
fn a_missing_switch_is_believed_away() {
    // 1 is switched in on CPU 1 while it still seems to run on CPU 0.
    let mut s = scene();
    s.switch(0, 0, 0, READY, 1).switch(6, 1, 0, READY, 1).switch(9, 1, 1, SLEEP, 0);
    assert_eq!(s.path(1, 0, 9), ["1 Running 0..6", "1 Running 6..9"]);
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
fn an_old_kernels_waking_state_is_runnable() {
    let mut s = scene();
    s.kernel = Generation::Old;
    s.switch(0, 0, 0, READY, 1).switch(5, 0, 1, 0x100, 2).switch(9, 0, 2, SLEEP, 1).switch(12, 0, 1, SLEEP, 0);
    assert_eq!(s.path(1, 0, 12), ["1 Running 0..5", "1 Preempted 5..9", "1 Running 9..12"]);
}

#[test]
fn a_journal_thread_makes_the_wait_one_for_the_disk() {
    let mut s = scene();
    s.named(0, 1, 9, "jbd2/vda1-8").switch(0, 0, 0, READY, 1).switch(4, 0, 1, DISK_SLEEP, 0);
    s.wake_onto(9, 1, 1, 0).switch(10, 0, 0, READY, 1).switch(12, 0, 1, SLEEP, 0);
    let recording = s.recording();
    let thread = recording.find_thread(HostId(0), 1, 0).unwrap();
    let path = walk(&recording, thread, Span::new(4, 10));
    let inside: Vec<_> = path.iter().map(|s| (s.depth, format!("{:?}", s.entered), s.span.len())).collect();
    let want = [(0, "Start", 0), (1, "Disk", 0), (1, "Disk", 5), (0, "Start", 1)];
    assert_eq!(inside, want.map(|(depth, entered, len)| (depth, entered.to_owned(), len)));
    assert!(recording.is_disk_wait(&recording.threads[thread.index()].edges[1]));
}

#[test]
fn waits_that_wait_for_each_other_end() {
    // Damage: each seems to be woken by the other at the end of overlapping waits.
    let mut s = scene();
    s.switch(0, 0, 0, READY, 1).switch(0, 1, 0, READY, 2).switch(2, 0, 1, SLEEP, 0).switch(2, 1, 2, SLEEP, 0);
    let recording = {
        let mut recording = s.recording();
        let (a, b) = (ThreadId(1), ThreadId(3));
        for (me, other) in [(a, b), (b, a)] {
            let edges = &mut recording.threads[me.index()].edges;
            let last = edges.last_mut().unwrap();
            assert_eq!(last.kind, EdgeKind::Running);
            last.span.end = 2;
            let mut wait = *last;
            wait.span = Span::new(2, 8);
            wait.kind = EdgeKind::Blocked;
            wait.waker = Some((other, 8));
            edges.push(wait);
        }
        recording
    };
    check(&recording, ThreadId(1), Span::new(0, 8));
    let path = walk(&recording, ThreadId(1), Span::new(0, 8));
    assert_eq!(shown(&recording, &path), ["1 Running 0..2", "2 Blocked 2..8"]);
}

#[test]
fn a_packet_between_hosts_goes_to_the_other_host() {
    // Client on host 0, server on host 1, one time line.
    let mut s = scene();
    let soft = Context::SoftIrq(3);
    let (there, back) = (tcp(10, 20, 100), tcp(20, 10, 900));
    s.switch(0, 0, 0, READY, 1).send(3, 0, there).switch(5, 0, 1, SLEEP, 0);
    s.host = 1;
    s.switch(0, 0, 0, READY, 9).switch(1, 0, 9, SLEEP, 0).irq(10, 0, 24, "eth0").leave(11, 0, Context::Irq(24));
    s.enter(11, 0, soft).receive(12, 0, there).wake(13, 0, 9).leave(14, 0, soft).switch(15, 0, 0, READY, 9);
    s.send(30, 0, back).switch(32, 0, 9, SLEEP, 0);
    s.host = 0;
    s.enter(40, 0, soft).receive(41, 0, back).wake(42, 0, 1).leave(43, 0, soft).switch(44, 0, 0, READY, 1);
    s.switch(50, 0, 1, SLEEP, 0);
    let want = [
        "1 Running 0..5",
        "host1:9 Network 5..13", // the server waits for our packet, which is on its way
        "host1:9 Preempted 13..15",
        "host1:9 Running 15..30",
        "1 Network 30..42",
        "1 Preempted 42..44",
        "1 Running 44..50",
    ];
    assert_eq!(s.path(1, 0, 50), want);
}

#[test]
fn clock_skew_between_hosts_leaves_a_packet_no_time() {
    // The fitted clocks are off by more than the way back took: the answer arrives at 28 and is sent at 30.
    let mut s = scene();
    let soft = Context::SoftIrq(3);
    let (there, back) = (tcp(10, 20, 100), tcp(20, 10, 900));
    s.switch(0, 0, 0, READY, 1).send(3, 0, there).switch(5, 0, 1, SLEEP, 0);
    s.enter(27, 0, soft).receive(28, 0, back).wake(29, 0, 1).leave(30, 0, soft).switch(32, 0, 0, READY, 1);
    s.switch(50, 0, 1, SLEEP, 0);
    s.host = 1;
    s.switch(0, 0, 0, READY, 9).switch(1, 0, 9, SLEEP, 0).enter(11, 0, soft).receive(12, 0, there).wake(13, 0, 9);
    s.leave(14, 0, soft).switch(15, 0, 0, READY, 9).send(30, 0, back).switch(32, 0, 9, SLEEP, 0);
    let want = [
        "1 Running 0..5",
        "host1:9 Network 5..13",
        "host1:9 Preempted 13..15",
        "host1:9 Running 15..29",
        "1 Preempted 29..32",
        "1 Running 32..50",
    ];
    assert_eq!(s.path(1, 0, 50), want);
}

#[test]
fn a_packet_received_outside_of_interrupts() {
    // Threaded reception: the kernel thread 7 delivers the packet in its own context.
    let mut s = scene();
    s.switch(0, 0, 0, READY, 1).switch(0, 1, 0, READY, 9).switch(0, 2, 0, READY, 7);
    let packet = tcp(10, 20, 100);
    s.switch(2, 0, 1, SLEEP, 0).send(8, 1, packet).enter(9, 2, Context::Reception).receive(10, 2, packet);
    s.wake_onto(11, 2, 1, 0).leave(12, 2, Context::Reception).switch(13, 0, 0, READY, 1);
    s.switch(20, 0, 1, SLEEP, 0);
    let want = ["1 Running 0..2", "9 Running 2..8", "1 Network 8..11", "1 Preempted 11..13", "1 Running 13..20"];
    assert_eq!(s.path(1, 0, 20), want);
}

#[test]
fn a_bridge_that_forwards_hides_no_sender() {
    // The packet is sent twice: by 9, and again in the softirq that received it first.
    let mut s = scene();
    let (soft, packet) = (Context::SoftIrq(3), tcp(10, 20, 100));
    s.switch(0, 0, 0, READY, 1).switch(0, 1, 0, READY, 9).switch(2, 0, 1, SLEEP, 0).send(8, 1, packet);
    s.enter(9, 1, soft).receive(9, 1, packet).send(10, 1, packet).leave(11, 1, soft);
    s.enter(12, 1, soft).receive(12, 1, packet).wake_onto(13, 1, 1, 0).leave(14, 1, soft);
    s.switch(15, 0, 0, READY, 1).switch(20, 0, 1, SLEEP, 0);
    let want = ["1 Running 0..2", "9 Running 2..8", "1 Network 8..13", "1 Preempted 13..15", "1 Running 15..20"];
    assert_eq!(s.path(1, 0, 20), want);
}

#[test]
fn a_packet_sent_before_the_wait_began_leaves_only_the_network() {
    let mut s = scene();
    let (soft, packet) = (Context::SoftIrq(3), tcp(10, 20, 100));
    s.switch(0, 0, 0, READY, 1).switch(0, 1, 0, READY, 9).send(1, 1, packet).switch(4, 0, 1, SLEEP, 0);
    s.enter(9, 0, soft).receive(9, 0, packet).wake(10, 0, 1).leave(11, 0, soft).switch(12, 0, 0, READY, 1);
    s.switch(20, 0, 1, SLEEP, 0);
    assert_eq!(s.path(1, 4, 12), ["1 Network 4..10", "1 Preempted 10..12"]);
}

#[test]
fn another_processor_asks() {
    let mut s = scene();
    let ipi = Context::Vector(Vector::Ipi);
    s.switch(0, 0, 0, READY, 1).switch(5, 0, 1, SLEEP, 0).enter(8, 0, ipi).wake(9, 0, 1).leave(10, 0, ipi);
    s.switch(11, 0, 0, READY, 1).switch(15, 0, 1, SLEEP, 0);
    assert_eq!(s.path(1, 5, 11), ["1 Ipi 5..9", "1 Preempted 9..11"]);
}

#[test]
fn an_old_recording_tells_of_the_wake_up_on_the_wrong_cpu() {
    // Only `sched_wakeup`, and the idle task of the woken's CPU: who woke it is not known.
    let mut s = scene();
    s.kernel = Generation::Old;
    let wakeup = Kind::Wake { tid: 1, cpu: 0, source: WakeSource::Wakeup, name: TextId::NONE };
    s.switch(0, 0, 0, READY, 1).switch(5, 0, 1, SLEEP, 0).at(9, 0, wakeup).switch(10, 0, 0, READY, 1);
    s.switch(12, 0, 1, SLEEP, 0);
    assert_eq!(s.path(1, 0, 12), ["1 Running 0..5", "1 Unknown 5..9", "1 Preempted 9..10", "1 Running 10..12"]);
}

#[test]
fn a_wait_that_the_recording_does_not_end() {
    let mut s = scene();
    s.switch(0, 0, 0, READY, 1).switch(5, 0, 1, SLEEP, 7).switch(9, 0, 7, SLEEP, 0);
    let recording = s.recording();
    let thread = recording.find_thread(HostId(0), 1, 0).unwrap();
    let path = walk(&recording, thread, Span::new(0, 9));
    assert_eq!(shown(&recording, &path), ["1 Running 0..5", "1 Blocked 5..9"]);
    assert_eq!(recording.names.get(path.last().unwrap().qualifier.unwrap()), "recording ended");
}

#[test]
fn a_soft_interrupt_daemon_is_at_work_not_interrupted() {
    let mut s = scene();
    let soft = Context::SoftIrq(3);
    s.named(0, 1, 21, "ksoftirqd/1").switch(0, 0, 0, READY, 1).switch(2, 0, 1, SLEEP, 0).enter(4, 1, soft);
    s.receive(5, 1, tcp(1 << 40, 2, 5)).wake_onto(6, 1, 1, 0).leave(7, 1, soft).switch(8, 0, 0, READY, 1);
    s.switch(9, 0, 1, SLEEP, 0).switch(9, 1, 21, SLEEP, 0);
    let recording = s.recording();
    let of = |tid| {
        let thread = recording.find_thread(HostId(0), tid, 0).unwrap();
        shown(&recording, &walk(&recording, thread, Span::new(2, 8)))
    };
    assert_eq!(of(1), ["1 Network 2..6", "1 Preempted 6..8"]);
    assert_eq!(of(21), ["21 Running 2..8"]);
}

#[test]
fn an_interrupt_on_the_way_counts_within_the_thread() {
    let mut s = scene();
    s.switch(0, 0, 0, READY, 1).irq(3, 0, 24, "eth0").leave(5, 0, Context::Irq(24)).switch(9, 0, 1, SLEEP, 0);
    assert_eq!(s.path(1, 0, 9), ["1 Running 0..3", "1 Interrupted 3..5", "1 Running 5..9"]);
}

#[test]
fn parked_is_not_dead() {
    let mut s = scene();
    s.switch(0, 0, 0, READY, 1).switch(0, 1, 0, READY, 9).switch(5, 0, 1, 0x40, 0).wake_onto(8, 1, 1, 0);
    s.switch(9, 0, 0, READY, 1).switch(12, 0, 1, SLEEP, 0);
    assert_eq!(s.path(1, 0, 12), ["1 Running 0..5", "9 Running 5..8", "1 Preempted 8..9", "1 Running 9..12"]);
}

/// A user-space event of thread `vtid` of process `vpid`, in a trace of its own on the same host.
fn user_mark(s: &mut Scene, t: Ns, vtid: i32, vpid: i32) {
    let body = MarkBody { task: 0, begins: true, key: None, kind: None, fields: Vec::new() };
    let mark = s.batch.mark(body);
    let who = s.batch.who(Identity { vtid: Some(vtid), vpid: Some(vpid), ..Identity::default() });
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
    let who = s.batch.who(Identity { tid: Some(7), pid: Some(3), ..Identity::default() });
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
    let thread = recording.find_thread(HostId(0), 1, 0).unwrap();
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
    let thread = recording.find_thread(HostId(0), 1, 0).unwrap();
    let spans: Vec<_> = recording.thread(thread).unwrap().calls.iter().map(|c| (c.span.start, c.span.end)).collect();
    assert_eq!(spans, [(100, 300), (300, 350)]);
}

#[test]
fn a_disk_request_belongs_to_its_submitter() {
    let mut s = scene();
    let request = Request { device: 8, sector: 64, bytes: 4096, write: true, tid: Some(5) };
    let id = s.batch.request(request);
    let done = s.batch.request(Request { tid: None, bytes: 0, ..request });
    s.switch(0, 0, 0, READY, 5).at(3, 0, Kind::Block { step: RequestStep::Issue, request: id });
    s.switch(4, 0, 5, DISK_SLEEP, 0).irq(9, 0, 31, "virtio2-req.0");
    s.at(9, 0, Kind::Block { step: RequestStep::Complete, request: done }).wake(10, 0, 5);
    s.leave(11, 0, Context::Irq(31)).switch(12, 0, 0, READY, 5);
    let recording = s.recording();
    let of = recording.disk[0].submitter.and_then(|t| recording.thread(t)).unwrap();
    assert_eq!((of.tid, recording.disk[0].span, recording.disk[0].bytes), (5, Span::new(3, 9), 4096));
}

#[test]
fn a_worker_is_followed_to_the_thread_that_queued_its_work() {
    // 1 waits for what the kernel worker 7 does; 7 was idle until 9 queued the work at 10 and so woke it.
    let mut s = scene();
    let work = |step| Kind::Work { step, address: 0xabc };
    s.switch(0, 0, 0, READY, 1).switch(0, 1, 0, READY, 9).switch(0, 2, 0, READY, 7).switch(1, 2, 7, SLEEP, 0);
    s.switch(4, 0, 1, SLEEP, 0).at(10, 1, work(WorkStep::Queue)).wake_onto(11, 1, 7, 2).switch(13, 2, 0, READY, 7);
    s.at(14, 2, work(WorkStep::Begin)).wake_onto(20, 2, 1, 0).at(21, 2, work(WorkStep::End));
    s.switch(22, 0, 0, READY, 1).switch(30, 0, 1, SLEEP, 0);
    let want = [
        "1 Running 0..4",
        "9 Running 4..11",
        "7 Preempted 11..13",
        "7 Running 13..20",
        "1 Preempted 20..22",
        "1 Running 22..30",
    ];
    assert_eq!(s.path(1, 0, 30), want);
}

#[test]
fn a_busy_worker_makes_the_next_work_wait() {
    // 7 still runs the work of 8 when 9 queues its own.
    let mut s = scene();
    s.switch(0, 0, 0, READY, 1).switch(0, 1, 0, READY, 9).switch(0, 2, 0, READY, 7);
    let work = |step, address| Kind::Work { step, address };
    s.at(1, 2, work(WorkStep::Begin, 1)).at(3, 1, work(WorkStep::Queue, 2)).switch(4, 0, 1, SLEEP, 0);
    s.at(15, 2, work(WorkStep::End, 1)).at(15, 2, work(WorkStep::Begin, 2)).wake_onto(20, 2, 1, 0);
    s.switch(22, 0, 0, READY, 1);
    assert_eq!(s.path(1, 4, 22), ["7 Running 4..20", "1 Preempted 20..22"]);
}

#[test]
fn a_disk_request_of_queued_work_is_known_to_be_of_who_queued_it() {
    let mut s = scene();
    let request = Request { device: 8, sector: 64, bytes: 4096, write: false, tid: Some(7) };
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
fn an_io_uring_worker_that_waits_for_the_disk_is_why_its_ring_waits() {
    // 1 waits in io_uring_enter for its worker 7, whom it woke, and which reads.
    let mut s = scene();
    s.switch(0, 0, 0, READY, 1).switch(0, 1, 0, READY, 7).switch(1, 1, 7, SLEEP, 0);
    s.named(2, 0, 1, "io_uring_enter").wake_onto(3, 0, 7, 1).switch(5, 0, 1, SLEEP, 0).switch(6, 1, 0, READY, 7);
    s.switch(8, 1, 7, DISK_SLEEP, 0).irq(40, 1, 31, "nvme0q1").wake(41, 1, 7).leave(42, 1, Context::Irq(31));
    s.switch(43, 1, 0, READY, 7).wake_onto(46, 1, 1, 0).switch(48, 0, 0, READY, 1).switch(50, 0, 1, SLEEP, 0);
    let want = [
        "7 Preempted 5..6",
        "7 Running 6..8",
        "7 Disk 8..41",
        "7 Preempted 41..43",
        "7 Running 43..46",
        "1 Preempted 46..48",
        "1 Running 48..50",
    ];
    assert_eq!(s.path(1, 5, 50), want);
}

#[test]
fn a_lock_with_priority_inheritance_goes_through_the_boosted_holder() {
    // 1 waits for the lock of 9, which has lost its CPU to 8; boosted, 9 gets it back at 15 and unlocks at 25.
    let mut s = scene();
    s.switch(0, 0, 0, READY, 1).switch(0, 1, 0, READY, 9).switch(3, 1, 9, PREEMPTED, 8).switch(6, 0, 1, SLEEP, 0);
    s.switch(15, 1, 8, PREEMPTED, 9).wake_onto(25, 1, 1, 0).switch(26, 0, 0, READY, 1).switch(30, 0, 1, SLEEP, 0);
    let want = ["9 Preempted 6..15", "9 Running 15..25", "1 Preempted 25..26", "1 Running 26..30"];
    assert_eq!(s.path(1, 6, 30), want);
}

#[test]
fn a_condition_whose_waiters_are_handed_the_lock_leads_to_both() {
    // 2 signals 1 and 3; both are moved to the lock, which 2 leaves to 3, and 3 to 1.
    let mut s = scene();
    s.switch(0, 0, 0, READY, 1).switch(0, 1, 0, READY, 2).switch(0, 2, 0, READY, 3);
    s.switch(2, 0, 1, SLEEP, 0).switch(3, 2, 3, SLEEP, 0).wake_onto(10, 1, 3, 2).switch(12, 2, 0, READY, 3);
    s.wake_onto(20, 2, 1, 0).switch(21, 0, 0, READY, 1).switch(30, 0, 1, SLEEP, 0);
    let want = ["3 Running 2..3", "2 Running 3..10", "3 Preempted 10..12", "3 Running 12..20", "1 Preempted 20..21"];
    assert_eq!(s.path(1, 2, 21), want);
}

#[test]
fn a_handler_of_the_users_own_table() {
    let mut s = scene();
    s.handlers = Handlers::with_own("disk = [\"fastcard*\"]").unwrap();
    s.switch(0, 0, 0, READY, 1).switch(5, 0, 1, DISK_SLEEP, 0).irq(30, 0, 31, "fastcard0").wake(31, 0, 1);
    s.leave(32, 0, Context::Irq(31)).switch(33, 0, 0, READY, 1);
    assert_eq!(s.path(1, 5, 33), ["1 Disk 5..31", "1 Preempted 31..33"]);
}
