//! Mining: the grammar of one thread's sequence of operations, in near-linear time.
//!
//! In: symbols in order. Out: a [`Grammar`] that derives exactly that sequence, whose rules are the repeated sequences
//! and loops. ALGORITHMS.md 9.3: Re-Pair with loops folded before each round, and with many pairs replaced per round:
//! of all adjacent pairs that occur at least twice, most frequent first (ties: first position), a pair is taken when
//! neither of its symbols has been taken on the other side (so taken pairs never overlap) and it is not far rarer than
//! the commonest pair of its two symbols (so a rare sequence never splits a common one). The number of rounds is
//! logarithmic in the longest repeated sequence, and each round scans the shorter sequence that the previous one left,
//! so time is near-linear; the number is bounded on adversarial input. A rule that is used once is dissolved in its
//! user, so that the remaining rules are maximal.
//!
//! Rejected: one pair at a time with linked occurrences (slower by the cost of its lists), Sequitur and tail matching
//! while recording (their rules depend on where a loop happens to begin), suffix arrays (they find repeats but no
//! hierarchy).

use crate::base::ctx::Cancel;
use foldhash::HashMap;

/// A symbol of the input, or a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum GrammarSymbol {
    /// A symbol of the input.
    Symbol(u32),
    /// Position in [`Grammar::rules`].
    Rule(u32),
}

/// Derivation of a rule.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum GrammarRule {
    /// At least two items, one after another.
    Sequence(Vec<GrammarSymbol>),
    /// One item, `count` times, at least two.
    Loop {
        /// The repeated item.
        body: GrammarSymbol,
        count: u32,
    },
}

/// A hierarchy of repeated sequences and loops. Rules come after those that they use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grammar {
    pub rules: Vec<GrammarRule>,
    /// Derivation of the whole input.
    pub top: Vec<GrammarSymbol>,
}

/// The most rounds: the bound of time and depth on adversarial input. Recorded runs need about 10.
const ROUNDS: usize = 200;

/// Mine a sequence. Symbols are small numbers (ids of names): memory is linear in the largest. Once cancelled the
/// grammar is less compact.
pub fn mine(symbols: &[u32], cancel: &Cancel) -> Grammar {
    let mut miner =
        Miner { first_rule: symbols.iter().max().map_or(0, |m| m + 1), rules: Vec::new(), loops: HashMap::default() };
    let mut sequence = symbols.to_vec();
    miner.fold(&mut sequence);
    for _ in 0..ROUNDS {
        if cancel.is_cancelled() || !miner.replace_pairs(&mut sequence) {
            break;
        }
        miner.fold(&mut sequence);
    }
    miner.finish(&sequence)
}

/// An adjacent pair of different items.
struct Pair {
    left: u32,
    right: u32,
    count: u32,
    first: u32,
}

/// The side of an item in the pairs taken in this round.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Free,
    Left,
    Right,
}

/// Items are dense here: symbols below `first_rule`, rules from there on.
struct Miner {
    first_rule: u32,
    rules: Vec<Vec<u32>>,
    loops: HashMap<(u32, u32), u32>,
}

/// A rule of the miner: a pair, or a loop as `[body, count]` after this mark.
const LOOP: u32 = u32::MAX;

impl Miner {
    fn add(&mut self, rule: Vec<u32>) -> u32 {
        self.rules.push(rule);
        self.first_rule + self.rules.len() as u32 - 1
    }

    /// Fold every run of one item into a loop, in place.
    fn fold(&mut self, sequence: &mut Vec<u32>) {
        let (mut read, mut write) = (0, 0);
        while let Some(&item) = sequence.get(read) {
            let run = sequence[read..].iter().take_while(|other| **other == item).count();
            sequence[write] = match run {
                1 => item,
                _ => match self.loops.get(&(item, run as u32)) {
                    Some(known) => *known,
                    None => {
                        let id = self.add(vec![LOOP, item, run as u32]);
                        self.loops.insert((item, run as u32), id);
                        id
                    }
                },
            };
            read += run;
            write += 1;
        }
        sequence.truncate(write);
    }

    /// One round; false when no pair occurs twice. No item is adjacent to itself here: runs have been folded.
    fn replace_pairs(&mut self, sequence: &mut Vec<u32>) -> bool {
        let mut counts: HashMap<u64, (u32, u32)> = HashMap::default();
        for (position, pair) in (0_u32..).zip(sequence.windows(2)) {
            counts.entry(u64::from(pair[0]) << 32 | u64::from(pair[1])).or_insert((0, position)).0 += 1;
        }
        let pair = |(key, (count, first)): (u64, (u32, u32))| {
            (count >= 2).then_some(Pair { left: (key >> 32) as u32, right: key as u32, count, first })
        };
        let mut pairs: Vec<Pair> = counts.into_iter().filter_map(pair).collect();
        if pairs.is_empty() {
            return false;
        }
        pairs.sort_unstable_by_key(|p| (u32::MAX - p.count, p.first));
        let items = self.first_rule as usize + self.rules.len();
        let mut commonest = vec![0_u32; items];
        for p in &pairs {
            for item in [p.left, p.right] {
                let most = &mut commonest[item as usize];
                *most = (*most).max(p.count);
            }
        }
        let mut sides = vec![Side::Free; items];
        let mut taken: HashMap<u64, u32> = HashMap::default();
        for p in &pairs {
            let (left, right) = (p.left as usize, p.right as usize);
            let rare = p.count < commonest[left].max(commonest[right]).div_ceil(2);
            if !rare && sides[left] != Side::Right && sides[right] != Side::Left {
                (sides[left], sides[right]) = (Side::Left, Side::Right);
                let id = self.add(vec![p.left, p.right]);
                taken.insert(u64::from(p.left) << 32 | u64::from(p.right), id);
            }
        }
        let (mut read, mut write) = (0, 0);
        while let Some(&item) = sequence.get(read) {
            let pair = match sequence.get(read + 1) {
                Some(next) if sides[item as usize] == Side::Left => {
                    taken.get(&(u64::from(item) << 32 | u64::from(*next)))
                }
                _ => None,
            };
            sequence[write] = pair.copied().unwrap_or(item);
            read += if pair.is_some() { 2 } else { 1 };
            write += 1;
        }
        sequence.truncate(write);
        true
    }

    /// Dissolve rules that are used once inside another sequence, drop unused ones, number the rest.
    fn finish(self, top: &[u32]) -> Grammar {
        let rule_of = |item: u32| item.checked_sub(self.first_rule).map(|r| r as usize);
        let mut uses = vec![0_u32; self.rules.len()];
        top.iter().filter_map(|i| rule_of(*i)).for_each(|r| uses[r] += 1);
        // Users come after the rules that they use: going backwards, a rule's uses are all known when it is reached.
        for (r, rule) in self.rules.iter().enumerate().rev() {
            if uses[r] > 0 {
                let parts = if rule[0] == LOOP { &rule[1..2] } else { &rule[..] };
                parts.iter().filter_map(|i| rule_of(*i)).for_each(|r| uses[r] += 1);
            }
        }
        let mut grammar = Grammar::default();
        // By rule: its number, or the items into which it is dissolved.
        let mut results: Vec<Vec<GrammarSymbol>> = vec![Vec::new(); self.rules.len()];
        let mut in_loop = vec![false; self.rules.len()];
        for rule in self.rules.iter().filter(|rule| rule[0] == LOOP) {
            if let Some(body) = rule_of(rule[1]) {
                in_loop[body] = true;
            }
        }
        let expand = |items: &[u32], results: &[Vec<GrammarSymbol>]| {
            let mut all = Vec::with_capacity(items.len());
            for item in items {
                match rule_of(*item) {
                    Some(r) => all.extend_from_slice(&results[r]),
                    None => all.push(GrammarSymbol::Symbol(*item)),
                }
            }
            all
        };
        for (r, rule) in self.rules.iter().enumerate() {
            if uses[r] == 0 {
                continue;
            }
            let rule = match rule[..] {
                [LOOP, body, count] => match expand(&[body], &results)[..] {
                    [body] => GrammarRule::Loop { body, count },
                    _ => continue,
                },
                _ => GrammarRule::Sequence(expand(rule, &results)),
            };
            results[r] = match rule {
                GrammarRule::Sequence(parts) if uses[r] == 1 && !in_loop[r] => parts,
                rule => {
                    grammar.rules.push(rule);
                    vec![GrammarSymbol::Rule(grammar.rules.len() as u32 - 1)]
                }
            };
        }
        grammar.top = expand(top, &results);
        grammar
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(text: &str) -> Vec<u32> {
        text.bytes().map(u32::from).collect()
    }

    fn show(grammar: &Grammar, items: &[GrammarSymbol]) -> String {
        let one = |item: &GrammarSymbol| match item {
            GrammarSymbol::Symbol(s) => char::from_u32(*s).unwrap().to_string(),
            GrammarSymbol::Rule(r) => match &grammar.rules[*r as usize] {
                GrammarRule::Sequence(parts) => format!("({})", show(grammar, parts)),
                GrammarRule::Loop { body, count } => format!("{count}{}", show(grammar, &[*body])),
            },
        };
        items.iter().map(one).collect()
    }

    fn mined(text: &str) -> String {
        let grammar = mine(&word(text), &Cancel::default());
        show(&grammar, &grammar.top)
    }

    #[test]
    fn mine_gives_the_examples_of_the_handbook() {
        assert_eq!(mined("abcabcabx"), "2((ab)c)(ab)x");
        assert_eq!(mined("abcabcabc"), "3(abc)");
        assert_eq!(mined("abababcabab"), "3(ab)c2(ab)");
    }

    #[test]
    fn mine_finds_loops_inside_loops() {
        assert_eq!(mined(&"aabbc".repeat(5)), "5(2a2bc)");
        assert_eq!(mined(&format!("x{}y", "aaaabbbbr".repeat(3))), "x3(4a4br)y");
        assert_eq!(mined(&format!("i{}f", format!("{}r", "pqs".repeat(10)).repeat(6))), "i6(10(pqs)r)f");
    }

    #[test]
    fn mine_finds_no_rules_without_repetition() {
        assert_eq!(mine(&[], &Cancel::default()), Grammar::default());
        assert_eq!(mined("abcdefg"), "abcdefg");
    }
}
