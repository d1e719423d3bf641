//! The frames of call chains in the text of `perf script`, one a line: `ADDRESS FUNCTION+0xOFFSET (FILE)`.
//!
//! A function is known by its name and its file. Where perf found no function, code of a library is the library as a
//! whole, and code of a program its address in the file. Files in brackets and kernel modules are the kernel. Cost:
//! a comparison with the line that was last at the same place of a table; other lines are split at their brackets, and
//! each distinct function of a file is read once for each part of the file.

use super::frames::{Frame, Frames};
use super::script_line::word;
use crate::base::text::copied;
use foldhash::HashMap;

/// Addresses from here on are not in a program's file, but where it was loaded.
const LOADED: u64 = 1 << 32;
/// Names in brackets that stand for code in user space.
const USER: [&str; 8] = ["[unknown]", "[vdso]", "[vsyscall]", "[stack]", "[heap]", "[anon", "[uprobes]", "[vectors]"];
/// Lines that are at hand.
const PLACES: usize = 1 << 10;
/// The name of a function that perf does not know.
const UNKNOWN: &[u8] = b"[unknown]";
/// Endings of the files of kernel modules.
const MODULES: [&str; 4] = [".ko", ".ko.xz", ".ko.gz", ".ko.zst"];

/// The frames of a part of the file.
#[derive(Debug)]
pub(super) struct ScriptFrames<'t> {
    /// The last line at each place of [`place`], with its frame.
    latest: Vec<Option<(&'t [u8], Frame)>>,
    /// By function and file; by the whole line, where the address is part of the frame.
    known: HashMap<(&'t [u8], &'t [u8]), Frame>,
}

impl Default for ScriptFrames<'_> {
    fn default() -> Self {
        ScriptFrames { latest: vec![None; PLACES], known: HashMap::default() }
    }
}

impl<'t> ScriptFrames<'t> {
    /// Forget all, for another part.
    pub fn clear(&mut self) {
        self.latest.fill(None);
        self.known.clear();
    }

    /// The frame of a line; `None` for a line that is none.
    pub fn frame(&mut self, line: &'t [u8], frames: &mut Frames) -> Option<Frame> {
        let place = place(line);
        match self.latest.get(place) {
            Some(Some((latest, frame))) if *latest == line => return Some(*frame),
            _ => {}
        }
        let frame = self.read(line, frames)?;
        if let Some(latest) = self.latest.get_mut(place) {
            *latest = Some((line, frame));
        }
        Some(frame)
    }

    fn read(&mut self, line: &'t [u8], frames: &mut Frames) -> Option<Frame> {
        let (digits, symbol) = word(line);
        let address = address(digits)?;
        let (function, file) = split_file(symbol);
        let function = without_offset(function);
        let read = || frame(address, &copied(function), &copied(file), frames);
        // Without a file the address shows whether it is the kernel's.
        let is_known = !function.is_empty() && function != UNKNOWN && !file.is_empty();
        Some(*self.known.entry(if is_known { (function, file) } else { (line, b"") }).or_insert_with(read))
    }
}

/// The place of a line by its first bytes, which are its address.
fn place(line: &[u8]) -> usize {
    let half =
        |at: usize| line.get(at..).and_then(|bytes| bytes.first_chunk()).map_or(0, |bytes| u64::from_le_bytes(*bytes));
    let mixed = (half(0) ^ half(8).rotate_left(29)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 32) as usize % PLACES
}

/// A number of hexadecimal digits.
fn address(digits: &[u8]) -> Option<u64> {
    let step = |address: u64, byte: &u8| {
        let digit = match byte {
            b'0'..=b'9' => byte - b'0',
            b'a'..=b'f' => byte - b'a' + 10,
            b'A'..=b'F' => byte - b'A' + 10,
            _ => return None,
        };
        (address >> 60 == 0).then_some(address << 4 | u64::from(digit))
    };
    if digits.is_empty() { None } else { digits.iter().try_fold(0, step) }
}

fn frame(address: u64, function: &str, file: &str, frames: &mut Frames) -> Frame {
    let function = without_version(function);
    let name = file.rsplit('/').next().unwrap_or(file);
    if is_kernel(address, file) {
        // An address that no function is at stays one.
        return match function {
            "" | "[unknown]" => Frame::Kernel(address),
            _ => frames.kernel(function, module_of(file)),
        };
    }
    if !matches!(function, "" | "[unknown]") {
        return frames.user(function, if file == "[unknown]" { "" } else { file });
    }
    let plain = name.trim_matches(['[', ']']);
    let is_library = file.starts_with('[') || name.contains(".so") || name.starts_with("ld-");
    match plain {
        "" | "unknown" => frames.user("[unknown]", ""),
        _ if is_library || address >= LOADED => frames.user(&format!("[{plain}]"), file),
        _ => frames.user(&format!("{plain}+{address:#x}"), file),
    }
}

/// The function, and the file in the last brackets of the line, which may themselves be in the name of the file.
fn split_file(symbol: &[u8]) -> (&[u8], &[u8]) {
    let Some(inner) = symbol.strip_suffix(b")") else { return (symbol, b"") };
    let split = |at: usize| {
        let (function, file) = (inner.get(..at).unwrap_or(b""), inner.get(at + 1..).unwrap_or(b""));
        (function.trim_ascii_end(), file.strip_suffix(b" (deleted)").unwrap_or(file))
    };
    let mut closed = 0usize;
    for at in memchr::memrchr2_iter(b'(', b')', inner) {
        match inner.get(at) {
            Some(b')') => closed += 1,
            _ if closed == 0 => return split(at),
            _ => closed -= 1,
        }
    }
    (symbol, b"")
}

/// The name without `+0x12`.
fn without_offset(function: &[u8]) -> &[u8] {
    let cut = |plus: usize| {
        let digits = function.get(plus..)?.strip_prefix(b"+0x")?;
        let is_offset = !digits.is_empty() && digits.iter().all(u8::is_ascii_hexdigit);
        function.get(..plus).filter(|_| is_offset)
    };
    memchr::memrchr(b'+', function).and_then(cut).unwrap_or(function)
}

/// The name without the version of a dynamic symbol (`@GLIBC_2.2.5`); `@plt` is part of it.
fn without_version(function: &str) -> &str {
    let is_version = |version: &str| version.starts_with(|c: char| c.is_ascii_uppercase() || c == '@');
    match function.split_once('@') {
        Some((name, version)) if !name.is_empty() && is_version(version) => name,
        _ => function,
    }
}

fn is_kernel(address: u64, file: &str) -> bool {
    match file.starts_with('[') {
        true if USER.iter().any(|user| file.starts_with(user)) => file == "[unknown]" && address >> 63 == 1,
        true => true,
        false => MODULES.iter().any(|end| file.ends_with(end)) || (file.is_empty() && address >> 63 == 1),
    }
}

/// The name of a module as `/proc/kallsyms` has it; empty for the kernel itself.
fn module_of(file: &str) -> &str {
    let name = file.rsplit('/').next().unwrap_or(file);
    let plain = name.trim_start_matches('[').split([']', '.']).next().unwrap_or("");
    if matches!(plain, "kernel" | "guest" | "unknown") { "" } else { plain }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::names::NameId;

    /// The name of a line's frame, and whether it is in the kernel.
    fn name(line: &str) -> Option<(String, bool)> {
        let mut frames = Frames::default();
        let frame = ScriptFrames::default().frame(line.as_bytes(), &mut frames)?;
        match frame {
            Frame::User(id) => {
                assert_eq!(id, NameId::at(0));
                frames.names().next().map(|name| (name.into(), false))
            }
            Frame::Kernel(_) => {
                let symbols = String::from_utf8(frames.kernel_symbols()).unwrap();
                symbols.lines().find_map(|line| line.split_once(" t ")).map(|(_, name)| (name.to_owned(), true))
            }
        }
    }

    #[test]
    fn frames_have_the_names_that_perf_prints() {
        for (line, expected, kernel) in [
            ("1153 parse+0x1a (/tmp/work)", "parse\t/tmp/work", false),
            ("1153 parse (/tmp/a (b)/work)", "parse\t/tmp/a (b)/work", false),
            ("1153 parse (/tmp/work (deleted))", "parse\t/tmp/work", false),
            ("1153 a::operator()(int) const+0x3 (/tmp/work)", "a::operator()(int) const\t/tmp/work", false),
            ("1153 a+0x3", "a", false),
            ("1153 nanosleep@@GLIBC_2.2.5+0x3 (/lib/libc.so.6)", "nanosleep\t/lib/libc.so.6", false),
            ("1153 malloc@plt (/bin/app)", "malloc@plt\t/bin/app", false),
            ("1153 [unknown] (/tmp/work)", "work+0x1153\t/tmp/work", false),
            ("55c901a45153 [unknown] (/tmp/work)", "[work]\t/tmp/work", false),
            ("7f00 [unknown] (/lib/libc.so.6)", "[libc.so.6]\t/lib/libc.so.6", false),
            ("7f00 [unknown] ([vdso])", "[vdso]\t[vdso]", false),
            ("7f00 [unknown] ([unknown])", "[unknown]", false),
            ("7f00 parse (inlined)", "parse\tinlined", false),
            ("ffffffff81775b9a elf_load+0x28a ([kernel.kallsyms])", "elf_load", true),
            ("ffffffff81775b9a elf_load+0x28a", "elf_load", true),
            ("ffffffffc0775b9a ext4_x+0x28a ([ext4])", "ext4_x [ext4]", true),
            ("1b9a ext4_x+0x28a (/lib/modules/6.1/ext4.ko.xz)", "ext4_x [ext4]", true),
        ] {
            assert_eq!(name(line), Some((expected.to_owned(), kernel)), "{line}");
        }
        // Two lines with one place in the table.
        let (mut reader, mut frames) = (ScriptFrames::default(), Frames::default());
        let mut of = |line: &'static str| reader.frame(line.as_bytes(), &mut frames);
        let [a, b] = ["1153 parse_config+0x1a (/a)", "1153 parse_config+0x1a (/b)"];
        assert!(place(a.as_bytes()) == place(b.as_bytes()) && of(a) != of(b) && of(a) == of(a) && of(a) != of(b));
        let unknown = |line: &'static str| ScriptFrames::default().frame(line.as_bytes(), &mut Frames::default());
        assert_eq!(unknown("ffffffff81775b9a [unknown] ([unknown])"), Some(Frame::Kernel(0xffff_ffff_8177_5b9a)));
        assert_eq!(name("work.c:12"), None);
        assert_eq!(name(""), None);
    }
}
