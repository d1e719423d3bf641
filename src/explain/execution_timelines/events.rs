//! The events on the threads of a path: calls, faults, messages, migrations, signals, requests to disks, wake-ups, work
//! of the kernel, new names, executions that begin and end.
//!
//! In: a timeline with its threads, segments and waits. Out: its events, in order of time, the first
//! [`MOST_EVENTS`] of them. They are those of a thread while the path was in it, or while it waited for a thread of the
//! path. Priorities, frequencies and packets of timers have no event here: they are about a CPU or a host, or show in
//! the states. Cost: linear in these events, in the states of the threads and the requests of all disks meanwhile, and
//! a pass over the delimiting events of the recording.

use super::{Drawing, ThreadWindow};
use crate::base::names::NameId;
use crate::base::time::Span;
use crate::event::{errno, signal};
use crate::model::carrier::Carrier;
use crate::model::execution_timeline::{MOST_EVENTS, TimelineEvent, TimelineEventKind};
use crate::model::wait_kind::WaitKind;
use crate::timeline::questions::Asker;
use crate::timeline::{SegmentKind, ThreadId};

/// Add the events of a timeline that has all else.
pub(super) fn add(drawing: &mut Drawing<'_>) {
    let mut events: Vec<TimelineEvent> = Vec::new();
    for ThreadWindow { thread, span } in &drawing.windows {
        let lane = drawing.lanes.get(thread).copied().unwrap_or(0);
        add_calls(drawing, *thread, *span, lane, &mut events);
        add_faults(drawing, *thread, *span, lane, &mut events);
        add_remarks(drawing, *thread, *span, lane, &mut events);
        add_requests(drawing, *thread, *span, lane, &mut events);
        add_wakeups(drawing, *thread, *span, lane, &mut events);
    }
    add_messages(drawing, &mut events);
    add_migrations(drawing, &mut events);
    add_delimiters(drawing, &mut events);
    events.sort_by(|a, b| (a.at_ns, a.thread, a.kind, &a.name).cmp(&(b.at_ns, b.thread, b.kind, &b.name)));
    // A call that lasts over several windows of its thread is one.
    events.dedup();
    drawing.drawn.events_left_out = events.len().saturating_sub(MOST_EVENTS) as u64;
    events.truncate(MOST_EVENTS);
    drawing.drawn.events = events;
}

/// An event without length.
fn point(at_ns: i64, thread: u32, kind: TimelineEventKind, name: String) -> TimelineEvent {
    TimelineEvent { at_ns, ns: 0, thread, kind, name, result: None, error: None }
}

fn add_calls(drawing: &Drawing<'_>, thread: ThreadId, span: Span, lane: u32, events: &mut Vec<TimelineEvent>) {
    let timeline = drawing.inputs.timeline;
    let reader = timeline.reader(Asker::Explain);
    let mut calls = reader.calls(thread);
    let last = calls.last_begun(span.end.saturating_sub(1));
    let before = std::iter::successors(last, |_| calls.previous_row());
    events.extend(before.take_while(|call| call.span.end > span.start).map(|call| TimelineEvent {
        ns: call.span.len(),
        result: call.ret,
        error: call.ret.and_then(errno::name),
        ..point(
            drawing.since(call.span.start),
            lane,
            TimelineEventKind::Call,
            timeline.names().get(call.name).to_owned(),
        )
    }));
}

fn add_faults(drawing: &Drawing<'_>, thread: ThreadId, span: Span, lane: u32, events: &mut Vec<TimelineEvent>) {
    let reader = drawing.inputs.timeline.reader(Asker::Explain);
    let faults = reader.faults(thread).begun_in(span);
    let fault = |at| point(at, lane, TimelineEventKind::Fault, String::new());
    events.extend(faults.map(|fault| drawing.since(fault.time)).map(fault));
}

/// What events say of the thread beside its states, and its new names.
fn add_remarks(drawing: &Drawing<'_>, id: ThreadId, span: Span, lane: u32, events: &mut Vec<TimelineEvent>) {
    let (timeline, remarks) = (drawing.inputs.timeline, drawing.inputs.remarks);
    events.extend(remarks.works(id, span).map(|work| TimelineEvent {
        ns: work.span.len(),
        ..point(drawing.since(work.span.start), lane, TimelineEventKind::Work, work.work.name().to_owned())
    }));
    let Some(thread) = timeline.thread(id) else { return };
    let name = |id: NameId| timeline.names().get(id).to_owned();
    events.extend(remarks.stop_signals(thread, span).map(|(time, by)| {
        let sender = timeline.thread(by);
        let named = sender.and_then(|sender| Some(format!(", from {} {}", name(sender.name_at(time)?), sender.tid)));
        let text = format!("to stop{}", named.unwrap_or_default());
        point(drawing.since(time), lane, TimelineEventKind::Signal, text)
    }));
    let others = remarks.signals(thread, span);
    events.extend(
        others.map(|(time, number)| point(drawing.since(time), lane, TimelineEventKind::Signal, signal::name(number))),
    );
    let renames = thread.renames_in(span).iter();
    let rename = |at, text| point(at, lane, TimelineEventKind::Rename, text);
    events.extend(renames.map(|renamed| rename(drawing.since(renamed.from), name(renamed.name))));
}

/// The requests to disks that the thread submitted, or had a thread of the kernel submit.
fn add_requests(drawing: &Drawing<'_>, id: ThreadId, span: Span, lane: u32, events: &mut Vec<TimelineEvent>) {
    let reader = drawing.inputs.timeline.reader(Asker::Explain);
    let requests = reader.requests().begun_in(span);
    let own = requests.filter(|request| request.submitter == Some(id) || request.queued_by == Some(id));
    events.extend(own.map(|request| {
        let (way, bytes) = (if request.write { "write" } else { "read" }, request.bytes);
        let name = format!("{way} of {bytes} bytes, disk {}", request.device);
        TimelineEvent {
            ns: request.span.len(),
            ..point(drawing.since(request.span.start), lane, TimelineEventKind::Request, name)
        }
    }));
}

/// The ends of waits that another thread caused. Those for the network are messages.
fn add_wakeups(drawing: &Drawing<'_>, id: ThreadId, span: Span, lane: u32, events: &mut Vec<TimelineEvent>) {
    let timeline = drawing.inputs.timeline;
    let reader = timeline.reader(Asker::Explain);
    let states = reader.segments(id).within(span).filter(|state| state.kind != SegmentKind::Network);
    let woken = states.filter_map(|state| Some((state.span.end, state.waker?)));
    let woken: Vec<_> = woken.filter(|(at, _)| *at > span.start && *at <= span.end).collect();
    events.extend(woken.into_iter().filter_map(|(at, waker)| {
        let thread = timeline.thread(waker.thread)?;
        let name = timeline.names().get(thread.name_at(waker.at)?);
        Some(point(drawing.since(at), lane, TimelineEventKind::Wakeup, format!("{name} {}", thread.tid)))
    }));
}

/// The messages that ended waits.
fn add_messages(drawing: &Drawing<'_>, events: &mut Vec<TimelineEvent>) {
    let carries = |carrier| matches!(carrier, Carrier::Packet | Carrier::Socket | Carrier::Pipe);
    let messages = drawing.drawn.waits.iter().filter(|wait| carries(wait.carrier));
    events.extend(
        messages
            .map(|wait| point(wait.end_ns, wait.waiter, TimelineEventKind::Message, wait.carrier.name().to_owned())),
    );
}

/// A thread that runs on another CPU than when it last ran on the path.
fn add_migrations(drawing: &Drawing<'_>, events: &mut Vec<TimelineEvent>) {
    let mut cpus: Vec<Option<u32>> = vec![None; drawing.drawn.threads.len()];
    let runs = drawing.drawn.segments.iter().filter(|segment| segment.state == WaitKind::Cpu);
    for (segment, cpu) in runs.filter_map(|segment| Some((segment, segment.cpu?))) {
        let Some(last) = cpus.get_mut(segment.thread as usize) else { continue };
        if let Some(before) = last.replace(cpu).filter(|before| *before != cpu) {
            let name = format!("CPU {before} to {cpu}");
            events.push(point(segment.start_ns, segment.thread, TimelineEventKind::Migration, name));
        }
    }
}

/// Executions of the task that begin and end on the threads, those of the execution itself among them.
fn add_delimiters(drawing: &Drawing<'_>, events: &mut Vec<TimelineEvent>) {
    let timeline = drawing.inputs.timeline;
    let end = drawing.origin.saturating_add(drawing.drawn.ns);
    let marks = timeline.reader(Asker::Explain).marks();
    for mark in marks.filter(|mark| mark.task == drawing.inputs.task && mark.time >= drawing.origin && mark.time <= end)
    {
        let lane = mark.thread.and_then(|thread| Some((drawing.lanes.get(&thread).copied()?, thread)));
        let Some((lane, thread)) = lane else { continue };
        // The last moment of a window belongs to it: the execution ends there.
        let within = |window: &ThreadWindow| {
            window.thread == thread && window.span.start <= mark.time && mark.time <= window.span.end
        };
        if drawing.windows.iter().any(within) {
            let kind = if mark.begins { TimelineEventKind::Begin } else { TimelineEventKind::End };
            let name = mark.kind.map_or_else(String::new, |kind| timeline.names().get(kind).to_owned());
            events.push(point(drawing.since(mark.time), lane, kind, name));
        }
    }
}
