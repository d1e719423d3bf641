//! Delayed executions as anomalies and propagation paths: the threads that delayed them, directly and through others,
//! with functions and times.
//!
//! In: [`Delay`]s and the contributions of threads to the critical paths. Out: an [`Anomaly`] per delayed execution and
//! a [`PropagationPath`] per delay, from the thread at the end of the wait chain to the execution's own thread. One
//! activity of a thread may delay several executions: such paths share one source. Cost: linear in the contributions of
//! the delayed executions times the depth of their contexts. ALGORITHMS.md 9.7.

use super::chains::{ChainId, ChainLink};
use super::nested::{self, Traced};
use super::wait_links::{ChainPart, Delay, Reference};
use crate::analysis::hops::HopId;
use crate::base::ctx::Cancel;
use crate::base::names::NameId;
use crate::base::time::{Ns, Span};
use crate::event::kind::SOFT_IRQS;
use crate::explain::contribution::{Contribution, Contributions};
use crate::explain::naming::Activity;
use crate::model::Model;
use crate::model::anomalies::{Anomaly, Pattern, Responsible};
use crate::model::carrier::Carrier;
use crate::model::context::ContextId;
use crate::model::event_kind::EventKind;
use crate::model::execution::ContextTime;
use crate::model::metric::Metric;
use crate::model::propagation::{InnerFunction, PropagationPath, PropagationStep};
use crate::model::settings::{FEWEST_EXECUTIONS, PatternVerdict, Settings};
use crate::model::wait_kind::{WITHIN, WaitKind};
use crate::timeline::ThreadId;
use foldhash::HashMap;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// The request.
pub(super) struct Delayed<'a> {
    pub(super) model: &'a Model,
    pub(super) contributions: &'a Contributions,
    pub(super) reference: &'a Reference,
    /// The stream of each thread.
    pub(super) streams: &'a HashMap<ThreadId, u32>,
    /// By population and context: what its executions spent there themselves, together.
    pub(super) sums: &'a HashMap<(u32, ContextId), u64>,
}

/// The result under some settings.
pub(super) struct Found {
    /// One per population.
    pub(super) patterns: Vec<Pattern>,
    /// Ordered by excess; their patterns are positions in `patterns`.
    pub(super) anomalies: Vec<Anomaly>,
    /// Ordered by what their sources cause.
    pub(super) paths: Vec<PropagationPath>,
}

impl Delayed<'_> {
    /// All delayed executions; not all of them once the work is cancelled.
    pub(super) fn find(&self, settings: &Settings, cancel: &Cancel) -> Found {
        let delays = self.reference.delays(settings);
        let patterns = self.patterns(settings);
        let path = |delay: &Delay| (!cancel.is_cancelled()).then(|| self.path(delay, settings));
        let mut traced: Vec<Option<Traced>> = delays.iter().map_while(path).collect();
        if cancel.is_cancelled() {
            return Found { patterns, anomalies: Vec::new(), paths: Vec::new() };
        }
        nested::settle(&mut traced, &self.reference.chains, self.model);
        let mut traced = traced.into_iter();
        let mut delayed: Vec<(&[Delay], Vec<PropagationPath>)> = Vec::new();
        for delays in delays.chunk_by(|a, b| a.execution == b.execution) {
            let paths = traced.by_ref().take(delays.len()).flatten().map(|traced| traced.path);
            delayed.push((delays, paths.collect()));
        }
        delayed.sort_by_key(|(delays, _)| {
            let excess: Ns = delays.iter().map(|d| d.excess_ns).sum();
            (Reverse(excess), delays.first().map_or(0, |d| d.execution))
        });
        let mut anomalies: Vec<Anomaly> = Vec::new();
        let mut paths: Vec<PropagationPath> = Vec::new();
        for (delays, mut own) in delayed {
            if cancel.is_cancelled() {
                break;
            }
            let at = anomalies.len() as u32;
            own.iter_mut().flat_map(|p| &mut p.steps).for_each(|step| step.anomaly = at);
            let Some(anomaly) = self.anomaly(delays, &own, &patterns) else { continue };
            anomalies.push(anomaly);
            paths.extend(own);
        }
        join_sources(&mut paths);
        Found { patterns, anomalies, paths }
    }

    /// The executions of each population, as occurrences of a pattern.
    fn patterns(&self, settings: &Settings) -> Vec<Pattern> {
        let task = self.model.tasks.get(self.model.task).map_or("", String::as_str);
        let types = self.model.executions.column(&Metric::Type);
        let pattern = |population: usize| {
            let first = self.reference.population.iter().position(|p| *p as usize == population);
            let chain = first.and_then(|e| self.reference.root(e as u32));
            let bounds = chain
                .map(|c| self.reference.bounds(population as u32, c, ChainPart::Whole, settings))
                .unwrap_or_default();
            let mut members = self.reference.population.iter().enumerate().filter(|(_, p)| **p as usize == population);
            let kind = |i: usize| types.and_then(|t| t.values.get(i));
            let of_first = first.and_then(kind);
            let kind = of_first.filter(|k| members.all(|(i, _)| kind(i) == Some(*k)));
            let kind = kind.and_then(|k| u32::try_from(k).ok()).map(|k| self.model.names.get(NameId::from_raw(k)));
            let occurrences = self.reference.sizes.get(population).copied().unwrap_or(0);
            Pattern {
                name: kind.map_or_else(|| task.to_owned(), |kind| format!("{task} ({kind})")),
                symbols: vec![task.to_owned()],
                is_loop: false,
                occurrences: occurrences as u64,
                verdict: match () {
                    () if occurrences < FEWEST_EXECUTIONS => PatternVerdict::TooFew,
                    () if bounds.longest_ns >= bounds.limit_ns => PatternVerdict::Selected,
                    () => PatternVerdict::Regular,
                },
                max_ref_ns: bounds.max_ref_ns,
                limit_ns: bounds.limit_ns,
                longest_ns: bounds.longest_ns,
            }
        };
        (0..self.reference.sizes.len()).map(pattern).collect()
    }

    fn anomaly(&self, delays: &[Delay], paths: &[PropagationPath], patterns: &[Pattern]) -> Option<Anomaly> {
        let execution = delays.first()?.execution as usize;
        let executions = &self.model.executions;
        let span = (execution < executions.len()).then(|| executions.span(execution))?;
        let population = *self.reference.population.get(execution)?;
        let max_ref = patterns.get(population as usize)?.max_ref_ns;
        let mut responsible: Vec<Responsible> = Vec::new();
        for step in paths.iter().filter_map(|p| p.steps.last()) {
            responsible.push(Responsible::of(step));
        }
        responsible.sort_by_key(|r| (r.local.start, Reverse(r.excess_ns)));
        Some(Anomaly {
            pattern: Some(population),
            stream: *self.streams.get(self.contributions.own.get(execution)?)?,
            span,
            local: span,
            factor: span.len() as f64 / max_ref.max(1) as f64,
            excess_ns: delays.iter().map(|d| d.excess_ns).sum(),
            source: paths.iter().any(|p| p.steps.len() == 1),
            diffuse: delays.iter().all(|d| d.whole),
            idle: false,
            execution: Some(execution as u32),
            responsible,
        })
    }

    /// The propagation path of a delay, from the thread that caused it to the execution's own thread.
    fn path(&self, delay: &Delay, settings: &Settings) -> Option<Traced> {
        let chains = &self.reference.chains;
        let row = self.contributions.rows.get(delay.execution as usize)?;
        let mut links: Vec<ChainId> = chains.upwards(delay.chain).collect();
        links.reverse();
        let threads = chains.get(delay.chain).threads as usize;
        let is_inside = |c: &&Contribution| {
            if delay.whole {
                chains.is_below(chains.of(c.context), delay.chain)
            } else {
                chains.of(c.context) == delay.chain
            }
        };
        let mut call_sites: BTreeMap<Vec<HopId>, u64> = BTreeMap::new();
        for c in row.iter().filter(is_inside) {
            let mut way = self.contributions.hops.path_to(c.hop);
            way.truncate(threads);
            *call_sites.entry(way).or_default() += c.ns;
        }
        let (way, _) = call_sites.into_iter().max_by_key(|(way, ns)| (*ns, Reverse(way.clone())))?;
        let on_way = |c: &&Contribution, length: usize| {
            self.contributions.hops.path_to(c.hop).get(..length) == way.get(..length)
        };
        let held: Vec<&Contribution> = row.iter().filter(is_inside).filter(|c| on_way(c, threads)).collect();

        let context = held.iter().max_by_key(|c| (c.ns, Reverse(c.context))).map(|c| c.context);
        let (mut steps, named) = self.source_steps(delay, &way, &held)?;
        let thread_links: Vec<usize> = (0..links.len()).filter(|at| chains.get(links[*at]).link.is_thread()).collect();
        for hop in (0..threads.saturating_sub(1)).rev() {
            let waits = links[thread_links[hop] + 1];
            let below = |c: &&Contribution| chains.is_below(chains.of(c.context), waits);
            let held: Vec<&Contribution> = row.iter().filter(below).filter(|c| on_way(c, hop + 2)).collect();
            let carrier = self.contributions.hops.get(*way.get(hop + 1)?)?.carrier;
            let population = *self.reference.population.get(delay.execution as usize)?;
            let usual = self.reference.bounds(population, waits, ChainPart::Whole, settings).typical_ns;
            let took = self.reference.whole_time(delay.execution, waits);
            let leaves: Vec<ContextTime> = held.iter().map(|c| ContextTime { context: c.context, ns: c.ns }).collect();
            let kind = if carrier == Carrier::Cpu { EventKind::Runnable } else { EventKind::Receive };
            steps.push(PropagationStep {
                carrier: Some(carrier),
                excess_ns: (took - usual).max(0),
                reference_ns: usual,
                ..self.step(
                    kind,
                    *way.get(hop)?,
                    hull(&held)?,
                    &Activity::of(self.model, &leaves, hop),
                    waiting_by(carrier),
                )?
            });
        }
        let thread = links.iter().rev().find_map(|at| match chains.get(*at).link {
            ChainLink::Thread(_, name) => Some(self.model.names.get(name)),
            _ => None,
        });
        let path = PropagationPath {
            source: 0,
            execution: Some(delay.execution),
            origin: thread.unwrap_or_else(|| self.contributions.name(self.model, delay.execution)).to_owned(),
            function: None,
            context,
            inner: Vec::new(),
            excess_ns: delay.excess_ns,
            affected_ns: delay.excess_ns,
            messages: (threads as u64).saturating_sub(1),
            steps,
        };
        Some(Traced { chain: delay.chain, named, path })
    }

    /// The begin of the delay: a step, and for an interrupt the step of the thread that it interrupted.
    fn source_steps(
        &self,
        delay: &Delay,
        way: &[HopId],
        held: &[&Contribution],
    ) -> Option<(Vec<PropagationStep>, Activity)> {
        let chain = self.reference.chains.get(delay.chain);
        let (hop, id, span) = (way.len().checked_sub(1)?, *way.last()?, hull(held)?);
        let population = *self.reference.population.get(delay.execution as usize)?;
        let size = self.reference.sizes.get(population as usize).copied().unwrap_or(1).max(1) as u64;
        // Code that runs longer than usual is named by its functions.
        let surplus = |c: &&Contribution| {
            let usual = self.sums.get(&(population, c.context)).copied().unwrap_or(0) / size;
            ContextTime { context: c.context, ns: c.ns.saturating_sub(usual) }
        };
        let mut leaves: Vec<ContextTime> = held.iter().map(surplus).collect();
        if !chain.link.is_thread() || leaves.iter().all(|time| time.ns == 0) {
            leaves = held.iter().map(|c| ContextTime { context: c.context, ns: c.ns }).collect();
        }
        let named = Activity::of(self.model, &leaves, hop);
        let (kind, word) = match chain.link {
            ChainLink::Process(_) | ChainLink::Thread(..) => (EventKind::Running, "running".into()),
            ChainLink::Wait(WaitKind::Preempted, _) => (EventKind::Runnable, "waiting for a CPU".into()),
            ChainLink::Wait(WaitKind::Throttled, _) => (EventKind::Runnable, "held back by a CPU quota".into()),
            ChainLink::Wait(WaitKind::Interrupted, _) => (EventKind::Running, "running".into()),
            ChainLink::Wait(spent, _) => (EventKind::Wait, waiting_for(spent)),
        };
        let step = PropagationStep {
            excess_ns: delay.excess_ns,
            reference_ns: delay.reference_ns,
            ..self.step(kind, id, span, &named, &word)?
        };
        let ChainLink::Wait(WaitKind::Interrupted, name) = chain.link else { return Some((vec![step], named)) };
        let name = self.model.names.get(name);
        let carrier = if SOFT_IRQS.contains(&name) { Carrier::SoftIrq } else { Carrier::Interrupt };
        let handler = PropagationStep {
            what: format!("{} {name}", carrier.name()),
            kind: EventKind::Interrupt,
            function: None,
            ..step.clone()
        };
        // The handler is no function of the thread.
        Some((vec![handler, PropagationStep { carrier: Some(carrier), ..step }], Activity::default()))
    }

    fn step(&self, kind: EventKind, hop: HopId, span: Span, named: &Activity, word: &str) -> Option<PropagationStep> {
        let thread = self.contributions.hops.get(hop)?.thread;
        let text = |name: NameId| self.model.names.get(name).to_owned();
        Some(PropagationStep {
            anomaly: 0,
            stream: *self.streams.get(&thread)?,
            what: named.call.map_or_else(|| word.to_owned(), text),
            kind,
            span,
            local: span,
            function: named.function.map(|name| self.model.names.function(name).into_owned()),
            excess_ns: 0,
            reference_ns: 0,
            carrier: None,
            noise: None,
            route: None,
        })
    }
}

/// A wait of which no system call is known.
fn waiting_for(spent: WaitKind) -> String {
    match spent {
        WaitKind::User => "waiting for input".to_owned(),
        WaitKind::Cpu | WaitKind::Thread | WaitKind::UnknownWait | WaitKind::UnknownState => {
            "waiting for something that was not recorded".to_owned()
        }
        kind => kind.row().phrase.replace(WITHIN, ""),
    }
}

/// What a thread does in a wait that another thread ended, by the means.
fn waiting_by(carrier: Carrier) -> &'static str {
    match carrier {
        Carrier::Cpu => "waiting for a CPU",
        Carrier::Disk => "waiting for the disk",
        Carrier::Packet => "waiting for the network",
        Carrier::Fork => "not created yet",
        _ => "waiting",
    }
}

/// From the first of some contributions to the last.
fn hull(held: &[&Contribution]) -> Option<Span> {
    let start = held.iter().map(|c| c.span.start).min()?;
    let end = held.iter().map(|c| c.span.end).max()?;
    Some(Span::new(start, end))
}

/// One activity of a thread delays all threads that wait for it meanwhile: paths whose sources are equal but for their
/// time and overlap have one source. Then all are ordered by what their source causes.
fn join_sources(paths: &mut Vec<PropagationPath>) {
    let name =
        |p: &PropagationPath| p.steps.first().map(|s| (s.stream, s.kind, p.function_of_source(), s.what.clone()));
    paths.sort_by_cached_key(|p| (name(p), p.steps.first().map(|s| (s.span.start, s.anomaly))));
    let mut joined: Vec<(Vec<PropagationPath>, Ns)> = Vec::new();
    for path in paths.drain(..) {
        let Some(first) = path.steps.first().cloned() else { continue };
        let is_same = |before: &Vec<PropagationPath>| {
            let Some(last) = before.first().filter(|last| name(last) == name(&path)) else { return false };
            last.steps.len() > 1
                && path.steps.len() > 1
                && last.steps.first().is_some_and(|s| first.span.start < s.span.end)
        };
        match joined.last_mut().filter(|(before, _)| is_same(before)) {
            Some((before, affected)) => {
                let source = before.first().and_then(|p| p.steps.first()).map_or(first.span, |s| s.span);
                let span = Span::new(source.start, source.end.max(first.span.end));
                *affected += path.affected_ns;
                before.push(path);
                before.iter_mut().filter_map(|p| p.steps.first_mut()).for_each(|s| (s.span, s.local) = (span, span));
            }
            None => {
                let affected = path.affected_ns;
                joined.push((vec![path], affected));
            }
        }
    }
    for (together, affected) in &mut joined {
        together.sort_by_key(|p| (Reverse(p.excess_ns), p.execution));
        let excess = together.iter().map(|p| p.excess_ns).max().unwrap_or(0);
        let inner = InnerFunction::sums(together.iter().flat_map(|p| &p.inner));
        together.iter_mut().for_each(|p| (p.affected_ns, p.excess_ns, p.inner) = (*affected, excess, inner.clone()));
    }
    let start = |all: &[PropagationPath]| {
        all.first().and_then(|p| p.steps.first()).map(|s| (s.span.start, s.stream, s.anomaly))
    };
    joined.sort_by_key(|(together, affected)| (Reverse(*affected), start(together)));
    for (number, (mut together, _)) in (0..).zip(joined) {
        together.iter_mut().for_each(|p| p.source = number);
        paths.extend(together);
    }
}
