//! What a tracer tells of threads by their ids, whoever runs: that they are made and end, their names, processes and
//! images.
//!
//! In: events with ids of the initial namespace. Out: lives of threads and changes of images. Cost: O(1) for each
//! event.

use super::machine::{BatchIds, Machine};
use crate::base::names::NameId;
use crate::base::time::Timestamp;
use crate::event::kind::{Kind, TextId};
use crate::state::timeline::{HostId, ImageChange};

impl Machine {
    /// Believe what an event tells of threads. False for events of another kind.
    pub(super) fn thread_event(&mut self, t: Timestamp, host: HostId, kind: Kind, ids: &mut BatchIds<'_>) -> bool {
        match kind {
            Kind::Fork { parent, child, child_pid, child_vtid, name } => {
                let parent = self.thread(host, parent, t);
                let child = self.fork(t, parent, child, child_pid, child_vtid);
                self.name(child, t, name, ids);
                if child_pid == self.threads[child].thread.tid {
                    let parent_pid = self.threads[parent].thread.pid;
                    self.image(t, host, child_pid, ImageChange::Fork { parent_pid });
                }
            }
            Kind::Exec { tid, old_tid, path } => {
                let thread = self.exec(t, host, tid, old_tid);
                self.forget_functions(thread, t);
                if let Some(path) = ids.name(&mut self.out, path) {
                    self.rename(thread, t, path);
                    self.image(t, host, tid, ImageChange::Exec { path });
                }
            }
            Kind::Exit { tid } => {
                let thread = self.thread(host, tid, t);
                self.threads[thread].exited = true;
            }
            Kind::Free { tid } => self.free(t, host, tid),
            Kind::Process(id) => {
                if let Some(process) = ids.batch.process_of(id) {
                    self.apply_state_dump(t, host, process, ids);
                }
            }
            Kind::Namespace { tid, vtid, vpid, level } => {
                if tid != 0 {
                    let thread = self.thread(host, tid, t);
                    self.namespace(thread, vtid, vpid, level);
                }
            }
            Kind::Mapped { pid, image } => {
                if let Some(change) = ids.batch.image_of(image) {
                    let nowhere = NameId::from_raw(u32::MAX);
                    let change = change.rename(|name| ids.name(&mut self.out, *name).unwrap_or(nowhere));
                    self.image(t, host, pid, change);
                }
            }
            Kind::Name { tid, pid, name } => self.called(t, host, (tid, pid), name, ids),
            _ => return false,
        }
        true
    }

    /// From `t` on the thread is called so.
    fn called(&mut self, t: Timestamp, host: HostId, (tid, pid): (i32, i32), name: TextId, ids: &mut BatchIds<'_>) {
        if tid <= 0 {
            return;
        }
        let thread = self.thread(host, tid, t);
        self.name(thread, t, name, ids);
        let state = &mut self.threads[thread];
        if pid > 0 {
            state.fill_pid(pid);
        }
    }
}
