//! How the tables of executions call what a model has, for those who write, read and ask them (docs/fleet/SCHEMA.md).
//!
//! In: metrics and contexts. Out: the names of columns, which have their units, and the keys of contexts, which are the
//! same in every database. Cost: a digest for each context.

use super::Model;
use super::metric::{Metric, Unit};
use super::wait_kind::WaitKind;
use crate::base::digest::{Digest, Digester};
use crate::model::context::{Frame, FrameKind};
use std::collections::BTreeSet;

/// The columns of executions that do not depend on the recording, and the folders of their files.
const FIXED: [&str; 18] = [
    "part",
    "task",
    "execution",
    "label",
    "start_ns",
    "duration_ns",
    "weight",
    "process",
    "thread",
    "pid",
    "tid",
    "thread_id",
    "trace_id",
    "cpu",
    "unsure",
    "host_name",
    "day",
    "host",
];

/// The fixed column that has a metric.
pub fn column_of(metric: &Metric) -> Option<&'static str> {
    Some(match metric {
        Metric::Duration => "duration_ns",
        // Since the epoch of the clock, from which that since the first event of the recording follows.
        Metric::Start => "start_ns",
        Metric::Trace => "label",
        Metric::Process => "process",
        Metric::Thread => "thread",
        Metric::Weight => "weight",
        _ => return None,
    })
}

/// The metrics in the order of the model, each with its column.
pub fn metric_columns(model: &Model) -> Vec<(Metric, String)> {
    let mut known: BTreeSet<String> = FIXED.iter().map(|name| (*name).to_owned()).collect();
    let column = |metric: &Metric| column_of(metric).map_or_else(|| column_name(metric, &mut known), str::to_owned);
    let metrics: Vec<&Metric> = model.executions.columns.iter().map(|column| &column.metric).collect();
    let columns: Vec<String> = metrics.iter().copied().map(column).collect();
    metrics.into_iter().cloned().zip(columns).collect()
}

/// The column of a metric, whose name has its unit: `blocked_disk_ns`, `field_id`; another one where it is taken.
fn column_name(metric: &Metric, known: &mut BTreeSet<String>) -> String {
    let name: String =
        metric.name().chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' }).collect();
    let suffix = match metric.unit() {
        Unit::Ns => "_ns",
        Unit::Bytes if !name.starts_with("bytes_") => "_bytes",
        _ => "",
    };
    let free = |name: &String| !known.contains(name);
    let plain = format!("{name}{suffix}");
    let numbered = (2..).map(|n| format!("{name}_{n}{suffix}"));
    let other = [plain, format!("metric_{name}{suffix}")].into_iter().chain(numbered).find(free).unwrap_or_default();
    known.insert(other.clone());
    other
}

/// The kind of a frame in words.
pub fn frame_name(kind: FrameKind) -> &'static str {
    match kind {
        FrameKind::Process => "process",
        FrameKind::Function => "function",
        FrameKind::Inlined => "inlined",
        FrameKind::File => "file",
        FrameKind::KernelFunction => "kernel function",
        FrameKind::Call => "call",
        FrameKind::Wait(_) => "wait",
        FrameKind::Thread(_) => "thread",
        FrameKind::NoStack => "no stack",
    }
}

/// How a thread waits in a frame of kind `wait` or `thread`.
pub fn wait_of(kind: FrameKind) -> Option<WaitKind> {
    match kind {
        FrameKind::Wait(wait) | FrameKind::Thread(wait) => Some(wait),
        _ => None,
    }
}

/// The kind of a frame from its words ([`frame_name`]), and how a thread waits there.
#[cfg(feature = "parquet")]
pub fn frame_kind(name: &str, wait: Option<WaitKind>) -> Option<FrameKind> {
    let waiting = wait.map(|wait| vec![FrameKind::Wait(wait), FrameKind::Thread(wait)]);
    let kinds = waiting.unwrap_or_else(|| {
        vec![
            FrameKind::Process,
            FrameKind::Function,
            FrameKind::Inlined,
            FrameKind::File,
            FrameKind::KernelFunction,
            FrameKind::Call,
            FrameKind::NoStack,
        ]
    });
    kinds.into_iter().find(|kind| frame_name(*kind) == name)
}

/// By context the digest of its frames from the root: what is equal in two databases has one key.
pub fn context_keys(model: &Model) -> Vec<Digest> {
    let mut keys: Vec<Digest> = Vec::with_capacity(model.contexts.len());
    for (parent, Frame { kind, name }) in model.contexts.nodes() {
        let mut digester = Digester::default();
        if let Some(above) = parent.and_then(|parent| keys.get(parent.index())) {
            digester.add_whole(above.to_string().as_bytes());
        }
        digester.add_whole(frame_name(kind).as_bytes());
        if let Some(wait) = wait_of(kind) {
            digester.add_whole(wait.name().as_bytes());
        }
        digester.add_whole(model.names.get(name).as_bytes());
        keys.push(digester.finish());
    }
    keys
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn column_names_have_units_and_are_different() {
        let mut known = BTreeSet::from(["start_ns".to_owned()]);
        let mut name = |metric: &str| column_name(&Metric::named(metric).unwrap(), &mut known);
        assert_eq!(name("blocked.disk"), "blocked_disk_ns");
        assert_eq!((name("start"), name("bytes_read")), ("metric_start_ns".to_owned(), "bytes_read".to_owned()));
        assert_eq!((name("field.a-b"), name("field.a.b")), ("field_a_b".to_owned(), "metric_field_a_b".to_owned()));
        assert_eq!(name("field.A_b"), "field_a_b_2");
    }
}
