//! The content that trees share with one another, and the files with content of earlier ones.
//!
//! A table for a comparison has a longer value: a chunk's length and first file, as always, and how often it occurs in
//! each tree. Trees are read one after another. So when a chunk occurs for the first time in a tree, its numbers in the
//! earlier trees are final, and both directions are summed in one pass. RAM: the paths of all files.

use std::cmp::Reverse;
use std::collections::HashMap;

use nandex::Table;
use serde::Serialize;

use crate::indexer::check_length;
use crate::read::Chunk;
use crate::units::ratio;
use crate::{ChunkValue, FileEntry, Fingerprint, Result, VALUE_BYTES};

/// The most trees that are compared in one run: a value has at most 64 bytes.
pub const TREES_MAX: usize = 14;

/// The most files that are listed with their sources.
pub const COPIES_LISTED_MAX: usize = 20;

/// The number of bytes of a count of a tree.
const COUNT_BYTES: usize = 4;

/// Returns the number of bytes of a value of a table for comparing `trees` trees.
#[must_use]
pub const fn comparison_value_bytes(trees: usize) -> usize {
    VALUE_BYTES + COUNT_BYTES * trees
}

/// The result of a comparison.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Comparison {
    /// The trees, in the order of their paths.
    pub trees: Vec<ComparedTree>,
    /// The files with the most bytes that are in an earlier file, at most 20.
    pub copies: Vec<CopiedFile>,
}

/// A tree, and the content that it shares with each.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ComparedTree {
    /// Its path.
    pub path: String,
    /// The number of its bytes that were read.
    pub bytes: u64,
    /// The number of its bytes in chunks that are also in each of the trees, in order; all of them for itself.
    pub shared_bytes: Vec<u64>,
    /// The same as fractions of `bytes`.
    pub shared_fraction: Vec<f64>,
}

/// A file with content of an earlier one: a copy of it, in part or whole.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CopiedFile {
    /// Its path.
    pub path: String,
    /// The number of its bytes.
    pub bytes: u64,
    /// The earlier file that first had most of its chunks, by bytes.
    pub copy_of: String,
    /// The number of its bytes in chunks that this file had first.
    pub copied_bytes: u64,
}

/// The table's record of a chunk.
#[derive(Clone, Copy, Debug, Default)]
struct Record {
    value: ChunkValue,
    counts: [u32; TREES_MAX],
    /// Whether it was present before.
    is_known: bool,
}

impl Record {
    fn decode(value: &[u8]) -> Self {
        let counts = value.get(VALUE_BYTES..).unwrap_or_default();
        let mut record = Self {
            value: ChunkValue::decode(value.get(..VALUE_BYTES).unwrap_or_default())
                .unwrap_or_default(),
            is_known: true,
            ..Self::default()
        };
        for (count, bytes) in record.counts.iter_mut().zip(counts.chunks_exact(COUNT_BYTES)) {
            *count = u32::from_le_bytes(bytes.first_chunk().copied().unwrap_or_default());
        }
        record
    }

    fn encode(&self, trees: usize) -> Vec<u8> {
        let counts = self.counts[..trees].iter().flat_map(|count| count.to_le_bytes());
        self.value.encode().into_iter().chain(counts).collect()
    }
}

/// Sums up the chunks of a run.
#[derive(Debug)]
pub(crate) struct Comparer {
    trees: Vec<ComparedTree>,
    /// The paths of the files so far, by their numbers.
    paths: Vec<String>,
    /// For the file that is being read: the bytes in chunks that an earlier file had first, by that file's number.
    sources: HashMap<u32, u64>,
    copies: Vec<CopiedFile>,
}

impl Comparer {
    pub(crate) fn new(paths: &[std::path::PathBuf]) -> Self {
        let tree = |path: &std::path::PathBuf| ComparedTree {
            path: path.display().to_string(),
            shared_bytes: vec![0; paths.len()],
            ..ComparedTree::default()
        };
        let trees = paths.iter().map(tree).collect();
        Self { trees, paths: Vec::new(), sources: HashMap::new(), copies: Vec::new() }
    }

    /// Looks up all chunks of a batch and writes them back; returns for each its first file, if it was present before.
    pub(crate) fn find_and_insert(
        &mut self,
        table: &dyn Table,
        chunks: &[Chunk],
        files: &[u32],
    ) -> Result<Vec<Option<u32>>> {
        let mut places: HashMap<&Fingerprint, usize> = HashMap::with_capacity(chunks.len());
        let mut keys: Vec<&[u8]> = Vec::new();
        for chunk in chunks {
            places.entry(&chunk.fingerprint).or_insert_with(|| {
                keys.push(chunk.fingerprint.as_bytes());
                keys.len() - 1
            });
        }
        let found = table.get_many(&keys)?.into_iter();
        let mut records: Vec<Record> = found
            .map(|it| it.map_or_else(Record::default, |value| Record::decode(&value)))
            .collect();
        let mut sources = Vec::with_capacity(chunks.len());
        for (chunk, &file) in chunks.iter().zip(files) {
            let record = &mut records[places[&chunk.fingerprint]];
            let first = record.is_known.then_some(record.value.file);
            if first.is_some() {
                check_length(chunk, &record.value.encode())?;
            } else {
                record.value = ChunkValue { length: chunk.length, file };
                record.is_known = true;
            }
            self.add_chunk(chunk, record);
            sources.push(first);
        }
        let trees = self.trees.len();
        let values: Vec<_> = records.iter().map(|record| record.encode(trees)).collect();
        let pairs: Vec<_> = keys.into_iter().zip(values.iter().map(Vec::as_slice)).collect();
        table.insert_many(&pairs)?;
        Ok(sources)
    }

    /// Adds a chunk to the content that its tree shares with the others, in both directions.
    fn add_chunk(&mut self, chunk: &Chunk, record: &mut Record) {
        let (tree, length) = (chunk.tree, u64::from(chunk.length));
        self.trees[tree].bytes += chunk.bytes();
        let is_first_here = record.counts[tree] == 0;
        for other in (0..self.trees.len()).filter(|&other| other != tree) {
            let count = u64::from(record.counts[other]);
            if count > 0 {
                self.trees[tree].shared_bytes[other] += chunk.bytes();
                if is_first_here {
                    self.trees[other].shared_bytes[tree] += count * length;
                }
            }
        }
        let times = u32::try_from(chunk.times).unwrap_or(u32::MAX);
        record.counts[tree] = record.counts[tree].saturating_add(times);
    }

    /// Notes that a chunk of the current file was first in `source`.
    pub(crate) fn add_source(&mut self, source: u32, bytes: u64) {
        *self.sources.entry(source).or_default() += bytes;
    }

    /// Notes the end of the current file.
    pub(crate) fn end_file(&mut self, entry: &FileEntry, bytes: u64) {
        let number = u32::try_from(self.paths.len()).unwrap_or(u32::MAX);
        let path = entry.path.display().to_string();
        self.sources.remove(&number);
        let best = self.sources.drain().max_by_key(|&(source, bytes)| (bytes, Reverse(source)));
        if let Some((source, copied_bytes)) = best {
            let copy_of = self.paths.get(source as usize).cloned().unwrap_or_default();
            self.offer(CopiedFile { path: path.clone(), bytes, copy_of, copied_bytes });
        }
        self.paths.push(path);
    }

    fn offer(&mut self, copy: CopiedFile) {
        let rank = |it: &CopiedFile| Reverse(it.copied_bytes);
        let place = self.copies.partition_point(|other| rank(other) <= rank(&copy));
        if place < COPIES_LISTED_MAX {
            self.copies.insert(place, copy);
            self.copies.truncate(COPIES_LISTED_MAX);
        }
    }

    pub(crate) fn finish(mut self) -> Comparison {
        for (index, tree) in self.trees.iter_mut().enumerate() {
            tree.shared_bytes[index] = tree.bytes;
            let fraction = |&shared: &u64| ratio(shared, tree.bytes).unwrap_or(0.0);
            tree.shared_fraction = tree.shared_bytes.iter().map(fraction).collect();
        }
        Comparison { trees: self.trees, copies: self.copies }
    }
}
