//! The meaning of `prev_state` of a switch: its bits changed with Linux 4.14 (ALGORITHMS.md 3.3).

use get_size2::GetSize;

/// The next state of a thread that leaves the CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrevState {
    /// It could go on: preempted, or it yielded.
    Ready,
    Blocked,
    /// It is stopped: it goes on when another thread lets it.
    Stopped(StoppedBy),
    /// It is parked: a kernel thread that has nothing to do.
    Parked,
    Dead,
}

/// What stopped a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoppedBy {
    /// A signal (`TASK_STOPPED`): job control, or another process.
    Signal,
    /// A debugger or another tracer (`TASK_TRACED`).
    Tracer,
}

/// The meaning of the bits, by kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, GetSize)]
pub enum Generation {
    /// Before 4.14.
    Old,
    /// 4.14 and later.
    New,
    /// The release is not recorded.
    #[default]
    Unknown,
}

impl Generation {
    /// From `kernel_release` of the trace environment (`6.1.0-56-cloud-amd64`).
    pub fn of(release: Option<&str>) -> Generation {
        let mut numbers = release.unwrap_or("").split(|c: char| !c.is_ascii_digit()).map(str::parse::<u32>);
        match (numbers.next(), numbers.next()) {
            (Some(Ok(major)), Some(Ok(minor))) if (major, minor) >= (4, 14) => Generation::New,
            (Some(Ok(_)), Some(Ok(_))) => Generation::Old,
            _ => Generation::Unknown,
        }
    }

    /// Decode the state; `exited` says that the thread's exit was seen since it was last switched in.
    pub fn decode(self, state: u16, exited: bool) -> PrevState {
        if state & 0x03 != 0 {
            return PrevState::Blocked;
        }
        if state & 0x30 != 0 {
            return PrevState::Dead;
        }
        if state & 0x0c != 0 {
            return PrevState::Stopped(if state & 0x08 != 0 { StoppedBy::Tracer } else { StoppedBy::Signal });
        }
        match (self, state) {
            _ if exited && state & 0x40 != 0 => PrevState::Dead,
            (Generation::Old, s) if s & 0x40 != 0 => PrevState::Dead,
            (Generation::Old, s) if s & 0x200 != 0 => PrevState::Parked,
            (Generation::Old, _) => PrevState::Ready,
            (_, s) if s & 0x40 != 0 => PrevState::Parked,
            (_, s) if s & 0x80 != 0 => PrevState::Blocked,
            _ => PrevState::Ready,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_mean_what_the_release_says() {
        let new = Generation::of(Some("5.15.0-91-generic"));
        let old = Generation::of(Some("3.13"));
        assert_eq!((new, old), (Generation::New, Generation::Old));
        assert_eq!(Generation::of(Some("4.4.0-116-generic")), Generation::Old);
        assert_eq!(Generation::of(Some("4.14.2")), Generation::New);
        assert_eq!(Generation::of(None), Generation::Unknown);
        for (state, on_new, on_old) in [
            (0, PrevState::Ready, PrevState::Ready),
            (1, PrevState::Blocked, PrevState::Blocked),
            (2, PrevState::Blocked, PrevState::Blocked),
            (0x82, PrevState::Blocked, PrevState::Blocked),
            (4, PrevState::Stopped(StoppedBy::Signal), PrevState::Stopped(StoppedBy::Signal)),
            (8, PrevState::Stopped(StoppedBy::Tracer), PrevState::Stopped(StoppedBy::Tracer)),
            (0xc, PrevState::Stopped(StoppedBy::Tracer), PrevState::Stopped(StoppedBy::Tracer)),
            (0x10, PrevState::Dead, PrevState::Dead),
            (0x40, PrevState::Parked, PrevState::Dead),
            (0x80, PrevState::Blocked, PrevState::Ready),
            (0x100, PrevState::Ready, PrevState::Ready),
            (0x200, PrevState::Ready, PrevState::Parked),
            (0x1000, PrevState::Ready, PrevState::Ready),
        ] {
            assert_eq!((new.decode(state, false), old.decode(state, false)), (on_new, on_old), "{state:#x}");
        }
        assert_eq!(Generation::Unknown.decode(0x40, true), PrevState::Dead);
        assert_eq!(Generation::Unknown.decode(0x40, false), PrevState::Parked);
    }
}
