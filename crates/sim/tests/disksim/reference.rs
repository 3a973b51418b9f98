//! DiskSim's SSD extension as it is used by its validation suite: elements behind one channel to the host.
//!
//! Written for clarity and exactness alone, and proven by the averages that DiskSim prints. It is what
//! other models of the same device are compared with, request by request.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

use nandex_sim::{Done, Model, Parts, Request, RequestKind};

use super::element::{Counts, Element, Page, Shape, Turn};

/// Elements of the device; logical page p is page p / 8 of element p % 8.
const ELEMENTS: usize = 8;
/// Requests at the device; more wait at the host.
const DEPTH: usize = 20;
/// Time of the channel for a page, in picoseconds: 8 sectors of 238.4 ns.
const CHANNEL_PAGE: u64 = 8 * 238_400;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Event {
    Cleaned(usize),
    Served(usize, u64),
    TransferredIn(u64),
    TransferredOut(u64),
}

#[derive(Debug)]
struct Pending {
    request: Request,
    submitted_ns: u64,
    at_device_ps: u64,
    pages_left: u32,
}

/// The device. Picoseconds inside, so that nothing is rounded.
#[derive(Debug)]
pub struct Reference {
    elements: Vec<Element>,
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    planned: u64,
    now_ps: u64,
    pending: BTreeMap<u64, Pending>,
    /// How many were submitted, which is the number of the next one.
    submitted: u64,
    at_host: VecDeque<u64>,
    at_device: usize,
    arrived: VecDeque<u64>,
    completed: VecDeque<u64>,
    channel_is_busy: bool,
    ended: Vec<Done>,
    /// The sum over all that ended of the time since the device got them.
    pub response_ps: u128,
    /// How many ended.
    pub responses: u64,
}

impl Reference {
    pub fn new(shape: Shape) -> Self {
        Self {
            elements: (0..ELEMENTS).map(|_| Element::new(shape)).collect(),
            events: BinaryHeap::new(),
            planned: 0,
            now_ps: 0,
            pending: BTreeMap::new(),
            submitted: 0,
            at_host: VecDeque::new(),
            at_device: 0,
            arrived: VecDeque::new(),
            completed: VecDeque::new(),
            channel_is_busy: false,
            ended: Vec::new(),
            response_ps: 0,
            responses: 0,
        }
    }

    pub fn counts(&self) -> Vec<Counts> {
        self.elements.iter().map(|element| element.counts).collect()
    }

    /// The mean time from a request's arrival at the device to its end, in milliseconds.
    pub fn mean_ms(&self) -> f64 {
        self.response_ps as f64 / self.responses as f64 / 1e9
    }

    fn plan(&mut self, in_ps: u64, event: Event) {
        self.planned += 1;
        self.events.push(Reverse((self.now_ps + in_ps, self.planned, event)));
    }

    fn admit(&mut self) {
        while self.at_device < DEPTH
            && let Some(number) = self.at_host.pop_front()
        {
            self.at_device += 1;
            self.pending.get_mut(&number).unwrap().at_device_ps = self.now_ps;
            self.arrived.push_back(number);
            if !self.channel_is_busy {
                self.use_channel();
            }
        }
    }

    /// What has been served goes before what has arrived; a read needs the channel at its end only.
    fn use_channel(&mut self) {
        while !self.channel_is_busy {
            if let Some(number) = self.completed.pop_front() {
                let request = self.pending[&number].request;
                if request.kind == RequestKind::Read {
                    self.transfer(request.pages, Event::TransferredOut(number));
                } else {
                    self.end(number);
                }
            } else if let Some(number) = self.arrived.pop_front() {
                let request = self.pending[&number].request;
                if request.kind == RequestKind::Read {
                    self.spread(number);
                } else {
                    self.transfer(request.pages, Event::TransferredIn(number));
                }
            } else {
                return;
            }
        }
    }

    fn transfer(&mut self, pages: u32, then: Event) {
        self.channel_is_busy = true;
        self.plan(u64::from(pages) * CHANNEL_PAGE, then);
    }

    fn spread(&mut self, number: u64) {
        let Request { kind, page: first, pages, .. } = self.pending[&number].request;
        for page in first..first + u64::from(pages) {
            let page = usize::try_from(page).unwrap();
            let (element, logical) = (page % ELEMENTS, page / ELEMENTS);
            let reads = kind == RequestKind::Read;
            self.elements[element].queue.push_back(Page { request: number, reads, logical });
            self.turn(element);
        }
    }

    fn turn(&mut self, element: usize) {
        match self.elements[element].turn() {
            Some(Turn::Clean(ps)) => self.plan(ps, Event::Cleaned(element)),
            Some(Turn::Serve(page, ps)) => self.plan(ps, Event::Served(element, page.request)),
            None => {}
        }
    }

    fn served(&mut self, element: usize, number: u64) {
        self.elements[element].is_busy = false;
        let pending = self.pending.get_mut(&number).unwrap();
        pending.pages_left -= 1;
        if pending.pages_left == 0 {
            self.completed.push_back(number);
            self.use_channel();
        }
        self.turn(element);
    }

    fn end(&mut self, number: u64) {
        let Pending { request, submitted_ns, at_device_ps, .. } =
            self.pending.remove(&number).unwrap();
        self.response_ps += u128::from(self.now_ps - at_device_ps);
        self.responses += 1;
        let finished_ns = (self.now_ps + 500) / 1000;
        let admission_ns = at_device_ps.div_ceil(1000).saturating_sub(submitted_ns);
        let host_ns = finished_ns - submitted_ns - admission_ns;
        let parts = Parts { admission_ns, host_ns, ..Parts::default() };
        self.ended.push(Done { request, submitted_ns, finished_ns, parts });
        self.at_device -= 1;
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Cleaned(element) => {
                self.elements[element].is_busy = false;
                self.turn(element);
            }
            Event::Served(element, number) => self.served(element, number),
            Event::TransferredIn(number) => {
                self.spread(number);
                self.channel_is_busy = false;
                self.use_channel();
            }
            Event::TransferredOut(number) => {
                self.end(number);
                self.channel_is_busy = false;
                self.use_channel();
            }
        }
        self.admit();
    }
}

impl Model for Reference {
    fn now_ns(&self) -> u64 {
        self.now_ps.div_ceil(1000)
    }

    fn page_count(&self) -> u64 {
        u64::MAX
    }

    fn submit_at(&mut self, at_ns: u64, request: Request) {
        let mut done = Vec::new();
        self.advance(at_ns, &mut done);
        self.ended.append(&mut done);
        let number = self.submitted;
        self.submitted += 1;
        let pages_left = request.pages;
        let pending = Pending { request, submitted_ns: at_ns, at_device_ps: 0, pages_left };
        self.pending.insert(number, pending);
        self.at_host.push_back(number);
        self.admit();
    }

    fn step(&mut self, done: &mut Vec<Done>) -> bool {
        done.append(&mut self.ended);
        let Some(Reverse((at_ps, _, event))) = self.events.pop() else { return false };
        self.now_ps = at_ps;
        self.happen(event);
        done.append(&mut self.ended);
        true
    }

    fn advance(&mut self, to_ns: u64, done: &mut Vec<Done>) {
        while self.events.peek().is_some_and(|Reverse((at_ps, ..))| *at_ps <= to_ns * 1000) {
            self.step(done);
        }
        done.append(&mut self.ended);
        self.now_ps = self.now_ps.max(to_ns * 1000);
    }
}
