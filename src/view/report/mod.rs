//! A report of a comparison: one file to attach to a ticket or to send to a colleague.
//!
//! In: the model, the comparison, and the command line that gives the same answer. Out: one self-contained HTML page
//! with pictures, a Markdown summary, or the differential flame graph as SVG. A page loads nothing from elsewhere,
//! and its policy forbids it to. All text from the trace is escaped. Cost: linear in the tree and in the executions.

mod document;
mod examples;
mod flame;
mod format;
mod heat;
mod histograms;
mod html;
mod markdown;
mod timelines;

pub use document::{Invocation, Report};
pub use format::{ENDINGS, ReportFormat};

use crate::base::time::Span;
use crate::compare::Comparison;
use crate::model::Model;
use crate::model::execution::ExecutionId;
use crate::model::thread_lanes::LanesRequest;

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
}

/// The executions whose timelines a page draws: the slowest one and a typical fast one.
pub fn drawn(model: &Model, comparison: &Comparison) -> Vec<ExecutionId> {
    examples::drawn(model, comparison).into_iter().map(|(_, id)| id).collect()
}

/// Columns of lanes on a page, and lanes.
const LANE_COLUMNS: usize = 490;
const LANES: usize = 16;

/// What a page asks of all threads: their states during the slowest execution, and a tenth of it before and after;
/// its own thread comes first, then those that causes name. `None` where there is no slow execution.
pub fn slowest_lanes(model: &Model, comparison: &Comparison) -> Option<LanesRequest> {
    let slowest = drawn(model, comparison).first()?.index();
    let (start, duration) = (model.executions.start.at(slowest), model.executions.duration(slowest));
    let around = duration / 10;
    let own = model.who.get(model.executions.who.at(slowest).index());
    let mut causes: Vec<(String, i32)> =
        own.map(|who| (model.names.get(who.host).to_owned(), who.tid)).into_iter().collect();
    for cause in &comparison.causes {
        let named = cause.by.host.clone().zip(cause.by.tid).filter(|named| !causes.contains(named));
        causes.extend(named);
    }
    let span = Span::new(start - around, start + duration + around);
    Some(LanesRequest { span, columns: LANE_COLUMNS, most: LANES, causes, ..LanesRequest::default() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::ctx::Ctx;
    use crate::compare::{ComparisonRequest, compare, scenario};
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
        let report = Report {
            model: &model,
            comparison: &comparison,
            command: "whyslow explain '<b>'",
            timelines: None,
            threads: None,
        };
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
        let report = Report {
            model: &model,
            comparison: &comparison,
            command: "whyslow explain t",
            timelines: None,
            threads: None,
        };
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
