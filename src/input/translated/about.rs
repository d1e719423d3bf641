//! What a file that is translated says beside its records: its host, its clock, its spans; and the file itself.

use super::error::TranslationError;
use super::sealed::SealedTranslation;
use super::spans::Spans;
use super::storage::TranslatedStorage;
use crate::base::ctx::Cancelled;
use crate::input::tracepoint::{RecorderClock, TraceParts, TracepointTrace};
use std::fs::File;
use std::io;
use std::io::BufReader;

/// What a file says about its host and clock.
#[derive(Debug, Default)]
pub(super) struct About {
    pub(super) environment: Vec<(&'static str, String)>,
    pub(super) clock: RecorderClock,
    /// Where it has no events of the kernel.
    pub(super) spans: Option<Spans>,
}

impl About {
    pub(super) fn trace(self, sealed: SealedTranslation) -> TranslatedTrace {
        TranslatedTrace::new(TraceParts {
            version: sealed.storage.format.name.to_owned(),
            storage: sealed.storage,
            schemas: sealed.schemas,
            cpu_streams: sealed.cpu_streams,
            environment: self.environment,
            clock: self.clock,
            notices: sealed.notices,
        })
    }
}

/// A file that is read from its beginning.
pub(super) struct PlainSource {
    pub(super) reader: BufReader<File>,
    /// Bytes of the file.
    pub(super) size: u64,
}

/// What a file says, or the reason why it cannot be read.
pub(super) type Translated = Result<io::Result<Result<About, TranslationError>>, Cancelled>;

/// An opened recording.
pub type TranslatedTrace = TracepointTrace<TranslatedStorage>;
