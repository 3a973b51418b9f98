//! The bytes on flash, read according to docs/reference/format.md with no nandex code but the hash.

use std::sync::Arc;

use nandex::device::MemoryDevice;
use nandex::raw::device::PAGE_BYTES;
use nandex::raw::store::hash::{HashKind, KeyHasher};
use nandex::{Durability, WhenFull};
use nandex_trial::Contract;

use super::support::Setup;

/// Applies MurmurHash3's finaliser.
fn mix(mut x: u64) -> u64 {
    x ^= x >> 33;
    x = x.wrapping_mul(0xff51_afd7_ed55_8ccd);
    x ^= x >> 33;
    x = x.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    x ^ x >> 33
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
}

#[test]
fn records_are_on_flash_as_the_format_says() {
    let device = MemoryDevice::new();
    let setup = Setup::new(Durability::Never, WhenFull::Refuse);
    let table = setup.create_on(Arc::new(device.clone())).unwrap();
    table.put(b"a key", b"its value").unwrap();
    table.put(b"another", &[9; 5000]).unwrap();
    table.close().unwrap();
    let image = device.image();
    let pages = image.chunks_exact(PAGE_BYTES);
    let pages: Vec<_> = pages
        .enumerate()
        .filter(|(_, page)| page[4..8] == *b"ndx1" && page[8..10] == [7, 0])
        .collect();
    assert_eq!(pages.len(), 2, "5100 bytes of records fill two pages");
    for (number, page) in &pages {
        let long = |at: usize| u64::from_le_bytes(page[at..at + 8].try_into().unwrap());
        // The hash key of the tests' volumes is 42, and this is segment 1.
        assert_eq!(long(16), mix(42) >> 40 << 40 | 1);
        assert_eq!(long(24), *number as u64);
    }
    let bodies: Vec<_> = pages.iter().map(|(_, page)| &page[32..]).collect();
    assert_eq!(bodies[0][..2], [0, 0], "the first record begins the page");
    assert_eq!(bodies[1][..2], [0xff, 0xff], "none begins in the second");
    let bytes = [&bodies[0][2..], &bodies[1][2..]].concat();
    let mut at = 0;
    for (key, value) in [(&b"a key"[..], &b"its value"[..]), (b"another", &[9; 5000])] {
        assert_eq!(bytes[at..at + 4], [1, 0, 0, 0]);
        let record = &bytes[at + 8..at + 8 + word(&bytes, at + 4) as usize];
        let hash = KeyHasher::new(HashKind::Xxh3, 42).hash(key);
        let hash = [hash.place.to_le_bytes(), hash.filter.to_le_bytes()].concat();
        assert_eq!(record[..16], hash);
        let header = [16, 20, 24].map(|at| word(record, at) as usize);
        assert_eq!(header, [1, key.len(), value.len()]);
        assert_eq!(record[28..], [key, value].concat());
        at += 8 + record.len();
    }
    assert!(bytes[at..].iter().all(|byte| *byte == 0), "padding to the end of the page");
}
