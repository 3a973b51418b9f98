//! The configuration of a counting table, stored with it on flash, and the options of an opening.

use nandex_store::bytes::Reader;

use super::KIND;
use super::format::record_bytes;
pub use super::keys::Keys;
use super::segment::{SegmentShape, SegmentSize};
use crate::schema::{Choice, Range, Stored, choice, parameters, word};
use crate::{Error, Result};

/// The default pages of a data block, as in the paper: 512 KiB.
pub const BLOCK_PAGES: u32 = 128;

/// The default share of the change segment, in thousandths of the data segment. A query for a present key reads a page
/// of the change segment.
pub const CHANGE_PERMILLE: u32 = 125;

/// The maximum number of different keys that a table can be made for.
pub(super) const KEYS_MAX: u64 = 1 << 48;

/// The maximum number of partitions of a table.
const PARTITIONS_MAX: u64 = 16_384;

/// The maximum number of pages of a data block: 256 MiB.
const BLOCK_PAGES_MAX: u64 = 1 << 16;

/// The way in which full buffers reach the data segment: the paper's sections 2.3 and 2.4.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Discipline {
    /// Memory bounded: a full buffer is merged with its data blocks.
    Mb,
    /// Memory and disk bounded: a full buffer is staged in the change segment, where each `k` data blocks have a share;
    /// they are merged when it is full.
    Mdb,
    /// As [`Mdb`](Self::Mdb), with one log for all as the change segment.
    #[default]
    MdbL,
}

impl Discipline {
    /// Its name in the paper.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Mb => "MB",
            Self::Mdb => "MDB",
            Self::MdbL => "MDB-L",
        }
    }
}

impl Choice for Discipline {
    const FORM: &'static str = "MB, MDB or MDB-L";
    const WORDS: &'static [(&'static str, Self)] = &[
        (Self::Mb.name(), Self::Mb),
        (Self::Mdb.name(), Self::Mdb),
        (Self::MdbL.name(), Self::MdbL),
    ];
}

/// The tag for whole keys (0) or fingerprints (1), then their bytes.
impl Stored for Keys {
    const FORM: &'static str = "whole:BYTES or fingerprints:BYTES";

    fn put(&self, out: &mut Vec<u8>) {
        let (kind, bytes) = match self {
            Self::Whole(bytes) => (0, *bytes),
            Self::Fingerprints(bytes) => (1, *bytes),
        };
        out.extend([kind, bytes]);
    }

    fn take(reader: &mut Reader<'_>) -> Result<Self> {
        let expected = "whole keys (0) or fingerprints (1)";
        let kind = choice(reader, &[Self::Whole, Self::Fingerprints], expected)?;
        Ok(kind(reader.u8()?))
    }

    fn show(&self) -> String {
        match self {
            Self::Whole(bytes) => format!("whole:{bytes}"),
            Self::Fingerprints(bytes) => format!("fingerprints:{bytes}"),
        }
    }

    fn parse(text: &str) -> std::result::Result<Self, String> {
        let (kind, bytes) = text.split_once(':').unwrap_or((text, ""));
        let kind = word(
            kind,
            &[("whole", Self::Whole as fn(u8) -> Self), ("fingerprints", Self::Fingerprints)],
        )?;
        u8::parse(bytes)
            .map(kind)
            .map_err(|error| format!("{error}; state the bytes of a key, as in whole:8"))
    }
}

parameters! {
    /// The configuration of a counting table. All of it is stored on flash and read back at open.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct Config: KIND, version 1, tiny [const];

    /// The stored form of keys.
    keys: Keys = Keys::Whole(8);

    /// The way in which full buffers reach the data segment.
    discipline: Discipline = Discipline::MdbL;

    /// The number of different keys that it is made for: the paper's `q`. It takes more: then data segments grow as
    /// they are merged, and so do the merges.
    q: u64 = 2000, in Range::Within(1, KEYS_MAX);

    /// The keys that the buffers of all partitions (the paper's H_R) take when all are full. They fill up one after
    /// another, so they hold about half as many.
    buffer_entries: u64 = 200;

    /// Pages of a data block, 1 to 65,536.
    block_pages: u32 = 2, in Range::Within(1, BLOCK_PAGES_MAX);

    /// Data blocks that are merged together, when there are `q` keys: the paper's `k`.
    k: u32 = 1, in Range::Within(1, u32::MAX as u64);

    /// The size of the change segment (S_E) in thousandths of the data segment, 0 to 1000.
    change_permille: u32 = CHANGE_PERMILLE, in Range::Within(0, 1000);
}

impl Config {
    /// Returns the configuration for `q` keys of `key_bytes` bytes, stored whole, with buffers of `buffer_entries`.
    #[must_use]
    pub const fn whole(key_bytes: u8, q: u64, buffer_entries: u64) -> Self {
        Self {
            keys: Keys::Whole(key_bytes),
            q,
            block_pages: BLOCK_PAGES,
            k: 8,
            buffer_entries,
            discipline: Discipline::MdbL,
            change_permille: CHANGE_PERMILLE,
        }
    }

    /// Fails for a configuration that cannot work.
    ///
    /// # Errors
    /// [`Error::Config`], naming the field.
    pub fn validate(&self) -> Result<()> {
        self.check_ranges()?;
        self.keys.validate()?;
        let refuse = |field, reason| Err(Error::Config { field, reason });
        let partitions = self.partitions();
        if partitions > PARTITIONS_MAX {
            let reason = format!(
                "{} of {} data blocks; that makes {partitions} partitions, and {PARTITIONS_MAX} are the most",
                self.k,
                self.blocks()
            );
            return refuse("k", reason);
        }
        if !(partitions..=1 << 40).contains(&self.buffer_entries) {
            let reason = format!(
                "{}; they must be at least 1 for each of {partitions} partitions, and at most 2^40",
                self.buffer_entries
            );
            return refuse("buffer_entries", reason);
        }
        Ok(())
    }

    /// Returns the number of data blocks with `q` keys.
    #[must_use]
    pub fn blocks(&self) -> u64 {
        let size = SegmentSize { entries: self.q, long_bytes: 0 };
        let one = SegmentShape::new(size, self.keys.stored_bytes(), u32::MAX, 0);
        one.slot_pages().div_ceil(self.block_pages.max(1).into())
    }

    /// Returns the number of parts of the table, each with a buffer and `k` data blocks.
    #[must_use]
    pub fn partitions(&self) -> u64 {
        self.blocks().div_ceil(self.k.max(1).into())
    }

    /// Returns the keys of a data block with `q` keys: the paper's `r`.
    #[must_use]
    pub fn r(&self) -> u64 {
        self.q / self.blocks()
    }

    /// Returns the keys that the buffer of a partition takes.
    #[must_use]
    pub fn partition_entries(&self) -> u64 {
        (self.buffer_entries / self.partitions()).max(1)
    }

    /// Returns the size in bytes of a log that does not force the table to save its buffers before they are full. A key
    /// may be changed again and again, so it is six times what the buffers' keys take, and at least 1 MiB.
    #[must_use]
    pub fn log_bytes_best(&self) -> u64 {
        let (short, _) = record_bytes(self.keys.stored_bytes());
        let bytes = self.buffer_entries.saturating_mul(6 * short as u64);
        bytes.next_multiple_of(1 << 20).max(1 << 20)
    }
}

#[cfg(test)]
mod tests {
    use nandex_device::PageId;

    use super::*;

    #[test]
    fn a_configuration_is_read_back_and_bytes_that_are_none_are_refused() {
        let other =
            Config { keys: Keys::Fingerprints(5), discipline: Discipline::Mb, ..Config::tiny() };
        for config in [Config::tiny(), other] {
            let bytes = config.encode();
            let decode = |bytes: &[u8]| Config::decode(&mut Reader::new(bytes, "test", PageId(0)));
            assert_eq!(decode(&bytes).unwrap(), config);
            assert!((0..bytes.len()).all(|len| decode(&bytes[..len]).is_err()));
            for (at, value) in [(0, 9), (1, 2), (2, 0), (3, 3)] {
                let mut bad = bytes.clone();
                bad[at] = value;
                assert!(decode(&bad).is_err(), "{at}");
            }
        }
    }

    /// The example of docs/reference/format.md: a change here makes every counting table unreadable.
    #[test]
    fn a_configuration_is_the_bytes_that_the_format_says() {
        let hex: String =
            Config::tiny().encode().iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, "01000802d007000000000000c80000000000000002000000010000007d000000");
    }

    #[test]
    fn what_cannot_work_is_refused_by_its_name() {
        let tiny = Config::tiny();
        for (config, field) in [
            (Config { keys: Keys::Whole(0), ..tiny }, "keys"),
            (Config { q: 0, ..tiny }, "q"),
            (Config { block_pages: 0, ..tiny }, "block_pages"),
            (Config { k: 0, ..tiny }, "k"),
            (Config { q: 1 << 40, ..tiny }, "k"),
            (Config { change_permille: 1001, ..tiny }, "change_permille"),
            (Config { buffer_entries: 0, ..tiny }, "buffer_entries"),
        ] {
            let error = config.validate().unwrap_err().to_string();
            assert!(error.starts_with(&format!("{field}: ")), "{field}: {error}");
        }
    }

    #[test]
    fn blocks_and_partitions_follow_from_the_keys() {
        let config = Config { q: 9_773_143, k: 4, ..Config::whole(8, 0, 1000) };
        assert_eq!((config.blocks(), config.partitions()), (185, 47));
        assert_eq!(config.r(), 52_827);
    }
}
