//! What the tests, benchmarks and fuzz targets use of `view`, under its own paths.

pub mod anomalies {
    pub use crate::view::anomalies::{ListBounds, json, text, verdict, with_path};
}
pub mod archive {
    pub use crate::view::archive::ArchiveDocument;
}
pub mod diff_parts {
    pub use crate::view::diff_parts::DiffParts;
}
pub mod execution_text {
    pub use crate::view::execution_text::executions;
}
pub mod executions {
    pub use crate::view::executions::line;
}
pub mod function_text {
    pub use crate::view::function_text::text;
}
pub mod info {
    pub use crate::view::info::InfoDocument;
}
pub mod json {
    pub use crate::view::json::{diff, explain};
}
pub mod lanes {
    pub use crate::view::lanes::thread_name;
}
pub mod overview {
    pub use crate::view::overview::OverviewAnswer;
}
pub mod report {
    pub use crate::view::report::{Invocation, ReportFormat};
}
pub mod stats {
    pub use crate::view::stats::StatsTable;
}
pub mod strips {
    pub use crate::view::strips::{StripContent, json, lines};
}
pub mod text {
    pub use crate::view::page::{Glyphs, Page};
    pub use crate::view::text::{diff, explain};
}
