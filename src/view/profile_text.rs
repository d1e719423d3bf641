//! A profile as text: whose samples they are, what each side has by the run, and where they fell.
//!
//! The causes, the tree and the caveats are those of [`super::text`]; this file has what reads otherwise where the
//! executions are samples: sums in place of means, and shares of processes, threads and images.

use super::page::Page;
use super::words;
use crate::base::figure;
use crate::compare::{Comparison, Dimension, GroupsOrigin};
use crate::model::Model;
use crate::model::profile::Profile;

/// The lines below the verdict: what was sampled, and the amounts of both sides.
pub(super) fn head(model: &Model, profile: &Profile, c: &Comparison, page: Page, out: &mut String) {
    let samples = |n: usize| figure::plural(n as u64, "sample");
    let runs = match model.traces.len() {
        1 => String::new(),
        n => format!(" of {n} recordings"),
    };
    page.wrap(out, 0, &format!("{}: {} of {}{runs}", profile.whose, samples(model.executions.len()), profile.event));
    if c.verdict.groups == GroupsOrigin::All {
        return;
    }
    for (name, group) in [("slow", &c.slow), ("fast", &c.fast)] {
        let filters: Vec<String> = group.filters.iter().map(words::filter).collect();
        let (count, whole) = (samples(group.members.len()), profile.amount(group.mean_ns as f64));
        page.wrap(out, 2, &format!("{name}: {whole} by the run, {count} ({})", filters.join(", ")));
    }
}

/// The title of the causes.
pub(super) fn title(profile: &Profile, c: &Comparison) -> String {
    let amount = profile.amount(c.extra_ns as f64);
    match c.verdict.groups {
        GroupsOrigin::All => format!("Functions by what they took themselves, of {amount}"),
        _ => format!("Functions by what they gained, of {amount}"),
    }
}

/// Where the samples fell: processes, threads, images.
pub(super) fn places(c: &Comparison, page: Page, out: &mut String) {
    let alone = c.verdict.groups == GroupsOrigin::All;
    let mut at = 0;
    out.push_str("\nWhere the samples fell\n");
    while let Some(first) = c.dimensions.get(at) {
        let alike: Vec<&Dimension> = c.dimensions[at..].iter().take_while(|d| d.name == first.name).collect();
        let value = |d: &&Dimension| {
            if alone {
                format!("{} {}", d.value, figure::share(d.slow_share))
            } else {
                format!("{} {} (fast: {})", d.value, figure::share(d.slow_share), figure::share(d.fast_share))
            }
        };
        let values: Vec<String> = alike.iter().map(value).collect();
        page.wrap(out, 2, &format!("{}: {}", first.name, values.join(", ")));
        at += alike.len();
    }
}
