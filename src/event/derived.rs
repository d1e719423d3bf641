//! Tasks that no event delimits: what threads do between waits, system calls, whole processes and threads.
//!
//! Definitions and how users write them; `analysis/` delimits the executions once the recording is known. PRODUCT.md,
//! "Tasks found by themselves" and the section before it; ALGORITHMS.md 6.1.

/// What a thread does between two waits at one place: one turn of its loop.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Turn {
    /// Where it waits: a system call, or a function of its stack.
    pub call: String,
    /// Name of the thread; runs of digits are folded on both sides. `None` for every thread.
    pub thread: Option<String>,
}

/// What delimits a task in place of events.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Derived {
    /// The waits of threads.
    Turn(Turn),
    /// Entry and exit of a system call, in all threads but the tracer's own.
    Call(String),
    /// A process from its exec to its exit, by the name of its command.
    Process(String),
    /// A thread from its birth to its end, by its name; runs of digits are folded on both sides.
    Thread(String),
    /// A name that no event of the traces has: a system call, else a command.
    Named(String),
}

impl std::fmt::Display for Turn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "wait={}", self.call)?;
        self.thread.as_ref().map_or(Ok(()), |thread| write!(f, ",thread={thread}"))
    }
}

impl std::fmt::Display for Derived {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Derived::Turn(turn) => turn.fmt(f),
            Derived::Call(name) | Derived::Named(name) => f.write_str(name),
            Derived::Process(name) => write!(f, "process={name}"),
            Derived::Thread(name) => write!(f, "thread={name}"),
        }
    }
}

/// What was typed for a task that no event delimits; `None` where it is none. The error says how to write it.
pub fn parse(typed: &str) -> Option<Result<Derived, &'static str>> {
    let named = |name: &str, form: &'static str| if name.is_empty() { Err(form) } else { Ok(name.to_owned()) };
    if let Some(place) = typed.strip_prefix("wait=") {
        // Names of functions and of threads may hold commas.
        let (call, thread) = place.rsplit_once(",thread=").map_or((place, None), |(call, name)| (call, Some(name)));
        let form = "write wait=CALL[,thread=NAME]";
        let thread = thread.map(|thread| named(thread, form)).transpose();
        return Some(thread.and_then(|thread| Ok(Derived::Turn(Turn { call: named(call, form)?, thread }))));
    }
    if let Some(name) = typed.strip_prefix("process=") {
        return Some(named(name, "write process=COMMAND").map(Derived::Process));
    }
    let name = typed.strip_prefix("thread=")?;
    Some(named(name, "write thread=NAME").map(Derived::Thread))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_typed_is_what_is_shown() {
        let turn = |call: &str, thread: Option<&str>| {
            Derived::Turn(Turn { call: call.to_owned(), thread: thread.map(str::to_owned) })
        };
        for (typed, wanted) in [
            ("wait=epoll_wait", turn("epoll_wait", None)),
            ("wait=read,thread=job-*", turn("read", Some("job-*"))),
            ("wait=take(int, char),thread=a,b", turn("take(int, char)", Some("a,b"))),
            ("process=dd", Derived::Process("dd".to_owned())),
            ("thread=worker", Derived::Thread("worker".to_owned())),
        ] {
            assert_eq!((parse(typed), wanted.to_string().as_str()), (Some(Ok(wanted.clone())), typed));
        }
        for typed in ["wait=", "wait=read,thread=", "process=", "thread="] {
            assert!(parse(typed).unwrap().is_err(), "{typed}");
        }
        assert!(parse("begin=a,end=b").is_none() && parse("read").is_none());
    }
}
