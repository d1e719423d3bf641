//! The names by which recorded events are known, whatever their recorder calls them: the kernel's, `system:name`.

/// The event without which no wait can be explained.
pub const ESSENTIAL: &str = "sched:sched_switch";

/// The events of all system calls. Their fields hold the number of the call, not its name.
pub const SYSTEM_CALLS: [&str; 2] = ["raw_syscalls:sys_enter", "raw_syscalls:sys_exit"];

/// In place of all tracepoints of programs (LTTng).
pub const USER_SPACE: &str = "userspace:*";

/// In place of what control groups and `/proc` counted meanwhile.
pub const ENVIRONMENT: &str = "environment:*";

/// True for a word that a shell and a recorder take literally, as the name of an event.
pub fn is_plain_name(name: &str) -> bool {
    let begins = name.chars().next().is_some_and(|c| c.is_ascii_alphanumeric() || c == '_');
    begins && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | ':' | '.' | '-'))
}
