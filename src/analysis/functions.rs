//! Functions whose entry and exit were recorded, as tasks: each call is an execution.
//!
//! In: a timeline with marks for all entries (their key is the function's address) and exits. Out: the calls, and the
//! name of each function. Calls nest on their thread. An exit that names its function ends the innermost call of it,
//! and those inside it stay open (a jump left them); one that names none ends the innermost call. The
//! functions' names come from the images of their processes, each address resolved once; where no file names it, the
//! address is the name. Cost: linear in the marks.

use super::executions::Execution;
use crate::base::ctx::{Cancelled, Ctx};
use crate::base::figure;
use crate::base::names::Names;
use crate::base::notice::{Notice, Notices};
use crate::base::time::{Span, Timestamp};
use crate::event::host::HostId;
use crate::event::stack::RawStacks;
use crate::symbols::files::SymbolPaths;
use crate::symbols::images::Spaces;
use crate::symbols::{AddressKind, ProcessStack, StackResolver};
use crate::timeline::questions::Asker;
use crate::timeline::{MarkRow, ThreadId, Timeline};
use foldhash::HashMap;
use std::collections::{BTreeMap, BTreeSet};

/// A function in a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CalledFunction {
    host: HostId,
    pid: i32,
    /// The bits of its address.
    address: i64,
}

/// All calls of the functions of a task, ordered as executions are.
pub fn pair(timeline: &Timeline, task: u32, notices: &mut Notices) -> Vec<Execution> {
    let mut open: HashMap<ThreadId, Vec<MarkRow>> = HashMap::default();
    let mut calls = Vec::new();
    for mark in timeline.reader(Asker::Functions).marks().filter(|m| m.task == task) {
        let Some(thread) = mark.thread else { continue };
        let begun = open.entry(thread).or_default();
        if mark.begins {
            begun.push(mark);
            continue;
        }
        let at = match mark.key {
            Some(_) => begun.iter().rposition(|b| b.key == mark.key),
            None => begun.len().checked_sub(1),
        };
        let place = || {
            let tid = timeline.thread(thread).map_or(-1, |t| t.tid);
            format!("thread {tid} {}", figure::moment(mark.time.ns()))
        };
        let Some(at) = at else {
            notices.add(Notice::EndWithoutBegin, 1, place);
            continue;
        };
        notices.add(Notice::Unfinished, (begun.len() - at - 1) as u64, place);
        begun.truncate(at + 1);
        match begun.pop() {
            Some(begin) if begin.time <= mark.time => {
                let span = Span::new(begin.time, mark.time);
                calls.push(Execution { span, thread, begin: begin.number, end: mark.number });
            }
            _ => notices.add(Notice::ClockSkew, 1, place),
        }
    }
    let unfinished = open.values().map(|begun| begun.len() as u64).sum();
    notices.add(Notice::Unfinished, unfinished, String::new);
    calls.sort_by_key(|e| (e.span.start, e.span.end, e.thread));
    calls
}

/// The function whose entry a mark is.
pub fn called(timeline: &Timeline, begin: MarkRow) -> Option<CalledFunction> {
    let thread = timeline.thread(begin.thread?)?;
    Some(CalledFunction { host: thread.host, pid: thread.pid, address: begin.key? })
}

#[derive(Clone, Debug, Default)]
pub struct FunctionNames(BTreeMap<CalledFunction, String>);

impl FunctionNames {
    /// The names of all functions that were entered.
    pub fn new(
        timeline: &Timeline,
        task: u32,
        symbol_paths: &SymbolPaths,
        notices: &mut Notices,
        ctx: &Ctx,
    ) -> Result<FunctionNames, Cancelled> {
        let cache = symbol_paths.known.clone().unwrap_or_default();
        let spaces = Spaces::with_code(timeline.images(), symbol_paths, &cache);
        let begins = timeline.reader(Asker::Functions).marks().filter(|m| m.task == task && m.begins);
        let mut first: BTreeMap<CalledFunction, Timestamp> = BTreeMap::new();
        for mark in begins {
            if let Some(function) = called(timeline, mark) {
                first.entry(function).or_insert(mark.time);
            }
        }
        // A stack of one address for each.
        let mut entries = RawStacks::default();
        let placed: Vec<(CalledFunction, ProcessStack)> = first
            .into_iter()
            .map(|(function, time)| {
                let CalledFunction { host, pid, address } = function;
                let stack = entries.intern(&[address as u64]);
                let addresses = AddressKind::FunctionEntry;
                let (space, code) = (spaces.at(host, pid, time), spaces.code_since(pid, time));
                (function, ProcessStack { host, pid, space, code, stack, addresses })
            })
            .collect();
        let stacks: Vec<ProcessStack> = placed.iter().map(|(_, p)| *p).collect();
        let mut names = Names::default();
        let mut resolver = StackResolver::new(timeline, &spaces, symbol_paths, &cache);
        resolver.stacks = &entries;
        let frames = resolver.resolve(&stacks, &mut names, notices, ctx)?;
        let name = |((function, _), frames): (&(CalledFunction, ProcessStack), &Vec<_>)| {
            let frame: Option<&crate::symbols::UserFrame> = frames.first();
            let known = frame.filter(|f| !f.folded).map(|f| names.get(f.name).to_owned());
            (*function, known.unwrap_or_else(|| format!("{:#x}", function.address)))
        };
        Ok(FunctionNames(placed.iter().zip(&frames).map(name).collect()))
    }

    /// The name of a function.
    pub fn name(&self, function: CalledFunction) -> &str {
        self.0.get(&function).map_or("", |name| name)
    }

    /// The functions that the user typed: by name, with or without its parameters, or by address.
    pub fn matching(&self, typed: &str) -> BTreeSet<CalledFunction> {
        let address = match typed.strip_prefix("0x") {
            Some(hex) => u64::from_str_radix(hex, 16).ok(),
            None => typed.parse().ok(),
        };
        let matches = |function: &CalledFunction, name: &str| {
            name == typed || name.split('(').next() == Some(typed) || address == Some(function.address as u64)
        };
        self.0.iter().filter(|(function, name)| matches(function, name)).map(|(function, _)| *function).collect()
    }

    /// At most three names similar to what was typed, for the message that no function has that name.
    pub fn alike(&self, typed: &str) -> Vec<&str> {
        let names: BTreeSet<&str> = self.0.values().map(String::as_str).collect();
        let near = |n: &&str| n.contains(typed) || (n.len() > 3 && typed.contains(*n));
        names.into_iter().filter(near).take(3).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::timeline_builder::TimelineBuilder;

    #[test]
    fn pair_nests_calls_and_leaves_those_open_that_a_jump_left() {
        let mut builder = TimelineBuilder::new(2);
        // f { g { } g { <jumped out of> } } on the first thread, an exit alone on the second.
        for (time, begins, thread, address) in [
            (1, true, 1, Some(10)),
            (2, true, 1, Some(20)),
            (3, false, 1, Some(20)),
            (3, false, 2, Some(20)),
            (4, true, 1, Some(20)),
            (5, false, 1, Some(10)),
            (6, true, 2, Some(10)),
            (7, true, 2, Some(10)),
            (8, false, 2, None),
            (9, false, 2, None),
        ] {
            builder.mark(time, begins, thread, address);
        }
        let mut notices = Notices::default();
        let timeline = builder.sealed();
        let calls = pair(&timeline, 0, &mut notices);
        let seen: Vec<_> =
            calls.iter().map(|c| (c.span.start.ns(), c.span.end.ns(), timeline.mark(c.begin).unwrap().key)).collect();
        assert_eq!(seen, [(1, 5, Some(10)), (2, 3, Some(20)), (6, 9, Some(10)), (7, 8, Some(10))]);
        assert_eq!((notices.count(Notice::Unfinished), notices.count(Notice::EndWithoutBegin)), (1, 1));
    }

    #[test]
    fn matching_finds_functions_by_name_or_address() {
        let function = |pid, address| CalledFunction { host: HostId::at(0), pid, address };
        let names = [(function(1, 0x40), "flush(int)"), (function(2, 0x40), "main"), (function(1, 0x80), "0x80")];
        let functions = FunctionNames(names.map(|(f, n)| (f, n.to_owned())).into());
        let matching = |typed: &str| functions.matching(typed).into_iter().collect::<Vec<_>>();
        assert_eq!(matching("flush"), [function(1, 0x40)]);
        assert_eq!(matching("0x40"), [function(1, 0x40), function(2, 0x40)]);
        assert_eq!((matching("0x80"), matching("128")), (vec![function(1, 0x80)], vec![function(1, 0x80)]));
        assert!(matching("flus").is_empty());
        assert_eq!(functions.alike("flus"), ["flush(int)"]);
    }
}
