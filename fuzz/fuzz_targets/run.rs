//! The body of a page of a run and a run's state from any bytes are refused or read without leaving them;
//! lookups find every entry of a page that is read whole, and a state is written back the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nandex_device::PageId;
use nandex_store::StructureId;
use nandex_store::bytes::Reader;
use nandex_store::fingerprint::Universe;
use nandex_store::page::PAGE_BODY_BYTES;
use nandex_store::run::{PAGE_ENTRIES_MAX, Run, RunPage};

/// Checks that nothing panics, whatever the bytes are. The entries of a page that is read whole are
/// ascending, and each is found.
fn page(bytes: &[u8], asked: u64) {
    let mut body = vec![0; PAGE_BODY_BYTES];
    let length = bytes.len().min(PAGE_BODY_BYTES);
    body[..length].copy_from_slice(&bytes[..length]);
    let Some(page) = RunPage::parse(&body) else { return };
    let _ = page.count(asked);
    let mut all = Vec::new();
    let whole = page.read(&mut all);
    for entry in &all {
        let count = page.count(entry.fingerprint);
        assert!(whole.is_none() || count == Some(entry.count));
    }
    if whole.is_some() {
        assert!(all.len() == page.entries() && all.len() <= PAGE_ENTRIES_MAX);
        assert!(all.is_sorted_by(|a, b| a.fingerprint < b.fingerprint));
        assert!(all.iter().all(|entry| (page.base()..page.limit()).contains(&entry.fingerprint)));
        assert!(all.iter().all(|entry| entry.count != 0));
        let is_there = all.binary_search_by_key(&asked, |entry| entry.fingerprint);
        let expected = is_there.map_or(0, |at| all[at].count);
        assert_eq!(page.count(asked), Some(expected));
    }
}

fn state(bytes: &[u8], size: u64) {
    let Ok(universe) = Universe::new(size) else { return };
    let mut reader = Reader::new(bytes, "state", PageId(0));
    let Ok(run) = Run::decode(StructureId(1), universe, &mut reader) else { return };
    let mut again = Vec::new();
    run.encode(&mut again);
    assert_eq!(again, bytes[..bytes.len() - reader.left()]);
    let _ = run.page_of(size - 1);
}

fuzz_target!(|data: (u64, &[u8])| {
    let (number, bytes) = data;
    page(bytes, number);
    state(bytes, number);
});
