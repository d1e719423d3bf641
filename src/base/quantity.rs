//! Quantities as users type them: a decimal number and a unit, parsed exactly.
//!
//! In: text (`1.5ms`, `64KiB`, `12`). Out: a whole number of the smallest unit (nanoseconds, bytes), or nothing where
//! the text is no such quantity or is finer than that unit. [`exact`] writes the shortest text that reads back as the
//! same number. All arithmetic is on integers, so a nanosecond survives at any distance from zero.

use super::time::{Ns, Span, Timestamp};
use std::str::FromStr;
use std::time::Duration;

/// Units of one dimension: suffix and size in the smallest unit. A suffix comes before every suffix that ends it.
pub type Units = [(&'static str, i64)];

/// Durations, in nanoseconds.
pub const TIME: &Units = &[
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("min", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// Sizes, in bytes. `K`, `M` and `G` mean powers of 1024 too, as in `ulimit`, `dd` and `perf`.
pub const SIZE: &Units =
    &[("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30), ("B", 1), ("K", 1 << 10), ("M", 1 << 20), ("G", 1 << 30)];

/// Numbers of things.
pub const COUNT: &Units = &[];

/// Units in which [`exact`] writes.
const WRITTEN: [&str; 8] = ["s", "ms", "us", "ns", "GiB", "MiB", "KiB", "B"];

/// Most decimals of a number.
const MOST_DECIMALS: usize = 18;

/// Why a text is no quantity: what to write instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct QuantityError(pub &'static str);

/// A number with one of `units`, or without one for the smallest.
pub fn parse(text: &str, units: &Units) -> Option<i64> {
    match units.iter().find_map(|(suffix, size)| Some((text.strip_suffix(suffix)?, *size))) {
        Some((number, size)) => decimal(number.trim_end(), size),
        None => decimal(text, 1),
    }
}

/// A decimal number times `scale`.
fn decimal(text: &str, scale: i64) -> Option<i64> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let (whole, part) = digits.split_once('.').unwrap_or((digits, "0"));
    let plain = |digits: &str| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    if !plain(whole) || !plain(part) || part.len() > MOST_DECIMALS {
        return None;
    }
    let ten = 10_i128.pow(part.len() as u32);
    let number = whole.parse::<i128>().ok()?.checked_mul(ten)?.checked_add(part.parse().ok()?)?;
    let scaled = number.checked_mul(scale.into())?;
    let value = i64::try_from(scaled / ten).ok().filter(|_| scaled % ten == 0)?;
    Some(if negative { -value } else { value })
}

/// A value in the largest unit that it fills and that writes it in at most nine decimals.
pub fn exact(value: i64, units: &Units) -> String {
    let size = value.unsigned_abs();
    let sign = if value < 0 { "-" } else { "" };
    let mut written: Vec<_> = units.iter().filter(|(name, _)| WRITTEN.contains(name)).collect();
    written.sort_by_key(|(_, scale)| std::cmp::Reverse(*scale));
    for (name, scale) in written {
        let scale = scale.unsigned_abs();
        let billionths = u128::from(size % scale) * 1_000_000_000;
        if (size >= scale || scale == 1) && billionths % u128::from(scale) == 0 {
            let decimals = format!("{:09}", billionths / u128::from(scale));
            let text = format!("{sign}{}.{decimals}", size / scale);
            return format!("{}{name}", text.trim_end_matches('0').trim_end_matches('.'));
        }
    }
    value.to_string()
}

/// A size above zero, in bytes: `512MiB`, `4G`.
pub fn size(text: &str) -> Result<u64, QuantityError> {
    let bytes = parse(text.trim(), SIZE).and_then(|bytes| u64::try_from(bytes).ok());
    bytes.filter(|bytes| *bytes > 0).ok_or(QuantityError("write a whole number of bytes, or K, M, G: 512M, 4GiB"))
}

/// A duration above zero with its unit: `500ms`, `2min`.
pub fn duration(text: &str) -> Result<Duration, QuantityError> {
    let text = text.trim();
    let has_unit = text.ends_with(|c: char| c.is_ascii_alphabetic());
    let ns = parse(text, TIME).and_then(|ns| u64::try_from(ns).ok()).filter(|ns| has_unit && *ns > 0);
    ns.map(Duration::from_nanos).ok_or(QuantityError("write a time above zero with its unit: 500ms, 10s, 2min"))
}

/// A point in time as typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimePoint {
    /// Nanoseconds on the recording's time line.
    Absolute(Timestamp),
    /// So long after the first event.
    SinceStart(Ns),
}

impl TimePoint {
    /// The time for a recording that starts at `start`.
    pub fn after(self, start: Timestamp) -> Timestamp {
        match self {
            TimePoint::Absolute(at) => at,
            TimePoint::SinceStart(offset) => start.saturating_add(offset),
        }
    }
}

impl FromStr for TimePoint {
    type Err = QuantityError;

    /// A whole number is a time on the time line, a number with a unit is a time since the first event.
    fn from_str(text: &str) -> Result<Self, QuantityError> {
        let text = text.trim();
        let remedy = QuantityError("write nanoseconds on the time line, or a time since the first event: 12.5ms");
        if let Ok(ns) = text.parse() {
            return Ok(TimePoint::Absolute(Timestamp::new(ns)));
        }
        let has_unit = text.ends_with(|c: char| c.is_ascii_alphabetic());
        parse(text, TIME).filter(|_| has_unit).map(TimePoint::SinceStart).ok_or(remedy)
    }
}

/// A half-open range of time as typed: `A..B`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeRange {
    from: TimePoint,
    to: TimePoint,
}

impl TimeRange {
    /// The span for a recording that starts at `start`; `None` where it ends before it begins.
    pub fn after(self, start: Timestamp) -> Option<Span> {
        let span = Span::new(self.from.after(start), self.to.after(start));
        if span.is_empty() { None } else { Some(span) }
    }
}

impl FromStr for TimeRange {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        let (from, to) = text.split_once("..").ok_or(QuantityError("write A..B: 10ms..1.5s"))?;
        Ok(TimeRange { from: from.parse()?, to: to.parse()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parse_is_exact_and_takes_every_unit() {
        let times = [("12", 12), ("1.5ms", 1_500_000), ("5µs", 5_000), ("2min", 120_000_000_000), ("0.000000001 s", 1)];
        let sizes = [("300M", 300 << 20), ("1.5KiB", 1536), ("4G", 4 << 30), ("7B", 7), ("7", 7)];
        for (units, cases) in [(TIME, times), (SIZE, sizes)] {
            cases.iter().for_each(|(text, value)| assert_eq!(parse(text, units), Some(*value), "{text}"));
        }
        assert_eq!(parse("9223372036.854775807s", TIME), Some(i64::MAX));
        for wrong in ["", "ms", "1.", ".5ms", "1e3ms", "0.5ns", "1.5", "--1", "9223372036.854775808s", "1KB", "+1"] {
            assert_eq!(parse(wrong, if wrong.ends_with('B') { SIZE } else { TIME }), None, "{wrong}");
        }
    }

    #[test]
    fn exact_reads_back() {
        for value in [0, 1, -1, 999, 1_000, 1_500_000, 48_123_456, -60_000_000_000, i64::MAX, 1 << 20, 1537] {
            for units in [TIME, SIZE, COUNT] {
                assert_eq!(parse(&exact(value, units), units), Some(value), "{}", exact(value, units));
            }
        }
        assert_eq!(exact(90_000_000_000, TIME), "90s");
    }

    #[test]
    fn size_and_duration_are_above_zero() {
        assert_eq!((size("300M"), size("1")), (Ok(300 << 20), Ok(1)));
        assert_eq!(duration("1.5s"), Ok(Duration::from_millis(1500)));
        assert!(["0", "-1M", "3x", ""].iter().all(|wrong| size(wrong).is_err()));
        assert!(["0s", "-1ms", "20", "nans", "10 "].iter().all(|wrong| duration(wrong).is_err()));
    }

    #[test]
    fn time_points_with_a_unit_count_from_the_first_event() {
        let start = Timestamp::new(1_000);
        let at = |text: &str| text.parse().map(|point: TimePoint| point.after(start).ns());
        assert_eq!((at("5"), at("5ns"), at("-5"), at("0.001us")), (Ok(5), Ok(1_005), Ok(-5), Ok(1_001)));
        assert!(at("5mz").is_err() && at("0.5ns").is_err() && at("1.5").is_err());
        let span = |text: &str| text.parse().map(|range: TimeRange| range.after(start));
        assert_eq!(span("0ns..1us"), Ok(Some(Span::new(start, Timestamp::new(2_000)))));
        assert_eq!(span("2us..1us"), Ok(None));
        assert!(span("1us").is_err());
    }
}
