//! Who else used the same things as a thread during a segment: the question, its answer, and that in words.

use super::job::JobError;
use super::theme::StyleScope;
use super::widget::page::{StyledLine, paragraph, plain};
use crate::base::figure;
use crate::model::concurrent::{ConcurrentQuestion, ConcurrentThread, ConcurrentUse};

/// The other threads that used the same things during a segment.
#[derive(Clone, Debug)]
pub struct ConcurrentAnswer {
    pub question: ConcurrentQuestion,
    /// The answer; `None` while a job looks for it.
    pub answer: Option<Result<ConcurrentUse, JobError>>,
}

impl ConcurrentAnswer {
    /// Its lines in this width.
    pub fn lines(&self, columns: usize) -> Vec<StyledLine> {
        match &self.answer {
            None => vec![plain(StyleScope::Progress, "looking who else was there …")],
            Some(Err(error)) => paragraph(StyleScope::Error, &error.to_string(), columns, 0),
            Some(Ok(used)) => {
                let texts = others(self.question.cpu, used);
                texts.iter().flat_map(|text| paragraph(StyleScope::Strong, text, columns, 2)).collect()
            }
        }
    }
}

/// The other threads, a line per thing that they used.
fn others(cpu: Option<u32>, used: &ConcurrentUse) -> Vec<String> {
    let thread = |t: &ConcurrentThread| {
        let name = if t.name.is_empty() { "thread" } else { &t.name };
        format!("{name} {} {}", t.tid, figure::time(t.ns as f64))
    };
    let list = |title: String, threads: &[ConcurrentThread]| {
        let names: Vec<String> = threads.iter().map(thread).collect();
        (!names.is_empty()).then(|| format!("{title}: {}", names.join(", ")))
    };
    let on_cpu = cpu.and_then(|cpu| list(format!("ran on CPU {cpu} meanwhile"), &used.on_cpu));
    let lines: Vec<String> = [
        on_cpu,
        list("waited for a disk meanwhile".into(), &used.on_disk),
        list("of its process in futex calls meanwhile".into(), &used.in_futex),
    ]
    .into_iter()
    .flatten()
    .collect();
    if lines.is_empty() {
        vec!["no other thread used its CPU or a disk meanwhile, none of its process a futex".into()]
    } else {
        lines
    }
}
