//! What a review of the interface found, each with the behaviour that it asked for; other tests here show the rest.

use super::interface::Session;
use super::session;
use std::time::Duration;
use whyslow::parts::tui::job::TimeLeft;
use whyslow::parts::tui::key_bindings::TABLE;
use whyslow::parts::tui::layers::PageLayer;
use whyslow::parts::tui::message::UiMessage;
use whyslow::parts::tui::pane::Pane;
use whyslow::parts::tui::sources::RootCauseOrder;
use whyslow::parts::tui::theme::ColourDepth;
use whyslow::parts::tui::{FirstQuestion, key_bar};

/// D2: line 1 is the answer to the first question in every pane; the other verdict is below it by its name.
#[test]
fn the_first_verdict_is_line_one_in_every_pane() {
    let header = |s: &Session| s.lines()[..usize::from(s.app.frame.header.height)].join(" ").replace("▌ ", "");
    let sentences = |s: &Session| -> Vec<String> {
        s.lines().into_iter().filter_map(|line| Some(line.strip_prefix("▌ ")?.trim_end().to_owned())).collect()
    };
    let mut session = session(120, 40, "");
    let verdict = session.app.comparison.as_ref().unwrap().verdict.sentence.clone();
    let begin: String = verdict.chars().take(60).collect();
    for pane in ["3", "4", "1", "2"] {
        session.keys(pane);
        assert!(sentences(&session)[0].starts_with(&begin), "{pane}: {}", header(&session));
        assert!(
            header(&session).contains("Pattern analysis: Rank 1 delayed others most"),
            "{pane}: {}",
            header(&session)
        );
    }
    // A run begins with its patterns.
    let mut session = Session::beginning(120, 40, ColourDepth::True, FirstQuestion::Patterns);
    session.mined();
    assert!(sentences(&session)[0].starts_with("Rank 1 delayed others most, "), "{}", header(&session));
    for pane in ["2", "1", "3"] {
        session.keys(pane);
        assert!(sentences(&session)[0].starts_with("Rank 1 delayed others most, "), "{pane}: {}", header(&session));
        assert!(header(&session).contains("Comparison: Waiting in "), "{pane}: {}", header(&session));
    }
}

/// D2: while patterns are mined, the verdict of the comparison stays.
#[test]
fn the_verdict_stays_while_patterns_are_mined() {
    let mut session = session(80, 24, "");
    whyslow::parts::tui::update::update(
        &mut session.app,
        UiMessage::Key(whyslow::parts::tui::key::KeyPress::parse("3").unwrap()),
    );
    assert!(session.app.patterns.found.is_none());
    assert!(session.lines()[1].starts_with("▌ Waiting in "), "{}", session.lines().join("\n"));
}

/// D4: the list begins with the root cause of the verdict, says when, and the path beside it follows the cursor.
#[test]
fn anomalies_and_path_side_by_side_are_linked() {
    for columns in [140, 200] {
        let mut session = session(columns, 40, "3");
        let page = session.lines().join("\n");
        assert!(page.contains("when ") && page.contains("delay "), "{page}");
        assert_eq!(session.app.patterns.list.order, RootCauseOrder::Caused);
        let found = session.app.patterns.found.clone().unwrap();
        let caused: Vec<i64> =
            session.app.patterns.list.visible.iter().map(|row| row.source(&found).unwrap().affected_ns).collect();
        assert!(caused.is_sorted_by(|a, b| a >= b), "{caused:?}");
        let title = |s: &Session| {
            let right = s.app.frame.inside(Pane::Path);
            let line = &s.lines()[usize::from(right.y)];
            line.chars().skip(usize::from(right.x)).collect::<String>()
        };
        let before = title(&session);
        session.keys("Down");
        let after = title(&session);
        assert_ne!(before, after, "the path is that of the row under the cursor");
    }
}

/// D4: the first look in the list is at the root cause that the verdict names, and the path beside it is its path.
#[test]
fn the_first_look_at_a_run_is_at_the_root_cause_of_the_verdict() {
    let mut session = Session::beginning(200, 40, ColourDepth::True, FirstQuestion::Patterns);
    session.over_interruptions();
    session.mined();
    let found = session.app.patterns.found.clone().unwrap();
    let sentence = whyslow::parts::view::anomalies::verdict(&found.anomalies);
    let first = &found.anomalies.sources[0];
    let (named, largest) = (&first.name, first.occurrences.iter().map(|delay| delay.affected_ns).max().unwrap());
    assert_eq!(sentence.split(',').next().unwrap().to_lowercase(), *named, "{sentence}");
    assert_eq!(session.app.patterns.list.here().unwrap().source(&found).unwrap().name, *named, "{sentence}");
    // Its largest delay; the largest of all is another one's, and is said after it.
    let path = session.app.patterns.path.path;
    let shown = first.occurrences.iter().find(|delay| delay.path == Some(path as u32)).unwrap();
    assert_eq!(shown.affected_ns, largest, "{sentence}");
    assert!(found.anomalies.paths[0].affected_ns > largest, "{sentence}");
    assert!(sentence.contains("The largest single delay is that of rank 1, at "), "{sentence}");
    let page = session.lines();
    assert!(page.iter().any(|l| l.starts_with('▌') && l.contains(&format!("  {named} "))), "{}", page.join("\n"));
}

/// D12: a trace without tasks shows its patterns, and why, in few lines.
#[test]
fn trace_without_tasks_shows_patterns_and_the_remedy() {
    let why = "ledger/kernel, ledger/ust: no task detected; define one with --task begin=EVENT,end=EVENT, or run \
               `whyslow anomalies`, which needs none";
    let mut session = Session::new(80, 24, ColourDepth::True);
    let failed = whyslow::parts::tui::job::JobError::Failed(why.to_owned());
    session.send(UiMessage::Done(whyslow::parts::tui::job::Done::Analysed(Err(failed))));
    let lines = session.lines();
    assert_eq!(session.app.pane, Pane::Anomalies);
    let page = lines.join("\n");
    assert!(page.contains("no task detected") && page.contains("rank 1"), "{page}");
    assert_eq!(page.matches("ledger/kernel").count(), 1, "the path is in the title alone:\n{page}");
    assert!(usize::from(session.app.frame.header.height) <= 8, "{page}");
}

/// D18: of threads with one name the number at the end distinguishes them; it stays where the name is cut.
#[test]
fn numbers_of_threads_are_not_cut_off() {
    let mut session = Session::threads(80, 24, "a-long-name-of-a-server", &[4711, 4712, 4713]);
    session.ready();
    session.keys("3 { { { { 4");
    let mut rows: Vec<String> = Vec::new();
    for _ in 0..5 {
        rows.extend(session.lines().into_iter().skip(9).filter(|line| line.contains("a-long")));
        session.keys("Right");
    }
    assert!(rows.iter().all(|row| row.contains("… 471")), "{rows:#?}");
    for number in ["4711", "4712"] {
        assert!(rows.iter().any(|row| row.contains(&format!("… {number}"))), "{number}\n{rows:#?}");
    }
}

/// D20: a part can be larger than the whole difference: the sentence says what takes less; and shares of few executions
/// are counts.
#[test]
fn shares_above_the_whole_are_explained_and_those_of_few_are_counts() {
    let mut session = session(120, 40, "s Ctrl-u t y p e = a p p e n d Space d u r a t i o n < 1 0 m s Enter");
    session.keys("f Ctrl-u t y p e = l o o k u p Enter");
    let comparison = session.app.comparison.clone().unwrap();
    assert!(comparison.causes[0].share > 1.0, "{}", comparison.verdict.sentence);
    let header = |page: &[String], session: &Session| {
        let lines = page[..usize::from(session.app.frame.header.height)].join(" ").replace("▌ ", "");
        lines.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let sentence = header(&session.lines(), &session);
    assert!(sentence.contains("; other parts take ") && sentence.contains(" less"), "{sentence}");
    session.keys("s Ctrl-u d u r a t i o n > = 6 8 m s Enter");
    let slow = session.app.comparison.as_ref().unwrap().slow.members.len();
    assert!((1..5).contains(&slow), "{slow}");
    let page = session.lines();
    let sentence = header(&page, &session);
    assert!(
        sentence.contains(&format!("in {slow} of {slow} slow executions")) && !sentence.contains('%'),
        "{sentence}"
    );
    let inside = session.app.frame.inside(Pane::Tree);
    let rows = &page[usize::from(inside.y) + 1..usize::from(inside.y) + 1 + session.app.frame.tree.causes];
    assert!(rows.iter().all(|row| !row.contains('%')), "{}", rows.join("\n"));
}

/// D25: Esc takes away what is on top and what is marked, never the program; q leaves one layer; Ctrl-o goes back.
#[test]
fn keys_that_leave_mean_the_same_in_every_pane() {
    for pane in ["1", "2", "3", "4"] {
        let mut session = session(80, 24, pane);
        session.keys("Esc Esc Esc");
        assert!(!session.ended, "Esc does not quit");
        session.keys("? q");
        assert!(!session.ended && session.app.layers.is_empty(), "q closes the page");
        session.keys("? Esc");
        assert!(session.app.layers.is_empty());
        session.keys("Ctrl-o");
        assert!(session.lines()[23].contains("nothing to go back to"), "{}", session.lines()[23]);
        // Nothing is searched in the histograms, where Enter lists executions.
        if pane != "1" {
            session.keys("/ a b c Enter Backspace");
            assert!(session.app.tree.search.text.is_empty(), "Backspace clears");
        }
        session.keys("q");
        assert!(session.ended, "q quits");
    }
    for dialog in ["v", "r", "i", "F", "T", "w"] {
        for key in ["Esc", "q"] {
            let mut session = session(80, 24, dialog);
            session.keys(key);
            // A list is narrowed by letters.
            let is_list = key == "q" && ["F", "T"].contains(&dialog);
            assert!(!session.ended && session.app.layers.is_empty() != is_list, "{key} in {dialog}");
        }
    }
}

/// D25: a key of these has one meaning wherever it has any.
#[test]
fn keys_of_several_panes_have_one_meaning() {
    for key in ["Esc", "q", "-", "+", "Backspace", "Delete", "s", "f", "e", "/", "n", "N", "<", ">", "Ctrl-o", "&"] {
        let rows = TABLE.iter().filter(|row| row.keys.split(' ').any(|of| of == key));
        let actions: std::collections::HashSet<_> = rows.map(|row| row.action).collect();
        assert_eq!(actions.len(), 1, "{key}: {actions:?}");
    }
}

/// No key is named twice in the key bar, or for what it does elsewhere.
#[test]
fn key_bar_names_each_key_once_and_for_what_it_does() {
    for pane in ["1", "2", "3", "4"] {
        let session = session(200, 60, pane);
        let words = key_bar::words(&session.app, 200);
        for (at, word) in words.iter().enumerate() {
            assert!(words[..at].iter().all(|other| other.key != word.key), "{pane}: {words:?}");
            if let Some(key) = whyslow::parts::tui::key::KeyPress::parse(&word.key) {
                let bound = session.app.options.keys.bound(key, session.app.pane.scope());
                assert_eq!(bound, Some(word.action), "{pane}: {word:?}");
            }
        }
        assert!(words.iter().any(|word| word.word == "timeline"), "{words:?}");
    }
}

/// D26: each id once, times since the begin, and the time of day.
#[test]
fn details_name_ids_once_and_the_time_of_day() {
    let page = session(120, 40, "i End").lines().join("\n");
    let sample = page.lines().find(|line| line.contains("worker 3") && line.contains("slow")).unwrap().to_owned();
    for id in sample.split_whitespace().filter(|word| word.len() == 3 && word.starts_with('3')) {
        let id = id.trim_end_matches(',');
        assert_eq!(sample.matches(&format!(" {id}")).count(), 1, "{sample}");
    }
    assert!(page.contains(" UTC (") && page.contains("start times count from the first event"), "{page}");
}

/// D28: a bar shows what both groups have apart from the extra, on nine cells, too.
#[test]
fn bars_of_equal_means_and_of_extra_time_look_different() {
    for columns in [80, 140] {
        let session = session(columns, 24, "Enter");
        let row = |name: &str| {
            let lines = session.lines();
            lines.iter().rfind(|line| line.contains(name) && !line.contains("Waiting")).unwrap().clone()
        };
        let cells = |line: &str, symbol: char| line.chars().filter(|c| *c == symbol).count();
        let (extra, both) = (row("expensive_flush"), row("handle_request"));
        assert!(cells(&extra, '█') > 0 && cells(&extra, '▒') == 0, "{extra}");
        assert!(cells(&both, '▒') > 0, "{both}");
    }
}

/// D29: while nothing is known, the key bar has no key that would do nothing, and the stage is shown.
#[test]
fn loading_shows_its_stage_and_only_keys_that_work() {
    let mut session = Session::new(80, 24, ColourDepth::True);
    for (stage, done) in [("reading", 21), ("paths", 3), ("symbols", 50)] {
        session.progress(stage, done, 50, 432_000);
        let page = session.lines().join("\n");
        assert!(page.contains(&format!("{stage} {}%", done * 2)), "{page}");
    }
    for word in key_bar::words(&session.app, 200) {
        let mut pressed = Session::new(80, 24, ColourDepth::True);
        let effects = whyslow::parts::tui::update::update(
            &mut pressed.app,
            UiMessage::Key(whyslow::parts::tui::key::KeyPress::parse(&word.key).unwrap()),
        );
        let status = pressed.app.status.clone();
        let does_something = !effects.is_empty() || !pressed.app.layers.is_empty() || pressed.app.pane != Pane::Tree;
        assert!(does_something, "{} {}: {status:?}", word.key, word.word);
    }
    // Mining has stages of its own.
    let mut session = Session::beginning(80, 24, ColourDepth::True, FirstQuestion::Patterns);
    let busy =
        |stage| whyslow::parts::tui::job::Busy { what: "mining", stage, done: 1, total: 4, events: 0, left: None };
    let lane = whyslow::parts::tui::job::JobLane::Patterns;
    for stage in ["reading", "patterns", "paths"] {
        session.send(UiMessage::Progress(lane, busy(stage)));
        assert!(session.lines().join("\n").contains(&format!("{stage} 25%")));
    }
    let left = Some(TimeLeft { time: Duration::from_secs(130), of: None });
    session.send(UiMessage::Progress(lane, whyslow::parts::tui::job::Busy { left, events: 12_345, ..busy("paths") }));
    let screen = session.lines().join("\n");
    assert!(screen.contains("about 2 min left  12.3 k events"), "{screen}");
}

/// D30: on ten lines both groups with their counts and the figures of the verdict are there.
#[test]
fn small_screens_keep_groups_and_the_verdicts_figures() {
    for (columns, lines) in [(40, 10), (60, 12), (50, 15)] {
        let session = session(columns, lines, "");
        let header = session.lines()[..usize::from(session.app.frame.header.height)].join(" ").replace("▌ ", "");
        let header = header.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(header.contains("slow 24 × 54.5 ms fast 676 × 4.71 ms"), "{header}");
        assert!(header.contains("Waiting in pthread_mutex_lock"), "{header}");
        assert!(header.contains(": 48.7 ms of 49.8 ms extra (98%), in 24 of 24 slow executions."), "{header}");
    }
    // All of it is one key away.
    let mut session = session(40, 10, "w");
    session.keys("Esc i");
    assert!(!session.app.layers.is_empty());
}

/// D30: on large screens the details of the item under the cursor stand below the tree.
#[test]
fn large_screens_show_details_below_the_tree() {
    for (columns, lines) in [(250, 60), (200, 60)] {
        let mut session = session(columns, lines, "");
        let page = |s: &Session| s.lines().join("\n");
        assert!(page(&session).contains(" details (i: with sample executions) "), "{}", page(&session));
        assert!(page(&session).contains("Full stack") && page(&session).contains("journal (tid 319) of ledgerd"));
        // They follow the cursor, and the page of `i` begins with them.
        session.keys("Enter Left Left");
        let below: Vec<String> =
            session.app.frame.tree_details.iter().map(|l| l.iter().map(|(_, t)| t.as_str()).collect()).collect();
        session.keys("i");
        let whole = session.app.top::<PageLayer>().unwrap().lines.clone();
        let whole: Vec<String> = whole.iter().map(|l| l.iter().map(|(_, t)| t.as_str()).collect()).collect();
        assert!(below.len() > 5 && whole[..below.len()] == below, "{below:#?}\n{whole:#?}");
        session.keys("Esc");
        // Rows precede details.
        let rows = session.app.frame.tree.rows;
        session.app.tree.rows.visible = std::iter::repeat_n(session.app.tree.rows.visible[0], rows).collect();
        session.send(UiMessage::Resize(columns, lines));
        assert!(session.app.frame.tree_details.is_empty());
    }
    for (columns, lines) in [(80, 24), (140, 40), (200, 30)] {
        assert!(session(columns, lines, "").app.frame.tree_details.is_empty(), "{columns}x{lines}");
    }
}

#[test]
fn clicks_in_dialogs_choose_point_and_close() {
    // A list: the first click takes the cursor, the second one chooses.
    let mut session = session(80, 24, "T");
    let top = session.app.frame.overlay.y;
    session.send(UiMessage::Click(5, top + 3));
    assert_eq!(session.app.task(), Some("app:request"));
    session.send(UiMessage::Click(5, top + 3));
    assert_eq!(session.app.task(), Some("syscall:futex"));
    // A page closes by a click above it or on `Esc close`, and scrolls by the wheel.
    session.keys("?");
    session.send(UiMessage::Wheel(3));
    let page = session.lines();
    session.send(UiMessage::Wheel(-3));
    assert_ne!(page, session.lines());
    session.send(UiMessage::Click(5, 0));
    assert!(session.app.layers.is_empty());
    session.keys("?");
    session.send(UiMessage::Click(2, 23));
    assert!(session.app.layers.is_empty());
}

#[test]
fn clicks_and_wheel_move_in_the_timeline() {
    use whyslow::parts::tui::layers::{LoadedTimelines, TimelineContent, TimelineView};
    let mut session = session(120, 40, "v o");
    let loaded = |s: &Session| -> LoadedTimelines {
        let Some(view) = s.app.top::<TimelineView>() else { panic!("closed") };
        let TimelineContent::Loaded(loaded) = &view.content else { panic!("not loaded") };
        loaded.as_ref().clone()
    };
    assert!(!loaded(&session).others(0).is_empty());
    let lines = session.app.top::<TimelineView>().unwrap().lines.clone();
    // The first thread of the first execution, at its begin.
    let x = (lines.label_columns + 2) as u16;
    session.send(UiMessage::Click(x, 2));
    let (timeline, segment) = (loaded(&session), loaded(&session).cursor[0]);
    assert_eq!((timeline.front, segment), (0, 0));
    assert!(timeline.others(0).is_empty(), "the answer was about another segment");
    let whole = timeline.window.clone();
    session.send(UiMessage::Wheel(-3));
    let zoomed = loaded(&session).window.clone();
    assert_eq!(zoomed.end - zoomed.start, (whole.end - whole.start) / 2);
    session.send(UiMessage::Wheel(3));
    assert_eq!(loaded(&session).window, whole);
    // The other execution.
    let below = 1 + 1 + session.app.top::<TimelineView>().unwrap().lines.rows[0] + 1;
    session.send(UiMessage::Click(x + 3, below as u16));
    assert_eq!(loaded(&session).front, 1);
    // Outside of the drawings nothing happens.
    for (x, y) in [(0, 0), (119, 38), (0, 39), (60, 1)] {
        session.send(UiMessage::Click(x + 20, y));
    }
}

#[test]
fn dragging_selects_a_range_of_the_recording() {
    use whyslow::parts::tui::layers::OverviewView;
    let mut session = session(80, 24, "r");
    session.send(UiMessage::Click(20, 5));
    session.send(UiMessage::Drag(25, 5));
    session.send(UiMessage::Drag(30, 6));
    let Some(view) = session.app.top::<OverviewView>() else { panic!("closed") };
    let count = view.columns;
    assert_eq!((view.time.column(count), view.time.selected(count).is_some()), (20, true));
    assert!(session.lines().join("\n").contains("selected: "));
    session.keys("s");
    assert!(session.lines().join("").contains("slow> start in "));
}
