//! The recordings of a database: what each says of itself, and the parts that it has of tasks.
//!
//! In: the contents of one database, or of several. Out: the same, whichever order they had: the tasks in one order,
//! and of parts that are there twice the one that counts. All that identifies a recording is in its digests; labels,
//! paths and notices, which may differ between copies, are here and in no other section. ALGORITHMS.md section 6.4.

use crate::base::digest::{Digest, Digester};
use crate::base::notice::Notices;
use crate::base::packed::{Packed, bytes_of, packed};
use crate::model::facts::{Facts, TraceFacts};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// The executions of one task in one recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredPart {
    pub task: String,
    /// Of its tables and executions.
    pub content: Digest,
    /// Of the threads, begins and ends of its executions, of a sample of those that it was taken of.
    pub executions: Digest,
    /// How many.
    pub count: u64,
    /// How many they represent: more where they are a sample.
    pub whole: u64,
    /// Of its traces, in their order.
    pub labels: Vec<String>,
    /// Of its analysis.
    pub notices: Notices,
}

/// A recording in a database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredRecording {
    /// Of what was recorded: the facts without paths, and the parts that it had when it was built.
    pub digest: Digest,
    /// True where the user gave the labels; otherwise they are paths.
    pub labelled: bool,
    /// Facts about the traces.
    pub facts: Facts,
    /// Notices of the pass over them.
    pub notices: Notices,
    /// By task, in the order of PRODUCT.md ("Tasks found by themselves").
    pub parts: Vec<StoredPart>,
}

/// What a database says of its recordings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Contents {
    /// Ascending by digest where there are several.
    pub recordings: Vec<StoredRecording>,
}

packed! {
    StoredPart { task, content, executions, count, whole, labels, notices }
    StoredRecording { digest, labelled, facts, notices, parts }
    Contents { recordings }
}

impl StoredRecording {
    /// The digest of a recording with these facts and parts.
    pub(super) fn digest(facts: &Facts, parts: &[StoredPart]) -> Digest {
        let mut digester = Digester::default();
        let Facts { traces, lost } = facts;
        for trace in traces {
            digester.add_whole(&bytes_of(&TraceFacts { path: String::new(), ..trace.clone() }));
        }
        digester.add_whole(&bytes_of(lost));
        for StoredPart { task, content, .. } in parts {
            digester.add_whole(task.as_bytes());
            digester.add_whole(&bytes_of(content));
        }
        digester.finish()
    }

    /// All labels.
    pub fn labels(&self) -> BTreeSet<&str> {
        self.parts.iter().flat_map(|part| &part.labels).map(String::as_str).collect()
    }

    /// Give all its traces one label.
    pub fn relabel(&mut self, label: &str) {
        let known: BTreeSet<String> = self.labels().into_iter().map(str::to_owned).collect();
        for TraceFacts { path, .. } in &mut self.facts.traces {
            // The longest one, of which another may be the begin.
            if let Some(below) = known.iter().rev().find_map(|own| path.strip_prefix(own)) {
                *path = format!("{label}{below}");
            }
        }
        let all = self.parts.iter_mut().flat_map(|part| &mut part.labels);
        all.for_each(|own| label.clone_into(own));
        self.labelled = true;
    }

    /// By what copies of one recording differ.
    pub(super) fn description(&self) -> Vec<u8> {
        let StoredRecording { digest: _, labelled, facts, notices, parts } = self;
        // A label that a user gave says more than a path.
        let mut bytes = bytes_of(&!labelled);
        bytes.extend([bytes_of(facts), bytes_of(notices)].concat());
        for StoredPart { labels, notices, .. } in parts {
            bytes.extend([bytes_of(labels), bytes_of(notices)].concat());
        }
        bytes
    }
}

impl Contents {
    /// The tasks, as [`tasks`] has them.
    pub fn tasks(&self) -> Vec<String> {
        tasks(&self.recordings)
    }

    /// The facts of all recordings.
    #[cfg(not(program))]
    pub fn facts(&self) -> Facts {
        facts(&self.recordings)
    }

    /// The notices of all recordings.
    #[cfg(not(program))]
    pub fn notices(&self) -> Notices {
        notices(&self.recordings)
    }

    /// The position of each recording with the number of its first section; sections are numbered through.
    pub(super) fn numbered(&self) -> impl Iterator<Item = (&StoredRecording, usize)> {
        self.recordings.iter().scan(0, |next, recording| {
            let first = *next;
            *next += recording.parts.len();
            Some((recording, first))
        })
    }
}

/// The tasks of recordings: those of most recordings first, then by the sum of their places, then by name. The tasks of
/// one recording keep their order.
pub fn tasks<'a>(recordings: impl IntoIterator<Item = &'a StoredRecording>) -> Vec<String> {
    let mut places: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for recording in recordings {
        for (place, part) in (0..).zip(&recording.parts) {
            let all = places.entry(&part.task).or_default();
            *all = (all.0 + 1, all.1 + place);
        }
    }
    let mut all: Vec<(Reverse<u64>, u64, &str)> =
        places.into_iter().map(|(task, (times, places))| (Reverse(times), places, task)).collect();
    all.sort_unstable();
    all.into_iter().map(|(.., task)| task.to_owned()).collect()
}

/// What several recordings say that may be the same one, built in several databases: each once.
fn once<'a, T>(
    recordings: impl IntoIterator<Item = &'a StoredRecording>,
    which: impl Fn(&'a StoredRecording) -> T,
) -> impl Iterator<Item = T>
where
    T: Packed,
{
    let mut known = BTreeSet::new();
    let of_trace = move |recording: &StoredRecording| {
        let StoredRecording { facts, notices, .. } = recording;
        known.insert([bytes_of(facts), bytes_of(notices)].concat())
    };
    recordings
        .into_iter()
        .filter({
            let mut is_new = of_trace;
            move |recording| is_new(recording)
        })
        .map(which)
}

/// The facts of recordings. Databases of other parts of one recording say the same, which counts once.
pub fn facts<'a>(recordings: impl IntoIterator<Item = &'a StoredRecording>) -> Facts {
    let mut all = Facts::default();
    for Facts { traces, lost } in once(recordings, |recording| recording.facts.clone()) {
        all.traces.extend(traces);
        all.lost = all.lost.and(lost);
    }
    all
}

/// The notices of recordings, as [`facts`].
pub fn notices<'a>(recordings: impl IntoIterator<Item = &'a StoredRecording>) -> Notices {
    let mut all = Notices::default();
    once(recordings, |recording| recording.notices.clone()).for_each(|notices| all.merge(&notices));
    all
}

/// A recording of one of several databases.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RecordingPlace {
    pub database: usize,
    pub recording: usize,
}

/// Which parts of several databases count.
#[derive(Debug, Default)]
pub struct ChosenParts {
    /// The recordings that keep a part, each with the positions of those that it keeps, ascending by digest.
    pub kept: Vec<(RecordingPlace, Vec<usize>)>,
    /// Those that lose parts to others.
    pub repeated: Vec<RepeatedParts>,
}

/// Parts of a recording that another recording has as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RepeatedParts {
    pub of: RecordingPlace,
    /// Where the last of them is kept.
    pub kept_in: RecordingPlace,
    pub parts: usize,
    /// The recording has no other parts.
    pub are_all: bool,
}

/// Parts that would count their executions twice: of one recording, built twice with other results.
#[derive(Debug)]
pub struct BuiltTwice {
    pub task: String,
    pub places: [RecordingPlace; 2],
}

/// Choose among the parts of databases: of equal ones that of the recording with the smallest digest, of copies of one
/// recording that of the one with the smallest description. The choice does not depend on the order of the databases.
pub fn chosen_parts(databases: &[&Contents]) -> Result<ChosenParts, BuiltTwice> {
    let all = databases.iter().enumerate().flat_map(|(database, contents)| {
        let place = move |recording| RecordingPlace { database, recording };
        contents.recordings.iter().enumerate().map(move |(at, recording)| (place(at), recording))
    });
    let mut all: Vec<(Digest, Vec<u8>, RecordingPlace, &StoredRecording)> =
        all.map(|(place, recording)| (recording.digest, recording.description(), place, recording)).collect();
    all.sort_by(|a, b| (a.0, &a.1, a.2).cmp(&(b.0, &b.1, b.2)));
    let mut owners: BTreeMap<(&str, Digest), RecordingPlace> = BTreeMap::new();
    let mut contents: BTreeMap<(&str, Digest), (Digest, RecordingPlace)> = BTreeMap::new();
    let mut chosen = ChosenParts::default();
    for (_, _, place, recording) in all {
        let mut parts = Vec::new();
        let mut kept_in = None;
        for (at, part) in recording.parts.iter().enumerate() {
            let task = part.task.as_str();
            match owners.get(&(task, part.content)) {
                Some(owner) => kept_in = Some(*owner),
                None => {
                    owners.insert((task, part.content), place);
                    parts.push(at);
                    if part.count == 0 {
                        continue;
                    }
                    let (_, known) = *contents.entry((task, part.executions)).or_insert((part.content, place));
                    if known != place {
                        return Err(BuiltTwice { task: task.to_owned(), places: [known, place] });
                    }
                }
            }
        }
        if let Some(kept_in) = kept_in {
            let (repeated, are_all) = (recording.parts.len() - parts.len(), parts.is_empty());
            chosen.repeated.push(RepeatedParts { of: place, kept_in, parts: repeated, are_all });
        }
        if kept_in.is_none() || !parts.is_empty() {
            chosen.kept.push((place, parts));
        }
    }
    Ok(chosen)
}
