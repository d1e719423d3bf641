//! Runs of one program that differ: how often it does its work, how long it sleeps, and one function that is slower.

use super::{Do, Random};

/// A function of the first program that takes longer than it did, as a part of what it took.
#[derive(Clone, Copy, Debug)]
pub struct Slowdown {
    /// Its position among the functions.
    pub function: usize,
    /// 1.05 is 5 % longer.
    pub factor: f64,
}

/// Make a script's runs in a function longer. Fractions of steps add up.
pub(super) fn slow_down(script: &mut [Do], slowdown: Slowdown, fraction: &mut f64) {
    for action in script {
        match action {
            Do::Run(function, steps) if *function == slowdown.function + 1 => {
                let longer = *steps as f64 * slowdown.factor + *fraction;
                *steps = longer as u64;
                *fraction = longer.fract();
            }
            Do::Thread(_, script) => slow_down(script, slowdown, fraction),
            _ => {}
        }
    }
}

/// A run of a seed's programs among others.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    /// Its number: how long it sleeps, how it is scheduled and where the samples fall.
    pub number: u64,
    /// How often each thread does its work.
    pub repeats: usize,
    pub slowdown: Option<Slowdown>,
}

/// Do all of a script several times; threads and processes are created once.
pub(super) fn repeat(script: &mut Vec<Do>, repeats: usize) {
    let again: Vec<Do> = script.iter().filter(|action| matches!(action, Do::Run(..) | Do::Sleep(_))).cloned().collect();
    for action in script.iter_mut() {
        if let Do::Thread(_, script) | Do::Process(_, script) = action {
            repeat(script, repeats);
        }
    }
    // What is last in a script is done first.
    script.splice(0..0, (1..repeats).flat_map(|_| again.iter().cloned()));
}

/// Make each sleep of a script up to a fifth longer or shorter, as from one run to the next.
pub(super) fn vary_sleeps(script: &mut [Do], dice: &mut Random) {
    for action in script {
        match action {
            Do::Sleep(steps) => *steps = (*steps * (80 + dice.below(41) as u64) / 100).max(1),
            Do::Thread(_, script) | Do::Process(_, script) => vary_sleeps(script, dice),
            Do::Run(..) => {}
        }
    }
}
