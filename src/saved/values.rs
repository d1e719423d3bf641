//! The values that databases and history files both hold, as bytes.

use crate::base::names::{NameId, Names};
use crate::base::notice::{Notice, Notices};
use crate::base::pack::{Pack, Unpack};
use crate::base::packed::{Packed, packed, packed_variants};
use crate::model::facts::{Facts, Lost, Quality, TraceFacts};
use crate::model::recorded::{Recorded, StackKind};
use crate::model::recorder::TraceRecorder;
use crate::model::{TraceInfo, TraceLevel};

packed! {
    Facts { traces, lost }
    Lost { events, packets, streams }
    TraceFacts { path, format, begin, end, streams, packets, host, clock, event_types, recorded, cost }
    Recorded { host, recorder, events, stacks }
    TraceInfo { label, level, span, recorded }
    Quality { switches, contradictions, gaps, losses, interrupts, clock_error }
}

packed_variants! {
    TraceRecorder { Other, Lttng, Perf, TraceCmd, Dtrace, Etw, Perfetto, ScoreP, Eztrace }
    StackKind { UserAtSwitches, KernelAtSwitches, Samples, ByFramePointer }
    TraceLevel { Machine, MpiRun }
}

/// The name, the count and the first place of each.
impl Packed for Notices {
    fn pack(&self, pack: &mut Pack) {
        pack.number(self.iter().count() as u64);
        for (notice, entry) in self.iter() {
            pack.text(notice.name());
            pack.number(entry.count);
            pack.text(&entry.first);
        }
    }

    fn unpack(unpack: &mut Unpack<'_>) -> Option<Self> {
        let mut notices = Notices::default();
        for _ in 0..unpack.index(unpack.0.len())? {
            let name = unpack.text()?;
            let notice = Notice::ALL.iter().find(|notice| notice.name() == name)?;
            let (count, first) = (unpack.number()?, unpack.text()?);
            notices.add(*notice, count, || first);
        }
        Some(notices)
    }
}

/// The texts; then which of them no file proves, and which are functions of the runtime.
impl Packed for Names {
    fn pack(&self, pack: &mut Pack) {
        pack.number(self.len() as u64);
        (0..self.len()).for_each(|at| pack.text(self.get(NameId::at(at))));
        self.unproven().collect::<Vec<NameId>>().pack(pack);
        self.runtime().collect::<Vec<NameId>>().pack(pack);
    }

    fn unpack(unpack: &mut Unpack<'_>) -> Option<Self> {
        let mut names = Names::default();
        for at in 0..unpack.index(unpack.0.len())? {
            // A repeated name would shift the ids of all later names.
            (names.intern(&unpack.text()?).index() == at).then_some(())?;
        }
        let (unproven, runtime) = (Vec::<NameId>::unpack(unpack)?, Vec::<NameId>::unpack(unpack)?);
        unproven.iter().chain(&runtime).all(|name| name.index() < names.len()).then_some(())?;
        unproven.into_iter().for_each(|name| names.mark_unproven(name));
        runtime.into_iter().for_each(|name| names.mark_runtime(name));
        Some(names)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::packed::{bytes_of, value_of};

    #[test]
    fn names_keep_their_ids_and_marks() {
        let mut names = Names::default();
        let ids = ["", "a", "näive"].map(|text| names.intern(text));
        names.mark_unproven(ids[1]);
        names.mark_runtime(ids[2]);
        let read: Names = value_of(&bytes_of(&names)).unwrap();
        assert!(ids.iter().all(|id| read.get(*id) == names.get(*id)));
        assert!(read.unproven().eq([ids[1]]) && read.runtime().eq([ids[2]]));
        // The same text twice; a mark of a name that is not there.
        assert!(value_of::<Names>(&[2, 1, b'a', 1, b'a', 0, 0]).is_none());
        assert!(value_of::<Names>(&[1, 1, b'a', 1, 1, 0]).is_none());
    }

    #[test]
    fn notices_are_read_as_they_were_written() {
        let mut notices = Notices::default();
        notices.add(Notice::DiscardedEvents, u64::MAX, || "packet 3".to_owned());
        notices.add(Notice::Unfinished, 1, String::new);
        assert_eq!(value_of::<Notices>(&bytes_of(&notices)), Some(notices));
    }
}
