//! What the environment of a recording says about its threads and CPUs at a time.
//!
//! In: an environment on the time line of its recording. Out: answers about one thread and a span: the control groups
//! that limit it, whether any of them was throttled, the CPUs on which it may run, whether it has the usual priority;
//! and the time that the hypervisor gave to others. `None` is *not known*, and no analysis goes on as if it were.
//! Samples are a second apart, so an answer about a span is one about the samples around it. Cost: a binary search for
//! each question. ALGORITHMS.md 7.7.

use crate::base::time::{Ns, Span, Timestamp};
use crate::model::environment::{ControlGroup, PlacedEnvironment, ThreadSetting};
use crate::timeline::Thread;

/// Groups around each other: the kernel has no more levels in use.
const DEEPEST: usize = 64;

/// The environment of a host.
#[derive(Clone, Copy, Debug)]
pub struct Surroundings<'a>(pub &'a PlacedEnvironment);

impl<'a> Surroundings<'a> {
    /// The samples around a span: the last one before it and the first one after it; `None` where there are not both.
    pub fn around(self, span: Span) -> Option<(u32, u32)> {
        let times = &self.0.times;
        let before = times.partition_point(|t| *t <= span.start).checked_sub(1)?;
        let after = times.partition_point(|t| *t < span.end);
        (after < times.len()).then_some((before as u32, after as u32))
    }

    /// The first sample at a time or later, else the last one.
    pub fn sample_after(self, t: Timestamp) -> u32 {
        let last = self.0.times.len().saturating_sub(1);
        self.0.times.partition_point(|sample| *sample < t).min(last) as u32
    }

    /// A control group by its number.
    pub fn group(self, number: u32) -> Option<&'a ControlGroup> {
        self.0.values.groups.get(number as usize)
    }

    /// The control groups that limit the CPU time of a thread at a sample, from its own to the outermost; none where
    /// that is not known.
    pub fn groups_of(self, thread: &Thread, sample: u32) -> impl Iterator<Item = u32> + use<'a> {
        self.upwards(self.0.values.settings(thread.pid, thread.tid, |of| &of.group), sample)
    }

    fn upwards(self, known: Option<&'a [ThreadSetting<u32>]>, sample: u32) -> impl Iterator<Item = u32> + use<'a> {
        let own = known.and_then(|known| ThreadSetting::at(known, sample)).copied();
        std::iter::successors(own, move |number| self.group(*number)?.parent).take(DEEPEST)
    }

    /// True if a control group of a thread is known to have a limit on a disk.
    pub fn limits_disk(self, thread: &Thread, t: Timestamp) -> bool {
        let known = self.0.values.settings(thread.pid, thread.tid, |of| &of.disk_group);
        let mut groups = self.upwards(known, self.sample_after(t)).filter_map(|number| self.group(number));
        groups.any(|group| group.limits_disk)
    }

    /// True if the groups that limit a thread are known up to the outermost.
    pub fn knows_groups_of(self, thread: &Thread, sample: u32) -> bool {
        let groups = || self.groups_of(thread, sample).filter_map(|number| self.group(number));
        groups().all(|group| group.is_sampled) && groups().last().is_some_and(|group| group.is_outermost)
    }

    /// True if a group counted throttled periods between two samples.
    pub fn was_throttled(self, group: u32, (before, after): (u32, u32)) -> bool {
        let Some(group) = self.group(group) else { return false };
        let times = |sample| group.count_at(sample).map_or(0, |count| count.times);
        times(after) > times(before)
    }

    /// True if a thread has nice 0, the usual policy, and groups of which none has another weight than the usual one.
    pub fn has_usual_priority(self, thread: &Thread, t: Timestamp) -> Option<bool> {
        let sample = self.sample_after(t);
        let known = self.0.values.settings(thread.pid, thread.tid, |of| &of.is_usual)?;
        let is_usual = *ThreadSetting::at(known, sample)?;
        let mut groups = self.groups_of(thread, sample).filter_map(|number| self.group(number));
        self.knows_groups_of(thread, sample).then(|| is_usual && groups.all(|group| group.has_usual_weight))
    }

    /// The CPUs on which a thread may run, in runs of numbers.
    pub fn allowed(self, thread: &Thread, t: Timestamp) -> Option<&'a [(u32, u32)]> {
        let known = self.0.values.settings(thread.pid, thread.tid, |of| &of.allowed)?;
        ThreadSetting::at(known, self.sample_after(t)).map(Vec::as_slice)
    }

    /// True where the hypervisor gave any time of a CPU to others.
    pub fn has_steal(self) -> bool {
        let grew = |counts: &Vec<ThreadSetting<u64>>| {
            counts.first().zip(counts.last()).is_some_and(|(first, last)| last.value > first.value)
        };
        self.0.values.steal.values().any(grew)
    }

    /// The time that the hypervisor gave to others on a CPU, between the samples around a span.
    pub fn steal(self, cpu: u32, span: Span) -> Option<Ns> {
        let (before, after) = self.around(span)?;
        let counts = self.0.values.steal.get(&cpu)?;
        let at = |sample| ThreadSetting::at(counts, sample).copied();
        let grown = at(after)?.saturating_sub(at(before)?);
        Some(Ns::try_from(grown.saturating_mul(1_000_000)).unwrap_or(Ns::MAX))
    }
}

/// True if a CPU is in one of some runs of numbers.
pub fn is_among(cpus: &[(u32, u32)], cpu: u32) -> bool {
    cpus.iter().any(|(first, last)| (*first..=*last).contains(&cpu))
}
