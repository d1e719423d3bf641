//! The differential tree as a profile for other tools: folded stacks, speedscope, pprof.
//!
//! In: a comparison. Out: for each calling context that has time of its own the mean of both groups, and a file in one
//! of three formats. The times of all contexts of a group add up to its mean duration (to a nanosecond per context,
//! for rounding). Cost: linear in the tree times its depth.

mod folded;
mod pprof;
mod speedscope;

pub use folded::folded;
pub use pprof::pprof;
pub use speedscope::speedscope;

use crate::base::clean;
use crate::compare::Comparison;
use crate::model::Model;
use crate::view::words;
use std::collections::HashMap;

/// A calling context with time of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Stack {
    /// Positions in [`Profile::frames`], from the root.
    frames: Vec<u32>,
    /// Mean time of a slow execution here, without the contexts below, in nanoseconds.
    slow_ns: i64,
    /// Mean time of a fast execution here, without the contexts below, in nanoseconds.
    fast_ns: i64,
}

/// All contexts of a comparison.
#[derive(Clone, Debug, Default)]
struct Profile {
    /// Names of frames, each once.
    frames: Vec<String>,
    /// In pre-order of the tree.
    stacks: Vec<Stack>,
}

impl Profile {
    fn new(model: &Model, comparison: &Comparison) -> Profile {
        let nodes = &comparison.tree.nodes;
        let mut profile = Profile::default();
        let mut numbers: HashMap<String, u32> = HashMap::new();
        // Own time: inclusive time less that of the children.
        let mut own: Vec<(f64, f64)> = nodes.iter().map(|node| (node.slow_mean_ns, node.fast_mean_ns)).collect();
        for node in nodes {
            if let Some(parent) = node.parent {
                let own = &mut own[parent as usize];
                *own = (own.0 - node.slow_mean_ns, own.1 - node.fast_mean_ns);
            }
        }
        let mut path: Vec<u32> = Vec::new();
        for (node, (slow, fast)) in nodes.iter().zip(own) {
            let name = clean::owned(&words::frame(model, node.context));
            let number = *numbers.entry(name).or_insert_with_key(|name| {
                profile.frames.push(name.clone());
                profile.frames.len() as u32 - 1
            });
            path.truncate(node.depth as usize);
            path.push(number);
            let (slow_ns, fast_ns) = (slow.round() as i64, fast.round() as i64);
            if slow_ns != 0 || fast_ns != 0 {
                profile.stacks.push(Stack { frames: path.clone(), slow_ns, fast_ns });
            }
        }
        profile
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::ctx::Ctx;
    use crate::compare::{ComparisonRequest, compare, scenario};
    use std::io::Read;

    fn made() -> (Model, Comparison) {
        let model = scenario::lock_contention(5, 16.0);
        let comparison = compare(&model, &ComparisonRequest::default(), &Ctx::new(1)).unwrap();
        (model, comparison)
    }

    #[test]
    fn profile_times_add_up_to_the_mean_durations() {
        let (model, c) = made();
        let profile = Profile::new(&model, &c);
        let tolerance = profile.stacks.len() as i64 + 1;
        let slow: i64 = profile.stacks.iter().map(|stack| stack.slow_ns).sum();
        let fast: i64 = profile.stacks.iter().map(|stack| stack.fast_ns).sum();
        assert!((slow - c.slow.mean_ns).abs() <= tolerance && (fast - c.fast.mean_ns).abs() <= tolerance);
        assert!(profile.stacks.iter().all(|stack| stack.slow_ns >= 0 && stack.fast_ns >= 0));
    }

    #[test]
    fn folded_lines_end_with_the_time_of_both_groups() {
        let (model, c) = made();
        let text = folded(&model, &c);
        let line = text.lines().find(|line| line.contains("append_entry;[futex]")).unwrap();
        let mut fields = line.rsplitn(3, ' ');
        let (slow, fast): (i64, i64) =
            (fields.next().unwrap().parse().unwrap(), fields.next().unwrap().parse().unwrap());
        assert!(slow > fast && fields.next().is_some_and(|stack| !stack.ends_with(';')), "{line}");
    }

    #[test]
    fn speedscope_weights_add_up_to_the_end_of_each_profile() {
        let (model, c) = made();
        let document: serde_json::Value = serde_json::from_slice(&speedscope(&model, &c)).unwrap();
        let profiles = document["profiles"].as_array().unwrap();
        assert_eq!(profiles.len(), 3);
        let frames = document["shared"]["frames"].as_array().unwrap().len() as u64;
        for profile in profiles {
            let weights = profile["weights"].as_array().unwrap();
            assert_eq!(weights.len(), profile["samples"].as_array().unwrap().len());
            assert_eq!(weights.iter().map(|w| w.as_i64().unwrap()).sum::<i64>(), profile["endValue"].as_i64().unwrap());
            let stacks = profile["samples"].as_array().unwrap();
            assert!(stacks.iter().flat_map(|s| s.as_array().unwrap()).all(|f| f.as_u64().unwrap() < frames));
        }
    }

    #[test]
    fn pprof_holds_slow_fast_and_difference() {
        let (model, c) = made();
        let mut bytes = Vec::new();
        flate2::read::GzDecoder::new(&pprof(&model, &c)[..]).read_to_end(&mut bytes).unwrap();
        let profile = pprof::decode(&bytes).unwrap();
        assert_eq!(profile.types(), ["slow", "fast", "difference"]);
        assert!(profile.values().all(|v| v.len() == 3 && v[2] == v[0] - v[1]));
        assert_eq!(profile.values().count(), Profile::new(&model, &c).stacks.len());
    }
}
