//! The levels of a partition: the page of each key in each level, and the places of those pages on flash.
//!
//! A level has twice the pages of the one before. The first bits of a key's hash are its page in the first level, with
//! one bit more in each further one. So updates that spill from a page go to two pages of the next level. A level is on
//! flash in groups of pages; a group without entries does not exist, and a byte for each page says whether it has any.
//!
//! ```text
//!   level 0     [ full | full ]                    first bit
//!                 /  \    /  \                                      spilled
//!   level 1     [ full | ok | ok | full ]          first two bits
//!                 /  \              /  \
//!   level 2     [ ok | - | - | - ][ - | - | ok | ok ]
//! ```

use std::sync::Arc;

use nandex::Result;
use nandex::raw::{Group, GroupMap};
use nandex_store::bytes::Reader;
use nandex_store::{StructureId, hash::KeyHash};

/// The maximum bits of a hash that name a page of a level.
pub(super) const BITS_MAX: u32 = 24;

/// The division of levels into pages and groups.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LevelPlan {
    /// The bits of a hash that name a page of the first level.
    pub first_bits: u32,
    /// The bits of a page's number that name it in a whole group.
    pub group_bits: u32,
}

/// A page of a level: its group, and its index in the group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LevelPage {
    pub group: usize,
    pub index: usize,
}

impl LevelPlan {
    /// Returns the bits of a hash that name a page of this level.
    pub fn bits(self, level: usize) -> u32 {
        self.first_bits + level as u32
    }

    /// Returns the maximum number of levels.
    pub fn levels_max(self) -> usize {
        (BITS_MAX - self.first_bits) as usize + 1
    }

    /// Returns the pages of each group of this level.
    pub fn group_pages(self, level: usize) -> usize {
        1 << self.group_bits.min(self.bits(level))
    }

    /// Returns the groups of this level, including those without entries.
    pub fn groups(self, level: usize) -> usize {
        1 << self.bits(level).saturating_sub(self.group_bits)
    }

    /// Returns the page of a key in this level.
    #[inline]
    pub fn page(self, level: usize, hash: KeyHash) -> LevelPage {
        // The shift is split so that no bits work too.
        let page = (hash.filter >> 1 >> (63 - self.bits(level))) as usize;
        let bits = self.group_bits.min(self.bits(level));
        LevelPage { group: page >> bits, index: page & ((1 << bits) - 1) }
    }
}

/// A page that a lookup reads.
#[derive(Clone, Debug)]
pub struct FoundPage {
    pub level: usize,
    pub group: Arc<Group>,
    pub index: usize,
}

/// The levels of a partition at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LevelMap {
    levels: Vec<Box<[Option<Arc<Group>>]>>,
    entries: u64,
}

impl LevelMap {
    /// Returns the number of levels.
    pub fn len(&self) -> usize {
        self.levels.len()
    }

    /// Returns a group of a level, if it exists.
    #[inline]
    pub fn group(&self, level: usize, number: usize) -> Option<&Arc<Group>> {
        self.levels.get(level)?.get(number)?.as_ref()
    }

    /// Returns the first page of a key, from this level on, that has entries.
    #[inline]
    pub fn next_page(&self, plan: LevelPlan, from: usize, hash: KeyHash) -> Option<FoundPage> {
        (from..self.levels.len()).find_map(|level| {
            let LevelPage { group, index } = plan.page(level, hash);
            let group = self.group(level, group).filter(|it| has_entries(it, index))?;
            Some(FoundPage { level, group: Arc::clone(group), index })
        })
    }

    /// Returns whether a page of this key has entries, in this level or a later one.
    pub fn reaches(&self, plan: LevelPlan, from: usize, hash: KeyHash) -> bool {
        (from..self.levels.len()).any(|level| self.has_page(plan, level, hash))
    }

    /// Returns whether the page of this key in this level has entries.
    pub fn has_page(&self, plan: LevelPlan, level: usize, hash: KeyHash) -> bool {
        let LevelPage { group, index } = plan.page(level, hash);
        self.group(level, group).is_some_and(|it| has_entries(it, index))
    }

    /// Adds a level without entries.
    pub fn add_level(&mut self, plan: LevelPlan) {
        self.levels.push(vec![None; plan.groups(self.levels.len())].into());
    }

    /// Replaces a group, and counts its entries.
    pub fn set(&mut self, level: usize, number: usize, group: Option<Arc<Group>>) {
        let entries = |group: &Option<Arc<Group>>| group.as_ref().map_or(0, |it| it.entries);
        self.entries += entries(&group);
        let before = std::mem::replace(&mut self.levels[level][number], group);
        self.entries -= entries(&before);
    }

    /// Drops the levels after the last one with entries.
    pub fn trim(&mut self) {
        while self.levels.last().is_some_and(|groups| groups.iter().all(Option::is_none)) {
            self.levels.pop();
        }
    }

    /// Returns the entries of each level.
    #[cfg(test)]
    pub fn entries_by_level(&self) -> Vec<u64> {
        let entries = |groups: &[Option<Arc<Group>>]| -> u64 {
            groups.iter().flatten().map(|group| group.entries).sum()
        };
        self.levels.iter().map(|it| entries(it)).collect()
    }

    /// Returns the groups of this map that another one replaces.
    pub fn replaced_by(&self, other: &Self) -> Vec<Arc<Group>> {
        let mut replaced = Vec::new();
        for (level, groups) in self.levels.iter().enumerate() {
            for (number, group) in groups.iter().enumerate() {
                let Some(group) = group else { continue };
                let is_kept = other.group(level, number).is_some_and(|it| Arc::ptr_eq(it, group));
                if !is_kept {
                    replaced.push(Arc::clone(group));
                }
            }
        }
        replaced
    }

    /// Reads the map of a checkpoint, from bytes that may be anything.
    ///
    /// # Errors
    /// Fails with the reader's error if the bytes are corrupt.
    pub fn decode(
        structure: StructureId,
        plan: LevelPlan,
        reader: &mut Reader<'_>,
    ) -> Result<Self> {
        let (mut map, count) = (Self::default(), usize::from(reader.u8()?));
        if count > plan.levels_max() {
            return Err(reader
                .refuse(format!("at most {} levels", plan.levels_max()), count)
                .into());
        }
        for level in 0..count {
            map.decode_level(structure, (plan, level), reader)?;
        }
        if map.levels.last().is_some_and(|groups| groups.iter().all(Option::is_none)) {
            return Err(reader.refuse("entries in the last level", "none").into());
        }
        Ok(map)
    }

    fn decode_level(
        &mut self,
        structure: StructureId,
        (plan, level): (LevelPlan, usize),
        reader: &mut Reader<'_>,
    ) -> Result<()> {
        let mut groups = Vec::new();
        for _ in 0..reader.count(NUMBER_BYTES + 1)? {
            let number = reader.u32()? as usize;
            let next: usize = groups.last().map_or(0, |(last, _)| last + 1);
            if !(next..plan.groups(level)).contains(&number) {
                let expected = format!("a group from {next} to {}", plan.groups(level) - 1);
                return Err(reader.refuse(expected, number).into());
            }
            let group = Group::decode(structure, reader)?;
            check_group(&group, plan.group_pages(level), reader)?;
            groups.push((number, Arc::new(group)));
        }
        self.add_level(plan);
        groups.into_iter().for_each(|(number, group)| self.set(level, number, Some(group)));
        Ok(())
    }
}

impl GroupMap for LevelMap {
    const NAME: &'static str = "the map of its pages";
    const NOUN: &'static str = "pages";

    fn encoded_bytes(&self) -> usize {
        let groups = self.groups().map(|it| NUMBER_BYTES + it.encoded_bytes()).sum::<usize>();
        1 + self.levels.len() * COUNT_BYTES + groups
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.push(self.levels.len() as u8);
        for groups in &self.levels {
            let count = groups.iter().flatten().count();
            out.extend_from_slice(&(count as u32).to_le_bytes());
            for (number, group) in (0u32..).zip(groups) {
                if let Some(group) = group {
                    out.extend_from_slice(&number.to_le_bytes());
                    group.encode(out);
                }
            }
        }
    }

    /// Returns the groups level by level.
    fn groups(&self) -> impl Iterator<Item = &Arc<Group>> {
        self.levels.iter().flat_map(|groups| groups.iter().flatten())
    }

    fn entries(&self) -> u64 {
        self.entries
    }

    fn ram_bytes(&self) -> u64 {
        let places: usize = self.levels.iter().map(|groups| groups.len()).sum();
        let own = size_of::<Self>() + places * size_of::<Option<Arc<Group>>>();
        own as u64 + self.groups().map(|it| it.ram_bytes()).sum::<u64>()
    }
}

/// The bytes of the number of groups of a level, and of a group's number.
const COUNT_BYTES: usize = 4;
const NUMBER_BYTES: usize = 4;

/// Returns whether this page of a group has entries.
#[inline]
fn has_entries(group: &Group, index: usize) -> bool {
    group.notes[index] != 0
}

/// Refuses a group whose length differs from its level's, with other notes, or without entries.
fn check_group(group: &Group, pages: usize, reader: &Reader<'_>) -> Result<()> {
    if group.notes.len() != pages {
        let expected = format!("a group of {pages} pages");
        return Err(reader.refuse(expected, group.notes.len()).into());
    }
    let used = group.notes.iter().filter(|note| **note == 1).count() as u64;
    if used == 0 || used > group.entries || group.notes.iter().any(|note| *note > 1) {
        let expected = "pages with entries, and others";
        return Err(reader.refuse(expected, format!("{:?}", group.notes)).into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use nandex_device::PageId;

    use super::*;

    const PLAN: LevelPlan = LevelPlan { first_bits: 1, group_bits: 2 };

    fn group(start: u64, notes: &[u8]) -> Arc<Group> {
        Arc::new(Group::new(StructureId(3), (PageId(start), 7), notes.to_vec(), 9))
    }

    fn hash(filter: u64) -> KeyHash {
        KeyHash { place: 0, filter }
    }

    /// Creates a map of two pages, four pages, and eight pages of which four exist.
    fn map() -> LevelMap {
        let mut map = LevelMap::default();
        (0..3).for_each(|_| map.add_level(PLAN));
        map.set(0, 0, Some(group(100, &[1, 1])));
        map.set(1, 0, Some(group(200, &[1, 0, 0, 1])));
        map.set(2, 1, Some(group(300, &[0, 0, 1, 1])));
        map
    }

    #[test]
    fn a_key_has_a_page_in_each_level_and_those_without_entries_are_passed_over() {
        let map = map();
        assert_eq!((map.pages(), map.entries, map.len()), (10, 27, 3));
        let pages = |filter: u64| {
            let mut from = 0;
            let next = || {
                let found = map.next_page(PLAN, from, hash(filter))?;
                from = found.level + 1;
                Some(found.group.place.extent.start.0 + found.index as u64)
            };
            std::iter::from_fn(next).collect::<Vec<_>>()
        };
        assert_eq!(pages(0), [100, 200]);
        assert_eq!(pages(3 << 61), [100]);
        assert_eq!(pages(u64::MAX), [101, 203, 303]);
        assert_eq!(pages(0b110 << 61), [101, 203, 302]);
        assert!(map.reaches(PLAN, 2, hash(u64::MAX)) && !map.reaches(PLAN, 2, hash(0)));
        let one = LevelPlan { first_bits: 0, group_bits: 0 };
        assert_eq!(one.page(0, hash(u64::MAX)), LevelPage { group: 0, index: 0 });
    }

    #[test]
    fn levels_read_back_and_others_are_refused() {
        let read = |bytes: &[u8]| {
            LevelMap::decode(StructureId(3), PLAN, &mut Reader::new(bytes, "levels", PageId(0)))
        };
        for map in [LevelMap::default(), map()] {
            let mut bytes = Vec::new();
            map.encode(&mut bytes);
            assert_eq!(bytes.len(), map.encoded_bytes());
            assert_eq!(read(&bytes).unwrap(), map);
            assert!((0..bytes.len()).all(|length| read(&bytes[..length]).is_err()));
        }
        let mut bad = [map(), map(), map(), map(), map()];
        bad[0].set(0, 0, Some(group(100, &[1])));
        bad[1].set(1, 0, Some(group(200, &[0, 0, 0, 0])));
        bad[2].set(1, 0, Some(group(200, &[0, 0, 0, 2])));
        bad[3].set(2, 1, None);
        (0..BITS_MAX).for_each(|_| bad[4].levels.push([None].into()));
        for (at, map) in bad.iter().enumerate() {
            let mut bytes = Vec::new();
            map.encode(&mut bytes);
            assert!(read(&bytes).is_err(), "{at}");
        }
    }
}
