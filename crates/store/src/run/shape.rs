//! How many pages a run gets for its fingerprints.
//!
//! Fingerprints are spread evenly, so a page's share of them varies as chance has it, by the square root of
//! what it is on average. A page gets as much slack as makes one lookup in 10,000 or fewer read a second
//! page: what does not fit stands on the page behind, and a page that is never too full wastes flash.

use super::page::{PAGE_ENTRIES_MAX, ROOM_BYTES};
use crate::fingerprint::{Split, Universe};
use crate::{Error, Result};

/// The deviations of a page's share that fit it, by how many entries it has on average.
///
/// Of what varies normally, G(z) deviations exceed z deviations on average: 0.0041 for z = 2.27. So a page
/// of 3200 entries, 57 of which are a deviation, leaves 0.0041 * 57 = 0.23 over: 73 in a million. Fewer
/// entries vary more for their number; this line follows that closely from 500 to 16,000.
fn slack_deviations(entries: f64) -> f64 {
    2.5 - 0.1835 * (entries.clamp(100.0, 20_000.0) / 940.0).ln()
}

/// Bits that the rounding of a page's parts to bytes and words takes at most.
const ROUNDING_BITS: f64 = 7.0 + 63.0;

/// Bits of one count that is not 1, where counts are few: what their number varies by is counted in these.
const COUNT_BITS: f64 = 32.0;

/// How a run is cut in pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RunShape {
    /// What its fingerprints are taken from.
    pub universe: Universe,
    /// Pages that fingerprints are spread over.
    pub slot_pages: u64,
    /// Pages behind those, for what does not fit.
    pub spare_pages: u64,
}

impl RunShape {
    /// The shape of a run of `entries` fingerprints that are spread evenly over the universe, whose counts
    /// take `count_bytes` bytes: the sum of [`count_bytes`](super::count_bytes), or an estimate.
    ///
    /// Where there are more or they are not spread, the writer may run out of pages: see
    /// [`widened`](Self::widened).
    #[must_use]
    pub fn for_entries(universe: Universe, entries: u64, count_bytes: u64) -> Self {
        let need = Need { universe, entries: entries as f64, count_bits: count_bytes as f64 * 8.0 };
        let (mut too_few, mut enough) = (0, 1_u64);
        while !need.fits(enough) {
            (too_few, enough) = (enough, enough * 2);
        }
        while enough - too_few > 1 {
            let middle = too_few.midpoint(enough);
            if need.fits(middle) {
                enough = middle;
            } else {
                too_few = middle;
            }
        }
        Self::new(universe, enough, 1 + enough / 4096)
    }

    /// `slot_pages` pages, at most as many as the universe can be cut in, and spares behind them.
    #[must_use]
    pub fn new(universe: Universe, slot_pages: u64, spare_pages: u64) -> Self {
        let slot_pages = Split::new(universe, slot_pages).quotients();
        Self { universe, slot_pages, spare_pages }
    }

    /// A shape in which any `entries` fingerprints of the universe fit, however they are spread, whose counts
    /// take `count_bytes` bytes: as many spare pages as others.
    #[must_use]
    pub fn for_any(universe: Universe, entries: u64, count_bytes: u64) -> Self {
        let shape = Self::for_entries(universe, entries, count_bytes);
        Self { spare_pages: shape.pages(), ..shape }
    }

    /// The shape to try next after [`Error::RunFull`]: twice as many pages, all of the new ones spare.
    #[must_use]
    pub fn widened(self) -> Self {
        Self { spare_pages: self.spare_pages + self.pages(), ..self }
    }

    /// All pages: what the writer is given.
    #[must_use]
    pub const fn pages(&self) -> u64 {
        self.slot_pages + self.spare_pages
    }

    /// Which fingerprints stand on which page.
    #[must_use]
    pub fn split(&self) -> Split {
        Split::new(self.universe, self.slot_pages)
    }

    /// Refuses what no run has.
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

/// What a run of some entries takes.
struct Need {
    universe: Universe,
    entries: f64,
    count_bits: f64,
}

impl Need {
    /// Whether a page's share, and what it varies by, fits it, when there are that many pages.
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
        least + ROUNDING_BITS <= (8 * ROOM_BYTES) as f64 && entries <= PAGE_ENTRIES_MAX as f64
    }
}
