//! The questions of a user and their answers: paths, patterns, and unknown spans.

use super::*;
use whyslow::parts::state::history::builder::HistoryBuilder;
use whyslow::parts::state::history::lines::{HistoryLine, Longest, Time};
use whyslow::parts::state::history::{History, Shown};

const STATES: &[&str] = &["running", "blocked"];

/// One chunk: intervals of some paths.
fn chunk(said: &[(&str, Ns, Ns, Result<u16, &str>)]) -> HistoryBuilder {
    let mut chunk = HistoryBuilder::new(STATES);
    let mut run = Run::default();
    for (path, start, end, value) in said {
        let attribute = chunk.attributes.path(path);
        let value = match value {
            Ok(code) => StateValue::Code(*code),
            Err(text) => StateValue::Text(chunk.texts.intern(text)),
        };
        run.push(attribute, span(*start, *end), value);
    }
    chunk.push(run);
    chunk
}

fn seal(chunks: impl IntoIterator<Item = HistoryBuilder>) -> History {
    let mut all = HistoryBuilder::new(STATES);
    for chunk in chunks {
        all.append(chunk);
    }
    all.seal(span(0, 100), Shape::default(), &Ctx::new(2)).unwrap()
}

fn first() -> HistoryBuilder {
    chunk(&[
        ("threads/7/state", 10, 20, Ok(0)),
        ("threads/7/name", 5, 90, Err("zsh")),
        ("threads/7/state", 20, 30, Ok(1)),
    ])
}

fn second() -> HistoryBuilder {
    chunk(&[("cpus/0/thread", 0, 50, Ok(1)), ("threads/12/state", 35, 40, Ok(1)), ("threads/7/state", 60, 70, Ok(0))])
}

fn show(history: &History, lines: &[HistoryLine]) -> Vec<String> {
    let held = |held: &whyslow::parts::state::history::lines::Held| {
        let value = held.value.map_or("?".to_owned(), |value| match history.show(value) {
            Shown::Text(text) => text.to_owned(),
            Shown::Number(n) => n.to_string(),
        });
        format!("{}..{} {value}", held.span.start, held.span.end)
    };
    let line = |line: &HistoryLine| {
        let held: Vec<_> = line.held.iter().map(held).collect();
        format!("{}: {}", history.attributes.path_of(line.attribute), held.join(", "))
    };
    lines.iter().map(line).collect()
}

fn ask(history: &History, pattern: &str, time: Time) -> Vec<String> {
    show(history, &history.lines(pattern, &time, &Cancel::default()).unwrap())
}

#[test]
fn ranges_show_known_and_unknown_spans() {
    let history = seal([first(), second()]);
    let whole = Time::Range(span(0, 100));
    assert_eq!(
        ask(&history, "threads/*/state", whole.clone()),
        [
            "threads/7/state: 0..10 ?, 10..20 running, 20..30 blocked, 30..60 ?, 60..70 running, 70..100 ?",
            "threads/12/state: 0..35 ?, 35..40 blocked, 40..100 ?",
        ]
    );
    assert_eq!(ask(&history, "threads/7/name", Time::Range(span(40, 50))), ["threads/7/name: 5..90 zsh"]);
    assert_eq!(ask(&history, "threads/7/state", Time::Range(span(40, 50))), ["threads/7/state: 30..60 ?"]);
    assert_eq!(ask(&history, "threads", whole.clone()), ["threads: 0..100 ?"]);
    assert_eq!(ask(&history, "threads/8/state", whole), [""; 0]);
}

#[test]
fn instants_and_points_list_each_span_once() {
    let history = seal([first(), second()]);
    let at = |times: Vec<Ns>| {
        ask(&history, "threads/7/state", Time::Instants(times.into_iter().map(Timestamp::new).collect()))
    };
    assert_eq!(at(vec![45]), ["threads/7/state: 30..60 ?"]);
    assert_eq!(at(vec![19, 12, 25, 10]), ["threads/7/state: 10..20 running, 20..30 blocked"]);
    assert_eq!(
        ask(&history, "threads/7/state", Time::Points(span(0, 100), 4)),
        ["threads/7/state: 0..25 running, 25..50 blocked, 50..75 running, 75..100 ?"]
    );
    assert_eq!(ask(&history, "threads/12/state", Time::Points(span(0, 100), 0)), ["threads/12/state: "]);
    assert_eq!(ask(&history, "threads/7/name", Time::Points(span(0, 100), 2)), ["threads/7/name: 0..5 ?, 5..90 zsh"]);
}

#[test]
fn longest_lists_the_longest_first() {
    let history = seal([first(), second()]);
    let longest =
        |count| ask(&history, "threads/*/state", Time::Longest(Longest { span: span(15, 100), count, value: None }));
    assert_eq!(longest(2), ["threads/7/state: 60..70 running", "threads/7/state: 20..30 blocked"]);
    assert_eq!(longest(9).last().unwrap(), "threads/12/state: 35..40 blocked");
}

#[test]
fn history_does_not_depend_on_the_order_of_chunks() {
    let (one, two) = (seal([first(), second()]), seal([second(), first()]));
    assert_eq!(one.tree(), two.tree());
    let mut nested = HistoryBuilder::new(STATES);
    nested.append(second());
    nested.append(first());
    let three = seal([nested]);
    assert_eq!(one.tree(), three.tree());
    let paths =
        |history: &History| history.attributes.ids().map(|id| history.attributes.path_of(id)).collect::<Vec<_>>();
    assert_eq!(paths(&one), paths(&three));
}
