//! The delimiters of tasks, by the record classes of a trace.
//!
//! In: the classes of a trace and the requested tasks. Out: for each class the delimiters that its records may be. An
//! event of a system call that the trace has no class of, but whose calls it has by number (`raw_syscalls`), is a
//! record of that class with the number that the call has on the machine of the trace. Cost: linear in classes and
//! delimiters.

use crate::event::task::TaskDefinition;
use crate::input::Trace;
use crate::reading::delimiter_names::numbered_side;
use crate::reading::{classes, dialect, syscalls};
use foldhash::{HashMap, HashSet};

/// A delimiter of a task, by its position.
#[derive(Clone, Copy, Debug)]
pub(super) struct DelimiterPlace {
    /// Position of the task.
    pub task: u32,
    /// True among the begins of the task, false among its ends.
    pub begins: bool,
    /// Position there.
    pub at: usize,
    /// Only records with this number of a system call are meant.
    pub call: Option<i64>,
}

/// The delimiters of all tasks, by the name of the class.
pub(super) struct Delimiters<'n> {
    by_class: HashMap<&'n str, Vec<DelimiterPlace>>,
}

impl<'n> Delimiters<'n> {
    /// Those of some tasks in a trace.
    pub fn new(trace: &'n Trace, tasks: &'n [TaskDefinition]) -> Delimiters<'n> {
        let mut by_class: HashMap<&str, Vec<DelimiterPlace>> = HashMap::default();
        for (number, task) in tasks.iter().enumerate() {
            for (begins, side) in [(true, &task.begins), (false, &task.ends)] {
                for (at, delimiter) in side.iter().enumerate() {
                    let place = DelimiterPlace { task: number as u32, begins, at, call: None };
                    by_class.entry(&delimiter.event).or_default().push(place);
                }
            }
        }
        let declared: HashSet<&str> = trace.classes().iter().map(|class| class.known()).collect();
        let mut by_number: Vec<(&str, Vec<DelimiterPlace>)> = Vec::new();
        for class in &declared {
            let Some(side) = numbered_side(class) else { continue };
            let number = |event: &str| {
                let call = classes::call(event).filter(|call| call.side == side && !declared.contains(event))?;
                syscalls::number(dialect::machine(trace), call.call)
            };
            let of_class = by_class.iter().filter_map(|(event, places)| Some((number(event)?, places)));
            let numbered = of_class.flat_map(|(call, places)| {
                places.iter().map(move |place| DelimiterPlace { call: Some(call), ..*place })
            });
            by_number.push((class, numbered.collect()));
        }
        for (class, mut places) in by_number {
            // The table is unordered.
            places.sort_by_key(|place| (place.task, !place.begins, place.at));
            by_class.entry(class).or_default().extend(places);
        }
        by_class.retain(|_, places| !places.is_empty());
        Delimiters { by_class }
    }

    /// The delimiters that the records of a class may be.
    pub fn of(&self, class: &str) -> &[DelimiterPlace] {
        self.by_class.get(class).map_or(&[], Vec::as_slice)
    }
}
