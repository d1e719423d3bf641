//! The pages and the propagation pane, whose figures equal those of the documents and texts of the commands.

use super::interface::Session;
use super::session;
use serde_json::Value;
use std::path::Path;
use std::sync::Arc;
use whyslow::parts::advice::missing;
use whyslow::parts::advice::questions::questions;
use whyslow::parts::base::ctx::Ctx;
use whyslow::parts::base::figure;
use whyslow::parts::base::notice::Notices;
use whyslow::parts::base::time::Timestamp;
use whyslow::parts::compare::share_of_group;
use whyslow::parts::input::Argument;
use whyslow::parts::model::anomalies::Anomalies;
use whyslow::parts::model::facts::Facts;
use whyslow::parts::session::OpenOptions;
use whyslow::parts::tui::FirstQuestion;
use whyslow::parts::tui::app::App;
use whyslow::parts::tui::job::Done;
use whyslow::parts::tui::layers::{DetailsPage, PageLayer};
use whyslow::parts::tui::message::UiMessage;
use whyslow::parts::tui::report::AnomalyReport;
use whyslow::parts::tui::theme::ColourDepth;
use whyslow::parts::tui::update::update;
use whyslow::parts::view::anomalies::ListBounds;
use whyslow::parts::view::diff_parts::DiffParts;
use whyslow::parts::view::info::InfoDocument;
use whyslow::parts::view::strips::{self, StripContent};
use whyslow::parts::view::{anomalies, json};

/// The document of `diff --json`.
fn diff(app: &App) -> Value {
    let (model, comparison) = app.compared_executions().unwrap();
    serde_json::to_value(json::diff(&model, &comparison, &DiffParts::default(), None)).unwrap()
}

fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

/// The words of `part` stand side by side in the line.
fn contains_words(line: &str, part: &str) -> bool {
    let (line, part) = (words(line), words(part));
    line.windows(part.len()).any(|window| window == part)
}

/// The lines of the page on top.
fn page_lines(app: &App) -> Vec<String> {
    let page = &app.top::<PageLayer>().unwrap().lines;
    page.iter().map(|line| line.iter().map(|(_, text)| text.as_str()).collect()).collect()
}

fn number(value: &Value, key: &str) -> f64 {
    value[key].as_f64().unwrap_or_else(|| panic!("no {key} in {value}"))
}

/// Each row of the stack on the page has the figures of its node.
fn stack_equals(app: &App, twin: &Value) {
    let members = number(&twin["slow"], "count") as u64;
    let lines = page_lines(app);
    let head = lines.iter().position(|line| line.starts_with("Full stack")).unwrap();
    let mut nodes = twin["tree"].as_array().unwrap().iter();
    let mut seen = 0;
    for (depth, line) in lines[head + 2..].iter().take_while(|line| line.starts_with("  ")).enumerate() {
        let is_here =
            |node: &&Value| node["depth"] == depth && line.trim_end().ends_with(node["name"].as_str().unwrap());
        let node = nodes.by_ref().find(is_here).unwrap_or_else(|| panic!("no node in depth {depth}: {line}"));
        let figures = [
            figure::extra(number(node, "delta_ns")),
            figure::time(number(node, "slow_mean_ns")),
            figure::time(number(node, "fast_mean_ns")),
            figure::deviations(node["deviations"].as_f64()),
            share_of_group(number(node, "slow_affected"), members),
        ];
        assert!(contains_words(line, &figures.join(" ")), "{figures:?}: {line}");
        seen += 1;
    }
    assert!(seen > 2, "{seen} rows:\n{}", lines.join("\n"));
}

#[test]
fn details_equal_the_diff() {
    let mut session = session(120, 60, "i");
    let twin = diff(&session.app);
    stack_equals(&session.app, &twin);
    let page = page_lines(&session.app).join(" ");
    let cause = &twin["causes"][0];
    assert!(contains_words(&page, cause["sentence"].as_str().unwrap()), "{page}");
    let [slow, fast] = ["slow", "fast"].map(|group| number(&twin[group], "count") as u64);
    let facts = format!(
        "{} per execution, {} of the difference; affects {} of the slow and {} of the fast executions",
        figure::extra(number(cause, "extra_ns")),
        figure::share(number(cause, "share")),
        share_of_group(number(cause, "slow_affected"), slow),
        share_of_group(number(cause, "fast_affected"), fast)
    );
    assert!(contains_words(&page, &facts), "{facts}: {page}");
    // Nodes that the slow group has less of, and other groups.
    for keys in
        ["Esc End Up i", "Esc Up Up i", "Esc x Home Enter i", "Esc x s Ctrl-u d u r a t i o n > = 5 m s Enter i"]
    {
        session.keys(keys);
        stack_equals(&session.app, &diff(&session.app));
    }
}

#[test]
fn sample_executions_equal_those_of_the_diff() {
    let session = session(120, 60, "i");
    let DetailsPage(details) = session.app.top::<PageLayer>().and_then(PageLayer::content).expect("details");
    let whyslow::parts::tui::details::Details::Context { samples, path, .. } = details else { panic!("a range") };
    let model = session.app.model.clone().unwrap();
    let page = page_lines(&session.app);
    // The document of `diff` has samples from the longest to the shortest of each group.
    let twin = diff(&session.app);
    let twins = twin["samples"].as_array().unwrap();
    let mut compared = 0;
    for twin in twins.iter().filter(|twin| samples.iter().any(|sample| twin["execution"] == sample.number)) {
        let start = twin["start_ns"].as_i64().unwrap();
        let line = format!(
            "{} {} {}",
            twin["execution"],
            figure::stamp(Timestamp::new(start).since(model.origin)),
            figure::time(number(twin, "duration_ns"))
        );
        let at = page.iter().position(|shown| contains_words(shown, &line)).unwrap_or_else(|| panic!("no {line}"));
        let who = format!("{} {}, {} {}", twin["thread"], twin["tid"], twin["process"], twin["pid"]).replace('"', "");
        assert!(page[at].contains(twin["group"].as_str().unwrap()) && page[at].contains(&who), "{who}: {}", page[at]);
        assert!(page[at + 1].contains(&format!("({start} ns) in {}", twin["trace"].as_str().unwrap())));
        compared += 1;
    }
    assert!(compared > 4, "{compared} of {}", samples.len());
    // Their time in the place is part of the mean that the tree of `diff` has for it.
    let place = path.last().unwrap().node.as_ref().unwrap();
    let here = |number: usize| {
        let inside = model.contexts.within(place.context);
        let own = model.executions.own.row(number).filter(|time| inside[time.context.index()]);
        own.map(|time| time.ns).sum::<u64>() as f64
    };
    let slow = session.app.comparison.as_ref().unwrap().slow.members.clone();
    let mean = slow.iter().map(|id| here(id.index())).sum::<f64>() / slow.len() as f64;
    let nodes = twin["tree"].as_array().unwrap();
    assert!(nodes.iter().any(|node| (number(node, "slow_mean_ns") - mean).abs() < 1.0), "{mean}");
    for sample in samples {
        let line =
            format!("{} {}", figure::time(sample.duration_ns as f64), figure::time(here(sample.number as usize)));
        assert!(page.iter().any(|shown| contains_words(shown, &line)), "{line}");
    }
}

#[test]
fn path_equals_that_of_anomalies() {
    for keys in ["3", "3 Down", "3 End", "4 Right"] {
        let session = session(200, 60, keys);
        let found = session.app.patterns.found.clone().unwrap();
        let twin = serde_json::to_value(anomalies::json(&found.anomalies, &found.notices, None)).unwrap();
        let at = session.app.patterns.path.path;
        let paths = twin["paths"].as_array().unwrap();
        let path = &paths[at];
        let lines = session.lines();
        let head = format!("path {} of {}", at + 1, paths.len());
        let line = lines.iter().find(|line| line.contains(&head)).unwrap_or_else(|| panic!("no {head}"));
        let totals = format!(
            "a {} delay cost others {} in total; {}",
            figure::time(number(path, "excess_ns")),
            figure::time(number(path, "affected_ns")),
            figure::plural(number(path, "messages") as u64, "message")
        );
        assert!(line.contains(&totals), "{totals}: {line}");
        let steps = path["steps"].as_array().unwrap();
        let top = lines.iter().position(|line| line.contains("┄ carrier ┄")).unwrap() + 1;
        for (line, step) in lines[top..].iter().zip(steps) {
            let [start, end] = ["start_ns", "end_ns"].map(|key| step[key].as_i64().unwrap());
            let figures = [
                figure::stamp(Timestamp::new(start).since(session.app.origin())),
                figure::time((end - start) as f64),
                figure::time(number(step, "reference_ns")),
                figure::extra(number(step, "excess_ns")),
            ];
            assert!(contains_words(line, &figures.join(" ")), "{figures:?}: {line}");
            let via = step["via"].as_str().unwrap_or(if step["noise"].is_null() { "root cause" } else { "noise" });
            assert!(line.contains(&format!(" {via} ")) && line.contains(&format!("rank {}", step["rank"])), "{line}");
        }
        assert!(steps.len() > 1);
    }
}

#[test]
fn ranks_equal_the_strips_of_anomalies() {
    // In 83 columns the cells are as many as those of the text of `anomalies --all`.
    let session = session(83, 60, "3 v");
    let found = session.app.patterns.found.clone().unwrap();
    let waiting = found.anomalies.waiting.as_ref().unwrap();
    let printed = anomalies::text(&found.anomalies, &found.notices, None, ListBounds::ALL);
    let page = page_lines(&session.app);
    let mut rows = 0;
    for shown in [StripContent::Waiting, StripContent::Computing] {
        let lines = strips::lines(&waiting.strip, shown, usize::MAX, 80);
        for line in lines.iter().filter(|line| line.contains('|') && !line.ends_with("in total")) {
            assert!(page.iter().any(|of| of.trim_end() == line.trim_end()), "{line}\n{}", page.join("\n"));
            assert!(printed.lines().any(|of| of.trim_end() == line.trim_end()), "{line}\n{printed}");
            rows += 1;
        }
    }
    assert!(rows >= 12, "{rows}");
    let twin = serde_json::to_value(strips::json(&waiting.strip)).unwrap();
    let [begin, end] = ["begin_ns", "end_ns"].map(|key| twin[key].as_i64().unwrap());
    let from = figure::stamp(Timestamp::new(begin).since(session.app.origin()));
    let axis = format!("from {from}, {} in total", figure::time((end - begin) as f64));
    assert!(page.iter().filter(|line| line.contains(&axis)).count() >= 2, "{axis}\n{}", page.join("\n"));
}

#[test]
fn data_quality_equals_info_and_explain() {
    let session = session(120, 60, "w");
    let (model, comparison) = session.app.compared_executions().unwrap();
    let page = page_lines(&session.app).join("\n");
    let explained = serde_json::to_value(json::explain(&model, &comparison)).unwrap();
    assert!(contains_words(&page, explained["verdict"]["sentence"].as_str().unwrap()));
    assert_eq!(explained["verdict"]["confident"], page.contains("The verdict is confident"));
    for warning in explained["warnings"].as_array().unwrap() {
        assert!(contains_words(&page, warning.as_str().unwrap()), "{warning}\n{page}");
    }
    let answered = questions(&model);
    let info = InfoDocument::new(&Facts::default(), std::iter::empty(), None, &model.notices).with_questions(&answered);
    let info = serde_json::to_value(info).unwrap();
    let asked = info["questions"].as_array().unwrap();
    assert!(asked.len() >= 3, "{info}");
    for question in asked {
        let known = figure::share(number(question, "share"));
        let line = format!("- {}: known for {known} of the time", question["question"].as_str().unwrap());
        assert!(page.contains(&line), "{line}\n{page}");
    }
    for notice in info["warnings"].as_array().unwrap() {
        assert!(contains_words(&page, notice.as_str().unwrap()), "{notice}\n{page}");
    }
    assert!(!model.notices.is_empty());
}

/// An archive has no executions that were compared when it opens.
#[test]
fn data_quality_of_an_archive_names_what_it_lacks_before_executions_are_compared() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/archives/late_sender/trace/traces.otf2");
    let archive = Argument::new(path);
    let opened = whyslow::parts::session::Session::open(&[archive], &OpenOptions::default(), &Ctx::new(1)).unwrap();
    let mut session = Session::beginning(120, 60, ColourDepth::True, FirstQuestion::Patterns);
    session.mined();
    let report = AnomalyReport::new(Anomalies::default(), Notices::default()).with_recorded(opened.recorded());
    let settings = session.app.patterns.settings;
    update(&mut session.app, UiMessage::Done(Done::Mined(settings, Ok(Arc::new(report)))));
    session.keys("w");
    let page = page_lines(&session.app).join("\n");
    let recorded = opened.recorded();
    let missing = missing::missing(recorded.iter());
    assert!(session.app.model.is_none() && missing.len() >= 2, "{missing:?}");
    for topic in missing {
        let sentence = format!("{}: {}; not recorded:", topic.question, topic.without);
        assert!(contains_words(&page, &sentence), "{sentence}\n{page}");
        assert!(contains_words(&page, &topic.command), "{}\n{page}", topic.command);
    }
}
