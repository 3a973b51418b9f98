//! Future events: at most one for each server, and requests that have not arrived yet.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The next event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Event {
    /// The end of a server's work.
    Ended(usize),
    /// The arrival of a request.
    Arrives(u32),
}

/// A server's plan: the time of its end, and the plan's number; the maximum time while it has none.
type Plan = (u64, u64);
const IDLE: Plan = (u64::MAX, 0);

/// The set of future events. No server does two things at once, so finding the next event checks each server
/// once.
#[derive(Debug)]
pub(super) struct Agenda {
    plans: Vec<Plan>,
    arrivals: BinaryHeap<Reverse<(u64, u64, u32)>>,
    planned: u64,
    /// Mixes every event that has happened and its time.
    hash: u64,
}

impl Agenda {
    pub fn new(servers: usize) -> Self {
        let plans = vec![IDLE; servers];
        Self { plans, arrivals: BinaryHeap::new(), planned: 0, hash: 0 }
    }

    pub fn plan(&mut self, server: usize, at_ps: u64) {
        self.planned += 1;
        self.plans[server] = (at_ps, self.planned);
    }

    pub fn plan_arrival(&mut self, request: u32, at_ps: u64) {
        self.planned += 1;
        self.arrivals.push(Reverse((at_ps, self.planned, request)));
    }

    /// Returns the next event and its time. Simultaneous plans come in the order in which they were made, and
    /// arrivals after them.
    pub fn next(&self) -> Option<(u64, Event)> {
        let (mut soonest, mut next) = (IDLE, None);
        for (server, &plan) in self.plans.iter().enumerate() {
            if plan < soonest {
                (soonest, next) = (plan, Some((plan.0, Event::Ended(server))));
            }
        }
        match self.arrivals.peek() {
            Some(&Reverse((at_ps, _, request))) if at_ps < soonest.0 => {
                Some((at_ps, Event::Arrives(request)))
            }
            _ => next,
        }
    }

    /// Removes the event that [`next`](Self::next) has returned.
    pub fn take(&mut self, at_ps: u64, event: Event) {
        let index = match event {
            Event::Ended(server) => {
                self.plans[server] = IDLE;
                server as u64
            }
            Event::Arrives(request) => {
                self.arrivals.pop();
                u64::from(request) << 8
            }
        };
        let word = at_ps.rotate_left(20) ^ index;
        self.hash = (self.hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    }

    pub fn hash(&self) -> u64 {
        self.hash
    }
}
