//! Tasks that no event delimits: the work of threads between waits, requests over sockets, system calls, whole
//! processes and threads.
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

/// The side of conversations that a process has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ConversationSide {
    /// It receives requests and replies.
    Serves,
    /// It sends, and waits for answers.
    Calls,
}

/// Requests with their replies, or calls with their answers, over the sockets of processes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Conversations {
    /// The side of the process.
    pub side: ConversationSide,
    /// Name of the process, or its pid where none has that name.
    pub process: String,
    /// Requests begin when they have arrived, not when the process has received them.
    pub from_arrival: bool,
}

/// What makes requests begin when they have arrived.
const FROM_ARRIVAL: &str = ",from=arrival";

impl ConversationSide {
    pub const ALL: [ConversationSide; 2] = [ConversationSide::Serves, ConversationSide::Calls];

    /// How its tasks begin.
    fn prefix(self) -> &'static str {
        match self {
            ConversationSide::Serves => "serve:",
            ConversationSide::Calls => "call:",
        }
    }
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
    /// What passes over sockets.
    Exchanges(Conversations),
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
            Derived::Exchanges(Conversations { side, process, from_arrival }) => {
                let from = if *from_arrival { FROM_ARRIVAL } else { "" };
                write!(f, "{}{process}{from}", side.prefix())
            }
        }
    }
}

/// A task that no event delimits, as users write it; `None` for other forms. The error is the right form.
pub fn parse(typed: &str) -> Option<Result<Derived, &'static str>> {
    let named = |name: &str, form: &'static str| if name.is_empty() { Err(form) } else { Ok(name.to_owned()) };
    for side in ConversationSide::ALL {
        if let Some(process) = typed.strip_prefix(side.prefix()) {
            let (form, arrived) = match side {
                ConversationSide::Serves => {
                    ("write serve:PROCESS[,from=arrival], with its name or pid", process.strip_suffix(FROM_ARRIVAL))
                }
                ConversationSide::Calls => ("write call:PROCESS, with its name or pid", None),
            };
            let from_arrival = arrived.is_some();
            let of = |process| Derived::Exchanges(Conversations { side, process, from_arrival });
            return Some(named(arrived.unwrap_or(process), form).map(of));
        }
    }
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
        let exchanges = |side, process: &str, from_arrival| {
            Derived::Exchanges(Conversations { side, process: process.to_owned(), from_arrival })
        };
        for (typed, wanted) in [
            ("wait=epoll_wait", waits("epoll_wait", None)),
            ("wait=read,thread=job-*", waits("read", Some("job-*"))),
            ("wait=take(int, char),thread=a,b", waits("take(int, char)", Some("a,b"))),
            ("process=dd", Derived::Process("dd".to_owned())),
            ("thread=worker", Derived::Thread("worker".to_owned())),
            ("serve:nginx", exchanges(ConversationSide::Serves, "nginx", false)),
            ("serve:a,b,from=arrival", exchanges(ConversationSide::Serves, "a,b", true)),
            ("call:a:b", exchanges(ConversationSide::Calls, "a:b", false)),
        ] {
            assert_eq!((parse(typed), wanted.to_string().as_str()), (Some(Ok(wanted.clone())), typed));
        }
        for typed in ["wait=", "wait=read,thread=", "process=", "thread=", "serve:", "call:"] {
            assert!(parse(typed).unwrap().is_err(), "{typed}");
        }
        assert!(parse("begin=a,end=b").is_none() && parse("read").is_none());
    }
}
