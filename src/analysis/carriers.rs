//! What carried a delay from the thread that ended a wait to the one that waited: a lock, a pipe, a signal, an exit ...
//!
//! In: a wait on a critical path and the thread that it led to; both are the path's own findings. Out: a [`Carrier`],
//! told by the system calls in which the one waited and the other woke it. Where no calls were recorded, or another act
//! of the kernel woke the thread, it is a wake-up. Cost: three binary searches. ALGORITHMS.md 9.7.

use super::path::Entered;
use crate::base::time::Ns;
use crate::model::carrier::Carrier;
use crate::state::timeline::{Thread, ThreadId, Timeline};

/// What carried the delay to the thread `waiter`, which waited at `start` and whose critical path went on as `entered`.
pub fn of(timeline: &Timeline, waiter: ThreadId, start: Ns, entered: Entered) -> Carrier {
    match entered {
        Entered::Start => return Carrier::Wakeup,
        Entered::Network => return Carrier::Packet,
        Entered::Fork => return Carrier::Fork,
        Entered::Disk => return Carrier::Disk,
        Entered::Blocked => {}
    }
    let Some(waiter) = timeline.thread(waiter) else { return Carrier::Wakeup };
    let Some(segment) = waiter.segments.get(waiter.first_segment_after(start)) else { return Carrier::Wakeup };
    let waits_in = call_at(timeline, waiter, segment.span.start);
    let Some((waker, at)) = segment.waker.and_then(|(id, at)| Some((timeline.thread(id)?, at))) else {
        return Carrier::Wakeup;
    };
    let worker = waker.name_at(at).is_some_and(|name| timeline.names.get(name).starts_with("kworker/"));
    told_by(waits_in, call_at(timeline, waker, at), worker)
}

/// The system call that a thread is in at `t`.
fn call_at<'a>(timeline: &'a Timeline, thread: &Thread, t: Ns) -> &'a str {
    let begun = thread.calls.partition_point(|call| call.span.start <= t);
    let call = begun.checked_sub(1).and_then(|at| thread.calls.get(at));
    call.filter(|call| t <= call.span.end).map_or("", |call| timeline.names.get(call.name))
}

/// The carrier, from the call in which one thread waited and the call in which another woke it.
fn told_by(waits_in: &str, wakes_in: &str, worker: bool) -> Carrier {
    let is_futex = |call: &str| call.starts_with("futex");
    match (waits_in, wakes_in) {
        (wait, _) if is_futex(wait) => Carrier::Lock,
        (_, "kill" | "tkill" | "tgkill" | "rt_sigqueueinfo" | "rt_tgsigqueueinfo" | "pidfd_send_signal") => {
            Carrier::Signal
        }
        ("wait4" | "waitid" | "waitpid", _) | (_, "exit" | "exit_group") => Carrier::Exit,
        ("pause" | "rt_sigsuspend" | "rt_sigtimedwait" | "sigsuspend", _) => Carrier::Signal,
        ("fork" | "vfork" | "clone" | "clone3", _) => Carrier::Fork,
        _ if worker => Carrier::Workqueue,
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
    fn calls_tell_the_carrier() {
        for (waits_in, wakes_in, worker, carrier) in [
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
            assert_eq!(told_by(waits_in, wakes_in, worker), carrier, "{waits_in} {wakes_in}");
        }
    }
}
