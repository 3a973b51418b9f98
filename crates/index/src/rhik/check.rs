//! Proves a RHIK offline: its directories, every page of its tables, that each entry is once where a lookup looks for
//! it, its snapshots, and its entries in the log.

use nandex_store::Structure;
use nandex_store::bytes::Reader;
use nandex_store::check::{Checker, Contents, Subject};
use nandex_store::checkpoint::CatalogEntry;
use nandex_store::hash::KeyHash;
use nandex_store::records::RecordLayout;

use super::Config;
use super::directory::{Directory, HashRange};
use super::recover::restore;
use crate::Result;
use crate::check::{CheckProgress, OnProgress};
use crate::write::SnapshotPlaces;
use crate::write::check::{Buffers, note};
use crate::write::format::WriteState;
use crate::write::groups::{GroupCheck, GroupRules, RestoredMaps};

/// Checks one table and notes in the checker what is wrong with it. Reads each page of its tables once.
pub(crate) fn check(
    checker: &mut Checker,
    contents: &Contents,
    entry: &CatalogEntry,
    progress: &mut OnProgress<'_>,
) {
    match Described::decode(contents, entry) {
        Ok(table) => {
            table.buffers.snapshot_generations(checker);
            table.directories(checker, progress);
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
    directories: Vec<Directory>,
    buffers: Buffers<'a>,
}

/// The range of each table of a group.
struct Ranges(Vec<HashRange>);

impl GroupRules for Ranges {
    const NOUN: &'static str = "record table";

    fn misplaced(&self, table: usize, hash: KeyHash) -> Option<&'static str> {
        (!self.0[table].has(hash)).then_some("its key belongs to another table")
    }
}

impl<'a> Described<'a> {
    fn decode(contents: &Contents, entry: &'a CatalogEntry) -> Result<Self> {
        let place = contents.superblock.checkpoint.start;
        let mut reader = Reader::new(&entry.config, "rhik configuration", place);
        let config = Config::decode(&mut reader)?;
        if reader.left() > 0 {
            return Err(reader.refuse("the end of the configuration", reader.left()).into());
        }
        let structure = Structure::from(entry);
        let mut reader = Reader::new(&entry.state, "rhik state", place);
        let RestoredMaps { snapshots, maps: directories } =
            restore(&structure, &config, &mut reader)?;
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
        Ok(Self { records: config.record_layout(), directories, buffers })
    }

    fn directories(&self, checker: &mut Checker, progress: &mut OnProgress<'_>) {
        let structure = self.buffers.name;
        let pages = self.directories.iter().map(Directory::pages).sum();
        let mut pages_done = 0;
        for (partition, directory) in self.directories.iter().enumerate() {
            progress(CheckProgress { structure, pages_done, pages });
            let mut range = None;
            for group in directory.groups() {
                let after = |depth: &u8| *range.insert(HashRange::behind(range, *depth));
                let rules = Ranges(group.notes.iter().map(after).collect());
                let (buffers, records) = (&self.buffers, self.records);
                GroupCheck { buffers, records, partition, rules }.run(checker, group);
            }
            pages_done += directory.pages();
        }
        progress(CheckProgress { structure, pages_done, pages });
    }
}
