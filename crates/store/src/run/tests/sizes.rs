//! The flash that runs take, and the operations of lookups, streams and writers.

use nandex_device::{Counted, Counts, PAGE_BYTES};

use super::*;

/// Returns the bits per fingerprint, and the number of lookups in a million that read a second page.
fn measure(keys: u64, rate: f64) -> (f64, f64) {
    let universe = Universe::for_rate(keys, rate).unwrap();
    let entries = spread(universe, keys, keys + (1.0 / rate) as u64);
    let device = MemoryDevice::new();
    let run = write(&device, shape_of(universe, &entries), &entries).unwrap();
    let image = device.image();
    let second = entries.iter().filter(|entry| {
        let start = run.page_of(entry.fingerprint).0 as usize * PAGE_BYTES;
        let body = &image[start + PAGE_HEADER_BYTES..start + PAGE_BYTES];
        entry.fingerprint >= RunPage::parse(body).unwrap().limit()
    });
    let bits = (run.place().extent.pages * PAGE_BYTES as u64 * 8) as f64;
    (bits / entries.len() as f64, second.count() as f64 * 1e6 / entries.len() as f64)
}

#[test]
fn at_the_usual_rate_a_fingerprint_takes_less_than_10_6_bits_and_a_lookup_one_page() {
    let (bits, second) = measure(1_000_000, 0.0039);
    assert!(bits < 10.6, "{bits} bits");
    assert!(second < 100.0, "{second} second pages in a million lookups");
}

#[test]
fn at_any_rate_a_lookup_reads_one_page_and_bits_are_near_what_they_must_be() {
    for rate in [0.1, 0.01, 0.001, 1e-6, 1e-9_f64] {
        let (bits, second) = measure(300_000, rate);
        // A few whole pages are more than the slack of so small a run.
        let least = 2.0 - rate.log2();
        assert!(bits < 1.11 * least + 0.2, "{bits} bits at {rate}, {least} at least");
        assert!(second < 250.0, "{second} second pages in a million lookups at {rate}");
    }
}

#[test]
fn an_empty_run_and_a_small_one_take_a_page_and_a_spare_one() {
    for entries in [0, 1, 1000] {
        let shape = RunShape::for_entries(universe(1 << 20), entries, 0);
        assert_eq!((shape.slot_pages, shape.spare_pages), (1, 1));
    }
}

/// Returns `count` consecutive entries from `start` on.
fn heap(start: u64, count: u64, each: i64) -> Vec<Entry> {
    (start..start + count).map(|fingerprint| Entry { fingerprint, count: each }).collect()
}

#[test]
fn as_many_spare_pages_as_others_hold_any_entries_wherever_they_are() {
    let universe = universe(100_000_000);
    for each in [1, -7, i64::MIN] {
        for count in [1, 20_000, 100_000] {
            for start in [0, 40_000_000, universe.size() - count] {
                let entries = heap(start, count, each);
                let bytes = entries.iter().map(|entry| count_bytes(entry.count)).sum();
                let shape = RunShape::for_any(universe, count, bytes);
                let device = MemoryDevice::new();
                let run = write(&device, shape, &entries).unwrap();
                assert_eq!(read(&device, &run).unwrap(), entries);
            }
        }
    }
}

#[test]
fn a_run_that_does_not_fit_says_so_and_fits_when_widened() {
    let (universe, device) = (universe(100_000_000), MemoryDevice::new());
    let entries = heap(universe.size() - 50_000, 50_000, 3);
    let mut shape = RunShape::for_entries(universe, 5000, 0);
    let error = write(&device, shape, &entries).unwrap_err();
    assert!(matches!(error, Error::RunFull { pages } if pages == shape.pages()), "{error}");
    while write(&device, shape, &entries).is_err() {
        shape = shape.widened();
        assert!(shape.pages() < 200);
    }
}

#[test]
fn what_is_not_used_is_cut_off_and_given_back() {
    let (universe, device) = (universe(1 << 30), MemoryDevice::new());
    let entries = spread(universe, 20_000, 1);
    let shape = RunShape { spare_pages: 50, ..shape_of(universe, &entries) };
    let mut run = write(&device, shape, &entries).unwrap();
    let whole = run.place().extent;
    let rest = run.trim().unwrap();
    assert_eq!(run.place().extent.end(), rest.start);
    assert_eq!(rest.end(), whole.end());
    assert!(rest.pages >= 49 && run.trim().is_none());
    assert_eq!(read(&device, &run).unwrap(), entries);
}

#[test]
fn a_lookup_reads_a_page_and_a_stream_or_a_writer_each_page_once_in_chunks() {
    let (universe, device) = (universe(1 << 26), Counted::new(MemoryDevice::new()));
    let entries = spread(universe, 30_000, 9);
    let before = device.snapshot();
    let run = write(&device, shape_of(universe, &entries), &entries).unwrap();
    let chunks = run.used_pages().div_ceil(CHUNKS.chunk_pages as u64);
    let pages = run.used_pages();
    let expected = Counts {
        writes: chunks,
        pages_written: pages,
        completions: chunks,
        grows: 1,
        ..Counts::default()
    };
    assert_eq!(device.snapshot() - before, expected, "nothing is synced: the checkpoint does that");
    let before = device.snapshot();
    assert_eq!(read(&device, &run).unwrap(), entries);
    let expected =
        Counts { reads: chunks, pages_read: pages, completions: chunks, ..Counts::default() };
    assert_eq!(device.snapshot() - before, expected);
    let before = device.snapshot();
    let reads: u64 = entries
        .iter()
        .map(|entry| lookup(&device, &run, entry.fingerprint).unwrap())
        .map(|(_, reads)| reads)
        .sum();
    let carried = reads - entries.len() as u64;
    assert!(carried < 20, "{carried} lookups of {} read a second page", entries.len());
    assert_eq!((device.snapshot() - before).pages_read, reads);
}

#[test]
fn a_writer_and_a_reader_hold_no_more_than_their_chunks() {
    let (universe, device) = (universe(1 << 26), MemoryDevice::new());
    let entries = heap(7, 300_000, 1);
    let shape = RunShape::for_any(universe, 300_000, 0);
    let place = place(&device, shape.pages());
    let poison = Arc::new(Poison::default());
    let mut writer = RunWriter::new(&device, poison, place, shape, CHUNKS).unwrap();
    let chunks = CHUNKS.chunk_pages * CHUNKS.chunks * PAGE_BYTES;
    for part in entries.chunks(10_000) {
        writer.push(part).unwrap();
        assert!(writer.ram_bytes() <= chunks + 8 * PAGE_ENTRIES_MAX * 16);
    }
    assert!(writer.bytes_written() > 0);
    let run = writer.finish().unwrap();
    let mut reader = RunReader::new(&device, &run, CHUNKS).unwrap();
    let mut batch = Vec::new();
    while reader.next_batch(&mut batch).unwrap() {
        assert!(reader.ram_bytes() <= chunks + 2 * CHUNKS.chunk_pages * PAGE_BYTES);
        assert!(batch.len() <= PAGE_ENTRIES_MAX);
        batch.clear();
    }
}
