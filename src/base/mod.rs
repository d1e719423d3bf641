//! The foundation of all other modules: time, ids and names, notices, file bytes, ordered parallel work, small
//! statistics.

pub mod allocator;
pub mod bit_table;
pub mod block_list;
pub mod budget;
#[cfg(target_os = "linux")]
mod capabilities;
pub mod clean;
pub mod column_grid;
pub mod ctx;
pub mod cursor;
pub mod demangle;
pub mod digest;
mod export_files;
pub mod figure;
pub mod file;
pub mod givers;
pub mod hashed_ids;
pub mod heap;
pub mod large_blocks;
pub mod lazy;
pub mod mapped;
pub mod memory;
pub mod memory_error;
pub mod memory_limit;
pub mod named_frames;
mod nameless;
pub mod names;
pub mod notice;
pub mod op;
pub mod open_files;
mod output_path;
pub mod pack;
pub mod packed;
pub mod parallel;
pub mod quantity;
pub mod question_counts;
pub mod sandbox;
pub mod search;
pub mod span_list;
pub mod spans;
pub mod spelling;
pub mod spill;
pub mod statistics;
#[cfg(target_os = "linux")]
mod system_calls;
pub mod temporary;
pub mod text;
pub mod time;
pub mod time_left;
