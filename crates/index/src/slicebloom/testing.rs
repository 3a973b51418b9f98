//! SliceBloom's configurations for tests, and its decoders for fuzzing.

use nandex_device::PageId;
use nandex_store::StructureId;
use nandex_store::bytes::Reader;
use nandex_store::page::PAGE_BODY_BYTES;

use super::Config;
use super::buffer::{Bitmap, Content};
use super::format::{FingerprintCodec, SliceLayout, encode_state};
use super::recover::{FilterSource, restore};
use crate::OpenOptions;
use crate::testing::{Decoder, FilterTests, TestFilter};
use crate::write::LogCodec;

/// Variants cover windows of a few hundred keys, so that keys expire, and of more than any test inserts; slices of one
/// byte and of many; one partition and several.
pub(super) const TESTS: FilterTests = FilterTests { variants: 12, config };

fn config(variant: u64, threads: usize) -> TestFilter {
    let config = Config {
        partitions: [1, 4, 2][(variant % 3) as usize],
        buffer_keys: 40 + (variant * 97 % 160) as u32,
        // False positives are so rare that a test meets none.
        bits_per_key: 96,
        hashes: 16,
        incarnations: [8, 24, 64, 8][(variant % 4) as usize],
        spare_blocks: 1 + (variant % 2) as u32,
        spare_buffers: 1 + (variant / 2 % 2) as u32,
        align_pages: [1, 4][(variant / 6) as usize],
    };
    let own = OpenOptions {
        flush_threads: Some(threads),
        io_chunk_pages: Some(1 + (variant % 6) as u32),
        ..OpenOptions::default()
    };
    let Config { partitions, buffer_keys, incarnations, .. } = config;
    TestFilter {
        label: format!(
            "SliceBloom of {partitions} partitions, {incarnations} incarnations of {buffer_keys} keys"
        ),
        config: config.into(),
        options: own,
        universe: u64::MAX,
        counts: false,
        key_bytes: None,
        window: Some(config.partition_window_keys()),
    }
}

pub(super) const DECODERS: &[Decoder] = &[
    Decoder { name: "configuration", run: decode_config },
    Decoder { name: "state", run: decode_state },
    Decoder { name: "key in the log", run: decode_key },
    Decoder { name: "snapshot", run: decode_snapshot },
    Decoder { name: "slice page", run: decode_page },
];

fn decode_config(bytes: &[u8]) {
    let mut reader = Reader::new(bytes, "slicebloom configuration", PageId(0));
    if let Ok(config) = Config::decode(&mut reader) {
        assert!(config.validate().is_ok());
        assert_eq!(config.encode(), bytes[..bytes.len() - reader.left()]);
    }
}

fn decode_state(bytes: &[u8]) {
    let (config, from) =
        (Config::tiny(), FilterSource { id: StructureId(1), start: PageId(0), epoch: 1 });
    let mut reader = Reader::new(bytes, "slicebloom state", PageId(0));
    if let Ok(restored) = restore(&from, &config, false, &mut reader) {
        let shadow = restored.shadow.finish();
        let map = shadow.capture(nandex_store::Lsn(0)).bytes;
        let state = encode_state(&map, restored.levels.iter().map(|level| level.incarnations));
        assert_eq!(state, bytes[..bytes.len() - reader.left()]);
    }
}

fn decode_key(bytes: &[u8]) {
    let placing = Config::tiny().placing();
    if let Some((index, fingerprint)) = FingerprintCodec(placing).decode(bytes) {
        assert!(index < placing.partitions as usize);
        assert!(placing.positions(fingerprint).all(|position| position < placing.bits));
    }
}

fn decode_snapshot(bytes: &[u8]) {
    for bits in [1, 64, 100] {
        if let Some(content) = Content::decode(bytes, bits, 50) {
            assert!(content.keys <= 50);
            assert!(bytes.starts_with(&content.encode()));
        }
    }
}

fn decode_page(bytes: &[u8]) {
    let mut body = bytes.to_vec();
    body.resize(PAGE_BODY_BYTES, 0);
    for incarnations in [8, 256] {
        let layout = SliceLayout::new(incarnations);
        let bits = layout.page_slices + 7;
        let is_stray = layout.has_strays(1, &body, bits, 5);
        layout.set_column(1, &mut body, 3, &Bitmap::new(bits));
        assert!(!layout.has_strays(1, &body, bits, 5) || is_stray);
        assert_eq!(layout.slice(&body, bits - 1).len(), incarnations as usize / 8);
    }
}
