//! The classes of a trace.dat, of the formats that its head describes.
//!
//! In: the formats of events. Out: the schemas of their classes, the rules by which pages are read, and the fields and
//! records that name threads and processes. Cost: linear in the formats.

use super::marker::MarkerSearch;
use super::pages::{PageRules, StackClasses};
use super::processes::ProcessRecords;
use super::sections::Sections;
use crate::input::record::ClassId;
use crate::input::tracepoint::format::{Field, FieldType, Format};
use crate::input::tracepoint::{self, ClassSchema};

/// The fields of a class that name a thread.
#[derive(Clone, Debug)]
pub(super) struct NameFields {
    pub class: ClassId,
    pub tid: Field,
    pub name: Field,
}

impl NameFields {
    /// The fields of a class, where its format has them.
    fn of(naming: &NamingEvent, class: ClassId, format: &Format) -> Option<NameFields> {
        let field = |name: &str| format.fields.iter().find(|field| field.name == name).cloned();
        let tid = field(naming.tid).filter(|tid| matches!(tid.field_type, FieldType::Number { .. }))?;
        Some(NameFields { class, tid, name: field(naming.name)? })
    }
}

/// Fields of an event that name a thread.
struct NamingEvent {
    event: &'static str,
    tid: &'static str,
    name: &'static str,
}

const NAMING_EVENTS: [NamingEvent; 6] = [
    NamingEvent { event: "sched_switch", tid: "prev_pid", name: "prev_comm" },
    NamingEvent { event: "sched_switch", tid: "next_pid", name: "next_comm" },
    NamingEvent { event: "sched_wakeup_new", tid: "pid", name: "comm" },
    NamingEvent { event: "task_rename", tid: "pid", name: "newcomm" },
    NamingEvent { event: "task_newtask", tid: "pid", name: "comm" },
    NamingEvent { event: "sched_process_fork", tid: "child_pid", name: "child_comm" },
];

/// The classes of a recording.
pub(super) struct Classes {
    pub schemas: Vec<ClassSchema>,
    pub rules: PageRules,
    pub names: Vec<NameFields>,
    pub relations: ProcessRecords,
    pub print: Option<PrintClass>,
}

/// The event of texts that programs write, and the search for markers among them.
pub(super) struct PrintClass {
    pub class: ClassId,
    pub search: MarkerSearch,
}

impl PrintClass {
    fn of(formats: &[Format], rules: &PageRules) -> Option<PrintClass> {
        let format = formats.iter().find(|format| format.system == "ftrace" && format.name == "print")?;
        let class = rules.classes.get(usize::try_from(format.id).ok()?).copied().flatten()?;
        Some(PrintClass { class, search: MarkerSearch::new(format, rules.byte_order)? })
    }
}

/// The classes of a recording with these formats.
pub(super) fn classes(sections: &Sections, formats: Vec<Format>) -> Classes {
    let mut rules = PageRules {
        byte_order: sections.head.byte_order,
        long: usize::from(sections.head.long),
        data: sections.page_data,
        classes: Vec::new(),
        stacks: StackClasses::default(),
        markers: None,
        ticks: sections.ticks,
    };
    let mut names = Vec::new();
    let numbered = |format: &Format| u16::try_from(format.id).ok().map(usize::from);
    for (number, (id, format)) in formats.iter().filter_map(|format| Some((numbered(format)?, format))).enumerate() {
        let class = ClassId::at(number);
        if rules.classes.len() <= id {
            rules.classes.resize(id + 1, None);
        }
        if let Some(place) = rules.classes.get_mut(id) {
            *place = Some(class);
        }
        let own = format.system == "ftrace";
        match format.name.as_str() {
            "kernel_stack" if own => rules.stacks.kernel = Some(class),
            "user_stack" if own => rules.stacks.user = Some(class),
            _ => {}
        }
        let naming = NAMING_EVENTS.iter().filter(|naming| naming.event == format.name);
        names.extend(naming.filter_map(|naming| NameFields::of(naming, class, format)));
    }
    let print = PrintClass::of(&formats, &rules);
    let relations = ProcessRecords::of(&formats, &rules);
    let schemas = formats.into_iter().filter(|format| numbered(format).is_some()).map(schema).collect();
    Classes { schemas, rules, names, relations, print }
}

fn schema(format: Format) -> ClassSchema {
    // The tracer's own events hold stacks and text; they have no stack themselves.
    let own = format.system == "ftrace";
    let known_as = tracepoint::known_as(&format);
    let Format { name, mut common, fields, .. } = format;
    common.retain(|field| tracepoint::is_of_interest(&field.name));
    ClassSchema { name, common, fields, threads: tracepoint::RecordedIds::Initial, stacks: !own, known_as }
}
