//! A checkpoint's catalog, or a table's state in it, from any bytes is refused or reads back the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nandex::bufferhash::format::State;
use nandex_device::PageId;
use nandex_store::bytes::Reader;
use nandex_store::checkpoint::Catalog;

const PLACE: PageId = PageId(7);

fuzz_target!(|bytes: &[u8]| {
    if let Ok(catalog) = Catalog::decode(bytes, PLACE) {
        assert_eq!(Catalog::decode(&catalog.encode(), PLACE).ok(), Some(catalog));
    }
    if let Ok(state) = State::decode(&mut Reader::new(bytes, "state", PLACE)) {
        let mut again = Vec::new();
        state.encode(&mut again);
        let read = State::decode(&mut Reader::new(&again, "state", PLACE));
        assert_eq!(read.ok(), Some(state));
    }
});
