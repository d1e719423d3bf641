//! The text below a timeline: the segment under the cursor, its stack, the reason, events, and who else was there.

use super::state::LoadedTimelines;
use crate::base::figure;
use crate::model::carrier::Carrier;
use crate::model::execution_timeline::{ExecutionTimeline, TimelineEvent, TimelineEventKind, TimelineSegment};
use crate::model::wait_kind::WaitKind;
use crate::tui::canvas::{width, wrap};
use crate::tui::theme::StyleScope;
use crate::tui::widget::page::{StyledLine, paragraph, plain};
use crate::view::lanes::{letter, state_name, thread_name};
use crate::view::words;

/// Lines of a stack, at most.
const STACK_LINES: usize = 3;
/// Calls named of a segment, at most.
const CALLS: usize = 5;

/// Its lines in this width.
pub fn lines(loaded: &LoadedTimelines, columns: usize) -> Vec<StyledLine> {
    let Some((timeline, segment)) = loaded.here() else { return Vec::new() };
    let mut lines = vec![first(timeline, segment)];
    lines.extend(stack(loaded, segment, columns));
    lines.extend(reasons(timeline, segment).iter().flat_map(|text| paragraph(StyleScope::Text, text, columns, 2)));
    if loaded.events {
        lines.extend(paragraph(StyleScope::Dim, &events(timeline, segment), columns, 2));
    }
    if let Some(concurrent) = &loaded.concurrent {
        lines.extend(concurrent.lines(columns));
    }
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
        let result = e.result.map_or_else(String::new, |result| format!(" = {result}"));
        format!("{} {}{result}", e.name, figure::time(e.ns as f64))
    };
    let named: Vec<String> = calls.iter().take(CALLS).map(call).collect();
    let more = calls.len().saturating_sub(CALLS);
    let mut parts = Vec::new();
    if !named.is_empty() {
        let more = if more > 0 { format!(" and {more} shorter ones") } else { String::new() };
        parts.push(format!("calls: {}{more}", named.join(", ")));
    }
    for (kind, word) in [(TimelineEventKind::Fault, "page fault"), (TimelineEventKind::Message, "message")] {
        if count(kind) > 0 {
            parts.push(figure::plural(count(kind), word));
        }
    }
    if timeline.events_left_out > 0 {
        parts.push(format!("{} later events are left out", figure::count(timeline.events_left_out)));
    }
    if parts.is_empty() { "no calls, faults or messages here".to_owned() } else { parts.join("; ") }
}

/// The letters of the states that occur, for the last line.
pub fn legend(loaded: &LoadedTimelines, columns: usize) -> StyledLine {
    let segments = (0..2).filter_map(|at| loaded.timeline(at)).flat_map(|timeline| &timeline.segments);
    let mut states: Vec<WaitKind> = segments.map(|segment| segment.state).collect();
    states.sort_unstable();
    states.dedup();
    let mut text = String::new();
    for state in states {
        let next = format!("{} {}  ", letter(state), state_name(state));
        if width(&text) + width(&next) > columns {
            break;
        }
        text += &next;
    }
    let waits = "┄ waits for another thread";
    if width(&text) + width(waits) <= columns {
        text += waits;
    }
    plain(StyleScope::Dim, text.trim_end())
}
