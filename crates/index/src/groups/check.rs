//! The offline check of tables of groups: the maps, each record table, whether each entry is where a lookup searches
//! for it, the snapshots, and the entries in the log.

use nandex_device::PageId;
use nandex_store::Structure;
use nandex_store::bytes::Reader;
use nandex_store::check::{Checker, Contents, Subject};
use nandex_store::checkpoint::CatalogEntry;
use nandex_store::generation;
use nandex_store::hash::KeyHash;
use nandex_store::page::Page;
use nandex_store::records::RecordLayout;

use super::checkpoint::RestoredMaps;
use super::open::restore;
use super::{Group, GroupConfig, GroupMap, GroupStructure};
use crate::Result;
use crate::check::OnProgress;
use crate::schema::Stored;
use crate::write::SnapshotPlaces;
use crate::write::check::{Buffers, check_each, check_entries, check_number, note, note_flaws};
use crate::write::format::WriteState;

/// Checks one table and notes flaws in the checker. Reads each page of its groups once.
pub(super) fn check<S: GroupStructure>(
    checker: &mut Checker,
    contents: &Contents,
    entry: &CatalogEntry,
    progress: &mut OnProgress<'_>,
) {
    match Described::<S>::decode(contents, entry) {
        Ok(table) => {
            table.buffers.snapshot_generations(checker);
            table.maps(checker, progress);
            table.buffers.snapshots(checker);
            table.buffers.log(checker, contents, &mut |_| false);
        }
        Err(error) => {
            let subject = Subject { structure: Some(&entry.name), what: "configuration and maps" };
            note(checker, subject, contents.superblock.checkpoint.start, &error);
        }
    }
}

/// A table as its catalog entry describes it.
struct Described<'a, S: GroupStructure> {
    config: S::Config,
    maps: Vec<S::Map>,
    buffers: Buffers<'a>,
}

impl<'a, S: GroupStructure> Described<'a, S> {
    fn decode(contents: &Contents, entry: &'a CatalogEntry) -> Result<Self> {
        let place = contents.superblock.checkpoint.start;
        let [configuration, state] = S::Config::BYTES;
        let mut reader = Reader::new(&entry.config, configuration, place);
        let config = <S::Config as Stored>::take(&mut reader)?;
        if reader.left() > 0 {
            return Err(reader.refuse("the end of the configuration", reader.left()).into());
        }
        let structure = Structure::from(entry);
        let mut reader = Reader::new(&entry.state, state, place);
        let RestoredMaps { snapshots, maps } = restore::<S>(&structure, &config, &mut reader)?;
        let shape = config.common().shape()?;
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
        Ok(Self { config, maps, buffers })
    }

    fn maps(&self, checker: &mut Checker, progress: &mut OnProgress<'_>) {
        let (structure, records) = (self.buffers.name, self.config.ram().records);
        let maps: Vec<_> = self.maps.iter().enumerate().collect();
        check_each(
            structure,
            &maps,
            |(_, map)| map.pages(),
            progress,
            |&(partition, map)| {
                let buffers = &self.buffers;
                S::check_map(
                    &self.config,
                    map,
                    &mut MapCheck { buffers, records, partition, checker },
                );
            },
        );
    }
}

/// The rules of a structure for the tables of a group, by their numbers in it.
pub trait GroupRules {
    /// The structure's name for a table.
    const NOUN: &'static str;

    /// Returns why a table cannot have keys of this hash, if it cannot.
    fn misplaced(&self, table: usize, hash: KeyHash) -> Option<&'static str>;

    /// Notes a key in its own table.
    fn note_key(&self, _table: usize, _key: &[u8]) {}

    /// Returns what contradicts that a table has `entries` entries, if anything.
    fn contradiction(&self, _table: usize, _entries: u64) -> Option<String> {
        None
    }
}

/// The check of a partition's map.
pub struct MapCheck<'c, 'b> {
    buffers: &'c Buffers<'b>,
    records: RecordLayout,
    partition: usize,
    checker: &'c mut Checker,
}

impl MapCheck<'_, '_> {
    /// Reads each page of a group once, and notes flaws in the checker.
    pub fn group<R: GroupRules>(&mut self, rules: &R, group: &Group) {
        let what = self.what(R::NOUN);
        let subject = Subject { structure: Some(self.buffers.name), what: &what };
        let start = group.place.extent.start;
        let (number, next) =
            (generation::sequence(group.place.generation), self.buffers.state.next_generation);
        check_number(self.checker, subject, start, ("group", number, next));
        let label = |index| group.place.label(index);
        let run = (&label as &dyn Fn(u64) -> _, group.place.extent.pages);
        let (buffers, records, partition) = (self.buffers, self.records, self.partition);
        let tables = TableCheck { buffers, records, partition, rules };
        let expected = Some(group.entries);
        check_entries(
            self.checker,
            subject,
            run,
            expected,
            &mut |checker, (number, index), page| {
                let (found, flaws) = tables.table(index as usize, page);
                note_flaws(checker, subject, number, &flaws);
                found
            },
        );
    }

    /// Notes flaws of a page of the partition.
    pub fn note(&mut self, noun: &str, page: PageId, flaws: &[String]) {
        let what = self.what(noun);
        let subject = Subject { structure: Some(self.buffers.name), what: &what };
        note_flaws(self.checker, subject, page, flaws);
    }

    fn what(&self, noun: &str) -> String {
        format!("{noun} of partition {}", self.partition)
    }
}

/// The check of a group's tables.
struct TableCheck<'c, 'b, R> {
    buffers: &'c Buffers<'b>,
    records: RecordLayout,
    partition: usize,
    rules: &'c R,
}

impl<R: GroupRules> TableCheck<'_, '_, R> {
    /// Returns the number of entries of a sealed page, and its flaws.
    fn table(&self, table: usize, page: Page<'_>) -> (u64, Vec<String>) {
        let body = page.body();
        let mut flaws = Vec::new();
        let mut entries = 0;
        for slot in self.records.used(body) {
            entries += 1;
            flaws.extend(self.flaw(table, body, slot).map(|flaw| format!("slot {slot}: {flaw}")));
        }
        let count = self.records.count(body);
        if count as u64 != entries {
            flaws.push(format!("its head says {count} entries, and it has {entries}"));
        }
        flaws.extend(self.rules.contradiction(table, entries));
        (entries, flaws)
    }

    /// Returns why a lookup would not find the entry of a slot, if it would not.
    fn flaw(&self, table: usize, body: &[u8], slot: usize) -> Option<String> {
        let key = self.records.key(body, slot);
        let hash = self.buffers.hasher.hash(key);
        let own = self.buffers.shape.partition_of(hash);
        if own != self.partition {
            return Some(format!("its key belongs to partition {own}"));
        }
        if let Some(flaw) = self.rules.misplaced(table, hash) {
            return Some(flaw.into());
        }
        self.rules.note_key(table, key);
        self.records.flaw(body, hash, slot)
    }
}
