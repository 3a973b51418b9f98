//! RHIK's configurations for tests, and its decoders for fuzzing.

use nandex_store::entries::EntryLayout;
use nandex_store::hash::{HashKind, KeyHasher};
use nandex_store::page::PAGE_BODY_BYTES;
use nandex_store::records::RecordLayout;

use super::{Config, Directories};
use crate::groups::{decode_config, decode_map, test_table};
use crate::testing::{Decoder, TableRequest, TableTests, TestTable};

/// Variants have the usual tables in groups of four, and others in groups of one that are crowded and split early.
pub(super) const TESTS: TableTests = TableTests { variants: 2, config };

fn config(request: &TableRequest) -> TestTable {
    let (neighbourhood, split_permille, group_pages) =
        [(32, 900, 4), (6, 600, 1)][(request.variant % 2) as usize];
    let config = Config { neighbourhood, split_permille, group_pages, ..Config::tiny() };
    let label = format!("RHIK, neighbourhoods of {neighbourhood}, groups of {group_pages}");
    test_table(request, config, label)
}

pub(super) const DECODERS: &[Decoder] = &[
    Decoder { name: "configuration", run: decode_config::<Config> },
    Decoder { name: "directory", run: decode_map::<Directories> },
    Decoder { name: "record table", run: decode_table },
];

/// Key bytes, value bytes, the neighbourhood, and the body of a table.
fn decode_table(bytes: &[u8]) {
    let Some(([key_bytes, value_bytes, neighbourhood], bytes)) = bytes.split_first_chunk() else {
        return;
    };
    let (key_bytes, value_bytes) = (usize::from(*key_bytes), usize::from(*value_bytes));
    if EntryLayout::new(key_bytes, value_bytes).is_err() {
        return;
    }
    let layout = RecordLayout::new(key_bytes, value_bytes, 1 + usize::from(*neighbourhood) % 64);
    let mut body = vec![0; PAGE_BODY_BYTES];
    let length = bytes.len().min(PAGE_BODY_BYTES);
    body[..length].copy_from_slice(&bytes[..length]);
    let hasher = KeyHasher::new(HashKind::Xxh3, 1);
    for slot in layout.used(&body) {
        let key = layout.key(&body, slot);
        if layout.flaw(&body, hasher.hash(key), slot).is_none() {
            assert_eq!(layout.find(&body, hasher.hash(key), key), Some(slot));
        }
    }
    let (key, value) = (vec![7; key_bytes], vec![8; value_bytes]);
    let hash = hasher.hash(&key);
    if layout.insert(&mut body, &hasher, (hash, &key, &value)).is_ok() {
        let slot = layout.find(&body, hash, &key).expect("what was put is found");
        assert_eq!(layout.value(&body, slot), value);
        layout.remove(&mut body, hash, &key);
    }
}
