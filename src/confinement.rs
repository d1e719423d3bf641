//! The paths that a command needs, so that the process can give up the rest before it reads a byte of the input.
//!
//! In: the options of the command. Out: [`Rules`]. Read: below the named paths; below the folders of symbols; unless
//! these are all (`--symbols-only`), below folders where programs are installed or built, because the recorded paths
//! may lead to any of them. Written: files that are open already, of which that of `-o` gets its name in its folder;
//! in the interface also files of its state, and exports, which get their names in the current folder; `command` adds
//! the recordings that the interface had open before, to be read, because one of them may become the baseline.

use crate::base::sandbox::Rules;
use crate::input::Argument;
use crate::model::environment::ENVIRONMENT_FILE;
use crate::options::{GroupOptions, InputOptions, SymbolOptions};
use crate::symbols::{kernel, machine, perf_map};
use etcetera::BaseStrategy;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Files that a command uses besides the traces.
#[derive(Clone, Copy, Debug, Default)]
pub struct Files<'a> {
    /// Sources of function names; `None` for a command that names no functions.
    pub symbols: Option<&'a SymbolOptions>,
    /// New names of functions.
    pub functions: Option<&'a Path>,
    /// Partial results by whose groups others are built.
    pub groups: Option<&'a Path>,
    /// A file to write.
    pub output: Option<&'a Path>,
    /// A folder of tables to write.
    pub tables: Option<&'a Path>,
    /// A theme file.
    pub theme: Option<&'a OsStr>,
    /// True for the interface: it has a terminal, exports files and keeps its state.
    pub interface: bool,
}

impl<'a> Files<'a> {
    /// The files that the options of the groups name.
    pub fn of_groups(groups: &'a GroupOptions) -> Self {
        Files { symbols: Some(&groups.symbols), functions: groups.functions.as_deref(), ..Files::default() }
    }
}

/// Folders of `/` that hold no programs, but secrets, devices and the state of processes.
const NO_PROGRAMS: [&str; 9] = ["boot", "dev", "etc", "home", "proc", "root", "run", "sys", "var"];

/// The rules for a command.
pub fn rules(input: &InputOptions, traces: &[Argument], files: &Files<'_>) -> Rules {
    let mut rules = Rules::default();
    rules.read.extend(traces.iter().map(|a| root(&a.path)));
    // The folders whose files a pattern chooses.
    let is_pattern = |a: &&Argument| a.path.to_string_lossy().contains(['*', '?']);
    rules.read.extend(input.traces.iter().filter(is_pattern).map(|a| folder(&a.path)));
    // Kernel symbols beside a perf.data, and the functions that programs compiled while they ran.
    rules.read.extend(traces.iter().map(|a| a.path.with_file_name("kallsyms")));
    rules.read.extend(traces.iter().map(|a| a.path.with_file_name(ENVIRONMENT_FILE)));
    rules.read.extend(perf_map::beside(traces.iter().map(|a| a.path.as_path())));
    rules.read.extend(input.tasks.iter().chain(&input.handlers).cloned());
    rules.read.extend(files.functions.into_iter().chain(files.groups).map(Path::to_owned));
    let strategy = etcetera::choose_base_strategy().ok();
    if let Some(folders) = &strategy {
        rules.read.push(folders.config_dir().join("whyslow"));
    }
    // The memory and the CPUs of the process.
    rules.known.extend(["/proc/self", "/sys/fs/cgroup"].map(PathBuf::from));
    if let Some(symbols) = files.symbols {
        // The names of this machine and its boot: a recording of it may use its files and kernel symbols.
        rules.known.extend(machine::FILES.map(|file| Path::new("/").join(file)));
        rules.known.extend(perf_map::about_code(Path::new(perf_map::TEMPORARY)));
        rules.known.extend(symbols.kernel.is_empty().then(|| PathBuf::from(kernel::RUNNING)));
        rules.read.extend(symbols.all_folders().chain(&symbols.kernel).cloned());
        if symbols.only.is_empty() {
            rules.known.extend(programs());
        } else {
            // Separate debug files of system libraries that the named folders hold.
            rules.known.push(PathBuf::from("/usr/lib/debug"));
        }
    }
    rules.tree = files.tables.map(Path::to_owned);
    if files.interface {
        rules.read.extend(files.theme.map(PathBuf::from));
        rules.exports = Some(PathBuf::from("."));
        rules.write.extend(strategy.and_then(|s| s.state_dir()).map(|state| state.join("whyslow")));
        rules.terminals.extend(["/dev/tty", "/proc/self/fd/0", "/proc/self/fd/1"].map(PathBuf::from));
    }
    rules
}

/// The folder of a file; a link means its target.
fn folder(path: &Path) -> PathBuf {
    let path = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new(".")).to_owned()
}

/// The path and the files that belong to it: those of an archive are beside its anchor.
fn root(path: &Path) -> PathBuf {
    if path.extension().is_some_and(|e| e == "otf2") { folder(path) } else { path.to_owned() }
}

/// Folders below which programs are installed or built: those of `/`, and the visible ones of homes.
fn programs() -> Vec<PathBuf> {
    let visible = |folder: &Path| -> Vec<PathBuf> {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let is_visible = |e: &std::fs::DirEntry| !e.file_name().as_encoded_bytes().starts_with(b".");
        entries.filter(is_visible).map(|e| e.path()).collect()
    };
    let has_programs = |path: &PathBuf| NO_PROGRAMS.iter().all(|no| !path.ends_with(no));
    let mut all: Vec<PathBuf> = visible(Path::new("/")).into_iter().filter(has_programs).collect();
    let own = etcetera::home_dir().ok().filter(|home| home != Path::new("/"));
    let homes = visible(Path::new("/home")).into_iter().chain(own);
    all.extend(homes.flat_map(|home| visible(&home)));
    all.sort();
    all.dedup();
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{self, Parsed};
    use crate::options::configuration::Configuration;

    fn rules_of(line: &str) -> Rules {
        let Parsed::Run(command) = cli::parse(line.split(' ').map(Into::into), &Configuration::default()) else {
            panic!("{line}")
        };
        command.rules().unwrap_or_else(|| panic!("{line}"))
    }

    #[test]
    fn rules_allow_the_named_paths_and_no_folder_to_write_in() {
        let rules = rules_of("whyslow build -o /out/a.whyslow --symbols-only /bins old=/traces/a /traces/b");
        let named = |path: &str| rules.read.contains(&PathBuf::from(path));
        assert!(named("/traces/a") && named("/traces/b") && named("/bins") && !named("/traces"));
        assert!(rules.write.is_empty());
        let about_code = perf_map::about_code(Path::new(perf_map::TEMPORARY)).len();
        assert_eq!(rules.known.len(), 3 + machine::FILES.len() + 1 + about_code, "{:?}", rules.known);
        assert!(rules.terminals.is_empty());
        assert!(rules_of("whyslow dump /t").write.is_empty());
        assert_eq!(rules_of("whyslow anomalies /runs/a/traces.otf2").read[0], Path::new("/runs/a"));
    }

    #[test]
    fn rules_allow_folders_of_programs_without_symbols_option() {
        let known = rules_of("whyslow explain /t").known;
        assert!(known.contains(&PathBuf::from("/usr")), "{known:?}");
        assert!(rules_of("whyslow explain --symbols /bins /t").known.contains(&PathBuf::from("/usr")));
        assert!(known.iter().all(|p| *p != Path::new("/etc") && *p != Path::new("/home") && *p != Path::new("/")));
    }

    #[test]
    fn rules_let_the_interface_export_to_the_current_folder() {
        let rules = rules_of("whyslow /t");
        assert!(rules.exports == Some(PathBuf::from(".")) && !rules.write.contains(&std::env::temp_dir()));
        assert!(!rules.terminals.is_empty());
    }
}
