//! The number of keys of a table: those on flash, which merges count, and an estimate of those that its buffers will
//! add.
//!
//! An entry of a buffer is a new key, an update or a removal, and only its merge determines which. So a table tracks
//! the share of new keys among the entries of recent merges, and counts the waiting entries by it. Keys are spread over
//! partitions by their hash, so the merges of all partitions estimate one share, and the newest of them best predict
//! the current updates. A table that was only filled has a share of exactly 1. If a table that was filled is then
//! updated, the share follows as buffers are merged, so up to a buffer of each partition is counted wrongly meanwhile.

use std::sync::atomic::AtomicI32;
use std::sync::atomic::Ordering::Relaxed;

use nandex_store::bytes::Reader;

use super::{Core, Layout, PartitionState, TableLayout};
use crate::Result;

/// The version of the encoded share, its first byte.
const SHARE_VERSION: u8 = 1;

/// The number of entries that the share is a fraction of.
const ALL: i32 = 1_000_000;

/// The least weight of a merge in the share: a table of many partitions averages over about the last 16 merges.
const WEIGHT_MIN: f64 = 1.0 / 16.0;

/// The number of keys that a million entries of buffers add to a table; negative if most of them are removals.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NewKeys(i32);

impl Default for NewKeys {
    /// Returns the share at which each entry is a new key.
    fn default() -> Self {
        Self(ALL)
    }
}

impl NewKeys {
    /// Returns the share of new keys among all entries of a merge.
    fn of(keys: i64, entries: u64) -> Self {
        let share = (keys as f64 / entries as f64).clamp(-1.0, 1.0);
        Self((share * f64::from(ALL)).round() as i32)
    }

    /// Returns this share updated by a merge of the given share and weight, from 0 to 1.
    fn after(self, merged: Self, weight: f64) -> Self {
        let change = f64::from(merged.0 - self.0) * weight;
        Self(self.0 + change.round() as i32)
    }

    /// Returns the number of keys of a table, or of a part of it, with `on_flash` keys on flash and `waiting` entries
    /// that wait for a merge.
    fn keys(self, on_flash: u64, waiting: u64) -> u64 {
        let new = waiting as f64 * f64::from(self.0) / f64::from(ALL);
        on_flash.saturating_add_signed(new.round() as i64)
    }

    /// Encodes the share, little-endian.
    pub(crate) fn to_bytes(self) -> [u8; 4] {
        self.0.to_le_bytes()
    }

    /// Reads a share.
    ///
    /// # Errors
    /// Corruption, reported by the reader.
    pub(crate) fn take(reader: &mut Reader<'_>) -> Result<Self> {
        let share = reader.u32()?.cast_signed();
        if !(-ALL..=ALL).contains(&share) {
            return Err(reader.refuse(format!("a share of -{ALL} to {ALL}"), share).into());
        }
        Ok(Self(share))
    }

    /// Appends the share to the end of a state. The default share takes no bytes, as in states of earlier versions.
    pub(super) fn encode(self, out: &mut Vec<u8>) {
        if self != Self::default() {
            out.push(SHARE_VERSION);
            out.extend_from_slice(&self.to_bytes());
        }
    }

    /// Reads the share at the end of a state.
    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self> {
        if reader.left() == 0 {
            return Ok(Self::default());
        }
        match reader.u8()? {
            SHARE_VERSION => Self::take(reader),
            other => {
                let expected = format!("a share of new keys of version {SHARE_VERSION}");
                Err(reader.refuse(expected, other).into())
            }
        }
    }
}

/// The current share of new keys of an open table.
#[derive(Debug)]
pub(crate) struct NewKeysNow(AtomicI32);

impl Default for NewKeysNow {
    fn default() -> Self {
        Self(NewKeys::default().0.into())
    }
}

impl NewKeysNow {
    pub(crate) fn get(&self) -> NewKeys {
        NewKeys(self.0.load(Relaxed))
    }

    pub(crate) fn set(&self, share: NewKeys) {
        self.0.store(share.0, Relaxed);
    }

    fn merged(&self, merged: NewKeys, weight: f64) {
        let after = |share| Some(NewKeys(share).after(merged, weight).0);
        let _ = self.0.fetch_update(Relaxed, Relaxed, after);
    }
}

/// The effect of a merge of waiting entries on the keys on flash.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MergedKeys {
    /// The keys that the partition had on flash.
    pub before: u64,
    /// The keys that it has now, including those evicted for others.
    pub after: u64,
    /// The entries that were merged.
    pub entries: u64,
    /// The slots of their buffer: the merge of a nearly empty buffer says little.
    pub slots: usize,
}

impl<L: Layout> Core<L> {
    /// Updates the share with that of a merge. The first merge of a partition says nothing: all of its keys are new.
    pub(crate) fn note_merged(&self, merged: MergedKeys) {
        let MergedKeys { before, after, entries, slots } = merged;
        if before == 0 || entries == 0 {
            return;
        }
        let newest = (4.0 / self.partitions.len() as f64).clamp(WEIGHT_MIN, 1.0);
        let fill = (entries as f64 / slots.max(1) as f64).min(1.0);
        let share = NewKeys::of(after.cast_signed() - before.cast_signed(), entries);
        self.counters.new_keys.merged(share, newest * fill);
    }
}

impl<L: TableLayout> Core<L> {
    /// Returns the number of keys of a partition: those on flash, plus the share of new keys among the waiting entries.
    pub(crate) fn keys_in(&self, state: &PartitionState<L>) -> u64 {
        let waiting = state.entries_buffered() + L::entries_waiting(state);
        let on_flash = L::entries_below(state) - L::entries_waiting(state);
        let share = self.counters.new_keys.get();
        // If most entries are removals, those of a blank partition remove keys that it had.
        let is_all = L::is_blank(self, state) && share.0 >= 0;
        if is_all { waiting } else { share.keys(on_flash, waiting) }
    }
}

#[cfg(test)]
mod tests {
    use nandex_device::PageId;
    use proptest::prelude::*;

    use super::*;

    fn decode(bytes: &[u8]) -> Result<NewKeys> {
        NewKeys::decode(&mut Reader::new(bytes, "state", PageId(0)))
    }

    #[test]
    fn a_share_reads_back_and_one_that_cannot_be_is_refused() {
        for share in [-ALL, -1, 0, 250_000, ALL] {
            let mut bytes = Vec::new();
            NewKeys(share).encode(&mut bytes);
            assert_eq!(bytes.len(), if share == ALL { 0 } else { 5 });
            assert_eq!(decode(&bytes).unwrap(), NewKeys(share));
        }
        for share in [-ALL - 1, ALL + 1, i32::MIN] {
            let bytes = [&[SHARE_VERSION][..], &share.to_le_bytes()].concat();
            let refused = decode(&bytes).unwrap_err().to_string();
            assert!(refused.contains("a share of -1000000 to 1000000"), "{refused}");
        }
        assert!(decode(&[SHARE_VERSION, 0]).is_err());
        let refused = decode(&[2, 0, 0, 0, 0]).unwrap_err().to_string();
        assert!(refused.contains("a share of new keys of version 1"), "{refused}");
    }

    #[test]
    fn a_share_is_the_bytes_that_the_page_shows() {
        let mut bytes = Vec::new();
        NewKeys(-250_000).encode(&mut bytes);
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let page = include_str!("../../../../docs/reference/format.md");
        assert!(page.contains(&format!("\n{} {}\n", &hex[..8], &hex[8..])), "{hex}");
    }

    #[test]
    fn entries_that_wait_add_their_share_and_never_make_keys_negative() {
        assert_eq!(NewKeys::default().keys(7, 3), 10);
        assert_eq!(NewKeys(0).keys(7, 3), 7);
        assert_eq!(NewKeys(250_000).keys(100, 40), 110);
        assert_eq!(NewKeys(-ALL).keys(7, 3), 4);
        assert_eq!(NewKeys(-ALL).keys(7, 30), 0);
    }

    #[test]
    fn a_share_follows_what_merges_find() {
        let now = NewKeysNow::default();
        now.merged(NewKeys::of(90, 90), WEIGHT_MIN);
        assert_eq!(now.get(), NewKeys::default(), "of new keys alone it stays exact");
        (0..200).for_each(|_| now.merged(NewKeys::of(-25, 100), WEIGHT_MIN));
        assert!((-250_008..-249_992).contains(&now.get().0), "{:?}", now.get());
        now.merged(NewKeys::of(0, 100), 1.0);
        assert_eq!(now.get(), NewKeys(0));
    }

    proptest! {
        #[test]
        fn any_bytes_can_be_read(bytes: Vec<u8>) {
            let _ = decode(&bytes);
        }
    }
}
