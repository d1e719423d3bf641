//! The frames of an address in a file.
//!
//! In: the symbols that a file has at the address. Out: a frame for each function there, outermost first; else one for
//! the whole library, or for the place in the program.

use super::elf::SymbolsAt;
use crate::base::names::{NameId, Names};

/// One function on a user stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct UserFrame {
    pub name: NameId,
    /// The frame is a whole file, or no known file, because no single function was found.
    pub folded: bool,
    /// The compiler inlined it into its caller.
    pub inlined: bool,
    /// The address in it: of the call of the next function, or of the thread in the innermost one.
    pub address: u64,
}

/// True for parts of the kernel that are mapped into every process and have no file.
pub(super) fn is_virtual(path: &str) -> bool {
    path.starts_with('[')
}

/// The symbols of an address in a file.
pub(super) struct ResolvedAddress<'a> {
    pub symbols: &'a SymbolsAt,
    /// The file is the one that was traced.
    pub proven: bool,
    /// A function was entered there.
    pub entered: bool,
}

impl ResolvedAddress<'_> {
    /// The frames at the address.
    pub(super) fn frames(&self, path: &str, address: u64, names: &mut Names) -> Vec<UserFrame> {
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
