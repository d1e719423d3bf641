//! Tasks among the record classes of a trace, and those that `--task` names.
//!
//! [`discover`] finds tasks in the names and fields of record classes, without reading an event, in the order of
//! PRODUCT.md ("Tasks found by themselves"); [`parse`] reads the argument of `--task`, [`super::declared`]
//! a file of tasks. ALGORITHMS.md 6.1.
//!
//! The tracer's own events (`lttng_*`) delimit nothing, and pairs among the kernel's own tracepoints (interrupts,
//! timers) come last: they run inside the thread that they interrupt, so users rarely ask about them.

use super::classes::{self, CallSide, SystemCallEvent};
use super::given::bare;
use super::signature::EventSignature;
use super::{delimiter_names, given};
use crate::base::spelling;
use crate::event::derived::{self, Derived};
use crate::event::task::{Delimiter, Pairing, TaskDefinition};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Providers of the events of functions (entry and exit); the second writes no address at exits.
const PROVIDERS: [&str; 2] = ["lttng_ust_cyg_profile", "lttng_ust_cyg_profile_fast"];

/// Endings that make a pair: (begin, end). perf gives a probe of a function the name of the function, and that of its
/// return a suffix.
const PAIRS: [(&str, &str); 6] =
    [("begin", "end"), ("start", "end"), ("start", "stop"), ("enter", "leave"), ("entry", "exit"), ("", "__return")];

/// Text fields that name the type of an execution, best first.
const KIND_FIELDS: [&str; 6] = ["type", "kind", "operation", "op", "method", "name"];

fn keyed(event: &str, key: &str) -> Delimiter {
    Delimiter { key: vec![key.to_owned()], ..bare(event) }
}

/// All tasks that the record classes of the traces offer: user-space pairs, accepted connections, system calls,
/// pairs among the kernel's own events; each group by name.
pub fn discover(classes: &[Arc<EventSignature>]) -> Vec<TaskDefinition> {
    let mut tasks = pairs(classes, PairOrigin::UserSpace);
    tasks.iter_mut().filter(|task| task.name == ASYNCHRONOUS_MARKERS).for_each(by_name_and_cookie);
    tasks.extend(connections(classes));
    tasks.extend(system_calls(classes));
    tasks.extend(pairs(classes, PairOrigin::Kernel));
    let mut seen = BTreeSet::new();
    tasks.retain(|t| seen.insert(t.name.clone()));
    tasks
}

/// The task of markers that begin and end on any threads.
const ASYNCHRONOUS_MARKERS: &str = "trace_marker:async";

/// Pairs its begins and ends by all that its texts hold.
fn by_name_and_cookie(task: &mut TaskDefinition) {
    for delimiter in task.begins.iter_mut().chain(&mut task.ends) {
        delimiter.key = ["pid", "name", "cookie"].map(str::to_owned).to_vec();
    }
    task.pairing = Pairing::Key;
}

/// The events among which pairs are searched for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PairOrigin {
    /// Those of user space, and probes.
    UserSpace,
    /// The kernel's own.
    Kernel,
}

fn pairs(classes: &[Arc<EventSignature>], origin: PairOrigin) -> Vec<TaskDefinition> {
    let is_of_kernel = |c: &EventSignature| c.kernel && !c.is_placed();
    let ours = |c: &&EventSignature| is_of_kernel(c) == (origin == PairOrigin::Kernel) && !c.name.starts_with("lttng_");
    let by_name: BTreeMap<&str, &EventSignature> =
        classes.iter().map(Arc::as_ref).filter(ours).map(|c| (c.name.as_str(), c)).collect();
    let mut tasks = BTreeMap::new();
    for (name, begin) in &by_name {
        for (first, last) in PAIRS {
            let Some(stem) = name.strip_suffix(first) else { continue };
            let Some(end) = by_name.get(format!("{stem}{last}").as_str()) else { continue };
            let title = stem.trim_end_matches(['_', ':', '-', '.']);
            // The group of a probe says only which tool placed it.
            let function = title.rsplit_once(':').map(|(_, function)| function);
            let title = function.filter(|f| begin.is_probe() && !tasks.contains_key(*f)).unwrap_or(title);
            if !title.is_empty() && !tasks.contains_key(title) {
                tasks.insert(title.to_owned(), pair(title, begin, end));
            }
        }
    }
    tasks.into_values().collect()
}

/// A pair of events, matched by a shared identifier field where both have one.
fn pair(title: &str, begin: &EventSignature, end: &EventSignature) -> TaskDefinition {
    let identifies = |n: &str| n == "id" || n.ends_with("_id") || n.ends_with("Id") || n == "uuid" || n == "key";
    let integers = begin.fields.iter().filter(|field| field.is_integer).map(|field| field.name.as_str());
    let key = integers.into_iter().find(|name| identifies(name) && end.has_integer(name));
    let kind = KIND_FIELDS.iter().find(|k| begin.has_text(k) || end.has_text(k)).map(|k| (*k).to_owned());
    let delimiter = |c: &EventSignature| match key {
        Some(key) => keyed(&c.name, key),
        None => bare(&c.name),
    };
    TaskDefinition {
        name: title.to_owned(),
        begins: vec![delimiter(begin)],
        ends: vec![delimiter(end)],
        pairing: if key.is_some() { Pairing::Key } else { Pairing::Thread },
        kind,
        nest: true,
        process: None,
    }
}

/// From `accept*` to the shutdown or close of the same socket.
fn connections(classes: &[Arc<EventSignature>]) -> Option<TaskDefinition> {
    let delimiters = |side: CallSide, calls: [&str; 2], key: &str| -> Vec<Delimiter> {
        let is = |c: &&EventSignature| {
            c.kernel && classes::call(&c.name).is_some_and(|e| e.side == side && calls.contains(&e.call))
        };
        let mut events: Vec<String> = classes.iter().map(Arc::as_ref).filter(is).map(|c| c.name.clone()).collect();
        let is_named = |c: &Arc<EventSignature>| {
            c.kernel && classes::call(&c.name).is_some_and(|e| e.side == side && !e.call.is_empty())
        };
        // Where all calls are recorded by their numbers, any of them may occur.
        if !classes.iter().any(is_named) {
            let numbered = calls.iter().map(|call| classes::event_of(side, call));
            events.extend(numbered.filter(|event| delimiter_names::numbered(event, classes).is_some()));
        }
        events.sort_unstable();
        events.dedup();
        events.iter().map(|event| keyed(event, key)).collect()
    };
    let begins = delimiters(CallSide::Exit, ["accept", "accept4"], "ret");
    let ends = delimiters(CallSide::Entry, ["shutdown", "close"], "fd");
    (!begins.is_empty() && !ends.is_empty()).then(|| TaskDefinition {
        name: "connection".to_owned(),
        begins,
        ends,
        pairing: Pairing::ProcessKey,
        kind: None,
        nest: false,
        process: None,
    })
}

/// From the entry of a call to its exit, which in old recordings does not name the call.
fn system_calls(classes: &[Arc<EventSignature>]) -> Vec<TaskDefinition> {
    let mut entries: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let mut exits: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for class in classes.iter().filter(|c| c.kernel) {
        if let Some(event) = classes::call(&class.name) {
            let side = if event.side == CallSide::Entry { &mut entries } else { &mut exits };
            side.entry(event.call).or_default().insert(&class.name);
        }
    }
    // Only the events of entries by number name their calls.
    let named = entries.into_iter().filter(|(call, _)| !call.is_empty());
    let both = named.filter_map(|(call, entries)| Some((call, entries, exits.get(call).or_else(|| exits.get(""))?)));
    let end = |event: &&str| Delimiter { conditions: Vec::new(), ..bare(event) };
    both.map(|(call, entries, exits)| TaskDefinition {
        name: call.to_owned(),
        begins: entries.iter().map(|event| bare(event)).collect(),
        ends: exits.iter().map(end).collect(),
        pairing: Pairing::Thread,
        kind: None,
        nest: false,
        process: None,
    })
    .collect()
}

/// True where the exit of a system call may begin an execution, or the entry of one end it.
pub fn is_between_calls(task: &TaskDefinition) -> bool {
    let is =
        |delimiter: &Delimiter, side: CallSide| classes::call(&delimiter.event).is_some_and(|call| call.side == side);
    task.begins.iter().any(|begin| is(begin, CallSide::Exit)) || task.ends.iter().any(|end| is(end, CallSide::Entry))
}

/// True for the name of an event of a system call.
pub fn is_call(event: &str) -> bool {
    classes::call(event).is_some()
}

/// True for a system call that events of the kernel delimit. Metadata declare many that never occur.
pub fn is_system_call(task: &TaskDefinition) -> bool {
    let entry = SystemCallEvent { side: CallSide::Entry, call: &task.name };
    let named = |d: &Delimiter| classes::call(&d.event) == Some(entry);
    task.pairing == Pairing::Thread && task.begins.iter().any(named)
}

/// The task of a function, by name or address, where entries and exits of functions were recorded
/// (`-finstrument-functions`). Its delimiters are those of all functions: the function of an address is known once the
/// images are.
pub fn function(name: &str, classes: &[Arc<EventSignature>]) -> Option<TaskDefinition> {
    let named = |what: &str| {
        let of = |c: &&EventSignature| c.name.strip_suffix(what).is_some_and(|provider| PROVIDERS.contains(&provider));
        let delimiter = |c: &EventSignature| if c.has_integer("addr") { keyed(&c.name, "addr") } else { bare(&c.name) };
        let mut all: Vec<Delimiter> = classes.iter().map(Arc::as_ref).filter(of).map(delimiter).collect();
        all.sort_by(|a, b| a.event.cmp(&b.event));
        all.dedup_by(|a, b| a.event == b.event);
        all
    };
    let (begins, ends) = (named(":func_entry"), named(":func_exit"));
    let usable = !ends.is_empty() && begins.iter().any(|d| !d.key.is_empty());
    let name = name.to_owned();
    let pairing = Pairing::Function;
    usable.then_some(TaskDefinition { name, begins, ends, pairing, kind: None, nest: true, process: None })
}

/// Why `--task` cannot be used: one line with what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct TaskError(String);

/// What begins the forms below; other words before an equals sign belong to a name.
const FORMS: [&str; 9] = ["begin=", "end=", "key=", "type=", "wait=", "process=", "thread=", "serve:", "call:"];

/// The task that `--task` names: one of `found`, a function, a system call (`syscall:NAME`), delimiters given by hand
/// (`begin=EVENT,end=EVENT[,key=FIELD][,type=FIELD]`) or a wait (`wait=CALL[,thread=NAME]`).
pub fn parse(
    typed: &str,
    found: &[TaskDefinition],
    classes: &[Arc<EventSignature>],
) -> Result<TaskDefinition, TaskError> {
    // A program may give its tasks and threads any names, also with an equals sign.
    let named = found.iter().find(|t| t.name == typed).cloned();
    if let (None, Some(call)) = (&named, delimiter_names::system_call(typed)) {
        let call_of_events = found.iter().find(|t| t.name == call && is_system_call(t)).cloned();
        let named = Derived::Named(call.to_owned());
        return Ok(call_of_events.unwrap_or_else(|| TaskDefinition::derived(call.to_owned(), named)));
    }
    let is_form = FORMS.iter().any(|form| typed.starts_with(form));
    if named.is_some() || !is_form {
        let named = named.or_else(|| function(typed, classes));
        // The recording may know a call or a command of this name.
        return Ok(named.unwrap_or_else(|| TaskDefinition::derived(typed.to_owned(), Derived::Named(typed.to_owned()))));
    }
    let wrong = |why: String| TaskError(format!("--task {typed}: {why}"));
    if let Some(parsed) = derived::parse(typed) {
        return parsed
            .map(|task| TaskDefinition::derived(typed.to_owned(), task))
            .map_err(|form| wrong(form.to_owned()));
    }
    given::parse(typed, classes).map_err(wrong)
}

/// The error for a name that no task has, with similar names.
pub fn unknown(typed: &str, found: &[TaskDefinition]) -> TaskError {
    TaskError(format!("--task {typed}: no such task{}", nearest(typed, found)))
}

/// Tasks that an error names.
const NAMED: usize = 4;

/// "; did you mean ...?", or the first tasks that there are.
fn nearest(typed: &str, found: &[TaskDefinition]) -> String {
    let names = || found.iter().map(|task| task.name.as_str());
    if let Some(near) = spelling::did_you_mean(typed, names()) {
        return format!("; {near}");
    }
    let first: Vec<&str> = names().take(NAMED).collect();
    match found.len() {
        0 => "; the recording has none of its own: give begin=EVENT,end=EVENT".to_owned(),
        n if n > NAMED => format!("; the recording has {}, ... (`whyslow info` lists all)", first.join(", ")),
        _ => format!("; the recording has {}", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reading::signature::PayloadField;

    fn class(name: &str, kernel: bool, fields: &[(&str, bool)]) -> Arc<EventSignature> {
        let field =
            |(name, is_integer): &(&str, bool)| PayloadField { name: (*name).to_owned(), is_integer: *is_integer };
        let fields = fields.iter().map(field).collect();
        let name = name.to_owned();
        Arc::new(EventSignature { shown: name.clone(), name, kernel, fields, contexts: Vec::new() })
    }

    #[test]
    fn discover_finds_tasks_in_the_order_of_the_contract() {
        let classes = [
            class("irq_handler_exit", true, &[]),
            class("irq_handler_entry", true, &[]),
            class("syscall_entry_close", true, &[("fd", true)]),
            class("syscall_exit_close", true, &[("ret", true)]),
            class("syscall_exit_accept4", true, &[("ret", true)]),
            class("app:request_begin", false, &[("id", true), ("type", false)]),
            class("app:request_end", false, &[("id", true), ("status", true)]),
            class("app:batch_start", false, &[("size", true)]),
            class("app:batch_stop", false, &[]),
            class("lttng_ust_statedump:start", false, &[]),
            class("lttng_ust_statedump:end", false, &[]),
        ];
        let tasks = discover(&classes);
        let names: Vec<_> = tasks.iter().map(|t| t.name.as_str()).collect();
        assert_eq!(names, ["app:batch", "app:request", "connection", "close", "irq_handler"]);
        let calls: Vec<bool> = tasks.iter().map(is_system_call).collect();
        assert_eq!(calls, [false, false, false, true, false]);
        assert_eq!((&tasks[0].pairing, &tasks[0].kind), (&Pairing::Thread, &None));
        assert_eq!((&tasks[1].pairing, tasks[1].kind.as_deref()), (&Pairing::Key, Some("type")));
        assert_eq!(tasks[1].begins, [keyed("app:request_begin", "id")]);
        assert_eq!(tasks[2].begins[0].conditions[0].field, "ret");
    }

    #[test]
    fn discover_lists_probed_functions_with_the_pairs_of_programs() {
        let probe = |name: &str, field: &str| class(name, true, &[(field, true)]);
        let classes = [
            class("irq_handler_entry", true, &[]),
            class("irq_handler_exit", true, &[]),
            probe("probe_server:handle", "__probe_ip"),
            probe("probe_server:handle__return", "__probe_func"),
            probe("probe_other:handle", "__probe_ip"),
            probe("probe_other:handle__return", "__probe_func"),
        ];
        let tasks = discover(&classes);
        let names: Vec<_> = tasks.iter().map(|t| t.name.as_str()).collect();
        assert_eq!(names, ["handle", "probe_server:handle", "irq_handler"]);
        assert_eq!(tasks[1].ends, [bare("probe_server:handle__return")]);
    }

    #[test]
    fn parse_takes_events_by_the_names_of_their_recorder() {
        let mut classes = [class("syscall_exit_read", true, &[("ret", true)]), class("syscall_entry_write", true, &[])];
        Arc::make_mut(&mut classes[0]).shown = "syscalls:sys_exit_read".to_owned();
        Arc::make_mut(&mut classes[1]).shown = "syscalls:sys_enter_write".to_owned();
        let task = parse("begin=syscalls:sys_exit_read,end=syscalls:sys_enter_write", &[], &classes).unwrap();
        assert_eq!((task.begins[0].event.as_str(), task.begins[0].conditions.len()), ("syscall_exit_read", 1));
        assert_eq!(task.ends[0].event, "syscall_entry_write");
    }

    #[test]
    fn parse_takes_system_calls_with_what_help_writes_before_them() {
        let classes = [class("syscall_entry_fsync", true, &[]), class("syscall_exit_fsync", true, &[])];
        let found = discover(&classes);
        assert_eq!(parse("syscall:fsync", &found, &classes), parse("fsync", &found, &classes));
        let task = parse("syscall:fsync", &[], &[]).unwrap();
        assert_eq!(
            (task.name.as_str(), &task.pairing),
            ("fsync", &Pairing::Derived(Derived::Named("fsync".to_owned())))
        );
    }

    #[test]
    fn parse_takes_functions_where_their_exits_are_recorded() {
        let entry = class("lttng_ust_cyg_profile_fast:func_entry", false, &[("addr", true)]);
        let exit = class("lttng_ust_cyg_profile_fast:func_exit", false, &[]);
        let task = parse("main", &[], &[entry.clone(), exit]).unwrap();
        assert_eq!((&task.pairing, &task.begins[0].key[..]), (&Pairing::Function, &["addr".to_owned()][..]));
        assert!(task.ends[0].key.is_empty() && function("main", &[entry]).is_none());
    }

    #[test]
    fn parse_takes_delimiters_given_by_hand() {
        let classes =
            [class("syscall_exit_accept4", true, &[("ret", true)]), class("syscall_entry_shutdown", true, &[])];
        let task = parse("begin=syscall_exit_accept4,end=syscall_entry_shutdown", &[], &classes).unwrap();
        assert_eq!((task.begins[0].conditions.len(), task.ends[0].conditions.len()), (1, 0));
        assert_eq!((&task.pairing, task.nest), (&Pairing::Thread, false));
        for (typed, part) in [
            ("begin=a,end=b", "no event `a`"),
            ("begin=syscall_exit_accept4", "end=EVENT is missing"),
            ("begin=syscall_exit_accept4,end=syscall_entry_shutdown,key=fd", "no integer field `fd`"),
            ("begin=x,stop=y", "`stop=y` is not understood"),
        ] {
            let said = parse(typed, &[], &classes).unwrap_err().to_string();
            assert!(said.contains(part), "{said}");
        }
        for name in ["=HYPERLINK(\"a\"", "a=b", "begin"] {
            let task = parse(name, &[], &classes).unwrap();
            assert_eq!(task.pairing, Pairing::Derived(Derived::Named(name.to_owned())));
        }
        let task = parse("nothing", &[], &classes).unwrap();
        assert_eq!(task.pairing, Pairing::Derived(Derived::Named("nothing".to_owned())));
        assert!(unknown("nothing", &[]).to_string().contains("no such task; the recording has none of its own"));
    }
}
