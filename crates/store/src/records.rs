//! The body of a record table: a hopscotch hash table of one page; pure bytes.
//!
//! An entry is in one of the `neighbourhood` slots from its home slot on, so a search looks at no more. Each slot has a
//! signature of one byte in the page's head, 0 for an empty slot, and only keys whose signatures agree are compared.
//! An insert that finds no empty slot near its home moves one there, hop by hop (Herlihy, Shavit and Tzafrir, DISC
//! 2008). docs/reference/format.md draws the bytes.

use crate::bytes::{get_u16, put_u16};
use crate::hash::{KeyHash, KeyHasher};
use crate::page::PAGE_BODY_BYTES;

/// The number of bytes before the signatures: the number of entries, and six that are zero.
const HEAD_BYTES: usize = 8;

/// An insert found no slot for its entry: the entry belongs in another table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Crowded;

/// The layout of a record table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RecordLayout {
    key_bytes: usize,
    value_bytes: usize,
    slots: usize,
    neighbourhood: usize,
}

/// The place of an entry in its table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct RecordPlace {
    home: usize,
    signature: u8,
}

/// More slots than any table has.
const SLOTS_MAX: usize = 512;

/// An entry that moves to another table.
#[derive(Clone, Copy, Default)]
struct Moving {
    home: u16,
    /// The number of its table, and its slot there.
    from: (u8, u16),
    signature: u8,
}

impl RecordLayout {
    /// Creates the layout for keys and values of these widths, which the entry layout has validated. The neighbourhood
    /// is at most all slots.
    #[must_use]
    pub const fn new(key_bytes: usize, value_bytes: usize, neighbourhood: usize) -> Self {
        let slots = (PAGE_BODY_BYTES - HEAD_BYTES) / (1 + key_bytes + value_bytes);
        let neighbourhood = if neighbourhood < slots { neighbourhood } else { slots };
        Self { key_bytes, value_bytes, slots, neighbourhood }
    }

    /// Slots of a table: 238 for entries of 8 + 8 bytes.
    #[must_use]
    pub const fn slots(&self) -> usize {
        self.slots
    }

    /// Returns the number of entries of a table, as its head says, but at most its number of slots.
    #[inline]
    #[must_use]
    pub fn count(&self, body: &[u8]) -> usize {
        usize::from(get_u16(body, 0)).min(self.slots)
    }

    fn set_count(body: &mut [u8], count: usize) {
        put_u16(body, 0, u16::try_from(count).expect("a page has fewer than 512 slots"));
    }

    #[inline]
    fn place(&self, hash: KeyHash) -> RecordPlace {
        let home = ((hash.filter & 0xffff_ffff) * self.slots as u64) >> 32;
        // 1 to 255: 0 is an empty slot.
        let signature = 1 + (((hash.place & 0xff) * 255) >> 8) as u8;
        RecordPlace { home: home as usize, signature }
    }

    /// Returns the slot `distance` slots after another one; the first follows the last.
    #[inline]
    fn after(&self, slot: usize, distance: usize) -> usize {
        let at = slot + distance;
        if at < self.slots { at } else { at - self.slots }
    }

    /// Returns how far `slot` is after `home`.
    #[inline]
    fn distance(&self, home: usize, slot: usize) -> usize {
        if slot >= home { slot - home } else { slot + self.slots - home }
    }

    #[inline]
    fn key_at(&self, slot: usize) -> usize {
        HEAD_BYTES + self.slots + slot * self.key_bytes
    }

    #[inline]
    fn value_at(&self, slot: usize) -> usize {
        HEAD_BYTES + self.slots * (1 + self.key_bytes) + slot * self.value_bytes
    }

    /// The key in a slot.
    #[inline]
    #[must_use]
    pub fn key<'b>(&self, body: &'b [u8], slot: usize) -> &'b [u8] {
        &body[self.key_at(slot)..self.key_at(slot + 1)]
    }

    /// The value in a slot.
    #[inline]
    #[must_use]
    pub fn value<'b>(&self, body: &'b [u8], slot: usize) -> &'b [u8] {
        &body[self.value_at(slot)..self.value_at(slot + 1)]
    }

    /// The slots in use, in their order.
    pub fn used<'b>(&self, body: &'b [u8]) -> impl Iterator<Item = usize> + use<'b> {
        let signatures = &body[HEAD_BYTES..HEAD_BYTES + self.slots];
        signatures
            .iter()
            .enumerate()
            .filter(|(_, signature)| **signature != 0)
            .map(|(slot, _)| slot)
    }

    /// Returns the slot of a key whose hash is `hash`.
    #[inline]
    #[must_use]
    pub fn find(&self, body: &[u8], hash: KeyHash, key: &[u8]) -> Option<usize> {
        let RecordPlace { home, signature } = self.place(hash);
        let signatures = &body[HEAD_BYTES..HEAD_BYTES + self.slots];
        let until = (home + self.neighbourhood).min(self.slots);
        let wrapped = self.neighbourhood - (until - home);
        let is_it = |slot: &usize| self.key(body, *slot) == key;
        matches(signatures, home, until, signature)
            .find(is_it)
            .or_else(|| matches(signatures, 0, wrapped, signature).find(is_it))
    }

    /// Inserts an entry, replacing the one of its key if there is one.
    ///
    /// # Errors
    /// [`Crowded`] if no slot of its neighbourhood can be freed; all entries are still there, some in other slots.
    pub fn insert(
        &self,
        body: &mut [u8],
        hasher: &KeyHasher,
        (hash, key, value): (KeyHash, &[u8], &[u8]),
    ) -> Result<(), Crowded> {
        let slot = match self.find(body, hash, key) {
            Some(slot) => slot,
            None => {
                let RecordPlace { home, signature } = self.place(hash);
                let slot = self.make_space(body, hasher, home).ok_or(Crowded)?;
                let key_at = self.key_at(slot);
                body[key_at..key_at + self.key_bytes].copy_from_slice(key);
                body[HEAD_BYTES + slot] = signature;
                Self::set_count(body, self.count(body) + 1);
                slot
            }
        };
        let value_at = self.value_at(slot);
        body[value_at..value_at + self.value_bytes].copy_from_slice(value);
        Ok(())
    }

    /// Removes a key, if it is present. Its bytes become zero.
    pub fn remove(&self, body: &mut [u8], hash: KeyHash, key: &[u8]) {
        if let Some(slot) = self.find(body, hash, key) {
            self.clear(body, slot);
            Self::set_count(body, self.count(body).saturating_sub(1));
        }
    }

    fn clear(&self, body: &mut [u8], slot: usize) {
        let (key_at, value_at) = (self.key_at(slot), self.value_at(slot));
        body[HEAD_BYTES + slot] = 0;
        body[key_at..key_at + self.key_bytes].fill(0);
        body[value_at..value_at + self.value_bytes].fill(0);
    }

    /// Frees a slot in the neighbourhood of `home` and returns it.
    fn make_space(&self, body: &mut [u8], hasher: &KeyHasher, home: usize) -> Option<usize> {
        let is_empty = |distance: &usize| body[HEAD_BYTES + self.after(home, *distance)] == 0;
        let mut distance = (0..self.slots).find(is_empty)?;
        while distance >= self.neighbourhood {
            distance -= self.hop(body, hasher, self.after(home, distance))?;
        }
        Some(self.after(home, distance))
    }

    /// Moves an entry from before an empty slot into it; returns the distance that it moved.
    fn hop(&self, body: &mut [u8], hasher: &KeyHasher, empty: usize) -> Option<usize> {
        let before = |back: usize| self.after(empty, self.slots - back);
        let may_move = |back: &usize| {
            let home = self.place(hasher.hash(self.key(body, before(*back)))).home;
            self.distance(home, empty) < self.neighbourhood
        };
        let back = (1..self.neighbourhood).rev().find(may_move)?;
        let from = before(back);
        body[HEAD_BYTES + empty] = body[HEAD_BYTES + from];
        body.copy_within(self.key_at(from)..self.key_at(from + 1), self.key_at(empty));
        body.copy_within(self.value_at(from)..self.value_at(from + 1), self.value_at(empty));
        self.clear(body, from);
        Some(back)
    }

    /// Moves the entries of these tables that `keep` selects into an empty one, all at once and in the order of their
    /// homes. No other order leaves entries nearer to their homes, so every set that inserts could place is placed
    /// without a hop, except into the last slot of a table.
    ///
    /// # Errors
    /// [`Crowded`] if there are as many entries as slots, or one would be too far from its home. The table is then
    /// unchanged.
    pub fn gather(
        &self,
        tables: &[&[u8]],
        hasher: &KeyHasher,
        keep: impl Fn(KeyHash) -> bool,
        into: &mut [u8],
    ) -> Result<(), Crowded> {
        let mut all = [Moving::default(); SLOTS_MAX];
        let mut count = 0;
        for (table, body) in (0u8..).zip(tables) {
            for slot in self.used(body) {
                let hash = hasher.hash(self.key(body, slot));
                if keep(hash) {
                    // One slot stays empty: there the circle of slots begins.
                    if count + 1 >= self.slots {
                        return Err(Crowded);
                    }
                    let RecordPlace { home, signature } = self.place(hash);
                    let from = (table, slot as u16);
                    all[count] = Moving { home: home as u16, from, signature };
                    count += 1;
                }
            }
        }
        self.put_all(tables, &mut all[..count], into)
    }

    fn put_all(
        &self,
        tables: &[&[u8]],
        moving: &mut [Moving],
        into: &mut [u8],
    ) -> Result<(), Crowded> {
        let first = self.behind_an_empty_slot(moving);
        let home = |it: &Moving| self.distance(first, it.home.into());
        moving.sort_unstable_by_key(|it| (home(it), it.from));
        let slots = moving.iter().scan(0, |next, it| {
            let at = home(it).max(*next);
            *next = at + 1;
            Some((at, at - home(it) < self.neighbourhood))
        });
        if slots.clone().any(|(_, is_near)| !is_near) {
            return Err(Crowded);
        }
        for ((at, _), it) in slots.zip(moving.iter()) {
            let (from, slot) = (tables[usize::from(it.from.0)], usize::from(it.from.1));
            let to = self.after(first, at);
            into[HEAD_BYTES + to] = it.signature;
            let (key_at, value_at) = (self.key_at(to), self.value_at(to));
            into[key_at..key_at + self.key_bytes].copy_from_slice(self.key(from, slot));
            into[value_at..value_at + self.value_bytes].copy_from_slice(self.value(from, slot));
        }
        Self::set_count(into, moving.len());
        Ok(())
    }

    /// Returns the slot behind one that stays empty when each of these entries, fewer than the slots, takes the first
    /// empty slot from its home on.
    fn behind_an_empty_slot(&self, moving: &[Moving]) -> usize {
        let mut at_home = [0u16; SLOTS_MAX];
        moving.iter().for_each(|it| at_home[usize::from(it.home)] += 1);
        let (mut carried, mut empty) = (0, 0);
        // Around once to find what is carried past the last slot, and once more to see which slots that fills.
        for slot in (0..self.slots).chain(0..self.slots) {
            carried += at_home[slot];
            if carried == 0 {
                empty = slot;
            }
            carried = carried.saturating_sub(1);
        }
        self.after(empty, 1)
    }

    /// Returns the reason why a lookup would not find the entry of a used slot; `None` if it would.
    #[must_use]
    pub fn flaw(&self, body: &[u8], hash: KeyHash, slot: usize) -> Option<String> {
        let RecordPlace { home, signature } = self.place(hash);
        if body[HEAD_BYTES + slot] != signature {
            return Some(format!("its signature is {}, not {signature}", body[HEAD_BYTES + slot]));
        }
        if self.distance(home, slot) >= self.neighbourhood {
            return Some(format!("its home is slot {home}, too far away"));
        }
        let found = self.find(body, hash, self.key(body, slot));
        (found != Some(slot)).then(|| "its key is there twice".into())
    }
}

/// Returns the slots from `from` to `until` with this signature.
#[inline]
fn matches(
    signatures: &[u8],
    from: usize,
    until: usize,
    signature: u8,
) -> impl Iterator<Item = usize> + use<'_> {
    let near = &signatures[from..until];
    // All are compared at once, which the compiler turns into a few instructions.
    let bits = near
        .iter()
        .enumerate()
        .fold(0u64, |bits, (at, other)| bits | u64::from(*other == signature) << at);
    Bits(bits).map(move |at| from + at)
}

/// Iterates over the numbers of the bits that are set, in ascending order.
struct Bits(u64);

impl Iterator for Bits {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        let lowest = (self.0 != 0).then(|| self.0.trailing_zeros() as usize)?;
        self.0 &= self.0 - 1;
        Some(lowest)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use crate::hash::HashKind;
    use proptest::prelude::*;

    use super::*;

    const HASHER: KeyHasher = KeyHasher::new(HashKind::Xxh3, 5);

    fn key(number: u64, bytes: usize) -> Vec<u8> {
        let mut key = vec![7; bytes];
        key[..8].copy_from_slice(&number.to_le_bytes());
        key
    }

    fn put(layout: RecordLayout, body: &mut [u8], number: u64, value: u8) -> Result<(), Crowded> {
        let key = key(number, layout.key_bytes);
        layout.insert(body, &HASHER, (HASHER.hash(&key), &key, &vec![value; layout.value_bytes]))
    }

    #[test]
    fn eight_plus_eight_bytes_give_238_slots() {
        assert_eq!(RecordLayout::new(8, 8, 32).slots(), 238);
        assert_eq!(RecordLayout::new(32, 64, 64), RecordLayout::new(32, 64, 41));
        assert_eq!(RecordLayout::new(8, 0, 32).slots(), 450);
    }

    /// The claim of the paper's hopscotch hashing, with a margin: 1,000 tables, none of which is less full.
    #[test]
    fn tables_are_ninety_percent_full_before_one_is_crowded() {
        for (widths, least) in [((8, 8), 0.90), ((16, 8), 0.90), ((32, 64), 0.95)] {
            let layout = RecordLayout::new(widths.0, widths.1, 32);
            for table in 0..1000u64 {
                let mut body = vec![0; PAGE_BODY_BYTES];
                let puts =
                    (0..).take_while(|nth| put(layout, &mut body, table << 32 | nth, 1).is_ok());
                let fill = puts.count() as f64 / layout.slots() as f64;
                assert!(fill >= least, "{widths:?}: table {table} is {fill} full");
            }
        }
    }

    type Pairs = HashMap<Vec<u8>, Vec<u8>>;

    /// The entries of a table, each where a lookup finds it.
    fn pairs(layout: RecordLayout, body: &[u8]) -> Pairs {
        let pair = |slot| {
            let hash = HASHER.hash(layout.key(body, slot));
            assert_eq!(layout.flaw(body, hash, slot), None);
            (layout.key(body, slot).to_vec(), layout.value(body, slot).to_vec())
        };
        let pairs: Pairs = layout.used(body).map(pair).collect();
        assert_eq!(layout.count(body), pairs.len());
        pairs
    }

    proptest! {
        /// Full tables too: inserts hop until no hop is possible.
        #[test]
        fn what_inserts_place_is_placed_at_once(
            widths in prop::sample::select(vec![(8, 8), (20, 8), (8, 0), (32, 64)]),
            neighbourhood in prop::sample::select(vec![1usize, 2, 6, 32, 64]),
            seed in 0u64..1 << 40,
            most in 0usize..460,
        ) {
            let layout = RecordLayout::new(widths.0, widths.1, neighbourhood);
            let mut body = vec![0; PAGE_BODY_BYTES];
            let puts = (0..).take_while(|nth| put(layout, &mut body, seed << 9 | nth, 1).is_ok());
            let count = puts.take(most).count();
            let gather = |tables: &[&[u8]], keep: fn(KeyHash) -> bool| {
                let mut all = vec![0; PAGE_BODY_BYTES];
                let gathered = layout.gather(tables, &HASHER, keep, &mut all);
                assert!(gathered.is_ok() || all.iter().all(|byte| *byte == 0));
                gathered.map(|()| all)
            };
            let all = gather(&[&body[..]], |_| true);
            prop_assert_eq!(all.is_ok(), count < layout.slots());
            prop_assert!(all.is_err() || pairs(layout, &all.unwrap()) == pairs(layout, &body));
            let left = gather(&[&body[..]], |hash| hash.filter >> 63 == 0).unwrap();
            let right = gather(&[&body[..]], |hash| hash.filter >> 63 == 1).unwrap();
            prop_assert!(pairs(layout, &left).keys().all(|key| HASHER.hash(key).filter >> 63 == 0));
            let both = gather(&[&left[..], &right[..]], |_| true);
            prop_assert_eq!(both.is_ok(), count < layout.slots());
            prop_assert!(both.is_err() || pairs(layout, &both.unwrap()) == pairs(layout, &body));
        }

        #[test]
        fn a_table_agrees_with_a_map(
            widths in prop::sample::select(vec![(8, 8), (20, 8), (8, 0), (32, 64)]),
            neighbourhood in prop::sample::select(vec![1usize, 4, 32, 64]),
            steps in prop::collection::vec((0u8..4, 0u64..400, any::<u8>()), 1..900),
        ) {
            let layout = RecordLayout::new(widths.0, widths.1, neighbourhood);
            let mut body = vec![0; PAGE_BODY_BYTES];
            let mut map: HashMap<Vec<u8>, Vec<u8>> = HashMap::new();
            for (step, number, value) in steps {
                let key = key(number, widths.0);
                let hash = HASHER.hash(&key);
                if step == 0 {
                    layout.remove(&mut body, hash, &key);
                    map.remove(&key);
                } else if put(layout, &mut body, number, value).is_ok() {
                    map.insert(key, vec![value; widths.1]);
                } else {
                    prop_assert!(!map.contains_key(&key));
                }
            }
            let value = |slot| layout.value(&body, slot).to_vec();
            let pair = |slot| (layout.key(&body, slot).to_vec(), value(slot));
            prop_assert_eq!(layout.count(&body), map.len());
            prop_assert_eq!(layout.used(&body).map(pair).collect::<HashMap<_, _>>(), map.clone());
            for number in 0..400 {
                let key = key(number, widths.0);
                let found = layout.find(&body, HASHER.hash(&key), &key);
                prop_assert_eq!(found.map(value), map.get(&key).cloned());
            }
            for slot in layout.used(&body) {
                let hash = HASHER.hash(layout.key(&body, slot));
                prop_assert_eq!(layout.flaw(&body, hash, slot), None);
            }
        }
    }
}
