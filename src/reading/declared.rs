//! Tasks declared in a file (`--tasks FILE.toml`): any events, with conditions on their fields, paired by any keys.
//!
//! In: the text of a TOML file and the record classes of the traces. Out: definitions in the order of the file, all of
//! whose events and fields exist, or one line that names the line of the file and the remedy. PRODUCT.md describes the
//! format ("Tasks declared in a file"); ALGORITHMS.md section 6.1.

use super::delimiter_names;
use super::signature::EventSignature;
use crate::base::op::Op;
use crate::event::derived::{Derived, WaitIterations};
use crate::event::task::{Condition, Delimiter, Literal, Pairing, TaskDefinition};
use foldhash::{HashMap, HashSet};
use serde::Deserialize;
use std::sync::Arc;
use toml::{Spanned, Value};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    task: Vec<Declaration>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Declaration {
    name: Spanned<String>,
    // `toml` loses the places inside of alternatives, so `delimiter` decides between them.
    begin: Option<Spanned<Value>>,
    end: Option<Spanned<Value>>,
    wait: Option<Spanned<String>>,
    thread: Option<Spanned<String>>,
    key: Option<Texts>,
    #[serde(rename = "type")]
    kind: Option<Spanned<String>>,
    #[serde(default)]
    nest: bool,
}

/// An event with conditions and a key of its own.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Side {
    event: String,
    #[serde(rename = "where")]
    conditions: Option<Texts>,
    key: Option<Texts>,
}

/// A text or a list of texts.
#[derive(Deserialize)]
#[serde(untagged, expecting = "a text or a list of texts is wanted here")]
enum Texts {
    One(String),
    More(Vec<String>),
}

impl Texts {
    fn list(self) -> Vec<String> {
        match self {
            Texts::One(one) => vec![one],
            Texts::More(more) => more,
        }
    }
}

/// The reason why a file declares no tasks, with the line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{line}: {kind}")]
pub struct DeclaredError {
    /// Line of the file, from 1.
    pub line: usize,
    /// The error there and its remedy.
    pub kind: DeclaredErrorKind,
}

/// An error in a file of tasks, and its remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DeclaredErrorKind {
    /// The file is not TOML of the right form.
    #[error(
        "{0}; a task is [[task]] with name, begin, end, and perhaps key, type, nest; \
         or with name, wait, and perhaps thread"
    )]
    Form(String),
    /// A begin or end is not of the right form.
    #[error("{0}; write an event's name, or {{ event = \"NAME\", where = \"FIELD OP VALUE\", key = \"FIELD\" }}")]
    DelimiterForm(String),
    /// The file has no task.
    #[error("no task is declared; write [[task]] with name, begin and end")]
    Empty,
    /// A name is empty, taken, or looks like an option.
    #[error("`{0}` is no name for a task: give each its own, without `=`")]
    Name(String),
    /// A task has no begin or no end.
    #[error("task `{task}` has no {side}: give it begin and end, or wait")]
    Missing {
        /// Name of the task.
        task: String,
        /// `begin` or `end`.
        side: &'static str,
    },
    /// A task has no event at one side, or its keys differ in length.
    #[error("task `{0}`: begin and end need an event each, and keys of equally many fields")]
    UnequalSides(String),
    /// No event of the task has the field of its types.
    #[error("no event of task `{task}` has a field `{field}` to take types from")]
    Type {
        /// Name of the task.
        task: String,
        /// Name of the field.
        field: String,
    },
    /// `thread` without `wait`.
    #[error("`thread` goes with `wait`: say where it waits")]
    ThreadWithoutWait,
    /// `wait` beside delimiters.
    #[error("`wait` delimits the task by itself: leave begin, end, key, type and nest out")]
    WaitWithDelimiters,
    /// `wait` names nothing.
    #[error("`wait` names a system call or a function")]
    EmptyWait,
    /// No class has this name.
    #[error("the trace has no event `{0}`; `whyslow info` counts its events, `stats count` lists them")]
    Event(String),
    /// The event has no such field.
    #[error("event `{event}` has no field or context `{field}`; it has {present}")]
    Field {
        /// Name of the event.
        event: String,
        /// Name of the field.
        field: String,
        /// The fields and contexts that it has.
        present: String,
    },
    /// A condition that cannot be parsed.
    #[error(
        "condition `{0}` is not understood: \
         write FIELD OP VALUE with < <= > >= == !=, a whole number or a text in quotes"
    )]
    Condition(String),
}

/// The tasks that `text` declares.
pub fn tasks(text: &str, classes: &[Arc<EventSignature>]) -> Result<Vec<TaskDefinition>, DeclaredError> {
    read(text, classes).map_err(|Located { at, kind }| {
        let line = text.get(..at).map_or(1, |before| before.matches('\n').count() + 1);
        DeclaredError { line, kind }
    })
}

/// An error at a byte of the file.
struct Located {
    at: usize,
    kind: DeclaredErrorKind,
}

impl DeclaredErrorKind {
    fn at(self, at: usize) -> Located {
        Located { at, kind: self }
    }
}

fn read(text: &str, classes: &[Arc<EventSignature>]) -> Result<Vec<TaskDefinition>, Located> {
    let file: File =
        toml::from_str(text).map_err(|e| DeclaredErrorKind::Form(one_line(&e)).at(e.span().map_or(0, |s| s.start)))?;
    let classes = &Classes::new(classes);
    let mut tasks: Vec<TaskDefinition> = Vec::new();
    let mut names = HashSet::default();
    for declaration in file.task {
        let name = declaration.name.get_ref();
        if name.is_empty() || name.contains('=') || !names.insert(name.clone()) {
            return Err(DeclaredErrorKind::Name(name.clone()).at(declaration.name.span().start));
        }
        tasks.push(match waits(&declaration)? {
            Some(waits) => TaskDefinition::derived(name.clone(), Derived::Iterations(waits)),
            None => delimited(declaration, classes)?,
        });
    }
    if tasks.is_empty() {
        return Err(DeclaredErrorKind::Empty.at(0));
    }
    Ok(tasks)
}

/// The waits that delimit a task, if it has `wait`.
fn waits(declaration: &Declaration) -> Result<Option<WaitIterations>, Located> {
    let Declaration { begin, end, wait, thread, key, kind, nest, .. } = declaration;
    let Some(wait) = wait else {
        let alone = thread.as_ref().map(|thread| DeclaredErrorKind::ThreadWithoutWait.at(thread.span().start));
        return alone.map_or(Ok(None), Err);
    };
    if begin.is_some() || end.is_some() || key.is_some() || kind.is_some() || *nest {
        return Err(DeclaredErrorKind::WaitWithDelimiters.at(wait.span().start));
    }
    if wait.get_ref().is_empty() {
        return Err(DeclaredErrorKind::EmptyWait.at(wait.span().start));
    }
    let thread = thread.as_ref().map(|thread| thread.get_ref().clone());
    Ok(Some(WaitIterations { call: wait.get_ref().clone(), thread }))
}

/// A task with `begin` and `end`.
fn delimited(declaration: Declaration, classes: &Classes<'_>) -> Result<TaskDefinition, Located> {
    let at = declaration.name.span().start;
    let name = declaration.name.into_inner();
    let missing = |side| DeclaredErrorKind::Missing { task: name.clone(), side }.at(at);
    let begin = declaration.begin.ok_or_else(|| missing("begin"))?;
    let end = declaration.end.ok_or_else(|| missing("end"))?;
    let key = declaration.key.map(Texts::list).unwrap_or_default();
    let (begins, ends) = (delimiters(begin, &key, classes)?, delimiters(end, &key, classes)?);
    let width = begins.first().map_or(0, |d| d.key.len());
    if begins.is_empty() || ends.is_empty() || begins.iter().chain(&ends).any(|d| d.key.len() != width) {
        return Err(DeclaredErrorKind::UnequalSides(name).at(at));
    }
    if let Some(kind) = &declaration.kind {
        let has = |d: &Delimiter| has_field(classes, &d.event, kind.get_ref());
        if !begins.iter().chain(&ends).any(has) {
            let field = kind.get_ref().clone();
            return Err(DeclaredErrorKind::Type { task: name, field }.at(kind.span().start));
        }
    }
    Ok(TaskDefinition {
        name,
        begins,
        ends,
        pairing: if width > 0 { Pairing::Key } else { Pairing::Thread },
        kind: declaration.kind.map(Spanned::into_inner),
        nest: declaration.nest,
        process: None,
    })
}

/// The delimiters of one side of a task: one, or a list.
fn delimiters(side: Spanned<Value>, key: &[String], classes: &Classes<'_>) -> Result<Vec<Delimiter>, Located> {
    let at = side.span().start;
    let list = match side.into_inner() {
        Value::Array(list) => list,
        one => vec![one],
    };
    let each = list.into_iter().map(|one| delimiter(one, key, classes).map_err(|kind| kind.at(at)));
    Ok(each.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
}

/// The message of the parser in one line.
fn one_line(error: &toml::de::Error) -> String {
    error.message().replace('\n', " ")
}

/// Record classes, and each by the names of its event.
struct Classes<'a> {
    all: &'a [Arc<EventSignature>],
    by_name: HashMap<&'a str, Vec<&'a EventSignature>>,
}

impl<'a> Classes<'a> {
    fn new(all: &'a [Arc<EventSignature>]) -> Classes<'a> {
        let mut by_name: HashMap<&str, Vec<&EventSignature>> = HashMap::default();
        for class in all {
            by_name.entry(&class.name).or_default().push(class);
            if class.shown != class.name {
                by_name.entry(&class.shown).or_default().push(class);
            }
        }
        Classes { all, by_name }
    }

    /// The names of the events that are meant.
    fn meant(&self, event: &str) -> Vec<String> {
        match self.by_name.get(event).and_then(|of_name| of_name.first()) {
            Some(class) => vec![class.name.clone()],
            None => delimiter_names::meant(event, self.all),
        }
    }

    /// Those whose records may be an event.
    fn of(&self, event: &str) -> Vec<&'a EventSignature> {
        match self.by_name.get(event) {
            Some(classes) => classes.clone(),
            None => delimiter_names::classes(event, self.all),
        }
    }
}

fn has_field(classes: &Classes<'_>, event: &str, field: &str) -> bool {
    let has = |c: &&EventSignature| c.fields.iter().any(|f| f.name == field) || c.contexts.iter().any(|c| c == field);
    classes.of(event).iter().any(has)
}

/// The delimiters of a task that one event makes.
fn delimiter(side: Value, key: &[String], classes: &Classes<'_>) -> Result<Vec<Delimiter>, DeclaredErrorKind> {
    let Side { event, conditions, key: own } = match side {
        Value::String(event) => Side { event, conditions: None, key: None },
        table => table.try_into().map_err(|e: toml::de::Error| DeclaredErrorKind::DelimiterForm(one_line(&e)))?,
    };
    let meant = classes.meant(&event);
    if meant.is_empty() {
        return Err(DeclaredErrorKind::Event(event));
    }
    let key = own.map_or_else(|| key.to_vec(), Texts::list);
    let conditions = conditions.map(Texts::list).unwrap_or_default();
    let conditions: Vec<Condition> = conditions.iter().map(|c| condition(c)).collect::<Result<_, _>>()?;
    for event in &meant {
        for field in key.iter().chain(conditions.iter().map(|c| &c.field)) {
            if !has_field(classes, event, field) {
                let all = classes.of(event);
                let fields = all.iter().flat_map(|c| c.fields.iter().map(|f| &f.name).chain(&c.contexts));
                let present = fields.map(String::as_str).collect::<Vec<_>>().join(", ");
                return Err(DeclaredErrorKind::Field { event: event.clone(), field: field.clone(), present });
            }
        }
    }
    let delimiter = |event| Delimiter { event, key: key.clone(), conditions: conditions.clone() };
    Ok(meant.into_iter().map(delimiter).collect())
}

/// `FIELD OP VALUE`: a whole number or a text in quotes.
fn condition(text: &str) -> Result<Condition, DeclaredErrorKind> {
    let wrong = || DeclaredErrorKind::Condition(text.to_owned());
    let at = text.find(['<', '>', '=', '!']).ok_or_else(wrong)?;
    let (op, value) = Op::strip(&text[at..]).ok_or_else(wrong)?;
    let (field, value) = (text[..at].trim(), value.trim());
    let quoted = |quote: char| value.strip_prefix(quote).and_then(|v| v.strip_suffix(quote));
    let literal = match quoted('"').or(quoted('\'')) {
        Some(text) => Literal::Text(text.as_bytes().to_vec()),
        None => {
            let (minus, digits) = value.strip_prefix('-').map_or((1, value), |v| (-1, v));
            let number = match digits.strip_prefix("0x") {
                Some(hex) => i128::from_str_radix(hex, 16),
                None => digits.parse::<i128>(),
            };
            let number = number.ok().filter(|_| digits.bytes().all(|b| b.is_ascii_alphanumeric())).ok_or_else(wrong)?;
            Literal::Number(minus * number)
        }
    };
    if field.is_empty() || (matches!(literal, Literal::Text(_)) && !matches!(op, Op::Equal | Op::NotEqual)) {
        return Err(wrong());
    }
    Ok(Condition { field: field.to_owned(), op, value: literal })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reading::signature::PayloadField;

    fn classes() -> Vec<Arc<EventSignature>> {
        let class = |name: &str, fields: &[(&str, bool)]| {
            Arc::new(EventSignature {
                name: name.to_owned(),
                shown: name.to_owned(),
                kernel: false,
                fields: fields
                    .iter()
                    .map(|(name, is_integer)| PayloadField { name: (*name).to_owned(), is_integer: *is_integer })
                    .collect(),
                contexts: vec!["vpid".to_owned()],
            })
        };
        vec![
            class("db:begin", &[("id", true), ("kind", false), ("size", true)]),
            class("db:commit", &[("id", true)]),
            class("db:abort", &[("transaction", true)]),
        ]
    }

    #[test]
    fn tasks_reads_the_example_of_the_contract() {
        let text = r#"
[[task]]
name = "big write"
begin = { event = "db:begin", where = ["kind == \"write\"", "size >= 0x1000"] }
end = ["db:commit", { event = "db:abort", key = ["transaction", "vpid"] }]
key = ["id", "vpid"]
type = "kind"
nest = true

[[task]]
name = "by thread"
begin = "db:begin"
end = "db:commit"
"#;
        let tasks = tasks(text, &classes()).unwrap();
        assert_eq!(tasks.iter().map(|t| t.name.as_str()).collect::<Vec<_>>(), ["big write", "by thread"]);
        let one = &tasks[0];
        assert_eq!((&one.pairing, one.nest, one.kind.as_deref()), (&Pairing::Key, true, Some("kind")));
        assert_eq!(one.begins[0].key, ["id", "vpid"]);
        assert_eq!(one.ends[1].key, ["transaction", "vpid"]);
        let size = Condition { field: "size".into(), op: Op::AtLeast, value: Literal::Number(4096) };
        assert_eq!(one.begins[0].conditions[1], size);
        assert_eq!((&tasks[1].pairing, tasks[1].nest), (&Pairing::Thread, false));
    }

    #[test]
    fn tasks_names_the_line_of_an_error_and_a_remedy() {
        let task = |rest: &str| format!("\n[[task]]\nname = \"t\"\n{rest}");
        for (text, line, part) in [
            (String::new(), 1, "missing field `task`"),
            (task("begin = \"db:begin\"\n"), 3, "task `t` has no end"),
            (task("begin = \"db:begin\"\nend = \"db:end\"\n"), 5, "no event `db:end`"),
            (task("begin = \"db:begin\"\nend = \"db:commit\"\nkye = \"id\"\n"), 6, "kye"),
            (task("begin = \"db:begin\"\nend = \"db:abort\"\nkey = \"id\"\n"), 5, "has no field or context `id`"),
            (task("begin = { event = \"db:begin\", key = \"id\" }\nend = \"db:commit\"\n"), 3, "equally many"),
            (
                task("begin = { event = \"db:begin\", where = \"size ~ 3\" }\nend = \"db:commit\"\n"),
                4,
                "FIELD OP VALUE",
            ),
            (
                task("begin = { event = \"db:begin\", where = \"kind < 'x'\" }\nend = \"db:commit\"\n"),
                4,
                "FIELD OP VALUE",
            ),
            (task("begin = \"db:begin\"\nend = \"db:commit\"\ntype = \"color\"\n"), 6, "`color` to take types from"),
            (
                task(
                    "begin = \"db:begin\"\nend = \"db:commit\"\n\
                     [[task]]\nname = \"t\"\nbegin = \"db:begin\"\nend = \"db:commit\"\n",
                ),
                7,
                "no name for a task",
            ),
            ("x = [".to_owned(), 1, "a task is [[task]]"),
        ] {
            let error = tasks(&text, &classes()).unwrap_err();
            let shown = error.kind.to_string();
            assert!(error.line == line && shown.contains(part) && !shown.contains('\n'), "{text}: {error}");
        }
    }
}
