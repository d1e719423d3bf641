//! Reading the terminal: bytes and pauses go to the decoder.
//!
//! In: standard input, and a socket on which the handler of SIGWINCH writes. Out: [`TerminalEvent`]s. Blocks in `poll`.

use super::decoder::InputDecoder;
use super::event::TerminalEvent;
use super::sequence::PATIENCE;
use crate::tui::terminal::is_background;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;

/// Read the terminal until it is closed or `take` returns false. `take` gets each input, and an event of its own when
/// `resized` can be read.
pub fn read(resized: &UnixStream, mut take: impl FnMut(TerminalEvent) -> bool) -> io::Result<()> {
    let terminal = rustix::stdio::stdin();
    let mut decoder = InputDecoder::default();
    let mut bytes = [0; 4096];
    loop {
        let mut ready = [
            PollFd::from_borrowed_fd(terminal, PollFlags::IN),
            PollFd::from_borrowed_fd(resized.as_fd(), PollFlags::IN),
        ];
        let patience = decoder.patience();
        let limit = patience.map(|p| Timespec { tv_sec: p.as_secs() as _, tv_nsec: p.subsec_nanos().into() });
        let number = match poll(&mut ready, limit.as_ref()) {
            Err(rustix::io::Errno::INTR) => continue,
            other => other?,
        };
        let [of_terminal, of_size] = ready.map(|fd| fd.revents());
        let mut inputs = Vec::new();
        if number == 0 {
            decoder.pause(|input| inputs.push(input));
        }
        if of_size.contains(PollFlags::IN) {
            let mut signals = [0; 64];
            rustix::io::read(resized, &mut signals)?;
            inputs.push(TerminalEvent::Resized);
        }
        if !of_terminal.is_empty() && is_background() {
            // Keys pressed now are for the shell.
            std::thread::sleep(PATIENCE);
        } else if !of_terminal.is_empty() {
            match rustix::io::read(terminal, &mut bytes) {
                Ok(0) => inputs.push(TerminalEvent::Closed),
                Ok(n) => decoder.feed(bytes.get(..n).unwrap_or(&[]), |input| inputs.push(input)),
                Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => {}
                Err(_) => inputs.push(TerminalEvent::Closed),
            }
        }
        for input in inputs {
            let closed = input == TerminalEvent::Closed;
            if !take(input) || closed {
                return Ok(());
            }
        }
    }
}
