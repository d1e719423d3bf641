//! Each figure on a screen equals that of its headless twin: the JSON and the text of the commands, over the same
//! recording.

use super::interface::Session;
use serde_json::Value;
use whyslow::parts::base::ctx::Ctx;
use whyslow::parts::base::figure;
use whyslow::parts::base::notice::Notices;
use whyslow::parts::compare::arranged::{Arrangement, invert};
use whyslow::parts::compare::functions::sandwich;
use whyslow::parts::tui::app::App;
use whyslow::parts::tui::layers::TimelineView;
use whyslow::parts::tui::theme::ColourDepth;
use whyslow::parts::tui::tree::path_text;
use whyslow::parts::view::diff_parts::DiffParts;
use whyslow::parts::view::overview::OverviewAnswer;
use whyslow::parts::view::text::{Glyphs, Page};
use whyslow::parts::view::{anomalies, execution_text, function_text, json, text};

fn session(keys: &str) -> Session {
    let mut session = Session::new(200, 60, ColourDepth::True);
    session.ready();
    session.keys(keys);
    session
}

/// The document of `diff --json`, with the inverted tree.
fn diff(app: &App) -> Value {
    let (model, comparison) = app.compared_executions().unwrap();
    let inverted = invert(&model, &comparison, &Arrangement::default(), &Ctx::new(1)).unwrap();
    let parts = DiffParts { inverted: Some(&inverted), ..DiffParts::default() };
    serde_json::to_value(json::diff(&model, &comparison, &parts, None)).unwrap()
}

/// The nodes of a tree in pre-order, each with the names from its root.
fn nodes(tree: &Value) -> Vec<(Vec<String>, &Value)> {
    let mut path: Vec<String> = Vec::new();
    let node = |node| {
        let value: &Value = node;
        path.truncate(value["depth"].as_u64().unwrap() as usize);
        // JSON keeps the older word.
        path.push(value["name"].as_str().unwrap().replace("[preempted]", "[runnable]"));
        (path.clone(), value)
    };
    tree.as_array().unwrap().iter().map(node).collect()
}

/// The figures of a row of the tree, as it prints them.
fn figures(node: &Value) -> [String; 3] {
    let number = |key: &str| node[key].as_f64().unwrap();
    [figure::extra(number("delta_ns")), figure::time(number("slow_mean_ns")), figure::time(number("fast_mean_ns"))]
}

/// Each visible row of the tree has the figures of the node of its path.
fn tree_equals(session: &Session, twin: &Value) {
    let twin = nodes(twin);
    let (model, comparison) = session.app.shown_tree().unwrap();
    let tree = session.app.frame.tree;
    let inside = session.app.frame.inside(session.app.pane);
    let lines = session.lines();
    let top = usize::from(inside.y) + tree.cause_head + tree.causes + tree.tree_head;
    let mut seen = 0;
    for (row, item) in session.app.tree.rows.visible.iter().enumerate().skip(session.app.tree.offset).take(tree.rows) {
        let Some(at) = item.node() else { continue };
        let path = path_text(&model, comparison.tree.nodes[at as usize].context);
        let (_, value) = twin.iter().find(|(of, _)| *of == path).unwrap_or_else(|| panic!("no node {path:?}"));
        let line: String = lines[top + row - session.app.tree.offset].chars().skip(usize::from(inside.x)).collect();
        let shown: Vec<&str> = line.split("  ").map(str::trim).collect();
        for figure in figures(value) {
            assert!(shown.contains(&figure.as_str()), "{path:?}: no {figure} in {line}");
        }
        seen += 1;
    }
    assert!(seen > 3, "{seen}");
}

#[test]
fn tree_equals_the_diff_in_both_directions() {
    let mut session = session("Enter");
    for keys in ["", "x", "x s Ctrl-u d u r a t i o n > = 5 m s Enter"] {
        session.keys(keys);
        let twin = diff(&session.app);
        tree_equals(&session, &twin["tree"]);
        session.keys("I Right");
        tree_equals(&session, &twin["callees_first"]);
        session.keys("I");
    }
}

#[test]
fn causes_and_groups_equal_explain() {
    let session = session("");
    let (model, comparison) = session.app.compared_executions().unwrap();
    let twin = serde_json::to_value(json::explain(&model, &comparison)).unwrap();
    let printed = text::explain(&model, &comparison, Page { width: 200, glyphs: Glyphs::Unicode });
    let page = session.lines().join("\n");
    let sentence = twin["verdict"]["sentence"].as_str().unwrap();
    assert!(printed.starts_with(sentence) && page.contains(sentence), "{page}");
    for group in ["slow", "fast"] {
        let count = figure::count(twin[group]["count"].as_u64().unwrap());
        let mean = figure::time(twin[group]["mean_ns"].as_f64().unwrap());
        let shown = format!("{count} of {} × {mean}", figure::count(twin[group]["of"].as_u64().unwrap()));
        assert!(page.contains(&shown) && printed.contains(&mean), "{shown}\n{page}");
    }
    for cause in twin["causes"].as_array().unwrap().iter().take(session.app.frame.tree.causes) {
        let extra = figure::extra(cause["extra_ns"].as_f64().unwrap());
        assert!(page.contains(&extra), "{extra}\n{page}");
    }
}

#[test]
fn functions_equal_the_diff() {
    let mut session = session("F");
    let twin = diff(&session.app);
    let lines = session.lines();
    let names = twin["functions"].as_array().unwrap();
    let top = usize::from(session.app.frame.overlay.y) + 2;
    for (line, function) in lines[top..top + 8].iter().zip(names) {
        let name = function["name"].as_str().unwrap().replace("[preempted]", "[runnable]");
        let number = |key: &str| figure::extra(function[key].as_f64().unwrap());
        assert!(line.contains(&name), "{name}: {line}");
        assert!(line.contains(&format!("{:>9} in all {:>9} by itself", number("delta_ns"), number("self_delta_ns"))));
    }
    session.keys("e x p e n Enter");
    let (model, comparison) = session.app.compared_executions().unwrap();
    let found = sandwich(&model, &comparison.tree, "expensive_flush").unwrap();
    // The text of `diff --function`, word by word.
    let printed = function_text::text(&found, Page { width: 200, glyphs: Glyphs::Unicode });
    let page = session.lines().join(" ");
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let (printed, page) = (words(&printed), words(&page));
    assert!(page.windows(printed.len()).any(|part| part == printed), "{printed:?}\n{page:?}");
}

#[test]
fn histograms_equal_the_diff() {
    let mut session = session("1");
    for keys in ["", "x", "s Ctrl-u d u r a t i o n > = 5 m s Enter"] {
        session.keys(keys);
        let twin = diff(&session.app);
        let counts = session.app.counts.clone().unwrap();
        for row in &counts.rows {
            let name = row.metric.name();
            // When an execution began and from which trace it is are no metrics of `diff`.
            if matches!(name.as_str(), "start" | "end" | "trace") {
                continue;
            }
            let Some(metric) = twin["metrics"].as_array().unwrap().iter().find(|m| m["name"] == *name) else {
                panic!("no {name}")
            };
            let list = |key: &str| -> Vec<u32> { serde_json::from_value(metric[key].clone()).unwrap() };
            assert_eq!((&row.slow.members, &row.fast.members), (&list("slow"), &list("fast")), "{name}");
            let edges: Vec<i64> = serde_json::from_value(metric["bins"].clone()).unwrap();
            assert_eq!(row.bins.edges, edges, "{name}");
        }
    }
}

#[test]
fn root_causes_equal_those_of_anomalies() {
    let session = session("3");
    let found = session.app.patterns.found.clone().unwrap();
    let twin = serde_json::to_value(anomalies::json(&found.anomalies, &found.notices, None)).unwrap();
    let sources = twin["sources"].as_array().unwrap();
    let page = session.lines();
    // The text has the same totals above its patterns, and the sentence of the header first.
    let printed = anomalies::text(&found.anomalies, &found.notices, None, anomalies::ListBounds::FIRST);
    let times: u64 = sources.iter().map(|source| source["occurrences"].as_u64().unwrap()).sum();
    let causes = figure::plural(sources.len() as u64, "root cause");
    let totals = format!("{causes}, {}", figure::plural(times, "time"));
    assert!(printed.lines().any(|line| line.contains(" patterns, ") && line.contains(&totals)), "{totals}: {printed}");
    assert_eq!(printed.lines().next(), twin["verdict"].as_str());
    let totals = format!("{causes} of delay ({}", figure::plural(times, "occurrence"));
    assert!(page[1].contains(&totals), "{totals}: {}", page[1]);
    let top = usize::from(session.app.frame.inside(session.app.pane).y) + session.app.frame.list.head;
    for (row, source) in session.app.patterns.list.visible.iter().zip(&page[top..]).take(6) {
        let twin = &sources[row.at() as usize];
        let delay = match twin["affected_ns"].as_f64().unwrap() {
            0.0 => format!("({})", figure::time(twin["excess_ns"].as_f64().unwrap())),
            ns => figure::time(ns),
        };
        assert!(source.contains(&delay), "{delay}: {source}");
        let times = twin["occurrences"].as_u64().unwrap();
        assert!(source.contains(&format!(" {} ", figure::count(times))), "{times}: {source}");
    }
}

#[test]
fn overview_equals_the_query() {
    let session = session("r");
    let whole = session.app.overview.whole.clone().unwrap();
    let twin = serde_json::to_value(OverviewAnswer::new(&whole, &Notices::default())).unwrap();
    assert_eq!(twin["cells"].as_array().unwrap().len(), whole.cells.len());
    // A column of the screen is inside of one cell here.
    let cell = &twin["cells"][0];
    let number = |key: &str| cell[key].as_f64().unwrap();
    let shown = format!(
        "{:.0}% of {} CPUs; threads: {:.1} runnable, {:.1} on disk (queue {:.1}), {:.1} on network, events lost",
        number("cpu_use") * 100.0,
        twin["cpus"],
        number("runnable"),
        number("on_disk"),
        number("disk_requests"),
        number("on_network")
    );
    let page = session.lines().join("\n");
    assert!(page.contains(&shown), "{shown}\n{page}");
}

#[test]
fn timeline_equals_diff_of_two_executions() {
    let session = session("v");
    let Some(view) = session.app.top::<TimelineView>() else { panic!("no timeline") };
    let [a, b] = [view.executions[0].id, view.executions[1].id];
    let whyslow::parts::tui::layers::TimelineContent::Loaded(loaded) = &view.content else { panic!("not loaded") };
    let aligned = whyslow::parts::compare::moments::align(&loaded.model, a, b).unwrap();
    let printed = execution_text::executions(
        &loaded.model,
        &aligned,
        &loaded.calls,
        Page { width: 200, glyphs: Glyphs::Unicode },
    );
    let page = session.lines().join("\n");
    for id in [a, b] {
        let duration = figure::time(loaded.model.executions.duration(id.index()) as f64);
        assert!(printed.contains(&format!("execution {}, {duration}", id.raw())), "{printed}");
        assert!(page.contains(&format!("{}  {duration}", id.raw())), "{page}");
    }
    for thread in &loaded.timeline(0).unwrap().threads {
        let name = whyslow::parts::view::lanes::thread_name(thread);
        assert!(printed.contains(&name) && page.contains(&name), "{name}");
    }
}
