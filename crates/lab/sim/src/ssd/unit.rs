//! Units of flash and buses: their present operations and their queues.
//!
//! An operation has two phases. A read is in the array first and on the bus second, a program in the opposite
//! order. A unit has one operation in its first phase and one in its second; without pipelining, only one at
//! all.

use super::op::{Op, OpKind};
use super::slab::NONE;
use super::{Event, Ssd};
use crate::ssd::counters::{Activity, Resource};

/// A unit of flash: it works on one operation at a time.
#[derive(Clone, Debug)]
pub(super) struct Unit {
    pub bus: u32,
    /// The queue's ends.
    head: u32,
    tail: u32,
    /// The operation in its first phase.
    running: u32,
    /// The operation in its second phase.
    leaving: u32,
    /// Whether the running operation has ended its first phase, and is waiting for the leaving one.
    is_blocked: bool,
    /// A cleaning that was interrupted for the host.
    aside: u32,
    /// The time spent cleaning, and the beginning of the present cleaning.
    clean_ns: u64,
    cleaning_since_ns: Option<u64>,
}

impl Unit {
    pub fn new(bus: u32) -> Self {
        Self {
            bus,
            head: NONE,
            tail: NONE,
            running: NONE,
            leaving: NONE,
            is_blocked: false,
            aside: NONE,
            clean_ns: 0,
            cleaning_since_ns: None,
        }
    }

    fn is_quiet(&self) -> bool {
        self.head == NONE && self.running == NONE && self.leaving == NONE
    }

    fn clean_total_ns(&self, now_ns: u64) -> u64 {
        self.clean_ns + self.cleaning_since_ns.map_or(0, |since| now_ns - since)
    }
}

impl Ssd {
    /// Puts an operation at the end of its unit's queue.
    pub(super) fn enqueue(&mut self, number: u32) {
        let now = self.now_ns;
        let op = &mut self.ops[number];
        let unit = &mut self.units[op.unit as usize];
        op.enqueued_ns = now;
        op.clean_mark_ns = unit.clean_total_ns(now);
        if unit.tail == NONE {
            unit.head = number;
        } else {
            self.ops[unit.tail].next = number;
        }
        unit.tail = number;
        let unit = self.ops[number].unit;
        self.start_next(unit);
    }

    fn pop(&mut self, unit: u32) -> u32 {
        let unit = &mut self.units[unit as usize];
        let number = unit.head;
        unit.head = self.ops[number].next;
        if unit.head == NONE {
            unit.tail = NONE;
        }
        let (now, clean) = (self.now_ns, unit.clean_total_ns(self.now_ns));
        let op = &mut self.ops[number];
        op.next = NONE;
        op.cleaning_ns = clean - op.clean_mark_ns;
        op.queue_ns = now - op.enqueued_ns - op.cleaning_ns;
        number
    }

    /// Starts the first of the queue, if the unit can take it now.
    fn start_next(&mut self, unit: u32) {
        let state = &self.units[unit as usize];
        if state.running != NONE {
            return;
        }
        if state.head == NONE {
            if state.leaving == NONE {
                self.be_idle(unit);
            }
            return;
        }
        if state.leaving != NONE {
            let (leaving, next) = (&self.ops[state.leaving], &self.ops[state.head]);
            let overlaps = matches!(next.kind, OpKind::Read | OpKind::Program)
                && next.kind == leaving.kind
                && next.plane == leaving.plane
                && leaving.mate == NONE;
            if !self.spec.parallel.pipelined || !overlaps {
                return;
            }
        }
        let number = self.pop(unit);
        match self.ops[number].kind {
            OpKind::Read => self.start_read(number),
            OpKind::Program => self.start_program(number),
            OpKind::Erase => self.start_erase(number),
            OpKind::Clean | OpKind::Idle => self.start_clean(number),
        }
    }

    /// Joins neighbours in the queue that can share the array time; returns their number.
    fn gather_mates(&mut self, first: u32) -> u64 {
        let mut count = 1;
        if !self.spec.parallel.two_plane {
            return count;
        }
        let (unit, kind) = (self.ops[first].unit, self.ops[first].kind);
        let mut last = first;
        while count < u64::from(self.spec.flash.planes) {
            let next = self.units[unit as usize].head;
            if next == NONE || self.ops[next].kind != kind || self.has_plane(first, next) {
                break;
            }
            let next = self.pop(unit);
            self.ops[last].mate = next;
            last = next;
            count += 1;
        }
        count
    }

    /// Returns whether a mate is on the same plane.
    fn has_plane(&self, first: u32, next: u32) -> bool {
        let mut mate = first;
        while mate != NONE {
            if self.ops[mate].plane == self.ops[next].plane {
                return true;
            }
            mate = self.ops[mate].mate;
        }
        false
    }

    /// Applies `act` to an operation and its mates.
    fn each(&mut self, first: u32, mut act: impl FnMut(&mut Op)) {
        let mut number = first;
        while number != NONE {
            act(&mut self.ops[number]);
            number = self.ops[number].mate;
        }
    }

    /// Takes the bus for this time, as soon as it is free; returns the end. All mates wait.
    fn take_bus(&mut self, number: u32, time_ns: u64) -> u64 {
        let unit = self.ops[number].unit;
        let bus = self.units[unit as usize].bus;
        let start = self.bus_free_ns[bus as usize].max(self.now_ns);
        let end = start + time_ns;
        self.bus_free_ns[bus as usize] = end;
        self.counters.bus_busy_ns[bus as usize] += time_ns;
        let waited = start - self.now_ns;
        self.each(number, |op| {
            op.queue_ns += waited;
            op.bus_ns += time_ns;
        });
        let token = self.token(number);
        self.recorder.record(Resource::Bus(bus), Activity::Transfer, (start, end), token);
        end
    }

    fn token(&self, number: u32) -> Option<u64> {
        let request = self.ops[number].request;
        (request != NONE).then(|| self.requests[request].request.token)
    }

    /// Makes the array busy from `from_ns` on, for this time.
    fn take_array(&mut self, number: u32, from_ns: u64, time_ns: u64, activity: Activity) -> u64 {
        let unit = self.ops[number].unit;
        self.each(number, |op| op.array_ns += time_ns);
        self.counters.unit_busy_ns[unit as usize] += time_ns;
        let token = self.token(number);
        let span = (from_ns, from_ns + time_ns);
        self.recorder.record(Resource::Unit(unit), activity, span, token);
        from_ns + time_ns
    }

    fn start_read(&mut self, number: u32) {
        let count = self.gather_mates(number);
        let command = self.spec.timing.command_ns * count;
        let from = if command == 0 { self.now_ns } else { self.take_bus(number, command) };
        let end = self.take_array(number, from, self.spec.timing.read_ns, Activity::Read);
        self.unit_of(number).running = number;
        self.agenda.plan(end, Event::First(number));
    }

    fn start_program(&mut self, number: u32) {
        let count = self.gather_mates(number);
        let each = self.spec.timing.command_ns + self.page_transfer_ns;
        let end = self.take_bus(number, each * count);
        if self.spec.parallel.pipelined {
            self.unit_of(number).running = number;
            self.agenda.plan(end, Event::First(number));
        } else {
            self.unit_of(number).leaving = number;
            self.program_array(number, end);
        }
    }

    fn program_array(&mut self, number: u32, from_ns: u64) {
        let time = self.spec.timing.program_ns;
        let end = self.take_array(number, from_ns, time, Activity::Program);
        self.agenda.plan(end, Event::Second(number));
    }

    fn start_erase(&mut self, number: u32) {
        let time = self.spec.timing.erase_ns * u64::from(self.ops[number].clean.erases);
        self.unit_of(number).leaving = number;
        let end = self.take_array(number, self.now_ns, time, Activity::Erase);
        self.agenda.plan(end, Event::Second(number));
    }

    fn unit_of(&mut self, number: u32) -> &mut Unit {
        &mut self.units[self.ops[number].unit as usize]
    }

    /// Ends the first phase; the second begins when the previous operation has left.
    pub(super) fn end_first(&mut self, number: u32) {
        self.ops[number].first_ns = self.now_ns;
        if self.unit_of(number).leaving != NONE {
            self.unit_of(number).is_blocked = true;
            return;
        }
        self.start_second(number);
    }

    fn start_second(&mut self, number: u32) {
        let unit = self.unit_of(number);
        unit.running = NONE;
        unit.leaving = number;
        let waited = self.now_ns - self.ops[number].first_ns;
        self.each(number, |op| op.queue_ns += waited);
        if self.ops[number].kind == OpKind::Read {
            let page = self.spec.flash.page_bytes;
            let least = if self.spec.timing.whole_page_transfer { page } else { 0 };
            let mut bytes = 0;
            self.each(number, |op| bytes += u64::from(op.bytes.max(least)));
            let end = self.take_bus(number, self.spec.timing.transfer_ns(bytes));
            self.agenda.plan(end, Event::Second(number));
        } else {
            self.program_array(number, self.now_ns);
        }
        if self.spec.parallel.pipelined {
            self.start_next(self.ops[number].unit);
        }
    }

    /// Ends the second phase, and with it the operation.
    pub(super) fn end_second(&mut self, number: u32) {
        let index = self.ops[number].unit;
        let now = self.now_ns;
        let unit = &mut self.units[index as usize];
        unit.leaving = NONE;
        if let Some(since) = unit.cleaning_since_ns.take() {
            unit.clean_ns += now - since;
            self.counters.unit_clean_ns[index as usize] += now - since;
            let span = (since, now);
            self.recorder.record(Resource::Unit(index), Activity::Clean, span, None);
        }
        let unit = &mut self.units[index as usize];
        if std::mem::take(&mut unit.is_blocked) {
            let running = unit.running;
            self.start_second(running);
        } else {
            self.start_next(index);
        }
        let mut number = number;
        while number != NONE {
            let op = self.ops[number];
            self.ops.remove(number);
            self.finish(&op);
            number = op.mate;
        }
    }

    fn start_clean(&mut self, number: u32) {
        let op = self.ops[number];
        let now = self.now_ns;
        let unit = self.unit_of(number);
        unit.leaving = number;
        unit.cleaning_since_ns = Some(now);
        if op.kind == OpKind::Clean && self.spec.ftl.copy_back {
            let end = now + self.clean_array_ns(&op);
            self.agenda.plan(end, Event::Second(number));
        } else {
            self.go_on_cleaning(number);
        }
    }

    /// Returns the time of a cleaning inside a plane.
    fn clean_array_ns(&self, op: &Op) -> u64 {
        let timing = &self.spec.timing;
        u64::from(op.clean.reads) * timing.read_ns
            + u64::from(op.clean.programs) * timing.program_ns
            + u64::from(op.clean.erases) * timing.erase_ns
    }

    /// Continues a page-by-page cleaning with the next move, or its erase.
    pub(super) fn go_on_cleaning(&mut self, number: u32) {
        let op = self.ops[number];
        let timing = self.spec.timing;
        let moves = op.clean.reads.max(op.clean.programs);
        if op.moved == moves {
            self.ops[number].moved += 1;
            let time = u64::from(op.clean.erases) * timing.erase_ns;
            self.agenda.plan(self.now_ns + time, Event::Second(number));
            return;
        }
        if !op.has_read {
            if op.kind == OpKind::Idle && self.units[op.unit as usize].head != NONE {
                return self.give_way(number);
            }
            self.ops[number].has_read = true;
            let time = if op.moved < op.clean.reads { timing.read_ns } else { 0 };
            self.agenda.plan(self.now_ns + time, Event::Clean(number));
            return;
        }
        self.ops[number].has_read = false;
        self.ops[number].moved += 1;
        let (reads, programs) = (op.moved < op.clean.reads, op.moved < op.clean.programs);
        let crossings = u64::from(reads) + u64::from(programs);
        let mut end = self.now_ns;
        if !self.spec.ftl.copy_back {
            end = self.take_bus(number, self.page_transfer_ns * crossings);
        }
        let time = if programs { timing.program_ns } else { 0 };
        self.agenda.plan(end + time, Event::Clean(number));
    }

    /// Lets the host go first; the cleaning continues when the unit is idle again.
    fn give_way(&mut self, number: u32) {
        let index = self.ops[number].unit;
        let now = self.now_ns;
        let unit = &mut self.units[index as usize];
        let since = unit.cleaning_since_ns.take().expect("set when the cleaning began");
        unit.clean_ns += now - since;
        unit.leaving = NONE;
        unit.aside = number;
        self.counters.unit_clean_ns[index as usize] += now - since;
        self.recorder.record(Resource::Unit(index), Activity::Clean, (since, now), None);
        self.start_next(index);
    }

    /// Handles a unit that has nothing to do for the host.
    fn be_idle(&mut self, unit: u32) {
        let aside = std::mem::replace(&mut self.units[unit as usize].aside, NONE);
        if aside != NONE {
            return self.start_clean(aside);
        }
        if !self.spec.ftl.background {
            return;
        }
        for plane in self.planes_of_unit(unit) {
            self.carry_out(NONE, OpKind::Idle, |ftl, _, work| ftl.idle(plane, work));
            if !self.units[unit as usize].is_quiet() {
                return;
            }
        }
    }
}
