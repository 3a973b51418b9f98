//! The times of arrivals that do not depend on the device's speed.

use super::math::ln;
use super::prng::SplitMix64;
use super::requests::Requests;
use crate::Request;

/// A request and its arrival time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Arrival {
    /// The nanoseconds from the beginning of the workload or trace.
    pub at_ns: u64,
    /// The request.
    pub request: Request,
}

impl Arrival {
    /// Returns the arrival on a device of `page_count` pages (at least 1): its page is taken modulo
    /// `page_count`, moved down if the request would reach beyond the end, and a request longer than the
    /// device is cut to it.
    #[must_use]
    pub fn folded(self, page_count: u64) -> Self {
        let fits = u64::from(self.request.pages) <= page_count;
        // A device of fewer pages than 32 bits count is the only one that a request does not fit on.
        let pages = if fits { self.request.pages } else { page_count as u32 };
        let page = (self.request.page % page_count).min(page_count - u64::from(pages));
        Self { request: Request { page, pages, ..self.request }, ..self }
    }
}

/// The time between one arrival and the next, and before the first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Gaps {
    /// Always the same.
    Constant {
        /// Nanoseconds.
        gap_ns: u64,
    },
    /// Exponentially distributed, so that arrivals are a Poisson process.
    Exponential {
        /// Nanoseconds on average.
        mean_ns: u64,
    },
}

impl Gaps {
    fn draw(self, rng: &mut SplitMix64) -> u64 {
        match self {
            Self::Constant { gap_ns } => gap_ns,
            // The unit is below 1, so the logarithm is of a positive number.
            Self::Exponential { mean_ns } => {
                (mean_ns as f64 * -ln(1.0 - rng.unit())).round() as u64
            }
        }
    }
}

/// An endless stream of arrivals. Time stops at the last nanosecond that 64 bits can count.
#[derive(Clone, Debug)]
pub struct Arrivals {
    requests: Requests,
    gaps: Gaps,
    rng: SplitMix64,
    now_ns: u64,
}

impl Arrivals {
    pub(super) const fn new(requests: Requests, gaps: Gaps, rng: SplitMix64) -> Self {
        Self { requests, gaps, rng, now_ns: 0 }
    }
}

impl Iterator for Arrivals {
    type Item = Arrival;

    fn next(&mut self) -> Option<Arrival> {
        self.now_ns = self.now_ns.saturating_add(self.gaps.draw(&mut self.rng));
        Some(Arrival { at_ns: self.now_ns, request: self.requests.make() })
    }
}
