//! Groups of threads, each of which a worker takes at once.
//!
//! In: a timeline, and how many rows a thread has for the question. Out: ranges of its threads in their order, each of
//! [`ROWS`] rows or less, unless one thread alone has more: a worker that is given a busy thread gets no other one.
//! Because the groups depend on the timeline alone, any number of workers finds the same in the same order. Cost: a
//! look at each thread.

use crate::base::ctx::{Cancelled, Ctx};
use crate::base::parallel::in_order;
use crate::timeline::questions::Asker;
use crate::timeline::reader::RowReader;
use crate::timeline::{Thread, ThreadId, Timeline};
use std::ops::Range;

/// Threads of a group, at most.
const THREADS: usize = 64;
/// Rows of a group of several threads, at most.
const ROWS: u64 = 1 << 14;

/// See the module.
#[derive(Debug)]
pub struct ThreadGroups<'t> {
    timeline: &'t Timeline,
    groups: Vec<Range<usize>>,
}

impl<'t> ThreadGroups<'t> {
    /// All threads of a timeline; `rows` says how many rows one has.
    pub fn new(timeline: &'t Timeline, rows: impl Fn(ThreadId) -> u64) -> ThreadGroups<'t> {
        let mut groups: Vec<Range<usize>> = Vec::new();
        let mut sum = 0;
        for (id, _) in timeline.threads_by_id() {
            let own = rows(id);
            match groups.last_mut().filter(|group| group.len() < THREADS && sum + own <= ROWS) {
                Some(group) => {
                    group.end += 1;
                    sum += own;
                }
                None => {
                    groups.push(id.index()..id.index() + 1);
                    sum = own;
                }
            }
        }
        ThreadGroups { timeline, groups }
    }

    /// How many groups there are.
    pub fn len(&self) -> usize {
        self.groups.len()
    }

    /// The positions of the threads of a group.
    pub fn positions(&self, group: usize) -> Range<usize> {
        self.groups.get(group).cloned().unwrap_or_default()
    }

    /// What `find` finds of each thread, handed to `take` in the order of the threads.
    pub fn each<T: Send>(
        &self,
        asker: Asker,
        ctx: &Ctx,
        find: impl Fn(&RowReader<'t>, ThreadId, &'t Thread) -> Option<T> + Sync + Send,
        mut take: impl FnMut(ThreadId, T) + Send,
    ) -> Result<(), Cancelled> {
        let of_group = |group: usize| {
            let reader = self.timeline.reader(asker);
            let found = self.threads(group).filter_map(|(id, thread)| Some((id, find(&reader, id, thread)?)));
            found.collect::<Vec<(ThreadId, T)>>()
        };
        in_order(ctx, self.len(), of_group, |_, found| found.into_iter().for_each(|(id, found)| take(id, found)))
    }

    /// The threads of a group.
    pub fn threads(&self, group: usize) -> impl Iterator<Item = (ThreadId, &'t Thread)> {
        let positions = self.positions(group);
        self.timeline.threads_by_id().skip(positions.start).take(positions.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::timeline_builder::TimelineBuilder;

    #[test]
    fn groups_hold_every_thread_once_and_busy_ones_alone() {
        let timeline = TimelineBuilder::new(200).sealed();
        let threads = timeline.threads().len();
        let busy = 70;
        let groups = ThreadGroups::new(&timeline, |id| if id.index() == busy { 5 * ROWS } else { 1 });
        let all: Vec<Range<usize>> = (0..groups.len()).map(|group| groups.positions(group)).collect();
        assert_eq!(
            all,
            [0..64, 64..busy, busy..busy + 1, busy + 1..busy + 65, busy + 65..busy + 129, busy + 129..threads]
        );
        let ids: Vec<usize> =
            (0..groups.len()).flat_map(|group| groups.threads(group)).map(|(id, _)| id.index()).collect();
        assert!(ids.iter().copied().eq(0..threads));
    }
}
