//! A list has every chunk at its place.

use std::cell::RefCell;
use std::fs;
use std::sync::atomic::AtomicBool;

use nandex::raw::oracle::MapTable;
use nandex_dedup::{Done, Listed, Options, Progress, VALUE_BYTES, dedup};
use tempfile::TempDir;

use crate::common::noise;

/// Keeps the lines.
#[derive(Default)]
struct Lines(RefCell<Vec<String>>);

impl Progress for Lines {
    fn update(&self, _done: Done) {}

    fn list(&self, listed: Listed<'_>) {
        self.0.borrow_mut().push(listed.to_string());
    }
}

#[test]
fn every_chunk_is_listed_where_it_is_and_before_its_file() {
    let tree = TempDir::new().unwrap();
    let content = noise(300_000, 3);
    for (name, bytes) in [("a", &content[..]), ("b", &content[..]), ("c", &content[..0])] {
        fs::write(tree.path().join(name), bytes).unwrap();
    }
    let options = Options::new([tree.path()]);
    let (table, lines) = (MapTable::new(options.hash.key_bytes(), VALUE_BYTES), Lines::default());
    let summary = dedup(&table, &options, &lines, &AtomicBool::new(false)).unwrap();

    let (mut chunks, mut at, mut files) = (0, 0, 0);
    for line in lines.0.into_inner() {
        let fields: Vec<&str> = line.split('\t').collect();
        let number = |at: usize| fields[at].parse::<usize>().unwrap();
        assert_eq!(number(1), files, "{line}");
        if fields[0] == "file" {
            assert_eq!((number(2), fields[3].ends_with(['a', 'b', 'c'])), (at, true), "{line}");
            (at, files) = (0, files + 1);
            continue;
        }
        let (offset, bytes) = (number(2), number(3));
        assert_eq!((offset, number(4)), (at, 1), "{line}");
        let fingerprint = options.hash.fingerprint(&content[offset..offset + bytes]);
        assert_eq!(fields[5], fingerprint.to_string());
        assert_eq!(fields[6], if files == 0 { "new" } else { "duplicate" });
        (at, chunks) = (at + bytes, chunks + 1);
    }
    assert_eq!((chunks, files), (summary.total_chunks, 3));
}
