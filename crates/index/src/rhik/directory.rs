//! The directory of a partition: the record table of each key, and the location of that table on flash.
//!
//! Extendible hashing (Fagin and others, TODS 1979): the first bits of a key's hash select its entry in the directory.
//! A table of a smaller depth than the directory's has several entries. Tables are on flash in **groups**, in the order
//! of their hashes; the notes of a group are its tables' depths.
//!
//! ```text
//!   depth 2     00    01    10    11
//!                |     |     |     |
//!   tables     depth 2  2    depth 1      split: one table becomes two, one deeper
//!              | a | b |     |  c  |
//!   groups     [ a | b ]     [  c  ]
//! ```

use std::sync::Arc;

use nandex_store::bytes::Reader;
use nandex_store::{StructureId, hash::KeyHash};

use crate::Result;
use crate::groups::{GROUP_BYTES, GROUP_PAGES_MAX, Group, GroupMap};

/// The maximum number of bits of a hash that identify a table of a partition.
pub(super) const DEPTH_MAX: u8 = 24;

/// The bits of a directory's entry that identify a table of a group.
const GROUP_BITS: u32 = GROUP_PAGES_MAX.trailing_zeros();

/// The share of all hashes that a table has: those that begin with the first `depth` bits of `prefix`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct HashRange {
    /// The first bits; the others are 0.
    pub prefix: u64,
    pub depth: u8,
}

impl HashRange {
    /// All hashes.
    pub const ALL: Self = Self { prefix: 0, depth: 0 };

    /// Returns the bit that distinguishes its halves.
    fn next_bit(self) -> u64 {
        1 << (63 - u32::from(self.depth))
    }

    /// Returns the half with that bit 0, and the one with it 1.
    pub fn halves(self) -> [Self; 2] {
        let depth = self.depth + 1;
        [Self { depth, ..self }, Self { prefix: self.prefix | self.next_bit(), depth }]
    }

    /// Returns whether this hash comes before the end of the range.
    pub fn ends_after(self, hash: KeyHash) -> bool {
        hash.filter <= self.last()
    }

    /// Returns whether this hash is in the range.
    pub fn has(self, hash: KeyHash) -> bool {
        (self.prefix..=self.last()).contains(&hash.filter)
    }

    /// Returns its greatest hash.
    fn last(self) -> u64 {
        self.prefix | u64::MAX.checked_shr(self.depth.into()).unwrap_or(0)
    }

    /// Returns the range whose first half this is and whose second half is `next`; `None` if they are not halves of
    /// one.
    pub fn joined(self, next: Self) -> Option<Self> {
        let whole = Self { depth: self.depth.checked_sub(1)?, ..self };
        (whole.halves() == [self, next]).then_some(whole)
    }

    /// Returns the range of a table of depth `depth` after this one; `None` at the end of all hashes, or if it cannot
    /// begin there.
    pub fn following(self, depth: u8) -> Option<Self> {
        Self { prefix: self.last().checked_add(1)?, depth }.aligned()
    }

    /// Returns the range of a table of depth `depth` in a directory, after the one before it, or at the start.
    ///
    /// # Panics
    /// If no table of this depth can be there.
    pub fn behind(before: Option<Self>, depth: u8) -> Self {
        let first = Self { depth, ..Self::ALL };
        let next = before.map_or(Some(first), |before| before.following(depth));
        next.expect("a directory's tables have all hashes")
    }

    /// Returns the range if its prefix has no more bits than its depth.
    fn aligned(self) -> Option<Self> {
        let rest = u64::MAX.checked_shr(self.depth.into()).unwrap_or(0);
        (self.depth <= DEPTH_MAX && self.prefix & rest == 0).then_some(self)
    }
}

/// All tables of a partition at one moment.
#[derive(Debug, Default)]
pub struct Directory {
    /// The number of bits of a hash that form an entry's index.
    depth: u8,
    /// The number of each entry's group, and of its table in the group.
    tables: Box<[u32]>,
    groups: Box<[Arc<Group>]>,
    entries: u64,
}

impl Directory {
    /// Creates the directory of these groups, whose tables cover all hashes in order; an empty one without groups.
    ///
    /// # Panics
    /// If the tables do not cover all hashes.
    pub(super) fn new(groups: Vec<Arc<Group>>) -> Self {
        assert!(covers_all(&groups), "tables have all hashes in their order");
        let depth = groups.iter().flat_map(|it| &it.notes).max().copied().unwrap_or(0);
        let mut tables = Vec::with_capacity(if groups.is_empty() { 0 } else { 1 << depth });
        for (number, group) in (0u32..).zip(&groups) {
            for (table, own) in (0u32..).zip(&group.notes) {
                let entry = number << GROUP_BITS | table;
                tables.resize(tables.len() + (1 << (depth - own)), entry);
            }
        }
        let entries = groups.iter().map(|group| group.entries).sum();
        Self { depth, tables: tables.into(), groups: groups.into(), entries }
    }

    /// Returns the table of a key: its group, and its number in the group. `None` if there are no tables.
    #[inline]
    pub(super) fn find(&self, hash: KeyHash) -> Option<(&Arc<Group>, u32)> {
        // The shift is split so that a depth of 0 works too.
        let index = hash.filter >> 1 >> (63 - u32::from(self.depth));
        let entry = *self.tables.get(usize::try_from(index).ok()?)?;
        Some((&self.groups[(entry >> GROUP_BITS) as usize], entry & (GROUP_PAGES_MAX - 1)))
    }

    /// Prefetches what [`find`](Self::find) will read.
    #[inline]
    pub(super) fn prefetch(&self, hash: KeyHash) {
        if let Some((group, _)) = self.find(hash) {
            nandex_device::prefetch(&**group);
        }
    }

    /// Returns whether there are no tables.
    pub(super) fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// The number of its entries: D, the paper's.
    pub(super) fn len(&self) -> usize {
        self.tables.len()
    }

    /// Its groups, in order.
    pub(super) fn group_list(&self) -> &[Arc<Group>] {
        &self.groups
    }

    /// Decodes a directory of a checkpoint from untrusted bytes.
    ///
    /// # Errors
    /// Corruption, reported by the reader.
    pub(super) fn decode(structure: StructureId, reader: &mut Reader<'_>) -> Result<Self> {
        let count = reader.count(GROUP_BYTES + 1)?;
        let groups = (0..count).map(|_| Group::decode(structure, reader).map(Arc::new));
        let groups = groups.collect::<Result<Vec<_>>>()?;
        if !covers_all(&groups) {
            let found = format!("{count} groups that do not");
            return Err(reader.refuse("tables that have all hashes in their order", found).into());
        }
        Ok(Self::new(groups))
    }
}

impl GroupMap for Directory {
    const NAME: &'static str = "its directory";
    const NOUN: &'static str = "tables";

    fn encoded_bytes(&self) -> usize {
        size_of::<u32>() + self.groups.iter().map(|it| it.encoded_bytes()).sum::<usize>()
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&(self.groups.len() as u32).to_le_bytes());
        self.groups.iter().for_each(|group| group.encode(out));
    }

    fn groups(&self) -> impl Iterator<Item = &Arc<Group>> {
        self.groups.iter()
    }

    fn entries(&self) -> u64 {
        self.entries
    }

    fn ram_bytes(&self) -> u64 {
        let tables = self.tables.len() * size_of::<u32>();
        (size_of::<Self>() + tables) as u64
            + self.groups.iter().map(|it| it.ram_bytes()).sum::<u64>()
    }
}

/// Returns whether the tables of these groups cover all hashes, in order. Without groups there are none to cover.
fn covers_all(groups: &[Arc<Group>]) -> bool {
    let mut depths = groups.iter().flat_map(|group| &group.notes);
    let Some(first) = depths.next() else { return groups.is_empty() };
    let first = HashRange { prefix: 0, depth: *first }.aligned();
    let last = depths.try_fold(first, |at, depth| Some(Some(at?.following(*depth)?)));
    last.flatten().is_some_and(|last| last.last() == u64::MAX)
}

#[cfg(test)]
mod tests {
    use nandex_device::PageId;

    use super::*;

    fn groups(depths: &[&[u8]]) -> Vec<Arc<Group>> {
        let group = |(number, depths): (u64, &&[u8])| {
            Arc::new(Group::new(StructureId(3), (PageId(100 * number), 7), depths.to_vec(), 5))
        };
        (1..).zip(depths).map(group).collect()
    }

    fn hash(filter: u64) -> KeyHash {
        KeyHash { place: 0, filter }
    }

    #[test]
    fn a_key_is_in_the_table_whose_range_has_its_hash() {
        let directory = Directory::new(groups(&[&[2, 2], &[1]]));
        assert_eq!((directory.len(), directory.pages(), directory.entries), (4, 3, 10));
        let find = |filter| {
            let (group, table) = directory.find(hash(filter)).unwrap();
            group.place.extent.start.0 + u64::from(table)
        };
        assert_eq!([0, 1 << 62, 1 << 63, 3 << 62, u64::MAX].map(find), [100, 101, 200, 200, 200]);
        let one = Directory::new(groups(&[&[0]]));
        assert_eq!(one.find(hash(u64::MAX)).map(|(_, table)| table), Some(0));
        assert!(Directory::default().find(hash(9)).is_none());
    }

    #[test]
    fn halves_join_again_and_others_do_not() {
        let [left, right] = HashRange::ALL.halves();
        assert_eq!(left.joined(right), Some(HashRange::ALL));
        let [a, b] = left.halves();
        let [c, _] = right.halves();
        assert_eq!((a.joined(b), b.joined(c), b.joined(right)), (Some(left), None, None));
        assert!(b.has(hash(1 << 62)) && right.has(hash(1 << 63)) && !left.has(hash(1 << 63)));
        assert!(left.ends_after(hash((1 << 63) - 1)) && !left.ends_after(hash(1 << 63)));
    }

    #[test]
    fn a_directory_reads_back_and_one_that_has_not_all_hashes_is_refused() {
        let read = |bytes: &[u8]| {
            Directory::decode(StructureId(3), &mut Reader::new(bytes, "directory", PageId(0)))
        };
        let all: [&[&[u8]]; 4] = [&[], &[&[0]], &[&[2, 2], &[1]], &[&[1, 3], &[3, 2]]];
        for depths in all {
            let mut bytes = Vec::new();
            let directory = Directory::new(groups(depths));
            directory.encode(&mut bytes);
            assert_eq!(bytes.len(), directory.encoded_bytes());
            assert_eq!(read(&bytes).unwrap().group_list(), groups(depths));
            assert!((0..bytes.len()).all(|len| read(&bytes[..len]).is_err()));
        }
        for depths in [&[1][..], &[2, 1, 2], &[1, 1, 1], &[1, 25, 25], &[0, 0]] {
            let group = Group::new(StructureId(3), (PageId(9), 7), depths.to_vec(), 5);
            let mut bytes = Vec::new();
            Directory { groups: [Arc::new(group)].into(), ..Directory::default() }
                .encode(&mut bytes);
            assert!(read(&bytes).is_err(), "{depths:?}");
        }
    }
}
