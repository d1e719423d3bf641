//! When threads ran, and on which CPU.
//!
//! In: context switches, those of a CPU in order. Out: the runs of each thread. With them spans that programs recorded
//! without a CPU get the CPU where their thread ran, and a clock is proved: a thread that begins or ends a span runs at
//! that time. What ran before the first switch of a CPU is the thread that it leaves. Cost: sorting the runs, then a
//! binary search for each question; 24 bytes are kept for a run.

use crate::base::time::Timestamp;
use foldhash::HashMap;

/// Programs write times in whole microseconds, and a span may begin in the microsecond in which its thread does.
const ROUNDING: i64 = 2_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ThreadRun {
    from: Timestamp,
    until: Timestamp,
    cpu: u32,
}

/// The thread that runs on a CPU, and the place of its run.
#[derive(Clone, Copy, Debug)]
struct RunningThread {
    tid: i32,
    run: usize,
}

/// A context switch on a CPU.
#[derive(Clone, Copy, Debug)]
pub struct CpuSwitch {
    pub time: Timestamp,
    pub cpu: u32,
    /// The thread that leaves, where it is known.
    pub prev: Option<i32>,
    /// The thread that runs from now on.
    pub next: i32,
}

/// The runs of threads.
#[derive(Debug, Default)]
pub struct ThreadRuns {
    runs: HashMap<i32, Vec<ThreadRun>>,
    running: HashMap<u32, RunningThread>,
}

/// A moment of a thread.
#[derive(Clone, Copy, Debug)]
pub(super) struct ThreadMoment {
    pub tid: i32,
    pub time: Timestamp,
}

/// How many of some moments fall into a run of their thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ClockAgreement {
    /// Moments of threads that ran.
    pub of: usize,
    /// Those of them at which the thread ran.
    pub agree: usize,
}

impl ClockAgreement {
    /// True where nine of ten moments agree.
    pub fn is_proof(self) -> bool {
        self.of > 0 && self.agree * 10 >= self.of * 9
    }
}

impl ThreadRuns {
    /// Another thread runs on a CPU from now on.
    pub fn switched(&mut self, CpuSwitch { time, cpu, prev, next }: CpuSwitch) {
        match (self.running.get(&cpu), prev) {
            (Some(RunningThread { tid, run }), _) => {
                if let Some(run) = self.runs.get_mut(tid).and_then(|runs| runs.get_mut(*run)) {
                    run.until = time;
                }
            }
            (None, Some(prev)) => {
                let before = ThreadRun { from: Timestamp::MIN, until: time, cpu };
                self.runs.entry(prev).or_default().push(before);
            }
            (None, None) => {}
        }
        let runs = self.runs.entry(next).or_default();
        runs.push(ThreadRun { from: time, until: Timestamp::MAX, cpu });
        self.running.insert(cpu, RunningThread { tid: next, run: runs.len() - 1 });
    }

    /// Put the runs in order; call after the last switch.
    pub fn seal(&mut self) {
        self.running.clear();
        self.runs.values_mut().for_each(|runs| runs.sort_by_key(|run| (run.from, run.cpu)));
    }

    /// Keep the runs of some threads.
    pub fn retain(&mut self, keep: impl Fn(i32) -> bool) {
        self.runs.retain(|tid, _| keep(*tid));
    }

    /// True for a thread that ran.
    pub fn knows(&self, tid: i32) -> bool {
        self.runs.contains_key(&tid)
    }

    /// The CPU on which a thread ran last at a time, else its first one.
    pub(super) fn cpu(&self, at: ThreadMoment) -> Option<u32> {
        let runs = self.runs.get(&at.tid)?;
        let after = runs.partition_point(|run| run.from <= at.time);
        runs.get(after.saturating_sub(1)).map(|run| run.cpu)
    }

    /// Compare moments with the runs.
    pub(super) fn agreement(&self, moments: impl Iterator<Item = ThreadMoment>) -> ClockAgreement {
        let mut found = ClockAgreement::default();
        for ThreadMoment { tid, time } in moments {
            let Some(runs) = self.runs.get(&tid) else { continue };
            let after = runs.partition_point(|run| run.from <= time.saturating_add(ROUNDING));
            // A thread may be on a CPU for less than the rounding.
            let near = runs.get(after.saturating_sub(2)..after).into_iter().flatten();
            found.of += 1;
            found.agree += usize::from(near.into_iter().any(|run| time <= run.until.saturating_add(ROUNDING)));
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs() -> ThreadRuns {
        let mut runs = ThreadRuns::default();
        for (time, cpu, prev, next) in [(10_000, 0, 5, 7), (20_000, 0, 7, 5), (30_000, 1, 0, 7), (50_000, 1, 7, 0)] {
            runs.switched(CpuSwitch { time: Timestamp::new(time), cpu, prev: Some(prev), next });
        }
        runs.seal();
        runs
    }

    fn at(tid: i32, time: i64) -> ThreadMoment {
        ThreadMoment { tid, time: Timestamp::new(time) }
    }

    #[test]
    fn cpu_is_that_of_the_last_run() {
        let runs = runs();
        let cpus = [5, 15_000, 29_000, 35_000, 90_000].map(|time| runs.cpu(at(7, time)));
        assert_eq!(cpus, [Some(0), Some(0), Some(0), Some(1), Some(1)]);
        assert_eq!((runs.cpu(at(5, 5_000)), runs.cpu(at(6, 5_000)), runs.knows(6)), (Some(0), None, false));
    }

    #[test]
    fn agreement_counts_moments_at_which_their_thread_ran() {
        let runs = runs();
        let of = |times: &[i64]| runs.agreement(times.iter().map(|time| at(7, *time)));
        assert_eq!(of(&[9_000, 15_000, 21_500, 40_000]), ClockAgreement { of: 4, agree: 4 });
        assert_eq!(of(&[5_000, 25_000, 60_000, 40_000]), ClockAgreement { of: 4, agree: 1 });
        // Of a thread that never ran nothing follows.
        assert_eq!(runs.agreement([at(9, 15_000)].into_iter()), ClockAgreement::default());
        assert!(!ClockAgreement::default().is_proof() && ClockAgreement { of: 10, agree: 9 }.is_proof());
    }
}
