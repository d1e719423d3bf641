//! Waits for what threads share: a CPU, a disk.
//!
//! In: a segment of a path in which its thread waited for a CPU or a disk. Out: its time below the wait, by the threads
//! that ran on the CPU or had requests in flight meanwhile. Time in which the CPU was idle, for longer than a wake-up
//! takes, is apart: no thread kept this one from running, so it was held back. Cost: linear in the runs of the CPU, or
//! the requests, in the segment. ALGORITHMS.md sections 5.3 and 5.4.

use super::{OutlineId, OutlineStep, Walk};
use crate::analysis::path::PathSegment;
use crate::base::time::{Ns, Span};
use crate::model::carrier::Carrier;
use crate::model::wait_kind::WaitKind;
use crate::state::timeline::CpuRun;
use smallvec::SmallVec;

/// The longest time that a wake-up of an idle CPU takes, also from its deepest rest and in a virtual machine, in ns.
pub(super) const LONGEST_WAKE_UP: Ns = 2_000_000;

impl Walk<'_, '_> {
    /// A wait in a run queue, by the threads that ran on that CPU.
    pub(super) fn add_preempted(&mut self, node: OutlineId, segment: &PathSegment) {
        let wait = self.outline.child(Some(node), OutlineStep::Wait(WaitKind::Preempted, None));
        let timeline = self.sources.timeline;
        let host = timeline.thread(segment.thread).map(|t| t.host);
        let runs = host.map(|host| self.reader.runs(host, segment.cpu).within(segment.span));
        let runs: SmallVec<[CpuRun; 8]> = runs.into_iter().flatten().collect();
        let mut at = segment.span.start;
        for run in runs {
            let part = run.span.clip(Span::new(at, segment.span.end));
            let other = timeline.thread(run.thread).filter(|_| run.thread != segment.thread);
            let Some(other) = other.filter(|other| !other.idle || part.len() >= LONGEST_WAKE_UP) else { continue };
            self.add(wait, Span::new(at, part.start).len() as u64);
            at = part.end;
            if other.idle {
                let idle = self.outline.child(Some(wait), OutlineStep::Wait(WaitKind::Preempted, self.idle));
                self.add(idle, part.len() as u64);
                continue;
            }
            let waiting = self.hop;
            let mut from = part.start;
            let ends = other.renames_in(part).iter().map(|rename| rename.from).chain([part.end]);
            for to in ends {
                let step = OutlineStep::Thread(WaitKind::Preempted, self.name_at(other, from));
                let root = self.outline.child(Some(wait), step);
                self.hop = self.hop_to(Some(waiting), run.thread, |_| Carrier::Cpu);
                self.add_served(root, run.thread, Span::new(from, to));
                self.hop = waiting;
                self.outline.count(root, run.thread, Span::new(from, to).len() as u64);
                from = to;
            }
        }
        self.add(wait, Span::new(at, segment.span.end).len() as u64);
    }

    /// A wait for a disk, by the threads that used it.
    pub(super) fn add_disk(&mut self, node: OutlineId, segment: &PathSegment) {
        let wait = self.outline.child(Some(node), OutlineStep::Wait(WaitKind::Disk, None));
        let timeline = self.sources.timeline;
        let host = timeline.thread(segment.thread).map(|t| t.host);
        let shares = host.map(|host| self.sources.disk.shares(host, segment.thread, segment.span));
        let mut left = segment.span.len() as u64;
        for share in shares.unwrap_or_default() {
            let Some((id, other)) = share.thread.and_then(|id| Some((id, timeline.thread(id)?))) else { continue };
            let step = OutlineStep::Thread(WaitKind::Disk, self.name_at(other, share.since));
            let root = self.outline.child(Some(wait), step);
            let node = self.stack(root, id, share.since);
            let waiting = self.hop;
            self.hop = self.hop_to(Some(waiting), id, |_| Carrier::Disk);
            self.add(node, share.ns);
            self.hop = waiting;
            self.outline.count(root, id, share.ns);
            left = left.saturating_sub(share.ns);
        }
        self.add(wait, left);
    }
}
