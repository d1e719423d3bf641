//! A stream in JSON: its name, and what it is: a rank, or a thread of a process.
//!
//! In: the position of a stream. Out: fields that other objects have among theirs (PRODUCT.md).

use crate::base::clean;
use crate::model::anomalies::{Anomalies, StreamInfo};
use crate::model::thread::ThreadIdentity;
use serde::Serialize;

/// A place: `pid`, `tid` and `thread` in kernel recordings only, `rank` null there.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct PlaceJson {
    stream: String,
    rank: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    label: Option<String>,
    #[serde(flatten)]
    thread: Option<ThreadJson>,
}

#[derive(Clone, Debug, Serialize)]
struct ThreadJson {
    pid: i32,
    tid: i32,
    thread: String,
    process: String,
}

/// A stream, by its position.
pub(super) fn place_of(found: &Anomalies, stream: u32) -> PlaceJson {
    let thread = |t: &ThreadIdentity| ThreadJson {
        pid: t.pid,
        tid: t.tid,
        thread: clean::owned(&t.name),
        process: clean::owned(&t.process),
    };
    let place = |s: &StreamInfo| PlaceJson {
        stream: clean::owned(&s.name),
        rank: s.rank,
        label: (!s.label.is_empty()).then(|| clean::owned(&s.label)),
        thread: s.thread.as_ref().map(thread),
    };
    found.streams.get(stream as usize).map(place).unwrap_or_default()
}
