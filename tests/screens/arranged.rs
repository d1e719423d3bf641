//! The tree pane in other arrangements: kernel functions hidden and shown, zoom, focus, drop, collapse.

use super::assert_snapshot;
use super::interface::Session;
use super::recording::recording;
use std::sync::Arc;
use whyslow::parts::tui::app::{App, Cursor};
use whyslow::parts::tui::job::Done;
use whyslow::parts::tui::message::UiMessage;
use whyslow::parts::tui::theme::ColourDepth;
use whyslow::parts::tui::tree::path_text;

const READ: &str = "server;main;serve;read_file;[read];(vfs_read);(ext4_file_read_iter)";

/// Requests of which one in ten waits for its disk, in the kernel's functions below a call.
fn session(columns: u16, lines: u16) -> Session {
    let model = recording(200, |number| {
        let us = |us: u64| 1_000 * (us + number * 7 % 13);
        let disk = if number % 10 == 3 { 40_000 } else { 900 };
        [
            ("server;main;serve;parse".to_owned(), us(1_000)),
            ("server;main;serve;parse;(exc_page_fault);(do_user_addr_fault);(handle_mm_fault)".to_owned(), us(300)),
            ("server;main;serve;parse;read_file;[read];(vfs_read);(copy_page_to_iter)".to_owned(), us(200)),
            (format!("{READ};(io_schedule);{{block device}}"), us(disk)),
            (format!("{READ};(copy_page_to_iter)"), us(150)),
        ]
        .into()
    });
    let mut session = Session::new(columns, lines, ColourDepth::True);
    session.send(UiMessage::Done(Done::Analysed(Ok(Arc::new(model)))));
    session
}

/// The frames from the root to the node under the cursor of the tree that is shown.
fn here(app: &App) -> String {
    let (model, _) = app.shown_tree().unwrap();
    path_text(&model, app.node().unwrap().1.context).join(";")
}

/// The names of the roots that are shown, with the mean time of the slow group.
fn roots(app: &App) -> Vec<(String, u64)> {
    let (model, comparison) = app.shown_tree().unwrap();
    let nodes = app.tree.rows.roots(&model, &comparison.tree);
    let root = |at: &u32| {
        let node = &comparison.tree.nodes[*at as usize];
        (path_text(&model, node.context).pop().unwrap(), node.slow_mean_ns as u64)
    };
    nodes.iter().map(root).collect()
}

/// True if the tree that is shown has a node of this name.
fn has(app: &App, name: &str) -> bool {
    let (model, comparison) = app.shown_tree().unwrap();
    let is_it = |context| path_text(&model, context).pop().as_deref() == Some(name);
    comparison.tree.nodes.iter().any(|node| is_it(node.context))
}

/// Put the cursor on the row of the node at this path, with all above it unfolded.
fn go(session: &mut Session, path: &str) {
    let (model, comparison) = session.app.shown_tree().unwrap();
    let nodes = (0_u32..).zip(&comparison.tree.nodes);
    let found = nodes.into_iter().find(|(_, node)| path_text(&model, node.context).join(";") == path);
    let (node, _) = found.unwrap_or_else(|| panic!("no {path}"));
    let row = session.app.tree.rows.reveal(node, &model, &comparison.tree);
    session.app.tree.cursor = Cursor::Row(row);
    assert_eq!(here(&session.app), path);
}

#[test]
fn kernel_functions_are_hidden_until_they_are_asked_for() {
    let mut session = session(120, 40);
    let text = session.lines().join("\n");
    assert!(text.contains("kernel hidden (H)") && !has(&session.app, "vfs_read"), "{text}");
    let call = "server;main;serve;read_file;[read]";
    go(&mut session, call);
    let hidden = session.app.node().unwrap().1.clone();
    session.keys("H");
    let text = session.lines().join("\n");
    assert!(text.contains("kernel functions shown; H: hide them") && !text.contains("kernel hidden"), "{text}");
    assert!(here(&session.app).starts_with(call) && has(&session.app, "vfs_read"), "the row that it shares");
    go(&mut session, call);
    let shown = session.app.node().unwrap().1.clone();
    assert_eq!((hidden.slow_mean_ns, hidden.delta_ns), (shown.slow_mean_ns, shown.delta_ns));
    // All time of the call is its own or that of the wait below it; with the functions none is its own.
    assert!(hidden.size == 2 && hidden.self_delta_ns != 0.0, "{hidden:?}");
    assert!(shown.size == 6 && shown.self_delta_ns == 0.0, "{shown:?}");
    go(&mut session, &format!("{READ};(io_schedule)").replace(['(', ')'], ""));
    session.keys("H");
    assert!(here(&session.app).starts_with(call), "the nearest row that is shown");
    // Page faults stay: that is what the sentence of a cause names.
    go(&mut session, "server;main;serve;parse;exc_page_fault;handle_mm_fault");
}

#[test]
fn causes_jumps_and_bookmarks_lead_to_what_is_shown() {
    let mut session = session(120, 40);
    session.app.tree.cursor = Cursor::Cause(0);
    session.keys("Enter");
    let wait = "server;main;serve;read_file;[read];[block device]";
    assert_eq!(here(&session.app), wait);
    session.keys("b x Enter");
    session.keys("H Home B Enter");
    assert_eq!(here(&session.app), format!("{READ};(io_schedule);[block device]").replace(['(', ')'], ""));
    session.keys("H Home B Enter");
    assert_eq!(here(&session.app), wait);
    // The sum of the marked rows is the cause, in either direction.
    for keys in ["Home", "I Home"] {
        session.keys(keys);
        session.app.tree.cursor = Cursor::Cause(0);
        session.keys("Down Up");
        let (_, shown) = session.app.shown_tree().unwrap();
        let own = |at: &u32| shown.tree.nodes[*at as usize].self_delta_ns;
        let sum: f64 = session.app.tree.marked.nodes.iter().map(own).sum();
        let cause = session.app.causes()[0].extra_ns as f64;
        assert!((sum - cause).abs() < 2.0, "{keys}: {sum} of {cause}");
    }
}

#[test]
fn transforms_show_a_function_alone_leave_it_out_or_close_it() {
    let mut session = session(120, 40);
    let whole = roots(&session.app);
    go(&mut session, "server;main;serve;read_file");
    let read = session.app.node().unwrap().1.slow_mean_ns;
    session.keys("O");
    let focused = roots(&session.app);
    assert!(focused.len() == 1 && focused[0].0 == "read_file" && focused[0].1 > read as u64, "{focused:?}");
    let text = session.lines().join("\n");
    assert!(text.contains("only read_file, kernel hidden") && text.contains("-: back"), "{text}");
    go(&mut session, "read_file;[read]");
    session.keys("c");
    assert_eq!(session.app.node().unwrap().1.size, 1);
    session.keys("- -");
    assert_eq!(roots(&session.app), whole);
    go(&mut session, "server;main;serve;read_file;[read]");
    session.keys("d");
    let left = roots(&session.app);
    assert!(left[0].1 < whole[0].1 - 40_000_000, "{left:?} {whole:?}");
    // A cause that is left out says so, and stays where it is.
    session.app.tree.cursor = Cursor::Cause(0);
    session.keys("Enter");
    assert!(session.lines().join("\n").contains("is left out; Backspace shows the whole tree"));
    // Transforms stay while groups and the direction change.
    session.keys("x I");
    assert!(session.app.tree.inverted.is_some() && !has(&session.app, "[read]"));
    session.keys("x Backspace");
    assert!(session.app.tree.inverted.is_some() && has(&session.app, "[read]"));
    session.keys("I");
    assert_eq!(roots(&session.app), whole);
}

#[test]
fn a_subtree_is_zoomed_into_and_left_again() {
    let mut session = session(120, 40);
    session.keys("-");
    assert!(session.lines().join("\n").contains("this is the whole tree"));
    let whole = session.app.tree.rows.visible.clone();
    let call = "server;main;serve;read_file;[read]";
    go(&mut session, call);
    let before = session.app.tree.rows.visible.clone();
    session.keys("+");
    assert_eq!(session.app.tree.rows.visible[0].depth(), 0);
    assert!(session.app.tree.rows.visible.len() < before.len() && here(&session.app).starts_with(call));
    assert!(session.lines().join("\n").contains("in [read], kernel hidden"));
    // The zoom stays while groups change and the kernel's functions are shown.
    session.keys("x x H");
    assert!(session.lines().join("\n").contains("in [read], by"), "{}", session.lines().join("\n"));
    session.keys("H -");
    assert_eq!(here(&session.app), call);
    assert_eq!(session.app.tree.rows.zoom().len(), 0);
    // What is elsewhere in the tree is shown where it is.
    session.keys("+ / p a r s e Enter");
    assert!(session.app.tree.rows.zoom().is_empty() && here(&session.app).ends_with("parse"));
    go(&mut session, call);
    session.keys("+ Backspace");
    assert_eq!(here(&session.app), call);
    assert!(session.app.tree.rows.visible.len() >= whole.len());
}

#[test]
fn an_icicle_has_the_same_cursor_as_the_rows() {
    let mut session = session(120, 30);
    go(&mut session, "server;main;serve;read_file");
    session.keys("|");
    assert_eq!(here(&session.app), "server;main;serve;read_file");
    session.keys("Down");
    assert_eq!(here(&session.app), "server;main;serve;read_file;[read]");
    assert!(session.lines().join("\n").contains("[read]: +39.1 ms (slow 40.2 ms, fast 1.06 ms"));
    session.keys("Up Left");
    assert_eq!(here(&session.app), "server;main;serve;parse");
    session.keys("Right Home");
    assert_eq!(session.app.tree.cursor, Cursor::Cause(0));
    session.keys("Down Down End");
    assert_eq!(here(&session.app), "server;main;serve;read_file;[read];[block device]");
    // Zoom, other groups, the kernel's functions and callees first keep it.
    session.keys("Up Enter x x H H");
    let roots = roots(&session.app);
    assert!(roots.len() == 1 && roots[0].0 == "[read]" && here(&session.app).ends_with("[read]"), "{roots:?}");
    session.keys("- I Down I");
    assert_eq!(here(&session.app), "server;main;serve;read_file;[read]");
    session.keys("|");
    assert!(session.app.tree.icicle.is_none() && here(&session.app) == "server;main;serve;read_file;[read]");
    session.keys("| T Down Enter");
    assert!(session.app.tree.icicle.is_some() && !session.lines().is_empty());
}

#[test]
fn a_narrow_pane_has_no_space_for_an_icicle() {
    let mut session = session(50, 20);
    session.keys("2 |");
    assert!(session.app.tree.icicle.is_none() && session.lines().join("\n").contains("needs 60 columns"));
}

#[test]
fn icicle_screens() {
    for (columns, lines) in [(80, 24), (200, 60)] {
        let mut session = session(columns, lines);
        session.keys("2 | Down Down Down");
        assert_snapshot(&format!("icicle-{columns}x{lines}"), &session);
    }
}

#[test]
fn arranged_tree_screens() {
    for (columns, lines) in [(80, 24), (200, 60)] {
        let mut session = session(columns, lines);
        session.keys("2");
        go(&mut session, "server;main;serve;read_file");
        session.keys("O Down +");
        assert_snapshot(&format!("arranged-{columns}x{lines}"), &session);
    }
}
