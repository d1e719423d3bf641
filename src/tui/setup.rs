//! Input of the interface: a title, its appearance, and the [`Backend`] that runs the jobs.

use super::job::{BaselineInput, Exported, TaskSummary, WriteOutcome};
use super::key_map::KeyMap;
use super::report::AnomalyReport;
use super::saved::SavedView;
use super::theme::{ColourDepth, ThemeSource};
use crate::base::ctx::Ctx;
use crate::base::file::{self, Existing};
use crate::base::sandbox;
use crate::base::time::Span;
use crate::compare::{Comparison, ComparisonRequest};
use crate::model::Model;
use crate::model::concurrent::{ConcurrentQuestion, ConcurrentUse};
use crate::model::execution::ExecutionId;
use crate::model::overview::RecordingOverview;
use crate::model::settings::Settings;
use crate::model::thread_lanes::{ThreadsAnswer, ThreadsQuestion};
use crate::view::report::Invocation;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FirstQuestion {
    /// Why slow executions are slow; patterns only on request, or where there are no executions.
    Executions,
    /// Anomalies of patterns: nothing in the input delimits executions.
    Patterns,
}

/// The work behind the interface; called on one background thread, one call at a time.
///
/// Long work checks `ctx.cancel` often enough to end within 100 ms, and reports to `ctx.progress`.
/// Errors are shown as they are: one sentence with the place and the remedy.
pub trait Backend: Send {
    /// Analyse the traces for a task by name; `None` on the first call: the command line's, or the trace's first.
    fn analyse(&mut self, task: Option<&str>, ctx: &Ctx) -> anyhow::Result<Arc<Model>>;

    /// Open the input anew, together with a recording or one of its labels as the fast side (`None`: without), and
    /// analyse the task. After an error the input is open as before. By default there is no other input.
    fn set_baseline(&mut self, _: Option<&str>, _: Option<&str>, _: &Ctx) -> anyhow::Result<BaselineInput> {
        anyhow::bail!("no other recording can be opened here")
    }

    /// Compare two groups; where the request is empty, proposed ones.
    fn compare(&mut self, model: &Model, request: &ComparisonRequest, ctx: &Ctx) -> anyhow::Result<Comparison>;

    /// The anomalies of the repeating patterns of each thread or rank under these settings. The patterns are mined at
    /// the first call and kept until another task is analysed.
    fn anomalies(&mut self, settings: &Settings, ctx: &Ctx) -> anyhow::Result<AnomalyReport>;

    /// The tasks that have executions, in the order of the tasks. By default none is known.
    fn survey(&mut self, _: &Ctx) -> anyhow::Result<Vec<TaskSummary>> {
        Ok(Vec::new())
    }

    /// The model of the current task, with the timelines of some executions. By default there are none.
    fn timelines(&mut self, _: &[ExecutionId], _: &Ctx) -> anyhow::Result<Arc<Model>> {
        anyhow::bail!("there are no timelines here")
    }

    /// The threads that used the same CPU, a disk or a lock at the same time. By default none is known.
    fn concurrent(&mut self, _: &ConcurrentQuestion, _: &Ctx) -> anyhow::Result<ConcurrentUse> {
        Ok(ConcurrentUse::default())
    }

    /// A span of the recording, or the whole of it, in cells. By default there is none.
    fn overview(&mut self, _: Option<Span>, _: &Ctx) -> anyhow::Result<RecordingOverview> {
        anyhow::bail!("there is no overview of this recording")
    }

    /// Lanes of many threads, and what one does at a moment. By default there are none.
    fn threads(&mut self, _: &ThreadsQuestion, _: &Ctx) -> anyhow::Result<ThreadsAnswer> {
        anyhow::bail!("there are no states of threads here")
    }

    /// The JSON document of `whyslow diff --json` or `whyslow anomalies --json`, with the selected path; what
    /// `whyslow report` writes; or the database of the current task.
    fn export(&mut self, what: &Exported, ctx: &Ctx) -> anyhow::Result<Vec<u8>>;

    /// Write a file that the user named.
    fn write(&mut self, path: &Path, text: &[u8], existing: Existing) -> WriteOutcome {
        write_file(path, text, existing)
    }
}

/// Write a file in one step: it has the whole text or does not change.
pub fn write_file(path: &Path, text: &[u8], existing: Existing) -> WriteOutcome {
    match file::write(path, text, existing) {
        Ok(()) => WriteOutcome::Written(text.len() as u64),
        Err(e) if e.kind() == ErrorKind::AlreadyExists => WriteOutcome::Exists,
        // The reason and its remedy first: the line is cut at the screen's edge, and the user has just typed the path.
        Err(e) => WriteOutcome::Failed(format!("{}: {}", sandbox::explained(path, e), path.display())),
    }
}

/// Appearance and behaviour.
#[derive(Clone, Debug)]
pub struct UiOptions {
    /// Theme to begin with: the name of one built in, or a user's own source. `None`: the one that suits.
    pub theme: Option<ThemeSource>,
    /// Name of the built-in theme that suits the terminal.
    pub suits: &'static str,
    /// Colours that the terminal shows.
    pub depth: ColourDepth,
    /// ASCII only.
    pub ascii: bool,
    /// Enable mouse support.
    pub mouse: bool,
    /// The keys of the actions.
    pub keys: Arc<KeyMap>,
}

/// Everything that [`run`](super::run) needs.
pub struct Setup {
    /// The traces, as the header names them.
    pub title: String,
    /// The command line without the groups.
    pub command_line: Invocation,
    /// The baseline given on the command line, as typed.
    pub baseline: Option<String>,
    /// The groups given on the command line; empty: proposed.
    pub request: ComparisonRequest,
    pub first: FirstQuestion,
    /// The events are at hand, from which timelines are drawn; a database has none.
    pub has_events: bool,
    /// Appearance and behaviour.
    pub options: UiOptions,
    /// The workers, the memory limit and the budget of all jobs.
    pub ctx: Ctx,
    /// Begin the tour.
    pub tour: bool,
    /// What was open the last time.
    pub saved: Option<SavedView>,
    /// A sentence about what was kept, to be shown first.
    pub saved_notice: Option<String>,
    /// Keeps what is open for the next time; failures are not the user's concern.
    pub keep: Box<dyn FnMut(&SavedView)>,
    /// Answers the questions.
    pub backend: Box<dyn Backend>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn write_file_replaces_a_file_only_when_asked_to() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.json");
        assert_eq!(write_file(&path, b"one", Existing::Keep), WriteOutcome::Written(3));
        assert_eq!(write_file(&path, b"two", Existing::Keep), WriteOutcome::Exists);
        assert_eq!(std::fs::read(&path).unwrap(), b"one");
        assert_eq!(write_file(&path, b"three", Existing::Replace), WriteOutcome::Written(5));
        assert_eq!(std::fs::read(&path).unwrap(), b"three");
        assert!(matches!(write_file(&folder.path().join("no/such"), b"", Existing::Keep), WriteOutcome::Failed(_)));
    }
}
