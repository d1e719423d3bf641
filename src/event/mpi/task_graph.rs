//! Task graphs that regions carry as attributes: a task, and the task that made it (APEX: `GUID`, `Parent GUID`).
//!
//! In: regions with these attributes. Out: a wait for work of each thread before each of its tasks, and a message that
//! ends it: from the thread that ran the same task before (it migrated), else from the thread of the task that made it.
//! When a task was made is not recorded, but not after its maker ended; a thread that had nothing to do until then
//! waited for the maker. Cost: linear in the tasks, a search each.

use super::location::{Frame, LocationReader};
use super::recorded::{LocationRun, NOWHERE, TaskPart};
use crate::base::time::Timestamp;
use crate::event::operation::{Message, OperationPlace};
use crate::input::otf2::{EventReader, TaskAttributes};
use crate::model::carrier::Carrier;
use foldhash::HashMap;

/// A task and its maker, by the numbers of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct GraphTask {
    pub(super) task: u64,
    pub(super) maker: Option<u64>,
}

impl GraphTask {
    /// The task of the last record, if its attributes name one.
    pub(super) fn of(reader: &EventReader<'_>, attributes: TaskAttributes) -> Option<GraphTask> {
        let mut found = GraphTask { task: 0, maker: None };
        let mut is_task = false;
        for attribute in reader.attributes() {
            let Some(number) = attribute.value.number() else { continue };
            if attribute.id == attributes.task {
                (found.task, is_task) = (number, true);
            } else if Some(attribute.id) == attributes.maker {
                found.maker = Some(number);
            }
        }
        is_task.then_some(found)
    }
}

impl LocationReader<'_> {
    /// A region begins that is a part of a task. Behind its last operation the thread had nothing to do.
    pub(super) fn begin_task_part(&mut self, GraphTask { task, maker }: GraphTask, start: Timestamp) {
        let mut idle = NOWHERE;
        if self.frames.len() <= 1 && !self.run.operations.is_empty() {
            let frame = self.frames.pop();
            idle = self.run.operations.len() as u32;
            self.idle_before_task(start);
            self.frames.extend(frame);
        }
        let first = self.run.operations.len() as u32;
        let part = TaskPart { task, maker, idle, first, last: first, start, end: Timestamp::MAX };
        if let Some(frame) = self.frames.last_mut() {
            frame.task_part = Some(self.run.task_parts.len() as u32);
        }
        self.run.task_parts.push(part);
    }

    /// The region is left.
    pub(super) fn end_task_part(&mut self, frame: &Frame, end: Timestamp) {
        let last = self.last_operation();
        let part = frame.task_part.and_then(|at| self.run.task_parts.get_mut(at as usize));
        if let Some(part) = part {
            (part.last, part.end) = (last.max(part.first), end);
        }
    }
}

/// A part of a task on a stream.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct PlacedPart {
    start: Timestamp,
    stream: u32,
    position: usize,
}

/// Messages that end the waits for tasks.
pub(super) fn tie(process: &impl Fn(u32) -> u32, locations: &[LocationRun], messages: &mut Vec<Message>) {
    let mut parts: HashMap<(u32, u64), Vec<PlacedPart>> = HashMap::default();
    for (stream, location) in (0_u32..).zip(locations) {
        for (position, part) in location.task_parts.iter().enumerate() {
            let placed = PlacedPart { start: part.start, stream, position };
            parts.entry((process(stream), part.task)).or_default().push(placed);
        }
    }
    parts.values_mut().for_each(|all| all.sort_unstable());
    let before = |process: u32, task: u64, start: Timestamp| -> Option<(u32, TaskPart)> {
        let all = parts.get(&(process, task))?;
        let last = all.get(all.partition_point(|p| p.start < start).checked_sub(1)?)?;
        Some((last.stream, *locations.get(last.stream as usize)?.task_parts.get(last.position)?))
    };
    for (stream, location) in (0_u32..).zip(locations) {
        for part in location.task_parts.iter().filter(|p| p.idle != NOWHERE) {
            let process = process(stream);
            let earlier = before(process, part.task, part.start);
            let source = earlier.or_else(|| before(process, part.maker?, part.start));
            let Some((from_stream, source)) = source.filter(|(from, _)| *from != stream) else { continue };
            let Some(wait) = location.operations.get(part.idle as usize) else { continue };
            let sent = source.end.min(part.start);
            if sent <= wait.start {
                continue;
            }
            let from =
                OperationPlace { stream: from_stream, operation: running(locations, from_stream, &source, sent) };
            let to = OperationPlace { stream, operation: part.idle };
            messages.push(Message { carrier: Carrier::Task, from, to, sent, received: part.start });
        }
    }
}

/// The operation of a part of a task that was running at a time.
fn running(locations: &[LocationRun], stream: u32, part: &TaskPart, at: Timestamp) -> u32 {
    let operations = locations.get(stream as usize).map_or(&[][..], |l| &l.operations);
    let begun = operations.partition_point(|o| o.start < at).saturating_sub(1) as u32;
    begun.clamp(part.first, part.last.max(part.first)).min((operations.len() as u32).saturating_sub(1))
}
