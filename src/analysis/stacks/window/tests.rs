//! Rows that are read near a call, against the same rules over all rows of the thread at once.

use super::super::overlay::{Overlay, SampledStack};
use super::super::{StackId, StackTable};
use super::*;
use crate::analysis::timeline_builder::{PID, TimelineBuilder, thread};
use crate::base::statistics::Random;
use crate::event::image::ImageChange;
use crate::timeline::questions::Asker;
use crate::timeline::{ImageEvent, StackChange};

/// Calls short and long, with samples of all origins around them, late ones included.
fn random_thread(random: &mut Random) -> TimelineBuilder {
    let mut builder = TimelineBuilder::new(1);
    let origins = [
        StackOrigin::CallEntry,
        StackOrigin::CallExit,
        StackOrigin::Tick,
        StackOrigin::SwitchOut,
        StackOrigin::AfterCall,
        StackOrigin::Function,
    ];
    let mut t = 0;
    for _ in 0..random.below(90) {
        let start = t + random.below(40) as i64;
        let end = start + if random.below(3) == 0 { LONG_CALL } else { random.below(50) as i64 };
        builder.silent_call(1, start, end);
        for _ in 0..random.below(4) {
            let at = start - 5 + random.below((end - start) as usize + 30) as i64;
            let stack = ["A", "AB", "ABC", "D", ""][random.below(5)];
            builder.sample(1, at.max(0), origins[random.below(origins.len())], stack);
        }
        t = end;
    }
    let program = builder.0.tables.names.intern("program");
    for _ in 0..random.below(3) {
        let time = Timestamp::new(random.below(t as usize + 10) as i64);
        let change = ImageChange::Exec { path: program };
        builder.0.tables.images.push(ImageEvent {
            time,
            host: crate::analysis::timeline_builder::HOST,
            pid: PID,
            change,
        });
    }
    builder.0.tables.images.sort_by_key(|image| image.time);
    builder.0.threads[0].rows.samples.sort_by_key(|sample| sample.time);
    builder.0.threads[0].thread.life = Span::of_ns(0, t + 1000);
    builder.0.tables.span = Span::of_ns(0, t + 1000);
    builder
}

/// What a comparison needs of a sample.
fn shown(sample: Option<Sample>) -> Option<(Timestamp, StackOrigin, Option<ProcessStack>)> {
    sample.map(|sample| (sample.time, sample.origin, sample.user))
}

/// The sample of each call, with all rows at hand.
fn samples_of_calls(
    calls: &[Call],
    samples: &[Sample],
    late: &[Sample],
    programs: &[Timestamp],
) -> Vec<Option<Sample>> {
    let of = |(i, call): (usize, &Call)| {
        let from = if i == 0 { Timestamp::MIN } else { calls[i - 1].span.end };
        let to = calls.get(i + 1).map_or(Timestamp::MAX, |next| next.span.start);
        let exec = programs.iter().copied().find(|exec| *exec > call.span.start).unwrap_or(Timestamp::MAX);
        let fits = |s: &&Sample| match s.origin {
            StackOrigin::CallEntry => s.time < call.span.end || s.time <= call.span.start,
            StackOrigin::CallExit => s.time >= call.span.start,
            _ => call.span.contains(s.time),
        };
        let near = samples.iter().filter(|s| from <= s.time && s.time <= to && s.user.is_some() && s.time < exec);
        near.filter(fits).min_by_key(|s| (s.rank(), s.time.abs_diff(call.span.start))).copied()
    };
    let mut owned: Vec<Option<Sample>> = calls.iter().enumerate().map(of).collect();
    for sample in late {
        let ended = calls.iter().filter(|call| call.span.end <= sample.time).count();
        let is_open = |i: &usize| owned[*i].is_none() && calls[*i].span.len() >= LONG_CALL;
        if let Some(i) = (ended.saturating_sub(LATEST)..ended).rev().find(is_open) {
            owned[i] = Some(*sample);
        }
    }
    owned
}

#[test]
fn calls_near_by_get_the_samples_that_they_get_of_all_rows() {
    for seed in 0..400 {
        let builder = random_thread(&mut Random::new(seed));
        let timeline = builder.sealed();
        let spaces = Spaces::new(timeline.images());
        let programs = spaces.programs(timeline.threads()[0].host, PID);
        let sampled = Sampled { timeline: &timeline, spaces: &spaces, thread: &timeline.threads()[0], kernel: false };
        let reader = timeline.reader(Asker::Stacks);
        let all: Vec<Sample> = reader.samples(thread(1)).all().map(|row| sampled.sample(row)).collect();
        let known = |s: &&Sample| s.user.is_some();
        let is_late = |s: &&Sample| s.origin == StackOrigin::AfterCall;
        let is_function = |s: &&Sample| s.origin == StackOrigin::Function;
        let late: Vec<Sample> = all.iter().filter(is_late).filter(known).copied().collect();
        let others: Vec<Sample> =
            all.iter().filter(|s| !is_late(s) && !is_function(s)).filter(known).copied().collect();
        let calls: Vec<Call> = reader.calls(thread(1)).all().collect();
        let expected = samples_of_calls(&calls, &others, &late, &programs);

        let mut window = RowWindow::new(&reader, thread(1), sampled, &programs);
        let mut from = Timestamp::ZERO;
        for (call, expected) in calls.iter().zip(expected) {
            let placed = window.next_call().unwrap();
            assert_eq!((placed.call, shown(placed.sample)), (*call, shown(expected)), "seed {seed}");
            for span in [Span::new(from, call.span.start), call.span] {
                let near: Vec<_> = window.within(span).map(|sample| shown(Some(sample))).collect();
                let inside = others.iter().filter(|sample| span.contains(sample.time));
                assert_eq!(near, inside.map(|sample| shown(Some(*sample))).collect::<Vec<_>>(), "seed {seed}");
            }
            from = call.span.end;
        }
        assert!(window.next_call().is_none());
        assert!(
            window
                .functions
                .iter()
                .map(|s| shown(Some(*s)))
                .eq(all.iter().filter(is_function).map(|s| shown(Some(*s))))
        );
        // Full stacks before and after any span, for spans in order of their starts.
        let full: Vec<&Sample> = others.iter().filter(|sample| sample.full).collect();
        let mut stacks = FullStacks::new(&reader, thread(1), sampled);
        for call in &calls {
            let before = full.iter().rfind(|sample| sample.time <= call.span.start).and_then(|sample| sample.user);
            let after = full.iter().find(|sample| sample.time >= call.span.end).and_then(|sample| sample.user);
            let expected = before.zip(after).map(|(before, after)| SurroundingStacks { before, after });
            assert_eq!(stacks.around(call.span), expected, "seed {seed}");
        }
    }
}

#[test]
fn overlay_in_portions_is_the_overlay_of_all() {
    for seed in 0..200 {
        let mut random = Random::new(seed);
        let builder = random_thread(&mut random);
        let timeline = builder.sealed();
        let spaces = Spaces::new(timeline.images());
        let sampled = Sampled { timeline: &timeline, spaces: &spaces, thread: &timeline.threads()[0], kernel: false };
        let reader = timeline.reader(Asker::Stacks);
        let rows = reader.samples(thread(1)).all().map(|row| sampled.sample(row));
        let functions: VecDeque<Sample> = rows.filter(|sample| sample.origin == StackOrigin::Function).collect();
        let mut table = StackTable::default();
        let placed: Vec<SampledStack> = (0..50)
            .map(|i| {
                let stack =
                    super::super::Stack { call: Some(crate::base::names::NameId::from_raw(i % 3)), ..<_>::default() };
                SampledStack {
                    from: Timestamp::new(i64::from(i) * 40 + random.below(30) as i64),
                    stack: table.intern(stack),
                }
            })
            .collect();
        let whole = {
            let mut changes: Vec<StackChange> = Vec::new();
            let mut open = functions.clone();
            let push = |change| changes.push(change);
            Overlay::default().merge(placed.iter().copied(), &mut open, Timestamp::MAX, &mut table, push);
            changes
        };
        let (mut changes, mut overlay, mut left, mut open) = (Vec::new(), Overlay::default(), &placed[..], functions);
        while !left.is_empty() {
            let (now, later) = left.split_at(1 + random.below(left.len()));
            let until = later.first().map_or(Timestamp::MAX, |next| next.from);
            overlay.merge(now.iter().copied(), &mut open, until, &mut table, |change| changes.push(change));
            left = later;
        }
        assert_eq!(changes, whole, "seed {seed}");
        // At each function event the stack is that function's, or the sampled one where none is open.
        for change in &changes {
            let stack = table.get(StackId::from_raw(change.stack));
            let below = placed.iter().rfind(|placed| placed.from <= change.time);
            assert_eq!(stack.call, below.and_then(|placed| table.get(placed.stack).call), "seed {seed}");
        }
    }
}
