//! The formats of a report, by the ending of its file.

use super::Report;
use crate::view::profile;
use std::path::Path;

/// The format of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReportFormat {
    /// One page with pictures.
    Html,
    /// A summary for a ticket.
    Markdown,
    /// The differential flame graph.
    Svg,
    /// Stacks for flamegraph.pl.
    Folded,
    /// For speedscope.app.
    Speedscope,
    Pprof,
}

/// Endings, the longer ones first.
pub const ENDINGS: [(&str, ReportFormat); 7] = [
    (".speedscope.json", ReportFormat::Speedscope),
    (".pb.gz", ReportFormat::Pprof),
    (".folded", ReportFormat::Folded),
    (".html", ReportFormat::Html),
    (".htm", ReportFormat::Html),
    (".svg", ReportFormat::Svg),
    (".md", ReportFormat::Markdown),
];

impl ReportFormat {
    /// The format of a file of this name; `None` for other endings.
    pub fn of(path: &Path) -> Option<ReportFormat> {
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
        ENDINGS.iter().find(|(ending, _)| name.ends_with(ending)).map(|(_, format)| *format)
    }

    /// The report in this format.
    pub fn write(self, report: &Report<'_>) -> Vec<u8> {
        match self {
            ReportFormat::Html => report.html().into_bytes(),
            ReportFormat::Markdown => report.markdown().into_bytes(),
            ReportFormat::Svg => report.svg().into_bytes(),
            ReportFormat::Folded => profile::folded(report.model, report.comparison).into_bytes(),
            ReportFormat::Speedscope => profile::speedscope(report.model, report.comparison),
            ReportFormat::Pprof => profile::pprof(report.model, report.comparison),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_chooses_the_format_by_the_ending() {
        let of = |name: &str| ReportFormat::of(Path::new(name));
        assert_eq!(of("/a.b/x.HTML"), Some(ReportFormat::Html));
        assert_eq!(of("x.speedscope.json"), Some(ReportFormat::Speedscope));
        assert_eq!((of("x.json"), of("html"), of("x.md/")), (None, None, Some(ReportFormat::Markdown)));
    }
}
