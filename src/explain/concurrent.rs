//! Who else ran on a CPU, waited for a disk or was in a futex call during a part of a time-line.
//!
//! In: a state history. Out: a [`ConcurrentUse`]. Cost: three searches of the history over the span, and one for the
//! name of each thread in the answer.

use crate::base::ctx::{Cancel, Cancelled};
use crate::base::time::Span;
use crate::model::concurrent::{ConcurrentQuestion, ConcurrentThread, ConcurrentUse};
use crate::state::history::lines::{HistoryLine, Time};
use crate::state::history::{Shown, StateHistory};
use std::collections::BTreeMap;

/// Threads named in each list, at most.
const MOST: usize = 12;

/// The threads that used the same things meanwhile.
pub fn concurrent(
    history: &dyn StateHistory,
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
    let on_disk = ask.times_of("threads/*/state", |state| state == "disk")?;
    let mut in_futex = ask.times_of("threads/*/syscall", |call| call.starts_with("futex"))?;
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
    history: &'a dyn StateHistory,
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

    /// Time of each thread with a text that is asked for.
    fn times_of(&self, pattern: &str, fits: impl Fn(&str) -> bool) -> Result<ThreadSpans, Cancelled> {
        let mut times = ThreadSpans::new();
        for line in self.lines(pattern)? {
            let path = self.history.attributes().path_of(line.attribute);
            let Some(tid) = path.rsplit('/').nth(1).and_then(|tid| tid.parse().ok()) else { continue };
            let texts = line.held.iter().filter_map(|held| match self.history.show(held.value?) {
                Shown::Text(text) if fits(text) => self.inside(held.span),
                _ => None,
            });
            times.entry(tid).or_default().extend(texts);
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
    use crate::base::ctx::Ctx;
    use crate::base::names::Names;
    use crate::state::history::History;
    use crate::state::history::builder::HistoryBuilder;
    use crate::state::history::interval::{Run, StateValue};
    use crate::state::history::tree::Shape;

    /// A history of one host; values that are texts are states or names.
    fn history() -> History {
        let mut builder = HistoryBuilder::new(&["running", "disk"]);
        let mut texts = Names::default();
        let [futex, read, worker] = ["futex", "read", "worker"].map(|text| texts.intern(text));
        builder.texts = texts;
        let mut paths: Vec<(String, i64, i64, StateValue)> = vec![
            ("cpus/2/thread".into(), 0, 40, StateValue::Int(7)),
            ("cpus/2/thread".into(), 40, 70, StateValue::Int(8)),
            ("cpus/2/thread".into(), 70, 90, StateValue::Int(0)),
            ("cpus/3/thread".into(), 0, 90, StateValue::Int(9)),
        ];
        paths.push(("threads/8/state".into(), 0, 90, StateValue::Code(1)));
        paths.push(("threads/7/state".into(), 0, 90, StateValue::Code(1)));
        paths.push(("threads/9/syscall".into(), 10, 25, StateValue::Text(futex)));
        paths.push(("threads/9/syscall".into(), 25, 60, StateValue::Text(read)));
        paths.push(("threads/8/name".into(), 0, 90, StateValue::Text(worker)));
        // Thread 10 is one of another process.
        paths.push(("threads/9/pid".into(), 0, 90, StateValue::Int(7)));
        paths.push(("threads/10/syscall".into(), 0, 90, StateValue::Text(futex)));
        paths.push(("threads/10/pid".into(), 0, 90, StateValue::Int(10)));
        for (path, start, end, value) in paths {
            let attribute = builder.attributes.path(&path);
            let mut run = Run::default();
            run.push(attribute, Span::of_ns(start, end), value);
            builder.push(run);
        }
        builder.seal(Span::of_ns(0, 90), Shape::default(), &Ctx::new(1)).unwrap()
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
