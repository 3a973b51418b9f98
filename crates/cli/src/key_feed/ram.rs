//! The RAM of a feed of keys, its share of the RAM of a run, and the size of its batches.

use anyhow::Result;
use nandex::raw::store::bisect::least_up_to;

use super::READ_BYTES;
use crate::refuse;
use crate::size::show_bytes;

/// The number of batches in RAM: one is read, one waits, and the caller has one.
const BATCHES: u64 = 3;
/// The bytes and keys of a batch from which on a larger one is not faster.
const BYTES_MAX: u64 = 4 << 20;
const KEYS_MAX: u64 = 1 << 18;
/// The fewest bytes of all batches: with less a thread waits for the other too often.
const BATCHES_BYTES_MIN: u64 = 48 << 10;

/// The RAM of a feed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FeedRam {
    /// The bytes that batches, and what the caller takes for the keys of one of them, may take.
    pub bytes: u64,
    /// The bytes that the caller takes for each key of a batch, in addition to the key and its slice.
    pub per_key: u64,
}

/// The share of a run's RAM that reads keys is one in this number of bytes, and no less and no more than these bytes.
const SHARE: u64 = 8;
const SHARE_BYTES: (u64, u64) = (512 << 10, 4 << 20);

impl FeedRam {
    /// For keys that are only passed on: larger batches would not be faster.
    pub const SMALL: Self = Self { bytes: SHARE_BYTES.0, per_key: 0 };

    /// Returns the share of a run that may take `ram` bytes, for a caller that takes `per_key` bytes for each key.
    pub fn of_run(ram: u64, per_key: u64) -> Self {
        Self { bytes: (ram / SHARE).clamp(SHARE_BYTES.0, SHARE_BYTES.1), per_key }
    }

    /// The bytes for reading of a run that may take `ram` bytes.
    pub fn bytes_of_run(ram: u64) -> u64 {
        Self::of_run(ram, 0).bytes
    }

    /// Returns the sizes of batches that fit.
    pub(super) fn limits(self) -> BatchLimits {
        let bytes = self.bytes.saturating_sub(READ_BYTES as u64).max(BATCHES_BYTES_MIN);
        let key_bytes = BATCHES * size_of::<u32>() as u64 + self.per_key_in_use();
        BatchLimits { bytes, key_bytes }
    }

    /// The bytes of a slice, and of what the caller takes.
    fn per_key_in_use(self) -> u64 {
        size_of::<&[u8]>() as u64 + self.per_key
    }

    /// Returns the bytes that are taken while the caller has a batch of these bytes and keys, and the others are alike.
    pub(super) fn taken(self, batch_bytes: u64, keys: usize) -> u64 {
        READ_BYTES as u64 + BATCHES * batch_bytes + keys as u64 * self.per_key_in_use()
    }
}

/// The most RAM that is tried for the least that is enough, in bytes.
const RAM_MAX: u64 = 1 << 51;

/// Returns the configuration that `advise` chooses for what the rest of a run, which takes `others(ram)` bytes, leaves
/// of its `ram` bytes. More RAM must leave more. `what` is what the run makes.
///
/// # Errors
/// Too little RAM, with the least that is enough; other errors of `advise`.
pub fn advised_beside<C>(
    (ram, what): (u64, &str),
    others: impl Fn(u64) -> u64,
    advise: impl Fn(u64) -> nandex::Result<C>,
) -> Result<C> {
    let within = |ram: u64| advise(ram.saturating_sub(others(ram)));
    let lacks = |ram| matches!(within(ram), Err(nandex::Error::TooLittleRam { .. }));
    if !lacks(ram) {
        return Ok(within(ram)?);
    }
    let Some(enough) = least_up_to(ram, ram.max(1), RAM_MAX, |ram| !lacks(ram)) else {
        return Ok(within(ram)?);
    };
    refuse!(
        "--ram {ram} ({}) is too little for {what}: it needs at least {enough} ({}); state that, or more",
        show_bytes(ram),
        show_bytes(enough)
    );
}

/// The size at which a batch is full.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct BatchLimits {
    /// The bytes that all batches, and what the caller takes for one, may take.
    bytes: u64,
    /// The part of them that each key takes, without its own bytes.
    key_bytes: u64,
}

impl BatchLimits {
    /// Returns whether a batch of these keys with these bytes is full.
    pub fn is_full(self, keys: usize, bytes: usize) -> bool {
        let (keys, bytes) = (keys as u64, bytes as u64);
        keys >= KEYS_MAX
            || bytes >= BYTES_MAX
            || keys * self.key_bytes + bytes * BATCHES >= self.bytes
    }

    /// Returns the most bytes and keys to reserve memory for.
    pub fn reserved(self) -> (usize, usize) {
        let (bytes, keys) = (self.bytes / BATCHES, self.bytes / self.key_bytes);
        (bytes.min(BYTES_MAX) as usize, keys.min(KEYS_MAX) as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_little_ram_is_refused_with_the_least_that_is_enough() {
        let needs = |needed: u64| {
            move |ram: u64| {
                let reason = String::new();
                let lack = nandex::Error::TooLittleRam { field: "ram_bytes", reason };
                if ram < needed { Err(lack) } else { Ok(ram) }
            }
        };
        assert_eq!(
            advised_beside((8 << 20, "a filter"), FeedRam::bytes_of_run, needs(7 << 20)).unwrap(),
            7 << 20
        );
        for (stated, needed) in [(0, 1), (1 << 20, 3 << 20), (8 << 20, (7 << 20) + 1)] {
            let refused =
                advised_beside((stated, "a filter"), FeedRam::bytes_of_run, needs(needed))
                    .unwrap_err();
            let refused = refused.to_string();
            let least = refused.split("at least ").nth(1).unwrap().split(' ').next().unwrap();
            let least: u64 = least.parse().unwrap();
            assert!(
                advised_beside((least, "a filter"), FeedRam::bytes_of_run, needs(needed)).is_ok(),
                "{refused}"
            );
            assert!(
                advised_beside((least - 1, "a filter"), FeedRam::bytes_of_run, needs(needed))
                    .is_err(),
                "{refused}"
            );
        }
    }

    #[test]
    fn full_batches_take_what_the_feed_may_take() {
        for bytes in [512 << 10, 1 << 20, 5 << 20, 24 << 20] {
            for (per_key, key_len) in [(0, 0), (0, 8), (40, 12), (300, 80)] {
                let ram = FeedRam { bytes, per_key };
                let limits = ram.limits();
                let full = |keys: &usize| limits.is_full(*keys, keys * key_len);
                let keys = (1..).find(full).expect("a batch gets full");
                let batch = keys * (key_len + size_of::<u32>());
                let taken = ram.taken(batch as u64, keys);
                assert!(taken <= bytes + 1000, "{ram:?}: {taken} bytes of {limits:?}");
                let is_capped = keys as u64 == KEYS_MAX;
                assert!(is_capped || taken >= bytes - 1000, "{ram:?}: {taken} of {limits:?}");
            }
        }
    }
}
