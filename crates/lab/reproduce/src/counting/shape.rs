//! The paper's data sets, and the sizes of its tables.

use crate::Scale;

/// Pages of a block (3.3).
pub const BLOCK_PAGES: u64 = 128;
/// Pairs of integers, 8 bytes, in a page of 4 KiB.
const PAGE_ENTRIES: u64 = 512;

/// A stream of tokens, and the table that counts them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DataSet {
    /// Its name in the paper.
    pub name: &'static str,
    /// The number of tokens.
    pub tokens: u64,
    /// The number of different tokens.
    pub distinct: u64,
    /// Blocks of the data segment.
    pub blocks: u64,
    /// Tokens before the first query.
    pub tokens_before_queries: u64,
    /// The number of queries in a million whose key is in the table.
    pub found: u64,
}

impl DataSet {
    /// 100,000 articles of Wikipedia.
    pub const WIKI: Self = Self {
        name: "Wiki",
        tokens: 136_749_203,
        distinct: 9_773_143,
        blocks: 205,
        tokens_before_queries: 35_000_000,
        found: 933_139,
    };
    /// MemeTracker, August 2008.
    pub const MEME: Self = Self {
        name: "Meme",
        tokens: 402_005_270,
        distinct: 17_005_975,
        blocks: 410,
        tokens_before_queries: 130_000_000,
        found: 959_731,
    };

    /// Returns the data set and its table at a scale.
    #[must_use]
    pub fn at(self, scale: Scale) -> Shape {
        let divisor = divisor(scale);
        Shape {
            tokens: self.tokens / divisor,
            distinct: self.distinct / divisor,
            tokens_before_queries: self.tokens_before_queries / divisor,
            queries: 1_000_000 / divisor,
            blocks: self.blocks,
            page_entries: PAGE_ENTRIES / divisor,
        }
    }
}

impl DataSet {
    /// Returns its table without a scale: with as many entries of a page as give each different token the
    /// entries that Wiki's have.
    #[must_use]
    pub fn sized(self) -> Shape {
        let wiki = Self::WIKI.at(Scale::FULL);
        let each = wiki.entries() as f64 / Self::WIKI.distinct as f64;
        let pages = self.blocks * BLOCK_PAGES;
        let page_entries = (self.distinct as f64 * each / pages as f64).ceil().max(1.0);
        Shape {
            tokens: self.tokens,
            distinct: self.distinct,
            tokens_before_queries: self.tokens_before_queries,
            queries: self.tokens * 1_000_000 / Self::WIKI.tokens,
            blocks: self.blocks,
            page_entries: page_entries as u64,
        }
    }
}

/// Returns the divisor of entries and tokens: the table has 100 MB only, so the largest scale is the paper's
/// own size.
#[must_use]
pub const fn divisor(scale: Scale) -> u64 {
    (scale.times() / Scale::LEAST) as u64
}

/// The sizes at a scale. Blocks and their pages are the paper's at any scale, entries of a page are not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shape {
    /// The number of tokens.
    pub tokens: u64,
    /// The number of different tokens.
    pub distinct: u64,
    /// Tokens before the first query.
    pub tokens_before_queries: u64,
    /// Queries after them.
    pub queries: u64,
    /// Blocks of the data segment.
    pub blocks: u64,
    /// Entries of a page, the paper's `g`.
    pub page_entries: u64,
}

impl Shape {
    /// Returns the entries of a block, the paper's `r` in entries.
    #[must_use]
    pub const fn block_entries(&self) -> u64 {
        self.page_entries * BLOCK_PAGES
    }

    /// Returns the entries of the data segment, the paper's `q`.
    #[must_use]
    pub const fn entries(&self) -> u64 {
        self.block_entries() * self.blocks
    }

    /// Returns the entries of a RAM buffer of `percent` percent of the data segment.
    #[must_use]
    pub const fn buffer_entries(&self, percent: u64) -> u64 {
        self.entries() * percent / 100
    }

    /// Returns the slot `g(x)` of a key, whose bits are random: `(x * q) >> 64`.
    #[must_use]
    pub fn slot(&self, key: u64) -> u64 {
        ((u128::from(key) * u128::from(self.entries())) >> 64) as u64
    }

    /// Returns the block of a key, `s(x) = g(x) div r`.
    #[must_use]
    pub fn block(&self, key: u64) -> u64 {
        self.slot(key) / self.block_entries()
    }
}

/// The size of a change segment, as a share of the data segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Change {
    /// The share as the paper writes it.
    pub name: &'static str,
    /// Data blocks for each block of it, the paper's `k`.
    pub data_blocks: u64,
}

impl Change {
    /// The sizes of Table 2.
    pub const ALL: [Self; 3] =
        [Self { name: "50 %", data_blocks: 2 }, Self { name: "25 %", data_blocks: 4 }, Self::SMALL];
    /// An eighth, the size that most figures fix.
    pub const SMALL: Self = Self { name: "12.5 %", data_blocks: 8 };

    /// Returns its blocks.
    #[must_use]
    pub const fn blocks(self, shape: &Shape) -> u64 {
        shape.blocks.div_ceil(self.data_blocks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_scale_is_the_papers_own_size() {
        let shape = DataSet::WIKI.at(Scale::new(Scale::LEAST, 1).unwrap());
        assert_eq!((shape.tokens, shape.block_entries()), (136_749_203, 65_536));
        assert_eq!(DataSet::WIKI.sized(), shape);
        // 100 MB in blocks of 512 KiB; three quarters of it are in use at the end.
        assert_eq!(shape.entries(), 13_434_880);
        assert_eq!(shape.buffer_entries(1), 134_348);
        assert_eq!(Change::ALL.map(|change| change.blocks(&shape)), [103, 52, 26]);
    }

    #[test]
    fn a_slot_is_in_the_block_of_its_key() {
        let shape = DataSet::WIKI.at(Scale::default());
        assert_eq!((shape.page_entries, shape.blocks), (32, 205));
        assert_eq!((shape.slot(0), shape.slot(u64::MAX)), (0, shape.entries() - 1));
        assert_eq!((shape.block(0), shape.block(u64::MAX)), (0, 204));
    }
}
