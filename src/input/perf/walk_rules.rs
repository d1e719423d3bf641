//! What all walks through the files of a recording share: layouts, byte order, and the classes of records.

use super::attrs::Attrs;
use super::record_types::SideClass;
use crate::base::cursor::ByteOrder;
use crate::input::record::ClassId;

/// The properties that all walks through a file share.
#[derive(Debug)]
pub struct WalkRules {
    /// Layouts of samples.
    pub attrs: Attrs,
    /// By attr: true for tracepoints.
    pub tracepoints: Vec<bool>,
    /// Nothing but the samples of each CPU says which thread runs there: one of no thread shows that its CPU was idle.
    pub shows_idle: bool,
    /// The order of the bytes of numbers.
    pub byte_order: ByteOrder,
}

impl WalkRules {
    /// The class of a record that is no sample.
    pub fn side(&self, side: SideClass) -> ClassId {
        ClassId::at(self.tracepoints.len() + side as usize)
    }
}
