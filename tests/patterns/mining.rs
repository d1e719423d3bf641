//! Mining (ALGORITHMS.md 9.2 and 9.3) against the reference procedure, and on sequences that are hard for it.

use super::reference;
use proptest::prelude::*;
use std::collections::BTreeSet;
use whyslow::parts::analysis::patterns::grammar::{Grammar, GrammarRule, GrammarSymbol, mine};
use whyslow::parts::base::ctx::Cancel;

fn word(text: &str) -> Vec<u32> {
    text.bytes().map(u32::from).collect()
}

#[test]
fn reference_mines_the_examples_of_the_handbook() {
    use reference::Unit::*;
    let letter = |c: char| Symbol(c as u32);
    let mined = reference::mine(&word("abcabcabx"));
    assert_eq!(mined.definitions, [vec![letter('a'), letter('b')], vec![Pattern(0), letter('c')]]);
    assert_eq!(mined.sequence, [Loop(Box::new(Pattern(1)), 2), Pattern(0), letter('x')]);
    let mined = reference::mine(&word("abcabcabc"));
    assert_eq!(mined.definitions, [vec![letter('a'), letter('b'), letter('c')]]);
    assert_eq!(mined.sequence, [Loop(Box::new(Pattern(0)), 3)]);
    let mined = reference::mine(&word("abababcabab"));
    let twice = |n| Loop(Box::new(Pattern(0)), n);
    assert_eq!(mined.sequence, [twice(3), letter('c'), twice(2)]);
}

/// The symbols that a grammar's item derives.
fn derive(grammar: &Grammar, item: GrammarSymbol) -> Vec<u32> {
    match item {
        GrammarSymbol::Symbol(s) => vec![s],
        GrammarSymbol::Rule(r) => match &grammar.rules[r as usize] {
            GrammarRule::Sequence(parts) => parts.iter().flat_map(|p| derive(grammar, *p)).collect(),
            GrammarRule::Loop { body, count } => derive(grammar, *body).repeat(*count as usize),
        },
    }
}

fn positions(s: &[u32], word: &[u32]) -> Vec<usize> {
    s.windows(word.len()).enumerate().filter(|(_, w)| *w == word).map(|(i, _)| i).collect()
}

/// Extend a word to both sides as long as all its occurrences go on the same way.
fn closure(s: &[u32], word: &[u32]) -> Vec<u32> {
    let mut word = word.to_vec();
    loop {
        let all = positions(s, &word);
        let right: BTreeSet<_> = all.iter().map(|p| s.get(p + word.len())).collect();
        let left: BTreeSet<_> = all.iter().map(|p| p.checked_sub(1).map(|p| s[p])).collect();
        if let (1, Some(Some(next))) = (right.len(), right.first()) {
            word.push(**next);
        } else if let (1, Some(Some(before))) = (left.len(), left.first()) {
            word.insert(0, *before);
        } else {
            return word;
        }
    }
}

/// All maximal repeats: repeated words that their occurrences neither precede nor follow by always the same.
fn maximal_repeats(s: &[u32]) -> BTreeSet<Vec<u32>> {
    let mut all = BTreeSet::new();
    for start in 0..s.len() {
        for end in start + 1..=s.len() {
            let word = &s[start..end];
            if positions(s, word).len() < 2 {
                break;
            }
            if closure(s, word) == word {
                all.insert(word.to_vec());
            }
        }
    }
    all
}

/// Sequences as programs make them: nested loops with some irregularity.
fn program() -> impl Strategy<Value = Vec<u32>> {
    let leaf = prop::collection::vec(0_u32..5, 1..4);
    let nested = leaf.prop_recursive(3, 40, 4, |inner| {
        let looped = (inner.clone(), 1_usize..5).prop_map(|(body, n)| body.repeat(n));
        prop_oneof![looped, prop::collection::vec(inner, 1..4).prop_map(|parts| parts.concat())]
    });
    nested.prop_filter("small enough for the slow oracle", |s| s.len() <= 90)
}

proptest! {
    #[test]
    fn rules_are_repeats_and_agree_with_the_reference(s in program()) {
        let grammar = mine(&s, &Cancel::default());
        let whole: Vec<u32> = grammar.top.iter().flat_map(|i| derive(&grammar, *i)).collect();
        prop_assert_eq!(&whole, &s, "the grammar derives exactly its input");
        let repeats = maximal_repeats(&s);
        for rule in (0..grammar.rules.len()).map(|r| GrammarSymbol::Rule(r as u32)) {
            if let GrammarSymbol::Rule(r) = rule && let GrammarRule::Sequence(parts) = &grammar.rules[r as usize] {
                let word = derive(&grammar, rule);
                prop_assert!(parts.len() >= 2 && positions(&s, &word).len() >= 2, "{word:?} is no repeat of {s:?}");
                prop_assert!(repeats.contains(&closure(&s, &word)), "{word:?} in {s:?}");
            }
        }
        let reference = reference::mine(&s);
        let whole: Vec<u32> = reference.sequence.iter().flat_map(|u| reference.word(u)).collect();
        prop_assert_eq!(&whole, &s);
        for pattern in 0..reference.definitions.len() {
            let word = reference.word(&reference::Unit::Pattern(pattern));
            if positions(&s, &word).len() >= 2 {
                prop_assert!(repeats.contains(&closure(&s, &word)));
            }
        }
    }

    #[test]
    fn loop_of_any_body_is_found(
        body in prop::collection::vec(0_u32..6, 2..12),
        turns in 2_usize..40,
        around in (prop::collection::vec(7_u32..9, 0..3), prop::collection::vec(9_u32..11, 0..3)),
    ) {
        // A body that is itself repeated has more turns, not another loop.
        let period = (1..=body.len()).find(|p| body.len().is_multiple_of(*p) && body[..*p].repeat(body.len() / p) == body).unwrap();
        let s = [around.0.clone(), body.repeat(turns), around.1].concat();
        let grammar = mine(&s, &Cancel::default());
        let longest = grammar.top.iter().map(|i| derive(&grammar, *i).len()).max().unwrap();
        prop_assert!(longest + body.len() > period * (turns - 1), "{s:?}: {grammar:?}");
        prop_assert!(grammar.top.len() <= around.0.len() + body.len() + 4, "{s:?}: {grammar:?}");
    }

    #[test]
    fn grammar_derives_its_sequence(s in prop::collection::vec(0_u32..4, 0..400)) {
        let grammar = mine(&s, &Cancel::default());
        let whole: Vec<u32> = grammar.top.iter().flat_map(|i| derive(&grammar, *i)).collect();
        prop_assert_eq!(whole, s);
    }
}

#[test]
fn mine_is_fast_on_hard_sequences() {
    // Every second symbol the same (the naive choice of pairs takes one round for each partner); Fibonacci words; a
    // sequence without any repeat; nested powers.
    let star: Vec<u32> = (0..50_000).flat_map(|i| [0, 1 + i / 2]).collect();
    let (mut fibonacci, mut before) = (vec![0, 1], vec![0]);
    while fibonacci.len() < 100_000 {
        let next = [fibonacci.clone(), before].concat();
        (before, fibonacci) = (fibonacci, next);
    }
    let distinct: Vec<u32> = (0..100_000).collect();
    let chain: Vec<u32> = (1..440).flat_map(|n| 0..n).collect();
    for s in [star, fibonacci, distinct, chain] {
        let started = std::time::Instant::now();
        let grammar = mine(&s, &Cancel::default());
        let derived: usize = grammar.top.iter().map(|i| derive(&grammar, *i).len()).sum();
        assert_eq!(derived, s.len());
        assert!(started.elapsed().as_secs() < 20, "{:?}", started.elapsed());
    }
}
