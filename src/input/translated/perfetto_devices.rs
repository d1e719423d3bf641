//! Events of Perfetto's `linux.ftrace` that change no thread: of interrupts, disks, and markers that programs write.

use super::event_place::EventPlace;
use super::lines;
use super::perfetto_messages::FtraceEventMessage;
use super::translation::{COMPLETE, DiskStep, FieldValue, Translation};

/// Events of interrupts and disks.
pub(super) fn event(at: EventPlace<'_>, event: &FtraceEventMessage, translation: &mut Translation) -> Option<()> {
    let softirq = [
        ("irq:softirq_raise", &event.softirq_raise),
        ("irq:softirq_entry", &event.softirq_entry),
        ("irq:softirq_exit", &event.softirq_exit),
    ];
    if let Some((name, softirq)) = softirq.into_iter().find_map(|(name, event)| Some((name, event.as_ref()?))) {
        translation.event(at, name, &[("vec", FieldValue::Number(softirq.vec?.into()))]);
        return Some(());
    }
    if let Some(entry) = &event.irq_handler_entry {
        let name = FieldValue::Text(entry.name.as_deref().unwrap_or(b""));
        translation.event(
            at,
            "irq:irq_handler_entry",
            &[("irq", FieldValue::Number(entry.irq?.into())), ("name", name)],
        );
        return Some(());
    }
    if let Some(exit) = &event.irq_handler_exit {
        translation.event(at, "irq:irq_handler_exit", &[("irq", FieldValue::Number(exit.irq?.into()))]);
        return Some(());
    }
    let requests = [("block:block_rq_insert", &event.block_rq_insert), ("block:block_rq_issue", &event.block_rq_issue)];
    let own = requests.into_iter().find_map(|(step, request)| {
        let request = request.as_ref()?;
        Some((step, request.dev, request.sector, request.nr_sector, request.rwbs.as_deref()))
    });
    let done = event.block_rq_complete.as_ref();
    let done = done.map(|done| (COMPLETE, done.dev, done.sector, done.nr_sector, done.rwbs.as_deref()));
    let (step, device, sector, sectors, kind) = own.or(done)?;
    let (device, sector) = (device.unwrap_or(0), sector.unwrap_or(0));
    let (sectors, kind) = (sectors.unwrap_or(0).into(), kind.unwrap_or(b""));
    translation.disk(at, DiskStep { step, device, sector, sectors, kind });
    Some(())
}

/// `B|PID|NAME` begins and `E|PID` ends a task of the thread that wrote it.
pub(super) fn marker(at: EventPlace<'_>, text: &[u8], translation: &mut Translation) -> Option<()> {
    let text = text.get(..memchr::memchr2(0, b'\n', text).unwrap_or(text.len()))?;
    let mut parts = text.splitn(3, |byte| *byte == b'|');
    let pid = |part: Option<&[u8]>| FieldValue::Number(part.and_then(lines::id).unwrap_or(0).into());
    match (parts.next()?, parts.next(), parts.next()) {
        (b"B", Some(process), Some(name)) => {
            let fields = [("pid", pid(Some(process))), ("name", FieldValue::Text(name))];
            translation.event(at, "trace_marker:begin", &fields);
        }
        (b"E", process, _) => translation.event(at, "trace_marker:end", &[("pid", pid(process))]),
        _ => return None,
    }
    Some(())
}
