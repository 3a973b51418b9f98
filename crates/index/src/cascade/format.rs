//! The on-flash format of a cascade filter; no I/O, and no panic on any input.
//!
//! It has two kinds of log records, distinguished by their length, and the head of the state in the checkpoint.
//! docs/reference/format.md draws all of them. Boundaries and buffers belong to the write path, and pages of runs to
//! the store.

use nandex_store::bytes::{Reader, get_u64};
use nandex_store::fingerprint::{Split, Universe};
use nandex_store::run::Entry;
use nandex_store::{Log, StructureId};

use super::Config;
use super::buffer::FingerprintBuffer;
use crate::Result;
use crate::write::LogCodec;

/// Bytes of a record that adds an amount.
pub(super) const AMOUNT_BYTES: usize = 16;

/// Writes updates of fingerprints to the log. In the log a fingerprint counts from the universe's first one, in a
/// buffer from its part's first one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FingerprintCodec {
    universe: Universe,
    split: Split,
    /// Bytes of a record that adds or subtracts one.
    update_bytes: usize,
}

impl FingerprintCodec {
    /// Creates the codec for the parts of a universe.
    pub(super) fn new(universe: Universe, split: Split) -> Self {
        Self { universe, split, update_bytes: Config::update_bytes(universe) }
    }

    /// Bytes of each record of these updates. All are as long as the widest.
    fn record_bytes(&self, updates: &[Entry]) -> usize {
        let is_one = |entry: &Entry| entry.count.unsigned_abs() == 1;
        if updates.iter().all(is_one) { self.update_bytes } else { AMOUNT_BYTES }
    }

    /// Reads a record: a fingerprint of the universe and the amount added to its count; `None` for bytes that are not a
    /// record.
    pub(super) fn decode_record(&self, bytes: &[u8]) -> Option<Entry> {
        let (fingerprint, count) = match bytes.len() {
            AMOUNT_BYTES => (get_u64(bytes, 0), get_u64(bytes, 8).cast_signed()),
            len if len == self.update_bytes => {
                let mut word = [0; 8];
                word[..len].copy_from_slice(bytes);
                let word = u64::from_le_bytes(word);
                (word >> 1, if word & 1 == 1 { -1 } else { 1 })
            }
            _ => return None,
        };
        (fingerprint < self.universe.size() && count != 0).then_some(Entry { fingerprint, count })
    }
}

/// Encodes a record that adds or subtracts one; only the first `update_bytes` of these bytes count.
fn one(fingerprint: u64, count: i64) -> [u8; 8] {
    (fingerprint << 1 | u64::from(count < 0)).to_le_bytes()
}

/// Appends a record that adds an amount.
fn put_amount(out: &mut Vec<u8>, fingerprint: u64, amount: i64) {
    out.extend_from_slice(&fingerprint.to_le_bytes());
    out.extend_from_slice(&amount.to_le_bytes());
}

impl LogCodec<FingerprintBuffer> for FingerprintCodec {
    fn logged_bytes(&self, updates: &[Entry]) -> u64 {
        (updates.len() * self.record_bytes(updates)) as u64
    }

    fn append(
        &self,
        log: &Log,
        (id, part): (StructureId, usize),
        updates: &[Entry],
        records: &mut Vec<u8>,
    ) -> Result<()> {
        let first = self.split.first(part as u64);
        let record_bytes = self.record_bytes(updates);
        if let ([Entry { fingerprint, count }], true) = (updates, record_bytes < AMOUNT_BYTES) {
            log.append(id, &[&one(first + fingerprint, *count)[..record_bytes]])?;
            return Ok(());
        }
        records.clear();
        for Entry { fingerprint, count } in updates {
            if record_bytes == AMOUNT_BYTES {
                put_amount(records, first + fingerprint, *count);
            } else {
                records.extend_from_slice(&one(first + fingerprint, *count)[..record_bytes]);
            }
        }
        log.append_many(id, record_bytes, records)?;
        Ok(())
    }

    fn decode(&self, bytes: &[u8]) -> Option<(usize, Entry)> {
        let Entry { fingerprint, count } = self.decode_record(bytes)?;
        let part = self.split.quotient(fingerprint);
        Some((part as usize, Entry { fingerprint: fingerprint - self.split.first(part), count }))
    }
}

/// The state of a cascade filter in the checkpoint, in addition to its levels and buffers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Head {
    /// The number of deletes that met no insert.
    pub unmatched: u64,
}

impl Head {
    const VERSION: u8 = 1;

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        out.push(Self::VERSION);
        out.extend_from_slice(&self.unmatched.to_le_bytes());
    }

    pub(super) fn decode(reader: &mut Reader<'_>) -> nandex_store::Result<Self> {
        let version = reader.u8()?;
        if version != Self::VERSION {
            return Err(reader.refuse(format!("version {}", Self::VERSION), version));
        }
        Ok(Self { unmatched: reader.u64()? })
    }
}

#[cfg(test)]
mod tests {
    use nandex_device::PageId;

    use super::*;

    fn codec() -> FingerprintCodec {
        let universe = Universe::new(1_000_000).unwrap();
        FingerprintCodec::new(universe, Split::new(universe, 4))
    }

    #[test]
    fn records_read_back_and_what_is_no_record_is_refused() {
        let codec = codec();
        assert_eq!(codec.update_bytes, 3);
        for count in [1, -1] {
            let bytes = one(700_000, count);
            let expected = Entry { fingerprint: 700_000, count };
            assert_eq!(codec.decode_record(&bytes[..3]), Some(expected));
            let (part, entry) = codec.decode(&bytes[..3]).unwrap();
            assert_eq!((part, entry.fingerprint + codec.split.first(2)), (2, 700_000));
        }
        let mut bytes = Vec::new();
        put_amount(&mut bytes, 9, -77);
        let expected = Entry { fingerprint: 9, count: -77 };
        assert_eq!(codec.decode_record(&bytes), Some(expected));
        for bad in [&one(1_000_000, 1)[..3], &[0; 2], &[0; 16], &[]] {
            assert_eq!(codec.decode_record(bad), None, "{bad:?}");
        }
    }

    /// The examples of docs/reference/format.md: a change here makes every filter unreadable.
    #[test]
    fn records_and_the_head_are_the_bytes_that_the_format_says() {
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let [more, less] = [1, -1].map(|count| one(700_000, count));
        assert_eq!([hex(&more[..3]), hex(&less[..3])], ["c05c15", "c15c15"]);
        let mut amount = Vec::new();
        put_amount(&mut amount, 700_000, -77);
        assert_eq!(hex(&amount), "60ae0a0000000000b3ffffffffffffff");
        let mut head = Vec::new();
        Head { unmatched: 1 }.encode(&mut head);
        assert_eq!(hex(&head), "010100000000000000");
        let decode = |bytes: &[u8]| Head::decode(&mut Reader::new(bytes, "test", PageId(0)));
        assert_eq!(decode(&head).unwrap(), Head { unmatched: 1 });
        assert!((0..head.len()).all(|len| decode(&head[..len]).is_err()));
    }
}
