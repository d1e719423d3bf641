//! The schedule as it was: the state of every thread, the owner of every CPU, lock and disk, and the message that ended
//! each wait.
//!
//! [`Schedule::blame`] follows a thread's wait at an instant to the thread that delayed it then: the owner of the lock,
//! the thread that was running, the thread whose request the disk served, the thread that sent the message later; and
//! on through that thread's own waits. [`Schedule::executions`] and [`Schedule::spent`] sum that up over executions, as
//! a comparison should find it.

use super::ctf_writer::Task;
use super::program::{Carrier, Reason};
use std::collections::BTreeMap;
use std::rc::Rc;
use whyslow::parts::base::time::Ns;

/// The state of a thread from some time on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum What {
    /// It was not created yet.
    Unborn,
    Run,
    /// Its CPU handles an interrupt.
    Interrupted(&'static str),
    /// It is runnable, in the queue of this CPU.
    Queue(usize),
    /// It is runnable, and the quota of its group is used up.
    Throttled,
    /// Its CPU is paused.
    Stolen,
    /// It waits: position in [`Life::waits`].
    Wait(usize),
    Dead,
}

/// A wait.
#[derive(Clone, Debug)]
pub struct Wait {
    pub from: Ns,
    pub reason: Reason,
    /// When and by which thread the token was left that ended it.
    pub given: Option<(Ns, usize)>,
}

/// A thread's life.
#[derive(Debug)]
pub struct Life {
    pub task: Rc<Task>,
    pub born: Ns,
    /// In order of time.
    pub what: Vec<(Ns, What)>,
    pub waits: Vec<Wait>,
    /// Its innermost function.
    pub functions: Vec<(Ns, Option<&'static str>)>,
}

/// How one thread delays another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum How {
    /// It owns the lock.
    Lock,
    /// It runs on the CPU.
    Cpu,
    /// The disk serves its request.
    Disk,
    /// It has not left the token yet.
    Token(Carrier),
}

/// The state of the last thread of a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum End {
    Run,
    Interrupted(&'static str),
    Timer,
    /// Its own request is served.
    Disk,
    /// Its CPU is idle and about to run it.
    Wakeup,
    /// The quota of its group is used up.
    Throttled,
    /// Its CPU is paused.
    Stolen,
    /// It waits for a token that no thread has left.
    Idle,
}

/// The thread that delays another at an instant: `chain` is empty where it is the thread itself.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Blame {
    pub chain: Vec<(How, usize)>,
    pub end: End,
    /// The last thread's innermost function.
    pub function: Option<&'static str>,
}

impl Blame {
    /// The last thread, for a blame of `thread`.
    pub fn last(&self, thread: usize) -> usize {
        self.chain.last().map_or(thread, |hop| hop.1)
    }

    /// How the thread itself spends the time, in the words of `explain --json`.
    pub fn kind(&self) -> &'static str {
        match (self.chain.first(), self.end) {
            (Some((How::Cpu, _)), _) => "preempted",
            (Some((How::Disk, _)), _) => "blocked.disk",
            (Some((How::Token(Carrier::Network), _)), _) => "blocked.network",
            (Some((How::Token(Carrier::Stop), _)), _) => "stopped",
            (Some(_), _) => "blocked.thread",
            (None, End::Run) => "cpu",
            (None, End::Interrupted(_)) => "interrupted",
            (None, End::Timer) => "blocked.timer",
            (None, End::Disk) => "blocked.disk",
            (None, End::Wakeup) => "preempted",
            (None, End::Throttled) => "throttled",
            (None, End::Stolen) => "stolen",
            (None, End::Idle) => "blocked.unknown",
        }
    }
}

/// An execution: from one mark to another on one thread.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Execution {
    pub thread: usize,
    pub from: Ns,
    pub to: Ns,
}

/// The schedule.
#[derive(Debug)]
pub struct Schedule {
    pub threads: Vec<Life>,
    /// The thread that runs on each CPU.
    pub cpus: Vec<Vec<(Ns, Option<usize>)>>,
    /// Whether each CPU is paused.
    pub stalls: Vec<Vec<(Ns, bool)>>,
    /// The owner of each lock.
    pub mutexes: Vec<Vec<(Ns, Option<usize>)>>,
    /// The thread whose request each disk serves.
    pub disks: Vec<Vec<(Ns, Option<usize>)>>,
    /// User-space marks: thread, time, name.
    pub marks: Vec<(usize, Ns, String)>,
    pub span: (Ns, Ns),
}

/// The value that holds at a time.
fn at<T: Copy>(list: &[(Ns, T)], t: Ns) -> Option<T> {
    let after = list.partition_point(|(from, _)| *from <= t);
    after.checked_sub(1).map(|i| list[i].1)
}

impl Schedule {
    pub(super) fn new(cpus: usize) -> Schedule {
        let (threads, mutexes, disks, marks) = Default::default();
        let (running, stalls) = (vec![Vec::new(); cpus], vec![Vec::new(); cpus]);
        Schedule { threads, cpus: running, stalls, mutexes, disks, marks, span: (0, 0) }
    }

    pub(super) fn create(&mut self, task: Rc<Task>, born: Ns) {
        self.threads.push(Life { task, born, what: Vec::new(), waits: Vec::new(), functions: Vec::new() });
    }

    pub(super) fn thread(&mut self, thread: usize, now: Ns, what: What) {
        self.threads[thread].what.push((now, what));
    }

    pub(super) fn wait(&mut self, thread: usize, now: Ns, reason: Reason) {
        let life = &mut self.threads[thread];
        life.what.push((now, What::Wait(life.waits.len())));
        life.waits.push(Wait { from: now, reason, given: None });
    }

    /// The token that a thread waits for is left by another.
    pub(super) fn given(&mut self, waiter: usize, by: usize, now: Ns) {
        if let Some(wait) = self.threads[waiter].waits.last_mut() {
            wait.given = Some((now, by));
        }
    }

    pub(super) fn cpu(&mut self, cpu: usize, now: Ns, thread: Option<usize>) {
        self.cpus[cpu].push((now, thread));
    }

    pub(super) fn function(&mut self, thread: usize, now: Ns, function: Option<&'static str>) {
        self.threads[thread].functions.push((now, function));
    }

    pub(super) fn mark(&mut self, thread: usize, now: Ns, name: &str) {
        self.marks.push((thread, now, name.to_owned()));
    }

    /// The state of a thread at a time.
    pub fn what(&self, thread: usize, t: Ns) -> What {
        at(&self.threads[thread].what, t).unwrap_or(What::Unborn)
    }

    /// The thread that delayed another at a time.
    pub fn blame(&self, thread: usize, t: Ns) -> Blame {
        let (mut chain, mut on) = (Vec::new(), thread);
        let end = loop {
            let (how, next) = match self.what(on, t) {
                What::Run => break End::Run,
                What::Interrupted(by) => break End::Interrupted(by),
                What::Throttled => break End::Throttled,
                What::Stolen => break End::Stolen,
                What::Queue(cpu) if at(&self.stalls[cpu], t) == Some(true) => break End::Stolen,
                What::Unborn | What::Dead => break End::Idle,
                What::Queue(cpu) => match at(&self.cpus[cpu], t).flatten() {
                    Some(other) if other != on => {
                        chain.push((How::Cpu, other));
                        on = other;
                        break End::Run;
                    }
                    _ => break End::Wakeup,
                },
                What::Wait(wait) => match self.held(on, &self.threads[on].waits[wait], t) {
                    Ok(next) => next,
                    Err(end) => break end,
                },
            };
            // A thread that waits for one before it in the chain: a circle, in which no thread is the cause of the
            // others.
            if next == thread || chain.iter().any(|(_, t)| *t == next) {
                break End::Idle;
            }
            chain.push((how, next));
            on = next;
            if how == How::Disk {
                break End::Disk;
            }
        };
        let function = at(&self.threads[on].functions, t).flatten();
        Blame { chain, end, function }
    }

    /// The thread that prolongs a wait at a time, or how the wait ends.
    fn held(&self, thread: usize, wait: &Wait, t: Ns) -> Result<(How, usize), End> {
        match wait.reason {
            Reason::Timer => Err(End::Timer),
            Reason::Mutex(mutex) => match at(&self.mutexes[mutex.0], t).flatten() {
                Some(owner) if owner != thread => Ok((How::Lock, owner)),
                _ => Err(End::Idle),
            },
            Reason::Disk(disk, _) => match at(&self.disks[disk.0], t).flatten() {
                Some(other) if other != thread => Ok((How::Disk, other)),
                _ => Err(End::Disk),
            },
            Reason::Token(carrier) => match wait.given {
                Some((when, by)) if t < when => Ok((How::Token(carrier), by)),
                _ => Err(End::Idle),
            },
        }
    }

    /// The executions between marks of these names.
    pub fn executions(&self, begin: &str, end: &str) -> Vec<Execution> {
        let mut open: BTreeMap<usize, Ns> = BTreeMap::new();
        let mut found = Vec::new();
        for (thread, time, name) in &self.marks {
            if name == begin {
                open.insert(*thread, *time);
            } else if name == end
                && let Some(from) = open.remove(thread)
            {
                found.push(Execution { thread: *thread, from, to: *time });
            }
        }
        found
    }

    /// The time of an execution by kind, name of the last thread and its function. Sampled at 400 instants, so each
    /// part is known to a quarter of a percent of the whole.
    pub fn spent(&self, execution: &Execution) -> BTreeMap<(&'static str, String, &'static str), f64> {
        const SAMPLES: Ns = 400;
        let length = execution.to - execution.from;
        let mut spent = BTreeMap::new();
        for i in 0..SAMPLES {
            let t = execution.from + (length * (2 * i + 1)) / (2 * SAMPLES);
            let blame = self.blame(execution.thread, t);
            let name = self.threads[blame.last(execution.thread)].task.comm.to_string();
            let key = (blame.kind(), name, blame.function.unwrap_or(""));
            *spent.entry(key).or_insert(0.0) += length as f64 / SAMPLES as f64;
        }
        spent
    }
}
