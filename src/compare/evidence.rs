//! The data by which the verdict and its doubts are weighed.

use super::causes::RankedCauses;
use super::chance::RandomSplits;
use super::dimension::SeparatingDimension;
use super::tail::CauseTimes;
use super::tree::GroupPair;
use super::{Group, GroupsOrigin};

/// The data of a verdict.
pub(super) struct Evidence<'a> {
    pub groups: &'a GroupPair<'a>,
    pub slow: &'a Group,
    pub fast: &'a Group,
    pub origin: GroupsOrigin,
    pub extra_ns: i64,
    pub ranked: &'a RankedCauses,
    /// The time of each execution in the first cause.
    pub in_first: CauseTimes<'a>,
    /// Random groups of the same sizes.
    pub splits: RandomSplits,
    pub dimensions: &'a [SeparatingDimension],
}

/// Fewest slow executions whose common property is an answer: fewer of them share some property by chance, and that
/// they are the threads or processes of one name does not say why these take long.
pub(super) const FEWEST_ALIKE: usize = 5;
