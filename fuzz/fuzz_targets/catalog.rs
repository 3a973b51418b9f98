//! A checkpoint's catalog from any bytes is refused or, written again, gives the same catalog.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nandex_device::PageId;
use nandex_store::checkpoint::Catalog;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(catalog) = Catalog::decode(bytes, PageId(7)) {
        let again = Catalog::decode(&catalog.encode(), PageId(7));
        assert_eq!(again.ok(), Some(catalog));
    }
});
