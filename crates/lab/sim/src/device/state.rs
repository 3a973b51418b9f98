//! State shared by all handles on one simulated device: its image, its time, its power and its faults.

use std::io;
use std::ops::Range;

use nandex_device::{Error, Op, OpKind, PAGE_BYTES, PageId, Result};

use super::Cut;
use super::time::{QueueId, Time, request};
use crate::fault::{Injector, Target};
use crate::image::{Change, PAGE_COUNT_MAX};
use crate::{FaultKind, FaultOn, Image, RequestKind, Strike};

#[derive(Debug, Default)]
pub(super) struct DeviceState {
    pub image: Image,
    pub time: Time,
    pub faults: Injector,
    pub power: Power,
    /// The states that a cut in the middle of each counted operation would find, if requested.
    pub cuts: Option<Vec<Cut>>,
    /// The number of operations so far, of every kind, which is the number of the last one.
    numbers: u64,
}

/// The power supply, and the time of its failure.
#[derive(Debug, Default)]
pub(super) struct Power {
    /// Counted operations that were started with the power on.
    pub operations: u64,
    pub cut_after: Option<u64>,
    pub is_cut: bool,
}

/// The state of the power for an operation.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Supply {
    On,
    /// The power fails in the middle of this operation.
    Fails,
    Off,
}

impl Power {
    /// Starts a counted operation and returns the state of the power.
    fn start(&mut self) -> Supply {
        if self.is_cut {
            return Supply::Off;
        }
        if self.cut_after.is_some_and(|count| self.operations >= count) {
            self.is_cut = true;
            return Supply::Fails;
        }
        self.operations += 1;
        Supply::On
    }

    fn check(&self) -> io::Result<()> {
        if self.is_cut { Err(power_cut()) } else { Ok(()) }
    }
}

fn power_cut() -> io::Error {
    io::Error::other("power cut")
}

/// An operation that was pushed and not returned.
#[derive(Debug)]
pub(super) struct Started {
    pub number: u64,
    pub op: Op,
    /// The fault that fails it.
    failure: Option<FaultKind>,
}

/// Creates the error of a sync, a growth or a discard.
fn failed(operation: &'static str, pages: Range<u64>, source: io::Error) -> Error {
    let (page, pages) = (PageId(pages.start), pages.end - pages.start);
    Error::Io { operation, page, pages, source }
}

/// Returns the delay that a strike adds to an operation.
fn delay_ns(strike: Option<Strike>) -> u64 {
    match strike.map(|strike| strike.kind) {
        Some(FaultKind::Slow { extra_ns }) => extra_ns,
        _ => 0,
    }
}

fn error(strike: Option<Strike>) -> Option<io::Error> {
    strike.and_then(|strike| strike.kind.error())
}

impl DeviceState {
    pub(super) fn new(time: Time) -> Self {
        Self { time, ..Self::default() }
    }

    /// Returns the maximum length of the device.
    pub(super) fn page_count_max(&self) -> u64 {
        self.time.page_count_max().unwrap_or(PAGE_COUNT_MAX)
    }

    /// Keeps the previous content of pages if stale reads need it.
    pub(super) fn keep_previous_if_wanted(&mut self) {
        if self.faults.needs_previous() {
            self.image.keep_previous();
        }
    }

    /// Records the state that a cut in the middle of the counted operation that was just started would find.
    fn record_cut(&mut self, begin: impl FnOnce(&mut Image)) {
        let Some(cuts) = &mut self.cuts else { return };
        let mut image = self.image.without_previous();
        begin(&mut image);
        let events = self.image.event_count();
        cuts.push(Cut { operation: self.power.operations - 1, image, events });
    }

    fn next_number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    /// Starts an operation of a queue. A read is performed at once, a write is put in flight.
    pub(super) fn push(&mut self, queue: QueueId, mut op: Op) -> Result<Started> {
        op.check(self.image.page_count())?;
        self.check_with_model(op.kind.into(), op.page.0, op.buf.pages() as u64)?;
        let number = self.next_number();
        let strike = match op.kind {
            OpKind::Read => self.start_read(&mut op),
            OpKind::Write => self.start_write(number, &op),
        };
        if !self.power.is_cut {
            let request = request(number, op.kind.into(), op.page.0, op.buf.pages() as u64);
            self.time.submit(queue, request, delay_ns(strike));
        }
        let failure = strike.map(|it| it.kind).filter(|kind| kind.error().is_some());
        Ok(Started { number, op, failure })
    }

    /// Refuses requests that a device of this model cannot perform; nothing is done then.
    fn check_with_model(&self, kind: RequestKind, page: u64, pages: u64) -> Result<()> {
        let operation = match kind {
            RequestKind::Read => "read",
            RequestKind::Write => "write",
            RequestKind::Discard => "discard",
            RequestKind::Sync => "sync",
        };
        match self.time.refuses(&request(0, kind, page, pages)) {
            None => Ok(()),
            Some(reason) => Err(Error::Refused { operation, page: PageId(page), pages, reason }),
        }
    }

    fn start_read(&mut self, op: &mut Op) -> Option<Strike> {
        if self.power.is_cut {
            return None;
        }
        let strike = self.faults.strike(target(op), &self.image);
        let Some(struck) = strike else {
            self.image.read(op.page, &mut op.buf);
            return None;
        };
        let index = (struck.page.0 - op.page.0) as usize;
        match struck.kind {
            FaultKind::Io | FaultKind::NoSpace | FaultKind::Dropped => {}
            FaultKind::Short => self.image.read(op.page, &mut op.buf[..index * PAGE_BYTES]),
            FaultKind::Misdirected => {
                self.image.read(struck.instead.unwrap_or(op.page), &mut op.buf);
            }
            FaultKind::Flip | FaultKind::Stale | FaultKind::Lost | FaultKind::Slow { .. } => {
                self.image.read(op.page, &mut op.buf);
            }
        }
        if struck.kind == FaultKind::Stale {
            self.image.read_previous(struck.page.0, op.buf.page_mut(index));
        }
        if let Some(bit) = struck.bit {
            op.buf.page_mut(index)[bit as usize / 8] ^= 1 << (bit % 8);
        }
        strike
    }

    fn start_write(&mut self, number: u64, op: &Op) -> Option<Strike> {
        let whole = || Change::write(op.page.0, &op.buf);
        match self.power.start() {
            Supply::Off => return None,
            Supply::Fails => {
                self.image.launch(number, whole());
                return None;
            }
            Supply::On => self.record_cut(|image| image.launch(number, whole())),
        }
        let strike = self.faults.strike(target(op), &self.image);
        let Some(struck) = strike else {
            self.image.launch(number, whole());
            return None;
        };
        let index = (struck.page.0 - op.page.0) as usize;
        let change = match struck.kind {
            FaultKind::Io | FaultKind::NoSpace | FaultKind::Lost | FaultKind::Dropped => {
                return strike;
            }
            FaultKind::Short => Change::write(op.page.0, &op.buf[..index * PAGE_BYTES]),
            FaultKind::Misdirected => Change::write(struck.instead.unwrap_or(op.page).0, &op.buf),
            FaultKind::Flip | FaultKind::Stale | FaultKind::Slow { .. } => {
                let mut change = whole();
                if let Some(bit) = struck.bit {
                    change.flip(index, bit as usize);
                }
                change
            }
        };
        self.image.launch(number, change);
        strike
    }

    /// Makes an operation take effect, or fails it.
    pub(super) fn land(&mut self, started: &Started) -> Result<()> {
        self.power.check().map_err(|cut| started.op.failure(cut))?;
        self.image.land(started.number);
        match started.failure.and_then(FaultKind::error) {
            Some(error) => Err(started.op.failure(error)),
            None => Ok(()),
        }
    }

    pub(super) fn sync(&mut self) -> Result<()> {
        let failed = |state: &Self, source| failed("sync", 0..state.image.page_count(), source);
        self.power.start();
        self.power.check().map_err(|cut| failed(self, cut))?;
        self.record_cut(|_| {});
        let strike =
            self.faults.strike(Target { on: FaultOn::Sync, page: 0, pages: 0 }, &self.image);
        let number = self.next_number();
        self.time.run(request(number, RequestKind::Sync, 0, 0), delay_ns(strike));
        match strike.map(|strike| strike.kind) {
            None | Some(FaultKind::Slow { .. }) => self.image.sync(),
            Some(FaultKind::Dropped) => self.image.drop_unsynced(),
            Some(_) => {}
        }
        error(strike).map_or(Ok(()), |error| Err(failed(self, error)))
    }

    pub(super) fn discard(&mut self, pages: Range<u64>) -> Result<()> {
        let Range { start, end } = pages;
        if start >= end {
            return Ok(());
        }
        let page_count = self.image.page_count();
        if end > page_count {
            return Err(Error::OutOfRange { page: PageId(start), pages: end - start, page_count });
        }
        self.check_with_model(RequestKind::Discard, start, end - start)?;
        let number = self.next_number();
        let supply = self.power.start();
        if supply == Supply::Fails {
            self.image.launch(number, Change::discard(start..end));
        }
        self.power.check().map_err(|cut| failed("discard", start..end, cut))?;
        self.record_cut(|image| image.launch(number, Change::discard(start..end)));
        let target = Target { on: FaultOn::Discard, page: start, pages: end - start };
        let strike = self.faults.strike(target, &self.image);
        self.time.run(request(number, RequestKind::Discard, start, end - start), delay_ns(strike));
        let done = match strike.map(|strike| (strike.kind, strike.page.0)) {
            Some((FaultKind::Io | FaultKind::NoSpace | FaultKind::Lost, _)) => start..start,
            Some((FaultKind::Short, page)) => start..page,
            _ => start..end,
        };
        self.image.launch(number, Change::discard(done));
        self.image.land(number);
        error(strike).map_or(Ok(()), |error| Err(failed("discard", start..end, error)))
    }

    pub(super) fn grow(&mut self, page_count: u64) -> Result<()> {
        let old = self.image.page_count();
        if page_count <= old && self.power.is_cut {
            return Ok(());
        }
        if page_count > self.page_count_max() {
            let reason = format!("the device has {} pages", self.page_count_max());
            return Err(no_space(page_count, reason));
        }
        let page_count = page_count.max(old);
        if page_count > old && self.power.start() == Supply::Fails {
            self.image.begin_growth(page_count);
        }
        self.power.check().map_err(|cut| failed("grow", old..page_count, cut))?;
        self.record_cut(|image| image.begin_growth(page_count));
        let target = Target { on: FaultOn::Grow, page: 0, pages: 0 };
        let strike = self.faults.strike(target, &self.image);
        self.time.pass(delay_ns(strike));
        match (error(strike), strike.map(|strike| strike.kind)) {
            (Some(error), Some(FaultKind::NoSpace)) => Err(no_space(page_count, error.to_string())),
            (Some(error), _) => Err(failed("grow", old..page_count, error)),
            (None, _) => {
                self.image.grow(page_count);
                Ok(())
            }
        }
    }
}

impl From<OpKind> for RequestKind {
    fn from(kind: OpKind) -> Self {
        match kind {
            OpKind::Read => Self::Read,
            OpKind::Write => Self::Write,
        }
    }
}

fn target(op: &Op) -> Target {
    Target { on: op.kind.into(), page: op.page.0, pages: op.buf.pages() as u64 }
}

fn no_space(page_count: u64, reason: String) -> Error {
    let wanted_bytes = page_count.saturating_mul(PAGE_BYTES as u64);
    Error::NoSpace { wanted_bytes, place: "the simulated device".into(), reason }
}
