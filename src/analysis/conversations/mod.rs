//! Requests and calls as executions, from conversations over sockets (`serve:NAME`, `call:NAME`).
//!
//! In: the system calls of a timeline, with the descriptors that they name. Out: for a process as a server each request
//! with its reply, as a client each call with its answer, as marks in the timeline. In a conversation data alternates.
//! A request lasts from the receipt of its first data, or from its arrival, to the last send before more data comes, on
//! whichever threads; a call from its first send to the last of its answer. The wait for the next request is in none.
//!
//! - `process_calls`: the calls of a process in the order of their effects
//! - `arrivals`: when data had arrived
//! - `peers`: the other end of a socket, and when it sent
//! - `sockets`: what a descriptor is
//! - `exchanges`: requests with their replies
//! - `candidates`: the tasks of all processes, where none is named
//!
//! Who asks and who answers follows from `accept` and `connect`. In a conversation that is older than the recording it
//! does not show: it counts as the process has the others, and as those that created it have; else as it is asked for,
//! if no process of the name is known to be on that side. Cost: linear in the calls that name descriptors;
//! the processes of one generation in parallel. ALGORITHMS.md 6.1.

mod arrivals;
mod candidates;
mod exchanges;
mod peers;
mod process_calls;
mod sockets;
#[cfg(test)]
mod tests;

pub use candidates::candidates;

use super::iterations::{ExecutionEnd, boundary};
use super::processes::Processes;
use crate::base::ctx::{Cancelled, Ctx, Progress};
use crate::base::names::NameId;
use crate::base::notice::{Notice, Notices};
use crate::base::parallel::in_order;
use crate::base::time::{Span, Timestamp};
use crate::event::derived::{ConversationSide, Conversations};
use crate::event::descriptor::{Descriptor, DescriptorUse, NamedDescriptor};
use crate::timeline::questions::Asker;
use crate::timeline::reader::RowCursor;
use crate::timeline::store::marks::MarkStore;
use crate::timeline::{DerivedField, Mark, MarkField, Segment, ThreadId, Timeline};
use arrivals::Arrivals;
use exchanges::{Exchange, ExchangeLog, ExchangesOfSide, Irregularities, Kept, Moment, Piece};
use foldhash::HashMap;
use process_calls::{CallMeaning, CallMeanings, process_calls};
use sockets::{DescriptorLog, EndedConversations, KnownSide, OpenFiles, Origin};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// Processes above one that are looked at. Parents of processes that are older than the recording may be in a circle.
const ANCESTORS: usize = 64;

/// The conversations of a process.
struct OfProcess {
    /// By its side.
    conversations: BTreeMap<KnownSide, EndedConversations>,
    accepts: bool,
    connects: bool,
}

/// What is found of a process: its conversations, and what its children inherit.
type FoundProcess = (OfProcess, Option<DescriptorLog>);

/// The conversations of processes, found after those of the processes that created them.
struct Finder<'t> {
    timeline: &'t Timeline,
    progress: &'t Progress,
    processes: Processes,
    meanings: CallMeanings,
    /// By process: what its children inherit.
    logs: Vec<Option<DescriptorLog>>,
}

impl<'t> Finder<'t> {
    fn new(timeline: &'t Timeline, progress: &'t Progress) -> Finder<'t> {
        let processes = Processes::without_tracers(timeline);
        let logs = processes.0.iter().map(|_| None).collect();
        Finder { timeline, progress, processes, meanings: CallMeanings::new(timeline.names()), logs }
    }

    /// What a descriptor was when a process was created: in the parent, or what that one inherited.
    fn inherited(&self, process: usize, descriptor: Descriptor) -> Option<Option<Origin>> {
        let mut child = self.processes.0.get(process)?;
        for _ in 0..ANCESTORS {
            if !child.is_forked {
                break;
            }
            let parent = child.parent?;
            if let Some(known) = self.logs.get(parent)?.as_ref().and_then(|log| log.at(descriptor, child.birth)) {
                return Some(known);
            }
            child = self.processes.0.get(parent)?;
        }
        None
    }

    /// What the environment says of a descriptor of a process at a time: it names the sockets that the process has
    /// connected.
    fn sampled(&self, process: usize, descriptor: Descriptor, t: Timestamp) -> Option<Origin> {
        let thread = self.timeline.thread(*self.processes.0.get(process)?.threads.first()?)?;
        let environment = self.timeline.environment(thread.host)?;
        let at = Span::new(t, t.saturating_add(1));
        environment.server_port(thread.pid, descriptor.number(), at).map(|_| Origin::Connected)
    }

    /// By process its conversations, of those of which something is kept. The processes of one generation are looked
    /// at beside each other, after those whose descriptors they inherit.
    fn find_all<'k>(
        &mut self,
        kept: impl Fn(usize) -> Option<Kept<'k>> + Sync,
        ctx: &Ctx,
    ) -> Result<Vec<Option<OfProcess>>, Cancelled> {
        let mut all: Vec<Option<OfProcess>> = self.processes.0.iter().map(|_| None).collect();
        for generation in self.generations() {
            let mut found: Vec<Option<FoundProcess>> = Vec::with_capacity(generation.len());
            let find = |i: usize| kept(generation[i]).map(|kept| self.find(generation[i], kept));
            in_order(ctx, generation.len(), find, |_, process| found.push(process))?;
            for (at, found) in generation.iter().zip(found) {
                let Some((conversations, log)) = found else { continue };
                (all[*at], self.logs[*at]) = (Some(conversations), log);
            }
        }
        Ok(all)
    }

    /// The processes by generation: first those that no known process forked, then those that these forked, and so on.
    /// The list has a process after the one that forked it.
    fn generations(&self) -> Vec<Vec<usize>> {
        let mut generation_of: Vec<usize> = Vec::with_capacity(self.processes.0.len());
        let mut generations: Vec<Vec<usize>> = Vec::new();
        for (at, process) in self.processes.0.iter().enumerate() {
            let creator = process.parent.filter(|_| process.is_forked).and_then(|parent| generation_of.get(parent));
            let generation = creator.map_or(0, |creator| creator + 1);
            generation_of.push(generation);
            if generations.len() <= generation {
                generations.push(Vec::new());
            }
            generations[generation].push(at);
        }
        generations
    }

    /// The conversations of one process, after those that created it.
    fn find(&self, process: usize, kept: Kept<'_>) -> FoundProcess {
        let of = &self.processes.0[process];
        let reader = &self.timeline.reader(Asker::Tasks);
        let before = |descriptor: Descriptor, t: Timestamp| {
            self.inherited(process, descriptor).flatten().or_else(|| self.sampled(process, descriptor, t))
        };
        let mut files = OpenFiles::new(of.threads.len(), kept, &before, of.has_forked);
        let mut arrivals = Arrivals::new(reader, &self.meanings, &of.threads);
        for one in process_calls(reader, &self.meanings, &of.threads, self.progress) {
            let Some(thread) = of.threads.get(one.thread).copied() else { continue };
            let call = &one.call;
            let is_datagram = call.descriptor.is_some_and(NamedDescriptor::is_addressed);
            match (one.meaning, call.descriptor.map(NamedDescriptor::descriptor)) {
                (CallMeaning::Polls, _) => arrivals.polled(one.thread, call),
                (CallMeaning::Sleeps, _) => files.rested(one.thread, call.span.end),
                (CallMeaning::Makes(origin), _) => files.made(call, origin),
                (CallMeaning::Uses(by @ (DescriptorUse::Read | DescriptorUse::Receive)), Some(descriptor)) => {
                    let arrival = arrivals.received(one.thread, call, descriptor);
                    if let Some(bytes) = moved(call.ret) {
                        let piece = Piece { begin: arrival.at, end: call.span.end, thread, bytes, is_datagram };
                        files.received(descriptor, piece, arrival, by);
                    }
                }
                (CallMeaning::Uses(by @ (DescriptorUse::Write | DescriptorUse::Send)), Some(descriptor)) => {
                    arrivals.sent(descriptor, call.span.end);
                    if let Some(bytes) = moved(call.ret) {
                        let piece = Piece { begin: call.span.start, end: call.span.end, thread, bytes, is_datagram };
                        files.sent(descriptor, one.thread, piece, by);
                    }
                }
                (CallMeaning::Uses(by), Some(descriptor)) => {
                    if by == DescriptorUse::Accept {
                        arrivals.received(one.thread, call, descriptor);
                    }
                    if matches!(by, DescriptorUse::Close | DescriptorUse::CloseFrom) {
                        arrivals.closed(descriptor, by == DescriptorUse::CloseFrom);
                    }
                    files.used(call, descriptor, by);
                }
                (CallMeaning::Uses(_), None) => {}
            }
        }
        let (accepts, connects) = (files.accepts, files.connects);
        let (conversations, log) = files.finish();
        (OfProcess { conversations, accepts, connects }, log)
    }
}

/// The bytes that a call moved, if any.
fn moved(ret: Option<i64>) -> Option<u64> {
    ret.and_then(|ret| u64::try_from(ret).ok()).filter(|bytes| *bytes > 0)
}

/// How sure it is that a process is on a side of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Certainty {
    /// Its other conversations show another side.
    Against,
    /// Nothing shows it.
    Unknown,
    Known,
}

/// How sure it is that a process is on `side`; `accepts` and `connects`: what it and those that created it do.
fn certainty(known: KnownSide, side: ConversationSide, accepts: bool, connects: bool) -> Option<Certainty> {
    let own = match known {
        KnownSide::Server => return (side == ConversationSide::Serves).then_some(Certainty::Known),
        KnownSide::Client => return (side == ConversationSide::Calls).then_some(Certainty::Known),
        KnownSide::Either if accepts => ConversationSide::Serves,
        KnownSide::Either if connects => ConversationSide::Calls,
        KnownSide::Either => return Some(Certainty::Unknown),
    };
    Some(if own == side { Certainty::Known } else { Certainty::Against })
}

/// The exchanges of a task that are surest.
struct Found {
    exchanges: Vec<Exchange>,
    irregularities: Irregularities,
}

/// Why a task has no executions, and what to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoConversation {
    /// No process has the name.
    #[error("no process has this name or pid; `whyslow stats cpu` lists those that ran")]
    Process,
    /// No system call of the process was recorded with a descriptor.
    #[error(
        "no system call of this process was recorded with the descriptor that it names; record its system calls \
         (LTTng: --syscall; perf: raw_syscalls:* or syscalls:*)"
    )]
    Descriptors,
    /// None of its descriptors is a socket over which it answers.
    #[error("no request over a socket that this process received was answered in the recording")]
    Reply,
    /// None of its descriptors is a socket over which it was answered.
    #[error("nothing that this process sent over a socket was answered in the recording")]
    Answer,
}

/// The delimiting events of a timeline, with those of the exchanges of a task. The inner error says why there are none.
pub fn marks(
    timeline: &Timeline,
    task: u32,
    definition: &Conversations,
    notices: &mut Notices,
    ctx: &Ctx,
) -> Result<Result<MarkStore, NoConversation>, Cancelled> {
    let found = match find(timeline, definition, ctx)? {
        Ok(found) => found,
        Err(why) => return Ok(Err(why)),
    };
    let Irregularities { unanswered, overlapping, streamed } = found.irregularities;
    notices.add(Notice::Unanswered, unanswered, String::new);
    notices.add(Notice::Overlapping, overlapping, String::new);
    notices.add(Notice::Streamed, streamed, String::new);
    let names = [DerivedField::Descriptor, DerivedField::BytesIn, DerivedField::BytesOut, DerivedField::Unread];
    let names = names.map(|field| timeline.field_name(field));
    Ok(Ok(timeline.marks_with(|add| {
        let reader = timeline.reader(Asker::Tasks);
        let mut segments: HashMap<ThreadId, RowCursor<'_, Segment>> = HashMap::default();
        for (key, exchange) in (0..).zip(&found.exchanges) {
            let mut at = |end: ExecutionEnd, Moment { time, thread }: Moment| {
                let segments = segments.entry(thread).or_insert_with(|| reader.segments(thread));
                Mark { key: Some(key), ..boundary(timeline, segments, thread, task, end, time) }
            };
            let time = if definition.from_arrival { exchange.arrival } else { exchange.begin.time };
            let begin = at(ExecutionEnd::Begin, Moment { time, ..exchange.begin });
            add(Mark { fields: fields(names, exchange, definition.side), ..begin });
            add(at(ExecutionEnd::End, exchange.end));
        }
    })))
}

/// What is known of an exchange, as fields of its begin.
fn fields(names: [NameId; 4], exchange: &Exchange, side: ConversationSide) -> Vec<MarkField> {
    let whole = |bytes: u64| i64::try_from(bytes).unwrap_or(i64::MAX);
    let unread = exchange.begin.time.since(exchange.arrival);
    let mut values = vec![i64::from(exchange.descriptor.number()), whole(exchange.bytes_in), whole(exchange.bytes_out)];
    values.extend((side == ConversationSide::Serves).then_some(unread));
    names.into_iter().zip(values).map(|(name, value)| MarkField { name, value }).collect()
}

/// The exchanges of a task in order, those that are surest.
fn find(
    timeline: &Timeline,
    definition: &Conversations,
    ctx: &Ctx,
) -> Result<Result<Found, NoConversation>, Cancelled> {
    let reader = timeline.reader(Asker::Tasks);
    let mut finder = Finder::new(timeline, &ctx.progress);
    let named = finder.processes.named(timeline, &definition.process);
    if !named.contains(&true) {
        return Ok(Err(NoConversation::Process));
    }
    let mut wanted = named.clone();
    for (at, process) in finder.processes.0.iter().enumerate().rev() {
        // Those whose descriptors they inherit, which come before them.
        if let Some(parent) = process.parent.filter(|_| wanted[at] && process.is_forked) {
            wanted[parent] = true;
        }
    }
    let threads = finder.processes.0.iter().zip(&wanted).filter(|(_, is_wanted)| **is_wanted);
    let calls = threads.flat_map(|(process, _)| &process.threads).map(|id| reader.calls(*id).len() as u64);
    ctx.progress.enter("tasks", calls.sum());
    // Of those whose descriptors they inherit nothing else is wanted.
    let kept = |at: usize| if named[at] { Kept::Whole(definition.side) } else { Kept::Nothing };
    let mut all = finder.find_all(|at| wanted[at].then(|| kept(at)), ctx)?;
    let mut found: BTreeMap<Certainty, ExchangesOfSide> = BTreeMap::new();
    for at in (0..all.len()).filter(|at| named[*at]) {
        let is_named = |at: usize| named.get(at).copied().unwrap_or(false);
        let (accepts, connects) = family(&finder.processes, &all, is_named, at);
        let Some(of) = all.get_mut(at).and_then(Option::as_mut) else { continue };
        for (side, EndedConversations { serves, calls }) in std::mem::take(&mut of.conversations) {
            let Some(sure) = certainty(side, definition.side, accepts, connects) else { continue };
            let more = match definition.side {
                ConversationSide::Serves => serves,
                ConversationSide::Calls => calls,
            };
            match found.entry(sure) {
                Entry::Occupied(found) => found.into_mut().append(more),
                Entry::Vacant(first) => {
                    first.insert(more);
                }
            }
        }
    }
    let whole = |ExchangesOfSide { log, irregularities }| match log {
        ExchangeLog::Whole(exchanges) => Some(Found { exchanges, irregularities }),
        ExchangeLog::Nothing | ExchangeLog::Spans(_) => None,
    };
    let surest = found.into_values().filter_map(whole).rfind(|found| !found.exchanges.is_empty());
    let Some(mut found) = surest else {
        let calls = |id: &ThreadId| reader.calls(*id).all().any(|call| call.descriptor.is_some());
        let mut threads = finder.processes.0.iter().zip(&named).filter(|(_, named)| **named);
        let has_descriptors = threads.any(|(process, _)| process.threads.iter().any(calls));
        return Ok(Err(match definition.side {
            _ if !has_descriptors => NoConversation::Descriptors,
            ConversationSide::Serves => NoConversation::Reply,
            ConversationSide::Calls => NoConversation::Answer,
        }));
    };
    found.exchanges.sort_unstable();
    Ok(Ok(found))
}

/// True where a process, or one of those of the same name above it, accepts connections; true where it connects.
fn family(
    processes: &Processes,
    all: &[Option<OfProcess>],
    is_named: impl Fn(usize) -> bool,
    process: usize,
) -> (bool, bool) {
    let (mut accepts, mut connects) = (false, false);
    let mut at = Some(process);
    for _ in 0..ANCESTORS {
        let of_name = at.filter(|at| is_named(*at));
        let Some((position, of)) = of_name.and_then(|at| Some((at, all.get(at)?.as_ref()?))) else { break };
        accepts |= of.accepts;
        connects |= position == process && of.connects;
        at = processes.0.get(position).and_then(|process| process.parent);
    }
    (accepts, connects)
}
