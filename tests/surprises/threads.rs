//! Threads: ids that perf gives, states, wakers, and switches that are missing.

use super::tracepoints::Given::{Number, Numbers, Text};
use super::tracepoints::{
    COMPLETE, ENTER_CLONE, EXIT_CLONE, Happened, ISSUE, MACHINES, Machine, NEW_TASK, SWITCH, SYS_ENTER, SYS_EXIT,
    WAKEUP, WAKING, requests, switch,
};
use super::{ATTR, all_warnings, dump, json};
use serde_json::Value;

/// The same events in both formats.
fn both(machine: Machine, events: &[Happened]) -> [Vec<u8>; 2] {
    [machine.trace_dat(events, &[(5, b"Linux host 6.1.0 x86_64\0".to_vec())]), machine.perf_data(events, &[], ATTR)]
}

fn first_cause(bytes: &[u8]) -> Value {
    json(&["explain", "--task", "read"], bytes)["causes"][0].clone()
}

/// 5: perf's ids are 0 for threads outside its namespace, and -1 for threads that have exited.
#[test]
fn ids_of_samples_are_not_trusted() {
    for machine in MACHINES {
        let usual = machine.perf_data(&requests(), &[], ATTR);
        for ids in [(0, 0), (-1, -1)] {
            let mut events = requests();
            events.iter_mut().for_each(|event| event.ids = Some(ids));
            let bytes = machine.perf_data(&events, &[], ATTR);
            let tids = |bytes: &[u8]| -> Vec<String> {
                let all = dump(bytes);
                all.lines().map(|line| line.split("tid=").nth(1).unwrap()[..4].to_owned()).collect()
            };
            assert_eq!(tids(&bytes), tids(&usual), "{machine:?} {ids:?}");
            assert_eq!(first_cause(&bytes)["by"]["thread"], "indexer", "{machine:?} {ids:?}");
        }
    }
}

/// 6: a kernel thread that waits for work leaves with 0x80; a thread that ends with 0x10 or 0x20.
#[test]
fn idle_kernel_thread_waits_and_does_not_end() {
    let worker = |time: u64, state: i64| {
        let mut events = requests();
        let (kworker, idle) = (("kworker/1:0", 300), ("swapper", 0));
        for n in 0..4 {
            let at = time + n * 10_000_000;
            events.push(switch(at, 2, (idle.0, 0, 0), kworker));
            events.push(switch(at + 1_000_000, 2, (kworker.0, 300, state), idle));
        }
        events.sort_by_key(|event| event.time);
        events
    };
    for machine in MACHINES {
        for bytes in both(machine, &worker(1_000_000_100_000, 0x80)) {
            let said = all_warnings(&bytes);
            assert!(!said.contains("contradict"), "{machine:?}: {said}");
        }
        // A thread that has ended does not run again: here that is a contradiction.
        for state in [0x10, 0x20] {
            for bytes in both(machine, &worker(1_000_000_100_000, state)) {
                assert_ne!(threads(&bytes), threads(&both(machine, &worker(1_000_000_100_000, 0x80))[0]), "{state}");
            }
        }
    }
}

/// The number of threads that a recording has: one of an id that ended and began again counts twice.
fn threads(bytes: &[u8]) -> usize {
    use whyslow::parts::base::ctx::Ctx;
    use whyslow::parts::input::{Argument, Opened, open};
    use whyslow::parts::kernel::{Options, record};
    let file = super::written("a", bytes);
    let Ok(Opened::Traces(sources)) = open(&[Argument::new(file.path.clone())], &Ctx::new(1)) else {
        panic!("not opened")
    };
    let traces: Vec<_> = sources.iter().map(|source| &source.trace).collect();
    record(&traces, &[], &Options::default(), &Ctx::new(1)).unwrap().0.threads().len()
}

/// The requests, woken by records of another format and with other flags.
fn woken(format: usize, flags: u8, call: Option<i64>) -> Vec<Happened> {
    let mut events = requests();
    for event in events.iter_mut().filter(|event| event.format == WAKING) {
        (event.format, event.flags) = (format, flags);
    }
    let Some(number) = call else { return events };
    // The waker is in a system call of its own meanwhile.
    let begin = |event: &Happened| event.format == SYS_ENTER && event.tid == 100;
    let begun: Vec<u64> = events.iter().filter(|event| begin(event)).map(|event| event.time).collect();
    for at in begun {
        let by = |time, format, values| Happened { time, cpu: 1, tid: 200, format, values, ..Happened::default() };
        events.push(by(at + 10, SYS_ENTER, vec![Number(number), Numbers(vec![0; 6])]));
        events.push(by(at + 5_000_000, SYS_EXIT, vec![Number(number), Number(1)]));
    }
    events.sort_by_key(|event| event.time);
    events
}

/// 7: what runs when `sched_wakeup` is written in an interrupt is not the waker.
#[test]
fn thread_that_sched_wakeup_interrupted_is_no_waker() {
    const IN_INTERRUPT: u8 = 8;
    for machine in MACHINES {
        for bytes in both(machine, &woken(WAKEUP, IN_INTERRUPT, None)) {
            let cause = first_cause(&bytes);
            assert_ne!(cause["by"]["thread"], "indexer", "{machine:?}: {cause:#}");
            assert!(cause["kind"].as_str().unwrap().starts_with("blocked"), "{cause:#}");
        }
        for bytes in both(machine, &woken(WAKEUP, 0, None)) {
            assert_eq!(first_cause(&bytes)["by"]["thread"], "indexer", "{machine:?}");
        }
    }
}

/// 27: in an interrupt the current thread did nothing, but a soft interrupt inside its own write is its own.
#[test]
fn flags_of_a_wake_up_show_interrupts_without_their_events() {
    const WRITE: i64 = 1;
    const FUTEX: i64 = 202;
    for machine in MACHINES {
        let wakers = |flags, call| {
            both(machine, &woken(WAKING, flags, call)).map(|bytes| first_cause(&bytes)["by"]["thread"].clone())
        };
        for (flags, call) in [(8, None), (8, Some(WRITE)), (0x10, Some(FUTEX))] {
            assert!(wakers(flags, call).iter().all(|thread| thread != "indexer"), "{machine:?} {flags} {call:?}");
        }
        for (flags, call) in [(0, Some(FUTEX)), (0x10, Some(WRITE))] {
            assert!(wakers(flags, call).iter().all(|thread| thread == "indexer"), "{machine:?} {flags} {call:?}");
        }
    }
}

/// 21: both threads return from `clone3`, the new one without an entry; arguments begin behind a gap.
#[test]
fn clone_returns_in_both_threads() {
    for machine in MACHINES {
        let mut events = requests();
        for n in 0..3u64 {
            let (at, child) = (1_000_050_000_000 + n * 200_000_000, 101 + n as i32);
            let by = |time, tid, format, values| Happened { time, cpu: 0, tid, format, values, ..Happened::default() };
            let returns = |value: i32| vec![Number(435), Number(value.into())];
            events.push(by(at, 100, ENTER_CLONE, vec![Number(435), Number(0x1234), Number(88)]));
            events.push(by(at + 1000, 100, EXIT_CLONE, returns(child)));
            events.push(switch(at + 2000, 0, ("worker", 100, 0), ("worker", child)));
            events.push(by(at + 3000, child, EXIT_CLONE, returns(0)));
            events.push(switch(at + 4000, 0, ("worker", child, 1), ("worker", 100)));
        }
        events.sort_by_key(|event| event.time);
        for bytes in both(machine, &events) {
            let all = dump(&bytes);
            assert!(all.contains("uargs=4660, size=88"), "{machine:?}: {all}");
            let info = json(&["info", "--full"], &bytes);
            let task = info["tasks"].as_array().unwrap().iter().find(|task| task["name"] == "clone3").unwrap();
            assert_eq!((&task["executions"], &task["max_ns"]), (&3.into(), &1000.into()), "{machine:?}: {task:#}");
            assert!(!info["warnings"].to_string().contains("contradict"), "{}", info["warnings"]);
        }
    }
}

/// 22 and 24: the tracer records itself.
#[test]
fn events_of_the_tracer_itself_are_told_and_left_out() {
    for machine in MACHINES {
        for name in ["perf", "trace-cmd"] {
            let mut events = requests();
            let begin = 1_000_000_200_000;
            events.push(switch(begin, 2, ("swapper", 0, 0), (name, 500)));
            for n in 0..200u64 {
                let by =
                    |time, format, values| Happened { time, cpu: 2, tid: 500, format, values, ..Happened::default() };
                // Uneven, so that it would be worth a look.
                let (at, took) = (begin + n * 9_000_000, if n % 20 == 0 { 8_000_000 } else { 1000 });
                events.push(by(at + 1000, SYS_ENTER, vec![Number(1), Numbers(vec![0; 6])]));
                events.push(by(at + 1000 + took, SYS_EXIT, vec![Number(1), Number(1)]));
            }
            events.push(switch(begin + 1_800_000_000, 2, (name, 500, 1), ("swapper", 0)));
            events.sort_by_key(|event| event.time);
            // Markers of the program would be its task.
            events.retain(|event| event.format != super::tracepoints::PRINT);
            for bytes in both(machine, &events) {
                let said = all_warnings(&bytes);
                assert!(
                    said.contains("200 system calls, most of those recorded, are the tracer's own"),
                    "{machine:?} {name}: {said}"
                );
                let answer = json(&["explain"], &bytes);
                assert_ne!(answer["task"], "write", "{answer:#}");
            }
        }
        assert!(!all_warnings(&both(machine, &requests())[0]).contains("tracer's own"));
    }
}

/// 26: `common_pid` of every record shows who runs, even where switches are missing without a loss.
#[test]
fn missing_switches_are_found_by_the_threads_of_other_events() {
    for machine in MACHINES {
        for complete in [true, false] {
            let mut events = requests();
            // The worker runs again where no switch to it is recorded.
            let is_return = |event: &Happened| event.format == SWITCH && event.cpu == 0 && event.tid == 0;
            let lost =
                events.iter().enumerate().filter(|(_, event)| is_return(event)).map(|(at, _)| at).nth(4).unwrap();
            if !complete {
                events.remove(lost);
            }
            for bytes in both(machine, &events) {
                let said = all_warnings(&bytes);
                assert_eq!(said.contains("switches are missing"), !complete, "{machine:?}: {said}");
            }
        }
    }
}

/// 29: a wait in state D that ends right after the thread's own request is the disk's, no matter which thread ran.
#[test]
fn wait_that_ends_with_the_own_request_is_the_disks() {
    for machine in MACHINES {
        let mut events = Vec::new();
        for event in requests() {
            let (time, is_wait) = (event.time, event.format == SWITCH && event.tid == 100);
            let by =
                |time, cpu, tid, format, values| Happened { time, cpu, tid, format, values, ..Happened::default() };
            let dev = Number(254 << 20);
            if is_wait && event.cpu == 0 {
                let values = vec![dev.clone(), Number(800), Number(8), Number(4096), Text("R"), Text("worker")];
                events.push(by(time - 100, 0, 100, ISSUE, values));
            }
            if event.format == WAKING {
                events.push(by(time - 100, 1, 200, COMPLETE, vec![dev, Number(800), Number(8), Number(0), Text("R")]));
            }
            let mut event = event;
            if is_wait && let Some(state) = event.values.get_mut(3) {
                *state = Number(2);
            }
            events.push(event);
        }
        for bytes in both(machine, &events) {
            let cause = first_cause(&bytes);
            assert_eq!(cause["kind"], "blocked.disk", "{machine:?}: {cause:#}");
            assert_ne!(cause["by"]["thread"], "indexer", "{cause:#}");
        }
    }
}

/// The process of a thread that `task_newtask` made.
#[test]
fn new_thread_belongs_to_the_process_of_its_creator() {
    const CLONE_THREAD: i64 = 0x1_0000;
    for machine in MACHINES {
        for (flags, pid) in [(CLONE_THREAD, "pid=100,"), (0, "pid=101,")] {
            let mut events = requests();
            let at = 1_000_050_000_000;
            let values = vec![Number(101), Text("worker"), Number(flags), Number(0)];
            events.push(Happened { time: at, cpu: 0, tid: 100, format: NEW_TASK, values, ..Happened::default() });
            events.push(switch(at + 2000, 0, ("worker", 100, 0), ("worker", 101)));
            events.push(switch(at + 4000, 0, ("worker", 101, 1), ("worker", 100)));
            events.sort_by_key(|event| event.time);
            let all = dump(&machine.trace_dat(&events, &[]));
            let line = all.lines().find(|line| line.contains("prev_pid=101")).unwrap();
            assert!(line.contains(pid), "{machine:?}: {line}");
        }
    }
}
