//! The body of a slice page, a move in the log and a configuration from any bytes are refused or read without
//! leaving them, and what was read is written back the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nandex::slicehash::format::{Moved, decode_config, decode_log_entry};
use nandex::slicehash::slice::SliceLayout;
use nandex_store::entries::EntryLayout;
use nandex_store::page::PAGE_BODY_BYTES;

fuzz_target!(|data: (u8, u8, &[u8])| {
    let (key_bytes, value_bytes, bytes) = data;
    if let Ok(config) = decode_config(bytes) {
        assert!(config.validate().is_ok() && config.slicetable_pages() > 0);
        assert!(config.slice_entries() > 0);
    }
    let Ok(entries) = EntryLayout::new(key_bytes.into(), value_bytes.into()) else { return };
    if let Some((moved, own)) = Moved::decode(bytes) {
        assert_eq!([&moved.encode(), own].concat(), bytes);
        assert!(decode_log_entry(bytes, entries).is_none());
    }
    let layout = SliceLayout::new(key_bytes.into(), value_bytes.into());
    let mut body = vec![0; PAGE_BODY_BYTES];
    let length = bytes.len().min(PAGE_BODY_BYTES);
    body[..length].copy_from_slice(&bytes[..length]);
    let Some(count) = layout.count(&body) else { return };
    for at in 0..count {
        let key = layout.key(&body, at).to_vec();
        let found = layout.find(&body, count, &key).expect("a key that is there is found");
        assert!(found <= at && layout.key(&body, found) == key);
        assert_eq!(layout.value(&body, at).len(), usize::from(value_bytes));
    }
    if count == layout.capacity() {
        layout.remove_oldest(&mut body, 1);
    }
    layout.push(&mut body, &vec![7; key_bytes.into()], &vec![8; value_bytes.into()]);
    let all: Vec<_> = (0..layout.count(&body).expect("it counts")).collect();
    layout.remove(&mut body, &all);
    assert_eq!(layout.count(&body), Some(0));
});
