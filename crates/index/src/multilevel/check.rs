//! Proves a multi-level index offline: its maps, every page of its levels, that each entry is where a lookup looks for
//! it, its snapshots, and its entries in the log.

use nandex_store::bytes::Reader;
use nandex_store::check::{Checker, Contents, Subject};
use nandex_store::checkpoint::CatalogEntry;
use nandex_store::page::Page;
use nandex_store::records::RecordLayout;
use nandex_store::{Structure, generation};

use super::Config;
use super::levels::{LevelMap, LevelPage, LevelPlan};
use super::recover::{RestoredLevels, restore};
use crate::Result;
use crate::check::{CheckProgress, OnProgress};
use crate::write::SnapshotPlaces;
use crate::write::check::{Buffers, note, note_flaws};
use crate::write::format::WriteState;
use crate::write::groups::Group;

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

/// What a page's keys must have in common.
#[derive(Clone, Copy)]
struct Owner {
    partition: usize,
    level: usize,
    page: LevelPage,
}

impl<'a> Described<'a> {
    fn decode(contents: &Contents, entry: &'a CatalogEntry) -> Result<Self> {
        let place = contents.superblock.checkpoint.start;
        let mut reader = Reader::new(&entry.config, "multilevel configuration", place);
        let config = Config::decode(&mut reader)?;
        if reader.left() > 0 {
            return Err(reader.refuse("the end of the configuration", reader.left()).into());
        }
        let structure = Structure {
            id: entry.id,
            name: entry.name.clone(),
            config: entry.config.clone(),
            state: entry.state.clone(),
            extents: entry.extents.clone(),
            tail: entry.tail,
        };
        let mut reader = Reader::new(&entry.state, "multilevel state", place);
        let RestoredLevels { snapshots, maps } = restore(&structure, &config, &mut reader)?;
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
                        let page = LevelPage { group: number, index: 0 };
                        self.group(checker, Owner { partition, level, page }, group);
                    }
                }
            }
            pages_done += map.pages();
        }
        progress(CheckProgress { structure, pages_done, pages });
    }

    /// Checks a group, whose first page this is.
    fn group(&self, checker: &mut Checker, first: Owner, group: &Group) {
        let what = format!("level page of partition {}", first.partition);
        let subject = Subject { structure: Some(self.buffers.name), what: &what };
        let start = group.place.extent.start;
        let (number, next) =
            (generation::sequence(group.place.generation), self.buffers.state.next_generation);
        if number >= next {
            checker.note(subject, start, format!("group {number}, where {next} comes next"));
        }
        let mut entries = 0;
        let label = |index| group.place.label(index);
        let run = (start, group.place.extent.pages);
        let damaged = checker.pages(subject, run, &label, &mut |checker, index, page| {
            let index_in_group = index as usize;
            let page_number = LevelPage { index: index_in_group, ..first.page };
            let owner = Owner { page: page_number, ..first };
            let (found, mut flaws) = self.table(owner, page);
            if (found > 0) != (group.notes[index_in_group] != 0) {
                flaws.push(format!(
                    "the map's note is {}, and it has {found} entries",
                    group.notes[index_in_group]
                ));
            }
            entries += found;
            note_flaws(checker, subject, label(index).page, &flaws);
        });
        if damaged == 0 && entries != group.entries {
            checker.note(
                subject,
                start,
                format!("expected {} entries, found {entries}", group.entries),
            );
        }
        checker.count_entries(self.buffers.name, entries);
    }

    /// The entries of a sealed page: how many there are, and what is wrong.
    fn table(&self, owner: Owner, page: Page<'_>) -> (u64, Vec<String>) {
        let body = page.body();
        let mut flaws = Vec::new();
        let mut entries = 0;
        for slot in self.records.used(body) {
            entries += 1;
            flaws.extend(self.flaw(owner, body, slot).map(|flaw| format!("slot {slot}: {flaw}")));
        }
        let count = self.records.count(body);
        if count as u64 != entries {
            flaws.push(format!("its head says {count} entries, and it has {entries}"));
        }
        (entries, flaws)
    }

    /// Why a lookup would not find the entry of a slot.
    fn flaw(&self, owner: Owner, body: &[u8], slot: usize) -> Option<String> {
        let hash = self.buffers.hasher.hash(self.records.key(body, slot));
        let own = self.buffers.shape.partition_of(hash);
        if own != owner.partition {
            return Some(format!("its key belongs to partition {own}"));
        }
        if self.plan.page(owner.level, hash) != owner.page {
            return Some("its key belongs to another page".into());
        }
        self.records.flaw(body, hash, slot)
    }
}
