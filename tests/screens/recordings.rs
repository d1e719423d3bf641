//! Each view over a kernel trace, a recording by perf, an MPI run and a profile, with the work behind it that the
//! program has: its text at two sizes by snapshot, its essentials at others, without colours and in ASCII.

use super::interface::Session;
use super::{OTHER_SIZES, SNAPSHOT_SIZES};
use whyslow::parts::tui::theme::ColourDepth;

/// A recording: its name, where it is below `fixtures`, and the folder whose symbols are used.
const RECORDINGS: [(&str, &str, &str); 4] = [
    ("kernel", "traces/lock-contention", "traces/lock-contention/bin"),
    ("perf", "recorders/planted/lock.data", "recorders/planted"),
    ("mpi", "archives/late_sender/trace", "archives/late_sender"),
    ("profile", "profiles/flat.data", "profiles"),
];

/// A view: its name, the keys that open it from the answer, and those that lead back.
const VIEWS: [(&str, &str, &str); 12] = [
    ("answer", "2", ""),
    ("heat-map", "1", "2"),
    ("list", "1 E Down", "Esc 2"),
    ("threads-over-time", "t Down Right", "Esc"),
    ("tree", "2 Home PgDn Right Right", "Home"),
    ("drawn-icicle", "2 z | Down Down", "| z"),
    ("one-execution", "2 Home v Down Down Right p", "Esc"),
    ("aligned-calls", "2 Home v c Down", "Esc Esc"),
    ("root-causes", "3 Enter Down", "2"),
    ("propagation-path", "3 Home Enter Down 4", "2"),
    ("one-anomaly", "3 Home i", "Esc 2"),
    ("glance", "r Right +", "Esc"),
];

/// Show each view of each recording.
fn each(sizes: &[(u16, u16)], prepare: fn(&mut Session), show: impl Fn(&str, &Session)) {
    for (recording, trace, symbols) in RECORDINGS {
        for size in sizes {
            let mut session = Session::recording(trace, symbols, *size);
            prepare(&mut session);
            for (view, open, back) in VIEWS {
                session.keys(open);
                show(&format!("{recording}-{view}-{}x{}", size.0, size.1), &session);
                session.keys(back);
                assert!(session.app.layers.is_empty(), "{view} of {recording} is still open");
            }
        }
    }
}

#[test]
fn views_of_recordings_equal_their_snapshots() {
    each(
        &SNAPSHOT_SIZES,
        |_| {},
        |name, session| {
            let shown: String = session.lines().iter().map(|line| format!("|{}|\n", line.trim_end())).collect();
            insta::with_settings!({
                snapshot_path => "../snapshots/recordings",
                prepend_module_to_snapshot => false,
                omit_expression => true,
            }, {
                insta::assert_snapshot!(name, shown);
            });
        },
    );
}

#[test]
fn views_of_recordings_are_whole_in_ascii_without_colours_at_other_sizes() {
    let plain = |session: &mut Session| {
        session.app.options.depth = ColourDepth::Mono;
        session.app.options.ascii = true;
        // The theme follows at the next message.
        session.keys("Ctrl-l");
    };
    each(&[OTHER_SIZES[0], OTHER_SIZES[1], (250, 60)], plain, |name, session| {
        let (columns, lines) = session.app.size;
        let shown = session.lines();
        assert_eq!(shown.len(), usize::from(lines), "{name}");
        let page = shown.join("\n");
        assert!(shown.iter().all(|line| line.len() == usize::from(columns) && line.is_ascii()), "{name}:\n{page}");
        assert!(shown.iter().filter(|line| !line.trim().is_empty()).count() >= 3, "{name}:\n{page}");
    });
}
