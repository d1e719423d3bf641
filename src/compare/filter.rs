//! Filters: `METRIC OP VALUE`, `METRIC in A..B` and `METRIC=A,B,C`, with units and percentiles (PRODUCT.md, `FILTER`).
//!
//! In: a line of text. Out: a [`Filter`] whose `Display` writes what a user would type; numbers are parsed and printed
//! as integers, so a printed filter selects exactly the executions it was printed for. [`members`](super::members)
//! evaluates filters over a model. Errors are one line: the thing, the place, the remedy.

use super::time_of_day::TimeOfDay;
use crate::base::op::Op;
use crate::base::{quantity, spelling};
use crate::model::histogram::ValueRange;
use crate::model::metric::{ABSENT, Metric, Unit};
use crate::model::weights::RankedValues;
use std::fmt;
use std::ops::Range;
use std::str::FromStr;

/// The right-hand side.
#[derive(Clone, Debug, PartialEq)]
pub enum Operand {
    /// A number in the metric's unit (ns, bytes, count).
    Number(i64),
    /// A percentile over all executions of the task (`p95`), nearest rank.
    Percentile(f64),
    /// A name (`type=append`).
    Name(String),
    /// A time of day, on the date of the recording (`start=09:45:56`).
    TimeOfDay(TimeOfDay),
}

/// One condition.
#[derive(Clone, Debug, PartialEq)]
pub enum Test {
    /// `METRIC OP VALUE`
    Compare(Op, Operand),
    /// `METRIC in A..B`, half-open.
    In(Operand, Operand),
    /// `METRIC=A,B,C`: any of these numbers, ascending.
    AnyOf(Vec<i64>),
}

/// A condition on one metric. `Display` writes it as a user would type it.
#[derive(Clone, Debug, PartialEq)]
pub struct Filter {
    pub metric: Metric,
    /// The values that pass.
    pub test: Test,
}

/// A text that is not a filter.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("filter `{filter}`: {fault}")]
pub struct FilterError {
    filter: String,
    fault: FilterFault,
}

/// What is wrong with a filter, and the remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FilterFault {
    /// Neither an operator nor `in`.
    #[error("it has no operator: write METRIC OP VALUE (`duration>=p95`) or METRIC in A..B")]
    NoOperator,
    /// There is no such metric.
    #[error("there is no metric `{metric}`: {remedy}")]
    UnknownMetric {
        /// The text in the place of the metric.
        metric: String,
        /// Similar names, or all.
        remedy: String,
    },
    /// The value does not fit the metric.
    #[error("`{value}` is not a value of {metric}: {remedy}")]
    BadValue {
        /// The text in the place of the value.
        value: String,
        metric: String,
        /// The form of a value.
        remedy: &'static str,
    },
    /// Names have no order.
    #[error("{metric} is a name: only `=` and `!=` apply")]
    NamesHaveNoOrder { metric: String },
    /// `group` only selects the executions that are not in the other group.
    #[error("write `group!=slow` in the fast group or `group!=fast` in the slow one")]
    WrongGroup,
    /// A time without a unit.
    #[error("`{value}` has no unit: write {value}ms, {value}us or {value}ns")]
    NoUnit {
        /// The text in the place of the value.
        value: String,
    },
    /// `A..B` with `B <= A`.
    #[error("the range is empty: write the smaller bound first (the larger one is not included)")]
    EmptyRange,
}

impl FilterError {
    /// The error without the filter, for a prompt that shows the filter itself.
    pub fn fault(&self) -> &FilterFault {
        &self.fault
    }

    /// The bytes that are wrong in a text with several conditions; a prompt shows the error below them.
    pub fn place_in(&self, text: &str) -> Range<usize> {
        let from = text.find(&self.filter).unwrap_or(0);
        let (at, length) = match &self.fault {
            FilterFault::UnknownMetric { metric, .. } => (self.filter.find(metric), metric.len()),
            // A value is after the metric, which may contain the same text.
            FilterFault::BadValue { value, .. } | FilterFault::NoUnit { value } => {
                (self.filter.rfind(value), value.len())
            }
            _ => (Some(0), self.filter.len()),
        };
        let from = from + at.unwrap_or(0);
        from..from + length
    }
}

fn operand(metric: &Metric, text: &str) -> Result<Operand, FilterFault> {
    let text = text.trim();
    let bad = |remedy| FilterFault::BadValue { value: text.into(), metric: metric.name(), remedy };
    let unit = metric.unit();
    if unit == Unit::Name {
        return if text.is_empty() { Err(bad("write a name")) } else { Ok(Operand::Name(text.into())) };
    }
    if let Some(percent) = text.strip_prefix('p') {
        let plain = percent.bytes().all(|b| b.is_ascii_digit() || b == b'.');
        let percent = percent.parse::<f64>().ok().filter(|p| plain && (0.0..=100.0).contains(p));
        return percent.map(Operand::Percentile).ok_or_else(|| bad("percentiles go from p0 to p100"));
    }
    if matches!(metric, Metric::Start | Metric::End) && text.contains(':') {
        let time = TimeOfDay::parse(text).map(Operand::TimeOfDay);
        return time.ok_or_else(|| bad("times of day are written `09:45`, `09:45:56` or `09:45:56.439`, in UTC"));
    }
    if unit == Unit::Ns && text != "0" && text.parse::<f64>().is_ok() {
        return Err(FilterFault::NoUnit { value: text.into() });
    }
    quantity::parse(text, unit.units()).map(Operand::Number).ok_or_else(|| {
        bad(match unit {
            Unit::Ns => {
                "times are whole nanoseconds, written with ns, us, ms, s, min or h (`48ms`, `1.5s`), or \
                 percentiles (`p95`)"
            }
            Unit::Bytes => "sizes are written with B, KiB, MiB or GiB (`64KiB`), or percentiles (`p95`)",
            Unit::Count | Unit::Name => "write a whole number without a unit (`12`), or a percentile (`p95`)",
        })
    })
}

impl FromStr for Filter {
    type Err = FilterError;

    fn from_str(text: &str) -> Result<Self, FilterError> {
        let text = text.trim();
        parse(text).map_err(|fault| FilterError { filter: text.to_owned(), fault })
    }
}

fn parse(text: &str) -> Result<Filter, FilterFault> {
    let named = |name: &str| {
        Metric::named(name.trim()).ok_or_else(|| {
            let names: Vec<String> = Metric::known().iter().map(Metric::name).chain(["field.NAME".into()]).collect();
            let remedy = spelling::suggest(name.trim(), &names);
            FilterFault::UnknownMetric { metric: name.trim().into(), remedy }
        })
    };
    let sign_at = text.find(['<', '>', '=', '!']);
    let in_at = text.find(" in ").filter(|at| sign_at.is_none_or(|sign| *at < sign));
    if let Some(at) = in_at {
        let metric = named(&text[..at])?;
        let (from, to) = text[at + 4..].split_once("..").ok_or(FilterFault::NoOperator)?;
        if metric.unit() == Unit::Name {
            return Err(FilterFault::NamesHaveNoOrder { metric: metric.name() });
        }
        let (from, to) = (operand(&metric, from)?, operand(&metric, to)?);
        let empty = match (&from, &to) {
            (Operand::Number(a), Operand::Number(b)) => b <= a,
            (Operand::Percentile(a), Operand::Percentile(b)) => b <= a,
            _ => false,
        };
        if empty {
            return Err(FilterFault::EmptyRange);
        }
        return Ok(Filter { metric, test: Test::In(from, to) });
    }
    let at = sign_at.ok_or(FilterFault::NoOperator)?;
    let (op, value) = Op::strip(&text[at..]).ok_or(FilterFault::NoOperator)?;
    let metric = named(&text[..at])?;
    if metric.unit() == Unit::Name && !matches!(op, Op::Equal | Op::NotEqual) {
        return Err(FilterFault::NamesHaveNoOrder { metric: metric.name() });
    }
    if op == Op::Equal && metric.unit() != Unit::Name && value.contains(',') {
        return any_of(metric, value);
    }
    let value = operand(&metric, value)?;
    let is_other = |value: &Operand| matches!(value, Operand::Name(name) if name == "slow" || name == "fast");
    if metric == Metric::Group && (op != Op::NotEqual || !is_other(&value)) {
        return Err(FilterFault::WrongGroup);
    }
    Ok(Filter { metric, test: Test::Compare(op, value) })
}

/// `METRIC=A,B,C`.
fn any_of(metric: Metric, text: &str) -> Result<Filter, FilterFault> {
    let number = |text: &str| match operand(&metric, text)? {
        Operand::Number(number) => Ok(number),
        _ => {
            let remedy = "a list holds plain numbers";
            Err(FilterFault::BadValue { value: text.trim().into(), metric: metric.name(), remedy })
        }
    };
    let numbers = text.split(',').map(number).collect::<Result<Vec<i64>, FilterFault>>()?;
    Ok(Filter::any_of(metric, numbers))
}

/// Conditions in one text, separated by commas or spaces: `type=append, duration>20ms`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Filters(pub Vec<Filter>);

impl FromStr for Filters {
    type Err = FilterError;

    /// A name may hold commas and spaces: a condition ends where a metric and an operator follow.
    fn from_str(text: &str) -> Result<Self, FilterError> {
        let separators = text.match_indices([',', ' ']).map(|(at, _)| at);
        let mut starts: Vec<usize> = separators.filter(|at| begins_condition(&text[at + 1..])).collect();
        starts.push(text.len());
        let mut from = 0;
        let mut filters = Vec::new();
        for to in starts {
            let one = text[from..to].trim_matches([',', ' ']);
            if !one.is_empty() {
                filters.push(one.parse()?);
            }
            from = to;
        }
        if filters.is_empty() {
            filters.push(text.parse()?);
        }
        Ok(Filters(filters))
    }
}

/// True where a text begins with a metric and an operator.
fn begins_condition(text: &str) -> bool {
    let end = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '.').unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    let rest_is_operator = Op::strip(rest.trim_start()).is_some() || rest.trim_start().starts_with("in ");
    rest_is_operator && Metric::named(name).is_some()
}

impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let show = |operand: &Operand| match operand {
            Operand::Number(n) => self.metric.unit().exact(*n),
            Operand::Percentile(p) => format!("p{p}"),
            Operand::Name(name) => name.clone(),
            Operand::TimeOfDay(time) => time.to_string(),
        };
        match &self.test {
            Test::Compare(op, value) => write!(f, "{}{}{}", self.metric.name(), op.sign(), show(value)),
            Test::In(from, to) => write!(f, "{} in {}..{}", self.metric.name(), show(from), show(to)),
            Test::AnyOf(numbers) => {
                let numbers: Vec<String> = numbers.iter().map(|n| self.metric.unit().exact(*n)).collect();
                write!(f, "{}={}", self.metric.name(), numbers.join(","))
            }
        }
    }
}

impl Filter {
    /// `METRIC OP NUMBER`.
    pub fn compare(metric: Metric, op: Op, value: i64) -> Self {
        Filter { metric, test: Test::Compare(op, Operand::Number(value)) }
    }

    /// `METRIC OP NAME`.
    pub fn named(metric: Metric, op: Op, name: &str) -> Self {
        Filter { metric, test: Test::Compare(op, Operand::Name(name.to_owned())) }
    }

    /// `METRIC=A,B,C`, of any number of numbers.
    pub fn any_of(metric: Metric, mut numbers: Vec<i64>) -> Self {
        numbers.sort_unstable();
        numbers.dedup();
        match numbers[..] {
            [one] => Filter::compare(metric, Op::Equal, one),
            _ => Filter { metric, test: Test::AnyOf(numbers) },
        }
    }

    /// The filters that executions pass which ran at a time: since the first event (`12.5s`), or of the day
    /// (`09:45:56`), where it is as long as its last figure.
    pub fn at_time(text: &str) -> Result<Vec<Self>, FilterError> {
        let ends = if text.contains(':') { ">=" } else { ">" };
        [format!("start<={text}"), format!("end{ends}{text}")].iter().map(|filter| filter.parse()).collect()
    }

    /// The range of values that pass, over the metric's ascending present values; `None` for `!=`, lists and
    /// names, which are no ranges.
    pub fn range(&self, present: &RankedValues) -> Option<ValueRange> {
        let value = |operand: &Operand| match operand {
            Operand::Number(n) => Some(*n),
            Operand::Percentile(p) => present.nearest_rank(*p),
            Operand::Name(_) | Operand::TimeOfDay(_) => None,
        };
        let after = |v: i64| v.saturating_add(1);
        match &self.test {
            Test::In(from, to) => Some(ValueRange { from: value(from)?, to: value(to)? }),
            Test::AnyOf(_) => None,
            Test::Compare(op, operand) => {
                let v = value(operand)?;
                let (first, end) = (after(ABSENT), i64::MAX);
                match op {
                    Op::Less => Some(ValueRange { from: first, to: v }),
                    Op::AtMost => Some(ValueRange { from: first, to: after(v) }),
                    Op::More => Some(ValueRange { from: after(v), to: end }),
                    Op::AtLeast => Some(ValueRange { from: v, to: end }),
                    Op::Equal => Some(ValueRange::single(v)),
                    Op::NotEqual => None,
                }
            }
        }
    }

    /// True for filters on the duration: they make the groups differ by construction.
    pub fn on_duration(&self) -> bool {
        self.metric == Metric::Duration
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Filter {
        text.parse().unwrap_or_else(|e| panic!("{text}: {e}"))
    }

    #[test]
    fn filter_parses_what_it_displays() {
        for text in [
            "duration>=48ms",
            "duration<=12.345678ms",
            "duration>=p95",
            "duration<p99.9",
            "start in 0ns..1.5s",
            "duration>=48.123456ms",
            "blocked.disk!=0ns",
            "cpu in p10..p90",
            "bytes_read>64KiB",
            "bytes_written<=1.5MiB",
            "bytes_written<=1025B",
            "syscalls=12",
            "field.rows>-3",
            "type=get user",
            "trace!=new",
            "execution=3,17,29",
            "rank=3",
            "duration>=9223372036.854775807s",
        ] {
            assert_eq!(parse(text).to_string(), text);
        }
    }

    #[test]
    fn filter_takes_any_spaces_and_units() {
        assert_eq!(parse("  duration  >=  1500 us "), parse("duration>=1.5ms"));
        assert_eq!(parse("duration>=5µs"), parse("duration>=5000ns"));
        assert_eq!(parse("bytes_read==1GiB").test, Test::Compare(Op::Equal, Operand::Number(1 << 30)));
    }

    #[test]
    fn filter_errors_name_thing_place_and_remedy() {
        let error = |text: &str| text.parse::<Filter>().unwrap_err().to_string();
        for (text, says) in [
            ("durtaion>=4ms", "no metric `durtaion`: did you mean `duration`?"),
            ("disk>4ms", "did you mean `blocked.disk`?"),
            ("xyz=4", "use one of duration, start, cpu"),
            (
                "duration>=48mz",
                "`48mz` is not a value of duration: times are whole nanoseconds, written with ns, us, ms, s, min or h",
            ),
            ("duration>=0.5ns", "whole nanoseconds"),
            ("duration>5", "`5` has no unit: write 5ms, 5us or 5ns"),
            ("start in 0..1.5", "`1.5` has no unit"),
            ("group=slow", "write `group!=slow` in the fast group"),
            ("group!=new", "write `group!=slow` in the fast group"),
            ("execution=3,p95", "`p95` is not a value of execution: a list holds plain numbers"),
            ("duration>=p101", "percentiles go from p0 to p100"),
            ("duration", "has no operator"),
            ("duration in 3ms", "has no operator"),
            ("duration in 3ms..2ms", "the range is empty"),
            ("type>=append", "only `=` and `!=` apply"),
            ("type in a..b", "only `=` and `!=` apply"),
            ("type=", "write a name"),
            ("syscalls>4ms", "without a unit"),
            ("field.=4", "no metric `field.`"),
            ("duration>=", "`` is not a value of duration"),
            ("duration>=99999999999999999999s", "is not a value"),
        ] {
            let message = error(text);
            assert!(message.contains(says) && !message.contains('\n'), "{text}: {message}");
        }
    }

    #[test]
    fn place_in_is_the_wrong_part_of_a_text() {
        for (text, wrong) in [
            ("duration>5, type=a5", "5"),
            ("type=append duration>5x", "5x"),
            ("durtaion>5ms", "durtaion"),
            ("cpu>1ms, duration", "1ms, duration"),
            ("duration>=", ""),
            ("type>=append", "type>=append"),
            ("duration in 3ms..2ms", "duration in 3ms..2ms"),
        ] {
            let error = text.parse::<Filters>().unwrap_err();
            assert_eq!(&text[error.place_in(text)], wrong, "{text}: {error}");
        }
    }

    #[test]
    fn filters_parses_several_conditions() {
        let parse_all = |text: &str| text.parse::<Filters>().map(|all| all.0);
        let both = vec![parse("type=append"), parse("duration>20ms")];
        for text in ["type=append,duration>20ms", "type=append duration>20ms", " type=append ,  duration > 20 ms,"] {
            assert_eq!(parse_all(text), Ok(both.clone()), "{text}");
        }
        assert_eq!(
            parse_all("duration in 1ms..2ms type=get user, slow"),
            Ok(vec![parse("duration in 1ms..2ms"), parse("type=get user, slow")])
        );
        assert_eq!(
            parse_all("execution=29, 3,17,3, type=append"),
            Ok(vec![parse("execution=3,17,29"), parse("type=append")])
        );
        assert!(parse_all("duration>1ms,durtaion<2ms").is_err() && parse_all("").is_err() && parse_all(",").is_err());
    }
}
