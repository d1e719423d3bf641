//! Generated runs with planted delays: the delays are the sources, noise is called noise, clocks are found, and any
//! number of workers gives the same answer.

use super::generator::{CALL, LATENCY, PlantedDelay, SHAPES, Shape, generate};
use super::operations::{MS, OperationsBuilder};
use std::collections::{BTreeMap, BTreeSet};
use whyslow::parts::base::time::{Ns, Timestamp};
use whyslow::parts::event::operation::OperationKind;
use whyslow::parts::model::anomalies::Anomalies;
use whyslow::parts::model::propagation::Noise;
use whyslow::parts::model::settings::{Settings, ThresholdRule};

/// Counts of planted delays and of those among them that are sources; of sources found and of those that are planted.
#[derive(Clone, Copy, Debug, Default)]
struct Score {
    planted: u32,
    seen: u32,
    found: u32,
    true_ones: u32,
}

impl Score {
    fn add(&mut self, run: &[PlantedDelay], found: &Anomalies) {
        let is = |p: &PlantedDelay, rank: u32, start: Timestamp, end: Timestamp| {
            let planted = Timestamp::new(p.start);
            p.rank == rank && planted < end && start < planted + p.length
        };
        let sources: BTreeSet<(u32, Timestamp, Timestamp)> = found
            .paths
            .iter()
            .filter_map(|p| p.steps.first())
            .map(|s| (s.stream, s.local.start, s.local.end))
            .collect();
        self.planted += run.len() as u32;
        self.seen += run.iter().filter(|p| sources.iter().any(|s| is(p, s.0, s.1, s.2))).count() as u32;
        self.found += sources.len() as u32;
        self.true_ones += sources.iter().filter(|s| run.iter().any(|p| is(p, s.0, s.1, s.2))).count() as u32;
    }

    fn recall(&self) -> f64 {
        f64::from(self.seen) / f64::from(self.planted.max(1))
    }

    fn precision(&self) -> f64 {
        if self.found == 0 { 1.0 } else { f64::from(self.true_ones) / f64::from(self.found) }
    }
}

/// 200 runs, a fifth each with delays around 3.2, 4, 6, 10 and 20 times the noise. In half of them the noise is large
/// (three times it is more than an iteration, as s = 2 asks for); in the other half it is small, and the robust limit,
/// which measures by the noise itself, is asked.
#[test]
fn planted_delays_are_the_sources() {
    let mut scores: BTreeMap<(&str, Shape, u32), Score> = BTreeMap::new();
    let mut all = Score::default();
    for n in 0..200_u64 {
        let (shape, times) = (SHAPES[n as usize % 4], [3.2, 4.0, 6.0, 10.0, 20.0][n as usize / 4 % 5]);
        let (noise, percent, limit) = match n {
            0..100 => ("large", 70, ThresholdRule::Quotient),
            _ => ("small", 10, ThresholdRule::Robust),
        };
        let run = generate(shape, n, percent, times);
        assert!(run.noise > 0);
        let (_, found) = run.operations.analyse(&Settings { limit, ..Settings::default() }, 1);
        scores.entry((noise, shape, (times * 10.0) as u32)).or_default().add(&run.planted, &found);
        all.add(&run.planted, &found);
    }
    for ((noise, shape, times), score) in &scores {
        let (recall, precision) = (score.recall(), score.precision());
        let times = f64::from(*times) / 10.0;
        println!("{noise} noise, {shape:?}, {times} times: recall {recall:.2} precision {precision:.2}");
    }
    println!("all 200 runs: recall {:.3} precision {:.3}", all.recall(), all.precision());
    assert!(all.recall() >= 0.9 && all.precision() >= 0.9, "{scores:#?}");
}

/// A call that takes a microsecond takes milliseconds once; a receive goes on waiting for data that was sent in time;
/// and a rank computes too long: two are the system's noise, one is not.
#[test]
fn noise_is_labelled_by_its_kind() {
    let mut run = OperationsBuilder::new(2);
    let mut now = [0, 0];
    for turn in 0..60 {
        let interrupted = if turn == 20 { 9 * MS } else { 0 };
        let computes = MS + if turn == 40 { 9 * MS } else { 0 };
        let slow_to_run = if turn == 50 { 9 * MS } else { 0 };
        now[0] += computes;
        let send = run.add(0, "MPI_Send", OperationKind::Work, now[0], now[0] + CALL + interrupted);
        now[0] += CALL + interrupted;
        let begun = now[1];
        now[1] = (begun + CALL).max(now[0] + LATENCY) + slow_to_run;
        let receive = run.add(1, "MPI_Recv", OperationKind::Receive, begun, now[1]);
        run.send(send, receive);
        // The sender goes on when the receiver has answered: both stay together.
        let answer = run.add(1, "MPI_Send", OperationKind::Work, now[1], now[1] + CALL);
        now[1] += CALL;
        let back = run.add(0, "MPI_Recv", OperationKind::Receive, now[0], now[1] + LATENCY);
        run.send(answer, back);
        now[0] = now[1] + LATENCY;
    }
    let (_, found) = run.analyse(&Settings::default(), 1);
    let mut noise: Vec<(u32, Option<&str>)> =
        found.paths.iter().map(|p| (p.steps[0].stream, p.steps[0].noise.map(Noise::name))).collect();
    noise.sort_unstable();
    noise.dedup();
    assert_eq!(noise, [(0, None), (0, Some("interrupted")), (1, Some("delivery"))]);
    let text = whyslow::parts::view::anomalies::text(
        &found,
        &Default::default(),
        None,
        whyslow::parts::view::anomalies::ListBounds::FIRST,
    );
    // Two rows of the table, two sources, and the costliest again in the first line.
    assert_eq!(text.matches("system noise").count(), 5, "{text}");
    let later = found.paths.iter().flat_map(|p| &p.steps[1..]).all(|s| s.noise.is_none());
    assert!(later, "only sources are noise");
}

/// The table that the paper leaves open: missed delays and wrong sources over q and s.
#[test]
#[ignore = "prints the table of docs/MEASURED.md; nothing to hold"]
fn planted_delays_print_their_rates_over_q_and_s() {
    println!(
        "| q | s | missed, 1 to 3 times the noise | missed, over 3 times | wrong sources |\n|---|---|---|---|---|"
    );
    for q in [0.5, 0.75, 0.9] {
        for s in [1.25, 1.5, 2.0, 3.0, 5.0] {
            let (mut small, mut large) = (Score::default(), Score::default());
            for n in 0..80_u64 {
                let times = [1.5, 2.5, 4.0, 8.0][n as usize / 4 % 4];
                let run = generate(SHAPES[n as usize % 4], 1_000 + n, 70, times);
                let (_, found) = run.operations.analyse(&Settings { q, s, limit: ThresholdRule::Quotient }, 0);
                if times < 3.0 { &mut small } else { &mut large }.add(&run.planted, &found);
            }
            let wrong = f64::from(small.found + large.found - small.true_ones - large.true_ones)
                / f64::from((small.found + large.found).max(1));
            let missed = [small, large].map(|s| 100.0 * (1.0 - s.recall()));
            println!("| {q} | {s} | {:.0}% | {:.0}% | {:.0}% |", missed[0], missed[1], 100.0 * wrong);
        }
    }
}

#[test]
fn clocks_are_found_from_messages_and_meetings() {
    for shape in SHAPES {
        let run = generate(shape, 7, 40, 5.0);
        let first = run.operations.operations.sequences.len();
        let (mined, _) = run.operations.analyse(&Settings::default(), 1);
        assert_eq!(mined.clocks.len(), first);
        if shape == Shape::Pipeline {
            assert!(mined.clocks.iter().skip(1).all(|c| c.error.is_none()), "nothing comes back: no bound");
            continue;
        }
        // All ranks began at one common time.
        let starts: Vec<Timestamp> = mined
            .clocks
            .iter()
            .zip(&mined.operations.sequences)
            .map(|(clock, s)| clock.common(s.operations[0].start))
            .collect();
        let errors: Vec<Ns> = mined.clocks.iter().map(|c| c.error.unwrap()).collect();
        assert!(errors.iter().all(|e| (0..200_000).contains(e)), "{shape:?}: {errors:?}");
        if shape == Shape::Allreduce {
            let apart = *starts.iter().max().unwrap() - *starts.iter().min().unwrap();
            assert!(apart < 2 * MS, "{apart}");
        }
    }
}

#[test]
fn answer_is_the_same_on_any_number_of_workers() {
    for shape in SHAPES {
        let answer = |threads| {
            let (_, found) = generate(shape, 42, 40, 6.0).operations.analyse(&Settings::default(), threads);
            serde_json::to_string(&whyslow::parts::view::anomalies::json(&found, &Default::default(), None)).unwrap()
        };
        let one = answer(1);
        assert!(one.contains("\"source\":true"));
        assert!([2, 3, 7].into_iter().all(|threads| answer(threads) == one), "{shape:?}");
    }
}
