//! Indexes of neighbours that version 1 wrote.

use nandex::device::MemoryDevice;
use nandex::raw::store::hash::HashKind;
use nandex::{Neighbors, OpenOptions, SliceLsh, slicelsh};

use super::{inline, left_by, open};

/// Documents of each index.
const DOCUMENTS: u64 = 300;

/// Returns an index of each sort: evicting and striped, rejecting and on its own channels.
fn configs() -> [(&'static str, slicelsh::Config); 2] {
    let striped = slicelsh::Config { stagger: true, ..slicelsh::Config::tiny() };
    let placed = slicelsh::Config {
        policy: nandex::WhenFull::Refuse,
        channels: 7,
        chunk_pages: 2,
        slices: 5,
        family: b"some family".to_vec(),
        ..slicelsh::Config::tiny()
    };
    [("striped", striped), ("placed", placed)]
}

/// Three documents share a bucket of the first table, and two one of the second.
fn keys(document: u64) -> [u64; 3] {
    [document / 3, 1 << 40 | (document / 2), 1 << 50 | document]
}

fn fill(index: &SliceLsh, documents: std::ops::Range<u64>) {
    for document in documents {
        index.insert(document, &keys(document)).unwrap();
        if document % 7 == 6 {
            index.remove(document, &keys(document)).unwrap();
        }
    }
}

fn expected(document: u64) -> Vec<u64> {
    let shares = |other: &u64| other / 3 == document / 3 || other / 2 == document / 2;
    let all = document.saturating_sub(3)..(document + 4).min(DOCUMENTS);
    all.filter(shares).filter(|other| other % 7 != 6).collect()
}

/// Fixtures that were closed, and that were left by a crash with slicetables that only moves in the log name.
#[test]
fn indexes_of_neighbours_that_version_1_wrote_open_and_hold_everything() {
    for fixture in ["v1-slicelsh-closed", "v1-slicelsh-crash"] {
        let volume = open(fixture);
        for (name, config) in configs() {
            let index = SliceLsh::open(&volume, name).unwrap();
            assert_eq!(*index.config(), config, "{fixture}");
            for document in 0..DOCUMENTS {
                let found = index.candidates(&keys(document)).unwrap();
                assert_eq!(found, expected(document), "{fixture}, {name}, {document}");
            }
        }
    }
}

/// Without their filters these lookups would read a page of each table.
#[test]
fn filters_that_version_1_saved_are_whole() {
    let volume = open("v1-slicelsh-filter-closed");
    for (name, _) in configs() {
        let index = SliceLsh::open_with(&volume, name, options(1 << 20)).unwrap();
        let absent: Vec<_> = (10_000..10_100).flat_map(keys).collect();
        assert!(index.candidates_many(&absent).unwrap().iter().all(Vec::is_empty));
        assert!(index.stats().lookup_reads < 10, "{:?}", index.stats());
        for document in 0..DOCUMENTS {
            let found = index.candidates(&keys(document)).unwrap();
            assert_eq!(found, expected(document), "{name}, {document}");
        }
        assert!(index.stats().lookup_reads > DOCUMENTS);
    }
}

fn options(filter_bytes_max: u64) -> OpenOptions {
    OpenOptions { flush_threads: Some(0), filter_bytes: filter_bytes_max, ..Default::default() }
}

pub fn write(is_closed: bool, filter_bytes_max: u64) -> MemoryDevice {
    let (device, volume) = inline(HashKind::default());
    let options = || options(filter_bytes_max);
    let create = |(name, config)| SliceLsh::create_with(&volume, name, config, options()).unwrap();
    let indexes: Vec<_> = configs().into_iter().map(create).collect();
    indexes.iter().for_each(|index| fill(index, 0..100));
    indexes.iter().for_each(|index| index.flush().unwrap());
    indexes.iter().for_each(|index| fill(index, 100..DOCUMENTS));
    left_by((device, volume), indexes, is_closed.then_some(SliceLsh::close))
}
