//! The truth table: for each kind of cause what a recording must hold, what looks the same, and what excludes it.
//!
//! In: the kind of the first cause, and what was recorded. Out: the doubt that the table has about it, which the
//! verdict asks for last (`doubt.rs`); and its rows, which data quality shows. A kind without a row is never
//! sure: it does not compile. ALGORITHMS.md 7.7 has the table in words.

use super::verdict::Evidence;
use super::{Cause, interrupts};
use crate::event::kernel_thread::role;
use crate::model::recorded::{ENVIRONMENT, Recorded, StackKind};
use crate::model::topic::ESSENTIAL;
use crate::model::wait_kind::WaitKind;
use crate::model::{Model, TraceLevel};

/// What a recording may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Switches between threads.
    Switches,
    /// Begins and ends of interrupts.
    Interrupts,
    /// Requests of block devices.
    DiskRequests,
    /// Packets of the network.
    Packets,
    /// System calls.
    Calls,
    /// The kernel's call stacks at switches.
    KernelStacks,
    /// Counters of control groups and of the machine.
    Environment,
}

impl Need {
    pub fn words(self) -> &'static str {
        match self {
            Need::Switches => "switches",
            Need::Interrupts => "interrupts",
            Need::DiskRequests => "disk requests",
            Need::Packets => "packets",
            Need::Calls => "system calls",
            Need::KernelStacks => "the kernel's call stacks at switches",
            Need::Environment => "counters of control groups (whyslow snapshot)",
        }
    }

    fn is_in(self, recorded: &Recorded) -> bool {
        let has = |event: &str| recorded.events.contains(event);
        match self {
            Need::Switches => has(ESSENTIAL),
            Need::Interrupts => has("irq:irq_handler_entry") || has("irq:softirq_entry"),
            Need::DiskRequests => has("block:block_rq_issue") && has("block:block_rq_complete"),
            Need::Packets => has("net:net_dev_queue"),
            Need::Calls => has("raw_syscalls:sys_enter"),
            Need::KernelStacks => recorded.stacks.contains(&StackKind::KernelAtSwitches),
            Need::Environment => has(ENVIRONMENT),
        }
    }

    /// True if one of a model's traces has it; `None` where it is unknown what they recorded.
    pub fn is_recorded(self, model: &Model) -> Option<bool> {
        // The kernel has no part in archives of MPI runs.
        let machines = model.traces.iter().filter(|trace| trace.level == TraceLevel::Machine);
        let all: Option<Vec<&Recorded>> = machines.map(|trace| trace.recorded.as_ref()).collect();
        all.filter(|all| !all.is_empty()).map(|all| all.into_iter().any(|recorded| self.is_in(recorded)))
    }
}

/// A doubt about the first cause, in words that follow "No clear cause: ".
type Doubt = fn(&Evidence<'_>, &Cause) -> Option<String>;

/// A row of the table.
pub struct Truth {
    /// The kind of cause.
    pub kind: WaitKind,
    /// What looks the same.
    pub alike: &'static str,
    /// What excludes it: any of these.
    pub excluded_by: &'static [Need],
    /// A doubt of this kind alone.
    doubt: Option<Doubt>,
}

/// A quota counts where it caused so large a part of the time of another cause: a tenth.
const QUOTA_PART: i64 = 10;

const NONE: &str = "nothing else";

/// The row of a kind; none of those of which the cause is unknown, which are places and need nothing.
pub fn row(kind: WaitKind) -> Option<Truth> {
    use Need::{Calls, DiskRequests, Environment, Interrupts, KernelStacks, Packets};
    let (alike, excluded_by, doubt): (_, &'static [Need], Option<Doubt>) = match kind {
        WaitKind::Cpu => ("interrupts that stretch it", &[Interrupts], Some(by_interrupts)),
        WaitKind::Preempted => {
            ("a CPU quota of the control group or a lower priority", &[KernelStacks, Environment], None)
        }
        WaitKind::Disk => {
            ("the requests of others or a limit of the control group", &[DiskRequests, KernelStacks], None)
        }
        WaitKind::Network => ("a lost packet or a partner that waits itself", &[Packets], None),
        WaitKind::Timer => ("an answer that did not come in time", &[Calls], None),
        WaitKind::Thread => (
            "an interrupt on the CPU of the thread that seems to end the wait, or work for others,",
            &[Interrupts, DiskRequests],
            Some(by_requests),
        ),
        WaitKind::Stopped => ("the freezer of the control group", &[KernelStacks], None),
        WaitKind::Stolen => ("a paused machine, a hypervisor or interrupts that were off", &[Environment], None),
        WaitKind::Throttled => ("a neighbour with the same period", &[KernelStacks, Environment], None),
        WaitKind::Interrupted | WaitKind::Device | WaitKind::Ipi | WaitKind::User => (NONE, &[], None),
        WaitKind::UnknownWait | WaitKind::UnknownState => return None,
    };
    Some(Truth { kind, alike, excluded_by, doubt })
}

/// The doubt of the table about a cause: that of its row, and those of all. A cause over several kinds is one function
/// or thread, whatever the kinds are.
pub(super) fn doubt(e: &Evidence<'_>, cause: &Cause) -> Option<String> {
    let row = cause.kind.and_then(row);
    let is_place = row.is_none() && cause.kind.is_some();
    let own = row.and_then(|row| row.doubt);
    let unseen = if is_place { None } else { by_switches(e) };
    unseen.or_else(|| own.and_then(|doubt| doubt(e, cause))).or_else(|| by_others(e)).or_else(|| by_quota(e, cause))
}

/// Each kind needs switches. Without them calls and wake-ups show some of what threads did.
fn by_switches(e: &Evidence<'_>) -> Option<String> {
    let is_unseen = Need::Switches.is_recorded(e.groups.model) == Some(false) && e.groups.model.profile.is_none();
    is_unseen.then(|| "which threads ran is unknown without switches (record sched:sched_switch)".to_owned())
}

/// Interrupts that were not recorded stretch any running thread: not one function alone, in which the fast executions
/// seldom are.
fn by_interrupts(e: &Evidence<'_>, cause: &Cause) -> Option<String> {
    if cause.parts.is_empty() { interrupts::unrecorded(e, cause) } else { None }
}

/// Something else explains the time as well, and nothing in the recording excludes it.
fn by_others(e: &Evidence<'_>) -> Option<String> {
    e.ranked.other_reason.map(|reason| reason.words().to_owned())
}

/// A quota held threads of the same executions back, as the joint ends of their waits show; it may have caused the
/// waits that seem to be for other threads, too.
fn by_quota(e: &Evidence<'_>, cause: &Cause) -> Option<String> {
    let kinds = || cause.kind.into_iter().chain(cause.parts.iter().map(|part| part.kind));
    let others = e.ranked.causes.iter().filter(|other| other.extra_ns.saturating_mul(QUOTA_PART) >= cause.extra_ns);
    let is_throttled = kinds().chain(others.filter_map(|other| other.kind)).any(|kind| kind == WaitKind::Throttled);
    let is_counted = Need::Environment.is_recorded(e.groups.model) == Some(true);
    (kinds().any(|kind| kind == WaitKind::Preempted) && is_throttled && !is_counted).then(|| {
        "a CPU quota held threads of these executions back as well, and which of these waits for a CPU it caused was \
         not counted (run whyslow snapshot meanwhile)"
            .to_owned()
    })
}

/// Who made the requests of a thread of the kernel that serves all was not recorded.
fn by_requests(e: &Evidence<'_>, cause: &Cause) -> Option<String> {
    let serves = cause.by.thread.as_deref().and_then(role)?;
    let is_unseen = Need::DiskRequests.is_recorded(e.groups.model) == Some(false);
    is_unseen.then(|| {
        format!(
            "{serves} works for all threads, and for which of them is unknown without disk requests (record \
             block:block_rq_issue and block:block_rq_complete)"
        )
    })
}

/// What the table says about a kind in a recording, in one sentence: `disk: the requests of others or a limit of the
/// control group would show in disk requests (recorded)`. None where it is unknown what was recorded.
pub fn sentence(truth: &Truth, model: &Model) -> Option<String> {
    let Truth { kind, alike, excluded_by, .. } = truth;
    let name = kind.name();
    let mut found: Vec<String> = Vec::new();
    let mut has_any = false;
    for need in *excluded_by {
        let is_recorded = need.is_recorded(model)?;
        has_any |= is_recorded;
        found.push(format!("{} ({})", need.words(), if is_recorded { "recorded" } else { "not recorded" }));
    }
    Some(match found.is_empty() {
        true => format!("{name}: {alike} looks the same"),
        false if has_any => format!("{name}: {alike} would show in {}", found.join(" or ")),
        false => format!("{name}: may be {alike} as well, which would show in {}", found.join(" or ")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::ctx::Ctx;
    use crate::compare::scenario::ModelBuilder;
    use crate::compare::{ComparisonRequest, Verdict, compare};
    use crate::model::TraceInfo;

    #[test]
    fn each_kind_that_can_be_an_answer_has_a_row() {
        for kind in WaitKind::ALL {
            let is_place = matches!(kind, WaitKind::UnknownWait | WaitKind::UnknownState);
            assert_eq!(row(kind).is_none(), is_place, "{kind:?}");
            assert!(row(kind).is_none_or(|row| row.kind == kind), "{kind:?}");
        }
    }

    /// The verdict on waits for a thread in `fsync`, in a recording of some events.
    fn verdict(thread: &str, events: &[&str]) -> (Verdict, Vec<String>) {
        verdict_on("fsync", thread, events)
    }

    /// The verdict on waits for a thread in a call, in a recording of some events, and what the table says.
    fn verdict_on(call: &str, thread: &str, events: &[&str]) -> (Verdict, Vec<String>) {
        let mut s = ModelBuilder::new(7);
        for i in 0..400 {
            let (work, extra) = (s.around(2.0), if i % 20 == 3 { 40_000_000 } else { 0 });
            let path = format!("p;main;append;[{call}];thread {thread}@{thread}");
            s.run("x", "p", "p", 1, &[("p;main", work), (&path, extra)]);
        }
        let mut model = s.seal();
        let events = events.iter().map(|event| (*event).to_owned()).collect();
        let recorded = Some(Recorded { events, ..Recorded::default() });
        let (label, level, span) = (String::new(), TraceLevel::Machine, Default::default());
        model.traces = vec![TraceInfo { label, level, span, recorded }];
        let verdict = compare(&model, &ComparisonRequest::default(), &Ctx::new(1)).unwrap().verdict;
        (verdict, [WaitKind::Thread, WaitKind::Preempted].iter().filter_map(|k| sentence(&row(*k)?, &model)).collect())
    }

    /// Twins: a thread of a program, which works for itself, and the journal; with requests and without.
    #[test]
    fn journal_is_no_sure_culprit_where_no_requests_were_recorded() {
        let switches = [ESSENTIAL, "sched:sched_waking"];
        let requests = [ESSENTIAL, "sched:sched_waking", "block:block_rq_issue", "block:block_rq_complete"];
        let (unseen, sentences) = verdict("jbd2/vda1-8", &switches);
        assert!(!unseen.confident && unseen.sentence.contains("the journal of vda1 works for all"), "{unseen:?}");
        assert!(
            sentences[0].ends_with("in interrupts (not recorded) or disk requests (not recorded)"),
            "{sentences:?}"
        );
        assert!(sentences[1].starts_with("preempted: may be a CPU quota"), "{sentences:?}");
        let (seen, sentences) = verdict("jbd2/vda1-8", &requests);
        assert!(seen.confident, "{seen:?}");
        assert!(sentences[0].ends_with("in interrupts (not recorded) or disk requests (recorded)"), "{sentences:?}");
        let blind = verdict("writer", &["sched:sched_waking"]).0;
        assert!(!blind.confident && blind.sentence.contains("unknown without switches"), "{blind:?}");
    }

    /// Twins: a wait for a file and one for a lock, which a thread ended, or an interrupt while that thread ran.
    #[test]
    fn no_thread_surely_ends_a_wait_for_a_file_where_a_disk_would_look_the_same() {
        let switches = [ESSENTIAL, "sched:sched_waking"];
        let interrupts = [ESSENTIAL, "sched:sched_waking", "irq:irq_handler_entry"];
        let alike = verdict("writer", &switches).0;
        assert!(!alike.confident && alike.sentence.contains("an interrupt of the disk"), "{alike:?}");
        assert!(verdict("writer", &interrupts).0.confident);
        assert!(verdict_on("futex", "writer", &switches).0.confident);
    }

    /// Twins: others ran, with a quota beside them or without one.
    #[test]
    fn others_that_ran_are_no_sure_reason_beside_a_quota_that_nobody_counted() {
        let verdict = |throttled: u64, recorded: Option<Recorded>| {
            let mut s = ModelBuilder::new(7);
            for i in 0..400 {
                let slow = u64::from(i % 20 == 3);
                let parts = [
                    ("p;main", s.around(2.0)),
                    ("p;main;append;{preempted};thread batch@q;spin", slow * 30_000_000),
                    ("p;main;append;{throttled};{quota of 100 ms}", slow * throttled),
                ];
                s.run("x", "p", "p", 1, &parts);
            }
            let mut model = s.seal();
            let (label, level, span) = (String::new(), TraceLevel::Machine, Default::default());
            model.traces = vec![TraceInfo { label, level, span, recorded }];
            compare(&model, &ComparisonRequest::default(), &Ctx::new(1)).unwrap().verdict
        };
        let doubted = verdict(8_000_000, None);
        assert!(
            !doubted.confident && doubted.sentence.contains("held threads of these executions back"),
            "{doubted:?}"
        );
        assert!(verdict(0, None).confident);
        let events = [ESSENTIAL, ENVIRONMENT].map(str::to_owned).into();
        assert!(verdict(8_000_000, Some(Recorded { events, ..Recorded::default() })).confident);
    }
}
