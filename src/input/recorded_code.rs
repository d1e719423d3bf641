//! What a recording says of the code that ran, outside of its records.

use super::ftrace::MappedFile;
use foldhash::HashMap;
use std::sync::Arc;

/// Build ids of files by their paths.
pub type BuildIds = HashMap<Vec<u8>, Vec<u8>>;

/// What a recording says of the code that ran, outside of its records.
#[derive(Clone, Copy, Debug, Default)]
pub struct RecordedCode<'a> {
    /// Kernel symbols as in `/proc/kallsyms`, where the recording holds them.
    pub kernel_symbols: Option<&'a [u8]>,
    /// Symbols of kernel code that was made while recording, as `/proc/kallsyms` lists symbols, each with its end.
    pub kernel_code: &'a str,
    /// Functions on call stacks in user space that are recorded by name: the words of stacks have their numbers
    /// ([`named`](crate::base::named_frames::named)).
    pub frames: Option<&'a Arc<[Box<str>]>>,
    pub build_ids: Option<&'a BuildIds>,
    /// The files that processes had mapped.
    pub mapped_files: &'a [MappedFile],
}
