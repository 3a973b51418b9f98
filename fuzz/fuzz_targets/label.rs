//! A label from any bytes is refused or, written again, gives the same label.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nandex_device::{Label, PAGE_BYTES, PageId};

fuzz_target!(|data: (bool, bool, &[u8])| {
    let (odd, sealed, bytes) = data;
    let place = PageId(odd.into());
    let mut page = [0; PAGE_BYTES];
    let length = bytes.len().min(PAGE_BYTES);
    page[..length].copy_from_slice(&bytes[..length]);
    if sealed {
        // The right magic, version and checksum, so that the code behind them is reached.
        page[4..10].copy_from_slice(b"ndxa\x01\0");
        let sum = crc32c::crc32c(&page[4..]);
        page[..4].copy_from_slice(&sum.to_le_bytes());
    }
    let _ = Label::choose([&page, &page]);
    if let Ok(label) = Label::decode(&page, place) {
        let mut again = [0; PAGE_BYTES];
        label.encode(&mut again);
        assert_eq!(Label::decode(&again, label.place()), Ok(label));
    }
});
