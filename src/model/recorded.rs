//! What a trace recorded: its recorder, its events and its call stacks.
//!
//! Events have the kernel's names, `system:name`, whatever the recorder calls them, so that what a recording has can be
//! compared with what a question needs (`advice`) and with what a verdict rests on ([`need`](super::need)).

use super::recorder::TraceRecorder;
use std::collections::BTreeSet;

/// Call stacks in a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum StackKind {
    /// Of programs, at switches.
    UserAtSwitches,
    /// Of the kernel, at switches.
    KernelAtSwitches,
    /// Of running threads, at a timer's rate.
    Samples,
    /// Those of programs were followed by frame pointers.
    ByFramePointer,
}

impl StackKind {
    /// All, in the order of their bits in a database.
    pub const ALL: [StackKind; 4] =
        [StackKind::UserAtSwitches, StackKind::KernelAtSwitches, StackKind::Samples, StackKind::ByFramePointer];
}

/// What a trace recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recorded {
    /// The name of its host; empty where not recorded.
    pub host: String,
    pub recorder: TraceRecorder,
    /// Its events: those that answer a question by the names of the kernel, others as an option of the recorder names
    /// them.
    pub events: BTreeSet<String>,
    pub stacks: BTreeSet<StackKind>,
}

/// Something that archives hold only if it was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ArchiveContent {
    /// Regions of the program's own functions.
    ProgramRegions,
    /// Operations on files.
    FileOperations,
}

impl ArchiveContent {
    /// In place of an event's name.
    pub fn word(self) -> &'static str {
        match self {
            ArchiveContent::ProgramRegions => "archive:program_regions",
            ArchiveContent::FileOperations => "archive:file_operations",
        }
    }
}
