//! The pipeline: the same result whatever the number of workers, bounded batches, and clean stops.

use std::fs;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::common::{Watched, noise, run, timeless};
use nandex::Table;
use nandex::raw::oracle::MapTable;
use nandex_dedup::{ChunkValue, Chunker, Chunking, Done, Error, Hash, Options, VALUE_BYTES, dedup};
use tempfile::TempDir;

/// Creates many small files and some large ones, some of them equal: more jobs and pieces than are in progress at a
/// time.
fn large_tree() -> TempDir {
    let tree = tempfile::tempdir().unwrap();
    for number in 0..500_u64 {
        let directory = tree.path().join(format!("d{:02}", number % 17));
        fs::create_dir_all(&directory).unwrap();
        fs::write(directory.join(format!("{number:04}")), noise(600, number % 300)).unwrap();
    }
    let large = noise(6 << 20, 77);
    for name in ["d03/large", "d09/large", "z"] {
        fs::write(tree.path().join(name), &large).unwrap();
    }
    tree
}

fn options(tree: &TempDir, workers: usize) -> Options {
    let chunking = Chunking::new(Chunker::Rabin, 1024).unwrap();
    Options { chunking, workers, ..Options::new([tree.path()]) }
}

#[test]
fn totals_and_the_order_of_inserts_are_the_same_whatever_the_workers() {
    let tree = large_tree();
    let one = Watched::new(Hash::Blake3);
    let expected = timeless(run(&one, &options(&tree, 1)));
    assert_eq!((expected.files, expected.total_bytes), (503, 500 * 600 + 3 * (6 << 20)));
    for workers in [2, 5] {
        let many = Watched::new(Hash::Blake3);
        assert_eq!(timeless(run(&many, &options(&tree, workers))), expected);
        assert!(*many.inserted.lock().unwrap() == *one.inserted.lock().unwrap());
        let batches = |table: &Watched| table.lookup_batches.load(Ordering::Relaxed);
        assert_eq!(batches(&many), batches(&one));
    }
}

#[test]
fn lookups_come_in_full_batches_and_each_new_chunk_is_inserted_once() {
    let tree = large_tree();
    let table = Watched::new(Hash::Blake3);
    let summary = run(&table, &options(&tree, 2));
    let batches = table.lookup_batches.load(Ordering::Relaxed);
    assert!(table.largest_batch.load(Ordering::Relaxed) <= 4096);
    assert!(batches <= summary.total_chunks.div_ceil(3072) + 1, "{batches} batches");
    assert!(table.lookups.load(Ordering::Relaxed) <= summary.total_chunks);
    let mut inserted = table.inserted.lock().unwrap().clone();
    assert_eq!(inserted.len() as u64, summary.unique_chunks);
    inserted.sort_unstable();
    inserted.dedup();
    assert_eq!(inserted.len() as u64, summary.unique_chunks);
    assert_eq!(summary.index_entries, summary.unique_chunks);
    assert_eq!(summary.index_bytes, 40 * summary.unique_chunks);
    assert_eq!((summary.ram_bytes_per_entry, summary.reads_per_lookup), (3.0, 2.0));
    assert_eq!(table.syncs.load(Ordering::Relaxed), 1);
}

#[test]
fn a_chunk_repeated_within_a_batch_is_looked_up_once() {
    let tree = tempfile::tempdir().unwrap();
    fs::write(tree.path().join("f"), vec![9; 256 * 1000]).unwrap();
    let table = Watched::new(Hash::Sha1);
    let chunking = Chunking::new(Chunker::Fixed, 256).unwrap();
    let options = Options { chunking, hash: Hash::Sha1, ..Options::new([tree.path()]) };
    let summary = run(&table, &options);
    assert_eq!(table.lookups.load(Ordering::Relaxed), 1);
    assert_eq!((summary.total_chunks, summary.unique_chunks), (1000, 1));
    assert_eq!(summary.duplicate_bytes, 256 * 999);
    assert_eq!(summary.dedup_ratio, Some(1000.0));
}

#[test]
fn the_table_keeps_each_chunks_length_and_first_file() {
    let tree = tempfile::tempdir().unwrap();
    for (name, content) in [("a", "one"), ("b", ""), ("c", "other"), ("d", "one")] {
        fs::write(tree.path().join(name), content).unwrap();
    }
    let table = MapTable::new(32, VALUE_BYTES);
    run(&table, &Options::new([tree.path()]));
    let value = |content: &[u8]| {
        let key = Hash::Blake3.fingerprint(content);
        ChunkValue::decode(&table.get(key.as_bytes()).unwrap().unwrap()).unwrap()
    };
    assert_eq!(value(b"one"), ChunkValue { length: 3, file: 0 });
    assert_eq!(value(b"other"), ChunkValue { length: 5, file: 2 });
}

#[test]
fn cancelling_stops_between_batches_and_keeps_what_is_done() {
    let tree = large_tree();
    let table = Watched::new(Hash::Blake3);
    let cancel = AtomicBool::new(false);
    let last = Mutex::new(Done::default());
    let progress = |done: Done| {
        *last.lock().unwrap() = done;
        cancel.store(true, Ordering::Relaxed);
    };
    let summary = dedup(&table, &options(&tree, 2), &progress, &cancel).unwrap();
    assert!(summary.interrupted);
    assert_eq!(table.lookup_batches.load(Ordering::Relaxed), 1);
    assert_eq!(table.syncs.load(Ordering::Relaxed), 1);
    assert!(summary.total_bytes > 0);
    let done = *last.lock().unwrap();
    assert_eq!(
        (summary.total_bytes, summary.duplicate_bytes, summary.files),
        (done.bytes, done.duplicate_bytes, done.files)
    );
    assert_eq!(summary.index_entries, summary.unique_chunks);

    let resumed = run(&table, &options(&tree, 2));
    assert!(!resumed.interrupted);
    let fresh = run(&Watched::new(Hash::Blake3), &options(&tree, 2));
    assert_eq!(resumed.index_entries, fresh.index_entries);
    assert_eq!(resumed.unique_chunks + summary.unique_chunks, fresh.unique_chunks);
}

#[test]
fn a_run_cancelled_before_it_starts_does_nothing() {
    let tree = large_tree();
    let table = Watched::new(Hash::Blake3);
    let summary = dedup(&table, &options(&tree, 2), &(), &AtomicBool::new(true)).unwrap();
    assert!(summary.interrupted);
    assert_eq!((summary.total_bytes, summary.files, summary.index_entries), (0, 0, 0));
    assert_eq!(table.lookup_batches.load(Ordering::Relaxed), 0);
}

#[test]
fn progress_never_falls_and_ends_at_the_totals() {
    let tree = large_tree();
    let seen = Mutex::new(vec![Done::default()]);
    let progress = |done: Done| seen.lock().unwrap().push(done);
    let table = Watched::new(Hash::Blake3);
    let cancel = AtomicBool::new(false);
    let summary = dedup(&table, &options(&tree, 2), &progress, &cancel).unwrap();
    let seen = seen.lock().unwrap();
    assert!(seen.len() > 3);
    assert!(
        seen.windows(2).all(|two| two[0].bytes <= two[1].bytes && two[0].files <= two[1].files)
    );
    let last = seen.last().unwrap();
    assert_eq!((last.bytes, last.files), (summary.total_bytes, summary.files));
}

#[test]
fn a_failing_table_ends_the_run_with_its_error() {
    let tree = large_tree();
    let table = Watched::with_space(Hash::Blake3, 3000);
    let result = dedup(&table, &options(&tree, 3), &(), &AtomicBool::new(false));
    assert!(matches!(result, Err(Error::Index(nandex::Error::Full { .. }))));
}

#[test]
fn a_table_of_other_widths_is_refused_with_the_widths_that_would_do() {
    let options = Options::new([std::env::temp_dir()]);
    for (key_bytes, value_bytes, what) in [(20, 8, "key"), (32, 16, "value")] {
        let table = MapTable::new(key_bytes, value_bytes);
        let error = dedup(&table, &options, &(), &AtomicBool::new(false)).unwrap_err();
        assert!(matches!(error, Error::Width { what: found, .. } if found == what));
        let words = "keys of 32 bytes and values of 8 bytes";
        assert!(error.to_string().contains(words), "{error}");
    }
}

#[test]
fn an_entry_of_another_length_is_not_taken_for_a_duplicate() {
    let tree = tempfile::tempdir().unwrap();
    fs::write(tree.path().join("f"), "content").unwrap();
    let table = MapTable::new(32, VALUE_BYTES);
    let value = ChunkValue { length: 8, file: 0 };
    table.insert(Hash::Blake3.fingerprint(b"content").as_bytes(), &value.encode()).unwrap();
    let options = Options::new([tree.path()]);
    let error = dedup(&table, &options, &(), &AtomicBool::new(false)).unwrap_err();
    assert!(matches!(error, Error::Foreign { expected: 7, found: 8, .. }), "{error}");
}
