//! Configurations for tests and decoders for fuzzing, which every structure has in its row of the
//! [`registry`](crate::registry). Only builds with the cargo feature `testing` have this module.
//!
//! A harness requests variant 0, 1, 2, ... of a row and combines it with settings common to all structures (durability,
//! volume, faults). It then checks the law that comes with the configuration.
//!
//! ```
//! use nandex::raw::registry;
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

use std::collections::HashMap;
use std::fmt;

use crate::any::AnyConfig;
use crate::{OpenOptions, Result, Table, Value};

/// A function to fuzz: it decodes untrusted bytes, and panics if an answer breaks a law.
#[derive(Clone, Copy, Debug)]
pub struct Decoder {
    /// The name of what it decodes, such as `entry page`.
    pub name: &'static str,
    /// Decodes, and checks the result.
    pub run: fn(&[u8]),
}

/// The configurations of a table for tests.
#[derive(Clone, Copy)]
pub struct TableTests {
    /// The number of variants; they differ in policy or in their parts.
    pub variants: u64,
    /// A small configuration: buffers of a page or two, so that a few hundred entries fill one.
    pub config: fn(&TableRequest) -> TestTable,
}

impl TableTests {
    /// The configurations of a structure that has none for tests.
    pub const NONE: Self =
        Self { variants: 0, config: |_| panic!("there are no variants to ask for") };
}

/// A harness's request for a table's configuration. The variant determines the rest.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TableRequest {
    /// The number of the structure's variant.
    pub variant: u64,
    /// Bytes of a key.
    pub key_bytes: usize,
    /// Bytes of a value.
    pub value_bytes: usize,
    /// Partitions, each with a write buffer: a power of two.
    pub partitions: u32,
    /// Pages of a write buffer.
    pub buffer_pages: u32,
    /// The number of different keys that fit; `None` for a table with so little flash that its policy for a full table
    /// applies after a few buffers.
    pub keys: Option<u64>,
    /// RAM for a cache of entries. A table that cannot have a cache ignores it.
    pub cache_bytes: u64,
    /// Background threads of the structure; with 0 the calling thread does everything.
    pub threads: usize,
}

impl Default for TableRequest {
    /// Returns variant 0 for 8 + 8 bytes: four partitions of two pages, space for 3,320 keys, one thread.
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
    /// The configuration to create it with.
    pub config: AnyConfig,
    /// The options to create and open it with.
    pub options: OpenOptions,
    /// The maximum number of entries with which one write buffer is full.
    pub buffer_entries: u64,
    /// The entries that it must still have.
    pub retention: Retention,
}

/// The entries that a table must still have, of those that were put and not removed since.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Retention {
    /// The table must still have all entries.
    All,
    /// All that it has accepted; a full table rejects more with [`Error::Full`](crate::Error::Full).
    Refuses,
    /// At least this many of the newest puts.
    Newest(u64),
    /// At least this many of the newest puts and found lookups.
    NewestUsed(u64),
    /// The table must still have all entries, unless
    /// [`TableStats::forced_evictions`](crate::TableStats::forced_evictions) is above 0; then at least this many of the
    /// newest puts.
    AllUnlessForced(u64),
}

/// The configurations of a filter for tests.
#[derive(Clone, Copy)]
pub struct FilterTests {
    /// The number of variants.
    pub variants: u64,
    /// A small configuration for this number of background threads, with buffers that a few hundred keys fill.
    pub config: fn(variant: u64, threads: usize) -> TestFilter,
}

/// A filter's configuration for tests.
#[derive(Clone, Debug)]
pub struct TestFilter {
    /// Structure and special settings, for messages.
    pub label: String,
    /// The configuration to create it with.
    pub config: AnyConfig,
    /// The options to create and open it with.
    pub options: OpenOptions,
    /// The number of different fingerprints.
    pub universe: u64,
    /// Whether it is made for counting.
    pub counts: bool,
    /// The width of its keys, at least 8 bytes; `None` if it takes keys of any width.
    pub key_bytes: Option<usize>,
    /// The number of the most recent inserts that it must still have; `None` for all.
    pub window: Option<u64>,
}

/// The configurations of an index of neighbours for tests.
#[derive(Clone, Copy)]
pub struct NeighborsTests {
    /// The number of variants.
    pub variants: u64,
    /// A small configuration for this number of background threads, with buffers that a few dozen documents fill. It
    /// has space for [`documents`](TestNeighbors::documents) documents.
    pub config: fn(variant: u64, threads: usize) -> TestNeighbors,
}

/// A configuration of an index of neighbours for tests.
#[derive(Clone, Debug)]
pub struct TestNeighbors {
    /// Structure and special settings, for messages.
    pub label: String,
    /// The configuration to create it with.
    pub config: AnyConfig,
    /// The options to create and open it with.
    pub options: OpenOptions,
    /// The number of hash tables.
    pub tables: u32,
    /// The number of documents that it holds without evicting or rejecting any.
    pub documents: u64,
    /// The number of ids that a bucket holds; of more it keeps the oldest.
    pub bucket_ids_max: u32,
    /// Whether it saves a filter when it is closed, if there is space.
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

/// The reason why calls to a table that is compared with an oracle cannot fail.
const WORKS: &str = "the device works, and the volume is sound";

/// The bytes of a number, as a key or a value.
#[must_use]
pub fn key(number: u64) -> [u8; 8] {
    number.to_le_bytes()
}

/// Puts a key, or removes it if there is no value.
pub fn update(table: &dyn Table, oracle: &mut HashMap<u64, u64>, number: u64, value: Option<u64>) {
    if let Some(value) = value {
        table.insert(&key(number), &key(value)).expect(WORKS);
        oracle.insert(number, value);
    } else {
        table.remove(&key(number)).expect(WORKS);
        oracle.remove(&number);
    }
}

/// Checks every key below `keys` against the oracle: in single lookups, in a batch, in a stream and in the iteration
/// `all`.
pub fn agrees(
    table: &dyn Table,
    mut all: impl Iterator<Item = Result<(Vec<u8>, Value)>>,
    oracle: &HashMap<u64, u64>,
    keys: u64,
) {
    let expected: Vec<_> =
        (0..keys).map(|it| oracle.get(&it).map(|it| key(*it).to_vec())).collect();
    let bytes: Vec<_> = (0..keys).map(key).collect();
    let refs: Vec<&[u8]> = bytes.iter().map(|it| &it[..]).collect();
    let batch = table.get_many(&refs).expect(WORKS);
    let mut streamed = vec![None; refs.len()];
    let mut stream = table.stream().expect(WORKS);
    for (token, bytes) in (0..).zip(&refs) {
        stream.push(bytes, token).expect(WORKS);
    }
    while let Some((token, value)) = stream.pull().expect(WORKS) {
        streamed[usize::try_from(token).expect("it is a key's number")] = value;
    }
    for (at, expected) in expected.iter().enumerate() {
        let found = [table.get(refs[at]).expect(WORKS), batch[at], streamed[at]];
        let found = found.map(|it| it.map(|it| it.to_vec()));
        assert_eq!(found, [expected.clone(), expected.clone(), expected.clone()], "key {at}");
    }
    let number =
        |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("keys and values have 8 bytes"));
    let entries: Vec<_> = all.by_ref().map(|it| it.expect(WORKS)).collect();
    assert!(all.next().is_none(), "an iteration that has ended stays so");
    assert_eq!(entries.len(), oracle.len(), "each key once");
    for (key, value) in entries {
        assert_eq!(oracle.get(&number(&key)), Some(&number(&value)));
    }
}
