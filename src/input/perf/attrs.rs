//! The attrs of a recording, with the layouts of their samples: which attr a sample is of.
//!
//! In: the attrs. Out: the attr of a sample or of another record, by the id in it, where there are several. All attrs
//! of a recording have that id at the same place (`perf_event.h`, PERF_SAMPLE_IDENTIFIER). Cost: a look-up for each
//! record.

use super::attr::{Attr, FIXED, ID, IDENTIFIER, TRAILER};
use super::sample::SampleLayout;
use crate::base::cursor::{ByteOrder, bits};
use foldhash::HashMap;

/// Finds the attr of a record.
#[derive(Clone, Debug)]
pub struct Attrs {
    /// By attr.
    pub layouts: Vec<SampleLayout>,
    /// The places of the id, where records have one.
    id: Option<IdPlace>,
    by_id: HashMap<u64, u16>,
    pub(super) byte_order: ByteOrder,
}

/// The places of the id in records.
#[derive(Clone, Copy, Debug)]
struct IdPlace {
    /// Its offset in a sample.
    in_sample: usize,
    /// Its distance from the end of any other record.
    from_end: usize,
}

impl Attrs {
    /// A table of attrs, at most 65,536.
    pub fn new(attrs: &[Attr], byte_order: ByteOrder) -> Attrs {
        let all = |part: u64| attrs.iter().all(|a| a.sample_type & part != 0);
        let first = attrs.first().map_or(0, |a| a.sample_type);
        let id = if all(IDENTIFIER) {
            Some(IdPlace { in_sample: 0, from_end: 8 })
        } else if all(ID) {
            // The kernel requires that the parts before the id are the same in all attrs.
            let before = FIXED.iter().take_while(|p| **p != ID).filter(|p| first & **p != 0).count();
            let after = TRAILER.iter().skip_while(|p| **p != ID).filter(|p| first & **p != 0).count();
            Some(IdPlace { in_sample: before * 8, from_end: after * 8 })
        } else {
            None
        };
        let mut by_id = HashMap::default();
        for (i, attr) in attrs.iter().enumerate().take(1 << 16) {
            by_id.extend(attr.ids.iter().map(|id| (*id, i as u16)));
        }
        Attrs {
            layouts: attrs.iter().map(SampleLayout::of).collect(),
            id: id.filter(|_| attrs.len() > 1),
            by_id,
            byte_order,
        }
    }

    /// The attr of a sample.
    #[inline(always)]
    pub fn of_sample(&self, sample: &[u8]) -> Option<usize> {
        match self.id {
            None => (!self.layouts.is_empty()).then_some(0),
            Some(IdPlace { in_sample, .. }) => {
                let id = bits(sample, in_sample as u64 * 8, 64, self.byte_order)?;
                self.by_id.get(&id).map(|i| usize::from(*i))
            }
        }
    }

    /// True where samples name their CPU.
    pub fn name_cpus(&self) -> bool {
        self.layouts.iter().any(SampleLayout::names_cpu)
    }

    /// The layout that describes the end of a record that is no sample.
    pub fn of_record(&self, body: &[u8]) -> Option<&SampleLayout> {
        let by_id = || {
            let at = body.len().checked_sub(self.id?.from_end)?;
            self.layouts.get(usize::from(*self.by_id.get(&bits(body, at as u64 * 8, 64, self.byte_order)?)?))
        };
        // Records that perf synthesised may have the id 0.
        by_id().or_else(|| self.layouts.first())
    }
}
