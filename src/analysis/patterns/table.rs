//! The patterns of all streams in one table, and where they occur.
//!
//! In: one grammar per stream. Out: [`PatternTable`]. Rules with equal content are one pattern on whatever streams they
//! occur, so that ranks that run the same code are measured by the same reference and a rank that is always slower
//! shows up. Cost: linear in the grammars, and one walk over each stream's derivation.
//!
//! *Units*: occurrences are compared where that means most, at the innermost repeated sequence. A unit is a sequence of
//! operations and of short loops over one operation (`2 x MPI_Irecv`). Where a rule mixes units with operations of its
//! own (`loop 10 x (...)`, then `MPI_Allreduce`), each run of those is a unit too: so every repeated operation is in
//! exactly one unit, and an anomaly is found at its own scale instead of being lost in an outer loop. ALGORITHMS.md
//! 9.3, 9.4.

use super::grammar::{Grammar, GrammarRule, GrammarSymbol};
use crate::base::ctx::{Cancel, Cancelled};
use crate::base::names::{NameId, Names};
use foldhash::HashMap;

crate::base::names::handle! {
    /// A pattern of a [`PatternTable`].
    PatternId,
}

/// A part of a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PatternPart {
    Operation(NameId),
    /// Another pattern.
    Pattern(PatternId),
}

/// Composition of a pattern.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum PatternShape {
    /// Its parts one after another.
    Sequence(Vec<PatternPart>),
    /// One part, `count` times.
    Loop {
        /// The repeated item.
        body: PatternPart,
        count: u32,
    },
}

/// The role of a pattern when occurrences are measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PatternRole {
    /// Its occurrences are compared; no part of it is measured by itself.
    Unit,
    /// It has units as parts.
    Composite,
}

/// A pattern. Those that it uses have smaller ids.
#[derive(Clone, Debug)]
pub struct MinedPattern {
    pub shape: PatternShape,
    /// Operations in it, loops unrolled.
    pub length: u32,
    /// Its role when occurrences are measured.
    pub role: PatternRole,
    /// A short loop over one operation: part of a unit, never measured by itself.
    plain: bool,
}

/// One appearance of a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Occurrence {
    /// Position of the stream.
    pub stream: u32,
    /// Position of its first operation there.
    pub first: u32,
    /// It is the first iteration of a loop: pipelines fill and caches are cold there, so it is another population.
    pub opens: bool,
}

/// Patterns and their occurrences.
#[derive(Clone, Debug, Default)]
pub struct PatternTable {
    /// By [`PatternId`].
    pub patterns: Vec<MinedPattern>,
    /// By [`PatternId`]: by stream, then position. Empty for short loops over one operation.
    pub occurrences: Vec<Vec<Occurrence>>,
    /// By stream: the parts that derive all of it.
    pub tops: Vec<Vec<PatternPart>>,
    ids: HashMap<(PatternShape, PatternRole), PatternId>,
}

/// A loop over one operation with more iterations than this is measured iteration by iteration.
const SHORT_LOOP: u32 = 16;
/// Names of patterns are cut to about this many bytes: a grammar can derive a text far longer than itself.
const LONGEST_NAME: usize = 400;

impl PatternTable {
    /// Put the grammars of all streams, in order of the streams, into one table.
    pub fn new(grammars: &[Grammar], cancel: &Cancel) -> Result<Self, Cancelled> {
        let mut table = PatternTable::default();
        let add = |grammar: &Grammar| cancel.check().map(|()| table.add(grammar));
        let tops = grammars.iter().map(add).collect::<Result<Vec<Vec<PatternPart>>, Cancelled>>()?;
        let mut walk = Walk { patterns: &table.patterns, found: vec![Vec::new(); table.patterns.len()] };
        for (stream, top) in (0_u32..).zip(&tops) {
            cancel.check()?;
            let mut at = 0;
            for part in top {
                at += walk.visit(*part, Occurrence { stream, first: at, opens: false });
            }
        }
        table.occurrences = walk.found;
        table.tops = tops;
        Ok(table)
    }

    /// Add the rules of one grammar; its top in terms of the table.
    fn add(&mut self, grammar: &Grammar) -> Vec<PatternPart> {
        let mut parts_of_rules: Vec<PatternPart> = Vec::with_capacity(grammar.rules.len());
        let part = |item: &GrammarSymbol, rules: &[PatternPart]| match item {
            GrammarSymbol::Symbol(s) => PatternPart::Operation(NameId::from_raw(*s)),
            GrammarSymbol::Rule(r) => rules[*r as usize],
        };
        for rule in &grammar.rules {
            let part_of_rule = match rule {
                GrammarRule::Loop { body, count } => {
                    let mut body = part(body, &parts_of_rules);
                    if *count > SHORT_LOOP && matches!(body, PatternPart::Operation(_)) {
                        body = self.unit(vec![body]);
                    }
                    self.intern(PatternShape::Loop { body, count: *count }, PatternRole::Composite)
                }
                GrammarRule::Sequence(items) => {
                    let parts: Vec<PatternPart> = items.iter().map(|i| part(i, &parts_of_rules)).collect();
                    if parts.iter().all(|p| self.is_plain(*p)) {
                        self.unit(parts)
                    } else {
                        let parts = self.gather_plain(&parts);
                        self.intern(PatternShape::Sequence(parts), PatternRole::Composite)
                    }
                }
            };
            parts_of_rules.push(part_of_rule);
        }
        grammar.top.iter().map(|i| part(i, &parts_of_rules)).collect()
    }

    /// Replace each run of plain parts by a unit.
    fn gather_plain(&mut self, parts: &[PatternPart]) -> Vec<PatternPart> {
        let runs = parts.chunk_by(|a, b| self.is_plain(*a) && self.is_plain(*b));
        let runs: Vec<(bool, &[PatternPart])> = runs.map(|run| (run.iter().all(|p| self.is_plain(*p)), run)).collect();
        runs.into_iter().map(|(plain, run)| if plain { self.unit(run.to_vec()) } else { run[0] }).collect()
    }

    fn unit(&mut self, parts: Vec<PatternPart>) -> PatternPart {
        self.intern(PatternShape::Sequence(parts), PatternRole::Unit)
    }

    fn is_plain(&self, part: PatternPart) -> bool {
        match part {
            PatternPart::Operation(_) => true,
            PatternPart::Pattern(p) => self.patterns[p.index()].plain,
        }
    }

    /// The number of operations in a part.
    pub fn length(&self, part: PatternPart) -> u32 {
        length(&self.patterns, part)
    }

    fn intern(&mut self, shape: PatternShape, role: PatternRole) -> PatternPart {
        if let Some(id) = self.ids.get(&(shape.clone(), role)) {
            return PatternPart::Pattern(*id);
        }
        // No overflow: a pattern is no longer than the stream that it was mined from.
        let (length, plain) = match &shape {
            PatternShape::Sequence(parts) => (parts.iter().map(|p| self.length(*p)).sum(), false),
            PatternShape::Loop { body, count } => {
                (self.length(*body) * count, matches!(body, PatternPart::Operation(_)))
            }
        };
        let id = PatternId::at(self.patterns.len());
        self.patterns.push(MinedPattern { shape: shape.clone(), length, role, plain });
        self.ids.insert((shape, role), id);
        PatternPart::Pattern(id)
    }

    /// The body of a loop and its number of iterations; `None` for all other parts.
    pub fn iterations(&self, part: PatternPart) -> Option<(PatternId, u32)> {
        let PatternPart::Pattern(id) = part else { return None };
        match self.patterns[id.index()].shape {
            PatternShape::Loop { body: PatternPart::Pattern(body), count } => Some((body, count)),
            _ => None,
        }
    }

    /// Patterns that are measured: all but short loops over one operation.
    pub fn measured(&self) -> impl Iterator<Item = (PatternId, &MinedPattern)> {
        self.patterns.iter().enumerate().filter(|(_, p)| !p.plain).map(|(i, p)| (PatternId::at(i), p))
    }

    /// Its parts as text, such as `MPI_Waitall`, `2 x MPI_Irecv`, `loop 10 x (...)`; for a loop those of its body.
    pub fn symbols(&self, id: PatternId, names: &Names) -> Vec<String> {
        let shown = |part: &PatternPart| {
            let mut text = String::new();
            self.write(*part, names, &mut text);
            text
        };
        match &self.patterns[id.index()].shape {
            PatternShape::Sequence(parts) => parts.iter().map(shown).collect(),
            PatternShape::Loop { body: PatternPart::Pattern(body), .. } => self.symbols(*body, names),
            PatternShape::Loop { body, .. } => vec![shown(body)],
        }
    }

    /// The whole pattern as text.
    pub fn name(&self, id: PatternId, names: &Names) -> String {
        let mut text = String::new();
        self.write(PatternPart::Pattern(id), names, &mut text);
        text
    }

    fn write(&self, part: PatternPart, names: &Names, text: &mut String) {
        if text.len() > LONGEST_NAME {
            if !text.ends_with("...") {
                text.push_str("...");
            }
            return;
        }
        match part {
            PatternPart::Operation(name) => text.push_str(names.get(name)),
            PatternPart::Pattern(id) => match &self.patterns[id.index()].shape {
                PatternShape::Sequence(parts) => {
                    for (i, part) in parts.iter().enumerate() {
                        if i > 0 {
                            text.push(' ');
                        }
                        self.write(*part, names, text);
                    }
                }
                PatternShape::Loop { body: body @ PatternPart::Operation(_), count } => {
                    text.push_str(&format!("{count} x "));
                    self.write(*body, names, text);
                }
                PatternShape::Loop { body, count } => {
                    text.push_str(&format!("loop {count} x ("));
                    self.write(*body, names, text);
                    text.push(')');
                }
            },
        }
    }
}

fn length(patterns: &[MinedPattern], part: PatternPart) -> u32 {
    match part {
        PatternPart::Operation(_) => 1,
        PatternPart::Pattern(p) => patterns[p.index()].length,
    }
}

/// Collects occurrences along a derivation.
struct Walk<'a> {
    patterns: &'a [MinedPattern],
    found: Vec<Vec<Occurrence>>,
}

impl Walk<'_> {
    /// Add the occurrences below `part`, which occurs here; returns its length. The depth of recursion is that of the
    /// grammar, which the number of rounds bounds.
    fn visit(&mut self, part: PatternPart, here: Occurrence) -> u32 {
        let PatternPart::Pattern(id) = part else { return 1 };
        let patterns = self.patterns;
        let pattern = &patterns[id.index()];
        if pattern.plain {
            return pattern.length;
        }
        self.found[id.index()].push(here);
        match &pattern.shape {
            _ if pattern.role == PatternRole::Unit => {}
            PatternShape::Sequence(parts) => {
                let mut at = Occurrence { opens: false, ..here };
                for part in parts {
                    at.first += self.visit(*part, at);
                }
            }
            PatternShape::Loop { body, count } => {
                let step = length(patterns, *body);
                for i in 0..*count {
                    self.visit(*body, Occurrence { first: here.first + i * step, opens: i == 0, ..here });
                }
            }
        }
        pattern.length
    }
}
