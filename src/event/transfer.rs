//! Which system calls move bytes, and which way.

/// The direction of the bytes of a system call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transfer {
    /// To the caller.
    Read,
    /// From the caller.
    Write,
}

/// The direction in which a system call (name without prefix) moves bytes; its return value is their number.
pub fn transfer(call: &str) -> Option<Transfer> {
    match call {
        "read" | "pread64" | "pread" | "readv" | "preadv" | "preadv2" | "recv" | "recvfrom" | "recvmsg" => {
            Some(Transfer::Read)
        }
        "write" | "pwrite64" | "pwrite" | "writev" | "pwritev" | "pwritev2" | "send" | "sendto" | "sendmsg" => {
            Some(Transfer::Write)
        }
        _ => None,
    }
}
