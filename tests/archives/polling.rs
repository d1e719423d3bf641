//! Ranks that poll for a message until it is there.

use super::*;

const STEPS: u64 = 40;

/// Rank 0 sends in each step; rank 1 posts its receive and tests for it until it has come, after `pause` each. What it
/// does meanwhile is `between`, if anything.
fn polled(pause: u64, between: Option<&'static str>) -> PatternAnalysis {
    let mut run = Recording::new(2);
    let world = run.world;
    let mut now = MS;
    for step in 0..STEPS {
        // Two to nine polls, more or less often from step to step.
        let polls = 2 + step * 5 % 8;
        let sent = now + pause * polls;
        run.work(0, "assemble", now, sent);
        run.call(0, "MPI_Send", sent, sent + US, |e| e.send(sent + 100, 1, world, 1, 64));
        run.call(1, "MPI_Irecv", now, now + US, |e| e.irecv_request(now + 100, step));
        let mut at = now + 2 * US;
        for poll in 0..=polls {
            if let Some(name) = between {
                run.work(1, name, at, at + pause - 2 * US);
            }
            at += pause - US;
            let is_last = poll == polls;
            run.call(1, "MPI_Test", at, at + US / 2, |e| {
                if is_last {
                    e.irecv(at + 100, 0, world, 1, 64, step);
                }
            });
            at += US;
        }
        run.work(1, "smooth", at, at + 50 * US);
        now = at + 60 * US;
        run.meet("MPI_Barrier", 0, None, &[(sent + 2 * US, now), (at + 51 * US, now)]);
        now += US;
    }
    run.mined()
}

fn iterations_of_rank_1(mined: &PatternAnalysis) -> usize {
    mined.iterations().iter().filter(|one| one.stream == 1).map(|one| one.spans.len()).sum()
}

#[test]
fn polling_loops_are_no_iterations_of_their_own() {
    for (pause, between) in [(5 * US, None), (300 * US, None), (300 * US, Some("chunk"))] {
        let mined = polled(pause, between);
        let found = iterations_of_rank_1(&mined);
        assert!((38..=STEPS as usize).contains(&found), "{pause} {between:?}: {found} iterations");
    }
}

#[test]
fn wait_of_a_polled_receive_is_for_its_sender() {
    let mined = polled(5 * US, None);
    let states = &mined.waiting(&Ctx::new(1)).unwrap().unwrap().states;
    let late = states.iter().find(|s| s.kind.name() == "late_sender").unwrap();
    assert_eq!(late.waits, STEPS, "one wait in each step: {late:?}");
}
