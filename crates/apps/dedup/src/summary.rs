//! The results of a run, for people and programs.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::{Chunker, Comparison, Hash, Provenance, SkipKind, Skipped};

/// The most skipped things of one kind that a summary lists; all are counted.
pub const SKIPPED_LISTED_PER_KIND_MAX: u64 = 100;

/// The results of a run. As JSON, the keys are the names of the fields and stay unchanged.
///
/// For a given tree and an equally filled table all figures except times are the same in every run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// Bytes cut, hashed and looked up.
    pub total_bytes: u64,
    /// Bytes of chunks that were present before: earlier in this run, or in the table from earlier runs.
    pub duplicate_bytes: u64,
    /// `duplicate_bytes` over `total_bytes`, from 0 to 1.
    pub duplicate_fraction: f64,
    /// `total_bytes` over the unique bytes; 1 for an empty run, and null when nothing was unique.
    pub dedup_ratio: Option<f64>,
    /// Chunks looked up.
    pub total_chunks: u64,
    /// Chunks that were not present before. With an evicting table these include those it had evicted.
    pub unique_chunks: u64,
    /// Files read. Empty files count, unreadable ones do not.
    pub files: u64,
    /// Files and directories that could not be read, or not to their end: the figures do not include them.
    pub unreadable_count: u64,
    /// Entries in the table after the run.
    pub index_entries: u64,
    /// Entries that the table dropped during the run because it was full: their chunks count as unique when they occur
    /// again.
    pub forgotten_entries: u64,
    /// The same over the life of the table, including this run.
    pub forgotten_entries_life: u64,
    /// Bytes of flash that the table occupies after the run.
    pub index_bytes: u64,
    /// Bytes of RAM that the table uses after the run.
    pub ram_bytes: u64,
    /// The same for each of its entries.
    pub ram_bytes_per_entry: f64,
    /// Flash pages read for each lookup of this run. Chunks repeated within a batch of at most 4,096
    /// are looked up once, and so are the chunks of zeros of a hole.
    pub reads_per_lookup: f64,
    /// `total_bytes` over `elapsed_s`.
    pub bytes_per_s: f64,
    /// Seconds from the start to the synced table.
    pub elapsed_s: f64,
    /// True if the run was cancelled: the figures then cover the lookups until then.
    pub interrupted: bool,
    /// The chunker: `fastcdc`, `rabin` or `fixed`.
    pub chunker: Chunker,
    /// The nominal average chunk, in bytes.
    pub average_bytes: u64,
    /// The hash: `blake3` or `sha1`.
    pub hash: Hash,
    /// The files with the most duplicate bytes, at most 20.
    pub largest_duplicate_files: Vec<Largest>,
    /// The directories with the most duplicate bytes in the files that are directly in them, at most 20.
    pub largest_duplicate_directories: Vec<Largest>,
    /// Skipped or changed things, in the order of the walk, at most 100 of each kind.
    pub skipped: Vec<Skipped>,
    /// The number of skipped or changed things, listed or not.
    pub skipped_count: u64,
    /// The same for each kind that occurred.
    pub skipped_by_kind: Vec<KindCount>,
    /// The content that the trees share with one another, if the run compared them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub comparison: Option<Comparison>,
    /// The origin of the run, as `command`, `version` and `date`; `None` if its caller does not provide it.
    #[serde(flatten)]
    pub provenance: Option<Provenance>,
}

impl Summary {
    /// Bytes of chunks that were not present before.
    #[must_use]
    pub fn unique_bytes(&self) -> u64 {
        self.total_bytes - self.duplicate_bytes
    }
}

/// A file or directory with many duplicate bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Largest {
    /// Its path; bytes that are not UTF-8 are replaced.
    pub path: String,
    /// The number of its bytes that were read.
    pub bytes: u64,
    /// The number of those in chunks that were present before.
    pub duplicate_bytes: u64,
}

/// The number of skipped things of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct KindCount {
    /// The kind.
    pub kind: SkipKind,
    /// The number.
    pub count: u64,
}

/// Lists skipped things while they are few, and always counts them.
#[derive(Debug, Default)]
pub(crate) struct SkippedList {
    listed: Vec<Skipped>,
    counts: BTreeMap<SkipKind, u64>,
}

impl SkippedList {
    pub(crate) fn add(&mut self, skipped: Skipped) {
        let count = self.counts.entry(skipped.kind).or_default();
        *count += 1;
        if *count <= SKIPPED_LISTED_PER_KIND_MAX {
            self.listed.push(skipped);
        }
    }

    /// Returns the list and the counts of each kind.
    pub(crate) fn finish(self) -> (Vec<Skipped>, Vec<KindCount>) {
        let counts = self.counts.into_iter().map(|(kind, count)| KindCount { kind, count });
        (self.listed, counts.collect())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Returns a summary with something in every field.
    pub(crate) fn example() -> Summary {
        let gib = 1 << 30;
        Summary {
            total_bytes: 3 * gib / 2,
            duplicate_bytes: gib / 2,
            duplicate_fraction: 1.0 / 3.0,
            dedup_ratio: Some(1.5),
            total_chunks: 150_000,
            unique_chunks: 100_000,
            files: 1234,
            unreadable_count: 1,
            index_entries: 100_000,
            forgotten_entries: 7,
            forgotten_entries_life: 19,
            index_bytes: 8 << 20,
            ram_bytes: 25 << 20,
            ram_bytes_per_entry: 2.5,
            reads_per_lookup: 1.02,
            bytes_per_s: 800e6,
            elapsed_s: 2.01,
            interrupted: false,
            chunker: Chunker::FastCdc,
            average_bytes: 8192,
            hash: Hash::Blake3,
            largest_duplicate_files: vec![largest("/data/a/<b>\u{1b}[2J&.iso", gib / 4, gib / 8)],
            largest_duplicate_directories: vec![largest("/data/a", gib / 2, gib / 2)],
            skipped: vec![Skipped {
                path: "/data/secret".to_owned(),
                kind: SkipKind::Unreadable,
                reason: "cannot open it: Permission denied".to_owned(),
            }],
            skipped_count: 4,
            skipped_by_kind: vec![
                KindCount { kind: SkipKind::Unreadable, count: 1 },
                KindCount { kind: SkipKind::Symlink, count: 3 },
            ],
            comparison: None,
            provenance: Some(Provenance {
                command: "nandex dedup '/data/<b>'".to_owned(),
                version: "1.2.3".to_owned(),
                date: "2026-11-22T16:25:18Z".to_owned(),
            }),
        }
    }

    /// Returns two trees that share something.
    pub(crate) fn comparison() -> Comparison {
        let (gib, mib) = (1_u64 << 30, 1_u64 << 20);
        let tree = |path: &str, bytes: u64, shared: [u64; 2]| crate::ComparedTree {
            path: path.to_owned(),
            bytes,
            shared_bytes: shared.to_vec(),
            shared_fraction: shared.map(|shared| shared as f64 / bytes as f64).to_vec(),
        };
        Comparison {
            trees: vec![
                tree("/data/a", gib, [gib, 512 * mib]),
                tree("/data/<b>", 2 * gib, [256 * mib, 2 * gib]),
            ],
            copies: vec![crate::CopiedFile {
                path: "/data/<b>/x".to_owned(),
                bytes: 512 * mib,
                copy_of: "/data/a/x".to_owned(),
                copied_bytes: 256 * mib,
            }],
        }
    }

    fn largest(path: &str, bytes: u64, duplicate_bytes: u64) -> Largest {
        Largest { path: path.to_owned(), bytes, duplicate_bytes }
    }

    #[test]
    fn the_json_keys_stay_as_they_are() {
        let json = serde_json::to_value(example()).unwrap();
        let mut keys: Vec<&str> = json.as_object().unwrap().keys().map(String::as_str).collect();
        keys.sort_unstable();
        let expected = "average_bytes bytes_per_s chunker command date dedup_ratio duplicate_bytes \
            duplicate_fraction elapsed_s files forgotten_entries forgotten_entries_life \
            hash index_bytes index_entries interrupted largest_duplicate_directories \
            largest_duplicate_files ram_bytes ram_bytes_per_entry reads_per_lookup skipped \
            skipped_by_kind skipped_count total_bytes total_chunks unique_chunks \
            unreadable_count version";
        assert_eq!(keys.join(" "), expected);
        assert_eq!(json["chunker"], "fastcdc");
        assert_eq!(json["hash"], "blake3");
        assert_eq!(json["skipped"][0]["kind"], "unreadable");
        assert_eq!(json["largest_duplicate_files"][0]["duplicate_bytes"], 1 << 27);
        assert_eq!(json["skipped_by_kind"][1]["count"], 3);
    }

    #[test]
    fn skipped_things_are_listed_up_to_the_limit_of_their_kind_and_counted_beyond() {
        let mut list = SkippedList::default();
        for number in 0..250 {
            let kind = if number % 2 == 0 { SkipKind::Symlink } else { SkipKind::Special };
            list.add(Skipped { path: number.to_string(), kind, reason: String::new() });
        }
        let (listed, counts) = list.finish();
        assert_eq!(listed.len(), 200);
        assert_eq!(counts.iter().map(|kind| kind.count).sum::<u64>(), 250);
    }
}
