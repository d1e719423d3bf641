//! `query`: lines of the state history, as JSON (`whyslow.query/1`) and as text.

use crate::base::notice::Notices;
use crate::base::time::Timestamp;
use crate::base::{clean, figure};
use crate::model::history::{HistoryRow, HistoryValue};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write;

/// The document.
#[derive(Clone, Debug, Serialize)]
pub struct Answer {
    schema: &'static str,
    attribute: String,
    intervals: Vec<Interval>,
    warnings: Vec<String>,
}

#[derive(Clone, Debug, Serialize)]
struct Interval {
    /// Which of the attributes that a pattern means.
    attribute: String,
    start_ns: Timestamp,
    end_ns: Timestamp,
    /// `null`: unknown.
    value: Option<Word>,
}

#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
enum Word {
    Number(i64),
    Text(String),
}

impl Answer {
    /// The query (a path or a pattern), the rows found, and the notices about the recording.
    pub fn new(attribute: &str, rows: &[HistoryRow], notices: &Notices) -> Answer {
        let mut intervals = Vec::new();
        for row in rows {
            let path = clean::owned(&row.attribute);
            for interval in &row.intervals {
                let value = interval.value.as_ref().map(|value| match value {
                    HistoryValue::Number(n) => Word::Number(*n),
                    HistoryValue::Text(text) => Word::Text(clean::owned(text)),
                });
                let (start_ns, end_ns) = (interval.span.start, interval.span.end);
                intervals.push(Interval { attribute: path.clone(), start_ns, end_ns, value });
            }
        }
        let attribute = clean::owned(attribute);
        let warnings = notices.sentences().iter().map(|s| clean::line(s)).collect();
        Answer { schema: "whyslow.query/1", attribute, intervals, warnings }
    }

    /// For people: seconds since the first event, length, value; with the names of the threads of some attributes.
    pub fn text(&self, origin: Timestamp, names: &BTreeMap<String, String>) -> String {
        let mut out = String::new();
        let mut last = "";
        for interval in &self.intervals {
            if interval.attribute != last {
                let name = names.get(&interval.attribute);
                let name = name.map_or_else(String::new, |name| format!("  {}", clean::line(name)));
                let _ = writeln!(out, "{}{name}", interval.attribute);
                last = &interval.attribute;
            }
            let start = figure::seconds(interval.start_ns.since(origin), 9);
            let length = figure::milliseconds(interval.end_ns.since(interval.start_ns), 6);
            let value = match &interval.value {
                None => "unknown".to_owned(),
                Some(Word::Number(n)) => n.to_string(),
                Some(Word::Text(text)) => text.clone(),
            };
            // Writing to a String cannot fail.
            let _ = writeln!(out, "  {start:>14} s {length:>12} ms  {value}");
        }
        for warning in &self.warnings {
            let _ = writeln!(out, "note: {warning}");
        }
        out
    }
}
