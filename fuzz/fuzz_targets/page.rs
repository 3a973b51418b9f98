//! Bytes that pass the check of a page are exactly those that were sealed as that page.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nandex_device::{PAGE_BYTES, PageId};
use nandex_store::StructureId;
use nandex_store::page::{PageKind, PageLabel, RawPage, seal};

fuzz_target!(|data: (u16, u64, u64, u16, &[u8])| {
    let (structure, generation, place, flip, body) = data;
    let label = PageLabel {
        kind: PageKind::Superblock,
        structure: StructureId(structure),
        generation,
        page: PageId(place),
    };
    let mut page = [0; PAGE_BYTES];
    let length = body.len().min(PAGE_BYTES);
    page[..length].copy_from_slice(&body[..length]);
    let _ = RawPage::new(&page).check(label);
    seal(&mut page, label);
    RawPage::new(&page).check(label).expect("what was sealed is proven");
    let bit = usize::from(flip) % (PAGE_BYTES * 8);
    page[bit / 8] ^= 1 << (bit % 8);
    RawPage::new(&page).check(label).expect_err("a flipped bit is found");
});
