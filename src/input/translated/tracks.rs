//! The tracks of programs in a Perfetto trace (`TrackEvent`): spans on threads, processes and tracks of their own.
//!
//! In: packets in the order of the file, each of a sequence (one writer). A sequence has names by number, the track of
//! events that name none, and its own clock, until it says that this state is cleared. Out: [`Spans`]. A span on the
//! track of a thread is nested there; a span on another track is paired by its name and the track, and its thread is
//! that above the track, else the writer's. Events whose clock, thread or name is not known are counted as unused.
//! Cost: linear; the state is as large as the packets that describe it.

use super::event_place::NamedThread;
use super::perfetto_messages::{ClockSnapshotMessage, TracePacket};
use super::spans::{SpanPart, SpanThread, SpanTrack, Spans};
use super::track_messages::{TrackDescriptorMessage, TrackEventMessage};
use super::translation::Translation;
use crate::base::names::NameId;
use crate::base::notice::Notice;
use foldhash::HashMap;

/// `BUILTIN_CLOCK_BOOTTIME`: the clock of the kernel's events.
const BOOTTIME: u32 = 6;
/// Clocks with these numbers are of one sequence.
const OF_SEQUENCE: std::ops::RangeInclusive<u32> = 64..=127;
/// `SEQ_INCREMENTAL_STATE_CLEARED`.
const CLEARED: u32 = 1;
/// Tracks above a track.
const DEEPEST: usize = 1024;

const SLICE_BEGIN: i32 = 1;
const SLICE_END: i32 = 2;

#[derive(Debug, Default)]
struct Track {
    thread: Option<SpanThread>,
    parent: Option<u64>,
}

/// A clock that counts from a snapshot of its sequence on.
#[derive(Clone, Copy, Debug)]
struct SequenceClock {
    /// Ns of one unit.
    unit: u64,
    /// Each time is the difference to the one before.
    incremental: bool,
    last: u64,
    /// The kernel's clock when this one is 0.
    base: i128,
}

/// What a writer said before.
#[derive(Debug, Default)]
struct Sequence {
    names: HashMap<u64, NameId>,
    track: Option<u64>,
    clock: Option<u32>,
    clocks: HashMap<u32, SequenceClock>,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Tracks {
    sequences: HashMap<u32, Sequence>,
    tracks: HashMap<u64, Track>,
    /// By built-in clock: the kernel's clock when it is 0.
    clocks: HashMap<u32, i128>,
    pub spans: Spans,
}

impl Tracks {
    /// Read what a packet says about tracks.
    pub fn packet(&mut self, packet: &TracePacket, translation: &mut Translation) {
        let number = packet.sequence.unwrap_or(0);
        // The first packet of a sequence has this mark, too.
        if packet.previous_dropped.is_some_and(|reasons| reasons != 0) && self.sequences.contains_key(&number) {
            translation.notices.add(Notice::DiscardedPackets, 1, || format!("of the writer {number}"));
        }
        let sequence = self.sequences.entry(number).or_default();
        if packet.sequence_flags.unwrap_or(0) & CLEARED != 0 || packet.cleared == Some(true) {
            *sequence = Sequence::default();
        }
        if let Some(defaults) = &packet.defaults {
            sequence.clock = defaults.timestamp_clock_id;
            sequence.track = defaults.track_event.as_ref().and_then(|event| event.track);
        }
        for name in packet.interned.iter().flat_map(|interned| &interned.event_names) {
            if let (Some(id), Some(text)) = (name.iid, &name.name) {
                let text = self.spans.name(text);
                sequence.names.insert(id, text);
            }
        }
        if let Some(snapshot) = &packet.clock_snapshot {
            self.snapshot(number, snapshot);
        }
        let time = self.time(number, packet);
        if let Some(descriptor) = &packet.track_descriptor {
            self.describe(descriptor, time.unwrap_or(0), translation);
        }
        if let Some(event) = &packet.track_event {
            translation.begin_record();
            match self.event(number, event, time) {
                Some(()) => translation.keeps(),
                None => translation
                    .unused(|| "events of tracks that are no spans, or lack clock, thread or name".to_owned()),
            }
            translation.end_record();
        }
    }

    fn snapshot(&mut self, number: u32, snapshot: &ClockSnapshotMessage) {
        let boot = snapshot.clocks.iter().find(|clock| clock.clock_id == Some(BOOTTIME)).and_then(|c| c.timestamp);
        let known = |id: Option<u32>| self.clocks.get(&id?).copied();
        // The kernel's clock at the snapshot: itself, else by a clock whose difference to it is known.
        let now = boot
            .map(i128::from)
            .or_else(|| snapshot.clocks.iter().find_map(|c| Some(known(c.clock_id)? + i128::from(c.timestamp?))));
        let Some(now) = now else { return };
        for clock in &snapshot.clocks {
            let (Some(id), Some(time)) = (clock.clock_id, clock.timestamp) else { continue };
            if !OF_SEQUENCE.contains(&id) {
                self.clocks.insert(id, now - i128::from(time));
                continue;
            }
            let unit = clock.unit_multiplier_ns.filter(|unit| *unit > 0).unwrap_or(1);
            // Damaged numbers can have any value.
            let base = now.saturating_sub(i128::from(time).saturating_mul(unit.into()));
            let incremental = clock.is_incremental == Some(true);
            let clock = SequenceClock { unit, incremental, last: time, base };
            self.sequences.entry(number).or_default().clocks.insert(id, clock);
        }
    }

    /// The time of a packet on the kernel's clock. Of an incremental clock each packet moves it.
    fn time(&mut self, number: u32, packet: &TracePacket) -> Option<u64> {
        let time = packet.timestamp?;
        let sequence = self.sequences.get_mut(&number)?;
        let id = packet.timestamp_clock_id.or(sequence.clock).unwrap_or(BOOTTIME);
        let on_boot = match (id, sequence.clocks.get_mut(&id)) {
            (BOOTTIME, _) => i128::from(time),
            (_, Some(clock)) => {
                clock.last = if clock.incremental { clock.last.wrapping_add(time) } else { time };
                clock.base.saturating_add(i128::from(clock.last).saturating_mul(clock.unit.into()))
            }
            (_, None) => self.clocks.get(&id)? + i128::from(time),
        };
        u64::try_from(on_boot).ok()
    }

    fn describe(&mut self, descriptor: &TrackDescriptorMessage, time: u64, translation: &mut Translation) {
        let Some(uuid) = descriptor.uuid else { return };
        let thread = descriptor.thread.as_ref().and_then(|thread| {
            let tid = i32::try_from(thread.tid?).ok().filter(|tid| *tid > 0)?;
            let pid = thread.pid.filter(|pid| *pid > 0).unwrap_or(-1);
            translation.know(time, NamedThread { tid, pid, name: b"" });
            Some(SpanThread { tid, pid })
        });
        let track = self.tracks.entry(uuid).or_default();
        track.thread = thread.or(track.thread);
        track.parent = descriptor.parent.or(track.parent);
    }

    /// The thread of a track, or of the nearest one above it.
    fn thread(&self, mut uuid: u64) -> Option<SpanThread> {
        for _ in 0..DEEPEST {
            let track = self.tracks.get(&uuid)?;
            if track.thread.is_some() {
                return track.thread;
            }
            uuid = track.parent?;
        }
        None
    }

    /// Add the beginning or the end of a span; `None` for other events.
    fn event(&mut self, number: u32, event: &TrackEventMessage, time: Option<u64>) -> Option<()> {
        let time = time?;
        let sequence = self.sequences.get(&number)?;
        let uuid = event.track.or(sequence.track)?;
        let legacy = event.legacy.as_ref();
        let by_number = event.name_iid.or_else(|| legacy?.name_iid);
        let by_number = by_number.and_then(|id| sequence.names.get(&id).copied());
        let writer = sequence.track.and_then(|track| self.thread(track));
        let name = match &event.name {
            Some(name) => Some(self.spans.name(name)),
            None => by_number,
        };
        let phase = legacy.and_then(|legacy| u8::try_from(legacy.phase?).ok());
        let part = match (event.kind.unwrap_or(0), phase) {
            (SLICE_BEGIN, _) | (0, Some(b'B')) => SpanPart::Begin(name?),
            (SLICE_END, _) | (0, Some(b'E')) => SpanPart::End,
            (0, Some(b'X')) => {
                let us = legacy.and_then(|legacy| legacy.duration_us).and_then(|us| u64::try_from(us).ok());
                SpanPart::Whole(name?, us.unwrap_or(0).saturating_mul(1000))
            }
            _ => return None,
        };
        match self.tracks.get(&uuid).and_then(|track| track.thread) {
            Some(thread) => self.spans.add(time, thread, SpanTrack::Thread(thread), part),
            None => self.spans.add(time, self.thread(uuid).or(writer)?, SpanTrack::Own(uuid), part),
        }
        Some(())
    }
}
