//! One configuration of an index of neighbours, of minimum size, and the buckets of its documents.

use nandex::testing::TestNeighbors;
use nandex::{Durability, Threads, VolumeOptions};
use nandex_baseline::registry::{self, NeighborsRow, Row};
use nandex_sim::workload::SplitMix64;

use crate::contract::pick;
use crate::table::DURABILITIES;

/// The maximum number of documents that share a bucket.
const SHARE_MAX: u64 = 5;

/// A configuration.
#[derive(Clone, Copy, Debug)]
pub struct NeighborsSetup {
    /// The durability of updates.
    pub durability: Durability,
    row: &'static NeighborsRow,
    variant: u64,
    log_pages: u64,
    threads: Threads,
    tables: u32,
    documents: u64,
    /// The number of documents that share a bucket: at most the bucket's limit.
    share: u64,
}

impl NeighborsSetup {
    /// Creates an index of this row: consecutive numbers take each variant in turn, and each durability.
    #[must_use]
    pub fn registered(row: &'static NeighborsRow, number: u64) -> Self {
        let mut rng = SplitMix64::stream(number, 1);
        let variant = number % row.testing.variants;
        let made = (row.testing.config)(variant, 0);
        Self {
            durability: DURABILITIES[(number / row.testing.variants % 4) as usize],
            row,
            variant,
            log_pages: pick(&mut rng, &[8, 16, 40]),
            threads: Threads::Inline,
            tables: made.tables,
            documents: 120,
            share: SHARE_MAX.min(made.bucket_ids_max.into()),
        }
    }

    /// Returns the configuration and the options to open it with.
    pub(super) fn made(&self) -> TestNeighbors {
        let threads = if self.threads == Threads::Inline { 0 } else { 1 };
        (self.row.testing.config)(self.variant, threads)
    }

    /// Returns the structure and its kind, for lists.
    #[must_use]
    pub fn policy(&self) -> String {
        self.made().label
    }

    /// Returns the number of documents: fewer than its capacity, and enough to fill buffers repeatedly.
    #[must_use]
    pub const fn documents(&self) -> u64 {
        self.documents
    }

    /// Returns the configuration with `documents` documents, and with another durability.
    #[must_use]
    pub const fn with_documents(self, documents: u64, durability: Durability) -> Self {
        Self { documents, durability, ..self }
    }

    /// Returns the number of its hash tables.
    #[must_use]
    pub const fn tables(&self) -> u32 {
        self.tables
    }

    /// Returns the bucket of a document in a table, which a few neighbours share, different ones in each
    /// table.
    const fn bucket(&self, document: u64, table: u32) -> u64 {
        (document + table as u64) / self.share
    }

    /// Returns whether two documents share a bucket.
    #[must_use]
    pub fn is_shared(&self, one: u64, other: u64) -> bool {
        (0..self.tables).any(|table| self.bucket(one, table) == self.bucket(other, table))
    }

    /// Returns the bucket key of a document in a table.
    pub(super) const fn key(&self, document: u64, table: u32) -> u64 {
        let bucket = self.bucket(document, table) << 8 | table as u64;
        bucket.wrapping_mul(0x9E37_79B9_7F4A_7C15)
    }

    /// Returns all bucket keys of a document.
    pub fn keys(&self, document: u64) -> impl Iterator<Item = u64> {
        let setup = *self;
        (0..self.tables).map(move |table| setup.key(document, table))
    }

    /// Returns the row that has the bucket of a document in this table alone.
    pub(super) fn keys_of_one(&self, document: u64, only: u32) -> impl Iterator<Item = u64> {
        let setup = *self;
        let stranger = move |table: u32| 1 << 63 | u64::from(table) << 40 | document;
        (0..self.tables).map(move |table| {
            if table == only { setup.key(document, table) } else { stranger(table) }
        })
    }

    /// Returns the configuration with a thread for merges.
    #[must_use]
    pub const fn threaded(self) -> Self {
        Self { threads: Threads::Background, ..self }
    }

    /// Returns the configuration without background threads.
    #[must_use]
    pub const fn inline(self) -> Self {
        Self { threads: Threads::Inline, ..self }
    }

    /// Returns the options for creating the volume.
    pub(super) fn volume(&self) -> VolumeOptions {
        let page_bytes = nandex::raw::device::PAGE_BYTES;
        VolumeOptions {
            log_bytes: self.log_pages * page_bytes as u64,
            log_block_bytes: page_bytes,
            durability: self.durability,
            threads: self.threads,
            volume_id: Some(7),
            ..VolumeOptions::tiny()
        }
    }
}

/// Returns the rows of indexes of neighbours.
pub fn further() -> impl Iterator<Item = (&'static Row, &'static NeighborsRow)> {
    registry::neighbors()
}
