//! Matches the versions of a bin by key, and chooses which of them to keep.

use nandex_store::entries::SlotState;

use super::batch::{Bin, Rule, Version};
use super::{Absorbed, Prefer};

/// Marks the absence of a version.
const NONE: u32 = u32::MAX;

/// The state of a key while its versions arrive, table after table and the newest of each first.
#[derive(Clone, Copy, Debug)]
struct Matched {
    place: u64,
    /// Its first version, which stores the key.
    first: u32,
    /// The version that wins among those that have arrived.
    winner: u32,
    /// The entry of the absorbing table.
    own: u32,
    /// The number of tables that have an entry of it.
    holders: u16,
    /// The table of the latest version.
    table: u16,
    differs: bool,
}

/// The keys of one bin, by their places: a hash table that is emptied for the next bin.
#[derive(Debug, Default)]
pub(super) struct Matcher {
    /// The numbers of keys, in a power of two of slots; at most half are used.
    slots: Vec<u32>,
    keys: Vec<Matched>,
}

impl Matcher {
    /// RAM for each version of the bin, in bytes.
    pub(super) const VERSION_BYTES: usize = size_of::<Matched>() + 4 * size_of::<u32>();

    pub(super) fn ram_bytes(&self) -> usize {
        self.slots.capacity() * size_of::<u32>() + self.keys.capacity() * size_of::<Matched>()
    }

    /// Counts the keys of a bin, and passes on the numbers of the versions to insert, in the order in which keys
    /// arrived.
    pub(super) fn choose(
        &mut self,
        bin: Bin<'_>,
        rule: Rule,
        counts: &mut Absorbed,
        chosen: impl FnMut(u32),
    ) {
        self.keys.clear();
        self.keys.reserve(bin.len());
        self.slots.clear();
        self.slots.resize((2 * bin.len()).next_power_of_two(), NONE);
        for (number, version) in (0..).zip(bin.versions()) {
            self.add(bin, (number, version), rule, counts);
        }
        let winner = |key| winner(bin, key, rule, counts);
        self.keys.iter().filter_map(winner).for_each(chosen);
    }

    #[inline]
    fn add(
        &mut self,
        bin: Bin<'_>,
        (number, version): (u32, Version<'_>),
        rule: Rule,
        counts: &mut Absorbed,
    ) {
        let Version { table, entry, .. } = version;
        let (at, is_new) = self.find_or_add(bin, number, version);
        let key = &mut self.keys[at];
        if !is_new && key.table == table {
            return;
        }
        key.table = table;
        if entry.state != SlotState::Live {
            return;
        }
        counts.keys_of[usize::from(table)] += 1;
        if table == 0 && rule.into_first {
            key.own = number;
        }
        if table == 0 && rule.resumes {
            return;
        }
        key.holders += 1;
        if key.winner == NONE {
            key.winner = number;
            return;
        }
        key.differs |= bin.version(key.winner).entry.value != entry.value;
        if rule.prefer == Prefer::Last {
            key.winner = number;
        }
    }

    /// Returns the index of a version's key, and whether the version is the first of it.
    #[inline]
    fn find_or_add(&mut self, bin: Bin<'_>, number: u32, version: Version<'_>) -> (usize, bool) {
        let Version { place, table, entry } = version;
        let mask = self.slots.len() - 1;
        // The keys of a bin share some bits of their places; the high bits of a product depend on all bits.
        let mut slot = (place.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as usize & mask;
        while self.slots[slot] != NONE {
            let at = self.slots[slot] as usize;
            let key = &self.keys[at];
            if key.place == place && bin.version(key.first).entry.key == entry.key {
                return (at, false);
            }
            slot = (slot + 1) & mask;
        }
        let at = self.keys.len();
        self.slots[slot] = at as u32;
        self.keys.push(Matched {
            place,
            first: number,
            winner: NONE,
            own: NONE,
            holders: 0,
            table,
            differs: false,
        });
        (at, true)
    }
}

/// Returns the version of a key to insert, if any.
#[inline]
fn winner(bin: Bin<'_>, key: &Matched, rule: Rule, counts: &mut Absorbed) -> Option<u32> {
    let has_own = key.own != NONE;
    let own_holders = u16::from(has_own && !rule.resumes);
    counts.keys += u64::from(key.holders > 0);
    counts.shared += u64::from(key.holders > 1);
    counts.differing += u64::from(key.differs);
    counts.only_own += u64::from(has_own && key.holders == own_holders);
    if key.winner == NONE {
        return None;
    }
    let value = |number| bin.version(number).entry.value;
    let is_there = key.own == key.winner || has_own && value(key.own) == value(key.winner);
    counts.put += u64::from(rule.into_first && !is_there);
    (!is_there).then_some(key.winner)
}
