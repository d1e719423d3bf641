//! The stages in which recordings are analysed, each with its usual share of the time, for an estimate of the time
//! left.
//!
//! Shares are per cent of the time after opening, measured on recordings of the kernel, profiles and MPI runs that were
//! repeated to 75 to 500 MB; `--timings` prints the times of any recording. A recording of other proportions has a
//! worse estimate, which follows the rates of its stages as they are seen.

use super::traces::Traces;
use crate::base::ctx::Ctx;
use crate::base::time_left::StageShare;

impl Traces {
    /// Expect the stages of one question about executions. A history file was read when it was made, and of several
    /// files each goes through the stages: then only the present one is known.
    pub(super) fn expect_stages(&self, ctx: &Ctx) {
        if !self.sources.is_empty() && self.others.is_empty() {
            ctx.progress.expect(OF_TRACES);
        }
    }
}

/// Of recordings of the kernel and of user space, with executions.
const OF_TRACES: &[StageShare] = &[
    StageShare { name: "reading", share: 38 },
    StageShare { name: "stacks", share: 17 },
    StageShare { name: "tasks", share: 16 },
    StageShare { name: "paths", share: 9 },
    StageShare { name: "symbols", share: 1 },
    // Where operations are asked for.
    StageShare { name: "mining", share: 1 },
    StageShare { name: "results", share: 18 },
];

/// Of profiles, whose executions are samples.
pub(super) const OF_PROFILES: &[StageShare] = &[
    StageShare { name: "reading", share: 30 },
    StageShare { name: "stacks", share: 40 },
    StageShare { name: "symbols", share: 10 },
    StageShare { name: "results", share: 20 },
];

/// Of MPI runs.
pub(super) const OF_RUNS: &[StageShare] = &[
    StageShare { name: "reading", share: 45 },
    StageShare { name: "mining", share: 5 },
    StageShare { name: "paths", share: 50 },
];
