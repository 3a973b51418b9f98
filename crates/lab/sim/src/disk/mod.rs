//! A magnetic disk in virtual time: one arm, one spindle, a read-ahead buffer.
//!
//! ```text
//!   host queue -> [depth] -> arm: seek -> spindle: wait for the page -> media -> link -> host
//!                                 media -> read-ahead buffer -> link -> host
//! ```
//!
//! Writes go to the media before they end, so a sync has nothing to do. The head continues to read after a
//! read until it is needed elsewhere or the buffer is full. A read that continues the last one finds its data
//! in the buffer or under the head. Pages are in order along each track, tracks along each cylinder, and each
//! track is offset by the time of changing to it.
//!
//! If [`DiskSpec::reorders`] is set, the disk serves the request that its head reaches first; a request may
//! then wait as long as nearer ones keep arriving.

mod head;
mod spec;
#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use head::{Head, Service};
pub use spec::DiskSpec;

use crate::{Done, Model, Parts, Request, RequestKind, Result};

/// A magnetic disk in virtual time. See the [module](self).
#[derive(Debug)]
pub struct Disk {
    head: Head,
    now_ns: u64,
    events: BinaryHeap<Reverse<(u64, u64)>>,
    /// The planned events, by number from the first pending one.
    planned: VecDeque<Option<Event>>,
    first_planned: u64,
    queue: VecDeque<Waiting>,
    /// The number of requests of the queue, counted from the first, that are inside the disk.
    inside: usize,
    in_disk: u32,
    is_head_busy: bool,
    link_free_ns: u64,
}

#[derive(Clone, Copy, Debug)]
enum Event {
    Arrive(Request),
    HeadFree,
    Complete(Done),
}

/// A request that the head has not begun.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    request: Request,
    submitted_ns: u64,
    admitted_ns: u64,
    /// The time at which the controller has processed it, and the first page of a write has arrived.
    ready_ns: u64,
}

impl Disk {
    /// Creates a disk with this spec, its head at the first track.
    ///
    /// # Errors
    /// Fails with [`Error::Spec`](crate::Error::Spec) if no such disk can exist.
    pub fn new(spec: DiskSpec) -> Result<Self> {
        spec.check()?;
        Ok(Self {
            head: Head::new(spec),
            now_ns: 0,
            events: BinaryHeap::new(),
            planned: VecDeque::new(),
            first_planned: 0,
            queue: VecDeque::new(),
            inside: 0,
            in_disk: 0,
            is_head_busy: false,
            link_free_ns: 0,
        })
    }

    /// Returns its description.
    #[must_use]
    pub fn spec(&self) -> &DiskSpec {
        self.head.spec()
    }

    fn plan(&mut self, at_ns: u64, event: Event) {
        let number = self.first_planned + self.planned.len() as u64;
        self.planned.push_back(Some(event));
        self.events.push(Reverse((at_ns, number)));
    }

    fn take_event(&mut self, number: u64) -> Option<Event> {
        let event = self.planned[(number - self.first_planned) as usize].take();
        while let Some(None) = self.planned.front() {
            self.planned.pop_front();
            self.first_planned += 1;
        }
        event
    }

    fn happen(&mut self, event: Event, done: &mut Vec<Done>) {
        match event {
            Event::Arrive(request) => self.arrive(request),
            Event::HeadFree => {
                self.is_head_busy = false;
                self.start_next();
            }
            Event::Complete(ended) => {
                done.push(ended);
                self.in_disk -= 1;
                self.admit();
            }
        }
    }

    fn arrive(&mut self, request: Request) {
        let now = self.now_ns;
        let (submitted_ns, admitted_ns, ready_ns) = (now, now, now);
        self.queue.push_back(Waiting { request, submitted_ns, admitted_ns, ready_ns });
        self.admit();
    }

    /// Takes the oldest request that is waiting outside, if there is space.
    fn admit(&mut self) {
        let (now, spec) = (self.now_ns, *self.head.timing());
        while self.in_disk < self.head.spec().depth {
            let Some(waiting) = self.queue.get_mut(self.inside) else { break };
            let data_ns = match waiting.request.kind {
                RequestKind::Write => spec.link_page_ns,
                _ => 0,
            };
            waiting.admitted_ns = now;
            waiting.ready_ns = now + spec.controller_ns + data_ns;
            self.inside += 1;
            self.in_disk += 1;
        }
        self.start_next();
    }

    /// Starts one of the requests inside.
    fn start_next(&mut self) {
        while !self.is_head_busy {
            let Some(index) = self.choose() else { return };
            let waiting = self.queue.remove(index).expect("chosen among those there are");
            self.inside -= 1;
            match waiting.request.kind {
                RequestKind::Read | RequestKind::Write => self.serve(waiting),
                RequestKind::Discard | RequestKind::Sync => {
                    let end = self.now_ns.max(waiting.ready_ns);
                    self.complete(waiting, end, Service::default());
                }
            }
        }
    }

    fn choose(&self) -> Option<usize> {
        if !self.head.spec().reorders {
            return (self.inside > 0).then_some(0);
        }
        let inside = self.queue.iter().take(self.inside).enumerate();
        inside.min_by_key(|(_, it)| self.head.reach_ns(&it.request, self.now_ns)).map(|it| it.0)
    }

    fn serve(&mut self, waiting: Waiting) {
        let start = self.now_ns.max(waiting.ready_ns);
        let service = self.head.serve(&waiting.request, start);
        let timing = *self.head.timing();
        let end = match waiting.request.kind {
            RequestKind::Read => {
                let all = u64::from(waiting.request.pages) * timing.link_page_ns;
                let link = self.link_free_ns.max(start) + all;
                let end = link.max(service.end_ns + timing.link_page_ns);
                self.link_free_ns = end;
                end
            }
            _ => service.end_ns,
        };
        self.is_head_busy = true;
        self.plan(service.end_ns, Event::HeadFree);
        self.complete(waiting, end, service);
    }

    /// Completes a request at a time; the time of neither media nor queue counts for the host side.
    fn complete(&mut self, waiting: Waiting, finished_ns: u64, service: Service) {
        let Waiting { request, submitted_ns, admitted_ns, ready_ns } = waiting;
        let mut parts = Parts {
            admission_ns: admitted_ns - submitted_ns,
            queue_ns: self.now_ns.saturating_sub(ready_ns),
            array_ns: service.media_ns,
            ..Parts::default()
        };
        parts.host_ns = finished_ns - submitted_ns - parts.total_ns();
        self.plan(finished_ns, Event::Complete(Done { request, submitted_ns, finished_ns, parts }));
    }
}

impl Model for Disk {
    fn now_ns(&self) -> u64 {
        self.now_ns
    }

    fn page_count(&self) -> u64 {
        self.head.spec().page_count()
    }

    fn submit_at(&mut self, at_ns: u64, request: Request) {
        debug_assert!(at_ns >= self.now_ns, "requests come no earlier than now");
        self.plan(at_ns, Event::Arrive(request));
    }

    fn step(&mut self, done: &mut Vec<Done>) -> bool {
        let Some(Reverse((at_ns, number))) = self.events.pop() else { return false };
        self.now_ns = at_ns;
        if let Some(event) = self.take_event(number) {
            self.happen(event, done);
        }
        true
    }

    fn advance(&mut self, to_ns: u64, done: &mut Vec<Done>) {
        while self.events.peek().is_some_and(|&Reverse((at_ns, _))| at_ns <= to_ns) {
            self.step(done);
        }
        self.now_ns = self.now_ns.max(to_ns);
    }
}
