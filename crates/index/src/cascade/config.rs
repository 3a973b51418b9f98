//! The configuration of a cascade filter, stored with it on flash, and the options of an opening.

use nandex_store::fingerprint::{Split, Universe};

use super::KIND;
use super::buffer::BufferShape;
use crate::quotient::REPEATS_MAX;
use crate::schema::{GrowOrRefuse, Range, parameters};
use crate::{Error, Result, WhenFull};

/// The least fan-out; the HotStorage'11 deck has this one.
pub const FAN_OUT_MIN: u32 = 2;

/// The maximum number of parts of a filter.
pub const PARTS_MAX: u32 = 4096;

parameters! {
    /// The configuration of a cascade filter. All of it is stored on flash and read back at open.
    #[derive(Clone, Copy, PartialEq, Debug)]
    pub struct Config: KIND, version 1, tiny [const];

    /// The number of different keys it is made for. Doubling the keys costs one more bit per key, so be generous.
    keys: u64 = 10_000;

    /// The rate of false positives when it has that number of keys: 1e-9 to 1e-1 are usual.
    rate: f64 = 0.01;

    /// The fingerprints that its RAM buffers take when all are full. Parts are merged one after another, so the buffers
    /// hold about half as many, in about half of the RAM.
    buffer_entries: u64 = 200;

    /// The parts of the universe, 1 to 4096, each with its own buffer and levels. With more parts a merge is shorter,
    /// and needs less additional flash and RAM.
    parts: u32 = 1, in Range::Within(1, PARTS_MAX as u64);

    /// The factor by which a level on flash is larger than the one above: 2 in the deck, 8 to 16 on
    /// today's drives. `None` for a single level, however large: one page read per lookup, and each
    /// key is written once for every later merge.
    fan_out: Option<u32> = Some(2), in Range::Within(FAN_OUT_MIN as u64, u32::MAX as u64);

    /// Whether it is for counting. A key then takes one place in a buffer however often it is added; a filter without
    /// counts takes one for each of the first few times.
    counts: bool = false;

    /// The policy when it has as many keys as it was made for.
    when_full: WhenFull as GrowOrRefuse = WhenFull::Grow;
}

impl Config {
    /// Fails for a configuration that cannot work.
    ///
    /// # Errors
    /// [`Error::Config`], naming the field.
    pub fn validate(&self) -> Result<()> {
        self.check_ranges()?;
        let refuse = |field, reason| Err(Error::Config { field, reason });
        let most = self.universe()?.size() / 4;
        if !(u64::from(self.parts)..=most).contains(&self.buffer_entries) {
            let reason = format!(
                "{} fingerprints; buffers take at least 1 for each of {} parts, and at most a quarter of those \
                 there are, {most}",
                self.buffer_entries, self.parts
            );
            return refuse("buffer_entries", reason);
        }
        if !self.counts && self.part_entries() < REPEATS_MAX as u64 {
            let reason = format!(
                "{} fingerprints in {} parts; one key may take {REPEATS_MAX} places where nothing counts, and a \
                 part's buffer has as many at least",
                self.buffer_entries, self.parts
            );
            return refuse("buffer_entries", reason);
        }
        Ok(())
    }

    /// Returns the number of fingerprints: keys divided by the rate.
    ///
    /// # Errors
    /// [`Error::Config`] for no keys, or a rate that is not between 0 and 1, or too low for this number of keys.
    pub fn universe(&self) -> Result<Universe> {
        Ok(Universe::for_rate(self.keys, self.rate)?)
    }

    /// The division of the universe into parts.
    pub(super) fn split(&self) -> Result<Split> {
        Ok(Split::new(self.universe()?, u64::from(self.parts)))
    }

    /// Returns the universe of a part: as many fingerprints as the largest part has, counted from its first.
    pub(super) fn part_universe(&self) -> Result<Universe> {
        let split = self.split()?;
        let size = |part: u64| split.first(part + 1) - split.first(part);
        let size = (0..split.quotients()).map(size).max().expect("there is a part");
        Ok(Universe::new(size.max(Universe::SIZE_MIN))?)
    }

    /// Fingerprints that the buffer of a part takes.
    #[must_use]
    pub fn part_entries(&self) -> u64 {
        (self.buffer_entries / u64::from(self.parts.max(1))).max(1)
    }

    /// Returns the division of a part's RAM buffer.
    ///
    /// # Errors
    /// As [`universe`](Self::universe).
    pub(super) fn buffer_shape(&self) -> Result<BufferShape> {
        Ok(BufferShape::new(self.part_universe()?, self.part_entries(), self.counts))
    }

    /// RAM of a part's full buffer, in bytes.
    ///
    /// # Errors
    /// As [`universe`](Self::universe).
    pub fn full_buffer_bytes(&self) -> Result<u64> {
        Ok(self.buffer_shape()?.full_bytes())
    }

    /// RAM of a part's buffer in bytes, the average while it fills up.
    ///
    /// # Errors
    /// As [`universe`](Self::universe).
    pub fn mean_buffer_bytes(&self) -> Result<u64> {
        Ok(self.buffer_shape()?.mean_bytes())
    }

    /// Returns the RAM that all buffers may take, in bytes. Parts fill up one after another, so it is about half of
    /// what all of them take when they are full. If they fill together, some are merged before they are full.
    ///
    /// # Errors
    /// As [`universe`](Self::universe).
    pub fn buffer_bytes_max(&self) -> Result<u64> {
        let shape = self.buffer_shape()?;
        // Two more are full: one is being merged, and another one waits.
        Ok(u64::from(self.parts) * shape.mean_bytes() + 2 * shape.full_bytes())
    }

    /// The maximum number of fingerprints that level `index` of a part may hold, the smallest level being 0.
    #[must_use]
    pub fn level_entries_max(&self, index: usize) -> u64 {
        let Some(fan_out) = self.fan_out else { return u64::MAX };
        let power = u32::try_from(index + 1).unwrap_or(u32::MAX);
        self.part_entries().saturating_mul(u64::from(fan_out).saturating_pow(power))
    }

    /// Bytes of an update in the log.
    pub(super) fn update_bytes(universe: Universe) -> usize {
        (universe.bits() as usize + 1).div_ceil(8)
    }

    /// Returns the size in bytes of a log that does not force the filter to save its buffers before they are full:
    /// three times what they take, and at least 1 MiB. A filter that counts needs twelve times, since it takes a key
    /// again and again. [`LOG_BYTES_MIN`](Self::LOG_BYTES_MIN) is enough if the volume is opened without durability.
    #[must_use]
    pub fn log_bytes_best(&self) -> u64 {
        let update_bytes = self.universe().map_or(8, Self::update_bytes) as u64;
        let times = if self.counts { 12 } else { 3 };
        let bytes = self.buffer_entries.saturating_mul(times * update_bytes.max(1));
        bytes.next_multiple_of(1 << 20).max(Self::LOG_BYTES_MIN)
    }

    /// The least that [`log_bytes_best`](Self::log_bytes_best) returns, in bytes.
    pub const LOG_BYTES_MIN: u64 = 1 << 20;
}

#[cfg(test)]
mod tests {
    use nandex_device::PageId;
    use nandex_store::bytes::Reader;

    use super::*;

    #[test]
    fn a_filter_that_would_forget_its_oldest_keys_is_refused_with_what_it_can_do() {
        let config = Config { when_full: WhenFull::EvictOldest, ..Config::tiny() };
        let refused = config.validate().unwrap_err().to_string();
        assert!(refused.ends_with("when_full: it can only be grow or refuse"), "{refused}");
    }

    #[test]
    fn a_configuration_is_read_back_and_bytes_that_are_none_are_refused() {
        let configs = [
            Config::tiny(),
            Config { fan_out: None, counts: true, when_full: WhenFull::Refuse, ..Config::tiny() },
        ];
        for config in configs {
            let bytes = config.encode();
            let decode = |bytes: &[u8]| Config::decode(&mut Reader::new(bytes, "test", PageId(0)));
            assert_eq!(decode(&bytes).unwrap(), config);
            for len in 0..bytes.len() {
                assert!(decode(&bytes[..len]).is_err());
            }
            for (at, value) in [(0, 9), (1, 0), (25, 0), (33, 2), (34, 7)] {
                let mut bad = bytes.clone();
                bad[at..at + if at == 1 { 8 } else { 1 }].fill(value);
                assert!(decode(&bad).is_err(), "{at}");
            }
        }
    }

    /// The example of docs/reference/format.md: a change here makes every filter unreadable.
    #[test]
    fn a_configuration_is_the_bytes_that_the_format_says() {
        let hex: String =
            Config::tiny().encode().iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, "0110270000000000007b14ae47e17a843fc80000000000000001000000020000000000");
    }

    #[test]
    fn levels_grow_by_the_fan_out() {
        let tiny = Config::tiny();
        assert_eq!([0, 1, 2].map(|index| tiny.level_entries_max(index)), [400, 800, 1600]);
        assert_eq!(tiny.level_entries_max(10_000), u64::MAX);
        assert_eq!(Config { fan_out: None, ..tiny }.level_entries_max(0), u64::MAX);
    }

    #[test]
    fn what_cannot_work_is_refused_by_its_name() {
        let tiny = Config::tiny();
        for (config, field) in [
            (Config { keys: 0, ..tiny }, "keys"),
            (Config { rate: 1.5, ..tiny }, "rate"),
            (Config { keys: 1 << 60, rate: 1e-9, ..tiny }, "rate"),
            (Config { buffer_entries: 0, ..tiny }, "buffer_entries"),
            (Config { buffer_entries: 1 << 40, ..tiny }, "buffer_entries"),
            (Config { buffer_entries: 7, ..tiny }, "buffer_entries"),
            (Config { fan_out: Some(1), ..tiny }, "fan_out"),
            (Config { parts: 0, ..tiny }, "parts"),
            (Config { parts: 201, ..tiny }, "buffer_entries"),
        ] {
            let error = config.validate().unwrap_err().to_string();
            assert!(error.starts_with(&format!("{field}: ")), "{field}: {error}");
        }
    }
}
