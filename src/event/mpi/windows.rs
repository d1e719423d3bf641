//! The records of windows of memory, and of metrics, of a location.

use super::location::LocationReader;
use super::recorded::{MetricRun, NOWHERE, Participation, Sync, SyncKind, WindowLock};
use crate::base::time::Timestamp;
use crate::input::otf2::{CommunicatorMembers, MetricMode, MetricValue, RmaLock};

impl LocationReader<'_> {
    /// A fence, or another operation of all ranks of a window.
    pub(super) fn meet_at(&mut self, window: u32, collective: u8) {
        let definitions = &self.archive.definitions;
        let communicator = definitions.named.window(window).map(|window| window.communicator);
        if let Some(CommunicatorMembers { group, ranks }) = communicator.and_then(|c| definitions.members(c))
            && ranks.len() > 1
        {
            self.run.participations.push(Participation { operation: NOWHERE, group, collective, root: None });
        }
    }

    /// The innermost call decides what of the group is waited for, or given to it.
    pub(super) fn synchronise(&mut self, window: u32, group: u32) {
        let operation = self.operation();
        let Some(frame) = self.frames.last().filter(|_| operation != NOWHERE) else { return };
        let kind = match self.symbols.names.get(frame.symbol.name) {
            "MPI_Win_post" => SyncKind::Post,
            "MPI_Win_start" => SyncKind::Start,
            "MPI_Win_complete" => SyncKind::Complete,
            "MPI_Win_wait" => SyncKind::Wait,
            _ => return,
        };
        self.run.syncs.push(Sync { kind, window, group, operation });
    }

    /// A lock of a rank's part of a window.
    pub(super) fn lock_window(&mut self, what: RmaLock, window: u32, remote: u32, time: Timestamp) {
        let operation = self.operation();
        if what != RmaLock::Request && operation != NOWHERE {
            let release = what == RmaLock::Release;
            self.run.window_locks.push(WindowLock { release, window, remote, operation, time });
        }
    }

    /// Values of a metric class or instance.
    pub(super) fn measure(&mut self, metric: u32, values: &[MetricValue]) {
        let named = &self.archive.definitions.named;
        for (member, value) in named.metric(metric).iter().zip(values) {
            let at = self.run.metrics.iter().position(|m| m.member == *member).unwrap_or_else(|| {
                let by_operation = vec![None; self.run.operations.len()];
                self.run.metrics.push(MetricRun { member: *member, current: 0, by_operation });
                self.run.metrics.len() - 1
            });
            let Some(definition) = named.members.get(*member as usize) else { continue };
            let relative = definition.mode == MetricMode::Relative;
            let value = definition.whole(*value);
            if let Some(known) = self.run.metrics.get_mut(at) {
                known.current = if relative { known.current.saturating_add(value) } else { value };
            }
        }
    }
}
