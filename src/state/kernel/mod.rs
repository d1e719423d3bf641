//! The kernel state model: typed events in, a sealed [`Timeline`](crate::state::timeline::Timeline) out.
//!
//! ```text
//!  chunk of all streams -> Batch of typed events   ->   Machine, event by event   ->  close -> Timeline
//!  (workers)               (read, bound, merged)        (in order, meanwhile)                  |
//!                                                                                              `-> state history
//! ```
//! [`record()`] is the way in. The [`Machine`] keeps one slot per fact (which event concerns which stands in `step`):
//! who runs on a CPU and in which interrupt context (`cpu`), what the scheduler does with a thread (`life`, `sched`,
//! `calls`), what is told of threads by name (`told`), which incarnation an id means (`who`, `user`), what losses leave
//! of that (`losses`), which send a packet comes from (`packets`), which block requests are open (`requests`), which
//! functions were entered (`functions`), what happens on a thread whoever recorded it (`common`), for whom a thread of
//! the kernel works (`works`), which user-space events two sessions delivered (`copies`). A wake-up meets all of them
//! in `label`, which says what the woken thread had waited for.

mod calls;
mod close;
mod common;
mod copies;
mod counters;
mod cpu;
mod functions;
mod handlers;
mod identity;
mod images;
mod label;
mod losses;
mod machine;
mod packets;
mod record;
mod requests;
mod sched;
mod services;
mod step;
mod thread_events;
mod thread_state;
mod user;

pub use handlers::{Handlers, HandlersError};
pub use machine::Machine;
pub use record::{Options, record};
