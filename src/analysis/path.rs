//! The critical path of one execution: the segments, over several threads, that explain all of its time.
//!
//! In: a thread, a span, and the segments of a [`Timeline`]. Out: path segments that tile the span exactly, in order.
//! ALGORITHMS.md 4.6, forward form: the path leaves a thread only while the thread is blocked and its waker is known;
//! running, preempted, timer, disk and device time is the thread's own. The result at a moment depends on the thread
//! and the moment alone ([`label`] computes it directly), so walks for different executions are independent.
//!
//! Cost: O((P + D) log S) for P path segments, D descents and S segments of a thread; memory O(depth). Windows never
//! grow, and a wait that is already being resolved is not entered again, so the walk ends.

use crate::base::names::NameId;
use crate::base::time::{Span, Timestamp};
use crate::model::wait_kind::BY_TRACER;
use crate::timeline::questions::Asker;
use crate::timeline::reader::{RowCursor, RowReader};
use crate::timeline::{Segment, SegmentKind, ThreadId, Timeline, Waker};

/// The reason why the path entered a thread: the state of the thread above it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Entered {
    /// The execution's own thread.
    Start,
    /// It waited for this thread.
    Blocked,
    /// It waited for this thread, which works for a disk.
    Disk,
    /// It waited for a packet that this thread sent later.
    Network,
    /// It did not exist yet: this thread created it.
    Fork,
    /// A signal had stopped it: this thread let it go on.
    Stopped,
    /// A tracer had stopped it: this thread let it go on.
    Traced,
}

/// One thread in one state on the path. A segment of length zero marks that the path enters the thread, so that stacks
/// nest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathSegment {
    pub thread: ThreadId,
    pub span: Span,
    pub kind: SegmentKind,
    /// Device, interrupt or soft irq; reason of an unknown wait.
    pub qualifier: Option<NameId>,
    /// The CPU on which it ran, or in whose run queue it waited.
    pub cpu: u32,
    /// The number of threads above it on the path: 0 for the execution's own. The thread above is that of the last
    /// segment before this one with a depth one less.
    pub depth: u32,
    /// The reason why the path entered the thread.
    pub entered: Entered,
}

/// The most waits for waits; only damaged recordings have more.
const DEEPEST: usize = 200;

/// The thread that explains a wait, and the time until which it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Follow {
    thread: ThreadId,
    until: Timestamp,
    entered: Entered,
}

fn follow(timeline: &Timeline, segment: &Segment) -> Option<Follow> {
    let Waker { thread, at } = segment.waker?;
    match segment.kind {
        SegmentKind::Blocked => {
            let entered = if timeline.is_disk_wait(segment) { Entered::Disk } else { Entered::Blocked };
            // A wake-up from another CPU arrives later than it was sent.
            Some(Follow { thread, until: at.min(segment.span.end), entered })
        }
        SegmentKind::Stopped => {
            let traced = segment.qualifier.is_some_and(|by| timeline.names().get(by) == BY_TRACER);
            let entered = if traced { Entered::Traced } else { Entered::Stopped };
            Some(Follow { thread, until: at.min(segment.span.end), entered })
        }
        SegmentKind::Network => Some(Follow { thread, until: at.min(segment.span.end), entered: Entered::Network }),
        _ => None,
    }
}

/// A part of a thread's life whose cause may be under resolution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// Before its creation.
    Unborn,
    /// The segment that begins here, and the time without a segment before it.
    Segment(Timestamp),
    /// Behind its last segment.
    Past,
}

/// The segment of a thread at `t` with its place; an unknown one where none was recorded. `None` before the recorded
/// creation of the thread.
fn segment_at(
    timeline: &Timeline,
    segments: &mut RowCursor<'_, Segment>,
    thread: ThreadId,
    t: Timestamp,
) -> Option<(Place, Segment)> {
    let unknown = |start, end| Segment {
        span: Span::new(start, end),
        kind: SegmentKind::Unknown,
        waker: None,
        qualifier: None,
        cpu: 0,
    };
    let Some(known) = timeline.thread(thread) else {
        return Some((Place::Past, unknown(Timestamp::MIN, Timestamp::MAX)));
    };
    if t < known.life.start && known.parent.is_some() {
        return None;
    }
    Some(match segments.first_after(t) {
        Some(segment) if segment.span.start <= t => (Place::Segment(segment.span.start), segment),
        Some(segment) => (Place::Segment(segment.span.start), unknown(t, segment.span.start)),
        None => (Place::Past, unknown(t, Timestamp::MAX)),
    })
}

/// A thread in whose window the walk is.
#[derive(Debug)]
struct Frame<'r> {
    thread: ThreadId,
    segments: RowCursor<'r, Segment>,
    /// The time up to which the window was walked.
    at: Timestamp,
    /// The end of the window.
    until: Timestamp,
    /// The wait of this thread that the frame above it resolves.
    resolving: Option<Place>,
    entered: Entered,
}

/// The path of `thread` over `span`, all of it: time in which the thread is unknown counts, too.
pub fn walk(timeline: &Timeline, thread: ThreadId, span: Span) -> Vec<PathSegment> {
    Walker::new(&timeline.reader(Asker::Path)).walk(thread, span).to_vec()
}

/// Walks paths with a reader and buffers that serve many walks.
pub struct Walker<'r>(Path<'r>);

impl<'r> Walker<'r> {
    /// No path was walked yet.
    pub fn new(reader: &'r RowReader<'r>) -> Walker<'r> {
        Walker(Path { reader, frames: Vec::new(), segments: Vec::new() })
    }

    /// The path of `thread` over `span`.
    pub fn walk(&mut self, thread: ThreadId, span: Span) -> &[PathSegment] {
        self.0.frames.clear();
        self.0.segments.clear();
        if !span.is_empty() {
            walk_in(&mut self.0, thread, span);
        }
        &self.0.segments
    }
}

fn walk_in(path: &mut Path<'_>, thread: ThreadId, span: Span) {
    let reader = path.reader;
    let timeline = reader.timeline();
    path.push(thread, reader.segments(thread), span, Entered::Start);
    while let Some(depth) = path.frames.len().checked_sub(1) {
        let frame = &mut path.frames[depth];
        frame.resolving = None;
        let (thread, at, end) = (frame.thread, frame.at, frame.until);
        if at >= end {
            path.frames.pop();
            continue;
        }
        let Some((place, segment)) = segment_at(timeline, &mut frame.segments, thread, at) else {
            // The thread was created inside the window: before that its parent explains the time.
            let known = timeline.thread(thread);
            let birth = known.map_or(end, |t| t.life.start).min(end);
            (frame.at, frame.resolving) = (birth, Some(Place::Unborn));
            let parent = known.and_then(|t| t.parent);
            match parent.and_then(|parent| Some((parent, path.entry(parent, at, timeline)?))) {
                Some((parent, segments)) => path.push(parent, segments, Span::new(at, birth), Entered::Fork),
                None => path.emit(depth, Span::new(at, birth), SegmentKind::Unknown, None, 0),
            }
            continue;
        };
        frame.resolving = Some(place);
        let until = segment.span.end.min(end);
        let followed = follow(timeline, &segment).filter(|f| f.until > at);
        match followed.and_then(|next| Some((next, path.entry(next.thread, at, timeline)?))) {
            Some((next, segments)) => {
                let stop = next.until.min(until);
                path.frames[depth].at = stop;
                path.push(next.thread, segments, Span::new(at, stop), next.entered);
            }
            None => {
                path.frames[depth].at = until;
                path.emit(depth, Span::new(at, until), segment.kind, segment.qualifier, segment.cpu);
            }
        }
    }
}

/// True where the segments of a path follow each other without gap or overlap from the start of `span` to its end.
pub fn tiles(path: &[PathSegment], span: Span) -> bool {
    let end = path.iter().try_fold(span.start, |at, s| (s.span.start == at && s.span.end >= at).then_some(s.span.end));
    span.is_empty() || end == Some(span.end)
}

struct Path<'r> {
    reader: &'r RowReader<'r>,
    frames: Vec<Frame<'r>>,
    segments: Vec<PathSegment>,
}

impl<'r> Path<'r> {
    /// Enter a thread: push its window, and the segment of length zero.
    fn push(&mut self, thread: ThreadId, segments: RowCursor<'r, Segment>, window: Span, entered: Entered) {
        let Span { start: at, end: until } = window;
        self.frames.push(Frame { thread, segments, at, until, resolving: None, entered });
        let span = Span::new(at, at);
        let depth = (self.frames.len() - 1) as u32;
        let kind = SegmentKind::Running;
        self.segments.push(PathSegment { thread, span, kind, qualifier: None, cpu: 0, depth, entered });
    }

    /// The segments of `thread`, at `t`; `None` where the walk already resolves its wait at that time.
    fn entry(&self, thread: ThreadId, t: Timestamp, timeline: &Timeline) -> Option<RowCursor<'r, Segment>> {
        if self.frames.len() >= DEEPEST {
            return None;
        }
        let mut segments = self.reader.segments(thread);
        let place = segment_at(timeline, &mut segments, thread, t).map_or(Place::Unborn, |(place, _)| place);
        let resolves = |frame: &Frame<'_>| frame.thread == thread && frame.resolving == Some(place);
        (!self.frames.iter().any(resolves)).then_some(segments)
    }

    /// Add a segment of the frame at `depth`; it extends its predecessor where nothing changed.
    fn emit(&mut self, depth: usize, span: Span, kind: SegmentKind, qualifier: Option<NameId>, cpu: u32) {
        let Some(frame) = self.frames.get(depth) else { return };
        let (thread, entered, depth) = (frame.thread, frame.entered, depth as u32);
        let segment = PathSegment { thread, span, kind, qualifier, cpu, depth, entered };
        match self.segments.last_mut() {
            Some(last) if !last.span.is_empty() && PathSegment { span, ..*last } == segment => last.span.end = span.end,
            _ => self.segments.push(segment),
        }
    }
}

/// The thread and state on the path of `thread` at the moment `t`: the definition with which tests compare [`walk`].
#[cfg(not(program))]
pub fn label(timeline: &Timeline, thread: ThreadId, t: Timestamp) -> (ThreadId, SegmentKind) {
    let reader = timeline.reader(Asker::Path);
    let place_of = |thread: ThreadId| segment_at(timeline, &mut reader.segments(thread), thread, t);
    let may_visit = |visited: &[(ThreadId, Place)], thread: ThreadId| {
        let place = place_of(thread).map_or(Place::Unborn, |(place, _)| place);
        visited.len() < DEEPEST && !visited.contains(&(thread, place))
    };
    let mut at = thread;
    let mut visited: Vec<(ThreadId, Place)> = Vec::new();
    loop {
        let Some((place, segment)) = place_of(at) else {
            let parent = timeline.thread(at).and_then(|thread| thread.parent);
            visited.push((at, Place::Unborn));
            match parent.filter(|parent| may_visit(&visited, *parent)) {
                Some(parent) => at = parent,
                None => return (at, SegmentKind::Unknown),
            }
            continue;
        };
        visited.push((at, place));
        let next = follow(timeline, &segment).filter(|f| f.until > t && may_visit(&visited, f.thread));
        match next {
            Some(next) => at = next.thread,
            None => return (at, segment.kind),
        }
    }
}
