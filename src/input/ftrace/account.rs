//! The records of the pages of all CPUs, counted by the words that lead from one to the next.
//!
//! In: the pages. Out: how many records a page has, and for how many of them there is no format. The walk is not that
//! of `pages.rs`, which decodes: the two are compared. Where a page cannot be read on, what is left of it counts as
//! one record.

use super::FtraceStorage;
use super::cpu_pages::CpuPages;
use super::pages::{ABSOLUTE, EXTEND, PADDING, PageHeader, PageRules};
use crate::base::cursor::{ByteOrder, bits};
use crate::base::notice::Notice;
use crate::input::account::Account;
use crate::input::tracepoint::account::CountedStorage;

impl CountedStorage for FtraceStorage {
    fn records(&self) -> Account {
        let mut account = Account::default();
        for cpu in &self.cpus {
            (0..cpu.bytes.div_ceil(cpu.packet())).for_each(|packet| account.merge(&self.packet_records(cpu, packet)));
        }
        account
    }

    fn events_of(&self, stream: usize, packet: usize) -> u64 {
        self.cpus.get(stream).map_or(0, |cpu| self.packet_records(cpu, packet).given)
    }
}

impl FtraceStorage {
    fn packet_records(&self, cpu: &CpuPages, packet: usize) -> Account {
        let mut account = Account::default();
        let end = packet.saturating_add(1).saturating_mul(cpu.packet()).min(cpu.bytes);
        let pages = self.pages().get(cpu.at..).unwrap_or(&[]);
        for at in (packet.saturating_mul(cpu.packet())..end).step_by(cpu.page) {
            let page = pages.get(at..end.min(at + cpu.page)).unwrap_or(&[]);
            if count_page(&self.rules, page, cpu.page, &mut account).is_none() {
                account.read += 1;
                account.skip(Notice::DamagedPacket, 1);
            }
        }
        account
    }
}

/// Count the records of a page of `size` bytes, as far as the file has it; `None` where it cannot be read to its end.
fn count_page(rules: &PageRules, page: &[u8], size: usize, account: &mut Account) -> Option<()> {
    let PageHeader { end, .. } = rules.page(page)?;
    let data = page.get(..end)?;
    let word = |at: usize| (at + 4 <= end).then(|| bits(data, at as u64 * 8, 32, rules.byte_order)).flatten();
    let mut at = rules.data;
    while at < end {
        let first = word(at)? as u32;
        let (kind, delta) = match rules.byte_order {
            ByteOrder::Little => (first & 31, first >> 5),
            ByteOrder::Big => (first >> 27, first & ((1 << 27) - 1)),
        };
        let (body, length) = match kind {
            PADDING if delta == 0 => return Some(()),
            PADDING => {
                let length = (word(at + 4)? as usize).next_multiple_of(4).max(4);
                at = (at + 4).checked_add(length).filter(|at| *at <= size)?;
                continue;
            }
            EXTEND | ABSOLUTE => {
                word(at + 4)?;
                at += 8;
                continue;
            }
            0 => (at + 8, (word(at + 4)? as usize).checked_sub(4)?),
            words => (at + 4, words as usize * 4),
        };
        at = body.checked_add(length.next_multiple_of(4)).filter(|at| *at <= end)?;
        account.read += 1;
        let format = rules.format_of(data.get(body..body + length)?);
        match format.and_then(|format| rules.classes.get(format).copied().flatten()) {
            Some(_) => account.give(1),
            None => account.skip(Notice::EventsUndescribed, 1),
        }
    }
    Some(())
}
