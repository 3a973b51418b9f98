//! The content that trees share, compared with sets that are computed in the simplest way.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use crate::common::{noise, run};
use nandex::raw::oracle::MapTable;
use nandex_dedup::{Chunker, Chunking, Error, Hash, Options, Summary, VALUE_BYTES, dedup};
use tempfile::TempDir;

fn write(folder: &TempDir, path: &str, content: &[u8]) {
    let path = folder.path().join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

/// Creates three trees: much of the first is in the second, twice; the third has a little of both.
fn trees() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let (large, small) = (noise(400_000, 1), noise(90_000, 2));
    write(&folder, "a/large", &large);
    write(&folder, "a/small", &small);
    write(&folder, "b/half", &large[..200_000]);
    write(&folder, "b/again/half", &large[..200_000]);
    write(&folder, "b/own", &noise(50_000, 3));
    write(&folder, "c/mixed", &[&small[..], &noise(50_000, 3)[..], &noise(10_000, 4)[..]].concat());
    folder
}

fn options(folder: &TempDir, names: &[&str]) -> Options {
    let paths = names.iter().map(|name| folder.path().join(name));
    let chunking = Chunking::new(Chunker::FastCdc, 1024).unwrap();
    Options { chunking, compare: true, ..Options::new(paths) }
}

fn compared(options: &Options) -> Summary {
    run(&MapTable::new(options.hash.key_bytes(), options.value_bytes()), options)
}

/// Collects the chunks of all files below a path, each with its bytes.
fn chunks(path: &Path, chunking: Chunking, into: &mut Vec<(Vec<u8>, u64)>) {
    if path.is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            chunks(&entry.unwrap().path(), chunking, into);
        }
        return;
    }
    let content = fs::read(path).unwrap();
    into.extend(
        chunking
            .split(&content)
            .map(|chunk| (Hash::Blake3.fingerprint(chunk).as_bytes().to_vec(), chunk.len() as u64)),
    );
}

#[test]
fn the_matrix_is_that_of_sets_whatever_the_order_of_trees() {
    let folder = trees();
    for names in [["a", "b", "c"], ["c", "a", "b"], ["b", "c", "a"]] {
        let options = options(&folder, &names);
        let comparison = compared(&options).comparison.unwrap();
        let of_each: Vec<Vec<_>> = names
            .iter()
            .map(|name| {
                let mut of_tree = Vec::new();
                chunks(&folder.path().join(name), options.chunking, &mut of_tree);
                of_tree
            })
            .collect();
        for (one, tree) in comparison.trees.iter().enumerate() {
            assert!(tree.path.ends_with(names[one]));
            let bytes: u64 = of_each[one].iter().map(|(_, bytes)| bytes).sum();
            assert_eq!(tree.bytes, bytes);
            for (other, of_other) in of_each.iter().enumerate() {
                let there: HashMap<_, _> = of_other.iter().cloned().collect();
                let both = of_each[one].iter().filter(|(name, _)| there.contains_key(name));
                let shared: u64 = both.map(|(_, bytes)| bytes).sum();
                assert_eq!(tree.shared_bytes[other], shared, "{names:?} {one} {other}");
                let fraction = shared as f64 / bytes as f64;
                assert!((tree.shared_fraction[other] - fraction).abs() < 1e-12);
            }
        }
    }
}

#[test]
fn a_file_is_a_copy_of_the_earlier_one_that_had_most_of_it() {
    let folder = trees();
    let summary = compared(&options(&folder, &["a", "b", "c"]));
    let copies = summary.comparison.unwrap().copies;
    let found: Vec<_> = copies
        .iter()
        .map(|it| {
            let name = |path: &str| {
                Path::new(path).strip_prefix(folder.path()).unwrap().display().to_string()
            };
            (name(&it.path), name(&it.copy_of))
        })
        .collect();
    let pair = |one: &str, other: &str| (one.to_owned(), other.to_owned());
    assert_eq!(found.len(), 3, "{copies:?}");
    assert!(found[..2].contains(&pair("b/half", "a/large")), "{found:?}");
    assert!(found[..2].contains(&pair("b/again/half", "a/large")), "{found:?}");
    assert_eq!(found[2], pair("c/mixed", "a/small"));
    assert!(copies[2].copied_bytes > 80_000 && copies[2].bytes == 150_000, "{copies:?}");
}

#[test]
fn the_other_figures_are_those_of_a_run_that_does_not_compare() {
    let folder = trees();
    let compares = options(&folder, &["a", "b", "c"]);
    let plain = Options { compare: false, ..compares.clone() };
    let expected = run(&MapTable::new(32, VALUE_BYTES), &plain);
    let found = compared(&compares);
    assert_eq!(found.duplicate_bytes, expected.duplicate_bytes);
    assert_eq!(
        (found.unique_chunks, found.total_chunks),
        (expected.unique_chunks, expected.total_chunks)
    );
    assert_eq!(found.largest_duplicate_files, expected.largest_duplicate_files);
    assert_eq!(expected.comparison, None);
}

#[test]
fn one_tree_is_not_compared_and_too_many_are_not() {
    let folder = trees();
    for names in [&["a"][..], &["a"; 15]] {
        let options = options(&folder, names);
        let table = MapTable::new(32, VALUE_BYTES);
        let error = dedup(&table, &options, &(), &AtomicBool::new(false)).unwrap_err();
        assert!(matches!(error, Error::Trees { .. }), "{error}");
    }
}
