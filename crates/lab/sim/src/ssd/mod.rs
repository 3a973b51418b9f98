//! An SSD in virtual time.
//!
//! ```text
//!   host queue -> [depth] -> controller -> (write: link) -> buffer -> translation layer
//!                                                                        | reads, programs, cleanings
//!              +---------------------------------------------------------+
//!              v
//!   unit's queue -> array <-> register <-> bus of the channel -> (read: link) -> host
//! ```
//!
//! Controller, link and buses serve in the order of arrival; a unit of flash serves its queue in order, one
//! operation at a time. If it is pipelined, the next operation's first phase overlaps the last one's second.
//! Every wait is charged to its cause, so that the parts of a latency add up exactly.

mod counters;
mod event;
mod host;
mod op;
mod slab;
mod unit;

use std::collections::VecDeque;

use counters::Recorder;
pub use counters::{Activity, Resource, Span, SsdCounters};
use event::{Agenda, Event};
use host::{Buffer, HostSide, Pending};
use op::{Op, OpKind};
use slab::NONE;
pub use slab::Slab;
use unit::Unit;

use crate::ftl::{self, Clean, Ftl, Work, WorkKind};
use crate::spec::HOST_PAGE_BYTES;
use crate::{Done, Model, Request, RequestKind, Result, Spec};

/// The content of a device before the first request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fill {
    /// Nothing: the device is new.
    Empty,
    /// Every page, as if written once from the first to the last.
    Sequential,
    /// Every page, as after endless random writes: the translation layer is in its steady state. Creating it
    /// takes time for the blocks, not for the pages.
    Steady {
        /// The seed of the pages' places.
        seed: u64,
    },
}

/// An SSD in virtual time. See the [module](self).
#[derive(Debug)]
pub struct Ssd {
    spec: Spec,
    ftl: Box<dyn Ftl>,
    now_ns: u64,
    agenda: Agenda,
    requests: Slab<Pending>,
    host: HostSide,
    buffer: Buffer,
    units: Vec<Unit>,
    ops: Slab<Op>,
    bus_free_ns: Vec<u64>,
    /// The time of a whole page on the bus.
    page_transfer_ns: u64,
    /// Requests that have ended and were not returned.
    ended: VecDeque<Done>,
    work: Vec<Work>,
    counters: SsdCounters,
    recorder: Recorder,
}

impl Ssd {
    /// Creates an SSD of this description, with this content.
    ///
    /// Its RAM grows with the written pages, to about 9 bytes for each host page
    /// ([`ram_bytes`](Self::ram_bytes)).
    ///
    /// # Errors
    /// Fails with [`Error::Spec`](crate::Error::Spec) if no such device can exist.
    pub fn new(spec: Spec, fill: Fill) -> Result<Self> {
        spec.check()?;
        let ftl = ftl::layer(&spec, fill);
        let flash = spec.flash;
        let units = flash.count(spec.parallel.unit);
        let per_bus = units / flash.channels;
        let counters = SsdCounters {
            unit_busy_ns: vec![0; units as usize],
            unit_clean_ns: vec![0; units as usize],
            bus_busy_ns: vec![0; flash.channels as usize],
            ..SsdCounters::default()
        };
        Ok(Self {
            ftl,
            now_ns: 0,
            agenda: Agenda::default(),
            requests: Slab::default(),
            host: HostSide::default(),
            buffer: Buffer::new(spec.host.buffer_bytes / HOST_PAGE_BYTES),
            units: (0..units).map(|unit| Unit::new(unit / per_bus)).collect(),
            ops: Slab::default(),
            bus_free_ns: vec![0; flash.channels as usize],
            page_transfer_ns: spec.timing.transfer_ns(u64::from(flash.page_bytes)),
            ended: VecDeque::new(),
            work: Vec::new(),
            counters,
            recorder: Recorder::default(),
            spec,
        })
    }

    /// Returns its description.
    #[must_use]
    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    /// Returns its work and the use of its parts.
    #[must_use]
    pub fn counters(&self) -> SsdCounters {
        SsdCounters { ftl: self.ftl.counts(), ..self.counters.clone() }
    }

    /// Returns the erases of each block so far, plane by plane.
    #[must_use]
    pub fn erases(&self) -> &[u32] {
        self.ftl.erases()
    }

    /// Returns the bytes of RAM of the tables of its translation layer: some 30 for each block, and 32 KiB
    /// for each page that is written far from others, less for pages next to one another.
    #[must_use]
    pub fn ram_bytes(&self) -> usize {
        self.ftl.ram_bytes()
    }

    /// Returns a hash of every event and its time: equal only for equal runs.
    #[must_use]
    pub fn event_hash(&self) -> u64 {
        self.agenda.hash()
    }

    /// Records up to `count_max` spans of busy time from now on, for charts.
    pub fn record_spans(&mut self, count_max: usize) {
        self.recorder.space = count_max;
    }

    /// Returns the spans recorded so far, in the order in which they were planned, and the number of spans
    /// that did not fit.
    #[must_use]
    pub fn spans(&self) -> (&[Span], u64) {
        (&self.recorder.spans, self.recorder.missed)
    }

    /// Writes pages in no time: the translation layer places them and cleans if it must, and counts both, but
    /// no part of the drive works. It brings a drive into the state that a long run leaves.
    ///
    /// # Panics
    /// Panics if a request is in progress, or if a page is beyond the drive's.
    pub fn write_at_once(&mut self, page: u64, pages: u32) {
        assert!(self.agenda.next_at_ns().is_none(), "requests are in progress");
        let end = page + u64::from(pages);
        assert!(end <= self.page_count(), "page {end} of {}", self.page_count());
        let request = Request { token: 0, kind: RequestKind::Write, page, pages };
        self.ftl.expect(&request);
        for unit in page as u32..end as u32 {
            self.ftl.write(unit, &mut self.work);
            self.work.clear();
        }
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Arrive(request) => self.arrive(request),
            Event::Ready(request) => self.ready(request),
            Event::Received(request) => self.received(request),
            Event::First(op) => self.end_first(op),
            Event::Second(op) => self.end_second(op),
            Event::Clean(op) => self.go_on_cleaning(op),
            Event::Complete(request) => self.complete(request),
        }
    }

    /// Calls the translation layer, and passes the resulting work to the units. `request` waits for it, or
    /// none; cleanings among the work get the kind `clean_as`.
    fn carry_out(
        &mut self,
        request: u32,
        clean_as: OpKind,
        ask: impl FnOnce(&mut dyn Ftl, &mut Buffer, &mut Vec<Work>),
    ) {
        // Units that become idle meanwhile call this as well, with a list of their own.
        let mut work = std::mem::take(&mut self.work);
        ask(&mut *self.ftl, &mut self.buffer, &mut work);
        for work in work.drain(..) {
            self.dispatch(work, request, clean_as);
        }
        self.work = work;
    }

    /// Passes work of the translation layer to its unit.
    fn dispatch(&mut self, work: Work, request: u32, clean_as: OpKind) {
        let unit = self.unit_of_plane(work.plane);
        let op = match work.kind {
            WorkKind::Program { flash_page, units } => {
                let epoch = self.buffer.epoch();
                if request != NONE {
                    self.requests[request].ops_left += 1;
                } else {
                    self.buffer.begin_program();
                }
                let op = Op::new(OpKind::Program, request, unit, work.plane);
                Op { flash_page, units, epoch, ..op }
            }
            WorkKind::Clean(clean) => Op { clean, ..Op::new(clean_as, NONE, unit, work.plane) },
            WorkKind::Erase => {
                self.requests[request].ops_left += 1;
                let clean = Clean { erases: 1, ..Clean::default() };
                Op { clean, ..Op::new(OpKind::Erase, request, unit, work.plane) }
            }
        };
        let number = self.ops.insert(op);
        self.enqueue(number);
    }

    /// Handles the end of an operation.
    fn finish(&mut self, op: &Op) {
        match op.kind {
            OpKind::Read => self.flash_read_ended(op),
            OpKind::Program if op.request == NONE => self.buffered_program_ended(op),
            OpKind::Program | OpKind::Erase => self.request_op_ended(op),
            OpKind::Clean | OpKind::Idle => {}
        }
    }

    fn unit_of_plane(&self, plane: u32) -> u32 {
        plane / (self.spec.flash.plane_count() / self.units.len() as u32)
    }

    fn planes_of_unit(&self, unit: u32) -> std::ops::Range<u32> {
        let per_unit = self.spec.flash.plane_count() / self.units.len() as u32;
        unit * per_unit..(unit + 1) * per_unit
    }
}

impl Model for Ssd {
    fn now_ns(&self) -> u64 {
        self.now_ns
    }

    fn page_count(&self) -> u64 {
        self.spec.page_count()
    }

    fn refuses(&self, request: &Request) -> Option<String> {
        self.ftl.refuses(request)
    }

    fn submit_at(&mut self, at_ns: u64, request: Request) {
        debug_assert!(at_ns >= self.now_ns, "requests come no earlier than now");
        debug_assert_eq!(self.ftl.refuses(&request), None, "the owner of the model has asked");
        self.ftl.expect(&request);
        let number = self.requests.insert(Pending::new(request, at_ns));
        if at_ns > self.now_ns {
            self.agenda.plan(at_ns, Event::Arrive(number));
        } else {
            self.arrive(number);
        }
    }

    fn step(&mut self, done: &mut Vec<Done>) -> bool {
        if let Some((at_ns, event)) = self.agenda.pop() {
            self.now_ns = at_ns;
            self.happen(event);
        } else if self.ended.is_empty() {
            return false;
        }
        done.extend(self.ended.drain(..));
        true
    }

    fn advance(&mut self, to_ns: u64, done: &mut Vec<Done>) {
        while self.agenda.next_at_ns().is_some_and(|at_ns| at_ns <= to_ns) {
            self.step(done);
        }
        self.now_ns = self.now_ns.max(to_ns);
        done.extend(self.ended.drain(..));
    }
}
