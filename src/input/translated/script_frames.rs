//! The frames of call chains in the text of `perf script`, one a line: `ADDRESS FUNCTION+0xOFFSET (FILE)`.
//!
//! A function is known by its name and its file. Where perf found no function, code of a library is the library as a
//! whole, and code of a program its address in the file. Files in brackets and kernel modules are the kernel. Cost: a
//! look-up of the line in a table; each distinct line is parsed once for each part of the file.

use super::frames::{Frame, Frames};
use super::script_line::word;
use crate::base::text::{copied, with_copy};
use foldhash::HashMap;

/// Addresses from here on are not in a program's file, but where it was loaded.
const LOADED: u64 = 1 << 32;
/// Names in brackets that stand for code in user space.
const USER: [&str; 8] = ["[unknown]", "[vdso]", "[vsyscall]", "[stack]", "[heap]", "[anon", "[uprobes]", "[vectors]"];
/// Endings of the files of kernel modules.
const MODULES: [&str; 4] = [".ko", ".ko.xz", ".ko.gz", ".ko.zst"];

/// The frames of a part of the file.
#[derive(Debug, Default)]
pub(super) struct ScriptFrames<'t> {
    known: HashMap<&'t [u8], Option<Frame>>,
}

impl<'t> ScriptFrames<'t> {
    /// The frame of a line; `None` for a line that is none.
    pub fn frame(&mut self, line: &'t [u8], frames: &mut Frames) -> Option<Frame> {
        let (address, symbol) = word(line);
        if address.is_empty() || !address.iter().all(u8::is_ascii_hexdigit) {
            return None;
        }
        // Without a function the address is part of the frame.
        let key = if symbol.starts_with(b"[unknown]") || !symbol.ends_with(b")") { line } else { symbol };
        *self.known.entry(key).or_insert_with(|| {
            let address = with_copy(address, |digits| u64::from_str_radix(digits, 16).ok())?;
            frame(address, &copied(symbol), frames)
        })
    }
}

fn frame(address: u64, symbol: &str, frames: &mut Frames) -> Option<Frame> {
    let (function, file) = split_file(symbol);
    let function = without_version(without_offset(function));
    let name = file.rsplit('/').next().unwrap_or(file);
    if is_kernel(address, file) {
        // An address that no function is at stays one.
        return Some(match function {
            "" | "[unknown]" => Frame::Kernel(address),
            _ => frames.kernel(function, module_of(file)),
        });
    }
    if !matches!(function, "" | "[unknown]") {
        return Some(frames.user(function, if file == "[unknown]" { "" } else { file }));
    }
    let plain = name.trim_matches(['[', ']']);
    let is_library = file.starts_with('[') || name.contains(".so") || name.starts_with("ld-");
    Some(match plain {
        "" | "unknown" => frames.user("[unknown]", ""),
        _ if is_library || address >= LOADED => frames.user(&format!("[{plain}]"), file),
        _ => frames.user(&format!("{plain}+{address:#x}"), file),
    })
}

/// The function, and the file in the last brackets of the line, which may themselves be in the name of the file.
fn split_file(symbol: &str) -> (&str, &str) {
    let Some(inner) = symbol.strip_suffix(')') else { return (symbol, "") };
    let mut open = 1;
    for (at, byte) in inner.bytes().enumerate().rev() {
        match byte {
            b')' => open += 1,
            b'(' => open -= 1,
            _ => continue,
        }
        if open == 0 {
            let function = symbol.get(..at).unwrap_or("").trim_end();
            let file = inner.get(at + 1..).unwrap_or("");
            return (function, file.strip_suffix(" (deleted)").unwrap_or(file));
        }
    }
    (symbol, "")
}

/// The name without `+0x12`.
fn without_offset(function: &str) -> &str {
    let is_offset = |offset: &str| !offset.is_empty() && offset.bytes().all(|byte| byte.is_ascii_hexdigit());
    match function.rsplit_once("+0x") {
        Some((name, offset)) if is_offset(offset) => name,
        _ => function,
    }
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
        let unknown = |line: &'static str| ScriptFrames::default().frame(line.as_bytes(), &mut Frames::default());
        assert_eq!(unknown("ffffffff81775b9a [unknown] ([unknown])"), Some(Frame::Kernel(0xffff_ffff_8177_5b9a)));
        assert_eq!(name("work.c:12"), None);
        assert_eq!(name(""), None);
    }
}
