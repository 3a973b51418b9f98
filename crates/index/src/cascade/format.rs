//! The bytes of a cascade filter, encoded and decoded; no I/O, and no panic on any input.
//!
//! Three kinds of log entries, told apart by their length, and the state in the checkpoint. All are drawn in
//! docs/format.md; the pages of its runs belong to the store.

use nandex_store::Lsn;
use nandex_store::bytes::{Reader, get_u64};
use nandex_store::fingerprint::Universe;

/// Bytes of an entry that adds an amount.
pub(super) const AMOUNT_BYTES: usize = 16;
/// Bytes of a cut.
pub(super) const CUT_BYTES: usize = 12;
/// Last bytes of a cut.
const CUT_MARK: &[u8; 4] = b"cut.";

/// What a log entry says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum LogEntry {
    /// A fingerprint is there once more, or so many times more or less.
    Add { fingerprint: u64, count: i64 },
    /// What stands before belongs to the buffer that was given this number when it left; what stands
    /// behind does not.
    Cut(u64),
}

/// Appends an update of one to the bytes of a batch: `update_bytes` bytes.
pub(super) fn put_update(
    out: &mut Vec<u8>,
    fingerprint: u64,
    is_delete: bool,
    update_bytes: usize,
) {
    let word = fingerprint << 1 | u64::from(is_delete);
    out.extend_from_slice(&word.to_le_bytes()[..update_bytes]);
}

/// Appends an entry that adds an amount.
pub(super) fn put_amount(out: &mut Vec<u8>, fingerprint: u64, amount: i64) {
    out.extend_from_slice(&fingerprint.to_le_bytes());
    out.extend_from_slice(&amount.to_le_bytes());
}

/// A cut's bytes.
pub(super) fn cut_bytes(number: u64) -> [u8; CUT_BYTES] {
    let mut bytes = [0; CUT_BYTES];
    bytes[..8].copy_from_slice(&number.to_le_bytes());
    bytes[8..].copy_from_slice(CUT_MARK);
    bytes
}

impl LogEntry {
    /// Reads a log entry; nothing when the bytes are none of this universe.
    pub(super) fn decode(bytes: &[u8], universe: Universe, update_bytes: usize) -> Option<Self> {
        let (fingerprint, count) = match bytes.len() {
            CUT_BYTES => {
                let number = get_u64(bytes, 0);
                return (bytes[8..] == *CUT_MARK && number > 0).then_some(Self::Cut(number));
            }
            AMOUNT_BYTES => (get_u64(bytes, 0), get_u64(bytes, 8).cast_signed()),
            len if len == update_bytes => {
                let mut word = [0; 8];
                word[..len].copy_from_slice(bytes);
                let word = u64::from_le_bytes(word);
                (word >> 1, if word & 1 == 1 { -1 } else { 1 })
            }
            _ => return None,
        };
        (fingerprint < universe.size() && count != 0).then_some(Self::Add { fingerprint, count })
    }
}

/// What the checkpoint keeps of a cascade filter beside its runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Head {
    /// The last cut whose buffer is in the runs; 0 for none.
    pub cut: u64,
    /// Where the block of the log begins that holds that cut.
    pub cut_at: Lsn,
    /// The number that the next run gets.
    pub next_run: u64,
    /// Deletes that met no insert.
    pub unmatched: u64,
}

impl Head {
    const VERSION: u8 = 1;

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        out.push(Self::VERSION);
        for word in [self.cut, self.cut_at.0, self.next_run, self.unmatched] {
            out.extend_from_slice(&word.to_le_bytes());
        }
    }

    pub(super) fn decode(reader: &mut Reader<'_>) -> nandex_store::Result<Self> {
        let version = reader.u8()?;
        if version != Self::VERSION {
            return Err(reader.refuse(format!("version {}", Self::VERSION), version));
        }
        let (cut, cut_at) = (reader.u64()?, Lsn(reader.u64()?));
        Ok(Self { cut, cut_at, next_run: reader.u64()?, unmatched: reader.u64()? })
    }
}

#[cfg(test)]
mod tests {
    use nandex_device::PageId;

    use super::super::Config;
    use super::*;

    #[test]
    fn log_entries_are_told_apart_by_their_length_and_read_back() {
        for size in [3, 200, 1 << 30, Universe::SIZE_MAX] {
            let universe = Universe::new(size).unwrap();
            let update_bytes = Config::update_bytes(universe);
            let decode = |bytes: &[u8]| LogEntry::decode(bytes, universe, update_bytes);
            let fingerprint = size - 1;
            for (is_delete, count) in [(false, 1), (true, -1)] {
                let mut bytes = Vec::new();
                put_update(&mut bytes, fingerprint, is_delete, update_bytes);
                assert_eq!(decode(&bytes), Some(LogEntry::Add { fingerprint, count }));
            }
            let mut bytes = Vec::new();
            put_amount(&mut bytes, fingerprint, -77);
            assert_eq!(decode(&bytes), Some(LogEntry::Add { fingerprint, count: -77 }));
            assert_eq!(decode(&cut_bytes(5)), Some(LogEntry::Cut(5)));
            let strange = [&cut_bytes(0)[..], &[0; 12], &[0; 16], &[255; 16], &[0; 40], &[]];
            assert!(strange.iter().all(|bytes| decode(bytes).is_none()));
        }
    }

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// The examples of docs/format.md: a change here makes every filter unreadable.
    #[test]
    fn log_entries_and_the_head_are_the_bytes_that_the_format_says() {
        let mut updates = Vec::new();
        put_update(&mut updates, 700_000, false, 3);
        put_update(&mut updates, 700_000, true, 3);
        assert_eq!(hex(&updates), "c05c15c15c15");
        let mut amount = Vec::new();
        put_amount(&mut amount, 700_000, -77);
        assert_eq!(hex(&amount), "60ae0a0000000000b3ffffffffffffff");
        assert_eq!(hex(&cut_bytes(5)), "05000000000000006375742e");
        let mut head = Vec::new();
        Head { cut: 3, cut_at: Lsn(8192), next_run: 7, unmatched: 1 }.encode(&mut head);
        assert_eq!(
            hex(&head),
            "010300000000000000002000000000000007000000000000000100000000000000"
        );
    }

    #[test]
    fn a_head_is_read_back() {
        let head = Head { cut: 3, cut_at: Lsn(99), next_run: 7, unmatched: 1 };
        let mut bytes = Vec::new();
        head.encode(&mut bytes);
        let decode = |bytes: &[u8]| Head::decode(&mut Reader::new(bytes, "test", PageId(0)));
        assert_eq!(decode(&bytes).unwrap(), head);
        assert!((0..bytes.len()).all(|len| decode(&bytes[..len]).is_err()));
    }
}
