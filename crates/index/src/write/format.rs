//! The on-flash encoding that the write path shares; no I/O, and no panic on any input.
//!
//! It comprises a table's log entries, and the part of the checkpoint's state that locates the buffers' snapshots and
//! the part of the log that each partition still needs. docs/reference/format.md draws both.

use nandex_device::PAGE_BYTES;
use nandex_store::Lsn;
use nandex_store::bytes::{Reader, get_u32, get_u64};
use nandex_store::entries::{Entry, EntryLayout, SlotState};

use super::WriteBuffer;
use super::new_keys::NewKeys;
use crate::Result;

/// The bytes that a log entry adds to its key and value: the first one.
/// [`written_bytes`](nandex_store::log::format::written_bytes) returns what the log itself adds.
pub(crate) const LOG_ENTRY_EXTRA_BYTES: usize = 1;

/// The first byte of a log entry that puts a key and value.
pub(crate) const LOG_PUT: u8 = 1;
/// The first byte of a log entry that removes a key.
pub(crate) const LOG_REMOVE: u8 = 2;
/// The first byte of a log entry that says that a buffer has moved to flash.
const LOG_MOVED: u8 = 3;
/// The first byte of a log entry that puts a key and value back, because the flush of their buffer carried them over.
pub(crate) const LOG_PUT_BACK: u8 = 4;
/// The first byte of a log entry that puts a removal back.
pub(crate) const LOG_REMOVE_BACK: u8 = 5;
/// The bytes between the first byte and the key of a log entry that puts an entry back: the buffer's log position.
pub(crate) const LOG_BACK_BYTES: usize = 8;

/// Appends the log entry that puts this key and value.
pub(crate) fn encode_log_put(out: &mut Vec<u8>, key: &[u8], value: &[u8]) {
    out.push(LOG_PUT);
    out.extend_from_slice(key);
    out.extend_from_slice(value);
}

/// Reads a log entry: its first byte, the key, and the value unless it removes.
///
/// Returns `None` if the bytes are not an entry of this layout.
#[must_use]
pub fn decode_log_entry(bytes: &[u8], layout: EntryLayout) -> Option<Entry<'_>> {
    let (&tag, rest) = bytes.split_first()?;
    let (key, value) = rest.split_at_checked(layout.key_bytes())?;
    match tag {
        LOG_PUT if value.len() == layout.value_bytes() => {
            Some(Entry { state: SlotState::Live, key, value })
        }
        LOG_REMOVE if value.is_empty() => Some(Entry { state: SlotState::Tombstone, key, value }),
        _ => None,
    }
}

/// Reads a log entry that puts back a carried-over entry. Also returns the position in the log from which a replay
/// finds the entry's first update.
#[must_use]
pub fn decode_put_back(bytes: &[u8], layout: EntryLayout) -> Option<(Lsn, Entry<'_>)> {
    let (&tag, rest) = bytes.split_first()?;
    let (place, rest) = rest.split_first_chunk::<LOG_BACK_BYTES>()?;
    let (key, value) = rest.split_at_checked(layout.key_bytes())?;
    let state = match tag {
        LOG_PUT_BACK if value.len() == layout.value_bytes() => SlotState::Live,
        LOG_REMOVE_BACK if value.is_empty() => SlotState::Tombstone,
        _ => return None,
    };
    Some((Lsn(u64::from_le_bytes(*place)), Entry { state, key, value }))
}

/// A record that a partition's oldest buffer has moved to flash, and what recovery still needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Moved {
    /// The buffer's partition.
    pub partition: u32,
    /// The position from which the partition still needs the log.
    pub tail: Lsn,
    /// The snapshot that the partition still needs.
    pub snapshot: Option<PageSnapshotRef>,
}

/// The bytes of a move before the layout's own: tag, partition, tail, the snapshot's place and generation.
const MOVED_BYTES: usize = 1 + 4 + 8 + 1 + 8;

impl Moved {
    /// Encodes the log entry's part that is common to all layouts; the layout's own bytes follow it.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(MOVED_BYTES);
        out.push(LOG_MOVED);
        out.extend_from_slice(&self.partition.to_le_bytes());
        out.extend_from_slice(&self.tail.0.to_le_bytes());
        out.push(self.snapshot.map_or(0, |snapshot| 1 + snapshot.slot));
        let generation = self.snapshot.map_or(0, |snapshot| snapshot.generation);
        out.extend_from_slice(&generation.to_le_bytes());
        out
    }

    /// Reads a log entry, and also returns the layout's own bytes; `None` if it is not a move.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (head, own) = bytes.split_at_checked(MOVED_BYTES)?;
        let tail = get_u64(head, 5);
        let generation = get_u64(head, 14);
        let snapshot = match head[13] {
            0 if generation == 0 => None,
            slot @ (1 | 2) => Some(PageSnapshotRef { slot: slot - 1, generation }),
            _ => return None,
        };
        let is_move = head[0] == LOG_MOVED && tail.is_multiple_of(PAGE_BYTES as u64);
        let moved = Self { partition: get_u32(head, 1), tail: Lsn(tail), snapshot };
        is_move.then_some((moved, own))
    }
}

/// The location of the snapshot of a table's buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PageSnapshotRef {
    /// The partition's place for snapshots, one of two.
    pub slot: u8,
    /// The generation on its pages.
    pub generation: u64,
}

impl PageSnapshotRef {
    /// Reads a reference, or its absence, from untrusted bytes.
    ///
    /// # Errors
    /// Corruption, reported by the reader.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Option<Self>> {
        match reader.u8()? {
            0 => Ok(None),
            slot @ (1 | 2) => Ok(Some(Self { slot: slot - 1, generation: reader.u64()? })),
            other => Err(reader.refuse("a snapshot's place, 0 to 2", other).into()),
        }
    }
}

/// The state of a partition's buffers in the checkpoint.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PartitionRecord<R> {
    /// The oldest position of the log that is still needed. Replaying records before it would fill buffers, and then
    /// flash, a second time.
    pub tail: Lsn,
    /// The last boundary whose updates are on flash, if updates add up; otherwise 0, and not encoded.
    pub boundary: u64,
    /// Its snapshot.
    pub snapshot: Option<R>,
}

/// The numbers of entries that a structure has dropped over its whole life.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LifeCounts {
    /// Entries dropped by the eviction policy.
    pub evicted: u64,
    /// The entries among them that the policy wanted to keep.
    pub forced_evictions: u64,
}

/// The version of the encoded counts, their first byte.
const LIFE_VERSION: u8 = 1;

impl LifeCounts {
    fn encode(self, out: &mut Vec<u8>) {
        out.push(LIFE_VERSION);
        out.extend_from_slice(&self.evicted.to_le_bytes());
        out.extend_from_slice(&self.forced_evictions.to_le_bytes());
    }

    /// Reads counts. A state of an earlier version ends before them; then they are 0.
    fn decode(reader: &mut Reader<'_>) -> Result<Self> {
        if reader.left() == 0 {
            return Ok(Self::default());
        }
        match reader.u8()? {
            LIFE_VERSION => Ok(Self { evicted: reader.u64()?, forced_evictions: reader.u64()? }),
            other => Err(reader.refuse(format!("counts of version {LIFE_VERSION}"), other).into()),
        }
    }
}

/// The state of the buffers; it follows the layout's maps, and nothing follows it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WriteState<R> {
    /// The generation of the next snapshot.
    pub next_generation: u64,
    /// The records of all partitions.
    pub partitions: Vec<PartitionRecord<R>>,
    /// The entries dropped up to the checkpoint.
    pub life: LifeCounts,
    /// The share of new keys among the entries of recent merges.
    pub new_keys: NewKeys,
}

impl<R> WriteState<R> {
    /// The state of a structure just created, whose log begins at `tail`.
    #[must_use]
    pub fn new(partitions: usize, tail: Lsn) -> Self {
        let record = || PartitionRecord { tail, boundary: 0, snapshot: None };
        let partitions = (0..partitions).map(|_| record()).collect();
        let (life, new_keys) = (LifeCounts::default(), NewKeys::default());
        Self { next_generation: 1, partitions, life, new_keys }
    }

    /// Appends the state's bytes.
    pub(crate) fn encode_with(
        &self,
        adds_up: AddsUp,
        out: &mut Vec<u8>,
        encode: impl Fn(Option<&R>, &mut Vec<u8>),
    ) {
        out.extend_from_slice(&self.next_generation.to_le_bytes());
        let count = u32::try_from(self.partitions.len()).expect("at most 65,536 partitions");
        out.extend_from_slice(&count.to_le_bytes());
        for PartitionRecord { tail, boundary, snapshot } in &self.partitions {
            out.extend_from_slice(&tail.0.to_le_bytes());
            if adds_up == AddsUp::Yes {
                out.extend_from_slice(&boundary.to_le_bytes());
            }
            encode(snapshot.as_ref(), out);
        }
        self.life.encode(out);
        self.new_keys.encode(out);
    }

    /// Reads a state from untrusted bytes.
    ///
    /// # Errors
    /// Corruption, reported by the reader.
    pub(crate) fn decode_with(
        adds_up: AddsUp,
        reader: &mut Reader<'_>,
        mut decode: impl FnMut(&mut Reader<'_>) -> Result<Option<R>>,
    ) -> Result<Self> {
        let next_generation = reader.u64()?;
        let count = reader.count(9)?;
        let mut partitions = Vec::with_capacity(count);
        for _ in 0..count {
            let tail = Lsn(reader.u64()?);
            if !tail.0.is_multiple_of(PAGE_BYTES as u64) {
                return Err(reader.refuse("a log place at a page's start", tail).into());
            }
            let boundary = if adds_up == AddsUp::Yes { reader.u64()? } else { 0 };
            partitions.push(PartitionRecord { tail, boundary, snapshot: decode(reader)? });
        }
        let (life, new_keys) = (LifeCounts::decode(reader)?, NewKeys::decode(reader)?);
        Ok(Self { next_generation, partitions, life, new_keys })
    }
}

/// Whether updates add up, so that the state names boundaries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum AddsUp {
    Yes,
    No,
}

impl AddsUp {
    pub(crate) const fn of<B: WriteBuffer>() -> Self {
        if B::ADDS_UP { Self::Yes } else { Self::No }
    }
}

impl WriteState<PageSnapshotRef> {
    /// Reads a table's state from untrusted bytes.
    ///
    /// # Errors
    /// Corruption, reported by the reader.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Self> {
        Self::decode_with(AddsUp::No, reader, PageSnapshotRef::decode)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandex_device::PageId;
    use proptest::prelude::*;

    #[test]
    fn a_state_reads_back() {
        for adds_up in [AddsUp::Yes, AddsUp::No] {
            let record = |tail, boundary, snapshot| PartitionRecord {
                tail: Lsn(tail),
                boundary: if adds_up == AddsUp::Yes { boundary } else { 0 },
                snapshot,
            };
            let partitions =
                vec![record(0, 0, None), record(8192, 7, Some(5u8)), record(4096, 9, None)];
            let life = LifeCounts { evicted: 1 << 40, forced_evictions: 3 };
            let new_keys = NewKeys::default();
            let state = WriteState { next_generation: 9, partitions, life, new_keys };
            let mut bytes = Vec::new();
            state.encode_with(adds_up, &mut bytes, |it, out| out.push(it.copied().unwrap_or(0)));
            let decode = |bytes: &[u8]| {
                let mut reader = Reader::new(bytes, "state", PageId(0));
                let snapshot =
                    |reader: &mut Reader<'_>| Ok(Some(reader.u8()?).filter(|it| *it > 0));
                WriteState::decode_with(adds_up, &mut reader, snapshot)
            };
            assert_eq!(decode(&bytes).unwrap(), state);
            // The encodings of an earlier version, a truncated one, and a later version.
            let counts_at = bytes.len() - 17;
            let life = LifeCounts::default();
            assert_eq!(decode(&bytes[..counts_at]).unwrap(), WriteState { life, ..state });
            assert!(decode(&bytes[..counts_at + 9]).is_err());
            bytes[counts_at] = 2;
            let refused = decode(&bytes).unwrap_err().to_string();
            assert!(refused.contains("counts of version 1"), "{refused}");
        }
    }

    #[test]
    fn counts_are_the_bytes_that_the_page_shows() {
        let mut bytes = Vec::new();
        LifeCounts { evicted: 7000, forced_evictions: 3 }.encode(&mut bytes);
        let words = bytes.chunks(4).map(|word| word.iter().map(|it| format!("{it:02x}")).collect());
        let vector = words.collect::<Vec<String>>().join(" ");
        assert!(
            include_str!("../../../../docs/reference/format.md").contains(&format!("\n{vector}\n"))
        );
    }

    #[test]
    fn what_is_put_back_reads_back_and_is_no_update() {
        let layout = EntryLayout::new(8, 3).unwrap();
        let place = Lsn(8192);
        let head = |tag| [&[tag][..], &place.0.to_le_bytes(), b"the key."].concat();
        let put = [head(LOG_PUT_BACK), b"val".to_vec()].concat();
        let live = Entry { state: SlotState::Live, key: b"the key.", value: b"val" };
        let removed = Entry { state: SlotState::Tombstone, key: b"the key.", value: b"" };
        for (bytes, entry) in [(put, live), (head(LOG_REMOVE_BACK), removed)] {
            assert_eq!(decode_put_back(&bytes, layout), Some((place, entry)));
            assert_eq!(decode_log_entry(&bytes, layout), None);
            assert_eq!(decode_put_back(&bytes[..bytes.len() - 1], layout), None);
        }
    }

    #[test]
    fn a_move_reads_back_and_is_no_update() {
        let layout = EntryLayout::new(8, 8).unwrap();
        for snapshot in [None, Some(PageSnapshotRef { slot: 1, generation: 77 })] {
            let moved = Moved { partition: 9, tail: Lsn(8192), snapshot };
            let bytes = [moved.encode(), b"map".to_vec()].concat();
            assert_eq!(Moved::decode(&bytes), Some((moved, &b"map"[..])));
            assert_eq!(decode_log_entry(&bytes, layout), None);
            assert_eq!(Moved::decode(&bytes[..MOVED_BYTES - 1]), None);
        }
    }

    proptest! {
        #[test]
        fn any_bytes_can_be_read(bytes: Vec<u8>) {
            let layout = EntryLayout::new(8, 8).unwrap();
            let _ = decode_log_entry(&bytes, layout);
            let _ = decode_put_back(&bytes, layout);
            let _ = Moved::decode(&bytes);
            let _ = WriteState::decode(&mut Reader::new(&bytes, "state", PageId(0)));
        }
    }
}
