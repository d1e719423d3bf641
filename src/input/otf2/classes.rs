//! TimedRecord types of event files by number, as OTF2 names them (PUB OTF2_Events.h).

/// Numbers without a name are not event records. Types beyond the last are skipped and counted.
#[rustfmt::skip]
const NAMES: [&str; 89] = [
    "", "", "", "", "", "", "", "", "", "", "BufferFlush", "MeasurementOnOff", "Enter", "Leave", "MpiSend",
    "MpiIsend", "MpiIsendComplete", "MpiIrecvRequest", "MpiRecv", "MpiIrecv", "MpiRequestTest", "MpiRequestCancelled",
    "MpiCollectiveBegin", "MpiCollectiveEnd", "OmpFork", "OmpJoin", "OmpAcquireLock", "OmpReleaseLock",
    "OmpTaskCreate", "OmpTaskSwitch", "OmpTaskComplete", "Metric", "ParameterString", "ParameterInt",
    "ParameterUnsignedInt", "RmaWinCreate", "RmaWinDestroy", "RmaCollectiveBegin", "RmaCollectiveEnd", "RmaGroupSync",
    "RmaRequestLock", "RmaAcquireLock", "RmaTryLock", "RmaReleaseLock", "RmaSync", "RmaWaitChange", "RmaPut",
    "RmaGet", "RmaAtomic", "RmaOpCompleteBlocking", "RmaOpCompleteNonBlocking", "RmaOpTest", "RmaOpCompleteRemote",
    "ThreadFork", "ThreadJoin", "ThreadTeamBegin", "ThreadTeamEnd", "ThreadAcquireLock", "ThreadReleaseLock",
    "ThreadTaskCreate", "ThreadTaskSwitch", "ThreadTaskComplete", "ThreadCreate", "ThreadBegin", "ThreadWait",
    "ThreadEnd", "CallingContextEnter", "CallingContextLeave", "CallingContextSample", "IoCreateHandle",
    "IoDestroyHandle", "IoDuplicateHandle", "IoSeek", "IoChangeStatusFlags", "IoDeleteFile", "IoOperationBegin",
    "IoOperationTest", "IoOperationIssued", "IoOperationComplete", "IoOperationCancelled", "IoAcquireLock",
    "IoReleaseLock", "IoTryLock", "ProgramBegin", "ProgramEnd", "NonBlockingCollectiveRequest",
    "NonBlockingCollectiveComplete", "CommCreate", "CommDestroy",
];

/// The name of a record type; `None` for types that OTF2 3.0 does not know.
pub fn class_name(class: u8) -> Option<&'static str> {
    NAMES.get(usize::from(class)).copied().filter(|name| !name.is_empty())
}
