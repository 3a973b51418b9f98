//! The interface between time and everything else: requests go in, and come out with their end times.

use std::fmt::Debug;

/// The kind of a request.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum RequestKind {
    /// Reads pages to the host.
    Read,
    /// Writes pages of the host.
    Write,
    /// Marks pages whose content is no longer needed; on a raw chip it erases their blocks.
    Discard,
    /// Ends when every write that ended before it was submitted is on the flash.
    Sync,
}

/// A request to a device, in host pages of 4 KiB.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    /// The caller's name for it, returned when it is done.
    pub token: u64,
    /// Its kind.
    pub kind: RequestKind,
    /// The first page.
    pub page: u64,
    /// The number of pages; 0 for a sync.
    pub pages: u32,
}

/// The time of a request, part by part, in nanoseconds. The parts add up to its latency exactly.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Parts {
    /// The time waiting for space in the device's queue or write buffer.
    pub admission_ns: u64,
    /// The time of the controller's work and of the transfer to or from the host, including waiting for
    /// either.
    pub host_ns: u64,
    /// The time waiting for a unit of flash, or a bus, that served other requests of the host.
    pub queue_ns: u64,
    /// The time waiting for a unit of flash that was cleaning or levelling wear.
    pub cleaning_ns: u64,
    /// The time of commands and data on the bus between controller and flash.
    pub bus_ns: u64,
    /// The time of the flash array itself: reading, programming, erasing, or a disk's seek and rotation.
    pub array_ns: u64,
}

impl Parts {
    /// Returns their sum: the latency of the request.
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
    /// The time of its submission, in nanoseconds of the model's time.
    pub submitted_ns: u64,
    /// The time of its end.
    pub finished_ns: u64,
    /// The parts of the time between. Of the parallel parts of a request, the one that ended last counts.
    pub parts: Parts,
}

/// A device as something that takes time.
///
/// Time is integer nanoseconds from zero and moves only in [`step`](Model::step) and
/// [`advance`](Model::advance). A request beyond the device's pages, or one that the model
/// [refuses](Model::refuses), is the caller's mistake: the owner of the model checks first.
pub trait Model: Send + Debug {
    /// Returns the present time.
    fn now_ns(&self) -> u64;

    /// Returns the number of host pages of 4 KiB.
    fn page_count(&self) -> u64;

    /// Returns the reason why a request within the device's pages is impossible, and the remedy; `None` if it
    /// is possible. It must be called before the request is submitted, after all that were submitted before.
    ///
    /// Most devices refuse nothing. A raw chip refuses to program a page that is not erased.
    fn refuses(&self, _request: &Request) -> Option<String> {
        None
    }

    /// Takes a request that arrives at `at_ns`, which must not be before the present.
    fn submit_at(&mut self, at_ns: u64, request: Request);

    /// Takes a request that arrives now.
    fn submit(&mut self, request: Request) {
        self.submit_at(self.now_ns(), request);
    }

    /// Advances time to the next event and appends the requests that end there; returns `false` when nothing
    /// is pending.
    fn step(&mut self, done: &mut Vec<Done>) -> bool;

    /// Processes every event up to `to_ns`, and makes it the present.
    fn advance(&mut self, to_ns: u64, done: &mut Vec<Done>);
}
