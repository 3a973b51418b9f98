//! The cascade filter's configurations for tests, and its decoders for fuzzing.

use nandex_device::PageId;
use nandex_store::bytes::Reader;

use super::Config;
use crate::OpenOptions;
use crate::testing::{Decoder, FilterTests, TestFilter};

/// Variants cover all rates and fan-outs, counting or not; keys, parts and buffers are mixed.
pub(super) const TESTS: FilterTests = FilterTests { variants: 40, config };

const RATES: [f64; 5] = [1e-1, 1e-2, 1e-3, 1e-6, 1e-9];

/// The growth factors of levels; `None` for a single wide one.
const FAN_OUTS: [Option<u32>; 4] = [Some(2), Some(4), None, Some(16)];

fn config(variant: u64, threads: usize) -> TestFilter {
    let rate = RATES[(variant % 5) as usize];
    let fan_out = FAN_OUTS[(variant / 5 % 4) as usize];
    let counts = (variant / 20).is_multiple_of(2);
    let parts = 1 + (variant % 3) as u32;
    let config = Config {
        // The most keys that are inserted, or far more, so that the universe is wide for its rate.
        keys: if variant.is_multiple_of(3) { 100_000 } else { 3000 },
        rate,
        buffer_entries: 60 + variant * 97 % 400,
        parts,
        fan_out,
        counts,
        ..Config::tiny()
    };
    let own = OpenOptions {
        flush_threads: Some(threads),
        io_chunk_pages: Some(1 + (variant % 6) as u32),
        ..OpenOptions::default()
    };
    TestFilter {
        label: format!(
            "cascade filter at {rate}, fan-out {fan_out:?}, {parts} parts, counts: {counts}"
        ),
        config: config.into(),
        options: own,
        universe: config.universe().expect("these numbers are in range").size(),
        counts,
        key_bytes: None,
        window: None,
    }
}

pub(super) const DECODERS: &[Decoder] = &[Decoder { name: "configuration", run: decode_config }];

fn decode_config(bytes: &[u8]) {
    let mut reader = Reader::new(bytes, "cascade configuration", PageId(0));
    if let Ok(config) = Config::decode(&mut reader) {
        assert!(config.validate().is_ok());
        assert_eq!(config.encode(), bytes[..bytes.len() - reader.left()]);
    }
}
