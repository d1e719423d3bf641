//! The tables of a recording that are resident, while its timeline is put together and afterwards: they are small, are
//! asked as a whole, or change after the kernel pass.
//!
//! The rows, of which there are many, are in [`super::segments`] and [`super::rows`].

use super::rows::{Host, HostCoverage, ImageEvent, WakeStack};
use crate::base::names::Names;
use crate::base::time::Span;
use crate::event::host::TraceOrigin;
use crate::event::remark::Remark;
use crate::event::stack::RawStacks;
use crate::model::facts::Quality;
use get_size2::GetSize;

/// The resident tables of a recording, threads apart.
#[derive(Clone, Debug, Default, GetSize)]
pub struct Tables {
    /// Names of threads, calls, devices, paths.
    pub names: Names,
    pub hosts: Vec<Host>,
    /// The traces, in the order in which they were passed to the kernel pass.
    pub traces: Vec<TraceOrigin>,
    /// Distinct raw stacks.
    pub stacks: RawStacks,
    /// Image changes sorted by time.
    pub images: Vec<ImageEvent>,
    /// By host: how well the events of its scheduler agree.
    pub quality: Vec<Quality>,
    /// Spans in which events were lost, in order, none of which touches another: results over them are marked.
    pub lossy: Vec<Span>,
    /// Hosts with a kernel trace. The buffers of a snapshot reach back unequally far, and user-space events may outlast
    /// those of the kernel; outside these spans states are guesses.
    pub covered: Vec<HostCoverage>,
    /// From the first to the last event.
    pub span: Span,
    /// The threads are the ranks of an MPI run and their threads: each is called by its name, its calls are regions.
    pub of_ranks: bool,
    /// Kernel call chains of wake-ups, in order of time.
    pub wake_stacks: Vec<WakeStack>,
    /// What events say of threads besides, in order of time.
    pub remarks: Vec<Remark>,
}
