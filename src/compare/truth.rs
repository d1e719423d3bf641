//! What looks the same as a cause, and whether the recording excludes it.
//!
//! In: the kind of the first cause with its row of the table of kinds (`model/wait_kind.rs`), and what was recorded.
//! Out: the doubt about it, which the verdict asks for last (`doubt.rs`); and the row as a sentence, which data quality
//! shows. ALGORITHMS.md 7.7 has the table in words.

use super::evidence::Evidence;
use super::{Cause, interrupts};
use crate::event::kernel_thread::role;
use crate::model::Model;
use crate::model::need::Need;
use crate::model::wait_kind::{Alike, WaitKind};

/// A quota counts where it caused so large a part of the time of another cause: a tenth.
const QUOTA_PART: i64 = 10;

/// The doubt about a cause: that of its kind alone, and those of all. A cause over several kinds is one function or
/// thread, whatever the kinds are.
pub(super) fn doubt(e: &Evidence<'_>, cause: &Cause) -> Option<String> {
    let is_place = cause.kind.is_some_and(|kind| kind.row().alike.is_none());
    let unseen = if is_place { None } else { by_switches(e) };
    let own = || match cause.kind? {
        WaitKind::Cpu => by_interrupts(e, cause),
        WaitKind::Thread => by_requests(e, cause),
        _ => None,
    };
    unseen.or_else(own).or_else(|| by_others(e)).or_else(|| by_quota(e, cause))
}

/// Each kind needs switches. Without them calls and wake-ups show some of what threads did.
fn by_switches(e: &Evidence<'_>) -> Option<String> {
    let is_unseen =
        Need::Switches.is_recorded(&e.groups.model.traces) == Some(false) && e.groups.model.profile.is_none();
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
    let is_counted = Need::Environment.is_recorded(&e.groups.model.traces) == Some(true);
    (kinds().any(|kind| kind == WaitKind::Preempted) && is_throttled && !is_counted).then(|| {
        "a CPU quota held threads of these executions back as well, and which of these waits for a CPU it caused was \
         not counted (run whyslow snapshot meanwhile)"
            .to_owned()
    })
}

/// Who made the requests of a thread of the kernel that serves all was not recorded.
fn by_requests(e: &Evidence<'_>, cause: &Cause) -> Option<String> {
    let serves = cause.by.thread.as_deref().and_then(role)?;
    let is_unseen = Need::DiskRequests.is_recorded(&e.groups.model.traces) == Some(false);
    is_unseen.then(|| {
        format!(
            "{serves} works for all threads, and for which of them is unknown without disk requests (record \
             block:block_rq_issue and block:block_rq_complete)"
        )
    })
}

/// What the table says about a kind in a recording, in one sentence: `disk: the requests of others or a limit of the
/// control group would show in disk requests (recorded)`. None where it is unknown what was recorded.
pub fn sentence(kind: WaitKind, model: &Model) -> Option<String> {
    let Alike { what: alike, excluded_by } = kind.row().alike?;
    let name = kind.name();
    let mut found: Vec<String> = Vec::new();
    let mut has_any = false;
    for need in excluded_by {
        let is_recorded = need.is_recorded(&model.traces)?;
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
    use crate::model::event_name::{ENVIRONMENT, ESSENTIAL};
    use crate::model::recorded::Recorded;
    use crate::model::{TraceInfo, TraceLevel};

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
        (
            verdict,
            [WaitKind::Thread, WaitKind::Preempted].into_iter().filter_map(|kind| sentence(kind, &model)).collect(),
        )
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
