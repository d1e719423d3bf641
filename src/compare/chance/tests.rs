//! Splits whose answers are known or can be counted.

use super::*;

fn rare_of(values: &[u64], slow: usize) -> f64 {
    rare(&MemberValue::of_list(values), GroupSizes { slow, fast: values.len() - slow })
}

#[test]
fn splits_of_small_groups_are_exhaustive() {
    let splits = Splits::new(2, 3);
    assert!(splits.exhaustive);
    assert_eq!(splits.drawn.borrow().kept.len(), 10 * 2);
    // Of the ten splits only the observed one reaches this difference.
    assert_eq!(splits.p_value(&[50, 60, 1, 2, 3]), 0.1);
    assert_eq!(splits.p_value(&[7, 7, 7, 7, 7]), 1.0);
    assert_eq!(Splits::new(3, 2).p_value(&[1, 2, 3, 50, 60]), 0.1, "the smaller group may be the second");
}

#[test]
fn splits_of_large_groups_are_deterministic() {
    let splits = Splits::new(5, 400);
    let values: Vec<u64> = (0..405).map(|i| if i < 5 { 1000 + i } else { i % 50 }).collect();
    assert!(splits.p_value(&values) <= 2e-5);
    assert_eq!(splits.p_value(&values), Splits::new(5, 400).p_value(&values));
    let noise: Vec<u64> = (0..405).map(|i| (i * 7919) % 100).collect();
    assert!(splits.p_value(&noise) > 0.05);
}

#[test]
fn p_value_of_one_against_many_is_its_rank() {
    let values: Vec<u64> = (0..100).map(|i| if i == 0 { 999 } else { 10 }).collect();
    assert_eq!(Splits::new(1, 99).p_value(&values), 0.01);
}

/// The p-value of few nonzero values is that of all splits, where these can be counted.
#[test]
fn rare_equals_all_splits() {
    for (slow, values) in [
        (3, vec![0, 9, 4, 0, 0, 2, 0, 0, 0]),
        (4, vec![5, 0, 0, 5, 0, 0, 5, 0, 0, 0]),
        (2, vec![7, 7, 0, 0, 0, 0]),
        (5, vec![0; 9]),
    ] {
        let counted = Splits::new(slow, values.len() - slow).p_value(&values);
        let rare = rare_of(&values, slow);
        assert!((rare - counted).abs() < 1e-12, "{values:?}: {rare} {counted}");
    }
    // Three of ten slow executions have it and none of ninety fast ones: 10 9 8 / 100 99 98.
    let mut values = vec![0; 100];
    values[..3].fill(1_000);
    assert!((rare_of(&values, 10) - 720.0 / 970_200.0).abs() < 1e-12);
    assert_eq!(rare_of(&[], 0), 1.0);
}

#[test]
fn flips_reaches_a_burst_but_no_steady_difference() {
    // 160 slow ones, then 160 fast ones in time; a burst hits one stretch of the slow ones, or all of them are
    // longer.
    let order: Vec<u32> = (0..320).collect();
    let burst: Vec<u64> = (0..320).map(|i| if (40..60).contains(&i) { 1000 } else { i % 7 }).collect();
    let longer: Vec<u64> = (0..320).map(|i| if i < 160 { 100 + i % 7 } else { i % 7 }).collect();
    let reach = |list: &Vec<u64>| {
        let mean = |part: &[u64]| part.iter().sum::<u64>() as f64 / part.len() as f64;
        let observed = mean(&list[..160]) - mean(&list[160..]);
        let reached = flips(std::slice::from_ref(list), &order, 160, 300).unwrap();
        reached.iter().filter(|r| **r >= observed).count()
    };
    assert!(reach(&burst) > 30 && reach(&longer) <= 3, "{} {}", reach(&burst), reach(&longer));
    assert!(flips(&[burst], &order[..20], 10, 9).is_none());
}

#[test]
fn is_shifted_as_far_for_a_property_of_one_slow_stretch() {
    let executions = |slow: &dyn Fn(usize) -> bool| -> Vec<TimedExecution> {
        (0..400).map(|i| TimedExecution { ns: if slow(i) { 90 } else { 10 }, is_slow: Some(slow(i)) }).collect()
    };
    let observed = 70.0;
    // One burst, and a class that nearly coincides with it; or every tenth is slow and of its own class.
    let burst: Vec<u32> = (0..400).map(|i| u32::from((98..142).contains(&i))).collect();
    assert!(is_shifted_as_far(&burst, &executions(&|i| (100..140).contains(&i)), observed));
    let spread: Vec<u32> = (0..400).map(|i| u32::from(i * 7919 % 400 < 40)).collect();
    assert!(!is_shifted_as_far(&spread, &executions(&|i| i * 7919 % 400 < 40), observed));
    let types: Vec<u32> = (0..400).map(|i| u32::from(i % 10 == 0)).collect();
    assert!(!is_shifted_as_far(&types, &executions(&|i| i % 10 == 0), observed), "types may alternate");
    assert!(!is_shifted_as_far(&[], &[], 1.0));
}

/// The answer is that of summing every list in every round.
#[test]
fn is_reached_at_random_where_all_lists_say_so() {
    let sizes = GroupSizes { slow: 10, fast: 90 };
    let lists: Vec<Vec<u64>> =
        (1..6_u64).map(|n| (0..100).map(|i| (i * 7919 * n) % 97 * u64::from(i % n == 0)).collect()).collect();
    let mut random = Random::new(SEED ^ 1);
    let mut draw = Draw::new(100);
    let mut largest = [0.0_f64; 200];
    for largest in &mut largest {
        let pick = draw.some(10, &mut random);
        for list in &lists {
            let s: u64 = pick.iter().map(|i| list[*i as usize]).sum();
            let all: u64 = list.iter().sum();
            *largest = largest.max((s as f64 / 10.0 - (all - s) as f64 / 90.0).abs());
        }
    }
    for observed in (0..40).map(f64::from).chain(largest) {
        let reaching = largest.iter().filter(|r| **r >= observed).count();
        for may_reach in [0, 3, reaching.saturating_sub(1), reaching] {
            let rounds = Rounds { tried: 200, may_reach };
            assert_eq!(RandomSplits::new(sizes, rounds).reach(&lists, observed), reaching > may_reach, "{observed}");
        }
    }
    let few = GroupSizes { slow: 0, fast: 100 };
    assert!(!RandomSplits::new(few, Rounds { tried: 9, may_reach: 0 }).reach(&lists, 0.0));
    let huge = [vec![u64::MAX; 100]];
    assert!(!RandomSplits::new(sizes, Rounds { tried: 9, may_reach: 0 }).reach(&huge, 1e9));
}
