//! What is kept in files: executions ([`executions`]) and the states of a recording ([`states`]).

pub mod executions;
pub mod states;
