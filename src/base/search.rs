//! Searching sorted slices from a known position outwards.

/// The partition point of a slice, as `slice::partition_point` has it, searched from `near` outwards. Cost: logarithmic
/// in the distance of the point from there.
pub fn partition_point_near<T>(all: &[T], near: usize, is_before: impl Fn(&T) -> bool) -> usize {
    let before = |at: usize| all.get(at).is_some_and(&is_before);
    let near = near.min(all.len());
    // All below `low` are before the point, none from `high` on is.
    let (mut low, mut high, mut step) = (near, near, 1);
    if before(near) {
        while before(high) {
            (low, high) = (high + 1, high.saturating_add(step + 1));
            step *= 2;
        }
    } else {
        while low > 0 && !before(low - 1) {
            (low, high) = ((low - 1).saturating_sub(step), low - 1);
            step *= 2;
        }
    }
    low + all.get(low..high.min(all.len())).map_or(0, |between| between.partition_point(is_before))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partition_point_near_equals_partition_point() {
        for length in [0_usize, 1, 2, 7, 40] {
            let all: Vec<usize> = (0..length).map(|i| i / 3).collect();
            for bound in 0..=length / 3 + 1 {
                let expected = all.partition_point(|v| *v < bound);
                for near in (0..length + 3).chain([usize::MAX]) {
                    let found = partition_point_near(&all, near, |v| *v < bound);
                    assert_eq!(found, expected, "{length} values, those below {bound} are before, from {near}");
                }
            }
        }
    }
}
