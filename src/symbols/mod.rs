//! From addresses to functions.
//!
//! In: raw user stacks, each with its process and that process's images at the time. Out: for each the functions,
//! outermost first. The steps: find the image of each address ([`images`]) or the executable of the process; find the
//! file of each image on this machine, proved by build id ([`files`]) or by size and time ([`proof`]); open each file
//! once and name all of its addresses ([`elf`]), files in parallel; look up code that a runtime compiled in what it
//! wrote about it ([`compiled`]) and kernel addresses in the kernel's list ([`kernel`]). So each (image, address) is
//! resolved once, regardless of the number of stacks.
//!
//! Functions without a name have one common name per shared library (`[libc.so.6]`: its inner functions seldom matter,
//! and one cause must not be scattered over many contexts), and one name each in the program itself
//! (`server+0x1240`). Recorded entries of functions are exact, so each of these functions has a name of its own
//! everywhere: its offset in its file (`libjournal.so+0x1240`), its address (`0x403760`) where no file is known.
//! ALGORITHMS.md section 5.2.

pub mod cache;
mod checked_file;
pub mod compiled;
mod compiled_files;
mod dwarf;
pub mod elf;
pub mod files;
mod frames;
pub mod images;
pub mod jitdump;
pub mod kept;
pub mod kernel;
pub mod machine;
pub mod perf_map;
pub mod proof;
mod sections;
mod traced_file;
pub mod unnamed;
pub mod unwind;
pub mod unwind_tables;

pub use frames::UserFrame;

use crate::base::ctx::{Cancelled, Ctx};
use crate::base::names::{NameId, Names};
use crate::base::notice::{Notice, Notices};
use crate::base::parallel::in_order;
use crate::base::time::{Ns, Timestamp};
use crate::event::host::HostId;
use crate::event::image::CODE;
use crate::event::stack::{FRAME_FILE, RawStackId, RawStacks, name_of};
use crate::timeline::Timeline;
use cache::{FileKey, KnownCode, KnownSymbols, Lookup, SymbolCache, SymbolFile};
use compiled::{CompiledCode, is_memory, is_without_file};
use elf::{AddressBase, DebugLink, SymbolsAt};
use files::SymbolPaths;
use foldhash::HashMap;
use frames::{ResolvedAddress, is_virtual};
use get_size2::GetSize;
use images::{SpaceId, Spaces};
use proof::{MappedExtent, Mapping};
use sections::UnpackedSections;
use std::collections::BTreeSet;
use std::sync::Arc;
use traced_file::RecordedFile;

/// Libraries of the tracer and its profiler, which are at the innermost end of the stacks that they record.
const TRACERS: [&str; 2] = ["liblttng-profile", "liblttng-ust"];
/// The function to which a signal's handler returns.
const SIGNAL_RETURN: &str = "__restore_rt";

/// The kind of addresses in a raw stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, GetSize)]
pub enum AddressKind {
    /// The address in the innermost function, and the return address in each caller: sampled stacks.
    Sampled,
    /// The first address of each function: recorded function entries.
    FunctionEntry,
}

/// A raw user stack in its process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, GetSize)]
pub struct ProcessStack {
    pub host: HostId,
    /// Process.
    pub pid: i32,
    /// Its images at that time; `None` where they are unknown.
    pub space: Option<SpaceId>,
    /// The time since which its compiled code is what it was then.
    pub code: Timestamp,
    /// Addresses.
    pub stack: RawStackId,
    /// Their kind.
    pub addresses: AddressKind,
}

/// The target of an address.
#[derive(Clone, Copy)]
enum AddressTarget {
    /// An address in a file.
    File(usize, u64),
    /// A name that was recorded instead of an address.
    Named(NameId),
    /// An address in memory, or in a file that was deleted: compiled code, else an address in the file.
    Memory(Option<(usize, u64)>),
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
                    Lookup::Files => traced_file::find(self.recorded, symbol_paths),
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
            SymbolFile::File { .. } | SymbolFile::Mismatch(_) | SymbolFile::Unproved(_) | SymbolFile::Missing => None,
        };
        let symbols = symbols.unwrap_or_else(|| vec![SymbolsAt::Unknown; addresses.len()]);
        known.symbols.extend(addresses.into_iter().zip(symbols));
        Arc::new(known)
    }
}

/// Resolves stacks of one recording.
pub struct StackResolver<'a> {
    timeline: &'a Timeline,
    /// The stacks that are resolved: those of the timeline, or others of its processes.
    pub stacks: &'a RawStacks,
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
            stacks: timeline.stacks(),
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
        let mut codes: HashMap<i32, Arc<CompiledCode>> = HashMap::default();
        let unknown = names.intern("unknown");
        let resolve = |stack: &ProcessStack| {
            let mut all: Vec<UserFrame> = Vec::new();
            let mut addresses: Vec<u64> = self.addresses(stack).collect();
            let tracers = addresses.iter().take_while(|a| self.is_tracers(stack, **a)).count();
            addresses.drain(..tracers);
            addresses.reverse();
            for address in addresses {
                let target = self.targets.get(&(stack.host, stack.pid, stack.space, address)).copied();
                let in_file = match target.unwrap_or(AddressTarget::Elsewhere) {
                    AddressTarget::File(file, address) => Some((file, address)),
                    AddressTarget::Named(name) => {
                        all.push(named_frame(self.timeline.names().get(name), address, names));
                        continue;
                    }
                    AddressTarget::Memory(_) | AddressTarget::Elsewhere => {
                        let code = codes.entry(stack.pid).or_insert_with(|| self.compiled(stack.pid, notices));
                        if let Some(compiled) = code.at(address, stack.code) {
                            let name = names.intern(compiled);
                            all.push(UserFrame { name, folded: false, inlined: false, address });
                            continue;
                        }
                        if let Some(AddressTarget::Memory(in_file)) = target { in_file } else { None }
                    }
                };
                match (in_file, stack.addresses) {
                    (Some((file, address)), _) => {
                        all.extend(found.get(file).and_then(|f| f.get(&address)).into_iter().flatten().copied());
                    }
                    (None, AddressKind::FunctionEntry) => {
                        let name = names.intern(&format!("{address:#x}"));
                        all.push(UserFrame { name, folded: false, inlined: false, address });
                    }
                    (None, AddressKind::Sampled) => {
                        all.push(UserFrame { name: unknown, folded: true, inlined: false, address });
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
        ctx.progress.enter("symbols", files.iter().map(|file| file.addresses.len() as u64).sum());
        in_order(
            ctx,
            files.len(),
            |i| {
                let known = files[i].symbols(self.symbol_paths, self.cache);
                ctx.progress.step(files[i].addresses.len() as u64);
                known
            },
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
                    SymbolFile::Unproved(other) => {
                        notices.add(Notice::SymbolFileForeign, 1, || other.display().to_string())
                    }
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
                if traced_file::is_runtime(path) {
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
        let raw = self.stacks.get(stack.stack).iter().filter(|a| **a != 0 && **a != u64::MAX);
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

    /// The code that a process compiled; a notice where its names cannot be read.
    fn compiled(&self, pid: i32, notices: &mut Notices) -> Arc<CompiledCode> {
        let KnownCode { code, unread } = compiled_files::code(pid, self.symbol_paths, self.cache);
        unread.iter().for_each(|why| notices.add(Notice::SymbolFileMissing, 1, || why.clone()));
        code
    }

    /// Add an address to those of its file.
    fn add_target(&mut self, stack: &ProcessStack, address: u64) {
        let key = (stack.host, stack.pid, stack.space, address);
        let target = match self.targets.get(&key) {
            Some(_) if stack.addresses == AddressKind::Sampled => return,
            Some(known) => *known,
            None => self.target(stack, address),
        };
        if let AddressTarget::File(file, address) | AddressTarget::Memory(Some((file, address))) = target {
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
                mapping: Mapping { extent: Some(extent), reported: self.reported(stack.host, image.path) },
                local: self.to_wall_clock(stack.host).is_some(),
            };
            // The name of memory without a build id is that of no file.
            let path = recorded.path;
            return match is_without_file(path) {
                true if image.build_id.is_none() && is_memory(path) => AddressTarget::Memory(None),
                true => AddressTarget::Memory(Some((self.file(image.path, recorded, count), address))),
                false => AddressTarget::File(self.file(image.path, recorded, count), address),
            };
        }
        // An executable at fixed addresses needs no recorded mapping, only its name.
        let Some(path) = self.spaces.get(id).and_then(|s| s.executable) else { return AddressTarget::Elsewhere };
        let recorded = RecordedFile {
            path: names.get(path),
            local: self.to_wall_clock(stack.host).is_some(),
            ..RecordedFile::default()
        };
        let symbol_paths = self.symbol_paths;
        let span = self.cache.fixed(path, || match traced_file::find(recorded, symbol_paths) {
            SymbolFile::File { main, .. } => elf::fixed_span(&main),
            SymbolFile::Mismatch(_) | SymbolFile::Unproved(_) | SymbolFile::Missing => None,
        });
        match span {
            Some(span) if span.contains(&address) => {
                AddressTarget::File(self.file(path, recorded, AddressBase::Own), address)
            }
            _ => AddressTarget::Elsewhere,
        }
    }

    /// What is added to the times of a host to give wall-clock time, where it is this machine since it started.
    fn to_wall_clock(&self, host: HostId) -> Option<Ns> {
        self.symbol_paths.local.get(&self.timeline.trace_of(host)?).copied()
    }

    /// The wall-clock time, where it is known, of the first report that a file is mapped.
    fn reported(&self, host: HostId, path: NameId) -> Timestamp {
        let reported = self.spaces.first_reported(path);
        self.to_wall_clock(host).map_or(reported, |offset| reported.saturating_add(offset))
    }

    fn file(&mut self, path: NameId, recorded: RecordedFile<'a>, count: AddressBase) -> usize {
        let extent = recorded.mapping.extent.filter(|_| recorded.build_id.is_none());
        let key = FileKey { path, build_id: recorded.build_id, extent, count, local: recorded.local };
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
    if folded.is_none() && traced_file::is_runtime(file) {
        names.mark_runtime(name);
    }
    UserFrame { name, folded: folded.is_some(), inlined: false, address }
}
