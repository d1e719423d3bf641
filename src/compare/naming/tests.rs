//! Sentences of the first cause, by what its contexts have in common.

use crate::base::ctx::Ctx;
use crate::compare::scenario::ModelBuilder;
use crate::compare::{Cause, ComparisonRequest, compare};

/// The first cause of 400 executions of which one in 20 has `parts` of 40 ms more; `runtime` lists the functions of
/// the C library.
fn first_cause(extra: &str, runtime: &[&str]) -> Cause {
    let mut s = ModelBuilder::new(7);
    for i in 0..400 {
        let work = s.around(2.0);
        let trouble = if i % 20 == 3 { 40_000_000 } else { 0 };
        s.run("x", "p", "p", 1, &[("p;main", work), (extra, trouble)]);
    }
    let mut model = s.seal();
    for name in runtime {
        let name = model.names.intern(name);
        model.names.mark_runtime(name);
    }
    compare(&model, &ComparisonRequest::default(), &Ctx::new(1)).unwrap().causes.swap_remove(0)
}

#[test]
fn name_of_cpu_time_without_a_shared_function_is_the_dominant_one() {
    let mut s = ModelBuilder::new(7);
    for i in 0..400 {
        let work = s.around(2.0);
        let ns = |ms: u64| if i % 20 == 3 { ms * 1_000_000 } else { 0 };
        // Chains that end early, as in a function that uses the frame pointer for something else.
        let parts = [("p;main", work), ("p;digest", ns(26)), ("p;main;run;digest", ns(7)), ("p;main;run;copy", ns(7))];
        s.run("x", "p", "p", 1, &parts);
    }
    let cause = compare(&s.seal(), &ComparisonRequest::default(), &Ctx::new(1)).unwrap().causes.swap_remove(0);
    assert!(cause.sentence.starts_with("Running on the CPU, mostly in digest: "), "{}", cause.sentence);
    assert_eq!(cause.by.function.as_deref(), Some("digest"));
}

#[test]
fn name_prefers_the_programs_own_functions_to_the_runtimes() {
    let runtime = ["pthread_mutex_lock", "__lll_lock_wait", "memcpy", "write"];
    let lock = "main;append;pthread_mutex_lock;__lll_lock_wait;[futex];thread journal@p;tick;flush;memcpy";
    let cause = first_cause(&format!("p;{lock}"), &runtime);
    assert!(
        cause.sentence.starts_with("Waiting in append for thread journal of p, which ran flush"),
        "{}",
        cause.sentence
    );
    assert_eq!(cause.by.function.as_deref(), Some("flush"));
    // A program that defines it itself.
    let cause = first_cause(&format!("p;{lock}"), &[]);
    assert!(cause.sentence.starts_with("Waiting in __lll_lock_wait for thread journal of p, which ran memcpy"));
    // Where the program has no names, the runtime's say most.
    let cause = first_cause("p;p+0x12;pthread_mutex_lock;[futex];thread journal@p;p+0x34", &runtime);
    assert!(cause.sentence.starts_with("Waiting in pthread_mutex_lock for thread journal"), "{}", cause.sentence);
    // A thread that did not run is not said to have.
    let asleep = first_cause("p;main;append;[wait4];thread child@q;nap;[clock_nanosleep];{timer}", &runtime);
    assert!(
        asleep.sentence.starts_with("Waiting in append for thread child of q, which slept in nap"),
        "{}",
        asleep.sentence
    );
    // Each thread of a chain has its own verb: the holder waited for a CPU, another one ran.
    let lock = "p;main;append;[futex];thread low@p;hold;{preempted};thread medium@q";
    let kept = first_cause(&format!("{lock};spin"), &runtime);
    let whole = "Waiting in append for thread low of p, which waited for a CPU while thread medium of q ran spin: ";
    assert!(kept.sentence.starts_with(whole), "{}", kept.sentence);
    assert_eq!(kept.by.thread.as_deref(), Some("medium"));
    // Also where no stack of the one that ran is known.
    let kept = first_cause(lock, &runtime);
    assert!(kept.sentence.contains("while thread medium of q ran: "), "{}", kept.sentence);
    assert_eq!((kept.by.thread.as_deref(), kept.by.function), (Some("medium"), None));
    // No thread that ran meanwhile is to blame for a quota.
    let quota = "p;main;append;(task_work_run);(__schedule);{preempted};thread medium@q;spin";
    let throttled = first_cause(quota, &runtime);
    assert!(throttled.sentence.contains("CPU quotas of control groups") && !throttled.sentence.contains("medium"));
    // Other work on that way loses the CPU as any does.
    let work = "p;main;append;(task_work_run);(task_numa_work);(__schedule);{preempted};thread medium@q;spin";
    assert!(first_cause(work, &runtime).sentence.contains("thread medium of q"));
    let held = first_cause("p;main;append;[read];{preempted};{CPU idle}", &runtime);
    assert!(held.sentence.starts_with("Held back, ready to run, while its CPU was idle"), "{}", held.sentence);
    let held = first_cause("p;main;append;[read];{preempted};{CPU idle, no quota}", &runtime);
    assert!(held.sentence.contains("no CPU quota did"), "{}", held.sentence);
    let quota = first_cause("p;main;append;{throttled};{quota of 100 ms}", &runtime);
    let whole = "Held back as by a CPU quota of its control group: such waits of its threads end together, in phase";
    assert!(quota.sentence.starts_with(whole) && quota.sentence.contains("period of 100 ms"), "{}", quota.sentence);
    let holder = "p;main;append;[futex];thread low@p;hold;{throttled};{quota of 100 ms}";
    let holder = first_cause(holder, &runtime).sentence;
    let whole = "Waiting in append for thread low of p, which was held back as by a CPU quota of its control group";
    assert!(holder.starts_with(whole), "{holder}");
    let idle = "p;main;append;{preempted};{2 of 4 CPUs idle};thread batch@q;spin";
    let whole = "Waiting for a CPU while thread batch of q (in spin) ran, and 2 of 4 CPUs were idle: ";
    assert!(first_cause(idle, &runtime).sentence.starts_with(whole));
    let stopped = first_cause("p;main;append;{stopped};{by a tracer};thread gdb@gdb;peek", &runtime);
    let whole = "Stopped by a debugger or another tracer until gdb let it go on: ";
    assert!(stopped.sentence.starts_with(whole), "{}", stopped.sentence);
    // Whatever it did before.
    let shell = "p;main;append;{stopped};{by a signal};thread bash@bash;main;[wait4];thread sleep@sleep;nap";
    let stopped = first_cause(shell, &runtime);
    assert!(stopped.sentence.contains("until bash let it go on: "), "{}", stopped.sentence);
    assert_eq!((stopped.by.thread.as_deref(), stopped.by.function), (Some("bash"), None));
    let stopped = first_cause("p;main;append;[futex];thread low@p;hold;{stopped};{by a signal}", &runtime);
    assert!(stopped.sentence.contains("for thread low of p, which was stopped in hold: "), "{}", stopped.sentence);
    let paused = first_cause("p;main;append;{stolen}", &runtime);
    assert!(paused.sentence.starts_with("Paused with its CPU: nothing happened there"), "{}", paused.sentence);
    let polled = first_cause("p;main;step;[clock_nanosleep];{timer};{polling fcntl}", &runtime);
    assert!(polled.sentence.starts_with("Sleeping in step between calls of fcntl that failed: "), "{polled:?}");
    let leaf = "[poll];{timer};{no answer within 1.00 s on port 53 (UDP)}";
    let unanswered = first_cause(&format!("p;main;resolve;{leaf}"), &runtime);
    let whole = "Waiting in resolve until it timed out (no answer came within 1.00 s on port 53 (UDP)): ";
    assert!(unanswered.sentence.starts_with(whole), "{unanswered:?}");
    let behind = first_cause(&format!("p;main;append;[futex];thread low@p;resolve;{leaf}"), &runtime);
    let whole = "for thread low of p, which waited in resolve until it timed out (no answer came within 1.00 s on";
    assert!(behind.sentence.contains(whole), "{behind:?}");
    // A wrapper adds nothing to the name of its system call.
    assert!(first_cause("p;main;write;[write]", &runtime).sentence.starts_with("Running write for main on the CPU"));
    assert!(first_cause("p;p+0x12;write;[write]", &runtime).sentence.starts_with("Running write on the CPU"));
    assert!(first_cause("p;p+0x12;memcpy", &runtime).sentence.starts_with("Running memcpy on the CPU"));
}

#[test]
fn name_says_that_a_cpu_was_leaving_its_idle_state() {
    let leaves = first_cause("p;main;append;[read];{preempted};{CPU leaving idle}", &[]);
    let whole = "Waiting for a CPU that was leaving its idle state: ";
    assert!(leaves.sentence.starts_with(whole), "{}", leaves.sentence);
    let holder = "p;main;append;[futex];thread low@p;hold;{preempted};{CPU leaving idle}";
    let holder = first_cause(holder, &[]).sentence;
    let whole = "Waiting in append for thread low of p, which waited for a CPU that was leaving its idle state: ";
    assert!(holder.starts_with(whole), "{holder}");
}

/// A holder was ready to run beside an idle CPU, but for a moment in which another thread ran there.
#[test]
fn name_blames_no_thread_for_a_holder_that_was_held_back() {
    let mut s = ModelBuilder::new(7);
    let holder = "p;main;append;[futex];thread low@p;hold;{preempted}";
    let (idle, other) = (format!("{holder};{{CPU idle}}"), format!("{holder};thread kworker@kworker;tick"));
    for i in 0..400 {
        let (work, slow) = (s.around(2.0), u64::from(i % 20 == 3));
        s.run("x", "p", "p", 1, &[("p;main", work), (&idle, slow * 38_000_000), (&other, slow * 2_000_000)]);
    }
    let cause = compare(&s.seal(), &ComparisonRequest::default(), &Ctx::new(1)).unwrap().causes.swap_remove(0);
    let whole = "Waiting in append for thread low of p, which was held back, ready to run, while its CPU was idle";
    assert!(cause.sentence.starts_with(whole) && !cause.sentence.contains("kworker"), "{}", cause.sentence);
}

#[test]
fn name_says_what_events_show_of_the_thread_besides() {
    let runtime: [&str; 0] = [];
    let sent = first_cause("p;main;append;{stopped};{by a signal};{sent by kill};thread bash@bash", &runtime);
    let whole = "Stopped by a signal that thread kill sent until bash let it go on: ";
    assert!(sent.sentence.starts_with(whole), "{}", sent.sentence);
    let frozen = first_cause("p;main;append;{stopped};{by the freezer};thread runc@runc;thaw", &runtime);
    let whole = "Frozen by the freezer of its control group until runc let it go on: ";
    assert!(frozen.sentence.starts_with(whole), "{}", frozen.sentence);
    let entitled = "p;main;append;{preempted};{for a real-time thread};thread rt@q;spin";
    let whole = "Waiting for a CPU while thread rt of q (in spin) ran as a real-time thread: ";
    assert!(first_cause(entitled, &runtime).sentence.starts_with(whole));
    let disk = first_cause("p;main;load;[pread64];{disk};{disk idle}", &runtime).sentence;
    assert!(disk.starts_with("Waiting for the disk in load, which had no requests: they were held back, for example"));
    let disk = first_cause("p;main;load;[pread64];{disk};{disk idle, limited}", &runtime).sentence;
    assert!(disk.contains("held back, presumably by the limit of its control group on the disk (io.max): "), "{disk}");
    let timer = first_cause("p;main;ask;[recvfrom];{network};{until a timer of TCP}", &runtime);
    let whole = "Waiting for the network in ask until a timer of TCP sent a packet (a delayed acknowledgement, ";
    assert!(timer.sentence.starts_with(whole), "{}", timer.sentence);
}
