//! The interface to a structure whose record tables are in groups: it determines which table has a key, and how a full
//! buffer changes the tables.

use std::fmt::Debug;
use std::sync::Arc;

use nandex_store::StructureId;
use nandex_store::bytes::Reader;
use nandex_store::hash::{KeyHash, KeyHasher};
use nandex_store::page::PageLabel;
use nandex_store::reads::LookupStep;
use nandex_store::records::RecordLayout;

use super::{Group, GroupMap, GroupModel, GroupReader, GroupWriter, Incoming, MapCheck};
use crate::Result;
use crate::api::Value;
use crate::lookup::LookupKey;

/// A structure whose record tables are in groups. An open table has one instance, next to the maps of its partitions.
pub trait GroupStructure: GroupLookups<Map: GroupMap> {
    /// Its name in sentences, such as `RHIK`.
    const NAME: &'static str;
    /// Its use, in a sentence.
    const GOOD_FOR: &'static str;
    /// Its configurations for tests.
    #[cfg(feature = "testing")]
    const TESTS: crate::testing::TableTests = crate::testing::TableTests::NONE;
    /// The decoders of its own bytes, for fuzzing.
    #[cfg(feature = "testing")]
    const DECODERS: &'static [crate::testing::Decoder] = &[];

    /// The configuration that a table of this kind is created with.
    type Config: GroupModel;
    /// Memory that rewrites reuse, in addition to that for groups.
    type Scratch: Default + Send;
    /// Its statistics, for users.
    type Stats;

    /// Creates the structure's own part of a table with this configuration.
    fn new(config: &Self::Config) -> Self;

    /// Decodes a partition's map of a checkpoint from untrusted bytes.
    ///
    /// # Errors
    /// Corruption, reported by the reader.
    fn decode_map(
        config: &Self::Config,
        structure: StructureId,
        reader: &mut Reader<'_>,
    ) -> Result<Self::Map>;

    /// Rewrites the groups of a partition that a full buffer's updates change.
    ///
    /// # Errors
    /// A failed read or write, damage, no space.
    fn rewrite(
        &self,
        before: &Self::Map,
        rewrite: GroupRewrite<'_, '_, Self::Scratch>,
    ) -> Result<RewrittenMap<Self::Map>>;

    /// Checks offline that the map of a partition agrees with its groups.
    fn check_map(config: &Self::Config, map: &Self::Map, check: &mut MapCheck<'_, '_>);

    /// Returns the statistics of a table with these maps.
    fn stats(&self, maps: &[Arc<Self::Map>]) -> Self::Stats;

    /// Returns its own RAM, without the maps, in bytes.
    fn ram_bytes(&self) -> u64 {
        0
    }
}

/// The part of a structure that finds the record table of a key.
pub trait GroupLookups: Debug + Send + Sync + Sized + 'static {
    /// The groups of a partition at one moment.
    type Map: Debug + Send + Sync;
    /// The continuation of a lookup when a table does not have its key.
    type Way: Clone + Debug;

    /// Returns the first table to read for a key that no buffer has, or the answer.
    fn first(&self, map: &Arc<Self::Map>, key: &LookupKey) -> GroupStep<Self::Way>;

    /// Returns the next table to read after one that does not have the key, or the answer.
    #[inline]
    fn next(&self, _way: &Self::Way, _key: &LookupKey) -> GroupStep<Self::Way> {
        LookupStep::Answer(None)
    }

    /// Prefetches what [`first`](Self::first) will read.
    #[inline]
    fn prefetch(_map: &Self::Map, _hash: KeyHash) {}

    /// Notes a page that a lookup has read and verified.
    #[inline]
    fn note_page(&self, _label: PageLabel, _page: &[u8]) {}

    /// Returns whether a table of this map may have a key of this hash.
    fn may_have(&self, map: &Self::Map, hash: KeyHash) -> bool;
}

/// The next step of a lookup: a table to read, or the answer.
pub type GroupStep<W> = LookupStep<GroupPlace<W>, Option<Value>>;

/// A table that a lookup reads.
#[derive(Clone, Debug)]
pub struct GroupPlace<W> {
    /// Its group, whose pages are not reused meanwhile.
    pub group: Arc<Group>,
    /// Its number in the group.
    pub table: u32,
    /// The continuation of the lookup.
    pub way: W,
}

/// A full buffer's updates, and the resources for rewriting the groups of its partition.
pub struct GroupRewrite<'c, 'b, T> {
    /// The updates, each of a different key, in the order of their hashes.
    pub updates: Vec<Incoming<'b>>,
    /// The layout of record tables.
    pub records: RecordLayout,
    /// The volume's hash function.
    pub hasher: KeyHasher,
    /// The maximum number of entries of a buffer.
    pub buffer_entries_max: usize,
    /// The reader of groups.
    pub reader: &'c mut GroupReader,
    /// The writer of groups.
    pub writer: GroupWriter<'c>,
    /// The structure's own memory.
    pub scratch: &'c mut T,
    /// A callback that receives the share of the work that is done.
    pub progress: &'c dyn Fn(f64),
}

/// The result of rewriting a partition.
pub struct RewrittenMap<M> {
    /// The new map.
    pub map: M,
    /// The groups that it no longer uses.
    pub replaced: Vec<Arc<Group>>,
    /// Pages of the groups that were written.
    pub pages_written: u64,
}

/// Memory of a thread that flushes buffers.
pub struct GroupScratch<T> {
    pub(super) reader: GroupReader,
    pub(super) writes: super::writer::WriteQueue,
    pub(super) own: T,
}
