//! One visible thing per file, used by several screens.

pub mod histogram;
pub mod list;
pub mod page;
pub mod progress;
pub mod spacetime;
pub mod table;
