//! The branches of a variant or an optional, as the compiler needs them: fields, and the selector values of each.

use super::schema::{Choice, Field, Source, ValueRange};
use super::want::Want;

/// The branches of a variant or an optional, and the values that select them.
pub(super) struct Branches<'f, 'w> {
    pub(super) by: &'f Source,
    pub(super) signed: bool,
    /// The values that select each branch.
    pub(super) cases: Vec<BranchCase>,
    pub(super) fields: Vec<Branch<'f, 'w>>,
    pub(super) fallback: Fallback,
}

/// Selector values that select a branch.
#[derive(Clone, Copy)]
pub(super) struct BranchCase {
    pub(super) values: ValueRange,
    /// Position of the branch.
    pub(super) branch: usize,
}

/// A branch: its field, and the wanted part of it.
pub(super) struct Branch<'f, 'w> {
    pub(super) want: Want<'w>,
    pub(super) field: &'f Field,
}

impl<'f, 'w> Branch<'f, 'w> {
    /// The branch of a variant's option.
    pub(super) fn of_option(option: &'f Choice, want: &Want<'w>) -> Self {
        Branch { want: want.member(option.name()), field: &option.field }
    }
}

/// The effect of a selector value without a case.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Fallback {
    /// The event is damaged.
    Damage,
    /// The field is missing.
    Missing,
}

/// The values of each branch in the unsigned order of a [`Case`](super::steps::Case), without values that the selector
/// cannot have.
pub(super) fn in_order(branches: &Branches<'_, '_>) -> impl Iterator<Item = (u64, u64, usize)> {
    let signed = branches.signed;
    let (least, most) = match signed {
        true => (i64::MIN.into(), i64::MAX.into()),
        false => (0, i128::from(u64::MAX)),
    };
    let unsigned = move |v: i128| if signed { (v as i64 as u64) ^ (1 << 63) } else { v as u64 };
    branches.cases.iter().filter_map(move |BranchCase { values, branch }| {
        let (low, high) = (values.first.max(least), values.last.min(most));
        (low <= high).then(|| (unsigned(low), unsigned(high), *branch))
    })
}
