//! The configuration of a SliceBloom, stored with it on flash, and the options of an opening.

use nandex_store::schedule::Channels;
use nandex_store::shadow::ShadowShape;

use super::KIND;
use super::format::{BitPlacing, FINGERPRINT_BYTES, SliceLayout};
use super::snapshot::pages_of_one;
use crate::schema::{Range, parameters};
use crate::write::{Stagger, WriteShape};
use crate::{Error, Result};

/// The default number of pages that a flush reads or writes at once.
pub(super) const IO_CHUNK_PAGES: u32 = 64;

/// The maximum number of partitions of a filter.
pub const PARTITIONS_MAX: u32 = 1 << 16;

/// The maximum number of bits that are set for a key.
pub const HASHES_MAX: u32 = 16;

/// The maximum number of incarnations of a filter.
pub const INCARNATIONS_MAX: u32 = 512;

/// The maximum number of keys in a buffer.
const BUFFER_KEYS_MAX: u64 = 1 << 24;

/// The maximum number of bits of a buffer for each key.
const BITS_PER_KEY_MAX: u64 = 4096;

/// The maximum number of bits of a buffer: 256 MiB.
const BITS_MAX: u64 = 1 << 31;

parameters! {
    /// The configuration of a SliceBloom. All of it is stored on flash and read back at open.
    ///
    /// The filter is guaranteed to have the most recent [`window_keys`](Self::window_keys) inserts.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct Config: KIND, version 1, tiny [const];

    /// Partitions, a power of two up to 65,536. Each has a Bloom filter in RAM and a slicetable.
    partitions: u32 = 2, in Range::PowerOfTwo(PARTITIONS_MAX as u64);

    /// Keys in the buffer of a partition when it is full: the paper's n.
    buffer_keys: u32 = 50, in Range::Within(1, BUFFER_KEYS_MAX);

    /// Bits of a buffer for each key: the paper's m/n, 32 by default.
    bits_per_key: u32 = 32, in Range::Within(1, BITS_PER_KEY_MAX);

    /// Bits set for a key, and the most pages that a lookup reads: the paper's hash functions, 3 by default, at most
    /// 16.
    hashes: u32 = 3, in Range::Within(1, HASHES_MAX as u64);

    /// Incarnations of a buffer in its slicetable, a multiple of 8 up to 512: the paper's k, 256 by default. A buffer
    /// takes m/n/k bits of RAM for each key of the window, and each key is written m/n k / 8 bytes.
    incarnations: u32 = 8, in Range::Within(8, INCARNATIONS_MAX as u64);

    /// Physical slicetables beyond one per partition, for those being rewritten. The filter takes a checkpoint
    /// whenever all are spent.
    spare_blocks: u32 = 2, in Range::Within(1, 1 << 16);

    /// Buffers in addition to one per partition, for partitions whose buffer is being written.
    spare_buffers: u32 = 2, in Range::Within(1, 1 << 16);

    /// A slicetable begins at a multiple of this many pages, and its length is rounded up to one: channels times the
    /// pages of a chunk (paper, section 5.2). 1 if it does not matter.
    align_pages: u32 = 1, in Range::Within(1, 1 << 20);
}

impl Config {
    /// Returns the paper's parameters for a window of `window_keys` keys (sections 6 and 7.5): 32 bits and 3 hash
    /// functions for a key, 256 incarnations. Buffers take .125 bits of RAM for each key of the window. Partitions have
    /// slicetables of 4 to 8 MiB.
    ///
    /// # Errors
    /// [`Error::Config`] for no keys, or too many.
    pub fn of_paper(window_keys: u64) -> Result<Self> {
        let config = Self { incarnations: 256, ..Self::tiny() };
        config.for_window(window_keys)
    }

    /// The least that [`log_bytes_best`](Self::log_bytes_best) returns, in bytes.
    pub const LOG_BYTES_MIN: u64 = 1 << 20;

    /// Returns the size in bytes of a log that does not force the filter to save its buffers before they are full: four
    /// times what their keys take, and at least 1 MiB.
    #[must_use]
    pub fn log_bytes_best(&self) -> u64 {
        let bytes = self.buffer_keys_in_all().saturating_mul(4 * FINGERPRINT_BYTES as u64);
        bytes.next_multiple_of(1 << 20).max(Self::LOG_BYTES_MIN)
    }

    /// Returns the number of keys that the buffers of all partitions take.
    pub(super) fn buffer_keys_in_all(&self) -> u64 {
        u64::from(self.partitions) * u64::from(self.buffer_keys)
    }

    /// Returns the number of the most recent inserts of one partition that are guaranteed to be present: k n. A buffer
    /// that is flushed takes the place of the oldest incarnation, and the others have n keys each.
    #[must_use]
    pub fn partition_window_keys(&self) -> u64 {
        u64::from(self.incarnations) * u64::from(self.buffer_keys)
    }

    /// Returns the number of the most recent inserts that are guaranteed to be present: the window. Older ones may be
    /// present or not.
    ///
    /// Each partition keeps the most recent k n of its own inserts, and hashing does not spread inserts evenly. So this
    /// is the largest number of inserts that gives each partition at most k n of them, except in one case in a million.
    /// With one partition it is exactly k n. Repeated inserts of one key all go to one partition and are counted each
    /// time: then
    /// only [`partition_window_keys`](Self::partition_window_keys) are guaranteed. If keys repeat, insert only absent
    /// ones.
    #[must_use]
    pub fn window_keys(&self) -> u64 {
        let kept = self.partition_window_keys();
        if self.partitions == 1 {
            return kept;
        }
        // Eight standard deviations: the mean u for which u + 8 sqrt(u) is the number that a partition keeps.
        let root = (16.0 + kept as f64).sqrt() - 4.0;
        ((root * root).floor() as u64).saturating_mul(self.partitions.into()).max(kept)
    }

    /// Bits of a partition's buffer: the paper's m.
    pub(super) fn bits(&self) -> u32 {
        self.buffer_keys.saturating_mul(self.bits_per_key)
    }

    pub(super) fn placing(&self) -> BitPlacing {
        BitPlacing { partitions: self.partitions, bits: self.bits(), hashes: self.hashes }
    }

    pub(super) fn slice_layout(&self) -> SliceLayout {
        SliceLayout::new(self.incarnations)
    }

    /// Returns the column of a slicetable for the next incarnation, after `incarnations` of them: the oldest one's.
    pub(super) fn next_column(&self, incarnations: u64) -> u32 {
        (incarnations % u64::from(self.incarnations)) as u32
    }

    /// Returns the number of keys in a slicetable that had `before` and took a buffer with `taken`.
    pub(super) fn keys_after(&self, before: u32, taken: u64) -> u32 {
        // Only the first incarnation of all may have fewer keys than n, and it is the first to be overwritten.
        let keys = (u64::from(before) + taken).min(self.partition_window_keys());
        u32::try_from(keys).expect("a valid configuration has fewer than 2^32")
    }

    /// Pages of a slicetable.
    #[must_use]
    pub fn block_pages(&self) -> u32 {
        self.slice_layout().pages(self.bits()).next_multiple_of(self.align_pages.max(1))
    }

    /// Returns the configuration with slicetables that begin at multiples of channels times chunk, so that the place in
    /// a slicetable determines the channel (paper, section 5.2).
    #[must_use]
    pub fn aligned_to(self, channels: &Channels) -> Self {
        let align_pages = u32::try_from(channels.align_pages()).unwrap_or(1);
        Self { align_pages: align_pages.max(1), ..self }
    }

    pub(super) fn shadow_shape(&self) -> ShadowShape {
        ShadowShape {
            block_pages: self.block_pages(),
            logical: self.partitions,
            spares: self.spare_blocks,
            align_pages: self.align_pages,
            devices: 1,
        }
    }

    /// Pages of all slicetables, spare ones included.
    #[must_use]
    pub fn slicetable_pages(&self) -> u64 {
        self.shadow_shape().pages()
    }

    /// Pages of one place for a snapshot of a buffer.
    pub(super) fn snapshot_pages(&self) -> u64 {
        pages_of_one(self.bits())
    }

    /// Pages of the filter: slicetables, then two places for a snapshot of each partition's buffer.
    #[must_use]
    pub fn pages(&self) -> u64 {
        self.slicetable_pages() + 2 * u64::from(self.partitions) * self.snapshot_pages()
    }

    pub(super) fn write_shape(&self) -> WriteShape {
        let most = u64::from(self.buffer_keys);
        WriteShape {
            partitions: self.partitions,
            spare_buffers: self.spare_buffers,
            buffer_entries_max: most,
            stagger: Stagger::Between { least: most / 2, most },
        }
    }

    /// Fails for a configuration that cannot work.
    ///
    /// # Errors
    /// [`Error::Config`], naming the field.
    pub fn validate(&self) -> Result<()> {
        self.check_ranges()?;
        let refuse = |field, reason: String| Err(Error::Config { field, reason });
        if !self.incarnations.is_multiple_of(8) {
            let reason = format!("{} is no multiple of 8", self.incarnations);
            return refuse("incarnations", reason);
        }
        let bits = u64::from(self.buffer_keys) * u64::from(self.bits_per_key);
        if bits > BITS_MAX || self.partition_window_keys() > u64::from(u32::MAX) {
            let reason = format!(
                "{} keys of {} bits in {} incarnations; a buffer has at most 2^31 bits and a slicetable fewer than \
                 2^32 keys, so take fewer keys and more partitions",
                self.buffer_keys, self.bits_per_key, self.incarnations
            );
            return refuse("buffer_keys", reason);
        }
        Ok(self.shadow_shape().validate()?)
    }
}

#[cfg(test)]
mod tests {
    use nandex_device::PageId;
    use nandex_store::bytes::Reader;

    use super::*;

    #[test]
    fn a_configuration_is_read_back_and_bytes_that_are_none_are_refused() {
        for config in [Config::tiny(), Config::of_paper(1 << 30).unwrap()] {
            let bytes = config.encode();
            let decode = |bytes: &[u8]| Config::decode(&mut Reader::new(bytes, "test", PageId(0)));
            assert_eq!(decode(&bytes).unwrap(), config);
            assert!((0..bytes.len()).all(|length| decode(&bytes[..length]).is_err()));
            for (at, byte) in [(0, 9), (1, 3), (5, 0), (17, 9)] {
                let mut bad = bytes.clone();
                bad[at..at + if at == 5 { 4 } else { 1 }].fill(byte);
                assert!(decode(&bad).is_err(), "{at}");
            }
        }
    }

    /// The example of docs/reference/format.md: a change here makes every filter unreadable.
    #[test]
    fn a_configuration_is_the_bytes_that_the_format_says() {
        let words = Config::tiny().encode();
        let hex: String = words.iter().map(|byte| format!("{byte:02x}")).collect();
        let expected = "0102000000320000002000000003000000080000000200000002000000\
                        01000000";
        assert_eq!(hex, expected);
    }

    #[test]
    fn what_cannot_work_is_refused_by_its_name() {
        let tiny = Config::tiny();
        for (config, field) in [
            (Config { partitions: 0, ..tiny }, "partitions"),
            (Config { partitions: 3, ..tiny }, "partitions"),
            (Config { partitions: 1 << 17, ..tiny }, "partitions"),
            (Config { buffer_keys: 0, ..tiny }, "buffer_keys"),
            (Config { buffer_keys: 1 << 24, bits_per_key: 200, ..tiny }, "buffer_keys"),
            (Config { buffer_keys: 1 << 24, incarnations: 256, ..tiny }, "buffer_keys"),
            (Config { bits_per_key: 0, ..tiny }, "bits_per_key"),
            (Config { hashes: 0, ..tiny }, "hashes"),
            (Config { hashes: 17, ..tiny }, "hashes"),
            (Config { incarnations: 0, ..tiny }, "incarnations"),
            (Config { incarnations: 12, ..tiny }, "incarnations"),
            (Config { incarnations: 520, ..tiny }, "incarnations"),
            (Config { spare_blocks: 0, ..tiny }, "spare_blocks"),
            (Config { spare_buffers: 0, ..tiny }, "spare_buffers"),
            (Config { align_pages: 0, ..tiny }, "align_pages"),
        ] {
            let error = config.validate().unwrap_err().to_string();
            assert!(error.starts_with(&format!("{field}: ")), "{field}: {error}");
        }
    }

    #[test]
    fn the_window_is_less_than_what_all_partitions_keep_on_average() {
        let one = Config { partitions: 1, ..Config::tiny() };
        assert_eq!((one.window_keys(), one.partition_window_keys()), (400, 400));
        let many = Config { partitions: 64, buffer_keys: 10_000, incarnations: 256, ..one };
        let kept = 64 * many.partition_window_keys();
        let window = many.window_keys();
        assert!(window < kept && window > kept / 1000 * 995, "{window} of {kept}");
        // Worked: 2,560,000 keys of a partition, less eight deviations of 1,600 each.
        assert_eq!(window / 64, 2_547_231);
    }

    #[test]
    fn slicetables_are_aligned_to_rounds_of_the_channels() {
        let geometry = nandex_device::Geometry {
            channels: Some(4),
            chunk_bytes: Some(8192),
            ..nandex_device::Geometry::opaque()
        };
        let plain = Config { buffer_keys: 5000, ..Config::tiny() };
        let aligned = plain.aligned_to(&Channels::of(&geometry));
        assert_eq!((plain.block_pages(), aligned.align_pages, aligned.block_pages()), (40, 8, 40));
        let aligned = Config { buffer_keys: 5200, ..aligned };
        assert_eq!(
            (aligned.block_pages(), Config { align_pages: 1, ..aligned }.block_pages()),
            (48, 41)
        );
    }
}
