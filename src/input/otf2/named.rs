//! Global definitions that give names to the objects of event records: metrics, parameters, windows of memory, handles
//! of files.
//!
//! OTF2-FACTS section 5. Metric classes and their instances share their ids. Cost: linear in the file.

use super::bytes::Bytes;
use foldhash::HashMap;

const METRIC_MEMBER: u8 = 19;
const METRIC_CLASS: u8 = 20;
const METRIC_INSTANCE: u8 = 21;
const PARAMETER: u8 = 23;
const RMA_WIN: u8 = 24;
const IO_HANDLE: u8 = 40;

/// How the values of a metric hang together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricMode {
    /// Counted since the beginning.
    Accumulated,
    /// Absolute value.
    Absolute,
    /// Since the value before.
    Relative,
}

/// A metric as defined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetricMember {
    /// Its name.
    pub name: String,
    /// Meaning of its values.
    pub mode: MetricMode,
}

/// Names by id.
#[derive(Clone, Debug, Default)]
pub struct NameTables {
    /// All metrics.
    pub members: Vec<MetricMember>,
    /// By metric class or instance: positions of its members, in the order of its values.
    classes: HashMap<u32, Vec<u32>>,
    parameters: HashMap<u32, String>,
    /// Name and communicator.
    windows: HashMap<u32, (String, u32)>,
    handles: HashMap<u32, String>,
    texts: HashMap<u32, String>,
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

    /// The name of a window and its communicator.
    pub fn window(&self, id: u32) -> Option<(&str, u32)> {
        self.windows.get(&id).map(|(name, communicator)| (name.as_str(), *communicator))
    }

    /// A handle of a file; empty where it has no name.
    pub fn handle(&self, id: u32) -> &str {
        self.handles.get(&id).map_or("", |name| name)
    }

    /// A text.
    pub fn text(&self, id: u32) -> &str {
        self.texts.get(&id).map_or("", |text| text)
    }
}

/// The same as written.
#[derive(Default)]
pub(super) struct Written {
    /// Name and mode, by id.
    members: Vec<(u32, u32, u8)>,
    classes: Vec<(u32, Vec<u32>)>,
    /// Instance, class.
    instances: Vec<(u32, u32)>,
    parameters: Vec<(u32, u32)>,
    windows: Vec<(u32, u32, u32)>,
    handles: Vec<(u32, u32)>,
}

impl Written {
    /// One definition of any kind.
    pub(super) fn record(&mut self, kind: u8, p: &mut Bytes<'_>) -> Option<()> {
        match kind {
            METRIC_MEMBER => {
                let (id, name) = (p.packed_u32()?, p.packed_u32()?);
                p.packed_u32()?;
                p.u8()?;
                self.members.push((id, name, p.u8()?));
            }
            METRIC_CLASS => {
                let (id, count) = (p.packed_u32()?, p.u8()?);
                let members = (0..count).map(|_| p.packed_u32()).collect::<Option<Vec<u32>>>()?;
                self.classes.push((id, members));
            }
            METRIC_INSTANCE => self.instances.push((p.packed_u32()?, p.packed_u32()?)),
            PARAMETER => self.parameters.push((p.packed_u32()?, p.packed_u32()?)),
            RMA_WIN => self.windows.push((p.packed_u32()?, p.packed_u32()?, p.packed_u32()?)),
            IO_HANDLE => self.handles.push((p.packed_u32()?, p.packed_u32()?)),
            _ => {}
        }
        Some(())
    }

    /// With the texts that ids stand for.
    pub(super) fn resolve(self, texts: HashMap<u32, String>) -> NameTables {
        let text = |id: &u32| texts.get(id).cloned().unwrap_or_default();
        // OTF2_MetricMode: how values hang together in the lower half, when they hold in the upper.
        let mode = |mode: u8| match mode & 15 {
            0 => MetricMode::Accumulated,
            2 => MetricMode::Relative,
            _ => MetricMode::Absolute,
        };
        let members =
            self.members.iter().map(|(_, name, m)| MetricMember { name: text(name), mode: mode(*m) }).collect();
        let position: HashMap<u32, u32> = self.members.iter().zip(0..).map(|((id, ..), at)| (*id, at)).collect();
        let of_class = |members: &[u32]| members.iter().filter_map(|m| position.get(m).copied()).collect::<Vec<u32>>();
        let mut classes: HashMap<u32, Vec<u32>> = self.classes.iter().map(|(id, m)| (*id, of_class(m))).collect();
        for (instance, class) in &self.instances {
            if let Some(members) = classes.get(class).cloned() {
                classes.insert(*instance, members);
            }
        }
        NameTables {
            members,
            classes,
            parameters: self.parameters.iter().map(|(id, name)| (*id, text(name))).collect(),
            windows: self.windows.iter().map(|(id, name, c)| (*id, (text(name), *c))).collect(),
            handles: self.handles.iter().map(|(id, name)| (*id, text(name))).collect(),
            texts,
        }
    }
}
