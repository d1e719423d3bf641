//! The part of a class that a plan decodes: nothing, everything, or the fields at some paths.

use super::steps::NodeIx;

/// The part of a field that is wanted.
#[derive(Clone)]
pub(super) enum Want<'p> {
    Nothing,
    /// Everything, with nodes.
    All,
    /// The fields at these paths below the field.
    Paths(Vec<WantedPath<'p>>),
}

/// A path to a wanted field, and the position of its value in the record.
#[derive(Clone, Copy)]
pub(super) struct WantedPath<'p> {
    /// Names below the field at hand, with dots between them; `None`: that field itself.
    pub(super) path: Option<&'p str>,
    pub(super) value: NodeIx,
}

impl<'p> Want<'p> {
    /// The fields at some paths.
    pub(super) fn paths(paths: Vec<WantedPath<'p>>) -> Want<'p> {
        if paths.is_empty() { Want::Nothing } else { Want::Paths(paths) }
    }

    /// The part of a member that is wanted.
    pub(super) fn member(&self, name: &str) -> Want<'p> {
        match self {
            Want::Paths(paths) => Want::paths(paths.iter().filter_map(|wanted| wanted.below(name)).collect()),
            other => other.clone(),
        }
    }

    /// The value that the field itself fills.
    pub(super) fn value(&self) -> Option<NodeIx> {
        match self {
            Want::Paths(paths) => paths.iter().find(|wanted| wanted.path.is_none()).map(|wanted| wanted.value),
            _ => None,
        }
    }
}

impl<'p> WantedPath<'p> {
    fn below(&self, name: &str) -> Option<WantedPath<'p>> {
        let path = self.path?;
        let (first, path) = path.split_once('.').map_or((path, None), |(first, below)| (first, Some(below)));
        (first == name).then_some(WantedPath { path, value: self.value })
    }
}
