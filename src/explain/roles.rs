//! The roles of an MPI run's ranks: what stays comparable when the same program runs on another number of ranks, where
//! rank 9 has another part of the work.
//!
//! In: messages and collective operations. Out: a noun phrase by stream. Numbers of partners and of ranks grow from run
//! to run, so a role is relative to its own run:
//!
//! - *Root*: a rooted collective has it as its root. Where more than a quarter of the ranks are roots in turn, none is.
//! - *Hub*: it exchanges messages with at least half of the others, and no more than a quarter of the ranks do (the
//!   master of a farm). The messages of hubs are not counted for the others.
//! - The others by the distinct numbers of their partners of messages, in order: the fewest (the corners of a grid, the
//!   leaves of a tree), few, a medium number (the edges of a plane), many, the most (the inner ranks). Where all have
//!   equally many, that is no role.
//!
//! Where all ranks are alike there is one role. Collectives make no partners. Cost: linear in the messages, a look-up
//! each.

use crate::event::operation::{CollectiveInstance, CollectiveKind, Message, Operations};
use crate::model::carrier::Carrier;
use foldhash::HashSet;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

/// The role of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Role {
    is_root: bool,
    partners: Partners,
}

/// The number of a rank's partners, relative to the others of its run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Partners {
    /// All ranks have equally many.
    AsAll,
    None,
    Fewest,
    Few,
    Medium,
    Many,
    Most,
    /// Most of all ranks, which others have not.
    Hub,
}

/// Roots and hubs are roles if at most one in this number of ranks is one.
const RARE: usize = 4;
/// Among so few ranks a neighbour cannot be distinguished from a partner of all.
const FEW_RANKS: usize = 5;

/// The roles of all streams; those of one rank have one. `None` where a stream belongs to no rank.
pub(super) fn roles(operations: &Operations) -> Vec<Option<String>> {
    let ranks: BTreeSet<u32> = operations.sequences.iter().filter_map(|s| s.rank).collect();
    let pairs = pairs(operations);
    let roots = rare(roots(operations), ranks.len());
    let hubs = hubs(&pairs, ranks.len());
    let partners = partners(&pairs, &ranks, &hubs);
    let role = |rank: u32| Role {
        is_root: roots.contains(&rank),
        partners: partners.get(&rank).copied().unwrap_or(Partners::None),
    };
    let one_role = ranks.iter().map(|rank| role(*rank)).collect::<BTreeSet<Role>>().len() < 2;
    let phrase = |rank| if one_role { "any rank" } else { role(rank).phrase() };
    operations.sequences.iter().map(|s| s.rank.map(|rank| phrase(rank).to_owned())).collect()
}

/// The ranks that exchange messages, each pair once, the smaller rank first.
fn pairs(operations: &Operations) -> HashSet<(u32, u32)> {
    let rank = |stream: u32| operations.sequences.get(stream as usize).and_then(|s| s.rank);
    let messages = operations.messages.iter().filter(|m| m.carrier == Carrier::Message);
    let pair = |m: &Message| {
        let (from, to) = (rank(m.from.stream)?, rank(m.to.stream)?);
        (from != to).then_some((from.min(to), from.max(to)))
    };
    messages.filter_map(pair).collect()
}

fn roots(operations: &Operations) -> BTreeSet<u32> {
    let root = |collective: &CollectiveInstance| {
        let (CollectiveKind::FromOne(root) | CollectiveKind::ToOne(root)) = collective.exchange else { return None };
        let place = collective.members.get(root? as usize)?;
        operations.sequences.get(place.stream as usize)?.rank
    };
    operations.collectives.iter().filter_map(root).collect()
}

/// The ranks, if they are few of all.
fn rare(ranks: BTreeSet<u32>, of: usize) -> BTreeSet<u32> {
    if ranks.len() * RARE <= of.max(RARE) { ranks } else { BTreeSet::new() }
}

fn hubs(pairs: &HashSet<(u32, u32)>, ranks: usize) -> BTreeSet<u32> {
    if ranks <= FEW_RANKS {
        return BTreeSet::new();
    }
    let mut counts: BTreeMap<u32, usize> = BTreeMap::new();
    pairs.iter().flat_map(|(a, b)| [a, b]).for_each(|rank| *counts.entry(*rank).or_default() += 1);
    let with_most = counts.into_iter().filter(|(_, partners)| partners * 2 >= ranks - 1);
    rare(with_most.map(|(rank, _)| rank).collect(), ranks)
}

/// The partners of each rank, relative to those of the others.
fn partners(pairs: &HashSet<(u32, u32)>, ranks: &BTreeSet<u32>, hubs: &BTreeSet<u32>) -> BTreeMap<u32, Partners> {
    let mut counts: BTreeMap<u32, usize> =
        ranks.iter().filter(|rank| !hubs.contains(rank)).map(|rank| (*rank, 0)).collect();
    for (a, b) in pairs.iter().filter(|(a, b)| !hubs.contains(a) && !hubs.contains(b)) {
        for rank in [a, b] {
            *counts.entry(*rank).or_default() += 1;
        }
    }
    let is_alike = counts.values().collect::<BTreeSet<_>>().len() < 2;
    let distinct: Vec<usize> =
        counts.values().copied().filter(|n| *n > 0).collect::<BTreeSet<_>>().into_iter().collect();
    let relative = |n: usize| match distinct.binary_search(&n) {
        _ if is_alike => Partners::AsAll,
        Err(_) => Partners::None,
        Ok(at) if at + 1 == distinct.len() => Partners::Most,
        Ok(0) => Partners::Fewest,
        Ok(at) => match (2 * at + 1).cmp(&distinct.len()) {
            Ordering::Less => Partners::Few,
            Ordering::Equal => Partners::Medium,
            Ordering::Greater => Partners::Many,
        },
    };
    let others = counts.into_iter().map(|(rank, n)| (rank, relative(n)));
    others.chain(hubs.iter().map(|hub| (*hub, Partners::Hub))).collect()
}

impl Role {
    fn phrase(self) -> &'static str {
        match (self.is_root, self.partners) {
            (false, Partners::AsAll) => "other rank",
            (false, Partners::None) => "rank without messages",
            (false, Partners::Fewest) => "rank with the fewest partners",
            (false, Partners::Few) => "rank with few partners",
            (false, Partners::Medium) => "rank with a medium number of partners",
            (false, Partners::Many) => "rank with many partners",
            (false, Partners::Most) => "rank with the most partners",
            (false, Partners::Hub) => "rank that exchanges with most",
            (true, Partners::AsAll) => "root rank",
            (true, Partners::None) => "root rank without messages",
            (true, Partners::Fewest) => "root rank with the fewest partners",
            (true, Partners::Few) => "root rank with few partners",
            (true, Partners::Medium) => "root rank with a medium number of partners",
            (true, Partners::Many) => "root rank with many partners",
            (true, Partners::Most) => "root rank with the most partners",
            (true, Partners::Hub) => "root rank that exchanges with most",
        }
    }
}
