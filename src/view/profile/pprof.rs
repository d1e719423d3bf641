//! The profile format of pprof: gzipped protocol buffers (`profile.proto` of google/pprof), with three values for each
//! stack: `slow`, `fast` and `difference`.

use super::Profile;
use crate::compare::Comparison;
use crate::model::Model;
use flate2::Compression;
use flate2::write::GzEncoder;
use prost::Message;
use std::io::Write;

/// `Profile` of profile.proto, as far as it is needed here.
#[derive(Clone, PartialEq, Message)]
pub(super) struct PprofProfile {
    #[prost(message, repeated, tag = "1")]
    sample_type: Vec<ValueType>,
    #[prost(message, repeated, tag = "2")]
    sample: Vec<PprofSample>,
    #[prost(message, repeated, tag = "4")]
    location: Vec<PprofLocation>,
    #[prost(message, repeated, tag = "5")]
    function: Vec<PprofFunction>,
    #[prost(string, repeated, tag = "6")]
    string_table: Vec<String>,
    #[prost(int64, tag = "14")]
    default_sample_type: i64,
}

/// `ValueType`: positions in the string table.
#[derive(Clone, Copy, PartialEq, Message)]
struct ValueType {
    #[prost(int64, tag = "1")]
    kind: i64,
    #[prost(int64, tag = "2")]
    unit: i64,
}

/// `Sample`: locations from the innermost frame, and a value for each type.
#[derive(Clone, PartialEq, Message)]
struct PprofSample {
    #[prost(uint64, repeated, tag = "1")]
    location_id: Vec<u64>,
    #[prost(int64, repeated, tag = "2")]
    value: Vec<i64>,
}

/// `Location`.
#[derive(Clone, PartialEq, Message)]
struct PprofLocation {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(message, repeated, tag = "4")]
    line: Vec<PprofLine>,
}

/// `Line`.
#[derive(Clone, Copy, PartialEq, Message)]
struct PprofLine {
    #[prost(uint64, tag = "1")]
    function_id: u64,
}

/// `Function`: name and system name are positions in the string table.
#[derive(Clone, Copy, PartialEq, Message)]
struct PprofFunction {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(int64, tag = "2")]
    name: i64,
    #[prost(int64, tag = "3")]
    system_name: i64,
}

/// The gzipped profile.
pub fn pprof(model: &Model, comparison: &Comparison) -> Vec<u8> {
    let profile = Profile::new(model, comparison);
    // The first string is the empty one; then the types and their unit; then the frames.
    let words = ["", "nanoseconds", "slow", "fast", "difference"];
    let value_type = |kind| ValueType { kind, unit: 1 };
    let ids = || 1..=profile.frames.len() as u64;
    let first_frame = words.len() as i64 - 1;
    let encoded = PprofProfile {
        sample_type: (2..5).map(value_type).collect(),
        sample: profile
            .stacks
            .iter()
            .map(|stack| PprofSample {
                location_id: stack.frames.iter().rev().map(|frame| u64::from(*frame) + 1).collect(),
                value: vec![stack.slow_ns, stack.fast_ns, stack.slow_ns - stack.fast_ns],
            })
            .collect(),
        location: ids().map(|id| PprofLocation { id, line: vec![PprofLine { function_id: id }] }).collect(),
        function: ids()
            .map(|id| {
                let name = first_frame + id as i64;
                PprofFunction { id, name, system_name: name }
            })
            .collect(),
        string_table: words.iter().map(|word| (*word).to_owned()).chain(profile.frames.iter().cloned()).collect(),
        default_sample_type: 4,
    }
    .encode_to_vec();
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    // Writing to memory does not fail.
    gzip.write_all(&encoded).and_then(|()| gzip.finish()).unwrap_or_default()
}

#[cfg(test)]
pub(super) fn decode(bytes: &[u8]) -> Result<PprofProfile, prost::DecodeError> {
    PprofProfile::decode(bytes)
}

#[cfg(test)]
impl PprofProfile {
    pub(super) fn types(&self) -> Vec<&str> {
        self.sample_type.iter().map(|t| self.string_table[t.kind as usize].as_str()).collect()
    }

    pub(super) fn values(&self) -> impl Iterator<Item = &[i64]> {
        self.sample.iter().map(|sample| &sample.value[..])
    }
}
