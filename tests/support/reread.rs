//! A recorded LTTng trace as events for the writer of traces: the fields that analyses use, read by the program's own
//! reader, so that a recording can be written again in another manner.
//!
//! Kernel call stacks and fields that are neither numbers nor text are left out, but for TCP headers and ids in
//! namespaces.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use super::ctf_writer::{Event, Task, Tcp, Value};
use std::path::Path;
use std::rc::Rc;
use whyslow::parts::input::record::{ClassId, FieldPath, Projection, Scope, StreamId, Value as Read};
use whyslow::parts::input::trace::Trace;

const CONTEXTS: [&str; 7] = ["tid", "pid", "ppid", "vtid", "vpid", "procname", "callstack_user"];
const HEADER: [&str; 7] = [
    "saddr",
    "daddr",
    "tot_len",
    "transport_header.tcp.source_port",
    "transport_header.tcp.dest_port",
    "transport_header.tcp.seq",
    "transport_header.tcp.ack_seq",
];

/// The values to make of the fields of a class, in the order of its projection behind the contexts.
struct Face {
    name: &'static str,
    fields: Vec<&'static str>,
    vtids: bool,
    packet: bool,
}

/// A name that lives as long as the test.
fn kept(name: &str) -> &'static str {
    String::leak(name.to_owned())
}

/// The events of the trace in a folder: without and with call stacks.
pub fn events(folder: &Path) -> (Vec<Event>, Vec<Event>) {
    let trace = Trace::open(folder).unwrap();
    let (mut faces, mut projection) = (Vec::new(), Projection::default());
    for (i, class) in trace.classes().iter().enumerate() {
        let id = ClassId::at(i);
        // Lengths and selectors belong to what is written from its parts.
        let plain = |name: &&str| !name.starts_with('_') && *name != "network_header_type";
        let fields =
            trace.payload_fields(id).iter().map(|field| field.name).filter(plain).map(kept).collect::<Vec<_>>();
        let mut wanted: Vec<FieldPath> = CONTEXTS.iter().map(|c| FieldPath::new(Scope::CommonContext, c)).collect();
        wanted.extend(fields.iter().map(|f| FieldPath::new(Scope::Payload, f)));
        let vtids = trace.has_field(id, Scope::Payload, "vtids");
        let packet = class.name.starts_with("net_");
        if vtids {
            wanted.push(FieldPath::new(Scope::Payload, "vtids"));
        }
        if packet {
            wanted.extend(HEADER.iter().map(|f| FieldPath::new(Scope::Payload, &format!("network_header.ipv4.{f}"))));
        }
        projection.wanted.push(Some(wanted));
        faces.push(Face { name: kept(&class.name), fields, vtids, packet });
    }
    let plan = trace.compile(&projection);
    let (mut plain, mut stacked) = (Vec::new(), Vec::new());
    for (number, stream) in trace.streams().iter().enumerate() {
        let mut reader = trace.reader(&plan, StreamId::at(number), 0..stream.packets.len());
        while let Some(record) = reader.next() {
            let face = &faces[record.class.index()];
            let event = event(face, record.time.ns(), record.cpu, record.values);
            if event.stack.is_some() { stacked.push(event) } else { plain.push(event) }
        }
    }
    (plain, stacked)
}

fn event(face: &Face, time: i64, cpu: u32, values: &[Read<'_>]) -> Event {
    let (contexts, rest) = values.split_at(CONTEXTS.len());
    let id = |at: usize| contexts[at].as_i64().unwrap_or(0) as i32;
    let text = |value: Read<'_>| String::from_utf8_lossy(value.as_text().unwrap_or(b"")).into_owned();
    let comm = text(contexts[5]).into();
    let on = Rc::new(Task { tid: id(0), pid: id(1), ppid: id(2), vtid: id(3), vpid: id(4), comm });
    let stack = contexts[6].as_words().map(|w| w.iter().collect());
    let mut fields: Vec<(&'static str, Value)> = Vec::new();
    for (name, value) in face.fields.iter().zip(rest) {
        let value = match *value {
            Read::Unsigned(n) => Value::U64(n),
            Read::Signed(n) => Value::I64(n),
            Read::Text(_) => Value::Text(text(*value)),
            _ => continue,
        };
        fields.push((name, value));
    }
    let more = &rest[face.fields.len()..];
    if face.vtids {
        let ids = more[0].as_words().map(|w| w.iter().map(|id| id as i32).collect()).unwrap_or_default();
        fields.push(("vtids", Value::Ids(ids)));
    }
    if face.packet {
        fields.push(("network_header", Value::Packet(tcp(&more[usize::from(face.vtids)..]))));
    }
    Event { time, cpu, name: face.name.into(), fields, on, stack }
}

/// A packet that is none of TCP over IPv4 becomes one that fits no other.
fn tcp(header: &[Read<'_>]) -> Tcp {
    let number = |at: usize| header[at].as_u64().unwrap_or(0);
    let address = |at: usize| {
        let mut bytes = [0; 4];
        let words: Vec<u64> = header[at].as_words().map(|w| w.iter().collect()).unwrap_or_default();
        bytes.iter_mut().zip(words).for_each(|(byte, word)| *byte = word as u8);
        bytes
    };
    Tcp {
        source: (address(0), number(3) as u16),
        dest: (address(1), number(4) as u16),
        seq: number(5) as u32,
        ack: number(6) as u32,
        len: (number(2) as u16).saturating_sub(40),
    }
}
