//! A superblock from any bytes is refused or, written again, gives the same superblock.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nandex_device::{PAGE_BYTES, PageId};
use nandex_store::StructureId;
use nandex_store::page::{PageKind, PageLabel, seal};
use nandex_store::superblock::Superblock;

fuzz_target!(|data: (u64, bool, &[u8])| {
    let (generation, sealed, bytes) = data;
    let place = PageId(generation % 2);
    let mut page = [0; PAGE_BYTES];
    let length = bytes.len().min(PAGE_BYTES);
    page[..length].copy_from_slice(&bytes[..length]);
    if sealed {
        // A right checksum, so that the code behind it is reached.
        let (kind, structure) = (PageKind::Superblock, StructureId::VOLUME);
        seal(&mut page, PageLabel { kind, structure, generation, page: place });
    }
    if let Ok(superblock) = Superblock::decode(&page, place) {
        let mut again = [0; PAGE_BYTES];
        superblock.encode(&mut again);
        assert_eq!(Superblock::decode(&again, superblock.place()).ok(), Some(superblock));
    }
});
