//! The number of pages that a run gets for its fingerprints.
//!
//! Fingerprints are spread evenly, so a page's share varies randomly by the square root of its average. The
//! slack of a page makes one lookup in 10,000 or fewer read a second page: the overflow is on the next page,
//! and a page that is never too full wastes flash.

use super::page::{PAGE_ENTRIES_MAX, SPACE_BYTES};
use crate::bisect::least_up_to;
use crate::fingerprint::{Split, Universe};
use crate::{Error, Result};

/// The slack of a page in standard deviations, by its average number of entries.
///
/// For a normal distribution the mean excess over z deviations is G(z) deviations: 0.0041 for z = 2.27. So a
/// page of 3200 entries, whose deviation is 57, carries over 0.0041 * 57 = 0.23: 73 in a million. Fewer
/// entries vary relatively more; this line follows that closely from 500 to 16,000.
fn slack_deviations(entries: f64) -> f64 {
    2.5 - 0.1835 * (entries.clamp(100.0, 20_000.0) / 940.0).ln()
}

/// The most bits lost by rounding a page's parts to bytes and words.
const ROUNDING_BITS: f64 = 7.0 + 63.0;

/// The bits of one count that is not 1, if such counts are few: the variation of their number is measured in these.
const COUNT_BITS: f64 = 32.0;

/// The division of a run into pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RunShape {
    /// The universe of its fingerprints.
    pub universe: Universe,
    /// The number of pages that fingerprints are spread over.
    pub slot_pages: u64,
    /// The number of pages after those, for overflow.
    pub spare_pages: u64,
}

impl RunShape {
    /// Returns the shape of a run of `entries` fingerprints that are spread evenly over the universe, whose counts take
    /// `count_bytes` bytes: the sum of [`count_bytes`](super::count_bytes), or an estimate.
    ///
    /// If there are more, or they are not spread evenly, the writer may run out of pages: see
    /// [`widened`](Self::widened).
    #[must_use]
    pub fn for_entries(universe: Universe, entries: u64, count_bytes: u64) -> Self {
        let needed =
            SpaceNeeded { universe, entries: entries as f64, count_bits: count_bytes as f64 * 8.0 };
        let enough = least_up_to(0, 1, u64::MAX, |pages| needed.fits(pages));
        let enough = enough.expect("a run has fewer than 2^63 pages");
        Self::new(universe, enough, 1 + enough / 4096)
    }

    /// Creates a shape of `slot_pages` pages, limited by the universe's size, and spare pages after them.
    #[must_use]
    pub fn new(universe: Universe, slot_pages: u64, spare_pages: u64) -> Self {
        let slot_pages = Split::new(universe, slot_pages).quotients();
        Self { universe, slot_pages, spare_pages }
    }

    /// Returns a shape in which any `entries` fingerprints of the universe fit, however they are spread, whose counts
    /// take `count_bytes` bytes: as many spare pages as slot pages.
    #[must_use]
    pub fn for_any(universe: Universe, entries: u64, count_bytes: u64) -> Self {
        let shape = Self::for_entries(universe, entries, count_bytes);
        Self { spare_pages: shape.pages(), ..shape }
    }

    /// Returns the shape to try after [`Error::RunFull`]: twice as many pages, all of the new ones spare.
    #[must_use]
    pub fn widened(self) -> Self {
        Self { spare_pages: self.spare_pages + self.pages(), ..self }
    }

    /// The number of all pages, which is the number that the writer gets.
    #[must_use]
    pub const fn pages(&self) -> u64 {
        self.slot_pages + self.spare_pages
    }

    /// The split of fingerprints over the pages.
    #[must_use]
    pub fn split(&self) -> Split {
        Split::new(self.universe, self.slot_pages)
    }

    /// Rejects impossible numbers.
    ///
    /// # Errors
    /// [`Error::Config`].
    pub fn validate(&self) -> Result<()> {
        let can = self.split().quotients();
        if can != self.slot_pages {
            let size = self.universe.size();
            let found = self.slot_pages;
            let reason = format!("{found}; {size} fingerprints can be cut in {can} pages");
            return Err(Error::config("slot_pages", reason));
        }
        if self.slot_pages.checked_add(self.spare_pages).is_none() {
            return Err(Error::config("spare_pages", "more pages than can be numbered"));
        }
        Ok(())
    }
}

/// The space that some entries need.
struct SpaceNeeded {
    universe: Universe,
    entries: f64,
    count_bits: f64,
}

impl SpaceNeeded {
    /// Returns whether a page's share, with its variation, fits a page when there are `pages` pages.
    fn fits(&self, pages: u64) -> bool {
        let pages = pages as f64;
        let (entries, span) = (self.entries / pages, self.universe.size() as f64 / pages);
        if entries * 2.0 < 1.0 && self.count_bits / pages < 64.0 {
            return true;
        }
        let count_bits = self.count_bits / pages;
        let needed = |low_bits: i32| {
            let each = 1.0 + f64::from(low_bits);
            // The chance that an entry is on another page than this one.
            let elsewhere = 1.0 - 1.0 / pages;
            let variance = elsewhere * (entries * each * each + count_bits * COUNT_BITS);
            let mean = entries * each + span / f64::from(low_bits).exp2() + count_bits;
            mean + slack_deviations(entries) * variance.sqrt()
        };
        let least = (0..=56).map(needed).fold(f64::INFINITY, f64::min);
        least + ROUNDING_BITS <= (8 * SPACE_BYTES) as f64 && entries <= PAGE_ENTRIES_MAX as f64
    }
}
