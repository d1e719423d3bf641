//! The history of a recording has the states of its timeline, for any number of workers.

use super::*;
use std::path::Path;
use whyslow::parts::base::ctx::Ctx;
use whyslow::parts::input::Trace;
use whyslow::parts::state::history::lines::{Held, Time};
use whyslow::parts::state::history::{History, Shown};
use whyslow::parts::state::kernel::{Options, record};
use whyslow::parts::state::questions::Asker;
use whyslow::parts::state::timeline::SegmentKind;

#[test]
fn history_of_a_recording_is_asked_by_path() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/traces/cpu-contention/kernel");
    let trace = Trace::open(&folder).unwrap();
    let (recording, _) = record(&[&trace], &[], &Options::default(), &Ctx::new(2)).unwrap();
    let history = History::of_recording(&recording, &Ctx::new(1)).unwrap();
    history.tree().check().unwrap();
    for workers in [2, 3, 7] {
        let again = History::of_recording(&recording, &Ctx::new(workers)).unwrap();
        assert_eq!(again.tree(), history.tree());
    }
    assert!(history.tree().size() < 20 * history.tree().len() as usize + 64 * history.tree().attributes());

    let mut asked = 0;
    let reader = recording.reader(Asker::History);
    for (id, thread) in recording.threads_by_id().filter(|(_, thread)| !thread.idle) {
        let others = recording.threads().iter().filter(|other| other.tid == thread.tid && !other.idle).count();
        let state = history.attributes.find(&format!("threads/{}/state", thread.tid)).unwrap();
        for segment in reader.segments(id).all().filter(|segment| !segment.span.is_empty() && others == 1) {
            let held = history.held(state, segment.span.start);
            assert!(held.span.start <= segment.span.start && segment.span.end <= held.span.end);
            assert_eq!(held.value.is_none(), segment.kind == SegmentKind::Unknown);
            asked += 1;
        }
    }
    assert!(asked > 1_000);

    let whole = Time::Range(history.window());
    let cpus = history.lines("cpus/*/thread", &whole, &Cancel::default()).unwrap();
    assert_eq!(cpus.len(), recording.cpus().len());
    for (line, (host, cpu)) in cpus.iter().zip(recording.cpus()) {
        let idle = |held: &&Held| held.value.is_some_and(|value| history.show(value) == Shown::Number(0));
        let time = |spans: &mut dyn Iterator<Item = Span>| spans.map(Span::len).sum::<i64>();
        let idle_here = time(&mut line.held.iter().filter(idle).map(|held| held.span));
        let idle_there =
            reader.runs(host, cpu).all().filter(|run| recording.thread(run.thread).is_some_and(|t| t.tid == 0));
        assert_eq!(idle_here, time(&mut idle_there.map(|run| run.span)));
    }
}
