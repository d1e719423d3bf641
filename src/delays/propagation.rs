//! Propagation paths: from the event that caused a delay to the last event that waited for it.

use crate::analysis::patterns::late::ResponsibleEvent;
use crate::analysis::patterns::spread::DelayNode;
use crate::analysis::patterns::triggers::Triggers;
use crate::analysis::patterns::{Lateness, PatternAnalysis};
use crate::base::time::{Ns, Span};
use crate::event::operation::{OperationPlace, Operations};
use crate::model::carrier::Carrier;
use crate::model::event_kind::EventKind;
use crate::model::propagation::{Noise, PropagationPath, PropagationStep};
use std::cmp::Reverse;

/// Result of [`paths`].
#[derive(Clone, Debug, Default)]
pub(super) struct Found {
    /// Ordered by what they cause.
    pub(super) paths: Vec<PropagationPath>,
    /// Paths beyond the bound on steps.
    pub(super) left_out: u64,
    /// Positions of the anomalies that are sources, those without victims included.
    pub(super) sources: Vec<u32>,
    /// Sources that have victims.
    pub(super) spreading: u64,
    /// Messages on the longest path.
    pub(super) longest: u64,
}

/// Steps in all paths together; beyond them only sources are counted. Far more than a user reads, far less than a
/// forest of a million nodes could need.
const MOST_STEPS: usize = 100_000;

impl Found {
    /// Delays outside executions come after the paths of delayed executions; `anomalies` come before
    /// its own.
    pub(super) fn put_after(&mut self, before: Vec<PropagationPath>, anomalies: usize) {
        let sources = before.last().map_or(0, |p| p.source + 1);
        for path in &mut self.paths {
            path.source += sources;
            path.steps.iter_mut().for_each(|step| step.anomaly += anomalies as u32);
        }
        let is_first = |at: usize, p: &PropagationPath| at == 0 || before[at - 1].source != p.source;
        let first = before.iter().enumerate().filter(|(at, p)| is_first(*at, p) && p.affected_ns > 0);
        self.spreading += first.count() as u64;
        self.longest = self.longest.max(before.iter().map(|p| p.messages).max().unwrap_or(0));
        self.sources.iter_mut().for_each(|at| *at += anomalies as u32);
        self.paths.splice(0..0, before);
    }
}

/// A source and its tree.
struct Source {
    node: usize,
    affected: Ns,
    excess: Ns,
}

/// The forest as paths. `numbers` gives the position in `Anomalies::anomalies` of each late occurrence.
///
/// Every source with victims is a path for each of its last victims. A source without victims is a path of one step,
/// unless it is a wait: a wait without a known cause is no root cause (EZTrace loses receives in C programs).
pub(super) fn paths(mined: &PatternAnalysis, lateness: &Lateness, numbers: &[u32]) -> Found {
    let spread = &lateness.spread;
    let n = spread.nodes.len();
    // A node with a cause comes after it unless that is a source.
    let order: Vec<usize> = spread.order.iter().map(|at| *at as usize).collect();
    let cause = |at: usize| spread.causes[at].map(|cause| cause.node as usize);
    let mut depth = vec![0_u64; n];
    // The part of the source's own excess that reaches a node: a wait that grows on the way has another cause besides.
    let mut carried: Vec<Ns> = spread.nodes.iter().map(|node| node.excess).collect();
    let mut children: Vec<Vec<usize>> = vec![Vec::new(); n];
    for at in &order {
        if let (Some(above), Some(cause)) = (cause(*at), spread.causes[*at]) {
            depth[*at] = depth[above] + 1;
            carried[*at] = cause.explained.min(carried[above]);
            children[above].push(*at);
        }
    }
    let mut affected = vec![0; n];
    for at in order.iter().rev() {
        if let Some(above) = cause(*at) {
            affected[above] += affected[*at] + carried[*at];
        }
    }
    let is_source = |at: &usize| cause(*at).is_none() && (!children[*at].is_empty() || !spread.nodes[*at].kind.waits());
    let source = |node: usize| Source { node, affected: affected[node], excess: spread.nodes[node].excess };
    let mut sources: Vec<Source> = (0..n).filter(is_source).map(source).collect();
    sources.sort_by_key(|s| (Reverse(s.affected), Reverse(s.excess), s.node));
    let mut found = Found {
        sources: sources.iter().map(|s| numbers[spread.nodes[s.node].late as usize]).collect(),
        spreading: sources.iter().filter(|s| !children[s.node].is_empty()).count() as u64,
        longest: depth.iter().copied().max().unwrap_or(0),
        ..Found::default()
    };
    let triggers = Triggers::new(&mined.operations, &mined.clocks);
    let mut steps = 0;
    for (number, source) in (0_u32..).zip(&sources) {
        let mut ends = leaves(&children, source.node);
        ends.sort_by_key(|end| (Reverse(depth[*end]), *end));
        for end in ends {
            steps += depth[end] as usize + 1;
            if steps > MOST_STEPS {
                found.left_out += 1;
                continue;
            }
            let mut way: Vec<usize> = std::iter::successors(Some(end), |at| cause(*at)).collect();
            way.reverse();
            found.paths.push(PropagationPath {
                source: number,
                execution: None,
                origin: String::new(),
                function: None,
                context: None,
                inner: Vec::new(),
                excess_ns: source.excess,
                affected_ns: source.affected,
                messages: depth[end],
                steps: way.into_iter().map(|at| step(mined, lateness, numbers, &triggers, at)).collect(),
            });
        }
    }
    found
}

/// The last victims under a node; itself when there is none.
fn leaves(children: &[Vec<usize>], root: usize) -> Vec<usize> {
    let (mut open, mut found) = (vec![root], Vec::new());
    while let Some(at) = open.pop() {
        if children[at].is_empty() {
            found.push(at);
        }
        open.extend(&children[at]);
    }
    found
}

/// Calls that do not wait take less than this, unless they work.
const CALL: Ns = 100_000;

/// Calls that follow each other within this have no work of the program between them.
const PAUSE: Ns = 10_000;

/// The system preempts a thread for less than this; a longer delay has a cause in the program.
const LONGEST_NOISE: Ns = 100_000_000;

/// Whether a source is system noise. MPI archives have no scheduler events, so lengths decide.
/// A function of the program that took long, and a step unlike all others, are the program's own and no noise.
pub(super) fn noise(
    mined: &PatternAnalysis,
    node: &DelayNode,
    blamed: &ResponsibleEvent,
    patternless: bool,
    triggers: &Triggers<'_>,
) -> Option<Noise> {
    let operations = &mined.operations;
    let symbol = operations.get(OperationPlace { stream: node.stream, operation: node.event / 2 }).map(|o| o.symbol);
    let (reference, program) = (blamed.reference, symbol.is_some_and(|s| operations.is_program(s)));
    let flushes = operations.sequences.get(node.stream as usize).map_or(&[][..], |s| &s.flushes);
    let flushed = |f: &Span| f.end.min(blamed.local.end) - f.start.max(blamed.local.start);
    if flushes.iter().map(flushed).filter(|ns| *ns > 0).sum::<Ns>().saturating_mul(2) >= node.excess.max(1) {
        return Some(Noise::Tracer);
    }
    match node.kind {
        _ if node.excess > LONGEST_NOISE => None,
        EventKind::Wait | EventKind::Running | EventKind::Runnable | EventKind::Interrupt => None,
        EventKind::Operation => (reference < CALL && !program).then_some(Noise::Interrupted),
        EventKind::Gap => (reference < PAUSE && !patternless).then_some(Noise::Interrupted),
        EventKind::Receive | EventKind::Collective => {
            let place = OperationPlace { stream: node.stream, operation: node.event / 2 };
            let trigger = triggers.of(place, node.span.end)?;
            if trigger.carrier == Carrier::Barrier {
                return None;
            }
            // The part of the wait that the sender could have spared is less than half of the excess.
            (trigger.sent - node.span.start - reference < node.excess / 2).then_some(Noise::Delivery)
        }
        // The rank that held it was late; no rank can be late for the transfer.
        EventKind::Send => None,
    }
}

fn step(
    mined: &PatternAnalysis,
    lateness: &Lateness,
    numbers: &[u32],
    triggers: &Triggers<'_>,
    at: usize,
) -> PropagationStep {
    let node = &lateness.spread.nodes[at];
    let late = &lateness.late[node.late as usize];
    let blamed = late.responsible[node.responsible as usize];
    PropagationStep {
        anomaly: numbers[node.late as usize],
        stream: node.stream,
        what: what(&mined.operations, node.stream, node.event),
        kind: node.kind,
        span: node.span,
        local: blamed.local,
        function: mined
            .operations
            .function_of(node.stream, node.event, blamed.local)
            .map(|name| mined.operations.names.function(name).into_owned()),
        excess_ns: node.excess,
        reference_ns: blamed.reference,
        carrier: lateness.spread.causes[at].map(|cause| cause.carrier),
        noise: match lateness.spread.causes[at] {
            None => noise(mined, node, &blamed, late.pattern.is_none(), triggers),
            Some(_) => None,
        },
        route: None,
    }
}

/// The name of an event: `MPI_Recv`, or `after MPI_Recv` for a gap.
pub(super) fn what(operations: &Operations, stream: u32, event: u32) -> String {
    let operation = operations.get(OperationPlace { stream, operation: event / 2 });
    let name = operation.map_or("", |o| operations.names.get(o.symbol));
    if event % 2 == 1 { format!("after {name}") } else { name.to_owned() }
}
