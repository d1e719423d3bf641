//! The files that a process has mapped, over time.
//!
//! In: image changes of all processes, sorted by time. Out: *spaces*, each the images of one process between two
//! changes that contradict each other, and a look-up from (host, process, time) to its space and from an address in a
//! space to the image that holds it.
//!
//! A tracer lists the images of a process some time after the process began, and again later. So an image is valid in
//! the whole space, also before it was reported: only exec, fork, and a mapping over the addresses of an unmapped one
//! begin a new space. An address that is in no image of a space is searched in the later spaces of the same program, in
//! the earlier ones, and then in the process that forked this one. Cost: a binary search per
//! look-up. ALGORITHMS.md section 5.2.

use super::cache::SymbolCache;
use super::compiled_files::{self, CodeChanges};
use super::elf::DebugLink;
use super::files::SymbolPaths;
use crate::base::names::NameId;
use crate::base::time::Timestamp;
use crate::event::host::HostId;
use crate::event::image::{CODE, ImageChange};
use crate::input::ftrace::MappedFile;
use crate::input::recorded_code::{BuildIds, RecordedCode};
use crate::timeline::{ImageEvent, RecordedTimeline};
use foldhash::HashMap;
use std::collections::{BTreeMap, BTreeSet};

crate::base::names::handle! {
    /// The images of one process over one stretch of time.
    SpaceId,
}

/// The assumed bytes of an image whose size is not recorded (the vdso: two pages on all machines that have one).
const UNSIZED: u64 = 0x2000;
/// Longest chain of forks that is followed to find an image.
const FORK_DEPTH: usize = 32;

/// Add what traces say of files, outside of their records, to the mappings of the processes of their hosts: of each
/// host its [first](crate::timeline::Timeline::trace_of) trace. `code` is by trace.
pub fn add_files(timeline: &mut RecordedTimeline, code: &[RecordedCode<'_>]) {
    let numbered = || timeline.traces().iter().enumerate();
    // The kernel's traces come last, and the first of them.
    let of_kind = |kernel: bool| numbered().rev().filter(move |(_, of)| of.kernel == kernel);
    let first: BTreeMap<HostId, usize> = of_kind(false).chain(of_kind(true)).map(|(at, of)| (of.host, at)).collect();
    let own = numbered().zip(code).filter(|((at, of), _)| first.get(&of.host) == Some(at));
    let hosts: Vec<(HostId, &RecordedCode<'_>)> = own.map(|((_, of), code)| (of.host, code)).collect();
    let ids: BuildIdsByHost<'_> = hosts.iter().filter_map(|(host, code)| Some((*host, code.build_ids?))).collect();
    let mut images = timeline.images().to_vec();
    if !ids.is_empty() {
        images = identified(timeline, images, &ids);
    }
    add_mapped(timeline, &mut images, hosts);
    timeline.set_images(images);
}

type BuildIdsByHost<'a> = HashMap<HostId, &'a BuildIds>;

/// Image changes with the build ids that traces give for files, by their paths.
fn identified(timeline: &RecordedTimeline, images: Vec<ImageEvent>, ids: &BuildIdsByHost<'_>) -> Vec<ImageEvent> {
    let mut identified = Vec::with_capacity(images.len());
    for event in images {
        let id = match &event.change {
            ImageChange::Load { base, path, .. } => {
                let id = ids.get(&event.host).and_then(|ids| ids.get(timeline.names().get(*path).as_bytes()));
                id.map(|id| ImageChange::BuildId { base: *base, id: id.as_slice().into() })
            }
            _ => None,
        };
        let id = id.map(|change| ImageEvent { change, ..event.clone() });
        identified.push(event);
        identified.extend(id);
    }
    identified
}

/// Add the files that traces list for processes, without times: trace-cmd lists them when a process or the recording
/// ends.
fn add_mapped(timeline: &mut RecordedTimeline, images: &mut Vec<ImageEvent>, hosts: Vec<(HostId, &RecordedCode<'_>)>) {
    let time = timeline.span().last_moment();
    for (host, code) in hosts {
        for MappedFile { pid, base, size, path } in code.mapped_files {
            let path = timeline.intern(path);
            let change = ImageChange::Load { base: *base, size: *size, path, position_independent: true, offset: None };
            images.push(ImageEvent { time, host, pid: *pid, change });
        }
    }
    // A stable sort: an exec at the same time comes first.
    images.sort_by_key(|image| image.time);
}

/// A mapped file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// First address.
    pub base: u64,
    /// Bytes.
    pub size: u64,
    /// Path inside the traced machine.
    pub path: NameId,
    /// Addresses in the file are relative to `base`.
    pub position_independent: bool,
    /// File offset of `base`, if the parts of a file were recorded separately.
    pub offset: Option<u64>,
    /// Recorded build id.
    pub build_id: Option<Box<[u8]>>,
    /// The link to its separate debug file.
    pub debug_link: Option<DebugLink<NameId>>,
    unloaded: bool,
}

impl Image {
    /// The end; where only the begin of the code was reported, the latest begin of the next image.
    fn end(&self) -> u64 {
        self.base.saturating_add(if self.size == 0 { UNSIZED } else { self.size })
    }

    /// The end of the addresses that it certainly covers.
    fn certain_end(&self) -> u64 {
        if self.size == CODE { self.base.saturating_add(1) } else { self.end() }
    }
}

/// The images of one process over one stretch of time.
#[derive(Clone, Debug, Default)]
pub struct Space {
    /// The number of the program, counted over the recording: two spaces of one program have equal numbers.
    pub program: u32,
    /// Process id.
    pub pid: i32,
    pub from: Timestamp,
    /// The executable as given to exec, in this process or in the one that forked it.
    pub executable: Option<NameId>,
    forked_from: Option<SpaceId>,
    /// Sorted by base; they do not overlap.
    images: Vec<Image>,
}

impl Space {
    fn image(&self, address: u64) -> Option<&Image> {
        let after = self.images.partition_point(|i| i.base <= address);
        self.images[..after].last().filter(|i| address < i.end())
    }
}

#[derive(Clone, Debug, Default)]
pub struct Spaces {
    spaces: Vec<Space>,
    of_process: HashMap<(HostId, i32), Vec<(Timestamp, SpaceId)>>,
    /// By file the time of the first report that it is mapped.
    reported: HashMap<NameId, Timestamp>,
    code_changes: CodeChanges,
}

impl Spaces {
    /// Build from events sorted by time.
    pub fn new(events: &[ImageEvent]) -> Self {
        let mut spaces = Spaces::default();
        let mut programs = 0;
        for event in events {
            spaces.step(event, &mut programs);
        }
        spaces
    }

    /// Build from events sorted by time, with the times at which processes replaced code that they had compiled.
    pub fn with_code(events: &[ImageEvent], symbol_paths: &SymbolPaths, cache: &SymbolCache) -> Self {
        let mut spaces = Spaces::new(events);
        let pids: BTreeSet<i32> = spaces.of_process.keys().map(|(_, pid)| *pid).collect();
        spaces.code_changes = compiled_files::changes(&pids, symbol_paths, cache);
        spaces
    }

    /// The time since which the compiled code of a process is what it is at `t`.
    pub fn code_since(&self, pid: i32, t: Timestamp) -> Timestamp {
        let Some(times) = self.code_changes.get(&pid) else { return Timestamp::default() };
        let after = times.partition_point(|time| *time <= t);
        // Before the first change code is what it was first.
        after.checked_sub(1).and_then(|before| times.get(before)).copied().unwrap_or(Timestamp::MIN)
    }

    /// The space of a process at `t`; its first one for times before it.
    pub fn at(&self, host: HostId, pid: i32, t: Timestamp) -> Option<SpaceId> {
        let history = self.of_process.get(&(host, pid))?;
        let after = history.partition_point(|(from, _)| *from <= t);
        history.get(after.saturating_sub(1)).map(|(_, s)| *s)
    }

    /// The time of the first report that a file is mapped, by any process; 0 where there is none.
    pub fn first_reported(&self, path: NameId) -> Timestamp {
        self.reported.get(&path).copied().unwrap_or_default()
    }

    /// The times at which a process begins to run another program, in order.
    pub fn programs(&self, host: HostId, pid: i32) -> Vec<Timestamp> {
        let history = self.of_process.get(&(host, pid)).map_or(&[][..], |h| h);
        let program = |(_, id): &(Timestamp, SpaceId)| self.get(*id).map(|s| s.program);
        let changes = history.windows(2).filter(|w| program(&w[0]) != program(&w[1]));
        changes.map(|w| w[1].0).collect()
    }

    /// A space; `None` for an id of another table.
    pub fn get(&self, id: SpaceId) -> Option<&Space> {
        self.spaces.get(id.index())
    }

    /// The paths of the executable and the images of a space.
    pub fn paths(&self, id: SpaceId) -> impl Iterator<Item = NameId> {
        let space = self.get(id).into_iter();
        space.flat_map(|space| space.executable.into_iter().chain(space.images.iter().map(|image| image.path)))
    }

    /// The image that holds an address.
    pub fn image(&self, id: SpaceId, host: HostId, address: u64) -> Option<&Image> {
        let mut at = Some(id);
        for _ in 0..FORK_DEPTH {
            let id = at?;
            let space = self.get(id)?;
            if let Some(image) = space.image(address) {
                return Some(image);
            }
            let of_process = self.of_process.get(&(host, space.pid)).map_or(&[][..], |h| h);
            let same = |s: &&(Timestamp, SpaceId)| self.get(s.1).is_some_and(|s| s.program == space.program);
            let later = of_process.iter().filter(same).filter(|s| s.1 > id);
            let earlier = of_process.iter().rev().filter(same).filter(|s| s.1 < id);
            if let Some(image) = later.chain(earlier).find_map(|s| self.get(s.1)?.image(address)) {
                return Some(image);
            }
            at = space.forked_from;
        }
        None
    }

    fn step(&mut self, event: &ImageEvent, programs: &mut u32) {
        let process = (event.host, event.pid);
        let current = self.of_process.get(&process).and_then(|h| h.last()).map(|(_, s)| *s);
        match &event.change {
            ImageChange::Exec { path } => {
                *programs += 1;
                let space = Space {
                    program: *programs,
                    pid: event.pid,
                    from: event.time,
                    executable: Some(*path),
                    forked_from: None,
                    images: Vec::new(),
                };
                self.begin(event, space);
            }
            ImageChange::Fork { parent_pid } if *parent_pid != event.pid => {
                *programs += 1;
                let forked_from = self.at(event.host, *parent_pid, event.time);
                let executable = forked_from.and_then(|s| self.get(s)).and_then(|s| s.executable);
                let space = Space {
                    program: *programs,
                    pid: event.pid,
                    from: event.time,
                    executable,
                    forked_from,
                    images: Vec::new(),
                };
                self.begin(event, space);
            }
            // A new state dump repeats the mapped images; one that contradicts a space begins a new one by itself.
            ImageChange::Fork { .. } | ImageChange::Restart => {}
            ImageChange::Load { base, size, path, position_independent, offset } => {
                let first = self.reported.entry(*path).or_insert(event.time);
                *first = event.time.min(*first);
                let image = Image {
                    base: *base,
                    size: *size,
                    path: *path,
                    position_independent: *position_independent,
                    offset: *offset,
                    build_id: None,
                    debug_link: None,
                    unloaded: false,
                };
                let id = current.unwrap_or_else(|| {
                    *programs += 1;
                    let space = Space { program: *programs, pid: event.pid, from: event.time, ..Space::default() };
                    self.begin(event, space)
                });
                self.load(id, event, image);
            }
            ImageChange::BuildId { base, id } => {
                if let Some(image) = self.mapped_at(current, *base) {
                    image.build_id = Some(id.clone());
                }
            }
            ImageChange::DebugLink { base, file, crc } => {
                if let Some(image) = self.mapped_at(current, *base) {
                    image.debug_link = Some(DebugLink { name: *file, crc: *crc });
                }
            }
            ImageChange::Unload { base } => {
                if let Some(image) = self.mapped_at(current, *base) {
                    image.unloaded = true;
                }
            }
        }
    }

    fn begin(&mut self, event: &ImageEvent, space: Space) -> SpaceId {
        let id = SpaceId::at(self.spaces.len());
        self.spaces.push(space);
        self.of_process.entry((event.host, event.pid)).or_default().push((event.time, id));
        id
    }

    fn mapped_at(&mut self, space: Option<SpaceId>, base: u64) -> Option<&mut Image> {
        let images = &mut self.spaces.get_mut(space?.index())?.images;
        let at = images.binary_search_by_key(&base, |i| i.base).ok()?;
        images.get_mut(at)
    }

    fn load(&mut self, id: SpaceId, event: &ImageEvent, image: Image) {
        let Some(space) = self.get(id) else { return };
        let overlaps = |i: &&Image| i.base < image.certain_end() && image.base < i.certain_end();
        let mut conflicts = space.images.iter().filter(overlaps).peekable();
        let again = |i: &&Image| i.base == image.base && i.path == image.path && i.size == image.size;
        let id = match conflicts.peek() {
            Some(old) if again(old) => {
                if let Some(old) = self.mapped_at(Some(id), image.base) {
                    old.unloaded = false;
                }
                return;
            }
            Some(_) => {
                let kept = |i: &&Image| !overlaps(i) && !i.unloaded;
                let images = space.images.iter().filter(kept).cloned().collect();
                let next = Space { from: event.time, images, ..space.clone() };
                self.begin(event, next)
            }
            None => id,
        };
        if let Some(space) = self.spaces.get_mut(id.index()) {
            let at = space.images.partition_point(|i| i.base < image.base);
            space.images.insert(at, image);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::timeline_builder::TimelineBuilder;
    use crate::base::time::Ns;
    use crate::event::host::TraceOrigin;
    use crate::event::prev_state::Generation;

    const HOST: HostId = HostId::at(0);

    fn event(time: Ns, pid: i32, change: ImageChange) -> ImageEvent {
        ImageEvent { time: Timestamp::new(time), host: HOST, pid, change }
    }

    fn load(time: Ns, pid: i32, base: u64, path: u32) -> ImageEvent {
        let change = ImageChange::Load {
            base,
            size: 0x1000,
            path: NameId::from_raw(path),
            position_independent: true,
            offset: None,
        };
        event(time, pid, change)
    }

    fn path(spaces: &Spaces, pid: i32, t: Ns, address: u64) -> Option<u32> {
        let space = spaces.at(HOST, pid, Timestamp::new(t))?;
        spaces.image(space, HOST, address).map(|i| i.path.raw())
    }

    #[test]
    fn image_is_valid_before_its_report_but_not_before_exec() {
        let spaces = Spaces::new(&[
            event(0, 7, ImageChange::Exec { path: NameId::at(1) }),
            load(5, 7, 0x4000, 1),
            event(20, 7, ImageChange::Exec { path: NameId::at(2) }),
            load(25, 7, 0x4000, 2),
        ]);
        assert_eq!(path(&spaces, 7, 1, 0x4fff), Some(1));
        assert_eq!(path(&spaces, 7, 21, 0x4fff), Some(2));
        assert_eq!(path(&spaces, 7, 21, 0x5000), None);
        assert_eq!(path(&spaces, 8, 21, 0x4000), None);
    }

    #[test]
    fn add_build_ids_gives_them_to_the_mappings_of_a_file() {
        let mut builder = TimelineBuilder::new(1);
        builder.0.tables.traces = vec![TraceOrigin { host: HOST, kernel: true, generation: Generation::New }];
        let [server, libc] = ["/srv/server", "/lib/libc.so"].map(|path| builder.0.tables.names.intern(path).raw());
        builder.0.tables.images = vec![load(0, 7, 0x4000, server), load(0, 7, 0x9000, libc)];
        let mut timeline = builder.recorded();
        let ids = |path: &[u8], id| -> BuildIds { [(path.to_vec(), id)].into_iter().collect() };
        let (own, other) = (ids(b"/srv/server", vec![1, 2]), ids(b"/lib/libc.so", vec![3]));
        // The second trace is none of the recording's.
        let code = [&own, &other].map(|ids| RecordedCode { build_ids: Some(ids), ..RecordedCode::default() });
        add_files(&mut timeline, &code);
        let spaces = Spaces::new(timeline.images());
        let id = |address| spaces.image(spaces.at(HOST, 7, Timestamp::new(1))?, HOST, address)?.build_id.as_deref();
        assert_eq!((id(0x4000), id(0x9000)), (Some(&[1u8, 2][..]), None));
        assert_eq!(timeline.images().len(), 3);
    }

    #[test]
    fn reused_addresses_begin_a_new_space() {
        let spaces = Spaces::new(&[
            load(0, 7, 0x9000, 9),
            load(0, 7, 0x4000, 1),
            event(10, 7, ImageChange::Unload { base: 0x4000 }),
            load(12, 7, 0x4800, 2),
            load(13, 7, 0x7000, 3),
        ]);
        assert_eq!(path(&spaces, 7, 11, 0x4800), Some(1));
        assert_eq!(path(&spaces, 7, 12, 0x4800), Some(2));
        assert_eq!(path(&spaces, 7, 12, 0x9000), Some(9));
        // Reported later, by another space of the same program.
        assert_eq!(path(&spaces, 7, 1, 0x7000), Some(3));
        assert_eq!(path(&spaces, 7, 12, 0x4100), Some(1));
    }

    #[test]
    fn image_with_only_a_begin_extends_to_the_next_image() {
        let code = |time, base, path| {
            let (position_independent, offset) = (true, None);
            let change =
                ImageChange::Load { base, size: CODE, path: NameId::from_raw(path), position_independent, offset };
            event(time, 7, change)
        };
        let spaces = Spaces::new(&[code(0, 0x4000, 1), code(1, 0x9000, 2), code(5, 0x4000, 1), code(9, 0x4000, 3)]);
        assert_eq!(path(&spaces, 7, 2, 0x8fff), Some(1));
        assert_eq!(path(&spaces, 7, 2, 0x9000), Some(2));
        assert_eq!(path(&spaces, 7, 2, 0x3fff), None);
        assert_eq!(path(&spaces, 7, 9, 0x4800), Some(3));
    }

    #[test]
    fn child_has_its_parents_images_until_exec() {
        let spaces = Spaces::new(&[
            event(0, 7, ImageChange::Exec { path: NameId::at(1) }),
            event(2, 8, ImageChange::Fork { parent_pid: 7 }),
            load(5, 7, 0x4000, 1),
            event(9, 8, ImageChange::Exec { path: NameId::at(2) }),
        ]);
        assert_eq!(path(&spaces, 8, 3, 0x4000), Some(1));
        assert_eq!(path(&spaces, 8, 9, 0x4000), None);
        let child = spaces.get(spaces.at(HOST, 8, Timestamp::new(3)).unwrap()).unwrap();
        assert_eq!(child.executable, Some(NameId::at(1)));
    }
}
