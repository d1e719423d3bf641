//! The accounts of opened recordings, compared with what their readers count.
//!
//! In: an opened trace or archive. Out: its [`Account`], and the first sum of it that is wrong. Cost: a recording is
//! read three times.

use super::account::Account;
use super::source::Source;
use super::{count, otf2};
use crate::base::ctx::{Cancelled, Ctx};

/// The account of a recording, and what is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckedAccount {
    pub account: Account,
    /// The sum that is wrong.
    pub broken: Option<String>,
}

/// Account for the records of a trace. Cost: reading it three times.
pub fn of_source(source: &Source, ctx: &Ctx) -> Result<CheckedAccount, Cancelled> {
    let account = source.trace.account(ctx)?;
    let (counts, notices) = count::count(std::slice::from_ref(source), ctx)?;
    let broken = account.broken(counts.events, &notices);
    Ok(CheckedAccount { account, broken })
}

/// Account for the records of an archive.
pub fn of_archive(archive: &otf2::Archive, ctx: &Ctx) -> Result<CheckedAccount, Cancelled> {
    let otf2::CountedArchive { account, events, notices } = archive.account(ctx)?;
    let broken = account.broken(events, &notices);
    Ok(CheckedAccount { account, broken })
}
