//! What became of the records of each input: `--check` says it, and ends where the sums are wrong.

use super::Session;
use super::run::MpiRuns;
use super::traces::Traces;
use crate::base::ctx::{Cancelled, Ctx};
use crate::input::account::Account;
use crate::input::checked_account::{self, CheckedAccount};

/// The account of an input that the user named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabelledAccount {
    /// As the user named it.
    pub label: String,
    /// Of all its traces.
    pub account: Account,
    /// The first sum that is wrong.
    pub broken: Option<String>,
}

impl LabelledAccount {
    /// Add the account of one more trace of the input.
    fn add(all: &mut Vec<LabelledAccount>, label: String, CheckedAccount { account, broken }: CheckedAccount) {
        match all.iter_mut().find(|one| one.label == label) {
            Some(one) => {
                one.account.merge(&account);
                one.broken = one.broken.take().or(broken);
            }
            None => all.push(LabelledAccount { label, account, broken }),
        }
    }
}

impl Session {
    /// By input: what became of its records. None for databases and history files, which have no records.
    pub fn accounts(&self, ctx: &Ctx) -> Result<Vec<LabelledAccount>, Cancelled> {
        let mut all = Vec::new();
        match self {
            Session::Traces(traces) => traces.accounts(&mut all, ctx)?,
            Session::Run(run) => run.accounts(&mut all, ctx)?,
            Session::Databases(_) | Session::Partials(_) => {}
        }
        Ok(all)
    }
}

impl Traces {
    fn accounts(&self, all: &mut Vec<LabelledAccount>, ctx: &Ctx) -> Result<(), Cancelled> {
        for source in &self.sources {
            LabelledAccount::add(all, source.label.clone(), checked_account::of_source(source, ctx)?);
        }
        self.others.iter().try_for_each(|other| other.accounts(all, ctx))
    }
}

impl MpiRuns {
    fn accounts(&self, all: &mut Vec<LabelledAccount>, ctx: &Ctx) -> Result<(), Cancelled> {
        LabelledAccount::add(
            all,
            self.archive.path.display().to_string(),
            checked_account::of_archive(&self.archive, ctx)?,
        );
        self.others.iter().try_for_each(|other| other.accounts(all, ctx))
    }
}
