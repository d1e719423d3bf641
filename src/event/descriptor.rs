//! Descriptors in system calls: which calls name an open file of their process, where, and what they do with it.
//!
//! In: the name of a system call (without prefix). Out: the fields that hold the descriptor, and its use. A descriptor
//! is kept only of calls from which the conversations over sockets follow: those that move bytes, that make, copy and
//! close descriptors, and those that show whether one is a socket or a file (ALGORITHMS.md 6.1).

use std::num::NonZero;

/// An open file of a process by its number, as large as that number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Descriptor(NonZero<u32>);

impl Descriptor {
    /// The descriptor of a number; `None` for one below 0, which names no open file.
    pub fn new(number: i64) -> Option<Descriptor> {
        // Arguments are recorded in words of which the kernel reads the lower half.
        let number = u32::try_from(number as i32).ok()?;
        number.checked_add(1).and_then(NonZero::new).map(Descriptor)
    }

    /// Its number.
    pub fn number(self) -> u32 {
        self.0.get() - 1
    }
}

impl std::fmt::Debug for Descriptor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Descriptor({})", self.number())
    }
}

/// What a call does with the descriptor that it names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DescriptorUse {
    /// Reads from it: from a file, a pipe or a socket.
    Read,
    /// Writes to it.
    Write,
    /// Reads from it as only sockets allow.
    Receive,
    /// Writes to it as only sockets allow.
    Send,
    /// Takes a connection from it; the result is that of a new socket.
    Accept,
    /// Connects it.
    Connect,
    /// Asks or sets something of it that only sockets have.
    Socket,
    /// Does with it what sockets do not allow.
    File,
    /// Makes another descriptor of the same open file; the result is that one.
    Duplicate,
    /// Closes it.
    Close,
    /// Closes it and those above it.
    CloseFrom,
}

/// What a call makes whose result is a new descriptor, without naming another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DescriptorOrigin {
    /// A socket that has no peer yet.
    Socket,
    /// Anything else.
    File,
}

/// The command of `fcntl` that makes another descriptor.
const F_DUPFD: i64 = 0;
/// The same, which closes it at an exec.
const F_DUPFD_CLOEXEC: i64 = 1030;

/// What a call does with the descriptor that is its first argument; `None` where that is not kept.
pub fn descriptor_use(call: &str) -> Option<DescriptorUse> {
    Some(match call {
        "read" | "readv" => DescriptorUse::Read,
        "write" | "writev" | "sendfile" | "sendfile64" => DescriptorUse::Write,
        "recv" | "recvfrom" | "recvmsg" | "recvmmsg" | "recvmmsg_time64" => DescriptorUse::Receive,
        "send" | "sendto" | "sendmsg" | "sendmmsg" => DescriptorUse::Send,
        "accept" | "accept4" => DescriptorUse::Accept,
        "connect" => DescriptorUse::Connect,
        "shutdown" | "bind" | "listen" | "getsockname" | "getpeername" | "setsockopt" | "getsockopt" => {
            DescriptorUse::Socket
        }
        "lseek" | "_llseek" | "pread64" | "pwrite64" | "preadv" | "pwritev" | "fsync" | "fdatasync" | "ftruncate"
        | "ftruncate64" | "fallocate" | "getdents" | "getdents64" | "flock" | "timerfd_settime" => DescriptorUse::File,
        "dup" | "dup2" | "dup3" | "fcntl" | "fcntl64" => DescriptorUse::Duplicate,
        "close" => DescriptorUse::Close,
        "close_range" => DescriptorUse::CloseFrom,
        _ => return None,
    })
}

/// What a call makes whose result is a new descriptor.
pub fn descriptor_origin(call: &str) -> Option<DescriptorOrigin> {
    Some(match call {
        "socket" => DescriptorOrigin::Socket,
        "open" | "openat" | "openat2" | "creat" | "eventfd" | "eventfd2" | "epoll_create" | "epoll_create1"
        | "timerfd_create" | "signalfd" | "signalfd4" | "inotify_init" | "inotify_init1" | "memfd_create"
        | "pidfd_open" | "perf_event_open" | "userfaultfd" | "io_uring_setup" => DescriptorOrigin::File,
        _ => return None,
    })
}

/// Names of the fields of a call's entry from which [`named_descriptor`] follows; names of one field over time are
/// separated by `|`.
pub fn descriptor_fields(call: &str) -> &'static [&'static str] {
    match (descriptor_use(call), call) {
        (None, _) => &[],
        (_, "fcntl" | "fcntl64") => &["fd", "cmd"],
        (Some(DescriptorUse::Duplicate), _) => &["oldfd|fildes|filedes"],
        (_, "sendfile" | "sendfile64") => &["out_fd"],
        _ => &["fd|sockfd"],
    }
}

/// The descriptor that a call names, by its first argument and, for those that have one, its command.
pub fn named_descriptor(first: i64, command: Option<i64>) -> Option<Descriptor> {
    let duplicates = command.is_none_or(|command| matches!(command, F_DUPFD | F_DUPFD_CLOEXEC));
    Descriptor::new(first).filter(|_| duplicates)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptor_has_the_number_of_an_open_file_alone() {
        for number in [0, 1, 7, i64::from(i32::MAX)] {
            assert_eq!(Descriptor::new(number).map(|it| i64::from(it.number())), Some(number));
        }
        // `AT_FDCWD` as a word of 64 bits, and as one of 32.
        for number in [-1, -100, 0xffff_ff9c] {
            assert_eq!(Descriptor::new(number), None, "{number}");
        }
        assert_eq!(size_of::<Option<Descriptor>>(), 4);
    }

    #[test]
    fn named_descriptor_of_fcntl_depends_on_its_command() {
        assert_eq!(descriptor_fields("fcntl").len(), 2);
        assert_eq!(named_descriptor(5, Some(3)), None);
        assert_eq!(named_descriptor(5, Some(F_DUPFD_CLOEXEC)), Descriptor::new(5));
        assert_eq!(named_descriptor(5, None), Descriptor::new(5));
    }
}
