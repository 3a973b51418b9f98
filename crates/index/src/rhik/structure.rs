//! RHIK as a [`GroupStructure`].

use std::sync::Arc;

use nandex_store::StructureId;
use nandex_store::bytes::Reader;
use nandex_store::hash::KeyHash;
use nandex_store::reads::LookupStep;

use super::directory::{Directory, HashRange};
use super::rewrite::{Bodies, Occupancy};
use super::{Config, RhikStats, stats};
use crate::Result;
use crate::groups::{
    GroupLookups, GroupMap, GroupPlace, GroupRewrite, GroupRules, GroupStep, GroupStructure,
    MapCheck, RewrittenMap,
};
use crate::lookup::LookupKey;

/// RHIK's part of a table of groups: a directory for each partition.
#[derive(Debug)]
pub struct Directories {
    pub(super) occupancy: Occupancy,
    /// Slots of a record table.
    pub(super) slots: u64,
    pub(super) counters: stats::Counters,
}

impl GroupStructure for Directories {
    const NAME: &'static str = "RHIK";
    const GOOD_FOR: &'static str = "Entries whose number nobody knows, at most one page read for any key: a directory in RAM, and tables that split.";
    #[cfg(feature = "testing")]
    const TESTS: crate::testing::TableTests = super::testing::TESTS;
    #[cfg(feature = "testing")]
    const DECODERS: &'static [crate::testing::Decoder] = super::testing::DECODERS;

    type Config = Config;
    type Scratch = Bodies;
    type Stats = RhikStats;

    fn new(config: &Config) -> Self {
        let slots = config.record_layout().slots() as u64;
        Self { occupancy: config.occupancy(), slots, counters: stats::Counters::default() }
    }

    fn decode_map(
        _config: &Config,
        structure: StructureId,
        reader: &mut Reader<'_>,
    ) -> Result<Directory> {
        Directory::decode(structure, reader)
    }

    fn rewrite(
        &self,
        before: &Directory,
        rewrite: GroupRewrite<'_, '_, Bodies>,
    ) -> Result<RewrittenMap<Directory>> {
        self.write_tables(before, rewrite)
    }

    fn check_map(_config: &Config, directory: &Directory, check: &mut MapCheck<'_, '_>) {
        let mut range = None;
        for group in directory.groups() {
            let after = |depth: &u8| *range.insert(HashRange::behind(range, *depth));
            check.group(&Ranges(group.notes.iter().map(after).collect()), group);
        }
    }

    fn stats(&self, directories: &[Arc<Directory>]) -> RhikStats {
        self.stats_of(directories)
    }
}

impl GroupLookups for Directories {
    type Map = Directory;
    type Way = ();

    #[inline]
    fn first(&self, directory: &Arc<Directory>, key: &LookupKey) -> GroupStep<()> {
        match directory.find(key.hash) {
            Some((group, table)) => {
                LookupStep::Read(GroupPlace { group: Arc::clone(group), table, way: () })
            }
            None => LookupStep::Answer(None),
        }
    }

    #[inline]
    fn prefetch(directory: &Directory, hash: KeyHash) {
        directory.prefetch(hash);
    }

    fn may_have(&self, directory: &Directory, _hash: KeyHash) -> bool {
        !directory.is_empty()
    }
}

/// The range of each table of a group.
struct Ranges(Vec<HashRange>);

impl GroupRules for Ranges {
    const NOUN: &'static str = "record table";

    fn misplaced(&self, table: usize, hash: KeyHash) -> Option<&'static str> {
        (!self.0[table].has(hash)).then_some("its key belongs to another table")
    }
}
