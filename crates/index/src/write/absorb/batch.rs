//! The versions of one share in RAM: sorted by their places, until each key shows what each table has of it.

use nandex_device::{prefer_huge_pages, prefetch};
use nandex_store::entries::{Entry, EntryLayout, SlotState};

use super::{Absorbed, Prefer, Share};
use crate::{Error, Result};

/// Versions in a bucket of the sort, about: few enough to stay in the processor's cache.
const BUCKET_VERSIONS: usize = 256;
/// Buckets of the sort, at most.
const BUCKET_BITS_MAX: u32 = 12;
/// Records that are fetched ahead, since their order is not that of the memory.
const RECORDS_AHEAD: usize = 16;

/// A version, by the place of its key and its number in the order of reading.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(crate) struct Placed {
    pub(super) place: u64,
    number: u32,
}

/// Versions of the keys of a share: table after table, and of each key in a table the newest first.
#[derive(Debug)]
pub(crate) struct Batch {
    layout: EntryLayout,
    versions_max: usize,
    /// State, key and value of each version, in the order of reading.
    records: Vec<u8>,
    order: Vec<Placed>,
    /// The other half of the sort, then what was chosen.
    spare: Vec<Placed>,
    /// The number of each table's first version.
    firsts: Vec<u32>,
    /// What was found of its keys.
    counts: Absorbed,
}

/// Entries of a batch that were chosen, in the order of their places.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chosen<'b> {
    batch: &'b Batch,
    placed: &'b [Placed],
}

/// The rule by which entries are chosen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Rule {
    pub prefer: Prefer,
    /// Is the first table the one that absorbs? What it has needs not be chosen.
    pub into_first: bool,
    /// Does that table hold nothing of its own, but part of an earlier merge of the others?
    pub resumes: bool,
}

impl Batch {
    /// Bytes of RAM for a version of such entries.
    pub(super) fn version_bytes(layout: EntryLayout) -> usize {
        1 + layout.entry_bytes() + 2 * size_of::<Placed>()
    }

    /// An empty one with place for `versions`, and for no more than `versions_max`.
    pub(super) fn new(layout: EntryLayout, versions: usize, versions_max: usize) -> Self {
        let record_bytes = 1 + layout.entry_bytes();
        Self {
            layout,
            versions_max,
            records: read_at_random(versions * record_bytes),
            order: read_at_random(versions),
            spare: read_at_random(versions),
            firsts: Vec::new(),
            counts: Absorbed::default(),
        }
    }

    pub(super) fn ram_bytes(&self) -> u64 {
        let placed = self.order.capacity() + self.spare.capacity();
        (self.records.capacity() + placed * size_of::<Placed>()) as u64
    }

    pub(super) fn clear(&mut self) {
        self.records.clear();
        self.order.clear();
        self.spare.clear();
        self.firsts.clear();
    }

    /// The versions that come next are another table's.
    pub(super) fn begin_table(&mut self) {
        self.firsts.push(self.order.len() as u32);
    }

    /// Adds a version.
    ///
    /// # Errors
    /// More versions than its RAM is for.
    #[inline]
    pub(super) fn push(&mut self, place: u64, entry: Entry<'_>) -> Result<()> {
        let number = self.order.len();
        if number == self.order.capacity() {
            self.grow()?;
        }
        self.order.push(Placed { place, number: number as u32 });
        self.records.push(entry.state as u8);
        self.records.extend_from_slice(entry.key);
        match entry.state {
            SlotState::Live => self.records.extend_from_slice(entry.value),
            SlotState::Tombstone => {
                let end = (number + 1) * (1 + self.layout.entry_bytes());
                self.records.resize(end, 0);
            }
        }
        Ok(())
    }

    /// Takes more RAM, an eighth at a time, as far as it may.
    #[cold]
    fn grow(&mut self) -> Result<()> {
        let held = self.order.len();
        let more = (held / 8).max(64).min(self.versions_max.saturating_sub(held));
        if more == 0 {
            let reason = format!(
                "the RAM for {held} versions of entries is too little for this part of the tables; state more"
            );
            return Err(Error::Config { field: "ram_bytes", reason });
        }
        self.order.reserve_exact(more);
        self.spare.reserve_exact(held + more);
        self.records.reserve_exact(more * (1 + self.layout.entry_bytes()));
        Ok(())
    }

    /// Sorts the versions by place, those of one place in the order of reading. First into buckets by the bits that
    /// follow the share's, then within each bucket.
    pub(super) fn sort(&mut self, share: Share) {
        let buckets = (self.order.len() / BUCKET_VERSIONS).max(1);
        let bits = buckets.ilog2().min(BUCKET_BITS_MAX);
        let mut ends = vec![0usize; (1 << bits) + 1];
        for placed in &self.order {
            ends[share.next_bits(placed.place, bits) + 1] += 1;
        }
        for bucket in 1..ends.len() {
            ends[bucket] += ends[bucket - 1];
        }
        self.spare.clear();
        self.spare.resize(self.order.len(), Placed::default());
        // While versions are placed, each bucket's end is where its next one goes.
        for placed in &self.order {
            let end = &mut ends[share.next_bits(placed.place, bits)];
            self.spare[*end] = *placed;
            *end += 1;
        }
        let mut start = 0;
        for end in &ends[..1 << bits] {
            self.spare[start..*end].sort_unstable();
            start = *end;
        }
        std::mem::swap(&mut self.order, &mut self.spare);
    }

    /// Counts the keys of a sorted batch, and chooses by the rule which entries are put.
    pub(super) fn choose(&mut self, rule: Rule) {
        let mut counts = Absorbed { keys_of: vec![0; self.firsts.len()], ..Absorbed::default() };
        self.choose_counting(rule, &mut counts);
        self.counts = counts;
    }

    fn choose_counting(&mut self, rule: Rule, counts: &mut Absorbed) {
        let mut chosen = std::mem::take(&mut self.spare);
        chosen.clear();
        let mut newest = vec![None; self.firsts.len()];
        let (mut rest, mut others) = (Vec::new(), Vec::new());
        let mut passed = 0;
        for group in self.order.chunk_by(|one, next| one.place == next.place) {
            let ahead = self.order.iter().skip(passed + RECORDS_AHEAD).take(group.len());
            ahead.for_each(|placed| self.prefetch(placed.number));
            passed += group.len();
            if let [only] = group {
                newest.fill(None);
                newest[self.table_of(only.number)] = Some(only.number);
                let winner = self.winner(&newest, rule, counts);
                chosen.extend(winner.map(|number| Placed { place: only.place, number }));
                continue;
            }
            rest.clear();
            rest.extend_from_slice(group);
            // Two keys of one place are rare.
            while let Some(&first) = rest.first() {
                let key = self.entry(first.number).key;
                newest.fill(None);
                for placed in &rest {
                    if self.entry(placed.number).key == key {
                        newest[self.table_of(placed.number)].get_or_insert(placed.number);
                    } else {
                        others.push(*placed);
                    }
                }
                let winner = self.winner(&newest, rule, counts);
                chosen.extend(winner.map(|number| Placed { place: first.place, number }));
                std::mem::swap(&mut rest, &mut others);
                others.clear();
            }
        }
        self.spare = chosen;
    }

    /// The version of a key that is put, from the newest of each table.
    fn winner(&self, newest: &[Option<u32>], rule: Rule, counts: &mut Absorbed) -> Option<u32> {
        let live = |table: usize| {
            let number = newest[table]?;
            let entry = self.entry(number);
            (entry.state == SlotState::Live).then_some((number, entry.value))
        };
        let own = live(0).filter(|_| rule.into_first);
        let own_holders = u64::from(own.is_some() && !rule.resumes);
        let (mut holders, mut differ, mut winner) = (0, false, None);
        for table in 0..newest.len() {
            let Some((number, value)) = live(table) else { continue };
            counts.keys_of[table] += 1;
            if table == 0 && rule.resumes {
                continue;
            }
            holders += 1;
            let before = winner.get_or_insert((number, value));
            differ |= before.1 != value;
            if rule.prefer == Prefer::Last {
                *before = (number, value);
            }
        }
        counts.keys += u64::from(holders > 0);
        counts.shared += u64::from(holders > 1);
        counts.differing += u64::from(differ);
        counts.only_own += u64::from(own.is_some() && holders == own_holders);
        let (number, value) = winner?;
        let is_there = own.is_some_and(|(_, own)| own == value);
        counts.put += u64::from(rule.into_first && !is_there);
        (!is_there).then_some(number)
    }

    #[inline]
    fn entry(&self, number: u32) -> Entry<'_> {
        let record_bytes = 1 + self.layout.entry_bytes();
        let record = &self.records[number as usize * record_bytes..][..record_bytes];
        let (state, rest) = record.split_at(1);
        let (key, value) = rest.split_at(self.layout.key_bytes());
        let is_live = state[0] == SlotState::Live as u8;
        let state = if is_live { SlotState::Live } else { SlotState::Tombstone };
        Entry { state, key, value }
    }

    /// Asks the processor to prefetch what [`entry`](Self::entry) will read.
    #[inline]
    fn prefetch(&self, number: u32) {
        let record_bytes = 1 + self.layout.entry_bytes();
        let first = number as usize * record_bytes;
        prefetch(&self.records[first]);
        prefetch(&self.records[first + record_bytes - 1]);
    }

    #[inline]
    fn table_of(&self, number: u32) -> usize {
        self.firsts.partition_point(|first| *first <= number) - 1
    }

    /// What was found of its keys.
    pub(super) fn counts(&self) -> &Absorbed {
        &self.counts
    }

    /// What was chosen.
    pub(super) fn chosen(&self) -> Chosen<'_> {
        Chosen { batch: self, placed: &self.spare }
    }
}

/// An empty vector of memory that is read at random.
fn read_at_random<T>(capacity: usize) -> Vec<T> {
    let mut memory = Vec::with_capacity(capacity);
    prefer_huge_pages(memory.spare_capacity_mut());
    memory
}

impl<'b> Chosen<'b> {
    pub(crate) fn len(&self) -> usize {
        self.placed.len()
    }

    /// One of them.
    #[inline]
    pub(crate) fn entry(&self, index: usize) -> Entry<'b> {
        self.batch.entry(self.placed[index].number)
    }

    /// All of them.
    pub(crate) fn entries(&self) -> impl Iterator<Item = Entry<'b>> + use<'b> {
        let Self { batch, placed } = *self;
        placed.iter().enumerate().map(move |(at, it)| {
            let ahead = placed.get(at + RECORDS_AHEAD);
            ahead.into_iter().for_each(|it| batch.prefetch(it.number));
            batch.entry(it.number)
        })
    }

    /// Groups of those that `part_of` gives one number, which rises with their places.
    pub(super) fn parts(
        self,
        part_of: impl Fn(u64) -> usize,
    ) -> impl Iterator<Item = (usize, Self)> {
        let Self { batch, placed: all } = self;
        let mut start = 0;
        std::iter::from_fn(move || {
            let part = part_of(all.get(start)?.place);
            let len = all[start..].partition_point(|it| part_of(it.place) <= part);
            let placed = &all[start..start + len];
            start += len;
            Some((part, Self { batch, placed }))
        })
    }

    /// Those that `is_apart` names, and the others.
    pub(crate) fn split(&self, is_apart: impl Fn(Entry<'b>) -> bool) -> (Vec<Placed>, Vec<Placed>) {
        let is_apart = |placed: &Placed| is_apart(self.batch.entry(placed.number));
        self.placed.iter().copied().partition(is_apart)
    }

    /// These of the same batch.
    pub(crate) fn with<'p>(&self, placed: &'p [Placed]) -> Chosen<'p>
    where
        'b: 'p,
    {
        Chosen { batch: self.batch, placed }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout() -> EntryLayout {
        EntryLayout::new(8, 1).unwrap()
    }

    /// A version of a table: key, and its value unless it was removed.
    type Version = (u64, Option<u8>);

    /// A sorted batch of tables, whose keys have places that collide in threes.
    fn batch(tables: &[&[Version]]) -> Batch {
        let mut batch = Batch::new(layout(), 4, 1000);
        for table in tables {
            batch.begin_table();
            for (key, value) in *table {
                let state = if value.is_some() { SlotState::Live } else { SlotState::Tombstone };
                let (key_bytes, value) = (key.to_le_bytes(), [value.unwrap_or(0)]);
                let entry = Entry { state, key: &key_bytes, value: &value };
                batch.push((key / 3) << 40, entry).unwrap();
            }
        }
        batch.sort(Share::WHOLE);
        batch
    }

    fn chosen(batch: &mut Batch, rule: Rule) -> (Vec<(u64, u8)>, Absorbed) {
        batch.choose(rule);
        let pair = |it: Entry<'_>| (u64::from_le_bytes(it.key.try_into().unwrap()), it.value[0]);
        let mut pairs: Vec<_> = batch.chosen().entries().map(pair).collect();
        pairs.sort_unstable();
        (pairs, batch.counts().clone())
    }

    const FIRST: Rule = Rule { prefer: Prefer::First, into_first: false, resumes: false };
    const LAST: Rule = Rule { prefer: Prefer::Last, ..FIRST };

    #[test]
    fn the_newest_version_of_a_table_counts_and_its_removals_hide_its_own_alone() {
        let one: &[Version] = &[(1, Some(9)), (1, Some(8)), (2, None), (2, Some(7)), (3, Some(3))];
        let two: &[Version] = &[(2, Some(5)), (3, None), (1, Some(9)), (4, Some(4))];
        let (pairs, counts) = chosen(&mut batch(&[one, two]), FIRST);
        assert_eq!(pairs, [(1, 9), (2, 5), (3, 3), (4, 4)]);
        assert_eq!(counts.keys_of, [2, 3]);
        assert_eq!((counts.keys, counts.shared, counts.differing, counts.put), (4, 1, 0, 0));
    }

    #[test]
    fn the_preferred_table_wins_and_differing_values_are_counted() {
        let one: &[Version] = &[(1, Some(1)), (2, Some(2)), (5, Some(5))];
        let two: &[Version] = &[(1, Some(10)), (2, Some(2))];
        let three: &[Version] = &[(1, Some(1)), (5, Some(50))];
        let (pairs, counts) = chosen(&mut batch(&[one, two, three]), FIRST);
        assert_eq!(pairs, [(1, 1), (2, 2), (5, 5)]);
        assert_eq!((counts.keys, counts.shared, counts.differing), (3, 3, 2));
        let (pairs, counts) = chosen(&mut batch(&[one, two, three]), LAST);
        assert_eq!(pairs, [(1, 1), (2, 2), (5, 50)]);
        assert_eq!((counts.keys, counts.shared, counts.differing), (3, 3, 2));
    }

    #[test]
    fn what_the_absorbing_table_has_is_not_put_again() {
        let own: &[Version] = &[(1, Some(1)), (2, Some(2)), (3, None), (4, Some(4))];
        let other: &[Version] = &[(1, Some(10)), (2, Some(2)), (3, Some(30)), (6, Some(6))];
        let rule = Rule { into_first: true, ..FIRST };
        let (pairs, counts) = chosen(&mut batch(&[own, other]), rule);
        assert_eq!(pairs, [(3, 30), (6, 6)]);
        assert_eq!((counts.put, counts.keys, counts.only_own), (2, 5, 1));
        let rule = Rule { into_first: true, ..LAST };
        let (pairs, counts) = chosen(&mut batch(&[own, other]), rule);
        assert_eq!(pairs, [(1, 10), (3, 30), (6, 6)]);
        assert_eq!((counts.put, counts.only_own), (3, 1));
    }

    #[test]
    fn who_resumes_replaces_what_others_say_otherwise_and_counts_the_others_alone() {
        let own: &[Version] = &[(1, Some(1)), (2, Some(7)), (9, Some(9))];
        let one: &[Version] = &[(1, Some(1)), (2, Some(2)), (3, Some(3))];
        let two: &[Version] = &[(1, Some(10)), (4, Some(4))];
        let rule = Rule { into_first: true, resumes: true, ..FIRST };
        let (pairs, counts) = chosen(&mut batch(&[own, one, two]), rule);
        assert_eq!(pairs, [(2, 2), (3, 3), (4, 4)]);
        assert_eq!((counts.keys, counts.shared, counts.differing), (4, 1, 1));
        assert_eq!((counts.put, counts.only_own), (3, 1));
        assert_eq!(counts.keys_of, [3, 3, 2]);
    }

    #[test]
    fn many_versions_sort_by_place_and_age() {
        let mut batch = Batch::new(layout(), 1, 100_000);
        for number in 0..50_000u64 {
            let place = (number % 20_000).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let key = number.to_le_bytes();
            batch.push(place, Entry { state: SlotState::Live, key: &key, value: &[1] }).unwrap();
        }
        batch.sort(Share::WHOLE);
        assert_eq!(batch.order.len(), 50_000);
        assert!(batch.order.is_sorted());
    }

    #[test]
    fn a_batch_takes_no_more_than_its_ram_is_for() {
        let mut batch = Batch::new(layout(), 10, 200);
        let key = [1; 8];
        let entry = Entry { state: SlotState::Live, key: &key, value: &[1] };
        let taken = (0..1000).take_while(|place| batch.push(*place, entry).is_ok()).count();
        assert_eq!(taken, 200);
        let most = 200 * Batch::version_bytes(layout()) as u64;
        assert!(batch.ram_bytes() <= most, "{} of {most}", batch.ram_bytes());
    }
}
