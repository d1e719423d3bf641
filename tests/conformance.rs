//! The conformance suite of critical paths: every case file is written as a CTF trace, read again, and the path that
//! follows is the expected one. `conformance/RESULTS.md` says the same of each case; a case that is known to fail must
//! fail.

use crate::support::conformance;
use conformance::{Case, Expected, START, Segment};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use whyslow::parts::analysis::path::{PathSegment, label, walk};
use whyslow::parts::base::ctx::Ctx;
use whyslow::parts::base::time::{Ns, Span, Timestamp};
use whyslow::parts::event::host::HostId;
use whyslow::parts::input::{Argument, Opened, open};
use whyslow::parts::kernel::{Options, record};
use whyslow::parts::timeline::{SegmentKind, ThreadId, Timeline};

/// Cases that do not pass yet, each with the reason.
const KNOWN: &[(&str, &str)] = &[];

fn recording(case: &Case, folder: &Path) -> Timeline {
    let _ = std::fs::remove_dir_all(folder);
    let traces = case.write(folder);
    let arguments: Vec<Argument> = traces.into_iter().map(Argument::new).collect();
    let work = Ctx::new(1);
    let Ok(Opened::Traces(sources)) = open(&arguments, &work) else { panic!("{}: not readable", case.name) };
    let traces: Vec<_> = sources.iter().map(|s| &s.trace).collect();
    record(&traces, &[], &Options::default(), &work).unwrap().0.seal()
}

fn word(kind: SegmentKind) -> String {
    SegmentKind::NAMES[kind as usize].replace(' ', "-")
}

/// The path as case files write it; of qualifiers those that the case asks for.
fn found(case: &Case, recording: &Timeline, expected: &Expected) -> Vec<Segment> {
    let host = recording.hosts().iter().position(|h| recording.names().get(h.name) == expected.host).unwrap();
    let at = |t: Ns| Timestamp::new(START + t * case.unit);
    let Some(thread) = recording.find_thread(HostId::from_raw(host as u32), expected.tid, at(expected.from)) else {
        return Vec::new();
    };
    let span = Span::new(at(expected.from), at(expected.to));
    let path = walk(recording, thread, span);
    check(recording, thread, &path, span);
    let mut segments: Vec<Segment> = Vec::new();
    for s in path.iter().filter(|s| !s.span.is_empty()) {
        let own = recording.thread(s.thread).unwrap();
        let back = |t: Timestamp| (t.ns() - START) / case.unit;
        let next = Segment {
            kind: word(s.kind),
            host: recording.names().get(recording.hosts()[own.host.raw() as usize].name).to_owned(),
            tid: own.tid,
            from: back(s.span.start),
            to: back(s.span.end),
            qualifier: s.qualifier.map(|q| recording.names().get(q).to_owned()),
        };
        let asked = |s: &Segment| expected.segments.iter().any(|e| e.from == s.from && e.qualifier.is_some());
        let qualifier = next.qualifier.clone().filter(|_| asked(&next));
        let next = Segment { qualifier, ..next };
        match segments.last_mut() {
            // One thread in one state on two CPUs is one segment.
            Some(last) if (&last.kind, &last.host, last.tid) == (&next.kind, &next.host, next.tid) => last.to = next.to,
            _ => segments.push(next),
        }
    }
    segments
}

/// The walk tiles its span and agrees with the definition at both ends and in the middle of each segment; paths of
/// parts join to that of the whole.
fn check(recording: &Timeline, thread: ThreadId, path: &[PathSegment], span: Span) {
    let mut at = span.start;
    for segment in path {
        assert_eq!(segment.span.start, at, "{path:#?}");
        at = segment.span.end;
        if segment.span.is_empty() {
            continue;
        }
        for t in [segment.span.start, segment.span.start + segment.span.len() / 2, segment.span.end - 1] {
            assert_eq!(label(recording, thread, t), (segment.thread, segment.kind), "at {t}");
        }
    }
    assert_eq!(at, span.end);
    let plain = |parts: Vec<PathSegment>| -> Vec<(ThreadId, SegmentKind, Span)> {
        let mut joined: Vec<(ThreadId, SegmentKind, Span)> = Vec::new();
        for s in parts.iter().filter(|s| !s.span.is_empty()) {
            match joined.last_mut() {
                Some(last) if (last.0, last.1) == (s.thread, s.kind) => last.2.end = s.span.end,
                _ => joined.push((s.thread, s.kind, s.span)),
            }
        }
        joined
    };
    let cut = span.start + span.len() / 2;
    let mut parts = walk(recording, thread, Span::new(span.start, cut));
    parts.extend(walk(recording, thread, Span::new(cut, span.end)));
    assert_eq!(plain(parts), plain(path.to_vec()), "cut at {cut}");
}

/// The differences in a case; empty where it passes.
fn differences(case: &Case, folder: &Path) -> String {
    let recording = recording(case, folder);
    let mut text = String::new();
    for expected in &case.paths {
        let found = found(case, &recording, expected);
        if found != expected.segments {
            let lines = |segments: &[Segment]| segments.iter().map(|s| format!("    {s}\n")).collect::<String>();
            write!(
                text,
                "{}, thread {}\n  expected\n{}  found\n{}",
                case.name,
                expected.tid,
                lines(&expected.segments),
                lines(&found)
            )
            .unwrap();
        }
    }
    text
}

#[test]
fn cases_have_the_expected_paths() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("conformance");
    let cases = conformance::all();
    assert!(cases.len() >= 100, "{} cases", cases.len());
    let known: BTreeMap<&str, &str> = KNOWN.iter().copied().collect();
    let (mut wrong, mut passed_after_all) = (String::new(), Vec::new());
    let mut table = String::from(
        "# Results of whyslow\n\nWritten by `WHYSLOW_ACCEPT=1 cargo test --test all conformance::`, and checked by it.\n\n| case | shows | whyslow |\n|---|---|---|\n",
    );
    for case in &cases {
        let differs = differences(case, &folder.join(&case.name));
        let result = match (known.get(case.name.as_str()), differs.is_empty()) {
            (None, true) => "passes".to_owned(),
            (Some(why), false) => format!("fails: {why}"),
            (Some(_), true) => {
                passed_after_all.push(&case.name);
                "passes".to_owned()
            }
            (None, false) => {
                wrong += &differs;
                "fails".to_owned()
            }
        };
        writeln!(table, "| {} | {} | {result} |", case.name, case.title).unwrap();
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert!(passed_after_all.is_empty(), "these pass now: take them out of KNOWN: {passed_after_all:?}");
    for (name, _) in KNOWN {
        assert!(cases.iter().any(|c| c.name == *name), "KNOWN names no case: {name}");
    }
    let failing = known.len();
    writeln!(table, "\n{} of {} cases pass.", cases.len() - failing, cases.len()).unwrap();
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conformance/RESULTS.md");
    if std::env::var_os("WHYSLOW_ACCEPT").is_some() {
        std::fs::write(&file, &table).unwrap();
    }
    assert_eq!(std::fs::read_to_string(&file).unwrap(), table, "accept with WHYSLOW_ACCEPT=1");
}

#[test]
fn invalid_case_is_refused_with_its_line() {
    let text = "title: t\nwhy: w\nsource: s\n\n[events]\n0 0 switch 0:R 1\n9 0 switch 1:S 0\n\n[path 1 0..9]\n";
    let wrong = |lines: &str| Case::parse("t", &format!("{text}{lines}")).unwrap_err();
    assert!(Case::parse("t", &format!("{text}running 1 0..9\n")).is_ok());
    assert!(wrong("running 1 0..8\n").contains("ends at 8"));
    assert!(wrong("running 1 0..4\ntimer 1 5..9\n").contains("does not go on at 4"));
    assert!(wrong("running 1 now\n").contains("line 10"));
    assert!(wrong("[pth]\n").contains("no such section"));
}
