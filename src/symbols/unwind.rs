//! User stacks from copies of stack memory (`perf record --call-graph dwarf`).
//!
//! In: registers and some KiB of stack for each sample, and the files that a process had mapped over time. Out: the
//! addresses of its functions, as in a recorded call chain. The image and file of each address are found as for names;
//! the file's table (`.eh_frame`, else `.debug_frame`) gives the caller's registers; in code that no file contains
//! (compiled at run time) frame pointers are followed. A stack ends where its copy does, and where a file or its table
//! is not found: frames farther out are unknown. Each file is opened once, packets are unwound in parallel. Cost: a few
//! hundred nanoseconds for each frame.

use super::cache::SymbolFile;
use super::elf::{LoadSegment, own_address};
use super::files::SymbolPaths;
use super::images::{Image, Spaces};
use super::traced_file::{self, RecordedFile};
use super::unwind_tables::{Section, UnwindTables};
use crate::base::ctx::{Cancelled, Ctx};
use crate::base::cursor::ByteOrder;
use crate::base::names::Names;
use crate::base::parallel::in_order;
use crate::base::time::Timestamp;
use crate::event::host::HostId;
use crate::event::image::ImageChange;
use crate::input::perf::chains::{SampleStack, StackStore};
use crate::input::perf::copies::{Architecture, MapChange, MapEvent, Registers, StackCopy};
use crate::input::{Trace, perf};
use crate::timeline::ImageEvent;
use foldhash::HashMap;
use framehop::aarch64::{CacheAarch64, PtrAuthMask, UnwindRegsAarch64, UnwinderAarch64};
use framehop::x86_64::{CacheX86_64, UnwindRegsX86_64, UnwinderX86_64};
use framehop::{ExplicitModuleSectionInfo, FrameAddress, Module, Unwinder};
use std::sync::{Arc, OnceLock};

/// The most frames of a stack, as many as perf follows frame pointers.
const DEEPEST: usize = 127;
/// A recording by perf has one host.
const HOST: HostId = HostId::at(0);

/// Unwind all stack copies of a recording, once; without copies nothing happens. `number` is that of the trace.
pub fn unwind(trace: &Trace, number: u32, symbol_paths: &SymbolPaths, ctx: &Ctx) -> Result<(), Cancelled> {
    let Some(trace) = trace.as_perf() else { return Ok(()) };
    let Some(architecture) = trace.copied_on().filter(|_| !trace.is_unwound()) else { return Ok(()) };
    let files = (symbol_paths, symbol_paths.local.contains_key(&number));
    match architecture {
        Architecture::X86 => unwind_on::<X86>(trace, architecture, files, ctx),
        Architecture::Arm => unwind_on::<Arm>(trace, architecture, files, ctx),
    }
}

/// The differences between processors.
trait Processor {
    type Unwinder: Unwinder<Module = Module<Arc<[u8]>>> + Default + Send + Sync;
    fn registers(from: &Registers) -> <Self::Unwinder as Unwinder>::UnwindRegs;
    fn cache() -> <Self::Unwinder as Unwinder>::Cache;
    /// A return address without the bits that sign it.
    fn address(signed: u64) -> u64;
}

struct X86;

impl Processor for X86 {
    type Unwinder = UnwinderX86_64<Arc<[u8]>>;

    fn registers(from: &Registers) -> UnwindRegsX86_64 {
        UnwindRegsX86_64::new(from.instruction, from.stack, from.frame)
    }

    fn cache() -> CacheX86_64 {
        CacheX86_64::new()
    }

    fn address(signed: u64) -> u64 {
        signed
    }
}

struct Arm;

impl Processor for Arm {
    type Unwinder = UnwinderAarch64<Arc<[u8]>>;

    fn registers(from: &Registers) -> UnwindRegsAarch64 {
        // User space has 48 bits of address.
        UnwindRegsAarch64::new_with_ptr_auth_mask(PtrAuthMask::new_24_40(), from.link, from.stack, from.frame)
    }

    fn cache() -> CacheAarch64 {
        CacheAarch64::new()
    }

    fn address(signed: u64) -> u64 {
        signed & ((1 << 48) - 1)
    }
}

/// The unwind table of a file, and its loaded parts, which give the address of an offset.
struct Table<U> {
    unwinder: U,
    segments: Vec<LoadSegment>,
}

/// A file as the recording knows it: path and build id.
type FileKey = (String, Option<Box<[u8]>>);

/// The inputs of unwinding.
struct Unwinding<'a, P: Processor> {
    spaces: Spaces,
    names: Names,
    symbol_paths: &'a SymbolPaths,
    /// The recording is of this machine.
    local: bool,
    files: HashMap<FileKey, OnceLock<Option<Table<P::Unwinder>>>>,
    /// For code that no file contains: frame pointers.
    without: P::Unwinder,
}

fn unwind_on<P: Processor>(
    trace: &perf::PerfTrace,
    architecture: Architecture,
    (symbol_paths, local): (&SymbolPaths, bool),
    ctx: &Ctx,
) -> Result<(), Cancelled> {
    let changes = trace.mapped();
    let mut names = Names::default();
    let spaces = Spaces::new(&changes.iter().flat_map(|change| events(change, &mut names)).collect::<Vec<_>>());
    let mut files: HashMap<FileKey, OnceLock<_>> = HashMap::default();
    for change in changes {
        if let MapChange::Map { path, build_id, .. } = change.change {
            files.entry((path, build_id)).or_default();
        }
    }
    let without = P::Unwinder::default();
    let unwinding: Unwinding<'_, P> = Unwinding { spaces, names, symbol_paths, local, files, without };
    let packets = trace.packets_of_copies();
    ctx.progress.enter("unwinding stacks", packets.len() as u64);
    let mut chains = StackStore::default();
    let unwind_packet = |at: usize| {
        let mut cache = P::cache();
        let mut cut = 0;
        let one = |copy: StackCopy<'_>| {
            let UnwoundStack { addresses, is_whole } = unwinding.stack(&copy, &mut cache);
            cut += u64::from(!is_whole);
            SampleStack { at: copy.at, addresses }
        };
        let packet = packets.get(at).copied().unwrap_or_default();
        let stacks: Vec<SampleStack> = trace.copies(packet, architecture).into_iter().map(one).collect();
        ctx.progress.step(1);
        (packet, stacks, cut)
    };
    in_order(ctx, packets.len(), unwind_packet, |_, (packet, stacks, cut)| {
        chains.cut_off += cut;
        // Both processors have their least significant byte first.
        chains.add(packet, stacks, ByteOrder::Little);
    })?;
    trace.unwound(chains);
    Ok(())
}

/// A change as events for the spaces.
fn events(changed: &MapEvent, names: &mut Names) -> Vec<ImageEvent> {
    let event =
        |change| ImageEvent { time: Timestamp::new(changed.clock as i64), host: HOST, pid: changed.pid, change };
    match &changed.change {
        MapChange::Exec => vec![event(ImageChange::Exec { path: names.intern("") })],
        MapChange::Fork { parent } => vec![event(ImageChange::Fork { parent_pid: *parent })],
        MapChange::Map { base, size, offset, path, build_id } => {
            let path = names.intern(path);
            let offset = Some(*offset);
            let load = ImageChange::Load { base: *base, size: *size, path, position_independent: true, offset };
            let id = build_id.clone().map(|id| event(ImageChange::BuildId { base: *base, id }));
            std::iter::once(event(load)).chain(id).collect()
        }
    }
}

/// The addresses of a copied stack.
struct UnwoundStack {
    /// Innermost first.
    addresses: Vec<u64>,
    /// The outermost function was reached.
    is_whole: bool,
}

impl<P: Processor> Unwinding<'_, P> {
    /// Unwind a copied stack.
    fn stack(&self, copy: &StackCopy<'_>, cache: &mut <P::Unwinder as Unwinder>::Cache) -> UnwoundStack {
        let space = self.spaces.at(HOST, copy.pid, Timestamp::new(copy.clock as i64));
        let mut registers = P::registers(&copy.registers);
        let mut read = |address: u64| {
            let at = address.checked_sub(copy.registers.stack).and_then(|at| usize::try_from(at).ok()).ok_or(())?;
            let word = copy.stack.get(at..).and_then(|rest| rest.first_chunk::<8>()).ok_or(())?;
            Ok(u64::from_le_bytes(*word))
        };
        let mut stack = vec![copy.registers.instruction];
        while stack.len() < DEEPEST {
            let first = stack.len() == 1;
            let Some(here) = stack.last().copied() else { break };
            // A return address is after the call.
            let after_call = u64::from(!first);
            let image = space.and_then(|space| self.spaces.image(space, HOST, here.wrapping_sub(after_call)));
            let table = image.and_then(|image| Some((image, self.table(image)?)));
            if image.is_some() && table.is_none() {
                // Without its table the caller is unknown, because most files are built without frame pointers.
                return UnwoundStack { addresses: stack, is_whole: false };
            }
            let own = |image: &Image, table: &Table<P::Unwinder>| {
                let place =
                    here.wrapping_sub(after_call).wrapping_sub(image.base).wrapping_add(image.offset.unwrap_or(0));
                own_address(&table.segments, place).wrapping_add(after_call)
            };
            let (unwinder, at) =
                table.map_or((&self.without, here), |(image, table)| (&table.unwinder, own(image, table)));
            let address = if first {
                Some(FrameAddress::from_instruction_pointer(at))
            } else {
                FrameAddress::from_return_address(at)
            };
            let Some(address) = address else { return UnwoundStack { addresses: stack, is_whole: true } };
            match unwinder.unwind_frame(address, &mut registers, cache, &mut read) {
                Ok(Some(caller)) => stack.push(P::address(caller)),
                Ok(None) => return UnwoundStack { addresses: stack, is_whole: true },
                Err(_) => return UnwoundStack { addresses: stack, is_whole: false },
            }
        }
        UnwoundStack { addresses: stack, is_whole: false }
    }

    fn table(&self, image: &Image) -> Option<&Table<P::Unwinder>> {
        let path = self.names.get(image.path);
        let key = (path.to_owned(), image.build_id.clone());
        self.files.get(&key)?.get_or_init(|| self.open(path, image.build_id.as_deref())).as_ref()
    }

    fn open(&self, path: &str, build_id: Option<&[u8]>) -> Option<Table<P::Unwinder>> {
        // The parts of files that perf records disprove no file; the marks of its names show whether it is proven.
        let wanted = RecordedFile { path, build_id, local: self.local, ..RecordedFile::default() };
        let main = match traced_file::find(wanted, self.symbol_paths) {
            SymbolFile::File { main, .. } => main,
            SymbolFile::Unproved(main) if self.local => main,
            SymbolFile::Unproved(_) | SymbolFile::Mismatch(_) | SymbolFile::Missing => return None,
        };
        let read = UnwindTables::read(&main).ok()?;
        let mut unwinder = P::Unwinder::default();
        let section = |section: Option<Section>| {
            let section =
                section.map(|Section { address, bytes }| (address..address.saturating_add(bytes.len() as u64), bytes));
            section.unzip()
        };
        let (eh_frame_svma, eh_frame) = section(read.eh_frame);
        let (eh_frame_hdr_svma, eh_frame_hdr) = section(read.eh_frame_hdr);
        let info = ExplicitModuleSectionInfo {
            base_svma: read.base,
            eh_frame_svma,
            eh_frame,
            eh_frame_hdr_svma,
            eh_frame_hdr,
            debug_frame: read.debug_frame.map(|section| section.bytes),
            ..ExplicitModuleSectionInfo::default()
        };
        // Addresses are the file's own, wherever a process has mapped it; they are counted in 32 bits.
        let reach = read.base..read.base.saturating_add(u64::from(u32::MAX));
        unwinder.add_module(Module::new(path.to_owned(), reach, read.base, info));
        Some(Table { unwinder, segments: read.segments })
    }
}
