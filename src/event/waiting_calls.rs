//! System calls that wait by their nature, and how each says that a timer ended it.
//!
//! In: the name of a system call (without prefix), and what it returned. Cost: a few comparisons of names.

/// Calls in which a thread rests for a time of its own choice: a timer ended them when they return 0.
const SLEEPS: [&str; 3] = ["nanosleep", "clock_nanosleep", "clock_nanosleep_time64"];
/// Calls that wait until some of many descriptors are ready and return how many are: none when a timer ended them.
const POLLS: [&str; 10] = [
    "poll",
    "ppoll",
    "ppoll_time64",
    "select",
    "_newselect",
    "pselect6",
    "pselect6_time64",
    "epoll_wait",
    "epoll_pwait",
    "epoll_pwait2",
];
/// Calls that wait for completed operations and return their number: none when a timer ended them.
const COMPLETIONS: [&str; 2] = ["io_getevents", "io_pgetevents"];
/// Calls that return `ETIMEDOUT` or `ETIME` when a timer ended them.
const TIMED: [&str; 11] = [
    "futex",
    "futex_time64",
    "futex_wait",
    "futex_waitv",
    "io_uring_enter",
    "mq_timedsend",
    "mq_timedsend_time64",
    "mq_timedreceive",
    "mq_timedreceive_time64",
    "recvmmsg",
    "recvmmsg_time64",
];
/// Calls that return `EAGAIN` when a timer ended them.
const RETRIED: [&str; 5] =
    ["rt_sigtimedwait", "rt_sigtimedwait_time64", "sigtimedwait", "semtimedop", "semtimedop_time64"];
/// Calls that return `EAGAIN` when the time limit of their socket (`SO_RCVTIMEO`) ended them. Those of a socket that
/// does not block return the same, and have not waited.
const RECEIVES: [&str; 9] =
    ["read", "readv", "recv", "recvfrom", "recvmsg", "recvmmsg", "recvmmsg_time64", "accept", "accept4"];
/// Calls about files alone: no pipe, socket or terminal takes them.
const FILES: [&str; 15] = [
    "pread64",
    "preadv",
    "preadv2",
    "pwrite64",
    "pwritev",
    "pwritev2",
    "fsync",
    "fdatasync",
    "sync",
    "syncfs",
    "sync_file_range",
    "msync",
    "ftruncate",
    "fallocate",
    "getdents64",
];
const EAGAIN: i64 = -11;
const ETIME: i64 = -62;
const ETIMEDOUT: i64 = -110;
const EINPROGRESS: i64 = -115;

/// True for a call in which a thread rests for a time of its own choice.
pub fn is_sleep(call: &str) -> bool {
    SLEEPS.contains(&call)
}

/// True for a call that waits until some of many descriptors are ready.
pub fn is_poll(call: &str) -> bool {
    POLLS.contains(&call)
}

/// True for a call that watches the descriptors which its arguments list, not those of a set that was made before.
pub fn is_poll_of_listed(call: &str) -> bool {
    is_poll(call) && !call.starts_with("epoll")
}

/// True for a call that waits for a disk, or for a lock of the kernel on the way to it, if it waits.
pub fn is_of_file(call: &str) -> bool {
    FILES.contains(&call)
}

/// True where a timer ended a call with this result.
pub fn timed_out(call: &str, ret: i64) -> bool {
    match ret {
        0 => is_sleep(call) || is_poll(call) || COMPLETIONS.contains(&call),
        ETIMEDOUT | ETIME => TIMED.contains(&call),
        EAGAIN => RETRIED.contains(&call),
        _ => false,
    }
}

/// True where the time limit of its socket may have ended a call with this result: it did if the call waited for a tick
/// of the kernel's clock or longer.
pub fn may_have_timed_out(call: &str, ret: i64) -> bool {
    match ret {
        EAGAIN => RECEIVES.contains(&call),
        EINPROGRESS => call == "connect",
        _ => false,
    }
}
