//! Binding lengths and selectors to the fields that hold them, for both versions of the format.
//!
//! Each reference becomes a slot: the target fields save into it, the referring field reads it. A first walk over each
//! event's six structures (packet header to payload) finds the references, a second binds them, so that no walk changes
//! the structures that it reads. A reference that leads into a variant has one target in each option that has the rest
//! of the path. Equal sets of targets share a slot.
//!
//! CTF 1.8.3, section 7.3.2: relative references are searched for in the structures around the referring field,
//! innermost first, among the members before it. CTF 2.0, section 5.3.4 (field locations): the same walk with
//! explicit steps up.

use super::error::MetadataError;
use super::schema::{Count, EventClass, Field, Kind, Location, Member, Role, Root, Schema, Slot, Source, StreamClass};
use super::slots::{Binding, ORDER, Roots, Slots, TargetPath, Way, apply};
use foldhash::{HashMap, HashMapExt};
use std::cell::RefCell;
use std::sync::Arc;

/// Binds all references of a schema. Event classes that were reused from another schema are bound already, to slots
/// below `schema.slots`.
pub(super) fn bind(mut schema: Schema) -> Result<Schema, MetadataError> {
    let mut slots = Slots { next: Role::COUNT, by_targets: HashMap::new(), of_event: HashMap::new() };
    let taken = schema.slots as Slot;
    let Schema { packet_header, streams, .. } = &mut schema;
    let header = &mut packet_header.as_mut();
    bind_roots(
        &mut Roots { all: [header.as_deref_mut(), None, None, None, None, None], owners: [0; 6] },
        &mut slots,
        &[0],
    )?;
    // Streams before events: their slots do not depend on which events there are.
    for (s, stream) in streams.iter_mut().enumerate() {
        bind_roots(&mut roots_of(header, stream, s + 1).0, &mut slots, &[1, 2, 3])?;
    }
    slots.next = slots.next.max(taken);
    for (s, stream) in streams.iter_mut().enumerate() {
        let s = s + 1;
        let (mut roots, events) = roots_of(header, stream, s);
        for (e, event) in events.iter_mut().enumerate() {
            let Some(event) = Arc::get_mut(event) else { continue };
            let [header, context, event_header, common, _, _] = &mut roots.all;
            let all = [
                header.as_deref_mut(),
                context.as_deref_mut(),
                event_header.as_deref_mut(),
                common.as_deref_mut(),
                event.specific_context.as_mut(),
                event.payload.as_mut(),
            ];
            slots.of_event = HashMap::new();
            let mut roots = Roots { all, owners: [0, s, s, s, e, e] };
            event.alone = bind_roots(&mut roots, &mut slots, &[4, 5]).map_err(|t| {
                let name = event.name.as_deref().unwrap_or("");
                t.within_here(format!("in event `{name}`"))
            })?;
        }
    }
    schema.slots = slots.next as usize;
    Ok(schema)
}

/// The structures of a stream class, and its events.
fn roots_of<'s>(
    header: &'s mut Option<&mut Field>,
    stream: &'s mut StreamClass,
    owner: usize,
) -> (Roots<'s>, &'s mut [Arc<EventClass>]) {
    let StreamClass { packet_context, event_header, common_context, events, .. } = stream;
    let (context, event_header, common) = (packet_context.as_mut(), event_header.as_mut(), common_context.as_mut());
    let all = [header.as_deref_mut(), context, event_header, common, None, None];
    (Roots { all, owners: [0, owner, owner, owner, 0, 0] }, events)
}

/// True where all targets are in the same structures.
fn bind_roots(roots: &mut Roots<'_>, slots: &mut Slots, which: &[usize]) -> Result<bool, MetadataError> {
    let mut alone = true;
    for &place in which {
        let mut bindings = Vec::new();
        let (Some(root), Some(Some(field))) = (ORDER.get(place), roots.all.get(place)) else { continue };
        let mut way = Vec::new();
        let search = Search { roots, root: *root, top: field, names: Names::default() };
        search.walk(field, &mut way, &mut bindings)?;
        for binding in bindings {
            let within = |target: &TargetPath| which.iter().any(|i| ORDER.get(*i) == Some(&target.root));
            alone &= binding.targets.iter().all(within);
            apply(roots, slots, &binding)?;
        }
    }
    Ok(alone)
}

/// Looks for references under one root.
struct Search<'r, 's> {
    roots: &'r Roots<'s>,
    root: Root,
    top: &'r Field,
    names: Names<'r>,
}

/// The number of members up to which names are compared one by one.
const FEW: usize = 16;

/// Positions of members by name, for structures with many members; filled on first use.
#[derive(Default)]
struct Names<'r>(RefCell<HashMap<*const Member, HashMap<&'r str, usize>>>);

impl<'r> Names<'r> {
    fn position(&self, members: &'r [Member], name: &str) -> Option<usize> {
        if members.len() < FEW {
            return members.iter().position(|m| *name == *m.written);
        }
        let mut known = self.0.borrow_mut();
        let places = known
            .entry(members.as_ptr())
            .or_insert_with(|| members.iter().enumerate().rev().map(|(i, m)| (&*m.written, i)).collect());
        places.get(name).copied()
    }
}

impl<'r> Search<'r, '_> {
    fn walk(&self, field: &Field, way: &mut Way, found: &mut Vec<Binding>) -> Result<(), MetadataError> {
        let mut reference = |source: &Source, way: &Way| {
            if let Source::At(location) = source {
                let targets = self.targets(location, way)?;
                found.push(Binding { root: self.root, way: way.clone(), targets });
            }
            Ok::<(), MetadataError>(())
        };
        match &field.kind {
            Kind::SizedText(_, Count::Recorded(source)) | Kind::Blob { count: Count::Recorded(source), .. } => {
                reference(source, way)
            }
            Kind::Array { count, element, .. } => {
                if let Count::Recorded(source) = count {
                    reference(source, way)?;
                }
                way.push(0);
                self.walk(element, way, found)?;
                way.pop();
                Ok(())
            }
            Kind::Struct(members) => {
                for (i, member) in members.iter().enumerate() {
                    way.push(i as u32);
                    self.walk(&member.field, way, found)?;
                    way.pop();
                }
                Ok(())
            }
            Kind::Variant { by, options, .. } => {
                reference(by, way)?;
                for (i, option) in options.iter().enumerate() {
                    way.push(i as u32);
                    self.walk(&option.field, way, found)?;
                    way.pop();
                }
                Ok(())
            }
            Kind::Optional { by, field, .. } => {
                reference(by, way)?;
                way.push(0);
                self.walk(field, way, found)?;
                way.pop();
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// The fields to which a location in the field at `way` refers.
    fn targets(&self, location: &Location, way: &Way) -> Result<Vec<TargetPath>, MetadataError> {
        let mut targets = Vec::new();
        match location.scope {
            Some(root) => {
                let field = ORDER.iter().position(|r| *r == root).and_then(|i| self.roots.all.get(i));
                if root <= self.root
                    && let Some(Some(field)) = field
                {
                    let before = if root == self.root { Some(way.as_slice()) } else { None };
                    if !follow(field, &location.path, &mut Vec::new(), before, &self.names, &mut |way| {
                        targets.push(TargetPath { root, way })
                    }) {
                        targets.clear();
                    }
                }
            }
            None => {
                let steps_up = location.path.iter().take_while(|step| step.is_none()).count();
                let path = location.path.get(steps_up..).unwrap_or(&[]);
                // The structures around the field, innermost first.
                let mut around = Vec::new();
                let mut field = self.top;
                for depth in 0..=way.len() {
                    if matches!(field.kind, Kind::Struct(_)) && depth < way.len() {
                        around.push((depth, field));
                    }
                    match way.get(depth).and_then(|i| child(field, *i)) {
                        Some(next) => field = next,
                        None => break,
                    }
                }
                for (depth, structure) in around.into_iter().rev().skip(steps_up) {
                    let mut prefix = way.get(..depth).unwrap_or(&[]).to_vec();
                    if follow(structure, path, &mut prefix, Some(way), &self.names, &mut |way| {
                        targets.push(TargetPath { root: self.root, way })
                    }) {
                        break;
                    }
                    targets.clear();
                    if !location.climbs {
                        break;
                    }
                }
            }
        }
        if targets.is_empty() {
            let path: Vec<&str> = location.path.iter().map(|step| step.as_deref().unwrap_or("(up)")).collect();
            let what = format!("`{}` names no integer that is read before this", path.join("."));
            return Err(MetadataError::at(location.at, what));
        }
        Ok(targets)
    }
}

fn child(field: &Field, i: u32) -> Option<&Field> {
    let i = i as usize;
    match &field.kind {
        Kind::Struct(members) => members.get(i).map(|m| &m.field),
        Kind::Variant { options, .. } => options.get(i).map(|o| &o.field),
        Kind::Array { element, .. } => Some(element),
        Kind::Optional { field, .. } => Some(field),
        _ => None,
    }
}

/// Walks down `path` from `field` at `way`, and calls `reach` with the way to each integer at its end that is read
/// before the field at `before`. True where the path leads to an integer for every selection: in each option of a
/// variant. An array holds no single value, so it is entered only on the way to the referring field.
fn follow<'r>(
    field: &'r Field,
    path: &[Option<Box<str>>],
    way: &mut Way,
    before: Option<&[u32]>,
    names: &Names<'r>,
    reach: &mut impl FnMut(Way),
) -> bool {
    // The position of the child that contains the referring field, where this field does.
    let toward = before.filter(|b| b.starts_with(way)).map(|b| b.get(way.len()).copied());
    let mut enter = |i: usize, field: &'r Field, rest: &[Option<Box<str>>]| {
        way.push(i as u32);
        let reached = follow(field, rest, way, before, names, reach);
        way.pop();
        reached
    };
    match &field.kind {
        Kind::Struct(members) => {
            let Some((Some(name), rest)) = path.split_first() else { return false };
            let limit = toward.flatten().map_or(members.len(), |i| i as usize + 1);
            let found = names.position(members, name).filter(|i| *i < limit);
            found.and_then(|i| Some((i, members.get(i)?))).is_some_and(|(i, m)| enter(i, &m.field, rest))
        }
        Kind::Variant { options, .. } => match toward.flatten() {
            Some(i) => options.get(i as usize).is_some_and(|o| enter(i as usize, &o.field, path)),
            None => !options.is_empty() && options.iter().enumerate().all(|(i, o)| enter(i, &o.field, path)),
        },
        Kind::Optional { field, .. } => enter(0, field, path),
        Kind::Array { element, .. } if toward.is_some() => enter(0, element, path),
        Kind::Bits(_) | Kind::Variable { .. } if path.is_empty() && toward.is_none() => {
            reach(way.clone());
            true
        }
        _ => false,
    }
}
