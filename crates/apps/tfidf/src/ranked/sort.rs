//! Sorting of more postings than fit into RAM: as documents come, into the order of terms.
//!
//! Runs are in files without names. A posting takes some 3 bytes there.

use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

use nandex_corpus::scratch::{Merge, RUN_BUFFER_BYTES, RUNS_MAX, Run, rewound, scratch_file};

use crate::varint::put_varint;
use crate::{Error, Result};

/// What fails, in words.
const WRITE: &str = "write sorted postings";
const READ: &str = "read sorted postings";

/// A document that has a term. The order of fields is that of an index.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(super) struct Posting {
    pub(super) column: u64,
    pub(super) document: u32,
    pub(super) occurrences: u32,
}

/// Collects postings, to return them in order.
#[derive(Debug)]
pub(super) struct PostingSorter {
    folder: PathBuf,
    postings_max: usize,
    postings: Vec<Posting>,
    runs: Vec<File>,
    len: u64,
}

impl PostingSorter {
    /// A sorter with about this much RAM in bytes, and its files in `folder`.
    pub(super) fn new(folder: &Path, ram_bytes: usize) -> Self {
        // A growing vector has one and a half of its memory more for a moment.
        let postings_max = (ram_bytes / size_of::<Posting>() / 2).max(1);
        let (postings, runs) = (Vec::new(), Vec::new());
        Self { folder: folder.to_path_buf(), postings_max, postings, runs, len: 0 }
    }

    /// Postings so far.
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// Takes a posting of another document or term than all others.
    pub(super) fn push(&mut self, posting: Posting) -> Result<()> {
        if self.postings.len() >= self.postings_max {
            self.spill()?;
        }
        self.postings.push(posting);
        self.len += 1;
        Ok(())
    }

    /// Writes the postings at hand as a run, and merges all runs into one if there are too many.
    fn spill(&mut self) -> Result<()> {
        self.postings.sort_unstable();
        let mut run = RunWriter::new(&self.folder)?;
        self.postings.drain(..).try_for_each(|posting| run.push(posting))?;
        self.runs.push(run.finish()?);
        if self.runs.len() < RUNS_MAX {
            return Ok(());
        }
        let mut merged = RunWriter::new(&self.folder)?;
        for posting in merge(std::mem::take(&mut self.runs))? {
            merged.push(posting?)?;
        }
        self.runs.push(merged.finish()?);
        Ok(())
    }

    /// All postings in order.
    pub(super) fn finish(mut self) -> Result<Sorted> {
        if self.runs.is_empty() {
            self.postings.sort_unstable();
            return Ok(Sorted::Memory(self.postings.into_iter()));
        }
        if !self.postings.is_empty() {
            self.spill()?;
        }
        self.postings = Vec::new();
        Ok(Sorted::Merge(merge(self.runs)?))
    }
}

/// Postings in order.
#[derive(Debug)]
pub(super) enum Sorted {
    Memory(std::vec::IntoIter<Posting>),
    Merge(Merge<RunReader>),
}

impl Iterator for Sorted {
    type Item = Result<Posting>;

    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Self::Memory(postings) => postings.next().map(Ok),
            Self::Merge(merge) => merge.next().map(|posting| Ok(posting?)),
        }
    }
}

/// A run that is being written: of each posting the columns since the last one, the documents since the last one of
/// the column, and the occurrences.
struct RunWriter {
    file: BufWriter<File>,
    last: Posting,
    bytes: Vec<u8>,
}

impl RunWriter {
    fn new(folder: &Path) -> Result<Self> {
        let file = BufWriter::with_capacity(RUN_BUFFER_BYTES, scratch_file(folder)?);
        Ok(Self { file, last: Posting::default(), bytes: Vec::new() })
    }

    fn push(&mut self, posting: Posting) -> Result<()> {
        let columns = posting.column - self.last.column;
        let before = if columns == 0 { self.last.document } else { 0 };
        self.bytes.clear();
        for number in [columns, (posting.document - before).into(), posting.occurrences.into()] {
            put_varint(&mut self.bytes, number);
        }
        self.last = posting;
        self.file.write_all(&self.bytes).map_err(Error::scratch(WRITE))
    }

    fn finish(self) -> Result<File> {
        Ok(rewound(self.file, (WRITE, READ))?)
    }
}

/// A run that is being read.
#[derive(Debug)]
pub(super) struct RunReader {
    file: BufReader<File>,
    last: Posting,
}

impl RunReader {
    fn new(file: File) -> Self {
        let file = BufReader::with_capacity(RUN_BUFFER_BYTES, file);
        Self { file, last: Posting::default() }
    }
}

impl Run for RunReader {
    type Record = Posting;

    const READ: &'static str = READ;

    fn next(&mut self) -> io::Result<Option<Posting>> {
        if self.file.fill_buf()?.is_empty() {
            return Ok(None);
        }
        let columns = read_varint(&mut self.file)?;
        let before = if columns == 0 { self.last.document } else { 0 };
        let column = self.last.column + columns;
        let narrow = |number: u64| u32::try_from(number).map_err(io::Error::other);
        let document = before + narrow(read_varint(&mut self.file)?)?;
        let occurrences = narrow(read_varint(&mut self.file)?)?;
        self.last = Posting { column, document, occurrences };
        Ok(Some(self.last))
    }
}

fn read_varint(file: &mut impl BufRead) -> io::Result<u64> {
    let (mut number, mut shift) = (0, 0);
    loop {
        let byte = *file.fill_buf()?.first().ok_or(io::ErrorKind::UnexpectedEof)?;
        file.consume(1);
        number |= u64::from(byte & 0x7f) << shift;
        shift += 7;
        if byte < 0x80 || shift > 63 {
            return Ok(number);
        }
    }
}

/// Runs, read as one.
fn merge(runs: Vec<File>) -> Result<Merge<RunReader>> {
    Ok(Merge::new(runs.into_iter().map(RunReader::new).collect())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Postings as documents give them, sorted with that much RAM, and the runs that this took.
    fn sorted(ram_bytes: usize, documents: u32) -> (Vec<Posting>, usize) {
        let folder = tempfile::tempdir().unwrap();
        let mut sorter = PostingSorter::new(folder.path(), ram_bytes);
        for document in 0..documents {
            for number in 0..u64::from(document % 7) {
                let column = ((u64::from(document) * 2_654_435_761 + number) % 1000) << 30;
                sorter.push(Posting { column, document, occurrences: document }).unwrap();
            }
        }
        let (len, runs) = (sorter.len(), sorter.runs.len());
        let all: Vec<Posting> = sorter.finish().unwrap().map(|it| it.unwrap()).collect();
        assert_eq!(all.len() as u64, len);
        (all, runs)
    }

    #[test]
    fn little_and_much_ram_give_the_same_order() {
        let (in_memory, no_runs) = sorted(64 << 20, 10_000);
        assert_eq!(no_runs, 0);
        assert!(in_memory.is_sorted() && in_memory.len() > 20_000);
        let (some, runs) = sorted(64 << 10, 10_000);
        assert!(runs > 1 && runs < RUNS_MAX, "{runs} runs");
        assert_eq!(some, in_memory);
        // Runs of 128 postings: more than are merged at once.
        assert_eq!(sorted(4 << 10, 10_000).0, in_memory);
        assert_eq!(sorted(0, 10).0, sorted(1 << 20, 10).0);
        assert_eq!(sorted(1 << 20, 0).0, []);
    }
}
