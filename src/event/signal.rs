//! Names of the signals of Linux.
//!
//! The numbers are those of `include/uapi/asm-generic/signal.h`, which all architectures but a few old ones share.

/// From 1 on.
const NAMES: [&str; 31] = [
    "SIGHUP",
    "SIGINT",
    "SIGQUIT",
    "SIGILL",
    "SIGTRAP",
    "SIGABRT",
    "SIGBUS",
    "SIGFPE",
    "SIGKILL",
    "SIGUSR1",
    "SIGSEGV",
    "SIGUSR2",
    "SIGPIPE",
    "SIGALRM",
    "SIGTERM",
    "SIGSTKFLT",
    "SIGCHLD",
    "SIGCONT",
    "SIGSTOP",
    "SIGTSTP",
    "SIGTTIN",
    "SIGTTOU",
    "SIGURG",
    "SIGXCPU",
    "SIGXFSZ",
    "SIGVTALRM",
    "SIGPROF",
    "SIGWINCH",
    "SIGIO",
    "SIGPWR",
    "SIGSYS",
];

/// The name of a signal: `SIGUSR1`; `SIG34` where the number has no name, as those of real time have none.
pub fn name(number: u8) -> String {
    let known = usize::from(number).checked_sub(1).and_then(|at| NAMES.get(at));
    known.map_or_else(|| format!("SIG{number}"), |name| (*name).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_is_that_of_the_header_or_the_number() {
        assert_eq!([1, 9, 17, 19, 23, 31].map(name), ["SIGHUP", "SIGKILL", "SIGCHLD", "SIGSTOP", "SIGURG", "SIGSYS"]);
        assert_eq!([0, 32, 64, 255].map(name), ["SIG0", "SIG32", "SIG64", "SIG255"]);
    }
}
