//! Carriers of delays from one thread or rank to the next.

/// The carrier of a delay from one operation to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Carrier {
    Message,
    /// A collective operation.
    Collective,
    /// A wake-up.
    Wakeup,
    /// A network packet.
    Packet,
    /// A message that could leave only when its receive was posted: back, from the receiver to the sender.
    Rendezvous,
    /// Room for a message: back, from a receiver that had none until it came to the library again.
    FlowControl,
    /// A barrier of the threads of a team.
    Barrier,
    /// An accelerator was done.
    Accelerator,
    /// Work that was handed to an accelerator.
    Launch,
    /// A task that another thread ran.
    Task,
    /// Memory that was opened for access by others.
    Post,
    /// An access to memory that was completed.
    Complete,
    /// A lock that was given back; a futex: a lock, or a condition that was signalled.
    Lock,
    /// A CPU on which another thread ran.
    Cpu,
    /// A disk that served the requests of another thread.
    Disk,
    /// A device's interrupt.
    Interrupt,
    /// A soft interrupt.
    SoftIrq,
    Signal,
    /// A pipe, or what is written and read like one.
    Pipe,
    /// A socket within the host.
    Socket,
    /// Work handed to a kernel worker.
    Workqueue,
    /// A thread that was not created yet, or a team that its thread had do something.
    Fork,
    /// A thread or process that had not ended yet.
    Exit,
}

impl Carrier {
    /// The name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Carrier::Message => "message",
            Carrier::Collective => "collective",
            Carrier::Wakeup => "wakeup",
            Carrier::Packet => "packet",
            Carrier::Rendezvous => "rendezvous",
            Carrier::FlowControl => "flow_control",
            Carrier::Barrier => "barrier",
            Carrier::Accelerator => "accelerator",
            Carrier::Launch => "launch",
            Carrier::Task => "task",
            Carrier::Post => "post",
            Carrier::Complete => "complete",
            Carrier::Lock => "lock",
            Carrier::Cpu => "cpu",
            Carrier::Disk => "disk",
            Carrier::Interrupt => "interrupt",
            Carrier::SoftIrq => "softirq",
            Carrier::Signal => "signal",
            Carrier::Pipe => "pipe",
            Carrier::Socket => "socket",
            Carrier::Workqueue => "workqueue",
            Carrier::Fork => "fork",
            Carrier::Exit => "exit",
        }
    }
}
