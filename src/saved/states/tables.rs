//! The resident tables of a timeline as bytes.
//!
//! In: tables. Out: their bytes, and from bytes tables whose ids are those of their own entries: [`Bounds`] says which
//! ids there are. What is read is in the order in which it was written; the analyses rely on it.

use crate::base::names::{NameId, Names};
use crate::base::pack::{Pack, Unpack};
use crate::base::packed::{Packed, packed, packed_variants};
use crate::event::host::{HostId, TraceOrigin};
use crate::event::image::ImageChange;
use crate::event::prev_state::Generation;
use crate::event::remark::{KernelWork, Priority, Remark, RemarkKind};
use crate::event::stack::{RawStackId, RawStacks};
use crate::timeline::{
    CounterOwner, Host, HostCoverage, HostCpu, ImageEvent, Mark, MarkField, Tables, Thread, ThreadId, ThreadName,
    VirtualIds, WakeStack,
};

packed! {
    Host { name, kernel_release }
    TraceOrigin { host, kernel, generation }
    HostCpu { host, cpu }
    HostCoverage { host, span }
    WakeStack { woken, time, stack }
    Remark { time, host, cpu, tid, kind }
    ThreadName { from, name }
    VirtualIds { tid, pid }
    ImageEvent { time, host, pid, change }
    MarkField { name, value }
    Mark { time, task, begins, thread, trace, cpu, key, kind, fields }
    Thread { host, tid, pid, ppid, virtual_ids, names, life, parent, idle, disk_worker, has_program }
    Tables { names, hosts, traces, stacks, images, quality, lossy, covered, span, of_ranks, wake_stacks, remarks }
}

packed_variants! {
    Generation { Old, New, Unknown }
    ImageChange {
        Exec { path },
        Fork { parent_pid },
        Restart,
        Load { base, size, path, position_independent, offset },
        BuildId { base, id },
        DebugLink { base, file, crc },
        Unload { base },
    }
    CounterOwner { Thread(thread), Cpu(host, cpu) }
    KernelWork { Reclaim, GroupReclaim, Compaction, WriteBack }
    RemarkKind {
        Priority(priority),
        Begins(work),
        Ends(work),
        Stops(tid),
        TimerSends,
        Retransmits,
        Throttled,
        Frequency { cpu, khz },
        Signal { number, to },
    }
}

/// How many entries the tables have to which ids lead.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    pub names: usize,
    pub stacks: usize,
    pub threads: usize,
    pub hosts: usize,
    pub traces: usize,
}

impl Bounds {
    pub fn name(&self, id: NameId) -> bool {
        id.index() < self.names || id == Names::MISSING
    }

    pub fn thread(&self, id: ThreadId) -> bool {
        id.index() < self.threads
    }

    pub fn host(&self, id: HostId) -> bool {
        id.index() < self.hosts
    }

    pub fn stack(&self, id: RawStackId) -> bool {
        id.index() < self.stacks
    }

    pub fn mark(&self, mark: &Mark) -> bool {
        let names = mark.kind.into_iter().chain(mark.fields.iter().map(|field| field.name));
        let trace = usize::try_from(mark.trace).is_ok_and(|trace| trace < self.traces);
        trace && mark.thread.is_none_or(|thread| self.thread(thread)) && names.into_iter().all(|name| self.name(name))
    }

    /// The threads have a name each, and their ids are known.
    pub fn threads(&self, threads: &[Thread]) -> bool {
        threads.iter().all(|thread| {
            let named = thread.names.iter().all(|name| self.name(name.name));
            let in_order = thread.names.is_sorted_by_key(|name| name.from);
            let parent = thread.parent.is_none_or(|parent| self.thread(parent));
            self.host(thread.host) && named && in_order && parent
        })
    }

    /// The tables agree with each other.
    pub fn tables(&self, tables: &Tables) -> bool {
        let Tables {
            hosts,
            traces,
            images,
            quality,
            lossy,
            covered,
            wake_stacks,
            remarks,
            names: _,
            stacks: _,
            span: _,
            of_ranks: _,
        } = tables;
        let image = |image: &ImageEvent| {
            let mut known = true;
            image.change.rename(|name| known &= self.name(*name));
            known && self.host(image.host)
        };
        let waking = |waking: &WakeStack| self.thread(waking.woken) && self.stack(waking.stack);
        quality.len() == hosts.len()
            && hosts.iter().all(|host| self.name(host.name))
            && traces.iter().all(|trace| self.host(trace.host))
            && images.iter().all(image)
            && images.is_sorted_by_key(|image| image.time)
            && lossy.is_sorted_by(|a, b| a.end < b.start)
            && covered.iter().all(|covered| self.host(covered.host))
            && wake_stacks.iter().all(waking)
            && remarks.iter().all(|remark| self.host(remark.host))
            && remarks.is_sorted_by_key(|remark| remark.time)
    }

    /// The CPUs are in order, and of known hosts.
    pub fn cpus(&self, cpus: &[HostCpu]) -> bool {
        cpus.iter().all(|cpu| self.host(cpu.host)) && cpus.is_sorted_by(|a, b| a < b)
    }
}

/// Its byte.
impl Packed for Priority {
    fn pack(&self, pack: &mut Pack) {
        pack.number(self.byte().into());
    }

    fn unpack(unpack: &mut Unpack<'_>) -> Option<Self> {
        unpack.index(usize::from(u8::MAX) + 1).and_then(|byte| u8::try_from(byte).ok()).map(Priority::from_byte)
    }
}

/// Each address as its distance from the one before.
impl Packed for RawStacks {
    fn pack(&self, pack: &mut Pack) {
        pack.number(self.len() as u64);
        for at in 0..self.len() {
            let addresses = self.get(RawStackId::at(at));
            pack.number(addresses.len() as u64);
            let mut before = 0_u64;
            for address in addresses {
                pack.signed(address.wrapping_sub(before) as i64);
                before = *address;
            }
        }
    }

    fn unpack(unpack: &mut Unpack<'_>) -> Option<Self> {
        let (mut stacks, mut addresses) = (RawStacks::default(), Vec::new());
        for at in 0..unpack.index(unpack.0.len())? {
            addresses.clear();
            let mut before = 0_u64;
            for _ in 0..unpack.index(unpack.0.len().checked_add(1)?)? {
                before = before.wrapping_add(unpack.signed()? as u64);
                addresses.push(before);
            }
            (stacks.intern(&addresses).index() == at).then_some(())?;
        }
        Some(stacks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::packed::{bytes_of, value_of};
    use crate::base::time::Timestamp;

    #[test]
    fn changes_of_images_are_read_as_they_were_written() {
        let (path, time) = (NameId::at(3), Timestamp::new(-9));
        let changes = vec![
            ImageChange::Exec { path },
            ImageChange::Fork { parent_pid: -1 },
            ImageChange::Restart,
            ImageChange::Load { base: u64::MAX, size: 0, path, position_independent: true, offset: Some(8) },
            ImageChange::BuildId { base: 1, id: vec![0, 255].into() },
            ImageChange::DebugLink { base: 2, file: path, crc: u32::MAX },
            ImageChange::Unload { base: 4 },
        ];
        let event = |change| ImageEvent { time, host: HostId::at(1), pid: 7, change };
        let events: Vec<ImageEvent> = changes.into_iter().map(event).collect();
        assert_eq!(value_of::<Vec<ImageEvent>>(&bytes_of(&events)), Some(events));
    }

    #[test]
    fn stacks_keep_their_ids() {
        let mut stacks = RawStacks::default();
        let all: [&[u64]; 3] = [&[], &[u64::MAX, 0, 1 << 63], &[5, 5]];
        for stack in all {
            stacks.intern(stack);
        }
        let read: RawStacks = value_of(&bytes_of(&stacks)).unwrap();
        assert!((0..3).map(RawStackId::at).all(|id| read.get(id) == stacks.get(id)));
        // The same stack twice.
        assert!(value_of::<RawStacks>(&[2, 0, 0]).is_none());
    }
}
