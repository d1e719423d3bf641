//! Names of causes: where the time was spent, which thread is to blame, and in which function.
//!
//! In: a part of [`super::partition`]. Out: a [`PartName`], from which `words.rs` makes the sentence. A part is named
//! after the deepest function that covers most of the part's time whose functions are known (ALGORITHMS.md 7.6), once
//! for the execution's own thread (the site) and once for the thread to blame. Own CPU time has a name of its own
//! kind ([`name_cpu`]), every wait has a site ([`name_wait`]), and a wait with a culprit has the culprit's function too
//! ([`name_blamed`]). [`super::leaves`] finds what its contexts have in common. Cost: linear in the part's contexts
//! times their depth.

use super::Culprit;
use super::across::Common;
use super::culprit::{has_namesake, other_thread, own_thread};
use super::kept::{KeptBy, KeptFromRunning, WaitManner};
use super::leaves::{CommonFunction, Functions, Leaf, Leaves};
use super::partition::{DifferencePart, PartitionInput, is_kernel_thread};
use super::tree::GroupPair;
use super::words::{Blame, Parties};
use crate::base::names::NameId;
use crate::event::kernel_thread::role;
use crate::event::waiting_calls::is_sleep;
use crate::model::context::{ContextId, FrameKind};
use crate::model::wait_kind::{
    BEHIND_PRIORITY, BEHIND_REAL_TIME, BY_FREEZER, BY_SIGNAL, BY_TRACER, HYPERVISOR, IDLE_CPU, IDLE_DISK,
    IDLE_LIMITED_DISK, IDLE_NO_QUOTA, NO_STEAL, POLLING, QUOTA, RETRANSMITTED, SENT_BY, TCP_TIMER, WaitKind,
};
use std::collections::BTreeSet;

/// The names of a part.
#[derive(Clone)]
pub(super) struct PartName {
    /// The context that represents the part in the tree.
    pub context: ContextId,
    /// The thread that spent or held the time.
    pub by: Culprit,
    /// Function or call in which the execution's own thread ran or waited; empty if unknown.
    pub site: String,
    /// The number of threads to blame.
    pub blame: Blame,
    /// The kernel thread through which the culprit delayed the execution, by its purpose.
    pub through: Option<String>,
    /// What the culprit is one of.
    pub parties: Parties,
    /// What the culprit did for most of the time; `None` where nothing prevails.
    pub activity: Option<WaitKind>,
    /// What is known of the time besides its kind.
    pub manner: WaitManner,
    /// Who was waited for, where that thread was itself kept from running.
    pub kept: Option<KeptFromRunning>,
    /// How many CPUs were idle while a thread waited for another one: `2 of 4`.
    pub idle_cpus: Option<String>,
    /// How the threads that ran meanwhile precede the one that waited.
    pub precedence: Option<&'static str>,
    /// The thread that sent the signal which stopped another.
    pub sender: Option<String>,
    /// The call that failed before each sleep and was made again after it.
    pub polled: Option<String>,
    /// Percent of a wait for a disk in which that had no request.
    pub idle_disk: i128,
    /// The period of the quota that held it, or the thread that it waited for, back.
    pub quota: Option<String>,
}

impl PartName {
    /// Of a part of which nothing but the place is known.
    pub(super) fn new(context: ContextId, by: Culprit, site: String, parties: Parties) -> PartName {
        PartName {
            context,
            by,
            site,
            blame: Blame::NoThread,
            through: None,
            parties,
            activity: None,
            manner: WaitManner::Plain,
            kept: None,
            idle_cpus: None,
            idle_disk: 0,
            quota: None,
            precedence: None,
            sender: None,
            polled: None,
        }
    }
}

/// Name a part.
pub(super) fn name(groups: &GroupPair<'_>, input: &PartitionInput<'_>, part: &DifferencePart) -> PartName {
    let leaves = Leaves::new(input, part);
    match (&part.common, part.kind) {
        (Some(Common::Function(frame)), _) => name_function(groups, &leaves, *frame),
        (_, WaitKind::Cpu) => name_cpu(groups, &leaves, part),
        _ => name_wait(groups, &leaves, part),
    }
}

/// All that happened in a function.
fn name_function(groups: &GroupPair<'_>, leaves: &Leaves<'_>, frame: ContextId) -> PartName {
    let model = leaves.input.model;
    let site = model.names.function(leaves.frame_name(frame)).into_owned();
    let by = own_thread(groups, leaves.process(leaves.heaviest), &site);
    PartName::new(frame, by, site, Parties::of(model))
}

/// Own CPU time: the function and the call that the partition found.
fn name_cpu(groups: &GroupPair<'_>, leaves: &Leaves<'_>, part: &DifferencePart) -> PartName {
    let model = leaves.input.model;
    let context = part.node.unwrap_or(model.contexts.path(leaves.heaviest)[0]);
    let path = model.contexts.path(context);
    let innermost = |kind: FrameKind| path.iter().rev().copied().filter(move |c| leaves.is_kind(*c, kind));
    let parties = Parties::of(model);
    let is_own = |c: &ContextId| model.names.is_program_function(leaves.frame_name(*c));
    let own = innermost(FrameKind::Function).find(is_own);
    // In an MPI run the calls of libraries are functions too; they name no cause where one of the program is around.
    let is_library = |c: &ContextId| own.is_some() && model.names.is_runtime(leaves.frame_name(*c));
    let library = || innermost(FrameKind::Function).next().filter(|_| parties == Parties::Ranks).filter(is_library);
    let call = innermost(FrameKind::Call).next().or_else(library);
    let call = call.map(|c| model.names.get(leaves.frame_name(c)));
    // The runtime's wrapper of a system call says no more than the call.
    let is_runtime = |c: &ContextId| call.is_none() && model.names.is_runtime(leaves.frame_name(*c));
    let function = own.or_else(|| innermost(FrameKind::Function).find(is_runtime));
    let text = |name: NameId| model.names.function(name).into_owned();
    let mut function = function.map(|c| text(leaves.frame_name(c)));
    let mut manner = WaitManner::Plain;
    if function.is_none() && call.is_none() {
        function = leaves.common_function(|leaf| leaves.own_frames(leaf)).map(|found| text(found.name));
        manner = if function.is_some() { WaitManner::Mostly } else { manner };
    }
    let by = own_thread(groups, leaves.process(leaves.heaviest), function.as_deref().unwrap_or(""));
    let site = match (function, call) {
        (Some(function), Some(call)) => format!("{call} for {function}"),
        (function, call) => function.or(call.map(str::to_owned)).unwrap_or_default(),
    };
    PartName { manner, ..PartName::new(context, by, site, parties) }
}

/// A wait: its site, and the thread to blame where there is one.
fn name_wait(groups: &GroupPair<'_>, leaves: &Leaves<'_>, part: &DifferencePart) -> PartName {
    let own_frames = |leaf| leaves.own_frames(leaf);
    // A rank waits in a call of a library, which says more than the region around it.
    let function = match Parties::of(groups.model) {
        Parties::Threads => leaves.common_function(own_frames),
        Parties::Ranks => leaves.common_among(&own_frames, Functions::All),
    };
    let ordered = function.map_or_else(|| leaves.with(leaves.list.clone()), |found| leaves.ordered_by(found.name));
    let site = ordered.site(function);
    let idle_disk = leaves.percent_named(&[IDLE_DISK, IDLE_LIMITED_DISK]);
    if let Some((blame, thread)) = ordered.culprit(part) {
        let mut named = name_blamed(&ordered.blamed_on(&thread), site, blame, part.kind);
        named.idle_disk = idle_disk;
        if part.kind == WaitKind::Stopped {
            named.manner = stop_manner(leaves, part);
            named.sender = leaves.always_named_after(SENT_BY);
        }
        let of_chain = named.kept.iter_mut().flat_map(|kept| match &mut kept.by {
            KeptBy::Thread(taker) => vec![&mut kept.holder, taker],
            KeptBy::Quota | KeptBy::Unknown => vec![&mut kept.holder],
        });
        for by in of_chain.chain([&mut named.by]) {
            if !has_namesake(groups, by) {
                by.which = None;
            }
        }
        return named;
    }
    let heaviest = leaves.heaviest;
    let culprit = leaves.input.origins[heaviest.index()].culprit;
    let path = leaves.input.model.contexts.path(heaviest);
    let manner = match part.kind {
        WaitKind::Timer if waits_for_more(leaves, &path) => WaitManner::TimedOut,
        WaitKind::Network => tcp_manner(leaves).unwrap_or(WaitManner::Plain),
        WaitKind::Disk if leaves.are_mostly(&[IDLE_LIMITED_DISK]) => WaitManner::DiskLimit,
        WaitKind::Disk if leaves.are_mostly(&[IDLE_DISK, IDLE_LIMITED_DISK]) => WaitManner::DiskIdle,
        WaitKind::Preempted if leaves.are_throttled() => WaitManner::Throttled,
        WaitKind::Stolen if leaves.are_mostly(&[HYPERVISOR]) => WaitManner::Stolen,
        WaitKind::Stolen if leaves.are_mostly(&[NO_STEAL]) => WaitManner::NotStolen,
        WaitKind::Preempted if leaves.are_mostly(&[IDLE_CPU]) => WaitManner::HeldBack,
        WaitKind::Preempted if leaves.are_mostly(&[IDLE_NO_QUOTA]) => WaitManner::HeldBackWithoutQuota,
        _ => stop_manner(leaves, part),
    };
    let context = path.into_iter().take_while(|c| Some(*c) != culprit).last().unwrap_or(heaviest);
    let by = own_thread(groups, leaves.process(heaviest), &site);
    let quota = if part.kind == WaitKind::Throttled { leaves.named_after(QUOTA) } else { None };
    let (polled, sender) = (leaves.named_after(POLLING), leaves.always_named_after(SENT_BY));
    PartName { manner, quota, polled, sender, idle_disk, ..PartName::new(context, by, site, Parties::of(groups.model)) }
}

/// The timer of TCP that ended waits for the network.
fn tcp_manner(leaves: &Leaves<'_>) -> Option<WaitManner> {
    let all = [(RETRANSMITTED, WaitManner::Retransmitted), (TCP_TIMER, WaitManner::TcpTimer)];
    all.into_iter().find(|(name, _)| leaves.pass_mostly(name)).map(|(_, manner)| manner)
}

/// True where the last call on a path waits for more than a time to pass.
fn waits_for_more(leaves: &Leaves<'_>, path: &[ContextId]) -> bool {
    let call = path.iter().rev().find(|c| leaves.is_kind(**c, FrameKind::Call));
    call.is_some_and(|c| !is_sleep(leaves.input.model.names.get(leaves.frame_name(*c))))
}

/// What stopped the threads of a part, where it is time of stopped ones.
fn stop_manner(leaves: &Leaves<'_>, part: &DifferencePart) -> WaitManner {
    match part.kind {
        WaitKind::Stopped if leaves.pass_mostly(BY_TRACER) => WaitManner::Traced,
        WaitKind::Stopped if leaves.pass_mostly(BY_FREEZER) => WaitManner::Frozen,
        WaitKind::Stopped if leaves.pass_mostly(BY_SIGNAL) => WaitManner::Signalled,
        _ => WaitManner::Plain,
    }
}

/// A wait that another thread held up; `leaves` are those for which it is to blame.
fn name_blamed(leaves: &Leaves<'_>, site: String, blame: Blame, kind: WaitKind) -> PartName {
    let (model, origins) = (leaves.input.model, leaves.input.origins);
    let culprit_of = |leaf: &Leaf| origins[leaf.context.index()].culprit;
    // What the thread that ends a stop did or waited for before is not the reason.
    let follows = kind != WaitKind::Stopped;
    let function = follows.then(|| leaves.common_function(|leaf| leaves.culprit_frames(leaf))).flatten();
    let culprit = leaves.list.first().and_then(culprit_of).unwrap_or(leaves.heaviest);
    let context = function.map_or(culprit, |found| found.context);
    let is_thread = |c: &&ContextId| matches!(model.contexts.frame(**c).kind, FrameKind::Thread(_));
    let path = model.contexts.path(context);
    let thread = path.iter().rev().find(is_thread).copied().unwrap_or(culprit);
    // Several contexts may lead to the same thread; a thread further down represents itself.
    let mut frames: BTreeSet<ContextId> = leaves.list.iter().filter_map(culprit_of).collect();
    if !frames.contains(&thread) {
        frames = BTreeSet::from([thread]);
    }
    let by = other_thread(model, &frames, function.map(|found| found.name));
    let above = path.iter().rev().skip_while(|c| **c != thread).skip(1).find(is_thread);
    let through = above.filter(|c| is_kernel_thread(model, **c));
    let through = through.and_then(|c| role(model.names.get(leaves.frame_name(*c))));
    let holders: BTreeSet<ContextId> = leaves.list.iter().filter_map(culprit_of).collect();
    let waits = follows && leaves.are_runnable(|leaf| leaves.culprit_frames(leaf));
    let kept = waits.then(|| kept_from_running(leaves, &holders, function)).flatten();
    // Also where no call stack leads to the one that ran.
    let alone = kept.as_ref().filter(|kept| kept.is_alone).and_then(|kept| kept.taker().cloned());
    let by = alone.unwrap_or(by);
    // What is said is about the thread that is named.
    let below = |leaf: ContextId| {
        let path = model.contexts.path(leaf);
        let at = path.iter().rposition(|c| frames.contains(c));
        path[at.map_or(path.len(), |at| at + 1)..].to_vec()
    };
    let (parties, activity) = (Parties::of(model), leaves.activity(below));
    let timed_out = activity == Some(WaitKind::Timer) && waits_for_more(leaves, &below(leaves.heaviest));
    let manner = match timed_out {
        true => WaitManner::TimedOut,
        false if kind == WaitKind::Network => tcp_manner(leaves).unwrap_or(WaitManner::Plain),
        false => WaitManner::Plain,
    };
    let (idle_cpus, quota) = (leaves.idle_cpus(), leaves.named_after(QUOTA));
    let precedence = if kind == WaitKind::Preempted { precedence(leaves) } else { None };
    let named = PartName::new(context, by, site, parties);
    PartName { blame, through, activity, kept, idle_cpus, quota, precedence, manner, ..named }
}

/// How the threads that ran precede the one that waited for a CPU for most of the time, as far as it is known.
fn precedence(leaves: &Leaves<'_>) -> Option<&'static str> {
    let all = [(BEHIND_REAL_TIME, " as a real-time thread"), (BEHIND_PRIORITY, " at a higher priority")];
    all.into_iter().find(|(name, _)| leaves.pass_mostly(name)).map(|(_, words)| words)
}

/// What kept the threads of some frames from running, while others waited for them; `function` is the one by which the
/// part is named.
fn kept_from_running(
    leaves: &Leaves<'_>,
    holders: &BTreeSet<ContextId>,
    function: Option<CommonFunction>,
) -> Option<KeptFromRunning> {
    let model = leaves.input.model;
    let holder = other_thread(model, holders, None);
    if let Some(is_alone) = leaves.is_holder_throttled() {
        return Some(KeptFromRunning { holder, by: KeptBy::Quota, is_alone });
    }
    if let Some(is_alone) = leaves.is_holder_held_back() {
        return Some(KeptFromRunning { holder, by: KeptBy::Unknown, is_alone });
    }
    let (frames, is_alone) = leaves.taker()?;
    let is_its = |function: &CommonFunction| model.contexts.path(function.context).iter().any(|c| frames.contains(c));
    let taker = other_thread(model, &frames, function.filter(is_its).map(|found| found.name));
    Some(KeptFromRunning { holder, by: KeptBy::Thread(taker), is_alone })
}

#[cfg(test)]
mod tests {
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
            let parts =
                [("p;main", work), ("p;digest", ns(26)), ("p;main;run;digest", ns(7)), ("p;main;run;copy", ns(7))];
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
        let whole =
            "Held back as by a CPU quota of its control group: such waits of its threads end together, in phase";
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
        // A wrapper adds nothing to the name of its system call.
        assert!(
            first_cause("p;main;write;[write]", &runtime).sentence.starts_with("Running write for main on the CPU")
        );
        assert!(first_cause("p;p+0x12;write;[write]", &runtime).sentence.starts_with("Running write on the CPU"));
        assert!(first_cause("p;p+0x12;memcpy", &runtime).sentence.starts_with("Running memcpy on the CPU"));
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
        assert!(
            disk.starts_with("Waiting for the disk in load, which had no requests: they were held back, for example")
        );
        let disk = first_cause("p;main;load;[pread64];{disk};{disk idle, limited}", &runtime).sentence;
        assert!(
            disk.contains("held back, presumably by the limit of its control group on the disk (io.max): "),
            "{disk}"
        );
        let timer = first_cause("p;main;ask;[recvfrom];{network};{until a timer of TCP}", &runtime);
        let whole = "Waiting for the network in ask until a timer of TCP sent a packet (a delayed acknowledgement, ";
        assert!(timer.sentence.starts_with(whole), "{}", timer.sentence);
    }
}
