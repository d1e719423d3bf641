//! What a part of a database has that no column has, so that import gives back the same database.
//!
//! In: the part and its recording. Out: a text, the hexadecimal digits of its packed bytes; and back. It holds the
//! facts of the recording, the notices, what each trace recorded, how far the events of hosts agree, and the names that
//! neither contexts nor threads have. Cost: linear in these; a text that is none of ours is refused.

use crate::base::digest::Digest;
use crate::base::names::{NameId, Names};
use crate::base::packed::{bytes_of, packed, value_of};
use crate::model::facts::HostQuality;
use crate::model::recorded::Recorded;
use crate::model::{Model, ThreadInfo};
use crate::saved::executions::recordings::{StoredPart, StoredRecording};
use std::collections::BTreeSet;
use std::fmt::Write;

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RestOfPart {
    /// Without parts.
    pub recording: StoredRecording,
    /// Of the part as it was exported.
    pub digest: Digest,
    /// The position of the part among those of the recording.
    pub place: usize,
    pub part: StoredPart,
    /// By trace.
    pub recorded: Vec<Option<Recorded>>,
    pub quality: Vec<HostQuality>,
    /// Names that no context and no thread has, and those of them, and of all others, that have marks.
    pub names: Vec<String>,
    pub unproven: Vec<String>,
    pub runtime: Vec<String>,
    /// In order, where there are no executions whose file lists them.
    pub metrics: Vec<String>,
}

packed! {
    RestOfPart { recording, digest, place, part, recorded, quality, names, unproven, runtime, metrics }
}

fn metrics(model: &Model) -> Vec<String> {
    model.executions.columns.iter().map(|column| column.metric.name()).collect()
}

impl RestOfPart {
    /// Of a part with this digest, and these names, which lack those that are labels alone.
    pub fn new(
        (recording, part): (&StoredRecording, &StoredPart),
        model: &Model,
        names: &Names,
        digest: Digest,
    ) -> RestOfPart {
        let of_contexts = model.contexts.nodes().map(|(_, frame)| model.names.get(frame.name));
        let of_threads = model.who.iter().flat_map(|ThreadInfo { host, process, thread, .. }| [host, process, thread]);
        let elsewhere: BTreeSet<&str> = of_contexts.chain(of_threads.map(|name| model.names.get(*name))).collect();
        let text = |id: NameId| names.get(id).to_owned();
        RestOfPart {
            recording: StoredRecording { parts: Vec::new(), ..recording.clone() },
            digest,
            place: recording.parts.iter().position(|known| known == part).unwrap_or(0),
            part: part.clone(),
            recorded: model.traces.iter().map(|trace| trace.recorded.clone()).collect(),
            quality: model.quality.clone(),
            names: (0..names.len())
                .map(|at| text(NameId::at(at)))
                .filter(|name| !elsewhere.contains(name.as_str()))
                .collect(),
            unproven: names.unproven().map(text).collect(),
            runtime: names.runtime().map(text).collect(),
            metrics: if model.executions.is_empty() { metrics(model) } else { Vec::new() },
        }
    }

    /// As a text.
    pub fn to_text(&self) -> String {
        let bytes = bytes_of(self);
        let mut text = String::with_capacity(2 * bytes.len());
        for byte in bytes {
            let _ = write!(text, "{byte:02x}");
        }
        text
    }

    /// From its text.
    pub fn of_text(text: &[u8]) -> Option<RestOfPart> {
        let digit = |digit: u8| char::from(digit).to_digit(16).map(|digit| digit as u8);
        let byte = |pair: &[u8]| Some(digit(*pair.first()?)? << 4 | digit(*pair.get(1)?)?);
        let bytes: Option<Vec<u8>> = text.chunks(2).map(byte).collect();
        value_of(&bytes?)
    }
}
