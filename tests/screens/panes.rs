//! The tree and its causes, the help, the mouse.

use super::interface::Session;
use whyslow::parts::tui::app::Cursor;
use whyslow::parts::tui::layers::{PageLayer, page_height};
use whyslow::parts::tui::message::UiMessage;
use whyslow::parts::tui::pane::Pane;
use whyslow::parts::tui::theme::ColourDepth;
use whyslow::parts::tui::tree::{TreeItem, path_text};

/// The column and the line where a text is on the screen.
fn place(session: &Session, text: &str) -> (u16, u16) {
    let lines = session.lines();
    let found = lines.iter().enumerate().find_map(|(y, line)| {
        let at = line.find(text)?;
        Some((line[..at].chars().count() as u16, y as u16))
    });
    found.unwrap_or_else(|| panic!("no {text:?} on\n{}", lines.join("\n")))
}

#[test]
fn a_new_order_of_the_tree_is_read_from_its_top() {
    let mut session = Session::new(80, 24, ColourDepth::True);
    session.ready();
    session.keys("Enter Down Down Down o");
    assert_eq!((session.app.tree.cursor, session.app.tree.offset), (Cursor::Row(0), 0));
}

#[test]
fn small_siblings_share_a_row_with_their_sums() {
    let mut session = Session::new(120, 40, ColourDepth::True);
    session.ready();
    let comparison = session.app.comparison.clone().unwrap();
    let items = session.app.tree.rows.visible.clone();
    let Some((row, small)) = items.iter().enumerate().find_map(|(row, item)| match item {
        TreeItem::Small(small) => Some((row, *small)),
        TreeItem::Node(_) => None,
    }) else {
        panic!("no small nodes on\n{}", session.lines().join("\n"))
    };
    let parent = small.parent.unwrap();
    let siblings: Vec<_> = comparison.tree.nodes.iter().filter(|n| n.parent == Some(parent)).collect();
    let shown: Vec<_> = items
        .iter()
        .filter_map(|item| match item {
            TreeItem::Node(chain) => comparison.tree.nodes.get(chain.first as usize),
            TreeItem::Small(_) => None,
        })
        .filter(|node| node.parent == Some(parent))
        .collect();
    let all: f64 = siblings.iter().map(|n| n.delta_ns).sum();
    let large: f64 = shown.iter().map(|node| node.delta_ns).sum();
    assert!((all - large - small.delta_ns).abs() < 1.0);
    assert_eq!(siblings.len(), shown.len() + small.count as usize);
    assert!(session.lines().join("").contains(&format!("… {} below 1%", small.count)));
    session.app.tree.cursor = Cursor::Row(row);
    session.keys("Enter");
    assert_eq!(session.app.tree.rows.visible.len(), items.len() + small.count as usize - 1);
    // A search finds nodes that have no row of their own.
    session.keys("Left Enter Enter");
}

#[test]
fn the_rows_of_the_cause_under_the_cursor_are_marked() {
    let mut session = Session::new(80, 24, ColourDepth::True);
    session.ready();
    let marked = |s: &Session| s.lines().iter().filter(|l| l.starts_with('●')).cloned().collect::<Vec<_>>();
    assert!(!marked(&session).is_empty());
    let comparison = session.app.comparison.clone().unwrap();
    let sum: f64 =
        session.app.tree.marked.nodes.iter().map(|at| comparison.tree.nodes[*at as usize].self_delta_ns).sum();
    assert!((sum - comparison.causes[0].extra_ns as f64).abs() < 2.0, "{sum} is the cause's extra time");
    session.keys("Down");
    assert_eq!(session.app.tree.marked.cause, Some(1));
}

#[test]
fn help_begins_with_the_keys_of_the_pane() {
    for (keys, first) in [("1 ?", "In the histograms"), ("2 ?", "In the flame tree"), ("3 ?", "In the anomalies")] {
        let mut session = Session::new(80, 24, ColourDepth::True);
        session.ready();
        session.keys(keys);
        let page = session.app.top::<PageLayer>().unwrap().lines.clone();
        assert_eq!(page[0][0].1, first);
        let everywhere = page.iter().position(|l| l.first().is_some_and(|(_, t)| t == "Everywhere")).unwrap();
        assert!(everywhere < page_height(&session.app) + 2, "the own keys are on the first page");
    }
}

#[test]
fn clicks_do_what_the_keys_of_the_clicked_thing_do() {
    let mut session = Session::new(80, 24, ColourDepth::True);
    session.ready();
    let click = |session: &mut Session, text: &str| {
        let (x, y) = place(session, text);
        session.send(UiMessage::Click(x, y));
    };
    click(&mut session, "warnings: w");
    assert!(session.lines().join("").contains("Data quality"));
    session.keys("Esc");
    click(&mut session, "▾");
    assert!(session.app.tree.rows.visible.len() < 4, "the root is folded");
    click(&mut session, "▸");
    assert!(session.app.tree.rows.visible.len() > 4);
    click(&mut session, "2.22 ms");
    assert_eq!(session.app.tree.cursor, Cursor::Cause(1));
    click(&mut session, "2.22 ms");
    assert!(matches!(session.app.tree.cursor, Cursor::Row(_)), "a second click opens it");
    click(&mut session, "3 Anomalies");
    assert_eq!(session.app.pane, Pane::Anomalies);
    click(&mut session, "? help");
    assert!(session.lines().join("").contains(" Help "));
    session.keys("Esc");
    click(&mut session, "1 Histograms");
    // The row of cpu is below those that separate the groups better.
    session.keys("PgDn Down Down Down Down Down Down");
    let (x, y) = place(&session, "cpu");
    session.send(UiMessage::Click(x + 12, y + 1));
    session.send(UiMessage::Drag(x + 17, y + 1));
    session.send(UiMessage::Drag(x + 20, y + 2));
    let selection = session.app.histograms.selection.clone().unwrap();
    assert!(selection.ends().1 > selection.ends().0 + 5, "{selection:?}");
    session.keys("s");
    assert!(session.lines().join("").contains("slow> cpu in "));
}

#[test]
fn tasks_are_listed_with_their_executions_and_without_empty_ones() {
    let mut session = Session::new(120, 40, ColourDepth::True);
    session.ready();
    session.keys("T");
    let page = session.lines().join("\n");
    assert!(page.contains("executions  p50") && page.contains("current task"), "{page}");
    assert!(page.contains("syscall:futex") && !page.contains("syscall:read"), "{page}");
    session.keys("Down Enter");
    assert_eq!(session.app.task(), Some("syscall:futex"));
}

#[test]
fn bars_show_what_both_groups_have_and_the_extra_apart() {
    let mut session = Session::new(80, 24, ColourDepth::Mono);
    session.ready();
    session.keys("Enter");
    let lines = session.lines();
    // The journal's flush is in slow executions alone; all executions have the worker's own time.
    let row = |name: &str| lines.iter().rfind(|line| line.contains(name) && !line.contains("Waiting")).unwrap().clone();
    let extra = row("expensive_flush");
    assert!(extra.contains('█') && !extra.contains('▒'), "{extra}");
    let both = row("handle_request");
    assert!(both.contains('▒') && both.contains('█'), "{both}");
}

/// The nodes of the row under the cursor, by name.
fn chain(session: &Session) -> Vec<String> {
    let Cursor::Row(row) = session.app.tree.cursor else { panic!("{:?}", session.app.tree.cursor) };
    let (model, comparison) = session.app.shown_tree().unwrap();
    let TreeItem::Node(chain) = session.app.tree.rows.visible[row] else { panic!("several nodes") };
    let path = path_text(&model, comparison.tree.nodes[chain.last as usize].context);
    path[path.len() - (chain.last - chain.first) as usize - 1..].to_vec()
}

#[test]
fn a_chain_of_calls_is_one_row_that_opens_and_closes() {
    let mut session = Session::new(120, 40, ColourDepth::True);
    session.ready();
    session.keys("Down Down Down");
    session.app.tree.cursor = Cursor::Row(0);
    let rows = session.app.tree.rows.visible.clone();
    assert_eq!(chain(&session), ["ledgerd", "start_thread", "worker_main", "handle_request"]);
    let page = session.lines().join("\n");
    assert!(page.contains("› handle_request "), "{page}");
    // Each node has a row of its own, and the figures of its own.
    session.keys("Right");
    assert_eq!(chain(&session), ["ledgerd"]);
    assert_eq!(session.app.tree.rows.visible.len(), rows.len() + 3);
    session.keys("Right Right Right");
    assert_eq!(chain(&session), ["handle_request"]);
    // Folding a node of the chain closes it; unfolding shows what was there before.
    session.keys("Left Left Left Left Left Left Left Left");
    assert_eq!(session.app.tree.rows.visible.len(), 1);
    assert_eq!(chain(&session), ["ledgerd", "start_thread", "worker_main", "handle_request"]);
    session.keys("Right");
    let depths = |items: &[TreeItem]| items.iter().map(TreeItem::depth).collect::<Vec<_>>();
    assert_eq!(depths(&session.app.tree.rows.visible)[..2], depths(&rows)[..2]);
    // A search for a node in the middle of a chain shows it.
    session.keys("/ w o r k e r _ m a i n Enter");
    assert_eq!(chain(&session), ["worker_main"]);
}

#[test]
fn a_thread_has_a_row_of_its_own() {
    let mut session = Session::new(120, 40, ColourDepth::True);
    session.ready();
    session.keys("/ e x p e n s i v e Enter");
    let (model, comparison) = session.app.shown_tree().unwrap();
    let threads = session.app.tree.rows.visible.iter().filter_map(|item| match item {
        TreeItem::Node(chain) => {
            let first = path_text(&model, comparison.tree.nodes[chain.first as usize].context);
            first.last().unwrap().starts_with("thread ").then_some(chain)
        }
        TreeItem::Small(_) => None,
    });
    let lengths: Vec<bool> = threads.map(|chain| chain.is_long()).collect();
    assert!(!lengths.is_empty() && !lengths.contains(&true), "{lengths:?}");
}
