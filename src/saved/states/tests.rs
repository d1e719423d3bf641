//! A small timeline of all families, written, damaged, forged and read again.

use super::{LeafChecks, StatesOf, read, write};
use crate::base::ctx::{Cancel, Ctx};
use crate::base::names::NameId;
use crate::base::notice::{Notice, Notices};
use crate::base::packed::bytes_of;
use crate::base::statistics::Random;
use crate::base::time::{Span, Timestamp};
use crate::event::host::{HostId, TraceOrigin};
use crate::event::image::ImageChange;
use crate::event::prev_state::Generation;
use crate::event::stack::{OptionalWeight, RawStackId, StackOrigin};
use crate::model::facts::Quality;
use crate::saved::container::{SavedFile, SectionName};
use crate::saved::writing::SavedFileWriter;
use crate::saved::{SavedFileError, SavedKind};
use crate::timeline::history::StateHistory;
use crate::timeline::history::lines::Time;
use crate::timeline::questions::Asker;
use crate::timeline::slabs::SegmentSlab;
use crate::timeline::store::sums::StateSums;
use crate::timeline::{
    Call, Counter, CounterOwner, CounterValue, CpuRun, CpuTimeline, DiskRequest, Host, HostCoverage, ImageEvent, Mark,
    MarkField, PageFault, RecordedTimeline, Segment, SegmentEnd, SegmentKind, Service, StackSample, Thread,
    ThreadDraft, ThreadId, ThreadName, ThreadRows, Timeline, TimelineDraft, WakeStack, Waker,
};
use std::sync::Arc;
use std::sync::atomic::Ordering;

const HOST: HostId = HostId::at(0);
const SECTIONS: [&str; 9] = ["tables", "threads", "cpus", "segments", "sums", "calls", "faults", "counters", "marks"];

/// Threads whose segments tile their lives.
fn timeline() -> Timeline {
    let mut draft = TimelineDraft::default();
    for name in ["host", "server", "read", "events lost", "cache"] {
        draft.tables.names.intern(name);
    }
    let stack = draft.tables.stacks.intern(&[0x40_1000, 0x40_2000]);
    let name = NameId::at(1);
    draft.tables.hosts = vec![Host { name: NameId::at(0), kernel_release: Some("6.1".to_owned()) }];
    draft.tables.traces = vec![TraceOrigin { host: HOST, kernel: true, generation: Generation::New }];
    draft.tables.quality = vec![Quality { switches: 9, ..Quality::default() }];
    draft.tables.span = Span::of_ns(0, 1_000);
    draft.tables.covered = vec![HostCoverage { host: HOST, span: Span::of_ns(0, 1_000) }];
    draft.tables.lossy = vec![Span::of_ns(3, 4)];
    let change = ImageChange::Exec { path: name };
    draft.tables.images = vec![ImageEvent { time: Timestamp::ZERO, host: HOST, pid: 1, change }];
    let threads = [ThreadId::at(0), ThreadId::at(1)];
    draft.tables.wake_stacks = vec![WakeStack { woken: threads[1], time: Timestamp::new(5), stack }];
    for thread in threads {
        let mut of = Thread::new(HOST, 1 + thread.raw() as i32, Span::of_ns(0, 1_000));
        of.names = vec![ThreadName { from: Timestamp::ZERO, name }];
        let rounds = || (0..25).map(|n| Span::of_ns(n * 40, n * 40 + 40));
        let waker = |t: Span| Waker { thread: threads[0], at: t.end };
        let segment = |(n, span): (usize, Span)| Segment {
            span,
            kind: [SegmentKind::Running, SegmentKind::Blocked, SegmentKind::Disk][n % 3],
            waker: (n % 3 == 1).then(|| waker(span)),
            qualifier: (n % 3 == 2).then_some(NameId::at(4)),
            cpu: 1,
        };
        let segments = rounds().enumerate().map(segment).collect();
        let call = |span: Span| Call { span, name: NameId::at(2), ret: Some(span.start.ns() - 50), descriptor: None };
        let sample = |span: Span| StackSample {
            time: span.start,
            origin: StackOrigin::Tick,
            user: Some(stack),
            kernel: None,
            weight: OptionalWeight::NONE,
        };
        let (calls, samples) = (rounds().map(call).collect(), rounds().map(sample).collect());
        draft
            .threads
            .push(ThreadDraft { thread: of, rows: ThreadRows { segments, calls, samples, ..ThreadRows::default() } });
    }
    let runs = (0..50).map(|n| CpuRun { span: Span::of_ns(n * 20, n * 20 + 15), thread: threads[n as usize % 2] });
    draft.cpus = vec![CpuTimeline { host: HOST, cpu: 1, runs: runs.collect() }];
    let request = |n: i64| DiskRequest {
        host: HOST,
        device: 8,
        sector: n as u64,
        bytes: 4096,
        write: n % 2 == 0,
        submitter: Some(threads[0]),
        queued_by: None,
        span: Span::of_ns(n * 7, n * 7 + 30),
        is_completed: n % 5 > 0,
        issued: Timestamp::new(n * 7 + 2),
    };
    draft.disk = (0..20).map(request).collect();
    draft.services =
        vec![Service { thread: threads[1], span: Span::of_ns(20, 30), client: threads[0], since: Timestamp::new(18) }];
    draft.page_faults = Some(vec![PageFault { thread: threads[0], time: Timestamp::new(44) }]);
    let owner = CounterOwner::Thread(threads[0]);
    let values =
        (0..9).map(|n| CounterValue { owner, time: Timestamp::new(n * 100), value: n as u64 * 1_000 }).collect();
    draft.counters = vec![Counter { name: NameId::at(4), values }];
    let mark = |n: i64| Mark {
        time: Timestamp::new(n / 2),
        task: 0,
        begins: n % 2 == 0,
        thread: Some(threads[n as usize % 2]),
        trace: 0,
        cpu: 1,
        key: (n == 7).then_some(n),
        kind: Some(name),
        fields: (n == 9).then_some(MarkField { name: NameId::at(2), value: n }).into_iter().collect(),
    };
    // More than a leaf has.
    draft.marks = (0..1_030).map(mark).collect();
    draft.seal()
}

fn written(timeline: &Timeline) -> SavedFileWriter {
    let mut writer = SavedFileWriter::new(SavedKind::States);
    write(timeline, StatesOf::AllEvents, &mut writer);
    writer
}

/// A file that is written again and again, and what reads it.
struct Reader {
    path: tempfile::TempPath,
    ctx: Ctx,
}

impl Reader {
    fn new() -> Reader {
        Reader { path: tempfile::NamedTempFile::new().unwrap().into_temp_path(), ctx: Ctx::new(1) }
    }

    /// The timeline in these bytes, and how many of its parts are damaged.
    fn opened(&self, bytes: &[u8]) -> Result<(Timeline, u64), SavedFileError> {
        std::fs::write(&self.path, bytes).unwrap();
        let (mut notices, file) = (Notices::default(), Arc::new(SavedFile::open(&self.path, SavedKind::States)?));
        let timeline = read(&file, (StatesOf::AllEvents, LeafChecks::AtOpening), &mut notices, &self.ctx)?;
        Ok((timeline, notices.count(Notice::HistoryDamaged)))
    }

    /// What the file that was opened last says when all its rows are asked for, leaf by leaf: the rows, or why not.
    fn asked(&self) -> Result<String, String> {
        let (ctx, mut notices) = (Ctx::new(1), Notices::default());
        let file = Arc::new(SavedFile::open(&self.path, SavedKind::States).map_err(|error| error.to_string())?);
        let read = read(&file, (StatesOf::AllEvents, LeafChecks::WhenRead), &mut notices, &ctx);
        let timeline = read.map_err(|error| error.to_string())?;
        // Opening reads no leaf.
        assert_eq!((notices.count(Notice::HistoryDamaged), ctx.progress.leaves_read.load(Ordering::Relaxed)), (0, 0));
        let rows = rows(&timeline);
        let _ = timeline.reader(Asker::History).kind_times_of(ThreadId::at(0), Span::of_ns(0, 9));
        ctx.cancel.failure().map_or(Ok(rows), |error| Err(error.to_string()))
    }
}

/// All rows as text.
fn rows(timeline: &Timeline) -> String {
    let TimelineDraft { tables: _, threads, cpus, disk, services, marks, page_faults, counters } =
        TimelineDraft::of(timeline);
    format!("{threads:?}{cpus:?}{disk:?}{services:?}{marks:?}{page_faults:?}{counters:?}")
}

#[test]
fn read_gives_what_was_written() {
    let before = timeline();
    assert_eq!(before.check(), None);
    let bytes = written(&before).bytes().unwrap();
    let reader = Reader::new();
    let (after, damaged) = reader.opened(&bytes).unwrap();
    assert_eq!((after.check(), damaged), (None, 0));
    assert!(written(&after).bytes().unwrap() == bytes);
    assert!(rows(&after) == rows(&before) && reader.asked() == Ok(rows(&before)));
}

#[test]
fn each_changed_byte_is_an_error_or_a_notice() {
    let before = timeline();
    let bytes = written(&before).bytes().unwrap();
    let reader = Reader::new();
    let lost = |timeline: &Timeline| timeline.lossy().iter().map(|span| span.len()).sum::<i64>();
    let (mut refused, mut noticed) = (0, 0);
    for at in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[at] ^= 1 << (at % 8);
        match reader.opened(&changed) {
            Err(_) => {
                // Whether it is read at once or when it is asked for.
                assert!(at % 16 > 0 || reader.asked().is_err_and(|why| why.contains("history file")), "byte {at}");
                refused += 1;
            }
            Ok((after, damaged)) => {
                assert!(damaged > 0, "byte {at}");
                assert_eq!(after.check(), None, "byte {at}");
                // The lost span is a span of lost events.
                assert!(lost(&after) > lost(&before), "byte {at}");
                // Asked for leaf by leaf, the same ends the work.
                if at % 16 == 0 {
                    let why = reader.asked().unwrap_err();
                    assert!(why.contains("the history file is damaged: states from "), "{why}");
                }
                noticed += 1;
            }
        }
    }
    assert!(refused > 500 && noticed > 3_000, "{refused} refused, {noticed} noticed");
    for end in (0..bytes.len()).step_by(13) {
        assert!(reader.opened(&bytes[..end]).is_err(), "{end} bytes");
    }
}

#[test]
fn lost_segments_are_unknown_time() {
    let before = timeline();
    let writer = written(&before);
    let mut bytes = writer.bytes().unwrap();
    // The first block is that of all segments.
    let (leaves, _) = leaves_of(&bytes);
    bytes[leaves + 100] ^= 1;
    let (after, damaged) = Reader::new().opened(&bytes).unwrap();
    assert_eq!(damaged, 1);
    let TimelineDraft { threads, .. } = TimelineDraft::of(&after);
    for thread in &threads {
        let [only] = thread.rows.segments.as_slice() else { panic!("{:?}", thread.rows.segments) };
        assert_eq!((only.span, only.kind), (Span::of_ns(0, 1_000), SegmentKind::Unknown));
        assert_eq!(only.qualifier.map(|name| after.names().get(name)), Some("events lost"));
        assert_eq!(thread.rows.calls.len(), 25);
    }
    assert!(after.is_lossy(Span::of_ns(500, 501)));
}

#[test]
fn index_of_a_family_is_read_by_the_first_question_about_it() {
    let whole = written(&timeline());
    let damaged = |name: &str| {
        let mut writer = written(&timeline());
        writer.replace(SectionName::new(name), vec![1]);
        writer.bytes().unwrap()
    };
    let reader = Reader::new();
    let read_of = |bytes: Vec<u8>| {
        std::fs::write(&reader.path, bytes).unwrap();
        let (ctx, file) = (Ctx::new(1), Arc::new(SavedFile::open(&reader.path, SavedKind::States).unwrap()));
        let how = (StatesOf::AllEvents, LeafChecks::WhenRead);
        let timeline = read(&file, how, &mut Notices::default(), &ctx).unwrap();
        let asked = timeline.reader(Asker::History).segments(ThreadId::at(0)).all().count();
        (asked, ctx.cancel.failure().map(ToString::to_string))
    };
    assert_eq!(read_of(whole.bytes().unwrap()), (25, None));
    assert_eq!(read_of(damaged("calls")), (25, None));
    let (rows, why) = read_of(damaged("segments"));
    assert!(rows == 0 && why.is_some_and(|why| why.contains("the history file is damaged at byte")));
    assert!(reader.opened(&damaged("calls")).is_err());
}

#[test]
fn forged_sections_give_a_timeline_or_an_error() {
    let before = timeline();
    let whole = written(&before);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    std::fs::write(&path, whole.bytes().unwrap()).unwrap();
    let file = SavedFile::open(&path, SavedKind::States).unwrap();
    let sections = SECTIONS.map(|name| file.section(SectionName::new(name)).unwrap());
    let mut random = Random::new(15);
    let reader = Reader::new();
    let (mut read, mut refused) = (0, 0);
    for _ in 0..2_000 {
        let chosen = random.below(sections.len());
        let mut bytes = sections[chosen].clone();
        for _ in 0..1 + random.below(3) {
            let place = random.below(bytes.len());
            match random.below(4) {
                0 => bytes[place] = random.below(256) as u8,
                1 => bytes[place] = [0, 1, 0x7f, 0x80, 0xff][random.below(5)],
                2 => drop(bytes.drain(place..(place + 1 + random.below(4)).min(bytes.len()))),
                _ => bytes.insert(place, random.below(256) as u8),
            }
            if bytes.is_empty() {
                bytes.push(0);
            }
        }
        let mut writer = written(&before);
        writer.replace(SectionName::new(SECTIONS[chosen]), bytes);
        match reader.opened(&writer.bytes().unwrap()) {
            Ok((after, _)) => {
                read += 1;
                // Whatever is in it, questions end.
                drop(after.check());
                drop(TimelineDraft::of(&after));
                drop(reader.asked());
                assert!((0..9).all(|id| after.stacks().get(RawStackId::at(id)).len() < 1_000));
                let view = StateHistory::new(after, None);
                let time = Time::Instants((0..1_000).step_by(90).map(Timestamp::new).collect());
                for path in ["threads/*/*", "threads/1/state", "threads/2/syscall", "cpus/1/thread"] {
                    drop(view.lines(path, &time, &Cancel::default()));
                }
            }
            Err(_) => refused += 1,
        }
    }
    assert!(read > 150 && refused > 150, "{read} read, {refused} refused");
}

/// A thread whose segments are in 40 leaves, and whose line has sums.
fn long_line() -> Timeline {
    let mut draft = TimelineDraft::of(&timeline());
    draft.threads.iter_mut().for_each(|of| of.rows = ThreadRows::default());
    draft.threads[0].thread.life = Span::of_ns(0, 20_000);
    let segment = |n: i64| Segment {
        span: Span::of_ns(n * 10, n * 10 + 10),
        kind: [SegmentKind::Running, SegmentKind::Disk][n as usize % 2],
        waker: None,
        qualifier: None,
        cpu: 1,
    };
    let slab = |slab: i64| SegmentSlab {
        rows: (slab * 50..slab * 50 + 50).map(segment).collect(),
        threads: vec![(ThreadId::at(0), 0..50)],
    };
    draft.seal_slabs(&(0..40).map(slab).collect::<Vec<_>>(), &Ctx::new(1)).unwrap()
}

#[test]
fn sums_are_checked_and_go_with_the_rows() {
    let (before, reader) = (long_line(), Reader::new());
    let (span, disk) = (Span::of_ns(15, 19_990), SegmentKind::Disk as usize);
    let disk_time = |timeline: &Timeline| {
        let times = timeline.reader(Asker::History).kind_times_of(ThreadId::at(0), span);
        times.and_then(|times| times.get(disk).copied())
    };
    let bytes = written(&before).bytes().unwrap();
    let (after, _) = reader.opened(&bytes).unwrap();
    assert_eq!((after.check(), disk_time(&before), disk_time(&after)), (None, None, Some(9_985)));
    // Rows that change have none, and neither has a file without some of its rows.
    let mut changed = RecordedTimeline::new(after);
    changed.relabel(&[SegmentEnd { thread: ThreadId::at(0), at: Timestamp::new(20) }], |_, _| {});
    assert_eq!(disk_time(&changed), None);
    let mut damaged = bytes.clone();
    damaged[leaves_of(&bytes).0 + 100] ^= 1;
    let (after, lost) = reader.opened(&damaged).unwrap();
    assert_eq!((lost, disk_time(&after), after.check()), (1, None, None));
    // Forged ones are found, and questions end.
    let sums = bytes_of(&StateSums::of(&before.parts().rows.segments));
    let (mut refused, mut found) = (0, 0);
    for at in 0..sums.len() {
        let mut writer = written(&before);
        let mut forged = sums.clone();
        forged[at] ^= 1 << (at % 7);
        writer.replace(SectionName::new("sums"), forged);
        match reader.opened(&writer.bytes().unwrap()) {
            Ok((after, _)) => {
                found += u32::from(after.check().is_some_and(|why| why.contains("sums")));
                let _ = disk_time(&after);
            }
            Err(_) => refused += 1,
        }
    }
    // The last word has bits of no number.
    assert!(refused > 5 && found + refused + 16 > sums.len() as u32, "{refused} refused, {found} found");
}

/// Where the section of leaves begins, which is the last one, and its length.
fn leaves_of(bytes: &[u8]) -> (usize, usize) {
    let number = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()) as usize;
    let entry = bytes.len() - 40;
    (number(entry + 16), number(entry + 24))
}

/// Bytes of a file with some bytes of a leaf changed, and the checksum of the leaf put right.
fn forged_leaf(bytes: &[u8], random: &mut Random) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let (from, length) = leaves_of(&bytes);
    let mut leaves = Vec::new();
    let mut at = from;
    while at < from + length {
        let long = u32::from_le_bytes(bytes[at + 4..at + 8].try_into().unwrap()) as usize;
        leaves.push(at..at + long);
        at += long;
    }
    let leaf = leaves[random.below(leaves.len())].clone();
    for _ in 0..1 + random.below(3) {
        let place = leaf.start + random.below(leaf.len() - 4);
        bytes[place] = [0, 1, 0x7f, 0x80, 0xff, random.below(256) as u8][random.below(6)];
    }
    let sum = crc32fast::hash(&bytes[leaf.start..leaf.end - 4]);
    bytes[leaf.end - 4..leaf.end].copy_from_slice(&sum.to_le_bytes());
    bytes
}

#[test]
fn forged_leaves_give_rows_or_a_reason() {
    let bytes = written(&timeline()).bytes().unwrap();
    let (mut random, reader) = (Random::new(16), Reader::new());
    let (mut believed, mut refused) = (0, 0);
    for _ in 0..400 {
        let (after, damaged) = reader.opened(&forged_leaf(&bytes, &mut random)).unwrap();
        // A leaf is believed or not, whenever it is read.
        match (damaged, reader.asked()) {
            (0, Ok(all)) => {
                assert!(all == rows(&after));
                believed += 1;
            }
            (1, Err(_)) => refused += 1,
            other => panic!("{other:?}"),
        }
        drop(after.check());
    }
    assert!(believed > 40 && refused > 40, "{believed} believed, {refused} refused");
}
