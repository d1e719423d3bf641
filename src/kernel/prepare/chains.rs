//! The call chains that the kernel's tracer recorded with wake-ups.
//!
//! In: the events of kernel traces in their order. Out: for a wake-up the last chain of the kernel before it, if it is
//! of the same CPU and moment and no wake-up has taken it. An event and its stack are always in one chunk.

use crate::base::time::Timestamp;
use crate::event::host::HostId;
use crate::event::kind::{Event, Kind};
use crate::event::stack::RawStackId;

/// A call chain of the kernel, which may have been recorded with the wake-up that follows.
#[derive(Clone, Copy, Debug)]
struct KernelChain {
    host: HostId,
    cpu: u16,
    time: Timestamp,
    stack: RawStackId,
}

/// The last call chain of the kernel.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::kernel) struct WakeChains(Option<KernelChain>);

impl WakeChains {
    /// The next event of a kernel trace. For a wake-up: the call chain that was recorded with it.
    pub fn next(&mut self, host: HostId, event: &Event) -> Option<RawStackId> {
        let Event { time, cpu, kind, .. } = *event;
        match kind {
            Kind::Stack { kernel: Some(stack), .. } => self.0 = Some(KernelChain { host, cpu, time, stack }),
            Kind::Wake { tid, .. } if tid != 0 => {
                let last = self.0.take()?;
                return ((last.host, last.cpu, last.time) == (host, cpu, time)).then_some(last.stack);
            }
            _ => {}
        }
        None
    }
}
