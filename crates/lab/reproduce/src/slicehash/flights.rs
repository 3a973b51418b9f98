//! Requests in flight, and the purpose of each.

use nandex_sim::Request;

use crate::tape::Step;

/// The purposes of requests in flight, by their tokens.
#[derive(Debug)]
pub(super) struct Flights<T> {
    flights: Vec<Option<T>>,
    idle: Vec<usize>,
}

impl<T> Default for Flights<T> {
    fn default() -> Self {
        Self { flights: Vec::new(), idle: Vec::new() }
    }
}

impl<T> Flights<T> {
    /// Returns the request for a step, at a page of its drive, with a token that is unique among those in
    /// flight.
    pub fn start(&mut self, step: Step, page: u64, flight: T) -> Request {
        let token = self.idle.pop().unwrap_or_else(|| {
            self.flights.push(None);
            self.flights.len() - 1
        });
        self.flights[token] = Some(flight);
        Request { token: token as u64, kind: step.kind, page, pages: step.pages }
    }

    /// Returns whether none is in flight.
    pub fn is_empty(&self) -> bool {
        self.idle.len() == self.flights.len()
    }

    /// Returns the purpose of a request that has ended.
    pub fn land(&mut self, token: u64) -> T {
        let token = usize::try_from(token).expect("tokens are indices");
        self.idle.push(token);
        self.flights[token].take().expect("each request ends once")
    }
}
