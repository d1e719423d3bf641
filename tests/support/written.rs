//! Traces that tests write: events of a kernel or a program as CTF 1.8, one stream for each CPU, on a clock that may
//! be ahead and drift.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, dead_code)]

use std::collections::BTreeMap;
use std::path::Path;
use whyslow::base::time::Ns;

/// Events in a packet.
const PACKET: usize = 200;

/// A payload in the making.
#[derive(Clone, Debug, Default)]
pub struct Payload(pub Vec<u8>);

impl Payload {
    pub fn i32(mut self, n: i32) -> Self {
        self.0.extend(n.to_le_bytes());
        self
    }

    pub fn u32(mut self, n: u32) -> Self {
        self.0.extend(n.to_le_bytes());
        self
    }

    pub fn i64(mut self, n: i64) -> Self {
        self.0.extend(n.to_le_bytes());
        self
    }

    pub fn u64(mut self, n: u64) -> Self {
        self.0.extend(n.to_le_bytes());
        self
    }

    pub fn text(mut self, text: &str) -> Self {
        self.0.extend(text.bytes().chain([0]));
        self
    }

    /// A sequence of addresses with its length before it.
    pub fn words(self, words: &[u64]) -> Self {
        words.iter().fold(self.u32(words.len() as u32), |p, w| p.u64(*w))
    }
}

pub fn payload() -> Payload {
    Payload::default()
}

struct Record {
    time: Ns,
    class: u32,
    context: Vec<u8>,
    payload: Vec<u8>,
}

/// A trace in the making.
pub struct Written {
    environment: String,
    uuid: String,
    context: String,
    /// By the true time, what the clock says.
    clock: Box<dyn Fn(Ns) -> Ns>,
    classes: Vec<(String, String)>,
    streams: BTreeMap<u32, Vec<Record>>,
}

impl Written {
    /// The kernel of a host. `context` are members of the event context besides `_tid`.
    pub fn kernel(host: &str, uuid: &str) -> Written {
        Written::new(host, uuid, "kernel", "i32 _tid;")
    }

    /// A program of a host.
    pub fn user(host: &str, uuid: &str) -> Written {
        Written::new(host, uuid, "ust", "i32 _vpid; i32 _vtid;")
    }

    pub fn new(host: &str, uuid: &str, domain: &str, context: &str) -> Written {
        let environment = format!("hostname = \"{host}\"; domain = \"{domain}\"; kernel_release = \"6.1.0\";");
        Written {
            environment,
            uuid: uuid.to_owned(),
            context: context.to_owned(),
            clock: Box::new(|t| t),
            classes: Vec::new(),
            streams: BTreeMap::new(),
        }
    }

    /// Its clock.
    pub fn by(mut self, clock: impl Fn(Ns) -> Ns + 'static) -> Self {
        self.clock = Box::new(clock);
        self
    }

    /// An event with these fields (TSDL); `context` as declared.
    pub fn event(
        &mut self,
        t: Ns,
        cpu: u32,
        name: &str,
        fields: &str,
        context: Payload,
        payload: Payload,
    ) -> &mut Self {
        let known = self.classes.iter().position(|(n, _)| n == name);
        let class = known.unwrap_or(self.classes.len());
        if known.is_none() {
            self.classes.push((name.to_owned(), fields.to_owned()));
        }
        let record = Record { time: (self.clock)(t), class: class as u32, context: context.0, payload: payload.0 };
        self.streams.entry(cpu).or_default().push(record);
        self
    }

    pub fn switch(&mut self, t: Ns, cpu: u32, prev: i32, state: i64, next: i32) -> &mut Self {
        let fields = "string _prev_comm; i32 _prev_tid; i64 _prev_state; string _next_comm; i32 _next_tid;";
        let name = |tid: i32| format!("t{tid}");
        let body = payload().text(&name(prev)).i32(prev).i64(state).text(&name(next)).i32(next);
        self.event(t, cpu, "sched_switch", fields, payload().i32(prev), body)
    }

    pub fn waking(&mut self, t: Ns, cpu: u32, by: i32, tid: i32, target: i32) -> &mut Self {
        let body = payload().text(&format!("t{tid}")).i32(tid).i32(target);
        self.event(t, cpu, "sched_waking", "string _comm; i32 _tid; i32 _target_cpu;", payload().i32(by), body)
    }

    pub fn soft_irq(&mut self, t: Ns, cpu: u32, on: i32, vector: u32, enters: bool) -> &mut Self {
        let name = if enters { "irq_softirq_entry" } else { "irq_softirq_exit" };
        self.event(t, cpu, name, "u32 _vec;", payload().i32(on), payload().u32(vector))
    }

    pub fn enter(&mut self, t: Ns, cpu: u32, tid: i32, call: &str) -> &mut Self {
        self.event(t, cpu, &format!("syscall_entry_{call}"), "", payload().i32(tid), payload())
    }

    pub fn exit(&mut self, t: Ns, cpu: u32, tid: i32, call: &str, ret: i64) -> &mut Self {
        self.event(t, cpu, &format!("syscall_exit_{call}"), "i64 _ret;", payload().i32(tid), payload().i64(ret))
    }

    /// A TCP packet of 100 bytes that is sent or arrives.
    pub fn packet(&mut self, t: Ns, cpu: u32, on: i32, (from, to): (u8, u8), seq: u32, sent: bool) -> &mut Self {
        let tcp = "u32 _source_port; u32 _dest_port; u32 _seq; u32 _ack_seq; u32 _data_offset; u32 _flags;";
        let ip = "u8 _saddr[4]; u8 _daddr[4]; u32 _tot_len; u32 _ihl;";
        let fields = format!(
            "u64 _skbaddr; struct {{ struct {{ {ip} struct {{ struct {{ {tcp} }} _tcp; }} _transport_header; }} _ipv4; }} _network_header;"
        );
        let mut body = payload().u64(77);
        body.0.extend([10, 0, 0, from, 10, 0, 0, to]);
        let body = body.u32(140).u32(5).u32(40_000).u32(80).u32(seq).u32(1).u32(5).u32(0x18);
        let name = if sent { "net_dev_queue" } else { "net_if_receive_skb" };
        self.event(t, cpu, name, &fields, payload().i32(on), body)
    }

    /// Write the directory.
    pub fn write(&self, folder: &Path) {
        std::fs::create_dir_all(folder).unwrap();
        std::fs::write(folder.join("metadata"), self.metadata()).unwrap();
        for (cpu, records) in &self.streams {
            let bytes: Vec<u8> = records.chunks(PACKET).flat_map(|part| packet(*cpu, part)).collect();
            std::fs::write(folder.join(format!("channel_{cpu}")), bytes).unwrap();
        }
    }

    fn metadata(&self) -> String {
        let integer = |name: &str, size: u32, signed: bool| {
            format!("typealias integer {{ size = {size}; align = 8; signed = {signed}; }} := {name};\n")
        };
        let types = [("u8", 8, false), ("i32", 32, true), ("u32", 32, false), ("i64", 64, true), ("u64", 64, false)];
        let types: String = types.map(|(name, size, signed)| integer(name, size, signed)).concat();
        let stamp = "integer { size = 64; align = 8; signed = false; map = clock.monotonic.value; }";
        let mut text = format!(
            "/* CTF 1.8 */\n{types}\
             trace {{ major = 1; minor = 8; byte_order = le; packet.header := struct {{ u32 magic; u32 stream_id; }}; }};\n\
             env {{ {} }};\n\
             clock {{ name = monotonic; uuid = \"{}\"; freq = 1000000000; offset = 0; }};\n\
             stream {{ id = 0; event.header := struct {{ u32 id; {stamp} timestamp; }};\n\
             packet.context := struct {{ {stamp} timestamp_begin; {stamp} timestamp_end; u64 content_size; \
             u64 packet_size; u64 events_discarded; u32 cpu_id; }};\n\
             event.context := struct {{ {} }}; }};\n",
            self.environment, self.uuid, self.context
        );
        for (id, (name, fields)) in self.classes.iter().enumerate() {
            text += &format!(
                "event {{ name = \"{name}\"; id = {id}; stream_id = 0; fields := struct {{ {fields} }}; }};\n"
            );
        }
        text
    }
}

fn packet(cpu: u32, records: &[Record]) -> Vec<u8> {
    let times = || records.iter().map(|r| r.time as u64);
    let mut body = payload();
    for r in records {
        body = body.u32(r.class).u64(r.time as u64);
        body.0.extend(r.context.iter().chain(&r.payload));
    }
    const HEAD: usize = 8 + 5 * 8 + 4;
    let bits = (HEAD + body.0.len()) as u64 * 8;
    let head = payload().u32(0xc1fc_1fc1).u32(0).u64(times().min().unwrap()).u64(times().max().unwrap());
    let mut packet = head.u64(bits).u64(bits).u64(0).u32(cpu).0;
    packet.extend(body.0);
    packet
}
