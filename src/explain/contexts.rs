//! From the outline, whose steps are whole stacks, to contexts, whose steps are frames with names.
//!
//! Each stack in the outline is resolved once; then each node of the outline gets its context below that of its parent.
//! The visible part of a stack:
//!
//! - the functions, from the program's own first one: the frames that start programs and threads explain nothing;
//! - where callers are missing, those that the stacks before and after have in common; in user mode a frame `[no
//!   stack]` below them represents the unknown ones;
//! - the system call;
//! - the kernel's functions, if symbols for them were given.
//!
//! Cost: linear in the nodes of the outline and the frames of its stacks. ALGORITHMS.md sections 5.1 to 5.3.

use crate::analysis::outline::{NoAnswer, Outline, OutlineStep};
use crate::analysis::pauses::Pauses;
use crate::analysis::stacks::{Stack, StackId, StackTable};
use crate::analysis::throttling::QuotaTotal;
use crate::base::ctx::{Cancelled, Ctx};
use crate::base::figure;
use crate::base::names::{NameId, Names};
use crate::base::notice::Notices;
use crate::base::time::Ns;
use crate::model::context::{ContextId, Contexts, Frame, FrameKind};
use crate::model::wait_kind::{CPUS_IDLE, NO_ANSWER, POLLING, QUOTA, SENT_BY, WaitKind};
use crate::symbols::cache::SymbolCache;
use crate::symbols::files::SymbolPaths;
use crate::symbols::images::Spaces;
use crate::symbols::kernel::KernelSymbols;
use crate::symbols::{ProcessStack, StackResolver, UserFrame};
use crate::timeline::Timeline;
use foldhash::HashMap;

/// Functions with which threads and programs begin, in the C libraries and run-times in use.
const STARTS: [&str; 9] = [
    "_start",
    "__libc_start_main",
    "__libc_start_main_impl",
    "__libc_start_call_main",
    "start_thread",
    "clone",
    "__clone",
    "clone3",
    "__clone3",
];

/// Sources of names.
#[derive(Debug)]
pub struct Dictionary<'a> {
    /// The recording.
    pub timeline: &'a Timeline,
    /// The stacks of the outline.
    pub stacks: &'a StackTable,
    pub spaces: &'a Spaces,
    /// Folders with symbol files.
    pub places: &'a SymbolPaths,
    /// Symbols that are known already.
    pub symbols: &'a SymbolCache,
    /// Kernel symbols, where given.
    pub kernel: Option<&'a KernelSymbols>,
    /// By host, what kept its threads from running.
    pub pauses: &'a [Pauses],
}

/// Name the steps of an outline. Returns the contexts, and for each node of the outline its context. Shown names of
/// processes and threads are ids of `names`, to which all other names are added.
pub fn name(
    outline: &Outline,
    dictionary: &Dictionary<'_>,
    names: &mut Names,
    notices: &mut Notices,
    ctx: &Ctx,
) -> Result<(Contexts, Vec<ContextId>), Cancelled> {
    let resolved = resolve(outline, dictionary, names, notices, ctx)?;
    let starts: Vec<NameId> = STARTS.iter().filter_map(|s| names.find(s)).collect();
    let mut naming = ContextNames { dictionary, resolved, starts, names, stacks: HashMap::default() };
    let mut contexts = Contexts::default();
    let mut ids: Vec<ContextId> = Vec::new();
    for (i, (parent, step)) in outline.nodes().enumerate() {
        if i % 1024 == 0 {
            ctx.cancel.check()?;
        }
        let mut at = parent.map(|p| ids[p.index()]);
        for frame in naming.frames(step) {
            at = Some(contexts.child(at, frame));
        }
        // Every step has at least one frame.
        ids.extend(at);
    }
    Ok((contexts, ids))
}

/// The functions of all user stacks in the outline.
fn resolve(
    outline: &Outline,
    dictionary: &Dictionary<'_>,
    names: &mut Names,
    notices: &mut Notices,
    ctx: &Ctx,
) -> Result<HashMap<ProcessStack, Vec<UserFrame>>, Cancelled> {
    let mut wanted: Vec<ProcessStack> = Vec::new();
    for (_, step) in outline.nodes() {
        if let OutlineStep::Stack(id) = step {
            let stack = dictionary.stacks.get(id);
            wanted.extend(stack.user);
            wanted.extend(stack.around.into_iter().flat_map(|around| [around.before, around.after]));
        }
    }
    wanted.sort_unstable();
    wanted.dedup();
    let resolver = StackResolver::new(dictionary.timeline, dictionary.spaces, dictionary.places, dictionary.symbols);
    let frames = resolver.resolve(&wanted, names, notices, ctx)?;
    Ok(wanted.into_iter().zip(frames).collect())
}

struct ContextNames<'a> {
    dictionary: &'a Dictionary<'a>,
    resolved: HashMap<ProcessStack, Vec<UserFrame>>,
    starts: Vec<NameId>,
    names: &'a mut Names,
    stacks: HashMap<StackId, Vec<Frame>>,
}

impl ContextNames<'_> {
    fn frames(&mut self, step: OutlineStep) -> Vec<Frame> {
        let mut shown = |name: Option<NameId>| name.unwrap_or_else(|| self.names.intern("unknown"));
        match step {
            OutlineStep::Process(name) => vec![Frame { kind: FrameKind::Process, name: shown(name) }],
            OutlineStep::Thread(spent, name) => vec![Frame { kind: FrameKind::Thread(spent), name: shown(name) }],
            OutlineStep::Wait(spent, what) => {
                let text = what.map_or(spent.row().frame, |what| self.dictionary.timeline.names().get(what));
                vec![Frame { kind: FrameKind::Wait(spent), name: self.names.intern(text) }]
            }
            OutlineStep::Named(spent, text) => {
                vec![Frame { kind: FrameKind::Wait(spent), name: self.names.intern(text) }]
            }
            OutlineStep::Work(work) => {
                vec![Frame { kind: FrameKind::KernelFunction, name: self.names.intern(work.name()) }]
            }
            OutlineStep::SentBy(name) => {
                let name = shown(name);
                let text = format!("{SENT_BY}{}", self.names.get(name));
                vec![Frame { kind: FrameKind::Wait(WaitKind::Stopped), name: self.names.intern(&text) }]
            }
            OutlineStep::IdleCpus(idle, all) => {
                let name = self.names.intern(&format!("{idle} of {all}{CPUS_IDLE}"));
                vec![Frame { kind: FrameKind::Wait(WaitKind::Preempted), name }]
            }
            OutlineStep::Quota(period) => {
                let name = self.names.intern(&format!("{QUOTA}{}", figure::time(period as f64)));
                vec![Frame { kind: FrameKind::Wait(WaitKind::Throttled), name }]
            }
            OutlineStep::Throttled(host, group) => {
                let throttling = self.dictionary.pauses.get(host.index()).map(|pauses| &pauses.throttling);
                let name =
                    self.names.intern(&throttling.and_then(|all| all.total(group)).map_or_else(String::new, quota));
                vec![Frame { kind: FrameKind::Wait(WaitKind::Throttled), name }]
            }
            OutlineStep::Polls(call) => {
                let name = self.names.intern(&format!("{POLLING}{}", self.dictionary.timeline.names().get(call)));
                vec![Frame { kind: FrameKind::Wait(WaitKind::Timer), name }]
            }
            OutlineStep::NoAnswer(NoAnswer { within, port }) => {
                let on = port.map(|port| format!(" on port {} ({})", port.number, port.protocol.name()));
                let within = figure::time(within as f64);
                let name = self.names.intern(&format!("{NO_ANSWER}within {within}{}", on.unwrap_or_default()));
                vec![Frame { kind: FrameKind::Wait(WaitKind::Timer), name }]
            }
            OutlineStep::Stack(id) => {
                if let Some(known) = self.stacks.get(&id) {
                    return known.clone();
                }
                let frames = self.stack(self.dictionary.stacks.get(id));
                self.stacks.insert(id, frames.clone());
                frames
            }
        }
    }

    fn stack(&mut self, stack: Stack) -> Vec<Frame> {
        let mut user = stack.user.map_or_else(Vec::new, |user| self.functions(user));
        let named = user.iter().any(|f| !f.folded);
        if let Some(around) = stack.around.filter(|_| !named) {
            let mut callers = common(&self.functions(around.before), &self.functions(around.after));
            callers.extend(user);
            user = callers;
        }
        let kind = |f: &UserFrame| match (f.folded, f.inlined) {
            (true, _) => FrameKind::File,
            (false, true) => FrameKind::Inlined,
            (false, false) => FrameKind::Function,
        };
        let function = |f: UserFrame| Frame { kind: kind(&f), name: f.name };
        let mut frames: Vec<Frame> = user.into_iter().map(function).collect();
        if let Some(call) = stack.call {
            let name = self.names.intern(self.dictionary.timeline.names().get(call));
            frames.push(Frame { kind: FrameKind::Call, name });
        }
        let kernel = stack.kernel.map_or(&[][..], |k| self.dictionary.timeline.stacks().get(k));
        for name in self.dictionary.kernel.map_or_else(Vec::new, |symbols| symbols.functions(kernel)) {
            frames.push(Frame { kind: FrameKind::KernelFunction, name: self.names.intern(name) });
        }
        let leaf = frames.last().map(|f| f.kind);
        let known = stack.user.is_some() || matches!(leaf, Some(FrameKind::Call | FrameKind::KernelFunction));
        if !known || frames.is_empty() {
            frames.push(Frame { kind: FrameKind::NoStack, name: self.names.intern("no stack") });
        }
        frames
    }

    /// The functions of a stack, outermost first, without those that start threads.
    fn functions(&self, stack: ProcessStack) -> Vec<UserFrame> {
        let all = self.resolved.get(&stack).map_or(&[][..], |f| f);
        let start = |f: &&UserFrame| f.folded || self.starts.contains(&f.name);
        let starts = all.iter().take_while(start).count().min(all.len().saturating_sub(1));
        all[starts..].to_vec()
    }
}

/// The callers that two stacks of a thread share, and that therefore did not return in between: down to the first one
/// whose call differs. Where none differs, both stacks are the same place in a loop, and only the outermost function is
/// sure not to have returned.
fn common(before: &[UserFrame], after: &[UserFrame]) -> Vec<UserFrame> {
    let alike = before.iter().zip(after).take_while(|(a, b)| a.name == b.name).count();
    let moved = before.iter().zip(after).take(alike).position(|(a, b)| a.address != b.address);
    let same_place = moved.is_none() && alike == before.len() && alike == after.len();
    let sure = if same_place { 1 } else { moved.map_or(alike, |i| i + 1) };
    let mut callers = before.get(..sure).unwrap_or(before).to_vec();
    while callers.last().is_some_and(|f| f.folded) {
        callers.pop();
    }
    callers
}

/// What is known of the quota that caused a wait: `quota of 20 ms per 100 ms, throttled 42 times for 3.1 s`.
fn quota(total: &QuotaTotal) -> String {
    let time = |ns: Ns| figure::time(ns as f64);
    let times = figure::plural(total.times, "time");
    let (quota, period) = (time(total.quota.quota), time(total.quota.period));
    format!("{QUOTA}{quota} per {period}, throttled {times} for {}", time(total.time))
}

#[cfg(test)]
mod tests {
    use crate::explain::contexts::*;

    /// Functions by letter, each with the digit of its place; `_` for a file without names.
    fn stack(text: &str) -> Vec<UserFrame> {
        let frame = |c: &[u8]| UserFrame {
            name: NameId::from_raw(c[0].into()),
            folded: c[0] == b'_',
            inlined: false,
            address: c[1].into(),
        };
        text.as_bytes().chunks_exact(2).map(frame).collect()
    }

    #[test]
    fn common_callers_end_where_one_stack_goes_on() {
        for (before, after, wanted) in [
            ("M1S1F1_1", "M1S2D1_1", "M1S1"), // S called F, then D
            ("M1S1F1_1", "M2S1F1_1", "M1"),   // M called S twice: another S
            ("M1S1F1_1", "M1S1F1_1", "M1"),   // a loop of an unknown function
            ("M1S1F1_1", "M1S1F2_1", "M1S1F1"),
            ("M1_1", "M2H1_1", "M1"),
            ("A1_1", "B1_1", ""),
            ("_1", "_1", ""),
        ] {
            assert_eq!(common(&stack(before), &stack(after)), stack(wanted), "{before} {after}");
        }
    }
}
