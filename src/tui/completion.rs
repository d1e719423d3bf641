//! Completion of filters being typed: metrics, operators, names, units and percentiles.
//!
//! In: the text before the cursor and the [`Vocabulary`] of the executions. Out: the texts that may stand in place of
//! its last word. The grammar is that of [`compare::filter`](crate::compare::filter), which alone decides whether a
//! text is a filter. Cost O(text + candidates).

use super::counts::HistogramCounts;
use crate::model::Model;
use crate::model::metric::{Metric, Unit};
use crate::view::words;
use std::collections::BTreeSet;

/// Most candidates that are offered at once.
const MOST: usize = 40;
/// Percentiles that are offered.
const PERCENTILES: [&str; 6] = ["p50", "p90", "p95", "p99", "p99.9", "p10"];

/// A metric that these executions have.
#[derive(Clone, Debug, PartialEq, Eq)]
struct MetricWords {
    name: String,
    unit: Unit,
    /// The names that occur, for a metric that is a name.
    names: Vec<String>,
    /// Its smallest and its largest value; empty where they are not known.
    range: String,
}

/// The words that filters on these executions may contain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Vocabulary {
    metrics: Vec<MetricWords>,
}

/// The texts that may stand in place of the last word.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Completion {
    /// Byte position at which the word begins.
    pub from: usize,
    /// The texts, best first.
    pub candidates: Vec<String>,
    /// A remark about the metric of the word: its values.
    pub remark: String,
}

impl Vocabulary {
    /// The metrics of a model, in the order of the histograms, with the names that were counted.
    pub fn new(model: &Model, counts: Option<&HistogramCounts>) -> Vocabulary {
        let mut metrics: Vec<MetricWords> = Vec::new();
        for row in counts.iter().flat_map(|c| &c.rows) {
            let unit = row.metric.unit();
            let range = match (unit, row.bins.edges.as_slice()) {
                (Unit::Name, _) | (_, [] | [_]) => String::new(),
                (unit, [first, .., last]) => {
                    format!("{} to {}", unit.rounded(*first), unit.rounded(last.saturating_sub(1)))
                }
            };
            metrics.push(MetricWords { name: words::metric(&row.metric), unit, names: row.names.to_vec(), range });
        }
        let all = [Metric::Duration, Metric::Start, Metric::End, Metric::Execution].into_iter();
        let all = all.chain(model.executions.columns.iter().map(|c| c.metric.clone()));
        for metric in all {
            let name = words::metric(&metric);
            if !metrics.iter().any(|m| m.name == name) {
                metrics.push(MetricWords { name, unit: metric.unit(), names: Vec::new(), range: String::new() });
            }
        }
        Vocabulary { metrics }
    }

    /// The completion at the end of a text.
    pub fn complete(&self, before: &str) -> Completion {
        let Some(condition) = LastCondition::of(before) else {
            return self.metric(before, word_start(before));
        };
        let Some(metric) = self.metrics.iter().find(|m| m.name == condition.metric) else {
            return self.metric(before, word_start(before));
        };
        let value = &before[condition.value_at..];
        let candidates = values(metric, value);
        // Behind a whole value and a separator the next condition begins.
        if candidates.is_empty() && value.contains([',', ' ']) {
            return self.metric(before, word_start(before));
        }
        Completion { from: condition.value_at, candidates, remark: metric.remark() }
    }

    /// Names of metrics that begin with the word, then those that contain it; after a whole name its operators.
    fn metric(&self, before: &str, from: usize) -> Completion {
        let word = &before[from..];
        if let Some(metric) = self.metrics.iter().find(|m| m.name == word) {
            let operators: &[&str] = match metric.unit {
                Unit::Name => &["=", "!="],
                _ => &[">", ">=", "<", "<=", "=", "!=", " in "],
            };
            let candidates = operators.iter().map(|op| format!("{word}{op}")).collect();
            return Completion { from, candidates, remark: metric.remark() };
        }
        let names = || self.metrics.iter().map(|m| &m.name);
        let first = names().filter(|name| name.starts_with(word));
        let others = names().filter(|name| !name.starts_with(word) && name.contains(word));
        Completion { from, candidates: first.chain(others).take(MOST).cloned().collect(), remark: String::new() }
    }
}

impl MetricWords {
    fn remark(&self) -> String {
        if self.range.is_empty() { String::new() } else { format!("{}: {}", self.name, self.range) }
    }
}

/// The last condition of a text that has an operator.
struct LastCondition<'a> {
    metric: &'a str,
    /// Byte position of its value, or of the end of its range.
    value_at: usize,
}

impl LastCondition<'_> {
    fn of(text: &str) -> Option<LastCondition<'_>> {
        let sign = text.rfind(['<', '>', '=', '!']);
        let range = text.rfind(" in ");
        let (operator_at, operand_at) = match (sign, range) {
            (None, None) => return None,
            (Some(sign), range) if range.is_none_or(|range| range < sign) => {
                let first = text[..sign].trim_end_matches(['<', '>', '=', '!']).len();
                (first, sign + 1)
            }
            (_, range) => (range?, range? + " in ".len()),
        };
        let head = text[..operator_at].trim_end();
        let metric = &head[word_start(head)..];
        let end = text[operand_at..].rfind("..").map_or(operand_at, |at| operand_at + at + 2);
        let blanks = text[end..].len() - text[end..].trim_start().len();
        Some(LastCondition { metric, value_at: end + blanks })
    }
}

/// Byte position of the last word of a text.
fn word_start(text: &str) -> usize {
    text.rfind([',', ' ']).map_or(0, |at| at + 1)
}

/// The values of a metric that begin with a text.
fn values(metric: &MetricWords, typed: &str) -> Vec<String> {
    if metric.unit == Unit::Name {
        return metric.names.iter().filter(|name| name.starts_with(typed)).take(MOST).cloned().collect();
    }
    if typed.is_empty() || typed.starts_with('p') {
        return PERCENTILES.iter().filter(|p| p.starts_with(typed)).map(|p| (*p).to_owned()).collect();
    }
    let number = typed.trim_end_matches(|c: char| !c.is_ascii_digit() && c != '.');
    if number.is_empty() || !number.bytes().all(|b| b.is_ascii_digit() || b == b'.' || b == b'-') {
        return Vec::new();
    }
    let unit = &typed[number.len()..];
    let units: BTreeSet<&str> = metric.unit.units().iter().map(|(name, _)| *name).filter(|n| n.is_ascii()).collect();
    let mut fitting: Vec<&str> = units.into_iter().filter(|name| name.starts_with(unit)).collect();
    // Milliseconds and KiB are the likeliest.
    fitting.sort_by_key(|name| !matches!(*name, "ms" | "KiB"));
    fitting.into_iter().map(|name| format!("{number}{name}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vocabulary() -> Vocabulary {
        let metric = |name: &str, unit, names: &[&str]| MetricWords {
            name: name.into(),
            unit,
            names: names.iter().map(|n| (*n).to_owned()).collect(),
            range: if unit == Unit::Ns { "1.00 ms to 2.00 s".into() } else { String::new() },
        };
        Vocabulary {
            metrics: vec![
                metric("duration", Unit::Ns, &[]),
                metric("blocked.disk", Unit::Ns, &[]),
                metric("bytes_read", Unit::Bytes, &[]),
                metric("type", Unit::Name, &["append", "append all", "lookup"]),
                metric("syscalls", Unit::Count, &[]),
            ],
        }
    }

    #[test]
    fn complete_offers_metrics_operators_values_and_units() {
        let words = vocabulary();
        for (text, from, candidates) in [
            ("", 0, "duration|blocked.disk|bytes_read|type|syscalls"),
            ("d", 0, "duration|blocked.disk|bytes_read"),
            ("disk", 0, "blocked.disk"),
            ("duration", 0, "duration>|duration>=|duration<|duration<=|duration=|duration!=|duration in "),
            ("type", 0, "type=|type!="),
            ("type=a", 5, "append|append all"),
            ("type=append a", 5, "append all"),
            ("type=append dur", 12, "duration"),
            ("type=append, dur", 13, "duration"),
            ("duration>", 9, "p50|p90|p95|p99|p99.9|p10"),
            ("duration >= p9", 12, "p90|p95|p99|p99.9"),
            ("duration>20", 9, "20ms|20h|20min|20ns|20s|20us"),
            ("duration>20m", 9, "20ms|20min"),
            ("duration in 1ms..2", 17, "2ms|2h|2min|2ns|2s|2us"),
            ("duration>20ms type=l", 19, "lookup"),
            ("bytes_read<64K", 11, "64KiB|64K"),
            ("duration>20ms bl", 14, "blocked.disk"),
            ("nonsense>1", 0, ""),
        ] {
            let found = words.complete(text);
            assert_eq!((found.from, found.candidates.join("|").as_str()), (from, candidates), "{text}");
        }
        assert_eq!(words.complete("duration>2").remark, "duration: 1.00 ms to 2.00 s");
    }

    #[test]
    fn complete_takes_any_text() {
        let words = vocabulary();
        for text in ["=", " in ", "a in ..", "µ>漢 字,", "type=漢", "<>=!", ",,, ,"] {
            let found = words.complete(text);
            assert!(text.is_char_boundary(found.from), "{text}");
        }
    }
}
