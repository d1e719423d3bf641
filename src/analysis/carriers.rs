//! The carrier of a delay from the thread that ended a wait to the one that waited: a lock, a pipe, a signal, an exit.
//!
//! In: a wait on a critical path and the thread that the path goes to. Out: a [`Carrier`], from the system calls in
//! which the one thread waited and the other woke it; a plain wake-up where no calls were recorded or something else in
//! the kernel woke the thread. Cost: three binary searches. ALGORITHMS.md 9.7.

use super::path::Entered;
use crate::base::time::Timestamp;
use crate::model::carrier::Carrier;
use crate::timeline::questions::Asker;
use crate::timeline::reader::RowReader;
use crate::timeline::{ThreadId, Timeline};

/// The carrier of the delay to the thread `waiter`, which waited at `start` and from which the critical path went on as
/// `entered`.
pub fn of(timeline: &Timeline, waiter: ThreadId, start: Timestamp, entered: Entered) -> Carrier {
    match entered {
        Entered::Start => return Carrier::Wakeup,
        Entered::Network => return Carrier::Packet,
        Entered::Fork => return Carrier::Fork,
        Entered::Disk => return Carrier::Disk,
        Entered::Stopped | Entered::Traced => return Carrier::Signal,
        Entered::Blocked => {}
    }
    let reader = timeline.reader(Asker::Ecct);
    let Some(segment) = reader.segments(waiter).first_after(start) else { return Carrier::Wakeup };
    let waits_in = call_at(timeline, &reader, waiter, segment.span.start);
    let Some((waker, thread)) = segment.waker.and_then(|waker| Some((waker, timeline.thread(waker.thread)?))) else {
        return Carrier::Wakeup;
    };
    let is_worker = thread.name_at(waker.at).is_some_and(|name| timeline.names().get(name).starts_with("kworker/"));
    carrier(waits_in, call_at(timeline, &reader, waker.thread, waker.at), is_worker)
}

/// The system call that a thread is in at `t`.
fn call_at<'a>(timeline: &'a Timeline, reader: &RowReader<'_>, thread: ThreadId, t: Timestamp) -> &'a str {
    let call = reader.calls(thread).last_begun(t);
    call.filter(|call| t <= call.span.end).map_or("", |call| timeline.names().get(call.name))
}

/// The carrier by the call in which one thread waited and the call in which another woke it; `is_worker`: that one is a
/// kernel worker.
fn carrier(waits_in: &str, wakes_in: &str, is_worker: bool) -> Carrier {
    let is_futex = |call: &str| call.starts_with("futex");
    match (waits_in, wakes_in) {
        (wait, _) if is_futex(wait) => Carrier::Lock,
        (_, "kill" | "tkill" | "tgkill" | "rt_sigqueueinfo" | "rt_tgsigqueueinfo" | "pidfd_send_signal") => {
            Carrier::Signal
        }
        ("wait4" | "waitid" | "waitpid", _) | (_, "exit" | "exit_group") => Carrier::Exit,
        ("pause" | "rt_sigsuspend" | "rt_sigtimedwait" | "sigsuspend", _) => Carrier::Signal,
        ("fork" | "vfork" | "clone" | "clone3", _) => Carrier::Fork,
        _ if is_worker => Carrier::Workqueue,
        (_, "send" | "sendto" | "sendmsg" | "sendmmsg" | "connect" | "shutdown")
        | ("recv" | "recvfrom" | "recvmsg" | "recvmmsg" | "accept" | "accept4" | "connect", _) => Carrier::Socket,
        (_, "write" | "writev" | "splice" | "tee" | "vmsplice" | "close")
        | ("write" | "writev" | "splice", "read" | "readv") => Carrier::Pipe,
        ("", wake) if is_futex(wake) => Carrier::Lock,
        _ => Carrier::Wakeup,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn carrier_follows_from_the_calls_of_waiter_and_waker() {
        for (waits_in, wakes_in, is_worker, expected) in [
            ("futex", "futex", false, Carrier::Lock),
            ("futex", "", false, Carrier::Lock),
            ("", "futex", false, Carrier::Lock),
            ("read", "write", false, Carrier::Pipe),
            ("write", "read", false, Carrier::Pipe),
            ("recvmsg", "sendmsg", false, Carrier::Socket),
            ("poll", "sendto", false, Carrier::Socket),
            ("epoll_wait", "write", false, Carrier::Pipe),
            ("rt_sigtimedwait", "tgkill", false, Carrier::Signal),
            ("wait4", "exit_group", false, Carrier::Exit),
            ("fsync", "", true, Carrier::Workqueue),
            ("vfork", "execve", false, Carrier::Fork),
            ("openat", "", false, Carrier::Wakeup),
        ] {
            assert_eq!(carrier(waits_in, wakes_in, is_worker), expected, "{waits_in} {wakes_in}");
        }
    }
}
