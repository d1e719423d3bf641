//! Lives and identities of threads.

use super::*;

#[test]
fn reused_tid_is_another_thread() {
    let mut s = kernel_events();
    s.switch(0, 0, 0, READY, 1).fork(1, 0, 1, 7).wake_new(1, 0, 7).switch(2, 0, 1, SLEEP, 7);
    s.at(5, 0, Kind::Exit { tid: 7 }).wake(6, 0, 1).switch(6, 0, 7, DEAD, 1);
    s.fork(8, 0, 1, 7).wake_new(8, 0, 7).at(9, 0, Kind::Free { tid: 7 }).switch(10, 0, 1, SLEEP, 7);
    s.at(14, 0, Kind::Exit { tid: 7 }).switch(15, 0, 7, DEAD, 0).at(16, 0, Kind::Free { tid: 7 });
    let recording = s.recording();
    let lives: Vec<Span> = recording.threads().iter().filter(|t| t.tid == 7).map(|t| t.life).collect();
    assert_eq!(lives, [span(1, 6), span(8, 15)]);
}

#[test]
fn lost_exit_ends_at_the_next_fork_of_its_tid() {
    let mut s = kernel_events();
    s.switch(0, 0, 0, READY, 1).fork(1, 0, 1, 7).wake_new(1, 0, 7).fork(5, 0, 1, 7).wake_new(5, 0, 7);
    s.switch(6, 0, 1, SLEEP, 7).switch(9, 0, 7, DEAD, 0);
    let recording = s.recording();
    let lives: Vec<Span> = recording.threads().iter().filter(|t| t.tid == 7).map(|t| t.life).collect();
    assert_eq!(lives, [span(1, 5), span(5, 9)]);
}

/// The clock of one host may be before zero on the time line of another.
#[test]
fn thread_known_before_the_first_event_begins_with_it_on_a_clock_before_zero() {
    let mut s = kernel_events();
    s.fork(-30, 0, 3, 7).switch(-20, 1, 3, SLEEP, 1).switch(-10, 0, 0, READY, 0);
    let recording = s.recording();
    assert_eq!(recording.span(), span(-20, -10));
    for (id, thread) in recording.threads_by_id().filter(|(_, t)| t.tid == 3 || t.tid == 7) {
        assert_eq!(thread.life, span(-20, -10), "{}", thread.tid);
        assert_eq!(
            recording.reader(Asker::Path).segments(id).all().map(|e| e.span.len()).sum::<Ns>(),
            10,
            "{}",
            thread.tid
        );
    }
}

/// A recorder lists the threads before its first event; the exit of a call that a thread was in then comes later.
#[test]
fn call_without_entry_of_a_thread_known_before_begins_with_the_recording() {
    let mut s = kernel_events();
    s.fork(0, 0, 3, 7).switch(1_000, 0, 0, READY, 7);
    called(&mut s, 1_010, 7, "execve", Some(0));
    s.switch(1_020, 0, 7, SLEEP, 0);
    let recording = s.recording();
    let calls: Vec<Span> = TimelineDraft::of(&recording)
        .threads
        .iter()
        .filter(|t| t.thread.tid == 7)
        .flat_map(|t| &t.rows.calls)
        .map(|c| c.span)
        .collect();
    assert_eq!(calls, [span(1_000, 1_010)]);
}

#[test]
fn exec_by_another_thread_takes_over_the_leaders_tid() {
    let mut s = kernel_events();
    let path = s.text("./other");
    s.switch(0, 0, 0, READY, 10).fork(1, 0, 10, 11).wake_new(1, 0, 11).switch(2, 0, 10, SLEEP, 11);
    s.at(5, 0, Kind::Exec { tid: 10, old_tid: 11, path }).switch(9, 0, 10, SLEEP, 0);
    let recording = s.recording();
    let lives: Vec<Span> = recording.threads().iter().filter(|t| t.tid == 10).map(|t| t.life).collect();
    assert_eq!(lives, [span(0, 5), span(1, 9)]);
    let after = recording.threads().iter().position(|t| t.life == span(1, 9)).unwrap();
    let path = walk(&recording, ThreadId::at(after), span(2, 9));
    assert_eq!(shown(&recording, &path), ["10 Running 2..9"]);
}

/// A user-space event of thread `vtid` of process `vpid`, in a trace of its own on the same host.
fn user_mark(s: &mut KernelEvents, t: Ns, vtid: i32, vpid: i32) {
    let body = MarkBody { task: 0, begins: true, key: None, kind: None };
    let mark = s.batch.mark(body);
    let who = s.batch.context_id(ThreadContext { vtid: Some(vtid), vpid: Some(vpid), ..ThreadContext::default() });
    let event = Event { time: Timestamp::new(t), who, trace: USER_TRACE, cpu: 0, kind: Kind::Mark(mark) };
    s.streams.entry((USER_TRACE, 0)).or_default().push(event);
}

/// Tids of the threads that the marks were attached to.
fn attached(s: &mut KernelEvents) -> Vec<Option<i32>> {
    let recording = s.recording();
    recording.reader(Asker::Path).marks().map(|m| m.thread.and_then(|t| recording.thread(t)).map(|t| t.tid)).collect()
}

#[test]
fn user_space_events_belong_to_the_thread_of_the_same_id() {
    let mut s = kernel_events();
    s.switch(0, 0, 0, READY, 7).switch(20, 0, 7, SLEEP, 0);
    user_mark(&mut s, 5, 7, 7);
    assert_eq!(attached(&mut s), [Some(7)]);
}

#[test]
fn container_ids_are_mapped_by_the_state_dump() {
    // Thread 5007 is number 7 in its container; the host has a thread 7 of its own.
    let mut s = kernel_events();
    s.at(0, 0, Kind::Namespace { tid: 5007, vtid: 5007, vpid: 5007, level: 0 });
    s.at(0, 0, Kind::Namespace { tid: 5007, vtid: 7, vpid: 7, level: 1 });
    s.switch(1, 0, 0, READY, 7).switch(2, 0, 7, SLEEP, 5007).switch(20, 0, 5007, SLEEP, 0);
    let who = s.batch.context_id(ThreadContext { tid: Some(7), pid: Some(3), ..ThreadContext::default() });
    let name = s.text("kthread");
    s.by(1, 1, who, Kind::CallEntry { name, descriptor: None });
    user_mark(&mut s, 5, 7, 7);
    assert_eq!(attached(&mut s), [Some(5007)]);
}

#[test]
fn ambiguous_user_space_event_belongs_to_no_thread() {
    // Two containers with a thread 7 of a process 7 each.
    let mut s = kernel_events();
    for tid in [5007, 6007] {
        s.at(0, 0, Kind::Namespace { tid, vtid: 7, vpid: 7, level: 1 });
    }
    s.switch(20, 0, 5007, SLEEP, 0);
    user_mark(&mut s, 5, 7, 7);
    assert_eq!(attached(&mut s), [None]);
}

#[test]
fn small_container_tid_is_no_kernel_thread() {
    let mut s = kernel_events();
    let name = s.text("kworker/0:1");
    let kworker = DumpedThread { tid: 5, pid: 5, ppid: 2, status: DumpStatus::Waiting, cpu: Some(0), name };
    let id = s.batch.process(kworker);
    s.at(0, 0, Kind::Process(id)).switch(1, 0, 0, READY, 900);
    let who = s.batch.context_id(ThreadContext { vtid: Some(5), vpid: Some(5), ..ThreadContext::default() });
    let mark = s.batch.mark(MarkBody { task: 0, begins: true, key: None, kind: None });
    let event = Event { time: Timestamp::new(5), who, trace: 2, cpu: 0, kind: Kind::Mark(mark) };
    s.streams.entry((2, 0)).or_default().push(event);
    s.switch(9, 0, 900, SLEEP, 0);
    let recording = s.recording();
    let thread = recording.reader(Asker::Path).mark(0).unwrap().thread.and_then(|t| recording.thread(t)).unwrap();
    assert_eq!(thread.tid, 900);
}

#[test]
fn exec_renames_at_once() {
    let mut s = kernel_events();
    s.named(1, 0, 7, "bash");
    let path = s.text("/usr/bin/a-rather-long-program-name");
    s.at(10, 0, Kind::Exec { tid: 7, old_tid: 7, path });
    let recording = s.recording();
    let thread = recording.thread(recording.find_thread(HostId::at(0), 7, Timestamp::new(1)).unwrap()).unwrap();
    let name = |t| recording.names().get(thread.name_at(Timestamp::new(t)).unwrap());
    assert_eq!((name(9), name(10)), ("bash", "a-rather-long-p"));
}

#[test]
fn exec_dates_a_name_that_a_switch_told_before_its_event() {
    let mut s = kernel_events();
    let path = s.text("/bin/ls");
    s.named(1, 0, 7, "taskset").named(8, 0, 7, "ls");
    for t in [10, 20] {
        s.at(t, 0, Kind::Exec { tid: 7, old_tid: 7, path });
    }
    let recording = s.recording();
    let thread = recording.thread(recording.find_thread(HostId::at(0), 7, Timestamp::new(1)).unwrap()).unwrap();
    let name = |t| recording.names().get(thread.name_at(Timestamp::new(t)).unwrap());
    // The second one runs the same program again.
    assert_eq!([9, 10, 19, 20].map(name), ["taskset", "ls", "ls", "ls"]);
}

#[test]
fn path_of_an_unknown_thread_is_as_long_as_its_span() {
    let path = walk(&Timeline::default(), ThreadId::at(0), Span::of_ns(5, 9));
    assert_eq!(path.iter().map(|segment| segment.span.len()).sum::<Ns>(), 4);
}
