//! The files of control groups and of `/proc`, as text.

use crate::model::environment::{SampledValue, SampledValues};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// The text of a file of the kernel; bytes that are no text are replaced.
pub(super) fn text(path: &Path) -> Option<String> {
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(MOST_READ).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// The lines `NAME NUMBER` of a file whose names are among `wanted`.
pub(super) fn named_counts<'t>(text: &'t str, wanted: &'t [&str]) -> impl Iterator<Item = (&'t str, u64)> {
    let pairs = text.lines().filter_map(|line| line.split_once([' ', '\t']));
    let of = pairs.filter(|(name, _)| wanted.contains(name));
    of.filter_map(|(name, number)| Some((name, number.trim().parse().ok()?)))
}

/// `some` and `full` of a pressure file: time in us for which some or all threads waited.
pub(super) fn pressure(text: &str, of: &str, into: &mut SampledValues) {
    for line in text.lines() {
        let Some((which, rest)) = line.split_once(' ') else { continue };
        let total = rest.split(' ').find_map(|word| word.strip_prefix("total=")?.parse().ok());
        if let Some(total) = total.filter(|_| matches!(which, "some" | "full")) {
            into.insert(format!("pressure.{of}.{which}_us"), SampledValue::Count(total));
        }
    }
}

/// The distinct paths of control groups.
pub(super) type GroupPaths = BTreeSet<String>;

/// Bytes of a file that are read.
pub(super) const MOST_READ: u64 = 1 << 16;
