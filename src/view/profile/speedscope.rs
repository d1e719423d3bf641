//! The file format of speedscope: shared frames, and one sampled profile for each group and for the extra time.
//!
//! The format has no negative weights: the third profile holds only the contexts that take longer in slow executions.

use super::{Profile, Stack};
use crate::base::clean;
use crate::compare::Comparison;
use crate::model::Model;
use serde::Serialize;

#[derive(Serialize)]
struct Document<'a> {
    #[serde(rename = "$schema")]
    schema: &'static str,
    exporter: &'static str,
    name: &'a str,
    shared: Shared<'a>,
    profiles: Vec<SampledProfile<'a>>,
}

#[derive(Serialize)]
struct Shared<'a> {
    frames: Vec<SharedFrame<'a>>,
}

#[derive(Serialize)]
struct SharedFrame<'a> {
    name: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SampledProfile<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    name: &'static str,
    unit: &'static str,
    start_value: i64,
    end_value: i64,
    samples: Vec<&'a [u32]>,
    weights: Vec<i64>,
}

impl<'a> SampledProfile<'a> {
    fn new(name: &'static str, profile: &'a Profile, weight: fn(&Stack) -> i64) -> Self {
        let with_time = || profile.stacks.iter().filter(|stack| weight(stack) > 0);
        let weights: Vec<i64> = with_time().map(weight).collect();
        SampledProfile {
            kind: "sampled",
            name,
            unit: "nanoseconds",
            start_value: 0,
            end_value: weights.iter().sum(),
            samples: with_time().map(|stack| &stack.frames[..]).collect(),
            weights,
        }
    }
}

/// The document.
pub fn speedscope(model: &Model, comparison: &Comparison) -> Vec<u8> {
    let profile = Profile::new(model, comparison);
    let document = Document {
        schema: "https://www.speedscope.app/file-format-schema.json",
        exporter: concat!("whyslow ", env!("CARGO_PKG_VERSION")),
        name: &clean::text(model.tasks.get(model.task).map_or("", |task| task)),
        shared: Shared { frames: profile.frames.iter().map(|name| SharedFrame { name }).collect() },
        profiles: vec![
            SampledProfile::new("slow: mean of an execution", &profile, |stack| stack.slow_ns),
            SampledProfile::new("fast: mean of an execution", &profile, |stack| stack.fast_ns),
            SampledProfile::new("longer in slow executions", &profile, |stack| stack.slow_ns - stack.fast_ns),
        ],
    };
    // Strings and numbers always serialise.
    serde_json::to_vec(&document).unwrap_or_default()
}
