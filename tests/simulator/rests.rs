//! Idle states: a CPU without a thread rests, and needs time before it runs the next one, the longer the deeper it
//! rests. Its twin is awake as long as a soft interrupt takes, and late all the same.

use super::ctf_writer::Value;
use super::interrupts::Interrupt;
use super::{Action, Machine};
use whyslow::parts::base::time::Ns;

/// One wake-up in this many is late.
const RARE: usize = 16;
/// The state in the event by which a CPU leaves its idle state.
const LEFT: u32 = u32::MAX;

/// Why a wake-up is late.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Late {
    /// The CPU leaves a deep idle state.
    Deep,
    /// It handles an interrupt first.
    Interrupt,
}

/// CPUs whose idle states are recorded.
pub(super) struct Rests {
    cpus: Vec<usize>,
    late: Late,
    length: Ns,
}

impl Machine {
    /// The idle states of all CPUs are recorded; now and then a wake-up on one of these is late by about this length.
    pub(super) fn let_rest(&mut self, cpus: Vec<usize>, late: Late, length: Ns) {
        self.rests = Some(Rests { cpus, late, length });
    }

    /// A CPU without a thread rests.
    pub(super) fn enter_idle_state(&mut self, cpu: usize) {
        if self.rests.is_some() && self.cpus[cpu].current.is_none() && !self.cpus[cpu].rests {
            self.cpus[cpu].rests = true;
            self.idle_state(cpu, 1);
        }
    }

    /// Something happens on a CPU.
    pub(super) fn leave_idle_state(&mut self, cpu: usize) {
        if std::mem::take(&mut self.cpus[cpu].rests) {
            self.idle_state(cpu, LEFT);
        }
    }

    fn idle_state(&mut self, cpu: usize, state: u32) {
        self.emit(cpu, "power_cpu_idle", vec![("state", Value::U32(state)), ("cpu_id", Value::U32(cpu as u32))]);
    }

    /// How long after a wake-up from another CPU an idle CPU looks at its queue, where it usually does after `usual`.
    pub(super) fn wake_up_delay(&mut self, cpu: usize, usual: Ns) -> Ns {
        let Some(Rests { cpus, late, length }) = &self.rests else { return usual };
        if !cpus.contains(&cpu) || !self.dice.once_in(RARE) {
            return usual;
        }
        let (late, length) = (*late, self.dice.about(*length));
        if late == Late::Interrupt {
            let interrupt = Interrupt::Device { handler: "eth0-rx-0", hard: 2_000, soft: length };
            self.later(self.now + 500, Action::Interrupt(cpu, interrupt));
        }
        length
    }
}
