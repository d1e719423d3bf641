//! Who else ran on a CPU, waited for a disk or was in a futex call during a part of a timeline.
//!
//! In: a state history. Out: a [`ConcurrentUse`]. Cost: two searches of all threads over the span, which read
//! the rows there, and a few of each thread that is found.

use crate::base::ctx::{Cancel, Cancelled};
use crate::base::time::Span;
use crate::model::concurrent::{ConcurrentQuestion, ConcurrentThread, ConcurrentUse};
use crate::timeline::history::lines::{HistoryLine, Time};
use crate::timeline::history::{Shown, StateHistory, ThreadActivity};
use std::collections::BTreeMap;

/// Threads named in each list, at most.
const MOST: usize = 12;

/// The threads that used the same things meanwhile.
pub fn concurrent(
    history: &StateHistory,
    question: &ConcurrentQuestion,
    cancel: &Cancel,
) -> Result<ConcurrentUse, Cancelled> {
    let ask = Ask { history, question, cancel };
    let mut on_cpu = ThreadSpans::new();
    if let Some(cpu) = question.cpu {
        for line in ask.lines(&format!("cpus/{cpu}/thread"))? {
            for held in &line.held {
                // 0 is the idle task.
                if let Some(Shown::Number(tid @ 1..)) = held.value.map(|value| history.show(value)) {
                    on_cpu.entry(tid).or_default().extend(ask.inside(held.span));
                }
            }
        }
    }
    let on_disk = ask.times_of("state", ThreadActivity::State("disk"))?;
    let mut in_futex = ask.times_of("syscall", ThreadActivity::Call("futex"))?;
    // A lock is shared within a process.
    for tid in in_futex.keys().copied().collect::<Vec<i64>>() {
        if !ask.is_of_process(tid)? {
            in_futex.remove(&tid);
        }
    }
    Ok(ConcurrentUse { on_cpu: ask.longest(on_cpu)?, on_disk: ask.longest(on_disk)?, in_futex: ask.longest(in_futex)? })
}

/// When each thread used something.
type ThreadSpans = BTreeMap<i64, Vec<Span>>;

fn total(spans: &[Span]) -> i64 {
    spans.iter().map(|span| span.len()).sum()
}

struct Ask<'a> {
    history: &'a StateHistory,
    question: &'a ConcurrentQuestion,
    cancel: &'a Cancel,
}

impl Ask<'_> {
    /// The lines of a pattern over the span, on the host of the question.
    fn lines(&self, pattern: &str) -> Result<Vec<HistoryLine>, Cancelled> {
        let time = Time::Range(self.question.span);
        let lines = self.history.lines(pattern, &time, self.cancel)?;
        if !lines.is_empty() {
            return Ok(lines);
        }
        // Several hosts have their names before the path.
        self.history.lines(&format!("hosts/{}/{pattern}", self.question.host), &time, self.cancel)
    }

    /// Time in which each thread did something. `line` is the last component of the path of its attribute.
    fn times_of(&self, line: &str, activity: ThreadActivity<'_>) -> Result<ThreadSpans, Cancelled> {
        let mut times = ThreadSpans::new();
        for tid in self.history.tids_in(self.question.span, activity) {
            for line in self.lines(&format!("threads/{tid}/{line}"))? {
                let texts = line.held.iter().filter_map(|held| match self.history.show(held.value?) {
                    Shown::Text(text) if activity.fits(text) => self.inside(held.span),
                    _ => None,
                });
                times.entry(tid.into()).or_default().extend(texts);
            }
        }
        Ok(times)
    }

    /// True for threads of the process of the question.
    fn is_of_process(&self, tid: i64) -> Result<bool, Cancelled> {
        let pids = self.lines(&format!("threads/{tid}/pid"))?;
        let mut values = pids.iter().flat_map(|line| &line.held).filter_map(|held| held.value);
        Ok(values
            .any(|value| matches!(self.history.show(value), Shown::Number(pid) if pid == i64::from(self.question.pid))))
    }

    /// The part of a span in that of the question.
    fn inside(&self, span: Span) -> Option<Span> {
        Some(span.clip(self.question.span)).filter(|inside| !inside.is_empty())
    }

    /// The threads with most time, without that of the question.
    fn longest(&self, times: ThreadSpans) -> Result<Vec<ConcurrentThread>, Cancelled> {
        let mut threads: Vec<(i64, Vec<Span>)> =
            times.into_iter().filter(|(tid, spans)| self.is_other(*tid) && !spans.is_empty()).collect();
        threads.sort_by_key(|(tid, spans)| (std::cmp::Reverse(total(spans)), *tid));
        threads.truncate(MOST);
        threads.into_iter().map(|(tid, spans)| self.named(tid, spans)).collect()
    }

    fn is_other(&self, tid: i64) -> bool {
        tid != i64::from(self.question.tid)
    }

    fn named(&self, tid: i64, mut spans: Vec<Span>) -> Result<ConcurrentThread, Cancelled> {
        let names = self.lines(&format!("threads/{tid}/name"))?;
        let name = names.iter().flat_map(|line| &line.held).find_map(|held| match self.history.show(held.value?) {
            Shown::Text(name) => Some(name.to_owned()),
            Shown::Number(_) => None,
        });
        spans.sort_by_key(|span| span.start);
        let (name, tid, ns) = (name.unwrap_or_default(), i32::try_from(tid).unwrap_or(0), total(&spans));
        Ok(ConcurrentThread { name, tid, ns, spans })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::timeline_builder::TimelineBuilder;
    use crate::base::time::{Ns, Timestamp};
    use crate::event::host::HostId;
    use crate::timeline::{
        Call, CpuRun, CpuTimeline, SegmentKind, Thread, ThreadDraft, ThreadId, ThreadName, ThreadRows,
    };

    /// Threads 7 to 10 of one host, of which the last is of another process than the others.
    fn history() -> StateHistory {
        let mut builder = TimelineBuilder::new(0);
        let span = Span::of_ns(0, 90);
        builder.0.tables.span = span;
        let [futex, read, worker] = ["futex", "read", "worker"].map(|name| builder.0.tables.names.intern(name));
        for (tid, pid) in [(7, 7), (8, 8), (9, 7), (10, 10)] {
            let mut thread = Thread::new(HostId::at(0), tid, span);
            thread.pid = pid;
            thread.names = if tid == 8 { vec![ThreadName { from: Timestamp::ZERO, name: worker }] } else { Vec::new() };
            builder.0.threads.push(ThreadDraft { thread, rows: ThreadRows::default() });
        }
        builder.segment(1, 0, 90, SegmentKind::Disk, 0).segment(2, 0, 90, SegmentKind::Disk, 0);
        let call = |start, end, name| Call { span: Span::of_ns(start, end), name, ret: None, descriptor: None };
        builder.0.threads[2].rows.calls = vec![call(10, 25, futex), call(25, 60, read)];
        builder.0.threads[3].rows.calls = vec![call(0, 90, futex)];
        let run = |start: Ns, end: Ns, thread| CpuRun { span: Span::of_ns(start, end), thread: ThreadId::at(thread) };
        let of_cpu = |cpu, runs| CpuTimeline { host: HostId::at(0), cpu, runs };
        builder.0.cpus = vec![of_cpu(2, vec![run(0, 40, 0), run(40, 70, 1)]), of_cpu(3, vec![run(0, 90, 2)])];
        StateHistory::new(builder.sealed(), None)
    }

    #[test]
    fn concurrent_names_other_threads_of_the_same_cpu_disk_and_lock() {
        let question =
            ConcurrentQuestion { span: Span::of_ns(20, 60), host: "db3".into(), tid: 7, pid: 7, cpu: Some(2) };
        let found = concurrent(&history(), &question, &Cancel::default()).unwrap();
        let thread = |name: &str, tid, start, end| ConcurrentThread {
            name: name.into(),
            tid,
            ns: end - start,
            spans: vec![Span::of_ns(start, end)],
        };
        assert_eq!(found.on_cpu, [thread("worker", 8, 40, 60)]);
        assert_eq!(found.on_disk, [thread("worker", 8, 20, 60)]);
        assert_eq!(found.in_futex, [thread("", 9, 20, 25)]);
        let elsewhere = ConcurrentQuestion { cpu: None, span: Span::of_ns(80, 90), ..question };
        let found = concurrent(&history(), &elsewhere, &Cancel::default()).unwrap();
        assert!(found.on_cpu.is_empty() && found.in_futex.is_empty());
    }
}
