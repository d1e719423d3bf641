//! Lines of a case as the events that LTTng would have recorded: its names and fields.

use super::ctf_writer::{Event, Task, Tcp, Value};
use super::{Case, Line, START};
use std::collections::BTreeMap;
use std::rc::Rc;
use whyslow::parts::base::time::Ns;

/// A CPU, the time from which the tracer discarded events there, and how many.
type Discarded = (u32, Ns, u64);
type Fields = Vec<(&'static str, Value)>;

/// Soft interrupts by number.
const SOFT_IRQS: [&str; 10] =
    ["HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU"];

/// The events of one host, and what its tracer discarded.
pub(super) fn events(case: &Case, lines: &[Line]) -> (Vec<Event>, Vec<Discarded>) {
    let mut sorted: Vec<&Line> = lines.iter().collect();
    sorted.sort_by_key(|line| line.time);
    let mut running: BTreeMap<u32, i32> = BTreeMap::new();
    for line in sorted.iter().rev().filter(|l| l.words[0] == "switch") {
        running.insert(line.cpu, tid(line.words[1].split(':').next().unwrap()));
    }
    let (mut events, mut discarded) = (Vec::new(), Vec::new());
    for line in sorted {
        let time = START + line.time * case.unit;
        let mut words: Vec<&str> = line.words.iter().map(String::as_str).collect();
        let mut on = running.get(&line.cpu).copied().unwrap_or(0);
        if let [.., "as", who] = words[..] {
            on = tid(who);
            words.truncate(words.len() - 2);
        }
        if let ["lost", count] = words[..] {
            discarded.push((line.cpu, time, count.parse().unwrap()));
            continue;
        }
        let (name, fields) = event(case, line.cpu, on, &words)
            .unwrap_or_else(|| panic!("{}: no such event: {} {}", case.name, line.time, line.words.join(" ")));
        let task = Rc::new(Task { tid: on, pid: on, vtid: on, vpid: on, ppid: 1, comm: comm(case, on) });
        events.push(Event { time, cpu: line.cpu, name: name.into(), fields, on: task, stack: None });
        if words[0] == "switch" {
            running.insert(line.cpu, tid(words[2]));
        }
    }
    (events, discarded)
}

fn tid(word: &str) -> i32 {
    word.parse().unwrap_or_else(|_| panic!("{word} is no thread id"))
}

fn comm(case: &Case, tid: i32) -> Rc<str> {
    match case.names.get(&tid) {
        Some(name) => name.as_str().into(),
        None if tid == 0 => "swapper/0".into(),
        None => format!("thread-{tid}").into(),
    }
}

/// As `prev_state` has them: of Linux 4.14 and later, or a number for others.
fn state(word: &str) -> i64 {
    match word {
        "R" => 0,
        "R+" => 0x100,
        "S" => 1,
        "D" => 2,
        "X" => 0x10,
        "Z" => 0x20,
        "P" => 0x40,
        "I" => 0x402,
        number => i64::from_str_radix(number.trim_start_matches("0x"), 16).unwrap(),
    }
}

fn event(case: &Case, cpu: u32, on: i32, words: &[&str]) -> Option<(String, Fields)> {
    let int = |word: &str| word.parse::<i32>().ok();
    let known = |id: i32| -> Fields {
        vec![("comm", Value::Comm(comm(case, id))), ("tid", Value::I32(id)), ("prio", Value::I32(20))]
    };
    let with = |name: &str, fields: Fields| Some((name.to_owned(), fields));
    match *words {
        ["switch", prev, next] => {
            let (prev, left) = prev.split_once(':')?;
            let (prev, next) = (int(prev)?, int(next)?);
            let fields = vec![
                ("prev_comm", Value::Comm(comm(case, prev))),
                ("prev_tid", Value::I32(prev)),
                ("prev_prio", Value::I32(20)),
                ("prev_state", Value::I64(state(left))),
                ("next_comm", Value::Comm(comm(case, next))),
                ("next_tid", Value::I32(next)),
                ("next_prio", Value::I32(20)),
            ];
            with("sched_switch", fields)
        }
        [which @ ("waking" | "wakeup" | "wakeup_new"), id, "on", target] => {
            let mut fields = known(int(id)?);
            fields.push(("target_cpu", Value::I32(int(target)?)));
            with(&format!("sched_{which}"), fields)
        }
        ["migrate", id, "to", target] => {
            let mut fields = known(int(id)?);
            fields.extend([("orig_cpu", Value::I32(cpu as i32)), ("dest_cpu", Value::I32(int(target)?))]);
            with("sched_migrate_task", fields)
        }
        ["pi_setprio", id, prio] => {
            let mut fields = known(int(id)?);
            fields[2] = ("oldprio", Value::I32(20));
            fields.push(("newprio", Value::I32(int(prio)?)));
            with("sched_pi_setprio", fields)
        }
        _ => life(case, on, words).or_else(|| interrupt(words)).or_else(|| device(case, on, words)),
    }
}

/// Threads that come, go and call.
fn life(case: &Case, on: i32, words: &[&str]) -> Option<(String, Fields)> {
    let int = |word: &str| word.parse::<i32>().ok();
    let with = |name: &str, fields: Fields| Some((name.to_owned(), fields));
    match *words {
        ["fork", parent, child, "process", pid] => {
            let (parent, child, pid) = (int(parent)?, int(child)?, int(pid)?);
            let fields = vec![
                ("parent_comm", Value::Comm(comm(case, parent))),
                ("parent_tid", Value::I32(parent)),
                ("parent_pid", Value::I32(parent)),
                ("child_comm", Value::Comm(comm(case, child))),
                ("child_tid", Value::I32(child)),
                ("vtids", Value::Ids(vec![child])),
                ("child_pid", Value::I32(pid)),
            ];
            with("sched_process_fork", fields)
        }
        ["exec", id, "from", old, path] => {
            let path = ("filename", Value::Text(path.to_owned()));
            with("sched_process_exec", vec![path, ("tid", Value::I32(int(id)?)), ("old_tid", Value::I32(int(old)?))])
        }
        [what @ ("exit" | "free"), id] => {
            let fields = vec![
                ("comm", Value::Comm(comm(case, int(id)?))),
                ("tid", Value::I32(int(id)?)),
                ("prio", Value::I32(20)),
            ];
            with(&format!("sched_process_{what}"), fields)
        }
        ["syscall_entry", call] => with(&format!("syscall_entry_{call}"), vec![("fd", Value::U32(3))]),
        ["syscall_exit", call, ret] => {
            with(&format!("syscall_exit_{call}"), vec![("ret", Value::I64(ret.parse().ok()?))])
        }
        ["signal_deliver", number] => with("signal_deliver", vec![("sig", Value::I32(int(number)?))]),
        ["signal_generate", number, "to", id] => {
            with("signal_generate", vec![("sig", Value::I32(int(number)?)), ("tid", Value::I32(int(id)?))])
        }
        ["dump_process", id, pid, "status", status] => {
            let fields = vec![
                ("tid", Value::I32(int(id)?)),
                ("pid", Value::I32(int(pid)?)),
                ("ppid", Value::I32(1)),
                ("name", Value::Comm(comm(case, int(id)?))),
                ("type", Value::I32(0)),
                ("mode", Value::I32(5)),
                ("submode", Value::I32(0)),
                ("status", Value::I32(int(status)?)),
                ("cpu", Value::U32(0)),
            ];
            with("lttng_statedump_process_state", fields)
        }
        ["dump_interrupt", irq, name] => {
            let fields = vec![
                ("irq", Value::U32(irq.parse().ok()?)),
                ("name", Value::Text("chip".into())),
                ("action", Value::Text(name.to_owned())),
            ];
            with("lttng_statedump_interrupt", fields)
        }
        ["queue_work", address] => with("workqueue_queue_work", vec![("work", work(address)?)]),
        ["work_start", address] => with("workqueue_execute_start", vec![("work", work(address)?)]),
        ["work_end", address] => with("workqueue_execute_end", vec![("work", work(address)?)]),
        ["exists"] => with("sched_stat_runtime", vec![("tid", Value::I32(on)), ("runtime", Value::U64(1))]),
        _ => None,
    }
}

fn work(address: &str) -> Option<Value> {
    Some(Value::U64(0xffff_8880_0000_0000 + u64::from_str_radix(address.trim_start_matches("0x"), 16).ok()?))
}

fn interrupt(words: &[&str]) -> Option<(String, Fields)> {
    let with = |name: String, fields: Fields| Some((name, fields));
    match *words {
        ["irq_entry", irq, name] => {
            let fields = vec![("irq", Value::I32(irq.parse().ok()?)), ("name", Value::Text(name.to_owned()))];
            with("irq_handler_entry".into(), fields)
        }
        // Of a tracer that does not record the handler's name.
        ["irq_entry", irq] => with("irq_handler_entry".into(), vec![("irq", Value::I32(irq.parse().ok()?))]),
        ["irq_exit", irq] => {
            with("irq_handler_exit".into(), vec![("irq", Value::I32(irq.parse().ok()?)), ("ret", Value::I32(1))])
        }
        [what @ ("softirq_entry" | "softirq_exit" | "softirq_raise"), name] => {
            let vec = SOFT_IRQS.iter().position(|n| *n == name)?;
            with(format!("irq_{what}"), vec![("vec", Value::U32(vec as u32))])
        }
        [what @ ("hrtimer_entry" | "hrtimer_exit")] => {
            let side = what.trim_start_matches("hrtimer_");
            with(format!("timer_hrtimer_expire_{side}"), vec![("hrtimer", Value::U64(0xffff_8880_0000_1000))])
        }
        [what @ ("vector_entry" | "vector_exit"), name] => {
            let side = what.trim_start_matches("vector_");
            with(format!("x86_irq_vectors_{name}_{side}"), vec![("vector", Value::I32(236))])
        }
        [what @ ("receive_entry" | "receive_exit")] => {
            let side = what.trim_start_matches("receive_");
            with(format!("net_napi_gro_receive_{side}"), vec![("ret", Value::I32(0))])
        }
        _ => None,
    }
}

fn address(text: &str) -> Option<([u8; 4], u16)> {
    let (ip, port) = text.split_once(':')?;
    let bytes: Vec<u8> = ip.split('.').map(|b| b.parse().ok()).collect::<Option<_>>()?;
    Some((bytes.try_into().ok()?, port.parse().ok()?))
}

/// Packets and disk requests.
fn device(case: &Case, on: i32, words: &[&str]) -> Option<(String, Fields)> {
    match *words {
        [what @ ("send" | "receive"), source, dest, "seq", seq] => {
            let tcp = Tcp { source: address(source)?, dest: address(dest)?, seq: seq.parse().ok()?, ack: 1, len: 10 };
            let fields = vec![
                ("skbaddr", Value::U64(0xffff_8880_0000_2000)),
                ("len", Value::U32(62)),
                ("name", Value::Text("eth0".into())),
                ("network_header", Value::Packet(tcp)),
            ];
            Some((if what == "send" { "net_dev_queue" } else { "net_if_receive_skb" }.to_owned(), fields))
        }
        [what @ ("block_insert" | "block_issue" | "block_complete"), sector, bytes, rw] => {
            let bytes: u32 = bytes.parse().ok()?;
            let mut fields = vec![
                ("dev", Value::U32(266_338_320)),
                ("sector", Value::U64(sector.parse().ok()?)),
                ("nr_sector", Value::U32(bytes / 512)),
            ];
            match what {
                "block_complete" => fields.push(("error", Value::I32(0))),
                _ => fields.extend([("bytes", Value::U32(bytes)), ("tid", Value::I32(on))]),
            }
            fields.push(("rwbs", Value::U32(if rw == "write" { 1 } else { 68 })));
            if what != "block_complete" {
                fields.push(("comm", Value::Comm(comm(case, on))));
            }
            Some((what.replace("block_", "block_rq_"), fields))
        }
        _ => None,
    }
}
