//! The records of teams, tasks, locks and accelerators of a location: the ends of waits within one process.
//!
//! A thread of a team has nothing to do between two parts in one; a queue of an accelerator has nothing to do between
//! two operations. A task is run in the middle of a call that waits (a barrier, a `taskwait`): the rest of that call
//! after its last task is the wait. A task that goes on on another thread (untied) is there an operation from when it
//! was taken up.

use super::location::{Frame, LocationReader};
use super::recorded::{Acquired, Fork, NOWHERE, Part, PartBarrier, TaskCompletion, TaskWait, ThreadJoin};
use super::regions::Class;
use crate::base::notice::Notice;
use crate::base::time::{Span, Timestamp};
use crate::event::operation::{NO_PATH, OperationKind};
use crate::input::otf2::{CommunicatorMembers, TaskKey};

impl LocationReader<'_> {
    /// The thread is part of a team from here on. One whose region encloses nothing yet is a worker of that team, and
    /// had nothing to do since it was last part of one.
    pub(super) fn begin_part(&mut self, team: u32, time: Timestamp) {
        let Some(CommunicatorMembers { group, .. }) = self.archive.definitions.members(team) else { return };
        let mut idle = NOWHERE;
        if self.frames.is_empty() && self.forked.is_none() {
            let since = self.idle.take().unwrap_or(time);
            idle = self.run.operations.len() as u32;
            self.add_idle(Span::new(since, time));
        }
        let operation = self.run.operations.len() as u32;
        let fork = self.forked.take().map(|time| Fork { time, operation });
        self.parts.push(self.run.parts.len() as u32);
        self.run.parts.push(Part { group, time, fork, idle });
    }

    /// It is part of the team around that again, if there is one.
    pub(super) fn end_part(&mut self, time: Timestamp) {
        self.parts.pop();
        if self.frames.is_empty() {
            self.idle = Some(time);
        }
    }

    fn add_idle(&mut self, span: Span) {
        let path = self.run.paths.child(NO_PATH, self.symbols.idle);
        self.add(self.symbols.idle, OperationKind::Receive, span, path);
        self.since = span.end;
    }

    /// A thread has had nothing to do since its last operation.
    pub(super) fn idle_before_task(&mut self, time: Timestamp) {
        if let Some(since) = self.run.operations.last().map(|o| o.end) {
            self.add_idle(Span::new(since, time.max(since)));
        }
    }

    /// A queue has had nothing to do since its last operation.
    pub(super) fn idle_queue(&mut self, time: Timestamp) {
        let Some(since) = self.run.operations.last().map(|o| o.end) else { return };
        if time > since {
            self.run.idle.push(self.run.operations.len() as u32);
            self.add_idle(Span::new(since, time));
        }
    }

    /// The wait for a lock ends here: a call that takes it is left soon after; a critical region goes on.
    pub(super) fn acquire(&mut self, lock: u32, order: u32, time: Timestamp) {
        let Some(frame) = self.frames.last_mut().filter(|f| !f.encloses) else { return };
        let (start, path) = (frame.start, frame.path);
        let symbol = frame.symbol;
        let operation = self.run.operations.len() as u32;
        if symbol.class == Class::Critical {
            frame.encloses = true;
            self.add(symbol.name, OperationKind::Receive, Span::new(start, time), path);
            self.since = time;
        }
        self.run.acquired.push(Acquired { lock, order, operation, time });
    }

    /// Keep what an operation waits for by its class, beside what its records say.
    pub(super) fn list(&mut self, class: Class, operation: u32) {
        let part = self.parts.last().copied();
        match class {
            Class::Barrier => self.run.barriers.extend(part.map(|part| PartBarrier { part, operation })),
            Class::Synchronise => self.run.synchronised.push(operation),
            Class::Launch => self.run.launches.push(operation),
            Class::TaskWait => self.run.tasks.waits.push(TaskWait { operation, creator: self.task }),
            Class::Join => {
                let thread = self.joining.take();
                self.run.joins.extend(thread.map(|thread| ThreadJoin { operation, thread }));
            }
            _ => {}
        }
    }

    /// Position of the operation that ended last.
    pub(super) fn last_operation(&self) -> u32 {
        (self.run.operations.len() as u32).saturating_sub(1)
    }

    /// The thread goes on with another task, or with what it does as part of its team.
    pub(super) fn switch(&mut self, to: TaskKey, time: Timestamp) {
        self.split(time);
        self.task = Some(to).filter(|task| task.number != 0);
        self.resumed = time;
    }

    /// End the operation of the innermost call; the rest of the call is another operation.
    fn split(&mut self, time: Timestamp) {
        let open = self.frames.last_mut().filter(|f| f.task == self.task && !f.encloses);
        let Some((region, start, path)) = open.map(|f| {
            f.encloses = true;
            (f.region, f.start, f.path)
        }) else {
            return self.spend(time);
        };
        let symbol = self.symbols.of(region);
        if matches!(symbol.class, Class::Program | Class::Library) && time > start {
            self.add(symbol.name, symbol.kind, Span::new(start, time), path);
            self.since = time;
        } else {
            self.spend(time);
        }
    }

    /// The tracer wrote out its buffer: that is an operation of its own and nothing of what the program did around it.
    /// Inside a call that communicates it stays a part of that.
    pub(super) fn flush(&mut self, span: Span) {
        self.run.flushes.push(span);
        let leaf = self.frames.last().filter(|f| !f.encloses);
        if leaf.is_none_or(|f| f.symbol.class == Class::Program) {
            self.split(span.start);
            let around = self.frames.last().map_or(NO_PATH, |f| f.path);
            let path = self.run.paths.child(around, self.symbols.flush);
            self.add(self.symbols.flush, OperationKind::Work, span, path);
            self.since = span.end;
        }
    }

    /// The task is done; the thread takes up what it did before.
    pub(super) fn complete(&mut self, task: TaskKey, time: Timestamp) {
        self.spend(time);
        let operation = self.last_operation();
        self.run.tasks.completed.push(TaskCompletion { task, operation, time });
        if self.task == Some(task) {
            self.task = None;
            self.resumed = time;
        }
    }

    /// A call that waits ran tasks meanwhile: the wait is what was left after the last of them.
    pub(super) fn rest_of_wait(&mut self, frame: &Frame, rest: Span) {
        let symbol = frame.symbol;
        if matches!(symbol.class, Class::Barrier | Class::TaskWait) && rest.end >= rest.start {
            self.list(symbol.class, self.run.operations.len() as u32);
            self.add(symbol.name, symbol.kind, rest, frame.path);
            self.since = rest.end;
        }
    }

    /// The end of a region that did not begin here: of a task that another thread began.
    pub(super) fn leave_elsewhere(&mut self, region: u32, time: Timestamp) {
        let Some(task) = self.task else {
            return self.run.notices.add(Notice::EndWithoutBegin, 1, String::new);
        };
        let symbol = self.symbols.of(region);
        let ended = self.run.operations.last().map_or(Timestamp::MIN, |o| o.end);
        let start = self.resumed.max(ended).min(time);
        let around = self.frames.iter().rfind(|f| f.task == Some(task)).or(self.frames.last());
        let path = self.run.paths.child(around.map_or(NO_PATH, |f| f.path), symbol.name);
        self.add(symbol.name, symbol.kind, Span::new(start, time), path);
        self.since = time;
    }
}
