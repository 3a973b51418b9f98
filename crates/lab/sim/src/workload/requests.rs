//! A workload's description, and its endless stream of requests.

use super::arrivals::{Arrivals, Gaps};
use super::error::WorkloadError;
use super::pattern::{Pattern, Picker, ppm};
use super::prng::SplitMix64;
use crate::{Request, RequestKind};

/// A workload of reads and writes on a device.
///
/// ```
/// use nandex_sim::workload::{Pattern, Workload};
///
/// let workload = Workload { pattern: Pattern::Uniform, read_ppm: 900_000, ..Workload::pages(1 << 20) };
/// let ten = workload.requests()?.take(10);
/// assert!(ten.into_iter().all(|request| request.page < 1 << 20));
/// # Ok::<(), nandex_sim::workload::WorkloadError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Workload {
    /// The number of pages of 4 KiB of the device that are used, from its first on.
    pub page_count: u64,
    /// Pages of each request; requests are aligned to their length.
    pub request_pages: u32,
    /// The number of reads in a million requests. The others write.
    pub read_ppm: u32,
    /// The pattern of the requests.
    pub pattern: Pattern,
    /// The seed of all random choices, any number.
    pub seed: u64,
}

impl Workload {
    /// Creates uniform writes of single pages over `page_count` pages, as a start for a description.
    #[must_use]
    pub const fn pages(page_count: u64) -> Self {
        Self { page_count, request_pages: 1, read_ppm: 0, pattern: Pattern::Uniform, seed: 1 }
    }

    /// Returns the requests, endless and named 0, 1, 2 and so on.
    ///
    /// Places and kinds are drawn separately, so that changing the share of reads moves no request.
    ///
    /// # Errors
    /// Fails if a field is outside its limits, or if no request fits into the pages.
    pub fn requests(&self) -> Result<Requests, WorkloadError> {
        let places = self.page_count / u64::from(self.request_pages.max(1));
        if self.request_pages == 0 || places == 0 {
            return Err(WorkloadError::Field {
                field: "request_pages",
                found: self.request_pages.to_string(),
                expected: format!("1 to {} pages, so that one fits", self.page_count),
                remedy: "make requests shorter but not empty, or give them more pages",
            });
        }
        Ok(Requests {
            next_token: 0,
            request_pages: self.request_pages,
            read_ppm: ppm("read_ppm", self.read_ppm)?,
            picker: Picker::new(self.pattern, places, self.seed)?,
            places: SplitMix64::stream(self.seed, 0),
            kinds: SplitMix64::stream(self.seed, 1),
        })
    }

    /// Returns the requests with their arrival times, endless.
    ///
    /// # Errors
    /// Fails as [`requests`](Workload::requests) does.
    pub fn arrivals(&self, gaps: Gaps) -> Result<Arrivals, WorkloadError> {
        Ok(Arrivals::new(self.requests()?, gaps, SplitMix64::stream(self.seed, 2)))
    }
}

/// An endless stream of requests.
#[derive(Clone, Debug)]
pub struct Requests {
    next_token: u64,
    request_pages: u32,
    read_ppm: u32,
    picker: Picker,
    places: SplitMix64,
    kinds: SplitMix64,
}

impl Requests {
    /// Returns the next request; there always is one.
    pub fn make(&mut self) -> Request {
        let token = self.next_token;
        self.next_token += 1;
        let reads = self.kinds.chance(self.read_ppm);
        let place = self.picker.pick(&mut self.places);
        Request {
            token,
            kind: if reads { RequestKind::Read } else { RequestKind::Write },
            page: place * u64::from(self.request_pages),
            pages: self.request_pages,
        }
    }
}

impl Iterator for Requests {
    type Item = Request;

    fn next(&mut self) -> Option<Request> {
        Some(self.make())
    }
}
