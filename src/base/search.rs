//! Sorted lists: searching from a known position outwards, and inserting few among many.

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

/// Insert elements into others; both are in order of a key. Of equals those that were there come first. Cost: a search
/// per element, and moving each of the others once, without a second list.
pub fn insert_sorted<T: Copy, K: Ord>(all: &mut Vec<T>, more: &[T], key: impl Fn(&T) -> K) {
    let mut left = all.len();
    all.extend(more);
    // From the back: each goes after the last that precedes it.
    for (missing, element) in more.iter().enumerate().rev() {
        let from = all[..left].partition_point(|e| key(e) <= key(element));
        all.copy_within(from..left, from + missing + 1);
        all[from + missing] = *element;
        left = from;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn insert_sorted_equals_a_stable_sort() {
        for (all, more) in [(0, 0), (0, 3), (5, 0), (40, 7), (7, 40)] {
            let list = |n: u32, factor: u32, tag: u32| {
                let mut list: Vec<[u32; 2]> = (0..n).map(|i| [i * factor % 11, tag + i]).collect();
                list.sort_by_key(|e| e[0]);
                list
            };
            let (mut all, more) = (list(all, 7, 0), list(more, 5, 1_000));
            let mut expected = [all.clone(), more.clone()].concat();
            expected.sort_by_key(|e| e[0]);
            insert_sorted(&mut all, &more, |e| e[0]);
            assert_eq!(all, expected);
        }
    }

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
