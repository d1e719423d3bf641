//! A file of spans alone: it is opened beside a recording of the kernel, or by itself.
//!
//! In: the spans, and the runs of their threads from recordings of the kernel. Out: a trace of user space. Beside a
//! kernel's recording the spans have its host and clock, and the CPU where their thread ran. The file does not say
//! which clock its times are of, so that is proved: they are taken as times of the kernel's clock, then as wall-clock
//! times, and of nine in ten begins and ends the thread must have run at that time. A file of which neither holds is
//! refused, because its executions would be placed at random. By itself nothing says whether a thread ran or waited:
//! that time is unknown, and nested spans show where it passed.

use super::about::{About, TranslatedTrace};
use super::error::TranslationError;
use super::spans::Spans;
use super::thread_runs::{ClockAgreement, ThreadRuns};
use super::translation::Translation;
use crate::base::time::Span;
use crate::input::format::{InputFormat, NamedFile};
use crate::input::tracepoint::{DOMAIN, RecordedIds, RecorderClock};
use crate::input::{OpenError, Unreadable};
use foldhash::HashSet;
use std::path::PathBuf;

/// See the module.
#[derive(Debug)]
pub struct SpanFile {
    format: &'static InputFormat,
    path: PathBuf,
    spans: Spans,
    about: About,
    translation: Translation,
}

/// A recording of the kernel, as far as spans need it.
#[derive(Debug)]
pub struct KernelOfSpans {
    /// Its host, where it names one.
    pub host: Option<String>,
    /// The name of its clock.
    pub clock_name: String,
    /// The uuid of that clock.
    pub clock_uuid: Option<String>,
    /// Nanoseconds from the origin to the zero of that clock.
    pub base: i128,
    /// The time that was recorded.
    pub recorded: Span,
    /// The runs of the threads that were asked for.
    pub runs: ThreadRuns,
}

/// A recording of the kernel, and the base of the clock on which spans agree best with it.
struct PlacedSpans {
    agreement: ClockAgreement,
    base: i128,
    kernel: usize,
}

impl SpanFile {
    pub(super) fn new(file: &NamedFile<'_>, spans: Spans, about: About, mut translation: Translation) -> SpanFile {
        translation.thread_ids = RecordedIds::Own;
        SpanFile { format: file.format, path: file.path.to_owned(), spans, about, translation }
    }

    /// The threads that begin or end spans.
    pub fn threads(&self) -> HashSet<i32> {
        self.spans.threads()
    }

    /// Open it by itself.
    pub fn alone(self) -> TranslatedTrace {
        self.trace(None)
    }

    /// Open it beside the recording of the kernel that its spans agree with best.
    pub fn beside(self, kernels: &[KernelOfSpans]) -> Result<TranslatedTrace, OpenError> {
        let agreement = |number: usize, base: i128| {
            let kernel = &kernels[number];
            let inside = self.spans.moments(base).filter(|moment| kernel.recorded.contains(moment.time));
            PlacedSpans { agreement: kernel.runs.agreement(inside), base, kernel: number }
        };
        let bases = |number: usize| [kernels[number].base, 0].map(|base| agreement(number, base));
        let all = (0..kernels.len()).flat_map(bases);
        let counts = |placed: &PlacedSpans| (placed.agreement.agree, placed.agreement.of);
        // The first of equal ones: the kernel's own clock.
        let best = all.reduce(|best, other| if counts(&other) > counts(&best) { other } else { best });
        let threads = self.threads();
        let knows = |kernel: &KernelOfSpans| threads.iter().any(|tid| kernel.runs.knows(*tid));
        match best {
            Some(placed) if placed.agreement.is_proof() => {
                let kernel = &kernels[placed.kernel];
                Ok(self.trace(Some((kernel, placed.base))))
            }
            Some(PlacedSpans { agreement: ClockAgreement { agree, of }, .. }) if of > 0 => {
                Err(Unreadable::from(TranslationError::OtherClock { agree, of }).at(&self.path))
            }
            _ if kernels.iter().any(knows) => Err(Unreadable::from(TranslationError::OtherTime).at(&self.path)),
            _ => Err(Unreadable::from(TranslationError::OtherThreads(threads.len())).at(&self.path)),
        }
    }

    fn trace(self, beside: Option<(&KernelOfSpans, i128)>) -> TranslatedTrace {
        let SpanFile { format, spans, mut about, mut translation, .. } = self;
        about.environment.push((DOMAIN, "ust".to_owned()));
        if let Some((kernel, base)) = beside {
            about.environment.extend(kernel.host.clone().map(|host| ("hostname", host)));
            let (name, uuid) = (kernel.clock_name.clone(), kernel.clock_uuid.clone());
            about.clock = RecorderClock { name, uuid, base, correction: None };
        }
        spans.write(beside.map(|(kernel, _)| &kernel.runs), about.clock.base, &mut translation);
        let mut sealed = translation.seal(format);
        if beside.is_none() {
            sealed.cpu_streams.iter_mut().for_each(|stream| stream.cpu = None);
        }
        about.trace(sealed)
    }
}
