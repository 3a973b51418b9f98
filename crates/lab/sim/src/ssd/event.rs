//! Future events, in the order of their time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// An event of a request or an operation, which it has by index.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Event {
    /// A request reaches the device.
    Arrive(u32),
    /// The controller has processed a request.
    Ready(u32),
    /// The next piece of a write has crossed the link.
    Received(u32),
    /// The first phase of an operation has ended: a read's array, a program's transfer.
    First(u32),
    /// The second phase has ended: a read's transfer, a program's array, all of a cleaning.
    Second(u32),
    /// A page-by-page cleaning continues.
    Clean(u32),
    /// A request ends.
    Complete(u32),
}

#[derive(PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Entry {
    at_ns: u64,
    /// The number of the plan: events of the same time happen in the order in which they were planned.
    number: u64,
    event: Event,
}

/// The future events.
#[derive(Debug, Default)]
pub(super) struct Agenda {
    heap: BinaryHeap<Reverse<Entry>>,
    planned: u64,
    /// Mixes every event that has happened and its time.
    hash: u64,
}

impl Agenda {
    pub fn plan(&mut self, at_ns: u64, event: Event) {
        self.planned += 1;
        self.heap.push(Reverse(Entry { at_ns, number: self.planned, event }));
    }

    pub fn next_at_ns(&self) -> Option<u64> {
        self.heap.peek().map(|Reverse(entry)| entry.at_ns)
    }

    pub fn pop(&mut self) -> Option<(u64, Event)> {
        let Reverse(Entry { at_ns, event, .. }) = self.heap.pop()?;
        let (kind, index) = match event {
            Event::Arrive(index) => (0, index),
            Event::Ready(index) => (1, index),
            Event::Received(index) => (2, index),
            Event::First(index) => (3, index),
            Event::Second(index) => (4, index),
            Event::Clean(index) => (5, index),
            Event::Complete(index) => (6, index),
        };
        let word = at_ns.rotate_left(20) ^ u64::from(index) << 3 ^ kind;
        self.hash = (self.hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
        Some((at_ns, event))
    }

    pub fn hash(&self) -> u64 {
        self.hash
    }
}
