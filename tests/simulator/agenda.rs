//! Future actions of the machine, in order of time.

use super::interrupts::Interrupt;
use whyslow::parts::base::time::Ns;

/// A future action.
pub(super) enum Action {
    /// The running thread has spent its time, unless the CPU did something else since (`epoch`).
    Spent(usize, u64),
    Interrupt(usize, Interrupt),
    /// The interrupt that the CPU handles goes on.
    Handle(usize),
    /// The CPU looks at its run queue.
    Reschedule(usize),
    Tick(usize),
    /// The end of a period of a group's quota.
    Period(usize),
    /// The CPU is to be paused for so long.
    Stall(usize, Ns),
    /// It goes on, and was paused for so long.
    GoOn(usize, Ns),
    /// The CPU has another frequency: programs take this many tenths of their time at its highest.
    Clock(usize, Ns),
    /// A line of counters is due, with this number.
    Sample(u64),
}

impl Action {
    /// The CPU that must work for it.
    pub fn cpu(&self) -> Option<usize> {
        match self {
            Action::Spent(cpu, _)
            | Action::Interrupt(cpu, _)
            | Action::Handle(cpu)
            | Action::Reschedule(cpu)
            | Action::Tick(cpu) => Some(*cpu),
            Action::Period(_) | Action::Stall(..) | Action::GoOn(..) | Action::Clock(..) => None,
            Action::Sample(_) => None,
        }
    }
}

/// An entry of the agenda: time, a number that orders entries of one time, and action.
pub(super) struct Agendum(pub Ns, pub u64, pub Action);

impl PartialEq for Agendum {
    fn eq(&self, other: &Self) -> bool {
        (self.0, self.1) == (other.0, other.1)
    }
}
impl Eq for Agendum {}
impl PartialOrd for Agendum {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Agendum {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.0, self.1).cmp(&(other.0, other.1))
    }
}
