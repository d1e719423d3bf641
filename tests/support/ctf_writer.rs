//! A CTF 1.8 trace from a list of events, in the form of LTTng's own: field names with an underscore, names of
//! threads in 16 bytes, IP and TCP headers in network byte order, one stream file for each channel and CPU.
//!
//! In: [`Channel`]s of [`Event`]s in any order. Out: a directory that babeltrace2, Trace Compass and whyslow read.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, dead_code)]

mod packets;

use super::random::Random;
use packets::{drawn, full};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::rc::Rc;
use whyslow::parts::base::time::Ns;

/// Time and bytes of an event.
type Record = (Ns, Vec<u8>);

/// Members of IPv4 and TCP headers as LTTng declares them, in network byte order.
const NETWORK_HEADER: &str = r#"enum : integer { size = 8; align = 8; signed = 0; } { "_unknown" = 0, "_ipv4" = 1, "_ipv6" = 2, } _network_header_type;
variant <_network_header_type> {
 struct { } _unknown;
 struct {
  integer { size = 4; align = 4; signed = 0; byte_order = be; } _version;
  integer { size = 4; align = 4; signed = 0; byte_order = be; } _ihl;
  integer { size = 8; align = 8; signed = 0; byte_order = be; } _tos;
  integer { size = 16; align = 8; signed = 0; byte_order = be; } _tot_len;
  integer { size = 16; align = 8; signed = 0; base = 16; byte_order = be; } _id;
  integer { size = 16; align = 8; signed = 0; byte_order = be; } _frag_off;
  integer { size = 8; align = 8; signed = 0; byte_order = be; } _ttl;
  enum : integer { size = 8; align = 8; signed = 0; byte_order = be; } { "_unknown" = 0, "_icmp" = 1, "_tcp" = 6, "_udp" = 17, } _protocol;
  integer { size = 16; align = 8; signed = 0; base = 16; byte_order = be; } _checksum;
  integer { size = 8; align = 8; signed = 0; byte_order = be; } _saddr[4];
  integer { size = 8; align = 8; signed = 0; byte_order = be; } _daddr[4];
  enum : integer { size = 8; align = 8; signed = 0; } { "_unknown" = 0, "_tcp" = 1, "_udp" = 2, "_icmp" = 3, } _transport_header_type;
  variant <_transport_header_type> {
   struct { } _unknown;
   struct {
    integer { size = 16; align = 8; signed = 0; byte_order = be; } _source_port;
    integer { size = 16; align = 8; signed = 0; byte_order = be; } _dest_port;
    integer { size = 32; align = 8; signed = 0; byte_order = be; } _seq;
    integer { size = 32; align = 8; signed = 0; byte_order = be; } _ack_seq;
    integer { size = 4; align = 4; signed = 0; byte_order = be; } _data_offset;
    integer { size = 3; align = 1; signed = 0; byte_order = be; } _reserved;
    integer { size = 9; align = 1; signed = 0; base = 16; byte_order = be; } _flags;
    integer { size = 16; align = 8; signed = 0; byte_order = be; } _window_size;
    integer { size = 16; align = 8; signed = 0; base = 16; byte_order = be; } _checksum;
    integer { size = 16; align = 8; signed = 0; byte_order = be; } _urg_ptr;
   } _tcp;
   struct { } _udp;
   struct { } _icmp;
  } _transport_header;
 } _ipv4;
 struct { } _ipv6;
} _network_header;
"#;

/// A TCP segment over IPv4.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tcp {
    pub source: ([u8; 4], u16),
    pub dest: ([u8; 4], u16),
    pub seq: u32,
    pub ack: u32,
    /// Bytes of payload.
    pub len: u16,
}

impl Tcp {
    fn bytes(&self) -> Vec<u8> {
        let mut bytes = vec![1, 0x45, 0];
        bytes.extend((40 + self.len).to_be_bytes());
        bytes.extend([0, 1, 0x40, 0, 64, 6, 0, 0]);
        bytes.extend(self.source.0);
        bytes.extend(self.dest.0);
        bytes.push(1);
        bytes.extend(self.source.1.to_be_bytes());
        bytes.extend(self.dest.1.to_be_bytes());
        bytes.extend(self.seq.to_be_bytes());
        bytes.extend(self.ack.to_be_bytes());
        // Header of five words, PSH and ACK.
        bytes.extend([0x50, 0x18, 2, 0, 0, 0, 0, 0]);
        bytes
    }
}

/// The value of a field.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    I32(i32),
    U32(u32),
    I64(i64),
    U64(u64),
    U8(u8),
    /// A thread's name: 16 bytes.
    Comm(Rc<str>),
    Text(String),
    /// Addresses, with their number before them.
    Words(Rc<[u64]>),
    /// Ids, with their number before them.
    Ids(Vec<i32>),
    /// The fields `network_header_type` and `network_header`.
    Packet(Tcp),
}

impl Value {
    fn declare(&self, name: &str) -> String {
        let int = |size: u32, signed: u8| {
            format!("integer {{ size = {size}; align = 8; signed = {signed}; base = 10; }} _{name};\n")
        };
        match self {
            Value::I32(_) => int(32, 1),
            Value::U32(_) => int(32, 0),
            Value::I64(_) => int(64, 1),
            Value::U64(_) => int(64, 0),
            Value::U8(_) => int(8, 0),
            Value::Comm(_) => format!("integer {{ size = 8; align = 8; signed = 1; encoding = UTF8; }} _{name}[16];\n"),
            Value::Text(_) => format!("string _{name};\n"),
            Value::Words(_) => format!(
                "integer {{ size = 32; align = 8; signed = 0; }} __{name}_length;\n\
                 integer {{ size = 64; align = 8; signed = 0; base = 16; }} _{name}[ __{name}_length ];\n"
            ),
            Value::Ids(_) => format!(
                "integer {{ size = 8; align = 8; signed = 0; }} __{name}_length;\n\
                 integer {{ size = 32; align = 8; signed = 1; }} _{name}[ __{name}_length ];\n"
            ),
            Value::Packet(_) => NETWORK_HEADER.to_owned(),
        }
    }

    fn put(&self, out: &mut Vec<u8>) {
        match self {
            Value::I32(n) => out.extend(n.to_le_bytes()),
            Value::U32(n) => out.extend(n.to_le_bytes()),
            Value::I64(n) => out.extend(n.to_le_bytes()),
            Value::U64(n) => out.extend(n.to_le_bytes()),
            Value::U8(n) => out.push(*n),
            Value::Comm(text) => {
                let mut comm = [0; 16];
                let len = text.len().min(15);
                comm[..len].copy_from_slice(&text.as_bytes()[..len]);
                out.extend(comm);
            }
            Value::Text(text) => out.extend(text.bytes().chain([0])),
            Value::Words(words) => {
                out.extend((words.len() as u32).to_le_bytes());
                out.extend(words.iter().flat_map(|w| w.to_le_bytes()));
            }
            Value::Ids(ids) => {
                out.push(ids.len() as u8);
                out.extend(ids.iter().flat_map(|id| id.to_le_bytes()));
            }
            Value::Packet(tcp) => out.extend(tcp.bytes()),
        }
    }
}

/// A thread as contexts name it.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Task {
    pub tid: i32,
    pub pid: i32,
    pub ppid: i32,
    /// In its own namespace.
    pub vtid: i32,
    pub vpid: i32,
    pub comm: Rc<str>,
}

/// A context that a channel adds to all of its events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Context {
    Tid,
    Pid,
    Ppid,
    Vtid,
    Vpid,
    Procname,
    UserStack,
    /// The event's field `callstack_kernel`, without addresses where it has none.
    KernelStack,
    /// Another context: the event's field of this name, 0 where it has none.
    U64(&'static str),
    /// The same with 32 bits.
    I32(&'static str),
}

impl Context {
    /// The name of the field that is written as this context.
    fn field(self) -> Option<&'static str> {
        match self {
            Context::U64(name) | Context::I32(name) => Some(name),
            Context::KernelStack => Some("callstack_kernel"),
            _ => None,
        }
    }

    fn value(self, event: &Event) -> (&'static str, Value) {
        let on = &event.on;
        match self {
            Context::Tid => ("tid", Value::I32(on.tid)),
            Context::Pid => ("pid", Value::I32(on.pid)),
            Context::Ppid => ("ppid", Value::I32(on.ppid)),
            Context::Vtid => ("vtid", Value::I32(on.vtid)),
            Context::Vpid => ("vpid", Value::I32(on.vpid)),
            Context::Procname => ("procname", Value::Comm(Rc::clone(&on.comm))),
            Context::U64(name) => (name, event.field(name).unwrap_or(Value::U64(0))),
            Context::I32(name) => (name, event.field(name).unwrap_or(Value::I32(0))),
            Context::KernelStack => {
                let empty = || Value::Words(Rc::from(&[][..]));
                ("callstack_kernel", event.field("callstack_kernel").unwrap_or_else(empty))
            }
            Context::UserStack => {
                ("callstack_user", Value::Words(event.stack.clone().unwrap_or_else(|| Rc::from(&[][..]))))
            }
        }
    }
}

/// An event.
#[derive(Clone, Debug)]
pub struct Event {
    pub time: Ns,
    pub cpu: u32,
    pub name: Cow<'static, str>,
    pub fields: Vec<(&'static str, Value)>,
    /// Runs on the CPU.
    pub on: Rc<Task>,
    /// Its user-space call stack, innermost first, where the moment allows to take one.
    pub stack: Option<Rc<[u64]>>,
}

impl Event {
    fn field(&self, name: &str) -> Option<Value> {
        self.fields.iter().find(|(n, _)| *n == name).map(|(_, value)| value.clone())
    }
}

/// A channel: events of all CPUs with the same contexts.
#[derive(Clone, Debug, Default)]
pub struct Channel {
    pub name: String,
    pub contexts: Vec<Context>,
    pub events: Vec<Event>,
    /// The tracer discarded this many events of a CPU from this time on, up to its next event, and says so.
    pub discarded: Vec<(u32, Ns, u64)>,
}

/// How the events of a stream become packets.
#[derive(Clone, Copy, Debug)]
pub enum Packets {
    /// Packets of 500 events, in order of time.
    Full,
    /// Packets of 5 to 44 events, drawn from a seed.
    Drawn(u64),
    /// The same, and one packet in 8 is lost: the next one counts its events, or only the gap in the sequence numbers
    /// shows it. Events keep the order in which they were given.
    DrawnAndLost(u64),
}

/// The properties of a whole trace.
#[derive(Clone, Debug)]
pub struct TraceWriter {
    /// Lines of the environment; none, as tracers of other people write.
    pub environment: Vec<(String, String)>,
    pub uuid: u128,
    pub clock_uuid: Option<u128>,
    /// Added by readers to the times of events, which are written without it.
    pub clock_offset: Ns,
    /// Ticks of the clock per second, in which times and the offset are written.
    pub clock_frequency: u64,
    /// From when to when the tracer ran.
    pub span: (Ns, Ns),
    pub packets: Packets,
    /// The names of fields and contexts get an underscore, as LTTng's do.
    pub channels: Vec<Channel>,
}

const NS_PER_SECOND: u64 = 1_000_000_000;

fn uuid_text(uuid: u128) -> String {
    let hex = format!("{uuid:032x}");
    [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
}

impl TraceWriter {
    /// The trace of one tracer on one host; `domain` is `kernel` or `ust`.
    pub fn new(host: &str, domain: &str, uuid: u128, clock_uuid: u128) -> TraceWriter {
        let environment = [
            ("hostname", host),
            ("domain", domain),
            ("sysname", "Linux"),
            ("kernel_release", "6.1.0"),
            ("tracer_name", if domain == "kernel" { "lttng-modules" } else { "lttng-ust" }),
        ];
        let environment = environment.map(|(k, v)| (k.to_owned(), v.to_owned())).to_vec();
        let clock_uuid = Some(clock_uuid);
        TraceWriter {
            environment,
            uuid,
            clock_uuid,
            clock_offset: 0,
            clock_frequency: NS_PER_SECOND,
            span: (0, 0),
            packets: Packets::Full,
            channels: Vec::new(),
        }
    }

    /// A time in ticks of the clock: the last one before it.
    fn ticks(&self, time: Ns) -> i64 {
        (i128::from(time) * i128::from(self.clock_frequency)).div_euclid(NS_PER_SECOND.into()) as i64
    }

    /// Write the directory.
    pub fn write(&self, folder: &Path) {
        std::fs::create_dir_all(folder).unwrap();
        let mut metadata = self.preamble();
        for (number, channel) in self.channels.iter().enumerate() {
            let mut classes: BTreeMap<String, (usize, String)> = BTreeMap::new();
            let mut streams: BTreeMap<u32, Vec<Record>> = BTreeMap::new();
            let mut events: Vec<&Event> = channel.events.iter().collect();
            if !matches!(self.packets, Packets::DrawnAndLost(_)) {
                events.sort_by_key(|e| e.time);
            }
            let is_payload = |(name, _): &&(&str, Value)| channel.contexts.iter().all(|c| c.field() != Some(name));
            for event in events {
                let payload = || event.fields.iter().filter(is_payload);
                let next = classes.len();
                let (id, _) = classes
                    .entry(event.name.to_string())
                    .or_insert_with(|| (next, payload().map(|(name, value)| value.declare(name)).collect()));
                let mut bytes = (*id as u32).to_le_bytes().to_vec();
                bytes.extend((self.ticks(event.time) as u64).to_le_bytes());
                for context in &channel.contexts {
                    context.value(event).1.put(&mut bytes);
                }
                payload().for_each(|(_, value)| value.put(&mut bytes));
                streams.entry(event.cpu).or_default().push((event.time, bytes));
            }
            let sample = Event { time: 0, cpu: 0, name: "".into(), fields: Vec::new(), on: Rc::default(), stack: None };
            let context: String =
                channel.contexts.iter().map(|c| c.value(&sample)).map(|(n, v)| v.declare(n)).collect();
            write!(
                metadata,
                "stream {{ id = {number}; event.header := struct {{ uint32_t id; uint64_clock_t timestamp; }};\n\
                packet.context := struct {{ uint64_clock_t timestamp_begin; uint64_clock_t timestamp_end; \
                uint64_t content_size; uint64_t packet_size; uint64_t packet_seq_num; unsigned long events_discarded; \
                uint32_t cpu_id; }};\n"
            )
            .unwrap();
            if !context.is_empty() {
                write!(metadata, "event.context := struct {{\n{context}}};\n").unwrap();
            }
            metadata += "};\n";
            for (name, (id, fields)) in &classes {
                write!(metadata, "event {{ name = \"{name}\"; id = {id}; stream_id = {number}; fields := struct {{\n{fields}}}; }};\n").unwrap();
            }
            for (cpu, records) in streams {
                let bytes = self.packets(number as u32, cpu, &records, channel);
                std::fs::write(folder.join(format!("{}_{cpu}", channel.name)), bytes).unwrap();
            }
        }
        std::fs::write(folder.join("metadata"), metadata).unwrap();
    }

    fn preamble(&self) -> String {
        let mut text = "/* CTF 1.8 */\n".to_owned();
        for (name, size) in
            [("uint8_t", 8), ("uint16_t", 16), ("uint32_t", 32), ("uint64_t", 64), ("unsigned long", 64)]
        {
            writeln!(text, "typealias integer {{ size = {size}; align = 8; signed = false; }} := {name};").unwrap();
        }
        writeln!(
            text,
            "trace {{ major = 1; minor = 8; uuid = \"{}\"; byte_order = le; packet.header := struct {{ \
             uint32_t magic; uint8_t uuid[16]; uint32_t stream_id; }}; }};",
            uuid_text(self.uuid)
        )
        .unwrap();
        if !self.environment.is_empty() {
            let lines: String = self.environment.iter().map(|(k, v)| format!(" {k} = \"{v}\";\n")).collect();
            write!(text, "env {{\n{lines}}};\n").unwrap();
        }
        let uuid = self.clock_uuid.map(|uuid| format!(" uuid = \"{}\";", uuid_text(uuid))).unwrap_or_default();
        write!(
            text,
            "clock {{ name = \"monotonic\";{uuid} description = \"Monotonic Clock\"; freq = {}; offset = {}; }};\n\
             typealias integer {{ size = 64; align = 8; signed = false; map = clock.monotonic.value; }} := uint64_clock_t;\n",
            self.clock_frequency,
            self.ticks(self.clock_offset)
        )
        .unwrap();
        text
    }

    fn packets(&self, stream: u32, cpu: u32, records: &[Record], channel: &Channel) -> Vec<u8> {
        let parts = match self.packets {
            Packets::Full => full(cpu, records, channel),
            Packets::Drawn(seed) => drawn(records, Random::new(seed ^ u64::from(cpu)), false),
            Packets::DrawnAndLost(seed) => drawn(records, Random::new(seed ^ u64::from(cpu)), true),
        };
        let mut file = Vec::new();
        let count = parts.len();
        for (at, packet) in parts.into_iter().enumerate() {
            let first = packet.records[0].0;
            let begin = if at == 0 { first.min(self.span.0) } else { first };
            let end = if at + 1 == count { packet.end.max(self.span.1) } else { packet.end };
            let size: usize = packet.records.iter().map(|(_, bytes)| bytes.len()).sum();
            let bits = (4 + 16 + 4 + 6 * 8 + 4 + size) as u64 * 8;
            file.extend(0xc1fc_1fc1u32.to_le_bytes());
            file.extend(self.uuid.to_be_bytes());
            file.extend(stream.to_le_bytes());
            let (begin, end) = (self.ticks(begin) as u64, self.ticks(end) as u64);
            for word in [begin, end, bits, bits, packet.number, packet.discarded] {
                file.extend(word.to_le_bytes());
            }
            file.extend(cpu.to_le_bytes());
            packet.records.iter().for_each(|(_, bytes)| file.extend(bytes));
        }
        file
    }
}
