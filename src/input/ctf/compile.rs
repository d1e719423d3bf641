//! Compiles a projection: flat decode steps for a class, with everything known beforehand worked in.
//!
//! The compiler walks a class's structures once and follows what is known of the position ([`Phase`]). Alignment that
//! follows from it costs nothing at run time. Unwanted fields of fixed size, and the padding between them, become one
//! addition before the next field that is wanted or that a later field needs. The steps that remain read wanted values,
//! lengths and selectors, and fields whose size the data decides.
//!
//! Cost: compiling is linear in the schema, running linear in the steps. Invariant: every step is pushed by `emit`,
//! which writes the pending addition first and returns the step's index; forward jumps are patched at that index.

use super::phase::{Phase, contiguous_integers, element_size};
use super::schema::{
    Bits, ByteOrders, Choice, Count, Field, Kind, Range as Values, Role, Schema, Slot, Source, StreamClass, Unit,
};
use super::steps::{
    BitOrder, Body, Case, ElementKind, FieldNode, FieldShape, NodeIx, Program, SlotIx, Step, StepIx, Times,
};
use super::want::{Want, WantedPath};
use crate::input::record::{FieldPath, Scope};
use std::num::NonZeroU8;
use std::ops::Range;

const SCOPES: [Scope; 3] = [Scope::CommonContext, Scope::SpecificContext, Scope::Payload];

/// Replaced by [`Compiler::patch`] when the target is known.
const UNKNOWN_TARGET: StepIx = StepIx::new(0);

/// Whether the time stamps of event headers are decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TimeStamps {
    /// The clock follows them.
    Followed,
    /// No record is wanted, so no time is.
    Ignored,
}

/// Writes the steps of a program.
pub(super) struct Compiler {
    pub(super) program: Program,
    /// Shown fields of all classes.
    pub(super) nodes: Vec<FieldNode>,
    phase: Phase,
    /// Bits to step over before the next step.
    pending: u64,
    /// The clock whose time stamps are followed.
    clock: Option<usize>,
    /// Where byte orders are mixed, numbers that end inside a byte are read even if unwanted, to check the order.
    orders: ByteOrders,
}

/// A member's name and its position among the members.
#[derive(Clone, Copy)]
struct MemberOf<'f> {
    name: Option<&'f str>,
    position: usize,
}

/// The branches of a variant or an optional, and the values that select them.
struct Branches<'f, 'w> {
    by: &'f Source,
    signed: bool,
    cases: Vec<(Values, usize)>,
    fields: Vec<(Want<'w>, &'f Field)>,
    fallback: Fallback,
}

/// What a selector means that no case holds.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fallback {
    /// The event is damaged.
    Damage,
    /// The field is missing.
    Missing,
}

impl Compiler {
    pub(super) fn new(orders: ByteOrders) -> Self {
        let (program, nodes) = (Program::default(), Vec::new());
        Compiler { program, nodes, phase: Phase::UNKNOWN, pending: 0, clock: None, orders }
    }

    fn here(&self) -> u32 {
        self.program.steps.len() as u32
    }

    /// Steps of the packet header, from the beginning of a packet.
    pub(super) fn packet_header(&mut self, schema: &Schema) -> Range<u32> {
        let start = self.here();
        self.phase = Phase::PACKET;
        self.clock = None;
        if let Some(header) = &schema.packet_header {
            self.field(header, &Want::Nothing, MemberOf::NONE);
        }
        self.flush();
        start..self.here()
    }

    /// Steps of the packet context, from the unknown position where the header ended.
    pub(super) fn packet_context(&mut self, stream: &StreamClass) -> Range<u32> {
        let start = self.here();
        self.phase = Phase::UNKNOWN;
        self.clock = stream.clock;
        if let Some(context) = &stream.packet_context {
            self.field(context, &Want::Nothing, MemberOf::NONE);
        }
        self.flush();
        start..self.here()
    }

    /// Steps of the event header, and the phase behind it, where `body` begins.
    pub(super) fn event_header(&mut self, stream: &StreamClass, stamps: TimeStamps) -> (Program, Phase) {
        self.phase = Phase::UNKNOWN;
        self.clock = stream.clock.filter(|_| stamps == TimeStamps::Followed);
        if let Some(header) = &stream.event_header {
            self.field(header, &Want::Nothing, MemberOf::NONE);
        }
        self.clock = None;
        (self.take(), self.phase)
    }

    /// Steps through an event's contexts and payload, for the fields at `paths`.
    pub(super) fn body(&mut self, roots: [Option<&Field>; 3], phase: Phase, paths: &[FieldPath]) -> Body {
        self.phase = phase;
        for (scope, root) in SCOPES.into_iter().zip(roots) {
            let Some(root) = root else { continue };
            let wanted = (0..).zip(paths).filter(|(_, path)| path.scope == scope);
            let wanted = wanted.map(|(i, path)| WantedPath { path: &path.path, value: NodeIx::new(i) });
            self.field(root, &Want::paths(wanted.collect()), MemberOf::NONE);
        }
        if self.program.steps.is_empty() {
            return Body::Fixed(std::mem::take(&mut self.pending));
        }
        Body::Steps(self.take())
    }

    /// Steps that show all of an event's contexts and payload.
    pub(super) fn whole_body(&mut self, roots: [Option<&Field>; 3], phase: Phase) -> Body {
        self.phase = phase;
        for (position, (scope, root)) in SCOPES.into_iter().zip(roots).enumerate() {
            let node = self.node(MemberOf { name: None, position }, FieldShape::Scope(scope));
            match root {
                Some(root) => self.members(root, &Want::All, Some(node)),
                None => {
                    self.emit(Step::Missing(node));
                }
            }
        }
        Body::Steps(self.take())
    }

    /// The steps written so far; the next ones belong to another program.
    fn take(&mut self) -> Program {
        self.flush();
        std::mem::take(&mut self.program)
    }

    fn node(&mut self, member: MemberOf<'_>, shape: FieldShape) -> NodeIx {
        let node = NodeIx::new(self.nodes.len() as u32);
        self.nodes.push(FieldNode { name: member.name.map(str::to_owned), position: member.position, shape });
        node
    }

    /// The node of a shown field, or the value that a wanted field fills.
    fn target(&mut self, want: &Want<'_>, member: MemberOf<'_>, shape: impl FnOnce() -> FieldShape) -> Option<NodeIx> {
        match want {
            Want::All => Some(self.node(member, shape())),
            want => want.value(),
        }
    }

    /// The node of a shown compound.
    fn compound(&mut self, want: &Want<'_>, member: MemberOf<'_>, shape: FieldShape) -> Option<NodeIx> {
        matches!(want, Want::All).then(|| self.node(member, shape))
    }

    /// Adds a step behind the pending addition; returns its index.
    fn emit(&mut self, step: Step) -> StepIx {
        self.flush();
        let index = StepIx::new(self.here());
        self.program.steps.push(step);
        index
    }

    fn flush(&mut self) {
        if self.pending > 0 {
            self.program.steps.push(Step::Skip(std::mem::take(&mut self.pending)));
        }
    }

    /// The index of the next step.
    fn next(&mut self) -> StepIx {
        self.flush();
        StepIx::new(self.here())
    }

    /// Sets the target of a loop or jump.
    fn patch(&mut self, index: StepIx, target: StepIx) {
        match self.program.steps.get_mut(index.get() as usize) {
            Some(Step::Loop { end, .. }) => *end = target,
            Some(Step::Jump(to)) => *to = target,
            _ => debug_assert!(false, "step {index:?} has no target"),
        }
    }

    /// The pending bits, where they fit into a step.
    fn lead(&mut self) -> u32 {
        match u32::try_from(self.pending) {
            Ok(lead) => {
                self.pending = 0;
                lead
            }
            Err(_) => {
                self.flush();
                0
            }
        }
    }

    fn skip(&mut self, bits: u64) {
        self.pending = self.pending.saturating_add(bits);
        self.phase = self.phase.advance(bits);
    }

    fn align(&mut self, align: u64) {
        match self.phase.padding(align) {
            Some(padding) => self.skip(padding),
            None => {
                self.emit(Step::Align(align - 1));
                self.phase = Phase::aligned(align);
            }
        }
    }

    fn field(&mut self, field: &Field, want: &Want<'_>, member: MemberOf<'_>) {
        self.align(field.align);
        match &field.kind {
            Kind::Bits(bits) => {
                let node = self.target(want, member, || FieldShape::Number(bits.show.format()));
                self.bits(bits, field.align, node);
            }
            Kind::Variable { signed, show, saves, clock } => {
                let node = self.target(want, member, || FieldShape::Number(show.format()));
                let save = saves.first().copied().map(SlotIx::new);
                self.emit(Step::Variable { node, save, signed: *signed });
                self.after_number(saves, *clock, None);
                self.phase = Phase::BYTE;
            }
            Kind::Real { size, big_endian, reversed } => match self.target(want, member, || FieldShape::Real) {
                None => self.skip(u64::from(*size)),
                Some(node) => {
                    let inside_byte = self.orders == ByteOrders::Mixed && !field.align.is_multiple_of(8);
                    let order = BitOrder { big_endian: *big_endian, reversed: *reversed, inside_byte };
                    let lead = self.lead();
                    self.emit(Step::Real { lead, node, size: *size, order });
                    self.phase = self.phase.advance(u64::from(*size));
                }
            },
            Kind::Text(unit) => {
                let node = self.target(want, member, || FieldShape::Text);
                self.emit(Step::Text { node, unit: *unit });
                self.phase = Phase::BYTE;
            }
            Kind::SizedText(unit, count) => {
                let node = self.target(want, member, || FieldShape::Text);
                self.run(count, 8, 1, node.map(|node| (node, ElementKind::Text(*unit))));
            }
            Kind::Blob { count, uuid } => {
                let node = self.target(want, member, || FieldShape::Blob);
                match uuid {
                    true => self.uuid(count, 8, 1),
                    false => self.run(count, 8, 1, node.map(|node| (node, ElementKind::Blob))),
                }
            }
            Kind::Struct(_) => {
                let node = self.compound(want, member, FieldShape::Struct);
                self.members(field, want, node);
            }
            Kind::Array { count, element, uuid } => self.array(count, element, *uuid, want, member),
            Kind::Variant { by, signed, options } => {
                let node = self.compound(want, member, FieldShape::Variant);
                let fields = options.iter().map(|option| (want.member(option.name()), &option.field)).collect();
                let ranges = |(branch, option): (usize, &Choice)| -> Vec<_> {
                    option.ranges.iter().map(|range| (*range, branch)).collect()
                };
                let cases = options.iter().enumerate().flat_map(ranges).collect();
                self.select(&Branches { by, signed: *signed, cases, fields, fallback: Fallback::Damage }, node);
            }
            Kind::Optional { by, signed, ranges, field } => {
                let node = self.compound(want, member, FieldShape::Optional);
                let any = [(i128::from(i64::MIN), -1), (1, i128::from(u64::MAX))];
                let cases = ranges.as_deref().unwrap_or(&any).iter().map(|range| (*range, 0)).collect();
                let fields = vec![(want.clone(), &**field)];
                self.select(&Branches { by, signed: *signed, cases, fields, fallback: Fallback::Missing }, node);
            }
        }
    }

    fn members(&mut self, field: &Field, want: &Want<'_>, node: Option<NodeIx>) {
        self.align(field.align);
        let Kind::Struct(members) = &field.kind else { return };
        if let Some(node) = node {
            self.emit(Step::Open(node));
        }
        for (position, member) in members.iter().enumerate() {
            let want = want.member(member.name());
            self.field(&member.field, &want, MemberOf { name: Some(member.name()), position });
        }
        if let Some(node) = node {
            self.emit(Step::Close(node));
        }
    }

    fn bits(&mut self, bits: &Bits, align: u64, node: Option<NodeIx>) {
        let size = u64::from(bits.size);
        let follows = followed(bits.clock, &bits.saves).is_some_and(|clock| Some(clock) == self.clock);
        let partial = !align.is_multiple_of(8) || !size.is_multiple_of(8);
        let inside_byte = self.orders == ByteOrders::Mixed && partial;
        if node.is_none() && bits.saves.is_empty() && !follows && !inside_byte {
            return self.skip(size);
        }
        let order = BitOrder { big_endian: bits.big_endian, reversed: bits.reversed, inside_byte };
        let save = bits.saves.first().copied().map(SlotIx::new);
        let lead = self.lead();
        self.emit(Step::Bits { lead, node, save, size: bits.size, signed: bits.signed, order });
        self.phase = self.phase.advance(size);
        self.after_number(&bits.saves, bits.clock, NonZeroU8::new(bits.size));
    }

    /// Saves the last number into its other slots; updates the clock if the number is a time stamp of it.
    fn after_number(&mut self, saves: &[Slot], clock: Option<usize>, size: Option<NonZeroU8>) {
        for slot in saves.iter().skip(1) {
            self.emit(Step::Save(*slot));
        }
        let clock = followed(clock, saves);
        if clock.is_some() && clock == self.clock {
            self.emit(Step::Clock(size));
        }
    }

    /// Contiguous elements of `width` bytes, aligned to `align` bits.
    fn run(&mut self, count: &Count, align: u64, width: u8, wanted: Option<(NodeIx, ElementKind)>) {
        let bits = u64::from(width) * 8;
        match (count, wanted) {
            (Count::Fixed(n), None) => return self.skip(n.saturating_mul(bits)),
            (_, Some((node, elements))) => {
                self.emit(Step::Run { node, times: times(count), width, elements });
            }
            (Count::Recorded(_), None) => {
                self.emit(Step::SkipRun { times: times(count), bits });
            }
        }
        self.after_run(count, align, bits);
    }

    fn uuid(&mut self, count: &Count, align: u64, width: u8) {
        self.emit(Step::Uuid { times: times(count), width });
        self.after_run(count, align, u64::from(width) * 8);
    }

    fn after_run(&mut self, count: &Count, align: u64, bits: u64) {
        self.phase = match count {
            Count::Fixed(n) => self.phase.advance(n.wrapping_mul(bits)),
            Count::Recorded(_) => Phase::aligned(align.min(bits)),
        };
    }

    fn array(&mut self, count: &Count, element: &Field, uuid: bool, want: &Want<'_>, member: MemberOf<'_>) {
        if let Some((bits, width)) = contiguous_integers(element, self.phase) {
            let node = self.target(want, member, || match bits.character {
                true => FieldShape::Text,
                false => FieldShape::Array { element: Some((bits.show.format(), bits.signed)) },
            });
            let kind = match bits.character {
                true => ElementKind::Text(Unit::Byte),
                false => ElementKind::Words { big_endian: bits.big_endian },
            };
            return match uuid {
                true => self.uuid(count, element.align, width),
                false => self.run(count, element.align, width, node.map(|node| (node, kind))),
            };
        }
        let node = self.compound(want, member, FieldShape::Array { element: None });
        let fixed = element_size(element);
        match (fixed, node, count) {
            (Some(size), None, Count::Fixed(n)) => self.skip(n.saturating_mul(size)),
            (Some(bits), None, Count::Recorded(_)) => {
                self.emit(Step::SkipRun { times: times(count), bits });
                self.phase = Phase::aligned(element.align);
            }
            _ => {
                let phase = if fixed.is_some() { Phase::aligned(element.align) } else { Phase::UNKNOWN };
                self.elements(count, element, phase, node);
            }
        }
    }

    /// A loop over elements; `phase` holds at the beginning of each and behind the last.
    fn elements(&mut self, count: &Count, element: &Field, phase: Phase, node: Option<NodeIx>) {
        let repeat = self.emit(Step::Loop { node, times: times(count), end: UNKNOWN_TARGET });
        self.phase = phase;
        let want = if node.is_some() { Want::All } else { Want::Nothing };
        self.field(element, &want, MemberOf::NONE);
        let end = self.next();
        self.patch(repeat, end);
        self.phase = phase;
        if let Some(node) = node {
            self.emit(Step::Close(node));
        }
    }

    fn select(&mut self, branches: &Branches<'_, '_>, node: Option<NodeIx>) {
        if let Some(node) = node {
            self.emit(Step::Open(node));
        }
        let (slot, signed) = (slot_of(branches.by), branches.signed);
        let select = self.emit(Step::Select { slot, first: 0, count: 0, signed, otherwise: None });
        let before = self.phase;
        let mut after: Option<Phase> = None;
        let (mut targets, mut jumps) = (Vec::new(), Vec::new());
        for (want, field) in &branches.fields {
            targets.push(self.next());
            self.phase = before;
            self.field(field, want, MemberOf::NONE);
            jumps.push(self.emit(Step::Jump(UNKNOWN_TARGET)));
            after = Some(after.map_or(self.phase, |p| p.join(self.phase)));
        }
        let mut otherwise = None;
        if branches.fallback == Fallback::Missing {
            otherwise = Some(self.next());
            if let Some(node) = node {
                self.emit(Step::Missing(node));
            }
            after = Some(after.map_or(before, |p| p.join(before)));
        }
        let end = self.next();
        jumps.into_iter().for_each(|jump| self.patch(jump, end));
        let cases = self.cases(branches, &targets);
        if let Some(step) = self.program.steps.get_mut(select.get() as usize) {
            let count = cases.end - cases.start;
            *step = Step::Select { slot, first: cases.start, count, signed, otherwise };
        }
        self.phase = after.unwrap_or(before);
        if let Some(node) = node {
            self.emit(Step::Close(node));
        }
    }

    /// Adds the cases of a selection; values that the selector cannot have are left out.
    fn cases(&mut self, branches: &Branches<'_, '_>, targets: &[StepIx]) -> Range<u32> {
        let first = self.program.cases.len() as u32;
        let (least, most) = match branches.signed {
            true => (i64::MIN.into(), i64::MAX.into()),
            false => (0, i128::from(u64::MAX)),
        };
        for ((low, high), branch) in &branches.cases {
            let (low, high) = ((*low).max(least), (*high).min(most));
            if let (true, Some(target)) = (low <= high, targets.get(*branch)) {
                let in_order = |v: i128| if branches.signed { (v as i64 as u64) ^ (1 << 63) } else { v as u64 };
                self.program.cases.push(Case { first: in_order(low), last: in_order(high), target: *target });
            }
        }
        first..self.program.cases.len() as u32
    }
}

impl MemberOf<'_> {
    const NONE: MemberOf<'static> = MemberOf { name: None, position: 0 };
}

fn times(count: &Count) -> Times {
    match count {
        Count::Fixed(n) => Times::Fixed(u32::try_from(*n).unwrap_or(u32::MAX)),
        Count::Recorded(source) => Times::Slot(slot_of(source)),
    }
}

/// The slot of a length or selector; `locate` has bound them all.
fn slot_of(source: &Source) -> Slot {
    match source {
        Source::Slot(slot) => *slot,
        Source::At(_) => Slot::MAX,
    }
}

/// The clock that a number updates: the time stamp at the end of a packet updates none.
fn followed(clock: Option<usize>, saves: &[Slot]) -> Option<usize> {
    clock.filter(|_| !saves.contains(&Role::End.slot()))
}
