//! A worker's rows where a few events in a certain order matter.

use super::*;
use crate::event::remark::Priority;
use crate::kernel::prepared::{Due, DueAt};

/// What happens in a test of chosen events: on a CPU, a switch, a new thread, the exit of a thread, the entry or exit
/// of a call, a late sample, or the end of a function.
#[derive(Clone, Copy, Debug)]
enum Chosen {
    Switch(i32, i32, u16),
    Fork(i32),
    Entry,
    Exit,
    Late(i32),
    ThreadExit(i32),
    FunctionExit,
}

/// Events of chosen kinds, each on its CPU, one nanosecond apart.
fn chosen(events: &[(u16, Chosen)]) -> Vec<Batch> {
    let mut batch = Batch::default();
    let names = [0, 1, 2, 3].map(|tid| batch.text(format!("thread {tid}").as_bytes()));
    let call = batch.text(b"read");
    for (at, (cpu, event)) in events.iter().enumerate() {
        let kind = match *event {
            Chosen::Switch(prev, next, prev_state) => {
                let [prev_name, next_name] = [prev, next].map(|tid| names[tid as usize]);
                Kind::Switch { prev, next, prev_state, prev_name, next_name, priorities: [Priority::UNKNOWN; 2] }
            }
            Chosen::Fork(child) => {
                Kind::Fork { parent: 3, child, child_pid: child, child_vtid: 0, name: names[child as usize] }
            }
            Chosen::Entry => Kind::CallEntry { name: call, descriptor: named_descriptor(7, None, None) },
            Chosen::Exit => Kind::CallExit { name: call, ret: 5 },
            Chosen::ThreadExit(tid) => Kind::Exit { tid },
            Chosen::FunctionExit => Kind::Function { enters: false, address: 0 },
            Chosen::Late(_) => Kind::Stack {
                origin: StackOrigin::Tick,
                user: None,
                kernel: None,
                witness: false,
                weight: WeightId::NONE,
            },
        };
        let who = match *event {
            Chosen::Late(tid) => batch.context_id(ThreadContext { tid: Some(tid), ..ThreadContext::default() }),
            Chosen::FunctionExit => batch.context_id(ThreadContext { tid: Some(1), ..ThreadContext::default() }),
            _ => ThreadContextId::ABSENT,
        };
        batch.events.push(Event { time: Timestamp::new(at as i64), who, trace: 0, cpu: *cpu, kind });
    }
    vec![batch]
}

/// Threads of one id: a call stays with the one that entered it.
#[test]
fn calls_stay_with_their_thread_where_an_id_names_two() {
    use Chosen::{Entry, Exit, Fork, Switch};
    const DEAD: u16 = 0x10;
    let cases: [&[(u16, Chosen)]; 4] = [
        // The thread that comes has the id of the one that dies.
        &[(0, Switch(0, 2, 0)), (0, Entry), (0, Switch(2, 2, DEAD)), (0, Exit)],
        // Thread 2 runs on when its id goes to another thread.
        &[
            (0, Switch(0, 2, 0)),
            (1, Fork(2)),
            (0, Switch(2, 2, 1)),
            (0, Entry),
            (0, Switch(2, 0, 1)),
            (1, Switch(0, 2, 0)),
            (1, Exit),
        ],
        // Thread 2 runs on when its id goes to another thread, and the switch away from it is missing.
        &[
            (0, Switch(0, 2, 0)),
            (1, Fork(2)),
            (0, Switch(1, 2, 1)),
            (0, Entry),
            (0, Switch(2, 0, 1)),
            (1, Switch(0, 2, 0)),
            (1, Exit),
        ],
        // It runs on after its end.
        &[
            (0, Switch(0, 1, 0)),
            (0, Switch(2, 2, DEAD)),
            (1, Fork(2)),
            (0, Entry),
            (0, Switch(2, 0, 1)),
            (1, Switch(0, 2, 0)),
            (1, Exit),
        ],
    ];
    for events in cases {
        let [stepped, prepared] = both(chosen(events), false, 1);
        assert_eq!(stepped, prepared, "{events:?}");
    }
}

/// The worker knows the call that the parent is in, or that it is in none, and the machine does not yet.
#[test]
fn children_begin_in_the_call_of_their_parent() {
    use Chosen::{Entry, Exit, Fork, Switch};
    let begin = [Switch(0, 3, 0), Entry, Exit];
    let inside = [Entry, Fork(2), Exit, Switch(3, 2, 1), Exit, Switch(2, 0, 1)];
    // One that is in a call when it ends has that, too.
    let outside = [Fork(2), Switch(3, 2, 1), Switch(2, 0, 0x10)];
    for (then, calls) in [(&inside[..], 3), (&outside, 1)] {
        let events = begin.iter().chain(then).map(|event| (0, *event));
        let [stepped, prepared] = both(chosen(&events.collect::<Vec<_>>()), false, 1);
        assert_eq!(stepped, prepared);
        assert_eq!(stepped.matches("ret: ").count(), calls, "{stepped}");
    }
}

/// The thread that ran on the CPU had the id until another thread got it.
#[test]
fn late_samples_are_of_the_thread_that_has_their_id() {
    use Chosen::{Fork, Late, Switch};
    let events = [(1, Switch(0, 1, 0)), (1, Switch(1, 0, 1)), (0, Switch(0, 3, 0)), (0, Fork(1)), (1, Late(1))];
    let [stepped, prepared] = both(chosen(&events), false, 1);
    assert_eq!(stepped, prepared);
}

/// A thread whose exit is recorded ends with its last sample, which a worker took before an event that it left to the
/// machine.
#[test]
fn samples_before_the_end_of_an_unknown_function_are_the_last_ones() {
    use Chosen::{Entry, FunctionExit, Late, Switch, ThreadExit};
    let idle = std::iter::repeat_n((0, Switch(0, 0, 0)), 12);
    let ends = [(2, Switch(0, 1, 0)), (2, ThreadExit(1)), (2, Entry), (2, Late(1)), (2, FunctionExit)];
    let [stepped, prepared] = both(chosen(&idle.chain(ends).collect::<Vec<_>>()), false, 20);
    assert_eq!(stepped, prepared);
}

/// More rows than a slab has, none of them settled before the end.
#[test]
fn rows_after_the_last_slab_are_in_the_same_leaves() {
    use Chosen::{Entry, Exit, Switch};
    let calls = std::iter::repeat_n([(0, Entry), (0, Exit)], 10_000).flatten();
    let first = [(0, Switch(0, 1, 0)), (0, Switch(1, 2, 0))].into_iter().chain(calls.clone());
    let events: Vec<(u16, Chosen)> = first.chain([(0, Switch(2, 1, 0))]).chain(calls).collect();
    let [stepped, prepared] = both(chosen(&events), false, usize::MAX);
    assert!(stepped == prepared);
}

/// The example of `WORKERS.md`: what the worker leaves to the machine.
#[test]
fn the_example_leaves_what_its_page_says() {
    use Chosen::{Entry, Exit, Switch};
    let events = [Switch(1, 2, 0), Entry, Exit, Entry, Switch(2, 1, 1), Switch(1, 2, 0), Exit];
    let batch = chosen(&events.map(|event| (0, event)));
    let machine = || machine(false, 1 << 20);
    let options = PrepareOptions { has_pairs: false, seal_moments: machine().seal_moments };
    let mut left = batch[0].clone();
    let prepared = prepare(&mut left, machine(), options, Prepared::default());
    assert_eq!(left.events.iter().map(|event| event.time.ns()).collect::<Vec<_>>(), [0, 1]);
    let gets_cpu = |due: &DueAt| match due.due {
        Due::GetCpu { t, tid, .. } => Some((t.ns(), tid)),
        _ => None,
    };
    assert_eq!(prepared.due.iter().filter_map(gets_cpu).collect::<Vec<_>>(), [(4, 1)]);
    let [stepped, prepared] = both(batch, false, 1);
    assert_eq!(stepped, prepared);
}
