//! Threads on a CPU with a timer each millisecond, which now and then does not come.

use super::*;

const MS: Ns = 1_000_000;

/// A thread on a CPU that a timer interrupts each millisecond, but for the time between `from` and `to`.
struct Busy {
    names: Names,
    watch: ClockWatch,
    cpu: u32,
}

impl Busy {
    fn new() -> Busy {
        let mut watch = ClockWatch::default();
        watch.begin_thread();
        Busy { names: Names::default(), watch, cpu: 0 }
    }

    fn put(&mut self, span: Span, kind: SegmentKind, qualifier: Option<NameId>) {
        let segment = Segment { span, kind, waker: None, qualifier, cpu: self.cpu };
        self.watch.segment(&segment, &self.names);
    }

    /// It runs from `start` on; interrupts of `handler` begin at `ticks`.
    fn run(mut self, handler: &str, start: Ns, ticks: &[Ns]) -> Busy {
        let handler = self.names.intern(handler);
        let mut at = start;
        for tick in ticks {
            self.put(Span::of_ns(at, *tick), SegmentKind::Running, None);
            self.put(Span::of_ns(*tick, tick + 3_000), SegmentKind::Interrupted, Some(handler));
            at = tick + 3_000;
        }
        self.put(Span::of_ns(at, at + MS / 2), SegmentKind::Running, None);
        self
    }

    fn found(self) -> Vec<Span> {
        self.watch.finish().sure.into_values().flatten().collect()
    }
}

/// These multiples of a period.
fn every(period: Ns, numbers: impl Iterator<Item = Ns>) -> Vec<Ns> {
    numbers.map(|n| n * period).collect()
}

#[test]
fn a_cpu_pauses_where_its_clock_stops_and_nothing_else_happens() {
    let still = Busy::new().run("local_timer", 500_000, &every(MS, (1..50).chain(90..140)));
    let found = still.found();
    assert_eq!(found, [Span::of_ns(50 * MS, 90 * MS)]);
    // The recording ends, or loses events, while the CPU is paused again.
    for lost in [false, true] {
        let mut still = Busy::new().run("local_timer", 500_000, &every(MS, (1..50).chain(90..140)));
        still.put(Span::of_ns(139 * MS + 503_000, 180 * MS), SegmentKind::Running, None);
        if lost {
            still.put(Span::of_ns(180 * MS, 190 * MS), SegmentKind::Unknown, None);
        }
        assert_eq!(still.found().len(), 1);
    }
    // Too short for a clock of ten milliseconds.
    let slow = Busy::new().run("arch_timer", 500_000, &every(10 * MS, (1..50).chain(53..100)));
    assert_eq!(slow.found(), []);
    // The CPU was taken away before the clock came for the first time.
    let first = Busy::new().run("timer", 500_000, &every(MS, 40..140)).found();
    assert_eq!(first, [Span::of_ns(1_500_000, 40 * MS)]);
}

/// Most distances are pauses.
#[test]
fn a_clock_that_seldom_comes_has_its_period_still() {
    let mut ticks = every(MS, 1..10);
    // Each longer than the one before.
    ticks.extend((1..=12).map(|n| (10 + 30 * n + 4 * n * n) * MS));
    assert_eq!(Busy::new().run("local_timer", 500_000, &ticks).found().len(), 12);
}

#[test]
fn a_clock_that_others_shorten_has_its_period_still() {
    let mut ticks = every(MS, (1..50).chain(90..140));
    ticks.extend((0..30).map(|n| n * MS + 300_000));
    ticks.sort_unstable();
    assert_eq!(Busy::new().run("hrtimer", 100_000, &ticks).found().len(), 1);
}

/// One kernel has one period: no thread runs for long on a CPU, but threads do on others.
#[test]
fn clocks_of_all_cpus_show_the_period() {
    let still = |others: u32| {
        let mut busy = Busy::new();
        for cpu in (0..=others).rev() {
            busy.watch.begin_thread();
            busy.cpu = cpu;
            busy = busy.run("local_timer", 500_000, &every(MS, (1..4).chain(if cpu == 0 { 90..92 } else { 4..6 })));
        }
        busy.found()
    };
    assert_eq!(still(1), []);
    assert_eq!(still(2), [Span::of_ns(4 * MS, 90 * MS)]);
}

/// Twins: the clock does not come, for another reason, or it is none.
#[test]
fn nothing_is_said_where_the_clock_stops_for_another_reason() {
    let ticks = every(MS, (1..50).chain(90..140));
    // The thread goes on: the CPU does without a clock, here and wherever it stops.
    let mut busy = Busy::new().run("local_timer", 500_000, &every(MS, (1..50).chain(90..140).chain(200..250)));
    (50..90).for_each(|n| busy.watch.event(Timestamp::new(n * MS + 7)));
    assert_eq!(busy.found(), []);
    // Two threads share the CPU: the first leaves it, and nothing is known of the second.
    let mut left = Busy::new().run("local_timer", 500_000, &every(MS, 1..50));
    left.watch.begin_thread();
    assert_eq!(left.run("local_timer", 89 * MS, &every(MS, 90..140)).found(), []);
    // A handler took the time.
    let mut long = Busy::new().run("local_timer", 500_000, &every(MS, 1..50));
    let other = long.names.intern("NET_RX");
    long.put(Span::of_ns(49 * MS + 3_000 + MS / 2, 90 * MS), SegmentKind::Interrupted, Some(other));
    assert_eq!(long.run("local_timer", 90 * MS, &every(MS, 91..140)).found(), []);
    // Not a timer, and a timer that comes when it likes.
    assert_eq!(Busy::new().run("nvme0q1", 500_000, &ticks).found(), []);
    let irregular: Vec<Ns> = (1..200_i64)
        .scan(0, |t, n| {
            *t += (n * n * 37) % 997 * 2_000 + 9_000;
            Some(*t)
        })
        .collect();
    let last = irregular.last().copied().unwrap_or_default();
    let irregular: Vec<Ns> = irregular.into_iter().chain([last + 60 * MS]).collect();
    assert_eq!(Busy::new().run("hrtimer", 1_000, &irregular).found(), []);
    // The thread leaves the CPU after a time without it: the CPU has no clock where one thread is to run.
    let mut tickless = Busy::new().run("local_timer", 500_000, &ticks);
    tickless.put(Span::of_ns(139 * MS + 503_000, 180 * MS), SegmentKind::Running, None);
    tickless.put(Span::of_ns(180 * MS, 190 * MS), SegmentKind::Blocked, None);
    assert_eq!(tickless.found(), []);
    // Too few to know the period.
    assert_eq!(Busy::new().run("timer", 500_000, &every(MS, (1..5).chain(90..94))).found(), []);
}

#[test]
fn pauses_do_not_hide_the_clock_that_shows_them() {
    // Nine distances of a period, and three times as many of pauses.
    let ticks = |n: Ns| [n * 100, n * 100 + 30 + n, n * 100 + 70 + 2 * n, n * 100 + 71 + 2 * n];
    let all: Vec<Ns> = (0..9).flat_map(ticks).map(|n| (n + 1) * MS).collect();
    assert_eq!(Busy::new().run("local_timer", 500_000, &all).found().len(), 26);
}

#[test]
fn a_long_time_without_irregular_timers_is_a_doubtful_pause() {
    let irregular: Vec<Ns> = (1..60).map(|n| n * n * 20_000).collect();
    let pause = irregular.last().unwrap() + 30 * MS;
    let all = [irregular, vec![pause]].concat();
    let found = Busy::new().run("hrtimer", 1_000, &all).watch.finish();
    assert!(found.sure.is_empty(), "{found:?}");
    assert_eq!(found.doubtful.into_values().flatten().count(), 1);
}
