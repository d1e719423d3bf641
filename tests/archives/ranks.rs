//! Waits between ranks.

use super::*;

#[test]
fn late_sender_is_the_time_before_its_send() {
    let mut run = Recording::new(2);
    let (world, sent, came) = (run.world, 5 * MS, 5 * MS + 20 * US);
    run.work(0, "assemble", MS, sent);
    run.call(0, "MPI_Send", sent, sent + 10 * US, |e| e.send(sent + US, 1, world, 7, 64));
    run.call(1, "MPI_Recv", 2 * MS, came, |e| e.recv(came - US, 0, world, 7, 64));
    assert_eq!(run.totals(), [("late_sender", 3_000)].into());
}

#[test]
fn late_sender_is_the_latest_of_several() {
    let mut run = Recording::new(3);
    let world = run.world;
    for (rank, at) in [(1, 4 * MS), (2, 6 * MS)] {
        run.work(rank, "assemble", MS, at);
        run.call(rank, "MPI_Isend", at, at + 5 * US, |e| e.isend(at + US, 0, world, 1, 64, 9));
        run.call(rank, "MPI_Wait", at + 6 * US, at + 8 * US, |e| e.isend_complete(at + 7 * US, 9));
    }
    for request in [1, 2] {
        let at = MS + request * 10 * US;
        run.call(0, "MPI_Irecv", at, at + 5 * US, |e| e.irecv_request(at + US, request));
    }
    run.call(0, "MPI_Waitall", 2 * MS, 6 * MS + 30 * US, |e| {
        e.irecv(6 * MS + 28 * US, 1, world, 1, 64, 1);
        e.irecv(6 * MS + 29 * US, 2, world, 1, 64, 2);
    });
    assert_eq!(run.totals(), [("late_sender", 4_000)].into());
}

#[test]
fn wrong_order_is_the_wait_for_a_later_message() {
    let mut run = Recording::new(3);
    let world = run.world;
    run.call(0, "MPI_Send", MS, MS + 5 * US, |e| e.send(MS + US, 2, world, 1, 64));
    run.work(1, "assemble", MS, 7 * MS);
    run.call(1, "MPI_Send", 7 * MS, 7 * MS + 5 * US, |e| e.send(7 * MS + US, 2, world, 1, 64));
    run.call(2, "MPI_Recv", 2 * MS, 7 * MS + 20 * US, |e| e.recv(7 * MS + 19 * US, 1, world, 1, 64));
    run.call(2, "MPI_Recv", 7 * MS + 30 * US, 7 * MS + 40 * US, |e| e.recv(7 * MS + 39 * US, 0, world, 1, 64));
    assert_eq!(run.totals(), [("wrong_order", 5_000)].into());
}

#[test]
fn late_receiver_is_the_time_before_its_receive() {
    let mut run = Recording::new(2);
    let (world, left) = (run.world, 6 * MS + 50 * US);
    run.call(0, "MPI_Ssend", 2 * MS, left, |e| e.send(2 * MS + US, 1, world, 3, 1 << 20));
    run.work(1, "assemble", MS, 6 * MS);
    run.call(1, "MPI_Recv", 6 * MS, left + 10 * US, |e| e.recv(left, 0, world, 3, 1 << 20));
    assert_eq!(run.totals(), [("late_receiver", 4_000)].into());
}

#[test]
fn late_receiver_of_a_nonblocking_send_is_found_in_its_wait() {
    let mut run = Recording::new(2);
    let (world, left) = (run.world, 6 * MS + 50 * US);
    run.call(0, "MPI_Isend", MS, MS + 10 * US, |e| e.isend(MS + US, 1, world, 3, 1 << 20, 5));
    run.work(0, "smooth", MS + 10 * US, 3 * MS);
    run.call(0, "MPI_Wait", 3 * MS, left, |e| e.isend_complete(left - US, 5));
    run.work(1, "assemble", MS, 6 * MS);
    run.call(1, "MPI_Recv", 6 * MS, left + 10 * US, |e| e.recv(left, 0, world, 3, 1 << 20));
    assert_eq!(run.totals(), [("late_receiver", 3_000)].into());
}

#[test]
fn collectives_wait_for_the_late_ranks() {
    let came = [2 * MS, 4 * MS, 7 * MS];
    // OTF2's number, the root, the ranks that leave late and the ranks that they wait for, and the wait state.
    let late = |name, number, root: Option<u32>, waits: [u64; 3]| {
        let mut run = Recording::new(3);
        for (rank, at) in came.into_iter().enumerate() {
            run.work(rank as u64, "assemble", MS, at);
        }
        let times: Vec<(u64, u64)> =
            came.iter().zip(waits).map(|(at, until)| (*at, until.max(*at) + 10 * US)).collect();
        run.meet(name, number, root, &times);
        run.totals()
    };
    let all = [7 * MS; 3];
    assert_eq!(late("MPI_Barrier", 0, None, all), [("barrier", 8_000)].into());
    assert_eq!(late("MPI_Allreduce", 11, None, all), [("n_to_n", 8_000)].into());
    assert_eq!(late("MPI_Alltoall", 8, None, all), [("n_to_n", 8_000)].into());
    assert_eq!(late("MPI_Bcast", 1, Some(1), [4 * MS; 3]), [("late_broadcast", 2_000)].into());
    assert_eq!(late("MPI_Scatter", 4, Some(2), all), [("late_broadcast", 8_000)].into());
    assert_eq!(late("MPI_Reduce", 12, Some(0), [7 * MS, 0, 0]), [("early_reduce", 5_000)].into());
    // The second needs what the first has, which came before; the third needs both.
    assert_eq!(late("MPI_Scan", 14, None, [0, 0, 0]), BTreeMap::new());
}

#[test]
fn barrier_completion_is_the_time_after_the_last_arrival() {
    let mut run = Recording::new(2);
    run.meet("MPI_Barrier", 0, None, &[(MS, 2 * MS), (MS, 5 * MS)]);
    let mined = run.mined();
    let states = &mined.waiting(&Ctx::new(1)).unwrap().unwrap().states;
    let completion = states.iter().find(|s| s.kind.name() == "completion").unwrap();
    assert_eq!((completion.waits, completion.ns / 1_000), (1, 3_000));
}
