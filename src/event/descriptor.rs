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

    pub fn number(self) -> u32 {
        self.0.get() - 1
    }
}

impl std::fmt::Debug for Descriptor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Descriptor({})", self.number())
    }
}

/// The open file that a call names, and whether the call names the address of a peer besides, as only those of
/// datagrams do.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct NamedDescriptor(NonZero<u32>);

impl NamedDescriptor {
    const ADDRESSED: u32 = 1 << 31;

    /// Of a call's arguments: `address` is where that of the peer is in memory, 0 or `None` where it names none.
    pub fn new(descriptor: Descriptor, address: Option<i64>) -> NamedDescriptor {
        let flag = if address.is_some_and(|address| address != 0) { Self::ADDRESSED } else { 0 };
        // The largest number has no room for the flag; the kernel gives none of 2^30 and more.
        let packed = (descriptor.number() | flag).checked_add(1).and_then(NonZero::new);
        NamedDescriptor(packed.unwrap_or(descriptor.0))
    }

    /// The open file.
    pub fn descriptor(self) -> Descriptor {
        Descriptor(NonZero::<u32>::MIN.saturating_add((self.0.get() - 1) & !Self::ADDRESSED))
    }

    /// True if the call names the address of a peer.
    pub fn is_addressed(self) -> bool {
        (self.0.get() - 1) & Self::ADDRESSED != 0
    }

    /// As one small number: twice the descriptor, and one more where the call is addressed.
    pub fn packed(self) -> u64 {
        let raw = self.0.get() - 1;
        u64::from(raw & !Self::ADDRESSED) << 1 | u64::from(raw & Self::ADDRESSED != 0)
    }

    /// What [`Self::packed`] has made.
    pub fn of_packed(packed: u64) -> Option<NamedDescriptor> {
        let descriptor = Descriptor::new(i64::try_from(packed >> 1).ok()?)?;
        Some(NamedDescriptor::new(descriptor, Some((packed & 1) as i64)))
    }
}

impl std::fmt::Debug for NamedDescriptor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "NamedDescriptor({:?}, {})", self.descriptor(), self.is_addressed())
    }
}

/// What a call does with the descriptor that it names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DescriptorUse {
    /// Reads from it: from a file, a pipe or a socket.
    Read,
    Write,
    /// Reads from it as only sockets allow.
    Receive,
    /// Writes to it as only sockets allow.
    Send,
    /// Takes a connection from it; the result is that of a new socket.
    Accept,
    Connect,
    /// Asks or sets something of it that only sockets have.
    Socket,
    /// Does with it what sockets do not allow.
    File,
    /// Makes another descriptor of the same open file; the result is that one.
    Duplicate,
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
/// The command of `fcntl` that makes another descriptor, which an exec closes.
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

/// Names of the fields of a call's entry from which [`named_descriptor`] follows: the descriptor's, the command's where
/// the call has several purposes, the address's; names of one field over time are separated by `|`.
pub fn descriptor_fields(call: &str) -> &'static [&'static str] {
    match (descriptor_use(call), call) {
        (None, _) => &[],
        (_, "fcntl" | "fcntl64") => &["fd", "cmd"],
        (Some(DescriptorUse::Duplicate), _) => &["oldfd|fildes|filedes"],
        (_, "sendfile" | "sendfile64") => &["out_fd"],
        (_, "recvfrom" | "sendto") => &["fd|sockfd", "", "addr"],
        _ => &["fd|sockfd"],
    }
}

/// The place of the address among the arguments of `recvfrom` and `sendto`.
pub const ADDRESS_ARGUMENT: usize = 4;

/// The descriptor that a call names, by its first argument and, for those that have them, its command and the address
/// of a peer.
pub fn named_descriptor(first: i64, command: Option<i64>, address: Option<i64>) -> Option<NamedDescriptor> {
    let duplicates = command.is_none_or(|command| matches!(command, F_DUPFD | F_DUPFD_CLOEXEC));
    Descriptor::new(first).filter(|_| duplicates).map(|descriptor| NamedDescriptor::new(descriptor, address))
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
        let named = |command| named_descriptor(5, command, None).map(NamedDescriptor::descriptor);
        assert_eq!(named(Some(3)), None);
        assert_eq!(named(Some(F_DUPFD_CLOEXEC)), Descriptor::new(5));
        assert_eq!(named(None), Descriptor::new(5));
    }

    #[test]
    fn named_descriptor_keeps_both_its_parts() {
        for number in [0, 5, 1 << 29, i64::from(i32::MAX)] {
            for address in [None, Some(0), Some(0x7ffd_1234_5678)] {
                let named = named_descriptor(number, None, address).unwrap();
                assert_eq!(Some(named.descriptor()), Descriptor::new(number));
                let has_room = number < i64::from(i32::MAX);
                assert_eq!(named.is_addressed(), has_room && address.is_some_and(|at| at != 0));
                assert_eq!(NamedDescriptor::of_packed(named.packed()), Some(named));
            }
        }
        assert_eq!(size_of::<Option<NamedDescriptor>>(), 4);
    }
}
