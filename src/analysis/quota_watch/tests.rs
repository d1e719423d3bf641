//! Ends of waits as a quota makes them, and as others do.

use super::*;

const MS: Ns = 1_000_000;

/// Waits that end at these times, in ms, of threads that are the numbers of their CPUs.
fn found(ends: impl IntoIterator<Item = (f64, usize)>) -> Option<Ns> {
    let wait = |(end, thread): (f64, usize)| {
        let end = (end * MS as f64) as Ns;
        HeldWait { thread: ThreadId::at(thread), span: Span::of_ns(end - 60 * MS, end), cpu: thread as u32 }
    };
    let mut waits: Vec<HeldWait> = ends.into_iter().map(wait).collect();
    waits.sort_by_key(|wait| (wait.span.end, wait.thread));
    phase(&waits).map(|phase| phase.period / MS)
}

#[test]
fn a_quota_ends_the_waits_of_several_threads_together_in_phase() {
    let periods = [4, 19, 24, 37, 44, 90];
    assert_eq!(
        found(periods.iter().flat_map(|n| [(f64::from(*n) * 100.0 + 7.0, 0), (f64::from(*n) * 100.0 + 7.3, 1)])),
        Some(100)
    );
    // Some of them find no thread ready, or one alone.
    let some = [
        (900.0, 0),
        (1900.0, 0),
        (1900.0, 1),
        (2900.0, 0),
        (2900.2, 1),
        (3400.0, 0),
        (3400.0, 1),
        (3900.0, 0),
        (4400.1, 1),
    ];
    assert_eq!(found(some), Some(100));
    // Another period; and one that begins before a multiple of it and ends after.
    assert_eq!(found((1..12).flat_map(|n| [(f64::from(n * n) * 40.0, 0), (f64::from(n * n) * 40.0, 1)])), Some(20));
    let around = [2.0, 99.0, 101.0, 300.0, 399.0, 702.0, 999.0, 1101.0, 1301.0, 1999.0];
    assert_eq!(found(around.into_iter().flat_map(|t| [(t + 5_000.0, 0), (t + 5_000.0, 1)])), Some(100));
}

/// Twins: each lacks one of the marks.
#[test]
fn other_ends_of_waits_are_no_quota() {
    // One thread whose work comes every 100 ms.
    assert_eq!(found((1..20).map(|n| (f64::from(n) * 100.0, 0))), None);
    // Two threads of one CPU, one after the other.
    let of_one_cpu = (1..20).map(|n| (f64::from(n) * 100.0, 3));
    assert_eq!(found(of_one_cpu), None);
    // Two threads, each in a phase of its own.
    assert_eq!(found((1..20).flat_map(|n| [(f64::from(n) * 100.0, 0), (f64::from(n) * 100.0 + 13.0, 1)])), None);
    // Together, at any time: another reason lets both go on.
    assert_eq!(found((1..20).flat_map(|n| [(f64::from(n * n) * 37.1, 0), (f64::from(n * n) * 37.1, 1)])), None);
    // Together by chance, twice.
    let twice = [(100.0, 0), (100.0, 1), (200.0, 0), (200.0, 1), (300.0, 0), (400.0, 1), (500.0, 0), (600.0, 1)];
    assert_eq!(found(twice), None);
    // Too few moments.
    assert_eq!(found([100.0, 400.0, 900.0].into_iter().flat_map(|t| [(t, 0), (t, 1)])), None);
}

#[test]
fn phase_holds_the_ends_in_its_window() {
    let phase = QuotaPhase { period: 100 * MS, start: 99 * MS, width: 3 * MS };
    let holds = |ms: Ns| phase.holds(Timestamp::new(ms * MS));
    assert_eq!([199, 201, 102, 198, 150].map(holds), [true, true, true, false, false]);
}

/// The period of a suspected quota of waits that end at these times, in ms, another thread losing the CPU or not.
fn suspect(ends: impl IntoIterator<Item = f64>, preempts: bool) -> Option<Ns> {
    let wait = |end: f64| {
        let end = (end * MS as f64) as Ns;
        HeldWait { thread: ThreadId::at(1), span: Span::of_ns(end - 10 * MS, end), cpu: 0 }
    };
    let mut waits: Vec<HeldWait> = ends.into_iter().map(wait).collect();
    waits.sort_by_key(|wait| wait.span.end);
    suspected(&waits, |_| preempts).map(|phase| phase.period / MS)
}

#[test]
fn a_quota_is_suspected_where_most_waits_end_in_phase() {
    // Of 25 waits 18 end when the quota lets the thread go on, or a little later.
    let quota = || (0..18).map(|n| f64::from(n * n % 31) * 100.0 + 42.8 + f64::from(n % 3));
    let turns = || (0..7).map(|n| f64::from(n * n) * 61.7 + 5.0);
    assert_eq!(suspect(quota().chain(turns()), true), Some(100));
    // The thread that ran ended by itself.
    assert_eq!(suspect(quota().chain(turns()), false), None);
    // Turns alone, and a few in phase by chance.
    assert_eq!(suspect((0..60).map(|n| f64::from(n * n) * 3.37), true), None);
    assert_eq!(suspect(quota().take(3).chain(turns()), true), None);
}
