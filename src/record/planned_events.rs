//! The events of a recording, by whose they are.
//!
//! In: the topics of `advice/topic.rs`, the events that the kernel has, the request, and what a trial has counted. Out:
//! events of all threads, system calls of the chosen ones, and what both cost. A recording is light unless it was asked
//! to be full: system calls cost a busy server as much as it makes of them, and interrupts and packets as much again.
//! Where a trial shows that they are cheap on this machine while it is busy, they are recorded all the same.

use super::capabilities::Capabilities;
use super::trial::{RecordingCost, Trial};
use super::{Recorder, RecordingRequest};
use crate::advice::topic::{TOPICS, Topic, TopicLoad};
use crate::base::figure;

/// The part of the busiest CPU's time that topics which a light recording leaves out may take together.
const CHEAP: f64 = 0.01;

/// The part of its time for which the busiest CPU must be busy in a trial: on a machine at rest all events are cheap,
/// whatever it will do while it is recorded.
const BUSY: f64 = 0.5;

/// A buffer with room for so many seconds of events is read in time by any recorder.
const NEVER_FULL: f64 = 10.0;

/// The topics of each recording: without them no wait can be explained.
const LEAST: usize = 2;

/// The events of a recording.
#[derive(Debug, Default)]
pub(super) struct PlannedEvents {
    /// Events of all threads, in the order of the topics.
    pub of_all: Vec<&'static str>,
    /// Events of the threads that the request chooses.
    pub of_chosen: Vec<&'static str>,
    /// Topics without an event because of what they cost.
    pub left_out: Vec<&'static Topic>,
    /// What a trial says about their cost.
    pub cost: Option<RecordingCost>,
}

/// The events of a recording on a machine.
pub(super) fn planned_events(
    host: &Capabilities,
    request: &RecordingRequest,
    recorder: Recorder,
    trial: Option<&Trial>,
) -> PlannedEvents {
    let mut planned = PlannedEvents { cost: trial.map(|_| RecordingCost::default()), ..PlannedEvents::default() };
    let limit = request.cost.map(|percent| percent / 100.0);
    let mut cheap = 0.0;
    for (at, topic) in TOPICS.iter().enumerate() {
        let is_of_chosen = topic.is_of_calls() && request.chooses();
        let by_perf = recorder == Recorder::Perf && topic.events.iter().any(|event| !super::perf::is_left_out(event));
        let cost = trial.map(|trial| match is_of_chosen {
            true => trial.of_chosen(topic, by_perf),
            false => trial.of_topic(topic, by_perf),
        });
        let cost_after = |cost: RecordingCost| cost.share + planned.cost.map_or(0.0, |all| all.share);
        let is_wanted = match topic.load {
            TopicLoad::Light => true,
            TopicLoad::Calls if is_of_chosen => true,
            _ if request.full => true,
            _ => match (cost, limit, trial) {
                (Some(cost), Some(limit), _) => cheap + cost.share <= limit,
                // As if the busiest CPU were busy all the time.
                (Some(cost), None, Some(trial)) if trial.busy() >= BUSY => (cheap + cost.share) / trial.busy() <= CHEAP,
                _ => false,
            },
        };
        let is_paid = at < LEAST || cost.zip(limit).is_none_or(|(cost, limit)| cost_after(cost) <= limit);
        if !is_wanted || !is_paid {
            planned.left_out.push(topic);
            continue;
        }
        if topic.load != TopicLoad::Light && !is_of_chosen {
            cheap += cost.map_or(0.0, |cost| cost.share);
        }
        if let Some((all, cost)) = planned.cost.as_mut().zip(cost) {
            *all += cost;
        }
        let events = topic.events.iter().copied().filter(|event| host.has(event));
        if is_of_chosen { planned.of_chosen.extend(events) } else { planned.of_all.extend(events) }
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

    /// What the recording does not have because of what it costs.
    pub fn note(&self) -> Option<String> {
        let questions: Vec<&str> = self.left_out.iter().map(|topic| topic.question).collect();
        let (last, others) = questions.split_last()?;
        let all = if others.is_empty() { (*last).to_owned() } else { format!("{} and {last}", others.join(", ")) };
        let calls = self.left_out.iter().any(|topic| topic.is_of_calls());
        let chosen = if calls { "; --pid or --comm records the system calls of some threads" } else { "" };
        Some(format!("to slow the machine little, this recording has no {all}: --full records them{chosen}"))
    }

    /// What a trial says that the recording costs, and for how long buffers of `buffer` bytes for each CPU keep it from
    /// losses.
    pub fn cost_note(
        &self,
        request: &RecordingRequest,
        recorder: Recorder,
        trial: Option<&Trial>,
        buffer: u64,
    ) -> Option<String> {
        let RecordingCost { events, bytes, busiest_bytes, share } = self.cost?;
        let chosen = trial.filter(|_| !request.pids.is_empty()).map_or(String::new(), |trial| {
            let paid = trial.paid_by_chosen(recorder == Recorder::Perf);
            format!(", and {} of a CPU to the chosen processes", figure::percent(paid, 1))
        });
        let over = request.cost.filter(|limit| share * 100.0 > *limit);
        let over = over.map_or(String::new(), |limit| format!("; less than this explains no wait (--cost {limit})"));
        let (added, bytes) = (figure::percent(share, 1), figure::bytes(bytes));
        let adds = format!("the recording adds about {added} to the busiest CPU{chosen}");
        let held = buffer as f64 / busiest_bytes.max(1.0);
        // A flight recorder says what its buffers hold.
        let held = match request.overwrite {
            None if held < NEVER_FULL => {
                let size = figure::bytes(buffer as f64);
                format!("; buffers of {size} for each CPU lose nothing while they are read every {held:.1} s")
            }
            _ => String::new(),
        };
        Some(format!("a trial of a second: {adds}, with {events:.0} events and {bytes} a second{held}{over}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The questions that are left out.
    fn left_out(request: &RecordingRequest, rate: impl Fn(&Topic) -> f64) -> Vec<&'static str> {
        let trial = Trial::of_rates(rate);
        let planned = planned_events(&Capabilities::default(), request, Recorder::Perf, Some(&trial));
        planned.left_out.iter().map(|topic| topic.question).collect()
    }

    #[test]
    fn what_a_trial_shows_to_be_cheap_is_recorded() {
        let light = RecordingRequest::default();
        assert!(left_out(&light, |_| 100.0).is_empty(), "a machine at rest is recorded fully");
        let busy = |topic: &Topic| if topic.question == "packets" { 1e5 } else { 100.0 };
        assert_eq!(left_out(&light, busy), ["packets"]);
        assert!(left_out(&RecordingRequest { full: true, ..light.clone() }, busy).is_empty());
        // Four topics that take 0.4 % each: two of them take less than one percent.
        let each = |topic: &Topic| if topic.load == TopicLoad::Heavy { 20_000.0 } else { 100.0 };
        assert_eq!(left_out(&light, each), ["packets", "idle states of CPUs"]);
    }

    #[test]
    fn a_limit_leaves_topics_out_but_what_explains_waits() {
        let of = |cost: f64, rate: f64| {
            left_out(&RecordingRequest { full: true, cost: Some(cost), ..RecordingRequest::default() }, |_| rate).len()
        };
        assert_eq!(of(50.0, 1000.0), 0);
        assert_eq!(of(0.0, 1000.0), TOPICS.len() - LEAST);
        let some = of(3.0, 10_000.0);
        assert!(some > 0 && some < TOPICS.len() - LEAST, "{some}");
    }
}
