//! The times of one execution by node of its outline.
//!
//! In: times, in order of the path. Out: the same in that order, where a timeline is wanted, else the time of each
//! node once. A path may alternate between a few nodes for as long as the recording lasts, so equal nodes are added up
//! whenever the list has doubled since they were last: it is never longer than twice its nodes, or [`LEAST`]. Cost: a
//! time is sorted about log(nodes) times over.

use crate::analysis::outline::OutlineId;
use crate::base::packed::packed;

/// Times that are kept before equal nodes are added up.
const LEAST: usize = 4096;

/// A time of one execution in a node, without the nodes below.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeTime {
    /// In which node; an execution may have several times in one.
    pub node: OutlineId,
    pub ns: u64,
}

packed! { NodeTime { node, ns } }

/// The order of an execution's times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeOrder {
    /// That of the path.
    Kept,
    /// By node, each once.
    ByNode,
}

/// The times of a path that is being walked.
pub(super) struct NodeTimes {
    times: Vec<NodeTime>,
    order: TimeOrder,
    /// So many are added up.
    most: usize,
}

impl NodeTimes {
    /// None yet, of a path with this many segments.
    pub fn new(order: TimeOrder, segments: usize) -> NodeTimes {
        let (room, most) = match order {
            TimeOrder::Kept => (segments, usize::MAX),
            TimeOrder::ByNode => (segments.min(LEAST), LEAST),
        };
        NodeTimes { times: Vec::with_capacity(room), order, most }
    }

    /// The next time of the path.
    pub fn push(&mut self, time: NodeTime) {
        if self.times.len() >= self.most {
            add_equal_nodes(&mut self.times);
            self.most = LEAST.max(2 * self.times.len());
        }
        self.times.push(time);
    }

    pub fn take(mut self) -> Vec<NodeTime> {
        match self.order {
            TimeOrder::Kept => {}
            TimeOrder::ByNode => add_equal_nodes(&mut self.times),
        }
        self.times.shrink_to_fit();
        self.times
    }
}

/// One time for each node, by node.
pub fn add_equal_nodes(times: &mut Vec<NodeTime>) {
    times.sort_unstable_by_key(|time| time.node);
    times.dedup_by(|next, kept| {
        let same = next.node == kept.node;
        if same {
            kept.ns += next.ns;
        }
        same
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_path_between_few_nodes_takes_the_memory_of_its_nodes() {
        let pushed = |order: TimeOrder| {
            let mut times = NodeTimes::new(order, 1 << 20);
            let mut most = 0;
            for i in 0..1 << 20 {
                times.push(NodeTime { node: OutlineId::at(i % 5000), ns: i as u64 });
                most = most.max(times.times.len());
            }
            (times.take(), most)
        };
        let (kept, _) = pushed(TimeOrder::Kept);
        assert!(kept.iter().enumerate().all(|(i, time)| time.ns == i as u64 && time.node == OutlineId::at(i % 5000)));
        let (by_node, most) = pushed(TimeOrder::ByNode);
        assert!(most <= 2 * 5000 && by_node.capacity() < 6000, "{most} {}", by_node.capacity());
        let mut want = kept;
        add_equal_nodes(&mut want);
        assert_eq!(by_node, want);
        assert_eq!((want.len(), want[1].ns), (5000, (0..1 << 20).skip(1).step_by(5000).sum::<u64>()));
    }
}
