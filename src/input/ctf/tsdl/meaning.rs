//! Derives the meaning of members from their names: roles, clocks of time stamps, the default clock of each stream
//! class.

use crate::input::ctf::error::MetadataError;
use crate::input::ctf::schema::{Bits, ByteMeaning, Clock, Count, Field, Kind, Role, Schema};

/// Gives roles to members by name, clocks to time stamps without one, and each stream class its default clock.
pub(super) fn assign_meaning(schema: &mut Schema) -> Result<(), MetadataError> {
    const HEADER: [(&str, Role); 3] =
        [("magic", Role::Magic), ("stream_id", Role::StreamClass), ("stream_instance_id", Role::StreamInstance)];
    const CONTEXT: [(&str, Role); 7] = [
        ("packet_size", Role::PacketBits),
        ("content_size", Role::ContentBits),
        ("timestamp_begin", Role::Begin),
        ("timestamp_end", Role::End),
        ("events_discarded", Role::Discarded),
        ("packet_seq_num", Role::Sequence),
        ("cpu_id", Role::Cpu),
    ];
    let several = schema.streams.len() > 1;
    if let Some(header) = &mut schema.packet_header {
        mark_members(header, &HEADER, "trace.packet.header")?;
        check_header(header)?;
        if several && !saves(header, Role::StreamClass) {
            return Err(MetadataError::at(0, "several stream classes, but packet headers have no `stream_id`"));
        }
    } else if several {
        return Err(MetadataError::at(0, "several stream classes, but packets have no header that distinguishes them"));
    }
    for stream in &mut schema.streams {
        let mut clocks = Vec::new();
        if let Some(context) = &mut stream.packet_context {
            mark_members(context, &CONTEXT, "stream.packet.context")?;
            mark_escaped_cpu(context);
            for name in ["timestamp_begin", "timestamp_end"] {
                map_to_only_clock(context, name, &mut schema.clocks)?;
            }
            clocks_of(context, &mut clocks);
        }
        if let Some(header) = &mut stream.event_header {
            mark_everywhere(header, "id", Role::EventClass);
            map_to_only_clock(header, "timestamp", &mut schema.clocks)?;
            clocks_of(header, &mut clocks);
        }
        clocks.sort_unstable();
        clocks.dedup();
        if clocks.len() > 1 {
            let what = format!("stream class {} has time stamps of {} clocks", stream.id, clocks.len());
            return Err(MetadataError::at(0, what));
        }
        stream.clock = clocks.first().copied();
        let has_id = stream.event_header.as_ref().is_some_and(|h| saves(h, Role::EventClass));
        if stream.events.len() > 1 && !has_id {
            let what = format!("stream class {} has several event classes, but event headers have no `id`", stream.id);
            return Err(MetadataError::at(0, what));
        }
    }
    Ok(())
}

fn mark_members(root: &mut Field, roles: &[(&str, Role)], place: &str) -> Result<(), MetadataError> {
    let Kind::Struct(members) = &mut root.kind else { return Ok(()) };
    for member in members {
        let Some((name, role)) = roles.iter().find(|(name, _)| *name == &*member.written) else { continue };
        match &mut member.field.kind {
            Kind::Bits(bits) if !bits.signed => bits.saves.push(role.slot()),
            _ => return Err(MetadataError::at(0, format!("`{name}` in {place} must be an unsigned integer"))),
        }
    }
    Ok(())
}

/// `cpu_id` is a name that tracers use and CTF does not define, so a tool that rewrites a trace escapes it like any
/// other name (babeltrace's sink does).
fn mark_escaped_cpu(context: &mut Field) {
    let Kind::Struct(members) = &mut context.kind else { return };
    if members.iter().any(|m| &*m.written == "cpu_id") {
        return;
    }
    for member in members.iter_mut().filter(|m| &*m.written == "_cpu_id") {
        if let Kind::Bits(bits) = &mut member.field.kind
            && !bits.signed
        {
            bits.saves.push(Role::Cpu.slot());
        }
    }
}

fn check_header(header: &mut Field) -> Result<(), MetadataError> {
    let Kind::Struct(members) = &mut header.kind else { return Ok(()) };
    for (place, member) in members.iter_mut().enumerate() {
        match (&*member.written, &mut member.field.kind) {
            ("magic", Kind::Bits(Bits { size: 32, .. })) if place == 0 => {}
            ("magic", _) => {
                return Err(MetadataError::at(
                    0,
                    "`magic` must be an integer of 32 bits and the first member of the header",
                ));
            }
            ("uuid", Kind::Array { count: Count::Fixed(16), element, meaning }) => {
                if !matches!(element.kind, Kind::Bits(Bits { size: 8, .. })) || element.align != 8 {
                    return Err(MetadataError::at(0, "`uuid` in trace.packet.header must be an array of 16 bytes"));
                }
                *meaning = ByteMeaning::TraceUuid;
            }
            ("uuid", _) => {
                return Err(MetadataError::at(0, "`uuid` in trace.packet.header must be an array of 16 bytes"));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Calls `see` with each integer and the name of its member.
fn each_integer(field: &mut Field, name: &str, see: &mut impl FnMut(&str, &mut Bits)) {
    match &mut field.kind {
        Kind::Bits(bits) => see(name, bits),
        Kind::Struct(members) => {
            for member in members {
                each_integer(&mut member.field, &member.written, see);
            }
        }
        Kind::Variant { options, .. } => {
            for option in options {
                each_integer(&mut option.field, &option.written, see);
            }
        }
        _ => {}
    }
}

fn mark_everywhere(root: &mut Field, name: &str, role: Role) {
    each_integer(root, "", &mut |member, bits| {
        if member == name && !bits.signed {
            bits.saves.push(role.slot());
        }
    });
}

/// Maps time stamps without a clock to the only clock, or to a new one if there is none.
fn map_to_only_clock(root: &mut Field, name: &str, clocks: &mut Vec<Clock>) -> Result<(), MetadataError> {
    let mut unmapped = false;
    each_integer(root, "", &mut |member, bits| unmapped |= member == name && bits.clock.is_none());
    if !unmapped {
        return Ok(());
    }
    if clocks.is_empty() {
        let name = "default".to_owned();
        clocks.push(Clock { name, uuid: None, frequency: 1_000_000_000, offset_seconds: 0, offset_cycles: 0 });
    }
    if clocks.len() > 1 {
        return Err(MetadataError::at(0, format!("`{name}` names no clock, and there are {}", clocks.len())));
    }
    each_integer(root, "", &mut |member, bits| {
        if member == name && bits.clock.is_none() {
            bits.clock = Some(0);
        }
    });
    Ok(())
}

fn clocks_of(root: &mut Field, clocks: &mut Vec<usize>) {
    each_integer(root, "", &mut |_, bits| clocks.extend(bits.clock));
}

fn saves(root: &Field, role: Role) -> bool {
    match &root.kind {
        Kind::Bits(bits) => bits.saves.contains(&role.slot()),
        Kind::Struct(members) => members.iter().any(|m| saves(&m.field, role)),
        Kind::Variant { options, .. } => options.iter().any(|o| saves(&o.field, role)),
        _ => false,
    }
}
