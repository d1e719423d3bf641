//! The messages about tracks of a Perfetto trace, with the field numbers of its published schema
//! (`protos/perfetto/trace/track_event`, `interned_data`, `trace_packet_defaults.proto`). Fields that are not listed
//! are skipped.

use prost::Message;

/// `TrackEvent`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct TrackEventMessage {
    /// As Chrome's older events were recorded.
    #[prost(message, optional, tag = "6")]
    pub legacy: Option<LegacyEventMessage>,
    /// Begin of a span (1), its end (2), or no span.
    #[prost(int32, optional, tag = "9")]
    pub kind: Option<i32>,
    #[prost(uint64, optional, tag = "10")]
    pub name_iid: Option<u64>,
    #[prost(uint64, optional, tag = "11")]
    pub track: Option<u64>,
    #[prost(bytes = "vec", optional, tag = "23")]
    pub name: Option<Vec<u8>>,
}

/// `TrackEvent.LegacyEvent`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct LegacyEventMessage {
    #[prost(uint64, optional, tag = "1")]
    pub name_iid: Option<u64>,
    /// A letter of the JSON format.
    #[prost(int32, optional, tag = "2")]
    pub phase: Option<i32>,
    #[prost(int64, optional, tag = "3")]
    pub duration_us: Option<i64>,
}

/// `TrackDescriptor`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct TrackDescriptorMessage {
    #[prost(uint64, optional, tag = "1")]
    pub uuid: Option<u64>,
    #[prost(message, optional, tag = "4")]
    pub thread: Option<ThreadDescriptorMessage>,
    #[prost(uint64, optional, tag = "5")]
    pub parent: Option<u64>,
}

/// `ThreadDescriptor`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct ThreadDescriptorMessage {
    #[prost(int32, optional, tag = "1")]
    pub pid: Option<i32>,
    #[prost(int64, optional, tag = "2")]
    pub tid: Option<i64>,
}

/// `InternedData`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct InternedDataMessage {
    #[prost(message, repeated, tag = "2")]
    pub event_names: Vec<EventNameMessage>,
}

/// `EventName`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct EventNameMessage {
    #[prost(uint64, optional, tag = "1")]
    pub iid: Option<u64>,
    #[prost(bytes = "vec", optional, tag = "2")]
    pub name: Option<Vec<u8>>,
}

/// `TracePacketDefaults`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct PacketDefaultsMessage {
    #[prost(message, optional, tag = "11")]
    pub track_event: Option<TrackEventDefaultsMessage>,
    #[prost(uint32, optional, tag = "58")]
    pub timestamp_clock_id: Option<u32>,
}

/// `TrackEventDefaults`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct TrackEventDefaultsMessage {
    #[prost(uint64, optional, tag = "11")]
    pub track: Option<u64>,
}
