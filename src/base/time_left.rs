//! How long a job of several stages will still take.
//!
//! In: the stages that the job goes through, each with its usual share of the time; how long those that have ended
//! took, and how far the present one is. Out: the time that is left, or nothing while too little is done for an
//! estimate.
//!
//! The present stage goes on at its own rate. The later ones get their shares of time at the rate at which the shares
//! so far were worked off, so that a slow disk, a busy machine and few workers are in the estimate as soon as they are
//! felt: only the proportions of stages are presumed. Of a job that names no stages only the present one is known.
//! Cost: a look at each stage.

use std::time::Duration;

/// A stage of a job, and its usual share of the job's time, in the unit of the other stages' shares.
#[derive(Clone, Copy, Debug)]
pub struct StageShare {
    /// The name with which the job enters the stage.
    pub name: &'static str,
    pub share: u32,
}

/// The stage that a job is in.
#[derive(Clone, Copy, Debug)]
pub struct PresentStage {
    pub name: &'static str,
    /// Since the job entered it.
    pub took: Duration,
    /// The part of its units that is done, 0 to 1; `None` while their number is unknown.
    pub done: Option<f64>,
}

/// How long it will take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeLeft {
    pub time: Duration,
    /// The stage, where what comes after it is not known.
    pub of: Option<&'static str>,
}

/// There is no estimate before a job has taken so long.
const PATIENCE: Duration = Duration::from_secs(1);
/// There is no rate of a stage before this part of it is done.
const LEAST_DONE: f64 = 0.02;

/// Seconds of an estimate, at most.
const MOST: f64 = 1e9;

/// What is left of a job of these stages; `ended`: by name how long a stage took, if it has ended.
pub fn time_left(
    stages: &[StageShare],
    ended: impl Fn(&str) -> Option<Duration>,
    present: PresentStage,
) -> Option<TimeLeft> {
    if !stages.is_empty() && stages.iter().all(|stage| stage.name != present.name) {
        return None;
    }
    let (mut took, mut worked_off, mut to_come) = (0.0, 0.0, 0.0);
    // A stage that is entered once more has had its share.
    let mut own_share = 0.0;
    for StageShare { name, share } in stages {
        match ended(name) {
            Some(time) => (took, worked_off) = (took + time.as_secs_f64(), worked_off + f64::from(*share)),
            None if *name == present.name => own_share = f64::from(*share),
            None => to_come += f64::from(*share),
        }
    }
    let own = present.took.as_secs_f64();
    let so_far = took + own;
    let done = present.done.filter(|done| *done >= LEAST_DONE).map(|done| done.min(1.0));
    if let Some(done) = done {
        (took, worked_off) = (so_far, worked_off + own_share * done);
    }
    let rate = (worked_off > 0.0).then(|| took / worked_off);
    let rest_of_stage = match done {
        Some(done) => own * (1.0 - done) / done,
        None => (rate? * own_share - own).max(0.0),
    };
    let later = if to_come > 0.0 { rate? * to_come } else { 0.0 };
    let time = Duration::try_from_secs_f64((rest_of_stage + later).min(MOST)).ok()?;
    let of = stages.is_empty().then_some(present.name);
    (so_far >= PATIENCE.as_secs_f64()).then_some(TimeLeft { time, of })
}

/// The time left in a few words, as exact as it is known: `about 40 s left`, `about 3 min left of opening`.
pub fn in_words(left: TimeLeft) -> String {
    let seconds = left.time.as_secs_f64();
    let time = match seconds {
        ..10.0 => "a few seconds left".to_owned(),
        ..57.5 => format!("about {:.0} s left", (seconds / 5.0).round() * 5.0),
        ..3570.0 => format!("about {:.0} min left", (seconds / 60.0).round()),
        _ => format!("about {:.1} h left", seconds / 3600.0),
    };
    left.of.map_or_else(|| time.clone(), |stage| format!("{time} of {stage}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAGES: [StageShare; 3] = [
        StageShare { name: "reading", share: 50 },
        StageShare { name: "stacks", share: 30 },
        StageShare { name: "results", share: 20 },
    ];

    fn whole(n: f64) -> Option<TimeLeft> {
        Some(TimeLeft { time: seconds(n), of: None })
    }

    fn seconds(n: f64) -> Duration {
        Duration::from_secs_f64(n)
    }

    /// A job that goes through its stages in their usual proportions.
    #[test]
    fn time_left_is_exact_where_the_proportions_are() {
        for (at, wanted) in [(5.0, 95.0), (25.0, 75.0), (49.0, 51.0), (65.0, 35.0), (90.0, 10.0)] {
            let (mut began, mut ended, mut present) = (0.0, Vec::new(), None);
            for stage in &STAGES {
                let long = f64::from(stage.share);
                if at < began + long {
                    let took = seconds(at - began);
                    present = Some(PresentStage { name: stage.name, took, done: Some((at - began) / long) });
                    break;
                }
                ended.push((stage.name, seconds(long)));
                began += long;
            }
            let took = |name: &str| ended.iter().find(|(ended, _)| *ended == name).map(|(_, took)| *took);
            let left = time_left(&STAGES, took, present.unwrap()).unwrap().time.as_secs_f64();
            assert!((left - wanted).abs() < 1e-6, "{at}: {left}");
        }
    }

    #[test]
    fn time_left_follows_the_rate_of_the_stage() {
        // Half of it took ten times as long as usual: the rest of it will, and so will what comes.
        let reading = PresentStage { name: "reading", took: seconds(250.0), done: Some(0.5) };
        assert_eq!(time_left(&STAGES, |_| None, reading), whole(250.0 + 500.0));
        // A stage of unknown length has its share, less what it took.
        let took = |name: &str| (name == "reading").then(|| seconds(50.0));
        let stacks = PresentStage { name: "stacks", took: seconds(10.0), done: None };
        assert_eq!(time_left(&STAGES, took, stacks), whole(20.0 + 20.0));
        // A second round of the first stage has no share of its own.
        let again = PresentStage { name: "reading", took: seconds(1.0), done: Some(0.5) };
        let took = |name: &str| (name != "results").then(|| seconds(40.0));
        assert_eq!(time_left(&STAGES, took, again), whole(1.0 + 81.0 / 80.0 * 20.0));
    }

    #[test]
    fn time_left_is_absent_where_it_is_not_known() {
        let reading = |took: f64, done: f64| PresentStage { name: "reading", took: seconds(took), done: Some(done) };
        assert_eq!(time_left(&STAGES, |_| None, reading(0.5, 0.5)), None, "too early");
        assert_eq!(time_left(&STAGES, |_| None, reading(5.0, 0.001)), None, "too little");
        let other = PresentStage { name: "opening", took: seconds(5.0), done: Some(0.5) };
        assert_eq!(time_left(&STAGES, |_| None, other), None, "no stage of the job");
        let of_opening = Some(TimeLeft { time: seconds(5.0), of: Some("opening") });
        assert_eq!(time_left(&[], |_| None, other), of_opening, "of a job whose stages are not known");
        assert_eq!(time_left(&[], |_| None, PresentStage { done: None, ..other }), None);
        assert_eq!(time_left(&STAGES, |_| None, PresentStage { took: Duration::MAX, ..reading(1.0, 0.1) }), whole(1e9));
    }

    #[test]
    fn words_are_as_exact_as_what_is_known() {
        let words = [3.0, 42.0, 59.0, 140.0, 7200.0].map(|left| in_words(TimeLeft { time: seconds(left), of: None }));
        let wanted =
            ["a few seconds left", "about 40 s left", "about 1 min left", "about 2 min left", "about 2.0 h left"];
        assert_eq!(words, wanted);
        let of_stage = in_words(TimeLeft { time: seconds(42.0), of: Some("opening") });
        assert_eq!(of_stage, "about 40 s left of opening");
    }
}
