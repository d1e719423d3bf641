//! What the tests, benchmarks and fuzz targets use of `symbols`, under its own paths.

pub use crate::symbols::{AddressKind, ProcessStack, StackResolver, UserFrame};
pub mod cache {
    pub use crate::symbols::cache::SymbolCache;
}
pub mod compiled {
    pub use crate::symbols::compiled::CodeBuilder;
}
pub mod elf {
    pub use crate::symbols::elf::{AddressBase, fixed_span, identity, symbols_at};
}
pub mod files {
    pub use crate::symbols::files::SymbolPaths;
}
pub mod images {
    pub use crate::symbols::images::Spaces;
}
pub mod jitdump {
    pub use crate::symbols::jitdump::read;
}
pub mod perf_map {
    pub use crate::symbols::perf_map::read;
}
pub mod unnamed {
    pub use crate::symbols::unnamed::compiled;
}
