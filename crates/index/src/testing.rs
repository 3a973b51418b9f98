//! Configurations for tests and decoders for fuzzing. Every structure has them in its row of the
//! [`registry`](crate::registry). Only builds with the cargo feature `testing` have this module.
//!
//! A harness asks for variant 0, 1, 2, ... of a row and combines it with what every structure shares
//! (durability, volume, faults). It then checks the law that comes with the configuration.
//!
//! ```
//! use nandex::registry;
//! use nandex::testing::TableRequest;
//!
//! for (row, table) in registry::tables() {
//!     for variant in 0..table.testing.variants {
//!         let made = (table.testing.config)(&TableRequest { variant, ..TableRequest::default() });
//!         assert_eq!(made.config.kind(), row.kind);
//!         made.config.validate().unwrap();
//!     }
//! }
//! ```

use std::fmt;

use crate::OpenOptions;
use crate::any::AnyConfig;

/// A function to fuzz: reads bytes that may be anything, and panics if an answer breaks a law.
#[derive(Clone, Copy, Debug)]
pub struct Decoder {
    /// What it decodes, such as `entry page`.
    pub name: &'static str,
    /// Decodes, and checks what was decoded.
    pub run: fn(&[u8]),
}

/// The configurations of a table for tests.
#[derive(Clone, Copy)]
pub struct TableTests {
    /// Variants 0 up to this number differ in policy or in their parts.
    pub variants: u64,
    /// A small configuration: buffers of a page or two, so that a few hundred entries fill one.
    pub config: fn(&TableRequest) -> TestTable,
}

/// What a harness asks of a table's configuration. The variant decides the rest.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TableRequest {
    /// Which of the structure's variants.
    pub variant: u64,
    /// Bytes of a key.
    pub key_bytes: usize,
    /// Bytes of a value.
    pub value_bytes: usize,
    /// Partitions, each with a write buffer: a power of two.
    pub partitions: u32,
    /// Pages of a write buffer.
    pub buffer_pages: u32,
    /// Different keys that fit; `None` for a table with so little flash that its policy for a full table
    /// applies after a few buffers.
    pub keys: Option<u64>,
    /// RAM for a cache of entries. A table that cannot have one has none.
    pub cache_bytes: u64,
    /// Background threads of the structure; with 0 the calling thread does everything.
    pub threads: usize,
}

impl Default for TableRequest {
    /// Variant 0 for 8 + 8 bytes: four partitions of two pages, space for 3,320 keys, one thread.
    fn default() -> Self {
        Self {
            variant: 0,
            key_bytes: 8,
            value_bytes: 8,
            partitions: 4,
            buffer_pages: 2,
            keys: Some(4 * 830),
            cache_bytes: 0,
            threads: 1,
        }
    }
}

/// A table's configuration for tests, and the law that it must keep.
#[derive(Clone, Debug)]
pub struct TestTable {
    /// Structure, policy and special settings, for messages.
    pub label: String,
    /// What to create it with.
    pub config: AnyConfig,
    /// What to create and open it with.
    pub options: OpenOptions,
    /// Entries with which one write buffer is full, at most.
    pub buffer_entries: u64,
    /// Which entries it must still have.
    pub retention: Retention,
}

/// Which entries a table must still have, of those that were put and not removed since.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Retention {
    /// All of them.
    All,
    /// All that it has taken; a full table refuses more with [`Error::Full`](crate::Error::Full).
    Refuses,
    /// At least this many of the newest puts.
    Newest(u64),
    /// At least this many of the newest puts and found lookups.
    NewestUsed(u64),
    /// All of them, unless [`TableStats::forced_evictions`](crate::TableStats::forced_evictions) counts some;
    /// then this many of the newest puts.
    AllUnlessForced(u64),
}

/// The configurations of a filter for tests.
#[derive(Clone, Copy)]
pub struct FilterTests {
    /// Variants 0 up to this number differ.
    pub variants: u64,
    /// A small configuration, with buffers that a few hundred keys fill, for this many background threads.
    pub config: fn(variant: u64, threads: usize) -> TestFilter,
}

/// A filter's configuration for tests.
#[derive(Clone, Debug)]
pub struct TestFilter {
    /// Structure and special settings, for messages.
    pub label: String,
    /// What to create it with.
    pub config: AnyConfig,
    /// What to create and open it with.
    pub options: OpenOptions,
    /// The number of different fingerprints.
    pub universe: u64,
    /// Is it made for counting?
    pub counts: bool,
    /// The width of its keys, at least 8 bytes; `None` if it takes keys of any width.
    pub key_bytes: Option<usize>,
    /// How many of the most recent inserts it must still have; `None` for all.
    pub window: Option<u64>,
}

/// The configurations of an index of neighbours for tests.
#[derive(Clone, Copy)]
pub struct NeighborsTests {
    /// Variants 0 up to this number differ.
    pub variants: u64,
    /// A small configuration, with buffers that a few dozen documents fill, for this many background threads. It takes
    /// [`documents`](TestNeighbors::documents) of them.
    pub config: fn(variant: u64, threads: usize) -> TestNeighbors,
}

/// A configuration of an index of neighbours for tests.
#[derive(Clone, Debug)]
pub struct TestNeighbors {
    /// Structure and special settings, for messages.
    pub label: String,
    /// What to create it with.
    pub config: AnyConfig,
    /// What to create and open it with.
    pub options: OpenOptions,
    /// Hash tables.
    pub tables: u32,
    /// Documents that it holds without evicting or refusing any.
    pub documents: u64,
    /// Ids that a bucket holds; of more it keeps the oldest.
    pub bucket_ids_max: u32,
    /// Does it save a filter when it is closed, if there is space?
    pub has_filter: bool,
}

impl fmt::Debug for NeighborsTests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NeighborsTests").field("variants", &self.variants).finish_non_exhaustive()
    }
}

impl fmt::Debug for TableTests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TableTests").field("variants", &self.variants).finish_non_exhaustive()
    }
}

impl fmt::Debug for FilterTests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FilterTests").field("variants", &self.variants).finish_non_exhaustive()
    }
}
