//! Event records of an OTF2 location: OTF2-FACTS.md section 7. Ids are global; requests are local to the location.

/// The part of a send or receive that matching needs. Ids are global.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Envelope {
    /// The other side's rank in the communicator.
    pub peer: u32,
    pub communicator: u32,
    pub tag: u32,
    /// Bytes of the message.
    pub bytes: u64,
}

/// A task: the thread of its team that created it, and its number among the tasks of that thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TaskKey {
    /// Communicator of the team; 0 where tasks are numbered over the whole process.
    pub team: u32,
    /// Thread that created it.
    pub creator: u32,
    /// 0 for the implicit task of a team's thread.
    pub number: u64,
}

/// A created thread, identified by its contingent and its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CreatedThread {
    /// Communicator of all threads of the contingent.
    pub contingent: u32,
    /// Its number among them.
    pub sequence: u64,
}

/// A parameter's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParameterValue {
    /// By the id of the text.
    Text(u32),
    Number(i128),
}

/// A recorded value of a metric.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MetricValue {
    /// A whole number.
    Integer(i64),
    /// Another number.
    Double(f64),
}

/// An attribute of an event.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EventAttribute {
    /// Global id.
    pub id: u32,
    pub value: AttributeValue,
}

/// The value of an attribute.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum AttributeValue {
    /// A whole number.
    Number(i128),
    /// Another number.
    Double(f64),
    /// By the global id of the text.
    Text(u32),
    /// The id of another definition.
    Reference(u64),
}

impl AttributeValue {
    /// As a number that identifies something.
    pub fn number(self) -> Option<u64> {
        match self {
            AttributeValue::Number(number) => u64::try_from(number).ok(),
            AttributeValue::Reference(id) => Some(id),
            AttributeValue::Double(_) | AttributeValue::Text(_) => None,
        }
    }
}

/// An operation on a window's lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RmaLock {
    /// It is requested.
    Request,
    /// It is acquired.
    Acquire,
    /// It is released.
    Release,
}

/// The contents of a record. Region and communicator ids are global; requests are local to the location.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventRecord {
    /// A region begins.
    Enter(u32),
    /// A region ends.
    Leave(u32),
    /// A message leaves; `request` for a non-blocking send.
    Send {
        /// Receiver.
        to: Envelope,
        /// Completed later under this number.
        request: Option<u64>,
    },
    /// A non-blocking send completed.
    SendComplete(u64),
    /// A non-blocking receive was posted.
    ReceiveRequest(u64),
    /// A message has arrived; `request` for a non-blocking receive.
    Receive {
        /// Sender.
        from: Envelope,
        /// Posted earlier under this number.
        request: Option<u64>,
    },
    /// A non-blocking operation was cancelled.
    RequestCancelled(u64),
    /// A collective operation begins.
    CollectiveBegin,
    /// A collective operation ends.
    CollectiveEnd {
        operation: u8,
        communicator: u32,
        /// Rank of the root in the communicator; all ones where there is none.
        root: u32,
    },
    /// A collective operation of a request is complete.
    CollectiveComplete {
        operation: u8,
        communicator: u32,
        /// Rank of the root in the communicator; all ones where there is none.
        root: u32,
    },
    /// The thread begins a parallel region, which its team executes.
    Fork,
    /// The parallel region ends.
    Join,
    /// The thread begins to work in a team, by the team's communicator.
    TeamBegin(u32),
    /// The thread ends its work in a team.
    TeamEnd(u32),
    /// A task is created that a thread of the team will run.
    TaskCreate(TaskKey),
    /// The thread continues with this task; task 0 is its part of the team's work.
    TaskSwitch(TaskKey),
    /// The task is done.
    TaskComplete(TaskKey),
    /// The thread waits for another to end.
    ThreadWait(CreatedThread),
    ThreadEnd(CreatedThread),
    /// The thread acquired a lock.
    Acquire {
        lock: u32,
        /// Number of this acquisition, counted from the first.
        order: u32,
    },
    /// The thread released a lock.
    Release {
        lock: u32,
        /// Number of the acquisition that ends.
        order: u32,
    },
    /// A call begins in this calling context, or a sample found the thread in it.
    Context {
        context: u32,
        /// The number of its innermost calls that began since the record before.
        entered: u32,
    },
    /// A calling context ends.
    ContextLeave(u32),
    /// The tracer wrote out its buffer until then, in ticks of the location's own clock: the program was stopped.
    Flush {
        /// The time at which the program continued.
        until: u64,
    },
    /// Values of a metric class or instance: [`EventReader::values`](super::events::EventReader::values) has them.
    Metric(u32),
    /// A parameter of the innermost region.
    Parameter {
        parameter: u32,
        value: ParameterValue,
    },
    /// A window of memory is created or destroyed.
    RmaWindow(u32),
    /// A collective operation on a window ends.
    RmaCollectiveEnd {
        operation: u8,
        window: u32,
    },
    /// A synchronisation with the ranks of a group.
    RmaGroupSync {
        window: u32,
        group: u32,
    },
    /// The lock of a rank's part of a window is requested, acquired, or released.
    RmaLock {
        /// The operation.
        what: RmaLock,
        window: u32,
        /// Rank whose memory it is.
        remote: u32,
    },
    /// A put, a get, or an atomic operation.
    RmaTransfer {
        window: u32,
        /// Rank whose memory it is.
        remote: u32,
        /// Size.
        bytes: u64,
    },
    /// An operation on a file begins.
    IoBegin {
        /// Of the file.
        handle: u32,
        /// Reads, writes, or neither; OTF2's number.
        mode: u8,
        /// Its number in the location.
        matching: u64,
    },
    /// An operation on a file is complete.
    IoComplete {
        /// Of the file.
        handle: u32,
        /// Bytes that it moved.
        bytes: u64,
        /// Its number in the location.
        matching: u64,
    },
    /// Anything else.
    Other,
}

/// One event record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimedRecord {
    /// Time as recorded, in ticks of the location's own clock.
    pub ticks: u64,
    /// Record type.
    pub class: u8,
    /// Contents.
    pub event: EventRecord,
}
