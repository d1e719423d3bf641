//! A projection compiled: flat decode steps for a class, with all that is known beforehand worked in.
//!
//! The compiler walks a class's structures once and keeps what it knows of the position: `position = residue (mod
//! modulus)`. Alignment that follows from it costs nothing at run time, and unwanted fields of fixed size, the padding
//! between them included, melt into one addition before the next field that is wanted or that a later field needs. What remains are
//! steps for wanted values, for lengths and selectors, and for fields whose size the data decides.
//!
//! Cost: compiling is linear in the schema, running linear in the steps.

use super::schema::{Bits, Count, Field, Kind, Role, Schema, Slot, Source, StreamClass, Unit};
use super::steps::{
    BIG, Body, Case, ElementKind, FieldNode, FieldShape, INSIDE, NONE, Program, REVERSED, SIGNED, Step, Times,
};
use crate::input::record::{FieldPath, Scope};
use std::ops::Range;

/// What is wanted of a field.
#[derive(Clone)]
enum Want<'p> {
    Nothing,
    /// Everything, with nodes.
    All,
    /// The fields at these paths (what is left of each), with the positions of their values.
    Paths(Vec<(&'p [String], u32)>),
}

impl<'p> Want<'p> {
    fn inside(&self, name: &str) -> Want<'p> {
        match self {
            Want::Paths(paths) => {
                let deeper = |(path, value): &(&'p [String], u32)| match path {
                    [first, rest @ ..] if first == name => Some((rest, *value)),
                    _ => None,
                };
                let found: Vec<_> = paths.iter().filter_map(deeper).collect();
                if found.is_empty() { Want::Nothing } else { Want::Paths(found) }
            }
            other => other.clone(),
        }
    }

    /// The value that the field itself fills.
    fn value(&self) -> u32 {
        match self {
            Want::Paths(paths) => paths.iter().find(|(path, _)| path.is_empty()).map_or(NONE, |(_, value)| *value),
            _ => NONE,
        }
    }
}

/// What is known of the position: `residue` modulo `modulus`, a power of two.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Phase {
    modulus: u64,
    residue: u64,
}

const ANYWHERE: Phase = Phase { modulus: 1, residue: 0 };

impl Phase {
    fn advance(self, bits: u64) -> Phase {
        Phase { residue: self.residue.wrapping_add(bits) & (self.modulus - 1), ..self }
    }

    /// What holds on both of two ways.
    fn join(self, other: Phase) -> Phase {
        let mut modulus = self.modulus.min(other.modulus);
        while (self.residue ^ other.residue) & (modulus - 1) != 0 {
            modulus /= 2;
        }
        Phase { modulus, residue: self.residue & (modulus - 1) }
    }
}

/// Writes the steps of a program.
pub(super) struct Compiler {
    pub(super) program: Program,
    /// What is shown, of all classes.
    pub(super) nodes: Vec<FieldNode>,
    phase: Phase,
    /// Bits to step over before the next step.
    pending: u64,
    /// The clock whose time stamps are followed.
    clock: Option<usize>,
    /// Numbers that end inside a byte are read even if nobody wants them, to see that the byte order stays.
    watch_order: bool,
}

impl Compiler {
    pub(super) fn new(watch_order: bool) -> Self {
        Compiler {
            program: Program::default(),
            nodes: Vec::new(),
            phase: ANYWHERE,
            pending: 0,
            clock: None,
            watch_order,
        }
    }

    fn here(&self) -> u32 {
        self.program.steps.len() as u32
    }

    /// Steps of the packet header, from the beginning of a packet.
    pub(super) fn packet_header(&mut self, schema: &Schema) -> Range<u32> {
        let start = self.here();
        self.phase = Phase { modulus: 1 << 62, residue: 0 };
        self.clock = None;
        if let Some(header) = &schema.packet_header {
            self.field(header, &Want::Nothing, None);
        }
        self.flush();
        start..self.here()
    }

    /// Steps of the packet context, from wherever the header ended.
    pub(super) fn packet_context(&mut self, stream: &StreamClass) -> Range<u32> {
        let start = self.here();
        self.phase = ANYWHERE;
        self.clock = stream.clock;
        if let Some(context) = &stream.packet_context {
            self.field(context, &Want::Nothing, None);
        }
        self.flush();
        start..self.here()
    }

    /// Steps of the event header; the phase that it ends with is what `body` begins with.
    pub(super) fn event_header(&mut self, stream: &StreamClass, time: bool) -> (Program, Known) {
        self.phase = ANYWHERE;
        self.clock = if time { stream.clock } else { None };
        if let Some(header) = &stream.event_header {
            self.field(header, &Want::Nothing, None);
        }
        self.clock = None;
        (self.take(), Known(self.phase))
    }

    /// The way through an event's contexts and payload, for the fields at `paths`.
    pub(super) fn body(&mut self, roots: [Option<&Field>; 3], known: Known, paths: &[FieldPath]) -> Body {
        self.phase = known.0;
        for (scope, root) in SCOPES.into_iter().zip(roots) {
            let Some(root) = root else { continue };
            let inside = paths.iter().enumerate().filter(|(_, p)| p.scope == scope);
            let found: Vec<_> = inside.map(|(i, p)| (p.path.as_slice(), i as u32)).collect();
            self.field(root, &if found.is_empty() { Want::Nothing } else { Want::Paths(found) }, None);
        }
        if self.program.steps.is_empty() {
            return Body::Fixed(std::mem::take(&mut self.pending));
        }
        Body::Steps(self.take())
    }

    /// Steps that show all of an event's contexts and payload.
    pub(super) fn whole_body(&mut self, roots: [Option<&Field>; 3], known: Known) -> Body {
        self.phase = known.0;
        for (position, (scope, root)) in SCOPES.into_iter().zip(roots).enumerate() {
            let node = self.node(None, position, FieldShape::Scope(scope));
            match root {
                Some(root) => self.members(root, &Want::All, node),
                None => self.emit(Step::Missing(node)),
            }
        }
        Body::Steps(self.take())
    }

    /// The steps written so far; the next ones are another program's.
    fn take(&mut self) -> Program {
        self.flush();
        std::mem::take(&mut self.program)
    }

    fn node(&mut self, name: Option<&str>, position: usize, shape: FieldShape) -> u32 {
        self.nodes.push(FieldNode { name: name.map(str::to_owned), position, shape });
        self.nodes.len() as u32 - 1
    }

    fn emit(&mut self, step: Step) {
        self.flush();
        self.program.steps.push(step);
    }

    fn flush(&mut self) {
        if self.pending > 0 {
            self.program.steps.push(Step::Skip(std::mem::take(&mut self.pending)));
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
        if align <= self.phase.modulus {
            let padding = self.phase.residue.wrapping_neg() & (align - 1);
            self.skip(padding);
        } else {
            self.emit(Step::Align(align - 1));
            self.phase = Phase { modulus: align, residue: 0 };
        }
    }

    /// One field; `member` is its name and position where it is a member.
    fn field(&mut self, field: &Field, want: &Want<'_>, member: Option<(&str, usize)>) {
        let (name, position) = member.map_or((None, 0), |(name, position)| (Some(name), position));
        let all = matches!(want, Want::All);
        self.align(field.align);
        match &field.kind {
            Kind::Bits(bits) => {
                let node =
                    if all { self.node(name, position, FieldShape::Number(bits.show.format())) } else { want.value() };
                self.bits(bits, field.align, node);
            }
            Kind::Variable { signed, show, saves, .. } => {
                let node =
                    if all { self.node(name, position, FieldShape::Number(show.format())) } else { want.value() };
                self.emit(Step::Variable { node, save: saves.first().copied().unwrap_or(NONE), signed: *signed });
                self.after_number(saves, field_clock(&field.kind), 0);
                self.phase = Phase { modulus: 8, residue: 0 };
            }
            Kind::Real { size, big_endian, reversed } => {
                let node = if all { self.node(name, position, FieldShape::Real) } else { want.value() };
                if node == NONE {
                    return self.skip(u64::from(*size));
                }
                let inside = if self.watch_order && !field.align.is_multiple_of(8) { INSIDE } else { 0 };
                let flags = flag(*big_endian, BIG) | flag(*reversed, REVERSED) | inside;
                let lead = self.lead();
                self.program.steps.push(Step::Real { lead, node, size: *size, flags });
                self.phase = self.phase.advance(u64::from(*size));
            }
            Kind::Text(unit) => {
                let node = if all { self.node(name, position, FieldShape::Text) } else { want.value() };
                self.emit(Step::Text { node, unit: *unit });
                self.phase = Phase { modulus: 8, residue: 0 };
            }
            Kind::SizedText(unit, count) => {
                let node = if all { self.node(name, position, FieldShape::Text) } else { want.value() };
                self.run(count, 8, 1, node, ElementKind::Text(*unit));
            }
            Kind::Blob { count, uuid } => {
                let node = if all { self.node(name, position, FieldShape::Blob) } else { want.value() };
                let (node, seen) = if *uuid { (0, ElementKind::Uuid) } else { (node, ElementKind::Blob) };
                self.run(count, 8, 1, node, seen);
            }
            Kind::Struct(_) => {
                let node = if all { self.node(name, position, FieldShape::Struct) } else { NONE };
                self.members(field, want, node);
            }
            Kind::Array { count, element, uuid } => self.array(count, element, *uuid, want, (name, position)),
            Kind::Variant { by, signed, options } => {
                let node = if all { self.node(name, position, FieldShape::Variant) } else { NONE };
                let mut cases = Vec::new();
                let branches: Vec<(Want<'_>, &Field)> =
                    options.iter().map(|o| (want.inside(o.name()), &o.field)).collect();
                for (branch, option) in options.iter().enumerate() {
                    cases.extend(option.ranges.iter().map(|range| (*range, branch)));
                }
                self.select(by, *signed, &cases, &branches, node, false);
            }
            Kind::Optional { by, signed, ranges, field } => {
                let node = if all { self.node(name, position, FieldShape::Optional) } else { NONE };
                let any = [(i128::from(i64::MIN), -1), (1, i128::from(u64::MAX))];
                let ranges = ranges.as_deref().unwrap_or(&any);
                let cases: Vec<_> = ranges.iter().map(|range| (*range, 0)).collect();
                self.select(by, *signed, &cases, &[(want.clone(), field)], node, true);
            }
        }
    }

    fn members(&mut self, field: &Field, want: &Want<'_>, node: u32) {
        self.align(field.align);
        let Kind::Struct(members) = &field.kind else { return };
        if node != NONE {
            self.emit(Step::Open(node));
        }
        for (position, member) in members.iter().enumerate() {
            let want = want.inside(member.name());
            self.field(&member.field, &want, Some((member.name(), position)));
        }
        if node != NONE {
            self.emit(Step::Close(node));
        }
    }

    fn bits(&mut self, bits: &Bits, align: u64, node: u32) {
        let size = u64::from(bits.size);
        let clock = bits.clock.filter(|c| Some(*c) == self.clock && !bits.saves.contains(&Role::End.slot()));
        let inside = if self.watch_order && (!align.is_multiple_of(8) || size % 8 != 0) { INSIDE } else { 0 };
        if node == NONE && bits.saves.is_empty() && clock.is_none() && inside == 0 {
            return self.skip(size);
        }
        let flags = flag(bits.big_endian, BIG) | flag(bits.signed, SIGNED) | flag(bits.reversed, REVERSED) | inside;
        let lead = self.lead();
        let save = bits.saves.first().copied().unwrap_or(NONE);
        self.program.steps.push(Step::Bits { lead, node, save, size: bits.size, flags });
        self.phase = self.phase.advance(size);
        self.after_number(&bits.saves, clock, bits.size);
    }

    fn after_number(&mut self, saves: &[Slot], clock: Option<usize>, size: u8) {
        for slot in saves.iter().skip(1) {
            self.program.steps.push(Step::Save(*slot));
        }
        if clock.is_some() && clock == self.clock {
            self.program.steps.push(Step::Clock(size));
        }
    }

    /// Elements of `width` bytes side by side, aligned to `align` bits.
    fn run(&mut self, count: &Count, align: u64, width: u8, node: u32, elements: ElementKind) {
        let bits = u64::from(width) * 8;
        match (count, node) {
            (Count::Fixed(n), NONE) => self.skip(n.saturating_mul(bits)),
            (Count::Fixed(n), _) => {
                let times = Times::Fixed(u32::try_from(*n).unwrap_or(u32::MAX));
                self.emit(Step::Run { node, times, width, elements });
                self.phase = self.phase.advance(n.wrapping_mul(bits));
            }
            (Count::Held(source), _) => {
                let times = Times::Held(held(source));
                let skips = node == NONE;
                self.emit(if skips {
                    Step::SkipRun { times, bits }
                } else {
                    Step::Run { node, times, width, elements }
                });
                self.phase = Phase { modulus: align.min(bits), residue: 0 };
            }
        }
    }

    fn array(&mut self, count: &Count, element: &Field, uuid: bool, want: &Want<'_>, member: (Option<&str>, usize)) {
        let all = matches!(want, Want::All);
        let (name, position) = member;
        let whole = self.phase.modulus >= 8 && self.phase.residue.is_multiple_of(8);
        if let Some((bits, width)) = side_by_side(element, whole) {
            let shape = || match bits.character {
                true => FieldShape::Text,
                false => FieldShape::Array { element: Some((bits.show.format(), bits.signed)) },
            };
            let node = if all { self.node(name, position, shape()) } else { want.value() };
            let (node, seen) = match (uuid, bits.character) {
                (true, _) => (0, ElementKind::Uuid),
                (_, true) => (node, ElementKind::Text(Unit::Byte)),
                _ => (node, ElementKind::Words(bits.big_endian)),
            };
            return self.run(count, element.align, width, node, seen);
        }
        let node = if all { self.node(name, position, FieldShape::Array { element: None }) } else { NONE };
        let fixed = fixed_size(element).filter(|size| size % element.align == 0);
        if let (Some(size), NONE) = (fixed, node) {
            match count {
                Count::Fixed(n) => return self.skip(n.saturating_mul(size)),
                Count::Held(source) => {
                    self.emit(Step::SkipRun { times: Times::Held(held(source)), bits: size });
                    self.phase = Phase { modulus: element.align, residue: 0 };
                    return;
                }
            }
        }
        let times = match count {
            Count::Fixed(n) => Times::Fixed(u32::try_from(*n).unwrap_or(u32::MAX)),
            Count::Held(source) => Times::Held(held(source)),
        };
        let at = self.here() as usize + usize::from(self.pending > 0);
        self.emit(Step::Loop { node, times, end: 0 });
        let phase = if fixed.is_some() { Phase { modulus: element.align, residue: 0 } } else { ANYWHERE };
        self.phase = phase;
        let inside = if all { Want::All } else { Want::Nothing };
        self.field(element, &inside, None);
        self.flush();
        let finish = self.here();
        if let Some(Step::Loop { end, .. }) = self.program.steps.get_mut(at) {
            *end = finish;
        }
        self.phase = phase;
        if node != NONE {
            self.emit(Step::Close(node));
        }
    }

    fn select(
        &mut self,
        by: &Source,
        signed: bool,
        cases: &[((i128, i128), usize)],
        branches: &[(Want<'_>, &Field)],
        node: u32,
        may_miss: bool,
    ) {
        if node != NONE {
            self.emit(Step::Open(node));
        }
        self.flush();
        let at = self.here() as usize;
        let slot = held(by);
        self.program.steps.push(Step::Select { slot, first: 0, count: 0, signed, otherwise: NONE });
        let before = self.phase;
        let mut after: Option<Phase> = None;
        let mut targets = Vec::with_capacity(branches.len());
        let mut jumps = Vec::with_capacity(branches.len());
        for (want, field) in branches {
            targets.push(self.here());
            self.phase = before;
            self.field(field, want, None);
            self.flush();
            jumps.push(self.here() as usize);
            self.program.steps.push(Step::Jump(0));
            after = Some(after.map_or(self.phase, |p| p.join(self.phase)));
        }
        let mut otherwise = NONE;
        if may_miss {
            otherwise = self.here();
            if node != NONE {
                self.program.steps.push(Step::Missing(node));
            }
            after = Some(after.map_or(before, |p| p.join(before)));
        }
        let finish = self.here();
        for jump in jumps {
            if let Some(step) = self.program.steps.get_mut(jump) {
                *step = Step::Jump(finish);
            }
        }
        let first = self.program.cases.len() as u32;
        for ((low, high), branch) in cases {
            let (least, most) = if signed { (i64::MIN.into(), i64::MAX.into()) } else { (0, i128::from(u64::MAX)) };
            let (low, high) = ((*low).max(least), (*high).min(most));
            if let (true, Some(target)) = (low <= high, targets.get(*branch)) {
                let order = |v: i128| if signed { (v as i64 as u64) ^ (1 << 63) } else { v as u64 };
                self.program.cases.push(Case { first: order(low), last: order(high), target: *target });
            }
        }
        let count = self.program.cases.len() as u32 - first;
        if let Some(step) = self.program.steps.get_mut(at) {
            *step = Step::Select { slot, first, count, signed, otherwise };
        }
        self.phase = after.unwrap_or(before);
        if node != NONE {
            self.emit(Step::Close(node));
        }
    }
}

/// What is known of the position behind an event header.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known(Phase);

const SCOPES: [Scope; 3] = [Scope::CommonContext, Scope::SpecificContext, Scope::Payload];

fn flag(set: bool, flag: u8) -> u8 {
    if set { flag } else { 0 }
}

fn held(source: &Source) -> Slot {
    match source {
        Source::Slot(slot) => *slot,
        Source::At(_) => NONE,
    }
}

fn field_clock(kind: &Kind) -> Option<usize> {
    match kind {
        Kind::Bits(Bits { clock, saves, .. }) | Kind::Variable { clock, saves, .. } => {
            clock.filter(|_| !saves.contains(&Role::End.slot()))
        }
        _ => None,
    }
}

/// Integers that lie side by side on whole bytes when they are elements of an array, and their bytes. `whole`: the
/// array begins on a whole byte.
fn side_by_side(element: &Field, whole: bool) -> Option<(&Bits, u8)> {
    match &element.kind {
        Kind::Bits(bits) if bits.saves.is_empty() && bits.clock.is_none() && !bits.reversed => {
            let size = u64::from(bits.size);
            let plain = matches!(size, 8 | 16 | 32 | 64)
                && (whole || element.align.is_multiple_of(8))
                && size % element.align == 0;
            plain.then_some((bits, bits.size / 8))
        }
        _ => None,
    }
}

/// The size of a field that begins aligned, where the metadata alone decides it and nothing in it is needed later.
fn fixed_size(field: &Field) -> Option<u64> {
    match &field.kind {
        Kind::Bits(bits) => (bits.saves.is_empty() && bits.clock.is_none()).then_some(u64::from(bits.size)),
        Kind::Real { size, .. } => Some(u64::from(*size)),
        Kind::SizedText(_, Count::Fixed(n)) | Kind::Blob { count: Count::Fixed(n), .. } => n.checked_mul(8),
        Kind::Struct(members) => members.iter().try_fold(0u64, |at, member| {
            let start = at.checked_next_multiple_of(member.field.align)?;
            start.checked_add(fixed_size(&member.field)?)
        }),
        Kind::Array { count: Count::Fixed(n), element, .. } => {
            let size = fixed_size(element).filter(|size| size % element.align == 0)?;
            size.checked_mul(*n)
        }
        _ => None,
    }
}
