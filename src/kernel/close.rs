//! The end of the kernel pass: open states are closed, and the timeline is sealed.

use super::machine::Machine;
use super::reasons::Reasons;
use super::sealed_rows::{LateChange, SegmentChange};
use super::thread_state::{Gaps, Sched, ThreadState, UnknownReason};
use crate::base::names::{NameId, Names};
use crate::base::notice::{Notice, Notices};
use crate::base::time::{Ns, Span, Timestamp};
use crate::event::host::HostId;
use crate::kernel::threads::ThreadInstance;
use crate::model::profile::is_clock;
use crate::timeline::store::parts::RowPlace;
use crate::timeline::{
    CpuTimeline, DiskRequest, HostCoverage, RecordedTimeline, Segment, SegmentKind, StackSample, ThreadDraft,
    ThreadName, ThreadRows,
};
use foldhash::HashMap;
use std::collections::BTreeSet;

impl Machine {
    /// Seal the timeline: all open states end with the last event, first names hold from the beginning of life.
    pub fn close(mut self, lossy: Vec<Span>, covered: Vec<HostCoverage>) -> (RecordedTimeline, Notices) {
        let end = self.end.max(self.start());
        self.seal_slabs();
        self.take_back_rows();
        self.close_counters();
        let unnamed = self.out.tables.names.intern("unknown");
        let mut worker_names: HashMap<NameId, bool> = HashMap::default();
        self.assess_switches();
        for state in self.threads.iter_mut() {
            state.end_by_exit().into_iter().for_each(|end| state.die(end, &self.reasons));
        }
        self.close_unscheduled(end);
        for cpu in self.cpus.iter_mut() {
            cpu.set_thread(None, end);
        }
        let missing = self.unrecorded.iter().next().map_or(String::new(), |(_, cpu)| format!("CPU {cpu}"));
        self.notices.add(Notice::CpusMissing, self.unrecorded.len() as u64, || missing);
        let begin = self.start();
        let mut out = self.out;
        let (names, handlers) = (&out.tables.names, &self.handlers);
        let mut is_disk_worker =
            |name| *worker_names.entry(name).or_insert_with(|| handlers.is_disk_worker(names.get(name)));
        for (line, mut state) in self.threads.into_parts().0.enumerate() {
            state.close(end, unnamed, &self.reasons);
            state.begin_with(begin);
            let ThreadState { mut thread, rows, .. } = state;
            thread.disk_worker = thread.names.iter().any(|name| is_disk_worker(name.name));
            thread.seal(&rows);
            // There may be many: their rows do not wait for each other.
            self.sealed.push_thread(line, rows);
            out.threads.push(ThreadDraft { thread, rows: ThreadRows::default() });
        }
        let all = self.cpus.into_vec();
        let mut lines = vec![0; all.len()];
        let mut cpus: Vec<_> = all.into_iter().enumerate().filter(|(_, cpu)| cpu.is_known()).collect();
        cpus.sort_by_key(|(_, cpu)| (cpu.host, cpu.number));
        for (line, (old, _)) in (0..).zip(&cpus) {
            lines[*old] = line;
        }
        self.sealed.runs.renumber(&lines);
        let cpus = cpus.into_iter().map(|(_, cpu)| cpu);
        out.cpus = cpus.map(|cpu| CpuTimeline { host: cpu.host, cpu: cpu.number, runs: cpu.runs }).collect();
        out.services = self.services.close(end);
        let until = |request: &DiskRequest| {
            let lost = self.losses.first(request.host, None, request.span.start, end);
            lost.unwrap_or(end).min(end)
        };
        let (disk, late_requests) = self.requests.close(until);
        out.disk = disk;
        if let Some(faults) = &mut out.page_faults {
            faults.sort_unstable();
        }
        out.tables.lossy = Span::union(out.tables.lossy.into_iter().chain(lossy).collect());
        out.tables.covered = covered;
        out.tables.traces = self.origins;
        out.tables.span = Span::new(self.start.unwrap_or_default(), end);
        let mut timeline = out.recorded(self.sealed);
        // Segments and requests that moved to the store before their cause or their end was known.
        let (changes, reasons) = (&self.late_changes, &self.reasons);
        let places: Vec<RowPlace> = changes.iter().map(|change| change.place).collect();
        timeline.rewrite_segments(&places, |at, segment| {
            changes.get(at).into_iter().for_each(|change| change.change.apply(segment, reasons));
        });
        timeline.rewrite_requests(|requests| late_requests.apply(requests, until));
        (timeline, self.notices)
    }

    /// Count for each host how far its switches agree. Events after a switch to a thread that the recording never
    /// follows contradict nothing: a tracker left out that thread's events and all of its switches. Where most gaps
    /// have this cause, switches to such a thread are missing as well.
    ///
    /// On some virtual machines the idle task of one CPU is never traced leaving it, those of others are: then the
    /// events that follow contradict nothing either. Switches from the idle task are missing there, so it is unknown
    /// since when the next thread ran.
    fn assess_switches(&mut self) {
        let leave: BTreeSet<HostId> = self.cpus.iter().filter(|cpu| cpu.idle_leaves).map(|cpu| cpu.host).collect();
        for cpu in self.cpus.iter() {
            let Some(idle) = cpu.idle.map(|idle| &mut self.threads[idle]) else { continue };
            if cpu.idle_leaves {
                self.notices.add(Notice::Inconsistent, idle.contradictions, || format!("on CPU {}", cpu.number));
            } else if leave.contains(&cpu.host) {
                idle.gaps.count += std::mem::take(&mut idle.contradictions);
                idle.followed = true;
            }
        }
        let (mut gaps, mut first, mut left_out) = (0, Timestamp::MAX, 0);
        let mut tracked = vec![(0, 0); self.out.tables.hosts.len()];
        let quality = &self.out.tables.quality;
        let scheduled: Vec<bool> = quality.iter().map(|quality| quality.switches > 0).collect();
        // Where none was recorded, none is missing.
        let is_scheduled = |state: &&ThreadState| scheduled.get(state.thread.host.index()) == Some(&true);
        for state in self.threads.iter().filter(is_scheduled) {
            let Gaps { count, first: since } = state.gaps;
            let all_signs = count + state.contradictions;
            if let Some((left_out, all)) = tracked.get_mut(state.thread.host.index()) {
                *left_out += if state.followed { 0 } else { all_signs };
                *all += all_signs;
            }
            if !state.followed {
                left_out += all_signs;
                continue;
            }
            if let Some(quality) = self.out.tables.quality.get_mut(state.thread.host.index()) {
                quality.contradictions += state.contradictions;
                quality.gaps += count;
            }
            (gaps, first) = (gaps + count, since.min(first));
        }
        self.notices.add(Notice::SwitchesMissing, gaps, || format!("at {first} ns"));
        self.notices.add(Notice::ThreadsLeftOut, left_out, String::new);
        let tracked: Vec<bool> = tracked.into_iter().map(|(left_out, all)| left_out * 2 > all).collect();
        if tracked.contains(&true) {
            self.threads.wake_all();
        }
        let untracked = |state: &ThreadState| tracked.get(state.thread.host.index()) == Some(&true);
        for (line, state) in self.threads.iter_mut().enumerate().filter(|(_, state)| untracked(state)) {
            let change = SegmentChange::Untracked { follows: state.followed };
            state.rows.segments.iter_mut().for_each(|segment| change.apply(segment, &self.reasons));
            let stored = (0..state.sealed.stored).map(|row| RowPlace { line, row });
            self.late_changes.extend(stored.map(|place| LateChange { place, change }));
        }
    }

    /// Close the threads of hosts without any recorded switch. Where a profiler took samples, a thread ran for the time
    /// that its samples of a clock stand for, and what it did between them is unknown. Elsewhere running and waiting
    /// are unknown, except where all events on a CPU are of one thread outside system calls: it did not wait, and no
    /// other thread was seen to run.
    fn close_unscheduled(&mut self, end: Timestamp) {
        let hosts = self.out.tables.quality.iter().map(|quality| quality.switches > 0);
        let scheduled: Vec<bool> = hosts.collect();
        let reason = self.reasons.unscheduled;
        let mut profiled = vec![false; scheduled.len()];
        for state in self.threads.iter().filter(|state| state.rows.samples.iter().any(|s| s.weight.get().is_some())) {
            profiled.iter_mut().skip(state.thread.host.index()).take(1).for_each(|profiled| *profiled = true);
        }
        let names = &self.out.tables.names;
        for state in self.threads.iter_mut() {
            let host = state.thread.host.index();
            if state.thread.idle || scheduled.get(host) == Some(&true) {
                continue;
            }
            if let Sched::Running(c) = state.sched {
                state.change(self.cpus[c].confirmed_at, Sched::Unknown(UnknownReason::Gap), &self.reasons);
            }
            if state.sched != Sched::Dead {
                let label = state.own_label(&self.reasons);
                state.cut(end, label);
                state.sched = Sched::Dead;
                state.end_call(end, None);
                state.thread.life.end = end;
            }
            state.rows.segments = match profiled.get(host) {
                Some(true) => segments_by_samples(&state.rows, names, reason),
                _ => segments_by_events(&state.rows, reason),
            };
        }
        for cpu in self.cpus.iter_mut().filter(|cpu| scheduled.get(cpu.host.index()) != Some(&true)) {
            cpu.thread = None;
            cpu.runs.clear();
        }
    }
}

impl ThreadState {
    /// Its open states end with the recording, and its first name holds from the beginning of its life.
    fn close(&mut self, end: Timestamp, unnamed: NameId, reasons: &Reasons) {
        if self.is_alive() {
            let mut label = self.own_label(reasons);
            if self.sched == Sched::Blocked {
                label.qualifier = Some(reasons.ended);
            }
            self.cut(end, label);
            self.end_call(end, None);
            self.thread.life.end = end;
        }
        let thread = &mut self.thread;
        match thread.names.first_mut() {
            Some(first) => first.from = thread.life.start,
            None => thread.names.push(ThreadName { from: thread.life.start, name: unnamed }),
        }
    }
}

/// The segments of a thread whose running is known from the samples of a clock alone: each says that it ran for the
/// time that the sample counts for, until the sample was taken. A clock that ticks while the thread runs says nothing
/// about the time before.
fn segments_by_samples(rows: &ThreadRows, names: &Names, reason: NameId) -> Vec<Segment> {
    let ends = rows.segments.first().zip(rows.segments.last());
    let Some(life) = ends.map(|(first, last)| Span::new(first.span.start, last.span.end)) else { return Vec::new() };
    let mut segments: Vec<Segment> = Vec::new();
    let mut put = |end: Timestamp, kind: SegmentKind, qualifier: Option<NameId>| {
        let start = segments.last().map_or(life.start, |last| last.span.end);
        let at = rows.segments.partition_point(|of| of.span.start < end);
        let cpu = at.checked_sub(1).and_then(|at| rows.segments.get(at)).map_or(0, |of| of.cpu);
        let segment =
            Segment { span: Span::new(start, end.min(life.end).max(start)), kind, waker: None, qualifier, cpu };
        match segments.last_mut() {
            _ if segment.span.is_empty() => {}
            Some(last) if Segment { span: segment.span, ..*last } == segment => last.span.end = segment.span.end,
            _ => segments.push(segment),
        }
    };
    for StackSample { time, weight, .. } in &rows.samples {
        if let Some(weight) = weight.get().filter(|weight| is_clock(names.get(weight.event))) {
            let ns = Ns::try_from(weight.amount).unwrap_or(Ns::MAX);
            put(time.saturating_sub(ns), SegmentKind::Unknown, Some(reason));
            put(*time, SegmentKind::Running, None);
        }
    }
    put(life.end, SegmentKind::Unknown, Some(reason));
    segments
}

/// The segments of a thread whose running is known from its events alone: running outside calls where it was the only
/// thread seen, else unknown. An interrupt shows the thread that it interrupted, in a call or not.
fn segments_by_events(rows: &ThreadRows, reason: NameId) -> Vec<Segment> {
    let mut segments: Vec<Segment> = Vec::new();
    let mut put = |start: Timestamp, end: Timestamp, runs: Option<Segment>| {
        let unknown = Segment {
            span: Span::new(start, end),
            kind: SegmentKind::Unknown,
            waker: None,
            qualifier: Some(reason),
            cpu: 0,
        };
        let segment = runs.map_or(unknown, |segment| Segment { span: unknown.span, ..segment });
        match segments.last_mut() {
            _ if segment.span.is_empty() => {}
            Some(last) if Segment { span: segment.span, ..*last } == segment => last.span.end = end,
            _ => segments.push(segment),
        }
    };
    let mut calls = rows.calls.iter().peekable();
    for segment in &rows.segments {
        let mut at = segment.span.start;
        if segment.kind != SegmentKind::Running {
            put(at, segment.span.end, Some(*segment).filter(|segment| segment.kind == SegmentKind::Interrupted));
            continue;
        }
        while calls.next_if(|call| call.span.end <= at).is_some() {}
        let mut inside = calls.clone();
        while let Some(call) = inside.next_if(|call| call.span.start < segment.span.end) {
            let part = call.span.clip(Span::new(at, segment.span.end));
            put(at, part.start, Some(*segment));
            put(part.start, part.end, None);
            at = at.max(part.end);
        }
        put(at, segment.span.end, Some(*segment));
    }
    segments
}
