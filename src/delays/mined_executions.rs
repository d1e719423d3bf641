//! The executions of a kernel recording beside the patterns of its threads.
//!
//! In: their model, and the threads that contributed to each. Out: usual times, the streams that were on critical
//! paths, and how a late event of a stream is treated. Cost: linear in contributions.

use super::delayed::Delayed;
use super::wait_links::Reference;
use crate::analysis::patterns::Treatment;
use crate::base::ctx::{Cancel, Cancelled};
use crate::base::time::{Ns, Span};
use crate::explain::contribution::{Contributions, overlap};
use crate::model::Model;
use crate::model::anomalies::StreamInfo;
use crate::model::context::ContextId;
use crate::model::event_kind::EventKind;
use crate::model::execution::ContextTime;
use crate::timeline::ThreadId;
use foldhash::HashMap;

/// Executions of a kernel recording, ready to be compared with each other.
#[derive(Debug, Default)]
pub struct MinedExecutions {
    /// The executions.
    pub model: Model,
    /// Threads that contributed to them.
    pub contributions: Contributions,
    /// Usual times of their wait chains.
    pub reference: Reference,
    /// Streams beyond those of the operations: threads that made no calls.
    pub(super) beyond: Vec<StreamInfo>,
    /// The stream of each thread.
    streams: HashMap<ThreadId, u32>,
    sums: HashMap<(u32, ContextId), u64>,
    /// By stream: when critical paths went through it.
    on_paths: Vec<Vec<Span>>,
}

impl MinedExecutions {
    /// `threads` are those of the operations' streams, in order; `noise_ns` is how far clocks may be off.
    pub fn new(
        model: Model,
        contributions: Contributions,
        threads: &[ThreadId],
        noise_ns: Ns,
        cancel: &Cancel,
    ) -> Result<MinedExecutions, Cancelled> {
        let mut streams: HashMap<ThreadId, u32> = threads.iter().copied().zip(0..).collect();
        let mut beyond = Vec::new();
        for (id, place) in &contributions.threads {
            let next = (threads.len() + beyond.len()) as u32;
            streams.entry(*id).or_insert_with(|| {
                beyond.push(StreamInfo {
                    name: format!("{} {}", place.name, place.tid),
                    rank: None,
                    label: String::new(),
                    thread: Some(place.clone()),
                    offset_ns: 0,
                    drift_ppb: 0.0,
                    error_ns: Some(0),
                });
                next
            });
        }
        let reference = Reference::new(&model, noise_ns.max(2 * contributions.scheduler_noise_ns), cancel)?;
        let mut sums: HashMap<(u32, ContextId), u64> = HashMap::default();
        for (i, population) in reference.population.iter().enumerate() {
            for ContextTime { context, ns } in model.executions.own.row(i) {
                *sums.entry((*population, context)).or_default() += ns;
            }
        }
        cancel.check()?;
        let mut on_paths = vec![Vec::new(); threads.len() + beyond.len()];
        for (thread, spans) in contributions.on_paths() {
            if let Some(of_stream) = streams.get(&thread).and_then(|s| on_paths.get_mut(*s as usize)) {
                *of_stream = spans;
            }
        }
        Ok(MinedExecutions { model, contributions, reference, beyond, streams, sums, on_paths })
    }

    /// Treatment of an event that took longer than usual: delays of executions are reported with them; any other wait
    /// is one for work.
    pub(super) fn treat(&self, stream: u32, kind: EventKind, span: Span) -> Treatment {
        let on_paths = self.on_paths.get(stream as usize).map_or(&[][..], Vec::as_slice);
        match overlap(on_paths, span) * 2 >= span.len() && !span.is_empty() {
            true => Treatment::Reported,
            false if kind.waits() || kind == EventKind::Wait => Treatment::Idle,
            false => Treatment::Responsible,
        }
    }

    /// The stream of a thread.
    pub(super) fn stream_of(&self, thread: ThreadId) -> Option<u32> {
        self.streams.get(&thread).copied()
    }

    /// The search for delayed executions.
    pub(super) fn delayed(&self) -> Delayed<'_> {
        let (model, contributions, reference) = (&self.model, &self.contributions, &self.reference);
        Delayed { model, contributions, reference, streams: &self.streams, sums: &self.sums }
    }
}
