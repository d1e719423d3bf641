//! The critical path of one execution: from (thread, span) the segments, over several threads, that explain all of it.
//!
//! In: the edges of a [`Timeline`]. Out: segments that tile the span exactly, in order. ALGORITHMS.md 4.6, forward
//! form: a thread is left only while it is blocked and its waker is known; running, preempted, timer, disk and device
//! time is its own. What is emitted for an instant depends on the thread and the instant alone ([`label`] is that,
//! written down directly), so walks for different executions are independent.
//!
//! Cost: O((P + D) log E) for P segments, D descents and E edges of a thread; memory O(depth). Windows never grow, and
//! a wait that is already being resolved is not entered again, so the walk ends.

use crate::base::names::NameId;
use crate::base::time::{Ns, Span};
use crate::state::timeline::{Segment, SegmentKind, ThreadId, Timeline};

/// How the path came to a thread: what the thread above it did meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Entered {
    /// The execution's own thread.
    Start,
    /// It waited for this thread.
    Blocked,
    /// It waited for this thread, which works for a disk.
    Disk,
    /// It waited for a packet that this thread was going to send.
    Network,
    /// It did not exist yet: this thread made it.
    Fork,
}

/// One thread in one state on the path. Of length zero: the path enters the thread, so that stacks nest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathSegment {
    /// The thread.
    pub thread: ThreadId,
    /// When.
    pub span: Span,
    /// What it did.
    pub kind: SegmentKind,
    /// Device, interrupt or soft irq; reason of an unknown wait.
    pub qualifier: Option<NameId>,
    /// The CPU it ran on, or whose run queue it stood in.
    pub cpu: u32,
    /// Threads above it on the path: 0 for the execution's own. The thread above is that of the last segment before
    /// this one with a depth one less.
    pub depth: u32,
    /// How the path came to the thread.
    pub entered: Entered,
}

/// Waits that wait for waits, and so on: deeper than this only damage goes.
const DEEPEST: usize = 200;

/// A wait that leads to another thread: which, and until when that thread's doings explain it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Follow {
    thread: ThreadId,
    until: Ns,
    entered: Entered,
}

fn follow(timeline: &Timeline, segment: &Segment) -> Option<Follow> {
    let (thread, at) = segment.waker?;
    match segment.kind {
        SegmentKind::Blocked => {
            let entered = if timeline.is_disk_wait(segment) { Entered::Disk } else { Entered::Blocked };
            Some(Follow { thread, until: segment.span.end, entered })
        }
        SegmentKind::Network => Some(Follow { thread, until: at.min(segment.span.end), entered: Entered::Network }),
        _ => None,
    }
}

/// The edge of a thread at `t`, or what is missing there as an edge of its own. `None` before a fork that the
/// recording saw.
fn segment_at(timeline: &Timeline, thread: ThreadId, t: Ns) -> Option<(usize, Segment)> {
    let unknown = |start, end| Segment {
        span: Span::new(start, end),
        kind: SegmentKind::Unknown,
        waker: None,
        qualifier: None,
        cpu: 0,
    };
    let Some(known) = timeline.thread(thread) else { return Some((0, unknown(Ns::MIN, Ns::MAX))) };
    if t < known.life.start && known.parent.is_some() {
        return None;
    }
    let at = known.first_segment_after(t);
    Some(match known.segments.get(at) {
        Some(segment) if segment.span.start <= t => (at, *segment),
        Some(segment) => (at, unknown(t, segment.span.start)),
        None => (at, unknown(t, Ns::MAX)),
    })
}

/// A thread whose window is being walked.
#[derive(Clone, Copy, Debug)]
struct Frame {
    thread: ThreadId,
    /// Walked up to here.
    at: Ns,
    /// To here.
    until: Ns,
    /// The wait of this thread that is being resolved by the frame above it.
    resolving: Option<usize>,
    entered: Entered,
}

/// The path of `thread` over `span`.
///
/// ```
/// use whyslow::analysis::path::walk;
/// use whyslow::state::timeline::{Timeline, ThreadId};
/// use whyslow::base::time::Span;
/// let path = walk(&Timeline::default(), ThreadId::at(0), Span::new(5, 9));
/// assert_eq!(path.iter().map(|s| s.span.len()).sum::<i64>(), 4); // unknown, but there
/// ```
pub fn walk(timeline: &Timeline, thread: ThreadId, span: Span) -> Vec<PathSegment> {
    let mut path = Path::default();
    if span.is_empty() {
        return path.segments;
    }
    path.push(thread, span.start, span.end, Entered::Start);
    while let Some(depth) = path.frames.len().checked_sub(1) {
        let frame = path.frames[depth];
        path.frames[depth].resolving = None;
        if frame.at >= frame.until {
            path.frames.pop();
            continue;
        }
        let Some((index, segment)) = segment_at(timeline, frame.thread, frame.at) else {
            // Forked inside the window: until then its parent explains it.
            let known = timeline.thread(frame.thread);
            let birth = known.map_or(frame.until, |t| t.life.start).min(frame.until);
            let parent = known.and_then(|t| t.parent);
            path.frames[depth].at = birth;
            path.frames[depth].resolving = Some(usize::MAX);
            match parent.filter(|p| path.may_enter(*p, frame.at, timeline)) {
                Some(parent) => path.push(parent, frame.at, birth, Entered::Fork),
                None => path.emit(depth, Span::new(frame.at, birth), SegmentKind::Unknown, None, 0),
            }
            continue;
        };
        let until = segment.span.end.min(frame.until);
        let followed = follow(timeline, &segment).filter(|f| f.until > frame.at);
        path.frames[depth].resolving = Some(index);
        match followed.filter(|f| path.may_enter(f.thread, frame.at, timeline)) {
            Some(next) => {
                let stop = next.until.min(until);
                path.frames[depth].at = stop;
                path.push(next.thread, frame.at, stop, next.entered);
            }
            None => {
                path.frames[depth].at = until;
                path.emit(depth, Span::new(frame.at, until), segment.kind, segment.qualifier, segment.cpu);
            }
        }
    }
    path.segments
}

/// True where the segments of a path follow each other without gap or overlap from the start of `span` to its end.
pub fn tiles(path: &[PathSegment], span: Span) -> bool {
    let end = path.iter().try_fold(span.start, |at, s| (s.span.start == at && s.span.end >= at).then_some(s.span.end));
    span.is_empty() || end == Some(span.end)
}

#[derive(Default)]
struct Path {
    frames: Vec<Frame>,
    segments: Vec<PathSegment>,
}

impl Path {
    /// Enter a thread: its marker, and its window to walk.
    fn push(&mut self, thread: ThreadId, from: Ns, until: Ns, entered: Entered) {
        self.frames.push(Frame { thread, at: from, until, resolving: None, entered });
        let span = Span::new(from, from);
        let depth = (self.frames.len() - 1) as u32;
        let kind = SegmentKind::Running;
        self.segments.push(PathSegment { thread, span, kind, qualifier: None, cpu: 0, depth, entered });
    }

    /// False where the wait of `thread` at `t` is being resolved already.
    fn may_enter(&self, thread: ThreadId, t: Ns, timeline: &Timeline) -> bool {
        if self.frames.len() >= DEEPEST {
            return false;
        }
        let index = segment_at(timeline, thread, t).map_or(usize::MAX, |(index, _)| index);
        !self.frames.iter().any(|f| f.thread == thread && f.resolving == Some(index))
    }

    /// One more segment of the frame at `depth`; it joins its predecessor where nothing changed.
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

/// What the path of `thread` says of the instant `t`, and of which thread: the definition that [`walk`] is held to.
pub fn label(timeline: &Timeline, thread: ThreadId, t: Ns) -> (ThreadId, SegmentKind) {
    let mut at = thread;
    let mut visited: Vec<(ThreadId, usize)> = Vec::new();
    loop {
        let Some((index, segment)) = segment_at(timeline, at, t) else {
            let parent = timeline.thread(at).and_then(|thread| thread.parent);
            visited.push((at, usize::MAX));
            match parent.filter(|p| may_visit(timeline, &visited, *p, t)) {
                Some(parent) => at = parent,
                None => return (at, SegmentKind::Unknown),
            }
            continue;
        };
        visited.push((at, index));
        let next = follow(timeline, &segment).filter(|f| f.until > t && may_visit(timeline, &visited, f.thread, t));
        match next {
            Some(next) => at = next.thread,
            None => return (at, segment.kind),
        }
    }
}

fn may_visit(timeline: &Timeline, visited: &[(ThreadId, usize)], thread: ThreadId, t: Ns) -> bool {
    let index = segment_at(timeline, thread, t).map_or(usize::MAX, |(index, _)| index);
    visited.len() < DEEPEST && !visited.contains(&(thread, index))
}
