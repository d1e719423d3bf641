//! Delimiters that `--task` gives by hand: `begin=EVENT,end=EVENT[,key=FIELD][,type=FIELD]`.
//!
//! In: the text and the record classes of the traces. Out: a task, or one line that says what is wrong. Events have the
//! names of any recorder ([`delimiter_names`]); each pairs on its thread, or by a number that both have. ALGORITHMS.md
//! 6.1.

use super::classes::{self, CallSide};
use super::delimiter_names;
use super::signature::EventSignature;
use crate::base::op::Op;
use crate::base::spelling;
use crate::event::task::{Condition, Delimiter, Literal, Pairing, TaskDefinition};
use std::sync::Arc;

/// The task that a text of this form declares.
pub(super) fn parse(typed: &str, classes: &[Arc<EventSignature>]) -> Result<TaskDefinition, String> {
    let (mut begin, mut end, mut key, mut kind) = (None, None, None, None);
    for part in typed.split(',') {
        match part.split_once('=') {
            Some(("begin", v)) => begin = Some(v),
            Some(("end", v)) => end = Some(v),
            Some(("key", v)) => key = Some(v.to_owned()),
            Some(("type", v)) => kind = Some(v.to_owned()),
            _ => {
                return Err(format!(
                    "`{part}` is not understood; write begin=EVENT,end=EVENT[,key=FIELD][,type=FIELD] \
                     or wait=CALL[,thread=NAME]"
                ));
            }
        }
    }
    let side = |what: &str, event: Option<&str>| {
        let event = event.ok_or_else(|| format!("{what}=EVENT is missing"))?;
        let names = delimiter_names::meant(event, classes);
        if names.is_empty() {
            let near = spelling::did_you_mean(event, classes.iter().map(|c| c.shown.as_str()));
            let help = near.unwrap_or_else(|| "`whyslow stats count` lists its events".to_owned());
            return Err(format!("the trace has no event `{event}`; {help}"));
        }
        let lacks =
            |name: &&String, field| !delimiter_names::classes(name, classes).iter().any(|c| c.has_integer(field));
        if let Some(field) = &key
            && names.iter().any(|name| lacks(&name, field))
        {
            return Err(format!("event `{event}` has no integer field `{field}` to pair by"));
        }
        Ok(names.iter().map(|name| Delimiter { key: key.iter().cloned().collect(), ..bare(name) }).collect::<Vec<_>>())
    };
    let (begins, ends) = (side("begin", begin)?, side("end", end)?);
    Ok(TaskDefinition {
        name: typed.to_owned(),
        begins,
        ends: ends.into_iter().map(|end| Delimiter { conditions: Vec::new(), ..end }).collect(),
        pairing: if key.is_some() { Pairing::Key } else { Pairing::Thread },
        kind,
        nest: false,
        process: None,
    })
}

/// A delimiter that pairs on the thread. The exit of a failed system call begins nothing.
pub(super) fn bare(event: &str) -> Delimiter {
    let exit = classes::call(event).is_some_and(|e| e.side == CallSide::Exit);
    let succeeds = Condition { field: "ret".to_owned(), op: Op::AtLeast, value: Literal::Number(0) };
    Delimiter { event: event.to_owned(), key: Vec::new(), conditions: exit.then_some(succeeds).into_iter().collect() }
}
