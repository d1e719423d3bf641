//! The text below a timeline: the segment under the cursor, its stack, the reason, events, and who else was there.

use super::state::LoadedTimelines;
use super::trees;
use crate::base::figure;
use crate::base::time::Ns;
use crate::compare::calls::PathCall;
use crate::model::carrier::Carrier;
use crate::model::execution_timeline::{ExecutionTimeline, TimelineEvent, TimelineEventKind, TimelineSegment};
use crate::model::wait_kind::WaitKind;
use crate::tui::canvas::{width, wrap};
use crate::tui::theme::StyleScope;
use crate::tui::widget::page::{StyledLine, paragraph, plain};
use crate::view::lanes::{event_text, letter, state_name, thread_name};
use crate::view::words;

/// Lines of a stack, at most.
const STACK_LINES: usize = 3;
/// Lines of a call's name, at most.
const NAME_LINES: usize = 2;
/// Calls named of a segment, at most.
const CALLS: usize = 5;

/// Its lines in this width; `names` are those of the executions.
pub fn lines(loaded: &LoadedTimelines, names: &[String; 2], columns: usize) -> Vec<StyledLine> {
    let Some((timeline, segment)) = loaded.here() else { return Vec::new() };
    if let Some(trees) = &loaded.trees {
        return trees::text(loaded, trees, names, columns);
    }
    let mut lines = Vec::new();
    if let Some((number, event)) = loaded.event_here() {
        let of = figure::count(timeline.events.len() as u64);
        let (at, text) = (figure::time(event.at_ns as f64), event_text(timeline, event));
        let text = format!("{} event {number} of {of}, at {at}: {text}", event.letter());
        lines.extend(paragraph(StyleScope::Strong, &text, columns, 2));
    }
    match loaded.call_here() {
        Some((at, call)) => {
            lines.extend(call_lines(loaded, names, (at, call), columns));
            lines.push(first(timeline, segment));
        }
        None => {
            lines.push(first(timeline, segment));
            lines.extend(stack(loaded, segment, columns));
        }
    }
    lines.extend(reasons(timeline, segment).iter().flat_map(|text| paragraph(StyleScope::Text, text, columns, 2)));
    if loaded.events {
        lines.extend(paragraph(StyleScope::Dim, &events(timeline, segment), columns, 2));
    }
    if let Some(concurrent) = &loaded.concurrent {
        lines.extend(concurrent.lines(columns));
    }
    lines
}

/// The call under the cursor: its name in full, its time and share, that of all calls of it, and of its partner.
fn call_lines(
    loaded: &LoadedTimelines,
    names: &[String; 2],
    (at, call): (u32, &PathCall),
    columns: usize,
) -> Vec<StyledLine> {
    let tree = loaded.tree(loaded.front);
    let whole = loaded.timeline(loaded.front).map_or(1, |timeline| timeline.ns.max(1));
    let share = |ns: Ns| figure::share(ns as f64 / whole as f64);
    // The calls above it on the line share its drawing.
    let line = tree.lines().get(tree.line_of(call.level as usize)).map_or(0, |levels| levels.start);
    let up = std::iter::successors(Some(call), |call| tree.call(call.parent?));
    let up = up.take_while(|call| call.level as usize >= line);
    let mut names_of_line: Vec<String> = up.map(|call| words::frame(&loaded.model, call.context)).collect();
    names_of_line.reverse();
    let mut lines = paragraph(StyleScope::Strong, &names_of_line.join(" › "), columns, 2);
    if lines.len() > NAME_LINES {
        // The last name says most.
        lines = paragraph(StyleScope::Strong, &words::frame(&loaded.model, call.context), columns, 2);
        lines.truncate(NAME_LINES);
    }
    let time = |ns: Ns| figure::time(ns as f64);
    let (ns, own) = (call.ns, tree.own_ns(at));
    let mut text =
        format!("{}, {} of this execution, at {}; itself {}", time(ns), share(ns), time(call.start_ns), time(own));
    let alike = tree.level(call.level as usize).iter().filter_map(|at| tree.call(*at));
    let alike = alike.filter(|other| other.context == call.context);
    let (count, sum) = alike.fold((0_u64, 0), |(count, sum), other| (count + 1, sum + other.ns));
    if count > 1 {
        text += &format!("; {} calls of it here: {}, {}", figure::count(count), time(sum), share(sum));
    }
    let other = 1 - loaded.front.min(1);
    if let Some(timeline) = loaded.timeline(other).filter(|timeline| !timeline.segments.is_empty()) {
        let partner = loaded.calls.partner(loaded.front, at).and_then(|at| loaded.tree(other).call(at));
        let name = &names[other];
        text += &match partner {
            Some(partner) => {
                let share = figure::share(partner.ns as f64 / timeline.ns.max(1) as f64);
                format!("; in {name} {} ({share})", time(partner.ns))
            }
            None => format!("; {name} does not have it"),
        };
    }
    lines.extend(paragraph(StyleScope::Text, &text, columns, 2));
    lines
}

/// When, for how long, which thread in which state.
fn first(timeline: &ExecutionTimeline, segment: &TimelineSegment) -> StyledLine {
    let thread = timeline.threads.get(segment.thread as usize).map_or_else(String::new, thread_name);
    let cpu = segment.cpu.map_or_else(String::new, |cpu| format!(" (CPU {cpu})"));
    vec![
        (StyleScope::Strong, thread),
        (StyleScope::Text, format!("  {} {}{cpu}", letter(segment.state), state_name(segment.state))),
        (StyleScope::Dim, "  at ".into()),
        (StyleScope::Strong, figure::time(segment.start_ns as f64)),
        (StyleScope::Dim, "  for ".into()),
        (StyleScope::Strong, figure::time(segment.ns as f64)),
        (StyleScope::Dim, format!(" of {}", figure::time(timeline.ns as f64))),
    ]
}

/// The calling context, of which the end says most.
fn stack(loaded: &LoadedTimelines, segment: &TimelineSegment, columns: usize) -> Vec<StyledLine> {
    let path = loaded.model.contexts.path(segment.context);
    let frames: Vec<String> = path.into_iter().map(|context| words::frame(&loaded.model, context)).collect();
    let fits = |text: &str| wrap(text, columns).len() <= STACK_LINES;
    let mut first = 0;
    let mut text = frames.join(" › ");
    while !fits(&text) && first + 1 < frames.len() {
        first += 1;
        text = format!("… › {}", frames.get(first..).unwrap_or_default().join(" › "));
    }
    paragraph(StyleScope::Text, &text, columns, 0).into_iter().take(STACK_LINES).collect()
}

/// Why the path is in this thread, and how the segment began.
fn reasons(timeline: &ExecutionTimeline, segment: &TimelineSegment) -> Vec<String> {
    let name = |thread: u32| timeline.threads.get(thread as usize).map_or_else(String::new, thread_name);
    let mut reasons = Vec::new();
    if let Some(wait) = timeline.waiting_for(segment.thread, segment.start_ns) {
        let length = figure::time((wait.end_ns - wait.start_ns) as f64);
        let (waiter, until) = (name(wait.waiter), figure::time(wait.end_ns as f64));
        let carrier = match wait.carrier {
            Carrier::Lock => "lock, which it held",
            other => carrier_words(other),
        };
        reasons.push(format!("{waiter} waits for it until {until}, {length} in all ({carrier})"));
    }
    if let Some(wait) = timeline.woken_at(segment.thread, segment.start_ns) {
        let length = figure::time((wait.end_ns - wait.start_ns) as f64);
        let (waker, carrier) = (name(wait.waits_for), carrier_words(wait.carrier));
        reasons.push(format!("{waker} woke it after a wait of {length} ({carrier})"));
    }
    if segment.state == WaitKind::UnknownState {
        reasons.push("the recording does not show whether it ran or waited".to_owned());
    }
    reasons
}

fn carrier_words(carrier: Carrier) -> &'static str {
    match carrier {
        Carrier::Wakeup => "wake-up",
        Carrier::SoftIrq => "soft interrupt",
        Carrier::FlowControl => "flow control",
        other => other.name(),
    }
}

/// The calls, faults and messages during a segment.
fn events(timeline: &ExecutionTimeline, segment: &TimelineSegment) -> String {
    let meets = |e: &&TimelineEvent| {
        e.thread == segment.thread
            && e.at_ns < segment.end_ns()
            && (e.at_ns >= segment.start_ns || e.at_ns + e.ns > segment.start_ns)
    };
    let inside: Vec<&TimelineEvent> = timeline.events.iter().filter(meets).collect();
    let count = |kind| inside.iter().filter(|e| e.kind == kind).count() as u64;
    let mut calls: Vec<&TimelineEvent> = inside.iter().copied().filter(|e| e.kind == TimelineEventKind::Call).collect();
    calls.sort_by_key(|e| (std::cmp::Reverse(e.ns), e.at_ns));
    let call = |e: &&TimelineEvent| {
        let result = e.error.clone().or_else(|| e.result.map(|result| result.to_string()));
        let result = result.map_or_else(String::new, |result| format!(" = {result}"));
        format!("{} {}{result}", e.name, figure::time(e.ns as f64))
    };
    let named: Vec<String> = calls.iter().take(CALLS).map(call).collect();
    let more = calls.len().saturating_sub(CALLS);
    let mut parts = Vec::new();
    if !named.is_empty() {
        let more = if more > 0 { format!(" and {more} shorter ones") } else { String::new() };
        parts.push(format!("calls: {}{more}", named.join(", ")));
    }
    for kind in TimelineEventKind::ALL.into_iter().filter(|kind| *kind != TimelineEventKind::Call) {
        if count(kind) > 0 {
            parts.push(figure::plural(count(kind), kind.words()));
        }
    }
    if timeline.events_left_out > 0 {
        parts.push(format!("{} later events are left out", figure::count(timeline.events_left_out)));
    }
    if parts.is_empty() { "no events here".to_owned() } else { parts.join("; ") }
}

/// The letters of the events that are marked, where they are, and those of the states that occur.
pub fn legends(loaded: &LoadedTimelines, columns: usize) -> Vec<StyledLine> {
    let mut legends = Vec::new();
    if loaded.events && !loaded.letters.is_empty() {
        let letters = loaded.letters.iter().map(|(letter, words)| format!("{letter} {words}"));
        legends.push(listed(letters.chain(["+ several".to_owned()]), columns));
    }
    let states = loaded.states.iter().map(|state| format!("{} {}", letter(*state), state_name(*state)));
    let others = ["┄ waits for another thread", "· short calls"].map(str::to_owned);
    let cut = (0..2).find_map(|at| loaded.tree(at).deepest);
    let cut = cut.map(|level| format!("too many calls: those below level {level} are left out"));
    legends.push(listed(cut.into_iter().chain(states).chain(others), columns));
    legends
}

/// Items in one line, as many as fit.
fn listed(items: impl Iterator<Item = String>, columns: usize) -> StyledLine {
    let mut text = String::new();
    for item in items.take_while(|item| width(item) <= columns) {
        if width(&text) + width(&item) > columns {
            break;
        }
        text += &item;
        text += "  ";
    }
    plain(StyleScope::Dim, text.trim_end())
}
