//! The seam between time and everything else: requests go in, and come out with their end times.

use std::fmt::Debug;

/// What a request does.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum RequestKind {
    /// Brings pages to the host.
    Read,
    /// Takes pages from the host.
    Write,
    /// Marks pages whose content nobody needs; on a raw chip it erases their blocks.
    Discard,
    /// Ends when every write that ended before it was submitted is on the flash.
    Sync,
}

/// Something asked of a device, in host pages of 4 KiB.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    /// The caller's name for it, returned when it is done.
    pub token: u64,
    /// What it does.
    pub kind: RequestKind,
    /// The first page.
    pub page: u64,
    /// How many pages; 0 for a sync.
    pub pages: u32,
}

/// The time of a request, part by part, in nanoseconds. The parts add up to its latency exactly.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Parts {
    /// Waited for space in the device's queue or write buffer.
    pub admission_ns: u64,
    /// The controller's work and the transfer to or from the host, with waiting for either.
    pub host_ns: u64,
    /// Waited for a unit of flash, or a bus, that served other requests of the host.
    pub queue_ns: u64,
    /// Waited for a unit of flash that was cleaning or levelling wear.
    pub cleaning_ns: u64,
    /// Commands and data on the bus between controller and flash.
    pub bus_ns: u64,
    /// The flash array itself: reading, programming, erasing, or a disk's seek and rotation.
    pub array_ns: u64,
}

impl Parts {
    /// Their sum: the latency of the request.
    #[must_use]
    pub const fn total_ns(&self) -> u64 {
        self.admission_ns
            + self.host_ns
            + self.queue_ns
            + self.cleaning_ns
            + self.bus_ns
            + self.array_ns
    }
}

/// A request that has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Done {
    /// The request.
    pub request: Request,
    /// When it was submitted, in nanoseconds of the model's time.
    pub submitted_ns: u64,
    /// When it ended.
    pub finished_ns: u64,
    /// The time between, part by part. Of the parallel parts of a request, the one that ended last counts.
    pub parts: Parts,
}

/// A device as something that takes time.
///
/// Time is integer nanoseconds from zero and moves only in [`step`](Model::step) and
/// [`advance`](Model::advance). A request beyond the device's pages, or one that the model
/// [refuses](Model::refuses), is the caller's mistake: the owner of the model checks first.
pub trait Model: Send + Debug {
    /// The present moment.
    fn now_ns(&self) -> u64;

    /// The number of host pages of 4 KiB.
    fn page_count(&self) -> u64;

    /// What is wrong with a request within the device's pages, and what to do; `None` if it is possible. Call
    /// it before the request is submitted, after all that were submitted before.
    ///
    /// Most devices refuse nothing. A raw chip refuses to program a page that is not erased.
    fn refuses(&self, _request: &Request) -> Option<String> {
        None
    }

    /// Takes a request that arrives at that moment, which must not be before the present.
    fn submit_at(&mut self, at_ns: u64, request: Request);

    /// Takes a request that arrives now.
    fn submit(&mut self, request: Request) {
        self.submit_at(self.now_ns(), request);
    }

    /// Moves time to the next event and appends what ended there; `false` when nothing is pending.
    fn step(&mut self, done: &mut Vec<Done>) -> bool;

    /// Processes every event up to that moment, and makes it the present.
    fn advance(&mut self, to_ns: u64, done: &mut Vec<Done>);
}
