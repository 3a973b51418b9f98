//! The six synthetic streams with which DiskSim's SSD extension is validated, request by request.
//!
//! DiskSim 4.0 with Microsoft's SSD extension ships a validation suite (`ssdmodel/valid`, Agrawal et al.,
//! USENIX 2008). These are the streams that its generator makes from the suite's parameters, so that averages
//! can be compared to the last digit. The generator's draws from [`Rand48`], in order:
//!
//! - a request anywhere: the gap, a number that would choose among devices, place and size again and
//!   again until the request has a size and fits, a number for read or write, and one for its urgency;
//! - a request that continues the previous one: a number that decides so, the gap, and one for its urgency.
//!   It has the size of the previous request and begins at its end.
//!
//! The first request is drawn anywhere with seed 42; then the generator starts again with seed 1,000,003, and
//! each further request first draws the number that decides whether it goes on.

use nandex_sim::workload::{Arrival, ln};
use nandex_sim::{Request, RequestKind};

/// POSIX `drand48`: x' = 0x5DEECE66D x + 11 modulo 2^48, and x / 2^48 is the number.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rand48 {
    state: u64,
}

impl Rand48 {
    /// Creates the state after `srand48(seed)`.
    #[must_use]
    pub const fn new(seed: u32) -> Self {
        Self { state: (seed as u64) << 16 | 0x330E }
    }

    /// Returns a multiple of 2^-48 in [0, 1).
    pub fn unit(&mut self) -> f64 {
        let next = self.state.wrapping_mul(0x5_DEEC_E66D).wrapping_add(11);
        self.state = next & ((1 << 48) - 1);
        self.state as f64 / (1u64 << 48) as f64
    }
}

/// The order of the pages of a synthetic stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    /// Each begins at the end of the previous one. All are one page long, as the first one is.
    Sequential,
    /// Each goes anywhere, with sizes of 8 sectors on average, rounded up to pages.
    Random,
}

/// One run of the validation suite.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Validation {
    /// The name in the suite's files.
    pub name: &'static str,
    /// The order of the requests.
    pub order: Order,
    /// The kind of all requests.
    pub kind: RequestKind,
    /// The number of arrivals. The run ends as the last request arrives, so that one is never served.
    pub arrivals: u64,
    /// The mean response time of all requests that ended in the run, in milliseconds, as DiskSim prints it.
    pub mean_ms: f64,
}

/// The six synthetic runs of the suite.
pub const VALIDATION: [Validation; 6] = [
    run("sr250k", Order::Sequential, RequestKind::Read, 250_000, 0.132_511),
    run("sw250k", Order::Sequential, RequestKind::Write, 250_000, 0.310_895),
    run("sw5m", Order::Sequential, RequestKind::Write, 5_000_000, 0.334_365),
    run("rr250k", Order::Random, RequestKind::Read, 250_000, 0.136_118),
    run("rw250k", Order::Random, RequestKind::Write, 250_000, 0.329_458),
    run("rw5m", Order::Random, RequestKind::Write, 5_000_000, 0.593_438),
];

const fn run(
    name: &'static str,
    order: Order,
    kind: RequestKind,
    arrivals: u64,
    mean_ms: f64,
) -> Validation {
    Validation { name, order, kind, arrivals, mean_ms }
}

/// Pages that the suite uses: 7,018,904 sectors.
pub const PAGE_COUNT: u64 = 877_363;
/// Sectors of a page.
const PAGE_SECTORS: u64 = 8;
/// The mean of the exponential law of sizes, in sectors.
const SECTORS_MEAN: f64 = 8.0;
/// The gap between arrivals is between 0 and this, each with the same probability.
const GAP_MS_MAX: f64 = 1.0;

impl Validation {
    /// Returns the run's requests, the last of which only ends the run.
    #[must_use]
    pub fn stream(&self) -> Synthetic {
        let rng = Rand48::new(42);
        let (order, kind, left) = (self.order, self.kind, self.arrivals);
        Synthetic { rng, order, kind, left, made: 0, at_ms: 0.0, page: 0, pages: 0 }
    }
}

/// The requests of a validation run. Times are rounded to nanoseconds.
#[derive(Clone, Debug)]
pub struct Synthetic {
    rng: Rand48,
    order: Order,
    kind: RequestKind,
    left: u64,
    made: u64,
    at_ms: f64,
    page: u64,
    pages: u64,
}

impl Synthetic {
    fn anywhere(&mut self) {
        self.wait();
        self.skip();
        loop {
            self.page = (self.rng.unit() * PAGE_COUNT as f64) as u64;
            let sectors = (SECTORS_MEAN * -ln(1.0 - self.rng.unit())) as u64;
            self.pages = sectors.div_ceil(PAGE_SECTORS);
            if self.pages > 0 && self.page + self.pages < PAGE_COUNT {
                break;
            }
        }
        self.skip();
    }

    fn follow(&mut self) {
        self.wait();
        self.page += self.pages;
    }

    fn wait(&mut self) {
        self.at_ms += GAP_MS_MAX * self.rng.unit();
    }

    /// Draws a number whose decision is always the same.
    fn skip(&mut self) {
        self.rng.unit();
    }

    fn fits_after(&self) -> bool {
        self.page + 2 * self.pages < PAGE_COUNT
    }

    fn advance(&mut self) {
        if self.made == 0 {
            self.anywhere();
            self.rng = Rand48::new(1_000_003);
            return;
        }
        self.skip();
        if self.order == Order::Sequential && self.fits_after() {
            self.follow();
        } else {
            self.anywhere();
        }
        self.skip();
    }
}

impl Iterator for Synthetic {
    type Item = Arrival;

    fn next(&mut self) -> Option<Arrival> {
        self.left = self.left.checked_sub(1)?;
        self.advance();
        let token = self.made;
        self.made += 1;
        // At most 100 pages: the logarithm's argument is a multiple of 2^-48, so sectors end at 266.
        let pages = self.pages as u32;
        let request = Request { token, kind: self.kind, page: self.page, pages };
        Some(Arrival { at_ns: (self.at_ms * 1e6).round() as u64, request })
    }
}
