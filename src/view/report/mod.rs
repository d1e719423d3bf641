//! A report of a comparison: one file to attach to a ticket or to send to a colleague.
//!
//! In: the model, the comparison, and the command line that gives the same answer. Out: one self-contained HTML page
//! with pictures, a Markdown summary, or the differential flame graph as SVG. A page loads nothing from elsewhere,
//! and its policy forbids it to. All text from the trace is escaped. Cost: linear in the tree and in the executions.

mod examples;
mod flame;
mod format;
mod histograms;
mod html;
mod markdown;
mod timelines;

pub use format::{ENDINGS, ReportFormat};

use crate::base::figure;
use crate::compare::filter::Filter;
use crate::compare::{Comparison, ComparisonRequest, Dimension, Group, GroupsOrigin, share_of_group};
use crate::model::Model;
use crate::model::execution::ExecutionId;
use crate::model::metric::Metric;
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
    /// The same executions with the time-lines of [`drawn`], where the recording has them.
    pub timelines: Option<&'a Model>,
}

/// The executions whose time-lines a page draws: the slowest one and a typical fast one.
pub fn drawn(model: &Model, comparison: &Comparison) -> Vec<ExecutionId> {
    examples::drawn(model, comparison).into_iter().map(|(_, id)| id).collect()
}

impl Report<'_> {
    /// One HTML page.
    pub fn html(&self) -> String {
        html::page(self)
    }

    /// A summary in Markdown.
    pub fn markdown(&self) -> String {
        markdown::summary(self)
    }

    /// The differential flame graph.
    pub fn svg(&self) -> String {
        flame::document(self)
    }

    /// The heading above the causes.
    fn causes_title(&self) -> String {
        let extra = figure::time(self.comparison.extra_ns as f64);
        match self.comparison.verdict.groups {
            GroupsOrigin::All => format!("Where the {extra} of an execution went"),
            _ => format!("Causes of the extra {extra}"),
        }
    }

    /// The groups with their names; a profile has one.
    fn groups(&self) -> Vec<(&'static str, &Group)> {
        match self.comparison.verdict.groups {
            GroupsOrigin::All => vec![("all", &self.comparison.slow)],
            _ => vec![("slow", &self.comparison.slow), ("fast", &self.comparison.fast)],
        }
    }

    /// Other properties in which the groups differ, and the kinds of slow executions, one sentence each.
    fn differences(&self) -> Vec<String> {
        let c = self.comparison;
        let dimension = |d: &Dimension| {
            let slow = share_of_group(d.slow_share, c.slow.members.len());
            let fast = share_of_group(d.fast_share, c.fast.members.len());
            format!("{} {}: {slow} of the slow, {fast} of the fast executions", d.name, d.value)
        };
        c.kinds.iter().map(|kind| kind.sentence.clone()).chain(c.dimensions.iter().map(dimension)).collect()
    }

    fn task(&self) -> &str {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::ctx::Ctx;
    use crate::compare::{compare, scenario};
    use crate::view::markup::{Escaped, Plain};

    /// A comparison whose names try to break out of their place.
    fn hostile() -> (Model, Comparison) {
        let mut model = scenario::lock_contention(5, 16.0);
        let name = model.names.intern("<script>alert(1)</script>|`x`\u{202e}\u{1b}[31m\n# y");
        model.who.iter_mut().for_each(|thread| thread.thread = name);
        std::sync::Arc::make_mut(&mut model.tasks)[0] = "</title><img src=x onerror=y>\n|".into();
        let comparison = compare(&model, &ComparisonRequest::default(), &Ctx::new(1)).unwrap();
        (model, comparison)
    }

    #[test]
    fn report_escapes_texts_of_the_trace() {
        let (model, comparison) = hostile();
        let report =
            Report { model: &model, comparison: &comparison, command: "whyslow explain '<b>'", timelines: None };
        for text in [report.html(), report.svg()] {
            for bad in ["<script>alert", "<img", "\u{202e}", "\u{1b}", "'<b>'"] {
                assert!(!text.contains(bad), "{bad} in {text}");
            }
        }
        let summary = report.markdown();
        assert!(
            !summary.contains("<script>") && !summary.contains('\u{1b}') && !summary.contains("\n# y"),
            "{summary}"
        );
    }

    #[test]
    fn report_contains_the_answer_in_each_format() {
        let model = scenario::lock_contention(5, 16.0);
        let comparison = compare(&model, &ComparisonRequest::default(), &Ctx::new(1)).unwrap();
        let report = Report { model: &model, comparison: &comparison, command: "whyslow explain t", timelines: None };
        let sentence = &comparison.verdict.sentence;
        let (html, markdown) = (Escaped(sentence).to_string(), Plain(sentence).to_string());
        for (text, sentence) in [(report.html(), &html), (report.markdown(), &markdown)] {
            for part in [sentence.as_str(), "whyslow explain t", "Causes", "slow", "Caveats", "Data quality"] {
                assert!(text.contains(part), "{part} in {text}");
            }
        }
        assert!(report.html().contains("<svg class=\"flame\"") && report.svg().starts_with("<svg"));
    }

    #[test]
    fn explain_quotes_what_a_shell_would_change() {
        let request = ComparisonRequest {
            slow: vec!["duration>=20ms".parse().unwrap(), "type=append".parse().unwrap()],
            within: vec!["type=append".parse().unwrap()],
            ..ComparisonRequest::default()
        };
        let line = Invocation { words: vec!["old=/t/a b".into(), "it's".into()], task: Some("read".into()) };
        assert_eq!(
            line.explain(&request),
            "whyslow explain 'old=/t/a b' 'it'\\''s' --task read --slow 'duration>=20ms, type=append' --type append"
        );
    }
}
