//! Wait chains: the contexts of executions without their functions, that is the waits and the threads waited for.
//!
//! ```text
//! ledgerd                               its own running
//! ledgerd > thread journal              time that journal ran while ledgerd waited
//! ledgerd > thread journal > preempted > thread backupd
//! ```
//! The same wait may happen in many functions, and stack samples may be missing; neither may decide whether a wait took
//! too long. So executions are compared by chain, and functions only name the result. In: the contexts of a model. Out:
//! a tree of [`WaitChain`]s and the chain of each context. Linear in the contexts.

use crate::base::names::NameId;
use crate::model::Model;
use crate::model::context::{ContextId, Contexts, FrameKind};
use crate::model::metric::{ABSENT, Metric};
use crate::model::wait_kind::WaitKind;
use foldhash::HashMap;

crate::base::names::handle! {
    /// A [`WaitChain`].
    ChainId,
}

/// The last link of a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ChainLink {
    /// The execution's own thread, by its process.
    Process(NameId),
    /// A wait, or an interruption, that names no thread.
    Wait(WaitKind, NameId),
    /// Another thread, by shown name, and how it was waited for.
    Thread(WaitKind, NameId),
}

impl ChainLink {
    /// It is a thread: time of its own is running.
    pub fn is_thread(self) -> bool {
        !matches!(self, ChainLink::Wait(..))
    }
}

/// A chain: the one above it and a link.
#[derive(Clone, Copy, Debug)]
pub struct WaitChain {
    /// Without its last link.
    pub above: Option<ChainId>,
    /// The last link.
    pub link: ChainLink,
    pub threads: u32,
}

/// The chains of a model; those above have smaller ids.
#[derive(Clone, Debug, Default)]
pub struct WaitChains {
    all: Vec<WaitChain>,
    /// By context.
    of_context: Vec<ChainId>,
}

impl WaitChains {
    /// Find the chains of all contexts.
    pub fn new(contexts: &Contexts) -> WaitChains {
        let mut chains = WaitChains::default();
        let mut ids: HashMap<(Option<ChainId>, ChainLink), ChainId> = HashMap::default();
        for (parent, frame) in contexts.nodes() {
            let above = parent.map(|p| chains.of(p));
            let link = match (frame.kind, above) {
                (FrameKind::Wait(spent), _) => ChainLink::Wait(spent, frame.name),
                (FrameKind::Thread(spent), _) => ChainLink::Thread(spent, frame.name),
                (_, None) => ChainLink::Process(frame.name),
                (_, Some(above)) => {
                    chains.of_context.push(above);
                    continue;
                }
            };
            let id = *ids.entry((above, link)).or_insert_with(|| {
                let threads = above.map_or(0, |a| chains.get(a).threads) + u32::from(link.is_thread());
                chains.all.push(WaitChain { above, link, threads });
                ChainId::at(chains.all.len() - 1)
            });
            chains.of_context.push(id);
        }
        chains
    }

    /// The chain of a context.
    pub fn of(&self, context: ContextId) -> ChainId {
        self.of_context[context.index()]
    }

    /// A chain.
    pub fn get(&self, id: ChainId) -> &WaitChain {
        &self.all[id.index()]
    }

    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// True where there is none.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// A chain and those above it, itself first.
    pub fn upwards(&self, id: ChainId) -> impl Iterator<Item = ChainId> + '_ {
        std::iter::successors(Some(id), |at| self.get(*at).above)
    }

    /// True where `id` is `above` or below it.
    pub fn is_below(&self, id: ChainId, above: ChainId) -> bool {
        self.upwards(id).any(|at| at == above)
    }
}

/// Populations: the executions of one type and one process, which are compared with each other.
pub struct Populations {
    /// By execution, its population.
    pub of_execution: Vec<u32>,
    /// By population, the number of its executions.
    pub sizes: Vec<usize>,
}

/// Divide executions into populations. Types with fewer than `fewest` executions form one.
pub fn populations(model: &Model, fewest: usize) -> Populations {
    let executions = &model.executions;
    let types = executions.column(&Metric::Type).map(|c| &c.values);
    let name = |i: usize| {
        let root = executions.own.row(i).next().map(|time| model.contexts.path(time.context)[0]);
        root.map(|root| model.contexts.frame(root).name)
    };
    let kind = |i: usize| types.and_then(|t| t.get(i)).filter(|t| *t != ABSENT);
    let mut counts: HashMap<(Option<NameId>, Option<i64>), usize> = HashMap::default();
    let keys: Vec<_> = (0..executions.len()).map(|i| (name(i), kind(i))).collect();
    keys.iter().for_each(|key| *counts.entry(*key).or_default() += 1);
    let mut numbers: HashMap<(Option<NameId>, Option<i64>), u32> = HashMap::default();
    let mut sizes = Vec::new();
    let of = |(name, kind): (Option<NameId>, Option<i64>)| {
        let few = counts.get(&(name, kind)).is_none_or(|n| *n < fewest);
        let key = (name, kind.filter(|_| !few));
        let number = *numbers.entry(key).or_insert_with(|| {
            sizes.push(0);
            sizes.len() as u32 - 1
        });
        sizes[number as usize] += 1;
        number
    };
    let of_execution = keys.into_iter().map(of).collect();
    Populations { of_execution, sizes }
}
