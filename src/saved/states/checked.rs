//! Rows of a file before they are believed: their ids have to lead to entries of the tables.

use super::tables::Bounds;
use crate::base::names::NameId;
use crate::base::time::Span;
use crate::timeline::store::leaf::StoredRow;
use crate::timeline::{
    Call, CounterOwner, CounterValue, CpuRun, DiskRequest, PageFault, Segment, SegmentKind, Service, StackSample,
};

/// A row of a file, before it is believed.
pub(super) trait CheckedRow: StoredRow + std::fmt::Debug + 'static {
    /// Rows of a line may overlap.
    const OVERLAPS: bool = false;
    /// Its ids lead to entries of the tables.
    fn is_known(&self, bounds: &Bounds) -> bool;
    /// The row that says that those of a span are missing; `None` where a gap says so.
    fn missing(_span: Span, _reason: NameId) -> Option<Self> {
        None
    }
}

impl CheckedRow for Segment {
    fn is_known(&self, bounds: &Bounds) -> bool {
        let named = self.qualifier.is_none_or(|name| bounds.name(name));
        named && self.waker.is_none_or(|waker| bounds.thread(waker.thread)) && !self.span.is_empty()
    }

    fn missing(span: Span, reason: NameId) -> Option<Segment> {
        let (kind, waker, qualifier) = (SegmentKind::Unknown, None, Some(reason));
        (!span.is_empty()).then_some(Segment { span, kind, waker, qualifier, cpu: 0 })
    }
}

impl CheckedRow for Call {
    const OVERLAPS: bool = true;
    fn is_known(&self, bounds: &Bounds) -> bool {
        bounds.name(self.name)
    }
}

impl CheckedRow for StackSample {
    fn is_known(&self, bounds: &Bounds) -> bool {
        let named = self.weight.get().is_none_or(|weight| bounds.name(weight.event));
        named && self.user.into_iter().chain(self.kernel).all(|stack| bounds.stack(stack))
    }
}

impl CheckedRow for CpuRun {
    fn is_known(&self, bounds: &Bounds) -> bool {
        bounds.thread(self.thread)
    }
}

impl CheckedRow for DiskRequest {
    const OVERLAPS: bool = true;
    fn is_known(&self, bounds: &Bounds) -> bool {
        let threads = self.submitter.into_iter().chain(self.queued_by);
        bounds.host(self.host) && threads.into_iter().all(|thread| bounds.thread(thread))
    }
}

impl CheckedRow for Service {
    const OVERLAPS: bool = true;
    fn is_known(&self, bounds: &Bounds) -> bool {
        bounds.thread(self.thread) && bounds.thread(self.client)
    }
}

impl CheckedRow for PageFault {
    fn is_known(&self, bounds: &Bounds) -> bool {
        bounds.thread(self.thread)
    }
}

impl CheckedRow for CounterValue {
    fn is_known(&self, bounds: &Bounds) -> bool {
        match self.owner {
            CounterOwner::Thread(thread) => bounds.thread(thread),
            CounterOwner::Cpu(host, _) => bounds.host(host),
        }
    }
}
