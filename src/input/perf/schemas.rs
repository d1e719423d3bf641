//! The record classes of a perf.data: one for each event that was recorded, then those of perf's other records.
//!
//! Samples of an event that is no tracepoint show what threads do; `period` is the amount that a sample counts for.

use super::attr::{Attr, COMM, COMM_EXEC, CONTEXT_SWITCH, TASK, TRACEPOINT};
use super::header::Header;
use super::record_types::SideClass;
use super::sample::period_at;
use crate::input::stream;
use crate::input::tracepoint::format::{Field, FieldType};
use crate::input::tracepoint::{self, ClassSchema, RecordedIds};

/// One class for each attr, then those of the other records.
pub fn schemas(attrs: &[Attr], header: &Header) -> Vec<ClassSchema> {
    let forks_recorded = attrs.iter().any(|a| a.flag(TASK));
    // The record precedes the mappings of the new program, the tracepoint follows them. So only the record divides the
    // mappings of the old program from those of the new one.
    let execs_recorded = attrs.iter().any(|a| a.flag(COMM) && a.flag(COMM_EXEC));
    let mut schemas: Vec<ClassSchema> = Vec::with_capacity(attrs.len() + SideClass::ALL.len());
    for attr in attrs {
        let mut schema = of_attr(attr, header);
        // PERF_RECORD_FORK has the same information, and the process.
        let is_repeated = (schema.known_as.as_deref() == Some("sched_process_fork:tids") && forks_recorded)
            || (schema.known_as.as_deref() == Some("sched_process_exec") && execs_recorded);
        // No state follows from events of which some are missing.
        if is_repeated || attr.is_thinned_out() {
            schema.known_as = Some(stream::Class::UNKNOWN);
        }
        schemas.push(schema);
    }
    // The tracepoint has more information, and a stack.
    let switches_recorded = schemas.iter().any(is_switch);
    for side in SideClass::ALL {
        let mut schema = side.schema();
        let is_cpu_wide = matches!(side, SideClass::SwitchOut | SideClass::SwitchPreempted);
        let is_repeated = switches_recorded && is_cpu_wide;
        if side.is_switch() && (is_repeated || !attrs.iter().all(Attr::identifies_threads)) {
            schema.known_as = Some(stream::Class::UNKNOWN);
        }
        schemas.push(schema);
    }
    schemas
}

/// True where records say which thread leaves a CPU, and which one gets it.
pub fn has_switches(attrs: &[Attr], schemas: &[ClassSchema]) -> bool {
    schemas.iter().any(is_switch) || attrs.iter().any(|attr| attr.flag(CONTEXT_SWITCH))
}

fn is_switch(schema: &ClassSchema) -> bool {
    schema.known_as.as_deref() == Some("sched_switch")
}

/// The class of an event.
fn of_attr(attr: &Attr, header: &Header) -> ClassSchema {
    let format = (attr.kind == TRACEPOINT).then(|| header.formats.iter().find(|f| f.id == attr.config)).flatten();
    if let Some(format) = format {
        return ClassSchema {
            name: format!("{}:{}", format.system, format.name),
            common: format.common.iter().filter(|f| tracepoint::is_of_interest(&f.name)).cloned().collect(),
            fields: format.fields.clone(),
            threads: RecordedIds::Initial,
            known_as: tracepoint::known_as(format),
            stacks: attr.has_chains(),
        };
    }
    let name = attr.shown_name();
    if !attr.is_sampled() {
        return ClassSchema { name, stacks: attr.has_chains(), ..ClassSchema::default() };
    }
    let period = match period_at(attr) {
        Some(at) => Field::new("period", at, 8, FieldType::Number { signed: false }),
        None => Field::new("period", 0, 0, FieldType::Given(attr.usual_period())),
    };
    ClassSchema {
        name,
        fields: vec![period],
        threads: RecordedIds::Initial,
        stacks: attr.has_chains() || attr.has_addresses(),
        known_as: Some("perf:tick".into()),
        ..ClassSchema::default()
    }
}
