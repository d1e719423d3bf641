//! Names of threads as contexts show them.
//!
//! A pool of threads whose names differ in a number only (`job-17`, `job-18`) does one kind of work; with their full
//! names one cause would be spread over as many contexts as there are threads. So where at least [`JOINED`] names of
//! one family (threads of one process, processes of one parent) differ in their last digits only, those digits become
//! `*`. Fewer names may be roles (`stage-1`, `stage-2`), which must not be merged. The threads themselves are kept
//! beside the context (`Contexts::who` of the model). Kernel workers have their CPU and number inside the name, before
//! the queue for which they work: those digits are always replaced. The decision depends on the whole recording and
//! nothing else, so it is the same for every task and execution.

use crate::base::names::{NameId, Names};
use crate::base::notice::{Notice, Notices};
use crate::base::time::Timestamp;
use crate::event::host::HostId;
use crate::timeline::{Thread, ThreadName, Timeline};
use foldhash::HashMap;
use std::collections::{BTreeMap, BTreeSet};

/// The number of names from which on their numbers are replaced.
pub const JOINED: usize = 3;

/// The shown name of each recorded thread name, per family.
#[derive(Clone, Debug, Default)]
pub struct ThreadNames {
    folded: HashMap<(Family, NameId), NameId>,
    shown: HashMap<NameId, NameId>,
}

/// Threads of one process; processes of one parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Family {
    host: HostId,
    of_processes: bool,
    pid: i32,
}

impl Family {
    fn of(thread: &Thread) -> Self {
        let of_processes = thread.tid == thread.pid;
        Family { host: thread.host, of_processes, pid: if of_processes { thread.ppid } else { thread.pid } }
    }
}

impl ThreadNames {
    /// Decide for all threads of a timeline; shown names are added to `names`.
    pub fn new(timeline: &Timeline, names: &mut Names, notices: &mut Notices) -> Self {
        let mut families: BTreeMap<(Family, String), BTreeSet<NameId>> = BTreeMap::new();
        let mut result = ThreadNames::default();
        for thread in timeline.threads() {
            for ThreadName { name, .. } in &thread.names {
                let text = timeline.names().get(*name);
                result.shown.entry(*name).or_insert_with(|| names.intern(text));
                if let Some(stem) = without_number(text) {
                    families.entry((Family::of(thread), stem)).or_default().insert(*name);
                }
            }
        }
        for ((family, stem), members) in &families {
            if members.len() < JOINED && !stem.starts_with(WORKER) {
                continue;
            }
            let shown = names.intern(stem);
            let first = members.first().map_or("", |n| timeline.names().get(*n));
            if !stem.starts_with(WORKER) {
                notices.add(Notice::NamesFolded, members.len() as u64, || format!("{first} as {stem}"));
            }
            result.folded.extend(members.iter().map(|n| ((*family, *n), shown)));
        }
        result
    }

    /// The last time at which a thread had this shown name.
    pub fn last_time(&self, thread: &Thread, shown: NameId) -> Option<Timestamp> {
        let at = thread.names.iter().rposition(|name| self.at(thread, name.from) == Some(shown))?;
        let until = thread.names.get(at + 1).map_or(thread.life.end, |next| next.from.saturating_sub(1));
        Some(until.max(thread.names[at].from))
    }

    /// The shown name of a thread at `t`.
    pub fn at(&self, thread: &Thread, t: Timestamp) -> Option<NameId> {
        let name = thread.name_at(t)?;
        self.folded.get(&(Family::of(thread), name)).or_else(|| self.shown.get(&name)).copied()
    }
}

const WORKER: &str = "kworker/";

/// The name with its number replaced; `None` where it has none, or consists of nothing else.
fn without_number(name: &str) -> Option<String> {
    if name.starts_with(WORKER) {
        let (place, queue) = name.split_at(name.find(['-', '+']).unwrap_or(name.len()));
        let mut folded = String::new();
        for c in place.chars() {
            match c {
                '0'..='9' if folded.ends_with('*') => {}
                '0'..='9' => folded.push('*'),
                _ => folded.push(c),
            }
        }
        return Some(folded + queue);
    }
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
    (stem.len() < name.len() && stem.chars().any(char::is_alphabetic)).then(|| format!("{stem}*"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_number_replaces_last_digits_and_those_of_kernel_workers() {
        assert_eq!(without_number("job-17").as_deref(), Some("job-*"));
        assert_eq!(without_number("worker"), None);
        assert_eq!(without_number("123"), None);
        assert_eq!(without_number("kworker/u4:2-events_unbound").as_deref(), Some("kworker/u*:*-events_unbound"));
        assert_eq!(without_number("kworker/0:1H").as_deref(), Some("kworker/*:*H"));
    }
}
