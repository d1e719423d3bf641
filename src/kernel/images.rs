//! The files that a process has mapped, from the events of user-space tracers.
//!
//! A process in a container names itself by its ids there. Where no thread is known yet to have these ids, as in the
//! state dump with which such a recording begins, its images are kept under the ids of their events, and are given to
//! the process once a thread with these ids is known. Cost: constant per image.

use super::machine::{BatchIds, Machine};
use crate::base::names::Names;
use crate::base::time::Timestamp;
use crate::event::host::HostId;
use crate::event::image::ImageChange;
use crate::event::kind::{Event, TextId};
use crate::timeline::{ImageEvent, ThreadId};

impl Machine {
    /// An image event of a user-space tracer, probably of the process of `thread`.
    pub(super) fn user_image(
        &mut self,
        host: HostId,
        event: &Event,
        change: &ImageChange<TextId>,
        thread: Option<ThreadId>,
        ids: &mut BatchIds<'_>,
    ) {
        let change = change.rename(|name| ids.name(&mut self.out, *name).unwrap_or(Names::MISSING));
        let vpid = ids.batch.context(event.who).and_then(|i| i.vpid.or(i.pid));
        let state = thread.and_then(|thread| self.threads.get(thread));
        let Some(pid) = state.map(|state| state.thread.pid).or(vpid) else { return };
        let is_certain = state.is_some_and(|state| state.confirmed || state.thread.virtual_ids.is_some());
        if let (false, Some(vpid)) = (is_certain, vpid) {
            self.unclaimed.entry((host, vpid)).or_default().push(self.out.tables.images.len());
        }
        self.image(event.time, host, pid, change);
    }

    /// `thread` has the process id `vpid` in its container: the images that were kept under that id are its process's.
    pub(super) fn claim_images(&mut self, thread: ThreadId, vpid: i32) {
        let Some(state) = self.threads.get(thread) else { return };
        let (host, pid) = (state.thread.host, state.thread.pid);
        for at in self.unclaimed.remove(&(host, vpid)).unwrap_or_default() {
            if let Some(image) = self.out.tables.images.get_mut(at) {
                image.pid = pid;
            }
        }
    }

    pub(super) fn image(&mut self, time: Timestamp, host: HostId, pid: i32, change: ImageChange) {
        self.out.tables.images.push(ImageEvent { time, host, pid, change });
    }
}
