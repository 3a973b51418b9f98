//! A checkpoint's catalog from any bytes is refused or reads back the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nandex_device::PageId;
use nandex_store::checkpoint::Catalog;

const PLACE: PageId = PageId(7);

fuzz_target!(|bytes: &[u8]| {
    if let Ok(catalog) = Catalog::decode(bytes, PLACE) {
        assert_eq!(Catalog::decode(&catalog.encode(), PLACE).ok(), Some(catalog));
    }
});
