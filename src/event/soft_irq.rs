//! Soft interrupts by the numbers of their vectors, and their names in the kernel.

/// Soft interrupts, in the order of their vectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SoftIrq {
    /// Tasklets of high priority.
    Hi,
    Timer,
    /// Packets that were sent.
    NetTx,
    /// Packets that arrived.
    NetRx,
    /// Completed block requests.
    Block,
    /// Completed block requests that were polled for.
    IrqPoll,
    Tasklet,
    /// Balancing of run queues.
    Sched,
    /// High-resolution timers.
    HrTimer,
    /// Read-copy-update callbacks.
    Rcu,
    /// A vector that the kernel does not have today.
    Other(u32),
}

impl SoftIrq {
    /// All that have names.
    const ALL: [SoftIrq; 10] = [
        SoftIrq::Hi,
        SoftIrq::Timer,
        SoftIrq::NetTx,
        SoftIrq::NetRx,
        SoftIrq::Block,
        SoftIrq::IrqPoll,
        SoftIrq::Tasklet,
        SoftIrq::Sched,
        SoftIrq::HrTimer,
        SoftIrq::Rcu,
    ];

    /// The one of a vector.
    pub fn of(vector: u32) -> SoftIrq {
        SoftIrq::ALL.get(vector as usize).copied().unwrap_or(SoftIrq::Other(vector))
    }

    pub fn vector(self) -> u32 {
        match self {
            SoftIrq::Other(vector) => vector,
            known => SoftIrq::ALL.iter().position(|irq| *irq == known).unwrap_or(0) as u32,
        }
    }

    /// Its name in the kernel, where it has one.
    pub fn name(self) -> Option<&'static str> {
        SOFT_IRQS.get(self.vector() as usize).copied()
    }
}

/// Names of soft interrupt vectors, by number.
pub const SOFT_IRQS: [&str; 10] =
    ["HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU"];
