//! When threads ran, waited and ended, in recordings by perf of one program: from its records of switches and exits,
//! without the scheduler's tracepoints. Truths are sums over the records as `perf report -D` prints them
//! (`fixtures/recorders/README.md`).

use std::path::{Path, PathBuf};
use whyslow::parts::base::ctx::Ctx;
use whyslow::parts::base::notice::Notice;
use whyslow::parts::base::time::Ns;
use whyslow::parts::input::{self, Argument, Opened, Source};
use whyslow::parts::kernel::{Options, record};
use whyslow::parts::timeline::{Segment, SegmentKind, ThreadDraft, Timeline, TimelineDraft};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/recorders").join(name)
}

fn open(name: &str) -> Vec<Source> {
    let argument = Argument::new(fixture(name));
    let Ok(Opened::Traces(sources)) = input::open(&[argument], &Ctx::new(1)) else { panic!("{name}") };
    sources
}

fn recorded(name: &str) -> Timeline {
    let sources = open(name);
    let traces: Vec<_> = sources.iter().map(|source| &source.trace).collect();
    let (timeline, _) = record(&traces, &[], &Options::default(), &Ctx::new(1)).unwrap();
    assert_eq!(timeline.check(), None);
    timeline.seal()
}

/// The threads with a name at their end.
fn named(timeline: &Timeline, name: &str) -> Vec<ThreadDraft> {
    let is_named =
        |of: &ThreadDraft| of.thread.names.last().is_some_and(|last| timeline.names().get(last.name) == name);
    TimelineDraft::of(timeline).threads.into_iter().filter(is_named).collect()
}

/// The time that a thread spent in a state.
fn spent(thread: &ThreadDraft, kind: SegmentKind) -> Ns {
    thread.rows.segments.iter().filter(|segment| segment.kind == kind).map(|segment| segment.span.len()).sum()
}

#[test]
fn switch_records_say_when_a_thread_was_off_its_cpu_and_why() {
    let timeline = recorded("leaves.data");
    let [program] = named(&timeline, "leaves").try_into().unwrap();
    // Ten sleeps; twenty times it could have gone on.
    let [asleep, ready, unknown] =
        [SegmentKind::Blocked, SegmentKind::Preempted, SegmentKind::Unknown].map(|kind| spent(&program, kind));
    assert!((120_900_000..120_950_000).contains(&asleep), "{asleep}");
    assert!((75_400_000..75_500_000).contains(&ready), "{ready}");
    let running = spent(&program, SegmentKind::Running);
    assert!(running >= 80_000_000 && unknown < 2_000_000, "{running} {unknown}");
    assert_eq!(asleep + ready + running + unknown, program.thread.life.len());
}

#[test]
fn sampled_addresses_are_stacks_where_there_are_no_chains() {
    let timeline = recorded("leaves.data");
    let [program] = named(&timeline, "leaves").try_into().unwrap();
    let samples = &program.rows.samples;
    let in_user_space = samples.iter().filter(|sample| sample.user.is_some()).count();
    assert_eq!((in_user_space, samples.len()), (49, 81));
    for sample in samples {
        assert!(sample.user.is_none() != sample.kernel.is_none(), "one address, on one side");
        let stack = timeline.stacks().get(sample.user.or(sample.kernel).unwrap());
        assert_eq!(stack.len(), 1);
    }
}

#[test]
fn exits_end_lives_and_first_events_begin_them() {
    let timeline = recorded("rings.data");
    let mut lives: Vec<Ns> = named(&timeline, "ring-worker").iter().map(|of| of.thread.life.len()).collect();
    lives.sort_unstable();
    // From FORK to EXIT; a fork before the first sample begins with that, half a millisecond later.
    let truth = [30_296_481, 41_652_790, 50_027_187, 53_654_861, 70_810_055, 81_991_567];
    assert_eq!(lives.len(), truth.len(), "{lives:?}");
    for (life, truth) in lives.iter().zip(truth) {
        assert!((truth - 600_000..truth + 1_500_000).contains(life), "{lives:?}");
    }
    let [program] = named(&timeline, "rings").try_into().unwrap();
    assert_eq!(program.thread.life.start, timeline.span().start);
    assert!(program.thread.life.len() < 250_000_000);
}

/// Two events of one tracepoint in a recording by perf: two filters, which together let each switch through, or the
/// same event asked for twice. The threads change each few microseconds: the times are as close as those of copies.
#[test]
fn switches_of_two_filters_are_all_followed_and_those_of_copies_once() {
    for (name, ping, pong) in [("filters.data", 58, 60), ("twice.data", 29, 29)] {
        let timeline = recorded(name);
        let runs = |thread: &str| -> usize {
            let is_run = |segment: &&Segment| segment.kind == SegmentKind::Running;
            named(&timeline, thread).iter().map(|of| of.rows.segments.iter().filter(is_run).count()).sum()
        };
        assert_eq!((runs("ping"), runs("pong")), (ping, pong), "{name}");
    }
}

/// 54 samples of 900 a second: nothing is known of the time between them.
#[test]
fn thread_runs_for_the_time_of_its_samples() {
    let timeline = recorded("rings.data");
    let draft = TimelineDraft::of(&timeline);
    let samples: usize = draft.threads.iter().map(|of| of.rows.samples.len()).sum();
    let running: Ns = draft.threads.iter().map(|of| spent(of, SegmentKind::Running)).sum();
    assert_eq!(samples, 54);
    assert!((48 * 1_111_111..=54 * 1_111_111).contains(&running), "{running}");
    for thread in named(&timeline, "ring-worker") {
        let all = thread.thread.life.len();
        assert_eq!(spent(&thread, SegmentKind::Running) + spent(&thread, SegmentKind::Unknown), all);
    }
}

#[test]
fn sampled_tracepoints_show_no_waits() {
    let sources = open("thinned.data");
    assert_eq!(sources[0].trace.notices().count(Notice::TracepointsSampled), 1);
    let timeline = recorded("thinned.data");
    let [program] = named(&timeline, "leaves").try_into().unwrap();
    assert_eq!(spent(&program, SegmentKind::Blocked) + spent(&program, SegmentKind::Preempted), 0);
}
