//! The typed events: 40 bytes each, `Copy`.
//!
//! Everything long (text, contexts, stacks, packets, marks) is an id into the tables of the `Batch` (reading/batch.rs)
//! that holds the event. Ids mean nothing outside their batch; a machine that merges batches renumbers what it keeps,
//! in the order of the events, so that results do not depend on how a trace was cut.

use super::descriptor::NamedDescriptor;
use super::remark::{Priority, RemarkKind};
pub use super::soft_irq::{SOFT_IRQS, SoftIrq};
use super::stack::{RawStackId, StackOrigin};
use crate::base::time::{Ns, Timestamp};

crate::base::names::handle! {
    /// A text of a batch. [`TextId::NONE`] where there is none.
    TextId,
    /// A `ThreadContext` of a batch. [`ThreadContextId::ABSENT`] where the record has no such context.
    ThreadContextId,
    /// A `NetworkPacket` of a batch.
    PacketId,
    /// A `BlockRequest` of a batch.
    RequestId,
    /// A `DumpedThread` of a batch.
    ProcessId,
    /// An image change of a batch.
    ImageId,
    /// A `MarkBody` of a batch.
    MarkId,
    /// A `WeightBody` of a batch. [`WeightId::NONE`] for a stack that is no sample.
    WeightId,
}

impl WeightId {
    /// No weight.
    pub const NONE: WeightId = WeightId::from_raw(u32::MAX);
}

impl TextId {
    /// No text.
    pub const NONE: TextId = TextId::from_raw(u32::MAX);
}

impl ThreadContextId {
    /// No context.
    pub const ABSENT: ThreadContextId = ThreadContextId::from_raw(u32::MAX);
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Event {
    /// When, on the common time line.
    pub time: Timestamp,
    /// The context of the record: the thread that ran (also in an interrupt), not the one that the event is about.
    pub who: ThreadContextId,
    /// Position of its trace in the list that the pass was given.
    pub trace: u16,
    /// The CPU of its packet; [`Event::NO_CPU`] where it is unknown.
    pub cpu: u16,
    /// The event itself.
    pub kind: Kind,
}

impl Event {
    /// The CPU of events whose recording names none, as that of `perf record PROGRAM`.
    pub const NO_CPU: u16 = u16::MAX;
}

/// The tracepoint of a wake-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WakeTracepoint {
    /// `sched_waking`.
    Waking,
    /// `sched_wakeup`.
    Wakeup,
}

/// The event that reported a wake-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WakeSource {
    /// `sched_waking`: in the context of the waker.
    Waking,
    /// `sched_wakeup`, `sched_ttwu`: perhaps on the CPU of the woken.
    Wakeup,
    /// `sched_wakeup` where `sched_waking` is recorded too: it only says in which run queue the woken thread is.
    Queued,
    /// A wake-up whose flags mark it as part of a hard interrupt: the running thread has no part in it.
    HardInterrupt(WakeTracepoint),
    /// A wake-up whose flags mark it as part of a soft interrupt, which may be work of the running thread (sending over
    /// the loopback device).
    SoftInterrupt(WakeTracepoint),
    /// `sched_wakeup_new`: the start of a forked thread.
    New,
}

impl WakeSource {
    /// The source of an event with the flags that ftrace and perf record (`TRACE_FLAG_HARDIRQ`, `TRACE_FLAG_SOFTIRQ`).
    pub fn flagged(self, flags: u64) -> WakeSource {
        let tracepoint = if self == WakeSource::Waking { WakeTracepoint::Waking } else { WakeTracepoint::Wakeup };
        match self {
            WakeSource::New => self,
            _ if flags & 8 != 0 => WakeSource::HardInterrupt(tracepoint),
            _ if flags & 0x10 != 0 => WakeSource::SoftInterrupt(tracepoint),
            _ => self,
        }
    }
}

/// Work of a CPU on behalf of no thread, or of the thread it interrupts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Context {
    /// Handler of a hard interrupt line.
    Irq(i32),
    /// Soft interrupt.
    SoftIrq(SoftIrq),
    /// Expiry of a high-resolution timer.
    Timer,
    /// An interrupt vector of the processor itself.
    Vector(Vector),
    /// A received packet on its way from the driver to its socket (NAPI), in any context.
    PacketReceive,
}

/// Interrupt vectors of the processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vector {
    LocalTimer,
    /// Another processor asks for something (reschedule, call a function).
    Ipi,
    /// Work queued by this processor for itself.
    Work,
    /// Errors, thresholds, temperatures.
    Other,
}

/// A step in the life of a block request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestStep {
    /// Entered the queue.
    Insert,
    /// Handed to the device.
    Issue,
    /// Done.
    Complete,
}

/// Steps of a piece of work that kernel workers do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkStep {
    /// Handed in.
    Queue,
    /// The worker that runs begins with it.
    Begin,
    /// It is done.
    End,
}

/// How it is known that events are missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossSource {
    /// The tracer counted them.
    Reported,
    /// The packet that holds them cannot be read to its end.
    Damaged,
}

/// The kinds of events with their values. Thread ids are those of the initial namespace.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// `prev` leaves the CPU, `next` gets it.
    Switch {
        /// The thread that leaves the CPU.
        prev: i32,
        /// The thread that gets it.
        next: i32,
        /// Low 16 bits of the state of `prev`; its meaning depends on the kernel's version.
        prev_state: u16,
        /// Name of `prev`.
        prev_name: TextId,
        /// Name of `next`.
        next_name: TextId,
        /// Priorities of `prev` and `next`.
        priorities: [Priority; 2],
    },
    /// A thread becomes runnable.
    Wake {
        /// The woken.
        tid: i32,
        cpu: u16,
        /// By which event this is known.
        source: WakeSource,
        name: TextId,
    },
    /// A thread makes another.
    Fork {
        /// The parent thread.
        parent: i32,
        /// The new thread.
        child: i32,
        child_pid: i32,
        /// Id of the child in its innermost namespace; 0 where not recorded.
        child_vtid: i32,
        /// Name of the child.
        name: TextId,
    },
    /// A thread runs another program.
    Exec {
        /// Its id from now on (that of the process).
        tid: i32,
        old_tid: i32,
        /// File as given to exec.
        path: TextId,
    },
    /// A thread ends; it runs until it is switched out.
    Exit { tid: i32 },
    /// The id of an ended thread is given back, late.
    Free { tid: i32 },
    /// A thread leaves its CPU; which one gets it is not recorded.
    Leaves {
        tid: i32,
        /// Its state, as in a switch.
        prev_state: u16,
    },
    /// A thread has a CPU again; which one left it is not recorded.
    Returns { tid: i32 },
    /// A thread is called otherwise.
    Name {
        tid: i32,
        /// Its process; 0 where not recorded.
        pid: i32,
        /// Its name from now on.
        name: TextId,
    },
    /// A thread is put into another run queue.
    Migrate {
        tid: i32,
        /// The new run queue.
        cpu: u16,
    },
    /// The idle task lets its CPU rest in an idle state of the processor, or the CPU has left that.
    IdleState {
        /// It rests from now on.
        enters: bool,
    },
    /// A soft interrupt is asked for.
    Raise { soft_irq: SoftIrq },
    /// The CPU enters an interrupt context.
    Enter {
        context: Context,
        /// Name of the handler.
        name: TextId,
    },
    /// The CPU leaves it.
    Leave { context: Context },
    /// The running thread enters a system call.
    CallEntry {
        /// `futex`, `read` ...; none for a call of the recorder's probe.
        name: TextId,
        /// The open file that it names, of the calls of `event/descriptor.rs`.
        descriptor: Option<NamedDescriptor>,
    },
    CallExit {
        /// Name of the call; none in old recordings, and where the call changed its own number.
        name: TextId,
        ret: i64,
    },
    /// A stack was recorded with the event that follows.
    Stack {
        /// The occasion on which the tracer took it.
        origin: StackOrigin,
        /// User-space addresses.
        user: Option<RawStackId>,
        /// Kernel addresses.
        kernel: Option<RawStackId>,
        /// Its thread runs there now. Of an event that is followed elsewhere, and of a switch, the moment may be
        /// another.
        witness: bool,
        /// How much of which event it counts for, where it is a sample.
        weight: WeightId,
    },
    /// A packet is handed to a network device.
    Send(PacketId),
    /// A packet arrives from a network device.
    Receive(PacketId),
    /// A block request moves on.
    Block { step: RequestStep, request: RequestId },
    /// A piece of work for a kernel worker moves on.
    Work {
        step: WorkStep,
        /// Its address in the kernel.
        address: u64,
    },
    /// The tracer's own enumeration names a thread that exists.
    Process(ProcessId),
    /// The tracer's own enumeration names a thread that exists by its ids in a namespace.
    Namespace {
        /// Thread.
        tid: i32,
        /// Its id in the namespace.
        vtid: i32,
        /// Its process's id in the namespace.
        vpid: i32,
        /// Depth of the namespace; 0 is the initial one.
        level: i32,
    },
    /// The tracer's own enumeration names an interrupt line and its handler.
    Line {
        /// Number.
        irq: i32,
        /// Name of the handler.
        name: TextId,
    },
    /// The thread enters or leaves a function.
    Function {
        enters: bool,
        /// The function; 0 where an exit does not say.
        address: u64,
    },
    /// A system call of this length ends here, in a recording without their entries and exits.
    Latency { ns: Ns },
    /// A hardware counter as the event that follows found it.
    Counter {
        /// Name of the context.
        name: TextId,
        value: u64,
    },
    /// The running thread touched a page that was not there.
    PageFault,
    /// Something that changes no state; of the running thread, where it is about one.
    Remark(RemarkKind),
    /// A process's images change.
    Image(ImageId),
    /// The images of a process change that the kernel names.
    Mapped {
        /// The process.
        pid: i32,
        /// The change.
        image: ImageId,
        /// The build id of the file that is mapped, as a change of its own.
        build_id: Option<ImageId>,
    },
    /// A delimiter of a task.
    Mark(MarkId),
    /// Events of this CPU are missing from here on: nothing known about what runs there holds any more.
    Lost {
        /// How this is known.
        source: LossSource,
        /// Up to here events may be missing.
        until: Timestamp,
        /// The CPU's next packet begins. No event before that was recorded at all.
        resumes: Timestamp,
    },
}

impl Kind {
    /// Order of events of different streams at one time: causes first, switches last (ALGORITHMS.md 1).
    pub fn tie_class(&self) -> u8 {
        match self {
            Kind::Fork { .. } | Kind::Wake { .. } | Kind::Send(_) => 0,
            Kind::Switch { .. } => 2,
            _ => 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_small() {
        assert_eq!(size_of::<Event>(), 40);
    }
}
