//! (to come)
pub mod dump;
