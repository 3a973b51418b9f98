//! The positions of the entries of a shard: buckets of eight tags, each a line of the processor's cache.
//!
//! A tag has two buckets. When both are full, one of their entries moves to its other bucket, one step of cuckoo
//! hashing; if none can, the number of buckets grows. If RAM does not allow that, one of the entries is forgotten: this
//! is a cache. So searches are short, deletions leave no marks, and a lookup usually reads one line.

use nandex_device::prefetch;

use super::Place;

/// Slots of a bucket.
const WAYS: usize = 8;

/// The share of used slots above which there are too few buckets.
const FULL: (usize, usize) = (7, 8);

/// The minimum number of buckets.
const BUCKETS_MIN: usize = 16;

/// The position that marks an empty slot.
const EMPTY: u32 = u32::MAX;

/// A tag and the position of its entry, in units.
type Slot = (u32, u32);

#[derive(Clone, Debug)]
#[repr(align(64))]
struct Bucket([Slot; WAYS]);

impl Bucket {
    const NEW: Self = Self([(0, EMPTY); WAYS]);
}

#[derive(Debug)]
pub(super) struct Slots {
    buckets: Box<[Bucket]>,
    len: usize,
    /// The way that is forgotten next when both buckets are full.
    hand: usize,
}

impl Slots {
    pub fn new() -> Self {
        Self { buckets: vec![Bucket::NEW; BUCKETS_MIN].into(), len: 0, hand: 0 }
    }

    /// The number of entries.
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn ram_bytes(&self) -> usize {
        size_of_val(&*self.buckets)
    }

    /// Prefetches what a lookup reads here.
    pub fn prefetch(&self, place: Place) {
        self.buckets_of(place.tag()).into_iter().for_each(|it| prefetch(&self.buckets[it]));
    }

    /// Returns the positions of entries with a tag.
    #[inline]
    pub fn of(&self, place: Place) -> impl Iterator<Item = u32> {
        let tag = place.tag();
        let slots = self.buckets_of(tag).into_iter().flat_map(|bucket| &self.buckets[bucket].0);
        slots.filter(move |slot| slot.0 == tag && slot.1 != EMPTY).map(|slot| slot.1)
    }

    /// Returns whether there are too few buckets for another entry.
    pub fn is_full(&self) -> bool {
        let (part, whole) = FULL;
        self.len * whole >= self.buckets.len() * WAYS * part
    }

    /// Returns the bytes by which it grows.
    pub fn growth_bytes(&self) -> u64 {
        ((grown(self.buckets.len()) - self.buckets.len()) * size_of::<Bucket>()) as u64
    }

    /// Adds the position of a new entry. With `growth_max` bytes for more buckets there is space for it; otherwise
    /// another entry may be forgotten. Returns whether one was.
    pub fn insert(&mut self, place: Place, unit: u32, growth_max: u64) -> bool {
        let bytes_max = (self.ram_bytes() as u64).saturating_add(growth_max);
        let fits = |buckets: usize| (buckets * size_of::<Bucket>()) as u64 <= bytes_max;
        let slot = (place.tag(), unit);
        let mut forgets = false;
        while self.is_full() || !self.put(slot) {
            let mut buckets = grown(self.buckets.len());
            if !fits(buckets) {
                return forgets | self.put_over(slot);
            }
            // If there is no space for some entries in the new buckets, it grows further.
            while !self.resize(buckets, false) {
                if fits(grown(buckets)) {
                    buckets = grown(buckets);
                } else {
                    forgets |= !self.resize(buckets, true);
                    break;
                }
            }
        }
        forgets
    }

    /// Notes that the entry has moved.
    pub fn move_to(&mut self, place: Place, (from, to): (u32, u32)) {
        if let Some((bucket, way)) = self.find(place, from) {
            self.buckets[bucket].0[way].1 = to;
        }
    }

    /// Removes the entry at this position.
    pub fn remove(&mut self, place: Place, unit: u32) {
        if let Some((bucket, way)) = self.find(place, unit) {
            self.buckets[bucket].0[way].1 = EMPTY;
            self.len -= 1;
        }
    }

    /// Releases buckets that few entries do not need. May forget some entries, and returns whether it has.
    pub fn shrink(&mut self) -> bool {
        let (part, whole) = FULL;
        let needed = (self.len * whole / part).div_ceil(WAYS);
        let buckets = (needed + needed / 4).max(BUCKETS_MIN);
        2 * buckets <= self.buckets.len() && !self.resize(buckets, true)
    }

    fn free_way(&self, bucket: usize) -> Option<usize> {
        self.buckets[bucket].0.iter().position(|(_, unit)| *unit == EMPTY)
    }

    /// Stores a slot in one of its buckets, if there is a free way or an entry can move from one.
    fn put(&mut self, slot: Slot) -> bool {
        let both = self.buckets_of(slot.0);
        let free = both.into_iter().find_map(|it| Some((it, self.free_way(it)?)));
        let Some((bucket, way)) = free.or_else(|| self.make_free(both)) else { return false };
        self.buckets[bucket].0[way] = slot;
        self.len += 1;
        true
    }

    /// Moves an entry of full buckets to its other one, and returns its former position.
    fn make_free(&mut self, both: [usize; 2]) -> Option<(usize, usize)> {
        for (bucket, way) in both.into_iter().flat_map(|it| (0..WAYS).map(move |way| (it, way))) {
            let slot = self.buckets[bucket].0[way];
            let other = self.buckets_of(slot.0).into_iter().find(|it| *it != bucket);
            if let Some((other, free)) = other.and_then(|it| Some((it, self.free_way(it)?))) {
                self.buckets[other].0[free] = slot;
                return Some((bucket, way));
            }
        }
        None
    }

    /// Stores a slot in one of its buckets, replacing another one if there is no free way. Returns whether one was
    /// forgotten.
    fn put_over(&mut self, slot: Slot) -> bool {
        if self.put(slot) {
            return false;
        }
        self.hand = (self.hand + 1) % WAYS;
        self.buckets[self.buckets_of(slot.0)[0]].0[self.hand] = slot;
        true
    }

    /// Changes the number of buckets. Returns whether there was space for all entries; if not, either nothing has
    /// changed, or the others were forgotten.
    fn resize(&mut self, buckets: usize, may_forget: bool) -> bool {
        let new = vec![Bucket::NEW; buckets].into();
        let mut new = Self { buckets: new, len: 0, hand: self.hand };
        let mut keeps_all = true;
        for slot in self.buckets.iter().flat_map(|bucket| bucket.0) {
            if slot.1 == EMPTY || new.put(slot) {
                continue;
            }
            if !may_forget {
                return false;
            }
            keeps_all = false;
            new.put_over(slot);
        }
        *self = new;
        keeps_all
    }

    fn find(&self, place: Place, unit: u32) -> Option<(usize, usize)> {
        self.buckets_of(place.tag()).into_iter().find_map(|bucket| {
            let way = self.buckets[bucket].0.iter().position(|slot| *slot == (place.tag(), unit));
            way.map(|way| (bucket, way))
        })
    }

    /// Returns the buckets of a tag, the first in the order of tags.
    #[inline]
    fn buckets_of(&self, tag: u32) -> [usize; 2] {
        let scaled = |tag: u32| ((u64::from(tag) * self.buckets.len() as u64) >> 32) as usize;
        [scaled(tag), scaled((tag ^ tag >> 15).wrapping_mul(0x9e37_79b1))]
    }
}

/// Returns the number of buckets after growth.
fn grown(buckets: usize) -> usize {
    buckets + buckets / 4
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(number: u64) -> Place {
        Place(nandex_store::hash::mix(number))
    }

    #[test]
    fn with_enough_ram_none_is_forgotten_however_many_they_are() {
        let mut slots = Slots::new();
        for number in 0..200_000 {
            assert!(!slots.insert(place(number), number as u32, u64::MAX), "{number}");
        }
        assert_eq!(slots.len(), 200_000);
        assert!((0..200_000).all(|it| slots.of(place(it)).any(|unit| unit == it as u32)));
        assert!(slots.ram_bytes() < 200_000 * 14, "{}", slots.ram_bytes());
    }

    #[test]
    fn what_it_forgets_it_tells() {
        let mut slots = Slots::new();
        let mut forgotten = 0;
        for number in 0..20_000 {
            let left = (64_u64 << 10).saturating_sub(slots.ram_bytes() as u64);
            forgotten += usize::from(slots.insert(place(number), number as u32, left));
            assert!(slots.ram_bytes() <= 64 << 10);
        }
        let kept = (0..20_000).filter(|it| slots.of(place(*it)).any(|unit| unit == *it as u32));
        let kept = kept.count();
        assert!(kept == slots.len() && kept > 6000 && forgotten > 10_000, "{kept}, {forgotten}");
        (0..20_000).for_each(|it| slots.remove(place(it), it as u32));
        assert_eq!(slots.len(), 0);
        assert!(!slots.shrink() && slots.ram_bytes() == BUCKETS_MIN * size_of::<Bucket>());
    }
}
