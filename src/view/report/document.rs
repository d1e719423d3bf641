//! What a report is made from, and the command that makes it again.

use crate::base::figure;
use crate::compare::filter::Filter;
use crate::compare::{Comparison, ComparisonRequest, Dimension, Group, GroupsOrigin, share_of_group};
use crate::model::Model;
use crate::model::metric::Metric;
use crate::model::thread_lanes::ThreadLanes;
use crate::view::words;

/// The subject of a report.
#[derive(Clone, Copy, Debug)]
pub struct Report<'a> {
    /// The executions.
    pub model: &'a Model,
    /// The groups, their difference and its causes.
    pub comparison: &'a Comparison,
    /// The command that gives the same answer.
    pub command: &'a str,
    /// The same executions with the timelines of [`drawn`], where the recording has them.
    pub timelines: Option<&'a Model>,
    /// All threads during the slowest execution, where their states are known;
    /// [`slowest_lanes`](super::slowest_lanes) asks for them.
    pub threads: Option<&'a ThreadLanes>,
}

impl Report<'_> {
    /// The heading above the causes.
    pub(super) fn causes_title(&self) -> String {
        let extra = figure::time(self.comparison.extra_ns as f64);
        match self.comparison.verdict.groups {
            GroupsOrigin::All => format!("Where the {extra} of an execution went"),
            _ => format!("Causes of the extra {extra}"),
        }
    }

    /// The groups with their names; a profile has one.
    pub(super) fn groups(&self) -> Vec<(&'static str, &Group)> {
        match self.comparison.verdict.groups {
            GroupsOrigin::All => vec![("all", &self.comparison.slow)],
            _ => vec![("slow", &self.comparison.slow), ("fast", &self.comparison.fast)],
        }
    }

    /// Other properties in which the groups differ, and the kinds of slow executions, one sentence each.
    pub(super) fn differences(&self) -> Vec<String> {
        let c = self.comparison;
        let dimension = |d: &Dimension| {
            let slow = share_of_group(d.slow_share, c.slow.count);
            let fast = share_of_group(d.fast_share, c.fast.count);
            format!("{} {}: {slow} of the slow, {fast} of the fast executions", d.name, d.value)
        };
        c.kinds.iter().map(|kind| kind.sentence.clone()).chain(c.dimensions.iter().map(dimension)).collect()
    }

    pub(super) fn task(&self) -> &str {
        self.model.tasks.get(self.model.task).map_or("", |task| task)
    }
}

/// How the program was called: the words that select the input. Groups and task are added to them.
#[derive(Clone, Debug, Default)]
pub struct Invocation {
    /// Traces, and options that do not depend on the groups.
    pub words: Vec<String>,
    /// The task, if the user named one.
    pub task: Option<String>,
}

impl Invocation {
    /// The command that lists the anomalies of patterns, quoted for a POSIX shell.
    pub fn anomalies(&self) -> String {
        self.command("anomalies").iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
    }

    /// Program, command, input and task.
    fn command(&self, name: &str) -> Vec<String> {
        let mut words = vec!["whyslow".to_owned(), name.to_owned()];
        words.extend(self.words.iter().cloned());
        words.extend(self.task.iter().flat_map(|task| ["--task".to_owned(), task.clone()]));
        words
    }

    /// The command that explains the groups of a request, quoted for a POSIX shell.
    pub fn explain(&self, request: &ComparisonRequest) -> String {
        let mut words = self.command("explain");
        let mut add = |option: &str, value: String| words.extend([option.to_owned(), value]);
        for (option, filters) in [("--slow", &request.slow), ("--fast", &request.fast)] {
            if !filters.is_empty() {
                add(option, filters.iter().map(words::filter).collect::<Vec<_>>().join(", "));
            }
        }
        for kind in request.within.iter().filter_map(type_of) {
            add("--type", kind);
        }
        words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
    }
}

/// The name in a filter `type=NAME`.
fn type_of(filter: &Filter) -> Option<String> {
    let text = filter.to_string();
    text.strip_prefix("type=").filter(|_| filter.metric == Metric::Type).map(str::to_owned)
}

/// A word for a POSIX shell.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./=,:@%+".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}
