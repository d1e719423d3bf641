//! From addresses to functions.
//!
//! In: raw user stacks, each with its process and that process's images at the time. Out: for each the functions,
//! outermost first. The steps: find the image of each address ([`images`]) or the executable of the process; find the
//! file of each image on this machine, proved by build id ([`files`]) or by size and time ([`proof`]); open each file
//! once and name all of its addresses ([`elf`]), files in parallel; look up code that a runtime compiled in its own map
//! ([`perf_map`]) and kernel addresses in the kernel's list ([`kernel`]). So each (image, address) is resolved once,
//! regardless of the number of stacks.
//!
//! Functions without a name have one common name per shared library (`[libc.so.6]`: its inner functions seldom matter,
//! and one cause must not be scattered over many contexts), and one name each in the program itself
//! (`server+0x1240`). Recorded entries of functions are exact, so each of these functions has a name of its own
//! everywhere: its offset in its file (`libjournal.so+0x1240`), its address (`0x403760`) where no file is known.
//! ALGORITHMS.md section 5.2.

pub mod cache;
pub mod elf;
pub mod files;
pub mod images;
pub mod kept;
pub mod kernel;
pub mod perf_map;
pub mod proof;
mod sections;
pub mod unwind;
pub mod unwind_tables;

use crate::base::ctx::{Cancelled, Ctx};
use crate::base::names::{NameId, Names};
use crate::base::notice::{Notice, Notices};
use crate::base::parallel::in_order;
use crate::event::image::CODE;
use crate::event::stack::{FRAME_FILE, name_of};
use crate::state::timeline::{HostId, RawStackId, Timeline};
use cache::{CompiledFunctions, KnownSymbols, Lookup, SymbolCache};
use elf::{AddressBase, DebugLink, SymbolsAt};
use files::{RecordedFile, SymbolFile, SymbolPaths};
use foldhash::HashMap;
use images::{SpaceId, Spaces};
use perf_map::PerfMap;
use proof::{MappedExtent, Mapping};
use sections::UnpackedSections;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Libraries of the tracer and its profiler, which are at the innermost end of the stacks that they record.
const TRACERS: [&str; 2] = ["liblttng-profile", "liblttng-ust"];
/// The function to which a signal's handler returns.
const SIGNAL_RETURN: &str = "__restore_rt";

/// The kind of addresses in a raw stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AddressKind {
    /// The address in the innermost function, and the return address in each caller: sampled stacks.
    Sampled,
    /// The first address of each function: recorded function entries.
    FunctionEntry,
}

/// A raw user stack in its process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProcessStack {
    /// Host.
    pub host: HostId,
    /// Process.
    pub pid: i32,
    /// Its images at that time; `None` where they are unknown.
    pub space: Option<SpaceId>,
    /// Addresses.
    pub stack: RawStackId,
    /// Their kind.
    pub addresses: AddressKind,
}

/// One function on a user stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct UserFrame {
    /// Its name.
    pub name: NameId,
    /// The frame is a whole file, or no known file, because no single function was found.
    pub folded: bool,
    /// The compiler inlined it into its caller.
    pub inlined: bool,
    /// The address in it: of the call of the next function, or of the thread in the innermost one.
    pub address: u64,
}

/// A file as recorded, and the origin of its addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct FileKey<'a> {
    path: NameId,
    build_id: Option<&'a [u8]>,
    /// Its size where it has no build id.
    extent: Option<MappedExtent>,
    count: AddressBase,
}

/// The target of an address.
#[derive(Clone, Copy)]
enum AddressTarget {
    /// An address in a file.
    File(usize, u64),
    /// A name that was recorded instead of an address.
    Named(NameId),
    /// Code that no file contains.
    Elsewhere,
}

struct TracedFile<'a> {
    key: FileKey<'a>,
    recorded: RecordedFile<'a>,
    addresses: BTreeSet<u64>,
    /// Those of `addresses` at which a function was entered.
    entries: BTreeSet<u64>,
}

impl TracedFile<'_> {
    /// The symbols at its addresses. The file is opened for those that are not in `cache`.
    fn symbols(&self, symbol_paths: &SymbolPaths, cache: &SymbolCache) -> Arc<KnownSymbols> {
        let before = cache.get(self.key);
        let is_new = |address: &u64| before.as_ref().is_none_or(|known| !known.symbols.contains_key(address));
        let addresses: Vec<u64> = self.addresses.iter().copied().filter(is_new).collect();
        let mut known = match before {
            Some(known) if addresses.is_empty() => return known,
            Some(known) => Arc::unwrap_or_clone(known),
            None => {
                let found = match cache.lookup {
                    Lookup::Files => files::find(self.recorded, symbol_paths),
                    Lookup::Kept => SymbolFile::Missing,
                };
                let unpacked = UnpackedSections::default();
                KnownSymbols { found, unread: None, symbols: HashMap::default(), unpacked }
            }
        };
        let symbols = match &known.found {
            SymbolFile::File { main, debug, .. } if cache.lookup == Lookup::Files => {
                let unpacked = &mut known.unpacked;
                let symbols = elf::symbols_with(main, debug.as_deref(), self.key.count, &addresses, unpacked);
                symbols.map_err(|e| known.unread = Some(format!("{}: {e}", main.display()))).ok()
            }
            SymbolFile::File { .. } | SymbolFile::Mismatch(_) | SymbolFile::Missing => None,
        };
        let symbols = symbols.unwrap_or_else(|| vec![SymbolsAt::Unknown; addresses.len()]);
        known.symbols.extend(addresses.into_iter().zip(symbols));
        Arc::new(known)
    }
}

/// Resolves stacks of one recording.
pub struct StackResolver<'a> {
    timeline: &'a Timeline,
    spaces: &'a Spaces,
    symbol_paths: &'a SymbolPaths,
    cache: &'a SymbolCache,
    files: Vec<TracedFile<'a>>,
    file_ids: HashMap<FileKey<'a>, usize>,
    targets: HashMap<(HostId, i32, Option<SpaceId>, u64), AddressTarget>,
}

impl<'a> StackResolver<'a> {
    /// A resolver that starts with the symbols in `cache`, which is of the same recording.
    pub fn new(
        timeline: &'a Timeline,
        spaces: &'a Spaces,
        symbol_paths: &'a SymbolPaths,
        cache: &'a SymbolCache,
    ) -> Self {
        StackResolver {
            timeline,
            spaces,
            symbol_paths,
            cache,
            files: Vec::new(),
            file_ids: HashMap::default(),
            targets: HashMap::default(),
        }
    }

    /// The functions of each stack, outermost first; names from files that are not proven are marked in `names`. Equal
    /// input gives equal output for any number of workers.
    pub fn resolve(
        mut self,
        stacks: &[ProcessStack],
        names: &mut Names,
        notices: &mut Notices,
        ctx: &Ctx,
    ) -> Result<Vec<Vec<UserFrame>>, Cancelled> {
        for stack in stacks {
            for address in self.addresses(stack) {
                self.add_target(stack, address);
            }
        }
        let found = self.look_up(names, notices, ctx)?;
        let mut maps: HashMap<i32, Arc<PerfMap>> = HashMap::default();
        let unknown = names.intern("unknown");
        let resolve = |stack: &ProcessStack| {
            let mut all: Vec<UserFrame> = Vec::new();
            let mut addresses: Vec<u64> = self.addresses(stack).collect();
            let tracers = addresses.iter().take_while(|a| self.is_tracers(stack, **a)).count();
            addresses.drain(..tracers);
            addresses.reverse();
            for address in addresses {
                let target = self.targets.get(&(stack.host, stack.pid, stack.space, address));
                match target.copied().unwrap_or(AddressTarget::Elsewhere) {
                    AddressTarget::File(file, address) => {
                        all.extend(found.get(file).and_then(|f| f.get(&address)).into_iter().flatten().copied());
                    }
                    AddressTarget::Named(name) => {
                        all.push(named_frame(self.timeline.names().get(name), address, names));
                    }
                    AddressTarget::Elsewhere => {
                        let map = maps.entry(stack.pid).or_insert_with(|| self.compiled(stack.pid, notices));
                        let (name, folded) = match (map.at(address), stack.addresses) {
                            (Some(compiled), _) => (names.intern(compiled), false),
                            (None, AddressKind::FunctionEntry) => (names.intern(&format!("{address:#x}")), false),
                            (None, AddressKind::Sampled) => (unknown, true),
                        };
                        all.push(UserFrame { name, folded, inlined: false, address });
                    }
                }
            }
            // A profiler runs in a signal's handler.
            if tracers > 0 && all.last().is_some_and(|f| names.get(f.name) == SIGNAL_RETURN) {
                all.pop();
            }
            // Calls inside one unnamed file are one frame.
            all.dedup_by(|b, a| a.folded && b.folded && a.name == b.name);
            all
        };
        Ok(stacks.iter().map(resolve).collect())
    }

    /// The functions at the addresses of each file; the notices about files that are missing or not proven.
    fn look_up(
        &self,
        names: &mut Names,
        notices: &mut Notices,
        ctx: &Ctx,
    ) -> Result<Vec<HashMap<u64, Vec<UserFrame>>>, Cancelled> {
        let mut found: Vec<HashMap<u64, Vec<UserFrame>>> = Vec::with_capacity(self.files.len());
        let mut of_runtimes: BTreeSet<NameId> = BTreeSet::new();
        let mut of_programs: BTreeSet<NameId> = BTreeSet::new();
        let files = &self.files;
        in_order(
            ctx,
            files.len(),
            |i| files[i].symbols(self.symbol_paths, self.cache),
            |i, known| {
                let file = &files[i];
                let path = self.timeline.names().get(file.key.path);
                let mut proven = true;
                match &known.found {
                    SymbolFile::File { main, proved, .. } => {
                        proven = *proved;
                        let is_named = |a: &u64| matches!(known.symbols.get(a), Some(SymbolsAt::Functions(_)));
                        if !proven && file.addresses.iter().any(is_named) {
                            notices.add(Notice::SymbolFileUnproved, 1, || main.display().to_string());
                        }
                        known.unread.iter().for_each(|why| notices.add(Notice::SymbolFileMissing, 1, || why.clone()))
                    }
                    SymbolFile::Missing if is_virtual(path) => {}
                    SymbolFile::Missing => notices.add(Notice::SymbolFileMissing, 1, || path.to_owned()),
                    SymbolFile::Mismatch(other) => {
                        notices.add(Notice::SymbolFileMismatch, 1, || other.display().to_string())
                    }
                }
                let frames = |a: &u64| {
                    let entered = file.entries.contains(a);
                    let resolved = ResolvedAddress { symbols: known.symbols.get(a)?, proven, entered };
                    Some((*a, resolved.frames(path, *a, names)))
                };
                let frames: HashMap<u64, Vec<UserFrame>> = file.addresses.iter().filter_map(frames).collect();
                let functions = frames.values().flatten().filter(|frame| !frame.folded).map(|frame| frame.name);
                if files::is_runtime(path) {
                    of_runtimes.extend(functions)
                } else {
                    of_programs.extend(functions)
                }
                found.push(frames);
                self.cache.put(file.key, known);
            },
        )?;
        // A program may define a function of the runtime anew (`malloc`); then it is the program's own.
        of_runtimes.difference(&of_programs).for_each(|name| names.mark_runtime(*name));
        Ok(found)
    }

    /// Addresses to look up, innermost first. All except the innermost are return addresses: one less is inside the
    /// calling instruction. Zeros and all-ones pad or end what the tracer recorded.
    fn addresses(&self, stack: &ProcessStack) -> impl Iterator<Item = u64> + use<'a> {
        let raw = self.timeline.stacks().get(stack.stack).iter().filter(|a| **a != 0 && **a != u64::MAX);
        raw.enumerate().map(|(depth, a)| if depth == 0 { *a } else { a - 1 })
    }

    /// An address in a library that takes the samples.
    fn is_tracers(&self, stack: &ProcessStack, address: u64) -> bool {
        let Some(AddressTarget::File(file, _)) = self.targets.get(&(stack.host, stack.pid, stack.space, address))
        else {
            return false;
        };
        let path = self.files.get(*file).map_or("", |f| self.timeline.names().get(f.key.path));
        let name = path.rsplit('/').next().unwrap_or(path);
        TRACERS.iter().any(|tracer| name.starts_with(tracer))
    }

    /// The functions that a process compiled; a notice where they cannot be read.
    fn compiled(&self, pid: i32, notices: &mut Notices) -> Arc<PerfMap> {
        let CompiledFunctions { map, unread } = self.cache.compiled(pid, || {
            let (map, unread) = PerfMap::find(pid, self.symbol_paths);
            CompiledFunctions { map: Arc::new(map), unread }
        });
        unread.iter().for_each(|why| notices.add(Notice::SymbolFileMissing, 1, || why.clone()));
        map
    }

    /// Add an address to those of its file.
    fn add_target(&mut self, stack: &ProcessStack, address: u64) {
        let key = (stack.host, stack.pid, stack.space, address);
        let target = match self.targets.get(&key) {
            Some(_) if stack.addresses == AddressKind::Sampled => return,
            Some(known) => *known,
            None => self.target(stack, address),
        };
        if let AddressTarget::File(file, address) = target {
            let file = &mut self.files[file];
            file.addresses.insert(address);
            if stack.addresses == AddressKind::FunctionEntry {
                file.entries.insert(address);
            }
        }
        self.targets.insert(key, target);
    }

    fn target(&mut self, stack: &ProcessStack, address: u64) -> AddressTarget {
        if let Some(name) = name_of(address) {
            return AddressTarget::Named(name);
        }
        let Some(id) = stack.space else { return AddressTarget::Elsewhere };
        let names = &self.timeline.names();
        if let Some(image) = self.spaces.image(id, stack.host, address) {
            let virtually = is_virtual(names.get(image.path));
            let (count, address) = match image.offset {
                // An offset in the file, whose program headers give the file's own address.
                Some(offset) if !virtually => (AddressBase::Offset, address - image.base + offset),
                _ if image.size == CODE && !virtually => (AddressBase::Code, address - image.base),
                _ if image.position_independent || image.size == 0 => (AddressBase::Loaded, address - image.base),
                _ => (AddressBase::Own, address),
            };
            let position_independent = image.position_independent;
            let extent = match image.offset {
                Some(offset) => MappedExtent::Part { offset, bytes: image.size },
                // The mapping's address is known, its length is not.
                None if image.size == CODE => MappedExtent::Loaded { bytes: 0, position_independent },
                None => MappedExtent::Loaded { bytes: image.size, position_independent },
            };
            let recorded = RecordedFile {
                path: names.get(image.path),
                build_id: image.build_id.as_deref(),
                debug_link: image.debug_link.map(|link| DebugLink { name: names.get(link.name), crc: link.crc }),
                mapping: Mapping { extent: Some(extent), reported: self.spaces.first_reported(image.path) },
            };
            return AddressTarget::File(self.file(image.path, recorded, count), address);
        }
        // An executable at fixed addresses needs no recorded mapping, only its name.
        let Some(path) = self.spaces.get(id).and_then(|s| s.executable) else { return AddressTarget::Elsewhere };
        let recorded =
            RecordedFile { path: names.get(path), build_id: None, debug_link: None, mapping: Mapping::default() };
        let symbol_paths = self.symbol_paths;
        let span = self.cache.fixed(path, || match files::find(recorded, symbol_paths) {
            SymbolFile::File { main, .. } => elf::fixed_span(&main),
            SymbolFile::Mismatch(_) | SymbolFile::Missing => None,
        });
        match span {
            Some(span) if span.contains(&address) => {
                AddressTarget::File(self.file(path, recorded, AddressBase::Own), address)
            }
            _ => AddressTarget::Elsewhere,
        }
    }

    fn file(&mut self, path: NameId, recorded: RecordedFile<'a>, count: AddressBase) -> usize {
        let extent = recorded.mapping.extent.filter(|_| recorded.build_id.is_none());
        let key = FileKey { path, build_id: recorded.build_id, extent, count };
        *self.file_ids.entry(key).or_insert_with(|| {
            self.files.push(TracedFile { key, recorded, addresses: BTreeSet::new(), entries: BTreeSet::new() });
            self.files.len() - 1
        })
    }
}

/// The frame of a function that was recorded by its name.
fn named_frame(text: &str, address: u64, names: &mut Names) -> UserFrame {
    let (function, file) = text.split_once(FRAME_FILE).unwrap_or((text, ""));
    let folded = function.strip_prefix('[').and_then(|file| file.strip_suffix(']'));
    let name = names.intern(folded.unwrap_or(function));
    if folded.is_none() && files::is_runtime(file) {
        names.mark_runtime(name);
    }
    UserFrame { name, folded: folded.is_some(), inlined: false, address }
}

/// True for parts of the kernel that are mapped into every process and have no file.
fn is_virtual(path: &str) -> bool {
    path.starts_with('[')
}

/// The symbols of an address in a file.
struct ResolvedAddress<'a> {
    symbols: &'a SymbolsAt,
    /// The file is the one that was traced.
    proven: bool,
    /// A function was entered there.
    entered: bool,
}

impl ResolvedAddress<'_> {
    /// The frames at the address.
    fn frames(&self, path: &str, address: u64, names: &mut Names) -> Vec<UserFrame> {
        let file = path.rsplit('/').next().unwrap_or(path);
        let is_library = is_virtual(path) || file.contains(".so") || file.starts_with("ld-");
        let is_folded = is_library && !self.entered;
        let mut one = |text: &str, folded| UserFrame { name: names.intern(text), folded, inlined: false, address };
        let all: Vec<UserFrame> = match self.symbols {
            SymbolsAt::Functions(functions) => {
                let frame = |(i, f): (usize, &String)| UserFrame { inlined: i > 0, ..one(f, false) };
                functions.iter().enumerate().map(frame).collect()
            }
            SymbolsAt::JumpTable => Vec::new(),
            SymbolsAt::Unnamed(_) | SymbolsAt::Unknown if is_folded => vec![one(file.trim_matches(['[', ']']), true)],
            SymbolsAt::Unnamed(start) => vec![one(&format!("{file}+{start:#x}"), false)],
            SymbolsAt::Unknown => vec![one(&format!("{file}+{address:#x}"), false)],
        };
        // The address itself was recorded; only its name from the file may be wrong.
        let from_file = !matches!(self.symbols, SymbolsAt::Unknown);
        all.iter().filter(|f| from_file && !self.proven && !f.folded).for_each(|f| names.mark_unproven(f.name));
        all
    }
}
