//! Tests that are specific to SliceLSH; the conformance suite tests the interface.

mod moves;

use std::collections::BTreeSet;
use std::sync::Arc;

use nandex_device::{
    Access, Call, Counted, Device, Geometry, Mapping, MemoryDevice, Observer, OpKind, PageId,
    Watched,
};
use nandex_store::page::PageKind;
use nandex_store::schedule::{Channels, SequentialWrite};

use super::*;
use crate::oracle::BucketMap;
use crate::{OpenOptions, VolumeOpenOptions, VolumeOptions, WhenFull, check as check_volume};
use nandex_store::Volume;

fn volume_on(device: Arc<dyn Device>, log_bytes: u64) -> Volume {
    let options = VolumeOptions { log_bytes, ..VolumeOptions::tiny() };
    Volume::create(device, options).unwrap()
}

fn volume() -> Volume {
    volume_on(Arc::new(MemoryDevice::new()), 1 << 20)
}

fn inline() -> OpenOptions {
    OpenOptions { flush_threads: Some(0), io_chunk_pages: Some(5), ..OpenOptions::default() }
}

fn create(config: Config) -> SliceLsh {
    SliceLsh::create_with(&volume(), "n", config, inline()).unwrap()
}

/// Returns bucket keys of a document that shares no bucket.
fn own_keys(document: u64, tables: u32) -> Vec<u64> {
    (0..u64::from(tables)).map(|table| document * 100 + table).collect()
}

fn insert_own(index: &SliceLsh, documents: std::ops::Range<u64>) {
    for document in documents {
        index.insert(document, &own_keys(document, index.tables())).unwrap();
    }
}

#[test]
fn of_a_hot_bucket_the_oldest_ids_stay_and_no_merge_is_needed_for_the_others() {
    let index = create(Config::tiny());
    let keys = [7, 8, 9];
    let documents: Vec<u64> = (0..20_000).collect();
    let rows: Vec<u64> = documents.iter().flat_map(|_| keys).collect();
    let found = index.candidates_then_insert_many(&documents, &rows).unwrap();
    for (number, candidates) in found.iter().enumerate() {
        assert_eq!(*candidates, (0..4.min(number as u64)).collect::<Vec<_>>());
    }
    let stats = index.stats();
    assert_eq!((stats.flushes, stats.buffered, stats.dropped), (0, 12, 3 * (20_000 - 4)));
    // On flash, and with more ids from other buffers, the same ones stay.
    insert_own(&index, 100_000..100_200);
    index.insert_many(&documents[..100], &rows[..300]).unwrap();
    insert_own(&index, 200_000..200_200);
    assert_eq!(index.candidates(&keys).unwrap(), [0, 1, 2, 3]);
    let before = index.stats();
    assert!(before.flushes > 5 && before.dropped > stats.dropped, "{before:?}");
    // A removed id makes space for a later one, not for those that were dropped.
    index.remove(2, &keys).unwrap();
    assert_eq!(index.candidates(&keys).unwrap(), [0, 1, 3]);
    index.insert(77_777, &keys).unwrap();
    insert_own(&index, 300_000..300_200);
    assert_eq!(index.candidates(&keys).unwrap(), [0, 1, 3, 77_777]);
    assert_eq!(index.stats().dropped_life, index.stats().dropped);
}

#[test]
fn a_bucket_that_never_had_too_many_ids_loses_none_in_whatever_order_they_come_and_go() {
    let (index, oracle) = (create(Config::tiny()), BucketMap::new(3, 4));
    let mut there: Vec<u64> = Vec::new();
    let mut state = 1_u64;
    for step in 0..3000 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let document = state >> 60;
        let keys = [document % 2, 5, document % 3];
        let is_there = there.contains(&document);
        if is_there {
            there.retain(|other| *other != document);
            index.remove(document, &keys).unwrap();
            oracle.remove(document, &keys).unwrap();
        } else if there.len() < 4 {
            there.push(document);
            index.insert(document, &keys).unwrap();
            oracle.insert(document, &keys).unwrap();
        }
        if step % 5 == 0 {
            insert_own(&index, 1000 + step..1001 + step);
        }
        assert_eq!(index.candidates(&keys).unwrap(), oracle.candidates(&keys).unwrap(), "{step}");
    }
    let stats = index.stats();
    assert!(stats.flushes > 20 && stats.dropped == 0, "{stats:?}");
}

#[test]
fn a_full_index_evicts_its_oldest_entries_and_no_others() {
    let index = create(Config::tiny());
    insert_own(&index, 0..4000);
    let found: Vec<u64> = (0..4000)
        .filter(|document| !index.candidates(&own_keys(*document, 3)).unwrap().is_empty())
        .collect();
    let stats = index.stats();
    // Two partitions of two slices for each table.
    assert!(found.len() > 4 * 253 && found.len() < 3 * 4 * 253, "{}", found.len());
    assert!(found.contains(&3999) && !found.contains(&0));
    assert_eq!(stats.entries, 3 * 4000 - stats.evicted);
    assert!(stats.evicted > 8000 && stats.dropped == 0, "{stats:?}");
}

#[test]
fn a_full_index_that_may_not_evict_refuses_whole_documents_and_takes_more_after_removals() {
    let config = Config { policy: WhenFull::Refuse, ..Config::tiny() };
    let index = create(config);
    let mut taken = 0;
    let error = loop {
        match index.insert(taken, &own_keys(taken, 3)) {
            Ok(()) => taken += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(error, Error::Full { .. }), "{error}");
    assert!(taken > 500, "{taken}");
    let single = |document: u64, table: usize| {
        let mut keys = vec![u64::MAX; 3];
        keys[table] = own_keys(document, 3)[table];
        index.candidates(&keys).unwrap()
    };
    for table in 0..3 {
        assert_eq!(single(taken, table), [], "the refused document");
        for document in 0..taken {
            assert_eq!(single(document, table), [document], "table {table}");
        }
    }
    for document in 0..taken / 2 {
        index.remove(document, &own_keys(document, 3)).unwrap();
    }
    insert_own(&index, 10_000..10_100);
    for document in (taken / 2..taken).chain(10_000..10_100) {
        assert_eq!(index.candidates(&own_keys(document, 3)).unwrap(), [document]);
    }
    assert_eq!(index.candidates(&own_keys(0, 3)).unwrap(), []);
    assert_eq!((index.stats().evicted, index.stats().dropped), (0, 0));
}

#[test]
fn removals_of_many_leave_what_removals_of_each_leave() {
    let (many, singly) = (create(Config::tiny()), create(Config::tiny()));
    let oracle = BucketMap::new(3, 4);
    let keys = |documents: std::ops::Range<u64>| -> Vec<u64> {
        documents.flat_map(|document| own_keys(document, 3)).collect()
    };
    for first in (0..1000).step_by(200) {
        let all: Vec<u64> = (first..first + 200).collect();
        for index in [&many as &dyn Neighbors, &singly, &oracle] {
            index.insert_many(&all, &keys(first..first + 200)).unwrap();
        }
        // More than share a reservation; some were removed before, and some were never inserted.
        let gone: Vec<u64> = (first.saturating_sub(30)..first + 150).chain(9000..9010).collect();
        let rows: Vec<u64> = gone.iter().flat_map(|document| own_keys(*document, 3)).collect();
        many.remove_many(&gone, &rows).unwrap();
        oracle.remove_many(&gone, &rows).unwrap();
        gone.iter().zip(rows.chunks(3)).for_each(|(id, row)| singly.remove(*id, row).unwrap());
        let asked = keys(0..first + 200);
        let expected = oracle.candidates_many(&asked).unwrap();
        assert_eq!(many.candidates_many(&asked).unwrap(), expected);
        assert_eq!(singly.candidates_many(&asked).unwrap(), expected);
    }
    assert_eq!(many.stats().entries, singly.stats().entries);
    assert!(many.stats().flushes > 0, "some have reached flash");
}

#[test]
fn an_index_takes_a_new_document_for_each_that_was_removed() {
    let config = Config { policy: WhenFull::Refuse, slices: 8, ..Config::tiny() };
    let config = Config { entries_max: 3 * 8 * 180, ..config };
    let index = create(config.clone());
    let documents = u64::from(config.entries_max) / 3 * u64::from(config.partitions);
    insert_own(&index, 0..documents);
    let removed = 10 * documents;
    for document in 0..removed {
        index.remove(document, &own_keys(document, 3)).unwrap();
        insert_own(&index, documents + document..documents + document + 1);
    }
    for document in removed - 100..removed + documents {
        let expected = if document < removed { vec![] } else { vec![document] };
        assert_eq!(index.candidates(&own_keys(document, 3)).unwrap(), expected);
    }
    assert_eq!((index.stats().evicted, index.stats().dropped), (0, 0));
}

#[test]
fn another_family_than_the_volumes_is_refused_and_its_own_is_given_back() {
    let volume = volume();
    let family = b"minhash 1 of 128".to_vec();
    let config = Config { family: family.clone(), ..Config::tiny() };
    SliceLsh::create(&volume, "n", config).unwrap().close().unwrap();
    let open = |family: &[u8]| {
        let options = OpenOptions { family: Some(family.to_vec()), ..OpenOptions::default() };
        SliceLsh::open_with(&volume, "n", options)
    };
    let error = open(b"simhash").unwrap_err().to_string();
    assert!(error.starts_with("family: ") && error.contains("6d696e"), "{error}");
    assert!(error.contains("73696d68617368"), "{error}");
    assert_eq!(open(&family).unwrap().config().family, family);
    let index = SliceLsh::open(&volume, "n").unwrap();
    assert_eq!(crate::any::OpenNeighbors::family(&index), family);
}

/// An index of 3,000 documents that had all been replaced 15 times reported 48,000.
#[test]
fn removals_that_wait_in_ram_do_not_count_as_entries() {
    let device: Arc<dyn Device> = Arc::new(MemoryDevice::new());
    let index =
        SliceLsh::create_with(&volume_on(device.clone(), 1 << 20), "n", Config::tiny(), inline())
            .unwrap();
    let tables = u64::from(index.tables());
    for documents in [0..10, 10..20] {
        insert_own(&index, documents.clone());
        assert_eq!((index.stats().entries, index.stats().buffered), (10 * tables, 10 * tables));
        for document in documents.clone() {
            index.remove(document, &own_keys(document, index.tables())).unwrap();
        }
        assert_eq!((index.stats().entries, index.stats().buffered), (0, 0), "{documents:?}");
    }
    assert_eq!(index.stats().flushes, 0, "no merge has ended the removals");
    insert_own(&index, 20..25);
    index.close().unwrap();
    let volume = Volume::open(device, nandex_store::VolumeOpenOptions::default()).unwrap();
    let index = SliceLsh::open_with(&volume, "n", inline()).unwrap();
    assert_eq!(index.stats().entries, 5 * tables);
}

#[test]
fn keys_that_are_no_rows_and_options_that_cannot_work_are_refused() {
    let index = create(Config::tiny());
    let text = |result: Result<()>| result.unwrap_err().to_string();
    for keys in [&[][..], &[1, 2], &[1, 2, 3, 4]] {
        let text = text(index.insert(1, keys));
        assert!(text.starts_with("keys: ") && text.contains("takes 3 for each"), "{text}");
        assert!(index.remove(1, keys).is_err() && index.candidates(keys).is_err());
        assert!(index.insert_many(&[1, 2], keys).is_err());
        assert!(index.remove_many(&[1, 2], keys).is_err());
        assert!(index.candidates_then_insert_many(&[1, 2], keys).is_err());
    }
    assert!(index.candidates_many(&[1, 2, 3, 4]).is_err());
    assert_eq!(index.candidates_many(&[]).unwrap(), Vec::<Vec<u64>>::new());
    index.insert_many(&[], &[]).unwrap();
    index.remove_many(&[], &[]).unwrap();
    assert_eq!(index.stats().entries, 0);
    for options in [
        OpenOptions { read_depth: Some(0), ..inline() },
        OpenOptions { io_chunk_pages: Some(0), ..inline() },
    ] {
        assert!(SliceLsh::create_with(&volume(), "m", Config::tiny(), options).is_err());
    }
    let small = volume_on(Arc::new(MemoryDevice::new()), 32 << 10);
    let config = Config { buffer_entries: 1500, ..Config::tiny() };
    let error = SliceLsh::create(&small, "n", config).unwrap_err().to_string();
    assert!(error.starts_with("log_bytes: "), "{error}");
}

#[test]
fn what_is_inserted_twice_is_there_once_and_a_removal_of_what_is_not_there_does_nothing() {
    let index = create(Config::tiny());
    for round in 0..4 {
        for document in 0..100 {
            index.insert(document, &[document % 10, document, 7 + document]).unwrap();
            index.remove(document + 1000, &[document % 10, document, 7 + document]).unwrap();
        }
        index.flush().unwrap();
        for document in (0..100).step_by(9) {
            let keys = [u64::MAX, document, u64::MAX];
            assert_eq!(index.candidates(&keys).unwrap(), [document], "round {round}");
        }
    }
    assert!(index.stats().entries <= 3 * 100 + index.stats().buffered, "{:?}", index.stats());
}

#[test]
fn documents_of_a_batch_see_those_before_them_across_flushes() {
    let index = create(Config { bucket_ids_max: 253, ..Config::tiny() });
    let documents: Vec<u64> = (0..600).collect();
    let rows: Vec<u64> = documents.iter().flat_map(|it| [it / 3, it + 9000, it + 90_000]).collect();
    let found = index.candidates_then_insert_many(&documents, &rows).unwrap();
    for (document, candidates) in documents.iter().zip(found) {
        assert_eq!(candidates, (document / 3 * 3..*document).collect::<Vec<_>>());
    }
    assert!(index.stats().flushes > 10);
}

#[test]
fn a_lookup_reads_a_page_of_each_table_that_flash_has_and_none_before() {
    let device = Arc::new(Counted::new(MemoryDevice::new()));
    let volume = volume_on(Arc::clone(&device) as _, 1 << 20);
    let config = Config { tables: 10, buffer_entries: 200, slices: 8, ..Config::tiny() };
    let index = SliceLsh::create_with(&volume, "n", config, inline()).unwrap();
    let reads = |act: &dyn Fn()| {
        let before = device.snapshot();
        act();
        let counts = device.snapshot() - before;
        assert_eq!((counts.writes, counts.reads), (0, counts.pages_read));
        counts.pages_read
    };
    insert_own(&index, 0..5);
    assert_eq!(reads(&|| assert_eq!(index.candidates(&own_keys(3, 10)).unwrap(), [3])), 0);
    insert_own(&index, 5..500);
    for document in (0..700).step_by(13) {
        let expected: Vec<u64> = (document < 500).then_some(document).into_iter().collect();
        let candidates = || index.candidates(&own_keys(document, 10)).unwrap();
        assert_eq!(reads(&|| assert_eq!(candidates(), expected)), 10, "document {document}");
    }
    let rows: Vec<u64> = (0..40).flat_map(|document| own_keys(document, 10)).collect();
    assert_eq!(reads(&|| drop(index.candidates_many(&rows).unwrap())), 400);
    let stats = index.stats();
    assert_eq!(stats.lookup_reads, stats.reads_histogram[8] * 10);
    assert_eq!(stats.hits + stats.misses, stats.reads_histogram.iter().sum());
}

/// Notes the pages of reads.
#[derive(Debug, Default)]
struct Reads(std::sync::Mutex<Vec<PageId>>);

impl Observer for Reads {
    fn before(&self, call: Call<'_>) -> nandex_device::Result<()> {
        if let Call::Start { kind: OpKind::Read, page, .. } = call {
            self.0.lock().unwrap().push(page);
        }
        Ok(())
    }
}

#[test]
fn where_channels_are_known_the_reads_of_a_lookup_are_on_different_ones() {
    let geometry = Geometry {
        channels: Some(4),
        chunk_bytes: Some(8192),
        mapping: Some(Mapping::Lba),
        ..Geometry::opaque()
    };
    let channels = Channels::of(&geometry);
    let device: Arc<Watched<MemoryDevice, Reads>> =
        Arc::new(Watched::with(MemoryDevice::new(), Arc::default()));
    let volume = volume_on(Arc::clone(&device) as _, 1 << 20);
    let config = Config { tables: 4, slices: 9, ..Config::tiny() }.placed_on(&channels);
    let index = SliceLsh::create_with(&volume, "n", config, inline()).unwrap();
    insert_own(&index, 0..500);
    for document in 0..500 {
        device.observer().0.lock().unwrap().clear();
        index.candidates(&own_keys(document, 4)).unwrap();
        let pages = device.observer().0.lock().unwrap().clone();
        let of = |page: &PageId| channels.channel(*page, SequentialWrite::at(*page));
        let used: BTreeSet<u32> = pages.iter().map(of).collect();
        assert_eq!((pages.len(), used.len()), (4, 4), "document {document}: {pages:?}");
    }
    assert_eq!(index.stats().channels, 4);
    assert!(
        crate::any::OpenNeighbors::config(&index)
            .describe()
            .shape
            .contains("channels of its own, of 4")
    );
}

#[test]
fn ram_for_a_document_of_ten_tables_is_within_sixteen_bytes() {
    let asked = crate::NeighborsRequirements::new(60_000, 10);
    let config = Config::advised(&asked).unwrap();
    let volume = volume_on(Arc::new(MemoryDevice::new()), config.log_bytes_best());
    let options = OpenOptions { io_chunk_pages: Some(8), ..inline() };
    let index = SliceLsh::create_with(&volume, "n", config, options).unwrap();
    let documents: Vec<u64> = (0..60_000).collect();
    let rows: Vec<u64> = documents.iter().flat_map(|document| own_keys(*document, 10)).collect();
    index.insert_many(&documents, &rows).unwrap();
    let stats = index.stats();
    assert_eq!((stats.entries, stats.evicted, stats.dropped), (600_000, 0, 0));
    assert!(stats.buffered < 600_000 / 12, "{stats:?}");
    // The log's buffers do not grow with the documents.
    let own = stats.ram_bytes - volume.log().stats().ram_bytes;
    let per_document = own as f64 / 60_000.0;
    println!(
        "{per_document:.2} bytes of RAM per document, {:.2} with the log",
        stats.ram_bytes_per_document()
    );
    assert!(per_document <= 16.0, "{per_document}");
    for document in (0..60_000).step_by(997) {
        assert_eq!(index.candidates(&own_keys(document, 10)).unwrap(), [document]);
    }
}

#[test]
fn a_check_finds_an_index_sound_and_tells_what_is_wrong_with_a_damaged_one() {
    for (channels, chunk_pages) in [(1, 1), (4, 2)] {
        let device = Arc::new(MemoryDevice::new());
        let volume = volume_on(Arc::clone(&device) as _, 1 << 20);
        let config = Config { channels, chunk_pages, ..Config::tiny() };
        let index = SliceLsh::create_with(&volume, "n", config, inline()).unwrap();
        insert_own(&index, 0..300);
        index.flush().unwrap();
        insert_own(&index, 300..330);
        index.remove(301, &own_keys(301, 3)).unwrap();
        volume.log().sync().unwrap();
        volume.poison().set(&"killed");
        drop(index);
        drop(volume);
        let image = device.image();
        let checked = |image: Vec<u8>| {
            let device = Arc::new(MemoryDevice::from_image(image));
            check_volume(device, None, &mut |_| {}).unwrap()
        };
        let report = checked(image.clone());
        assert!(report.ok(), "{:?}", report.findings);
        let mut found = 0;
        for page in 0..image.len() / 4096 {
            let kind = u16::from_le_bytes([image[page * 4096 + 8], image[page * 4096 + 9]]);
            if [PageKind::Snapshot as u16, PageKind::Slice as u16].contains(&kind) {
                let mut image = image.clone();
                image[page * 4096 + 100] ^= 1;
                found += usize::from(!checked(image).ok());
            }
        }
        assert!(found > 8, "{found} damaged pages were found");
    }
}

#[test]
fn a_read_only_volume_answers_from_flash_and_log_and_takes_nothing() {
    let device = Arc::new(MemoryDevice::new());
    let volume = volume_on(Arc::clone(&device) as _, 1 << 20);
    let index = SliceLsh::create_with(&volume, "n", Config::tiny(), inline()).unwrap();
    insert_own(&index, 0..300);
    volume.log().sync().unwrap();
    volume.poison().set(&"killed");
    drop(index);
    drop(volume);
    let before = device.image();
    let options = VolumeOpenOptions { access: Access::ReadOnly, ..VolumeOpenOptions::default() };
    let volume = Volume::open(Arc::clone(&device) as _, options).unwrap();
    let index = SliceLsh::open(&volume, "n").unwrap();
    for document in 0..300 {
        assert_eq!(index.candidates(&own_keys(document, 3)).unwrap(), [document]);
    }
    assert!(index.insert(1, &[1, 2, 3]).is_err());
    drop((index, volume));
    assert!(device.image() == before, "it was written");
}
