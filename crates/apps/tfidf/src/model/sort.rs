//! Sorting of more records than fit into RAM: sorted runs in files without names, merged as they are read.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use nandex_corpus::scratch::{Merge, RUN_BUFFER_BYTES, RUNS_MAX, Run, rewound, scratch_file};

use crate::{Error, Result};

/// Bytes that go with a key.
pub(super) const PAYLOAD_BYTES: usize = 24;

/// What fails, in words.
const WRITE: &str = "write a sorted run";
const READ: &str = "read a sorted run";

/// A key and what goes with it.
pub(super) type Sortable = (Vec<u8>, [u8; PAYLOAD_BYTES]);

/// Collects records, to return them in the order of their keys' bytes.
#[derive(Debug)]
pub(super) struct Sorter {
    folder: PathBuf,
    ram_bytes: usize,
    /// Keys and payloads, one after another.
    bytes: Vec<u8>,
    /// Where each begins, and the bytes of its key.
    records: Vec<(usize, usize)>,
    runs: Vec<File>,
    len: u64,
}

impl Sorter {
    /// A sorter with about this much RAM in bytes, and its files in `folder`.
    pub(super) fn new(folder: &Path, ram_bytes: usize) -> Self {
        let (bytes, records, runs) = (Vec::new(), Vec::new(), Vec::new());
        Self { folder: folder.to_path_buf(), ram_bytes, bytes, records, runs, len: 0 }
    }

    /// Records so far.
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    pub(super) fn push(&mut self, key: &[u8], payload: &[u8; PAYLOAD_BYTES]) -> Result<()> {
        // A growing vector has twice its memory for a moment.
        let needed = 2 * (self.bytes.len() + self.records.len() * size_of::<(usize, usize)>());
        if needed >= self.ram_bytes && !self.records.is_empty() {
            self.spill()?;
        }
        self.records.push((self.bytes.len(), key.len()));
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(payload);
        self.len += 1;
        Ok(())
    }

    fn sort(&mut self) {
        let bytes = &self.bytes;
        self.records.sort_unstable_by(|a, b| {
            let key = |(start, len): (usize, usize)| &bytes[start..start + len];
            key(*a).cmp(key(*b))
        });
    }

    /// Writes the records at hand as a run, and merges all runs into one if there are too many.
    fn spill(&mut self) -> Result<()> {
        self.sort();
        let mut run = RunWriter::new(&self.folder)?;
        for &(start, len) in &self.records {
            let (key, payload) = self.bytes[start..start + len + PAYLOAD_BYTES].split_at(len);
            run.push(key, payload)?;
        }
        self.runs.push(run.finish()?);
        self.bytes.clear();
        self.records.clear();
        if self.runs.len() < RUNS_MAX {
            return Ok(());
        }
        let mut merged = RunWriter::new(&self.folder)?;
        for record in merge(std::mem::take(&mut self.runs))? {
            let (key, payload) = record?;
            merged.push(&key, &payload)?;
        }
        self.runs.push(merged.finish()?);
        Ok(())
    }

    /// All records in order. Records of equal keys come in any order.
    pub(super) fn finish(mut self) -> Result<Sorted> {
        if self.runs.is_empty() {
            self.sort();
            return Ok(Sorted::Memory { bytes: self.bytes, records: self.records.into_iter() });
        }
        if !self.records.is_empty() {
            self.spill()?;
        }
        Ok(Sorted::Merge(merge(self.runs)?))
    }
}

/// Records in order.
#[derive(Debug)]
pub(super) enum Sorted {
    Memory { bytes: Vec<u8>, records: std::vec::IntoIter<(usize, usize)> },
    Merge(Merge<RunReader>),
}

impl Iterator for Sorted {
    type Item = Result<Sortable>;

    fn next(&mut self) -> Option<Self::Item> {
        let (bytes, records) = match self {
            Self::Merge(merge) => return merge.next().map(|record| Ok(record?)),
            Self::Memory { bytes, records } => (bytes, records),
        };
        let (start, len) = records.next()?;
        let mut payload = [0; PAYLOAD_BYTES];
        let (key, rest) = bytes[start..start + len + PAYLOAD_BYTES].split_at(len);
        payload.copy_from_slice(rest);
        Some(Ok((key.to_vec(), payload)))
    }
}

/// A run that is being written: the bytes of each key, the key, the payload.
struct RunWriter(BufWriter<File>);

impl RunWriter {
    fn new(folder: &Path) -> Result<Self> {
        Ok(Self(BufWriter::with_capacity(RUN_BUFFER_BYTES, scratch_file(folder)?)))
    }

    fn push(&mut self, key: &[u8], payload: &[u8]) -> Result<()> {
        let len = (key.len() as u64).to_le_bytes();
        let parts = [&len[..], key, payload];
        let written = parts.into_iter().try_for_each(|part| self.0.write_all(part));
        written.map_err(Error::scratch(WRITE))
    }

    fn finish(self) -> Result<File> {
        Ok(rewound(self.0, (WRITE, READ))?)
    }
}

/// A run that is being read.
#[derive(Debug)]
pub(super) struct RunReader(BufReader<File>);

impl RunReader {
    fn new(file: File) -> Self {
        Self(BufReader::with_capacity(RUN_BUFFER_BYTES, file))
    }
}

impl Run for RunReader {
    type Record = Sortable;

    const READ: &'static str = READ;

    fn next(&mut self) -> io::Result<Option<Sortable>> {
        let mut len = [0; 8];
        if self.0.read(&mut len[..1])? == 0 {
            return Ok(None);
        }
        self.0.read_exact(&mut len[1..])?;
        let len = usize::try_from(u64::from_le_bytes(len)).map_err(io::Error::other)?;
        let mut key = vec![0; len];
        let mut payload = [0; PAYLOAD_BYTES];
        self.0.read_exact(&mut key)?;
        self.0.read_exact(&mut payload)?;
        Ok(Some((key, payload)))
    }
}

/// Runs, read as one.
fn merge(runs: Vec<File>) -> Result<Merge<RunReader>> {
    Ok(Merge::new(runs.into_iter().map(RunReader::new).collect())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted(ram_bytes: usize, count: u64) -> (Vec<Sortable>, usize) {
        let folder = tempfile::tempdir().unwrap();
        let mut sorter = Sorter::new(folder.path(), ram_bytes);
        for number in 0..count {
            let key = format!("{:x}", number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            let mut payload = [0; PAYLOAD_BYTES];
            payload[..8].copy_from_slice(&number.to_le_bytes());
            sorter.push(key.as_bytes(), &payload).unwrap();
        }
        assert_eq!(sorter.len(), count);
        let runs = sorter.runs.len();
        (sorter.finish().unwrap().map(|it| it.unwrap()).collect(), runs)
    }

    #[test]
    fn little_and_much_ram_give_the_same_order() {
        let (in_memory, no_runs) = sorted(64 << 20, 20_000);
        assert_eq!(no_runs, 0);
        assert!(in_memory.is_sorted());
        assert_eq!(in_memory.len(), 20_000);
        let (some, runs) = sorted(256 << 10, 20_000);
        assert!(runs > 1 && runs < RUNS_MAX, "{runs} runs");
        assert_eq!(some, in_memory);
        // 20,000 records of 56 bytes in runs of 8 KiB: more runs than are merged at once.
        let (many, _) = sorted(16 << 10, 20_000);
        assert_eq!(many, in_memory);
    }

    #[test]
    fn no_records_are_no_records() {
        assert_eq!(sorted(1 << 20, 0).0, []);
        assert_eq!(sorted(0, 3).0.len(), 3);
    }
}
