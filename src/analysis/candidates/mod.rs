//! The tasks to analyse where the user named none: whose they are, and which of theirs.
//!
//! In: a timeline. Out: its programs with their tasks, the most promising first. A program for which the recording was
//! made comes before servers, these before clients, and these before programs that did most. Of one program requests
//! over sockets are asked about; where it has none, the iterations of its loops, then system calls and functions, those
//! first whose slowest twentieth takes most time beyond the median. The tracer's own threads are left out. Cost: linear
//! in segments and calls. ALGORITHMS.md 6.1.
//!
//! - `programs`: which threads are whose, and what the recording was made for
//! - `loops`, `calls`: tasks of each program
//! - `tails`: how much the slowest executions of a task take beyond the usual

mod calls;
mod loops;
mod programs;
mod tails;

pub use loops::loops;
pub use programs::{Programs, Rank};
pub use tails::{Candidate, program_task};

use super::conversations;
use super::executions::Execution;
use super::functions::FunctionNames;
use super::stack_tables::LazyStackTables;
use crate::base::ctx::{Cancelled, Ctx};
use crate::base::span_list::SpanRoom;
use crate::event::derived::{ConversationSide, Derived};
use crate::model::choice::ExecutionKind;
use crate::symbols::files::SymbolPaths;
use crate::timeline::Timeline;
pub use loops::ENOUGH;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use tails::{TaskSpans, ranked};

/// Tasks of one kind and program that are tried, at most.
const TRIED: usize = 6;

/// The tasks of a program that could be asked about.
#[derive(Clone, Debug)]
pub struct ProgramCandidates {
    /// What is known of the program.
    pub rank: Rank,
    /// Those with enough executions, in the order in which they are tried.
    pub often: Vec<Candidate>,
    /// Others, of each kind the one with most extra time.
    pub seldom: Vec<Candidate>,
}

impl ProgramCandidates {
    fn add(&mut self, tasks: Vec<Candidate>) {
        let (often, seldom): (Vec<_>, Vec<_>) = tasks.into_iter().partition(|c| c.about.executions >= ENOUGH);
        self.often.extend(often.into_iter().take(TRIED));
        self.seldom.extend(seldom.into_iter().take(1));
    }

    /// True where the recording was made for the program. A command that used hardly any CPU may have only set the
    /// time, unless it asked others, answered or waited over and over.
    pub fn is_recorded(&self) -> bool {
        let first = self.often.first().map(|candidate| candidate.about.kind);
        match self.rank {
            Rank::Recorded => true,
            Rank::Command => first.is_some_and(|kind| kind <= ExecutionKind::Iterations),
            Rank::Busiest | Rank::Other => false,
        }
    }

    /// What decides the order of programs; the least is first.
    fn order(&self) -> impl Ord + use<> {
        let first = self.often.first().map(|candidate| &candidate.about);
        let kind = first.map(|about| about.kind);
        let exchanges = kind.filter(|kind| *kind <= ExecutionKind::Questions);
        let is_busiest = self.rank == Rank::Busiest;
        let by_others = (exchanges.is_none(), exchanges, !is_busiest);
        (first.is_none(), !self.is_recorded(), by_others, kind, Reverse(first.map(|about| about.tail_ns)))
    }
}

/// What the choice among the tasks of a recording needs.
#[derive(Clone, Copy)]
pub struct CandidateSources<'a> {
    /// The states.
    pub timeline: &'a Timeline,
    /// Call stacks, for loops where no calls were recorded.
    pub stacks: &'a LazyStackTables,
    /// Symbol files.
    pub symbol_paths: &'a SymbolPaths,
    /// Calls of functions that were recorded.
    pub functions: Option<(&'a [Execution], &'a FunctionNames)>,
    /// Memory for the executions of all tasks.
    pub room: &'a SpanRoom,
}

/// The tasks of all programs, the most promising program first.
pub fn candidates(
    sources: CandidateSources<'_>,
    programs: &Programs,
    ctx: &Ctx,
) -> Result<Vec<ProgramCandidates>, Cancelled> {
    let CandidateSources { timeline, stacks, symbol_paths, functions, room } = sources;
    // The calls are read twice: as exchanges, and by themselves.
    ctx.progress.enter("tasks", 2 * timeline.call_count() as u64 + timeline.segment_count() as u64);
    let mut exchanges = exchanges(timeline, programs, room, ctx)?;
    let (mut loops, sites) = loops(timeline, programs, stacks, symbol_paths, room, ctx)?;
    let mut calls = calls::calls(timeline, programs, &sites, room, ctx)?;
    let functions = functions.map(|(called, names)| calls::functions(timeline, programs, called, names, room, ctx));
    let mut functions = functions.transpose()?.unwrap_or_default();
    let mut all = Vec::new();
    for (at, program) in programs.all.iter().enumerate() {
        let mut own = ProgramCandidates { rank: program.rank, often: Vec::new(), seldom: Vec::new() };
        let of = |tasks: &mut BTreeMap<usize, Vec<Candidate>>| tasks.remove(&at).unwrap_or_default();
        own.add(of(&mut exchanges));
        own.seldom.clear();
        // The loops of a server hold its waits for the next request; its calls are parts of what requests are.
        if own.often.is_empty() {
            own.add(of(&mut loops));
            own.add(of(&mut calls));
            own.add(of(&mut functions));
        }
        if !own.often.is_empty() || !own.seldom.is_empty() {
            all.push(own);
        }
    }
    all.sort_by_key(ProgramCandidates::order);
    Ok(all)
}

/// Requests of servers, then calls of clients, over sockets, by program.
fn exchanges(
    timeline: &Timeline,
    programs: &Programs,
    room: &SpanRoom,
    ctx: &Ctx,
) -> Result<BTreeMap<usize, Vec<Candidate>>, Cancelled> {
    let (mut served, mut asked) = (TaskSpans::new(room), TaskSpans::new(room));
    for (task, spans) in conversations::candidates(timeline, room, ctx)? {
        let Some(program) = programs.position(&task.process) else { continue };
        let of = match task.side {
            ConversationSide::Serves => &mut served,
            ConversationSide::Calls => &mut asked,
        };
        *of.of(program, Derived::Exchanges(task)) = spans;
    }
    let mut all = ranked(programs, timeline.span(), ExecutionKind::Requests, served, ctx)?;
    for (program, candidates) in ranked(programs, timeline.span(), ExecutionKind::Questions, asked, ctx)? {
        all.entry(program).or_default().extend(candidates);
    }
    Ok(all)
}

#[cfg(test)]
mod tests;
