//! The result of mining under some settings: all anomalies, and the tables that panes 3 and 4 look up.
//!
//! In: [`Anomalies`], replaced whole whenever q or s change. Out: [`AnomalyReport`], with the role of each anomaly, the
//! path that it is on and the row of each path, computed once: linear in the steps of all paths.

use super::canvas::width;
use crate::base::notice::Notices;
use crate::base::time::Span;
use crate::model::anomalies::{Anomalies, Anomaly, StreamInfo};
use crate::model::propagation::{PropagationPath, PropagationStep};
use crate::model::recorded::Recorded;
use crate::model::root_cause::RootCause;
use crate::view::anomalies::Words;
use std::collections::BTreeSet;

/// The role of an anomaly towards others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnomalyRole {
    /// Root cause of this many other anomalies.
    Source(u32),
    /// Root cause without a known victim.
    Alone,
    /// It waited for a delay that began with this anomaly.
    Victim(u32),
    /// A wait without a known cause.
    Unexplained,
    /// An execution that this path delayed.
    Delayed(usize),
    /// It waited for work.
    Idle,
}

/// A step of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepPosition {
    /// Position of the path.
    pub path: usize,
    /// Position of the step on it.
    pub step: usize,
}

/// An occurrence of a root cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OccurrencePosition {
    /// Position of the root cause.
    pub root_cause: u32,
    /// Position of the occurrence among its own.
    pub occurrence: u32,
}

/// The result of mining under some settings.
#[derive(Clone, Debug, Default)]
pub struct AnomalyReport {
    pub anomalies: Anomalies,
    /// Notices about the data.
    pub notices: Notices,
    /// What its traces or archives recorded.
    pub recorded: Vec<Recorded>,
    /// The role, by anomaly.
    pub roles: Vec<AnomalyRole>,
    /// By anomaly: its step on the first path that it is on.
    pub places: Vec<Option<StepPosition>>,
    /// By path: the occurrence of the root cause with which it begins.
    pub beginnings: Vec<Option<OccurrencePosition>>,
    /// From the first to the last time shown.
    pub span: Span,
    /// Width of the longest name of a root cause.
    pub widest: usize,
}

impl AnomalyReport {
    /// Compute the role of each anomaly.
    pub fn new(anomalies: Anomalies, notices: Notices) -> AnomalyReport {
        let unknown = |a: &Anomaly| if a.source { AnomalyRole::Alone } else { AnomalyRole::Unexplained };
        let mut roles: Vec<AnomalyRole> = anomalies.anomalies.iter().map(unknown).collect();
        let mut places = vec![None; roles.len()];
        // The paths of one root cause are adjacent.
        let of_source = anomalies.paths.chunk_by(|a, b| a.source == b.source);
        let mut first = 0;
        for paths in of_source {
            let mut victims: BTreeSet<u32> = BTreeSet::new();
            let source = paths.first().and_then(|p| p.steps.first()).map(|s| s.anomaly);
            for (path, at) in paths.iter().zip(first..) {
                for (step, s) in path.steps.iter().enumerate() {
                    if let Some(place) = places.get_mut(s.anomaly as usize) {
                        place.get_or_insert(StepPosition { path: at, step });
                    }
                    victims.extend(Some(s.anomaly).filter(|a| Some(*a) != source));
                }
            }
            first += paths.len();
            let Some(source) = source else { continue };
            for victim in &victims {
                if let Some(role @ AnomalyRole::Unexplained) = roles.get_mut(*victim as usize) {
                    *role = AnomalyRole::Victim(source);
                }
            }
            if let Some(role) = roles.get_mut(source as usize).filter(|_| !victims.is_empty()) {
                *role = AnomalyRole::Source(victims.len() as u32);
            }
        }
        for (role, (anomaly, place)) in roles.iter_mut().zip(anomalies.anomalies.iter().zip(&places)) {
            *role = match (anomaly.idle, anomaly.execution, place) {
                (true, ..) => AnomalyRole::Idle,
                (false, Some(_), Some(first)) => AnomalyRole::Delayed(first.path),
                _ => *role,
            };
        }
        let mut beginnings = vec![None; anomalies.paths.len()];
        for (root_cause, source) in (0_u32..).zip(&anomalies.sources) {
            for (at, occurrence) in (0_u32..).zip(&source.occurrences) {
                let first = occurrence.path.map_or(0, |p| p as usize);
                let paths = beginnings.iter_mut().skip(first).take(occurrence.paths as usize);
                paths.for_each(|path| *path = Some(OccurrencePosition { root_cause, occurrence: at }));
            }
        }
        let spans = || anomalies.sources.iter().map(RootCause::span);
        let end = spans().map(|s| s.end).max().unwrap_or(anomalies.origin);
        let start = spans().map(|s| s.start).min().unwrap_or(end).min(anomalies.origin);
        let widest = anomalies.sources.iter().map(|s| width(&Words::of(s).who)).max().unwrap_or(0);
        let (span, recorded) = (Span::new(start, end), Vec::new());
        AnomalyReport { span, anomalies, notices, recorded, roles, places, beginnings, widest }
    }

    /// The report, of traces or archives that recorded this.
    pub fn with_recorded(self, recorded: Vec<Recorded>) -> AnomalyReport {
        AnomalyReport { recorded, ..self }
    }

    /// An anomaly.
    pub fn get(&self, at: u32) -> Option<&Anomaly> {
        self.anomalies.anomalies.get(at as usize)
    }

    /// Rank or thread of a stream, as shown.
    pub fn place(&self, stream: u32) -> String {
        let stream = self.anomalies.streams.get(stream as usize);
        match stream {
            Some(stream) if !stream.label.is_empty() => stream.label.clone(),
            Some(StreamInfo { rank: Some(rank), .. }) => format!("rank {rank}"),
            Some(stream) => stream.name.clone(),
            None => String::new(),
        }
    }

    /// The role of an anomaly as text.
    pub fn role(&self, at: u32) -> String {
        let source = if self.is_noise(at) { "noise" } else { "root cause" };
        match self.roles.get(at as usize) {
            Some(AnomalyRole::Source(1)) => format!("{source}, 1 victim"),
            Some(AnomalyRole::Source(n)) => format!("{source}, {n} victims"),
            Some(AnomalyRole::Alone) => format!("{source}, no known victim"),
            Some(AnomalyRole::Victim(source)) => {
                let place = self.get(*source).map_or(String::new(), |s| self.place(s.stream));
                format!("victim of {place}")
            }
            Some(_) if self.get(at).is_some_and(Anomaly::only_differs) => "different call sequence".into(),
            Some(AnomalyRole::Delayed(path)) => match self.step(*path, 0) {
                Some(first) if self.get(at).is_some_and(|a| a.stream != first.stream) => {
                    format!("delayed by {}", self.place(first.stream))
                }
                _ => "delayed by its own work".into(),
            },
            Some(AnomalyRole::Idle) => "waiting for work".into(),
            Some(AnomalyRole::Unexplained) | None => "unexplained".into(),
        }
    }

    /// The pattern of an anomaly.
    pub fn pattern(&self, anomaly: &Anomaly) -> &str {
        anomaly.pattern.and_then(|p| self.anomalies.patterns.get(p as usize)).map_or("", |p| p.name.as_str())
    }

    /// An anomaly is the first step of a path and noise of the system.
    fn is_noise(&self, at: u32) -> bool {
        let place = self.places.get(at as usize).copied().flatten();
        place.and_then(|first| self.step(first.path, 0)).is_some_and(|s| s.anomaly == at && s.noise.is_some())
    }

    /// A step of a path.
    pub fn step(&self, path: usize, step: usize) -> Option<&PropagationStep> {
        self.anomalies.paths.get(path)?.steps.get(step)
    }
}

/// The streams on a path, in the order in which it reaches them.
pub fn streams(path: &PropagationPath) -> Vec<u32> {
    let mut found = Vec::new();
    for step in &path.steps {
        if !found.contains(&step.stream) {
            found.push(step.stream);
        }
    }
    found
}
