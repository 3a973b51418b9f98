//! The choice and the size of the table for given requirements, as used by the command and the applications.

use super::stated::Stated;
use crate::large::{TABLE_KEY_BYTES, TABLE_VALUE_BYTES, ValuesConfig};
use crate::{Error, Policy, Prediction, Requirements, Result};

/// The entries for which the structure of a table that grows is chosen if none are stated.
pub const ENTRIES_GROWING: u64 = 100_000;

/// The entries that a table that grows begins with.
const ENTRIES_FIRST: u64 = 1000;

/// The default for the bytes of a key and its value of any size, including a record's overhead.
pub(super) const RECORD_BYTES: u64 = 256;

/// The table to create, and the reasons.
#[derive(Clone, Debug)]
pub struct Sizing {
    /// The reasons for this structure, if there was a choice.
    pub reasons: Vec<String>,
    /// The table and its costs.
    pub prediction: Prediction,
}

impl Requirements {
    /// Sizes a table of this kind, or of the kind that suits best.
    ///
    /// # Errors
    /// As [`advise_one`](Self::advise_one) and [`advise`](Self::advise).
    pub fn size(&self, kind: Option<&str>) -> Result<Sizing> {
        if let Some(kind) = kind {
            return Ok(Sizing { reasons: Vec::new(), prediction: self.advise_one(kind)? });
        }
        let advice = self.advise()?;
        Ok(Sizing { reasons: advice.reasons(), prediction: advice.into_chosen() })
    }

    /// Sizes a table that grows and for which no entries are stated: of this kind, or of the kind that suits best once
    /// it has grown. It begins small.
    ///
    /// # Errors
    /// As [`size`](Self::size).
    pub fn size_first(&self, kind: Option<&str>) -> Result<Sizing> {
        let grown = Self { entries: ENTRIES_GROWING, ..self.clone() }.size(kind)?;
        let kind = grown.prediction.config.kind();
        let prediction = Self { entries: ENTRIES_FIRST, ..self.clone() }.advise_one(kind)?;
        Ok(Sizing { prediction, ..grown })
    }

    /// Sizes a table for as many entries as keep the limits, and at most for these.
    ///
    /// # Errors
    /// As [`size`](Self::size) for one entry.
    pub fn size_within(&self, kind: Option<&str>) -> Result<Sizing> {
        let fits = |entries| Self { entries, ..self.clone() }.size(kind);
        if let Ok(all) = fits(self.entries) {
            return Ok(all);
        }
        let (mut low, mut high) = (1, self.entries);
        let mut best = fits(low)?;
        // Close enough: within one part in 64.
        while high - low > high / 64 + 1 {
            let middle = low + (high - low) / 2;
            match fits(middle) {
                Ok(more) => (low, best) = (middle, more),
                Err(_) => high = middle,
            }
        }
        Ok(best)
    }

    /// Sizes the value log for keys and values of any size: for `bytes` of them, or for the usual length of its
    /// entries.
    ///
    /// # Errors
    /// [`Error::Config`] for a policy that a value log does not have.
    pub fn values(&self, bytes: Option<u64>) -> Result<ValuesConfig> {
        values_for(bytes, self.entries, self.policy)
    }

    /// Returns the requirements of the table that locates keys and values of any size in this log: that table's widths,
    /// within the RAM that the log leaves.
    #[must_use]
    pub fn over(&self, values: &ValuesConfig) -> Self {
        let ram_bytes = self.ram_bytes.map(|most| most.saturating_sub(values.ram_bytes()));
        let (key_bytes, value_bytes) = (TABLE_KEY_BYTES as u32, TABLE_VALUE_BYTES as u32);
        Self { key_bytes, value_bytes, ram_bytes, ..self.clone() }
    }
}

/// Sizes the value log for `bytes` of keys and values, or for the usual length of these entries. A log that grows
/// begins with the least size and takes flash when it needs it.
///
/// # Errors
/// [`Error::Config`] for a policy that a value log does not have.
pub(super) fn values_for(bytes: Option<u64>, entries: u64, policy: Policy) -> Result<ValuesConfig> {
    let when_full = policy.when_full().ok_or_else(|| {
        let reason = format!(
            "{policy}: keys and values of any size take grow, reject or fifo; a table of fixed widths takes the others"
        );
        Error::Config { field: "policy", reason }
    })?;
    let usual = if policy == Policy::Grow { 0 } else { entries.saturating_mul(RECORD_BYTES) };
    Ok(ValuesConfig::holding(bytes.unwrap_or(usual), when_full))
}

impl Sizing {
    /// Replaces derived parameters by those that were stated. Returns the RAM of the table with the entries that were
    /// required.
    ///
    /// # Errors
    /// As [`Stated::on`].
    pub fn state(&mut self, stated: &Stated) -> Result<u64> {
        let it = &mut self.prediction;
        let config = stated.on(&it.config)?;
        if config == it.config {
            return Ok(it.ram_bytes());
        }
        let ram_bytes = config.ram_bytes_with(it.requirements.entries).unwrap_or_default();
        it.entries_capacity = config.describe().entries_capacity;
        it.config = config;
        Ok(ram_bytes + it.optional_filter_bytes)
    }

    /// The number of entries that it holds, if fewer than were required.
    #[must_use]
    pub fn too_few(&self) -> Option<u64> {
        let Prediction { entries_capacity, requirements, .. } = &self.prediction;
        Some(*entries_capacity).filter(|holds| *holds < requirements.entries)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Policy, registry};

    fn requirements(policy: Policy) -> Requirements {
        let policy = Requirements { policy, ..Requirements::new(256_000_000, 8, 8) };
        policy.ram(600 << 20)
    }

    #[test]
    fn what_was_named_is_made_whatever_would_suit_better() {
        for (row, _) in registry::tables() {
            let Ok(choice) = requirements(Policy::Reject).size(Some(row.kind)) else {
                continue; // It is for few entries.
            };
            let config = &choice.prediction.config;
            assert_eq!((config.kind(), choice.reasons), (row.kind, Vec::new()));
            assert_eq!(config.describe().when_full, "reject");
            assert!(choice.prediction.entries_capacity >= 256_000_000);
        }
    }

    #[test]
    fn the_advisors_choice_comes_with_its_reasons() {
        let mut small = requirements(Policy::Reject);
        small.ram_bytes = Some(160 << 20);
        small.load.lookups_per_s = 1e4;
        let choice = small.size(None).unwrap();
        assert_eq!(choice.prediction.config.kind(), "slicehash");
        assert!(choice.reasons.len() > 1, "{:?}", choice.reasons);
    }
}
