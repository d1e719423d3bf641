//! The comparison as SQL over the tables of `whyslow export`: the statements of docs/fleet/comparison.sql with the
//! literals of a question.
//!
//! In: a model, the comparison of its groups, an engine and the folder of the tables. Out: statements, each ended by a
//! semicolon, after the definitions of the relations that they read. What engines compute in different ways
//! (percentiles, bins, which contexts make a cause) is a literal that was computed here. Every text of a trace becomes
//! a literal without an unprinted character, by the rules of the engine: it can end no literal, and no comment.

use crate::base::clean;
use crate::base::op::Op;
use crate::compare::Comparison;
use crate::compare::filter::{Filter, Operand, Test};
use crate::compare::members::{ranked_present, sorted_present, values};
use crate::model::Model;
use crate::model::context::ContextId;
use crate::model::histogram::Bins;
use crate::model::metric::{Metric, Unit};
use crate::model::table_columns::{context_keys, metric_columns};
use std::fmt::Write;

/// The statements, which name the relations and the places of literals.
const STATEMENTS: &str = include_str!("../../docs/fleet/comparison.sql");

/// Who runs the statements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SqlEngine {
    DuckDb,
    ClickHouse,
    Spark,
}

/// Why there are no statements: one line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SqlError {
    /// A filter that tables cannot answer.
    #[error("filter `{filter}`: {why}")]
    Filter { filter: String, why: &'static str },
    /// A folder whose name is a pattern for the engine.
    #[error(
        "--tables {folder}: engines read `*`, `?`, `[`, `{{` and `,` in it as a pattern: name a folder without them"
    )]
    Pattern { folder: String },
}

impl SqlEngine {
    /// A literal of a text.
    fn text(self, text: &str) -> String {
        let is_plain = |c: char| c.is_ascii_graphic() || c == ' ' || c.is_alphanumeric();
        let mut out = String::from("'");
        for c in text.chars() {
            match (c, self) {
                ('\'', SqlEngine::DuckDb) => out.push_str("''"),
                ('\'' | '\\', SqlEngine::ClickHouse | SqlEngine::Spark) => {
                    out.push('\\');
                    out.push(c);
                }
                _ if is_plain(c) => out.push(c),
                (_, SqlEngine::DuckDb) => {
                    let _ = write!(out, "' || chr({}) || '", u32::from(c));
                }
                (_, SqlEngine::ClickHouse) => {
                    let mut bytes = [0; 4];
                    for byte in c.encode_utf8(&mut bytes).bytes() {
                        let _ = write!(out, "\\x{byte:02X}");
                    }
                }
                (_, SqlEngine::Spark) => {
                    let mut units = [0; 2];
                    for unit in c.encode_utf16(&mut units) {
                        let _ = write!(out, "\\u{unit:04X}");
                    }
                }
            }
        }
        out.push('\'');
        if out.contains("' || chr(") { format!("({out})") } else { out }
    }

    /// The name of a column.
    fn column(self, name: &str) -> String {
        match self {
            SqlEngine::DuckDb => format!("\"{name}\""),
            SqlEngine::ClickHouse | SqlEngine::Spark => format!("`{name}`"),
        }
    }

    /// The definitions of the relations that the statements read.
    fn relations(self, folder: &str) -> String {
        let mut out = String::new();
        if self == SqlEngine::ClickHouse {
            out.push_str(
                "SET join_use_nulls = 1, cast_keep_nullable = 1, use_hive_partitioning = 1,\n    \
                 schema_inference_mode = 'union', schema_inference_make_columns_nullable = 1;\n",
            );
        }
        for (table, below) in [
            ("executions", "/*/*/*.parquet"),
            ("spent", "/*/*/*.parquet"),
            ("contexts", "/*.parquet"),
            ("paths", "/*.parquet"),
        ] {
            let (files, below_folder) =
                (self.text(&format!("{folder}/{table}{below}")), self.text(&format!("{folder}/{table}")));
            let is_divided = below.matches('/').count() > 1;
            let relation = match self {
                SqlEngine::DuckDb => {
                    format!("read_parquet({files}, hive_partitioning = {is_divided}, union_by_name = true)")
                }
                SqlEngine::ClickHouse => format!("file({files}, 'Parquet')"),
                SqlEngine::Spark => format!("parquet OPTIONS (path {below_folder}, mergeSchema 'true')"),
            };
            let _ = match self {
                SqlEngine::DuckDb => {
                    writeln!(out, "CREATE OR REPLACE TEMPORARY VIEW {table} AS SELECT * FROM {relation};")
                }
                SqlEngine::ClickHouse => writeln!(out, "CREATE OR REPLACE VIEW {table} AS SELECT * FROM {relation};"),
                SqlEngine::Spark => writeln!(out, "CREATE OR REPLACE TEMPORARY VIEW {table} USING {relation};"),
            };
        }
        out
    }
}

/// A question in the words of an engine.
struct Question<'a> {
    engine: SqlEngine,
    model: &'a Model,
    /// By metric its column.
    columns: Vec<(Metric, String)>,
}

impl Question<'_> {
    /// The condition that a filter is; `others` are those of the other group.
    fn condition(&self, filter: &Filter, others: &[Filter]) -> Result<String, SqlError> {
        let error = |why| SqlError::Filter { filter: filter.to_string(), why };
        if filter.metric == Metric::Group {
            return Ok(format!("NOT coalesce({}, FALSE)", self.conditions(others, &[])?));
        }
        let value = self.value(&filter.metric).ok_or_else(|| error("the tables have no column of it"))?;
        if let Test::Compare(op, Operand::Name(name)) = &filter.test {
            // Of these the column has the number.
            let number = matches!(filter.metric, Metric::Tid | Metric::CpuId);
            let literal = match (number, name.parse::<i64>()) {
                (false, _) => self.engine.text(name),
                (true, Ok(number)) if number.to_string() == *name => name.clone(),
                (true, _) => return Err(error("a number is missing")),
            };
            let sign = if *op == Op::NotEqual { "<>" } else { "=" };
            return Ok(format!("{value} {sign} {literal}"));
        }
        if let Test::AnyOf(numbers) = &filter.test {
            let numbers: Vec<String> = numbers.iter().map(i64::to_string).collect();
            return Ok(format!("{value} IN ({})", numbers.join(", ")));
        }
        let inside = !matches!(filter.test, Test::Compare(Op::NotEqual, _));
        let equal = match &filter.test {
            Test::Compare(Op::NotEqual, operand) => {
                Filter { metric: filter.metric.clone(), test: Test::Compare(Op::Equal, operand.clone()) }
            }
            _ => filter.clone(),
        };
        let present = values(self.model, &filter.metric).unwrap_or_default();
        let range =
            equal.range(&ranked_present(self.model, &present)).ok_or_else(|| error("it is no range of numbers"))?;
        let not = if inside { "" } else { "NOT " };
        Ok(match (range.from, range.to) {
            (from, to) if from.checked_add(1) == Some(to) => {
                format!("{value} {} {from}", if inside { "=" } else { "<>" })
            }
            (from, i64::MAX) => format!("{not}({value} >= {from})"),
            (from, to) if from <= i64::MIN + 1 => format!("{not}({value} < {to})"),
            (from, to) => format!("{not}({value} >= {from} AND {value} < {to})"),
        })
    }

    /// Where the tables have a metric, in its unit.
    fn value(&self, metric: &Metric) -> Option<String> {
        let origin = self.model.origin.ns();
        Some(match metric {
            Metric::Duration => "duration_ns".to_owned(),
            Metric::Start => format!("start_ns - {origin}"),
            Metric::End => format!("start_ns + duration_ns - {origin}"),
            Metric::Trace => "label".to_owned(),
            Metric::Process => "process".to_owned(),
            Metric::Thread => "thread".to_owned(),
            Metric::Host => "host_name".to_owned(),
            Metric::Tid => "tid".to_owned(),
            Metric::CpuId => "cpu".to_owned(),
            Metric::Elapsed | Metric::Execution => return None,
            _ => {
                let (_, column) = self.columns.iter().find(|(known, _)| known == metric)?;
                self.engine.column(column)
            }
        })
    }

    /// The condition of all filters; without any, none passes.
    fn conditions(&self, filters: &[Filter], others: &[Filter]) -> Result<String, SqlError> {
        if filters.is_empty() {
            return Ok("1 = 0".to_owned());
        }
        let all: Vec<String> = filters.iter().map(|filter| self.condition(filter, others)).collect::<Result<_, _>>()?;
        Ok(format!("({})", all.join(" AND ")))
    }

    fn task(&self) -> String {
        let task = self.model.tasks.get(self.model.task).map_or("", String::as_str);
        format!("task = {}", self.engine.text(task))
    }

    /// The bins of the durations, as `diff` has them.
    fn bins(&self) -> String {
        let Bins { edges, .. } = Bins::new(&sorted_present(self.model.executions.duration.iter()), Unit::Ns);
        let row = |(bin, edges): (usize, &[i64])| {
            format!("SELECT {bin} AS bin, {} AS from_ns, {} AS to_ns", edges[0], edges[1])
        };
        edges.windows(2).enumerate().map(row).collect::<Vec<_>>().join("\n  UNION ALL ")
    }

    /// The contexts of each ranked cause; the others are in none.
    fn causes(&self, comparison: &Comparison) -> String {
        let keys = context_keys(self.model);
        let of_cause = |rank: u32, contexts: &[ContextId]| {
            let key = |at: usize| keys.get(at).map(|key| format!("SELECT {rank} AS cause, '{key}' AS path_key"));
            contexts.iter().filter_map(|context| key(context.index())).collect::<Vec<_>>()
        };
        let causes = comparison.causes.iter().filter_map(|cause| Some((cause.rank?, &cause.contexts)));
        let rows: Vec<String> = causes.flat_map(|(rank, contexts)| of_cause(rank, contexts)).collect();
        if rows.is_empty() { "SELECT 0 AS cause, '' AS path_key".to_owned() } else { rows.join("\n  UNION ALL ") }
    }
}

/// The statements for a comparison, over the tables in a folder.
pub fn statements(model: &Model, c: &Comparison, engine: SqlEngine, folder: &str) -> Result<String, SqlError> {
    if folder.contains(['*', '?', '[', '{', ',']) {
        return Err(SqlError::Pattern { folder: clean::line(folder) });
    }
    let question = Question { engine, model, columns: metric_columns(model) };
    let of_group = |own: &[Filter], others: &[Filter]| {
        Ok(format!("{} AND {}", question.task(), question.conditions(own, others)?))
    };
    let (slow, fast) = (of_group(&c.slow.filters, &c.fast.filters)?, of_group(&c.fast.filters, &c.slow.filters)?);
    let mut out = String::new();
    for (name, filters) in [("slow", &c.slow.filters), ("fast", &c.fast.filters)] {
        let filters: Vec<String> = filters.iter().map(|filter| clean::line(&filter.to_string())).collect();
        let _ = writeln!(out, "-- {name}: {}", filters.join(", "));
    }
    for cause in c.causes.iter().filter(|cause| cause.rank.is_some()) {
        let _ = writeln!(out, "-- cause {}: {}", cause.rank.unwrap_or(0), clean::line(&cause.sentence));
    }
    out.push('\n');
    out.push_str(&engine.relations(folder));
    out.push('\n');
    // A text of a trace may look like a place: each is filled once, from left to right.
    let (bins, causes, task) = (question.bins(), question.causes(c), question.task());
    let mut rest = STATEMENTS;
    while let Some(at) = rest.find('{') {
        let (before, from) = rest.split_at(at);
        let end = from.find('}').unwrap_or(from.len() - 1) + 1;
        out.push_str(before);
        out.push_str(match &from[..end] {
            "{slow}" => &slow,
            "{fast}" => &fast,
            "{bins}" => &bins,
            "{causes}" => &causes,
            "{task}" => &task,
            other => other,
        });
        rest = &from[end..];
    }
    out.push_str(rest);
    Ok(out)
}
