//! Which system calls move bytes, and which way.

/// Where the bytes of a system call go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transfer {
    /// To the caller.
    Read,
    /// From the caller.
    Write,
}

/// What a system call (name without prefix) moves; what it returns is the number of bytes.
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
