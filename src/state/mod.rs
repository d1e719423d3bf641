//! The kernel state model and the state history.
