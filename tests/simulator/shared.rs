//! What threads share: locks, disks, channels and connections; and the interrupts of devices.

use super::{Action, Channel, ChannelState, Disk, DiskState, Machine, Mutex, MutexState, ctf_writer, interrupts};
use std::collections::VecDeque;
use whyslow::parts::base::time::Ns;

impl Machine {
    /// A lock; an unlock hands it to the first thread that waits.
    pub fn mutex(&mut self) -> Mutex {
        self.mutexes.push(MutexState::default());
        self.schedule.mutexes.push(Vec::new());
        Mutex(self.mutexes.len() - 1)
    }

    /// A disk that serves one request after the other: so long each, and for each KiB.
    pub fn disk(&mut self, seek: Ns, per_kib: Ns) -> Disk {
        let irq_cpu = self.dice.below(self.cpus.len());
        self.disks.push(DiskState { seek, per_kib, irq_cpu, queue: VecDeque::new(), sector: 2048 });
        self.schedule.disks.push(Vec::new());
        Disk(self.disks.len() - 1)
    }

    /// A place to leave tokens and to wait for them: for pipes, semaphores, signals.
    pub fn channel(&mut self) -> Channel {
        self.channels.push(ChannelState::default());
        Channel(self.channels.len() - 1)
    }

    /// A TCP connection over loopback: towards the server, and back.
    pub fn connection(&mut self) -> (Channel, Channel) {
        let port = 40_000 + self.channels.len() as u16;
        let (here, there) = (([127, 0, 0, 1], port), ([127, 0, 0, 1], 80));
        let seq = 1_000_000 * self.channels.len() as u32 + 1;
        let tcp = |source, dest, seq| ctf_writer::Tcp { source, dest, seq, ack: 7, len: 100 };
        let (to, from) = (self.channel(), self.channel());
        self.channels[to.0].tcp = Some(tcp(here, there, seq));
        self.channels[from.0].tcp = Some(tcp(there, here, seq + 500_000));
        (to, from)
    }

    /// Interrupts of a device that no thread waits for: `count` of them from `at` on, one in `every` ns, each of
    /// `length`.
    pub fn interrupts(&mut self, cpu: usize, handler: &'static str, at: Ns, count: usize, every: Ns, length: Ns) {
        for i in 0..count as Ns {
            self.device(cpu, handler, at + i * every, length / 5, length * 4 / 5);
        }
    }

    /// One interrupt of a device: so long its handler, and the soft interrupt that this raises.
    pub fn device(&mut self, cpu: usize, handler: &'static str, at: Ns, hard: Ns, soft: Ns) {
        let interrupt = interrupts::Interrupt::Device { handler, hard, soft };
        self.later(self.now + at, Action::Interrupt(cpu, interrupt));
    }
}
