//! Many threads at once: a thread that queries and inserts sees the others, or is seen; and present documents
//! stay present during merges, checkpoints and openings of buffers.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use nandex::device::MemoryDevice;
use nandex::{AnyNeighbors, Volume, VolumeOptions};
use nandex_baseline::registry;

const THREADS: u64 = 4;

/// The number of documents of each thread: all of them together are within the capacity of a configuration.
const DOCUMENTS: u64 = 50;

/// The number of documents that are present all the time.
const PINNED: u64 = 30;

fn row_of(bucket: u64, tables: u32) -> Vec<u64> {
    (0..u64::from(tables)).map(|table| bucket << 8 | table).collect()
}

/// Inserts documents in each thread, the n-th of all threads into the same buckets, and removes pinned ones
/// of its own.
fn work(index: &AnyNeighbors, thread: u64, seen: &Mutex<HashSet<(u64, u64)>>) {
    let tables = index.tables();
    for number in 0..DOCUMENTS {
        let document = number * THREADS + thread;
        let found =
            index.candidates_then_insert_many(&[document], &row_of(number, tables)).unwrap();
        let mut seen = seen.lock().unwrap();
        seen.extend(found[0].iter().map(|other| (document, *other)));
    }
}

/// Checks that each pinned document is its row's only candidate in a stream, too.
fn stream_pinned(index: &AnyNeighbors, rows: &[u64]) {
    let (mut stream, mut ended) = (index.stream().unwrap(), 0);
    for (number, row) in (0..).zip(rows.chunks(index.tables() as usize)) {
        stream.push(row, number).unwrap();
    }
    while let Some((number, candidates)) = stream.pull().unwrap() {
        assert_eq!(candidates, [1 << 30 | number]);
        ended += 1;
    }
    assert_eq!(ended, PINNED);
}

#[test]
fn of_threads_with_documents_of_one_bucket_one_sees_the_other() {
    for (_, row) in registry::neighbors() {
        for variant in 0..row.testing.variants {
            let made = (row.testing.config)(variant, 1);
            if u64::from(made.bucket_ids_max) < THREADS {
                continue;
            }
            let options = VolumeOptions { log_bytes: 128 << 10, ..VolumeOptions::tiny() };
            let volume = Volume::create(Arc::new(MemoryDevice::new()), options).unwrap();
            let index =
                AnyNeighbors::create_with(&volume, "n", &made.config, &made.options).unwrap();
            let pinned = |number: u64| row_of(1 << 20 | number, made.tables);
            for number in 0..PINNED {
                index.insert(1 << 30 | number, &pinned(number)).unwrap();
            }
            let (seen, is_over) = (Mutex::default(), AtomicBool::new(false));
            std::thread::scope(|scope| {
                let (index, seen, is_over) = (&index, &seen, &is_over);
                scope.spawn(move || {
                    while !is_over.load(Relaxed) {
                        index.flush().unwrap();
                    }
                });
                scope.spawn(move || {
                    while !is_over.load(Relaxed) {
                        let rows: Vec<u64> = (0..PINNED).flat_map(pinned).collect();
                        let found = index.candidates_many(&rows).unwrap();
                        for (number, candidates) in (0..PINNED).zip(found) {
                            assert_eq!(candidates, [1 << 30 | number]);
                        }
                        stream_pinned(index, &rows);
                    }
                });
                let threads: Vec<_> = (0..THREADS)
                    .map(|thread| scope.spawn(move || work(index, thread, seen)))
                    .collect();
                let ended: Vec<_> = threads.into_iter().map(|thread| thread.join()).collect();
                is_over.store(true, Relaxed);
                ended.into_iter().for_each(|ended| ended.unwrap());
            });
            let seen: HashSet<(u64, u64)> = seen.into_inner().unwrap();
            for number in 0..DOCUMENTS {
                let all: Vec<u64> = (0..THREADS).map(|thread| number * THREADS + thread).collect();
                for one in &all {
                    for other in all.iter().filter(|other| *other > one) {
                        let saw = seen.contains(&(*one, *other)) || seen.contains(&(*other, *one));
                        assert!(saw, "{}: {one} and {other} did not meet", made.label);
                    }
                }
                let found = index.candidates(&row_of(number, made.tables)).unwrap();
                assert_eq!(found, all, "{}", made.label);
            }
        }
    }
}
