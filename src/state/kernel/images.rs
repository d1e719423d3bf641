//! Which files a process has mapped, told by its own user-space tracer.
//!
//! A process in a container names itself by its ids there. Where nothing has yet told whose these are, as in the
//! enumeration with which such a recording begins, its images are kept under the ids that it gave, and become the
//! process's once a thread with these ids is known. Cost: constant per image.

use super::machine::{BatchIds, Machine};
use crate::base::names::NameId;
use crate::base::time::Timestamp;
use crate::event::image::ImageChange;
use crate::event::kind::{Event, TextId};
use crate::state::timeline::{HostId, ImageEvent, ThreadId};

impl Machine {
    /// An image event of a user-space tracer; `thread` is whose it seems to be.
    pub(super) fn user_image(
        &mut self,
        host: HostId,
        event: &Event,
        change: &ImageChange<TextId>,
        thread: Option<ThreadId>,
        ids: &mut BatchIds<'_>,
    ) {
        let nowhere = NameId::from_raw(u32::MAX);
        let change = change.rename(|name| ids.name(&mut self.out, *name).unwrap_or(nowhere));
        let vpid = ids.batch.context(event.who).and_then(|i| i.vpid.or(i.pid));
        let state = thread.and_then(|t| self.threads.get(t));
        let Some(pid) = state.map(|l| l.thread.pid).or(vpid) else { return };
        let is_certain = state.is_some_and(|l| l.confirmed || l.thread.virtual_ids.is_some());
        if let (false, Some(vpid)) = (is_certain, vpid) {
            self.unclaimed.entry((host, vpid)).or_default().push(self.out.images.len());
        }
        self.image(event.time, host, pid, change);
    }

    /// `thread` goes by the process id `vpid` in its container: what was told under that id, and by nobody known, is
    /// its process's.
    pub(super) fn claim_images(&mut self, thread: ThreadId, vpid: i32) {
        let Some(state) = self.threads.get(thread) else { return };
        let (host, pid) = (state.thread.host, state.thread.pid);
        for at in self.unclaimed.remove(&(host, vpid)).unwrap_or_default() {
            if let Some(image) = self.out.images.get_mut(at) {
                image.pid = pid;
            }
        }
    }

    pub(super) fn image(&mut self, time: Timestamp, host: HostId, pid: i32, change: ImageChange) {
        self.out.images.push(ImageEvent { time, host, pid, change });
    }
}
