//! The sockets that processes have connected: which open file leads to which server.
//!
//! In: processes, `/proc/PID/fd`, and the tables of their network namespaces. Out: a text for each process that has
//! such sockets: `5 udp 127.0.0.53:53, 9 tcp [::1]:5432`, by descriptor, at most [`MOST_SOCKETS`]. A connection that
//! the process accepted is none: on its local port another socket of the same namespace waits for clients. `unknown`
//! is said of a process whose sockets were not read this time.
//!
//! Cost: each open file is a link to read, and the kernel walks all its sockets for each table, which is read where a
//! process has any socket. So at most [`MOST_LINKS`] links are read at a time, and after a sample that took long the
//! next one has to wait ([`PAUSE_FACTOR`]).

use crate::model::environment::{SOCKETS, SampledTable, SampledValue};
use crate::record::processes;
use rustix::time::{ClockId, clock_gettime};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Sockets of a process that are said.
const MOST_SOCKETS: usize = 64;
/// Links of descriptors that are read for a sample.
const MOST_LINKS: usize = 4096;
/// Network namespaces whose tables are read for a sample.
const MOST_NAMESPACES: usize = 8;
/// Bytes of a table that are read: about 7,000 sockets.
const MOST_TABLE_BYTES: u64 = 1 << 20;
/// A sample is followed by a pause of this many times the CPU time that it took: at most 1 % of a CPU.
const PAUSE_FACTOR: u32 = 100;
/// What is said of a process whose sockets were not read.
const UNKNOWN: &str = "unknown";
/// States of a socket in the tables: connected (of UDP, too), and being connected.
const ESTABLISHED: &str = "01";
const SYN_SENT: &str = "02";

/// By inode of a socket: its protocol and its peer.
type Peers = BTreeMap<u64, (&'static str, SocketAddr)>;

/// Samples the sockets of processes.
#[derive(Debug, Default)]
pub(super) struct SocketSampler {
    /// No sample is taken before.
    due: Option<Instant>,
}

impl SocketSampler {
    /// Add to each process the sockets that it has connected; `before` is what the line before said.
    pub fn add(&mut self, proc: &Path, processes: &mut SampledTable, before: &SampledTable) {
        let began = cpu_time();
        let is_due = self.due.is_none_or(|due| due <= Instant::now());
        let mut left = if is_due { MOST_LINKS } else { 0 };
        let mut namespaces: BTreeMap<PathBuf, Peers> = BTreeMap::new();
        for (pid, values) in processes.iter_mut() {
            let text = sockets(&proc.join(pid), &mut namespaces, &mut left).unwrap_or_else(|| UNKNOWN.to_owned());
            // A process that never had any says nothing.
            let had_any = before.get(pid).is_some_and(|values| values.contains_key(SOCKETS));
            if had_any || !text.is_empty() && text != UNKNOWN {
                values.insert(SOCKETS.to_owned(), SampledValue::Text(text));
            }
        }
        if is_due {
            let pause = cpu_time().saturating_sub(began).checked_mul(PAUSE_FACTOR).unwrap_or(Duration::MAX);
            self.due = Instant::now().checked_add(pause);
        }
    }
}

/// The time for which this thread has used a CPU.
fn cpu_time() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default()
}

/// The sockets that a process has connected, as a text; `None` where they cannot be read, or not now.
fn sockets(folder: &Path, namespaces: &mut BTreeMap<PathBuf, Peers>, left: &mut usize) -> Option<String> {
    if *left == 0 {
        return None;
    }
    let descriptors = folder.join("fd");
    let mut inodes: BTreeMap<u32, u64> = BTreeMap::new();
    for descriptor in processes::numbers(&descriptors) {
        *left = left.checked_sub(1)?;
        let Ok(link) = std::fs::read_link(descriptors.join(descriptor.to_string())) else { continue };
        let inode = link.to_str().and_then(|link| link.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok());
        inodes.extend(inode.map(|inode| (descriptor, inode)));
    }
    let mut text = String::new();
    if inodes.is_empty() {
        return Some(text);
    }
    let namespace = std::fs::read_link(folder.join("ns/net")).ok()?;
    if !namespaces.contains_key(&namespace) {
        if namespaces.len() >= MOST_NAMESPACES {
            return None;
        }
        namespaces.insert(namespace.clone(), peers(&folder.join("net")));
    }
    let peers = namespaces.get(&namespace)?;
    let connected = inodes.into_iter().filter_map(|(descriptor, inode)| Some((descriptor, peers.get(&inode)?)));
    for (descriptor, (protocol, peer)) in connected.take(MOST_SOCKETS) {
        let comma = if text.is_empty() { "" } else { ", " };
        let _ = write!(text, "{comma}{descriptor} {protocol} {peer}");
    }
    Some(text)
}

/// The connected sockets of a network namespace that no listening socket accepted.
fn peers(net: &Path) -> Peers {
    let mut all = Peers::new();
    // The states of sockets without a peer: TCP listens, UDP is bound.
    for (protocol, names, waits) in [("tcp", ["tcp", "tcp6"], "0A"), ("udp", ["udp", "udp6"], "07")] {
        let sockets: Vec<TableSocket> = names.iter().flat_map(|name| table(&net.join(name))).collect();
        let listening: BTreeSet<u16> = sockets.iter().filter(|s| s.state == waits).map(|s| s.local.port()).collect();
        let connected = sockets.iter().filter(|s| s.state == ESTABLISHED || s.state == SYN_SENT);
        let own = connected.filter(|socket| socket.inode != 0 && !listening.contains(&socket.local.port()));
        all.extend(own.map(|socket| (socket.inode, (protocol, socket.peer))));
    }
    all
}

/// A socket of `/proc/net/tcp` or `/proc/net/udp`.
struct TableSocket {
    local: SocketAddr,
    peer: SocketAddr,
    state: String,
    inode: u64,
}

fn table(path: &Path) -> Vec<TableSocket> {
    let Ok(file) = File::open(path) else { return Vec::new() };
    let lines = BufReader::new(file.take(MOST_TABLE_BYTES)).lines();
    lines.map_while(Result::ok).filter_map(|line| socket(&line)).collect()
}

/// A line of a table: `0: 0100007F:0016 0100007F:C350 01 00000000:00000000 00:00000000 00000000 0 0 4711 ...`.
fn socket(line: &str) -> Option<TableSocket> {
    let mut words = line.split_ascii_whitespace().skip(1);
    let (local, peer, state) = (address(words.next()?)?, address(words.next()?)?, words.next()?.to_owned());
    Some(TableSocket { local, peer, state, inode: words.nth(5)?.parse().ok()? })
}

/// An address: words of 32 bits in the order of this machine's bytes, and the port.
fn address(text: &str) -> Option<SocketAddr> {
    let (address, port) = text.split_once(':')?;
    let word = |at: usize| {
        let word = address.get(at * 8..at * 8 + 8)?;
        Some(u32::from_str_radix(word, 16).ok()?.to_ne_bytes())
    };
    let address = match address.len() {
        8 => IpAddr::V4(Ipv4Addr::from(word(0)?)),
        32 => {
            let mut bytes = [0; 16];
            for (at, four) in bytes.chunks_exact_mut(4).enumerate() {
                four.copy_from_slice(&word(at)?);
            }
            IpAddr::V6(Ipv6Addr::from(bytes)).to_canonical()
        }
        _ => return None,
    };
    Some(SocketAddr::new(address, u16::from_str_radix(port, 16).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::environment::SampledValues;
    use std::net::{TcpListener, TcpStream, UdpSocket};

    #[test]
    fn lines_of_tables_are_sockets() {
        let line = "   1: 3500007F:0035 00000000:0000 0A 00000000:00000000 00:00000000 00000000   101        0 7 1 0";
        let listening = socket(line).unwrap();
        assert_eq!((listening.local.port(), listening.state.as_str(), listening.inode), (53, "0A", 7));
        if cfg!(target_endian = "little") {
            assert_eq!(listening.local.to_string(), "127.0.0.53:53");
            let mapped = address("0000000000000000FFFF00000100007F:1F90").unwrap();
            assert_eq!(mapped.to_string(), "127.0.0.1:8080");
            assert_eq!(address("00000000000000000000000001000000:0050").unwrap().to_string(), "[::1]:80");
        }
        let head = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode";
        for wrong in [head, "", "1: 0100007F:50 0100007F:50 01", "1: é100007:50 0100007F:50 01 0 0 0 0 0 4"] {
            assert!(socket(wrong).is_none(), "{wrong}");
        }
    }

    #[test]
    fn sockets_are_those_that_a_process_has_connected() {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let name_server = UdpSocket::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(server.local_addr().unwrap()).unwrap();
        let _accepted = server.accept().unwrap();
        let resolver = UdpSocket::bind("127.0.0.1:0").unwrap();
        resolver.connect(name_server.local_addr().unwrap()).unwrap();
        let pid = std::process::id().to_string();
        let mut processes = SampledTable::from([(pid.clone(), SampledValues::new())]);
        let mut sampler = SocketSampler::default();
        sampler.add(Path::new("/proc"), &mut processes, &SampledTable::new());
        let Some(SampledValue::Text(text)) = processes[&pid].get(SOCKETS) else { panic!("{processes:?}") };
        let all: Vec<&str> = text.split(", ").collect();
        let said = |of: &dyn std::os::fd::AsRawFd, protocol: &str, peer: SocketAddr| {
            all.contains(&format!("{} {protocol} {peer}", of.as_raw_fd()).as_str())
        };
        assert!(said(&client, "tcp", server.local_addr().unwrap()), "{text}");
        assert!(said(&resolver, "udp", name_server.local_addr().unwrap()), "{text}");
        assert!(!text.contains(&client.local_addr().unwrap().to_string()), "accepted by the server: {text}");
        // The next sample is not due yet; what was said does not count on.
        let before = processes.clone();
        sampler.due = Instant::now().checked_add(Duration::from_secs(60));
        sampler.add(Path::new("/proc"), &mut processes, &before);
        assert_eq!(processes[&pid][SOCKETS], SampledValue::Text(UNKNOWN.to_owned()));
    }
}
