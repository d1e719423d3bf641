//! The search for a traced file on this machine.
//!
//! In: the path recorded inside the traced machine, the build id and debug link where recorded, and the folders to
//! look in. Out: the file, its separate debug file, or why there is none. Under each folder the longest suffix of the
//! recorded path is tried first, down to the bare file name; then the folder's build-id index
//! (`.build-id/ab/cdef.debug`). Behind the folders comes the recorded path itself, unless the user wants the folders
//! alone. Where several files fit, the build id decides; a file with another build id is never used. Where none was
//! recorded, [`proof`](super::proof) judges a file. A file at the recorded path, which the user did not name, gives
//! names only if it is proved: by build id, or by size and time for a recording of this machine since it started
//! ([`machine`](super::machine)). Only regular files are opened, and nothing is ever fetched.

use super::cache::SymbolFile;
use super::compiled::without_mark;
use super::elf::{self, DebugLink};
use super::files::SymbolPaths;
use super::perf_map::is_injected;
use super::proof::{Mapping, Proof, by_size_and_time};
use crate::base::mapped::open_regular;
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};

/// Folders of separate debug files that systems install.
const SYSTEM_DEBUG: &str = "/usr/lib/debug";

/// Beginnings of the names of files with the C and C++ runtime: glibc (also before 2.34, when threads were a library of
/// their own), musl, bionic, BSD, the dynamic loader, libstdc++ and LLVM's.
const RUNTIMES: [&str; 9] =
    ["libc.so", "libc-2.", "libc.musl-", "ld-musl-", "ld-linux", "ld-2.", "libpthread", "libstdc++.so", "libc++"];

/// A traced file, as recorded.
#[derive(Clone, Copy, Debug, Default)]
pub struct RecordedFile<'a> {
    /// Path inside the traced machine.
    pub path: &'a str,
    /// Its build id, where recorded.
    pub build_id: Option<&'a [u8]>,
    /// The link to its separate debug file, where recorded.
    pub debug_link: Option<DebugLink<&'a str>>,
    /// Its other recorded properties.
    pub mapping: Mapping,
    /// It was recorded on this machine since it started.
    pub local: bool,
}

/// A file that may be the traced one.
struct Candidate {
    path: PathBuf,
    /// The user named its folder, or that of the trace, which holds it.
    is_named: bool,
}

/// Find a traced file.
pub fn find(recorded_file: RecordedFile<'_>, symbol_paths: &SymbolPaths) -> SymbolFile {
    let (mut other, mut unproved) = (None, None);
    for Candidate { path, is_named } in candidates(recorded_file, symbol_paths) {
        let Some(built) = elf::identity(&path) else { continue };
        match proof(recorded_file, &path, &built, is_named) {
            Proof::Unknown if !is_named && !is_beside(&path, symbol_paths) => {
                unproved = unproved.or(Some(path));
            }
            proof @ (Proof::Same | Proof::Unknown) => {
                let debug = if built.has_names { None } else { debug_file(&path, recorded_file, &built, symbol_paths) };
                return SymbolFile::File { main: path, debug, proved: proof == Proof::Same };
            }
            // At the recorded path another version is normal, because the trace may come from another machine.
            Proof::Other => other = other.or(is_named.then_some(path)),
        }
    }
    match (other, unproved) {
        (Some(file), _) => SymbolFile::Mismatch(file),
        (None, Some(file)) => SymbolFile::Unproved(file),
        (None, None) => SymbolFile::Missing,
    }
}

/// True for a file in the folder of the trace.
fn is_beside(file: &Path, symbol_paths: &SymbolPaths) -> bool {
    symbol_paths.beside.iter().any(|folder| file.parent() == Some(folder))
}

/// `is_named`: the user named the folder of the file.
fn proof(recorded_file: RecordedFile<'_>, candidate: &Path, built: &elf::FileIdentity, is_named: bool) -> Proof {
    match (recorded_file.build_id, recorded_file.debug_link) {
        (Some(id), _) if built.build_id.as_deref() == Some(id) => Proof::Same,
        (Some(_), _) => Proof::Other,
        (None, Some(link)) if built.debug_link() == Some(link) => Proof::Same,
        (None, _) if is_named || recorded_file.local => by_size_and_time(candidate, built, recorded_file.mapping),
        (None, _) => Proof::Unknown,
    }
}

/// The files that may be the traced one, in the order in which they are looked at.
fn candidates(recorded_file: RecordedFile<'_>, symbol_paths: &SymbolPaths) -> Vec<Candidate> {
    let path = Path::new(without_mark(recorded_file.path));
    let names: Vec<_> =
        path.components().filter_map(|c| if let Component::Normal(name) = c { Some(name) } else { None }).collect();
    let mut named = Vec::new();
    for folder in &symbol_paths.folders {
        named.extend((0..names.len()).map(|skipped| folder.join(names[skipped..].iter().collect::<PathBuf>())));
        named.extend(recorded_file.build_id.and_then(|id| indexed(folder, id)));
    }
    named.retain(|p| p.is_file());
    let injected = path.file_name().filter(|name| name.to_str().is_some_and(is_injected));
    let beside = injected.into_iter().flat_map(|name| symbol_paths.beside.iter().map(move |folder| folder.join(name)));
    let beside = beside.filter(|file| file.is_file());
    let recorded = path.is_absolute().then(|| path.to_path_buf());
    let debug = || recorded_file.build_id.and_then(|id| indexed(Path::new(SYSTEM_DEBUG), id));
    let others = if symbol_paths.only { Vec::new() } else { recorded.into_iter().chain(debug()).collect() };
    let candidate = |is_named| move |path| Candidate { path, is_named };
    named.into_iter().map(candidate(true)).chain(beside.chain(others).map(candidate(false))).collect()
}

/// `.build-id/ab/cdef.debug` below a folder.
fn indexed(folder: &Path, id: &[u8]) -> Option<PathBuf> {
    let (first, rest) = id.split_first()?;
    let hex: String = rest.iter().map(|b| format!("{b:02x}")).collect();
    let path = folder.join(".build-id").join(format!("{first:02x}")).join(format!("{hex}.debug"));
    path.is_file().then_some(path)
}

/// The separate debug file of `main`: by build id, then by the name in its debug link, proved by build id or checksum.
fn debug_file(
    main: &Path,
    recorded_file: RecordedFile<'_>,
    built: &elf::FileIdentity,
    symbol_paths: &SymbolPaths,
) -> Option<PathBuf> {
    // The system's debug files are of any use only to system files; the build id or the checksum proves them.
    let folders: Vec<&Path> =
        symbol_paths.folders.iter().map(PathBuf::as_path).chain([Path::new(SYSTEM_DEBUG)]).collect();
    let id = built.build_id.as_deref();
    let proved = |p: &PathBuf| elf::identity(p).is_some_and(|i| i.build_id.as_deref() == id);
    let indexed = id.and_then(|id| folders.iter().filter_map(|f| indexed(f, id)).find(proved));
    if indexed.is_some() {
        return indexed;
    }
    let DebugLink { name, crc } = built.debug_link().or(recorded_file.debug_link)?;
    let name = Path::new(name).file_name()?;
    let folder = main.parent().unwrap_or(Path::new(""));
    let beside = [folder.join(name), folder.join(".debug").join(name)];
    let below = folders.iter().flat_map(|f| {
        let inside = folder.strip_prefix("/").unwrap_or(folder);
        [f.join(inside).join(name), f.join(name)]
    });
    let fits = |p: &PathBuf| {
        p != main
            && p.is_file()
            && match (id, elf::identity(p).and_then(|i| i.build_id)) {
                (Some(ours), Some(theirs)) => *ours == *theirs,
                _ => checksum(p).is_ok_and(|sum| sum == crc),
            }
    };
    beside.into_iter().chain(below).find(fits)
}

/// The CRC-32 that debug links use (polynomial 0xEDB88320, as in zip).
fn checksum(path: &Path) -> io::Result<u32> {
    let table: [u32; 256] =
        std::array::from_fn(|i| (0..8).fold(i as u32, |c, _| if c & 1 == 1 { c >> 1 ^ 0xedb8_8320 } else { c >> 1 }));
    let mut file = open_regular(path)?;
    let mut buffer = vec![0; 1 << 16];
    let mut sum = !0u32;
    loop {
        let n = file.read(&mut buffer)?;
        if n == 0 {
            return Ok(!sum);
        }
        sum = buffer[..n].iter().fold(sum, |c, b| table[usize::from(c as u8 ^ b)] ^ c >> 8);
    }
}

/// True for files of the C and C++ runtime.
pub(super) fn is_runtime(path: &str) -> bool {
    let file = path.rsplit('/').next().unwrap_or(path);
    RUNTIMES.iter().any(|runtime| file.starts_with(runtime))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_runtime_knows_c_libraries_by_their_file() {
        for path in [
            "/usr/lib/x86_64-linux-gnu/libc.so.6",
            "/lib/libc-2.31.so",
            "/lib/ld-musl-x86_64.so.1",
            "/lib64/ld-linux-x86-64.so.2",
            "/lib/libpthread-2.31.so",
            "/usr/lib/libstdc++.so.6.0.30",
            "libc++abi.so.1",
        ] {
            assert!(is_runtime(path), "{path}");
        }
        for path in ["/opt/libc/server", "libcrypto.so.3", "libcurl.so.4", "ld-server", "libclang-2.so", "[vdso]"] {
            assert!(!is_runtime(path), "{path}");
        }
    }

    #[test]
    fn checksum_gives_the_published_value() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("text");
        std::fs::write(&path, "123456789").unwrap();
        assert_eq!(checksum(&path).unwrap(), 0xcbf4_3926);
    }

    #[test]
    fn find_chooses_between_files_of_one_name_by_build_id() {
        let this = std::env::current_exe().unwrap();
        let built = elf::identity(&this).unwrap().build_id;
        let folder = tempfile::tempdir().unwrap();
        let deep = folder.path().join("opt/app");
        std::fs::create_dir_all(&deep).unwrap();
        // The file at the longer suffix has no names or build id; the traced one is at the bare name.
        std::fs::write(deep.join("server"), b"no ELF file").unwrap();
        std::fs::copy(&this, folder.path().join("server")).unwrap();
        let symbol_paths = SymbolPaths { folders: vec![folder.path().into()], ..SymbolPaths::default() };
        let recorded_file =
            RecordedFile { path: "/srv/opt/app/server", build_id: built.as_deref(), ..RecordedFile::default() };
        let traced = SymbolFile::File { main: folder.path().join("server"), debug: None, proved: true };
        assert_eq!(find(recorded_file, &symbol_paths), traced);
        let unproved = SymbolFile::File { main: folder.path().join("server"), debug: None, proved: false };
        assert_eq!(find(RecordedFile { build_id: None, ..recorded_file }, &symbol_paths), unproved);
        let other = RecordedFile { build_id: Some(b"another"), ..recorded_file };
        assert_eq!(find(other, &symbol_paths), SymbolFile::Mismatch(folder.path().join("server")));
        let missing = RecordedFile { path: "/srv/opt/app/../client", ..recorded_file };
        assert_eq!(find(missing, &symbol_paths), SymbolFile::Missing);
    }

    #[test]
    fn find_looks_in_the_folders_before_the_recorded_path() {
        let this = std::env::current_exe().unwrap();
        let built = elf::identity(&this).unwrap().build_id;
        let [folder, away] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let place = away.path().join("server");
        std::fs::copy(&this, &place).unwrap();
        let recorded =
            RecordedFile { path: place.to_str().unwrap(), build_id: built.as_deref(), ..RecordedFile::default() };
        let mut symbol_paths = SymbolPaths { folders: vec![folder.path().into()], ..SymbolPaths::default() };
        let at = |main: PathBuf| SymbolFile::File { main, debug: None, proved: true };
        assert_eq!(find(recorded, &symbol_paths), at(place.clone()), "the folder adds files");
        let unproved = find(RecordedFile { build_id: None, ..recorded }, &symbol_paths);
        assert_eq!(unproved, SymbolFile::Unproved(place.clone()), "only as far as they are proved");
        symbol_paths.only = true;
        assert_eq!(find(recorded, &symbol_paths), SymbolFile::Missing);
        std::fs::copy(&this, folder.path().join("server")).unwrap();
        for only in [true, false] {
            symbol_paths.only = only;
            assert_eq!(find(recorded, &symbol_paths), at(folder.path().join("server")));
        }
    }
}
