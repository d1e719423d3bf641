//! Tasks declared in a file (`--tasks FILE.toml`): any events, with conditions on their fields, paired by any keys.
//!
//! In: the text of a TOML file and the record classes of the traces. Out: definitions in the order of the file, every
//! event and field of them known to exist, or one line that names the line of the file and what to do. The format
//! stands in PRODUCT.md ("Tasks declared in a file"); ALGORITHMS.md section 6.1.

use super::tasks::ClassFace;
use crate::base::op::Op;
use crate::event::derived::{Derived, Turn};
use crate::event::task::{Condition, Delimiter, Literal, Pairing, TaskDefinition};
use foldhash::{HashMap, HashSet};
use serde::Deserialize;
use toml::{Spanned, Value};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    task: Vec<Typed>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Typed {
    name: Spanned<String>,
    // Places are lost inside of alternatives, so these are told apart by hand.
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

/// An event with what it must hold and a key of its own.
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

/// Why a file declares no tasks: the line, what is wrong there and what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{line}: {what}")]
pub struct DeclaredError {
    /// Line of the file, from 1.
    pub line: usize,
    /// What is wrong, and what to do.
    pub what: String,
}

/// The tasks that `text` declares.
pub fn tasks(text: &str, classes: &[ClassFace]) -> Result<Vec<TaskDefinition>, DeclaredError> {
    let wrong = |at: usize, what: String| {
        let line = text.get(..at).map_or(1, |before| before.matches('\n').count() + 1);
        DeclaredError { line, what }
    };
    let file: File = toml::from_str(text).map_err(|e| {
        let what = e.message().replace('\n', " ");
        let remedy = "a task is [[task]] with name, begin, end, and perhaps key, type, nest; \
            or with name, wait, and perhaps thread";
        wrong(e.span().map_or(0, |s| s.start), format!("{what}; {remedy}"))
    })?;
    let mut by_name: Classes<'_> = HashMap::default();
    for class in classes {
        by_name.entry(&class.name).or_default().push(class);
        if class.shown != class.name {
            by_name.entry(&class.shown).or_default().push(class);
        }
    }
    let classes = &by_name;
    let mut tasks: Vec<TaskDefinition> = Vec::new();
    let mut names = HashSet::default();
    for typed in file.task {
        let at = typed.name.span().start;
        let name = typed.name.get_ref().clone();
        if name.is_empty() || name.contains('=') || !names.insert(name.clone()) {
            return Err(wrong(at, format!("`{name}` is no name for a task: give each its own, without `=`")));
        }
        if let Some(turn) = turn(&typed).map_err(|(at, what)| wrong(at, what))? {
            tasks.push(TaskDefinition::derived(name, Derived::Turn(turn)));
            continue;
        }
        let missing = |side: &str| wrong(at, format!("task `{name}` has no {side}: give it begin and end, or wait"));
        let (begin, end) = (typed.begin.ok_or_else(|| missing("begin"))?, typed.end.ok_or_else(|| missing("end"))?);
        let key = typed.key.map(Texts::list).unwrap_or_default();
        let sides = |sides: Spanned<Value>| -> Result<Vec<Delimiter>, DeclaredError> {
            let at = sides.span().start;
            let list = match sides.into_inner() {
                Value::Array(list) => list,
                one => vec![one],
            };
            let side = |side| delimiter(side, &key, classes).map_err(|what| wrong(at, what));
            list.into_iter().map(side).collect()
        };
        let (begins, ends) = (sides(begin)?, sides(end)?);
        let width = begins.first().map_or(0, |d| d.key.len());
        if begins.is_empty() || ends.is_empty() || begins.iter().chain(&ends).any(|d| d.key.len() != width) {
            let what = format!("task `{name}`: begin and end need an event each, and keys of equally many fields");
            return Err(wrong(at, what));
        }
        if let Some(kind) = &typed.kind {
            let has = |d: &Delimiter| has_field(classes, &d.event, kind.get_ref());
            if !begins.iter().chain(&ends).any(has) {
                let what = format!("no event of task `{name}` has a field `{}` to tell types by", kind.get_ref());
                return Err(wrong(kind.span().start, what));
            }
        }
        tasks.push(TaskDefinition {
            name,
            begins,
            ends,
            pairing: if width > 0 { Pairing::Key } else { Pairing::Thread },
            kind: typed.kind.map(Spanned::into_inner),
            nest: typed.nest,
        });
    }
    if tasks.is_empty() {
        return Err(wrong(0, "no task is declared; write [[task]] with name, begin and end".to_owned()));
    }
    Ok(tasks)
}

/// The waits that delimit a task; the error is a place and what is wrong there.
fn turn(typed: &Typed) -> Result<Option<Turn>, (usize, String)> {
    let Some(wait) = &typed.wait else {
        let alone =
            typed.thread.as_ref().map(|t| (t.span().start, "`thread` goes with `wait`: say where it waits".into()));
        return alone.map_or(Ok(None), Err);
    };
    if typed.begin.is_some() || typed.end.is_some() || typed.key.is_some() || typed.kind.is_some() || typed.nest {
        let what = "`wait` delimits the task by itself: leave begin, end, key, type and nest out".to_owned();
        return Err((wait.span().start, what));
    }
    if wait.get_ref().is_empty() {
        return Err((wait.span().start, "`wait` names a system call or a function".to_owned()));
    }
    let thread = typed.thread.as_ref().map(|thread| thread.get_ref().clone());
    Ok(Some(Turn { call: wait.get_ref().clone(), thread }))
}

/// Record classes by the name of their event.
type Classes<'a> = HashMap<&'a str, Vec<&'a ClassFace>>;

fn has_field(classes: &Classes<'_>, event: &str, field: &str) -> bool {
    let mut of_event = classes.get(event).into_iter().flatten();
    of_event.any(|c| c.fields.iter().any(|(name, _)| name == field) || c.contexts.iter().any(|name| name == field))
}

/// One side of a task. The error says what is wrong with it.
fn delimiter(side: Value, key: &[String], classes: &Classes<'_>) -> Result<Delimiter, String> {
    let Side { event, conditions, key: own } = match side {
        Value::String(event) => Side { event, conditions: None, key: None },
        table => table.try_into().map_err(|e: toml::de::Error| {
            let what = e.message().replace('\n', " ");
            format!(
                "{what}; write an event's name, or {{ event = \"NAME\", where = \"FIELD OP VALUE\", key = \"FIELD\" }}"
            )
        })?,
    };
    let Some(class) = classes.get(event.as_str()).and_then(|all| all.first()) else {
        return Err(format!(
            "the trace has no event `{event}`; `whyslow info` counts its events, `stats count` lists them"
        ));
    };
    let event = class.name.clone();
    let key = own.map_or_else(|| key.to_vec(), Texts::list);
    let conditions = conditions.map(Texts::list).unwrap_or_default();
    let conditions: Vec<Condition> = conditions.iter().map(|c| condition(c)).collect::<Result<_, _>>()?;
    for field in key.iter().chain(conditions.iter().map(|c| &c.field)) {
        if !has_field(classes, &event, field) {
            let fields: Vec<&str> = classes
                .get(event.as_str())
                .into_iter()
                .flatten()
                .flat_map(|c| c.fields.iter().map(|(name, _)| name).chain(&c.contexts))
                .map(String::as_str)
                .collect();
            return Err(format!("event `{event}` has no field or context `{field}`; it has {}", fields.join(", ")));
        }
    }
    Ok(Delimiter { event, key, conditions })
}

/// `FIELD OP VALUE`: a whole number or a text in quotes.
fn condition(text: &str) -> Result<Condition, String> {
    let remedy = "write FIELD OP VALUE with < <= > >= == !=, a whole number or a text in quotes";
    let wrong = || format!("condition `{text}` is not understood: {remedy}");
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

    fn classes() -> Vec<ClassFace> {
        let class = |name: &str, fields: &[(&str, bool)]| ClassFace {
            name: name.to_owned(),
            shown: name.to_owned(),
            kernel: false,
            fields: fields.iter().map(|(n, i)| ((*n).to_owned(), *i)).collect(),
            contexts: vec!["vpid".to_owned()],
        };
        vec![
            class("db:begin", &[("id", true), ("kind", false), ("size", true)]),
            class("db:commit", &[("id", true)]),
            class("db:abort", &[("transaction", true)]),
        ]
    }

    #[test]
    fn the_example_of_the_contract() {
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
    fn what_is_wrong_names_its_line_and_a_remedy() {
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
            (task("begin = \"db:begin\"\nend = \"db:commit\"\ntype = \"color\"\n"), 6, "`color` to tell types by"),
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
            let said = tasks(&text, &classes()).unwrap_err();
            assert!(said.line == line && said.what.contains(part) && !said.what.contains('\n'), "{text}: {said}");
        }
    }
}
