//! The parts of a file that something in it describes, and the rest.
//!
//! In: the places of headers, tables, sections and data, in any order; they may overlap. Out: the parts between them
//! that hold more than zeros, which is how recorders fill up to a page. Cost: sorting, and reading what is left.

use crate::base::notice::{Notice, Notices};
use std::iter;
use std::ops::Range;

/// See the module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Coverage {
    described: Vec<Range<usize>>,
}

impl Coverage {
    /// Something describes these bytes.
    pub fn claim(&mut self, part: Range<usize>) {
        if !part.is_empty() {
            self.described.push(part);
        }
    }

    /// The parts that nothing describes.
    pub fn rest(&self, file: &[u8]) -> Vec<Range<usize>> {
        let mut described = self.described.clone();
        described.sort_unstable_by_key(|part| part.start);
        let (mut rest, mut at) = (Vec::new(), 0);
        let after = file.len()..file.len();
        for Range { start, end } in described.into_iter().chain(iter::once(after)) {
            if file.get(at..start).is_some_and(|part| part.iter().any(|byte| *byte != 0)) {
                rest.push(at..start);
            }
            at = at.max(end);
        }
        rest
    }

    /// Add a notice of the parts that nothing describes; `name` is the file's.
    pub fn notice(&self, file: &[u8], name: &str, notices: &mut Notices) {
        for Range { start, end } in self.rest(file) {
            notices.add(Notice::PartsUnclaimed, 1, || format!("{name}: bytes {start} to {end}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rest_is_what_nothing_describes_and_is_not_zero() {
        let file = [1, 1, 0, 0, 2, 2, 0, 3, 3, 0];
        let mut coverage = Coverage::default();
        let rest =
            |coverage: &Coverage| coverage.rest(&file).iter().map(|part| [part.start, part.end]).collect::<Vec<_>>();
        assert_eq!(rest(&coverage), [[0, 10]]);
        coverage.claim(4..5);
        coverage.claim(0..2);
        coverage.claim(1..2);
        assert_eq!(rest(&coverage), [[5, 10]]);
        // What passes the end describes nothing there.
        coverage.claim(7..usize::MAX);
        assert_eq!(rest(&coverage), [[5, 7]]);
        coverage.claim(5..6);
        assert!(rest(&coverage).is_empty());
        let mut notices = Notices::default();
        Coverage::default().notice(&file, "x", &mut notices);
        assert_eq!(notices.count(Notice::PartsUnclaimed), 1);
    }
}
