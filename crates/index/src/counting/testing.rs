//! The counting table's configurations for tests, and its decoders for fuzzing.

use nandex_device::PageId;
use nandex_store::StructureId;
use nandex_store::bytes::Reader;
use nandex_store::hash::{HashKind, KeyHasher};

use super::entries::Entries;
use super::format::ChangeCodec;
use super::keys::KeyPlacing;
use super::page::CountPage;
use super::segments::PartitionSegments;
use super::{Config, Discipline, Keys};
use crate::OpenOptions;
use crate::testing::{Decoder, FilterTests, TestFilter};
use crate::write::LogCodec;

/// Variants cover all disciplines with whole keys and with fingerprints of all widths; blocks, `k`, buffers and
/// shares are mixed.
pub(super) const TESTS: FilterTests = FilterTests { variants: 24, config };

const DISCIPLINES: [Discipline; 3] = [Discipline::MdbL, Discipline::Mb, Discipline::Mdb];

/// The stored forms of keys.
const KEYS: [Keys; 4] =
    [Keys::Whole(8), Keys::Fingerprints(7), Keys::Whole(8), Keys::Fingerprints(2)];

fn config(variant: u64, threads: usize) -> TestFilter {
    let discipline = DISCIPLINES[(variant % 3) as usize];
    let keys = KEYS[(variant / 3 % 4) as usize];
    let config = Config {
        keys,
        q: [500, 3000][(variant / 12 % 2) as usize],
        block_pages: 1 + (variant % 4) as u32,
        k: 1 + (variant % 2) as u32,
        buffer_entries: 60 + variant * 97 % 400,
        discipline,
        change_permille: [1000, 300, 0][(variant / 5 % 3) as usize],
    };
    let own = OpenOptions {
        flush_threads: Some(threads),
        io_chunk_pages: Some(1 + (variant % 6) as u32),
        ..OpenOptions::default()
    };
    let (universe, key_bytes) = match keys {
        Keys::Whole(bytes) => (u64::MAX, Some(bytes.into())),
        Keys::Fingerprints(bytes) => (1 << (8 * bytes), None),
    };
    TestFilter {
        label: format!("counting table, {}, {keys:?}", discipline.name()),
        config: config.into(),
        options: own,
        universe,
        counts: true,
        key_bytes,
        window: None,
    }
}

pub(super) const DECODERS: &[Decoder] = &[
    Decoder { name: "configuration", run: decode_config },
    Decoder { name: "segments", run: decode_segments },
    Decoder { name: "page", run: decode_page },
    Decoder { name: "change", run: decode_change },
];

fn decode_config(bytes: &[u8]) {
    let mut reader = Reader::new(bytes, "counting configuration", PageId(0));
    if let Ok(config) = Config::decode(&mut reader) {
        assert!(config.validate().is_ok());
        assert_eq!(config.encode(), bytes[..bytes.len() - reader.left()]);
    }
}

fn decode_segments(bytes: &[u8]) {
    let mut reader = Reader::new(bytes, "counting state", PageId(0));
    if let Ok(segments) = PartitionSegments::decode(StructureId(1), &mut reader) {
        let mut encoded = Vec::new();
        segments.encode(&mut encoded);
        assert_eq!(encoded, bytes[..bytes.len() - reader.left()]);
    }
}

fn placing(width: u8) -> KeyPlacing {
    let hasher = KeyHasher::new(HashKind::Xxh3, 1);
    KeyPlacing { keys: Keys::Whole(width), hasher, partitions: 3 }
}

fn decode_page(bytes: &[u8]) {
    let Some((first, body)) = bytes.split_first() else { return };
    let width = 1 + first % 32;
    if let Some(page) = CountPage::parse(body, width.into()) {
        let mut entries = Entries::new(width.into());
        if page.read(&placing(width), &mut entries).is_some() {
            for at in 0..entries.len() {
                assert!(page.find(entries.key(at)).is_ok_and(|found| found.is_some()));
            }
        }
    }
}

fn decode_change(bytes: &[u8]) {
    for width in [4, 8, 12] {
        let codec = ChangeCodec::new(placing(width));
        if let Some((partition, update)) = codec.decode(bytes) {
            assert!(partition < 3 && update.key.len() == usize::from(width));
            assert!(!update.change.is_nothing());
        }
    }
}
