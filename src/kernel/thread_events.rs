//! Events that describe threads by their ids, whichever thread runs: their beginning and end, names, processes and
//! images.
//!
//! In: events with ids of the initial namespace. Out: instances of threads and changes of images. Cost: O(1) for each
//! event.

use super::fork::NewThread;
use super::machine::{BatchIds, Machine};
use super::thread_state::{Sched, ThreadState};
use crate::base::names::Names;
use crate::base::time::Timestamp;
use crate::event::host::HostId;
use crate::event::image::ImageChange;
use crate::event::kind::Kind;
use crate::kernel::threads::HostTid;
use crate::timeline::VirtualIds;

impl Machine {
    /// Apply an event that describes threads. False for any other event.
    pub(super) fn thread_event(&mut self, t: Timestamp, host: HostId, kind: Kind, ids: &mut BatchIds<'_>) -> bool {
        match kind {
            Kind::Fork { parent, child, child_pid, child_vtid, name } => {
                let parent = self.thread(host, parent, t);
                let inherited = self.threads[parent].inherited();
                let state = ThreadState::new(HostTid::new(host, child), t, Sched::New, None);
                let new = NewThread { tid: child, pid: child_pid, vtid: child_vtid, name };
                self.fork(t, parent, inherited, Box::new(state), new, ids);
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
                self.threads[thread].exit(t);
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
                    self.namespace(thread, VirtualIds { tid: vtid, pid: vpid }, level);
                }
            }
            Kind::Mapped { pid, image, build_id } => {
                let changes = std::iter::once(image).chain(build_id);
                for change in changes.filter_map(|image| ids.batch.image_of(image)) {
                    let change = change.rename(|name| ids.name(&mut self.out, *name).unwrap_or(Names::MISSING));
                    self.image(t, host, pid, change);
                }
            }
            Kind::Name { tid, pid, name } => {
                if tid > 0 {
                    let thread = self.thread(host, tid, t);
                    self.name(thread, t, name, ids);
                    if pid > 0 {
                        self.threads[thread].fill_pid(pid);
                    }
                }
            }
            _ => return false,
        }
        true
    }
}
