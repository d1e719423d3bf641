//! Tasks that no event delimits: the work of threads between waits, system calls, whole processes and threads.
//!
//! Definitions and how users write them; `analysis/` delimits the executions once the recording is known. PRODUCT.md,
//! "Tasks found by themselves" and the section before it; ALGORITHMS.md 6.1.

/// Iterations of a thread's loop: the work between two waits at one place.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct WaitIterations {
    /// The wait: a system call, or a function of its stack.
    pub call: String,
    /// Name of the thread, compared with runs of digits collapsed. `None` for every thread.
    pub thread: Option<String>,
}

/// The delimiters of a task in place of events.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Derived {
    /// The waits of threads.
    Iterations(WaitIterations),
    /// Entry and exit of a system call, in all threads but the tracer's own.
    Call(String),
    /// A process from its exec to its exit, by the name of its command.
    Process(String),
    /// A thread from its start to its end, by its name, compared with runs of digits collapsed.
    Thread(String),
    /// A name that no event of the traces has: a system call, else a command.
    Named(String),
}

impl std::fmt::Display for WaitIterations {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "wait={}", self.call)?;
        self.thread.as_ref().map_or(Ok(()), |thread| write!(f, ",thread={thread}"))
    }
}

impl std::fmt::Display for Derived {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Derived::Iterations(waits) => waits.fmt(f),
            Derived::Call(name) | Derived::Named(name) => f.write_str(name),
            Derived::Process(name) => write!(f, "process={name}"),
            Derived::Thread(name) => write!(f, "thread={name}"),
        }
    }
}

/// A task that no event delimits, as users write it; `None` for other forms. The error is the right form.
pub fn parse(typed: &str) -> Option<Result<Derived, &'static str>> {
    let named = |name: &str, form: &'static str| if name.is_empty() { Err(form) } else { Ok(name.to_owned()) };
    if let Some(place) = typed.strip_prefix("wait=") {
        // Names of functions and of threads may hold commas.
        let (call, thread) = place.rsplit_once(",thread=").map_or((place, None), |(call, name)| (call, Some(name)));
        let form = "write wait=CALL[,thread=NAME]";
        let thread = thread.map(|thread| named(thread, form)).transpose();
        return Some(
            thread.and_then(|thread| Ok(Derived::Iterations(WaitIterations { call: named(call, form)?, thread }))),
        );
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
    fn parse_reads_what_display_writes() {
        let waits = |call: &str, thread: Option<&str>| {
            Derived::Iterations(WaitIterations { call: call.to_owned(), thread: thread.map(str::to_owned) })
        };
        for (typed, wanted) in [
            ("wait=epoll_wait", waits("epoll_wait", None)),
            ("wait=read,thread=job-*", waits("read", Some("job-*"))),
            ("wait=take(int, char),thread=a,b", waits("take(int, char)", Some("a,b"))),
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
