//! The offline check of a multi-level index: its maps, every page of its levels, that each entry is where a
//! lookup searches for it, that a key is on one level only, its snapshots, and its entries in the log.
//!
//! Levels are read one after another, so the keys of a partition are remembered by a hash until all of its
//! levels were read: 32 bytes of RAM for each entry of the largest partition. The hash is not the volume's,
//! which may use only the first 16 bytes of a key: other keys with the same prefix are no twins.

use std::cell::RefCell;

use nandex::raw::{Group, GroupRules, MapCheck};
use nandex_device::PageId;
use nandex_store::hash::{HashKind, KeyHash, KeyHasher};

use super::levels::{LevelMap, LevelPage, LevelPlan};

/// The pages of a group of a level.
struct Pages<'g> {
    plan: LevelPlan,
    level: usize,
    number: usize,
    group: &'g Group,
    /// The keys of its partition so far.
    keys: &'g RefCell<Vec<FoundKey>>,
}

/// The hash by which keys are remembered: 128 bits of the whole key, for which no collision can be made.
const FINGERPRINTS: KeyHasher =
    KeyHasher::new(HashKind::Sip13, 0x7477_696e_735f_6f66_5f61_5f6b_6579_7300);

/// The location of a key in a partition. Keys are in the order of their hashes, and a key's locations in that
/// of levels.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct FoundKey {
    hash: (u64, u64),
    level: usize,
    page: PageId,
}

impl GroupRules for Pages<'_> {
    const NOUN: &'static str = "level page";

    fn misplaced(&self, index: usize, hash: KeyHash) -> Option<&'static str> {
        let own = LevelPage { group: self.number, index };
        (self.plan.page(self.level, hash) != own).then_some("its key belongs to another page")
    }

    fn note_key(&self, index: usize, key: &[u8]) {
        let page = self.group.place.extent.start.plus(index as u64);
        let KeyHash { place, filter } = FINGERPRINTS.hash(key);
        let hash = (place, filter);
        self.keys.borrow_mut().push(FoundKey { hash, level: self.level, page });
    }

    fn contradiction(&self, index: usize, entries: u64) -> Option<String> {
        let note = self.group.notes[index];
        let flaw = || format!("the map's note is {note}, and it has {entries} entries");
        ((entries > 0) != (note != 0)).then(flaw)
    }
}

/// Checks each group of the levels of a partition, and that a key is on one level only.
pub(super) fn check_levels(plan: LevelPlan, map: &LevelMap, check: &mut MapCheck<'_, '_>) {
    let keys = RefCell::default();
    for level in 0..map.len() {
        for number in 0..plan.groups(level) {
            if let Some(group) = map.group(level, number) {
                check.group(&Pages { plan, level, number, group, keys: &keys }, group);
            }
        }
    }
    note_twins(keys.into_inner(), check);
}

/// Reports keys that are on several levels, at the page of the later level: a lookup does not reach it, and
/// an update of the key may leave it there.
fn note_twins(mut keys: Vec<FoundKey>, check: &mut MapCheck<'_, '_>) {
    keys.sort_unstable();
    let twins = keys.windows(2).filter(|pair| pair[0].hash == pair[1].hash);
    // Two in one page are a flaw of the page, which was reported.
    let twins = twins.filter(|pair| pair[0].page != pair[1].page);
    let mut flaws: Vec<(PageId, String)> =
        twins.map(|pair| (pair[1].page, pair[1].twin_of(&pair[0]))).collect();
    flaws.sort();
    for of_page in flaws.chunk_by(|one, other| one.0 == other.0) {
        let texts: Vec<String> = of_page.iter().map(|(_, text)| text.clone()).collect();
        check.note(Pages::NOUN, of_page[0].0, &texts);
    }
}

impl FoundKey {
    fn twin_of(&self, first: &Self) -> String {
        let (level, page) = (first.level, first.page.0);
        format!("a key is on level {} and, on page {page}, on level {level} too", self.level)
    }
}
