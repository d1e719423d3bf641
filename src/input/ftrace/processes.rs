//! The processes of threads, as far as a trace.dat shows them.
//!
//! In: the records of all CPUs. Out: the process of each thread. A user stack has the id of its thread's process; a
//! `task_newtask` says whether the new task is a thread of its creator's process. All other threads have no known
//! process. Cost: constant for each record, and a sort of the new tasks.

use super::pages::PageRules;
use crate::base::cursor::{ByteOrder, bits};
use crate::input::record::ClassId;
use crate::input::tracepoint::Raw;
use crate::input::tracepoint::format::{Field, Format};
use crate::input::tracepoint::threads::Threads;

/// The flag of `clone` that makes a thread of the creator's process.
const CLONE_THREAD: u64 = 0x1_0000;

/// A task that was created.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct NewTask {
    clock: u64,
    tid: i32,
    creator: i32,
    is_thread: bool,
}

/// The records that say it, and what they have said.
#[derive(Clone, Debug, Default)]
pub struct ProcessRecords {
    /// Class and process id of user stacks.
    stack: Option<(ClassId, Field)>,
    /// Class, thread id and flags of new tasks.
    created: Option<(ClassId, Field, Field)>,
    tasks: Vec<NewTask>,
}

impl ProcessRecords {
    /// The records of these formats.
    pub fn of(formats: &[Format], rules: &PageRules) -> ProcessRecords {
        let find = |system: &str, name: &str| {
            let format = formats.iter().find(|format| format.system == system && format.name == name)?;
            let class = rules.classes.get(usize::try_from(format.id).ok()?).copied().flatten()?;
            Some((class, format))
        };
        let field = |format: &Format, name: &str| format.fields.iter().find(|field| field.name == name).cloned();
        let stack = find("ftrace", "user_stack").and_then(|(class, format)| Some((class, field(format, "tgid")?)));
        let created = find("task", "task_newtask")
            .and_then(|(class, format)| Some((class, field(format, "pid")?, field(format, "clone_flags")?)));
        ProcessRecords { stack, created, tasks: Vec::new() }
    }

    /// Note a record.
    pub fn note(&mut self, raw: &Raw<'_>, byte_order: ByteOrder, threads: &mut Threads) {
        let word = |at: usize, size: usize| bits(raw.body, at as u64 * 8, size as u32 * 8, byte_order);
        let own = || word(4, 4).map(|tid| tid as i32);
        if let Some((class, tgid)) = &self.stack
            && *class == raw.class
        {
            if let (Some(tid), Some(pid)) = (own(), word(tgid.at, 4).map(|pid| pid as i32).filter(|pid| *pid > 0)) {
                threads.belongs(tid, raw.clock, pid);
            }
        } else if let Some((class, tid, flags)) = &self.created
            && *class == raw.class
            && let (Some(creator), Some(tid), Some(flags)) = (own(), word(tid.at, 4), word(flags.at, flags.size.min(8)))
        {
            let is_thread = flags & CLONE_THREAD != 0;
            self.tasks.push(NewTask { clock: raw.clock, tid: tid as i32, creator, is_thread });
        }
    }

    /// Add the processes of the new tasks, once the names and stacks are sealed.
    pub fn finish(mut self, threads: &mut Threads) {
        self.tasks.sort_unstable();
        for NewTask { clock, tid, creator, is_thread } in self.tasks {
            // A creator of which nothing is known counts as a process of its own, as everywhere.
            let pid = if is_thread { threads.process(creator, clock).unwrap_or(creator) } else { tid };
            threads.created(tid, clock, pid);
        }
    }
}
