//! A time of day as it is typed in a filter: `09:45:56.439`, `09:45`.

use crate::base::time::{Ns, Timestamp};
use std::fmt;

pub(super) const SECOND: Ns = 1_000_000_000;

const DAY: Ns = 86_400 * SECOND;

/// A time of day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeOfDay {
    since_midnight: Ns,
    /// The unit of the last figure that was typed.
    pub(super) precision: Ns,
}

impl TimeOfDay {
    /// `HH:MM`, `HH:MM:SS` or with up to nine decimals; `None` for other texts.
    pub fn parse(text: &str) -> Option<TimeOfDay> {
        let figures = |text: &str, most: Ns| {
            let is_number = (1..=2).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
            text.parse::<Ns>().ok().filter(|n| is_number && *n < most)
        };
        let (hour, rest) = text.split_once(':')?;
        let (minute, second) = rest.split_once(':').map_or((rest, None), |(minute, second)| (minute, Some(second)));
        let minutes = figures(hour, 24)? * 60 + figures(minute, 60)?;
        let Some(second) = second else {
            return Some(TimeOfDay { since_midnight: minutes * 60 * SECOND, precision: 60 * SECOND });
        };
        let (second, decimals) = second.split_once('.').map_or((second, ""), |parts| parts);
        let plain = decimals.len() <= 9 && decimals.bytes().all(|b| b.is_ascii_digit());
        let precision = SECOND / 10_i64.pow(decimals.len().min(9) as u32);
        let part = if decimals.is_empty() { 0 } else { decimals.parse::<Ns>().ok().filter(|_| plain)? };
        let since_midnight = (minutes * 60 + figures(second, 60)?) * SECOND + part * precision;
        Some(TimeOfDay { since_midnight, precision })
    }

    /// From the begin of the recording, whose executions lie between two times.
    pub(super) fn since(self, origin: Timestamp, (first, last): (Timestamp, Timestamp)) -> Ns {
        let midnight = |t: Timestamp| t.ns() - t.ns().rem_euclid(DAY);
        let away = |at: Ns| (first.ns() - at).max(at - last.ns()).max(0);
        let days = [midnight(first) - DAY, midnight(first), midnight(last), midnight(last) + DAY];
        let at = days.map(|day| day + self.since_midnight).into_iter().min_by_key(|at| away(*at));
        at.unwrap_or(0) - origin.ns()
    }
}

impl fmt::Display for TimeOfDay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (seconds, part) = (self.since_midnight / SECOND, self.since_midnight % SECOND);
        write!(f, "{:02}:{:02}", seconds / 3600, seconds / 60 % 60)?;
        if self.precision > SECOND {
            return Ok(());
        }
        write!(f, ":{:02}", seconds % 60)?;
        let decimals = (1..=9_usize).find(|n| SECOND / 10_i64.pow(*n as u32) == self.precision);
        decimals.map_or(Ok(()), |n| write!(f, ".{:0n$}", part / self.precision))
    }
}
