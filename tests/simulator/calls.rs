//! Operations taken apart into steps, and the steps done: system calls, locks, disks, messages, children, work.

use super::ctf_writer::{Event, Value};
use super::program::{Carrier, Op, Program, Reason, Step};
use super::scheduler::{DEAD, DISK_SLEEP, READY, SLEEP, STOPPED};
use super::system_calls::{call, descriptor, system_call};
use super::truth::What;
use super::{Action, Channel, Disk, Machine, Mutex, State, interrupts::Interrupt};
use std::rc::Rc;
use whyslow::parts::base::time::Ns;

/// A disk request.
pub(super) struct Request {
    thread: usize,
    sector: u64,
    bytes: u32,
    write: bool,
    number: u64,
}

const DEVICE: u32 = 266_338_320;

/// The outcome of a step.
enum Outcome {
    Done,
    /// The step stays the next one; the thread waits.
    Wait(Reason),
    /// The step is done once the thread is woken.
    DoneAfter(Reason),
    Gone,
}

impl Machine {
    /// The time of the front step is over.
    pub(super) fn spent(&mut self, cpu: usize) {
        let current = self.cpus[cpu].current.unwrap();
        self.pause(cpu);
        if matches!(self.threads[current].steps.front(), Some(Step::Spend(_))) {
            self.threads[current].steps.pop_front();
        }
        self.advance(cpu);
    }

    /// Do the steps of the running thread up to the next one that takes time.
    pub(super) fn advance(&mut self, cpu: usize) {
        let thread = self.cpus[cpu].current.unwrap();
        loop {
            match self.threads[thread].steps.front() {
                Some(Step::Spend(_)) => return self.go_on_in_program(cpu, thread),
                Some(_) => {}
                None => {
                    self.refill(thread);
                    continue;
                }
            }
            let step = self.threads[thread].steps.pop_front().unwrap();
            match self.step(cpu, thread, &step) {
                Outcome::Done => {}
                Outcome::Wait(reason) => {
                    self.threads[thread].steps.push_front(step);
                    return self.block(cpu, thread, reason);
                }
                Outcome::DoneAfter(reason) => return self.block(cpu, thread, reason),
                Outcome::Gone => {
                    self.threads[thread].state = State::Dead;
                    self.schedule.thread(thread, self.now, What::Dead);
                    return self.switch(cpu, DEAD);
                }
            }
        }
    }

    /// Spend time; before that a thread on the way back to its program may have to leave.
    fn go_on_in_program(&mut self, cpu: usize, thread: usize) {
        // One that has just come reaches its program a little later.
        let is_back = !self.threads[thread].in_call && self.cpus[cpu].switched < self.now;
        if is_back && self.must_halt(thread) {
            self.wait_halted(cpu, thread);
        } else if is_back && self.is_throttled(thread, cpu) {
            self.switch(cpu, READY);
        } else {
            self.resume(cpu);
        }
    }

    pub(super) fn block(&mut self, cpu: usize, thread: usize, reason: Reason) {
        self.threads[thread].state = State::Waiting;
        self.schedule.wait(thread, self.now, reason);
        let state = match reason {
            Reason::Disk(..) => DISK_SLEEP,
            Reason::Token(Carrier::Stop) => STOPPED,
            _ => SLEEP,
        };
        self.switch(cpu, state);
    }

    fn refill(&mut self, thread: usize) {
        let t = &mut self.threads[thread];
        let ops = t.program.as_mut().and_then(|program| program(&mut self.dice, t.turn));
        t.turn += 1;
        match ops {
            // A turn without steps would never end.
            Some(ops) if ops.is_empty() => t.steps.push_back(Step::Spend(1_000)),
            Some(ops) => t.steps.extend(ops.into_iter().map(Step::Op)),
            None => t.steps.push_back(Step::End),
        }
    }

    fn before(&mut self, thread: usize, steps: Vec<Step>) {
        for step in steps.into_iter().rev() {
            self.threads[thread].steps.push_front(step);
        }
    }

    fn step(&mut self, cpu: usize, thread: usize, step: &Step) -> Outcome {
        match step {
            Step::Op(op) => {
                let steps = self.take_apart(thread, op);
                self.before(thread, steps);
            }
            Step::Spend(_) => {}
            Step::Entry(call, fields) => {
                self.threads[thread].in_call = true;
                self.emit_with_stack(cpu, format!("syscall_entry_{call}").into(), fields.clone());
            }
            Step::Exit(call, ret) => {
                self.threads[thread].in_call = false;
                let fields = vec![("ret", Value::I64(*ret))];
                self.emit(cpu, "", fields);
                self.kernel_events.last_mut().unwrap().name = format!("syscall_exit_{call}").into();
            }
            Step::Emit(name, fields) => self.emit(cpu, name, fields.clone()),
            Step::Push(function) => {
                self.threads[thread].functions.push(function);
                self.schedule.function(thread, self.now, Some(function));
            }
            Step::Pop => {
                self.threads[thread].functions.pop();
                let function = self.threads[thread].functions.last().copied();
                self.schedule.function(thread, self.now, function);
            }
            Step::Acquire(mutex) => return self.acquire(thread, *mutex),
            Step::Release(mutex) => self.release(cpu, *mutex),
            Step::Submit(disk, bytes, write) => return self.submit(cpu, thread, *disk, *bytes, *write),
            Step::Nap(ns) => {
                self.later(self.now + ns, Action::Interrupt(cpu, Interrupt::Timer(thread)));
                return Outcome::DoneAfter(Reason::Timer);
            }
            Step::Transmit(channel, message) => self.transmit(cpu, thread, *channel, *message),
            Step::Give(channel, token) => self.give(cpu, thread, *channel, *token),
            Step::Take(channel, carrier) => {
                let Some(token) = self.channels[channel.0].tokens.pop_front() else {
                    self.channels[channel.0].waiters.push_back(thread);
                    return Outcome::Wait(Reason::Token(*carrier));
                };
                self.threads[thread].message = token;
            }
            Step::Halt(..) | Step::EndHalt(_) | Step::Fault(_) => self.change(cpu, thread, step),
            Step::Clone(name, program, ended, within) => self.fork(cpu, thread, name, program(), *ended, *within),
            Step::BeginWork => {
                let address = self.threads[thread].message;
                self.emit(cpu, "workqueue_execute_start", vec![("work", Value::U64(work_address(address)))]);
            }
            Step::EndWork => {
                let message = self.threads[thread].message;
                self.emit(cpu, "workqueue_execute_end", vec![("work", Value::U64(work_address(message)))]);
                self.give(cpu, thread, Channel((message >> 40) as usize), 1);
            }
            Step::Mark(name, fields) => {
                let on = Rc::clone(&self.threads[thread].task);
                let fields = fields.clone();
                self.schedule.mark(thread, self.now, name);
                let stack = Some(self.stack(thread));
                self.user_events.push(Event { time: self.now, cpu: cpu as u32, name: name.clone(), fields, on, stack });
            }
            Step::End => {
                let fields = vec![
                    ("comm", Value::Comm(Rc::clone(&self.threads[thread].task.comm))),
                    ("tid", Value::I32(self.threads[thread].task.tid)),
                    ("prio", Value::I32(120)),
                ];
                self.emit(cpu, "sched_process_exit", fields);
                if let Some(parent) = self.threads[thread].parent {
                    self.give(cpu, thread, parent, 1);
                }
                return Outcome::Gone;
            }
        }
        Outcome::Done
    }

    /// The steps of an operation.
    fn take_apart(&mut self, thread: usize, op: &Op) -> Vec<Step> {
        match op {
            Op::Call(function, ops) => {
                let mut steps = vec![Step::Push(function)];
                steps.extend(ops.iter().cloned().map(Step::Op));
                steps.push(Step::Pop);
                steps
            }
            Op::Run(ns) => vec![Step::Spend((*ns).max(1))],
            Op::Lock(mutex) if self.mutexes[mutex.0].owner.is_none() => vec![Step::Acquire(*mutex), Step::Spend(50)],
            Op::Unlock(mutex) if self.mutexes[mutex.0].waiters.is_empty() => {
                vec![Step::Release(*mutex), Step::Spend(50)]
            }
            Op::Post(channel) if self.channels[channel.0].waiters.is_empty() => vec![Step::Give(*channel, 1)],
            Op::Await(channel) if !self.channels[channel.0].tokens.is_empty() => {
                vec![Step::Take(*channel, Carrier::Condition)]
            }
            Op::FlushWork(ns) => self.flush_work(*ns),
            Op::Rest(period) => system_call(&Op::Sleep(period - self.now % period)),
            Op::Fault(fault, ns) => vec![Step::Fault(Some(*fault)), Step::Spend((*ns).max(1)), Step::Fault(None)],
            Op::Mark(name, fields) => {
                let fields = fields.iter().map(|(name, value)| (*name, Value::I64(*value))).collect();
                vec![Step::Spend(200), Step::Mark((*name).into(), fields), Step::Spend(400)]
            }
            Op::Choose(by) => {
                let ops = by(self.threads[thread].message, &mut self.dice);
                ops.into_iter().map(Step::Op).collect()
            }
            Op::NextWork(channel) => vec![Step::Take(*channel, Carrier::Work)],
            Op::Work => {
                let ns = (self.threads[thread].message & ((1 << 40) - 1)) as Ns;
                vec![Step::BeginWork, Step::Spend(ns.max(1)), Step::EndWork]
            }
            Op::Fork(name, program, ended) | Op::Spawn(name, program, ended) => {
                let within = matches!(op, Op::Spawn(..));
                let create = Step::Clone(name, Rc::clone(program), *ended, within);
                call("clone", Vec::new(), vec![Step::Spend(20_000), create], 1)
            }
            _ => system_call(op),
        }
    }

    /// A call that hands work to the kernel's worker and waits for it.
    fn flush_work(&mut self, ns: Ns) -> Vec<Step> {
        let done = self.channel();
        let worker = self.worker.unwrap();
        let message = (done.0 as u64) << 40 | (ns as u64).min((1 << 40) - 1);
        let queue = vec![("work", Value::U64(work_address(message))), ("req_cpu", Value::U32(64))];
        let inside = vec![
            Step::Emit("workqueue_queue_work", queue),
            Step::Give(worker, message),
            Step::Take(done, Carrier::Work),
        ];
        call("fsync", descriptor(4), inside, 0)
    }

    /// A kernel worker, which waits for work.
    pub(super) fn create_worker(&mut self) {
        let channel = self.channel();
        let process = self.process("kworker/u4:1");
        self.processes[process.0].user = false;
        let program = super::turns(move |_, _| vec![Op::NextWork(channel), Op::Work]);
        let all = (0..self.cpus.len()).collect();
        let thread = self.create(process, "kworker/u4:1", program, 1, all, None);
        self.threads[thread].kernel = true;
        self.threads[thread].steps.extend([Step::Take(channel, Carrier::Work), Step::Op(Op::Work)]);
        self.schedule.wait(thread, self.now, Reason::Token(Carrier::Work));
        self.channels[channel.0].waiters.push_back(thread);
        self.worker = Some(channel);
    }

    fn acquire(&mut self, thread: usize, mutex: Mutex) -> Outcome {
        let state = &mut self.mutexes[mutex.0];
        if state.owner.is_some() {
            state.waiters.push_back(thread);
            return Outcome::DoneAfter(Reason::Mutex(mutex));
        }
        state.owner = Some(thread);
        self.schedule.mutexes[mutex.0].push((self.now, Some(thread)));
        Outcome::Done
    }

    fn release(&mut self, cpu: usize, mutex: Mutex) {
        let state = &mut self.mutexes[mutex.0];
        state.owner = state.waiters.pop_front();
        let next = state.owner;
        self.schedule.mutexes[mutex.0].push((self.now, next));
        if let Some(next) = next {
            self.wake(next, cpu);
        }
    }

    fn submit(&mut self, cpu: usize, thread: usize, disk: Disk, bytes: u32, write: bool) -> Outcome {
        let state = &mut self.disks[disk.0];
        let sector = state.sector;
        state.sector += u64::from(bytes / 512) + 64;
        let idle = state.queue.is_empty();
        state.queue.push_back(Request { thread, sector, bytes, write, number: sector });
        let fields = self.request(thread, sector, bytes, write);
        if idle {
            self.emit(cpu, "block_rq_issue", fields);
            self.serve(disk.0);
        } else {
            self.emit(cpu, "block_rq_insert", fields);
        }
        Outcome::DoneAfter(Reason::Disk(disk, sector))
    }

    fn request(&self, thread: usize, sector: u64, bytes: u32, write: bool) -> Vec<(&'static str, Value)> {
        let task = &self.threads[thread].task;
        vec![
            ("dev", Value::U32(DEVICE)),
            ("sector", Value::U64(sector)),
            ("nr_sector", Value::U32(bytes / 512)),
            ("bytes", Value::U32(bytes)),
            ("tid", Value::I32(task.tid)),
            ("rwbs", Value::U32(if write { 1 } else { 68 })),
            ("comm", Value::Comm(Rc::clone(&task.comm))),
        ]
    }

    /// The disk begins with the head of its queue.
    fn serve(&mut self, disk: usize) {
        let state = &self.disks[disk];
        let Some(head) = state.queue.front() else {
            self.schedule.disks[disk].push((self.now, None));
            return;
        };
        let length = state.seek + state.per_kib * Ns::from(head.bytes / 1024);
        let (thread, cpu) = (head.thread, state.irq_cpu);
        self.schedule.disks[disk].push((self.now, Some(thread)));
        self.later(self.now + length, Action::Interrupt(cpu, Interrupt::Disk(disk)));
    }

    /// An interrupt reports that the request at the head of the queue is done.
    pub(super) fn complete(&mut self, disk: usize, cpu: usize) {
        let done = self.disks[disk].queue.pop_front().unwrap();
        let fields = vec![
            ("dev", Value::U32(DEVICE)),
            ("sector", Value::U64(done.sector)),
            ("nr_sector", Value::U32(done.bytes / 512)),
            ("error", Value::I32(0)),
            ("rwbs", Value::U32(if done.write { 1 } else { 68 })),
        ];
        self.emit(cpu, "block_rq_complete", fields);
        if let Some(next) = self.disks[disk].queue.front() {
            let fields = self.request(next.thread, next.sector, next.bytes, next.write);
            self.emit(cpu, "block_rq_issue", fields);
        }
        self.serve(disk);
        self.wake(done.thread, cpu);
    }

    /// A packet over loopback: queued, and received in the soft interrupt that the sender's own call raises.
    fn transmit(&mut self, cpu: usize, thread: usize, channel: Channel, message: u64) {
        let state = &mut self.channels[channel.0];
        let tcp = state.tcp.unwrap();
        state.tcp.as_mut().unwrap().seq += u32::from(tcp.len);
        let skb = 0xffff_8880_1234_0000 + u64::from(tcp.seq % 4096) * 256;
        let packet = |name: &'static str| {
            vec![
                ("skbaddr", Value::U64(skb)),
                ("len", Value::U32(u32::from(tcp.len) + 52)),
                ("name", Value::Text(name.into())),
                ("network_header", Value::Packet(tcp)),
            ]
        };
        let vec = || vec![("vec", Value::U32(3))];
        self.emit(cpu, "net_dev_queue", packet("lo"));
        self.emit(cpu, "irq_softirq_raise", vec());
        self.emit(cpu, "irq_softirq_entry", vec());
        self.emit(cpu, "net_if_receive_skb", packet("lo"));
        self.give(cpu, thread, channel, message);
        self.emit(cpu, "irq_softirq_exit", vec());
    }

    /// Leave a token; the first that waits is woken.
    fn give(&mut self, cpu: usize, thread: usize, channel: Channel, token: u64) {
        self.channels[channel.0].tokens.push_back(token);
        if let Some(waiter) = self.channels[channel.0].waiters.pop_front() {
            self.schedule.given(waiter, thread, self.now);
            self.wake(waiter, cpu);
        }
    }

    fn fork(&mut self, cpu: usize, parent: usize, name: &'static str, program: Program, ended: Channel, within: bool) {
        let own = self.threads[parent].process;
        let (contained, all) = (self.processes[own.0].contained, (0..self.cpus.len()).collect());
        let process = if within { own } else { self.process(name) };
        if !within {
            self.processes[process.0].contained = contained;
            self.processes[process.0].user = false;
        }
        let child = self.create(process, name, program, self.threads[parent].priority, all, Some(ended));
        let (own, new): (Rc<_>, Rc<_>) = (Rc::clone(&self.threads[parent].task), Rc::clone(&self.threads[child].task));
        let vtids = if contained { vec![new.tid, new.vtid] } else { vec![new.tid] };
        let fields = vec![
            ("parent_comm", Value::Comm(Rc::clone(&own.comm))),
            ("parent_tid", Value::I32(own.tid)),
            ("parent_pid", Value::I32(own.pid)),
            ("child_comm", Value::Comm(Rc::clone(&new.comm))),
            ("child_tid", Value::I32(new.tid)),
            ("vtids", Value::Ids(vtids)),
            ("child_pid", Value::I32(new.pid)),
        ];
        self.emit(cpu, "sched_process_fork", fields);
        let fields = vec![
            ("comm", Value::Comm(Rc::clone(&new.comm))),
            ("tid", Value::I32(new.tid)),
            ("prio", Value::I32(120)),
            ("target_cpu", Value::I32(self.threads[child].cpu as i32)),
        ];
        self.emit(cpu, "sched_wakeup_new", fields);
        let to = self.threads[child].cpu;
        self.enqueue(child, to, cpu);
    }
}

/// The address of the work item of a message.
fn work_address(message: u64) -> u64 {
    0xffff_8880_4000_0000 + (message >> 40) * 64
}
