//! Sparse files: a hole costs no read, and the result is that of the zeros.

use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

use nandex_dedup::{Chunker, Chunking, Hash, Options, Summary};

use crate::common::{Watched, noise, run, timeless};

/// The places of the data of a file, and its length.
type Shape = (&'static [(u64, usize)], u64);

const PAGE: usize = 4096;

/// Holes before, between and after data: shorter and longer than chunks, and right at cuts.
const SHAPES: [Shape; 7] = [
    (&[], 40 << 20),
    (&[], 300),
    (&[(0, 3 * PAGE)], 9 << 20),
    (&[(20 << 20, 100_000)], 31 << 20),
    (&[(4096, PAGE), (12_288, PAGE), (20_480, PAGE)], 5 << 20),
    (&[(1 << 20, 65_536), (3 << 20, 1_000_000), (7 << 20, 1)], (7 << 20) + 1),
    (&[(0, 300_000), (8 << 20, 300_000), (16 << 20, 300_000)], (24 << 20) + 17),
];

fn write(path: &Path, (data, bytes): Shape, is_sparse: bool) {
    let file = File::create(path).unwrap();
    file.set_len(bytes).unwrap();
    if !is_sparse {
        file.write_all_at(&vec![0; usize::try_from(bytes).unwrap()], 0).unwrap();
    }
    for (at, length) in data {
        file.write_all_at(&noise(*length, *at), *at).unwrap();
    }
    file.sync_all().unwrap();
}

fn run_on(path: &Path, chunking: Chunking) -> Summary {
    let options = Options { chunking, ..Options::new([path]) };
    timeless(run(&Watched::new(Hash::default()), &options))
}

#[test]
fn a_sparse_file_gives_what_its_zeros_give() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    for shape in SHAPES {
        for chunker in Chunker::ALL {
            for average in [256, 8192, 1 << 20] {
                let chunking = Chunking::new(chunker, average).unwrap();
                let [sparse, solid] = [true, false].map(|is_sparse| {
                    write(&path, shape, is_sparse);
                    // Zeros of a hole are looked up once, and read zeros once in each batch.
                    Summary { reads_per_lookup: 0.0, ..run_on(&path, chunking) }
                });
                assert_eq!(sparse, solid, "{shape:?}, {chunking:?}");
                assert_eq!((sparse.total_bytes, sparse.skipped_count), (shape.1, 0));
            }
        }
    }
}

#[test]
fn holes_of_a_petabyte_cost_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    let file = File::create(&path).unwrap();
    // The file is as large as the file system allows: 16 TiB on ext4, less on few.
    let bytes =
        (36..=50).rev().map(|power| 1_u64 << power).find(|it| file.set_len(*it - 4096).is_ok());
    let bytes = bytes.expect("files may have 64 GiB") - 4096;
    file.write_all_at(&noise(100_000, 1), bytes / 2).unwrap();
    assert!(file.metadata().unwrap().blocks() < 1000, "the file system has no holes");
    let table = Watched::new(Hash::default());
    let summary = run(&table, &Options::new([&path]));
    assert_eq!((summary.total_bytes, summary.skipped_count), (bytes, 0));
    assert!(summary.duplicate_bytes > bytes - (1 << 20), "{summary:?}");
    assert!(summary.total_chunks > bytes / (64 << 10), "{summary:?}");
    assert!(summary.unique_chunks < 100, "{summary:?}");
}
