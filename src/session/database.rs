//! Execution databases in place of their traces: the executions of the tasks that they hold, without reading events.
//!
//! Several databases become one model, as several traces do: each execution has the label of its trace. Which of them
//! hold a recording, and in which order they are named, changes nothing. Their executions are read one recording after
//! the other; in memory is what a model keeps of them.

use super::UsageError;
use crate::base::ctx::Ctx;
use crate::base::notice::{Notice, Notices};
use crate::base::time::Ns;
use crate::input::Argument;
use crate::model::Model;
use crate::model::facts::{Facts, TaskDurations};
use crate::model::join::{Joiner, LabelNames, Renamed};
use crate::model::weights::RankedValues;
use crate::reading::delimiter_names::system_call;
use crate::saved::executions::Database;
use crate::saved::executions::recordings::{self, RecordingPlace, StoredPart, StoredRecording};
use crate::saved::{SavedFileError, SavedKind};
use foldhash::HashSet;
use std::collections::BTreeSet;
use std::sync::Arc;

/// A label of the user, the labels in whose place it is, and their file.
type GivenLabel = (String, BTreeSet<String>, String);

/// Several databases cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("{} databases cannot be read: nothing was done", .0.len())]
pub struct UnreadDatabases(pub Vec<SavedFileError>);

/// The databases of a command line.
#[derive(Default)]
pub struct Databases {
    /// Each with the label that the user gave it.
    pub(super) opened: Vec<(Option<String>, Database)>,
    relabelled: Vec<GivenLabel>,
    /// Recordings whose executions of a task were there before under the same labels.
    repeated: HashSet<(RecordingPlace, String)>,
    /// Folders and files in which others may be, each with the reason why they were not searched.
    unsearched: Vec<String>,
}

impl Databases {
    /// Open what is named, if it is databases. Cost: their headers, and what they say of their recordings.
    pub fn open(arguments: &[Argument]) -> anyhow::Result<Option<Databases>> {
        let Some(one) = arguments.iter().find(|a| SavedKind::Executions.is_of(&a.path)) else { return Ok(None) };
        if let Some(other) = arguments.iter().find(|a| !SavedKind::Executions.is_of(&a.path)) {
            anyhow::bail!(
                "{}: not a database, and {} is one: build a database of the other as well",
                other.path.display(),
                one.path.display()
            );
        }
        let (databases, mut unread) = Databases::open_readable(arguments);
        if unread.len() > 1 {
            return Err(UnreadDatabases(unread).into());
        }
        unread.pop().map_or(Ok(()), Err)?;
        Ok(Some(databases))
    }

    /// Open those of some databases that can be read; of each other one, why not.
    pub(super) fn open_readable(arguments: &[Argument]) -> (Databases, Vec<SavedFileError>) {
        let (mut databases, mut unread) = (Databases::default(), Vec::new());
        for Argument { path, label, unopened } in arguments {
            databases.unsearched.extend(unopened.iter().cloned());
            match Database::open(path) {
                Ok(mut database) => {
                    if let Some(label) = label {
                        databases.relabel(&mut database, label);
                    }
                    databases.opened.push((label.clone(), database));
                }
                Err(why) => unread.push(why),
            }
        }
        databases.repeated = databases.find_repeated();
        (databases, unread)
    }

    fn relabel(&mut self, database: &mut Database, label: &str) {
        let mut before = BTreeSet::new();
        for recording in &mut database.contents.recordings {
            before.extend(recording.labels().into_iter().map(str::to_owned));
            recording.relabel(label);
        }
        self.relabelled.push((label.to_owned(), before, database.path().display().to_string()));
    }

    /// The labels that the user gave, each with those that its file had, and the file.
    pub(super) fn given_labels(&self) -> &[GivenLabel] {
        &self.relabelled
    }

    /// The recordings of all of them.
    pub(super) fn recordings(&self) -> impl Iterator<Item = (RecordingPlace, &StoredRecording)> + Clone {
        self.opened.iter().enumerate().flat_map(|(database, (_, opened))| {
            let place = move |recording| RecordingPlace { database, recording };
            opened.contents.recordings.iter().enumerate().map(move |(at, recording)| (place(at), recording))
        })
    }

    fn find_repeated(&self) -> HashSet<(RecordingPlace, String)> {
        let mut known = HashSet::default();
        let all = self.recordings().flat_map(|(at, recording)| recording.parts.iter().map(move |part| (at, part)));
        let wholes: HashSet<_> = all
            .clone()
            .filter(|(_, part)| part.whole == part.count)
            .map(|(_, part)| (&part.task, part.executions, &part.labels))
            .collect();
        // A sample beside what it was taken of says nothing more.
        let is_within = |part: &StoredPart| {
            part.whole != part.count && wholes.contains(&(&part.task, part.executions, &part.labels))
        };
        let repeated =
            all.filter(|(_, part)| is_within(part) || !known.insert((&part.task, part.content, &part.labels)));
        repeated.map(|(at, part)| (at, part.task.clone())).collect()
    }

    /// The recordings that count.
    fn counted(&self) -> impl Iterator<Item = &StoredRecording> {
        let counts = |at: RecordingPlace, recording: &StoredRecording| {
            recording.parts.is_empty()
                || recording.parts.iter().any(|part| !self.repeated.contains(&(at, part.task.clone())))
        };
        self.recordings().filter(move |(at, recording)| counts(*at, recording)).map(|(_, recording)| recording)
    }

    /// The files as the user named them.
    pub fn title(&self) -> String {
        let name = |(label, database): &(Option<String>, Database)| {
            label.clone().unwrap_or_else(|| database.path().display().to_string())
        };
        self.opened.iter().map(name).collect::<Vec<_>>().join(" + ")
    }

    /// Notices about the traces that they were built from.
    pub fn notices(&self) -> Notices {
        let mut notices = recordings::notices(self.counted());
        let repeated: BTreeSet<RecordingPlace> = self.repeated.iter().map(|(at, _)| *at).collect();
        notices.add(Notice::RecordingsRepeated, repeated.len() as u64, String::new);
        self.add_unsearched(&mut notices);
        notices
    }

    fn add_unsearched(&self, notices: &mut Notices) {
        for place in &self.unsearched {
            notices.add(Notice::FolderUnsearched, 1, || place.clone());
        }
    }

    /// True where users gave all labels and there are two of them: one group is each label's.
    pub fn has_two_labels(&self) -> bool {
        let labels: BTreeSet<&str> = self.counted().flat_map(StoredRecording::labels).collect();
        labels.len() == 2 && self.counted().all(|recording| recording.labelled)
    }

    /// The tasks of all of them: those that most recordings have first.
    pub fn tasks(&self) -> Vec<String> {
        recordings::tasks(self.counted())
    }

    /// The task that was named; without one the first.
    pub fn task(&self, typed: Option<&str>) -> anyhow::Result<String> {
        let tasks = self.tasks();
        let chosen = match typed {
            Some(typed) => {
                let call = || system_call(typed).and_then(|call| tasks.iter().find(|t| *t == call));
                tasks.iter().find(|t| *t == typed).or_else(call)
            }
            None => tasks.first(),
        };
        chosen.cloned().ok_or_else(|| {
            let (title, names) = (self.title(), tasks.join("`, `"));
            let build = "build it from the trace with `whyslow build --task`";
            match typed {
                Some(typed) => UsageError(format!("--task {typed}: {title} holds `{names}` only; {build}")).into(),
                None => anyhow::anyhow!("{title}: the database holds no executions; {build}"),
            }
        })
    }

    /// One line for a question that only the events answer.
    pub fn refuse<T>(&self, question: &str) -> anyhow::Result<T> {
        anyhow::bail!(
            "{}: this file holds the executions alone: run `whyslow {question}` on the original recording, or build \
             with --history to keep its states",
            self.title()
        )
    }

    /// Whether the executions of a task in a recording of a database count.
    pub(super) fn counts<'a>(&'a self, database: usize, task: &'a str) -> impl Fn(usize) -> bool + 'a {
        move |recording| !self.repeated.contains(&(RecordingPlace { database, recording }, task.to_owned()))
    }

    /// The executions of a task.
    pub fn model(&self, typed: Option<&str>, ctx: &Ctx) -> anyhow::Result<Model> {
        let task = self.task(typed)?;
        ctx.progress.enter("opening", self.opened.len() as u64);
        // The user may ask for any of them next.
        let tasks = self.tasks();
        let place = tasks.iter().position(|t| *t == task).unwrap_or(0);
        let mut model = match &self.opened[..] {
            [(_, database)] if self.repeated.is_empty() => database.model(place, ctx)?,
            all => {
                let renamed = Renamed::new();
                let mut joiner = Joiner::new(&renamed, LabelNames::Kept);
                for (at, (_, database)) in all.iter().enumerate() {
                    database.add_to(&mut joiner, &task, self.counts(at, &task), ctx)?;
                    ctx.progress.step(1);
                }
                joiner.finish(ctx)?
            }
        };
        let repeated = self.repeated.iter().filter(|(_, repeated)| *repeated == task).count();
        model.notices.add(Notice::RecordingsRepeated, repeated as u64, String::new);
        self.add_unsearched(&mut model.notices);
        (model.tasks, model.task) = (Arc::new(tasks), place);
        Ok(model)
    }

    /// Facts about the recordings, and how long the executions of each task took.
    pub fn survey(&self, ctx: &Ctx) -> anyhow::Result<(Facts, Vec<TaskDurations>)> {
        let facts = recordings::facts(self.counted());
        let mut all = Vec::new();
        for name in self.tasks() {
            let mut found: Vec<(Ns, u64)> = Vec::new();
            for (at, (_, database)) in self.opened.iter().enumerate() {
                found.extend(database.durations(&name, self.counts(at, &name), ctx)?);
            }
            let are_one = found.iter().all(|(_, weight)| *weight == 1);
            let durations = RankedValues::new(found.into_iter(), are_one);
            all.push(TaskDurations { name, durations });
        }
        Ok((facts, all))
    }
}
