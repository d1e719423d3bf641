//! Global definitions that give names to the objects of event records: metrics, parameters, windows of memory, handles
//! of files.
//!
//! OTF2-FACTS.md section 5. Metric classes and their instances share their ids. Cost: linear in the file.

use super::bytes::Bytes;
use super::records::MetricValue;
use foldhash::HashMap;

const ATTRIBUTE: u8 = 11;
const METRIC_MEMBER: u8 = 19;
const METRIC_CLASS: u8 = 20;
const METRIC_INSTANCE: u8 = 21;
const PARAMETER: u8 = 23;
const RMA_WIN: u8 = 24;
const IO_HANDLE: u8 = 40;

/// The meaning of a metric's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricMode {
    /// Counted since the beginning.
    Accumulated,
    /// Absolute value.
    Absolute,
    /// Since the previous value.
    Relative,
}

impl MetricMode {
    /// The mode with a number of `OTF2_MetricMode`: its lower half is the meaning of the values, its upper half the
    /// span of time for which they are valid.
    fn numbered(mode: u8) -> MetricMode {
        match mode & 15 {
            0 => MetricMode::Accumulated,
            2 => MetricMode::Relative,
            _ => MetricMode::Absolute,
        }
    }
}

/// A metric as defined.
#[derive(Clone, Debug, PartialEq)]
pub struct MetricMember {
    pub name: String,
    /// Meaning of its values.
    pub mode: MetricMode,
    /// Unit of its values times `factor`; empty where not said.
    pub unit: String,
    /// A power of ten or two.
    pub factor: f64,
}

impl MetricMember {
    /// A recorded value in whole units, rounded. Parts of a unit (a factor below 1) are kept as they were recorded.
    pub fn whole(&self, value: MetricValue) -> i64 {
        match value {
            MetricValue::Integer(value) if self.factor > 1.0 => value.saturating_mul(self.factor as i64),
            MetricValue::Integer(value) => value,
            MetricValue::Double(value) => (value * self.factor.max(1.0)).round() as i64,
        }
    }

    /// Name, value and unit: `power 12.5 W`.
    pub fn shown(&self, value: MetricValue) -> String {
        let value = match value {
            MetricValue::Integer(value) if self.factor == 1.0 => value.to_string(),
            MetricValue::Integer(value) => (value as f64 * self.factor).to_string(),
            MetricValue::Double(value) => (value * self.factor).to_string(),
        };
        let unit = if self.unit == "#" { "" } else { &self.unit };
        format!("{} {value} {unit}", self.name).trim_end().to_owned()
    }
}

/// A window of memory as defined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WindowDefinition {
    pub name: String,
    /// Global id of its communicator.
    pub communicator: u32,
}

/// Names by id.
#[derive(Clone, Debug, Default)]
pub struct NameTables {
    pub members: Vec<MetricMember>,
    /// By metric class or instance: positions of its members, in the order of its values.
    classes: HashMap<u32, Vec<u32>>,
    parameters: HashMap<u32, String>,
    windows: HashMap<u32, WindowDefinition>,
    handles: HashMap<u32, String>,
    texts: HashMap<u32, String>,
    attributes: HashMap<u32, String>,
}

impl NameTables {
    /// The members of a metric class or instance.
    pub fn metric(&self, id: u32) -> &[u32] {
        self.classes.get(&id).map_or(&[], Vec::as_slice)
    }

    /// A parameter; empty where it has no name.
    pub fn parameter(&self, id: u32) -> &str {
        self.parameters.get(&id).map_or("", |name| name)
    }

    /// A window of memory.
    pub fn window(&self, id: u32) -> Option<&WindowDefinition> {
        self.windows.get(&id)
    }

    /// True where operations on files were recorded.
    pub fn has_handles(&self) -> bool {
        !self.handles.is_empty()
    }

    /// A handle of a file; empty where it has no name.
    pub fn handle(&self, id: u32) -> &str {
        self.handles.get(&id).map_or("", |name| name)
    }

    /// An attribute of events; empty where it has no name.
    pub fn attribute(&self, id: u32) -> &str {
        self.attributes.get(&id).map_or("", |name| name)
    }

    /// The attributes of regions that are tasks of a graph; `None` if the archive has no such regions.
    pub fn task_attributes(&self) -> Option<TaskAttributes> {
        let named = |name: &str| self.attributes.iter().filter(|(_, n)| n.as_str() == name).map(|(id, _)| *id).min();
        Some(TaskAttributes { task: named("GUID")?, maker: named("Parent GUID") })
    }

    pub fn text(&self, id: u32) -> &str {
        self.texts.get(&id).map_or("", |text| text)
    }
}

/// Attributes of regions that are tasks of a graph, by global id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskAttributes {
    /// Holds the task's own number.
    pub task: u32,
    /// Holds the number of the task that made it.
    pub maker: Option<u32>,
}

/// The definitions of named objects, as written.
#[derive(Default)]
pub(super) struct WrittenNames {
    members: Vec<WrittenMember>,
    classes: Vec<WrittenClass>,
    instances: Vec<WrittenInstance>,
    parameters: Vec<WrittenName>,
    windows: Vec<WrittenWindow>,
    handles: Vec<WrittenName>,
    attributes: Vec<WrittenName>,
}

/// A metric as written; names are ids of strings here and below.
struct WrittenMember {
    id: u32,
    name: u32,
    mode: u8,
    scale: Option<WrittenScale>,
}

/// The unit of a metric as written, and what its values count of it.
struct WrittenScale {
    /// OTF2_Base: 0 binary, 1 decimal.
    base: u8,
    exponent: i64,
    unit: u32,
}

impl WrittenScale {
    fn read(p: &mut Bytes<'_>) -> Option<WrittenScale> {
        // The type of the values precedes it.
        p.u8()?;
        Some(WrittenScale { base: p.u8()?, exponent: p.packed_u64()? as i64, unit: p.packed_u32()? })
    }

    fn factor(&self) -> f64 {
        let base: f64 = if self.base == 0 { 2.0 } else { 10.0 };
        base.powi(self.exponent.clamp(-63, 63) as i32)
    }
}

/// A metric class as written.
struct WrittenClass {
    id: u32,
    /// Ids of its metrics.
    members: Vec<u32>,
}

/// An instance of a metric class as written.
struct WrittenInstance {
    id: u32,
    class: u32,
}

/// An object that has a name only, as written.
struct WrittenName {
    id: u32,
    name: u32,
}

/// A window of memory as written.
struct WrittenWindow {
    id: u32,
    name: u32,
    communicator: u32,
}

impl WrittenName {
    fn read(p: &mut Bytes<'_>) -> Option<WrittenName> {
        Some(WrittenName { id: p.packed_u32()?, name: p.packed_u32()? })
    }
}

impl WrittenNames {
    /// One definition of any kind.
    pub(super) fn record(&mut self, kind: u8, p: &mut Bytes<'_>) -> Option<()> {
        match kind {
            METRIC_MEMBER => {
                let (id, name) = (p.packed_u32()?, p.packed_u32()?);
                p.packed_u32()?;
                p.u8()?;
                let mode = p.u8()?;
                self.members.push(WrittenMember { id, name, mode, scale: WrittenScale::read(p) });
            }
            ATTRIBUTE => self.attributes.push(WrittenName::read(p)?),
            METRIC_CLASS => {
                let (id, count) = (p.packed_u32()?, p.u8()?);
                let members = (0..count).map(|_| p.packed_u32()).collect::<Option<Vec<u32>>>()?;
                self.classes.push(WrittenClass { id, members });
            }
            METRIC_INSTANCE => {
                self.instances.push(WrittenInstance { id: p.packed_u32()?, class: p.packed_u32()? });
            }
            PARAMETER => self.parameters.push(WrittenName::read(p)?),
            RMA_WIN => {
                let (id, name) = (p.packed_u32()?, p.packed_u32()?);
                self.windows.push(WrittenWindow { id, name, communicator: p.packed_u32()? });
            }
            IO_HANDLE => self.handles.push(WrittenName::read(p)?),
            _ => {}
        }
        Some(())
    }

    /// Replaces ids of strings by their texts.
    pub(super) fn resolve(self, texts: HashMap<u32, String>) -> NameTables {
        let text = |id: u32| texts.get(&id).cloned().unwrap_or_default();
        let named = |names: &[WrittenName]| names.iter().map(|object| (object.id, text(object.name))).collect();
        let member = |m: &WrittenMember| MetricMember {
            name: text(m.name),
            mode: MetricMode::numbered(m.mode),
            unit: m.scale.as_ref().map_or_else(String::new, |scale| text(scale.unit)),
            factor: m.scale.as_ref().map_or(1.0, WrittenScale::factor),
        };
        let members = self.members.iter().map(member).collect();
        let position: HashMap<u32, u32> = self.members.iter().zip(0..).map(|(member, at)| (member.id, at)).collect();
        let positions = |class: &WrittenClass| class.members.iter().filter_map(|m| position.get(m).copied()).collect();
        let mut classes: HashMap<u32, Vec<u32>> =
            self.classes.iter().map(|class| (class.id, positions(class))).collect();
        for instance in &self.instances {
            if let Some(members) = classes.get(&instance.class).cloned() {
                classes.insert(instance.id, members);
            }
        }
        let window = |w: &WrittenWindow| (w.id, WindowDefinition { name: text(w.name), communicator: w.communicator });
        NameTables {
            members,
            classes,
            parameters: named(&self.parameters),
            windows: self.windows.iter().map(window).collect(),
            handles: named(&self.handles),
            attributes: named(&self.attributes),
            texts,
        }
    }
}
