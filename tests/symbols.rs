//! From addresses to names over real files: separate debug files by link and by build id, never the name of another
//! build, perf maps, the tracer's own frames, and a file read once for all of its addresses.

use crate::support::elf;
use elf::{Elf, SIZE, TEXT, checksum};
use std::path::Path;
use whyslow::parts::base::ctx::Ctx;
use whyslow::parts::base::names::Names;
use whyslow::parts::base::notice::{Notice, Notices};
use whyslow::parts::base::time::{Ns, Timestamp};
use whyslow::parts::event::host::{HostId, TraceOrigin};
use whyslow::parts::event::image::ImageChange;
use whyslow::parts::event::prev_state::Generation;
use whyslow::parts::symbols::cache::SymbolCache;
use whyslow::parts::symbols::files::SymbolPaths;
use whyslow::parts::symbols::images::Spaces;
use whyslow::parts::symbols::{AddressKind, ProcessStack, StackResolver};
use whyslow::parts::timeline::{ImageEvent, TimelineDraft};

const HOST: HostId = HostId::at(0);
const ID: &[u8] = b"a build id of twenty";
const OTHER: &[u8] = b"of another build: no";
/// The base of image mappings; each image is mapped at its own multiple.
const BASE: u64 = 0x7f00_0000_0000;
/// The time at which images are mapped: in the year 2100, so that files which a test writes are older.
const MAPPED: Ns = 4_102_444_800_000_000_000;

/// A process with mapped files, and its stacks.
#[derive(Default)]
struct Process {
    recording: TimelineDraft,
    images: u64,
}

impl Process {
    /// Map a file; gives its base.
    fn map(&mut self, pid: i32, path: &str, id: Option<&[u8]>, link: Option<(&str, u32)>) -> u64 {
        self.map_of(TEXT + SIZE, MAPPED, pid, path, id, link)
    }

    /// Map this many bytes of a file at a time.
    fn map_of(
        &mut self,
        size: u64,
        time: Ns,
        pid: i32,
        path: &str,
        id: Option<&[u8]>,
        link: Option<(&str, u32)>,
    ) -> u64 {
        let base = BASE + self.images * 0x10_0000;
        self.images += 1;
        let names = &mut self.recording.tables.names;
        let path = names.intern(path);
        let mut changes = vec![ImageChange::Load { base, size, path, position_independent: true, offset: None }];
        changes.extend(id.map(|id| ImageChange::BuildId { base, id: id.into() }));
        changes.extend(link.map(|(file, crc)| ImageChange::DebugLink { base, file: names.intern(file), crc }));
        let event = |change| ImageEvent { time: Timestamp::new(time), host: HOST, pid, change };
        self.recording.tables.images.extend(changes.into_iter().map(event));
        base
    }

    /// The functions of a stack given innermost first, outermost first; and the notices.
    fn names(&mut self, pid: i32, stack: &[u64], places: &SymbolPaths) -> (Vec<String>, Notices) {
        self.names_with(&SymbolCache::default(), pid, stack, places)
    }

    /// The same, knowing what was found before.
    fn names_with(
        &mut self,
        cache: &SymbolCache,
        pid: i32,
        stack: &[u64],
        places: &SymbolPaths,
    ) -> (Vec<String>, Notices) {
        let stack = self.recording.tables.stacks.intern(stack);
        let spaces = Spaces::new(&self.recording.tables.images);
        let placed = ProcessStack {
            host: HOST,
            pid,
            space: spaces.at(HOST, pid, Timestamp::new(MAPPED)),
            code: Timestamp::default(),
            stack,
            addresses: AddressKind::Sampled,
        };
        let (mut names, mut notices) = (Names::default(), Notices::default());
        let timeline = self.recording.clone().seal();
        let resolver = StackResolver::new(&timeline, &spaces, places, cache);
        let found = resolver.resolve(&[placed], &mut names, &mut notices, &Ctx::new(1)).unwrap();
        (found[0].iter().map(|f| names.function(f.name).into_owned()).collect(), notices)
    }
}

fn places(folder: &Path) -> SymbolPaths {
    SymbolPaths { folders: vec![folder.to_owned()], ..SymbolPaths::default() }
}

fn write(path: &Path, elf: &Elf) -> Vec<u8> {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let bytes = elf.bytes();
    std::fs::write(path, &bytes).unwrap();
    bytes
}

/// With its names, or stripped of them.
fn library() -> Elf {
    Elf::default().id(ID).function(TEXT + 0x100, 0x80, "flush").function(TEXT + 0x200, 0x80, "append")
}

fn stripped() -> Elf {
    Elf { symbols: Vec::new(), ..library() }
}

/// Inside `append`, called from `flush`.
fn stack(base: u64) -> [u64; 2] {
    [base + TEXT + 0x240, base + TEXT + 0x130]
}

#[test]
fn names_hold_within_the_size_of_their_symbol() {
    let folder = tempfile::tempdir().unwrap();
    write(&folder.path().join("libstore.so"), &library());
    let mut process = Process::default();
    let base = process.map(7, "/opt/lib/libstore.so", Some(ID), None);
    let (names, notices) = process.names(7, &stack(base), &places(folder.path()));
    assert_eq!(names, ["flush", "append"]);
    assert!(notices.is_empty());
    // Behind the end of `flush` no function is known: its name would be wrong.
    let (names, _) = process.names(7, &[base + TEXT + 0x1c0], &places(folder.path()));
    assert_eq!(names, ["libstore.so"]);
    // A return address at the end of a function belongs to that function.
    let (names, _) = process.names(7, &[base + TEXT + 0x200, base + TEXT + 0x180], &places(folder.path()));
    assert_eq!(names, ["flush", "append"]);
}

#[test]
fn debug_link_is_followed_to_all_places_of_debug_files() {
    let debug = Elf { debug: true, build_id: None, ..library() };
    let crc = checksum(&debug.bytes());
    for (place, recorded) in [
        ("opt/lib/store.debug", false),
        ("opt/lib/.debug/store.debug", false),
        ("store.debug", false),
        ("store.debug", true),
    ] {
        let folder = tempfile::tempdir().unwrap();
        // The link is in the file, or, where it was stripped of that too, in the recording.
        let link = Some(("store.debug".to_owned(), crc));
        let main = Elf { debug_link: link.filter(|_| !recorded), build_id: None, ..stripped() };
        write(&folder.path().join("opt/lib/libstore.so"), &main);
        write(&folder.path().join(place), &debug);
        let mut process = Process::default();
        let base = process.map(7, "/opt/lib/libstore.so", None, recorded.then_some(("store.debug", crc)));
        let (names, _) = process.names(7, &stack(base), &places(folder.path()));
        assert_eq!(names, ["flush", "append"], "{place}, recorded {recorded}");
    }
}

#[test]
fn debug_file_of_another_build_is_rejected() {
    let other = Elf { debug: true, ..library() }.id(OTHER);
    let crc = checksum(&other.bytes());
    let folder = tempfile::tempdir().unwrap();
    // By checksum it fits, by build id not; and one is filed under the right build id.
    write(&folder.path().join("libstore.so"), &Elf { debug_link: Some(("store.debug".into(), crc)), ..stripped() });
    write(&folder.path().join("store.debug"), &other);
    let hex: String = ID[1..].iter().map(|b| format!("{b:02x}")).collect();
    write(&folder.path().join(format!(".build-id/{:02x}/{hex}.debug", ID[0])), &other);
    let mut process = Process::default();
    let base = process.map(7, "/opt/lib/libstore.so", Some(ID), None);
    assert_eq!(process.names(7, &stack(base), &places(folder.path())).0, ["libstore.so"]);
    // The right one is.
    write(&folder.path().join(format!(".build-id/{:02x}/{hex}.debug", ID[0])), &Elf { debug: true, ..library() });
    assert_eq!(process.names(7, &stack(base), &places(folder.path())).0, ["flush", "append"]);
    // A damaged checksum is not believed where build ids do not decide.
    let bare = tempfile::tempdir().unwrap();
    let main = Elf { debug_link: Some(("store.debug".into(), crc ^ 1)), build_id: None, ..stripped() };
    write(&bare.path().join("libstore.so"), &main);
    write(&bare.path().join("store.debug"), &Elf { build_id: None, ..other });
    assert_eq!(process.names(7, &stack(base), &places(bare.path())).0, ["libstore.so"]);
}

#[test]
fn other_build_gives_a_notice_and_no_names() {
    let folder = tempfile::tempdir().unwrap();
    write(&folder.path().join("server"), &library().id(OTHER));
    let mut process = Process::default();
    let base = process.map(7, "/srv/server", Some(ID), None);
    let (names, notices) = process.names(7, &stack(base), &places(folder.path()));
    assert_eq!(names, ["server+0x112f", "server+0x1240"]);
    assert_eq!(notices.count(Notice::SymbolFileMismatch), 1);
    assert!(notices.sentences()[0].contains("build ids differ"));
    // The very file elsewhere under the same name is found.
    write(&folder.path().join("srv/server"), &library());
    let (names, notices) = process.names(7, &stack(base), &places(folder.path()));
    assert_eq!(names, ["flush", "append"]);
    assert!(notices.is_empty());
}

/// Without a build id, size and time decide whether a file is the traced one; if they leave a doubt, its names are
/// marked; with another size it gives no names.
#[test]
fn file_without_a_build_id_is_checked_by_size_and_time() {
    let folder = tempfile::tempdir().unwrap();
    write(&folder.path().join("server"), &library());
    let asked = |size, time, link| {
        let mut process = Process::default();
        let base = process.map_of(size, time, 7, "/srv/server", None, link);
        let (names, notices) = process.names(7, &stack(base), &places(folder.path()));
        let counts = [Notice::SymbolFileUnproved, Notice::SymbolFileMismatch].map(|n| notices.count(n));
        (names.join(" "), counts)
    };
    let (same, marked, none) = ("flush append", "flush? append?", "server+0x112f server+0x1240");
    assert_eq!(asked(TEXT + SIZE, MAPPED, None), (same.to_owned(), [0, 0]));
    // It was changed since, or that is not known: the recording's clock has no date, or no size was recorded.
    for (size, time) in [(TEXT + SIZE, 1_500_000_000_000_000_000), (TEXT + SIZE, 77_000_000_000), (0, MAPPED)] {
        assert_eq!(asked(size, time, None), (marked.to_owned(), [1, 0]), "{size:#x} at {time}");
    }
    assert_eq!(asked(TEXT + SIZE + 8, MAPPED, None), (none.to_owned(), [0, 1]));
    // The checksum of its debug file proves it as a build id does.
    write(&folder.path().join("server"), &Elf { debug_link: Some(("server.debug".into(), 77)), ..library() });
    assert_eq!(asked(TEXT + SIZE, 77, Some(("server.debug", 77))), (same.to_owned(), [0, 0]));
    assert_eq!(asked(TEXT + SIZE, 77, Some(("server.debug", 78))), (marked.to_owned(), [1, 0]));
}

#[test]
fn code_of_a_runtime_is_named_by_its_own_process_map() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("perf-7.map"), "40000 100 render\n40100 20 parse\n").unwrap();
    std::fs::write(folder.path().join("perf-8.map"), "40000 100 sweep\n").unwrap();
    let beside = SymbolPaths { beside: vec![folder.path().to_owned()], ..SymbolPaths::default() };
    let mut process = Process::default();
    assert_eq!(process.names(7, &[0x40110, 0x40010], &beside).0, ["render", "parse"]);
    assert_eq!(process.names(8, &[0x40110, 0x40010], &beside).0, ["sweep", "unknown"]);
    assert_eq!(process.names(9, &[0x40010], &beside).0, ["unknown"]);
    // Only regular files are opened.
    std::fs::create_dir(folder.path().join("perf-9.map")).unwrap();
    assert_eq!(process.names(9, &[0x40010], &beside).0, ["unknown"]);
}

/// perf records memory for compiled code as a mapping that has no file.
#[test]
fn code_in_memory_is_named_by_map_and_dump() {
    let folder = tempfile::tempdir().unwrap();
    let beside = SymbolPaths { beside: vec![folder.path().to_owned()], ..SymbolPaths::default() };
    for memory in ["//anon", "[anon:JIT]", "/memfd:doublemapper (deleted)", "/dev/zero"] {
        let mut process = Process::default();
        let base = process.map(7, memory, None, None);
        let map = format!("{:x} 40 render\n", base + 0x100);
        std::fs::write(folder.path().join("perf-7.map"), map).unwrap();
        let (names, notices) = process.names(7, &[base + 0x110, base + 0x800], &beside);
        assert_eq!((names.join(" "), notices.is_empty()), ("unknown render".to_owned(), true), "{memory}");
    }
    // A file that was deleted is still asked, where its build id proves it.
    write(&folder.path().join("server"), &Elf { build_id: Some(ID.to_vec()), ..library() });
    let mut process = Process::default();
    let base = process.map(9, "/srv/server (deleted)", Some(ID), None);
    assert_eq!(process.names(9, &stack(base), &places(folder.path())).0, ["flush", "append"]);
}

/// A file at the recorded path that the user did not name gives names only if it is proved.
#[test]
fn recorded_path_gives_no_name_without_proof() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("server");
    write(&path, &library());
    let names = |places: &SymbolPaths, size, id| {
        let mut process = Process::default();
        process.recording.tables.traces = vec![TraceOrigin { host: HOST, kernel: true, generation: Generation::New }];
        let base = process.map_of(size, MAPPED, 7, path.to_str().unwrap(), id, None);
        let (names, notices) = process.names(7, &stack(base), places);
        (names.join(" "), notices.count(Notice::SymbolFileForeign))
    };
    let local = SymbolPaths { local: [(0, 0)].into(), ..SymbolPaths::default() };
    let none = "server+0x112f server+0x1240".to_owned();
    assert_eq!(names(&SymbolPaths::default(), TEXT + SIZE, None), (none.clone(), 1), "of another host");
    assert_eq!(names(&local, TEXT + SIZE, None), ("flush append".to_owned(), 0));
    // Without a size nothing is proved, and another size is another file.
    assert_eq!(names(&local, 0, None), (none.clone(), 1));
    assert_eq!(names(&local, TEXT + SIZE + 8, None), (none, 0));
    // The times of a recording by a clock without a date are made wall-clock times.
    let early = SymbolPaths { local: [(0, -MAPPED)].into(), ..SymbolPaths::default() };
    assert_eq!(names(&early, TEXT + SIZE, None).1, 1);
    write(&path, &Elf { build_id: Some(ID.to_vec()), ..library() });
    assert_eq!(names(&SymbolPaths::default(), TEXT + SIZE, Some(ID)), ("flush append".to_owned(), 0));
}

#[test]
fn frames_of_the_tracer_and_its_profiler_are_dropped() {
    let folder = tempfile::tempdir().unwrap();
    write(&folder.path().join("libstore.so"), &library());
    let profiler = Elf::default().function(TEXT, 0x100, "on_signal");
    write(&folder.path().join("liblttng-profile.so.0"), &profiler);
    write(&folder.path().join("libc.so.6"), &Elf::default().function(TEXT, 0x100, "__restore_rt"));
    let mut process = Process::default();
    let program = process.map(7, "/opt/lib/libstore.so", None, None);
    let tracer = process.map(7, "/usr/lib/liblttng-profile.so.0", None, None);
    let libc = process.map(7, "/usr/lib/libc.so.6", None, None);
    let [inner, outer] = stack(program);
    let all = places(folder.path());
    let sampled = [tracer + TEXT + 8, tracer + TEXT + 16, libc + TEXT + 8, inner, outer];
    assert_eq!(process.names(7, &sampled, &all).0, ["flush", "append"]);
    // A handler of the program's own is not the tracer's.
    let own = process.names(7, &[inner, libc + TEXT + 8, outer], &all).0;
    assert_eq!(own, ["flush", "__restore_rt", "append"]);
    // The tracer in the middle of a stack is part of the program.
    let inside = process.names(7, &[inner, tracer + TEXT + 16, outer], &all).0;
    assert_eq!(inside, ["flush", "on_signal", "append"]);
}

#[test]
fn file_is_opened_again_only_for_new_addresses() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("lib/libx.so");
    write(&file, &library());
    let mut process = Process::default();
    let base = process.map(1, "/lib/libx.so", Some(ID), None);
    let (cache, places) = (SymbolCache::default(), places(folder.path()));
    let [flush, append] = [base + TEXT + 0x110, base + TEXT + 0x210];
    assert_eq!(process.names_with(&cache, 1, &[flush], &places).0, ["flush"]);
    // Another function of the same file.
    assert_eq!(process.names_with(&cache, 1, &[append], &places).0, ["append"]);
    assert_eq!(process.names_with(&cache, 1, &[append + 1, flush + 1], &places).0, ["flush", "append"]);
    std::fs::remove_file(&file).unwrap();
    let (names, notices) = process.names_with(&cache, 1, &[append + 1, flush + 1], &places);
    assert!(names == ["flush", "append"] && notices.is_empty(), "{names:?}");
    assert_eq!(process.names(1, &[flush], &places).0, ["libx.so"], "nothing else knows it");
}

/// Bytes that this thread has read from files so far; `None` where the kernel does not count them.
fn read_so_far() -> Option<u64> {
    let counts = std::fs::read_to_string("/proc/thread-self/io").ok()?;
    counts.lines().find_map(|line| line.strip_prefix("rchar: "))?.parse().ok()
}

/// Name `count` distinct addresses of this very program, debug information and all; gives the bytes read for it.
fn read_to_name(count: u64) -> Option<u64> {
    use object::{Object, ObjectSection, ObjectSegment};
    let path = std::env::current_exe().unwrap();
    let data = std::fs::read(&path).unwrap();
    let file = object::File::parse(&*data).unwrap();
    let text = file.section_by_name(".text").unwrap();
    let addresses: Vec<u64> = (0..count).map(|i| text.address() + text.size() * i / count).collect();
    let mut process = Process::default();
    let base = 0x5555_0000_0000;
    let path = process.recording.tables.names.intern(path.to_str().unwrap());
    let size = file.segments().map(|s| s.address() + s.size()).max().unwrap();
    let change = ImageChange::Load { base, size, path, position_independent: true, offset: None };
    process.recording.tables.images.push(ImageEvent { time: Timestamp::ZERO, host: HOST, pid: 7, change });
    let stacks: Vec<_> = addresses.iter().map(|a| process.recording.tables.stacks.intern(&[base + a])).collect();
    let spaces = Spaces::new(&process.recording.tables.images);
    let space = spaces.at(HOST, 7, Timestamp::ZERO);
    let placed: Vec<ProcessStack> = stacks
        .iter()
        .map(|s| ProcessStack {
            host: HOST,
            pid: 7,
            space,
            code: Timestamp::default(),
            stack: *s,
            addresses: AddressKind::Sampled,
        })
        .collect();
    let (places, mut names, mut notices) = (SymbolPaths::default(), Names::default(), Notices::default());
    let cache = SymbolCache::default();
    let timeline = process.recording.clone().seal();
    let resolver = StackResolver::new(&timeline, &spaces, &places, &cache);
    let before = read_so_far();
    let found = resolver.resolve(&placed, &mut names, &mut notices, &Ctx::new(1)).unwrap();
    let read = read_so_far().zip(before).map(|(after, before)| after - before);
    let named = found.iter().filter(|f| f.first().is_some_and(|f| !f.folded)).count();
    assert!(named as u64 > count * 9 / 10, "{named} of {count} have names");
    read
}

/// A file is read once, for however many addresses: ten times as many cost no more than what describes their functions.
#[test]
fn file_is_read_once_for_100_000_addresses() {
    let (few, many) = (read_to_name(10_000), read_to_name(100_000));
    let own = std::env::current_exe().unwrap().metadata().unwrap().len();
    if let Some((few, many)) = few.zip(many) {
        assert!(few > 0 && many < few * 2 && many < own * 2, "{few} and {many} bytes read of a file of {own}");
    }
}
