//! The store of a timeline's rows: lines of one family in compressed leaves.
//!
//! ```text
//!  kernel machine        every few thousand events             at the end
//!  rows that no later    OpenSlab::seal, on any worker  ->     LineStore: leaves + the parts of each line
//!  event changes    ->   (a leaf or more for each family)      (read by LineView, changed by LineStore::rewrite)
//! ```
//! A *line* has the rows of one owner (the segments of a thread, the runs of a CPU) by start. Rows are sealed in the
//! order of time, so that a leaf has the rows of all lines over some span; inside a leaf they are sorted by line. The
//! rows of a line in one leaf are a [`part`](directory::LinePart); the directory of all parts is resident and finds a
//! row with two binary searches and one leaf.
//!
//! - [`columns`]: columns of numbers, dense or sparse
//! - [`leaf_bytes`]: the bytes of a leaf, with header and checksum
//! - [`leaf`]: the rows of one leaf
//! - [`leaves`]: the leaves of a store, in memory or in a pool
//! - [`nodes`]: the R-SHT above the leaves
//! - `across`: questions about many lines at once
//! - [`pool`]: leaves in memory as far as a budget goes, the others in a file
//! - [`sums`]: the time of each thread in each state up to some of its parts
//! - [`rows`]: how the rows of each family become columns
//! - [`directory`]: the leaves of each line
//! - [`parts`]: a line as parts of leaves
//! - [`values`]: what is known of the values of a part without its leaf
//! - [`rewrite`]: rows that change after they were sealed
//! - [`whole`]: a store made of its leaves and lists, and checked
//! - [`builder`]: rows become leaves
//! - `slab_parts`: the parts of leaves become a directory
//! - [`counters`]: the values of hardware counters by owner, some at a time
//! - [`marks`]: delimiting events, which have fields of their own
//! - [`row_builders`]: the rows of all families while they are sealed, slab by slab
//! - [`families`]: the stores of a timeline
//! - [`shape`]: how large they are
//!
//! Cost: 6 to 12 bytes a row, 7 to 10 for each part and 2 to 8 in its leaf; reading a row takes some 20 ns.
//! ALGORITHMS.md 8.11.

pub mod across;
pub mod builder;
mod columns;
pub mod counters;
pub mod directory;
pub mod families;
pub mod leaf;
pub mod leaf_bytes;
pub mod leaves;
pub mod marks;
pub mod nodes;
pub mod part_value;
pub mod parts;
pub mod pool;
mod rewrite;
pub mod row_builders;
mod rows;
mod shape;
mod slab_parts;
pub mod sums;
pub mod values;
pub mod whole;

#[cfg(test)]
mod across_tests;
#[cfg(test)]
mod pool_tests;
#[cfg(test)]
mod tests;
