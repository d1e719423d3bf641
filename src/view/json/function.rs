//! `diff --function NAME`: a function with its callers, the nearest first, and its callees.

use super::tree::FunctionJson;
use crate::base::clean;
use crate::compare::functions::{FrameLevel, Sandwich};
use serde::Serialize;

#[derive(Serialize)]
pub(super) struct SandwichJson {
    #[serde(flatten)]
    function: FunctionJson,
    callers: LevelJson,
    callees: LevelJson,
}

/// Frames at one distance.
#[derive(Serialize)]
struct LevelJson {
    frames: Vec<NeighbourJson>,
    /// Frames with less than a hundredth of the function's time and difference, together.
    small: u32,
    small_slow_ns: f64,
    small_fast_ns: f64,
}

#[derive(Serialize)]
struct NeighbourJson {
    name: String,
    slow_mean_ns: f64,
    fast_mean_ns: f64,
    delta_ns: f64,
    /// The frames further away.
    next: LevelJson,
}

impl SandwichJson {
    pub(super) fn new(found: &Sandwich) -> SandwichJson {
        SandwichJson {
            function: FunctionJson::new(&found.function),
            callers: LevelJson::new(&found.callers),
            callees: LevelJson::new(&found.callees),
        }
    }
}

impl LevelJson {
    /// As deep as a sandwich is, which is bounded.
    fn new(level: &FrameLevel) -> LevelJson {
        let frame = |frame: &crate::compare::functions::NeighbourFrame| NeighbourJson {
            name: clean::owned(&frame.name),
            slow_mean_ns: frame.slow_mean_ns,
            fast_mean_ns: frame.fast_mean_ns,
            delta_ns: frame.delta_ns(),
            next: LevelJson::new(&frame.next),
        };
        LevelJson {
            frames: level.frames.iter().map(frame).collect(),
            small: level.small,
            small_slow_ns: level.small_slow_ns,
            small_fast_ns: level.small_fast_ns,
        }
    }
}
