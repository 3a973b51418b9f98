//! The shape of a super table's filters: kind, sizes, cost, and rate.

use super::{bloom, fuse, wide};
use crate::{Error, Result};

/// The maximum number of words of 64 columns in a row.
pub const WORDS_MAX: usize = 4;
/// The maximum number of keys of one incarnation.
pub const ENTRIES_MAX: u32 = 1 << 24;
/// The maximum number of bits of a fuse fingerprint.
pub const BITS_PER_SLOT_MAX: u32 = 24;
/// The maximum number of hash functions of a Bloom filter.
pub const HASHES_MAX: u32 = 32;

/// The kind of filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilterKind {
    /// The paper's: 1.44 `r` bits per entry for a rate of 2^-`r`; accepts every key.
    Bloom,
    /// Bumped fuse filter, beyond the paper: 1.06 `r` bits per entry; returns 1-3 % of its keys when full.
    Fuse,
}

/// The shape of one column (kind and sizes) and of a row (words). It determines the position of every bit, so it is
/// stored with the table, as [`ShapeParts`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FilterShape {
    kind: FilterKind,
    parts: ShapeParts,
}

/// A [`FilterShape`] as plain numbers, for a file or a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShapeParts {
    /// 0 for Bloom, 1 for fuse.
    pub kind: u32,
    /// The number of keys that one column is made for.
    pub entries_max: u32,
    /// Slots per column; for Bloom, its bits.
    pub slots: u32,
    /// Bits per slot: the fingerprint's; 1 for Bloom.
    pub bits_per_slot: u32,
    /// Rows or slots that a key covers: 4 for fuse.
    pub hashes: u32,
    /// Slots in a fuse segment; 0 for Bloom.
    pub segment: u32,
    /// Words of 64 columns in a row.
    pub words: u32,
}

impl FilterKind {
    pub(in crate::bufferhash) const WORDS: [(&'static str, Self); 2] =
        [("bloom", Self::Bloom), ("fuse", Self::Fuse)];
}

impl FilterShape {
    /// The bits that it was made with: for each entry of a Bloom filter, or of a fingerprint of a fuse filter.
    #[must_use]
    pub fn bits(&self) -> f64 {
        match self.kind {
            FilterKind::Bloom => f64::from(self.parts.slots) / f64::from(self.parts.entries_max),
            FilterKind::Fuse => self.parts.bits_per_slot.into(),
        }
    }

    /// Creates the shape of Bloom filters with `bits_per_entry`, with the best number of hash functions (paper, section
    /// 6.2).
    ///
    /// # Errors
    /// [`Error::Config`] for a number out of its range: `bits_per_entry` must be 0.5 to 64.
    pub fn bloom(entries_max: u32, bits_per_entry: f64, words: u32) -> Result<Self> {
        if !(0.5..=64.0).contains(&bits_per_entry) {
            let reason = format!("{bits_per_entry} bits per entry; expected 0.5 to 64");
            return Err(Error::Config { field: "filter bits", reason });
        }
        check("filter entries", entries_max, 1, ENTRIES_MAX)?;
        let slots = (f64::from(entries_max) * bits_per_entry).ceil() as u32;
        let best = f64::from(slots) / f64::from(entries_max) * std::f64::consts::LN_2;
        let hashes = (best.round() as u32).clamp(1, HASHES_MAX);
        let parts =
            ShapeParts { kind: 0, entries_max, slots, bits_per_slot: 1, hashes, segment: 0, words };
        Self::from_parts(parts)
    }

    /// Creates the shape of fuse filters with fingerprints of `fingerprint_bits`.
    ///
    /// # Errors
    /// [`Error::Config`] for a number out of its range.
    pub fn fuse(entries_max: u32, fingerprint_bits: u32, words: u32) -> Result<Self> {
        check("filter entries", entries_max, 1, ENTRIES_MAX)?;
        let (slots, segment) = fuse::geometry(entries_max);
        let bits_per_slot = fingerprint_bits;
        let hashes = fuse::ARITY;
        Self::from_parts(ShapeParts {
            kind: 1,
            entries_max,
            slots,
            bits_per_slot,
            hashes,
            segment,
            words,
        })
    }

    /// Creates the shape with these numbers, as read from a file.
    ///
    /// # Errors
    /// [`Error::Config`] naming the first number that is out of its range.
    pub fn from_parts(parts: ShapeParts) -> Result<Self> {
        check("filter kind", parts.kind, 0, 1)?;
        check("filter entries", parts.entries_max, 1, ENTRIES_MAX)?;
        check("filter words", parts.words, 1, 4)?;
        if parts.kind == 0 {
            check("filter slots", parts.slots, 1, 64 * ENTRIES_MAX)?;
            check("filter bits per slot", parts.bits_per_slot, 1, 1)?;
            check("filter hashes", parts.hashes, 1, HASHES_MAX)?;
            check("filter segment", parts.segment, 0, 0)?;
            return Ok(Self { kind: FilterKind::Bloom, parts });
        }
        check("filter segment", parts.segment, fuse::SEGMENT_MIN, fuse::SEGMENT_MAX)?;
        check("filter slots", parts.slots, 2 * fuse::ARITY * parts.segment, 4 * ENTRIES_MAX)?;
        check("filter bits per slot", parts.bits_per_slot, 1, BITS_PER_SLOT_MAX)?;
        check("filter hashes", parts.hashes, fuse::ARITY, fuse::ARITY)?;
        Ok(Self { kind: FilterKind::Fuse, parts })
    }

    /// Returns the numbers to store.
    #[must_use]
    pub fn parts(&self) -> ShapeParts {
        self.parts
    }

    /// The kind of filter.
    #[must_use]
    pub fn kind(&self) -> FilterKind {
        self.kind
    }

    /// The number of keys that one column is made for.
    #[must_use]
    pub fn entries_max(&self) -> u32 {
        self.parts.entries_max
    }

    /// Slots per column.
    #[must_use]
    pub fn slots(&self) -> u32 {
        self.parts.slots
    }

    /// Bits per slot: 1 for Bloom.
    #[must_use]
    pub fn bits_per_slot(&self) -> u32 {
        self.parts.bits_per_slot
    }

    /// The number of slots that a key covers.
    #[must_use]
    pub fn hashes(&self) -> u32 {
        self.parts.hashes
    }

    /// Slots in a segment of a fuse filter; 0 for Bloom.
    #[must_use]
    pub fn segment(&self) -> u32 {
        self.parts.segment
    }

    /// Words of 64 columns in a row.
    #[must_use]
    pub fn words(&self) -> u32 {
        self.parts.words
    }

    /// Columns of a row.
    #[must_use]
    pub fn columns(&self) -> usize {
        64 * wide(self.words())
    }

    /// Bits of one column, the number of rows: what an incarnation stores on flash.
    #[must_use]
    pub fn column_bits(&self) -> usize {
        wide(self.slots()) * wide(self.bits_per_slot())
    }

    /// Words of one packed column, as [`super::Slices::write_column`] takes it.
    #[must_use]
    pub fn column_words(&self) -> usize {
        self.column_bits().div_ceil(64)
    }

    /// Returns the RAM of one super table's filters with all columns, live or not, in bytes: the most that they take.
    #[must_use]
    pub fn ram_bytes(&self) -> usize {
        self.column_bits() * wide(self.words()) * 8
    }

    /// Returns the probability that one column with `entries` keys gives a false positive.
    #[must_use]
    pub fn rate(&self, entries: u64) -> f64 {
        match self.kind {
            FilterKind::Bloom => bloom::rate(self, entries),
            FilterKind::Fuse => f64::from(self.bits_per_slot()).exp2().recip(),
        }
    }

    /// Returns the largest average share of its keys that a column for `entries` keys bumps; 0 for Bloom. It applies to
    /// shapes from [`FilterShape::fuse`] and up to `entries_max` keys.
    #[must_use]
    pub fn bumped_share(&self, entries: u64) -> f64 {
        match self.kind {
            FilterKind::Bloom => 0.0,
            FilterKind::Fuse => fuse::bumped_share(
                self.entries_max(),
                entries as f64 / f64::from(self.entries_max()),
            ),
        }
    }
}

/// Fails for a number outside `least..=most`.
fn check(field: &'static str, found: u32, least: u32, most: u32) -> Result<()> {
    if (least..=most).contains(&found) {
        return Ok(());
    }
    Err(Error::Config { field, reason: format!("{found}; expected {least} to {most}") })
}
