//! The claimed costs, counted on the device.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use nandex::device::MemoryDevice;
use nandex::raw::device::{Call, Counted, Ended, Error, Observer, OpKind, PAGE_BYTES, Watched};
use nandex::raw::store::hash::HashKind;
use nandex::{AnyTable, Durability, LargeTable, WhenFull};
use nandex_trial::Contract;

use super::support::{Setup, key, value};

/// The bytes of a record before its key and value, and of the value log before the record.
const HEADERS: usize = 8 + 20 + 8;

/// The bytes of records on a page.
const PAYLOAD: usize = PAGE_BYTES - 34;

/// Returns the pages that the table of references has read for lookups.
fn table_reads(table: &LargeTable<AnyTable>) -> u64 {
    let stats = table.stats().table;
    stats.hit_reads + stats.miss_reads
}

#[test]
fn a_lookup_reads_the_tables_page_and_the_pages_that_the_record_touches() {
    let setup = Setup::new(Durability::Never, WhenFull::Refuse).roomy();
    let device = Arc::new(Counted::new(MemoryDevice::new()));
    let table = setup.create_on(device.clone()).unwrap();
    let sizes = |number: u64| (number * 997 % 12_000) as usize;
    let mut at = 0;
    let mut pages = Vec::new();
    for number in 1..1500 {
        table.put(&key(number), &value(number, sizes(number))).unwrap();
        let bytes = HEADERS + key(number).len() + sizes(number);
        // The I/O chunks determine where in a page it begins; it touches at most one more page than it fills.
        pages.push((bytes.div_ceil(PAYLOAD) as u64, bytes.div_ceil(PAYLOAD) as u64 + 1));
        at += bytes;
    }
    assert!(at > 100 * PAGE_BYTES);
    table.close().unwrap();
    let table = setup.open_on(device.clone()).unwrap();
    table.table().warm_up().unwrap();
    let (mut on_flash, before_all) = (0, table.stats());
    for number in 1..1500 {
        let before = device.snapshot();
        let reads_before = table_reads(&table);
        assert!(table.get(&key(number)).unwrap().is_some());
        let after = device.snapshot();
        let of_table = table_reads(&table) - reads_before;
        let read = after.pages_read - before.pages_read - of_table;
        let (least, most) = pages[number as usize - 1];
        assert!((least..=most).contains(&read), "{number}: {read} pages, {least} to {most}");
        assert_eq!(after.reads - before.reads - of_table, 1, "one operation for the record");
        on_flash += of_table;
    }
    let stats = table.stats();
    assert!(on_flash > 500, "some references are on flash, at one read each: {on_flash}");
    assert_eq!(stats.values.reads - before_all.values.reads, 1499);
}

#[test]
fn a_value_is_written_once() {
    let setup = Setup::new(Durability::Never, WhenFull::Refuse).roomy();
    let table = setup.create_on(Arc::new(MemoryDevice::new())).unwrap();
    for number in 1..1000 {
        table.put(&key(number), &value(number, 1000)).unwrap();
    }
    table.sync().unwrap();
    let stats = table.stats();
    // An I/O chunk of 8 pages lacks half a record on average, and a page has headers of 34 bytes.
    assert!((1.0..1.04).contains(&stats.written_per_byte()), "{}", stats.written_per_byte());
    assert_eq!(stats.values.copied_bytes, 0);
    let records: usize = (1..1000).map(|number| HEADERS + key(number).len() + 1000).sum();
    assert_eq!(stats.values.appended_bytes, records as u64);
    assert_eq!(stats.values.live_bytes, records as u64);
}

#[test]
fn a_put_that_is_durable_at_once_writes_its_pages_and_syncs_twice() {
    let setup = Setup::new(Durability::Always, WhenFull::Refuse).roomy();
    let device = Arc::new(Counted::new(MemoryDevice::new()));
    let table = setup.create_on(device.clone()).unwrap();
    table.put(b"first", b"").unwrap();
    for number in 1..6 {
        let before = device.snapshot();
        table.put(&key(number), &value(number, 5000)).unwrap();
        let after = device.snapshot();
        assert_eq!(after.syncs - before.syncs, 2, "the value's, then its reference's");
        // Two pages of the record, one of the log.
        assert_eq!(after.pages_written - before.pages_written, 3);
        assert_eq!(after.pages_read, before.pages_read, "a new key costs no read");
    }
    let before = device.snapshot();
    let pairs: Vec<_> = (10..14).map(|number| (key(number), value(number, 100))).collect();
    let borrowed: Vec<_> = pairs.iter().map(|(key, value)| (&key[..], &value[..])).collect();
    table.put_many(&borrowed).unwrap();
    let after = device.snapshot();
    assert_eq!(after.syncs - before.syncs, 2, "a batch shares them");
    assert_eq!(after.pages_written - before.pages_written, 2);
}

/// A watcher that counts the reads in flight.
#[derive(Debug, Default)]
struct InFlight {
    now: AtomicU64,
    most: AtomicU64,
    reads: AtomicU64,
}

impl Observer for InFlight {
    fn after(&self, call: Call<'_>, result: Result<(), &Error>) {
        if let (Call::Start { kind: OpKind::Read, .. }, Ok(())) = (call, result) {
            self.reads.fetch_add(1, Relaxed);
            self.most.fetch_max(self.now.fetch_add(1, Relaxed) + 1, Relaxed);
        }
    }

    fn ended(&self, ended: Ended<'_>) {
        if ended.kind == OpKind::Read {
            self.now.fetch_sub(1, Relaxed);
        }
    }
}

/// Puts batches whose keys may share a fingerprint. A batch looked up the old records of its keys one by one:
/// 6 thousand a second, while `get_many` read 38 thousand.
#[test]
fn the_lookups_of_a_batch_that_is_put_overlap() {
    let hash = HashKind::Identity;
    let setup = Setup { hash, ..Setup::new(Durability::Never, WhenFull::Refuse).roomy() };
    let watched = Arc::new(Watched::with(MemoryDevice::new(), Arc::new(InFlight::default())));
    let table = setup.create_on(watched.clone()).unwrap();
    let pairs = |tag: u64| (1..800).map(move |number| (key(number), value(number ^ tag, 100)));
    let put = |tag| {
        let pairs: Vec<_> = pairs(tag).collect();
        let borrowed: Vec<_> = pairs.iter().map(|(key, value)| (&key[..], &value[..])).collect();
        // Fewer than the number that shares reads.
        borrowed.chunks(200).for_each(|pairs| table.put_many(pairs).unwrap());
    };
    put(0);
    table.flush().unwrap();
    let in_flight = watched.observer();
    let before = in_flight.reads.swap(0, Relaxed);
    in_flight.most.store(0, Relaxed);
    put(1 << 40);
    let (most, reads) = (in_flight.most.load(Relaxed), in_flight.reads.load(Relaxed));
    assert!(most >= 16, "{most} reads in flight at most, {before} before");
    assert!(
        (799..=2 * 799 + 40).contains(&reads),
        "one of the table and one of its record: {reads}"
    );
    for (key, value) in pairs(1 << 40) {
        assert_eq!(table.get(&key).unwrap().as_deref(), Some(&value[..]));
    }
}

#[test]
fn ram_is_bounded_by_an_io_chunk_and_a_record() {
    let setup = Setup::new(Durability::Never, WhenFull::Refuse).roomy();
    let table = setup.create_on(Arc::new(MemoryDevice::new())).unwrap();
    let empty = table.stats().values.ram_bytes;
    let mut most = 0;
    for number in 1..600 {
        table.put(&key(number), &value(number, 2000)).unwrap();
        most = most.max(table.stats().values.ram_bytes);
    }
    // A vector that grows by doubling takes up to twice the size of its content.
    let chunk = 8 * PAGE_BYTES as u64;
    assert!(most - empty <= 2 * (chunk + 3000), "{} bytes", most - empty);
}
