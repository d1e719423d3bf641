//! The contexts of a part, by weight, and what they have in common: a function, a call, the thread to blame.
//!
//! In: a part of [`super::partition`]. Out: [`Leaves`], the contexts whose time has the part's sign, and for them the
//! deepest common function (ALGORITHMS.md 7.6), the site of a wait, the thread to blame and what it did. A list is
//! never changed: each step makes the ordered or filtered list that it needs. Cost: linear in the contexts times their
//! depth.

use super::kept::Blame;
use super::partition::{BlamedThread, DifferencePart, PartitionInput};
use crate::base::names::NameId;
use crate::event::waiting_calls::is_of_file;
use crate::model::context::{ContextId, FrameKind};
use crate::model::wait_kind::{CPUS_IDLE, IDLE_DISK, IDLE_LIMITED_DISK, WaitKind};
use std::collections::{BTreeMap, BTreeSet};

/// Leaves that may give a part its name: the heaviest ones.
const NAME_CANDIDATES: usize = 16;
/// Percent of the known time that a function must cover to name a part: the first if a function does, else the second.
const COVERS: [i128; 2] = [80, 50];
/// Percent of a part's time whose functions must be known for any of them to represent the rest.
const LEAST_KNOWN: i128 = 5;
/// Percent of a disk wait that another process must have used the disk to be named.
const DISK_USER: i128 = 10;

/// A context of a part, and the part's time there times the product of the group sizes.
#[derive(Clone, Copy)]
pub(super) struct Leaf {
    pub(super) context: ContextId,
    pub(super) weight: i128,
}

/// The contexts of a part whose time has the part's sign; the heaviest first unless said otherwise.
pub(super) struct Leaves<'a> {
    pub(super) input: &'a PartitionInput<'a>,
    pub(super) list: Vec<Leaf>,
    /// The heaviest leaf; the first context where no leaf has the part's sign.
    pub(super) heaviest: ContextId,
}

/// The functions that may name leaves.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Functions {
    /// The program's own functions, of user space, with symbols.
    Named,
    /// Also functions of the runtime, functions without symbols, and the kernel's.
    All,
}

/// A function, and the context in which it is on the first leaf that has it.
#[derive(Clone, Copy)]
pub(super) struct CommonFunction {
    pub(super) name: NameId,
    pub(super) context: ContextId,
}

/// True if `part` is at least this many percent of `whole`.
fn is_share(part: i128, percent: i128, whole: i128) -> bool {
    part * 100 >= whole * percent
}

impl<'a> Leaves<'a> {
    pub(super) fn new(input: &'a PartitionInput<'a>, part: &DifferencePart) -> Self {
        let sign = part.difference.signum();
        let weigh = |context: &ContextId| Leaf { context: *context, weight: input.own[context.index()] * sign };
        let mut list: Vec<Leaf> = part.contexts.iter().map(weigh).filter(|leaf| leaf.weight > 0).collect();
        list.sort_by_key(|leaf| (std::cmp::Reverse(leaf.weight), leaf.context));
        let heaviest = list.first().map_or_else(|| part.contexts[0], |leaf| leaf.context);
        Leaves { input, list, heaviest }
    }

    pub(super) fn with(&self, list: Vec<Leaf>) -> Self {
        Leaves { input: self.input, list, heaviest: self.heaviest }
    }

    /// These leaves, those whose own frames hold a function first.
    pub(super) fn ordered_by(&self, function: NameId) -> Self {
        let holds = |leaf: &Leaf| self.own_frames(leaf.context).iter().any(|f| self.frame_name(*f) == function);
        let (with, without): (Vec<Leaf>, Vec<Leaf>) = self.list.iter().copied().partition(holds);
        self.with([with, without].concat())
    }

    /// The leaves for which one thread is to blame.
    pub(super) fn blamed_on(&self, thread: &BlamedThread) -> Self {
        let is_its = |leaf: &&Leaf| self.input.blamed(leaf.context).as_ref() == Some(thread);
        self.with(self.list.iter().filter(is_its).copied().collect())
    }

    pub(super) fn frame_name(&self, context: ContextId) -> NameId {
        self.input.model.contexts.frame(context).name
    }

    pub(super) fn is_kind(&self, context: ContextId, kind: FrameKind) -> bool {
        self.input.model.contexts.frame(context).kind == kind
    }

    /// The process frame of a context.
    pub(super) fn process(&self, context: ContextId) -> NameId {
        self.frame_name(self.input.model.contexts.path(context)[0])
    }

    /// The frames of the execution's own thread, up to the innermost system call: how the kernel waits inside a call is
    /// the same for all threads that wait in it, so the call says more.
    pub(super) fn own_frames(&self, leaf: ContextId) -> Vec<ContextId> {
        let mut path = self.input.model.contexts.path(self.input.origins[leaf.index()].site);
        let call = path.iter().rposition(|c| self.is_kind(*c, FrameKind::Call));
        path.truncate(call.map_or(path.len(), |at| at + 1));
        path
    }

    /// The frames of the thread to blame.
    pub(super) fn culprit_frames(&self, leaf: ContextId) -> Vec<ContextId> {
        let culprit = self.input.origins[leaf.index()].culprit;
        let path = self.input.model.contexts.path(leaf);
        let from = path.iter().position(|c| Some(*c) == culprit).map_or(path.len(), |at| at + 1);
        path[from..].to_vec()
    }

    /// What a thread did for at least half of the time: a wait of its own or running. `frames` has those below it.
    pub(super) fn activity(&self, frames: impl Fn(ContextId) -> Vec<ContextId>) -> Option<WaitKind> {
        let mut kinds: BTreeMap<WaitKind, i128> = BTreeMap::new();
        for Leaf { context, weight } in &self.list {
            *kinds.entry(self.outermost_wait(&frames(*context))).or_insert(0) += weight;
        }
        let (activity, share) = kinds.into_iter().max_by_key(|(_, share)| *share)?;
        is_share(share, 50, self.total()).then_some(activity)
    }

    /// True where a thread was ready to run for at least half of the time, whatever kept it from running.
    pub(super) fn are_runnable(&self, frames: impl Fn(ContextId) -> Vec<ContextId>) -> bool {
        let kind = |leaf: &&Leaf| self.outermost_wait(&frames(leaf.context));
        let runnable = |leaf: &&Leaf| matches!(kind(leaf), WaitKind::Preempted | WaitKind::Throttled);
        is_share(self.list.iter().filter(runnable).map(|leaf| leaf.weight).sum(), 50, self.total())
    }

    /// The outermost wait among frames; running where there is none.
    fn outermost_wait(&self, frames: &[ContextId]) -> WaitKind {
        let wait = frames.iter().find_map(|c| match self.input.model.contexts.frame(*c).kind {
            FrameKind::Wait(kind) | FrameKind::Thread(kind) => Some(kind),
            _ => None,
        });
        wait.unwrap_or(WaitKind::Cpu)
    }

    /// Of some contexts those in which the thread to blame waited as it did for most of the time; all where it ran.
    pub(super) fn prevailing(&self, mut contexts: Vec<ContextId>) -> Vec<ContextId> {
        let frames = |context: ContextId| self.culprit_frames(context);
        let activity = self.activity(frames);
        if let Some(wait) = activity.filter(|kind| !matches!(kind, WaitKind::Cpu | WaitKind::UnknownState)) {
            contexts.retain(|context| self.outermost_wait(&frames(*context)) == wait);
        }
        contexts
    }

    /// Of the threads that ran on the CPU for which the thread to blame waited, the one with most time, by its frames;
    /// and whether it has [`COVERS`] of the time in which there was one.
    pub(super) fn taker(&self) -> Option<(BTreeSet<ContextId>, bool)> {
        let mut takers: BTreeMap<NameId, (i128, BTreeSet<ContextId>)> = BTreeMap::new();
        for Leaf { context, weight } in &self.list {
            let is_taker = |c: &ContextId| {
                matches!(self.input.model.contexts.frame(*c).kind, FrameKind::Thread(WaitKind::Preempted))
            };
            let Some(frame) = self.culprit_frames(*context).into_iter().find(is_taker) else { continue };
            let (sum, frames) = takers.entry(self.frame_name(frame)).or_default();
            *sum += weight;
            frames.insert(frame);
        }
        let total: i128 = takers.values().map(|(weight, _)| weight).sum();
        let (weight, frames) = takers.into_values().max_by_key(|(weight, _)| *weight)?;
        Some((frames, is_share(weight, COVERS[0], total)))
    }

    /// Of the time in which the thread to blame waited for a CPU: true where a quota held it back for [`COVERS`] of it,
    /// false where for half of it.
    pub(super) fn is_holder_throttled(&self) -> Option<bool> {
        self.of_runnable_holder(|leaf| self.input.origins[leaf.context.index()].throttled)
    }

    /// Of the time in which the thread to blame was ready to run: true where [`COVERS`] of it is in frames of some
    /// names, such as that of an idle CPU, false where half of it is.
    pub(super) fn is_holder_at(&self, names: &[&str]) -> Option<bool> {
        let name = |leaf: &Leaf| self.input.model.names.get(self.frame_name(leaf.context));
        self.of_runnable_holder(|leaf| names.contains(&name(leaf)))
    }

    fn of_runnable_holder(&self, is: impl Fn(&Leaf) -> bool) -> Option<bool> {
        let waits = |leaf: &&Leaf| self.outermost_wait(&self.culprit_frames(leaf.context));
        let is_runnable = |leaf: &&Leaf| matches!(waits(leaf), WaitKind::Preempted | WaitKind::Throttled);
        let runnable: Vec<Leaf> = self.list.iter().filter(is_runnable).copied().collect();
        let all: i128 = runnable.iter().map(|leaf| leaf.weight).sum();
        let part: i128 = runnable.iter().filter(|leaf| is(leaf)).map(|leaf| leaf.weight).sum();
        (part > 0 && is_share(part, 50, all)).then(|| is_share(part, COVERS[0], all))
    }

    /// True where, for half of the time, the recording does not show what the thread to blame did or waited for.
    pub(super) fn end_unseen(&self) -> bool {
        let what = |leaf: &Leaf| self.outermost_wait(&self.culprit_frames(leaf.context));
        self.is_half(|leaf| matches!(what(leaf), WaitKind::UnknownWait | WaitKind::UnknownState))
    }

    /// True where, for half of the time, threads wait in calls about files for the thread to blame.
    pub(super) fn wait_for_files(&self) -> bool {
        let contexts = &self.input.model.contexts;
        let call = |leaf: &Leaf| {
            let culprit = self.input.origins[leaf.context.index()].culprit?;
            let above = contexts.path(culprit).into_iter().rev().skip(1);
            let is_kernels = |c: &ContextId| self.is_kind(*c, FrameKind::KernelFunction);
            above.into_iter().find(|c| !is_kernels(c)).filter(|c| self.is_kind(*c, FrameKind::Call))
        };
        self.is_half(|leaf| call(leaf).is_some_and(|c| is_of_file(self.input.model.names.get(self.frame_name(c)))))
    }

    fn is_half(&self, is: impl Fn(&Leaf) -> bool) -> bool {
        is_share(self.list.iter().filter(|leaf| is(leaf)).map(|leaf| leaf.weight).sum(), 50, self.total().max(1))
    }

    /// True where the kernel held a thread back for [`COVERS`] of the time.
    pub(super) fn are_throttled(&self) -> bool {
        let is_throttled = |leaf: &&Leaf| self.input.origins[leaf.context.index()].throttled;
        is_share(self.list.iter().filter(is_throttled).map(|leaf| leaf.weight).sum(), COVERS[0], self.total())
    }

    /// True where [`COVERS`] of the time is in frames of some names.
    pub(super) fn are_mostly(&self, of: &[&str]) -> bool {
        is_share(self.time_named(of), COVERS[0], self.total())
    }

    /// The part of the time that is in frames of some names, in percent.
    pub(super) fn percent_named(&self, of: &[&str]) -> i128 {
        self.time_named(of) * 100 / self.total().max(1)
    }

    fn time_named(&self, of: &[&str]) -> i128 {
        let name = |leaf: &&Leaf| self.input.model.names.get(self.frame_name(leaf.context));
        self.list.iter().filter(|leaf| of.contains(&name(leaf))).map(|leaf| leaf.weight).sum()
    }

    /// True where [`COVERS`] of the time is below frames of a name.
    pub(super) fn pass_mostly(&self, name: &str) -> bool {
        let passes = |leaf: &&Leaf| self.passes(leaf.context, name);
        is_share(self.list.iter().filter(passes).map(|leaf| leaf.weight).sum(), COVERS[0], self.total())
    }

    /// True if a frame of the name is on the path to a context.
    pub(super) fn passes(&self, context: ContextId, name: &str) -> bool {
        let model = self.input.model;
        model.contexts.path(context).into_iter().any(|c| model.names.get(self.frame_name(c)) == name)
    }

    /// What follows `prefix` in the names of the frames on the paths that have [`COVERS`] of the time: the period of a
    /// quota, the call that was polled. Where there are several such names, the one that has most of it.
    pub(super) fn named_after(&self, prefix: &str) -> Option<String> {
        let names = self.weights_after(prefix);
        let is_most = is_share(names.values().sum(), COVERS[0], self.total());
        let (name, _) = names.into_iter().max_by_key(|(_, weight)| *weight).filter(|_| is_most)?;
        Some(name.to_owned())
    }

    /// What follows the prefix in the one name that has [`COVERS`] of the time: the thread that sent a signal.
    pub(super) fn always_named_after(&self, prefix: &str) -> Option<String> {
        let (name, weight) = self.weights_after(prefix).into_iter().max_by_key(|(_, weight)| *weight)?;
        is_share(weight, COVERS[0], self.total()).then(|| name.to_owned())
    }

    /// The time of the leaves by what follows `prefix` in the name of a frame on their path.
    fn weights_after(&self, prefix: &str) -> BTreeMap<&'a str, i128> {
        let model = self.input.model;
        let mut names = BTreeMap::new();
        for Leaf { context, weight } in &self.list {
            let path = model.contexts.path(*context).into_iter();
            let mut after = path.filter_map(|c| model.names.get(self.frame_name(c)).strip_prefix(prefix));
            if let Some(name) = after.next() {
                *names.entry(name).or_insert(0) += weight;
            }
        }
        names
    }

    /// How many CPUs were idle, `2 of 4`, while for half of the time a thread waited for another one: the number that
    /// has most of it.
    pub(super) fn idle_cpus(&self) -> Option<String> {
        let mut numbers: BTreeMap<&str, i128> = BTreeMap::new();
        for Leaf { context, weight } in &self.list {
            if let Some(number) = self.idle_beside(*context) {
                *numbers.entry(number).or_insert(0) += weight;
            }
        }
        let is_half = is_share(numbers.values().sum(), 50, self.total());
        let (number, _) = numbers.into_iter().max_by_key(|(_, weight)| *weight).filter(|_| is_half)?;
        Some(number.to_owned())
    }

    /// How many CPUs were idle in a wait on the path to a context, `2 of 4`.
    pub(super) fn idle_beside(&self, context: ContextId) -> Option<&'a str> {
        let model = self.input.model;
        let waits = |c: &ContextId| self.is_kind(*c, FrameKind::Wait(WaitKind::Preempted));
        let path = model.contexts.path(context).into_iter().filter(waits);
        path.filter_map(|c| model.names.get(self.frame_name(c)).strip_suffix(CPUS_IDLE)).next()
    }

    /// The time of all leaves.
    pub(super) fn total(&self) -> i128 {
        self.list.iter().map(|leaf| leaf.weight).sum()
    }

    /// The deepest function that covers [`COVERS`] of the leaves whose functions are known. Functions of the
    /// runtime, those without a name, and the kernel's, only where most leaves have no other.
    pub(super) fn common_function(&self, frames: impl Fn(ContextId) -> Vec<ContextId>) -> Option<CommonFunction> {
        self.common_among(&frames, Functions::Named).or_else(|| self.common_among(&frames, Functions::All))
    }

    pub(super) fn common_among(
        &self,
        frames: &impl Fn(ContextId) -> Vec<ContextId>,
        among: Functions,
    ) -> Option<CommonFunction> {
        let mut known = 0;
        let mut with_any = 0;
        let mut covers: BTreeMap<NameId, i128> = BTreeMap::new();
        for Leaf { context, weight } in &self.list {
            let path = frames(*context);
            let names: BTreeSet<NameId> = path.iter().filter_map(|c| self.function(*c, among)).collect();
            known += if names.is_empty() { 0 } else { *weight };
            with_any += if path.iter().any(|c| self.function(*c, Functions::All).is_some()) { *weight } else { 0 };
            for name in names {
                *covers.entry(name).or_insert(0) += weight;
            }
        }
        // Too few leaves have a function name for it to represent the rest.
        if known == 0 || !is_share(known, LEAST_KNOWN, self.total()) || !is_share(known, 50, with_any) {
            return None;
        }
        let candidates = &self.list[..self.list.len().min(NAME_CANDIDATES)];
        COVERS.iter().find_map(|percent| {
            candidates.iter().find_map(|leaf| {
                frames(leaf.context).into_iter().rev().find_map(|context| {
                    let name = self.function(context, among)?;
                    is_share(*covers.get(&name)?, *percent, known).then_some(CommonFunction { name, context })
                })
            })
        })
    }

    /// The name of a function's frame.
    fn function(&self, context: ContextId, among: Functions) -> Option<NameId> {
        let any = among == Functions::All;
        let frame = self.input.model.contexts.frame(context);
        match frame.kind {
            FrameKind::Function if any || self.input.model.names.is_program_function(frame.name) => Some(frame.name),
            FrameKind::KernelFunction if any => Some(frame.name),
            _ => None,
        }
    }

    /// The call of the message passing library in which at least half of the time was waited: it says more than the
    /// function around it.
    fn message_call(&self) -> Option<NameId> {
        let mut calls: BTreeMap<NameId, i128> = BTreeMap::new();
        for Leaf { context, weight } in &self.list {
            let last = self.own_frames(*context).last().map(|c| self.frame_name(*c));
            if let Some(call) = last.filter(|name| self.input.model.names.get(*name).starts_with("MPI_")) {
                *calls.entry(call).or_insert(0) += weight;
            }
        }
        let (call, there) = calls.into_iter().max_by_key(|(call, weight)| (*weight, std::cmp::Reverse(*call)))?;
        is_share(there, 50, self.total()).then_some(call)
    }

    /// The site of a wait of the own thread: a call of the message passing library, else the common function, else the
    /// system call of the heaviest leaf.
    pub(super) fn site(&self, function: Option<CommonFunction>) -> String {
        let names = &self.input.model.names;
        match (self.message_call(), function) {
            (None, Some(function)) => names.function(function.name).into_owned(),
            (message, _) => {
                let frames = self.own_frames(self.heaviest).into_iter().rev();
                let call =
                    || frames.into_iter().find(|c| self.is_kind(*c, FrameKind::Call)).map(|c| self.frame_name(c));
                message.or_else(call).map_or_else(String::new, |name| names.get(name).to_owned())
            }
        }
    }

    /// The thread to blame for a wait: the part's thread, or the one with the largest share where there are several;
    /// for the disk another process that had [`DISK_USER`] percent of it (threads of the same program are fellow
    /// sufferers).
    pub(super) fn culprit(&self, part: &DifferencePart) -> Option<(Blame, BlamedThread)> {
        if part.kind == WaitKind::Disk && self.are_mostly(&[IDLE_DISK, IDLE_LIMITED_DISK]) {
            return None;
        }
        if let Some(thread) = part.blamed.as_ref().filter(|blamed| blamed.thread.is_some()) {
            return Some((Blame::One, thread.clone()));
        }
        if part.blamed.is_none() && !part.several && part.kind != WaitKind::Disk {
            return None;
        }
        let whole = part.difference.abs();
        let own = self.input.model.names.get(self.process(self.heaviest));
        let mut shares: BTreeMap<BlamedThread, i128> = BTreeMap::new();
        for leaf in &self.list {
            if let Some(thread) = self.input.blamed(leaf.context) {
                *shares.entry(thread).or_insert(0) += leaf.weight;
            }
        }
        if part.kind == WaitKind::Disk {
            shares.retain(|of, share| of.process != own && is_share(*share, DISK_USER, whole));
        }
        let (thread, share) = shares.into_iter().max_by_key(|(_, share)| *share)?;
        let blame = match part.blamed {
            _ if part.several => Blame::Several,
            Some(_) if !is_share(share, COVERS[0], whole) => Blame::Program,
            _ => Blame::One,
        };
        Some((blame, thread))
    }
}
