//! The divisor of an experiment's size from the paper's.

use serde::Serialize;

use crate::{Error, Result};

/// The divisor of the size, and the seed of the run. Counts of super tables, entries and the drives' capacity
/// are divided; sizes of pages, buffers and entries, incarnations, bits per entry and the drives' times stay.
/// So a lookup queries as many filters and a flush writes as many bytes as in the paper.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Scale {
    times: u32,
    seed: u64,
}

impl Scale {
    /// The least divisor: 512 MiB of flash, which with its tape takes some 4 GiB of RAM here.
    pub const LEAST: u32 = 64;
    /// The greatest divisor: a table with two super tables, for the paper's 16,384.
    pub const MOST: u32 = 8192;
    /// The default divisor: 32 MiB of flash for the paper's 32 GiB: seconds for each experiment.
    pub const DEFAULT: u32 = 1024;

    /// The largest tables, with seed 1.
    pub(crate) const FULL: Self = Self { times: Self::LEAST, seed: 1 };

    /// Creates the scale of a table `times` times smaller than the paper's, and the seed of its keys.
    ///
    /// # Errors
    /// Fails with [`Error::Scale`] if `times` is no power of two from [`LEAST`](Self::LEAST) to
    /// [`MOST`](Self::MOST).
    pub fn new(times: u32, seed: u64) -> Result<Self> {
        if !times.is_power_of_two() || !(Self::LEAST..=Self::MOST).contains(&times) {
            return Err(Error::Scale { found: times, least: Self::LEAST, most: Self::MOST });
        }
        Ok(Self { times, seed })
    }

    /// Returns the divisor.
    #[must_use]
    pub const fn times(self) -> u32 {
        self.times
    }

    /// Returns the seed of everything random.
    #[must_use]
    pub const fn seed(self) -> u64 {
        self.seed
    }

    /// Returns a count of the paper at this scale, at least one.
    #[must_use]
    pub const fn of(self, papers: u64) -> u64 {
        let count = papers / self.times as u64;
        if count == 0 { 1 } else { count }
    }
}

impl Default for Scale {
    fn default() -> Self {
        Self { times: Self::DEFAULT, seed: 1 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_power_of_two_or_too_large_is_refused() {
        for wrong in [0, 3, 32, 16_384] {
            let text = Scale::new(wrong, 1).unwrap_err().to_string();
            assert!(text.contains("from 64 to 8192"), "{text}");
        }
        assert_eq!(Scale::new(1024, 1).unwrap().of(16_384), 16);
        assert_eq!(Scale::new(8192, 1).unwrap().of(1), 1);
    }
}
