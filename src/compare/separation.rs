//! How well a metric separates the two groups.
//!
//! In: the groups' executions by bin of a histogram. Out: a number from 0 to 1. Two groups of the same executions also
//! differ by chance, the more the fewer executions they have and the more names there are; that much is taken off.

/// How far the distributions of two groups are apart, from 0 to 1, beyond what groups of their sizes differ by chance:
/// for names the total variation distance, for numbers the Kolmogorov-Smirnov distance. 0 where a group is empty.
pub fn separation(names: bool, slow: &[u32], fast: &[u32]) -> f64 {
    let sum = |counts: &[u32]| counts.iter().map(|n| f64::from(*n)).sum::<f64>();
    let (slow_sum, fast_sum) = (sum(slow), sum(fast));
    if slow_sum == 0.0 || fast_sum == 0.0 {
        return 0.0;
    }
    let spread = 1.0 / slow_sum + 1.0 / fast_sum;
    let shares = slow.iter().zip(fast).map(|(s, f)| (f64::from(*s) / slow_sum, f64::from(*f) / fast_sum));
    let (distance, by_chance) = if names {
        shares.fold((0.0, 0.0), |(distance, by_chance), (slow, fast)| {
            let both = (slow * slow_sum + fast * fast_sum) / (slow_sum + fast_sum);
            // The mean absolute difference of two shares that are equal but for chance.
            let expected = (2.0 / std::f64::consts::PI * both * (1.0 - both) * spread).sqrt();
            (distance + (slow - fast).abs() / 2.0, by_chance + expected / 2.0)
        })
    } else {
        let (mut difference, mut most) = (0.0_f64, 0.0_f64);
        for (slow, fast) in shares {
            difference += slow - fast;
            most = most.max(difference.abs());
        }
        // The mean of the Kolmogorov distribution.
        (most, 0.869 * spread.sqrt())
    };
    if by_chance >= 1.0 { 0.0 } else { ((distance - by_chance) / (1.0 - by_chance)).clamp(0.0, 1.0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn separation_is_1_apart_and_0_by_chance() {
        assert!(separation(false, &[0, 0, 500], &[900, 0, 0]) > 0.99);
        assert!(separation(true, &[0, 500], &[900, 0]) > 0.99);
        assert_eq!(separation(false, &[], &[]), 0.0);
        assert_eq!(separation(true, &[3], &[0]), 0.0);
        assert_eq!(separation(false, &[50, 52, 48], &[100, 103, 97]), 0.0);
        assert!(separation(true, &[1, 0, 1, 0, 0, 1], &[2, 3, 1, 2, 3, 2]) < 0.3, "few executions over many names");
        assert!(separation(false, &[10, 90], &[60, 40]) > separation(false, &[40, 60], &[60, 40]));
    }
}
