//! Proves a multi-level index offline: its maps, every page of its levels, that each entry is where a lookup looks for
//! it, its snapshots, and its entries in the log.

use nandex_store::Structure;
use nandex_store::bytes::Reader;
use nandex_store::check::{Checker, Contents, Subject};
use nandex_store::checkpoint::CatalogEntry;
use nandex_store::hash::KeyHash;
use nandex_store::records::RecordLayout;

use super::Config;
use super::levels::{LevelMap, LevelPage, LevelPlan};
use super::recover::restore;
use crate::Result;
use crate::check::{CheckProgress, OnProgress};
use crate::write::SnapshotPlaces;
use crate::write::check::{Buffers, note};
use crate::write::format::WriteState;
use crate::write::groups::{Group, GroupCheck, GroupRules, RestoredMaps};

/// Checks one table and notes in the checker what is wrong with it. Reads each page of its levels once.
pub(crate) fn check(
    checker: &mut Checker,
    contents: &Contents,
    entry: &CatalogEntry,
    progress: &mut OnProgress<'_>,
) {
    match Described::decode(contents, entry) {
        Ok(table) => {
            table.buffers.snapshot_generations(checker);
            table.maps(checker, progress);
            table.buffers.snapshots(checker);
            table.buffers.log(checker, contents, &mut |_, _| false);
        }
        Err(error) => {
            let subject = Subject { structure: Some(&entry.name), what: "configuration and maps" };
            note(checker, subject, contents.superblock.checkpoint.start, &error);
        }
    }
}

/// A table as its catalog entry describes it.
struct Described<'a> {
    records: RecordLayout,
    plan: LevelPlan,
    maps: Vec<LevelMap>,
    buffers: Buffers<'a>,
}

/// The pages of a group of a level.
struct Pages<'g> {
    plan: LevelPlan,
    level: usize,
    number: usize,
    group: &'g Group,
}

impl GroupRules for Pages<'_> {
    const NOUN: &'static str = "level page";

    fn misplaced(&self, index: usize, hash: KeyHash) -> Option<&'static str> {
        let own = LevelPage { group: self.number, index };
        (self.plan.page(self.level, hash) != own).then_some("its key belongs to another page")
    }

    fn contradiction(&self, index: usize, entries: u64) -> Option<String> {
        let note = self.group.notes[index];
        let flaw = || format!("the map's note is {note}, and it has {entries} entries");
        ((entries > 0) != (note != 0)).then(flaw)
    }
}

impl<'a> Described<'a> {
    fn decode(contents: &Contents, entry: &'a CatalogEntry) -> Result<Self> {
        let place = contents.superblock.checkpoint.start;
        let mut reader = Reader::new(&entry.config, "multilevel configuration", place);
        let config = Config::decode(&mut reader)?;
        if reader.left() > 0 {
            return Err(reader.refuse("the end of the configuration", reader.left()).into());
        }
        let structure = Structure::from(entry);
        let mut reader = Reader::new(&entry.state, "multilevel state", place);
        let RestoredMaps { snapshots, maps } = restore(&structure, &config, &mut reader)?;
        let shape = config.shape()?;
        let state = if entry.state.is_empty() {
            WriteState::new(shape.partitions as usize, entry.tail)
        } else {
            WriteState::decode(&mut reader)?
        };
        if reader.left() > 0 {
            return Err(reader.refuse("the end of the state", reader.left()).into());
        }
        let places = SnapshotPlaces::new(entry.id, &shape, snapshots.start);
        let (hasher, name) = (contents.hasher(), &entry.name[..]);
        let buffers = Buffers { name, noun: "partition", shape, hasher, state, places, entry };
        Ok(Self { records: config.record_layout(), plan: config.plan(), maps, buffers })
    }

    fn maps(&self, checker: &mut Checker, progress: &mut OnProgress<'_>) {
        let structure = self.buffers.name;
        let pages = self.maps.iter().map(LevelMap::pages).sum();
        let mut pages_done = 0;
        for (partition, map) in self.maps.iter().enumerate() {
            progress(CheckProgress { structure, pages_done, pages });
            for level in 0..map.len() {
                for number in 0..self.plan.groups(level) {
                    if let Some(group) = map.group(level, number) {
                        let rules = Pages { plan: self.plan, level, number, group };
                        let (buffers, records) = (&self.buffers, self.records);
                        GroupCheck { buffers, records, partition, rules }.run(checker, group);
                    }
                }
            }
            pages_done += map.pages();
        }
        progress(CheckProgress { structure, pages_done, pages });
    }
}
