//! The programs of a recording: which threads are theirs, and what says that the recording was made for one of them.
//!
//! In: a timeline. Out: for each thread its program, which is all processes of one name, and the name that
//! `thread=NAME` has for it; for each program its CPU time and rank. The kernel's own threads, idle tasks and tracers
//! belong to none; where user code was recorded, neither do threads without any. Cost: linear in threads and segments.

use crate::analysis::derived::{ThreadLife, commands, threads, tracers};
use crate::analysis::processes::Processes;
use crate::base::names::{NameId, fold_digits};
use crate::base::time::{Ns, Timestamp};
use crate::timeline::questions::Asker;
use crate::timeline::reader::RowReader;
use crate::timeline::{SegmentKind, ThreadId, Timeline};
use foldhash::HashMap;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// Of all CPU time the busiest programs have together this many tenths.
const BUSIEST: i128 = 9;
/// The recorded command was the purpose of the recording if it had one part in so many of the CPU time; below it may
/// have only set the time, like `sleep`. Of a command's programs each needs as much of what they had together: others
/// may have only waited for them.
const PURPOSE: i128 = 100;

/// What is known of a program; the greatest is asked about first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rank {
    /// It is any other.
    #[default]
    Other,
    Busiest,
    /// The tracer ran it, but there it used hardly any CPU.
    Command,
    /// The recording was made for it: the tracer ran it, or recorded its system calls alone.
    Recorded,
}

#[derive(Clone, Debug)]
pub(super) struct Program {
    /// Empty for all whose names were not recorded.
    pub name: String,
    pub rank: Rank,
    /// The time for which its threads ran.
    ns: Ns,
}

/// A thread of a program.
#[derive(Clone, Debug)]
struct Member {
    program: usize,
    /// Its name with digits folded.
    name: String,
}

/// The programs of a timeline.
pub struct Programs {
    pub(super) all: Vec<Program>,
    /// By thread; `None` for those that belong to no program.
    members: Vec<Option<Member>>,
}

/// The time for which a thread ran.
fn running(reader: &RowReader<'_>, thread: ThreadId) -> Ns {
    let running = reader.segments(thread).all().filter(|segment| segment.kind == SegmentKind::Running);
    running.map(|segment| segment.span.len()).fold(0, Ns::saturating_add)
}

impl Programs {
    /// Those of a timeline; of the threads `within` alone where it names some. Cost: linear in segments.
    pub fn new(timeline: &Timeline, within: Option<&BTreeSet<ThreadId>>) -> Programs {
        let left_out = tracers(timeline);
        let reader = timeline.reader(Asker::Tasks);
        let runs_user_code =
            |id: ThreadId| !reader.calls(id).is_empty() || reader.samples(id).all().any(|s| s.user.is_some());
        let is_user_code_recorded = timeline.threads_by_id().any(|(id, _)| runs_user_code(id));
        let of_processes = names(timeline);
        let mut programs = Programs { all: Vec::new(), members: Vec::with_capacity(timeline.threads().len()) };
        let mut positions: HashMap<String, usize> = HashMap::default();
        for (id, thread) in timeline.threads_by_id() {
            let is_program = !thread.is_kernel(timeline.names()) && (!is_user_code_recorded || runs_user_code(id));
            let counts = is_program && !left_out.contains(&id) && within.is_none_or(|within| within.contains(&id));
            let name = || thread.name_at(thread.life.end).map_or("", |name| timeline.names().get(name));
            let member = counts.then(name).map(|name| {
                let program = of_processes.get(&id).map_or(name, |name| timeline.names().get(*name));
                let at = *positions.entry(program.to_owned()).or_insert(programs.all.len());
                if at == programs.all.len() {
                    programs.all.push(Program { name: program.to_owned(), rank: Rank::Other, ns: 0 });
                }
                programs.all[at].ns = programs.all[at].ns.saturating_add(running(&reader, id));
                Member { program: at, name: fold_digits(name) }
            });
            programs.members.push(member);
        }
        programs.rank(timeline, &reader);
        programs
    }

    fn rank(&mut self, timeline: &Timeline, reader: &RowReader<'_>) {
        let of = |threads: BTreeSet<ThreadId>| -> BTreeSet<usize> {
            threads.into_iter().filter_map(|id| Some(self.member(id)?.program)).collect()
        };
        // Strangers of the same name don't count: a shell that waits for the command and each `cat` are apart.
        let mut by_command: BTreeMap<usize, i128> = BTreeMap::new();
        for thread in commands(timeline) {
            if let Some(at) = self.program(thread) {
                *by_command.entry(at).or_default() += i128::from(running(reader, thread));
            }
        }
        let called =
            of(timeline.threads_by_id().map(|(id, _)| id).filter(|id| !reader.calls(*id).is_empty()).collect());
        // Damaged times can have any value: 128 bits hold every sum of them.
        let sum = |programs: &mut dyn Iterator<Item = &Program>| programs.map(|p| i128::from(p.ns)).sum::<i128>();
        let total = sum(&mut self.all.iter());
        let by_commands: i128 = by_command.values().sum();
        let mut order: Vec<usize> = (0..self.all.len()).collect();
        order.sort_by_key(|at| (Reverse(self.all[*at].ns), self.all[*at].name.clone()));
        let mut before = 0_i128;
        for at in order {
            let is_alone = called.len() == 1 && self.all.len() > 1 && called.contains(&at);
            let program = &mut self.all[at];
            program.rank = match by_command.get(&at) {
                Some(ns) if by_commands * PURPOSE >= total && ns * PURPOSE >= by_commands => Rank::Recorded,
                Some(_) => Rank::Command,
                None if is_alone => Rank::Recorded,
                None if before * 10 < total * BUSIEST => Rank::Busiest,
                None => Rank::Other,
            };
            before += i128::from(program.ns);
        }
    }

    fn member(&self, thread: ThreadId) -> Option<&Member> {
        self.members.get(thread.index())?.as_ref()
    }

    /// The program of a thread, by position.
    pub(super) fn program(&self, thread: ThreadId) -> Option<usize> {
        self.member(thread).map(|member| member.program)
    }

    /// The name of the program of a thread.
    pub fn name_of(&self, thread: ThreadId) -> Option<&str> {
        self.program(thread).and_then(|at| Some(self.all.get(at)?.name.as_str()))
    }

    /// The name of a thread of a program, with digits folded.
    pub(super) fn thread_name(&self, thread: ThreadId) -> Option<&str> {
        self.member(thread).map(|member| member.name.as_str())
    }

    /// The position of a program.
    pub(super) fn position(&self, name: &str) -> Option<usize> {
        self.all.iter().position(|program| program.name == name)
    }

    /// The name of the threads that ran most in the lives that are executions of `thread=NAME`.
    pub fn busiest(&self, timeline: &Timeline) -> Option<String> {
        let reader = timeline.reader(Asker::Tasks);
        let ran = |(name, lives): (String, Vec<ThreadLife>)| {
            let programs = lives.iter().map(|life| life.thread).filter(|id| self.member(*id).is_some());
            (programs.map(|id| running(&reader, id)).fold(0, Ns::saturating_add), Reverse(name))
        };
        let most = threads(timeline).into_iter().map(ran).filter(|(ns, _)| *ns > 0).max();
        most.map(|(_, Reverse(name))| name)
    }
}

/// By thread the last name of its process, where it is known.
fn names(timeline: &Timeline) -> HashMap<ThreadId, NameId> {
    let processes = Processes::new(timeline);
    let mut names = HashMap::default();
    for (at, process) in processes.0.iter().enumerate() {
        let Some(name) = processes.name(timeline, at, Timestamp::MAX) else { continue };
        names.extend(process.threads.iter().map(|thread| (*thread, name)));
    }
    names
}
