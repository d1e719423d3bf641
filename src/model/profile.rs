//! What a model says of itself where its executions are the samples of a profiler.
//!
//! A sample counts for an amount of an event: nanoseconds of a clock, else cycles, misses, faults. Its execution lasts
//! as long as that, on the thread that it hit; sums over samples are CPU time, or counts of the event. Of the time
//! between two samples a profile says nothing.

use crate::base::figure;

/// The profile that a model holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Profile {
    /// The event that was sampled: `cpu-clock`, `cycles`.
    pub event: String,
    /// The other events that were sampled, which `--event` chooses.
    pub other_events: Vec<String>,
    /// Whose samples they are: `indexer`, `load.sh and the programs that it started`.
    pub whose: String,
    /// Programs whose samples were left out, with how much of the event each has; the largest first.
    pub left_out: Vec<ProgramAmount>,
}

/// A program, and how much of an event its samples stand for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramAmount {
    pub program: String,
    /// The sum over its samples.
    pub amount: u64,
}

/// True for an event that counts nanoseconds on a CPU. Modifiers follow a colon, terms a slash: `cpu-clock:u`,
/// `cpu-clock/freq=250/`.
pub fn is_clock(event: &str) -> bool {
    matches!(event.split([':', '/']).next(), Some("cpu-clock" | "task-clock"))
}

impl Profile {
    /// True where amounts are nanoseconds.
    pub fn is_time(&self) -> bool {
        is_clock(&self.event)
    }

    /// An amount for people: `452 ms`, `3.20 G cycles`.
    pub fn amount(&self, amount: f64) -> String {
        if self.is_time() {
            return figure::time(amount);
        }
        format!("{} {}", figure::amount(amount), self.event.split(':').next().unwrap_or("samples"))
    }

    /// Where the amounts were spent, as sentences say it: `on the CPU` for clocks; nothing for other events.
    pub fn spent(&self) -> &'static str {
        if self.is_time() { " on the CPU" } else { "" }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amount_is_a_time_for_clocks_alone() {
        let profile = |event: &str| Profile { event: event.to_owned(), ..Profile::default() };
        assert_eq!(profile("cpu-clock:u").amount(451_000_000.0), "451 ms");
        assert_eq!(profile("cache-misses").amount(-1200.0), "-1.20 K cache-misses");
        assert!(is_clock("task-clock") && is_clock("cpu-clock/freq=250/u"));
        assert!(!is_clock("cycles:P") && !is_clock("cpu-clocks"));
    }
}
