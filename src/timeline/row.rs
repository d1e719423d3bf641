//! A row of a line, whatever its family.

use super::questions::Family;
use super::rows::{CounterValue, CpuRun, DiskRequest, PageFault, Service};
use super::segments::{Call, Segment, StackChange, StackSample};
use crate::base::time::Span;
use get_size2::GetSize;

/// A row of a line.
pub trait Row: Copy {
    /// The rows of which it is one.
    const FAMILY: Family;
    /// When; empty for an instant.
    fn span(&self) -> Span;
}

/// Declares the rows that have a span, and those of an instant.
macro_rules! rows {
    ($($row:ident $family:ident $this:ident => $span:expr;)+) => {$(
        // It owns no block.
        impl GetSize for $row {}

        impl Row for $row {
            const FAMILY: Family = Family::$family;
            #[inline(always)]
            fn span(&self) -> Span {
                let $this = self;
                $span
            }
        }
    )+};
}

rows! {
    Segment Segments row => row.span;
    Call Calls row => row.span;
    StackSample Samples row => Span::new(row.time, row.time);
    CpuRun Runs row => row.span;
    DiskRequest Requests row => row.span;
    Service Services row => row.span;
    StackChange Stacks row => Span::new(row.time, row.time);
    PageFault Faults row => Span::new(row.time, row.time);
    CounterValue Counters row => Span::new(row.time, row.time);
}
