//! Wait states of MPI runs: the reasons for which a call could not progress, named as Scalasca names them.

/// Kinds of wait states.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WaitState {
    /// A receive waits for its send to begin.
    LateSender,
    /// A receive waits for its send to begin, while a message that was sent earlier is received only later.
    WrongOrder,
    /// A send waits for its receive to be posted.
    LateReceiver,
    /// A send waits until its receiver, which is busy elsewhere, accepts more messages.
    FlowControl,
    /// The destination of a reduction waits for those who send.
    EarlyReduce,
    /// A member of a broadcast waits for who sends.
    LateBroadcast,
    /// Everybody waits for everybody in an exchange of data.
    AllToAll,
    /// Everybody waits for everybody in a barrier of ranks.
    Barrier,
    /// Members wait for those whose data come before theirs.
    Prefix,
    /// Members of a collective are still in it when the first has left.
    Completion,
    /// Threads wait for the others of their team.
    ThreadBarrier,
    /// Threads of a team have nothing to do between parallel regions.
    IdleThreads,
    /// A thread waits for a lock that another has.
    Lock,
    /// The host waits for an accelerator.
    Accelerator,
    /// A thread waits for tasks that others run.
    Tasks,
    /// A thread waits for another to end.
    Join,
    /// An accelerator has nothing to do until work is handed to it.
    IdleAccelerator,
    /// The accessing rank waits until the memory is opened.
    LatePost,
    /// The opening rank waits until accesses to its memory are completed.
    LateComplete,
}

impl WaitState {
    /// No rank is late: there is nothing to do, or all have arrived.
    pub fn has_no_late_rank(self) -> bool {
        matches!(self, WaitState::IdleThreads | WaitState::IdleAccelerator | WaitState::Completion)
    }

    /// A receive waits.
    pub fn of_receiver(self) -> bool {
        matches!(self, WaitState::LateSender | WaitState::WrongOrder)
    }

    /// A send waits.
    pub fn of_sender(self) -> bool {
        matches!(self, WaitState::LateReceiver | WaitState::FlowControl)
    }

    /// The name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            WaitState::LateSender => "late_sender",
            WaitState::WrongOrder => "wrong_order",
            WaitState::LateReceiver => "late_receiver",
            WaitState::FlowControl => "flow_control",
            WaitState::EarlyReduce => "early_reduce",
            WaitState::LateBroadcast => "late_broadcast",
            WaitState::AllToAll => "n_to_n",
            WaitState::Barrier => "barrier",
            WaitState::Prefix => "prefix",
            WaitState::Completion => "completion",
            WaitState::ThreadBarrier => "thread_barrier",
            WaitState::IdleThreads => "idle_threads",
            WaitState::Lock => "lock",
            WaitState::Accelerator => "accelerator",
            WaitState::Tasks => "tasks",
            WaitState::Join => "join",
            WaitState::IdleAccelerator => "idle_accelerator",
            WaitState::LatePost => "late_post",
            WaitState::LateComplete => "late_complete",
        }
    }

    /// For people.
    pub fn words(self) -> &'static str {
        match self {
            WaitState::LateSender => "late sender",
            WaitState::WrongOrder => "late sender, messages in wrong order",
            WaitState::LateReceiver => "late receiver",
            WaitState::FlowControl => "flow control",
            WaitState::EarlyReduce => "early reduce",
            WaitState::LateBroadcast => "late broadcast",
            WaitState::AllToAll => "wait at N x N",
            WaitState::Barrier => "wait at barrier",
            WaitState::Prefix => "wait at prefix reduction",
            WaitState::Completion => "completion of collectives",
            WaitState::ThreadBarrier => "wait at OpenMP barrier",
            WaitState::IdleThreads => "idle threads",
            WaitState::Lock => "lock competition",
            WaitState::Accelerator => "wait for accelerator",
            WaitState::Tasks => "wait for tasks",
            WaitState::Join => "wait for the end of a thread",
            WaitState::IdleAccelerator => "idle accelerator",
            WaitState::LatePost => "late post",
            WaitState::LateComplete => "late complete",
        }
    }
}
