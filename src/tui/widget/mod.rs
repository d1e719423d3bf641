//! One visible thing per file, used by several screens.

mod axis;
pub mod heat_map;
pub mod histogram;
pub mod lanes;
pub mod page;
pub mod progress;
pub mod spacetime;
pub mod strip;
pub mod table;
pub mod time_axis;
