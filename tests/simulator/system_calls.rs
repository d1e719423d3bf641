//! Operations that are one system call each: its name and arguments, and the steps between its entry and its exit.

use super::ctf_writer::Value;
use super::program::{Carrier, Op, Step};

type Fields = Vec<(&'static str, Value)>;

/// A system call with the steps inside of it.
pub(super) fn call(name: &'static str, fields: Fields, inside: Vec<Step>, ret: i64) -> Vec<Step> {
    let mut steps = vec![Step::Entry(name, fields), Step::Spend(700)];
    steps.extend(inside);
    steps.extend([Step::Spend(600), Step::Exit(name, ret), Step::Spend(300)]);
    steps
}

/// The first argument of calls on a channel.
pub(super) fn descriptor(number: usize) -> Fields {
    vec![("fd", Value::U32(5 + number as u32))]
}

fn futex(op: i32) -> Fields {
    vec![("uaddr", Value::U64(0x7f00_0000)), ("op", Value::I32(op)), ("val", Value::U32(2))]
}

fn signal(number: i32) -> Fields {
    vec![("pid", Value::I32(1)), ("sig", Value::I32(number))]
}

/// The steps of an operation that is one system call.
pub(super) fn system_call(op: &Op) -> Vec<Step> {
    let fd = descriptor;
    match op {
        Op::Lock(mutex) => call("futex", futex(128), vec![Step::Acquire(*mutex)], 0),
        Op::Unlock(mutex) => call("futex", futex(129), vec![Step::Release(*mutex)], 1),
        Op::ReadDisk(disk, bytes) => {
            let fields = vec![("fd", Value::I32(9)), ("count", Value::U64(u64::from(*bytes)))];
            call("pread64", fields, vec![Step::Submit(*disk, *bytes, false)], i64::from(*bytes))
        }
        Op::SyncDisk(disk, bytes) => call("fsync", fd(4), vec![Step::Submit(*disk, *bytes, true)], 0),
        Op::Sleep(ns) => {
            let fields = vec![("which_clock", Value::I32(1)), ("flags", Value::I32(0))];
            call("clock_nanosleep", fields, vec![Step::Nap(*ns)], 0)
        }
        Op::Send(channel, message) => {
            call("sendto", fd(channel.0), vec![Step::Spend(2_500), Step::Transmit(*channel, *message)], 100)
        }
        Op::Receive(channel) => call("recvfrom", fd(channel.0), vec![Step::Take(*channel, Carrier::Network)], 100),
        Op::Write(channel, token) => call("write", fd(channel.0), vec![Step::Give(*channel, *token)], 8),
        Op::Read(channel) => call("read", fd(channel.0), vec![Step::Take(*channel, Carrier::Pipe)], 8),
        Op::SendLocal(channel, token) => call("sendmsg", fd(channel.0), vec![Step::Give(*channel, *token)], 8),
        Op::ReceiveLocal(channel) => call("recvmsg", fd(channel.0), vec![Step::Take(*channel, Carrier::Socket)], 8),
        Op::Post(channel) => call("futex", futex(129), vec![Step::Give(*channel, 1)], 1),
        Op::Await(channel) => call("futex", futex(128), vec![Step::Take(*channel, Carrier::Condition)], 0),
        Op::Kill(channel) => {
            let fields = vec![("tgid", Value::I32(1)), ("pid", Value::I32(1)), ("sig", Value::I32(10))];
            call("tgkill", fields, vec![Step::Give(*channel, 10)], 0)
        }
        Op::TakeSignal(channel) => call("rt_sigtimedwait", Vec::new(), vec![Step::Take(*channel, Carrier::Signal)], 10),
        Op::WaitChild(channel) => {
            call("wait4", vec![("upid", Value::I32(-1))], vec![Step::Take(*channel, Carrier::Child)], 1)
        }
        Op::Freeze(process) => call("write", fd(30), vec![Step::Halt(*process, Carrier::Freezer)], 1),
        Op::Thaw(process) => call("write", fd(30), vec![Step::EndHalt(*process)], 1),
        Op::Stop(process) => call("kill", signal(19), vec![Step::Halt(*process, Carrier::Stop)], 0),
        Op::Continue(process) => call("kill", signal(18), vec![Step::EndHalt(*process)], 0),
        Op::Call(..)
        | Op::Run(_)
        | Op::Rest(_)
        | Op::Fault(..)
        | Op::Fork(..)
        | Op::Spawn(..)
        | Op::FlushWork(_)
        | Op::Mark(..)
        | Op::Choose(_)
        | Op::NextWork(_)
        | Op::Work => unreachable!("no single call"),
    }
}
