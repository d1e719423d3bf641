//! Event records of one location of an OTF2 archive, as bytes (docs/OTF2-FACTS.md, section 7).
//!
//! In: records in order of time, by the ids of [`super::definitions`]. Out: the chunks of an event file.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, dead_code)]

use super::encoding::{ByteOrder, Chunks, UNDEFINED, packed32, packed64, record};

/// Bytes of an event chunk; records never straddle two.
pub(super) const EVENT_CHUNK: usize = 1 << 20;
/// Bytes of a definition chunk.
pub(super) const DEFINITION_CHUNK: usize = 4 << 20;

/// The paradigm of a region; OTF2's numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Paradigm {
    User = 1,
    Compiler = 2,
    OpenMp = 3,
    Mpi = 4,
    Cuda = 5,
    Measurement = 6,
    Pthread = 7,
}

/// The role of a region; OTF2's numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Role {
    Function = 1,
    Loop = 3,
    Critical = 12,
    Barrier = 15,
    ImplicitBarrier = 16,
    Task = 20,
    TaskCreate = 21,
    TaskWait = 22,
    CollOneToAll = 24,
    PointToPoint = 27,
    Artificial = 31,
}

/// A value of an attribute or a metric.
#[derive(Clone, Copy, Debug)]
pub enum Value {
    U64(u64),
    I64(i64),
    F64(f64),
}

/// Records of one location, in order of time.
pub struct Events {
    chunks: Chunks,
    time: Option<u64>,
    scratch: Vec<u8>,
    attributes: Vec<u8>,
    /// How many.
    pub records: u64,
    /// The last time.
    pub last: u64,
}

impl Default for Events {
    fn default() -> Self {
        let chunks = Chunks::new(EVENT_CHUNK, ByteOrder::Little);
        Events { chunks, time: None, scratch: Vec::new(), attributes: Vec::new(), records: 0, last: 0 }
    }
}

impl Events {
    /// The attributes of the record that comes next, by id.
    pub fn attributes(&mut self, list: &[(u32, Value)]) -> &mut Self {
        packed32(list.len() as u32, &mut self.attributes);
        for (id, value) in list {
            packed32(*id, &mut self.attributes);
            match value {
                Value::U64(v) => {
                    self.attributes.push(4);
                    packed64(*v, &mut self.attributes);
                }
                Value::I64(v) => {
                    self.attributes.push(8);
                    packed64(*v as u64, &mut self.attributes);
                }
                Value::F64(v) => {
                    self.attributes.push(10);
                    self.attributes.extend(v.to_le_bytes());
                }
            }
        }
        self
    }

    /// A record of any type; `with_length` but for the ten types that have one packed number and no length.
    fn put(&mut self, time: u64, kind: u8, with_length: bool, fill: impl FnOnce(&mut Vec<u8>)) {
        let mut payload = std::mem::take(&mut self.scratch);
        payload.clear();
        fill(&mut payload);
        if !self.chunks.fits(payload.len() + self.attributes.len() + 40) {
            self.chunks.turn();
            self.time = None;
        }
        let out = &mut self.chunks.bytes;
        if self.time != Some(time) {
            out.push(5);
            out.extend(time.to_le_bytes());
            self.time = Some(time);
        }
        if !self.attributes.is_empty() {
            record(6, &self.attributes, out);
            self.attributes.clear();
        }
        if with_length {
            record(kind, &payload, out);
        } else {
            out.push(kind);
            out.extend(&payload);
        }
        self.scratch = payload;
        self.records += 1;
        self.last = time;
    }

    fn numbers(&mut self, time: u64, kind: u8, numbers: &[u64]) {
        self.put(time, kind, true, |p| numbers.iter().for_each(|n| packed64(*n, p)));
    }

    pub fn enter(&mut self, time: u64, region: u32) {
        self.put(time, 12, false, |p| packed32(region, p));
    }

    pub fn leave(&mut self, time: u64, region: u32) {
        self.put(time, 13, false, |p| packed32(region, p));
    }

    /// A blocking send: `peer` is a rank of the communicator.
    pub fn send(&mut self, time: u64, peer: u32, communicator: u32, tag: u32, bytes: u64) {
        self.numbers(time, 14, &[u64::from(peer), u64::from(communicator), u64::from(tag), bytes]);
    }

    pub fn isend(&mut self, time: u64, peer: u32, communicator: u32, tag: u32, bytes: u64, request: u64) {
        self.numbers(time, 15, &[u64::from(peer), u64::from(communicator), u64::from(tag), bytes, request]);
    }

    pub fn isend_complete(&mut self, time: u64, request: u64) {
        self.put(time, 16, false, |p| packed64(request, p));
    }

    pub fn irecv_request(&mut self, time: u64, request: u64) {
        self.put(time, 17, false, |p| packed64(request, p));
    }

    pub fn recv(&mut self, time: u64, peer: u32, communicator: u32, tag: u32, bytes: u64) {
        self.numbers(time, 18, &[u64::from(peer), u64::from(communicator), u64::from(tag), bytes]);
    }

    pub fn irecv(&mut self, time: u64, peer: u32, communicator: u32, tag: u32, bytes: u64, request: u64) {
        self.numbers(time, 19, &[u64::from(peer), u64::from(communicator), u64::from(tag), bytes, request]);
    }

    pub fn collective_begin(&mut self, time: u64) {
        self.put(time, 22, true, |_| {});
    }

    /// `operation` is OTF2's number; without a root that is all ones.
    pub fn collective_end(&mut self, time: u64, operation: u8, communicator: u32, root: Option<u32>) {
        self.put(time, 23, true, |p| {
            p.push(operation);
            packed32(communicator, p);
            packed32(root.unwrap_or(UNDEFINED), p);
            packed64(8, p);
            packed64(8, p);
        });
    }

    /// The tracer writes out its buffer from `time` until `until`.
    pub fn flush(&mut self, time: u64, until: u64) {
        self.put(time, 10, true, |p| p.extend(until.to_le_bytes()));
    }

    pub fn fork(&mut self, time: u64, paradigm: Paradigm, threads: u32) {
        self.put(time, 53, true, |p| {
            p.push(paradigm as u8);
            packed32(threads, p);
        });
    }

    pub fn join(&mut self, time: u64, paradigm: Paradigm) {
        self.put(time, 54, true, |p| p.push(paradigm as u8));
    }

    pub fn team_begin(&mut self, time: u64, team: u32) {
        self.numbers(time, 55, &[u64::from(team)]);
    }

    pub fn team_end(&mut self, time: u64, team: u32) {
        self.numbers(time, 56, &[u64::from(team)]);
    }

    pub fn acquire(&mut self, time: u64, paradigm: Paradigm, lock: u32, order: u32) {
        self.lock(time, 57, paradigm, lock, order);
    }

    pub fn release(&mut self, time: u64, paradigm: Paradigm, lock: u32, order: u32) {
        self.lock(time, 58, paradigm, lock, order);
    }

    fn lock(&mut self, time: u64, kind: u8, paradigm: Paradigm, lock: u32, order: u32) {
        self.put(time, kind, true, |p| {
            p.push(paradigm as u8);
            packed32(lock, p);
            packed32(order, p);
        });
    }

    /// A task by the team, the thread that created it and its number there.
    pub fn task_create(&mut self, time: u64, team: u32, creator: u32, number: u32) {
        self.numbers(time, 59, &[u64::from(team), u64::from(creator), u64::from(number)]);
    }

    pub fn task_switch(&mut self, time: u64, team: u32, creator: u32, number: u32) {
        self.numbers(time, 60, &[u64::from(team), u64::from(creator), u64::from(number)]);
    }

    pub fn task_complete(&mut self, time: u64, team: u32, creator: u32, number: u32) {
        self.numbers(time, 61, &[u64::from(team), u64::from(creator), u64::from(number)]);
    }

    /// Values of the members of a metric class.
    pub fn metric(&mut self, time: u64, metric: u32, values: &[Value]) {
        self.put(time, 31, true, |p| {
            packed32(metric, p);
            p.push(values.len() as u8);
            for value in values {
                let (kind, bits) = match value {
                    Value::U64(v) => (4, *v),
                    Value::I64(v) => (8, *v as u64),
                    Value::F64(v) => (10, v.to_bits()),
                };
                p.push(kind);
                packed64(bits, p);
            }
        });
    }

    /// A parameter's text, by the id of the string.
    pub fn parameter_string(&mut self, time: u64, parameter: u32, string: u32) {
        self.numbers(time, 32, &[u64::from(parameter), u64::from(string)]);
    }

    pub fn parameter_int(&mut self, time: u64, parameter: u32, value: i64) {
        self.numbers(time, 33, &[u64::from(parameter), value as u64]);
    }

    pub fn rma_win_create(&mut self, time: u64, window: u32) {
        self.numbers(time, 35, &[u64::from(window)]);
    }

    pub fn rma_win_destroy(&mut self, time: u64, window: u32) {
        self.numbers(time, 36, &[u64::from(window)]);
    }

    pub fn rma_collective_begin(&mut self, time: u64) {
        self.put(time, 37, true, |_| {});
    }

    pub fn rma_collective_end(&mut self, time: u64, operation: u8, window: u32) {
        self.put(time, 38, true, |p| {
            p.push(operation);
            packed32(3, p);
            packed32(window, p);
            packed32(UNDEFINED, p);
            packed64(0, p);
            packed64(0, p);
        });
    }

    /// Post, start, complete or wait with a group; the group's definition lists its members.
    pub fn rma_group_sync(&mut self, time: u64, window: u32, group: u32) {
        self.numbers(time, 39, &[3, u64::from(window), u64::from(group)]);
    }

    pub fn rma_request_lock(&mut self, time: u64, window: u32, remote: u32, lock: u64) {
        self.rma_lock(time, 40, window, remote, lock, true);
    }

    pub fn rma_acquire_lock(&mut self, time: u64, window: u32, remote: u32, lock: u64) {
        self.rma_lock(time, 41, window, remote, lock, true);
    }

    pub fn rma_release_lock(&mut self, time: u64, window: u32, remote: u32, lock: u64) {
        self.rma_lock(time, 43, window, remote, lock, false);
    }

    fn rma_lock(&mut self, time: u64, kind: u8, window: u32, remote: u32, lock: u64, with_type: bool) {
        self.put(time, kind, true, |p| {
            packed32(window, p);
            packed32(remote, p);
            packed64(lock, p);
            if with_type {
                p.push(0);
            }
        });
    }

    pub fn rma_put(&mut self, time: u64, window: u32, remote: u32, bytes: u64, matching: u64) {
        self.numbers(time, 46, &[u64::from(window), u64::from(remote), bytes, matching]);
    }

    pub fn rma_get(&mut self, time: u64, window: u32, remote: u32, bytes: u64, matching: u64) {
        self.numbers(time, 47, &[u64::from(window), u64::from(remote), bytes, matching]);
    }

    pub fn rma_complete_blocking(&mut self, time: u64, window: u32, matching: u64) {
        self.numbers(time, 49, &[u64::from(window), matching]);
    }

    /// `mode` 0 reads, 1 writes.
    pub fn io_begin(&mut self, time: u64, handle: u32, mode: u8, bytes: u64, matching: u64) {
        self.put(time, 75, true, |p| {
            packed32(handle, p);
            p.push(mode);
            packed32(0, p);
            packed64(bytes, p);
            packed64(matching, p);
        });
    }

    pub fn io_complete(&mut self, time: u64, handle: u32, bytes: u64, matching: u64) {
        self.numbers(time, 78, &[u64::from(handle), bytes, matching]);
    }

    /// The file's bytes.
    pub(super) fn finish(self) -> Vec<u8> {
        self.chunks.finish()
    }
}
