//! Conversations call by call.

mod older;

use super::{NoConversation, find, marks};
use crate::analysis::executions::{PairingRule, pair};
use crate::analysis::timeline_builder::TimelineBuilder;
use crate::base::ctx::Ctx;
use crate::base::notice::{Notice, Notices};
use crate::base::time::{Ns, Span, Timestamp};
use crate::event::derived::{ConversationSide, Conversations};
use crate::event::descriptor::named_descriptor;
use crate::timeline::{Call, SegmentKind, ThreadId, ThreadName};

/// Arrival, end, descriptor, bytes in and out.
type Row = (Ns, Ns, u32, u64, u64);

/// Calls of thread `n`: (name, entry, exit, descriptor, result).
type Calls<'a> = &'a [(&'a str, Ns, Ns, i64, i64)];

fn calls(builder: &mut TimelineBuilder, n: usize, calls: Calls<'_>) {
    calls_with(builder, n, None, calls);
}

/// Calls of thread `n` that name the address of a peer, which is at `address`.
fn calls_with(builder: &mut TimelineBuilder, n: usize, address: Option<i64>, calls: Calls<'_>) {
    for (name, start, end, descriptor, ret) in calls {
        let name = builder.0.tables.names.intern(name);
        let descriptor = named_descriptor(*descriptor, None, address);
        let call = Call { span: Span::of_ns(*start, *end), name, ret: Some(*ret), descriptor };
        builder.0.threads[n - 1].rows.calls.push(call);
    }
}

/// Thread `n` waits for another thread in these spans, is runnable for 2 ns after each, and runs otherwise.
fn waits(builder: &mut TimelineBuilder, n: usize, waits: &[(Ns, Ns)]) {
    let mut at = 0;
    for (from, to) in waits {
        builder.segment(n, at, *from, SegmentKind::Running, 0).segment(n, *from, *to, SegmentKind::Blocked, 0);
        builder.segment(n, *to, *to + 2, SegmentKind::Preempted, 0);
        at = *to + 2;
    }
    builder.segment(n, at, 1000, SegmentKind::Running, 0);
}

/// A process `server` of this many threads, which all run.
fn server(threads: usize) -> TimelineBuilder {
    let mut builder = TimelineBuilder::new(threads);
    let name = builder.0.tables.names.intern("server");
    for (at, draft) in builder.0.threads.iter_mut().enumerate() {
        draft.thread.names = vec![ThreadName { from: Timestamp::ZERO, name }];
        // The first thread is that of the process.
        draft.thread.tid = 100 + at as i32;
    }
    builder
}

fn task(side: ConversationSide, process: &str) -> Conversations {
    Conversations { side, process: process.to_owned(), from_arrival: false }
}

fn rows(builder: &TimelineBuilder, side: ConversationSide) -> Vec<Row> {
    let found = find(&builder.sealed(), &task(side, "server"), &Ctx::new(1)).unwrap();
    let Ok(found) = found else { return Vec::new() };
    let row =
        |it: &super::Exchange| (it.arrival.ns(), it.end.time.ns(), it.descriptor.number(), it.bytes_in, it.bytes_out);
    found.exchanges.iter().map(row).collect()
}

fn served(builder: &TimelineBuilder) -> Vec<Row> {
    rows(builder, ConversationSide::Serves)
}

#[test]
fn request_lasts_from_its_receipt_or_arrival_to_the_last_send_of_its_reply() {
    let mut builder = server(1);
    waits(&mut builder, 1, &[(20, 40), (100, 130), (200, 250)]);
    calls(
        &mut builder,
        1,
        &[
            ("accept4", 2, 3, 4, 5),
            ("epoll_wait", 19, 43, 3, 1),
            ("read", 44, 45, 5, 10),
            ("read", 46, 47, 5, -11),
            ("write", 60, 65, 5, 7),
            ("write", 66, 70, 5, 3),
            // The wait for the next request is inside of the receive here.
            ("recvfrom", 99, 133, 5, 20),
            ("sendto", 140, 150, 5, 30),
            ("epoll_wait", 199, 253, 3, 1),
            // The end of the stream is no data.
            ("read", 254, 255, 5, 0),
            ("close", 256, 257, 5, 0),
        ],
    );
    assert_eq!(served(&builder), [(40, 70, 5, 10, 10), (130, 150, 5, 20, 30)]);
    assert_eq!(rows(&builder, ConversationSide::Calls), []);
    for (from_arrival, begins) in [(false, [45, 133]), (true, [40, 130])] {
        let (timeline, mut notices) = (builder.sealed(), Notices::default());
        let task = Conversations { from_arrival, ..task(ConversationSide::Serves, "server") };
        let marks = marks(&timeline, 0, &task, &mut notices, &Ctx::new(1)).unwrap().unwrap();
        let timeline = timeline.delimited_by(marks);
        let all = pair(&timeline, 0, &PairingRule::default(), &mut notices);
        assert_eq!(all.iter().map(|e| e.span.start.ns()).collect::<Vec<_>>(), begins);
        // How long the data was there unread.
        let unread = timeline.names().find("unread_ns").unwrap();
        let fields = timeline.mark_fields(all[0].begin).find(|field| field.name == unread);
        assert_eq!(fields.map(|field| field.value), Some(5));
    }
}

#[test]
fn call_lasts_from_its_send_to_the_last_receive_of_the_answer() {
    let mut builder = server(1);
    waits(&mut builder, 1, &[(20, 40), (60, 80)]);
    calls(
        &mut builder,
        1,
        &[
            ("socket", 1, 2, -1, 6),
            ("connect", 3, 4, 6, -115),
            ("sendto", 10, 12, 6, 100),
            ("recvfrom", 19, 43, 6, 5),
            ("recvfrom", 59, 83, 6, 6),
            ("sendto", 90, 91, 6, 100),
            ("close", 95, 96, 6, 0),
        ],
    );
    assert_eq!(rows(&builder, ConversationSide::Calls), [(10, 83, 6, 11, 100)]);
    assert_eq!(served(&builder), []);
}

#[test]
fn descriptor_that_is_closed_and_used_again_is_another_conversation() {
    let mut builder = server(1);
    waits(&mut builder, 1, &[]);
    calls(
        &mut builder,
        1,
        &[
            ("accept4", 2, 3, 4, 5),
            ("read", 10, 11, 5, 1),
            ("close", 12, 13, 5, 0),
            // A file of the same number.
            ("openat", 14, 15, -1, 5),
            ("read", 16, 17, 5, 9),
            ("write", 18, 19, 5, 9),
            ("close", 20, 21, 5, 0),
            ("accept4", 22, 23, 4, 5),
            ("write", 24, 25, 5, 1),
            ("read", 30, 31, 5, 2),
            ("write", 32, 33, 5, 3),
        ],
    );
    assert_eq!(served(&builder), [(30, 33, 5, 2, 3)]);
}

#[test]
fn copy_of_a_descriptor_is_the_same_conversation() {
    let mut builder = server(1);
    waits(&mut builder, 1, &[]);
    calls(
        &mut builder,
        1,
        &[
            ("accept", 2, 3, 4, 5),
            ("dup", 4, 5, 5, 8),
            ("close", 6, 7, 5, 0),
            ("read", 10, 11, 8, 1),
            ("dup2", 12, 13, 8, 1),
            ("close", 14, 15, 8, 0),
            ("write", 20, 22, 1, 4),
        ],
    );
    assert_eq!(served(&builder), [(10, 22, 5, 1, 4)]);
}

#[test]
fn reply_may_be_sent_by_another_thread_and_begin_before_the_receive_returned() {
    let mut builder = server(2);
    waits(&mut builder, 1, &[(20, 40)]);
    waits(&mut builder, 2, &[]);
    calls(&mut builder, 1, &[("accept4", 2, 3, 4, 5), ("read", 19, 43, 5, 10), ("read", 69, 75, 5, 11)]);
    // The next request arrives before this thread is back from its send.
    calls(&mut builder, 2, &[("write", 60, 80, 5, 7), ("write", 90, 91, 5, 8)]);
    assert_eq!(served(&builder), [(40, 80, 5, 10, 7), (69, 91, 5, 11, 8)]);
}

#[test]
fn connection_that_another_thread_handed_over_arrived_when_that_was_woken() {
    let mut builder = server(2);
    waits(&mut builder, 1, &[(20, 40)]);
    builder.segment(2, 0, 10, SegmentKind::Running, 0).segment(2, 10, 50, SegmentKind::Blocked, 1);
    builder.segment(2, 50, 55, SegmentKind::Preempted, 0).segment(2, 55, 1000, SegmentKind::Running, 0);
    calls(&mut builder, 1, &[("accept4", 2, 3, 4, 5), ("epoll_wait", 19, 43, 3, 1), ("futex", 49, 51, -1, 1)]);
    calls(&mut builder, 2, &[("futex", 9, 56, -1, 0), ("read", 60, 61, 5, 10), ("write", 70, 71, 5, 1)]);
    assert_eq!(served(&builder), [(40, 71, 5, 10, 1)]);
}

/// A server that waits for a first request, which another thread sends from descriptor 7, and is then kept from its
/// receive until 300; that thread's third request is sent at 210. `more` are calls of a third thread.
fn stopped_before_its_receive(more: Calls<'_>, woken_by_another: bool) -> TimelineBuilder {
    let mut builder = server(3);
    let client = builder.0.tables.names.intern("client");
    for (at, pid) in [(1, 200), (2, 300)] {
        let thread = &mut builder.0.threads[at].thread;
        (thread.tid, thread.pid, thread.names) = (pid, pid, vec![ThreadName { from: Timestamp::ZERO, name: client }]);
    }
    builder.segment(1, 0, 20, SegmentKind::Running, 0).segment(1, 20, 40, SegmentKind::Blocked, 2);
    builder.segment(1, 40, 140, SegmentKind::Running, 0);
    let by = if woken_by_another { 3 } else { 2 };
    builder.segment(1, 140, 160, SegmentKind::Blocked, by).segment(1, 160, 1000, SegmentKind::Running, 0);
    calls(
        &mut builder,
        1,
        &[
            ("accept4", 2, 3, 4, 5),
            ("recvfrom", 10, 45, 5, 8),
            ("sendto", 60, 62, 5, 9),
            ("recvfrom", 130, 165, 5, 8),
            ("sendto", 180, 182, 5, 9),
            // A receive that ended without data, and again after the stop.
            ("recvfrom", 190, 200, 5, -512),
            ("recvfrom", 300, 302, 5, 8),
            ("sendto", 320, 322, 5, 9),
        ],
    );
    calls(&mut builder, 2, &[("sendto", 38, 41, 7, 8), ("sendto", 158, 161, 7, 8), ("sendto", 210, 214, 7, 8)]);
    calls(&mut builder, 3, more);
    builder
}

#[test]
fn request_to_a_stopped_thread_had_arrived_when_the_other_end_sent_it() {
    let arrivals = |builder: &TimelineBuilder| served(builder).iter().map(|row| row.0).collect::<Vec<_>>();
    assert_eq!(arrivals(&stopped_before_its_receive(&[], false)), [40, 160, 214]);
    // Twin: another thread sends over the same socket, so the data may have been its own.
    let other: Calls<'_> = &[("sendto", 158, 161, 7, 8)];
    assert_eq!(arrivals(&stopped_before_its_receive(other, true)), [40, 160, 300]);
    // Twin: nothing shows who is at the other end.
    let mut builder = stopped_before_its_receive(&[], false);
    builder.0.threads[1].rows.calls.truncate(0);
    assert_eq!(arrivals(&builder), [40, 160, 300]);
}

#[test]
fn request_to_a_frozen_thread_had_arrived_before_it_was_let_go_on() {
    // Ten requests, each 100 ns long; in the last the thread waits until another one writes `THAWED` somewhere.
    // It was woken so the first time, too.
    let mut builder = stopped_before_its_receive(&[("write", 410, 430, 3, 6), ("write", 1360, 1390, 3, 6)], false);
    for draft in &mut builder.0.threads {
        draft.rows.segments.clear();
        draft.rows.calls.retain(|call| call.descriptor == named_descriptor(3, None, None));
    }
    let mut ends = Vec::new();
    for n in 0..10 {
        let t = 400 + n * 100;
        let (sent, woken, by) = match n {
            0 => (t + 8, t + 20, 3),
            9 => (t + 20, t + 80, 3),
            _ => (t + 20, t + 22, 2),
        };
        builder.segment(1, t, t + 10, SegmentKind::Running, 0);
        builder.segment(1, t + 10, woken, SegmentKind::Blocked, by).segment(1, woken, t + 100, SegmentKind::Running, 0);
        calls(&mut builder, 1, &[("recvfrom", t + 5, woken + 3, 5, 8), ("sendto", woken + 10, woken + 12, 5, 9)]);
        calls(&mut builder, 2, &[("sendto", sent, sent + 3, 7, 8)]);
        ends.push(if n == 9 { sent + 3 } else { woken });
    }
    builder.0.tables.span = Span::of_ns(0, 2000);
    let arrivals: Vec<_> = rows(&builder, ConversationSide::Serves).iter().map(|row| row.0).collect();
    assert_eq!(arrivals, ends);
    // Twin: what wakes it is the network, which may have kept the data until then.
    if let Some(segment) = builder.0.threads[0].rows.segments.iter_mut().rev().nth(1) {
        (segment.kind, segment.waker) = (SegmentKind::Network, None);
    }
    let arrivals: Vec<_> = rows(&builder, ConversationSide::Serves).iter().map(|row| row.0).collect();
    assert_eq!(arrivals.last(), Some(&1380));
}

#[test]
fn data_that_waited_behind_other_data_had_arrived_when_both_were_found() {
    let mut builder = server(1);
    waits(&mut builder, 1, &[(20, 40)]);
    calls(
        &mut builder,
        1,
        &[
            ("accept4", 2, 3, 4, 5),
            ("accept4", 4, 5, 4, 6),
            ("accept4", 6, 7, 4, 7),
            ("epoll_wait", 19, 43, 3, 2),
            ("read", 44, 45, 5, 10),
            ("write", 60, 65, 5, 7),
            ("read", 66, 67, 6, 10),
            ("write", 70, 75, 6, 7),
            // Two were ready.
            ("read", 80, 81, 7, 10),
            ("write", 82, 83, 7, 10),
        ],
    );
    assert_eq!(served(&builder), [(40, 65, 5, 10, 7), (43, 75, 6, 10, 7), (80, 83, 7, 10, 10)]);
}

#[test]
fn child_has_the_descriptors_of_its_parent() {
    let mut builder = server(2);
    for n in [1, 2] {
        waits(&mut builder, n, &[]);
    }
    let child = &mut builder.0.threads[1].thread;
    (child.tid, child.pid, child.parent, child.life.start) = (200, 200, Some(ThreadId::at(0)), Timestamp::new(15));
    builder.0.threads[1].rows.segments[0].span.start = Timestamp::new(15);
    calls(&mut builder, 1, &[("accept4", 2, 3, 4, 5), ("openat", 4, 5, -1, 6), ("close", 20, 21, 5, 0)]);
    let own = [("read", 30, 31, 5, 1), ("write", 40, 41, 5, 1), ("read", 50, 51, 6, 1), ("write", 52, 53, 6, 1)];
    calls(&mut builder, 2, &own);
    assert_eq!(served(&builder), [(30, 41, 5, 1, 1)]);
    // The parent has closed its own; the number is another connection there.
    calls(&mut builder, 1, &[("accept4", 32, 33, 4, 5), ("read", 42, 43, 5, 2), ("write", 44, 45, 5, 2)]);
    assert_eq!(served(&builder), [(30, 41, 5, 1, 1), (42, 45, 5, 2, 2)]);
}

#[test]
fn overlapping_streamed_and_unanswered_requests_are_reported() {
    let noticed = |more: Calls<'_>| {
        let mut builder = server(1);
        waits(&mut builder, 1, &[]);
        calls(&mut builder, 1, &[("accept4", 2, 3, 4, 5)]);
        calls(&mut builder, 1, more);
        let (mut timeline, mut notices) = (builder.sealed(), Notices::default());
        let marked =
            marks(&timeline, 0, &task(ConversationSide::Serves, "server"), &mut notices, &Ctx::new(1)).unwrap();
        let kinds: Vec<(Notice, u64)> = notices.iter().map(|(notice, entry)| (notice, entry.count)).collect();
        let is_marked = marked.is_ok();
        if let Ok(marks) = marked {
            timeline = timeline.delimited_by(marks);
        }
        let all = pair(&timeline, 0, &PairingRule::default(), &mut notices);
        assert_eq!(is_marked, !all.is_empty());
        (all.len(), kinds)
    };
    let pipelined = [("read", 10, 11, 5, 1), ("read", 12, 13, 5, 1), ("write", 20, 21, 5, 1), ("write", 22, 23, 5, 1)];
    assert_eq!(noticed(&pipelined), (1, vec![(Notice::Overlapping, 1)]));
    let multiplexed = [
        ("read", 10, 11, 5, 1),
        ("read", 12, 13, 5, 1),
        ("write", 20, 21, 5, 1),
        ("read", 22, 23, 5, 1),
        ("write", 24, 25, 5, 1),
        ("write", 26, 27, 5, 1),
    ];
    assert_eq!(noticed(&multiplexed), (2, vec![(Notice::Overlapping, 1)]));
    let upload = [("read", 10, 11, 5, 1), ("read", 12, 13, 5, 1), ("write", 20, 21, 5, 1)];
    assert_eq!(noticed(&upload), (1, vec![]));
    let streamed = [("read", 10, 11, 5, 1), ("write", 12, 13, 5, 1), ("write", 50, 51, 5, 1), ("write", 80, 81, 5, 1)];
    assert_eq!(noticed(&streamed), (1, vec![(Notice::Streamed, 1)]));
    assert_eq!(noticed(&[("read", 10, 11, 5, 1), ("close", 20, 21, 5, 0)]), (0, vec![]));
    let half = [("read", 10, 11, 5, 1), ("read", 12, 13, 5, 0), ("write", 20, 21, 5, 1), ("read", 30, 31, 5, 4)];
    assert_eq!(noticed(&half), (1, vec![(Notice::Unanswered, 1)]));
}

#[test]
fn datagram_without_a_reply_is_no_part_of_the_next_request() {
    let mut builder = server(1);
    waits(&mut builder, 1, &[(20, 40), (60, 80)]);
    calls(
        &mut builder,
        1,
        &[
            ("socket", 2, 3, -1, 5),
            ("bind", 4, 5, 5, 0),
            ("recvfrom", 19, 43, 5, 10),
            ("recvfrom", 59, 83, 5, 11),
            ("sendto", 90, 91, 5, 12),
        ],
    );
    assert_eq!(served(&builder), [(80, 91, 5, 11, 12)]);
}

#[test]
fn socket_older_than_the_recording_has_datagrams_where_a_call_names_an_address() {
    let requests = [("recvfrom", 19, 43, 5, 10), ("recvfrom", 59, 83, 5, 11), ("sendto", 90, 91, 5, 12)];
    for (address, wanted) in [(Some(0x7ffd_0000_1000), (80, 91, 5, 11, 12)), (None, (40, 91, 5, 21, 12))] {
        let mut builder = server(1);
        waits(&mut builder, 1, &[(20, 40), (60, 80)]);
        calls_with(&mut builder, 1, address, &requests);
        assert_eq!(served(&builder), [wanted]);
    }
}

#[test]
fn find_says_why_there_is_nothing() {
    let mut builder = server(1);
    waits(&mut builder, 1, &[]);
    let why = |builder: &TimelineBuilder, side, process| {
        find(&builder.sealed(), &task(side, process), &Ctx::new(1)).unwrap().err()
    };
    assert_eq!(why(&builder, ConversationSide::Serves, "other"), Some(NoConversation::Process));
    assert_eq!(why(&builder, ConversationSide::Serves, "server"), Some(NoConversation::Descriptors));
    calls(&mut builder, 1, &[("read", 1, 2, 5, 1)]);
    assert_eq!(why(&builder, ConversationSide::Serves, "server"), Some(NoConversation::Reply));
    assert_eq!(why(&builder, ConversationSide::Calls, "server"), Some(NoConversation::Answer));
    calls(&mut builder, 1, &[("sendto", 4, 5, 5, 1)]);
    // The pid is that of the process.
    assert_eq!(why(&builder, ConversationSide::Serves, "100"), None);
}
