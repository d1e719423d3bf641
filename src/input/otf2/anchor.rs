//! Finds and reads the anchor file `NAME.otf2`: versions, chunk sizes, compression.
//!
//! OTF2-FACTS section 4. Read whole (a few hundred bytes).

use super::bytes::Bytes;
use crate::base::mapped::read_small;
use crate::base::text::copied;
use crate::input::error::FormatError;
use std::path::{Path, PathBuf};
use std::{fmt, io};

/// A larger file is not an anchor.
const LARGEST_ANCHOR: u64 = 1 << 20;
/// Compression byte of archives that are not compressed.
const UNCOMPRESSED: u8 = 1;
/// Substrate byte of archives that are plain files.
const POSIX: u8 = 1;

/// The contents of the anchor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Anchor {
    /// Version of OTF2 that wrote it.
    pub version: ArchiveVersion,
    /// Bytes of each event chunk but the last.
    pub event_chunk: u64,
    /// Bytes of each definition chunk but the last.
    pub definition_chunk: u64,
    /// Number of locations, as declared.
    pub locations: u64,
    /// Machine name; often empty.
    pub machine: String,
    /// The writing program; often empty.
    pub creator: String,
    /// Free text; often empty.
    pub description: String,
    /// Names and values.
    pub properties: Vec<(String, String)>,
    /// Identifies the trace; absent in old formats.
    pub trace_id: Option<u64>,
}

/// The anchor file at `path`: the file itself, or the only `*.otf2` in the folder.
pub fn find(path: &Path) -> Option<PathBuf> {
    let is_anchor = |p: &Path| p.extension().is_some_and(|e| e == "otf2") && p.is_file();
    if is_anchor(path) {
        return Some(path.to_owned());
    }
    let mut found = std::fs::read_dir(path).ok()?.filter_map(Result::ok).map(|e| e.path()).filter(|p| is_anchor(p));
    let first = found.next()?;
    found.next().is_none().then_some(first)
}

/// A version of OTF2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArchiveVersion {
    /// Incompatible formats differ in it.
    pub major: u8,
    /// Compatible extensions differ in it.
    pub minor: u8,
    /// Corrections differ in it.
    pub bugfix: u8,
}

impl fmt::Display for ArchiveVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.bugfix)
    }
}

/// The reason why an archive cannot be read, and its remedy.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// The path leads to no anchor, or to several.
    #[error("no OTF2 anchor here; name the file NAME.otf2, or a folder with one such file")]
    NoAnchor,
    /// The anchor cannot be read.
    #[error("{0}")]
    Anchor(io::Error),
    /// The file is too large for an anchor.
    #[error("not an OTF2 anchor file: it is larger than 1 MiB")]
    LargeAnchor,
    /// The file does not begin like an anchor.
    #[error("not an OTF2 anchor file: it does not begin with OTF2's signature")]
    NotAnAnchor,
    /// The anchor ends early.
    #[error("the anchor file is cut off; copy the whole archive again")]
    CutAnchor,
    /// The archive is in one SION file.
    #[error("the archive is in one SION file; record it with the POSIX substrate")]
    Sion,
    /// The archive is compressed.
    #[error("the archive is compressed with zlib; record it without compression")]
    Compressed,
    /// The global definitions cannot be read.
    #[error("{0}; the global definitions are needed: copy the whole archive again")]
    Definitions(io::Error),
    /// The global definitions have no location.
    #[error("it defines no location; copy the whole archive again")]
    NoLocation,
}

impl FormatError for ArchiveError {}

/// Read and check an anchor file.
pub(super) fn read(path: &Path) -> Result<Anchor, ArchiveError> {
    let data = read_small(path, LARGEST_ANCHOR).map_err(|e| match e.kind() {
        io::ErrorKind::FileTooLarge => ArchiveError::LargeAnchor,
        _ => ArchiveError::Anchor(e),
    })?;
    let mut bytes =
        Bytes::after_mark(&data).filter(|b| b.clone().string() == Some(b"OTF2")).ok_or(ArchiveError::NotAnAnchor)?;
    let AnchorFile { anchor, substrate, compression } = parse(&mut bytes).ok_or(ArchiveError::CutAnchor)?;
    if substrate != POSIX {
        return Err(ArchiveError::Sion);
    }
    if compression != UNCOMPRESSED {
        return Err(ArchiveError::Compressed);
    }
    Ok(anchor)
}

/// The contents of an anchor file, with the numbers that decide whether the archive can be read.
struct AnchorFile {
    anchor: Anchor,
    substrate: u8,
    compression: u8,
}

fn parse(bytes: &mut Bytes<'_>) -> Option<AnchorFile> {
    let text = |b: &[u8]| copied(b);
    bytes.string()?;
    let format = bytes.u8()?;
    bytes.u8()?;
    let version = ArchiveVersion { major: bytes.u8()?, minor: bytes.u8()?, bugfix: bytes.u8()? };
    let (event_chunk, definition_chunk) = (bytes.full_u64()?, bytes.full_u64()?);
    let (substrate, compression) = (bytes.u8()?, bytes.u8()?);
    let locations = bytes.full_u64()?;
    bytes.full_u64()?;
    let (machine, creator, description) = (text(bytes.string()?), text(bytes.string()?), text(bytes.string()?));
    let (mut properties, mut trace_id) = (Vec::new(), None);
    if format >= 2 {
        for _ in 0..bytes.full_u32()? {
            properties.push((text(bytes.string()?), text(bytes.string()?)));
        }
        trace_id = Some(bytes.full_u64()?);
    }
    let anchor = Anchor {
        version,
        event_chunk,
        definition_chunk,
        locations,
        machine,
        creator,
        description,
        properties,
        trace_id,
    };
    Some(AnchorFile { anchor, substrate, compression })
}
