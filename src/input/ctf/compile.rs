//! Compiles a projection: flat decode steps for a class, with everything computed that the metadata alone decides.
//!
//! The compiler walks a class's structures once and keeps the known properties of the position ([`Phase`]). Alignment
//! that follows from them costs nothing at run time. Unwanted fields of fixed size, and the padding between them,
//! become one addition before the next field that is wanted or that a later field needs. The remaining steps read
//! wanted values, lengths and selectors, and fields whose size the data decides.
//!
//! Cost: compiling is linear in the schema, running linear in the steps.

use super::branches::{Branch, BranchCase, Branches, Fallback, in_order};
use super::emit::{Emitter, UNKNOWN_TARGET};
use super::orders::ByteOrders;
use super::phase::{Phase, contiguous_integers, element_size};
use super::schema::{
    Bits, ByteMeaning, Count, Field, Kind, Role, Schema, Slot, Source, StreamClass, TextUnit, ValueRange,
};
use super::steps::{
    BitOrder, Body, Case, ElementFormat, ElementKind, FieldNode, FieldShape, NodeIx, Program, SlotIx, Step, Times,
};
use super::want::{Want, WantedPath};
use crate::input::record::{FieldPath, Scope};
use std::num::NonZeroU8;
use std::ops::Range;

const SCOPES: [Scope; 3] = [Scope::CommonContext, Scope::SpecificContext, Scope::Payload];

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
    /// Shown fields of all classes.
    pub(super) nodes: Vec<FieldNode>,
    out: Emitter,
    /// The clock whose time stamps are followed.
    clock: Option<usize>,
    /// With mixed byte orders, numbers that end inside a byte are read even if unwanted, to check the order.
    orders: ByteOrders,
}

/// A member's name and its position among the members.
#[derive(Clone, Copy)]
struct MemberOf<'f> {
    name: Option<&'f str>,
    position: usize,
}

/// The wanted elements of a run.
#[derive(Clone, Copy)]
struct WantedRun {
    node: NodeIx,
    elements: ElementKind,
}

impl Compiler {
    pub(super) fn new(orders: ByteOrders) -> Self {
        Compiler { nodes: Vec::new(), out: Emitter::default(), clock: None, orders }
    }

    /// All steps written so far, for programs in several ranges.
    pub(super) fn finish(mut self) -> Program {
        self.out.take()
    }

    /// Steps of the packet header, from the beginning of a packet.
    pub(super) fn packet_header(&mut self, schema: &Schema) -> Range<u32> {
        let start = self.out.here();
        self.out.phase = Phase::PACKET;
        self.clock = None;
        if let Some(header) = &schema.packet_header {
            self.field(header, &Want::Nothing, MemberOf::NONE);
        }
        self.out.flush();
        start..self.out.here()
    }

    /// Steps of the packet context, from the unknown position where the header ended.
    pub(super) fn packet_context(&mut self, stream: &StreamClass) -> Range<u32> {
        let start = self.out.here();
        self.out.phase = Phase::UNKNOWN;
        self.clock = stream.clock;
        if let Some(context) = &stream.packet_context {
            self.field(context, &Want::Nothing, MemberOf::NONE);
        }
        self.out.flush();
        start..self.out.here()
    }

    /// Steps of the event header, and the phase after it, at which the body begins.
    pub(super) fn event_header(&mut self, stream: &StreamClass, stamps: TimeStamps) -> (Program, Phase) {
        self.out.phase = Phase::UNKNOWN;
        self.clock = stream.clock.filter(|_| stamps == TimeStamps::Followed);
        if let Some(header) = &stream.event_header {
            self.field(header, &Want::Nothing, MemberOf::NONE);
        }
        self.clock = None;
        (self.out.take(), self.out.phase)
    }

    /// Steps through an event's contexts and payload, for the fields at `paths`.
    pub(super) fn body(&mut self, roots: [Option<&Field>; 3], phase: Phase, paths: &[FieldPath]) -> Body {
        self.out.phase = phase;
        for (scope, root) in SCOPES.into_iter().zip(roots) {
            let Some(root) = root else { continue };
            let wanted = (0..).zip(paths).filter(|(_, path)| path.scope == scope);
            let wanted = wanted.map(|(i, path)| WantedPath { path: Some(&path.dotted), value: NodeIx::new(i) });
            self.field(root, &Want::paths(wanted.collect()), MemberOf::NONE);
        }
        if self.out.is_empty() {
            return Body::Fixed(self.out.take_pending());
        }
        Body::Steps(self.out.take())
    }

    /// Steps that show all of an event's contexts and payload.
    pub(super) fn whole_body(&mut self, roots: [Option<&Field>; 3], phase: Phase) -> Body {
        self.out.phase = phase;
        for (position, (scope, root)) in SCOPES.into_iter().zip(roots).enumerate() {
            let node = self.node(MemberOf { name: None, position }, FieldShape::Scope(scope));
            match root {
                Some(root) => self.members(root, &Want::All, Some(node)),
                None => {
                    self.out.emit(Step::Missing(node));
                }
            }
        }
        Body::Steps(self.out.take())
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

    fn field(&mut self, field: &Field, want: &Want<'_>, member: MemberOf<'_>) {
        self.out.align(field.align);
        match &field.kind {
            Kind::Bits(bits) => {
                let node = self.target(want, member, || FieldShape::Number(bits.show.format()));
                self.bits(bits, field.align, node);
            }
            Kind::Variable { signed, show, saves, clock } => {
                let node = self.target(want, member, || FieldShape::Number(show.format()));
                let save = saves.first().copied().map(SlotIx::new);
                self.out.emit(Step::Variable { node, save, signed: *signed });
                self.after_number(saves, *clock, None);
                self.out.phase = Phase::BYTE;
            }
            Kind::Real { size, byte_order, reversed } => match self.target(want, member, || FieldShape::Real) {
                None => self.out.skip(u64::from(*size)),
                Some(node) => {
                    let inside_byte = self.orders == ByteOrders::Mixed && !field.align.is_multiple_of(8);
                    let order = BitOrder { byte_order: *byte_order, reversed: *reversed, inside_byte };
                    let lead = self.out.lead();
                    self.out.emit(Step::Real { lead, node, size: *size, order });
                    self.out.phase = self.out.phase.advance(u64::from(*size));
                }
            },
            Kind::Text(unit) => {
                let node = self.target(want, member, || FieldShape::Text);
                self.out.emit(Step::Text { node, unit: *unit });
                self.out.phase = Phase::BYTE;
            }
            Kind::SizedText(unit, count) => {
                let node = self.target(want, member, || FieldShape::Text);
                let elements = ElementKind::Text(*unit);
                self.run(count, 8, 1, node.map(|node| WantedRun { node, elements }));
            }
            Kind::Blob { count, meaning } => {
                let node = self.target(want, member, || FieldShape::Blob);
                let wanted = node.map(|node| WantedRun { node, elements: ElementKind::Blob });
                match meaning {
                    ByteMeaning::TraceUuid => self.uuid(count, 8, 1),
                    ByteMeaning::Data => self.run(count, 8, 1, wanted),
                }
            }
            Kind::Struct(_) => {
                let node = self.compound(want, member, FieldShape::Struct);
                self.members(field, want, node);
            }
            Kind::Array { count, element, meaning } => self.array(count, element, *meaning, want, member),
            Kind::Variant { by, signed, options } => {
                let node = self.compound(want, member, FieldShape::Variant);
                let fields = options.iter().map(|option| Branch::of_option(option, want)).collect();
                let cases = (0..).zip(options).flat_map(|(branch, option)| {
                    option.ranges.iter().map(move |values| BranchCase { values: *values, branch })
                });
                let cases = cases.collect();
                self.select(&Branches { by, signed: *signed, cases, fields, fallback: Fallback::Damage }, node);
            }
            Kind::Optional { by, signed, ranges, field } => {
                let node = self.compound(want, member, FieldShape::Optional);
                let not_zero =
                    [ValueRange { first: i64::MIN.into(), last: -1 }, ValueRange { first: 1, last: u64::MAX.into() }];
                let ranges = ranges.as_deref().unwrap_or(&not_zero).iter();
                let cases = ranges.map(|values| BranchCase { values: *values, branch: 0 }).collect();
                let fields = vec![Branch { want: want.clone(), field }];
                self.select(&Branches { by, signed: *signed, cases, fields, fallback: Fallback::Missing }, node);
            }
        }
    }

    fn members(&mut self, field: &Field, want: &Want<'_>, node: Option<NodeIx>) {
        self.out.align(field.align);
        let Kind::Struct(members) = &field.kind else { return };
        if let Some(node) = node {
            self.out.emit(Step::Open(node));
        }
        for (position, member) in members.iter().enumerate() {
            let want = want.member(member.name());
            self.field(&member.field, &want, MemberOf { name: Some(member.name()), position });
        }
        if let Some(node) = node {
            self.out.emit(Step::Close(node));
        }
    }

    fn bits(&mut self, bits: &Bits, align: u64, node: Option<NodeIx>) {
        let size = u64::from(bits.size);
        let follows = followed(bits.clock, &bits.saves).is_some_and(|clock| Some(clock) == self.clock);
        let partial = !align.is_multiple_of(8) || !size.is_multiple_of(8);
        let inside_byte = self.orders == ByteOrders::Mixed && partial;
        if node.is_none() && bits.saves.is_empty() && !follows && !inside_byte {
            return self.out.skip(size);
        }
        let order = BitOrder { byte_order: bits.byte_order, reversed: bits.reversed, inside_byte };
        let save = bits.saves.first().copied().map(SlotIx::new);
        let lead = self.out.lead();
        self.out.emit(Step::Bits { lead, node, save, size: bits.size, signed: bits.signed, order });
        self.out.phase = self.out.phase.advance(size);
        self.after_number(&bits.saves, bits.clock, NonZeroU8::new(bits.size));
    }

    /// Saves the last number into its other slots; updates the clock if the number is a time stamp of it.
    fn after_number(&mut self, saves: &[Slot], clock: Option<usize>, size: Option<NonZeroU8>) {
        for slot in saves.iter().skip(1) {
            self.out.emit(Step::Save(*slot));
        }
        let clock = followed(clock, saves);
        if clock.is_some() && clock == self.clock {
            self.out.emit(Step::Clock(size));
        }
    }

    /// Contiguous elements of `width` bytes, aligned to `align` bits.
    fn run(&mut self, count: &Count, align: u64, width: u8, wanted: Option<WantedRun>) {
        let bits = u64::from(width) * 8;
        match (count, wanted) {
            (Count::Fixed(n), None) => return self.out.skip(n.saturating_mul(bits)),
            (_, Some(WantedRun { node, elements })) => {
                self.out.emit(Step::Run { node, times: times(count), width, elements });
            }
            (Count::Recorded(_), None) => {
                self.out.emit(Step::SkipRun { times: times(count), bits });
            }
        }
        self.after_run(count, align, bits);
    }

    fn uuid(&mut self, count: &Count, align: u64, width: u8) {
        self.out.emit(Step::Uuid { times: times(count), width });
        self.after_run(count, align, u64::from(width) * 8);
    }

    fn after_run(&mut self, count: &Count, align: u64, bits: u64) {
        self.out.phase = match count {
            Count::Fixed(n) => self.out.phase.advance(n.wrapping_mul(bits)),
            Count::Recorded(_) => Phase::aligned(align.min(bits)),
        };
    }

    fn array(&mut self, count: &Count, element: &Field, meaning: ByteMeaning, want: &Want<'_>, member: MemberOf<'_>) {
        if let Some((bits, width)) = contiguous_integers(element, self.out.phase) {
            let node = self.target(want, member, || match bits.character {
                true => FieldShape::Text,
                false => FieldShape::Array {
                    element: Some(ElementFormat { format: bits.show.format(), signed: bits.signed }),
                },
            });
            let elements = match bits.character {
                true => ElementKind::Text(TextUnit::Byte),
                false => ElementKind::Words { byte_order: bits.byte_order },
            };
            return match meaning {
                ByteMeaning::TraceUuid => self.uuid(count, element.align, width),
                ByteMeaning::Data => {
                    self.run(count, element.align, width, node.map(|node| WantedRun { node, elements }));
                }
            };
        }
        let node = self.compound(want, member, FieldShape::Array { element: None });
        let fixed = element_size(element);
        match (fixed, node, count) {
            (Some(size), None, Count::Fixed(n)) => self.out.skip(n.saturating_mul(size)),
            (Some(bits), None, Count::Recorded(_)) => {
                self.out.emit(Step::SkipRun { times: times(count), bits });
                self.out.phase = Phase::aligned(element.align);
            }
            _ => {
                let phase = if fixed.is_some() { Phase::aligned(element.align) } else { Phase::UNKNOWN };
                self.elements(count, element, phase, node);
            }
        }
    }

    /// A loop over elements; `phase` holds at the beginning of each and after the last.
    fn elements(&mut self, count: &Count, element: &Field, phase: Phase, node: Option<NodeIx>) {
        let repeat = self.out.emit(Step::Loop { node, times: times(count), end: UNKNOWN_TARGET });
        self.out.phase = phase;
        let want = if node.is_some() { Want::All } else { Want::Nothing };
        self.field(element, &want, MemberOf::NONE);
        let end = self.out.next();
        self.out.patch(repeat, end);
        self.out.phase = phase;
        if let Some(node) = node {
            self.out.emit(Step::Close(node));
        }
    }

    fn select(&mut self, branches: &Branches<'_, '_>, node: Option<NodeIx>) {
        if let Some(node) = node {
            self.out.emit(Step::Open(node));
        }
        let (slot, signed) = (slot_of(branches.by), branches.signed);
        let select = self.out.emit(Step::Select { slot, first: 0, count: 0, signed, otherwise: None });
        let before = self.out.phase;
        let mut after: Option<Phase> = None;
        let (mut targets, mut jumps) = (Vec::new(), Vec::new());
        for Branch { want, field } in &branches.fields {
            targets.push(self.out.next());
            self.out.phase = before;
            self.field(field, want, MemberOf::NONE);
            jumps.push(self.out.emit(Step::Jump(UNKNOWN_TARGET)));
            after = Some(after.map_or(self.out.phase, |p| p.join(self.out.phase)));
        }
        let mut otherwise = None;
        if branches.fallback == Fallback::Missing {
            otherwise = Some(self.out.next());
            if let Some(node) = node {
                self.out.emit(Step::Missing(node));
            }
            after = Some(after.map_or(before, |p| p.join(before)));
        }
        let end = self.out.next();
        jumps.into_iter().for_each(|jump| self.out.patch(jump, end));
        let cases = in_order(branches).filter_map(|(first, last, branch)| {
            targets.get(branch).map(|target| Case { first, last, target: *target })
        });
        self.out.patch_select(select, cases, otherwise);
        self.out.phase = after.unwrap_or(before);
        if let Some(node) = node {
            self.out.emit(Step::Close(node));
        }
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
