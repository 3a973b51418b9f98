//! The open hash table of one buffer: a key's changes are added up in place.
//!
//! Slots ascend with the place of their keys, so the table is nearly in the order in which it is flushed: only a group
//! of neighbours without an empty slot between them has to be sorted. The table begins small and grows by half each
//! time.
//!
//! ```text
//!   slot       0      1      2      3      4      5
//!           +------+------+------+------+------+------+-- - -
//!           |      | k  c | k  c |      | k  * |      |          c: the amount, 2^31 added; 0 in an empty slot
//!           +------+------+------+------+------+------+-- - -    *: the change is in the map of wide changes
//! ```

use std::collections::HashMap;

use nandex_device::prefetch;
use nandex_store::bytes::{get_u32, put_u32};

use super::super::change::Change;
use super::super::entries::Entries;
use super::super::keys::{KeyPlacing, reduce};
use crate::{Error, Result};

/// Bytes of a slot after its key.
const TAG_BYTES: usize = 4;

/// An amount of 0 as a tag; an empty slot has tag 0.
const ZERO: i64 = 1 << 31;

/// The tag of a slot whose change is in the map.
const WIDE: u32 = u32::MAX;

/// Slots of an empty table.
const SLOTS_MIN: u64 = 64;

/// The slots that are added after the last one when a group of neighbours reaches it.
const SPARE_SLOTS: usize = 64;

/// The estimated bytes of a wide change in the map: its key, the change, and the map's overhead.
const WIDE_BYTES: u64 = 80;

/// Keys and their changes.
#[derive(Clone, Debug)]
pub(crate) struct Sums {
    placing: KeyPlacing,
    /// The slots over which places are spread; a few more follow.
    slots: u64,
    bytes: Vec<u8>,
    used: u64,
    wide: HashMap<Box<[u8]>, Change>,
}

/// The position of a key, or the position where it would be.
enum Found {
    At(usize),
    Empty(usize),
}

impl Sums {
    /// Creates an empty table.
    pub(super) fn new(placing: KeyPlacing) -> Self {
        Self::with_slots(placing, SLOTS_MIN)
    }

    fn with_slots(placing: KeyPlacing, slots: u64) -> Self {
        let bytes = vec![0; (slots as usize + SPARE_SLOTS) * slot_bytes(&placing)];
        Self { placing, slots, bytes, used: 0, wide: HashMap::new() }
    }

    /// Keys in it.
    pub(super) fn len(&self) -> u64 {
        self.used
    }

    /// Bytes of RAM.
    pub(super) fn ram_bytes(&self) -> u64 {
        self.bytes.len() as u64 + self.wide.len() as u64 * WIDE_BYTES
    }

    /// Returns whether the table must grow before it takes another key.
    pub(super) fn is_tight(&self) -> bool {
        self.used >= self.slots / 8 * 7
    }

    /// Returns the bytes that growing takes in addition.
    pub(super) fn growth_bytes(&self) -> u64 {
        (grown(self.slots) - self.slots) * slot_bytes(&self.placing) as u64
    }

    /// Allocates slots for `keys` keys at once, as many as it would have grown to. It must be empty.
    pub(super) fn reserve(&mut self, keys: u64) {
        assert_eq!(self.used, 0, "only an empty table is replaced");
        let mut slots = self.slots;
        while slots / 8 * 7 <= keys {
            slots = grown(slots);
        }
        *self = Self::with_slots(self.placing, slots);
    }

    /// Grows the slots by half and spreads its keys over them.
    pub(super) fn grow(&mut self) {
        let mut larger = Self::with_slots(self.placing, grown(self.slots));
        larger.wide = std::mem::take(&mut self.wide);
        let stride = slot_bytes(&self.placing);
        for slot in self.bytes.chunks_exact(stride).filter(|slot| tag(slot) != 0) {
            let (key, _) = slot.split_at(stride - TAG_BYTES);
            let (_, place) = self.placing.place(key);
            let Found::Empty(at) = larger.find(place, key) else { unreachable!("keys differ") };
            larger.slot_mut(at).copy_from_slice(slot);
        }
        larger.used = self.used;
        *self = larger;
    }

    /// Adds a change to the change of its key. Returns false if the key is new and `takes_new` is false.
    ///
    /// # Errors
    /// [`Error::CountRange`]; then nothing has changed.
    pub(super) fn apply(
        &mut self,
        place: u64,
        key: &[u8],
        change: Change,
        takes_new: bool,
    ) -> Result<bool> {
        match self.find(place, key) {
            Found::Empty(_) if change.is_nothing() => {}
            Found::Empty(_) if !takes_new => return Ok(false),
            Found::Empty(at) => {
                let width = self.placing.width();
                self.slot_mut(at)[..width].copy_from_slice(key);
                self.used += 1;
                self.put(at, change);
            }
            Found::At(at) => {
                let before = self.change(at);
                let sum = before
                    .then(change)
                    .ok_or(Error::CountRange { count: before.amount, amount: change.amount })?;
                self.put(at, sum);
                if sum.is_nothing() {
                    self.remove(at);
                }
            }
        }
        Ok(true)
    }

    /// Returns the change of a key, if there is one.
    pub(super) fn get(&self, place: u64, key: &[u8]) -> Option<Change> {
        match self.find(place, key) {
            Found::At(at) => Some(self.change(at)),
            Found::Empty(_) => None,
        }
    }

    /// Prefetches what [`get`](Self::get) will read.
    pub(super) fn prefetch(&self, place: u64) {
        prefetch(&self.bytes[self.home(place) * slot_bytes(&self.placing)]);
    }

    /// Returns all changes, in ascending order.
    pub(in crate::counting) fn sorted(&self) -> Entries {
        let mut entries = Entries::new(self.placing.width());
        let mut group: Vec<(u64, usize)> = Vec::new();
        let stride = slot_bytes(&self.placing);
        for (at, slot) in self.bytes.chunks_exact(stride).enumerate() {
            if tag(slot) == 0 {
                self.take_group(&mut group, &mut entries);
            } else {
                group.push((self.placing.place(self.key(at)).1, at));
            }
        }
        self.take_group(&mut group, &mut entries);
        entries
    }

    fn take_group(&self, group: &mut Vec<(u64, usize)>, out: &mut Entries) {
        group.sort_unstable_by(|one, other| {
            one.0.cmp(&other.0).then_with(|| self.key(one.1).cmp(self.key(other.1)))
        });
        for (place, at) in group.drain(..) {
            out.push(place, self.key(at), self.change(at));
        }
    }

    #[inline]
    fn home(&self, place: u64) -> usize {
        reduce(place, self.slots) as usize
    }

    /// Probes from the key's home position on; the group of neighbours ends at an empty slot.
    #[inline]
    fn find(&self, place: u64, key: &[u8]) -> Found {
        let stride = slot_bytes(&self.placing);
        let mut at = self.home(place);
        while let Some(slot) = self.bytes.get(at * stride..(at + 1) * stride) {
            if tag(slot) == 0 {
                return Found::Empty(at);
            }
            if is_same(&slot[..stride - TAG_BYTES], key) {
                return Found::At(at);
            }
            at += 1;
        }
        Found::Empty(at)
    }

    fn slot(&self, at: usize) -> &[u8] {
        let stride = slot_bytes(&self.placing);
        &self.bytes[at * stride..][..stride]
    }

    /// Returns a slot, which may be the first one after the last.
    fn slot_mut(&mut self, at: usize) -> &mut [u8] {
        let stride = slot_bytes(&self.placing);
        if at * stride == self.bytes.len() {
            self.bytes.resize(self.bytes.len() + SPARE_SLOTS * stride, 0);
        }
        &mut self.bytes[at * stride..][..stride]
    }

    fn key(&self, at: usize) -> &[u8] {
        &self.slot(at)[..self.placing.width()]
    }

    fn change(&self, at: usize) -> Change {
        match tag(self.slot(at)) {
            WIDE => self.wide[self.key(at)],
            tag => Change::add(i64::from(tag) - ZERO),
        }
    }

    /// Replaces the change of a slot whose key is present.
    #[inline]
    fn put(&mut self, at: usize, change: Change) {
        let was_wide = tag(self.slot(at)) == WIDE;
        let narrow = u32::try_from(change.amount.saturating_add(ZERO));
        let narrow = narrow.ok().filter(|tag| !change.removes && *tag != 0 && *tag != WIDE);
        if was_wide && narrow.is_some() {
            let stored: Box<[u8]> = self.key(at).into();
            self.wide.remove(&stored);
        } else if narrow.is_none() {
            let stored = self.key(at).into();
            self.wide.insert(stored, change);
        }
        let width = self.placing.width();
        put_u32(self.slot_mut(at), width, narrow.unwrap_or(WIDE));
    }

    /// Empties a slot, and moves back the keys that were probed past it.
    fn remove(&mut self, at: usize) {
        let stride = slot_bytes(&self.placing);
        let (mut hole, mut next) = (at, at + 1);
        while next * stride < self.bytes.len() && tag(self.slot(next)) != 0 {
            let home = self.home(self.placing.place(self.key(next)).1);
            if home <= hole {
                self.bytes.copy_within(next * stride..(next + 1) * stride, hole * stride);
                hole = next;
            }
            next += 1;
        }
        self.slot_mut(hole).fill(0);
        self.used -= 1;
    }
}

fn slot_bytes(placing: &KeyPlacing) -> usize {
    placing.width() + TAG_BYTES
}

fn grown(slots: u64) -> u64 {
    slots + slots / 2
}

/// Returns whether two keys of one width are equal. Compares words, without a call.
#[inline]
fn is_same(one: &[u8], other: &[u8]) -> bool {
    if let (Some((a, a_rest)), Some((b, b_rest))) =
        (one.split_first_chunk::<8>(), other.split_first_chunk::<8>())
    {
        return a == b && (a_rest.is_empty() || a_rest == b_rest);
    }
    one.iter().zip(other).all(|(a, b)| a == b)
}

#[inline]
fn tag(slot: &[u8]) -> u32 {
    get_u32(slot, slot.len() - TAG_BYTES)
}

/// Returns the bytes of RAM that a table takes for `keys` keys: on average while it grows, or just after it has grown.
pub(super) fn ram_bytes(stored_bytes: usize, keys: u64, is_mean: bool) -> u64 {
    let slots = if is_mean { keys * 7 / 5 } else { keys * 12 / 7 };
    (slots + SLOTS_MIN) * (stored_bytes + TAG_BYTES) as u64
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use nandex_store::hash::{HashKind, KeyHasher};
    use proptest::prelude::*;

    use super::super::super::keys::Keys;
    use super::*;

    fn placing(width: u8) -> KeyPlacing {
        KeyPlacing {
            keys: Keys::Whole(width),
            hasher: KeyHasher::new(HashKind::Xxh3, 3),
            partitions: 1,
        }
    }

    fn apply(sums: &mut Sums, key: &[u8], change: Change) -> Result<bool> {
        if sums.is_tight() {
            sums.grow();
        }
        let (_, place) = sums.placing.place(key);
        sums.apply(place, key, change, true)
    }

    /// A snapshot's keys arrive in the order of their places. A table that grew meanwhile had all of them in its first
    /// slots, and each was compared with all before it: opening took minutes instead of milliseconds.
    #[test]
    fn keys_in_the_order_of_their_places_stay_near_them_if_their_number_is_known() {
        let mut sums = Sums::new(placing(4));
        let keys: BTreeMap<u64, [u8; 4]> = (0..20_000_u32)
            .map(|number| (sums.placing.place(&number.to_le_bytes()).1, number.to_le_bytes()))
            .collect();
        sums.reserve(keys.len() as u64);
        let slots = sums.slots;
        keys.values().for_each(|key| assert!(apply(&mut sums, key, Change::add(1)).unwrap()));
        assert_eq!((sums.slots, sums.len()), (slots, 20_000), "it has not grown");
        let stride = slot_bytes(&sums.placing);
        let used = (0..sums.bytes.len() / stride).filter(|at| tag(sums.slot(*at)) != 0);
        let farthest = used.map(|at| at - sums.home(sums.placing.place(sums.key(at)).1)).max();
        assert!(farthest < Some(500), "{farthest:?}");
    }

    proptest! {
        /// Compares with a map, over so few keys that they meet, and amounts of every width.
        #[test]
        fn sums_are_those_of_a_map(
            updates in prop::collection::vec(
                (0u16..300, any::<bool>(), any::<bool>(), -3i64..4), 0..2000
            )
        ) {
            let (mut sums, mut expected) = (Sums::new(placing(2)), BTreeMap::new());
            for (key, removes, is_wide, amount) in updates {
                let amount = if is_wide { amount << 40 } else { amount };
                let (key, change) = (key.to_le_bytes(), Change { removes, amount });
                prop_assert!(apply(&mut sums, &key, change).unwrap());
                let sum = expected.entry(key).or_insert(Change::default());
                *sum = sum.then(change).unwrap();
                if sum.is_nothing() {
                    expected.remove(&key);
                }
            }
            prop_assert_eq!(sums.len(), expected.len() as u64);
            let entries = sums.sorted();
            prop_assert!(entries.ascend(0));
            prop_assert_eq!(entries.len(), expected.len());
            for (key, change) in &expected {
                let (_, place) = sums.placing.place(key);
                prop_assert_eq!(sums.get(place, key), Some(*change));
            }
        }
    }

    #[test]
    fn a_count_past_63_bits_is_refused_and_changes_nothing() {
        let mut sums = Sums::new(placing(8));
        let key = [7; 8];
        apply(&mut sums, &key, Change::add(i64::MAX)).unwrap();
        let error = apply(&mut sums, &key, Change::add(1)).unwrap_err();
        assert!(matches!(error, Error::CountRange { .. }), "{error}");
        let (_, place) = sums.placing.place(&key);
        assert_eq!(sums.get(place, &key), Some(Change::add(i64::MAX)));
    }

    #[test]
    fn a_table_that_takes_no_new_keys_adds_to_those_it_has() {
        let mut sums = Sums::new(placing(8));
        apply(&mut sums, &[1; 8], Change::add(1)).unwrap();
        let mut narrow = |key: [u8; 8]| {
            let (_, place) = sums.placing.place(&key);
            sums.apply(place, &key, Change::add(1), false).unwrap()
        };
        assert_eq!([narrow([1; 8]), narrow([2; 8])], [true, false]);
        assert_eq!(sums.len(), 1);
    }
}
