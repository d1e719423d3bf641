//! Databases merged into one.
//!
//! In: opened databases. Out: a file with all of their recordings, each once, and what was left out, in words.

use super::UsageError;
use super::database::Databases;
use crate::base::ctx::Ctx;
use crate::base::figure;
use crate::base::file::Output;
use crate::saved::executions::Database;
use crate::saved::executions::merge::merge;
use crate::saved::executions::recordings::{BuiltTwice, ChosenParts, RecordingPlace, RepeatedParts, chosen_parts};
use std::collections::{BTreeMap, BTreeSet};

/// A merge that was decided upon.
pub struct MergePlan {
    pub(super) databases: Vec<Database>,
    pub(super) chosen: ChosenParts,
    /// What is left out, and what to know of the labels; a line each.
    pub remarks: Vec<String>,
}

/// Lines about recordings that are left out, at most; the rest is counted.
const MOST_LINES: usize = 20;

impl Databases {
    /// Decide which recordings of the databases belong to their union. An error in one line where a label would hide
    /// others, or where executions would count twice.
    pub fn merge_plan(self) -> anyhow::Result<MergePlan> {
        for (label, labels, path) in self.given_labels() {
            if labels.len() > 1 {
                let labels: Vec<&str> = labels.iter().map(String::as_str).collect();
                let why = "one label in their place would lose them: name the file without a label";
                let shown = labels.join("`, `");
                return Err(
                    UsageError(format!("{label}={path}: its recordings have the labels `{shown}`; {why}")).into()
                );
            }
        }
        let contents: Vec<_> = self.opened.iter().map(|(_, database)| &database.contents).collect();
        let chosen = chosen_parts(&contents).map_err(|twice| self.built_twice(&twice))?;
        let mut remarks: Vec<String> = chosen.repeated.iter().map(|repeated| self.repeated(*repeated)).collect();
        if remarks.len() > MOST_LINES {
            let rest = remarks.len() - (MOST_LINES - 1);
            remarks.truncate(MOST_LINES - 1);
            remarks
                .push(format!("{} more are there twice: each counts once", figure::plural(rest as u64, "recording")));
        }
        let kept: BTreeSet<RecordingPlace> = chosen.kept.iter().map(|(place, _)| *place).collect();
        remarks.extend(self.shared_labels(&kept));
        let databases = self.opened.into_iter().map(|(_, database)| database).collect();
        Ok(MergePlan { databases, chosen, remarks })
    }

    fn path(&self, place: RecordingPlace) -> String {
        self.opened.get(place.database).map_or_else(String::new, |(_, opened)| opened.path().display().to_string())
    }

    fn built_twice(&self, BuiltTwice { task, places: [a, b] }: &BuiltTwice) -> anyhow::Error {
        let (a, b) = (self.path(*a), self.path(*b));
        anyhow::anyhow!(
            "{b}: the executions of `{task}` are those of {a}, built with other symbols or by another version, or a \
             sample of them: each would count twice; leave one of the files out"
        )
    }

    fn repeated(&self, RepeatedParts { of, kept_in, parts, are_all }: RepeatedParts) -> String {
        let (file, other) = (self.path(of), self.path(kept_in));
        let known = if file == other { "named before".to_owned() } else { format!("in {other}, too") };
        let what = if are_all { "its recording is".to_owned() } else { tasks_are(parts) };
        format!("{file}: {what} {known}: left out")
    }

    /// A label that is a path, and of recordings of several files, does not distinguish them.
    fn shared_labels(&self, kept: &BTreeSet<RecordingPlace>) -> Option<String> {
        let mut files: BTreeMap<&str, BTreeSet<usize>> = BTreeMap::new();
        for (place, recording) in self.recordings().filter(|(place, one)| kept.contains(place) && !one.labelled) {
            for label in recording.labels() {
                files.entry(label).or_default().insert(place.database);
            }
        }
        let (label, files) =
            files.into_iter().filter(|(_, files)| files.len() > 1).max_by_key(|(_, files)| files.len())?;
        Some(format!(
            "`{label}` is the label of recordings of {} files: name them LABEL=FILE to compare them by `trace=LABEL`",
            figure::count(files.len() as u64)
        ))
    }
}

/// `2 tasks of its recording are`.
fn tasks_are(parts: usize) -> String {
    let verb = if parts == 1 { "is" } else { "are" };
    format!("{} of its recording {verb}", figure::plural(parts as u64, "task"))
}

impl MergePlan {
    /// Write the file. Returns its length.
    pub fn save(&self, output: Output, ctx: &Ctx) -> anyhow::Result<u64> {
        Ok(merge(&self.databases, &self.chosen, output, ctx)?)
    }
}
