//! A host whose threads run, wait and call as they are asked to, each on a CPU of its own, and the recording of it.

use crate::support::ctf_writer::{Channel, Context, Event, Task, TraceWriter, Value};
use crate::support::random::Random;
use std::path::Path;
use std::rc::Rc;
use whyslow::parts::base::time::Ns;

/// One request with its reply.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Exchange {
    /// The receipt of the request, or the send of the call.
    pub begin: Ns,
    /// When the request had arrived; the same for a call.
    pub arrival: Ns,
    pub end: Ns,
    pub descriptor: i64,
    /// In and out.
    pub bytes: [i64; 2],
}

/// How system calls are recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recorder {
    /// An event for each.
    Named,
    /// By number, with six arguments.
    Numbered,
}

/// On 64-bit x86, with the field of the descriptor.
const NUMBERS: [(&str, i64, &str); 20] = [
    ("read", 0, "fd"),
    ("write", 1, "fd"),
    ("close", 3, "fd"),
    ("writev", 20, "fd"),
    ("dup", 32, "fildes"),
    ("nanosleep", 35, ""),
    ("socket", 41, "family"),
    ("connect", 42, "fd"),
    ("sendto", 44, "fd"),
    ("recvfrom", 45, "fd"),
    ("sendmsg", 46, "fd"),
    ("recvmsg", 47, "fd"),
    ("shutdown", 48, "fd"),
    ("fcntl", 72, "fd"),
    ("futex", 202, ""),
    ("epoll_wait", 232, "epfd"),
    ("openat", 257, "dfd"),
    ("accept4", 288, "fd"),
    ("eventfd2", 290, "count"),
    ("clone", 56, ""),
];

/// A thread; it runs unless it waits.
#[derive(Clone)]
pub struct Thread {
    task: Rc<Task>,
    cpu: u32,
    pub now: Ns,
}

/// The host so far.
pub struct Host {
    pub dice: Random,
    recorder: Recorder,
    events: Vec<Event>,
    /// Ids and CPUs that were given.
    given: i32,
    /// Wakes the others from CPU 0.
    peer: Rc<Task>,
}

impl Host {
    pub fn new(seed: u64, recorder: Recorder) -> Host {
        let peer = Rc::new(Task { tid: 1_000, pid: 1_000, comm: "peer".into(), ..Task::default() });
        let mut host = Host { dice: Random::new(seed), recorder, events: Vec::new(), given: 0, peer: Rc::clone(&peer) };
        host.switch(0, 0, None, Some(&peer));
        host
    }

    /// A process with one thread, which runs.
    pub fn process(&mut self, name: &str) -> Thread {
        self.thread_of(None, name)
    }

    /// One more thread of the process of another.
    pub fn thread(&mut self, of: &Thread) -> Thread {
        self.thread_of(Some(of.task.pid), &of.task.comm)
    }

    fn thread_of(&mut self, pid: Option<i32>, name: &str) -> Thread {
        self.given += 1;
        let (tid, cpu) = (2_000 + self.given, self.given as u32);
        let task = Rc::new(Task { tid, pid: pid.unwrap_or(tid), comm: name.into(), ..Task::default() });
        let thread = Thread { task, cpu, now: 1_000 + i64::from(self.given) };
        self.switch(thread.now, cpu, None, Some(&thread.task));
        thread
    }

    /// A child process of the process of a thread.
    pub fn fork(&mut self, parent: &mut Thread) -> Thread {
        self.given += 1;
        let (tid, cpu) = (2_000 + self.given, self.given as u32);
        let by = Rc::clone(&parent.task);
        let task = Rc::new(Task { tid, pid: tid, comm: Rc::clone(&by.comm), ..Task::default() });
        let fields = vec![
            ("parent_comm", Value::Comm(Rc::clone(&by.comm))),
            ("parent_tid", Value::I32(by.tid)),
            ("parent_pid", Value::I32(by.pid)),
            ("child_comm", Value::Comm(Rc::clone(&by.comm))),
            ("child_tid", Value::I32(tid)),
            ("child_pid", Value::I32(tid)),
        ];
        parent.now += 500;
        self.event(parent.now, parent.cpu, &by, "sched_process_fork".to_owned(), fields);
        let child = Thread { task, cpu, now: parent.now + 2_000 };
        self.switch(child.now, cpu, None, Some(&child.task));
        child
    }

    fn event(&mut self, time: Ns, cpu: u32, on: &Rc<Task>, name: String, fields: Vec<(&'static str, Value)>) {
        self.events.push(Event { time, cpu, name: name.into(), fields, on: Rc::clone(on), stack: None });
    }

    fn switch(&mut self, time: Ns, cpu: u32, prev: Option<&Rc<Task>>, next: Option<&Rc<Task>>) {
        let idle = Rc::new(Task { comm: format!("swapper/{cpu}").into(), ..Task::default() });
        let (prev, next) = (prev.unwrap_or(&idle), next.unwrap_or(&idle));
        let fields = vec![
            ("prev_comm", Value::Comm(Rc::clone(&prev.comm))),
            ("prev_tid", Value::I32(prev.tid)),
            ("prev_state", Value::I64(i64::from(prev.tid != 0))),
            ("next_comm", Value::Comm(Rc::clone(&next.comm))),
            ("next_tid", Value::I32(next.tid)),
        ];
        self.event(time, cpu, &Rc::clone(prev), "sched_switch".to_owned(), fields);
    }

    /// A thread runs for a time of about `ns`.
    pub fn run(&mut self, thread: &mut Thread, ns: Ns) {
        thread.now += self.dice.between(ns / 2, ns * 3 / 2).max(1);
    }

    /// A thread waits until the peer wakes it at `until`, and gets its CPU later. Not before it waits.
    pub fn wait(&mut self, thread: &mut Thread, until: Ns) -> Ns {
        let peer = Rc::clone(&self.peer);
        self.wait_for(thread, until, &peer, 0)
    }

    /// The same; a thread on a CPU wakes it.
    fn wait_for(&mut self, thread: &mut Thread, until: Ns, waker: &Rc<Task>, on: u32) -> Ns {
        let from = thread.now + 100;
        let until = until.max(from + 100);
        let (task, cpu) = (Rc::clone(&thread.task), thread.cpu);
        self.switch(from, cpu, Some(&task), None);
        let fields = vec![
            ("comm", Value::Comm(Rc::clone(&task.comm))),
            ("tid", Value::I32(task.tid)),
            ("target_cpu", Value::I32(cpu as i32)),
        ];
        self.event(until, on, waker, "sched_waking".to_owned(), fields);
        thread.now = until + self.dice.between(50, 20_000);
        self.switch(thread.now, cpu, None, Some(&task));
        thread.now += 50;
        until
    }

    /// A thread of the process wakes another, which waits in a `futex`.
    pub fn hand_over(&mut self, from: &mut Thread, to: &mut Thread) {
        self.enter(to, "futex", -1, 0);
        self.enter(from, "futex", -1, 0);
        let (waker, at) = (Rc::clone(&from.task), from.now + 30);
        assert!(to.now + 200 < at, "a thread waits before it is woken");
        self.wait_for(to, at, &waker, from.cpu);
        from.now = at + 40;
        self.exit(from, "futex", 1);
        self.exit(to, "futex", 0);
    }

    pub fn enter(&mut self, thread: &mut Thread, call: &str, first: i64, second: i64) {
        thread.now += 20;
        let (_, number, field) = *NUMBERS.iter().find(|(name, ..)| *name == call).unwrap();
        let (name, fields) = match self.recorder {
            Recorder::Numbered => {
                let arguments: [u64; 6] = [first as u64, second as u64, 1, 2, 3, 4];
                let fields = vec![("id", Value::I64(number)), ("args", Value::Words(Rc::new(arguments)))];
                ("syscall_entry_unknown".to_owned(), fields)
            }
            Recorder::Named => {
                let own = (!field.is_empty()).then_some((field, Value::I32(first as i32)));
                let command = (call == "fcntl").then_some(("cmd", Value::U32(second as u32)));
                (format!("syscall_entry_{call}"), own.into_iter().chain(command).collect())
            }
        };
        let task = Rc::clone(&thread.task);
        self.event(thread.now, thread.cpu, &task, name, fields);
    }

    pub fn exit(&mut self, thread: &mut Thread, call: &str, ret: i64) {
        thread.now += 20;
        let (_, number, _) = *NUMBERS.iter().find(|(name, ..)| *name == call).unwrap();
        let (name, fields) = match self.recorder {
            Recorder::Numbered => ("syscall_exit_unknown".to_owned(), vec![("id", Value::I64(number))]),
            Recorder::Named => (format!("syscall_exit_{call}"), Vec::new()),
        };
        let task = Rc::clone(&thread.task);
        let fields = fields.into_iter().chain([("ret", Value::I64(ret))]).collect();
        self.event(thread.now, thread.cpu, &task, name, fields);
    }

    /// A call that does not wait: its entry and its exit.
    pub fn call(&mut self, thread: &mut Thread, call: &str, first: i64, ret: i64) -> (Ns, Ns) {
        self.enter(thread, call, first, 0);
        let entry = thread.now;
        self.exit(thread, call, ret);
        (entry, thread.now)
    }

    /// A call in which the thread waits until `until`: the moment of its wake-up.
    pub fn waiting_call(&mut self, thread: &mut Thread, call: &str, first: i64, until: Ns, ret: i64) -> Ns {
        self.enter(thread, call, first, 0);
        let woken = self.wait(thread, until);
        self.exit(thread, call, ret);
        woken
    }

    pub fn write(mut self, folder: &Path) {
        let mut writer = TraceWriter::new("alpha", "kernel", 0x77, 0x11);
        let end = self.events.iter().map(|event| event.time).max().unwrap_or(0) + 1_000;
        let peer = Rc::clone(&self.peer);
        self.switch(end, 0, Some(&peer), None);
        writer.span = (0, end);
        let contexts = vec![Context::Tid, Context::Pid, Context::Procname];
        writer.channels.push(Channel { name: "channel".into(), contexts, events: self.events, discarded: Vec::new() });
        writer.write(folder);
    }
}
