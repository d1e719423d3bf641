//! The idle state of a processor while the idle task of its CPU runs.
//!
//! In: the events by which the idle task enters and leaves idle states (`power:cpu_idle`), and interrupts. Out: when
//! the CPU was awake again. A thread that is woken while its CPU rests waits until that has left its idle state, which
//! takes from a microsecond to some hundreds, the deeper the longer. A halted processor runs the handler of the
//! interrupt that wakes it before the idle task says that it goes on. Cost: constant. ALGORITHMS.md 5.4.

use crate::base::time::Timestamp;

/// What is known of the idle state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum IdleState {
    /// No event has shown it since the idle task got the CPU.
    Unknown,
    /// The CPU rests.
    Entered,
    /// It has left its idle state, and entered no other since.
    Left(Timestamp),
}

impl IdleState {
    /// The idle task enters an idle state, or has left it.
    pub fn step(&mut self, t: Timestamp, enters: bool) {
        *self = match *self {
            _ if enters => IdleState::Entered,
            IdleState::Left(earlier) => IdleState::Left(earlier),
            IdleState::Unknown | IdleState::Entered => IdleState::Left(t),
        };
    }

    /// An interrupt begins.
    pub fn interrupt(&mut self, t: Timestamp) {
        if *self == IdleState::Entered {
            *self = IdleState::Left(t);
        }
    }

    /// When the CPU has left its idle state, if it is known to be awake.
    pub fn left(self) -> Option<Timestamp> {
        match self {
            IdleState::Left(at) => Some(at),
            IdleState::Unknown | IdleState::Entered => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_sign_of_life_since_the_last_entry_counts() {
        let (mut state, at) = (IdleState::Unknown, Timestamp::new);
        state.interrupt(at(1));
        assert_eq!(state.left(), None, "without an entry an interrupt shows nothing of an idle state");
        state.step(at(2), true);
        assert_eq!(state.left(), None);
        state.interrupt(at(5));
        state.interrupt(at(7));
        state.step(at(9), false);
        assert_eq!(state.left(), Some(at(5)));
        state.step(at(10), true);
        state.step(at(20), false);
        state.interrupt(at(22));
        assert_eq!(state.left(), Some(at(20)));
    }
}
