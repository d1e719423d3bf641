//! The time of one execution by context, added up as it is found.
//!
//! In: contexts with times, any number of times each. Out: each context once, ascending, as `Sparse` keeps them. Cost:
//! an addition per time, and sorting the distinct contexts.

use crate::base::time::Ns;
use crate::model::context::ContextId;
use crate::model::execution::ContextTime;

/// Sums by context; emptied by [`OwnTimes::take`] and used again.
#[derive(Debug, Default)]
pub(super) struct OwnTimes {
    /// By context; zero for those that are not in `with_time`.
    sums: Vec<u64>,
    with_time: Vec<ContextId>,
}

impl OwnTimes {
    /// Add a time, if there is any.
    pub(super) fn add(&mut self, context: ContextId, ns: Ns) {
        if ns <= 0 {
            return;
        }
        if self.sums.len() <= context.index() {
            self.sums.resize(context.index() + 1, 0);
        }
        if let Some(sum) = self.sums.get_mut(context.index()) {
            if *sum == 0 {
                self.with_time.push(context);
            }
            *sum += ns as u64;
        }
    }

    /// The contexts with their times, ascending; none are left.
    pub(super) fn take(&mut self) -> Vec<ContextTime> {
        self.with_time.sort_unstable();
        let sums = &mut self.sums;
        let time =
            |context: ContextId| ContextTime { context, ns: sums.get_mut(context.index()).map_or(0, std::mem::take) };
        self.with_time.drain(..).map(time).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_times_are_sums_by_context_and_begin_anew() {
        let mut own = OwnTimes::default();
        let [a, b] = [3, 900].map(ContextId::at);
        [(b, 5), (a, 1), (b, 2), (a, 0), (a, -4)].into_iter().for_each(|(context, ns)| own.add(context, ns));
        let time = |context, ns| ContextTime { context, ns };
        assert_eq!(own.take(), [time(a, 1), time(b, 7)]);
        own.add(b, 1);
        assert_eq!(own.take(), [time(b, 1)]);
        assert_eq!(own.take(), []);
    }
}
