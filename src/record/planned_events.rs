//! The events of a recording, by whose they are.
//!
//! In: the topics of `advice/topic.rs`, the events that the kernel has, and the request. Out: events of all threads,
//! and system calls of the chosen ones. A recording is light unless it was asked to be full: system calls cost a busy
//! server as much as it makes of them, and interrupts and packets as much again.

use super::RecordingRequest;
use super::capabilities::Capabilities;
use crate::advice::topic::{TOPICS, Topic, TopicLoad};

/// The events of a recording.
#[derive(Debug, Default)]
pub(super) struct PlannedEvents {
    /// Events of all threads, in the order of the topics.
    pub of_all: Vec<&'static str>,
    /// Events of the threads that the request chooses.
    pub of_chosen: Vec<&'static str>,
    /// Topics without an event because the recording is light.
    pub left_out: Vec<&'static Topic>,
}

/// The events of a recording on a machine.
pub(super) fn planned_events(host: &Capabilities, request: &RecordingRequest) -> PlannedEvents {
    let mut planned = PlannedEvents::default();
    for topic in &TOPICS {
        let events = topic.events.iter().copied().filter(|event| host.has(event));
        match topic.load {
            TopicLoad::Calls if request.chooses() => planned.of_chosen.extend(events),
            TopicLoad::Calls | TopicLoad::Heavy if !request.full => planned.left_out.push(topic),
            _ => planned.of_all.extend(events),
        }
    }
    planned
}

impl RecordingRequest {
    /// True where it names the threads whose system calls are recorded.
    pub(super) fn chooses(&self) -> bool {
        !self.pids.is_empty() || !self.comms.is_empty() || (!self.command.is_empty() && !self.full)
    }
}

impl PlannedEvents {
    /// All events in the order of the topics, for a recorder that has one list of them.
    pub fn all(&self) -> impl Iterator<Item = &'static str> {
        let is_planned = |event: &&'static str| self.of_all.contains(event) || self.of_chosen.contains(event);
        TOPICS.iter().flat_map(|topic| topic.events).copied().filter(is_planned)
    }

    /// What the recording does not have because it is light.
    pub fn note(&self) -> Option<String> {
        let questions: Vec<&str> = self.left_out.iter().map(|topic| topic.question).collect();
        let (last, others) = questions.split_last()?;
        let all = if others.is_empty() { (*last).to_owned() } else { format!("{} and {last}", others.join(", ")) };
        let calls = self.left_out.iter().any(|topic| topic.load == TopicLoad::Calls);
        let chosen = if calls { "; --pid or --comm records the system calls of some threads" } else { "" };
        Some(format!("to slow the machine little, this recording has no {all}: --full records them{chosen}"))
    }
}
