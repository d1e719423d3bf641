//! Programs: the operations of a thread, as a list for each turn, and the steps into which the kernel takes them apart.

use super::ctf_writer::Value;
use super::kernel_code::Fault;
use super::random::Random;
use super::{Channel, Disk, Mutex, Process};
use std::borrow::Cow;
use std::rc::Rc;
use whyslow::parts::base::time::Ns;

/// A program: its operations for each turn (counted from 0), `None` when it ends.
pub type Program = Box<dyn FnMut(&mut Random, u64) -> Option<Vec<Op>>>;

/// A program without end.
pub fn turns(mut turn: impl FnMut(&mut Random, u64) -> Vec<Op> + 'static) -> Program {
    Box::new(move |dice, at| Some(turn(dice, at)))
}

/// A program that does this once and ends.
pub fn once(ops: impl FnOnce(&mut Random) -> Vec<Op> + 'static) -> Program {
    let mut ops = Some(ops);
    Box::new(move |dice, _| ops.take().map(|ops| ops(dice)))
}

/// The operations that a message leads to.
pub type Choice = Rc<dyn Fn(u64, &mut Random) -> Vec<Op>>;

/// An operation of a thread.
#[derive(Clone)]
pub enum Op {
    /// Do this in a function.
    Call(&'static str, Vec<Op>),
    /// Use the CPU.
    Run(Ns),
    /// Take a lock, in `futex` where another thread has it.
    Lock(Mutex),
    /// Hand it to the first that waits.
    Unlock(Mutex),
    /// `pread64` of this many bytes that are not in memory.
    ReadDisk(Disk, u32),
    /// `fsync` after this many bytes.
    SyncDisk(Disk, u32),
    /// `clock_nanosleep`.
    Sleep(Ns),
    /// `clock_nanosleep` to the next multiple of this time.
    Rest(Ns),
    /// Page faults in which the kernel does this, for so long.
    Fault(Fault, Ns),
    /// Freeze the threads of a process through their control group: `write`.
    Freeze(Process),
    /// Let them go on: `write`.
    Thaw(Process),
    /// The same by signals: `kill`.
    Stop(Process),
    Continue(Process),
    /// `sendto` over a connection; the message arrives in the soft interrupt that sending raises.
    Send(Channel, u64),
    /// `recvfrom`.
    Receive(Channel),
    /// `write` into a pipe.
    Write(Channel, u64),
    /// `read` from a pipe.
    Read(Channel),
    /// `sendmsg` over a socket within the host.
    SendLocal(Channel, u64),
    /// `recvmsg` from one.
    ReceiveLocal(Channel),
    /// Post a semaphore: `futex` where a thread waits.
    Post(Channel),
    /// Wait for a semaphore: `futex`.
    Await(Channel),
    /// `tgkill` of the thread that takes the signal from this channel.
    Kill(Channel),
    /// `rt_sigtimedwait`.
    TakeSignal(Channel),
    /// `clone` of a process that runs a program and, when it ends, leaves a token here.
    Fork(&'static str, Rc<dyn Fn() -> Program>, Channel),
    /// `clone` of a thread of the same process that runs a program and leaves a token here when it ends.
    Spawn(&'static str, Rc<dyn Fn() -> Program>, Channel),
    /// `wait4`.
    WaitChild(Channel),
    /// Hand work that takes so long to a kernel worker and wait until it is done, in `fsync`.
    FlushWork(Ns),
    /// A user-space event.
    Mark(&'static str, Vec<(&'static str, i64)>),
    /// Decide by the message received last.
    Choose(Choice),
    /// The kernel worker's own.
    NextWork(Channel),
    /// The same.
    Work,
}

impl Op {
    /// Decide by the message received last.
    pub fn choose(by: impl Fn(u64, &mut Random) -> Vec<Op> + 'static) -> Op {
        Op::Choose(Rc::new(by))
    }

    /// A child that runs `ops`.
    pub fn fork(name: &'static str, ops: impl Fn() -> Vec<Op> + 'static, ended: Channel) -> Op {
        Op::Fork(name, once_each(ops), ended)
    }

    /// A thread that runs `ops`.
    pub fn spawn(name: &'static str, ops: impl Fn() -> Vec<Op> + 'static, ended: Channel) -> Op {
        Op::Spawn(name, once_each(ops), ended)
    }
}

/// Programs that each run `ops` once.
fn once_each(ops: impl Fn() -> Vec<Op> + 'static) -> Rc<dyn Fn() -> Program> {
    let ops = Rc::new(ops);
    Rc::new(move || {
        let ops = Rc::clone(&ops);
        once(move |_| ops())
    })
}

/// Why a thread waits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Reason {
    Mutex(Mutex),
    Disk(Disk, u64),
    Timer,
    /// For a token of a channel; how it comes there.
    Token(Carrier),
}

/// How a token travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Carrier {
    Network,
    Socket,
    Pipe,
    Condition,
    Signal,
    Child,
    Work,
    /// The freezer of control groups lets the thread go on.
    Freezer,
    /// A signal lets it go on.
    Stop,
}

/// Steps of the kernel for a thread, one after the other.
pub enum Step {
    Op(Op),
    Spend(Ns),
    Entry(&'static str, Vec<(&'static str, Value)>),
    Exit(&'static str, i64),
    Emit(&'static str, Vec<(&'static str, Value)>),
    Push(&'static str),
    Pop,
    Acquire(Mutex),
    Release(Mutex),
    Submit(Disk, u32, bool),
    Nap(Ns),
    Transmit(Channel, u64),
    Give(Channel, u64),
    Take(Channel, Carrier),
    /// The flag: a thread of the same process.
    Clone(&'static str, Rc<dyn Fn() -> Program>, Channel, bool),
    Halt(Process, Carrier),
    EndHalt(Process),
    /// A page fault begins or ends.
    Fault(Option<Fault>),
    BeginWork,
    EndWork,
    Mark(Cow<'static, str>, Vec<(&'static str, Value)>),
    End,
}
