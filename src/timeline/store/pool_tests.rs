//! Stores whose leaves are in a pool, compared with the vectors that they were made of, also where the file fails.

use super::builder::LineStoreBuilder;
use super::leaves::LeafPin;
use super::marks::MarkStore;
use super::parts::{LineStore, Place};
use super::pool::{LeafPool, LeafRoom};
use crate::base::ctx::Ctx;
use crate::base::memory_error::MemoryError;
use crate::base::memory_limit::Limit;
use crate::base::names::NameId;
use crate::base::spill::{Medium, SpillError, SpillFile};
use crate::base::statistics::Random;
use crate::base::time::{Span, Timestamp};
use crate::timeline::rows::{Mark, MarkField};
use crate::timeline::{Call, Timeline, TimelineDraft};
use get_size2::GetSize;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// A file in memory that fails in a chosen way.
#[derive(Debug, Default)]
struct Faulty {
    bytes: Mutex<Vec<u8>>,
    asked: AtomicUsize,
    /// Every so many reads fail, or, where `flips`, have another byte.
    every: usize,
    flips: bool,
    /// No more than this many bytes can be written.
    most: Option<usize>,
}

impl Medium for Faulty {
    fn write(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        let mut all = self.bytes.lock().unwrap();
        let end = at as usize + bytes.len();
        if self.most.is_some_and(|most| end > most) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let length = all.len().max(end);
        all.resize(length, 0);
        all[at as usize..end].copy_from_slice(bytes);
        Ok(())
    }

    fn read(&self, bytes: &mut [u8], at: u64) -> io::Result<()> {
        let number = 1 + self.asked.fetch_add(1, Ordering::Relaxed);
        bytes.copy_from_slice(&self.bytes.lock().unwrap()[at as usize..][..bytes.len()]);
        if self.every > 0 && number.is_multiple_of(self.every) {
            if !self.flips {
                return Err(io::Error::other("a bad sector"));
            }
            let at = number * 31 % bytes.len();
            bytes[at] ^= 1 << (number % 8);
        }
        Ok(())
    }

    fn clear(&self) {
        self.bytes.lock().unwrap().clear();
    }
}

fn pool(budget: u64, medium: Faulty, ctx: &Ctx) -> Arc<LeafPool> {
    let file = Arc::new(SpillFile::of(Box::new(medium), Path::new("/folder")));
    Arc::new(LeafPool::new(Some(LeafRoom { bytes: budget, file }), ctx))
}

/// Calls of some lines, and the store of them: 20 leaves.
fn calls() -> (Vec<Vec<Call>>, LineStore<Call>) {
    let mut random = Random::new(5);
    let mut line = || {
        let mut end = 0;
        let mut call = |_| {
            let start = end + random.below(3) as i64;
            end = start + 1 + random.below(50) as i64;
            Call { span: Span::of_ns(start, end), name: NameId::at(random.below(40)), ret: Some(end), descriptor: None }
        };
        (0..8_000).map(&mut call).collect::<Vec<Call>>()
    };
    let lines: Vec<Vec<Call>> = (0..5).map(|_| line()).collect();
    let mut builder = LineStoreBuilder::default();
    for from in (0..8_000).step_by(400) {
        for (line, calls) in lines.iter().enumerate() {
            builder.push(line, &calls[from..from + 400]);
        }
        builder.seal_slab();
    }
    let store = builder.finish(lines.len());
    (lines, store)
}

/// Ask for rows at random moments and in walks, until the work is cancelled; the number of answers. Each is right.
fn ask(lines: &[Vec<Call>], store: &LineStore<Call>, ctx: &Ctx, questions: usize) -> usize {
    let mut random = Random::new(9);
    for question in 0..questions {
        let (number, mut pin) = (random.below(lines.len()), LeafPin::default());
        let (line, rows) = (store.line(number), &lines[number]);
        let t = Timestamp::new(random.below(220_000) as i64);
        let mut place = line.ends_after(t, &mut pin);
        let mut at = rows.partition_point(|row| row.span.end <= t);
        let mut found = vec![(line.position(place), at)];
        let mut answers = Vec::new();
        for _ in 0..random.below(200) {
            answers.push((line.get(place, &mut pin), rows.get(at).copied()));
            (place, at) = (line.after(place, &LeafPin::default()), (at + 1).min(rows.len()));
            found.push((line.position(place), at));
        }
        let leaves = Default::default();
        let some = line.rows_before(place, Timestamp::MAX, pin.clone(), &leaves).take(30).collect::<Vec<_>>();
        if ctx.cancel.is_cancelled() {
            return question;
        }
        found.into_iter().for_each(|(found, expected)| assert_eq!(found, expected));
        answers.into_iter().for_each(|(found, expected)| assert_eq!(found, expected));
        assert!(some.iter().eq(rows[at..].iter().take(30)));
    }
    questions
}

#[test]
fn leaves_give_way_and_come_back() {
    let (lines, store) = calls();
    let leaf = store.leaves().handle(0).unwrap().get_heap_size() as u64;
    let count = store.leaves().len() as u64;
    for budget in [0, leaf, 3 * leaf + 7, count * leaf / 2, u64::MAX] {
        let ctx = Ctx::new(1);
        let (pool, mut store) = (pool(budget, Faulty::default(), &ctx), store.clone());
        store.move_to(&pool);
        assert_eq!(ask(&lines, &store, &ctx, 300), 300);
        for (line, rows) in lines.iter().enumerate() {
            assert!(store.line(line).all().eq(rows.iter().copied()));
            assert!(store.line(line).all().rev().eq(rows.iter().rev().copied()));
        }
        assert_eq!(store.check(|_| None), Ok(()));
        let [written, read] =
            [&ctx.progress.leaves_written, &ctx.progress.leaves_read].map(|count| count.load(Ordering::Relaxed));
        // Each is written once at most, however often it comes back.
        assert!(written <= count && (written > count / 3) == (budget < u64::MAX), "{budget}: {written}");
        assert_eq!(read > count, budget < u64::MAX, "{budget}: {read}");
        assert!(pool.heap_bytes() as u64 <= budget.max(2 * leaf), "{budget}: {}", pool.heap_bytes());
        assert_eq!(ctx.cancel.failure(), None);
    }
}

#[test]
fn leaves_give_way_at_once_when_a_pool_shrinks() {
    let (lines, mut store) = calls();
    let leaf = store.leaves().handle(0).unwrap().get_heap_size() as u64;
    let ctx = Ctx::new(1);
    let pool = pool(u64::MAX, Faulty::default(), &ctx);
    store.move_to(&pool);
    assert_eq!(ctx.progress.leaves_written.load(Ordering::Relaxed), 0);
    let (mut pin, all) = (LeafPin::default(), pool.heap_bytes() as u64);
    let held = store.line(0).get(Place::default(), &mut pin);
    pool.shrink(5 * leaf);
    assert!(all > 10 * leaf && pool.heap_bytes() as u64 <= 5 * leaf, "{all}: {}", pool.heap_bytes());
    pool.shrink(all);
    assert_eq!(pool.budget(), 5 * leaf, "it does not grow again");
    pool.shrink(0);
    // The leaf of a cursor stays.
    assert!((1..=2 * leaf).contains(&(pool.heap_bytes() as u64)), "{}", pool.heap_bytes());
    assert_eq!(held, lines[0].first().copied());
    assert_eq!(ask(&lines, &store, &ctx, 100), 100);
    assert_eq!(store.check(|_| None), Ok(()));
}

#[test]
fn a_pool_that_is_emptied_fills_again_and_remembers_its_failure() {
    let (lines, store) = calls();
    for limit in [None, Some(Limit::Asked(1 << 30))] {
        let ctx = Ctx { memory: limit, ..Ctx::new(1) };
        let (pool, mut store) = (pool(u64::MAX, Faulty::default(), &ctx), store.clone());
        store.move_to(&pool);
        let all = pool.heap_bytes();
        pool.empty();
        // Without a limit that others set there is no need.
        assert_eq!(pool.heap_bytes(), if limit.is_some() { 0 } else { all });
        assert_eq!(ask(&lines, &store, &ctx, 300), 300);
        assert!(pool.heap_bytes() > all / 2 && pool.budget() == u64::MAX && pool.failure().is_none());
    }
    let ctx = Ctx { memory: Some(Limit::Asked(1 << 30)), ..Ctx::new(1) };
    let (pool, mut store) = (pool(u64::MAX, Faulty { every: 1, ..Faulty::default() }, &ctx), store);
    store.move_to(&pool);
    pool.empty();
    assert!(pool.failure().is_none() && store.line(0).all().count() < lines[0].len());
    assert!(pool.failure().is_some_and(|why| why.to_string().contains("a bad sector")));
}

#[test]
fn a_walk_holds_its_leaf() {
    let (lines, mut store) = calls();
    let ctx = Ctx::new(1);
    store.move_to(&pool(0, Faulty::default(), &ctx));
    let before = ctx.progress.leaves_read.load(Ordering::Relaxed);
    let (line, mut pin, mut place) = (store.line(2), LeafPin::default(), Place::default());
    for row in &lines[2] {
        assert_eq!(line.get(place, &mut pin), Some(*row));
        place = line.after(place, &LeafPin::default());
    }
    // One read for each of the leaves that the line is in.
    let read = ctx.progress.leaves_read.load(Ordering::Relaxed) - before;
    assert!(read <= store.directory().len() as u64, "{read}");
}

#[test]
fn a_file_that_fails_gives_one_error_and_no_wrong_answer() {
    for (every, flips) in [(1, false), (1, true), (7, true), (40, false), (40, true)] {
        let (lines, mut store) = calls();
        let ctx = Ctx::new(1);
        store.move_to(&pool(40_000, Faulty { every, flips, ..Faulty::default() }, &ctx));
        let answers = ask(&lines, &store, &ctx, 2_000);
        assert!(answers < 2_000 && (every < 40 || answers > 0), "{every}: {answers}");
        let Some(MemoryError::Spill(error @ SpillError::Read { .. })) = ctx.cancel.failure() else { panic!() };
        let why = if flips { "its checksum does not fit" } else { "a bad sector" };
        assert!(error.to_string().contains(why), "{error}");
    }
}

#[test]
fn a_full_disk_ends_the_work() {
    let (_, mut store) = calls();
    let ctx = Ctx::new(1);
    store.move_to(&pool(40_000, Faulty { most: Some(100_000), ..Faulty::default() }, &ctx));
    let Some(MemoryError::Spill(error)) = ctx.cancel.failure() else { panic!("{:?}", ctx.cancel.failure()) };
    let text = error.to_string();
    assert!(text.contains("/folder") && text.contains("--memory") && !text.contains('\n'), "{text}");
}

#[test]
fn marks_and_changes_do_not_depend_on_the_pool() {
    let mark = |n: u32| Mark {
        time: Timestamp::new(n.into()),
        task: 0,
        begins: n.is_multiple_of(2),
        thread: None,
        trace: 0,
        cpu: 0,
        key: Some(n.into()),
        kind: None,
        fields: vec![MarkField { name: NameId::at(n as usize % 5), value: n.into() }; n as usize % 3],
    };
    let all: Vec<Mark> = (0..10_000).map(mark).collect();
    let ctx = Ctx::new(1);
    let mut marks = MarkStore::default();
    marks.extend(all[..5_000].iter().cloned());
    marks.move_to(&pool(0, Faulty::default(), &ctx));
    marks.extend(all[5_000..].iter().cloned());
    let found = marks.all().map(|row| row.with_fields(marks.fields(row.number).collect()));
    assert!(found.eq(all.iter().cloned()));
    assert_eq!((marks.get(9_999).map(|row| row.key), marks.get(10_000)), (Some(Some(9_999)), None));
    assert!(ctx.progress.leaves_read.load(Ordering::Relaxed) > 0);
    assert_eq!(marks.check(), Ok(()));
}

#[test]
fn a_timeline_without_rows_needs_no_pool() {
    let timeline: Timeline = TimelineDraft::default().seal();
    assert_eq!(timeline.check(), None);
}

#[test]
fn leaves_stay_where_no_room_is_set() {
    let (lines, mut store) = calls();
    let ctx = Ctx::new(1);
    let pool = Arc::new(LeafPool::new(None, &ctx));
    store.move_to(&pool);
    let all = pool.heap_bytes();
    // There is no file: none of them can give way.
    pool.shrink(0);
    assert_eq!((pool.heap_bytes(), ask(&lines, &store, &ctx, 100)), (all, 100));
    assert_eq!((ctx.progress.leaves_written.load(Ordering::Relaxed), ctx.cancel.failure()), (0, None));
}
