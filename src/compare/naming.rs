//! Names of causes: where the time was spent, which thread is to blame, and in which function.
//!
//! In: a part of [`super::partition`]. Out: a [`PartName`], from which `words.rs` makes the sentence. A part is named
//! after the deepest function that covers most of the part's time whose functions are known (ALGORITHMS.md 7.6), once
//! for the execution's own thread (the site) and once for the thread to blame. Own CPU time has a name of its own
//! kind ([`name_cpu`]), every wait has a site ([`name_wait`]), and a wait with a culprit has the culprit's function too
//! ([`name_blamed`]). [`super::leaves`] finds what its contexts have in common. Cost: linear in the part's contexts
//! times their depth.

use super::Culprit;
use super::culprit::{has_namesake, other_thread, own_thread};
use super::kept::{Blame, KeptBy, KeptFromRunning, WaitManner};
use super::leaves::{CommonFunction, Functions, Leaf, Leaves};
use super::partition::{Common, DifferencePart, PartitionInput, is_kernel_thread};
use super::tree::{GroupPair, Parties};
use crate::base::names::NameId;
use crate::event::kernel_thread::role;
use crate::event::waiting_calls::is_sleep;
use crate::model::context::{ContextId, FrameKind};
use crate::model::wait_kind::{
    BEHIND_PRIORITY, BEHIND_REAL_TIME, BY_FREEZER, BY_SIGNAL, BY_TRACER, HYPERVISOR, IDLE_CPU, IDLE_DISK, IDLE_EXIT,
    IDLE_LIMITED_DISK, IDLE_NO_QUOTA, NO_ANSWER, NO_STEAL, POLLING, QUOTA, RETRANSMITTED, SENT_BY, TCP_TIMER, WaitKind,
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
    /// The time limit within which no answer came, and the port where one was expected: `within 1.00 s on port 53
    /// (UDP)`.
    pub no_answer: Option<String>,
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
            no_answer: None,
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
            KeptBy::Quota | KeptBy::Unknown | KeptBy::IdleExit => vec![&mut kept.holder],
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
        WaitKind::Preempted if leaves.are_mostly(&[IDLE_EXIT]) => WaitManner::IdleExit,
        _ => stop_manner(leaves, part),
    };
    let context = path.into_iter().take_while(|c| Some(*c) != culprit).last().unwrap_or(heaviest);
    let by = own_thread(groups, leaves.process(heaviest), &site);
    let quota = if part.kind == WaitKind::Throttled { leaves.named_after(QUOTA) } else { None };
    let (polled, sender) = (leaves.named_after(POLLING), leaves.always_named_after(SENT_BY));
    let no_answer = leaves.named_after(NO_ANSWER);
    PartName {
        manner,
        quota,
        polled,
        no_answer,
        sender,
        idle_disk,
        ..PartName::new(context, by, site, Parties::of(groups.model))
    }
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
    let no_answer = leaves.named_after(NO_ANSWER).filter(|_| timed_out);
    PartName { no_answer, blame, through, activity, kept, idle_cpus, quota, precedence, manner, ..named }
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
    if let Some(is_alone) = leaves.is_holder_at(&[IDLE_CPU, IDLE_NO_QUOTA]) {
        return Some(KeptFromRunning { holder, by: KeptBy::Unknown, is_alone });
    }
    if let Some(is_alone) = leaves.is_holder_at(&[IDLE_EXIT]) {
        return Some(KeptFromRunning { holder, by: KeptBy::IdleExit, is_alone });
    }
    let (frames, is_alone) = leaves.taker()?;
    let is_its = |function: &CommonFunction| model.contexts.path(function.context).iter().any(|c| frames.contains(c));
    let taker = other_thread(model, &frames, function.filter(is_its).map(|found| found.name));
    Some(KeptFromRunning { holder, by: KeptBy::Thread(taker), is_alone })
}

#[cfg(test)]
mod tests;
