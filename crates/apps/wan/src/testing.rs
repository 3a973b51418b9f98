//! Shared parts of tests: reproducible bytes, and caches in RAM.

use std::sync::Arc;

use nandex::device::{Device, MemoryDevice};
use nandex::{Volume, VolumeOptions};

use crate::{CACHE_BYTES_MIN, Cache, CacheConfig, EncodeOptions};

/// Reproducible noise: xorshift64*.
pub(crate) fn noise(bytes: usize, seed: u64) -> Vec<u8> {
    let mut random = Random::new(seed);
    std::iter::repeat_with(|| random.next().to_le_bytes()[7]).take(bytes).collect()
}

/// Returns reproducible text of a small vocabulary, which zstd makes about a quarter as long.
pub(crate) fn text(bytes: usize, seed: u64) -> Vec<u8> {
    let mut random = Random::new(seed);
    let mut out = Vec::with_capacity(bytes + 16);
    while out.len() < bytes {
        let number = random.next() >> 40;
        out.extend_from_slice(format!("word{} ", number * number % 4093).as_bytes());
    }
    out.truncate(bytes);
    out
}

/// Returns the bytes with some edits: insertions, removals and changes of a few bytes.
pub(crate) fn edited(bytes: &[u8], edits: usize, seed: u64) -> Vec<u8> {
    let mut random = Random::new(seed);
    let mut out = bytes.to_vec();
    for _ in 0..edits {
        let at = random.below(out.len());
        let end = (at + random.below(40)).min(out.len());
        let put = noise(random.below(60), random.next());
        out.splice(at..end, put);
    }
    out
}

/// A generator of numbers.
#[derive(Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        (self.next() >> 33) as usize % limit.max(1)
    }
}

/// The smallest cache.
pub(crate) const SMALL: CacheConfig =
    CacheConfig { content_bytes: CACHE_BYTES_MIN, chunk_bytes: 1 << 10, ram_bytes: None };

/// Small chunks and segments, so that a short stream has many.
pub(crate) const FINE: EncodeOptions = EncodeOptions {
    chunker: nandex_chunk::Chunker::FastCdc,
    chunk_bytes: 1 << 10,
    segment_bytes: 50_000,
    level: 3,
};

/// Creates a cache in RAM, of the smallest size.
pub(crate) fn cache() -> Cache {
    cache_on(Arc::new(MemoryDevice::new()), SMALL)
}

/// Creates a cache on a device. With a fixed hash key, every run fills its pages alike.
pub(crate) fn cache_on(device: Arc<dyn Device>, config: CacheConfig) -> Cache {
    let log_bytes = config.log_bytes().expect("it can work");
    let options = VolumeOptions { log_bytes, hash_key: Some(42), ..VolumeOptions::default() };
    let volume = Volume::create(device, options).expect("it fits");
    Cache::create_in(&volume, config).expect("it fits")
}
