//! DiskSim 4.0 with Microsoft's SSD extension (Agrawal et al., USENIX 2008), to the picosecond: a model that
//! validates how the simulator runs models. Users of nandex do not compile it.
//!
//! ```text
//!   host queue -> [depth] -> arrivals --+                      +--> element 0: queue, planes, blocks
//!                                       +--> one channel ------+--> element 1
//!                          completions -+    (whole requests)  +--> ...    page p: element p mod n
//! ```
//!
//! [`Elements`] repeats experiments that were made with DiskSim; for other devices use the general engine,
//! [`Ssd`](nandex_sim::Ssd). DiskSim's rules:
//!
//! 1. **Channel.** One transfer at a time, of a whole request. Completions go before arrivals. A write
//!    crosses before its pages start. A read starts when it reaches the head of the arrivals and the channel
//!    is free, and crosses when its last page is read. A write's end takes no time on the channel, but waits
//!    for it.
//! 2. **Element.** One page at a time, in the order of arrival, of reads and writes alike.
//! 3. **Layout.** At the start every host page is mapped, block by block over the planes, and one block of
//!    each plane is begun. The last block that the host sees is never sealed, so it is never cleaned.
//! 4. **Write.** It goes to the plane with the most free pages, of those whose active page is newer than the
//!    copy it replaces. A write that fills a block programs its summary page as well.
//! 5. **Cleaning.** Before each page (a read as well) one block of one plane in need is cleaned, again and
//!    again, planes in turn. Moved pages stay in their plane and do not cross the pins.
//! 6. **Wear** ([`Cleaning::WearAware`]). Candidates are the sealed blocks that have as few valid pages as any
//!    before them; the last is tried first, and the first is taken whatever its wear. A candidate with
//!    less than 0.85 of the plane's mean life left is emptied and takes the data of the block that was erased
//!    longest ago, which is erased in its place. Where there is none, one with less than 0.80 is passed over
//!    with a probability that grows with its wear.
//!
//! Differences from DiskSim:
//!
//! - A sync ends when the writes before it have ended. A discard makes pages invalid at once and takes no time
//!   but its turn; later reads of them take as long as any. DiskSim knows neither.
//! - A plane in which every sealed block is fully valid is not cleaned; DiskSim would clean it forever.
//!   Blocks that are worn out are used when there are no others; DiskSim stops.
//! - Requests that wait at the host are admitted first come, first served; the driver in DiskSim's files
//!   takes them by address (C-LOOK).
//! - The block being written is never the coldest, and the chance of rule 6 has a seed of its own; DiskSim
//!   damages its map and takes numbers from the workload's stream.
//!
//! Parts of DiskSim's extension that are not covered: cleaning across planes (copy-back off) or in the background,
//! several parallel units or elements in a gang, a stride other than one page, allocation by plane, and serving two
//! adjacent requests for the same page as one, which DiskSim does only with several parallel units.

#![forbid(unsafe_code)]

mod agenda;
mod blocks;
mod element;
mod host;
mod ranks;
mod shape;
pub mod streams;

use std::collections::VecDeque;

use agenda::{Agenda, Event};
pub use element::Counts;
use element::Element;
use host::{Pending, SyncWait, Transfer};
pub use shape::{Cleaning, Shape, Times};

use nandex_sim::ssd::Slab;
use nandex_sim::workload::SplitMix64;
use nandex_sim::{Done, Model, Request, Result};

/// The seed of the wear-aware policy's choices, in each element by a stream of its own.
const SEED: u64 = 42;

/// The times of reads and writes since the device took them, as in DiskSim's averages.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Responses {
    /// Reads and writes that have ended.
    pub count: u64,
    /// The sum of their times, without waiting at the host for a place in the device's queue.
    pub sum_ps: u128,
}

impl Responses {
    /// The mean in milliseconds; 0 if nothing has ended.
    #[must_use]
    pub fn mean_ms(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.sum_ps as f64 / self.count as f64 / 1e9 }
    }
}

/// DiskSim's SSD. See the [crate].
///
/// Time is whole picoseconds inside, for up to 200 days, and rounded to nanoseconds outside. It takes about 8
/// bytes of RAM for each page of flash.
///
/// ```
/// use nandex_disksim::Elements;
/// use nandex_sim::{Model, Request, RequestKind};
///
/// let mut ssd = Elements::agrawal_slc();
/// ssd.submit(Request { token: 1, kind: RequestKind::Read, page: 4711, pages: 1 });
/// let mut done = Vec::new();
/// while ssd.step(&mut done) {}
/// assert_eq!(done[0].finished_ns, 25_000 + 105_600 + 1_907); // array, pins, channel
/// ```
#[derive(Debug)]
pub struct Elements {
    shape: Shape,
    elements: Vec<Element>,
    now_ps: u64,
    /// Elements are servers by their number; the channel comes after the last.
    agenda: Agenda,
    requests: Slab<Pending>,
    /// The requests that are waiting for a place in the device's queue.
    at_host: VecDeque<u32>,
    at_device: u32,
    arrived: VecDeque<u32>,
    completed: VecDeque<u32>,
    transfer: Transfer,
    writes_open: u32,
    /// Writes and syncs taken.
    order: u64,
    syncs: VecDeque<SyncWait>,
    ended: VecDeque<Done>,
    responses: Responses,
}

impl Elements {
    /// Creates a device of this shape, full like DiskSim's at the start.
    ///
    /// # Errors
    /// Fails with [`Error::Spec`](nandex_sim::Error::Spec) if no such device can exist.
    pub fn new(shape: Shape) -> Result<Self> {
        shape.check()?;
        Ok(Self::sound(shape))
    }

    /// Creates the device of DiskSim's validation suite, [`Shape::SUITE`]: 28.8 GB for the host.
    #[must_use]
    pub fn agrawal_slc() -> Self {
        Self::sound(Shape::SUITE)
    }

    fn sound(shape: Shape) -> Self {
        let rngs = (0..u64::from(shape.elements)).map(|index| SplitMix64::stream(SEED, index));
        let elements: Vec<_> = rngs.map(|rng| Element::new(&shape, rng)).collect();
        Self {
            now_ps: 0,
            agenda: Agenda::new(elements.len() + 1),
            elements,
            requests: Slab::default(),
            at_host: VecDeque::new(),
            at_device: 0,
            arrived: VecDeque::new(),
            completed: VecDeque::new(),
            transfer: Transfer::None,
            writes_open: 0,
            order: 0,
            syncs: VecDeque::new(),
            ended: VecDeque::new(),
            responses: Responses::default(),
            shape,
        }
    }

    /// Returns its shape.
    #[must_use]
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Returns the work of each element.
    #[must_use]
    pub fn counts(&self) -> Vec<Counts> {
        self.elements.iter().map(|element| element.counts).collect()
    }

    /// Returns the times of reads and writes.
    #[must_use]
    pub fn responses(&self) -> Responses {
        self.responses
    }

    /// Returns the erases of each block so far: element by element, plane by plane, from its first block to
    /// its last.
    #[must_use]
    pub fn erases(&self) -> Vec<u32> {
        let planes = 0..self.shape.planes;
        let of = |element: &'_ Element| -> Vec<u32> {
            planes.clone().flat_map(|plane| element.blocks.erases(plane)).collect()
        };
        self.elements.iter().flat_map(of).collect()
    }

    /// Returns a hash of every event and its time: equal only for equal runs.
    #[must_use]
    pub fn event_hash(&self) -> u64 {
        self.agenda.hash()
    }

    fn happen(&mut self, at_ps: u64, event: Event) {
        self.now_ps = at_ps;
        self.agenda.take(at_ps, event);
        match event {
            Event::Arrives(number) => self.at_host.push_back(number),
            Event::Ended(server) if server < self.elements.len() => self.element_ended(server),
            Event::Ended(_) => self.transfer_ended(),
        }
        self.admit();
    }
}

impl Model for Elements {
    fn now_ns(&self) -> u64 {
        self.now_ps.div_ceil(1000)
    }

    fn page_count(&self) -> u64 {
        self.shape.page_count()
    }

    fn submit_at(&mut self, at_ns: u64, request: Request) {
        debug_assert!(at_ns >= self.now_ns(), "requests come no earlier than now");
        let at_ps = at_ns.saturating_mul(1000);
        let number = self.requests.insert(Pending::new(request, at_ns));
        if at_ps > self.now_ps {
            self.agenda.plan_arrival(number, at_ps);
        } else {
            self.at_host.push_back(number);
            self.admit();
        }
    }

    fn step(&mut self, done: &mut Vec<Done>) -> bool {
        if let Some((at_ps, event)) = self.agenda.next() {
            self.happen(at_ps, event);
        } else if self.ended.is_empty() {
            return false;
        }
        done.extend(self.ended.drain(..));
        true
    }

    fn advance(&mut self, to_ns: u64, done: &mut Vec<Done>) {
        let to_ps = to_ns.saturating_mul(1000);
        while let Some((at_ps, event)) = self.agenda.next().filter(|(at_ps, _)| *at_ps <= to_ps) {
            self.happen(at_ps, event);
        }
        self.now_ps = self.now_ps.max(to_ps);
        done.extend(self.ended.drain(..));
    }
}
