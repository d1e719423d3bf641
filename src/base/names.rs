//! Small handles and interned names.
//!
//! A handle is a `u32` newtype made only by its table (ARCHITECTURE.md rule 3). [`Names`] stores each distinct
//! text once, and finds it by a table of ids alone; ids are given in order of first appearance, so equal input order
//! gives equal ids. A table of function names also holds which of them no file proves, and which are functions of the
//! C or C++ runtime. Neither is part of the name: `flush` of a proven file and `flush` of an unproven one are one
//! function, shown as `flush?`.

use super::hashed_ids::HashedIds;
use super::text::with_copy;
use get_size2::GetSize;
use std::borrow::Cow;
use std::collections::BTreeSet;

/// Shown after the name of a function from a file that is not proven to be the traced one.
const UNPROVEN: &str = "?";

/// Declares handles: `u32` newtypes, `Copy` and ordered, that number the entries of one table from 0.
///
/// The field is private, so a number becomes a handle only where the code says so: `at` in the table that makes it,
/// `from_raw` where a handle is read back from a packed column or a file.
macro_rules! handle {
    ($($(#[$doc:meta])* $name:ident),+ $(,)?) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(u32);
        // A table may need some of them only.
        #[allow(dead_code)]
        impl $name {
            /// Position in the table that made the handle, for vectors that run parallel to it.
            #[inline]
            pub const fn index(self) -> usize {
                self.0 as usize
            }
            /// The handle of the entry at `index`; tables hold fewer than 2^32 entries by construction.
            #[inline]
            pub const fn at(index: usize) -> Self {
                Self::from_raw(index as u32)
            }
            /// The position as packed columns and files store it.
            #[inline]
            pub const fn raw(self) -> u32 {
                self.0
            }
            /// The handle whose position a packed column or a file stored.
            #[inline]
            pub const fn from_raw(raw: u32) -> Self {
                $name(raw)
            }
        }
        // It owns no block.
        impl get_size2::GetSize for $name {}
        impl $crate::base::packed::Packed for $name {
            fn pack(&self, pack: &mut $crate::base::pack::Pack) {
                pack.number(self.0.into());
            }
            fn unpack(unpack: &mut $crate::base::pack::Unpack<'_>) -> Option<Self> {
                u32::unpack(unpack).map($name)
            }
        }
    )+};
}
pub(crate) use handle;

handle! {
    /// A text in a [`Names`] table.
    NameId,
}

/// A name with every run of digits folded: `job-17` and `job-4` are both `job-*`.
pub fn fold_digits(name: &str) -> String {
    let mut folded = String::with_capacity(name.len());
    for c in name.chars() {
        if !c.is_ascii_digit() {
            folded.push(c);
        } else if !folded.ends_with('*') {
            folded.push('*');
        }
    }
    folded
}

/// Each distinct text once.
#[derive(Clone, Debug, Default, GetSize)]
pub struct Names {
    texts: Vec<Box<str>>,
    ids: HashedIds<NameId>,
    unproven: BTreeSet<NameId>,
    runtime: BTreeSet<NameId>,
}

impl Names {
    /// An id of no table, for a name that a record lacks; its text is empty.
    pub const MISSING: NameId = NameId(u32::MAX);

    /// The id of `text`, made on first sight.
    pub fn intern(&mut self, text: &str) -> NameId {
        let (texts, next) = (&self.texts, NameId::at(self.texts.len()));
        let id = self.ids.find_or_add(text, |id| texts.get(id.index()).is_some_and(|of| **of == *text), next);
        if id == next {
            self.texts.push(text.into());
        }
        id
    }

    /// The id of a text from a trace, whose bytes that are not UTF-8 are replaced; a new one if it is not known.
    pub fn intern_bytes(&mut self, text: &[u8]) -> NameId {
        with_copy(text, |text| self.intern(text))
    }

    /// The id of `text` if it is known.
    pub fn find(&self, text: &str) -> Option<NameId> {
        self.ids.find(text, |id| self.get(id) == text)
    }

    /// The text of an id; empty for an id of another table.
    pub fn get(&self, id: NameId) -> &str {
        self.texts.get(id.index()).map_or("", |t| t)
    }

    /// Remember that nothing proves the file which gave a function this name.
    pub fn mark_unproven(&mut self, id: NameId) {
        self.unproven.insert(id);
    }

    /// Names that a file gave which nothing proves, ascending.
    pub fn unproven(&self) -> impl ExactSizeIterator<Item = NameId> + '_ {
        self.unproven.iter().copied()
    }

    /// Remember that this is a function of the C or C++ runtime, through which a program waits, copies or allocates.
    pub fn mark_runtime(&mut self, id: NameId) {
        self.runtime.insert(id);
    }

    /// Functions of the C or C++ runtime, ascending.
    pub fn runtime(&self) -> impl ExactSizeIterator<Item = NameId> + '_ {
        self.runtime.iter().copied()
    }

    /// True for a function of the C or C++ runtime.
    pub fn is_runtime(&self, id: NameId) -> bool {
        self.runtime.contains(&id)
    }

    /// True for a program's own function that has a name: false for a file or an address (`[libc.so.6]`,
    /// `server+0x1240`), and for functions of the runtime, whose callers say more. `syscall` of the C library is such a
    /// function where its file is not known either.
    pub fn is_program_function(&self, id: NameId) -> bool {
        let name = self.get(id);
        !name.starts_with('[') && !name.contains("+0x") && name != "syscall" && !self.runtime.contains(&id)
    }

    /// The name of a function as it is shown: `flush`, or `flush?` where nothing proves the file that gave it.
    pub fn function(&self, id: NameId) -> Cow<'_, str> {
        let name = self.get(id);
        if self.unproven.contains(&id) { Cow::Owned(format!("{name}{UNPROVEN}")) } else { Cow::Borrowed(name) }
    }

    /// Number of texts.
    pub fn len(&self) -> usize {
        self.texts.len()
    }

    /// True when there is none.
    pub fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }
}
