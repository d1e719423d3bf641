//! The kernel state model: typed events in, a sealed [`Timeline`](crate::timeline::Timeline) out.
//!
//! ```text
//!  chunk of all streams -> Batch of typed events   ->   Machine, event by event   ->  close -> Timeline
//!  (workers)               (read, bound, merged;        (in order, meanwhile)                  |
//!                          part of them as rows)                                               `-> state history
//! ```
//! [`record()`] is the entry point. A worker steps a machine of its own through the events that its chunk decides by
//! itself (`prepare`), and the machine takes what they have made of threads and CPUs at their places (`prepared`,
//! `slots`, `join`; their rows: `worker_rows`; packets and block requests that need nothing before the chunk:
//! `packet_pairs`, `chunk_requests`). `step` takes one of the other events and changes the slots of the [`Machine`]:
//! the thread and the interrupt contexts of a CPU (`cpu`), the scheduler's state of a thread and its open call
//! (`thread_state`, `sched`, `calls`), beginning, end and names of threads (`thread_events`, `fork`), images
//! (`images`), the thread instance of an id (`identity`, `user`), lost events (`losses`), sent packets (`packets`),
//! open block requests (`requests`), entered functions (`functions`), the clients of kernel threads (`services`),
//! hardware counters (`counters`). `common` has the events that kernel and user-space traces share; `copies` drops
//! user-space events that two sessions recorded. `label` uses all of these slots to find the cause of a wait at its
//! wake-up. `seal` moves settled rows to the store, `close` seals the timeline.

mod calls;
mod chunk_requests;
mod close;
mod common;
mod copied_events;
mod copies;
mod counters;
mod cpu;
mod ended_list;
mod ended_thread;
mod fork;
mod function_events;
mod functions;
mod handlers;
mod identity;
mod idle_state;
mod images;
mod join;
mod label;
mod loss_events;
mod losses;
mod machine;
mod packet_pairs;
mod packets;
mod prepare;
mod prepared;
mod reasons;
mod record;
mod remarks;
mod requests;
mod sched;
mod seal;
mod sealed_rows;
mod services;
mod slots;
mod step;
mod thread_events;
mod thread_state;
pub mod threads;
mod user;
mod worker_rows;

#[cfg(test)]
mod seal_tests;
#[cfg(test)]
mod threads_tests;

pub use handlers::Handlers;
pub use machine::Machine;
pub use record::{Options, RowsBy, record};
