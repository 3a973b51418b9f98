//! The bytes of a cascade filter, encoded and decoded; no I/O, and no panic on any input.
//!
//! Three kinds of log entries, told apart by their length, and the state in the checkpoint. All are drawn in
//! docs/format.md; the pages of its runs belong to the store.

use nandex_store::Lsn;
use nandex_store::bytes::{Reader, get_u32, get_u64};
use nandex_store::fingerprint::Universe;

use super::config::PARTS_MAX;

/// Bytes of an entry that adds an amount.
pub(super) const AMOUNT_BYTES: usize = 16;
/// Bytes of a cut.
pub(super) const CUT_BYTES: usize = 12;

/// What a log entry says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum LogEntry {
    /// A fingerprint is there once more, or so many times more or less.
    Add { fingerprint: u64, count: i64 },
    /// A buffer left here.
    Cut(Cut),
}

/// The end of a buffer's updates in the log: what its part has before belongs to it or to an earlier one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Cut {
    /// Its number; a later cut has a greater one.
    pub number: u64,
    /// Whose buffer it was.
    pub part: u32,
}

/// An update of one: of these bytes, the first `update_bytes`.
pub(super) fn update(fingerprint: u64, is_delete: bool) -> [u8; 8] {
    (fingerprint << 1 | u64::from(is_delete)).to_le_bytes()
}

/// Appends an entry that adds an amount.
pub(super) fn put_amount(out: &mut Vec<u8>, fingerprint: u64, amount: i64) {
    out.extend_from_slice(&fingerprint.to_le_bytes());
    out.extend_from_slice(&amount.to_le_bytes());
}

impl Cut {
    pub(super) fn encode(self) -> [u8; CUT_BYTES] {
        let mut bytes = [0; CUT_BYTES];
        bytes[..8].copy_from_slice(&self.number.to_le_bytes());
        bytes[8..].copy_from_slice(&self.part.to_le_bytes());
        bytes
    }
}

impl LogEntry {
    /// Reads a log entry; nothing when the bytes are none of this universe.
    pub(super) fn decode(bytes: &[u8], universe: Universe, update_bytes: usize) -> Option<Self> {
        let (fingerprint, count) = match bytes.len() {
            CUT_BYTES => {
                let (number, part) = (get_u64(bytes, 0), get_u32(bytes, 8));
                return (number > 0 && part < PARTS_MAX).then_some(Self::Cut(Cut { number, part }));
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

/// What the checkpoint keeps of a cascade filter beside its parts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Head {
    /// The number that the next run gets.
    pub next_run: u64,
    /// Deletes that met no insert.
    pub unmatched: u64,
}

impl Head {
    const VERSION: u8 = 1;

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        out.push(Self::VERSION);
        for word in [self.next_run, self.unmatched] {
            out.extend_from_slice(&word.to_le_bytes());
        }
    }

    pub(super) fn decode(reader: &mut Reader<'_>) -> nandex_store::Result<Self> {
        let version = reader.u8()?;
        if version != Self::VERSION {
            return Err(reader.refuse(format!("version {}", Self::VERSION), version));
        }
        Ok(Self { next_run: reader.u64()?, unmatched: reader.u64()? })
    }
}

/// Up to where the log's updates of a part are in its runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Covered {
    /// The last cut whose buffer is in the runs; 0 for none.
    pub cut: u64,
    /// Where the block of the log begins that holds that cut.
    pub cut_at: Lsn,
}

impl Covered {
    pub(super) fn encode(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.cut.to_le_bytes());
        out.extend_from_slice(&self.cut_at.0.to_le_bytes());
    }

    pub(super) fn decode(reader: &mut Reader<'_>) -> nandex_store::Result<Self> {
        Ok(Self { cut: reader.u64()?, cut_at: Lsn(reader.u64()?) })
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
                let bytes = update(fingerprint, is_delete);
                assert_eq!(
                    decode(&bytes[..update_bytes]),
                    Some(LogEntry::Add { fingerprint, count })
                );
            }
            let mut bytes = Vec::new();
            put_amount(&mut bytes, fingerprint, -77);
            assert_eq!(decode(&bytes), Some(LogEntry::Add { fingerprint, count: -77 }));
            let cut = Cut { number: 5, part: 7 };
            assert_eq!(decode(&cut.encode()), Some(LogEntry::Cut(cut)));
            let strange = [&[255; 12][..], &[0; 12], &[0; 16], &[255; 16], &[0; 40], &[]];
            assert!(strange.iter().all(|bytes| decode(bytes).is_none()));
        }
    }

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// The examples of docs/format.md: a change here makes every filter unreadable.
    #[test]
    fn log_entries_and_the_head_are_the_bytes_that_the_format_says() {
        let [more, less] = [false, true].map(|is_delete| update(700_000, is_delete));
        assert_eq!([hex(&more[..3]), hex(&less[..3])], ["c05c15", "c15c15"]);
        let mut amount = Vec::new();
        put_amount(&mut amount, 700_000, -77);
        assert_eq!(hex(&amount), "60ae0a0000000000b3ffffffffffffff");
        assert_eq!(hex(&Cut { number: 5, part: 7 }.encode()), "050000000000000007000000");
        let mut state = Vec::new();
        Head { next_run: 7, unmatched: 1 }.encode(&mut state);
        Covered { cut: 3, cut_at: Lsn(8192) }.encode(&mut state);
        assert_eq!(
            hex(&state),
            "010700000000000000010000000000000003000000000000000020000000000000"
        );
    }

    #[test]
    fn a_head_is_read_back() {
        let head = Head { next_run: 7, unmatched: 1 };
        let mut bytes = Vec::new();
        head.encode(&mut bytes);
        let decode = |bytes: &[u8]| Head::decode(&mut Reader::new(bytes, "test", PageId(0)));
        assert_eq!(decode(&bytes).unwrap(), head);
        assert!((0..bytes.len()).all(|len| decode(&bytes[..len]).is_err()));
    }
}
