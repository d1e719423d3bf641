//! Propagation paths: from the event that caused a delay to the last event that waited for it.

use crate::base::time::{Ns, Span};
use crate::model::carrier::Carrier;
use crate::model::context::ContextId;
use crate::model::event_kind::EventKind;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// A source that is system noise and not the program's work, as far as the recording shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Noise {
    /// It took far longer at a point where the program does no work: interrupted or preempted there.
    Interrupted,
    /// It went on waiting although the data had been sent in time: they were slow to arrive, or it to run again.
    Delivery,
    /// The tracer wrote out its buffer.
    Tracer,
}

impl Noise {
    /// The name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Noise::Interrupted => "interrupted",
            Noise::Delivery => "delivery",
            Noise::Tracer => "tracer",
        }
    }
}

/// One event on a path.
#[derive(Clone, Debug, PartialEq)]
pub struct PropagationStep {
    /// Position in `Anomalies::anomalies`.
    pub anomaly: u32,
    /// Position in `Anomalies::streams`.
    pub stream: u32,
    /// `MPI_Recv`, or `after MPI_Recv` for a gap.
    pub what: String,
    pub kind: EventKind,
    pub span: Span,
    /// The span on the stream's own clock.
    pub local: Span,
    /// The function in which the thread was meanwhile, where call stacks were recorded.
    pub function: Option<String>,
    /// Longer than in the reference by this.
    pub excess_ns: Ns,
    /// How long it takes in the reference.
    pub reference_ns: Ns,
    /// The carrier of the delay from the step before; `None` for the first.
    pub carrier: Option<Carrier>,
    /// Of a source: it is noise.
    pub noise: Option<Noise>,
    /// The place where the occurrence's calls differ from the others'.
    pub route: Option<RouteChange>,
}

/// From a source to one of its last victims. Victims form a tree under their source, because each waited for one last
/// sender; a source with several last victims has as many paths.
#[derive(Clone, Debug, PartialEq)]
pub struct PropagationPath {
    /// Paths with one number have one source: one activity of a thread.
    pub source: u32,
    /// The execution that was delayed, where executions are judged.
    pub execution: Option<u32>,
    /// Name of the source's thread as contexts show it (`worker-*` for a pool); empty outside of executions.
    pub origin: String,
    /// The source's function from its other delays, if the stacks of this one do not show it.
    pub function: Option<String>,
    /// The context of the executions' model in which the source spent most of it; `None` outside of executions.
    pub context: Option<ContextId>,
    /// Functions below the source's by which delays of its thread are named, too, with their parts of `affected_ns`.
    pub inner: Vec<InnerFunction>,
    /// Excess of the source over its usual time.
    pub excess_ns: Ns,
    /// The delay that the source caused in all its victims, on all its paths.
    pub affected_ns: Ns,
    /// Steps beyond the source.
    pub messages: u64,
    /// The source first.
    pub steps: Vec<PropagationStep>,
}

impl PropagationPath {
    /// The function that names the source.
    pub fn function_of_source(&self) -> Option<String> {
        self.function.clone().or_else(|| self.steps.first()?.function.clone())
    }
}

/// A function that the function of a source called, and the part of the delay that was spent in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InnerFunction {
    pub function: String,
    /// At least this: where stacks are missing, more may have been.
    pub ns: Ns,
}

impl InnerFunction {
    /// One for each function, the longest first.
    pub fn sums<'a>(all: impl Iterator<Item = &'a InnerFunction>) -> Vec<InnerFunction> {
        let mut sums: BTreeMap<&str, Ns> = BTreeMap::new();
        all.for_each(|inner| *sums.entry(&inner.function).or_default() += inner.ns);
        let inner = |(function, ns): (&str, Ns)| InnerFunction { function: function.to_owned(), ns };
        let mut sums: Vec<InnerFunction> = sums.into_iter().map(inner).collect();
        sums.sort_by_key(|inner| Reverse(inner.ns));
        sums
    }
}

/// How a route differs from the usual one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RouteChange {
    /// Operations that are usually not made, or not as often.
    Additional,
    /// Operations that are usually made are not.
    Missing,
    /// Operations in place of others.
    Instead,
    /// The usual operations, in another order.
    Order,
}

impl RouteChange {
    /// The name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            RouteChange::Additional => "additional",
            RouteChange::Missing => "missing",
            RouteChange::Instead => "instead",
            RouteChange::Order => "order",
        }
    }
}
