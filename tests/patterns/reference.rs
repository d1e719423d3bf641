//! The reference procedure of the paper on pattern anomalies, as ALGORITHMS.md section 9.2 makes it deterministic:
//! quadratic, and a transcription of that text.

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unit {
    Symbol(u32),
    Pattern(usize),
    Loop(Box<Unit>, usize),
}
use Unit::*;

pub struct Mined {
    pub definitions: Vec<Vec<Unit>>,
    pub sequence: Vec<Unit>,
}

fn fold(sequence: &[Unit]) -> Vec<Unit> {
    let runs = sequence.chunk_by(|a, b| a == b);
    runs.map(|run| if run.len() == 1 { run[0].clone() } else { Loop(Box::new(run[0].clone()), run.len()) }).collect()
}

fn replace(sequence: &[Unit], what: &[Unit], by: usize) -> Vec<Unit> {
    let (mut out, mut at) = (Vec::new(), 0);
    while at < sequence.len() {
        if sequence[at..].starts_with(what) {
            out.push(Pattern(by));
            at += what.len();
        } else {
            out.push(sequence[at].clone());
            at += 1;
        }
    }
    out
}

fn again(sequence: &[Unit]) -> Option<Vec<Unit>> {
    let pair = |i: usize| &sequence[i..i + 2];
    (0..sequence.len().saturating_sub(1))
        .find(|i| (i + 2..sequence.len().saturating_sub(1)).any(|j| pair(j) == pair(*i)))
        .map(|i| pair(i).to_vec())
}

pub fn mine(symbols: &[u32]) -> Mined {
    let mut s = fold(&symbols.iter().map(|s| Symbol(*s)).collect::<Vec<_>>());
    let mut definitions: Vec<Vec<Unit>> = Vec::new();
    while let Some(pair) = again(&s) {
        let round = definitions.len();
        s = replace(&s, &pair, round);
        definitions.push(pair);
        loop {
            let before = (s.clone(), definitions.clone());
            s = fold(&s);
            for q in round..definitions.len() {
                let alone: Vec<usize> = (0..s.len()).filter(|i| s[*i] == Pattern(q)).collect();
                let followers: Vec<Option<&Unit>> = alone.iter().map(|i| s.get(i + 1)).collect();
                if alone.len() < 2 {
                    continue;
                }
                let first = followers[0].cloned();
                if let Some(c) = first.filter(|c| *c != Pattern(q) && followers.iter().all(|f| *f == Some(c)))
                    && !occurs_elsewhere(&definitions, &s, q)
                {
                    s = replace(&s, &[Pattern(q), c.clone()], q);
                    definitions[q].push(c);
                    continue;
                }
                let mut distinct: Vec<Unit> = followers.into_iter().flatten().cloned().collect();
                distinct.sort();
                let repeated: Vec<Unit> =
                    distinct.chunk_by(|a, b| a == b).filter(|run| run.len() >= 2).map(|run| run[0].clone()).collect();
                for c in repeated.into_iter().filter(|c| *c != Pattern(q)) {
                    let what = [Pattern(q), c];
                    s = replace(&s, &what, definitions.len());
                    definitions.push(what.to_vec());
                }
            }
            if (s.clone(), definitions.clone()) == before {
                break;
            }
        }
    }
    Mined { definitions, sequence: s }
}

/// Extending a definition is only sound when the pattern occurs nowhere but alone.
fn occurs_elsewhere(definitions: &[Vec<Unit>], s: &[Unit], q: usize) -> bool {
    let holds = |u: &Unit| matches!(u, Loop(body, _) if **body == Pattern(q));
    let inside = |u: &Unit| holds(u) || *u == Pattern(q);
    s.iter().any(holds) || definitions.iter().flatten().any(inside)
}

impl Mined {
    pub fn word(&self, unit: &Unit) -> Vec<u32> {
        match unit {
            Symbol(s) => vec![*s],
            Pattern(p) => self.definitions[*p].iter().flat_map(|u| self.word(u)).collect(),
            Loop(body, n) => self.word(body).repeat(*n),
        }
    }
}
