//! Tasks: what delimits executions. Definitions only: `reading/tasks.rs` finds them among the record classes of a trace
//! and parses `--task`, `reading/declared.rs` reads files of them, `analysis/executions.rs` pairs their events.
//! ALGORITHMS.md 6.1.

use super::derived::Derived;
use crate::base::op::Op;
use crate::input::record::Value;

/// An event that begins or ends an execution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delimiter {
    /// Name of the event.
    pub event: String,
    /// Fields, in the payload or a context, whose values together pair begin and end (see [`Pairing`]); none to pair on
    /// the thread.
    pub key: Vec<String>,
    /// The event counts only where all of these hold.
    pub conditions: Vec<Condition>,
}

/// A condition on a field, without which an event does not count. It does not hold for an absent field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// The field, in the payload or a context.
    pub field: String,
    /// The comparison.
    pub op: Op,
    /// The value to compare with.
    pub value: Literal,
}

/// A value to compare with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Literal {
    /// A whole number of either sign and any width.
    Number(i128),
    /// Text, as bytes.
    Text(Vec<u8>),
}

impl Condition {
    /// True where a field's value passes. Numbers and texts never equal each other.
    pub fn holds(&self, value: Value<'_>) -> bool {
        let order = match (value, &self.value) {
            (Value::Unsigned(n), Literal::Number(wanted)) => i128::from(n).cmp(wanted),
            (Value::Signed(n), Literal::Number(wanted)) => i128::from(n).cmp(wanted),
            (Value::Text(text), Literal::Text(wanted)) => text.cmp(wanted),
            _ => return false,
        };
        self.op.holds(order)
    }
}

/// How a begin finds its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pairing {
    /// On the same thread.
    Thread,
    /// By equal keys within the host, across threads and processes.
    Key,
    /// By equal keys within the process (descriptors), across its threads.
    ProcessKey,
    /// On the same thread, as calls nest; the key of a begin is the address of its function.
    Function,
    /// No events delimit it: its begins and ends are known once the recording is.
    Derived(Derived),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskDefinition {
    /// As listed by `info` and given to `--task`.
    pub name: String,
    /// Any of these begins an execution.
    pub begins: Vec<Delimiter>,
    /// Any of these ends it.
    pub ends: Vec<Delimiter>,
    /// How they find each other.
    pub pairing: Pairing,
    /// Payload field of the begin (else the end) event that names the type of the execution.
    pub kind: Option<String>,
    /// A second begin opens an inner execution; else it restarts the outer.
    pub nest: bool,
    /// Only executions that end in processes of this name, or pid, count; `None`: those of all processes.
    pub process: Option<String>,
}

impl TaskDefinition {
    /// A task that no event delimits.
    pub fn derived(name: String, derived: Derived) -> TaskDefinition {
        let (begins, ends) = (Vec::new(), Vec::new());
        let pairing = Pairing::Derived(derived);
        TaskDefinition { name, begins, ends, pairing, kind: None, nest: false, process: None }
    }

    /// The executions of it that end in the processes of a name, or pid.
    #[must_use]
    pub fn of_process(self, process: &str) -> TaskDefinition {
        let name = Asked { task: Some(&self.name), process: Some(process) }.to_string();
        TaskDefinition { name, process: Some(process.to_owned()), ..self }
    }

    /// Its name without that of the processes whose executions are meant.
    pub fn own_name(&self) -> &str {
        match &self.process {
            Some(_) => Asked::of(&self.name).task.unwrap_or_default(),
            None => &self.name,
        }
    }
}

/// What separates the name of a task from that of the processes whose executions are meant.
const OF_PROCESS: &str = ",process=";

/// What a user asks about, as `--task` has it: `TASK[,process=PROCESS]`. Without a name before the comma it is the task
/// of these processes that answers (`--process`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Asked<'a> {
    /// The task; `None`: the one that answers.
    pub task: Option<&'a str>,
    /// Name or pid of the processes whose executions are meant; `None`: those of all.
    pub process: Option<&'a str>,
}

impl<'a> Asked<'a> {
    /// What a text asks about.
    pub fn of(typed: &'a str) -> Asked<'a> {
        let (task, process) = match typed.rsplit_once(OF_PROCESS) {
            Some((task, process)) if !process.is_empty() => (task, Some(process)),
            _ => (typed, None),
        };
        Asked { task: Some(task).filter(|task| !task.is_empty()), process }
    }
}

impl std::fmt::Display for Asked<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.task.unwrap_or_default())?;
        self.process.map_or(Ok(()), |process| write!(f, "{OF_PROCESS}{process}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn asked_is_what_display_writes() {
        for (typed, task, process) in [
            ("read", Some("read"), None),
            ("read,process=nginx", Some("read"), Some("nginx")),
            ("process=dd", Some("process=dd"), None),
            (",process=1107", None, Some("1107")),
            ("wait=read,thread=a,b,process=c", Some("wait=read,thread=a,b"), Some("c")),
            ("read,process=", Some("read,process="), None),
        ] {
            let asked = Asked::of(typed);
            assert_eq!((asked, asked.to_string().as_str()), (Asked { task, process }, typed));
        }
    }
}
