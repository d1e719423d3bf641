//! Numbers as text and screens show them: three significant digits and a unit, never wider than nine columns.
//!
//! In: nanoseconds, bytes, counts, shares, deviations. Out: short text of known greatest width, so that columns line
//! up without measuring. Every difference has a sign: colour alone never shows the direction.

use super::time::Ns;

/// Three significant digits of `value` without an exponent: `9.10`, `61.3`, `702`.
pub fn digits(value: f64) -> String {
    let size = value.abs();
    // The limits are half a digit below the powers of ten, so that rounding never adds a fourth digit.
    let places = if size >= 99.95 {
        0
    } else if size >= 9.995 {
        1
    } else {
        2
    };
    format!("{value:.places$}")
}

fn scaled(value: f64, steps: &[(f64, &str)]) -> String {
    let size = value.abs();
    // A value that would be drawn as 1000 takes the next larger unit.
    let fits = |limit: f64| size >= limit * 0.9995;
    match steps.iter().find(|(limit, _)| fits(*limit)).or(steps.last()) {
        Some((limit, unit)) if *limit > 1.0 => format!("{} {unit}", digits(value / limit)),
        // The smallest unit is not divided.
        Some((_, unit)) => format!("{value:.0} {unit}"),
        None => String::new(),
    }
}

/// A large number of things: `3.20 G`, `702`.
pub fn amount(n: f64) -> String {
    scaled(n, &[(1e9, "G"), (1e6, "M"), (1e3, "K"), (1.0, "")]).trim_end().to_owned()
}

/// A time: `61.3 ms`; `0` has no unit.
pub fn time(ns: f64) -> String {
    if ns.abs() < 0.5 {
        return "0".into();
    }
    scaled(ns, &[(1e9, "s"), (1e6, "ms"), (1e3, "us"), (1.0, "ns")])
}

/// Seconds with decimals and without a unit, for columns of one unit: `1.250`.
pub fn seconds(ns: Ns, decimals: usize) -> String {
    format!("{:.decimals$}", ns as f64 / 1e9)
}

/// A moment of a clock in a sentence: `at 2023-11-14 22:13:20.000001 UTC`; `at 12.345678901 s of its clock` where that
/// does not count from 1970.
pub fn moment(clock_ns: Ns) -> String {
    match time_of_day(clock_ns) {
        Some(time) => format!("at {time} UTC"),
        None => format!("at {} s of its clock", seconds(clock_ns, 9)),
    }
}

/// Milliseconds with decimals and without a unit, for columns of one unit: `1250.000`.
pub fn milliseconds(ns: Ns, decimals: usize) -> String {
    format!("{:.decimals$}", ns as f64 / 1e6)
}

/// The drift of a clock, from parts per billion: `1.2 ppm`.
pub fn drift(ppb: f64) -> String {
    format!("{:.1} ppm", ppb / 1e3)
}

/// A duration of whole nanoseconds.
pub fn duration(ns: Ns) -> String {
    time(ns as f64)
}

/// A difference of times, with its sign: `+52.2 ms`; nothing when it rounds to nothing.
pub fn extra(ns: f64) -> String {
    if ns.abs() < 0.5 {
        return "0".into();
    }
    let sign = if ns > 0.0 { "+" } else { "-" };
    format!("{sign}{}", time(ns.abs()))
}

/// A number of bytes: `3.40 KiB`.
pub fn bytes(n: f64) -> String {
    const K: f64 = 1024.0;
    scaled(n, &[(K * K * K, "GiB"), (K * K, "MiB"), (K, "KiB"), (1.0, "B")])
}

/// A number of things: `702`, `12.0 k`, `1.20 M`.
pub fn count(n: u64) -> String {
    if n < 10_000 { n.to_string() } else { scaled(n as f64, &[(1e9, "G"), (1e6, "M"), (1e3, "k")]) }
}

/// "1 event", "702 events".
pub fn plural(n: u64, one: &str) -> String {
    format!("{n} {one}{}", if n == 1 { "" } else { "s" })
}

/// "1 event", "702 events", "12.3k events": [`count`] with its noun.
pub fn counted(n: u64, one: &str) -> String {
    format!("{} {one}{}", count(n), if n == 1 { "" } else { "s" })
}

/// A share with decimals, for tables: `97.3%`.
pub fn percent(part: f64, decimals: usize) -> String {
    format!("{:.decimals$}%", part * 100.0)
}

/// A share: `97%`; `<1%` says that it is not nothing, `>99%` that it is not all.
pub fn share(part: f64) -> String {
    let percent = part * 100.0;
    if percent.abs() < 0.5 && percent <= 0.0 {
        "0%".into()
    } else if percent > 0.0 && percent < 0.5 {
        "<1%".into()
    } else if (99.5..100.0).contains(&percent) {
        ">99%".into()
    } else {
        format!("{percent:.0}%")
    }
}

/// Standard deviations with their sign: `+14.2`; beyond a thousand `>999`, and `n/a` where there are too few values.
pub fn deviations(d: Option<f64>) -> String {
    match d {
        None => "n/a".into(),
        Some(d) if d >= 999.5 => ">999".into(),
        Some(d) if d <= -999.5 => "<-999".into(),
        Some(d) if d.abs() < 0.05 => "0.0".into(),
        Some(d) if d.abs() >= 99.95 => format!("{d:+.0}"),
        Some(d) => format!("{d:+.1}"),
    }
}

/// A moment by its time since the recording began, in seconds with microseconds: `12.345678 s`.
pub fn stamp(since_begin: Ns) -> String {
    let sign = if since_begin < 0 { "-" } else { "" };
    let micros = since_begin.unsigned_abs() / 1000;
    format!("{sign}{}.{:06} s", micros / 1_000_000, micros % 1_000_000)
}

/// The begin of 2001 of a clock that counts from 1970: times before it are those of clocks that count from a boot.
pub const YEAR_2001: Ns = 978_307_200_000_000_000;

/// The time of day of a moment of a clock that counts from 1970, in UTC: `2023-11-14 22:13:20.000001`. `None` for
/// clocks that count from somewhere else (since boot), whose times are before 2001.
pub fn time_of_day(clock_ns: i64) -> Option<String> {
    if clock_ns < YEAR_2001 {
        return None;
    }
    let (seconds, ns) = (clock_ns.div_euclid(1_000_000_000), clock_ns.rem_euclid(1_000_000_000));
    let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    // Days to the date of the proleptic Gregorian calendar, in years that begin in March.
    let days = days + 719_468;
    let (era, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let date = day - (153 * month + 2) / 5 + 1;
    let (month, carry) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    let year = year + era * 400 + carry;
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    Some(format!("{year}-{month:02}-{date:02} {hour:02}:{minute:02}:{second:02}.{:06}", ns / 1000))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits_and_a_unit() {
        let cases = [
            (0.0, "0"),
            (6.13, "6 ns"),
            (999.0, "999 ns"),
            (999.7, "1.00 us"),
            (1_000.0, "1.00 us"),
            (9_100_000.0, "9.10 ms"),
            (61_300_000.0, "61.3 ms"),
            (999_960_000.0, "1.00 s"),
            (61e9, "61.0 s"),
        ];
        for (ns, text) in cases {
            assert_eq!(time(ns), text);
        }
        assert_eq!(extra(-48_100_000.0), "-48.1 ms");
        assert_eq!(bytes(16_384.0), "16.0 KiB");
        assert_eq!(count(1_200_000), "1.20 M");
    }

    #[test]
    fn small_shares_are_not_nothing() {
        assert_eq!(
            (share(-0.001), share(0.001), share(0.999), share(1.0)),
            ("0%".into(), "<1%".into(), ">99%".into(), "100%".into())
        );
    }

    #[test]
    fn nothing_is_wider_than_its_column() {
        for exponent in 0..18 {
            for lead in [1.0, 9.995, 9.994, 5.5] {
                let ns = lead * 10f64.powi(exponent);
                assert!(time(ns).chars().count() <= 9 || ns >= 60e12, "{}", time(ns));
            }
        }
    }

    #[test]
    fn time_of_day_is_that_of_the_calendar() {
        for (ns, text) in [
            (1_700_000_000_000_001_000, "2023-11-14 22:13:20.000001"),
            (951_827_696_000_000_000 + 86_400_000_000_000 * 366, "2001-03-01 12:34:56.000000"),
            (1_709_164_799_999_999_999, "2024-02-28 23:59:59.999999"),
            (1_709_164_800_000_000_000, "2024-02-29 00:00:00.000000"),
            (1_735_689_600_000_000_000, "2025-01-01 00:00:00.000000"),
        ] {
            assert_eq!(time_of_day(ns).as_deref(), Some(text));
        }
        assert_eq!(time_of_day(12_000_000_000), None, "twelve seconds after a boot");
    }
}
