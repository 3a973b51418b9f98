//! The seam to a structure whose record tables are in groups: which table has a key, and what a full buffer makes of
//! the tables there are.

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

/// A structure whose record tables are in groups. An open table has one of it, next to the maps of its partitions.
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

    /// What a table of this kind is created with.
    type Config: GroupModel;
    /// Memory that rewrites use again and again, in addition to that for groups.
    type Scratch: Default + Send;
    /// Its figures, for users.
    type Stats;

    /// The structure's own part of a table with this configuration.
    fn new(config: &Self::Config) -> Self;

    /// Reads what a checkpoint keeps of a partition's map, from bytes that may be anything.
    ///
    /// # Errors
    /// Corruption, told by the reader.
    fn decode_map(
        config: &Self::Config,
        structure: StructureId,
        reader: &mut Reader<'_>,
    ) -> Result<Self::Map>;

    /// Rewrites the groups of a partition as far as a full buffer's updates change them.
    ///
    /// # Errors
    /// A failed read or write, damage, no space.
    fn rewrite(
        &self,
        before: &Self::Map,
        rewrite: GroupRewrite<'_, '_, Self::Scratch>,
    ) -> Result<RewrittenMap<Self::Map>>;

    /// Proves offline what the map of a partition says of its groups.
    fn check_map(config: &Self::Config, map: &Self::Map, check: &mut MapCheck<'_, '_>);

    /// Returns the figures of a table with these maps.
    fn stats(&self, maps: &[Arc<Self::Map>]) -> Self::Stats;

    /// RAM of its own, without the maps, in bytes.
    fn ram_bytes(&self) -> u64 {
        0
    }
}

/// How lookups find the record table of a key.
pub trait GroupLookups: Debug + Send + Sync + Sized + 'static {
    /// The groups of a partition at one moment.
    type Map: Debug + Send + Sync;
    /// Where a lookup goes on when a table does not have its key.
    type Way: Clone + Debug;

    /// Returns the first table to read for a key that no buffer has, or the answer.
    fn first(&self, map: &Arc<Self::Map>, key: &LookupKey) -> GroupStep<Self::Way>;

    /// Returns the next table to read after one that does not have the key, or the answer.
    #[inline]
    fn next(&self, _way: &Self::Way, _key: &LookupKey) -> GroupStep<Self::Way> {
        LookupStep::Answer(None)
    }

    /// Asks the processor to fetch what [`first`](Self::first) will read.
    #[inline]
    fn prefetch(_map: &Self::Map, _hash: KeyHash) {}

    /// Takes note of a page that a lookup has read and proven.
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
    /// Its group, whose pages stay as they are meanwhile.
    pub group: Arc<Group>,
    /// Its number there.
    pub table: u32,
    /// Where the lookup goes on.
    pub way: W,
}

/// A full buffer's updates, and what rewriting the groups of its partition takes.
pub struct GroupRewrite<'c, 'b, T> {
    /// The updates, each of another key, in the order of their hashes.
    pub updates: Vec<Incoming<'b>>,
    /// The layout of record tables.
    pub records: RecordLayout,
    /// The volume's hash.
    pub hasher: KeyHasher,
    /// Entries of a buffer, at most.
    pub buffer_entries_max: usize,
    /// Reads groups.
    pub reader: &'c mut GroupReader,
    /// Writes groups.
    pub writer: GroupWriter<'c>,
    /// Memory of the structure's own.
    pub scratch: &'c mut T,
    /// Takes the share of the work that is done.
    pub progress: &'c dyn Fn(f64),
}

/// What a rewrite has made of a partition.
pub struct RewrittenMap<M> {
    /// The new map.
    pub map: M,
    /// The groups that it does without.
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
