//! A page of entries, or of filter bits, from any bytes is read without leaving the page.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nandex::bufferhash::format::decode_filter;
use nandex_device::PAGE_BYTES;
use nandex_store::entries::EntryLayout;
use nandex_store::hash::{HashKind, KeyHasher};

fuzz_target!(|data: (u8, u8, u128, &[u8])| {
    let (key_bytes, value_bytes, seed, bytes) = data;
    let Ok(layout) = EntryLayout::new(key_bytes.into(), value_bytes.into()) else { return };
    let mut page = [0; PAGE_BYTES];
    let length = bytes.len().min(PAGE_BYTES);
    page[..length].copy_from_slice(&bytes[..length]);
    assert_eq!(decode_filter(&page, usize::from(value_bytes)).len(), usize::from(value_bytes));
    let hasher = KeyHasher::new(HashKind::default(), seed);
    for (slot, entry) in layout.entries(&page) {
        assert_eq!(entry.key.len(), usize::from(key_bytes));
        assert_eq!(entry.value.len(), usize::from(value_bytes));
        assert_eq!(layout.entry(&page, slot), Some(entry));
        let buckets = layout.buckets_of(hasher.hash(entry.key));
        if let Some(found) = layout.find(&page, entry.key, buckets) {
            assert!(layout.entry(&page, found).is_none_or(|it| it.key == entry.key));
        }
    }
});
