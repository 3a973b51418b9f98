//! Runs on random trees give the same result as the simplest correct program: every file read whole, its chunks in a
//! set.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::common::{noise, run};
use nandex::raw::oracle::MapTable;
use nandex_dedup::{Chunker, Chunking, Hash, Largest, Options, VALUE_BYTES};
use proptest::prelude::*;

/// A file: its directory, its name, and its blocks of noise, as seed and bytes.
type RandomFile = (u8, u8, Vec<(u64, usize)>);

fn any_files() -> impl Strategy<Value = Vec<RandomFile>> {
    let block = (0_u64..6, prop::sample::select(vec![1_usize, 700, 3000, 9000]));
    let file = (0_u8..6, 0_u8..8, prop::collection::vec(block, 0..6));
    prop::collection::vec(file, 0..16)
}

fn lay_out(root: &Path, files: &[RandomFile]) {
    let directories = ["", "a", "a/b", "a.b", "b", "b/a/c"];
    for (directory, name, blocks) in files {
        let directory = root.join(directories[usize::from(*directory)]);
        fs::create_dir_all(&directory).unwrap();
        let content: Vec<u8> = blocks.iter().flat_map(|&(seed, len)| noise(len, seed)).collect();
        fs::write(directory.join(format!("f{name}")), content).unwrap();
    }
}

#[derive(Debug, Default, PartialEq)]
struct Naive {
    files: u64,
    chunks: u64,
    unique_chunks: u64,
    by_path: BTreeMap<PathBuf, (u64, u64)>,
    by_directory: BTreeMap<PathBuf, (u64, u64)>,
}

impl Naive {
    fn walk(&mut self, at: &Path, chunking: &Chunking, seen: &mut HashSet<Vec<u8>>) {
        let mut paths: Vec<PathBuf> =
            fs::read_dir(at).unwrap().map(|entry| entry.unwrap().path()).collect();
        paths.sort_by(|a, b| a.file_name().cmp(&b.file_name()));
        for path in paths {
            if path.is_dir() {
                self.walk(&path, chunking, seen);
            } else {
                self.file(&path, chunking, seen);
            }
        }
    }

    fn file(&mut self, path: &Path, chunking: &Chunking, seen: &mut HashSet<Vec<u8>>) {
        let content = fs::read(path).unwrap();
        self.files += 1;
        let mut duplicate = 0;
        for chunk in chunking.split(&content) {
            self.chunks += 1;
            if seen.insert(chunk.to_vec()) {
                self.unique_chunks += 1;
            } else {
                duplicate += chunk.len() as u64;
            }
        }
        let sizes = (content.len() as u64, duplicate);
        self.by_path.insert(path.to_owned(), sizes);
        let parent = path.parent().expect("a file is in a directory");
        let sum = self.by_directory.entry(parent.to_owned()).or_default();
        *sum = (sum.0 + sizes.0, sum.1 + sizes.1);
    }
}

/// Returns the twenty with the most duplicate bytes.
fn largest(sizes: &BTreeMap<PathBuf, (u64, u64)>) -> Vec<Largest> {
    let with_any = sizes.iter().filter(|(_, sizes)| sizes.1 > 0);
    let entry = |(path, sizes): (&PathBuf, &(u64, u64))| Largest {
        path: path.display().to_string(),
        bytes: sizes.0,
        duplicate_bytes: sizes.1,
    };
    let mut list: Vec<Largest> = with_any.map(entry).collect();
    list.sort_by_key(|entry| (std::cmp::Reverse(entry.duplicate_bytes), entry.path.clone()));
    list.truncate(20);
    list
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn a_run_adds_up_to_what_the_naive_program_adds_up_to(
        files in any_files(),
        chunker in prop::sample::select(&Chunker::ALL[..]),
        hash in prop::sample::select(&Hash::ALL[..]),
        workers in 1_usize..4,
    ) {
        let tree = tempfile::tempdir().unwrap();
        lay_out(tree.path(), &files);
        let chunking = Chunking::new(chunker, 256).unwrap();
        let mut naive = Naive::default();
        naive.walk(tree.path(), &chunking, &mut HashSet::new());

        let options = Options { chunking, hash, workers, ..Options::new([tree.path()]) };
        let table = MapTable::new(hash.key_bytes(), VALUE_BYTES);
        let summary = run(&table, &options);

        let bytes: (u64, u64) =
            naive.by_path.values().fold((0, 0), |sum, sizes| (sum.0 + sizes.0, sum.1 + sizes.1));
        prop_assert_eq!((summary.total_bytes, summary.duplicate_bytes), bytes);
        prop_assert_eq!(summary.files, naive.files);
        prop_assert_eq!(summary.total_chunks, naive.chunks);
        prop_assert_eq!(summary.unique_chunks, naive.unique_chunks);
        prop_assert_eq!(summary.index_entries, naive.unique_chunks);
        prop_assert_eq!(&summary.largest_duplicate_files, &largest(&naive.by_path));
        prop_assert_eq!(&summary.largest_duplicate_directories, &largest(&naive.by_directory));
        prop_assert_eq!(summary.skipped_count, 0);
        prop_assert!(!summary.interrupted);

        let again = run(&table, &options);
        prop_assert_eq!(again.duplicate_bytes, bytes.0, "all of it is known now");
        prop_assert_eq!(again.unique_chunks, 0);
    }
}
