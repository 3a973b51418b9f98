//! The on-flash format of a counting table; no I/O, and no panic on any input.
//!
//! It has log records of two lengths, and the segments in the checkpoint. docs/reference/format.md draws all of them.
//! Boundaries and buffers belong to the write path.

use nandex_store::bytes::{Reader, get_u64};
use nandex_store::{Log, StructureId};

use super::buffer::{KeyChange, SumBuffer};
use super::change::Change;
use super::keys::{KEY_BYTES_MAX, KeyPlacing};
use crate::Result;
use crate::write::{BOUNDARY_BYTES, LogCodec};

/// The byte of a short record after its key.
const ADDS_ONE: u8 = 0;
const TAKES_ONE: u8 = 1;
const REMOVES: u8 = 2;

/// The bytes of the longest record: a key, 9 of its change, and one that distinguishes it from a boundary.
const RECORD_BYTES_MAX: usize = KEY_BYTES_MAX + 10;

/// Writes changes to the log: the key as it is stored, and its change.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChangeCodec {
    placing: KeyPlacing,
    short_bytes: usize,
    long_bytes: usize,
}

impl ChangeCodec {
    pub(super) fn new(placing: KeyPlacing) -> Self {
        let (short_bytes, long_bytes) = record_bytes(placing.width());
        Self { placing, short_bytes, long_bytes }
    }

    /// Returns the bytes of each record of these updates. All are as long as the longest.
    fn record_bytes(&self, updates: &[KeyChange<'_>]) -> usize {
        let is_short = |update: &KeyChange<'_>| short(update.change).is_some();
        if updates.iter().all(is_short) { self.short_bytes } else { self.long_bytes }
    }

    /// Encodes an update in the first `record_bytes` bytes of an array whose rest is 0.
    fn record(&self, update: &KeyChange<'_>, record_bytes: usize) -> [u8; RECORD_BYTES_MAX] {
        let mut record = [0; RECORD_BYTES_MAX];
        let (key, rest) = record.split_at_mut(self.placing.width());
        key.copy_from_slice(update.key);
        match short(update.change) {
            Some(kind) if record_bytes == self.short_bytes => rest[0] = kind,
            _ => {
                rest[0] = u8::from(update.change.removes);
                rest[1..9].copy_from_slice(&update.change.amount.to_le_bytes());
            }
        }
        record
    }

    /// Reads a record; `None` for bytes that are not a record.
    pub(super) fn decode_record<'b>(&self, bytes: &'b [u8]) -> Option<(&'b [u8], Change)> {
        let (key, rest) = bytes.split_at_checked(self.placing.width())?;
        let (change, used) = if bytes.len() == self.short_bytes {
            let change = match rest[0] {
                ADDS_ONE => Change::add(1),
                TAKES_ONE => Change::add(-1),
                REMOVES => Change::REMOVE,
                _ => return None,
            };
            (change, 1)
        } else if bytes.len() == self.long_bytes {
            let removes = match rest[0] {
                0 => false,
                1 => true,
                _ => return None,
            };
            let amount = get_u64(rest, 1).cast_signed();
            (Change { removes, amount }, 9)
        } else {
            return None;
        };
        let is_padded = rest[used..].iter().all(|byte| *byte == 0);
        (is_padded && !change.is_nothing() && change.amount > i64::MIN).then_some((key, change))
    }
}

/// Returns the bytes of a short and of a long record. Neither is as long as a boundary, which is recognized by its
/// length: a record of that length gets an extra byte of 0.
pub(super) fn record_bytes(stored_bytes: usize) -> (usize, usize) {
    let apart = |bytes: usize| bytes + usize::from(bytes == BOUNDARY_BYTES);
    (apart(stored_bytes + 1), apart(stored_bytes + 9))
}

fn short(change: Change) -> Option<u8> {
    match change {
        Change { removes: false, amount: 1 } => Some(ADDS_ONE),
        Change { removes: false, amount: -1 } => Some(TAKES_ONE),
        Change::REMOVE => Some(REMOVES),
        _ => None,
    }
}

impl LogCodec<SumBuffer> for ChangeCodec {
    fn logged_bytes(&self, updates: &[KeyChange<'_>]) -> u64 {
        (updates.len() * self.record_bytes(updates)) as u64
    }

    fn append(
        &self,
        log: &Log,
        (id, _): (StructureId, usize),
        updates: &[KeyChange<'_>],
        records: &mut Vec<u8>,
    ) -> Result<()> {
        let record_bytes = self.record_bytes(updates);
        if let [update] = updates {
            log.append(id, &[&self.record(update, record_bytes)[..record_bytes]])?;
            return Ok(());
        }
        records.clear();
        for update in updates {
            records.extend_from_slice(&self.record(update, record_bytes)[..record_bytes]);
        }
        log.append_many(id, record_bytes, records)?;
        Ok(())
    }

    fn decode<'b>(&self, bytes: &'b [u8]) -> Option<(usize, KeyChange<'b>)> {
        let (key, change) = self.decode_record(bytes)?;
        let (partition, place) = self.placing.place(key);
        Some((partition, KeyChange { place, key, change }))
    }
}

/// The version of a counting table's state in the checkpoint.
const VERSION: u8 = 1;

/// Appends the head of the state.
pub(super) fn encode_head(out: &mut Vec<u8>) {
    out.push(VERSION);
}

/// Reads the head of the state.
///
/// # Errors
/// Another version.
pub(super) fn decode_head(reader: &mut Reader<'_>) -> Result<()> {
    match reader.u8()? {
        VERSION => Ok(()),
        other => Err(reader.refuse(format!("version {VERSION}"), other).into()),
    }
}

#[cfg(test)]
mod tests {
    use nandex_store::hash::{HashKind, KeyHasher};

    use super::*;
    use crate::counting::keys::Keys;

    fn codec(width: u8) -> ChangeCodec {
        let hasher = KeyHasher::new(HashKind::Xxh3, 3);
        ChangeCodec::new(KeyPlacing { keys: Keys::Whole(width), hasher, partitions: 4 })
    }

    fn record(codec: &ChangeCodec, update: &KeyChange<'_>, record_bytes: usize) -> Vec<u8> {
        codec.record(update, record_bytes)[..record_bytes].to_vec()
    }

    #[test]
    fn records_read_back_for_every_width_and_none_is_as_long_as_a_boundary() {
        for width in 1..=32 {
            let codec = codec(width);
            let key = [7; 32];
            let key = &key[..width.into()];
            for change in [1, -1, 5, i64::MAX, -i64::MAX]
                .map(Change::add)
                .into_iter()
                .chain([Change::REMOVE, Change { removes: true, amount: -9 }])
            {
                let update = KeyChange { place: 0, key, change };
                let mut bytes = record(&codec, &update, codec.record_bytes(&[update]));
                assert_ne!(bytes.len(), BOUNDARY_BYTES);
                assert_eq!(codec.decode_record(&bytes), Some((key, change)));
                let long = record(&codec, &update, codec.long_bytes);
                assert_eq!(codec.decode_record(&long), Some((key, change)));
                assert_eq!(codec.decode_record(&bytes[1..]), None);
                let last = bytes.len() - 1;
                bytes[last] ^= 0x55;
                assert_ne!(codec.decode_record(&bytes), Some((key, change)));
            }
        }
    }

    /// The examples of docs/reference/format.md: a change here makes every counting table unreadable.
    #[test]
    fn records_are_the_bytes_that_the_format_says() {
        let codec = codec(4);
        let hex = |change| {
            let update = KeyChange { place: 0, key: b"key.", change };
            let bytes = record(&codec, &update, codec.record_bytes(&[update]));
            bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>()
        };
        assert_eq!(hex(Change::add(1)), "6b65792e00");
        assert_eq!(hex(Change::REMOVE), "6b65792e02");
        assert_eq!(hex(Change::add(-77)), "6b65792e00b3ffffffffffffff00");
    }
}
