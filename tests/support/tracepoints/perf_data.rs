//! A perf.data, as perf 6.1 writes it.

use super::{FIRST, FORMATS, Happened, Machine, formats_of};

/// How perf records, beside the events.
#[derive(Clone, Copy)]
pub struct PerfOptions {
    /// Bytes of each attr.
    pub attr: usize,
    /// Without `-a`.
    pub own_threads: bool,
    /// `-k`.
    pub clock: Option<i32>,
}

/// `perf record -a -k mono` of perf 6.1.
pub const PERF: PerfOptions = PerfOptions { attr: 128, own_threads: false, clock: Some(1) };

impl Machine {
    /// A perf.data by perf of 6.1, for all threads, on the clock `mono`. `records`: type, misc and body of records that
    /// are no samples; they come first, without a trailer. `attr`: bytes of each attr.
    pub fn perf_data(self, events: &[Happened], records: &[(u32, u16, Vec<u8>)], attr: usize) -> Vec<u8> {
        self.perf_data_as(events, records, PerfOptions { attr, ..PERF })
    }

    /// The parts of a sample: IDENTIFIER, TID, TIME, CPU, perhaps CALLCHAIN, RAW.
    fn sample(self, event: &Happened, id: u64, has_chain: bool) -> Vec<u8> {
        let n = |value: u64, size| self.number(value as i64, size);
        let mut raw = self.record(event);
        raw.resize((raw.len() + 4).next_multiple_of(8) - 4, 0xee);
        let (pid, tid) = event.ids.unwrap_or((event.tid, event.tid));
        let mut chain = Vec::new();
        if has_chain {
            chain.extend(n(event.chain.len() as u64, 8));
            event.chain.iter().for_each(|address| chain.extend(n(*address, 8)));
        }
        let ids = [self.number(pid.into(), 4), self.number(tid.into(), 4)].concat();
        [n(id, 8), ids, n(event.time, 8), n(event.cpu.into(), 4), n(0, 4), chain, n(raw.len() as u64, 4), raw].concat()
    }

    /// The same, recorded in another way.
    pub fn perf_data_as(
        self,
        events: &[Happened],
        records: &[(u32, u16, Vec<u8>)],
        PerfOptions { attr, own_threads, clock }: PerfOptions,
    ) -> Vec<u8> {
        let n = |value: u64, size| self.number(value as i64, size);
        let attrs: Vec<usize> = formats_of(events).into_iter().filter(|n| FORMATS[*n].0 != "ftrace").collect();
        let has_chains = events.iter().any(|event| !event.chain.is_empty());
        // The bits of the parts of [`Self::sample`]; without sample_id_all.
        let sample_type = 0x10000 | 2 | 4 | 0x80 | 0x400 | if has_chains { 0x20 } else { 0 };
        let flags = [(true, 1), (true, 8), (true, 9), (own_threads, 12), (true, 13), (clock.is_some(), 25)];
        let flag = |bit: u32| 1u64 << if self.big { 63 - bit } else { bit };
        let flags = flags.into_iter().filter(|(set, _)| *set).fold(0, |all, (_, bit)| all | flag(bit));
        let one = |format: usize| {
            let mut bytes =
                [n(2, 4), n(attr as u64, 4), n(u64::from(FIRST) + format as u64, 8), n(1, 8), n(sample_type, 8)]
                    .concat();
            bytes.extend([n(0, 8), n(flags, 8)].concat());
            bytes.resize(92, 0);
            bytes.extend(self.number(clock.unwrap_or(0).into(), 4));
            bytes.resize(attr, 0);
            bytes
        };
        let id = |format: usize| 7000 + format as u64;
        let mut data = Vec::new();
        let mut record = |kind: u32, misc: u16, body: &[u8]| {
            data.extend([n(kind.into(), 4), n(misc.into(), 2), n(body.len() as u64 + 8, 2), body.to_vec()].concat());
        };
        records.iter().for_each(|(kind, misc, body)| record(*kind, *misc, body));
        for event in events.iter().filter(|event| attrs.contains(&event.format)) {
            record(9, 1, &self.sample(event, id(event.format), has_chains));
        }
        let string = |text: &str| [n(text.len() as u64 + 1, 4), text.as_bytes().to_vec(), vec![0]].concat();
        let desc = attrs.iter().map(|format| {
            let name = format!("{}:{}", FORMATS[*format].0, FORMATS[*format].1);
            [one(*format), n(1, 4), string(&name), n(id(*format), 8)].concat()
        });
        let desc = [n(attrs.len() as u64, 4), n(attr as u64, 4), desc.collect::<Vec<_>>().concat()].concat();
        let features = [(1, self.head("0.6", 4096, &attrs)), (4, string("6.1.0")), (12, desc)];
        let ids = 104;
        let list = ids + 8 * attrs.len();
        let at = list + (attr + 16) * attrs.len();
        let mut bytes = if self.big { b"2ELIFREP".to_vec() } else { b"PERFILE2".to_vec() };
        bytes.extend(
            [n(104, 8), n(attr as u64 + 16, 8), n(list as u64, 8), n(((attr + 16) * attrs.len()) as u64, 8)].concat(),
        );
        bytes.extend([n(at as u64, 8), n(data.len() as u64, 8), n(0, 8), n(0, 8)].concat());
        bytes.extend(n(features.iter().map(|(bit, _)| 1 << bit).sum(), 8));
        bytes.resize(104, 0);
        attrs.iter().for_each(|format| bytes.extend(n(id(*format), 8)));
        for (at, format) in attrs.iter().enumerate() {
            bytes.extend([one(*format), n((ids + 8 * at) as u64, 8), n(8, 8)].concat());
        }
        bytes.extend(&data);
        let mut place = at + data.len() + 16 * features.len();
        for (_, content) in &features {
            bytes.extend([n(place as u64, 8), n(content.len() as u64, 8)].concat());
            place += content.len();
        }
        features.into_iter().for_each(|(_, content)| bytes.extend(content));
        bytes
    }
}
