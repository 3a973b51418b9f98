//! The entry page: a small cuckoo table in one page, the same in RAM and on flash.
//!
//! A page has buckets of four slots, or of fewer if a table asks for it (ANCS'14 has three). A key has two
//! buckets, both in the same page, so a lookup needs one page whatever it finds (NSDI'10 puts a buffer's two
//! cuckoo choices anywhere in it). Slot numbers count four per bucket in every layout. Two bits a slot tell
//! empty, live and tombstone. An insert that finds both buckets full searches a path of displacements,
//! breadth first, inside the page. docs/reference/format.md draws the bytes.

mod displace;
mod state;

use nandex_device::{PAGE_BYTES, prefetch};

use crate::bytes::{copy_short, get_u64};
use crate::hash::{KeyHash, KeyHasher, reduce16};
use crate::page::PAGE_HEADER_BYTES;
use crate::{Error, Result};

pub use state::{KeyState, SlotState};

/// The number of slots in a bucket: the maximum and the default.
pub const BUCKET_SLOTS: usize = 4;

/// Widths of keys and values, and the page layout for them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EntryLayout {
    key_bytes: usize,
    value_bytes: usize,
    bucket_slots: usize,
    buckets: usize,
    slots_at: usize,
}

/// An entry of a page, in place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Entry<'a> {
    /// Live or a tombstone.
    pub state: SlotState,
    /// Its key.
    pub key: &'a [u8],
    /// Its value; zeros in a tombstone.
    pub value: &'a [u8],
}

/// The two buckets of a key, inside its page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Buckets(pub usize, pub usize);

impl EntryLayout {
    /// The layout for keys of 8 to 32 bytes and values of 0 to 64 bytes, in buckets of four.
    ///
    /// # Errors
    /// [`Error::Config`] for other widths.
    pub fn new(key_bytes: usize, value_bytes: usize) -> Result<Self> {
        Self::with_buckets(key_bytes, value_bytes, BUCKET_SLOTS)
    }

    /// As [`new`](Self::new), in buckets of 2 to 4 slots: fewer are searched faster and fill less.
    ///
    /// # Errors
    /// [`Error::Config`] for other widths or buckets.
    pub fn with_buckets(key_bytes: usize, value_bytes: usize, bucket_slots: usize) -> Result<Self> {
        if !(8..=32).contains(&key_bytes) {
            let reason =
                format!("{key_bytes} is not in 8..=32; hash longer keys to 16 bytes or more");
            return Err(Error::config("key_bytes", reason));
        }
        if value_bytes > 64 {
            let reason = format!("{value_bytes} is more than 64; keep longer values elsewhere");
            return Err(Error::config("value_bytes", reason));
        }
        if !(2..=BUCKET_SLOTS).contains(&bucket_slots) {
            let reason = format!("{bucket_slots} is not in 2..=4, slots of a bucket");
            return Err(Error::config("bucket_slots", reason));
        }
        // One byte of states and four entries a bucket: 62 buckets of 4 for 8 + 8 bytes.
        let bucket_bytes = bucket_slots * (key_bytes + value_bytes);
        let buckets = (PAGE_BYTES - PAGE_HEADER_BYTES) / (bucket_bytes + 1);
        let slots_at = PAGE_BYTES - buckets * bucket_bytes;
        Ok(Self { key_bytes, value_bytes, bucket_slots, buckets, slots_at })
    }

    /// Bytes in a key.
    #[must_use]
    pub const fn key_bytes(&self) -> usize {
        self.key_bytes
    }

    /// Bytes in a value.
    #[must_use]
    pub const fn value_bytes(&self) -> usize {
        self.value_bytes
    }

    /// Bytes in an entry.
    #[must_use]
    pub const fn entry_bytes(&self) -> usize {
        self.key_bytes + self.value_bytes
    }

    /// Buckets in a page.
    #[must_use]
    pub const fn buckets(&self) -> usize {
        self.buckets
    }

    /// Slots in a page.
    #[must_use]
    pub const fn slots(&self) -> usize {
        self.buckets * self.bucket_slots
    }

    /// The slot numbers of a page; if a bucket has fewer than four, some numbers have no slot.
    #[must_use]
    pub fn slot_numbers(&self) -> std::ops::Range<usize> {
        0..self.buckets * BUCKET_SLOTS
    }

    /// The number of the `nth` slot of a page.
    ///
    /// # Panics
    /// If a page has fewer.
    #[must_use]
    pub fn slot_number(&self, nth: usize) -> usize {
        assert!(nth < self.slots(), "slot {nth} of {}", self.slots());
        nth / self.bucket_slots * BUCKET_SLOTS + nth % self.bucket_slots
    }

    /// The two buckets of a key, never the same one.
    #[inline]
    #[must_use]
    pub fn buckets_of(&self, hash: KeyHash) -> Buckets {
        let first = reduce16((hash.place & 0xffff) as u16, self.buckets);
        let second = reduce16((hash.place >> 16 & 0xffff) as u16, self.buckets - 1);
        Buckets(first, if second >= first { second + 1 } else { second })
    }

    #[inline]
    fn slot_at(&self, slot: usize) -> usize {
        let nth = slot / BUCKET_SLOTS * self.bucket_slots + slot % BUCKET_SLOTS;
        self.slots_at + nth * self.entry_bytes()
    }

    #[inline]
    fn state_bits(page: &[u8], slot: usize) -> u8 {
        page[PAGE_HEADER_BYTES + slot / BUCKET_SLOTS] >> (slot % BUCKET_SLOTS * 2) & 3
    }

    /// Returns the entry in a slot; `None` if the slot is empty or its state is unknown.
    #[inline]
    #[must_use]
    pub fn entry<'a>(&self, page: &'a [u8], slot: usize) -> Option<Entry<'a>> {
        let state = match Self::state_bits(page, slot) {
            _ if slot % BUCKET_SLOTS >= self.bucket_slots => return None,
            1 => SlotState::Live,
            2 => SlotState::Tombstone,
            _ => return None,
        };
        let at = self.slot_at(slot);
        let (key, value) = page[at..at + self.entry_bytes()].split_at(self.key_bytes);
        Some(Entry { state, key, value })
    }

    /// Returns whether the state of a slot is unknown to this build. Such a slot is skipped like an empty one.
    #[must_use]
    pub fn is_unknown(&self, page: &[u8], slot: usize) -> bool {
        let beyond = slot % BUCKET_SLOTS >= self.bucket_slots;
        Self::state_bits(page, slot) == 3 || beyond && Self::state_bits(page, slot) != 0
    }

    /// All entries of a page with their slots.
    pub fn entries<'a>(
        &self,
        page: &'a [u8],
    ) -> impl Iterator<Item = (usize, Entry<'a>)> + use<'a> {
        let layout = *self;
        self.slot_numbers().filter_map(move |slot| Some((slot, layout.entry(page, slot)?)))
    }

    /// Asks the processor to prefetch what [`find`](Self::find) will read.
    #[inline]
    pub fn prefetch(&self, page: &[u8], buckets: Buckets) {
        for bucket in [buckets.0, buckets.1] {
            prefetch(&page[PAGE_HEADER_BYTES + bucket]);
            prefetch(&page[self.slot_at(bucket * BUCKET_SLOTS)]);
        }
    }

    /// Returns what a page knows of a key.
    #[inline]
    #[must_use]
    pub fn look_up<'p>(&self, page: &'p [u8], key: &[u8], hash: KeyHash) -> KeyState<&'p [u8]> {
        let slot = self.find(page, key, self.buckets_of(hash));
        slot.and_then(|slot| self.entry(page, slot)).map_or(KeyState::Unknown, KeyState::from)
    }

    /// The slot that holds `key`, in one of its two buckets.
    #[inline]
    #[must_use]
    pub fn find(&self, page: &[u8], key: &[u8], buckets: Buckets) -> Option<usize> {
        self.find_in(page, key, buckets.0).or_else(|| self.find_in(page, key, buckets.1))
    }

    #[inline]
    fn find_in(&self, page: &[u8], key: &[u8], bucket: usize) -> Option<usize> {
        let first = bucket * BUCKET_SLOTS;
        let mut slots = first..first + self.bucket_slots;
        let Some((head, rest)) = key.split_first_chunk() else {
            return slots.find(|&slot| {
                let at = self.slot_at(slot);
                &page[at..at + self.key_bytes] == key && Self::state_bits(page, slot) != 0
            });
        };
        // The first bytes tell nearly all keys apart.
        let head = u64::from_le_bytes(*head);
        slots.find(|&slot| {
            let at = self.slot_at(slot);
            get_u64(page, at) == head
                && page[at + 8..at + self.key_bytes] == *rest
                && Self::state_bits(page, slot) != 0
        })
    }

    /// Writes an entry into a slot, over its old content.
    #[inline]
    pub fn put(&self, page: &mut [u8], slot: usize, entry: Entry<'_>) {
        let at = self.slot_at(slot);
        let (key, value) = page[at..at + self.entry_bytes()].split_at_mut(self.key_bytes);
        copy_short(key, entry.key);
        if entry.value.len() == value.len() {
            copy_short(value, entry.value);
        } else {
            value.fill(0);
        }
        Self::set_state(page, slot, entry.state as u8);
    }

    /// Inserts an entry whose key the page does not contain, without searching for it. Returns whether there was space;
    /// if not, the page is unchanged.
    #[inline]
    pub fn put_absent(
        &self,
        page: &mut [u8],
        hash: KeyHash,
        entry: Entry<'_>,
        hasher: &KeyHasher,
    ) -> bool {
        let slot = self.make_space(page, self.buckets_of(hash), hasher);
        slot.inspect(|slot| self.put(page, *slot, entry)).is_some()
    }

    /// Empties a slot.
    pub fn clear(&self, page: &mut [u8], slot: usize) {
        let at = self.slot_at(slot);
        page[at..at + self.entry_bytes()].fill(0);
        Self::set_state(page, slot, 0);
    }

    #[inline]
    fn set_state(page: &mut [u8], slot: usize, bits: u8) {
        let shift = slot % BUCKET_SLOTS * 2;
        let states = &mut page[PAGE_HEADER_BYTES + slot / BUCKET_SLOTS];
        *states = *states & !(3 << shift) | bits << shift;
    }

    /// Returns the empty slots of a bucket: a bit for each, at twice its number.
    #[inline]
    fn empty_bits(&self, page: &[u8], bucket: usize) -> u8 {
        let states = page[PAGE_HEADER_BYTES + bucket];
        // A slot is taken when either of its two bits is set.
        let slots = 0b0101_0101 >> (2 * (BUCKET_SLOTS - self.bucket_slots));
        !(states | states >> 1) & slots
    }

    #[inline]
    fn empty_slot(&self, page: &[u8], bucket: usize) -> Option<usize> {
        let empty = self.empty_bits(page, bucket);
        (empty != 0).then(|| bucket * BUCKET_SLOTS + empty.trailing_zeros() as usize / 2)
    }

    /// Frees a slot for a key that is not in the page, displacing others if necessary.
    ///
    /// Takes the bucket with more empty slots, so that both are seldom full. Whether a key fits depends only on the
    /// keys of the page: a displacement is found if there is one. Returns the slot, or `None` when no displacement
    /// frees one.
    #[inline]
    pub fn make_space(&self, page: &mut [u8], to: Buckets, hasher: &KeyHasher) -> Option<usize> {
        let [first, second] = [to.0, to.1].map(|bucket| self.empty_bits(page, bucket).count_ones());
        let emptier = if second > first { to.1 } else { to.0 };
        self.empty_slot(page, emptier).or_else(|| self.displace(page, to, hasher))
    }
}

#[cfg(test)]
mod tests {
    use super::displace::BUCKETS_MAX;
    use super::*;
    use crate::hash::HashKind;

    fn fill(layout: EntryLayout, seed: u64) -> (Vec<u8>, Vec<Vec<u8>>) {
        let hasher = KeyHasher::new(HashKind::Xxh3, seed.into());
        let mut page = vec![0; PAGE_BYTES];
        let mut keys = Vec::new();
        for number in 0u64.. {
            let mut key = vec![0xee; layout.key_bytes()];
            key[..8].copy_from_slice(&number.to_le_bytes());
            let buckets = layout.buckets_of(hasher.hash(&key));
            let Some(slot) = layout.make_space(&mut page, buckets, &hasher) else { break };
            let value = vec![number as u8; layout.value_bytes()];
            layout.put(&mut page, slot, Entry { state: SlotState::Live, key: &key, value: &value });
            keys.push(key);
        }
        for (number, key) in keys.iter().enumerate() {
            let slot = layout.find(&page, key, layout.buckets_of(hasher.hash(key))).unwrap();
            let entry = layout.entry(&page, slot).unwrap();
            assert_eq!(entry.key, key);
            assert!(entry.value.iter().all(|&byte| byte == number as u8));
        }
        (page, keys)
    }

    #[test]
    fn absent_keys_are_put_until_a_page_has_no_space_for_one() {
        let layout = EntryLayout::new(8, 8).unwrap();
        let hasher = KeyHasher::new(HashKind::Xxh3, 1);
        let mut page = vec![0; PAGE_BYTES];
        let (mut taken, mut refused) = (Vec::new(), Vec::new());
        for key in (0u64..300).map(u64::to_le_bytes) {
            let entry = Entry { state: SlotState::Live, key: &key, value: &[1; 8] };
            let before = page.clone();
            if layout.put_absent(&mut page, hasher.hash(&key), entry, &hasher) {
                taken.push(key);
            } else {
                assert_eq!(page, before, "{key:?} was refused");
                refused.push(key);
            }
        }
        assert!(!refused.is_empty(), "a page of {} slots takes no 300", layout.slots());
        assert!(taken.len() > layout.slots() * 95 / 100, "{} in a page", taken.len());
        let find = |key: &[u8; 8]| layout.find(&page, key, layout.buckets_of(hasher.hash(key)));
        assert!(taken.iter().all(|key| find(key).is_some()));
        assert!(refused.iter().all(|key| find(key).is_none()));
    }

    #[test]
    fn pages_of_every_width_fill_past_nine_tenths() {
        for (key_bytes, value_bytes) in [(8, 0), (8, 8), (20, 8), (32, 8), (32, 64)] {
            let layout = EntryLayout::new(key_bytes, value_bytes).unwrap();
            let filled: usize = (0..20).map(|seed| fill(layout, seed).1.len()).sum();
            let fill = filled as f64 / (20 * layout.slots()) as f64;
            assert!(fill > 0.9, "{key_bytes} + {value_bytes}: {fill}");
        }
    }

    /// The same keys fit in whatever order they come: a displacement is found if there is one.
    #[test]
    fn how_many_keys_fit_does_not_depend_on_their_order() {
        let layout = EntryLayout::new(8, 8).unwrap();
        for seed in 0..20 {
            let hasher = KeyHasher::new(HashKind::Xxh3, seed);
            let (page, keys) = fill(layout, seed as u64);
            let mut again = vec![0; PAGE_BYTES];
            for key in keys.iter().rev() {
                let buckets = layout.buckets_of(hasher.hash(key));
                let slot = layout.make_space(&mut again, buckets, &hasher).unwrap();
                layout.put(&mut again, slot, Entry { state: SlotState::Live, key, value: &[7; 8] });
            }
            assert_eq!(layout.entries(&again).count(), layout.entries(&page).count());
        }
    }

    #[test]
    fn buckets_of_two_and_three_fill_less_and_hold_what_they_took() {
        for (bucket_slots, fill_min) in [(2, 0.75), (3, 0.86)] {
            let layout = EntryLayout::with_buckets(8, 8, bucket_slots).unwrap();
            let filled: usize = (0..20).map(|seed| fill(layout, seed).1.len()).sum();
            let fill = filled as f64 / (20 * layout.slots()) as f64;
            assert!(fill > fill_min, "{bucket_slots} slots: {fill}");
        }
        assert!(EntryLayout::with_buckets(8, 0, 2).unwrap().buckets() <= BUCKETS_MAX);
        assert!(EntryLayout::with_buckets(8, 8, 5).is_err());
    }

    #[test]
    fn eight_plus_eight_bytes_give_248_slots() {
        let layout = EntryLayout::new(8, 8).unwrap();
        assert_eq!((layout.buckets(), layout.slots(), layout.slots_at), (62, 248, 128));
    }

    #[test]
    fn a_cleared_slot_is_not_found_and_is_used_again() {
        let layout = EntryLayout::new(8, 8).unwrap();
        let hasher = KeyHasher::new(HashKind::Xxh3, 5);
        let (mut page, keys) = fill(layout, 5);
        let buckets = layout.buckets_of(hasher.hash(&keys[3]));
        let slot = layout.find(&page, &keys[3], buckets).unwrap();
        layout.clear(&mut page, slot);
        assert_eq!(layout.find(&page, &keys[3], buckets), None);
        assert!(layout.make_space(&mut page, buckets, &hasher).is_some());
    }

    #[test]
    fn any_bytes_can_be_read_as_a_page() {
        let layout = EntryLayout::new(8, 8).unwrap();
        let page = vec![0xff; PAGE_BYTES];
        assert_eq!(layout.entries(&page).count(), 0);
        assert_eq!(
            layout.find(&page, &[0xff; 8], Buckets(0, 1)).and_then(|s| layout.entry(&page, s)),
            None
        );
    }

    #[test]
    fn widths_out_of_range_are_refused() {
        assert!(EntryLayout::new(7, 8).is_err());
        assert!(EntryLayout::new(33, 8).is_err());
        assert!(EntryLayout::new(8, 65).is_err());
    }
}
