//! Names of delimiting events as users write them, in the words of any recorder.
//!
//! In: a name and the record classes of the traces. Out: the names by which [`super::bind`] finds the classes that are
//! meant. `sys_exit_getppid` (trace-cmd), `syscalls:sys_exit_getppid` (perf) and `syscall_exit_getppid` (LTTng) are one
//! event, in a recording of whichever of the three. Where a recording has system calls by number alone
//! (`raw_syscalls`), the name stays LTTng's: a call has another number on each architecture, which is a property of a
//! trace and not of its classes. Cost: linear in the classes. ALGORITHMS.md 6.1.

use super::classes::CallSide;
use super::dialect;
use super::signature::EventSignature;
use super::syscalls;
use std::sync::Arc;

/// Beginnings of the names of system calls' events that are no names in a recording of their tracer, and what they are
/// there.
const BEGINNINGS: [(&str, &str); 2] = [("sys_enter_", "syscall_entry_"), ("sys_exit_", "syscall_exit_")];

/// What may stand before the name of a system call that is a task.
const SYSTEM_CALL: &str = "syscall:";

/// The name of the system call in `syscall:NAME`; `None` for other texts.
pub fn system_call(typed: &str) -> Option<&str> {
    typed.strip_prefix(SYSTEM_CALL).filter(|call| !call.is_empty())
}

/// The names of the events that `typed` means, each once; none where the traces have no such event.
pub(super) fn meant(typed: &str, classes: &[Arc<EventSignature>]) -> Vec<String> {
    // A name that a recording itself has means that event alone.
    if let Some(exact) = classes.iter().find(|class| class.name == typed || class.shown == typed) {
        return vec![exact.name.clone()];
    }
    let known = BEGINNINGS.iter().find_map(|(begin, becomes)| Some(format!("{becomes}{}", typed.strip_prefix(begin)?)));
    let known = known.unwrap_or_else(|| dialect::event(typed).into_owned());
    let is_same = |class: &&Arc<EventSignature>| class.kernel && dialect::event(&class.name) == known;
    let mut names: Vec<String> = classes.iter().filter(is_same).map(|class| class.name.clone()).collect();
    names.sort_unstable();
    names.dedup();
    if names.is_empty() && numbered(&known, classes).is_some() {
        names.push(known);
    }
    names
}

/// The classes whose records may be the event of this name, as [`meant`] returns it.
pub(super) fn classes<'c>(name: &str, classes: &'c [Arc<EventSignature>]) -> Vec<&'c EventSignature> {
    let exact = classes.iter().map(Arc::as_ref).filter(|class| class.name == name);
    exact.chain(numbered(name, classes)).collect()
}

/// The class in which the event of a system call is recorded by its number.
pub(super) fn numbered<'c>(event: &str, classes: &'c [Arc<EventSignature>]) -> Option<&'c EventSignature> {
    let wanted = super::classes::call(event).filter(|event| syscalls::is_known(event.call))?;
    let is_numbered = |class: &&Arc<EventSignature>| class.kernel && numbered_side(&class.name) == Some(wanted.side);
    classes.iter().find(|class| is_numbered(class) && class.has_integer(NUMBER)).map(Arc::as_ref)
}

/// The field that has the number of a system call.
pub(super) const NUMBER: &str = "id";
/// The field that has the arguments of a call by its number.
pub(super) const ARGUMENTS: &str = "args";
/// What the first of them is in the events of calls by name whose descriptor pairs executions.
pub(super) const FIRST_ARGUMENT: &str = "fd";

/// The side of the events of a class that has the system calls of all names.
pub(super) fn numbered_side(class: &str) -> Option<CallSide> {
    super::classes::call(class).filter(|event| event.call.is_empty()).map(|event| event.side)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reading::signature::PayloadField;

    fn class(name: &str, kernel: bool) -> Arc<EventSignature> {
        let fields = vec![PayloadField { name: NUMBER.to_owned(), is_integer: true }];
        let (name, contexts) = (name.to_owned(), Vec::new());
        Arc::new(EventSignature { shown: name.clone(), name, kernel, fields, contexts })
    }

    #[test]
    fn meant_finds_a_system_call_in_the_words_of_any_recorder() {
        let words = |side: &str, other: &str| {
            ["syscall_SIDE_read", "sys_OTHER_read", "syscalls:sys_OTHER_read"]
                .map(|name| name.replace("SIDE", side).replace("OTHER", other))
        };
        let named = [class("syscall_entry_read", true), class("syscall_exit_read", true), class("sched_switch", true)];
        let by_number = [class("raw_syscalls:sys_enter", true), class("raw_syscalls:sys_exit", true)];
        for (side, other) in [("entry", "enter"), ("exit", "exit")] {
            let wanted = [format!("syscall_{side}_read")];
            for typed in words(side, other) {
                assert_eq!(meant(&typed, &named), wanted, "{typed}");
                assert_eq!(meant(&typed, &by_number), wanted, "{typed}");
            }
        }
        assert_eq!(meant("syscalls:sys_enter_read", &[class("sys_read", true)]), ["sys_read"], "an old tracer");
        assert_eq!(meant("sched:sched_switch", &named), ["sched_switch"]);
        for typed in ["sys_enter_raed", "syscall_entry_", "sched_switched", "read"] {
            assert!(meant(typed, &named).is_empty() && meant(typed, &by_number).is_empty(), "{typed}");
        }
    }

    #[test]
    fn meant_prefers_the_name_that_a_recording_has() {
        let own = [class("sys_enter_read", false), class("syscall_entry_read", true)];
        assert_eq!(meant("sys_enter_read", &own), ["sys_enter_read"]);
        assert!(meant("sys_enter_read", &own[..0]).is_empty());
        assert_eq!(
            (system_call("syscall:fsync"), system_call("fsync"), system_call("syscall:")),
            (Some("fsync"), None, None)
        );
    }
}
