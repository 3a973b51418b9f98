//! The offline check of groups: each record table of one, and that each entry is where a lookup looks for it.

use nandex_store::check::{Checker, Subject};
use nandex_store::generation;
use nandex_store::hash::KeyHash;
use nandex_store::page::Page;
use nandex_store::records::RecordLayout;

use super::Group;
use crate::write::check::{Buffers, note_flaws};

/// What a structure says of the tables of a group, by their numbers in it.
pub(crate) trait GroupRules {
    /// What a table is called.
    const NOUN: &'static str;

    /// Why a table has no keys of this hash.
    fn misplaced(&self, table: usize, hash: KeyHash) -> Option<&'static str>;

    /// Takes note of a key in its own table.
    fn note_key(&self, _table: usize, _key: &[u8]) {}

    /// What contradicts that a table has that many entries.
    fn contradiction(&self, _table: usize, _entries: u64) -> Option<String> {
        None
    }
}

/// A group of a partition that is checked.
pub(crate) struct GroupCheck<'c, 'b, R> {
    pub buffers: &'c Buffers<'b>,
    pub records: RecordLayout,
    pub partition: usize,
    pub rules: R,
}

impl<R: GroupRules> GroupCheck<'_, '_, R> {
    /// Reads each page of the group once, and notes in the checker what is wrong.
    pub(crate) fn run(&self, checker: &mut Checker, group: &Group) {
        let what = format!("{} of partition {}", R::NOUN, self.partition);
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
            let (found, flaws) = self.table(index as usize, page);
            entries += found;
            note_flaws(checker, subject, label(index).page, &flaws);
        });
        if damaged == 0 && entries != group.entries {
            let flaw = format!("expected {} entries, found {entries}", group.entries);
            checker.note(subject, start, flaw);
        }
        checker.count_entries(self.buffers.name, entries);
    }

    /// The entries of a sealed page: how many there are, and what is wrong.
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

    /// Why a lookup would not find the entry of a slot.
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
