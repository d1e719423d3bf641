//! A timeline whose events are all read, while steps complete it: what a step finds needs the rows of others, so it
//! comes after the pass over the events, and before anything is explained.
//!
//! In: the rows and tables that the kernel pass sealed, or those of a history file. Out: a [`Timeline`], which nothing
//! changes any more. Steps use the clocks of the machine, the files beside a recording, and the kernel's symbols; none
//! of them reads what another one changes, so they may come in any order.

use super::rows::{DerivedField, DiskRequest, ImageEvent, MarkRow};
use super::sealed::Timeline;
use super::segments::{Segment, ThreadId};
use super::store::leaves::LeafPin;
use super::store::marks::MarkStore;
use super::store::parts::{LineStore, RowPlace};
use super::store::pool::LeafPool;
use crate::base::ctx::Ctx;
use crate::base::names::NameId;
use crate::base::question_counts::QuestionCounts;
use crate::base::time::Timestamp;
use crate::event::host::HostId;
use crate::model::environment::PlacedEnvironment;
use std::ops::Deref;
use std::sync::Arc;

/// A timeline whose events are all read, and which steps still complete.
#[derive(Clone, Debug)]
pub struct RecordedTimeline(Timeline);

impl Deref for RecordedTimeline {
    type Target = Timeline;

    fn deref(&self) -> &Timeline {
        &self.0
    }
}

impl RecordedTimeline {
    /// A timeline that was kept before it was sealed.
    pub fn new(timeline: Timeline) -> RecordedTimeline {
        RecordedTimeline(timeline)
    }

    /// Count the questions about its rows.
    pub fn count_questions(&mut self, counts: Option<Arc<QuestionCounts>>) {
        self.0.questions = counts;
    }

    /// Change some segments, by their places.
    pub fn rewrite_segments(&mut self, places: &[RowPlace], change: impl FnMut(usize, &mut Segment)) {
        self.0.rows.sums = Default::default();
        self.0.rows.segments.change(|segments| segments.rewrite(places, change));
    }

    /// Change disk requests.
    pub fn rewrite_requests(&mut self, change: impl FnOnce(&mut LineStore<DiskRequest>)) {
        self.0.rows.requests.change(change);
    }

    /// The timeline that is read, in which the fields of derived delimiting events have names.
    pub fn seal(mut self) -> Timeline {
        for field in DerivedField::ALL {
            self.intern(field.name());
        }
        self.0
    }

    /// The id of a text among its names.
    pub fn intern(&mut self, text: &str) -> NameId {
        self.0.tables.names.intern(text)
    }

    /// Replace the image changes.
    pub fn set_images(&mut self, images: Vec<ImageEvent>) {
        self.0.tables.images = images;
    }

    /// The clock of a host may err by this many nanoseconds.
    pub fn widen_clock_error(&mut self, host: HostId, error: u64) {
        if let Some(quality) = self.0.tables.quality.get_mut(host.index()) {
            quality.clock_error = quality.clock_error.max(error);
        }
    }

    /// Give a host its environment.
    pub fn set_environment(&mut self, host: HostId, environment: PlacedEnvironment) {
        self.0.environments.insert(host, Arc::new(environment));
    }

    /// Leaves have half of the memory that what else is held leaves them; the rest is for results.
    pub fn leave_room_for_results(&mut self, pool: Option<&Arc<LeafPool>>, ctx: &Ctx) {
        pool.into_iter().for_each(|pool| self.0.rows.leave_room_for_results(pool, ctx));
    }

    /// Keep the delimiting events of some tasks: by task the positions that it has from now on, none for the others.
    pub fn renumber_tasks(&mut self, tasks: &[Vec<u32>]) {
        let marks = std::mem::take(&mut self.0.rows.marks);
        let positions = |row: MarkRow| tasks.get(row.task as usize).into_iter().flatten().map(move |task| (row, *task));
        let kept = marks
            .all()
            .flat_map(positions)
            .map(|(row, task)| MarkRow { task, ..row }.with_fields(marks.fields(row.number).collect()));
        let mut renumbered = MarkStore::default();
        renumbered.extend(kept);
        self.0.rows.marks = renumbered.into();
    }

    /// Change the segments that end at these moments; nothing changes where there is none. `change` gets the position
    /// among `ends`.
    pub fn relabel(&mut self, ends: &[SegmentEnd], change: impl Fn(usize, &mut Segment)) {
        let mut found = Vec::with_capacity(ends.len());
        let mut places = Vec::with_capacity(ends.len());
        for (number, SegmentEnd { thread, at }) in ends.iter().enumerate() {
            let line = self.0.rows.segments.line(thread.index());
            let mut pin = LeafPin::default();
            let place = line.ends_after(at.saturating_sub(1), &mut pin);
            if line.end(place, &mut pin) == Some(*at) {
                found.push(number);
                places.push(RowPlace { line: thread.index(), row: line.position(place) });
            }
        }
        self.rewrite_segments(&places, |at, segment| {
            found.get(at).into_iter().for_each(|number| change(*number, segment));
        });
    }
}

/// The end of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentEnd {
    pub thread: ThreadId,
    pub at: Timestamp,
}
