//! Slots for references: each set of target fields gets one slot, which the targets save into and the referring field
//! reads.

use super::error::MetadataError;
use super::schema::{Bits, Choice, Count, Field, Kind, Label, Location, Root, Show, Slot, Source, ValueRange};
use foldhash::HashMap;
use std::sync::Arc;

/// A path from a root to a field: positions of members and options; elements of arrays count as position 0.
pub(super) type Way = Vec<u32>;

/// The structures that a reference may lead into, in reading order.
pub(super) struct Roots<'s> {
    pub(super) all: [Option<&'s mut Field>; 6],
    /// Identifies the structure under each root: stream and event classes have structures of their own.
    pub(super) owners: [usize; 6],
}

/// The slots assigned so far.
pub(super) struct Slots {
    pub(super) next: Slot,
    pub(super) by_targets: HashMap<Targets, Slot>,
    /// Slots of one event, with targets in its own structures.
    pub(super) of_event: HashMap<Targets, Slot>,
}

/// The fields that may hold the value of one reference.
pub(super) type Targets = Vec<Target>;

/// A field that may hold the value of a reference.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Target {
    pub(super) root: Root,
    /// See [`Roots::owners`].
    pub(super) owner: usize,
    pub(super) way: Way,
}

/// A reference, and the fields that it leads to.
pub(super) struct Binding {
    pub(super) root: Root,
    pub(super) way: Way,
    pub(super) targets: Vec<TargetPath>,
}

/// The path to a field that may hold the value of a reference.
#[derive(Clone, Debug)]
pub(super) struct TargetPath {
    pub(super) root: Root,
    pub(super) way: Way,
}

pub(super) const ORDER: [Root; 6] = [
    Root::PacketHeader,
    Root::PacketContext,
    Root::EventHeader,
    Root::CommonContext,
    Root::SpecificContext,
    Root::Payload,
];

fn child_mut(field: &mut Field, i: u32) -> Option<&mut Field> {
    let i = i as usize;
    match &mut field.kind {
        Kind::Struct(members) => members.get_mut(i).map(|m| &mut m.field),
        Kind::Variant { options, .. } => options.get_mut(i).map(|o| &mut o.field),
        Kind::Array { element, .. } => Some(element),
        Kind::Optional { field, .. } => Some(field),
        _ => None,
    }
}

/// Binds a reference.
pub(super) fn apply(roots: &mut Roots<'_>, slots: &mut Slots, binding: &Binding) -> Result<(), MetadataError> {
    let place = |root: Root| ORDER.iter().position(|r| *r == root).unwrap_or(0);
    let key: Targets = binding
        .targets
        .iter()
        .map(|TargetPath { root, way }| {
            let owner = roots.owners.get(place(*root)).copied().unwrap_or(0);
            Target { root: *root, owner, way: way.clone() }
        })
        .collect();
    let fresh = slots.next;
    let known = match key.iter().any(|target| target.root >= Root::SpecificContext) {
        true => &mut slots.of_event,
        false => &mut slots.by_targets,
    };
    let slot = *known.entry(key).or_insert(fresh);
    let mut signed: Option<bool> = None;
    let mut kinds = Vec::with_capacity(binding.targets.len());
    let mut labels = Labels::Unknown;
    for TargetPath { root, way } in &binding.targets {
        let Some(target) = roots.all.get_mut(place(*root)).and_then(|f| f.as_deref_mut()) else { continue };
        let Some(field) = way.iter().try_fold(target, |field, i| child_mut(field, *i)) else { continue };
        let (saves, is_signed, show) = match &mut field.kind {
            Kind::Bits(Bits { saves, signed, show, .. }) | Kind::Variable { saves, signed, show, .. } => {
                (saves, *signed, show)
            }
            _ => continue,
        };
        if slot == fresh {
            saves.push(slot);
        }
        kinds.push(match show {
            Show::Boolean => TargetKind::Boolean,
            Show::Flags(_) => TargetKind::Bits,
            Show::Number | Show::Labels(_) => TargetKind::Integer,
        });
        if *signed.get_or_insert(is_signed) != is_signed {
            kinds.push(TargetKind::Bits);
        }
        labels = labels.and(if let Show::Labels(found) = show { Some(found.clone()) } else { None });
    }
    if slot == fresh {
        slots.next = fresh.checked_add(1).ok_or_else(|| MetadataError::at(0, "too many lengths and selectors"))?;
    }
    let Some(top) = roots.all.get_mut(place(binding.root)).and_then(|f| f.as_deref_mut()) else { return Ok(()) };
    let Some(field) = binding.way.iter().try_fold(top, |field, i| child_mut(field, *i)) else { return Ok(()) };
    set_source(field, slot, signed.unwrap_or(false), &kinds, &labels)
}

/// The labels of all fields that may hold a selector.
enum Labels {
    /// No field was looked at.
    Unknown,
    /// All fields have these labels, or no field has any.
    Same(Option<Arc<[Label]>>),
    /// The labels differ, so the same value may mean different options.
    Differ,
}

impl Labels {
    /// These labels and those of one more field.
    fn and(self, found: Option<Arc<[Label]>>) -> Labels {
        match self {
            Labels::Unknown => Labels::Same(found),
            Labels::Same(known) if known == found => Labels::Same(known),
            Labels::Same(_) | Labels::Differ => Labels::Differ,
        }
    }
}

/// The kind of the field that holds a length or selector.
#[derive(Clone, Copy, PartialEq)]
enum TargetKind {
    Integer,
    Boolean,
    /// A set of bits, or an integer that is signed in one place and unsigned in another.
    Bits,
}

/// Puts the slot into the referring field, after checking that fields of these kinds can hold its length or selector.
fn set_source(
    field: &mut Field,
    slot: Slot,
    is_signed: bool,
    kinds: &[TargetKind],
    labels: &Labels,
) -> Result<(), MetadataError> {
    let integers = kinds.iter().all(|k| *k == TargetKind::Integer);
    let refuse = |source: &Source, fits: bool, what: &str| match source {
        Source::At(location) if !fits => Err(MetadataError::at(location.at, what)),
        _ => Ok(()),
    };
    let unsigned_only =
        |source: &Source| refuse(source, integers && !is_signed, "a length must be held by unsigned integers");
    match &mut field.kind {
        Kind::SizedText(_, Count::Recorded(source))
        | Kind::Blob { count: Count::Recorded(source), .. }
        | Kind::Array { count: Count::Recorded(source), .. } => {
            unsigned_only(source)?;
            *source = Source::Slot(slot);
        }
        Kind::Variant { by, signed, options } => {
            refuse(by, integers, "a selector must be held by integers that are all signed or all unsigned")?;
            if let Source::At(location) = by {
                select_by_labels(options, labels, location)?;
            }
            (*by, *signed) = (Source::Slot(slot), is_signed);
        }
        Kind::Optional { by, signed, ranges, .. } => {
            let booleans = kinds.iter().all(|k| *k == TargetKind::Boolean);
            let fits = if ranges.is_some() { integers } else { booleans };
            refuse(by, fits, "the selector of an optional is a boolean, or an integer if there are ranges")?;
            (*by, *signed) = (Source::Slot(slot), is_signed);
        }
        _ => {}
    }
    Ok(())
}

/// CTF 1.8: an option is selected by the values of the label that has its name. Options that have ranges keep them.
fn select_by_labels(options: &mut [Choice], labels: &Labels, location: &Location) -> Result<(), MetadataError> {
    if options.iter().all(|o| !o.escaped) {
        return Ok(());
    }
    let labels = match labels {
        Labels::Same(Some(labels)) => labels,
        Labels::Same(None) | Labels::Unknown => {
            return Err(MetadataError::at(location.at, "the selector of a variant must be an enumeration"));
        }
        Labels::Differ => {
            let what = "the selector is in options of a variant that have different enumerations";
            return Err(MetadataError::at(location.at, what));
        }
    };
    let places: HashMap<&str, usize> = labels.iter().enumerate().rev().map(|(i, l)| (&*l.name, i)).collect();
    for option in options {
        let by_name = |name: &str| places.get(name).and_then(|i| labels.get(*i)).map(|l| l.ranges.clone());
        // LTTng writes `_name` for an option whose label it left as `name`.
        let ranges: Option<Vec<ValueRange>> = by_name(&option.written).or_else(|| by_name(option.name()));
        option.ranges = ranges.unwrap_or_default();
    }
    Ok(())
}
