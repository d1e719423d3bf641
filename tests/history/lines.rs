//! The questions of a user and their answers: paths, patterns, and unknown spans.

use super::plain::said;
use crate::support::spans::span;
use whyslow::parts::base::time::{Ns, Timestamp};
use whyslow::parts::event::host::HostId;
use whyslow::parts::timeline::history::StateHistory;
use whyslow::parts::timeline::history::lines::{Longest, Time};
use whyslow::parts::timeline::{
    CpuRun, CpuTimeline, Host, Segment, SegmentKind, Thread, ThreadDraft, ThreadId, ThreadName, ThreadRows,
    TimelineDraft,
};

/// Threads 7 and 12, and a CPU.
fn history() -> StateHistory {
    let mut draft = TimelineDraft::default();
    let [host, zsh] = ["host", "zsh"].map(|name| draft.tables.names.intern(name));
    draft.tables.hosts = vec![Host { name: host, kernel_release: None }];
    draft.tables.span = span(0, 100);
    let segment = |(start, end, kind): (Ns, Ns, SegmentKind)| Segment {
        span: span(start, end),
        kind,
        waker: None,
        qualifier: None,
        cpu: 0,
    };
    let mut add = |tid, life: (Ns, Ns), rows: &[(Ns, Ns, SegmentKind)]| {
        let mut thread = Thread::new(HostId::at(0), tid, span(life.0, life.1));
        if tid == 7 {
            thread.names = vec![ThreadName { from: Timestamp::new(5), name: zsh }];
        }
        let own = ThreadRows { segments: rows.iter().copied().map(segment).collect(), ..ThreadRows::default() };
        draft.threads.push(ThreadDraft { thread, rows: own });
    };
    let (running, blocked, unknown) = (SegmentKind::Running, SegmentKind::Blocked, SegmentKind::Unknown);
    add(12, (35, 40), &[(35, 40, blocked)]);
    let rows = [(5, 10, unknown), (10, 20, running), (20, 30, blocked), (30, 60, unknown), (60, 70, running)];
    add(7, (5, 90), &[&rows[..], &[(70, 90, unknown)]].concat());
    let run = CpuRun { span: span(0, 50), thread: ThreadId::at(1) };
    draft.cpus = vec![CpuTimeline { host: HostId::at(0), cpu: 0, runs: vec![run] }];
    StateHistory::new(draft.seal(), None)
}

fn ask(pattern: &str, time: Time) -> Vec<String> {
    said(&history(), pattern, &time)
}

fn text(path: &str, held: &[(Ns, Ns, Option<&str>)]) -> String {
    let held: Vec<String> =
        held.iter().map(|(start, end, value)| format!("{:?} {value:?}", span(*start, *end))).collect();
    format!("{path}: {}", held.join(", "))
}

const RUNNING: Option<&str> = Some("running");
const BLOCKED: Option<&str> = Some("blocked");

#[test]
fn ranges_show_known_and_unknown_spans() {
    let whole = Time::Range(span(0, 100));
    let seven =
        [(0, 10, None), (10, 20, RUNNING), (20, 30, BLOCKED), (30, 60, None), (60, 70, RUNNING), (70, 100, None)];
    assert_eq!(
        ask("threads/*/state", whole.clone()),
        [
            text("threads/7/state", &seven),
            text("threads/12/state", &[(0, 35, None), (35, 40, BLOCKED), (40, 100, None)]),
        ]
    );
    assert_eq!(ask("threads/7/name", Time::Range(span(40, 50))), [text("threads/7/name", &[(5, 90, Some("zsh"))])]);
    assert_eq!(ask("threads/7/state", Time::Range(span(40, 50))), [text("threads/7/state", &[(30, 60, None)])]);
    assert_eq!(ask("threads", whole.clone()), [text("threads", &[(0, 100, None)])]);
    assert_eq!(ask("threads/8/state", whole), [""; 0]);
}

#[test]
fn instants_and_points_list_each_span_once() {
    let at = |times: Vec<Ns>| ask("threads/7/state", Time::Instants(times.into_iter().map(Timestamp::new).collect()));
    let seven = |held: &[(Ns, Ns, Option<&str>)]| [text("threads/7/state", held)];
    assert_eq!(at(vec![45]), seven(&[(30, 60, None)]));
    assert_eq!(at(vec![19, 12, 25, 10]), seven(&[(10, 20, RUNNING), (20, 30, BLOCKED)]));
    assert_eq!(
        ask("threads/7/state", Time::Points(span(0, 100), 4)),
        seven(&[(0, 25, RUNNING), (25, 50, BLOCKED), (50, 75, RUNNING), (75, 100, None)])
    );
    assert_eq!(ask("threads/12/state", Time::Points(span(0, 100), 0)), [text("threads/12/state", &[])]);
    let names = [text("threads/7/name", &[(0, 5, None), (5, 90, Some("zsh"))])];
    assert_eq!(ask("threads/7/name", Time::Points(span(0, 100), 2)), names);
}

#[test]
fn longest_lists_the_longest_first() {
    let longest = |count| ask("threads/*/state", Time::Longest(Longest { span: span(15, 100), count, value: None }));
    let two = [(60, 70, RUNNING), (20, 30, BLOCKED)].map(|one| text("threads/7/state", &[one]));
    assert_eq!(longest(2), two);
    assert_eq!(longest(9).last().unwrap(), &text("threads/12/state", &[(35, 40, BLOCKED)]));
}
