//! The place of the pages of a CPU in a trace.dat, and how many of them are a packet.

/// Pages of a packet.
const PAGES: usize = 16;

/// The pages of one CPU of one buffer.
#[derive(Clone, Copy, Debug)]
pub struct CpuPages {
    /// Their place.
    pub at: usize,
    /// Their bytes, as far as the file has them.
    pub bytes: usize,
    /// Bytes of a page.
    pub page: usize,
}

impl CpuPages {
    /// Bytes of a packet.
    pub fn packet(&self) -> usize {
        self.page.saturating_mul(PAGES)
    }
}
