//! Two executions as text for people: their timelines on one scale, the longest waits, and all moments side by side.
//!
//! In: a model that has the timelines of both, and their alignment. The interface draws the same cells
//! ([`super::lanes`]).

use super::lanes::{self, LaneCell, letter, state_name};
use super::page::{Page, cut};
use super::words;
use crate::base::demangle::abbreviated;
use crate::base::time::Ns;
use crate::base::{clean, figure};
use crate::compare::moments::{Alignment, ExecutionPart, Moment};
use crate::model::Model;
use crate::model::execution::ExecutionId;
use crate::model::execution_timeline::{ExecutionTimeline, TimelineWait};
use crate::model::wait_kind::WaitKind;
use unicode_width::UnicodeWidthStr;

/// Threads drawn of an execution, at most.
const MOST_LANES: usize = 24;
/// Waits listed of an execution, at most.
const MOST_WAITS: usize = 5;

/// Two executions: the timeline of each on one scale, and the moments of both.
pub fn executions(model: &Model, aligned: &Alignment, page: Page) -> String {
    let mut out = String::new();
    let longest = [aligned.a, aligned.b].map(|e| model.executions.duration(e.index())).into_iter().max().unwrap_or(0);
    for (name, e) in [("a", aligned.a), ("b", aligned.b)] {
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
            longest_waits(timeline, page, &mut out);
        }
    }
    page.wrap(&mut out, 0, &legend());
    moments(model, aligned, page, &mut out);
    out
}

/// The letters of all states; waits for another thread are followed to it.
fn legend() -> String {
    let known = WaitKind::ALL.into_iter().filter(|state| *state != WaitKind::Thread);
    let states: Vec<String> = known.map(|state| format!("{} {}", letter(state), state_name(state))).collect();
    format!("{}, . waits for another thread shown here", states.join(", "))
}

/// A line of letters for each thread, over this many nanoseconds.
fn lanes(timeline: &ExecutionTimeline, longest: Ns, page: Page, out: &mut String) {
    let names: Vec<String> = timeline.threads.iter().map(lanes::thread_name).collect();
    let widest = names.iter().map(|name| name.width()).max().unwrap_or(0).min(page.width() / 3);
    let columns = page.width().saturating_sub(widest + 5);
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

/// When and for how long each was in a call path, and the difference. Moments that are short in both are merged.
fn moments(model: &Model, aligned: &Alignment, page: Page, out: &mut String) {
    if let Some(depth) = aligned.depth {
        page.wrap(out, 0, &format!("Call paths are cut after {} frames, to limit the number of rows.", depth + 1));
    }
    out.push('\n');
    out.push_str("     a at         a      b at         b     a - b  where\n");
    let whole = |e: ExecutionId| model.executions.duration(e.index());
    let least = whole(aligned.a).max(whole(aligned.b)) / 200;
    let shows = |m: &&Moment| m.a.into_iter().chain(m.b).any(|p| p.ns >= least.max(1));
    let mut rest = (0_usize, 0_i64, 0_i64);
    let flush = |rest: &mut (usize, i64, i64), out: &mut String| {
        let (n, a, b) = std::mem::take(rest);
        if n > 0 {
            let (a, b, delta) = (figure::time(a as f64), figure::time(b as f64), figure::time((a - b) as f64));
            let moments = figure::plural(n as u64, "short moment");
            let line = format!("{:>9} {a:>9} {:>9} {b:>9} {delta:>9}  {moments}", "", "");
            out.push_str(cut(&line, page.width()).trim_end());
            out.push('\n');
        }
    };
    for moment in &aligned.moments {
        if !shows(&moment) {
            rest = (rest.0 + 1, rest.1 + moment.a.map_or(0, |p| p.ns), rest.2 + moment.b.map_or(0, |p| p.ns));
            continue;
        }
        flush(&mut rest, out);
        let time = |p: Option<ExecutionPart>, of: fn(ExecutionPart) -> i64| {
            p.map_or_else(|| "-".into(), |p| figure::time(of(p) as f64))
        };
        let path = model.contexts.path(moment.context);
        let arrow = if page.is_ascii() { " > " } else { " › " };
        // The end of the path says most; all paths begin alike.
        let shown = &path[path.len().saturating_sub(3)..];
        let place: Vec<String> = shown.iter().map(|c| clean::line(&abbreviated(&words::frame(model, *c)))).collect();
        let line = format!(
            "{:>9} {:>9} {:>9} {:>9} {:>9}  {}",
            time(moment.a, |p| p.start_ns),
            time(moment.a, |p| p.ns),
            time(moment.b, |p| p.start_ns),
            time(moment.b, |p| p.ns),
            figure::time(moment.delta_ns() as f64),
            place.join(arrow)
        );
        out.push_str(cut(&line, page.width()).trim_end());
        out.push('\n');
    }
    flush(&mut rest, out);
}
