//! The host side: places in the device's queue, the channel, and the times of each request.

use super::Elements;
use super::element::Served;
use nandex_sim::{Done, Parts, Request, RequestKind};

/// The data that cross the channel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Transfer {
    None,
    In(u32),
    Out(u32),
}

/// A request that has not ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pending {
    request: Request,
    submitted_ns: u64,
    admitted_ps: u64,
    /// The time at which its pages entered the elements' queues; for a sync, at which it was taken.
    begun_ps: u64,
    pages_left: u32,
    /// The number of a write among writes and syncs.
    order: u64,
    path: Path,
}

impl Pending {
    pub const fn new(request: Request, submitted_ns: u64) -> Self {
        let path = Path { queue_ps: 0, cleaning_ps: 0, bus_ps: 0, array_ps: 0 };
        let (admitted_ps, begun_ps, pages_left, order) = (0, 0, request.pages, 0);
        Self { request, submitted_ns, admitted_ps, begun_ps, pages_left, order, path }
    }
}

/// The times of the page that ended last, or of a sync.
#[derive(Clone, Copy, Debug)]
struct Path {
    queue_ps: u64,
    cleaning_ps: u64,
    bus_ps: u64,
    array_ps: u64,
}

/// A sync that waits for the writes with lower numbers.
#[derive(Clone, Copy, Debug)]
pub(super) struct SyncWait {
    request: u32,
    order: u64,
    writes_left: u32,
}

impl Elements {
    /// Admits requests that are waiting at the host, while there are places.
    pub(super) fn admit(&mut self) {
        while self.at_device < self.shape.depth
            && let Some(number) = self.at_host.pop_front()
        {
            self.at_device += 1;
            self.requests[number].admitted_ps = self.now_ps;
            self.arrived.push_back(number);
            self.use_channel();
        }
    }

    /// Gives the channel to served requests before arrived ones; a read needs the channel only at its end.
    fn use_channel(&mut self) {
        while self.transfer == Transfer::None {
            if let Some(number) = self.completed.pop_front() {
                let request = self.requests[number].request;
                if request.kind == RequestKind::Read {
                    self.transfer(request.pages, Transfer::Out(number));
                } else {
                    self.end(number);
                }
            } else if let Some(number) = self.arrived.pop_front() {
                self.take_up(number);
            } else {
                return;
            }
        }
    }

    fn take_up(&mut self, number: u32) {
        let request = self.requests[number].request;
        match request.kind {
            RequestKind::Read => self.spread(number),
            RequestKind::Write => {
                self.order += 1;
                self.requests[number].order = self.order;
                self.writes_open += 1;
                self.transfer(request.pages, Transfer::In(number));
            }
            RequestKind::Discard => {
                for page in request.page..request.page + u64::from(request.pages) {
                    let (element, logical) = self.place(page);
                    self.elements[element].forget(logical);
                }
                self.end(number);
            }
            RequestKind::Sync => self.begin_sync(number),
        }
    }

    fn transfer(&mut self, pages: u32, transfer: Transfer) {
        self.transfer = transfer;
        let ends_ps = self.now_ps + u64::from(pages) * self.shape.times.link_page_ps;
        self.agenda.plan(self.elements.len(), ends_ps);
    }

    pub(super) fn transfer_ended(&mut self) {
        match std::mem::replace(&mut self.transfer, Transfer::None) {
            Transfer::In(number) => self.spread(number),
            Transfer::Out(number) => self.end(number),
            Transfer::None => {}
        }
        self.use_channel();
    }

    /// Returns the element and the logical page in it.
    fn place(&self, page: u64) -> (usize, u32) {
        let elements = u64::from(self.shape.elements);
        ((page % elements) as usize, (page / elements) as u32)
    }

    /// Passes each page to its element.
    fn spread(&mut self, number: u32) {
        let Request { kind, page: first, pages, .. } = self.requests[number].request;
        self.requests[number].begun_ps = self.now_ps;
        for page in first..first + u64::from(pages) {
            let (element, logical) = self.place(page);
            let reads = kind == RequestKind::Read;
            self.elements[element].push(number, logical, reads, self.now_ps);
            self.turn(element);
        }
        if pages == 0 {
            self.completed.push_back(number);
        }
    }

    fn turn(&mut self, element: usize) {
        if let Some(ends_ps) = self.elements[element].turn(self.now_ps) {
            self.agenda.plan(element, ends_ps);
        }
    }

    pub(super) fn element_ended(&mut self, element: usize) {
        if let Some(served) = self.elements[element].ended() {
            let number = served.request;
            let pending = &mut self.requests[number];
            pending.pages_left -= 1;
            if pending.pages_left == 0 {
                let Served { started_ps, cleaning_ps, bus_ps, array_ps, .. } = served;
                let queue_ps = started_ps - pending.begun_ps - cleaning_ps;
                pending.path = Path { queue_ps, cleaning_ps, bus_ps, array_ps };
                self.completed.push_back(number);
                self.use_channel();
            }
        }
        self.turn(element);
    }

    fn begin_sync(&mut self, number: u32) {
        if self.writes_open == 0 {
            self.end(number);
            return;
        }
        self.order += 1;
        self.requests[number].begun_ps = self.now_ps;
        let (order, writes_left) = (self.order, self.writes_open);
        self.syncs.push_back(SyncWait { request: number, order, writes_left });
    }

    fn write_ended(&mut self, order: u64) {
        self.writes_open -= 1;
        for sync in self.syncs.iter_mut().filter(|sync| sync.order > order) {
            sync.writes_left -= 1;
        }
        while let Some(sync) = self.syncs.pop_front_if(|sync| sync.writes_left == 0) {
            let pending = &mut self.requests[sync.request];
            pending.path.queue_ps = self.now_ps - pending.begun_ps;
            self.end(sync.request);
        }
    }

    /// Completes the request, with its time split.
    fn end(&mut self, number: u32) {
        let Pending { request, submitted_ns, admitted_ps, order, path, .. } = self.requests[number];
        self.requests.remove(number);
        self.at_device -= 1;
        let response_ps = self.now_ps - admitted_ps;
        let admission_ps = admitted_ps - submitted_ns.saturating_mul(1000);
        let parts = split(admission_ps, response_ps, path);
        let finished_ns = submitted_ns + parts.total_ns();
        self.ended.push_back(Done { request, submitted_ns, finished_ns, parts });
        if matches!(request.kind, RequestKind::Read | RequestKind::Write) {
            self.responses.count += 1;
            self.responses.sum_ps += u128::from(response_ps);
        }
        if request.kind == RequestKind::Write {
            self.write_ended(order);
        }
    }
}

/// Splits a request's time. The moments between the parts are rounded, not the parts, so that these add up to
/// the rounded total. Time without another part counts for the host side.
fn split(admission_ps: u64, response_ps: u64, path: Path) -> Parts {
    let Path { queue_ps, cleaning_ps, bus_ps, array_ps } = path;
    let host_ps = response_ps - queue_ps - cleaning_ps - bus_ps - array_ps;
    let (mut upto_ps, mut upto_ns) = (0, 0);
    let mut next = |part_ps: u64| {
        upto_ps += part_ps;
        let before_ns = std::mem::replace(&mut upto_ns, (upto_ps + 500) / 1000);
        upto_ns - before_ns
    };
    Parts {
        admission_ns: next(admission_ps),
        host_ns: next(host_ps),
        queue_ns: next(queue_ps),
        cleaning_ns: next(cleaning_ps),
        bus_ns: next(bus_ps),
        array_ns: next(array_ps),
    }
}
