//! Changes of the files that a process has mapped. The names are ids of the batch's table in a batch, of the
//! timeline's table in a timeline.

use crate::base::names::NameId;
use get_size2::GetSize;

/// Size of a mapping of a file's code of which only the begin was recorded.
pub const CODE: u64 = u64::MAX;

/// Something that changes which files a process has mapped.
#[derive(Clone, Debug, PartialEq, Eq, GetSize)]
pub enum ImageChange<N = NameId> {
    /// The process begins again with this executable (as given to exec).
    Exec {
        /// Path as recorded.
        path: N,
    },
    /// Child of a fork: starts with a copy of the parent's images.
    Fork {
        /// Process id of the parent.
        parent_pid: i32,
    },
    /// A new enumeration of all images begins (`lttng_ust_statedump:start`).
    Restart,
    /// A file is mapped (`bin_info`, `dlopen`, `lib:load`).
    Load {
        /// First address.
        base: u64,
        /// Bytes; 0 for the vdso, [`CODE`] where only the begin of a file's code was recorded.
        size: u64,
        /// Path inside the traced machine.
        path: N,
        /// Addresses in the file are relative to `base`.
        position_independent: bool,
        /// Offset in the file of the mapping, where each part of the file is mapped by an event of its own.
        offset: Option<u64>,
    },
    /// Build id of the file at `base`.
    BuildId {
        /// First address.
        base: u64,
        id: Box<[u8]>,
    },
    /// Separate debug file of the image at `base`.
    DebugLink {
        /// First address.
        base: u64,
        /// File name.
        file: N,
        /// Checksum.
        crc: u32,
    },
    /// The file at `base` is unmapped.
    Unload {
        /// First address.
        base: u64,
    },
}

impl<N> ImageChange<N> {
    /// This change with its names in another table.
    pub fn rename<M>(&self, mut name: impl FnMut(&N) -> M) -> ImageChange<M> {
        match self {
            ImageChange::Exec { path } => ImageChange::Exec { path: name(path) },
            ImageChange::Fork { parent_pid } => ImageChange::Fork { parent_pid: *parent_pid },
            ImageChange::Restart => ImageChange::Restart,
            ImageChange::Load { base, size, path, position_independent, offset } => ImageChange::Load {
                base: *base,
                size: *size,
                path: name(path),
                position_independent: *position_independent,
                offset: *offset,
            },
            ImageChange::BuildId { base, id } => ImageChange::BuildId { base: *base, id: id.clone() },
            ImageChange::DebugLink { base, file, crc } => {
                ImageChange::DebugLink { base: *base, file: name(file), crc: *crc }
            }
            ImageChange::Unload { base } => ImageChange::Unload { base: *base },
        }
    }
}
