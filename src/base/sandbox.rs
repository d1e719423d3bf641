//! Giving up what the process does not need: capabilities, files (Landlock, Linux 5.13 and newer), and system calls
//! (`system_calls.rs`).
//!
//! In: which folders and files may be read, and in which may be written. From then on the kernel refuses all else to
//! this thread and those that it starts, also to code that a hostile file might have brought in: other files, running a
//! program, sockets, signals to other processes; and nothing that is executed could gain privileges. What was opened
//! before stays open. It cannot be taken back. Cost: one rule, two system calls, for each folder.

use super::export_files;
use super::file::Output;
use foldhash::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The paths and ports that the process still needs. Paths that do not exist, or cannot be opened, are of no use and
/// are passed over.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    /// Files, and folders with all below them, that are listed and read.
    pub read: Vec<PathBuf>,
    /// Folders below which files are read whose names are known.
    pub known: Vec<PathBuf>,
    /// Folders in which files are made, replaced and removed.
    pub write: Vec<PathBuf>,
    /// The folder below which folders and files are made, replaced and removed.
    pub tree: Option<PathBuf>,
    /// The folder in which exports get their names, without what is below it. Where files for them cannot be opened
    /// before, it is one to write in.
    pub exports: Option<PathBuf>,
    pub terminals: Vec<PathBuf>,
}

/// The folders in which the sandbox in force allows writing.
static WRITABLE: OnceLock<WritableFolders> = OnceLock::new();

#[derive(Debug)]
struct WritableFolders {
    /// With all below them.
    trees: Vec<PathBuf>,
    exports: Option<PathBuf>,
}

/// The files that the sandbox in force allows by a rule of their own, as they were when it began.
#[cfg(target_os = "linux")]
static FILES: OnceLock<HashMap<PathBuf, landlock::PathFd>> = OnceLock::new();

/// The reason why the process cannot be confined.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// A call of Landlock fails.
    #[cfg(target_os = "linux")]
    #[error("the kernel refuses it: {0}")]
    Refused(landlock::RulesetError),
    /// System calls cannot be refused.
    #[cfg(target_os = "linux")]
    #[error("the kernel filters no system calls: {0}")]
    Calls(seccompiler::Error),
    /// Landlock is in the kernel and not enabled.
    #[error("Landlock is disabled on this system")]
    Disabled,
    /// The kernel is older than Landlock.
    #[error("this kernel has no Landlock (Linux 5.13 or newer has)")]
    OldKernel,
    /// Another system.
    #[cfg(not(target_os = "linux"))]
    #[error("only Linux has Landlock")]
    OtherSystem,
}

/// Confine this thread, and those that it starts, to `rules`, and to giving `output` its name. After an error
/// capabilities and system calls are gone, and files are not confined.
#[cfg(target_os = "linux")]
pub fn confine(rules: &Rules, output: Option<&Output>) -> Result<(), SandboxError> {
    super::capabilities::drop_but(
        output.is_some() || !rules.write.is_empty() || rules.exports.is_some() || rules.tree.is_some(),
    );
    let confined = confine_files(rules, output);
    if confined.is_err() {
        export_files::close();
    }
    let calls = super::system_calls::refuse();
    confined?;
    calls.map_err(SandboxError::Calls)
}

#[cfg(target_os = "linux")]
fn confine_files(rules: &Rules, output: Option<&Output>) -> Result<(), SandboxError> {
    use landlock::{
        ABI, Access, AccessFs, AccessNet, BitFlags, LandlockStatus, PathBeneath, PathFd, Ruleset, RulesetAttr,
        RulesetCreatedAttr, RulesetStatus, Scope,
    };
    use std::os::unix::fs::FileTypeExt;
    /// The requested rights; an older kernel grants fewer.
    const NEWEST: ABI = ABI::V6;
    let listed = AccessFs::ReadFile | AccessFs::ReadDir;
    let made = listed | AccessFs::WriteFile | AccessFs::MakeReg | AccessFs::RemoveFile | AccessFs::Truncate;
    let exports = rules.exports.as_deref().and_then(export_files::prepare);
    let written = rules.exports.iter().filter(|_| exports.is_none()).chain(&rules.write).cloned().collect::<Vec<_>>();
    let tree: Vec<PathBuf> = rules.tree.iter().cloned().collect();
    let grants: [(&[PathBuf], BitFlags<AccessFs>); 5] = [
        (&rules.read, listed),
        (&rules.known, AccessFs::ReadFile.into()),
        (&written, made),
        (&tree, made | AccessFs::MakeDir),
        (&rules.terminals, AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::IoctlDev),
    ];
    let handled = Ruleset::default()
        .handle_access(AccessFs::from_all(NEWEST))
        .and_then(|r| r.handle_access(AccessNet::from_all(NEWEST)))
        .and_then(|r| r.scope(Scope::from_all(NEWEST)));
    let mut files = HashMap::default();
    let mut ruleset = handled.and_then(Ruleset::create).map_err(SandboxError::Refused)?;
    for (paths, access) in grants {
        for path in paths {
            let (Ok(opened), Ok(about)) = (PathFd::new(path), std::fs::metadata(path)) else { continue };
            // A pipe has no place in the tree that a rule could name; it needs none.
            if about.file_type().is_fifo() || about.file_type().is_socket() {
                continue;
            }
            let access = if about.is_dir() { access } else { access & AccessFs::from_file(NEWEST) };
            ruleset = ruleset.add_rule(PathBeneath::new(&opened, access)).map_err(SandboxError::Refused)?;
            if about.is_file() {
                files.entry(path.clone()).or_insert(opened);
            }
        }
    }
    // By its open folder: a path could mean another one by now, or could not be opened again.
    let named = BitFlags::from(AccessFs::MakeReg);
    let replaced = named | AccessFs::RemoveFile;
    let output = output.map(|output| (output.folder(), if output.replaces() { replaced } else { named }));
    for (folder, access) in output.into_iter().chain(exports.as_ref().map(|folder| (folder, listed | replaced))) {
        ruleset = ruleset.add_rule(PathBeneath::new(folder, access)).map_err(SandboxError::Refused)?;
    }
    let status = ruleset.restrict_self().map_err(SandboxError::Refused)?;
    match (status.ruleset, status.landlock) {
        (RulesetStatus::NotEnforced, LandlockStatus::NotEnabled) => Err(SandboxError::Disabled),
        (RulesetStatus::NotEnforced, _) => Err(SandboxError::OldKernel),
        _ => {
            let real = |path: &PathBuf| std::fs::canonicalize(path).ok();
            drop(FILES.set(files));
            let exports = rules.exports.as_ref().filter(|_| exports.is_some()).and_then(real);
            drop(
                WRITABLE
                    .set(WritableFolders { trees: written.iter().chain(&tree).filter_map(real).collect(), exports }),
            );
            Ok(())
        }
    }
}

/// An error: without Landlock nothing can be given up.
#[cfg(not(target_os = "linux"))]
pub fn confine(_rules: &Rules, _output: Option<&Output>) -> Result<(), SandboxError> {
    Err(SandboxError::OtherSystem)
}

/// A path at which the file is that the sandbox in force allows at `path`, although that name may mean another file by
/// now: one that was put in its place is not allowed.
#[cfg(target_os = "linux")]
pub fn allowed(path: &Path) -> Option<PathBuf> {
    use std::os::fd::{AsFd, AsRawFd};
    let file = FILES.get()?.get(path)?;
    Some(PathBuf::from(format!("/proc/self/fd/{}", file.as_fd().as_raw_fd())))
}

/// `None`: without a sandbox a path leads to its file.
#[cfg(not(target_os = "linux"))]
pub fn allowed(_path: &Path) -> Option<PathBuf> {
    None
}

/// The error of writing to `path`; where the sandbox refused it, the error says so, and how to go without.
pub fn explained(path: &Path, error: io::Error) -> io::Error {
    let Some(writable) = WRITABLE.get().filter(|_| error.kind() == io::ErrorKind::PermissionDenied) else {
        return error;
    };
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let is_allowed = |folder: PathBuf| {
        writable.exports.as_ref() == Some(&folder) || writable.trees.iter().any(|tree| folder.starts_with(tree))
    };
    let within = std::fs::canonicalize(folder).is_ok_and(is_allowed);
    if within {
        return error;
    }
    io::Error::new(io::ErrorKind::PermissionDenied, "outside the sandbox, start with --no-sandbox")
}
