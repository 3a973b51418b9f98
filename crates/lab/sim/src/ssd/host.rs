//! The host side: admission, controller, link, write buffer, completion.

use std::collections::{HashSet, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};

use super::counters::{Activity, Resource};
use super::op::{Op, OpKind};
use super::slab::NONE;
use super::{Event, Ssd};
use crate::spec::HOST_PAGE_BYTES;
use crate::{Done, Parts, Request, RequestKind};

/// A request in progress.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pending {
    pub request: Request,
    submitted_ns: u64,
    admitted_ns: u64,
    /// Pages of a write that the translation layer has taken.
    taken: u32,
    /// The time at which the first byte of a write crossed the link.
    link_start_ns: u64,
    /// The time since which it has been waiting for space in the buffer, and the sum of earlier waits.
    stalled_since_ns: u64,
    stalled_ns: u64,
    /// The flash operations that it is waiting for.
    pub ops_left: u32,
    parts: Parts,
}

impl Pending {
    pub fn new(request: Request, submitted_ns: u64) -> Self {
        Self {
            request,
            submitted_ns,
            admitted_ns: submitted_ns,
            taken: 0,
            link_start_ns: 0,
            stalled_since_ns: 0,
            stalled_ns: 0,
            ops_left: 0,
            parts: Parts::default(),
        }
    }
}

/// Controller, link and the queue before them.
#[derive(Debug, Default)]
pub(super) struct HostSide {
    in_device: u32,
    waiting: VecDeque<u32>,
    controller_free_ns: u64,
    link_in_free_ns: u64,
    link_out_free_ns: u64,
}

/// The write buffer: pages that the device has accepted and not yet programmed.
#[derive(Debug)]
pub(super) struct Buffer {
    units_max: u64,
    used: u64,
    /// Programs in flight.
    programs: u64,
    /// Flash pages that are open or being programmed.
    pages: HashSet<u64, BuildHasherDefault<Mix>>,
    stalled: VecDeque<u32>,
    syncs: VecDeque<SyncWait>,
    epoch: u64,
}

#[derive(Debug)]
struct SyncWait {
    request: u32,
    epoch: u64,
    programs_left: u64,
}

/// A hash of one word, for words that no user chooses.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Mix(u64);

impl Hasher for Mix {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u64(u64::from(byte)));
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0 ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(26);
    }
}

impl Buffer {
    pub fn new(units_max: u64) -> Self {
        Self {
            units_max,
            used: 0,
            programs: 0,
            pages: HashSet::default(),
            stalled: VecDeque::new(),
            syncs: VecDeque::new(),
            epoch: 0,
        }
    }

    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    pub fn begin_program(&mut self) {
        self.programs += 1;
    }

    fn is_there(&self) -> bool {
        self.units_max > 0
    }

    /// Returns whether `units` pages fit. A piece larger than the buffer fits when the buffer is empty.
    fn has_space(&self, units: u64) -> bool {
        self.used + units <= self.units_max || self.used == 0
    }
}

impl Ssd {
    pub(super) fn arrive(&mut self, number: u32) {
        if self.host.in_device >= self.spec.host.depth {
            self.host.waiting.push_back(number);
        } else {
            self.admit(number);
        }
    }

    fn admit(&mut self, number: u32) {
        let now = self.now_ns;
        self.host.in_device += 1;
        self.requests[number].admitted_ns = now;
        let request = self.requests[number].request;
        let start = self.host.controller_free_ns.max(now);
        let end = start + self.spec.host.controller_ns;
        self.host.controller_free_ns = end;
        self.counters.controller_busy_ns += end - start;
        let (what, token) = (Activity::Command, Some(request.token));
        self.recorder.record(Resource::Controller, what, (start, end), token);
        let latency = match request.kind {
            RequestKind::Read => self.spec.host.read_latency_ns,
            RequestKind::Write => self.spec.host.write_latency_ns,
            RequestKind::Discard | RequestKind::Sync => 0,
        };
        let ready = end + latency;
        if ready > now {
            self.agenda.plan(ready, Event::Ready(number));
        } else {
            self.ready(number);
        }
    }

    pub(super) fn ready(&mut self, number: u32) {
        match self.requests[number].request.kind {
            RequestKind::Read => self.begin_read(number),
            RequestKind::Write => self.begin_write(number),
            RequestKind::Discard => self.begin_discard(number),
            RequestKind::Sync => self.begin_sync(number),
        }
    }

    /// Takes the link as soon as it is free; returns the beginning and the end.
    fn take_link(&mut self, number: u32, way: Resource, bytes: u64) -> (u64, u64) {
        let free = if way == Resource::LinkIn && self.spec.host.duplex {
            &mut self.host.link_in_free_ns
        } else {
            &mut self.host.link_out_free_ns
        };
        let start = (*free).max(self.now_ns);
        let end = start + self.spec.host.link_ns(bytes);
        *free = end;
        self.counters.link_busy_ns += end - start;
        let token = Some(self.requests[number].request.token);
        self.recorder.record(way, Activity::Transfer, (start, end), token);
        (start, end)
    }

    /// Starts one read of the flash for each flash page that the request touches. Pages in the buffer or
    /// never written cross the link at once.
    fn begin_read(&mut self, number: u32) {
        let request = self.requests[number].request;
        let first = request.page as u32;
        let mut unit = first;
        let mut without_flash = 0;
        // One more, so that it does not end before all reads are started.
        self.requests[number].ops_left = 1;
        while unit < first + request.pages {
            let place = self.ftl.place(unit);
            let mut count = 1;
            while unit + count < first + request.pages
                && count < self.spec.flash.page_units()
                && self.ftl.place(unit + count) == place
            {
                count += 1;
            }
            unit += count;
            let place = place.filter(|place| !self.buffer.pages.contains(&place.flash_page));
            let Some(place) = place else {
                without_flash += u64::from(count);
                continue;
            };
            let on = self.unit_of_plane(place.plane);
            let bytes = count * HOST_PAGE_BYTES as u32;
            let op = Op::new(OpKind::Read, number, on, place.plane);
            let op = self.ops.insert(Op { bytes, ..op });
            self.requests[number].ops_left += 1;
            self.counters.flash_reads += 1;
            self.enqueue(op);
        }
        self.counters.reads_without_flash += without_flash;
        let bytes = without_flash * HOST_PAGE_BYTES;
        let (_, end) = self.take_link(number, Resource::LinkOut, bytes);
        self.requests[number].ops_left -= 1;
        if self.requests[number].ops_left == 0 {
            self.complete_at(number, end);
        }
    }

    /// Sends a flash page that has crossed its bus over the link. The link serves in order, so the last page
    /// to come is the last to arrive.
    pub(super) fn flash_read_ended(&mut self, op: &Op) {
        let (_, end) = self.take_link(op.request, Resource::LinkOut, u64::from(op.bytes));
        self.note_parts(op);
        let pending = &mut self.requests[op.request];
        pending.ops_left -= 1;
        if pending.ops_left == 0 {
            self.complete_at(op.request, end);
        }
    }

    /// Notes the parts of an operation; those of the operation that ends last stay.
    fn note_parts(&mut self, op: &Op) {
        let parts = &mut self.requests[op.request].parts;
        parts.queue_ns = op.queue_ns;
        parts.cleaning_ns = op.cleaning_ns;
        parts.bus_ns = op.bus_ns;
        parts.array_ns = op.array_ns;
    }

    fn begin_write(&mut self, number: u32) {
        let pages = self.requests[number].request.pages;
        let bytes = u64::from(pages) * HOST_PAGE_BYTES;
        let (start, _) = self.take_link(number, Resource::LinkIn, bytes);
        self.requests[number].link_start_ns = start;
        self.plan_next_piece(number);
    }

    /// Returns the next pages of a write: those up to the end of a flash page.
    fn piece(&self, number: u32) -> u32 {
        let pending = &self.requests[number];
        (pending.request.pages - pending.taken).min(self.spec.flash.page_units())
    }

    fn plan_next_piece(&mut self, number: u32) {
        let pending = &self.requests[number];
        let until = u64::from(pending.taken + self.piece(number)) * HOST_PAGE_BYTES;
        let at = pending.link_start_ns + self.spec.host.link_ns(until);
        if at > self.now_ns {
            self.agenda.plan(at, Event::Received(number));
        } else {
            self.received(number);
        }
    }

    /// Handles a piece of a write that has arrived; it is accepted at once, or waits for space.
    pub(super) fn received(&mut self, number: u32) {
        let units = u64::from(self.piece(number));
        if self.buffer.is_there()
            && (!self.buffer.stalled.is_empty() || !self.buffer.has_space(units))
        {
            self.requests[number].stalled_since_ns = self.now_ns;
            self.buffer.stalled.push_back(number);
            self.drain_if_stuck();
            return;
        }
        self.take_piece(number);
    }

    fn take_piece(&mut self, number: u32) {
        let piece = self.piece(number);
        let pending = &mut self.requests[number];
        let first = pending.request.page as u32 + pending.taken;
        pending.taken += piece;
        let is_last = pending.taken == pending.request.pages;
        let units = first..first + piece;
        // One more, so that it does not end before all of it is started.
        self.requests[number].ops_left += 1;
        if self.buffer.is_there() {
            self.buffer.used += u64::from(piece);
            self.carry_out(NONE, OpKind::Clean, |ftl, buffer, work| {
                for unit in units {
                    ftl.write(unit, work);
                    buffer.pages.extend(ftl.place(unit).map(|place| place.flash_page));
                }
            });
        } else {
            self.carry_out(number, OpKind::Clean, |ftl, _, work| {
                units.clone().for_each(|unit| ftl.write(unit, work));
                units.for_each(|unit| ftl.pad(unit, work));
            });
        }
        self.requests[number].ops_left -= 1;
        if !is_last {
            self.plan_next_piece(number);
        } else if self.requests[number].ops_left == 0 {
            self.complete_at(number, self.now_ns);
        }
    }

    /// Handles the end of a program or an erase of a request.
    pub(super) fn request_op_ended(&mut self, op: &Op) {
        self.note_parts(op);
        let pending = &mut self.requests[op.request];
        pending.ops_left -= 1;
        let has_all = match pending.request.kind {
            RequestKind::Write => pending.taken == pending.request.pages,
            _ => true,
        };
        if pending.ops_left == 0 && has_all {
            self.complete_at(op.request, self.now_ns);
        }
    }

    pub(super) fn buffered_program_ended(&mut self, op: &Op) {
        self.buffer.programs -= 1;
        self.buffer.used -= u64::from(op.units);
        self.buffer.pages.remove(&op.flash_page);
        for index in 0..self.buffer.syncs.len() {
            let sync = &mut self.buffer.syncs[index];
            if sync.epoch > op.epoch {
                sync.programs_left -= 1;
            }
        }
        while self.buffer.syncs.front().is_some_and(|sync| sync.programs_left == 0) {
            let sync = self.buffer.syncs.pop_front().expect("looked at just now");
            self.end_sync(sync.request);
        }
        while let Some(&number) = self.buffer.stalled.front() {
            if !self.buffer.has_space(u64::from(self.piece(number))) {
                break;
            }
            self.buffer.stalled.pop_front();
            let waited = self.now_ns - self.requests[number].stalled_since_ns;
            self.requests[number].stalled_ns += waited;
            self.take_piece(number);
        }
        self.drain_if_stuck();
    }

    /// Programs open pages when a write is waiting for space and no running program would free it.
    fn drain_if_stuck(&mut self) {
        if self.buffer.programs == 0 && !self.buffer.stalled.is_empty() {
            self.drain();
        }
    }

    fn drain(&mut self) {
        self.carry_out(NONE, OpKind::Clean, |ftl, _, work| ftl.pad_all(work));
    }

    fn begin_sync(&mut self, number: u32) {
        if self.buffer.is_there() && !self.spec.host.buffer_is_safe {
            self.drain();
            if self.buffer.programs > 0 {
                self.buffer.epoch += 1;
                let (epoch, programs_left) = (self.buffer.epoch, self.buffer.programs);
                let wait = SyncWait { request: number, epoch, programs_left };
                self.buffer.syncs.push_back(wait);
                self.requests[number].stalled_since_ns = self.now_ns;
                return;
            }
        }
        self.complete_at(number, self.now_ns);
    }

    fn end_sync(&mut self, number: u32) {
        let pending = &mut self.requests[number];
        pending.parts.queue_ns = self.now_ns - pending.stalled_since_ns;
        self.complete_at(number, self.now_ns);
    }

    fn begin_discard(&mut self, number: u32) {
        let request = self.requests[number].request;
        let first = request.page as u32;
        // One more, so that it does not end before all erases are started.
        self.requests[number].ops_left = 1;
        self.carry_out(number, OpKind::Clean, |ftl, _, work| {
            (first..first + request.pages).for_each(|unit| ftl.discard(unit, work));
        });
        self.requests[number].ops_left -= 1;
        if self.requests[number].ops_left == 0 {
            self.complete_at(number, self.now_ns);
        }
    }

    fn complete_at(&mut self, number: u32, at_ns: u64) {
        if at_ns > self.now_ns {
            self.agenda.plan(at_ns, Event::Complete(number));
        } else {
            self.complete(number);
        }
    }

    /// Completes the request; time without another part counts for the host side.
    pub(super) fn complete(&mut self, number: u32) {
        let Pending { request, submitted_ns, admitted_ns, stalled_ns, mut parts, .. } =
            self.requests[number];
        let finished_ns = self.now_ns;
        parts.admission_ns = admitted_ns - submitted_ns + stalled_ns;
        parts.host_ns = finished_ns - submitted_ns - parts.total_ns();
        self.requests.remove(number);
        self.counters.requests += 1;
        self.ended.push_back(Done { request, submitted_ns, finished_ns, parts });
        self.host.in_device -= 1;
        if let Some(next) = self.host.waiting.pop_front() {
            self.admit(next);
        }
    }
}
