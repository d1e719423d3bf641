//! Causes in a few words each, so that no two of a list read the same: the kind, the culprit, and where these agree the
//! frame of the call path that only this one has.

use crate::compare::Cause;
use crate::view::words;

/// The labels of a list of causes.
pub fn labels(causes: &[Cause]) -> Vec<String> {
    let plain: Vec<String> = causes.iter().map(label).collect();
    let distinct = |(at, cause): (usize, &Cause)| {
        let same = || (0..causes.len()).filter(|other| *other != at && plain[*other] == plain[at]);
        let is_own = |frame: &&String| same().all(|other| !causes[other].path.contains(frame));
        let own = cause.path.iter().rev().find(is_own).filter(|_| same().next().is_some());
        match own {
            Some(frame) => format!("{} › {}", plain[at], words::frame_of_path(frame)),
            None => plain[at].clone(),
        }
    };
    causes.iter().enumerate().map(distinct).collect()
}

/// The kind and the culprit of a cause; the details page has the sentence.
fn label(cause: &Cause) -> String {
    let Some(kind) = cause.kind else { return "many small differences".to_owned() };
    let by = &cause.by;
    let who = match (&by.process, &by.thread) {
        // `rank 2 thread 1` contains its process, `rank 2`.
        (Some(process), Some(thread)) if process.starts_with("rank ") && thread.starts_with(process) => thread.clone(),
        (Some(process), Some(thread)) if process != thread => format!("{process}/{thread}"),
        (Some(name), _) | (None, Some(name)) => name.clone(),
        (None, None) => String::new(),
    };
    let mut parts = vec![who];
    parts.extend(by.function.clone());
    parts.retain(|p| !p.is_empty());
    if parts.is_empty() {
        let tail = cause.path.len().saturating_sub(2);
        parts.extend(cause.path.iter().skip(tail).map(|frame| words::frame_of_path(frame).to_owned()));
    }
    format!("{}  {}", words::kind(kind), parts.join(" › "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::Culprit;
    use crate::model::wait_kind::WaitKind;

    fn cause(path: &[&str]) -> Cause {
        Cause {
            rank: Some(1),
            kind: Some(WaitKind::Cpu),
            extra_ns: 1,
            share: 0.5,
            deviations: None,
            p_value: None,
            slow_affected: 0.0,
            fast_affected: 0.0,
            path: path.iter().map(|f| (*f).to_owned()).collect(),
            context: None,
            contexts: Vec::new(),
            places: Vec::new(),
            by: Culprit { process: Some("ledgerd".into()), ..Culprit::default() },
            parts: Vec::new(),
            sentence: String::new(),
        }
    }

    #[test]
    fn labels_differ_by_the_last_frame_that_only_one_has() {
        let causes = [
            cause(&["ledgerd", "main", "flush", "[write]"]),
            cause(&["ledgerd", "main", "parse", "[write]"]),
            cause(&["ledgerd", "main"]),
        ];
        assert_eq!(labels(&causes), ["cpu  ledgerd › flush", "cpu  ledgerd › parse", "cpu  ledgerd"]);
        assert_eq!(labels(&causes[..1]), ["cpu  ledgerd"], "alone it needs no frame");
    }
}
