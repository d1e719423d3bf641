//! Output of commands, for people and programs: text, JSON, the report, profiles. Views only read.

pub mod anomalies;
pub mod archive;
mod choice_text;
pub mod compared_causes;
pub mod diff_parts;
pub mod execution_text;
pub mod executions;
pub mod function_text;
pub mod info;
pub mod json;
pub mod lanes;
pub mod markup;
pub mod missing;
pub mod overview;
pub mod page;
pub mod profile;
mod profile_text;
pub mod query;
pub mod report;
pub mod stats;
pub mod stderr;
mod stored;
pub mod strips;
pub mod text;
pub mod waiting;
pub mod words;
