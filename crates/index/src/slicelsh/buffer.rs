//! The write buffer of a partition: the in-memory hash tables of all tables, combined.
//!
//! Entries are in order of arrival, with a chain of those that share a place in the index. A pair occurs once: as put,
//! or as removed, whichever came last. A bucket takes at most its maximum number of ids: of those on flash and here the
//! oldest stay, so a later one has no chance, however many of the older ones are on flash.

use nandex_device::prefetch;
use nandex_store::hash::KeyHash;

use super::format::DocumentCodec;
use super::keys::Pair;
use super::snapshot::BucketSnapshots;
use crate::Result;
use crate::write::WriteBuffer;

/// Set in an entry's tag if it removes the pair; the other bits are the table.
const REMOVED: u8 = 0x80;

/// One update: a pair to put or to remove.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PairUpdate {
    pub pair: Pair,
    pub hash: KeyHash,
    pub removes: bool,
}

/// The effect of an update on a buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Taken {
    /// The buffer has the update now.
    Changed,
    /// The buffer already had the update.
    Unchanged,
    /// The bucket already has its maximum number of ids here.
    Dropped,
    /// The buffer has no space for the update.
    Full,
}

/// The entries of a partition that are not on flash yet.
#[derive(Debug)]
pub(crate) struct BucketBuffer {
    keys: Vec<u64>,
    ids: Vec<u64>,
    tags: Vec<u8>,
    /// The next older entry of each entry's chain, counted from 1; 0 for none.
    links: Vec<u32>,
    /// The youngest entry of each chain, counted from 1; 0 for none.
    heads: Box<[u32]>,
    entries_max: usize,
    /// The number of entries at which it counts as full; temporarily lower than `entries_max`.
    limit: usize,
    bucket_ids_max: usize,
    /// The number of entries that are removals.
    removals: usize,
}

impl BucketBuffer {
    /// An empty buffer.
    pub(super) fn new(entries_max: u32, bucket_ids_max: u32) -> Self {
        let entries_max = entries_max as usize;
        Self {
            keys: Vec::with_capacity(entries_max),
            ids: Vec::with_capacity(entries_max),
            tags: Vec::with_capacity(entries_max),
            links: Vec::with_capacity(entries_max),
            heads: vec![0; heads(entries_max)].into(),
            entries_max,
            limit: entries_max,
            bucket_ids_max: bucket_ids_max as usize,
            removals: 0,
        }
    }

    /// Returns the bytes of RAM of a buffer for `entries_max` entries.
    pub(super) const fn bytes_of(entries_max: u64) -> u64 {
        entries_max * (8 + 8 + 1 + 4) + heads(entries_max as usize) as u64 * 4
    }

    pub(super) fn len(&self) -> usize {
        self.keys.len()
    }

    /// Returns the number of pairs that it puts: its entries without the removals.
    pub(super) const fn pairs_put(&self) -> u64 {
        (self.tags.len() - self.removals) as u64
    }

    /// Returns the maximum number of entries that it is made for.
    pub(super) const fn slots(&self) -> usize {
        self.entries_max
    }

    /// Returns whether it has space for `count` more entries.
    pub(super) fn has_space(&self, count: usize) -> bool {
        self.len() + count <= self.limit
    }

    #[inline]
    fn head_of(&self, table: u8, hash: KeyHash) -> usize {
        let mixed = (hash.filter as u32) ^ u32::from(table).wrapping_mul(0x9E37_79B9);
        ((u64::from(mixed) * self.heads.len() as u64) >> 32) as usize
    }

    /// Prefetches the head of a bucket's chain.
    #[inline]
    pub(super) fn prefetch(&self, table: u8, hash: KeyHash) {
        prefetch(&self.heads[self.head_of(table, hash)]);
    }

    /// Returns the entries of a chain that belong to this bucket, youngest first.
    fn chain(&self, (table, key): (u8, u64), hash: KeyHash) -> impl Iterator<Item = usize> + '_ {
        let first = self.heads[self.head_of(table, hash)];
        let at = |link: u32| (link as usize).checked_sub(1);
        let all = std::iter::successors(at(first), move |index| at(self.links[*index]));
        all.filter(move |index| self.keys[*index] == key && self.tags[*index] & !REMOVED == table)
    }

    /// Applies an update, unless there is no space for it.
    pub(super) fn put(&mut self, update: PairUpdate) -> Taken {
        if let Some(taken) = self.put_known(update) {
            return taken;
        }
        if !self.has_space(1) {
            return Taken::Full;
        }
        self.push_new(update)
    }

    /// Applies an update, however full the buffer is.
    pub(super) fn put_forced(&mut self, update: PairUpdate) -> Taken {
        self.put_known(update).unwrap_or_else(|| self.push_new(update))
    }

    /// Applies an update of a pair that it already has, or that its bucket drops.
    fn put_known(&mut self, update: PairUpdate) -> Option<Taken> {
        let PairUpdate { pair: Pair { table, key, id }, hash, removes } = update;
        let mut live = 0;
        let mut known = None;
        for index in self.chain((table, key), hash) {
            if self.ids[index] == id {
                known = Some(index);
                break;
            }
            live += usize::from(self.tags[index] & REMOVED == 0);
        }
        if let Some(index) = known {
            let tag = tag_of(table, removes);
            let before = std::mem::replace(&mut self.tags[index], tag);
            self.removals -= usize::from(before & REMOVED != 0);
            self.removals += usize::from(removes);
            return Some(if before == tag { Taken::Unchanged } else { Taken::Changed });
        }
        (!removes && live >= self.bucket_ids_max).then_some(Taken::Dropped)
    }

    fn push_new(&mut self, update: PairUpdate) -> Taken {
        let PairUpdate { pair: Pair { table, key, id }, hash, removes } = update;
        self.push((key, id, tag_of(table, removes)), self.head_of(table, hash));
        Taken::Changed
    }

    fn push(&mut self, (key, id, tag): (u64, u64, u8), head: usize) {
        self.keys.push(key);
        self.ids.push(id);
        self.tags.push(tag);
        self.removals += usize::from(tag & REMOVED != 0);
        self.links.push(self.heads[head]);
        self.heads[head] = u32::try_from(self.keys.len()).expect("a buffer has fewer than 2^32");
    }

    /// Puts a pair that is older than all others, unless the buffer has a newer version of it; returns whether it did.
    pub(super) fn put_back(&mut self, pair: Pair, hash: KeyHash) -> bool {
        if self.version(pair, hash).is_some() {
            return false;
        }
        self.push((pair.key, pair.id, pair.table), self.head_of(pair.table, hash));
        true
    }

    /// Returns whether it removes this pair or puts it; `None` if it does not have the pair.
    pub(super) fn version(&self, pair: Pair, hash: KeyHash) -> Option<bool> {
        let mut chain = self.chain((pair.table, pair.key), hash);
        let index = chain.find(|index| self.ids[*index] == pair.id)?;
        Some(self.tags[index] & REMOVED != 0)
    }

    /// Returns the ids that it has for a bucket, and whether each is removed, youngest first.
    pub(super) fn bucket(
        &self,
        bucket: (u8, u64),
        hash: KeyHash,
    ) -> impl Iterator<Item = (u64, bool)> + '_ {
        let chain = self.chain(bucket, hash);
        chain.map(|index| (self.ids[index], self.tags[index] & REMOVED != 0))
    }

    /// Returns the pair at an index, and whether it is removed.
    pub(super) fn get(&self, index: usize) -> (Pair, bool) {
        let (key, id, tag) = (self.keys[index], self.ids[index], self.tags[index]);
        (Pair { table: tag & !REMOVED, key, id }, tag & REMOVED != 0)
    }

    /// Returns all pairs, and whether each is removed, oldest first.
    pub(super) fn pairs(&self) -> impl Iterator<Item = (Pair, bool)> + '_ {
        (0..self.len()).map(|index| self.get(index))
    }
}

const fn tag_of(table: u8, removes: bool) -> u8 {
    if removes { table | REMOVED } else { table }
}

/// Returns the number of chains for `entries_max` entries.
const fn heads(entries_max: usize) -> usize {
    entries_max
}

impl WriteBuffer for BucketBuffer {
    type Update<'u> = PairUpdate;
    type Codec = DocumentCodec;
    type Snapshots = BucketSnapshots;

    /// Putting a pair again leaves it where it is.
    const ADDS_UP: bool = false;

    fn apply(&mut self, updates: &[PairUpdate]) -> Result<usize> {
        let full = updates.iter().position(|update| self.put(*update) == Taken::Full);
        Ok(full.unwrap_or(updates.len()))
    }

    fn force(&mut self, update: PairUpdate) -> bool {
        self.put_forced(update);
        update.removes
    }

    fn entries(&self) -> u64 {
        self.len() as u64
    }

    fn limit(&mut self, entries_max: u64) {
        self.limit = usize::try_from(entries_max).unwrap_or(usize::MAX).min(self.entries_max);
    }

    fn clear(&mut self) {
        self.keys.clear();
        self.ids.clear();
        self.tags.clear();
        self.removals = 0;
        self.links.clear();
        self.heads.fill(0);
        self.limit = self.entries_max;
    }

    fn ram_bytes(&self) -> u64 {
        let words = self.keys.capacity() + self.ids.capacity();
        let halves = self.links.capacity() + self.heads.len();
        (8 * words + 4 * halves + self.tags.capacity()) as u64
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn update(table: u8, key: u64, id: u64, removes: bool) -> PairUpdate {
        // Few chains, so that buckets share them.
        let hash = KeyHash { place: 0, filter: (key % 3) << 30 };
        PairUpdate { pair: Pair { table, key, id }, hash, removes }
    }

    #[test]
    fn a_bucket_takes_as_many_ids_as_it_may_have_and_drops_later_ones() {
        let mut buffer = BucketBuffer::new(100, 3);
        let taken: Vec<_> = (0..5).map(|id| buffer.put(update(1, 7, id, false))).collect();
        use Taken::{Changed, Dropped, Unchanged};
        assert_eq!(taken, [Changed, Changed, Changed, Dropped, Dropped]);
        assert_eq!(buffer.put(update(1, 7, 2, false)), Unchanged);
        assert_eq!(buffer.put(update(2, 7, 9, false)), Changed, "of another table");
        assert_eq!(buffer.put(update(1, 7, 0, true)), Changed);
        assert_eq!(buffer.put(update(1, 7, 8, false)), Changed, "one was removed");
        let hash = update(1, 7, 0, false).hash;
        let bucket: Vec<_> = buffer.bucket((1, 7), hash).collect();
        assert_eq!(bucket, [(8, false), (2, false), (1, false), (0, true)]);
    }

    #[test]
    fn a_full_buffer_takes_what_it_knows_and_what_is_forced() {
        let mut buffer = BucketBuffer::new(2, 9);
        assert_eq!(buffer.apply(&[update(0, 1, 1, false), update(0, 2, 1, false)]).unwrap(), 2);
        assert_eq!(buffer.apply(&[update(0, 1, 1, true), update(0, 3, 1, false)]).unwrap(), 1);
        assert!(buffer.force(update(0, 3, 1, true)));
        assert_eq!(buffer.len(), 3);
        buffer.clear();
        assert_eq!(
            (buffer.len(), buffer.bucket((0, 1), update(0, 1, 1, false).hash).count()),
            (0, 0)
        );
    }

    #[test]
    fn its_ram_is_what_its_size_says() {
        for entries in [1, 64, 1000] {
            let buffer = BucketBuffer::new(entries, 64);
            assert_eq!(buffer.ram_bytes(), BucketBuffer::bytes_of(entries.into()));
        }
    }

    proptest! {
        #[test]
        fn a_buffer_agrees_with_a_list(
            updates in prop::collection::vec((0u8..2, 0u64..4, 0u64..9, any::<bool>()), 1..200),
        ) {
            let mut buffer = BucketBuffer::new(1000, 1000);
            let mut list: Vec<(Pair, bool)> = Vec::new();
            for (table, key, id, removes) in updates {
                let update = update(table, key, id, removes);
                buffer.put(update);
                match list.iter_mut().find(|(pair, _)| *pair == update.pair) {
                    Some((_, removed)) => *removed = removes,
                    None => list.push((update.pair, removes)),
                }
            }
            prop_assert_eq!(buffer.pairs().collect::<Vec<_>>(), list.clone());
            let put = list.iter().filter(|(_, removed)| !removed).count();
            prop_assert_eq!(buffer.pairs_put(), put as u64);
            for (pair, removed) in list {
                let hash = update(pair.table, pair.key, 0, false).hash;
                prop_assert_eq!(buffer.version(pair, hash), Some(removed));
            }
        }
    }
}
