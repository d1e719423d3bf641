//! The recordings of databases that have the task of a trend and count.
//!
//! In: opened databases. Out: the task, which recordings are left out and why, and their parts one after the other.
//! Cost: what the databases say of their recordings is looked at once; each part is read when it is passed.

use super::super::database::Databases;
use super::bounded;
use crate::base::ctx::Ctx;
use crate::base::digest::Digest;
use crate::compare::trend::lengths::Figure;
use crate::model::Model;
use crate::saved::SavedFileError;
use crate::saved::executions::recordings::{RecordingPlace, StoredPart, StoredRecording};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Names of tasks in a line.
const NAMED: usize = 5;

/// The first of the tasks of which most recordings have enough executions for a figure.
fn with_most(databases: &Databases, figure: Figure) -> Option<String> {
    let fewest = figure.fewest_executions();
    let mut enough: BTreeMap<&str, u64> = BTreeMap::new();
    for (_, recording) in databases.recordings() {
        for part in recording.parts.iter().filter(|part| part.count >= fewest) {
            *enough.entry(&part.task).or_default() += 1;
        }
    }
    let times = |task: &String| enough.get(task.as_str()).copied().unwrap_or(0);
    databases.tasks().into_iter().rev().max_by_key(|task| times(task))
}

/// The recordings of databases that count, and what is to be known of them.
pub(super) struct ChosenRecordings {
    pub task: String,
    left_out: BTreeSet<RecordingPlace>,
    pub lines: Vec<String>,
}

impl ChosenRecordings {
    pub fn new(databases: &Databases, typed: Option<&str>, figure: Figure) -> anyhow::Result<ChosenRecordings> {
        let task = databases.task(typed)?;
        let task = if typed.is_none() { with_most(databases, figure).unwrap_or(task) } else { task };
        let mut lines = Vec::new();
        let others: Vec<String> = databases.tasks().into_iter().filter(|other| *other != task).collect();
        if typed.is_none() && !others.is_empty() {
            let names = others.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join("`, `");
            let all = others.len() + 1;
            lines.push(format!("`{task}` is taken of {all} tasks; --task names another: `{names}`"));
        }
        let path = |at: usize| databases.opened[at].1.path().display().to_string();
        let (mut without, mut left_out, mut twice) = (Vec::new(), BTreeSet::new(), Vec::new());
        let mut known: BTreeMap<Digest, (Digest, RecordingPlace)> = BTreeMap::new();
        for (at, (_, database)) in databases.opened.iter().enumerate() {
            let of_task = |recording: &StoredRecording| recording.parts.iter().any(|part| part.task == task);
            if !database.contents.recordings.iter().any(of_task) {
                let tasks = database.contents.tasks();
                let names = tasks.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join("`, `");
                without.push(format!("{}: no executions of `{task}`, it has `{names}`: left out", path(at)));
            }
        }
        for (place, recording) in databases.recordings() {
            for part in recording.parts.iter().filter(|part| part.task == task && part.count > 0) {
                let (content, first) = *known.entry(part.executions).or_insert((part.content, place));
                if content != part.content {
                    left_out.insert(place);
                    twice.push(format!(
                        "{}: its executions of `{task}` are those of {}, built with other symbols or by another \
                         version, or a sample of them: left out",
                        path(place.database),
                        path(first.database)
                    ));
                }
            }
        }
        lines.extend(bounded(without, "file without the task"));
        lines.extend(bounded(twice, "recording that was built twice"));
        Ok(ChosenRecordings { task, left_out, lines })
    }

    /// Pass each part that counts, with the number of its recording among all.
    pub fn each_part(
        &self,
        databases: &Databases,
        ctx: &Ctx,
        mut put: impl FnMut((u32, &StoredRecording, &Path), &StoredPart, Model) -> anyhow::Result<()>,
    ) -> anyhow::Result<Vec<String>> {
        ctx.progress.enter("reading", databases.opened.len() as u64);
        let (mut unread, mut first) = (Vec::<String>::new(), 0);
        // Of what cannot be read another file may have a copy.
        let mut missing: BTreeSet<(Digest, Vec<String>)> = BTreeSet::new();
        for (at, (_, database)) in databases.opened.iter().enumerate() {
            let counts = databases.counts(at, &self.task);
            let is_left_out = |recording| self.left_out.contains(&RecordingPlace { database: at, recording });
            let has_missing = |recording: usize| {
                let parts = database.contents.recordings.get(recording).into_iter().flat_map(|known| &known.parts);
                let mut of_task = parts.filter(|part| part.task == self.task);
                of_task.any(|part| missing.contains(&(part.content, part.labels.clone())))
            };
            let copies: BTreeSet<usize> =
                (0..database.contents.recordings.len()).filter(|at| has_missing(*at)).collect();
            let is_chosen =
                |recording: usize| (counts(recording) || copies.contains(&recording)) && !is_left_out(recording);
            database.each_part_of(&self.task, is_chosen, ctx, |recording, part, model| {
                let number = u32::try_from(first + recording).unwrap_or(u32::MAX);
                match model {
                    Ok(model) => {
                        missing.remove(&(part.content, part.labels.clone()));
                        put((number, &database.contents.recordings[recording], database.path()), part, model)
                    }
                    Err(SavedFileError::Cancelled(cancelled)) => Err(cancelled.into()),
                    Err(why) => {
                        missing.insert((part.content, part.labels.clone()));
                        let why = why.to_string();
                        if unread.last() != Some(&why) {
                            unread.push(why);
                        }
                        Ok(())
                    }
                }
            })?;
            first += database.contents.recordings.len();
            ctx.progress.step(1);
        }
        Ok(unread)
    }
}
