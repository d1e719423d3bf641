//! The kernel state model: typed events in, a sealed recording out.

mod cpu;
mod handlers;
pub mod intervals;
mod label;
mod life;
mod machine;
mod packets;
mod prev_state;
mod record;
mod requests;
mod sched;
mod who;

pub use handlers::{Handlers, HandlersError};
pub use machine::{Machine, Origin};
pub use prev_state::Generation;
pub use record::{Options, record};
