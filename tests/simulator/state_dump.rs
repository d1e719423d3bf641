//! The events in which a kernel tracer lists the threads that exist when it begins.

use super::World;
use super::ctf_writer::{Event, Task, Value};
use std::borrow::Cow;
use std::rc::Rc;
use whyslow::parts::base::time::Ns;

/// The events of a world; the last one leaves the tracer's CPU idle.
pub(super) fn state_dump(world: &World) -> Vec<Event> {
    let start = world.schedule.span.0;
    let on =
        Rc::new(Task { tid: 900, pid: 900, vtid: 900, vpid: 900, comm: "lttng-sessiond".into(), ..Task::default() });
    let event = |at: usize, name: &'static str, fields| Event {
        time: start + at as Ns,
        cpu: 0,
        name: Cow::Borrowed(name),
        fields,
        on: Rc::clone(&on),
        stack: None,
    };
    let mut events = vec![event(0, "lttng_statedump_start", Vec::new())];
    for task in &world.initial {
        let fields = vec![
            ("tid", Value::I32(task.tid)),
            ("pid", Value::I32(task.pid)),
            ("ppid", Value::I32(task.ppid)),
            ("name", Value::Comm(Rc::clone(&task.comm))),
            ("type", Value::I32(0)),
            ("mode", Value::I32(5)),
            ("submode", Value::I32(0)),
            ("status", Value::I32(5)),
            ("cpu", Value::U32(0)),
        ];
        events.push(event(events.len(), "lttng_statedump_process_state", fields));
        let levels = if task.vtid == task.tid {
            vec![(task.tid, task.pid, 0)]
        } else {
            vec![(task.tid, task.pid, 0), (task.vtid, task.vpid, 1)]
        };
        for (vtid, vpid, level) in levels {
            let fields = vec![
                ("tid", Value::I32(task.tid)),
                ("vtid", Value::I32(vtid)),
                ("vpid", Value::I32(vpid)),
                ("vppid", Value::I32(1)),
                ("ns_level", Value::I32(level)),
                ("ns_inum", Value::U32(4_026_531_836 + level as u32)),
            ];
            events.push(event(events.len(), "lttng_statedump_process_pid_ns", fields));
        }
    }
    events.push(event(events.len(), "lttng_statedump_end", Vec::new()));
    let fields = vec![
        ("prev_comm", Value::Comm(Rc::clone(&on.comm))),
        ("prev_tid", Value::I32(on.tid)),
        ("prev_prio", Value::I32(120)),
        ("prev_state", Value::I64(1)),
        ("next_comm", Value::Comm("swapper/0".into())),
        ("next_tid", Value::I32(0)),
        ("next_prio", Value::I32(120)),
    ];
    events.push(event(events.len(), "sched_switch", fields));
    events
}
