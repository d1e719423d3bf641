//! The data quality page: how far the recording supports the answer.

use super::page::PageContent;
use crate::advice::questions::{Answered, questions};
use crate::base::figure;
use crate::base::notice::{Notices, Severity};
use crate::compare::{Comparison, truth};
use crate::model::Model;
use crate::model::choice::ChosenBy;
use crate::model::wait_kind::WaitKind;
use crate::tui::actions::Action;
use crate::tui::app::App;
use crate::tui::header;
use crate::tui::theme::StyleScope;
use crate::tui::widget::page::{StyledLine, paragraph, plain};
use crate::view::missing::{self, MissingCommand, MissingJson, MissingText};
use std::collections::BTreeSet;

/// Share of the time from which a question counts as answered.
const ANSWERED: f64 = 0.95;

/// One sentence per question that applies: the share of the time for which it is answered, and how to record the rest.
fn question(answered: &Answered) -> Option<(StyleScope, String)> {
    let share = answered.share()?;
    let known = format!("- {}: known for {} of the time", answered.question, figure::share(share));
    Some(match share < ANSWERED {
        true => (StyleScope::Unsure, format!("{known}; {}", answered.remedy)),
        false => (StyleScope::Text, known),
    })
}

/// The page.
#[derive(Debug)]
pub struct QualityPage;

impl PageContent for QualityPage {
    fn title(&self) -> &'static str {
        "Data quality: losses, unknowns, caveats"
    }

    fn action(&self) -> Action {
        Action::Quality
    }

    fn lines(&self, app: &App, columns: usize, _: usize) -> Vec<StyledLine> {
        lines(app, columns)
    }
}

/// Its lines in this width.
fn lines(app: &App, columns: usize) -> Vec<StyledLine> {
    let mut lines = Vec::new();
    let section = |title: &str, lines: &mut Vec<StyledLine>| {
        if !lines.is_empty() {
            lines.push(StyledLine::new());
        }
        lines.push(plain(StyleScope::Strong, title));
    };
    if let Some(failure) = &app.failure {
        section("No answer", &mut lines);
        lines.extend(paragraph(StyleScope::Error, failure, columns, 0));
    }
    if let Some(text) = app.model.as_ref().and_then(|model| question_asked(app, model)) {
        section("The question", &mut lines);
        lines.extend(paragraph(StyleScope::Text, &text, columns, 0));
    }
    if let Some(c) = &app.comparison {
        let sure = if c.verdict.confident { "The verdict is confident" } else { "The verdict is not confident" };
        section(sure, &mut lines);
        let scope = if c.verdict.confident { StyleScope::Text } else { StyleScope::Unsure };
        lines.extend(paragraph(scope, &c.verdict.sentence, columns, 0));
        lines.push(plain(StyleScope::Dim, header::origin(c.verdict.groups)));
        section("Caveats", &mut lines);
        // Notices about the recording have a section of their own below.
        let recorded = app.model.as_ref().map_or(Vec::new(), |m| m.notices.sentences());
        let own: Vec<&String> = c.warnings.iter().filter(|w| !recorded.contains(w)).collect();
        if own.is_empty() {
            lines.push(plain(StyleScope::Dim, "none"));
        }
        for warning in own {
            lines.extend(paragraph(StyleScope::Warning, &format!("- {warning}"), columns, 2));
        }
    }
    if let Some(model) = &app.model {
        let unsure = model.executions.unsure.iter().filter(|unsure| *unsure).count();
        section("The recording", &mut lines);
        if unsure > 0 {
            let text = format!(
                "- {unsure} of {} executions are uncertain: events were lost while they ran, or the cause of a wait is \
                 unknown",
                model.executions.len()
            );
            lines.extend(paragraph(StyleScope::Warning, &text, columns, 2));
        }
        for line in questions(model).into_iter().filter_map(|answered| question(&answered)) {
            lines.extend(paragraph(line.0, &line.1, columns, 2));
        }
        for sentence in app.comparison.iter().flat_map(|found| alike(found, model)) {
            lines.extend(paragraph(StyleScope::Text, &format!("- {sentence}"), columns, 2));
        }
        add_missing(&missing::of_model(model), columns, &mut lines);
        if model.notices.is_empty() && unsure == 0 {
            lines.push(plain(StyleScope::Dim, "nothing lost, nothing unknown"));
        }
        add_notices(&model.notices, columns, &mut lines);
    } else if let Some(found) = &app.patterns.found {
        section("The recording", &mut lines);
        add_missing(&missing::of_recorded(&found.recorded), columns, &mut lines);
        if found.notices.is_empty() {
            lines.push(plain(StyleScope::Dim, "nothing lost, as far as the patterns show"));
        }
        add_notices(&found.notices, columns, &mut lines);
    }
    if app.model.is_none() && app.failure.is_none() {
        section("No executions were compared so far", &mut lines);
        let text = "Panes 1 and 2 compare them; then this page says how far the recording supports the answer.";
        lines.extend(paragraph(StyleScope::Dim, text, columns, 0));
    }
    lines
}

/// Which task is asked about, and what chose it.
fn question_asked(app: &App, model: &Model) -> Option<String> {
    let task = app.task()?;
    let Some(choice) = &model.choice else { return Some(format!("Task {task}, as it was named.")) };
    let by = match choice.by {
        ChosenBy::Given => "as it was named",
        ChosenBy::Marked => "which the program marks itself",
        ChosenBy::Recorded => "because the recording was made for this program",
        ChosenBy::Shared => "which both recordings have",
        ChosenBy::Guessed => "a guess: nothing in the recording says what was meant",
    };
    Some(format!("Task {task}, {by}. T chooses another one."))
}

/// For the kinds of the causes that were found: what looks the same, and what excludes that.
fn alike(comparison: &Comparison, model: &Model) -> Vec<String> {
    let kinds: BTreeSet<WaitKind> = comparison.causes.iter().filter_map(|cause| cause.kind).collect();
    kinds.into_iter().filter_map(|kind| truth::sentence(kind, model)).collect()
}

/// The questions that the recording cannot answer, and the commands that record the answers.
fn add_missing(missing: &[MissingJson], columns: usize, lines: &mut Vec<StyledLine>) {
    let MissingText { sentences, commands } = missing::text(missing);
    for sentence in sentences {
        lines.extend(paragraph(StyleScope::Unsure, &format!("- {sentence}"), columns, 2));
    }
    for MissingCommand { purpose, line } in commands {
        // The recorder's own commands are long: `info` prints them on lines of their own, which can be copied.
        let line = match line.split(' ').next() {
            Some(recorder @ ("lttng" | "perf" | "trace-cmd")) => {
                format!("whyslow record --with {recorder} --duration 10s (or the commands that `whyslow info` prints)")
            }
            _ => line,
        };
        lines.extend(paragraph(StyleScope::Text, &format!("- {purpose} {line}"), columns, 2));
    }
}

/// Notices, the gravest first.
fn add_notices(notices: &Notices, columns: usize, lines: &mut Vec<StyledLine>) {
    let mut entries: Vec<_> = notices.iter().collect();
    entries.sort_by_key(|(kind, _)| (std::cmp::Reverse(kind.severity()), *kind));
    for (kind, entry) in entries {
        let (mark, scope) = match kind.severity() {
            Severity::Fault => ("fault: ", StyleScope::Error),
            Severity::Loss => ("lost: ", StyleScope::Warning),
            Severity::Note => ("", StyleScope::Text),
        };
        let sentence = kind.sentence(entry.count);
        let first = if entry.first.is_empty() { String::new() } else { format!(" (first: {})", entry.first) };
        lines.extend(paragraph(scope, &format!("- {mark}{sentence}{first}"), columns, 2));
    }
}
