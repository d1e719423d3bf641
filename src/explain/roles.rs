//! The roles of an MPI run's ranks: what stays comparable when the same program runs on another number of ranks, where
//! rank 9 has another part of the work.
//!
//! In: messages and collective operations. Out: a noun phrase by stream. Ranks that exchange messages with equally many
//! others have one role (the corners, edges and inner ranks of a grid, the master and the workers of a farm), and so
//! have roots of collective operations. Where all ranks are alike there is one role, whatever the number of partners:
//! it may grow with the number of ranks. Cost: linear in the messages, a look-up each.

use crate::base::figure;
use crate::event::operation::{CollectiveKind, Operations};
use crate::model::carrier::Carrier;
use foldhash::HashSet;
use std::collections::{BTreeMap, BTreeSet};

/// Communication of one rank.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Communication {
    partners: usize,
    is_root: bool,
}

/// The roles of all streams; those of one rank have one. `None` where a stream belongs to no rank.
pub(super) fn roles(operations: &Operations) -> Vec<Option<String>> {
    let rank = |stream: u32| operations.sequences.get(stream as usize).and_then(|s| s.rank);
    let ranks: BTreeSet<u32> = operations.sequences.iter().filter_map(|s| s.rank).collect();
    let mut pairs: HashSet<(u32, u32)> = HashSet::default();
    for message in operations.messages.iter().filter(|m| m.carrier == Carrier::Message) {
        if let (Some(from), Some(to)) = (rank(message.from.stream), rank(message.to.stream))
            && from != to
        {
            pairs.insert((from.min(to), from.max(to)));
        }
    }
    let mut found: BTreeMap<u32, Communication> = ranks.iter().map(|rank| (*rank, Communication::default())).collect();
    for rank in pairs.into_iter().flat_map(|(a, b)| [a, b]) {
        found.entry(rank).or_default().partners += 1;
    }
    for collective in &operations.collectives {
        let (CollectiveKind::FromOne(root) | CollectiveKind::ToOne(root)) = collective.exchange else { continue };
        let place = root.and_then(|root| collective.members.get(root as usize));
        if let Some(rank) = place.and_then(|place| rank(place.stream)) {
            found.entry(rank).or_default().is_root = true;
        }
    }
    let distinct: BTreeSet<&Communication> = found.values().collect();
    let one_role = distinct.len() < 2;
    let phrase = |rank: u32| match found.get(&rank) {
        _ if one_role => "any rank".to_owned(),
        Some(communication) => communication.phrase(ranks.len()),
        None => Communication::default().phrase(ranks.len()),
    };
    operations.sequences.iter().map(|s| s.rank.map(phrase)).collect()
}

impl Communication {
    fn phrase(&self, ranks: usize) -> String {
        let root = if self.is_root { "root rank" } else { "rank" };
        match self.partners {
            0 if self.is_root => root.to_owned(),
            0 => "rank without messages".to_owned(),
            // Among very few ranks a neighbour cannot be distinguished from a partner of all.
            n if n + 1 == ranks && ranks > FEW => format!("{root} that exchanges with all"),
            n => format!("{root} with {}", figure::plural(n as u64, "partner")),
        }
    }
}

/// So few ranks may all be neighbours.
const FEW: usize = 5;
