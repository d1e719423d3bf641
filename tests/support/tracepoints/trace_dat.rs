//! A trace.dat of version 6 or 7, as trace-cmd writes it.

use super::{COMMANDS, Happened, Machine, formats_of};

/// A buffer of a trace.dat of version 7.
pub struct BufferOf<'a> {
    /// Empty for the top-level buffer.
    pub name: &'a str,
    pub clock: &'a str,
    pub events: &'a [Happened],
}

impl Machine {
    /// A trace.dat of version 7, not compressed. `options`: number and content of further options.
    pub fn trace_dat_7(self, buffers: &[BufferOf<'_>], options: &[(u16, Vec<u8>)]) -> Vec<u8> {
        const PAGE: usize = 4096;
        let n = |value: usize, size| self.number(value as i64, size);
        let all: Vec<Happened> = buffers.iter().flat_map(|buffer| buffer.events).cloned().collect();
        let formats = formats_of(&all);
        let begin = [self.magic("7", PAGE), b"none\0\0".to_vec()].concat();
        let mut body: Vec<u8> = Vec::new();
        let place = |body: &Vec<u8>| begin.len() + 8 + body.len();
        let mut list: Vec<(u16, Vec<u8>)> = options.to_vec();
        let sections = [
            (16, self.header_info(PAGE)),
            (17, self.ftrace_formats(&formats)),
            (18, self.event_formats(&formats)),
            (21, self.counted(COMMANDS)),
        ];
        for (id, content) in sections {
            list.push((id, n(place(&body), 8)));
            body.extend([n(usize::from(id), 2), n(0, 2), n(0, 4), n(content.len(), 8), content].concat());
        }
        for BufferOf { name, clock, events } in buffers {
            let cpus = events.iter().map(|event| event.cpu).max().unwrap_or(0) + 1;
            let text = [name.as_bytes(), &[0], clock.as_bytes(), &[0]].concat();
            let mut content = [n(place(&body), 8), text, n(PAGE, 4), n(cpus as usize, 4)].concat();
            for cpu in 0..cpus {
                let pages = self.pages(events, cpu, PAGE);
                content.extend([n(cpu as usize, 4), n(place(&body), 8), n(pages.len(), 8)].concat());
                body.extend(pages);
            }
            list.push((3, content));
        }
        list.push((0, n(0, 8)));
        let options =
            list.into_iter().map(|(id, content)| [n(usize::from(id), 2), n(content.len(), 4), content].concat());
        let options: Vec<u8> = options.collect::<Vec<_>>().concat();
        let at = place(&body);
        [begin, n(at, 8), body, n(0, 8), n(options.len(), 8), options].concat()
    }

    /// A trace.dat of version 6. `options`: number and content of further options.
    pub fn trace_dat(self, events: &[Happened], options: &[(u16, Vec<u8>)]) -> Vec<u8> {
        const PAGE: usize = 4096;
        let cpus = events.iter().map(|event| event.cpu).max().unwrap_or(0) + 1;
        let mut bytes = self.head("6", PAGE, &formats_of(events));
        bytes.extend(self.number(i64::from(cpus), 4));
        bytes.extend(b"options  \0");
        for (id, content) in options {
            bytes.extend(
                [self.number(i64::from(*id), 2), self.number(content.len() as i64, 4), content.clone()].concat(),
            );
        }
        bytes.extend([0, 0]);
        bytes.extend(b"flyrecord\0");
        let mut at = (bytes.len() + 16 * cpus as usize).next_multiple_of(PAGE);
        let pages: Vec<Vec<u8>> = (0..cpus).map(|cpu| self.pages(events, cpu, PAGE)).collect();
        for pages in &pages {
            bytes.extend([self.number(at as i64, 8), self.number(pages.len() as i64, 8)].concat());
            at += pages.len();
        }
        bytes.resize(bytes.len().next_multiple_of(PAGE), 0);
        bytes.extend(pages.concat());
        bytes
    }

    /// One page for every eight events of a CPU; the first record of each has an absolute time.
    fn pages(self, events: &[Happened], cpu: u32, page: usize) -> Vec<u8> {
        let mut all = Vec::new();
        let own: Vec<&Happened> = events.iter().filter(|event| event.cpu == cpu).collect();
        for some in own.chunks(8) {
            let mut time = some[0].time - 5;
            let mut data = Vec::new();
            for (n, event) in some.iter().enumerate() {
                let delta = event.time - time;
                let mut word = |kind: u64, delta: u64| {
                    let word = if self.big { kind << 27 | delta } else { delta << 5 | kind };
                    data.extend(self.number(word as i64, 4));
                };
                let mask = (1 << 27) - 1;
                let record = self.record(event);
                let left = match n {
                    0 => {
                        word(31, event.time & mask);
                        data.extend(self.number((event.time >> 27 & 0xffff_ffff) as i64, 4));
                        0
                    }
                    _ if delta > mask => {
                        word(30, delta & mask);
                        data.extend(self.number((delta >> 27) as i64, 4));
                        0
                    }
                    _ => delta,
                };
                let mut word = |kind: u64, delta: u64| {
                    let word = if self.big { kind << 27 | delta } else { delta << 5 | kind };
                    data.extend(self.number(word as i64, 4));
                };
                let length = record.len().next_multiple_of(4);
                match length / 4 {
                    words @ 1..=28 => word(words as u64, left),
                    _ => {
                        word(0, left);
                        data.extend(self.number(length as i64 + 4, 4));
                    }
                }
                data.extend(&record);
                data.resize(data.len() + length - record.len(), 0);
                time = event.time;
            }
            let mut bytes = self.number(some[0].time as i64 - 5, 8);
            bytes.extend(self.number(data.len() as i64, self.long));
            bytes.extend(data);
            bytes.resize(page, 0);
            all.extend(bytes);
        }
        all
    }
}
