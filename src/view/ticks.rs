//! Round times on the axis of a drawing, with the columns at which they stand.

use crate::base::figure;

/// Columns between two ticks, at least.
const BETWEEN_TICKS: usize = 16;

/// Round times within a window, with their columns: the finest step of 1, 2 or 5 that leaves room for its texts.
pub fn ticks(start: i64, length: i64, count: usize) -> Vec<(usize, String)> {
    let (length, columns) = (length.max(1), count.max(1) as i128);
    let least = i128::from(length) * BETWEEN_TICKS as i128 / columns;
    let steps = (0..18).flat_map(|power| [1, 2, 5].map(|digit| digit * 10_i64.pow(power)));
    let Some(step) = steps.into_iter().find(|step| i128::from(*step) >= least) else { return Vec::new() };
    let first = start.div_euclid(step).saturating_add(1).saturating_mul(step);
    let times = (0..).map_while(|n| first.checked_add(step.checked_mul(n)?)).take_while(|at| at - start < length);
    let place = |at: i64| (i128::from(at - start) * columns / i128::from(length)) as usize;
    times.take(count).map(|at| (place(at), figure::duration(at))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_apart() {
        let found = ticks(0, 170_000_000, 80);
        let texts: Vec<&str> = found.iter().map(|(_, text)| text.as_str()).collect();
        assert_eq!(texts, ["50.0 ms", "100 ms", "150 ms"]);
        for (start, length, count) in [(0, 1, 80), (-5, 1_000, 33), (i64::MAX - 9, 9, 200), (7, i64::MAX, 80)] {
            let found = ticks(start, length, count);
            assert!(found.windows(2).all(|pair| pair[0].0 + BETWEEN_TICKS <= pair[1].0 + 1), "{start} {length}");
            assert!(found.iter().all(|(column, _)| *column < count), "{start} {length}");
        }
    }
}
