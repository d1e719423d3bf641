//! The kernel trace of a host, event by event, with the few events of LTTng that tests need, over [`TraceWriter`].
//!
//! Times are the true time; the host's clock may be ahead of it and drift.
#![allow(dead_code)]

use super::ctf_writer::{Channel, Context, Event, Task, Tcp, TraceWriter, Value};
use std::path::Path;
use std::rc::Rc;
use whyslow::parts::base::time::Ns;

/// A trace in the making; its events carry the context `tid`.
pub struct KernelTrace {
    writer: TraceWriter,
    contexts: Vec<Context>,
    /// By the true time, the time of the host's clock.
    clock: Box<dyn Fn(Ns) -> Ns>,
    events: Vec<Event>,
}

impl KernelTrace {
    /// The kernel of a host. Hosts of one `clock_uuid` have one clock.
    pub fn new(host: &str, clock_uuid: u128) -> KernelTrace {
        let writer = TraceWriter::new(host, "kernel", clock_uuid.rotate_left(64) ^ 1, clock_uuid);
        KernelTrace { writer, contexts: vec![Context::Tid], clock: Box::new(|t| t), events: Vec::new() }
    }

    /// The host's clock.
    pub fn with_clock(mut self, clock: impl Fn(Ns) -> Ns + 'static) -> Self {
        self.clock = Box::new(clock);
        self
    }

    /// Further contexts, after `tid`.
    pub fn with_contexts(mut self, contexts: &[Context]) -> Self {
        self.contexts.extend(contexts);
        self
    }

    /// An event with these fields while a thread runs.
    pub fn event(&mut self, time: Ns, cpu: u32, on: i32, name: &str, fields: Vec<(&'static str, Value)>) -> &mut Self {
        let on = Rc::new(Task { tid: on, ..Task::default() });
        let event = Event { time: (self.clock)(time), cpu, name: name.to_owned().into(), fields, on, stack: None };
        self.events.push(event);
        self
    }

    /// `prev` leaves the CPU in `state`, `next` runs; 0 is the idle task.
    pub fn switch(&mut self, time: Ns, cpu: u32, prev: i32, state: i64, next: i32) -> &mut Self {
        let comm = |tid: i32| Value::Comm(format!("t{tid}").into());
        let fields = vec![
            ("prev_comm", comm(prev)),
            ("prev_tid", Value::I32(prev)),
            ("prev_state", Value::I64(state)),
            ("next_comm", comm(next)),
            ("next_tid", Value::I32(next)),
        ];
        self.event(time, cpu, prev, "sched_switch", fields)
    }

    /// `waker` wakes `tid`, which will run on the CPU `target`.
    pub fn waking(&mut self, time: Ns, cpu: u32, waker: i32, tid: i32, target: i32) -> &mut Self {
        let fields = vec![
            ("comm", Value::Comm(format!("t{tid}").into())),
            ("tid", Value::I32(tid)),
            ("target_cpu", Value::I32(target)),
        ];
        self.event(time, cpu, waker, "sched_waking", fields)
    }

    pub fn soft_irq_entry(&mut self, time: Ns, cpu: u32, on: i32, vector: u32) -> &mut Self {
        self.event(time, cpu, on, "irq_softirq_entry", vec![("vec", Value::U32(vector))])
    }

    pub fn soft_irq_exit(&mut self, time: Ns, cpu: u32, on: i32, vector: u32) -> &mut Self {
        self.event(time, cpu, on, "irq_softirq_exit", vec![("vec", Value::U32(vector))])
    }

    pub fn call_entry(&mut self, time: Ns, cpu: u32, tid: i32, call: &str) -> &mut Self {
        self.event(time, cpu, tid, &format!("syscall_entry_{call}"), Vec::new())
    }

    pub fn call_exit(&mut self, time: Ns, cpu: u32, tid: i32, call: &str, ret: i64) -> &mut Self {
        self.event(time, cpu, tid, &format!("syscall_exit_{call}"), vec![("ret", Value::I64(ret))])
    }

    /// A TCP segment is given to the device.
    pub fn sent(&mut self, time: Ns, cpu: u32, on: i32, segment: Tcp) -> &mut Self {
        self.packet(time, cpu, on, "net_dev_queue", segment)
    }

    /// A TCP segment arrives.
    pub fn received(&mut self, time: Ns, cpu: u32, on: i32, segment: Tcp) -> &mut Self {
        self.packet(time, cpu, on, "net_if_receive_skb", segment)
    }

    fn packet(&mut self, time: Ns, cpu: u32, on: i32, name: &str, segment: Tcp) -> &mut Self {
        let fields = vec![("skbaddr", Value::U64(77)), ("network_header", Value::Packet(segment))];
        self.event(time, cpu, on, name, fields)
    }

    /// Its events, to be written otherwise.
    pub fn into_events(self) -> Vec<Event> {
        self.events
    }

    /// Write the directory.
    pub fn write(mut self, folder: &Path) {
        let times = || self.events.iter().map(|e| e.time);
        self.writer.span = (times().min().unwrap_or(0), times().max().unwrap_or(0));
        let (contexts, events) = (self.contexts, self.events);
        self.writer.channels.push(Channel { name: "channel".into(), contexts, events, discarded: Vec::new() });
        self.writer.write(folder);
    }
}

/// A TCP segment with 100 bytes of payload between the hosts `10.0.0.from` and `10.0.0.to`.
pub fn segment(from: u8, to: u8, seq: u32) -> Tcp {
    Tcp { source: ([10, 0, 0, from], 40_000), dest: ([10, 0, 0, to], 80), seq, ack: 1, len: 100 }
}
