//! The call stacks of a recording over time, and what names their functions: placed once for all questions about it.
//!
//! In: a timeline and the paths of symbol files. Out: stack timelines, images, symbols, and the functions in which
//! threads wait. Loops that are marked, tasks that are tried and executions that are explained ask for the same stacks,
//! so they are placed, and each file is read, when the first of them asks.

use super::iterations::WaitSites;
use super::stacks::StackTimelines;
use crate::base::ctx::{Cancelled, Ctx};
use crate::base::notice::Notices;
use crate::symbols::cache::SymbolCache;
use crate::symbols::files::{SymbolPaths, kernel_symbols};
use crate::symbols::images::Spaces;
use crate::symbols::kernel::KernelSymbols;
use crate::symbols::unnamed;
use crate::timeline::Timeline;
use std::sync::{Arc, OnceLock};

/// See the module.
#[derive(Debug)]
pub struct StackTables {
    /// Images of processes.
    pub spaces: Spaces,
    /// Stacks over time, by thread.
    pub timelines: StackTimelines,
    /// Symbols of the files whose functions are on them.
    pub symbols: Arc<SymbolCache>,
    /// The kernel's symbols.
    pub kernel: Option<KernelSymbols>,
    /// About symbols that could not be read.
    pub notices: Notices,
    sites: OnceLock<WaitSites>,
}

impl StackTables {
    fn new(timeline: &Timeline, places: &SymbolPaths, ctx: &Ctx) -> Result<StackTables, Cancelled> {
        ctx.progress.enter("stacks", 0);
        let mut notices = Notices::default();
        let kernel = kernel_symbols(places, &mut notices);
        let (symbols, sites) = (places.known.clone().unwrap_or_default(), OnceLock::new());
        let spaces = Spaces::with_code(timeline.images(), places, &symbols);
        let timelines = StackTimelines::new(timeline, &spaces, kernel.is_some(), ctx)?;
        if kernel.is_none() && places.wants_kernel {
            unnamed::kernel(timeline, &mut notices);
        }
        let stacks = timelines.distinct().iter().filter_map(|stack| stack.user.as_ref());
        unnamed::compiled(timeline, &spaces, stacks, (places, &symbols), &mut notices);
        Ok(StackTables { spaces, timelines, symbols, kernel, notices, sites })
    }

    /// The functions in which the threads of the timeline wait.
    pub fn sites(&self, timeline: &Timeline, places: &SymbolPaths, ctx: &Ctx) -> Result<&WaitSites, Cancelled> {
        if let Some(sites) = self.sites.get() {
            return Ok(sites);
        }
        let sites = WaitSites::new(timeline, self, places, ctx)?;
        Ok(self.sites.get_or_init(|| sites))
    }
}

/// [`StackTables`] that are placed when they are first asked for.
#[derive(Clone, Debug, Default)]
pub struct LazyStackTables(OnceLock<Arc<StackTables>>);

impl LazyStackTables {
    /// The tables of a timeline, which is the same each time; so are the paths.
    pub fn get(&self, timeline: &Timeline, places: &SymbolPaths, ctx: &Ctx) -> Result<Arc<StackTables>, Cancelled> {
        if let Some(tables) = self.0.get() {
            return Ok(Arc::clone(tables));
        }
        let tables = Arc::new(StackTables::new(timeline, places, ctx)?);
        Ok(Arc::clone(self.0.get_or_init(|| tables)))
    }
}
