//! Two executions as text for people: their timelines and calls on one scale, their events, the longest waits, and the
//! calls of both side by side.
//!
//! In: a model that has the timelines of both, and their alignments. The interface draws the same cells
//! ([`super::lanes`], [`super::stack_chart`]) and rows ([`super::call_rows`]).

use super::call_rows;
use super::lanes::{self, LaneCell, event_text, letter, state_name};
use super::page::{Page, cut};
use super::stack_chart::{self, StackCell};
use crate::base::column_grid::ColumnGrid;
use crate::base::time::Ns;
use crate::base::{clean, figure};
use crate::compare::calls::CallTree;
use crate::compare::calls::aligned::PairedCalls;
use crate::compare::moments::Alignment;
use crate::model::Model;
use crate::model::execution::ExecutionId;
use crate::model::execution_timeline::{
    ExecutionTimeline, TimelineEvent, TimelineEventKind, TimelineWait, event_letters,
};
use crate::model::wait_kind::WaitKind;
use unicode_width::UnicodeWidthStr;

/// Threads drawn of an execution, at most.
const MOST_LANES: usize = 24;
/// Waits listed of an execution, at most.
const MOST_WAITS: usize = 5;
/// Lines of calls drawn of an execution, at most.
const MOST_LINES: usize = 16;
/// Events of an execution described in words, at most.
const MOST_DESCRIBED: usize = 8;
/// Levels by which a row is moved in, at most.
const MOST_INDENT: usize = 24;

/// Two executions: the timeline of each on one scale, and the moments of both.
pub fn executions(model: &Model, aligned: &Alignment, calls: &PairedCalls, page: Page) -> String {
    let mut out = String::new();
    let longest = [aligned.a, aligned.b].map(|e| model.executions.duration(e.index())).into_iter().max().unwrap_or(0);
    for (name, e, tree) in [("a", aligned.a, &calls.trees[0]), ("b", aligned.b, &calls.trees[1])] {
        let i = e.index();
        let who = model.executions.who.get(i).and_then(|w| model.who.get(w.index()));
        let thread = who.map_or("unknown", |w| model.names.get(w.thread));
        let tid = who.map_or(0, |w| w.tid);
        let start = model.executions.start.at(i).since(model.origin);
        let (duration, start) = (figure::time(model.executions.duration(i) as f64), figure::time(start as f64));
        page.wrap(
            &mut out,
            0,
            &format!("{name}: execution {}, {duration}, begins at {start} on {thread} {tid}", e.raw()),
        );
        if let Some(timeline) = model.timelines.get(&e) {
            lanes(timeline, longest, page, &mut out);
            stacks(model, tree, timeline, longest, page, &mut out);
            events(timeline, longest, page, &mut out);
            longest_waits(timeline, page, &mut out);
        }
    }
    page.wrap(&mut out, 0, &legend());
    trees(model, aligned, calls, page, &mut out);
    out
}

/// The letters of all states; waits for another thread are followed to it.
fn legend() -> String {
    let known = WaitKind::ALL.into_iter().filter(|state| *state != WaitKind::Thread);
    let states: Vec<String> = known.map(|state| format!("{} {}", letter(state), state_name(state))).collect();
    let calls = "In lines of calls : is one or more short ones, and blank where no call is known.";
    format!("{}, . waits for another thread shown here. {calls}", states.join(", "))
}

/// Columns of the names of threads, and of the drawing.
fn columns(timeline: &ExecutionTimeline, page: Page) -> (usize, usize) {
    let names = timeline.threads.iter().map(|thread| lanes::thread_name(thread).width());
    let widest = names.chain(["events".len()]).max().unwrap_or(0).min(page.width() / 3);
    (widest, page.width().saturating_sub(widest + 5))
}

/// A line of letters for each thread, over this many nanoseconds.
fn lanes(timeline: &ExecutionTimeline, longest: Ns, page: Page, out: &mut String) {
    let names: Vec<String> = timeline.threads.iter().map(lanes::thread_name).collect();
    let (widest, columns) = columns(timeline, page);
    let cells = lanes::cells(timeline, &(0..longest.max(1)), columns);
    for (name, line) in names.iter().zip(&cells).take(MOST_LANES) {
        let name = cut(name, widest);
        let pad = " ".repeat(widest.saturating_sub(name.width()));
        let symbols: String = line.iter().map(|cell| symbol(*cell)).collect();
        out.push_str(format!("  {name}{pad} |{symbols}").trim_end());
        out.push('\n');
    }
    let more = names.len().saturating_sub(MOST_LANES);
    if more > 0 {
        page.wrap(out, 2, &format!("({} not shown, --json has all)", figure::plural(more as u64, "more thread")));
    }
}

fn symbol(cell: LaneCell) -> char {
    match cell {
        LaneCell::Empty => ' ',
        LaneCell::Waits => '.',
        LaneCell::State(state) => letter(state),
    }
}

/// The longest waits of threads of the path for each other.
fn longest_waits(timeline: &ExecutionTimeline, page: Page, out: &mut String) {
    let mut waits: Vec<&TimelineWait> = timeline.waits.iter().collect();
    waits.sort_by_key(|wait| (wait.start_ns - wait.end_ns, wait.start_ns));
    let name = |thread: u32| timeline.threads.get(thread as usize).map_or_else(String::new, lanes::thread_name);
    for wait in waits.iter().take(MOST_WAITS) {
        let (at, length) = (figure::time(wait.start_ns as f64), figure::time((wait.end_ns - wait.start_ns) as f64));
        let (waiter, other, carrier) = (name(wait.waiter), name(wait.waits_for), wait.carrier.name());
        page.wrap(out, 2, &format!("at {at}, {length}: {waiter} waits for {other} ({carrier})"));
    }
    let more = waits.len().saturating_sub(MOST_WAITS);
    if more > 0 {
        page.wrap(out, 2, &format!("({} not shown, --json has all)", figure::plural(more as u64, "shorter wait")));
    }
}

/// The events of an execution: how many of each kind, and where.
fn events(timeline: &ExecutionTimeline, longest: Ns, page: Page, out: &mut String) {
    if timeline.events.is_empty() {
        return;
    }
    let letters = event_letters(&timeline.events);
    let count = |letter: char| timeline.events.iter().filter(|event| event.letter() == letter).count() as u64;
    let counts = letters.iter().map(|(letter, words)| format!("{letter} {}", figure::plural(count(*letter), words)));
    let left_out = match timeline.events_left_out {
        0 => String::new(),
        n => format!("; {} are left out", figure::plural(n, "later event")),
    };
    let (widest, columns) = columns(timeline, page);
    let grid = ColumnGrid::new(&(0..longest.max(1)), columns);
    let line: String = lanes::event_marks(timeline.events.iter(), &grid).into_iter().collect();
    out.push_str(format!("  {}{} |{line}", "events", " ".repeat(widest.saturating_sub(6))).trim_end());
    out.push('\n');
    page.wrap(out, 2, &format!("{}{left_out}", counts.collect::<Vec<_>>().join(", ")));
    let is_rare = |event: &&TimelineEvent| event.kind != TimelineEventKind::Call && !event.name.is_empty();
    let rare: Vec<&TimelineEvent> = timeline.events.iter().filter(|e| e.has_failed() || is_rare(e)).collect();
    for event in rare.iter().take(MOST_DESCRIBED) {
        page.wrap(out, 2, &format!("at {}: {}", figure::time(event.at_ns as f64), event_text(timeline, event)));
    }
    let more = rare.len().saturating_sub(MOST_DESCRIBED);
    if more > 0 {
        page.wrap(out, 2, &format!("({} not shown, --json has all)", figure::plural(more as u64, "more event")));
    }
}

/// The calls over time, the callers above.
fn stacks(model: &Model, tree: &CallTree, timeline: &ExecutionTimeline, longest: Ns, page: Page, out: &mut String) {
    let (widest, columns) = columns(timeline, page);
    let grid = ColumnGrid::new(&(0..longest.max(1)), columns);
    let (bar, fill, arrow) = if page.is_ascii() { ('|', '-', " > ") } else { ('│', '─', " › ") };
    let lines = tree.lines().len();
    for number in 0..lines.min(MOST_LINES) {
        let cells = stack_chart::cells(tree, number, &grid);
        let mut line = String::new();
        for run in cells.chunk_by(|a, b| a == b && *a != StackCell::Short) {
            match run.first() {
                Some(StackCell::Call(at)) => {
                    let name = clean::line(&stack_chart::label(model, tree, *at)).replace(" › ", arrow);
                    let name = cut(&name, run.len() - 1).to_string();
                    line.push(bar);
                    line.push_str(&name);
                    line.extend(std::iter::repeat_n(fill, (run.len() - 1).saturating_sub(name.width())));
                }
                Some(StackCell::Short) => line.push(':'),
                Some(StackCell::Empty) | None => line.extend(std::iter::repeat_n(' ', run.len())),
            }
        }
        let name = if number == 0 { "calls" } else { "" };
        out.push_str(format!("  {name:widest$}  {line}").trim_end());
        out.push('\n');
    }
    let more = lines.saturating_sub(MOST_LINES);
    if more > 0 {
        page.wrap(out, 2, &format!("({} not shown, --json has all)", figure::plural(more as u64, "deeper line")));
    }
    if let Some(deepest) = tree.deepest {
        page.wrap(out, 2, &format!("(calls more than {deepest} levels deep are left out: there are too many)"));
    }
}

/// The calls of both side by side. Those that are short in both are merged.
fn trees(model: &Model, aligned: &Alignment, calls: &PairedCalls, page: Page, out: &mut String) {
    out.push('\n');
    page.wrap(
        out,
        0,
        "Calls of both, aligned: a call that only one has, has no time in the other; repeats are one row.",
    );
    if calls.coarse > 0 {
        let long = figure::plural(calls.coarse as u64, "sequence");
        page.wrap(out, 0, &format!("{long} of calls are too long to be aligned, and are paired from the left."));
    }
    out.push_str("     a at         a      b at         b     a - b  call\n");
    let whole = |e: ExecutionId| model.executions.duration(e.index());
    let least = (whole(aligned.a).max(whole(aligned.b)) / 200).max(1);
    let is_long = |at: u32| {
        let row = calls.rows.get(at as usize);
        row.is_some_and(|row| !row.is_run() && [row.a, row.b].into_iter().flatten().any(|calls| calls.ns >= least))
    };
    let arrow = if page.is_ascii() { " > " } else { " › " };
    for shown in call_rows::shown(calls, least, is_long) {
        let row = calls.rows.get(shown.first as usize);
        let at = |of: usize| {
            let start = row.and_then(|row| row.calls(of)).filter(|_| shown.short == 0).map(|calls| calls.start_ns);
            start.map_or_else(String::new, |start| figure::time(start as f64))
        };
        let time = |ns: Ns| if ns == 0 { "-".to_owned() } else { figure::time(ns as f64) };
        let mut name = clean::line(&call_rows::label(model, calls, &shown)).replace(" › ", arrow);
        if page.is_ascii() {
            name = name.replace('×', "x");
        }
        let line = format!(
            "{:>9} {:>9} {:>9} {:>9} {:>9}  {}{name}",
            at(0),
            time(shown.a_ns),
            at(1),
            time(shown.b_ns),
            figure::time((shown.a_ns - shown.b_ns) as f64),
            " ".repeat(shown.level.min(MOST_INDENT)),
        );
        out.push_str(cut(&line, page.width()).trim_end());
        out.push('\n');
    }
}
