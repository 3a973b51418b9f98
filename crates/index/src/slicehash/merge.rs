//! The merge: applies new entries to the slices of a slicetable, page after page, with each key stored once.
//!
//! A slice holds all versions of its keys, so the merge sees them all: an update removes the older version, and a
//! removal removes it and leaves nothing. New entries are added at the young end. If a page overflows, its oldest
//! entries move on to the slice's next part, and from the last part they are evicted. If nothing may be evicted, new
//! entries go to the first part with space; those that fit no part stay in RAM.

use std::iter::Peekable;

use nandex_device::PageId;
use nandex_store::entries::{Entry, SlotState};

use super::layout::Slicing;
use super::slice::SliceLayout;

/// An entry to merge, and its slice.
#[derive(Clone, Copy, Debug)]
pub(super) struct Incoming<'e> {
    pub slice: u32,
    pub entry: Entry<'e>,
}

/// The result of a merge.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Outcome {
    /// Entries that the slicetable had.
    pub before: u64,
    /// Entries in the slicetable.
    pub entries: u64,
    /// Entries that full slices dropped.
    pub evicted: u64,
}

/// Entries between one part of a slice and the next, oldest first.
#[derive(Debug, Default)]
struct Carry(Vec<(Vec<u8>, Vec<u8>)>);

/// A merge of a slicetable in progress.
pub(super) struct Merge<'e, I: Iterator<Item = Incoming<'e>>> {
    layout: SliceLayout,
    slicing: Slicing,
    /// Whether full slices may drop entries.
    evicts: bool,
    /// Whether each new key occurs once.
    is_unique: bool,
    /// The entries for slices that are not merged yet, by slice; of two with the same key the later one is
    /// newer.
    incoming: Peekable<I>,
    /// The slices whose pages are interleaved.
    group: Vec<Member<'e>>,
    outcome: Outcome,
    refused: Vec<Entry<'e>>,
    /// The keys that full slices dropped, if they are requested.
    evicted: Option<Vec<Vec<u8>>>,
    gaps: Vec<usize>,
}

/// One slice of the current group.
#[derive(Debug, Default)]
struct Member<'e> {
    incoming: Vec<Entry<'e>>,
    /// New entries that no part has taken yet, newest last.
    new: Vec<Entry<'e>>,
    /// The entries that the part before had to drop.
    carry: Carry,
}

impl<'e, I: Iterator<Item = Incoming<'e>>> Merge<'e, I> {
    pub(super) fn new(layout: SliceLayout, slicing: Slicing, evicts: bool, incoming: I) -> Self {
        Self {
            layout,
            slicing,
            evicts,
            is_unique: false,
            incoming: incoming.peekable(),
            group: Vec::new(),
            outcome: Outcome::default(),
            refused: Vec::new(),
            evicted: None,
            gaps: Vec::new(),
        }
    }

    /// Declares that each new key occurs once. Then the merge does not search for newer versions, which is slow for
    /// many keys.
    pub(super) fn of_unique_keys(self) -> Self {
        Self { is_unique: true, ..self }
    }

    /// Makes [`evicted`](Self::evicted) return the keys that full slices drop.
    pub(super) fn naming_evicted(self) -> Self {
        Self { evicted: Some(Vec::new()), ..self }
    }

    /// Returns the keys that full slices have dropped since the last call.
    pub(super) fn evicted(&mut self) -> Vec<Vec<u8>> {
        self.evicted.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Merges into a page of the block; pages come in ascending order, from the first.
    ///
    /// # Errors
    /// A page that claims more than it can hold.
    pub(super) fn page(
        &mut self,
        (index, place): (u64, PageId),
        body: &mut [u8],
    ) -> nandex_store::Result<()> {
        let Some((slice, part)) = self.slicing.slice_of(index) else { return Ok(()) };
        let Some(before) = self.layout.count(body) else {
            let most = format!("at most {} entries", self.layout.capacity());
            return Err(nandex_store::Error::corrupt("slice", place, most, "more"));
        };
        self.outcome.before += before as u64;
        let at = self.slicing.member(slice);
        if part == 0 {
            self.begin(slice, at);
        }
        let mut member = std::mem::take(&mut self.group[at]);
        self.remove_old(&mut member, body);
        if self.evicts {
            self.add_with_way(&mut member, body);
        } else {
            self.add_where_space(&mut member, body);
        }
        if part + 1 == self.slicing.parts {
            self.outcome.evicted += member.carry.0.len() as u64;
            let keys = member.carry.0.drain(..).map(|(key, _)| key);
            match &mut self.evicted {
                Some(evicted) => evicted.extend(keys),
                None => drop(keys),
            }
            self.refused.append(&mut member.new);
        }
        self.group[at] = member;
        self.outcome.entries += self.layout.count(body).expect("it had a count before") as u64;
        Ok(())
    }

    /// Returns the result of the merge, and the entries that did not fit.
    ///
    /// # Panics
    /// If pages of slices with new entries were skipped.
    pub(super) fn finish(mut self) -> (Outcome, Vec<Entry<'e>>) {
        let left = self.incoming.next().map(|incoming| incoming.slice);
        assert!(left.is_none(), "entries of slice {left:?} found no page");
        (self.outcome, self.refused)
    }

    /// Takes the new entries of a slice, keeping the newest of each key.
    fn begin(&mut self, slice: u32, at: usize) {
        if at == self.group.len() {
            self.group.push(Member::default());
        }
        let Member { incoming, new, .. } = &mut self.group[at];
        incoming.clear();
        while let Some(next) = self.incoming.next_if(|next| next.slice == slice) {
            incoming.push(next.entry);
        }
        for (nth, entry) in incoming.iter().enumerate() {
            let mut later = incoming[nth + 1..].iter();
            let is_newest = self.is_unique || !later.any(|later| later.key == entry.key);
            if is_newest && entry.state == SlotState::Live {
                new.push(*entry);
            }
        }
    }

    /// Removes the entries of a page that have a newer version or a removal in the slice.
    fn remove_old(&mut self, member: &mut Member<'e>, body: &mut [u8]) {
        let count = self.layout.count(body).expect("it was looked at");
        self.gaps.clear();
        let keys = member.incoming.iter().map(|entry| entry.key);
        self.gaps.extend(keys.filter_map(|key| self.layout.find(body, count, key)));
        if !self.evicts {
            // Updates first, so that each fits into the space of its older version.
            let is_new = |entry: &Entry<'e>| self.layout.find(body, count, entry.key).is_none();
            member.new.sort_by_cached_key(is_new);
        }
        self.gaps.sort_unstable();
        self.gaps.dedup();
        self.layout.remove(body, &self.gaps);
    }

    /// Adds all entries, older first; the oldest are dropped.
    fn add_with_way(&self, member: &mut Member<'e>, body: &mut [u8]) {
        let carried = std::mem::take(&mut member.carry.0);
        let carried = carried.iter().map(|(key, value)| (&key[..], &value[..]));
        let new = std::mem::take(&mut member.new);
        let new = new.iter().map(|entry| (entry.key, entry.value));
        for (key, value) in carried.chain(new) {
            self.make_way(&mut member.carry, body);
            self.layout.push(body, key, value);
        }
    }

    fn make_way(&self, carry: &mut Carry, body: &mut [u8]) {
        if self.layout.count(body) == Some(self.layout.capacity()) {
            let (key, value) = (self.layout.key(body, 0), self.layout.value(body, 0));
            carry.0.push((key.to_vec(), value.to_vec()));
            self.layout.remove_oldest(body, 1);
        }
    }

    /// Adds the entries that fit into the page.
    fn add_where_space(&self, member: &mut Member<'e>, body: &mut [u8]) {
        let count = self.layout.count(body).expect("it was looked at");
        let space = (self.layout.capacity() - count).min(member.new.len());
        for entry in member.new.drain(..space) {
            self.layout.push(body, entry.key, entry.value);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use nandex_store::page::PAGE_BODY_BYTES;

    use super::*;
    use crate::slicehash::Config;

    /// A slicetable in plain memory, merged into repeatedly.
    struct Table {
        config: Config,
        pages: Vec<Vec<u8>>,
    }

    impl Table {
        fn new(config: Config) -> Self {
            let pages = vec![vec![0; PAGE_BODY_BYTES]; config.block_pages() as usize];
            Self { config, pages }
        }

        /// Merges puts (a value) and removals; returns the outcome and the refused keys.
        fn merge(&mut self, evicts: bool, updates: &[(u64, Option<u64>)]) -> (Outcome, Vec<u64>) {
            let slicing = Slicing::new(&self.config);
            let bytes: Vec<_> = updates
                .iter()
                .map(|(key, value)| (key.to_le_bytes(), value.unwrap_or(0).to_le_bytes()))
                .collect();
            let mut incoming: Vec<_> = bytes
                .iter()
                .zip(updates)
                .map(|((key, value), (number, put))| {
                    let state = if put.is_some() { SlotState::Live } else { SlotState::Tombstone };
                    let slice = (*number % u64::from(slicing.slices)) as u32;
                    Incoming { slice, entry: Entry { state, key, value } }
                })
                .collect();
            incoming.sort_by_key(|incoming| incoming.slice);
            let layout = self.config.slice_layout();
            let mut merge = Merge::new(layout, slicing, evicts, incoming.iter().copied());
            for (index, body) in (0..).zip(&mut self.pages) {
                merge.page((index, PageId(index)), body).unwrap();
            }
            let (outcome, refused) = merge.finish();
            let number = |entry: &Entry<'_>| u64::from_le_bytes(entry.key.try_into().unwrap());
            (outcome, refused.iter().map(number).collect())
        }

        fn read(&self) -> HashMap<u64, u64> {
            let (layout, slicing) = (self.config.slice_layout(), Slicing::new(&self.config));
            let mut found = HashMap::new();
            for (index, body) in (0..).zip(&self.pages) {
                for at in 0..layout.count(body).unwrap() {
                    let number = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap());
                    let (key, value) =
                        (number(layout.key(body, at)), number(layout.value(body, at)));
                    let slice = slicing.slice_of(index).unwrap().0;
                    assert_eq!(key % u64::from(slicing.slices), u64::from(slice));
                    assert_eq!(found.insert(key, value), None, "key {key} is there twice");
                }
            }
            found
        }
    }

    fn configs() -> [Config; 2] {
        let one = Config { slices: 4, ..Config::tiny() };
        [one, Config { slices: 5, slice_parts: 3, group_slices: 2, ..one }]
    }

    #[test]
    fn merges_agree_with_a_map_while_there_is_space() {
        for config in configs() {
            for evicts in [true, false] {
                let mut table = Table::new(config);
                let mut oracle = HashMap::new();
                for round in 0..40u64 {
                    let updates: Vec<_> = (0..60)
                        .map(|nth| {
                            let key = (round * 37 + nth * nth) % 700;
                            (key, (nth % 4 != 0).then_some(round * 1000 + nth))
                        })
                        .collect();
                    for (key, value) in &updates {
                        match value {
                            Some(value) => oracle.insert(*key, *value),
                            None => oracle.remove(key),
                        };
                    }
                    let (outcome, refused) = table.merge(evicts, &updates);
                    assert_eq!((outcome.evicted, refused), (0, vec![]));
                    assert_eq!(table.read(), oracle);
                    assert_eq!(outcome.entries, oracle.len() as u64);
                }
            }
        }
    }

    #[test]
    fn a_full_slice_drops_its_oldest_entries_and_no_others() {
        for config in configs() {
            let mut table = Table::new(config);
            let slices = u64::from(config.slices);
            let space = u64::from(config.slice_entries());
            for first in (0..space + 90).step_by(10) {
                let updates: Vec<_> =
                    (first..first + 10).map(|nth| (nth * slices, Some(nth))).collect();
                table.merge(true, &updates);
            }
            let mut kept: Vec<_> = table.read().into_values().collect();
            kept.sort_unstable();
            let all = (space + 90).next_multiple_of(10);
            assert_eq!(kept, (all - space..all).collect::<Vec<_>>());
        }
    }

    #[test]
    fn where_nothing_is_evicted_new_entries_are_refused_and_updates_are_not() {
        for config in configs() {
            let mut table = Table::new(config);
            let (slices, space) = (u64::from(config.slices), u64::from(config.slice_entries()));
            let put = |nth: u64| (nth * slices, Some(nth));
            for first in (0..space).step_by(50) {
                let updates: Vec<_> = (first..(first + 50).min(space)).map(put).collect();
                assert_eq!(table.merge(false, &updates).1, []);
            }
            let (outcome, refused) =
                table.merge(false, &[put(space), (slices, Some(9)), (0, None)]);
            // The removal makes space for the new entry, whichever part it was in.
            assert_eq!((outcome.entries, refused.len()), (space, 0));
            let (outcome, refused) = table.merge(false, &[put(space + 1), (slices, Some(8))]);
            assert_eq!((outcome.entries, refused), (space, vec![(space + 1) * slices]));
            assert_eq!(table.read()[&slices], 8);
        }
    }

    #[test]
    fn of_two_versions_in_one_merge_the_later_one_stays() {
        let mut table = Table::new(configs()[0]);
        table.merge(
            true,
            &[(4, Some(1)), (8, Some(1)), (4, Some(2)), (8, None), (12, None), (12, Some(3))],
        );
        assert_eq!(table.read(), HashMap::from([(4, 2), (12, 3)]));
    }

    #[test]
    fn a_page_that_says_more_than_it_holds_is_damage() {
        let mut table = Table::new(configs()[0]);
        table.pages[2][0] = 255;
        let (layout, slicing) = (table.config.slice_layout(), Slicing::new(&table.config));
        let mut merge = Merge::new(layout, slicing, true, std::iter::empty());
        let error = merge.page((2, PageId(77)), &mut table.pages[2]).unwrap_err();
        assert!(error.to_string().contains("page 77"), "{error}");
    }
}
