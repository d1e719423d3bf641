//! CTF of other tracers is read as LTTng's own: perf's, as `perf data convert --to-ctf --all` writes it (6.1).
//!
//! The traces are written here, with the events, fields and order of a recording that was converted: perf's records of
//! threads (`perf_comm`, `perf_fork`, `perf_exit`) are in the stream of CPU 0 whichever thread ran there, partly at
//! time 0.

use crate::support::ctf_writer;
use ctf_writer::{Channel, Event, Task, TraceWriter, Value};
use std::path::Path;
use std::rc::Rc;
use whyslow::parts::base::ctx::Ctx;
use whyslow::parts::base::notice::Notice;
use whyslow::parts::base::time::{Ns, Timestamp};
use whyslow::parts::event::host::HostId;
use whyslow::parts::input::{Argument, Opened, Source, open};
use whyslow::parts::kernel::{Options, record};
use whyslow::parts::timeline::questions::Asker;
use whyslow::parts::timeline::{SegmentKind, Timeline, TimelineDraft};

const START: Ns = 15_605_000_000_000;
const LEADER: i32 = 100;
const WORKER: i32 = 101;

fn event(time: Ns, cpu: u32, name: &'static str, fields: Vec<(&'static str, Value)>) -> Event {
    Event { time, cpu, name: name.into(), fields, on: Rc::new(Task::default()), stack: None }
}

/// One of perf's own records.
fn own_record(time: Ns, name: &'static str, (pid, tid): (i32, i32), more: Vec<(&'static str, Value)>) -> Event {
    let mut fields = vec![("pid", Value::U32(pid as u32)), ("tid", Value::U32(tid as u32))];
    fields.extend(more);
    event(time, 0, name, fields)
}

/// A sample of a tracepoint.
fn sample(time: Ns, cpu: u32, name: &'static str, (pid, tid): (i32, i32), more: Vec<(&'static str, Value)>) -> Event {
    let mut fields = vec![("perf_tid", Value::I32(tid)), ("perf_pid", Value::I32(pid))];
    fields.extend(more);
    event(time, cpu, name, fields)
}

fn switch(time: Ns, cpu: u32, pid: i32, (prev, state): (i32, i64), next: i32) -> Event {
    let text = |tid: i32| Value::Text(if tid == 0 { "swapper".into() } else { "stale".into() });
    let fields = vec![
        ("prev_comm", text(prev)),
        ("prev_pid", Value::I32(prev)),
        ("prev_prio", Value::I32(120)),
        ("prev_state", Value::I64(state)),
        ("next_comm", text(next)),
        ("next_pid", Value::I32(next)),
        ("next_prio", Value::I32(120)),
    ];
    sample(time, cpu, "sched:sched_switch", (pid, prev), fields)
}

fn events() -> Vec<Event> {
    let comm = |text: &str| vec![("comm", Value::Text(text.to_owned()))];
    let family = |ppid: i32, ptid: i32, time: Ns| {
        vec![("ppid", Value::U32(ppid as u32)), ("ptid", Value::U32(ptid as u32)), ("time", Value::U64(time as u64))]
    };
    let call = |id: i64| vec![("id", Value::I64(id))];
    let done = |id: i64, ret: i64| vec![("id", Value::I64(id)), ("ret", Value::I64(ret))];
    let forked = vec![
        ("parent_comm", Value::Text("server".into())),
        ("parent_pid", Value::I32(LEADER)),
        ("child_comm", Value::Text("server".into())),
        ("child_pid", Value::I32(WORKER)),
    ];
    let on = (LEADER, WORKER);
    vec![
        own_record(0, "perf_comm", (LEADER, LEADER), comm("perf-exec")),
        own_record(START + 10, "perf_comm", (LEADER, LEADER), comm("server")),
        sample(START + 20, 1, "raw_syscalls:sys_enter", (LEADER, LEADER), call(56)),
        own_record(START + 30, "perf_fork", on, family(LEADER, LEADER, START + 30)),
        sample(START + 35, 1, "sched:sched_process_fork", (LEADER, LEADER), forked),
        switch(START + 50, 1, LEADER, (LEADER, 0), WORKER),
        own_record(START + 60, "perf_comm", on, comm("worker-x")),
        sample(START + 70, 1, "raw_syscalls:sys_enter", on, call(98)),
        sample(START + 90, 1, "raw_syscalls:sys_exit", on, done(98, 0)),
        own_record(START + 110, "perf_exit", on, family(LEADER, LEADER, START + 110)),
        switch(START + 120, 1, LEADER, (WORKER, 0x10), LEADER),
        sample(START + 150, 1, "raw_syscalls:sys_exit", (LEADER, LEADER), done(56, 101)),
        switch(START + 200, 1, LEADER, (LEADER, 1), 0),
    ]
}

fn opened(folder: &Path, environment: &[(&str, &str)]) -> Vec<Source> {
    let mut trace = TraceWriter::new("", "kernel", 0x77, 0x99);
    trace.environment = environment.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    trace.span = (0, START + 300);
    trace.channels.push(Channel {
        name: "perf_stream".into(),
        contexts: Vec::new(),
        events: events(),
        discarded: Vec::new(),
    });
    trace.write(folder);
    let arguments = [Argument::new(folder.to_owned())];
    let Opened::Traces(sources) = open(&arguments, &Ctx::new(1)).unwrap() else { panic!("no trace") };
    sources
}

fn read(sources: &[Source]) -> Timeline {
    let traces: Vec<_> = sources.iter().map(|s| &s.trace).collect();
    record(&traces, &[], &Options::default(), &Ctx::new(1)).unwrap().0.seal()
}

const PERF: [(&str, &str); 6] = [
    ("host", "machine-7"),
    ("sysname", "Linux"),
    ("release", "6.1.0"),
    ("machine", "aarch64"),
    ("domain", "kernel"),
    ("tracer_name", "perf"),
];

#[test]
fn comm_records_name_threads_and_processes() {
    let folder = tempfile::tempdir().unwrap();
    let sources = opened(&folder.path().join("trace"), &PERF);
    assert_eq!(sources[0].trace.host(), Some("machine-7"));
    let recording = read(&sources);
    assert_eq!(recording.names().get(recording.hosts()[0].name), "machine-7");
    assert_eq!(recording.hosts()[0].kernel_release.as_deref(), Some("6.1.0"));
    let draft = TimelineDraft::of(&recording);
    let of = |tid: i32| draft.threads.iter().filter(|t| t.thread.tid == tid && !t.thread.idle).collect::<Vec<_>>();
    let id_of = |tid: i32| recording.threads_by_id().find(|(_, t)| t.tid == tid && !t.idle).unwrap().0;
    let worker_id = id_of(WORKER);
    // One fork, recorded twice.
    let [worker] = of(WORKER)[..] else { panic!("{:?}", of(WORKER)) };
    assert_eq!(
        (worker.thread.pid, worker.thread.life.start.ns(), worker.thread.life.end.ns()),
        (LEADER, START + 30, START + 120)
    );
    let name = |t: Ns| recording.names().get(recording.thread(worker_id).unwrap().name_at(Timestamp::new(t)).unwrap());
    assert_eq!(name(START + 100), "worker-x");
    let leader = of(LEADER)[0];
    assert_eq!(
        recording.names().get(recording.thread(id_of(LEADER)).unwrap().name_at(Timestamp::new(START + 15)).unwrap()),
        "server"
    );
    // Records that perf synthesised when it began, with time 0, are no part of the recording.
    assert_eq!((recording.span().start.ns(), leader.thread.life.start.ns()), (START + 20, START + 20));
    assert_eq!(recording.check(), None);
    // No thread was seen to run on CPU 0.
    assert!(recording.reader(Asker::Path).runs(HostId::at(0), 0).is_empty());
    assert!(
        worker.rows.segments.iter().any(|e| e.kind == SegmentKind::Running && e.span.len() == 70),
        "{:?}",
        worker.rows.segments
    );
}

#[test]
fn numbers_of_system_calls_are_those_of_the_machine() {
    let folder = tempfile::tempdir().unwrap();
    for (at, (entry, machine, calls)) in [
        ("machine", "aarch64", ["openat", "futex"]),
        ("architecture", "x86_64", ["clone", "getrusage"]),
        ("arch", "i686", ["mpx", "profil"]),
        ("machine", "vax", ["syscall 56", "syscall 98"]),
    ]
    .into_iter()
    .enumerate()
    {
        let recording = read(&opened(&folder.path().join(at.to_string()), &[("domain", "kernel"), (entry, machine)]));
        let calls_of = |tid: i32| {
            let draft = TimelineDraft::of(&recording);
            let thread = draft.threads.iter().find(|t| t.thread.tid == tid && !t.thread.idle).unwrap();
            thread.rows.calls.iter().map(|c| recording.names().get(c.name).to_owned()).collect::<Vec<_>>()
        };
        // The worker comes back from the call that made it.
        assert_eq!(calls_of(LEADER), [calls[0]], "{machine}");
        assert_eq!(calls_of(WORKER), calls, "{machine}");
    }
}

/// The first versions of LTTng 2.0: `sys_enter` and `sys_exit` are any call, by number. Later ones: `sys_exit` is the
/// entry of exit.
#[test]
fn calls_of_old_tracers_are_named_by_number() {
    let folder = tempfile::tempdir().unwrap();
    let calls_of = |name: &str, exit: Vec<(&'static str, Value)>| {
        let mut trace = TraceWriter::new("", "kernel", 0x77, 0x99);
        trace.environment = vec![("domain".into(), "kernel".into())];
        trace.span = (0, START + 300);
        let switched = vec![
            ("prev_comm", Value::Text("swapper".into())),
            ("prev_tid", Value::I32(0)),
            ("prev_state", Value::I64(0)),
            ("next_comm", Value::Text("server".into())),
            ("next_tid", Value::I32(LEADER)),
        ];
        let events = vec![
            event(START + 10, 0, "sched_switch", switched),
            event(START + 20, 0, "sys_enter", vec![("id", Value::I64(202))]),
            event(START + 40, 0, "sys_exit", exit),
        ];
        trace.channels.push(Channel { name: "kernel".into(), contexts: Vec::new(), events, discarded: Vec::new() });
        let path = folder.path().join(name);
        trace.write(&path);
        let arguments = [Argument::new(path)];
        let Opened::Traces(sources) = open(&arguments, &Ctx::new(1)).unwrap() else { panic!("no trace") };
        let recording = read(&sources);
        let draft = TimelineDraft::of(&recording);
        let thread = draft.threads.iter().find(|t| t.thread.tid == LEADER).unwrap();
        thread.rows.calls.iter().map(|c| (recording.names().get(c.name).to_owned(), c.ret)).collect::<Vec<_>>()
    };
    let returns = vec![("id", Value::I64(202)), ("ret", Value::I64(1))];
    assert_eq!(calls_of("old", returns), [("futex".to_owned(), Some(1))]);
    let exits = vec![("error_code", Value::I64(0))];
    assert_eq!(calls_of("later", exits), [("futex".to_owned(), None), ("exit".to_owned(), None)]);
}

#[test]
fn scheduler_events_of_an_unknown_tracer_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let mut trace = TraceWriter::new("", "kernel", 0x77, 0x99);
    trace.environment = vec![("domain".into(), "kernel".into())];
    trace.span = (0, START + 300);
    let fields = vec![("prev_task", Value::I32(LEADER)), ("next_task", Value::I32(WORKER))];
    let events = vec![event(START + 10, 0, "rtos:context_switch", fields)];
    trace.channels.push(Channel { name: "kernel".into(), contexts: Vec::new(), events, discarded: Vec::new() });
    trace.write(folder.path());
    let arguments = [Argument::new(folder.path().to_owned())];
    let Opened::Traces(sources) = open(&arguments, &Ctx::new(1)).unwrap() else { panic!("no trace") };
    let traces: Vec<_> = sources.iter().map(|s| &s.trace).collect();
    let (_, notices) = record(&traces, &[], &Options::default(), &Ctx::new(1)).unwrap();
    assert_eq!(notices.count(Notice::UnknownScheduler), 1);
    assert!(notices.sentences().iter().any(|sentence| sentence.contains("rtos:context_switch")));
}
