//! Folded stacks with two columns, as `difffolded.pl` writes and `flamegraph.pl` reads them: `a;b;c FAST SLOW`.

use super::Profile;
use crate::compare::Comparison;
use crate::model::Model;
use std::fmt::Write;

/// One line for each calling context: its frames, and the mean own time of a fast and of a slow execution in ns.
pub fn folded(model: &Model, comparison: &Comparison) -> String {
    let profile = Profile::new(model, comparison);
    let mut out = String::new();
    for stack in &profile.stacks {
        for (i, frame) in stack.frames.iter().enumerate() {
            // The separator of frames.
            let name = profile.frames[*frame as usize].replace(';', ":");
            // Writing to a string does not fail.
            let _ = write!(out, "{}{name}", if i == 0 { "" } else { ";" });
        }
        let _ = writeln!(out, " {} {}", stack.fast_ns, stack.slow_ns);
    }
    out
}
