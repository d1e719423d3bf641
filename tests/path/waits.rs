//! Waits, CPUs, disk requests and the services of kernel threads.

use super::*;

#[test]
fn migrated_thread_waits_for_its_new_cpu() {
    let mut s = kernel_events();
    s.switch(0, 0, 0, READY, 1).switch(5, 0, 1, PREEMPTED, 2).at(8, 1, Kind::Migrate { tid: 1, cpu: 1 });
    s.switch(12, 1, 3, SLEEP, 1).switch(15, 1, 1, SLEEP, 0);
    let recording = s.recording();
    let thread = recording.find_thread(HostId::at(0), 1, Timestamp::new(0)).unwrap();
    let path = walk(&recording, thread, span(0, 15));
    let cpus: Vec<_> = path.iter().filter(|s| !s.span.is_empty()).map(|s| (s.kind, s.span.start.ns(), s.cpu)).collect();
    let want = [
        (SegmentKind::Running, 0, 0),
        (SegmentKind::Preempted, 5, 0),
        (SegmentKind::Preempted, 8, 1),
        (SegmentKind::Running, 12, 1),
    ];
    assert_eq!(cpus, want);
}

#[test]
fn wait_ended_by_a_journal_thread_is_for_the_disk() {
    let mut s = kernel_events();
    s.named(0, 1, 9, "jbd2/vda1-8").switch(0, 0, 0, READY, 1).switch(4, 0, 1, DISK_SLEEP, 0);
    s.wake_onto(9, 1, 1, 0).switch(10, 0, 0, READY, 1).switch(12, 0, 1, SLEEP, 0);
    let recording = s.recording();
    let thread = recording.find_thread(HostId::at(0), 1, Timestamp::new(0)).unwrap();
    let path = walk(&recording, thread, span(4, 10));
    let inside: Vec<_> = path.iter().map(|s| (s.depth, format!("{:?}", s.entered), s.span.len())).collect();
    let want = [(0, "Start", 0), (1, "Disk", 0), (1, "Disk", 5), (0, "Start", 1)];
    assert_eq!(inside, want.map(|(depth, entered, len)| (depth, entered.to_owned(), len)));
    assert!(recording.is_disk_wait(&TimelineDraft::of(&recording).threads[thread.index()].rows.segments[1]));
}

#[test]
fn circular_waits_terminate() {
    // Damage: each seems to be woken by the other at the end of overlapping waits.
    let mut s = kernel_events();
    s.switch(0, 0, 0, READY, 1).switch(0, 1, 0, READY, 2).switch(2, 0, 1, SLEEP, 0).switch(2, 1, 2, SLEEP, 0);
    let recording = {
        let mut recording = TimelineDraft::of(&s.recording());
        let (a, b) = (ThreadId::at(1), ThreadId::at(3));
        for (me, other) in [(a, b), (b, a)] {
            let segments = &mut recording.threads[me.index()].rows.segments;
            let last = segments.last_mut().unwrap();
            assert_eq!(last.kind, SegmentKind::Running);
            last.span.end = Timestamp::new(2);
            let mut wait = *last;
            wait.span = span(2, 8);
            wait.kind = SegmentKind::Blocked;
            wait.waker = Some(Waker { thread: other, at: Timestamp::new(8) });
            segments.push(wait);
        }
        recording.seal()
    };
    check(&recording, ThreadId::at(1), span(0, 8));
    let path = walk(&recording, ThreadId::at(1), span(0, 8));
    assert_eq!(shown(&recording, &path), ["1 Running 0..2", "2 Blocked 2..8"]);
}

#[test]
fn disk_request_belongs_to_its_submitter() {
    let mut s = kernel_events();
    let request = BlockRequest { device: 8, sector: 64, bytes: 4096, write: true, tid: Some(5) };
    let id = s.batch.request(request);
    let done = s.batch.request(BlockRequest { tid: None, bytes: 0, ..request });
    s.switch(0, 0, 0, READY, 5).at(3, 0, Kind::Block { step: RequestStep::Issue, request: id });
    s.switch(4, 0, 5, DISK_SLEEP, 0).irq(9, 0, 31, "virtio2-req.0");
    s.at(9, 0, Kind::Block { step: RequestStep::Complete, request: done }).wake(10, 0, 5);
    s.leave(11, 0, Context::Irq(31)).switch(12, 0, 0, READY, 5);
    let recording = s.recording();
    let disk = TimelineDraft::of(&recording).disk;
    let of = disk[0].submitter.and_then(|t| recording.thread(t)).unwrap();
    assert_eq!((of.tid, disk[0].span, disk[0].bytes), (5, span(3, 9), 4096));
}

#[test]
fn disk_request_of_a_work_item_names_the_thread_that_queued_it() {
    let mut s = kernel_events();
    let request = BlockRequest { device: 8, sector: 64, bytes: 4096, write: false, tid: Some(7) };
    let id = s.batch.request(request);
    let issue = Kind::Block { step: RequestStep::Issue, request: id };
    let work = |step| Kind::Work { step, address: 0xabc };
    s.switch(0, 0, 0, READY, 9).switch(0, 1, 0, READY, 7).at(2, 0, work(WorkStep::Queue));
    s.at(3, 1, work(WorkStep::Begin)).at(4, 1, issue).at(5, 1, work(WorkStep::End));
    let recording = s.recording();
    let disk = TimelineDraft::of(&recording).disk;
    let tid = |t: Option<ThreadId>| t.and_then(|t| recording.thread(t)).map(|t| t.tid);
    assert_eq!((tid(disk[0].submitter), tid(disk[0].queued_by)), (Some(7), Some(9)));
}

#[test]
fn handlers_of_the_users_table_classify_waits() {
    let mut s = kernel_events();
    s.handlers = Handlers::with_own("disk = [\"fastcard*\"]").unwrap();
    s.switch(0, 0, 0, READY, 1).switch(5, 0, 1, DISK_SLEEP, 0).irq(30, 0, 31, "fastcard0").wake(31, 0, 1);
    s.leave(32, 0, Context::Irq(31)).switch(33, 0, 0, READY, 1);
    assert_eq!(s.path(1, 5, 33), ["1 Disk 5..31", "1 Preempted 31..33"]);
}

#[test]
fn duplicate_switch_with_a_stack_changes_no_state() {
    let mut s = kernel_events();
    let stack = s.batch.stacks.intern(&[1, 2]);
    s.switch(0, 0, 0, READY, 1).switch(10, 0, 1, SLEEP, 2);
    let who = on(&mut s, 1);
    let (user, origin) = (Some(stack), whyslow::parts::event::stack::StackOrigin::SwitchOut);
    s.by(14, 0, who, Kind::Stack { origin, user, kernel: None, witness: false, weight: WeightId::NONE });
    s.wake(20, 0, 1).switch(30, 0, 2, SLEEP, 1).switch(40, 0, 1, SLEEP, 0);
    let recording = s.recording();
    assert_eq!((recording.quality()[0].gaps, recording.quality()[0].contradictions), (0, 0));
    let one = recording.find_thread(HostId::at(0), 1, Timestamp::new(0)).unwrap();
    // The record comes late: the stack was taken when the thread left.
    assert_eq!(recording.reader(Asker::Path).samples(one).first().unwrap().time, Timestamp::new(10));
    let want = ["1 Running 0..10", "2 Running 10..20", "1 Preempted 20..30", "1 Running 30..40"];
    assert_eq!(shown(&recording, &walk(&recording, one, span(0, 40))), want);
}

#[test]
fn timed_out_call_waited_for_its_timer() {
    for (call, ret, kind) in [("futex", -110, "Timer"), ("poll", 0, "Timer"), ("nanosleep", 0, "Timer")] {
        let mut s = kernel_events();
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
fn thread_outside_calls_is_no_waker() {
    let mut s = kernel_events();
    s.switch(0, 1, 0, READY, 1).switch(0, 0, 0, READY, 2);
    called(&mut s, 3, 2, "read", None);
    called(&mut s, 4, 2, "read", Some(0));
    s.switch(10, 1, 1, SLEEP, 0).wake_onto(20, 0, 1, 1).switch(25, 1, 0, READY, 1).switch(30, 1, 1, SLEEP, 0);
    assert_eq!(s.path(1, 10, 30), ["1 Blocked 10..20", "1 Preempted 20..25", "1 Running 25..30"]);
}

#[test]
fn wait_after_a_completed_request_was_for_the_disk() {
    let mut s = kernel_events();
    let who = on(&mut s, 1);
    let request = |s: &mut KernelEvents, t, step| {
        let request = s.batch.request(BlockRequest { sector: 8, bytes: 4096, tid: Some(1), ..BlockRequest::default() });
        s.by(
            t,
            0,
            if step == RequestStep::Complete { ThreadContextId::ABSENT } else { who },
            Kind::Block { step, request },
        );
    };
    s.switch(0, 0, 0, READY, 1);
    request(&mut s, 5, RequestStep::Issue);
    s.switch(10, 0, 1, DISK_SLEEP, 0);
    request(&mut s, 19, RequestStep::Complete);
    s.wake(20, 0, 1).switch(25, 0, 0, READY, 1).switch(30, 0, 1, SLEEP, 0);
    assert_eq!(s.path(1, 10, 25), ["1 Disk 10..20", "1 Preempted 20..25"]);
}

#[test]
fn woken_thread_queues_on_the_cpu_of_its_next_switch() {
    let mut s = kernel_events();
    s.switch(0, 0, 0, READY, 1).switch(0, 1, 0, READY, 2).switch(5, 0, 1, SLEEP, 3);
    // The waker names CPU 0, where it ran last; it comes up on CPU 1.
    s.wake_onto(10, 1, 1, 0).switch(20, 1, 2, SLEEP, 1).switch(30, 1, 1, SLEEP, 0);
    let recording = s.recording();
    let one = recording.find_thread(HostId::at(0), 1, Timestamp::new(0)).unwrap();
    let path = walk(&recording, one, span(10, 20));
    assert_eq!((path.last().unwrap().kind, path.last().unwrap().cpu), (SegmentKind::Preempted, 1));
}

#[test]
fn untraced_switches_leave_unknown_time() {
    // CPU 0 seems idle from 10 on; at 40 thread 1, woken at 20, turns out to run there.
    let mut s = kernel_events();
    let (idle, one) = (on(&mut s, 0), on(&mut s, 1));
    let call = Kind::CallExit { name: s.text("read"), ret: 1 };
    s.switch(0, 0, 0, READY, 1).switch(10, 0, 1, SLEEP, 0);
    s.by(20, 0, idle, Kind::Wake { tid: 1, cpu: 0, source: WakeSource::Waking, name: TextId::NONE });
    s.by(40, 0, one, call).switch(50, 0, 1, SLEEP, 0);
    assert_eq!(s.path(1, 0, 50), ["1 Running 0..10", "1 Blocked 10..20", "1 Unknown 20..40", "1 Running 40..50"]);
}

#[test]
fn without_switches_only_observed_time_is_running() {
    let mut s = kernel_events();
    let one = on(&mut s, 1);
    s.by(0, 0, one, Kind::PageFault);
    called(&mut s, 10, 1, "read", None);
    called(&mut s, 30, 1, "read", Some(1));
    s.by(45, 0, one, Kind::PageFault).wake(50, 0, 9);
    let want = ["1 Running 0..10", "1 Unknown 10..30", "1 Running 30..45", "1 Unknown 45..50"];
    let recording = s.recording();
    let one = recording.find_thread(HostId::at(0), 1, Timestamp::new(0)).unwrap();
    assert_eq!(shown(&recording, &walk(&recording, one, span(0, 50))), want);
    assert!(!recording.is_scheduled(HostId::at(0)));
}

#[test]
fn threads_on_a_cpu_without_stream_are_unknown() {
    let mut s = kernel_events();
    s.switch(0, 0, 0, READY, 1).switch(5, 0, 1, SLEEP, 2).wake_onto(10, 0, 1, 7);
    s.switch(20, 0, 2, SLEEP, 1).switch(30, 0, 1, SLEEP, 0);
    let streams: Vec<Vec<Event>> = std::mem::take(&mut s.streams).into_values().collect();
    s.batch.merge(&streams);
    let origins = vec![TraceOrigin { host: HostId::at(0), kernel: true, generation: s.kernel }];
    let mut machine =
        Machine::new(vec![HostName { name: "h".to_owned(), kernel_release: None }], origins, Handlers::built_in());
    machine.expect_cpu(HostId::at(0), 0);
    machine.absorb(&s.batch);
    let (recording, notices) = machine.close(Vec::new(), Vec::new());
    let one = recording.find_thread(HostId::at(0), 1, Timestamp::new(0)).unwrap();
    let want = ["1 Running 0..5", "2 Running 5..10", "1 Unknown 10..20", "1 Running 20..30"];
    assert_eq!(shown(&recording, &walk(&recording, one, span(0, 30))), want);
    assert_eq!(notices.count(whyslow::parts::base::notice::Notice::CpusMissing), 1);
}

#[test]
fn untraced_idle_switches_are_no_contradictions() {
    // From the idle task of CPU 0 to 1 no switch is recorded; from that of CPU 1 one is.
    let story = |leaves: bool| {
        let mut s = kernel_events();
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
    let quality = |leaves| story(leaves).quality()[0];
    let (never, once) = (quality(false), quality(true));
    assert_eq!((never.contradictions, never.gaps), (0, 19));
    assert_eq!((once.contradictions, once.gaps), (19, 0));
    // Since when the woken thread ran is not known: neither running nor queued.
    let recording = story(false);
    let one = recording.find_thread(HostId::at(0), 1, Timestamp::new(0)).unwrap();
    let path = shown(&recording, &walk(&recording, one, span(130, 310)));
    assert_eq!(path, ["1 Unknown 130..210", "3 Running 210..230", "1 Unknown 230..310"]);
}

#[test]
fn services_last_from_the_wake_up_until_the_kernel_thread_sleeps() {
    let mut s = kernel_events();
    let waits_for_disk = DISK_SLEEP;
    s.named(0, 0, 1, "db").named(0, 0, 2, "logger").named(0, 0, 7, "jbd2/vda-8").named(0, 0, 8, "rcu_sched");
    s.switch(1, 0, 0, READY, 7).switch(2, 0, 7, SLEEP, 8).switch(3, 0, 8, SLEEP, 1);
    // Woken by 1; it waits for the disk, is woken again, and rests.
    s.wake(10, 0, 7).wake(11, 0, 8).switch(12, 0, 1, SLEEP, 7).switch(15, 0, 7, waits_for_disk, 2).wake(20, 0, 7);
    s.switch(22, 0, 2, PREEMPTED, 7).switch(30, 0, 7, SLEEP, 2).wake(40, 0, 7).switch(45, 0, 2, SLEEP, 8);
    s.switch(50, 0, 8, SLEEP, 7).switch(60, 0, 7, SLEEP, 0);
    let recording = s.recording();
    let tid = |thread: ThreadId| recording.thread(thread).unwrap().tid;
    let services: Vec<_> = TimelineDraft::of(&recording)
        .services
        .iter()
        .map(|s| (tid(s.thread), s.span, tid(s.client), s.since.ns()))
        .collect();
    assert_eq!(services, [(7, span(10, 30), 1, 10), (7, span(40, 60), 2, 40)]);
    let journal = TimelineDraft::of(&recording).services[0].thread;
    let reader = recording.reader(Asker::Path);
    assert_eq!(reader.services(journal).within(span(30, 40)).count(), 0);
    assert_eq!(reader.services(journal).within(span(29, 41)).count(), 2);
}
