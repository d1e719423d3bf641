//! When and where an event of a file happened, and which thread ran.

/// A thread that an event names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NamedThread<'a> {
    pub tid: i32,
    /// Below 0: unknown.
    pub pid: i32,
    /// Empty: unknown.
    pub name: &'a [u8],
}

/// When and where an event happened, and which thread ran.
#[derive(Clone, Copy, Debug)]
pub(super) struct EventPlace<'a> {
    pub time: u64,
    pub cpu: u32,
    pub thread: NamedThread<'a>,
}
