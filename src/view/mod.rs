//! (to come)

pub mod anomalies;
