//! Sorting of more records than fit into RAM: sorted runs in files without names, merged as they are read.
//!
//! ```text
//!   push --> records in RAM --sorted, when the RAM is used up--> run, run, run .. --merged--> records in order
//! ```
//!
//! RAM: the budget of a [`Sorter`] is for its records or for the buffers of its runs, since it never has both. A buffer
//! has at least 512 bytes, so a merge exceeds a budget below 33 KiB, and a record is in RAM whatever its size.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::scratch::{rewound, scratch_file};
use crate::{Error, Result};

/// The number of runs that are merged at a time; each has a buffer.
pub const RUNS_MAX: usize = 64;

/// The factor of RAM for a vector that grows: its records, and twice as much for those to come.
const COPIES: usize = 3;

/// The failed actions, in words.
const WRITE: &str = "write a sorted run";
const READ: &str = "read a sorted run";

/// A sortable record, and its encoding in a run.
pub trait Record: Ord + Sized {
    /// Returns the bytes in RAM in addition to those of the type.
    fn heap_bytes(&self) -> usize {
        0
    }

    /// Writes the record that follows `last` in a run.
    ///
    /// # Errors
    /// A failed write.
    fn write(&self, last: Option<&Self>, out: &mut impl Write) -> io::Result<()>;

    /// Reads the record that follows `last` in a run.
    ///
    /// # Errors
    /// A failed read; bytes that [`write`](Self::write) does not write.
    fn read(last: Option<&Self>, from: &mut impl BufRead) -> io::Result<Self>;
}

/// A pair of numbers, sorted in this order.
impl Record for [u64; 2] {
    fn write(&self, _: Option<&Self>, out: &mut impl Write) -> io::Result<()> {
        self.iter().try_for_each(|number| out.write_all(&number.to_le_bytes()))
    }

    fn read(_: Option<&Self>, from: &mut impl BufRead) -> io::Result<Self> {
        let mut numbers = [[0; 8]; 2];
        numbers.iter_mut().try_for_each(|number| from.read_exact(number))?;
        Ok(numbers.map(u64::from_le_bytes))
    }
}

/// Collects records, to return them in order. Equal ones come in the order in which they were pushed.
#[derive(Debug)]
pub struct Sorter<R> {
    folder: PathBuf,
    ram_bytes: usize,
    records: Vec<R>,
    /// The bytes in RAM of the records, without those of the type.
    heap_bytes: usize,
    runs: Vec<Run>,
    len: u64,
}

impl<R: Record> Sorter<R> {
    /// Creates a sorter with this much RAM in bytes, and its files in `folder`.
    #[must_use]
    pub fn new(folder: &Path, ram_bytes: usize) -> Self {
        let (records, runs) = (Vec::new(), Vec::new());
        Self { folder: folder.to_path_buf(), ram_bytes, records, heap_bytes: 0, runs, len: 0 }
    }

    /// The number of records so far.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Returns whether there are no records so far.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds a record.
    ///
    /// # Errors
    /// [`Error::Scratch`]: no space, a failed write.
    pub fn push(&mut self, record: R) -> Result<()> {
        let records_bytes = COPIES * size_of::<R>() * (self.records.len() + 1);
        let heap_bytes = self.heap_bytes + record.heap_bytes();
        if records_bytes + heap_bytes > self.ram_bytes && !self.records.is_empty() {
            self.spill()?;
        }
        self.heap_bytes += record.heap_bytes();
        self.records.push(record);
        self.len += 1;
        Ok(())
    }

    /// Writes the records in RAM as a run, and merges all runs into one if there are too many.
    fn spill(&mut self) -> Result<()> {
        self.heap_bytes = 0;
        let mut records = std::mem::take(&mut self.records);
        records.sort();
        let records = records.into_iter().map(Ok);
        self.runs.push(Run::write(&self.folder, self.ram_bytes, records)?);
        if self.runs.len() == RUNS_MAX {
            let merge = self.merge()?;
            self.runs.push(Run::write(&self.folder, self.ram_bytes, merge)?);
        }
        Ok(())
    }

    fn merge(&mut self) -> Result<Merge<R>> {
        let mut merge = Merge::new(self.ram_bytes);
        std::mem::take(&mut self.runs).into_iter().try_for_each(|run| merge.add(run))?;
        Ok(merge)
    }

    /// Returns all records in order.
    ///
    /// # Errors
    /// [`Error::Scratch`]: no space, a failed write or read.
    pub fn finish(mut self) -> Result<Sorted<R>> {
        if !self.runs.is_empty() {
            self.spill()?;
        }
        self.records.sort();
        let merge = self.merge()?;
        Ok(Sorted { records: self.records.into_iter(), merge })
    }
}

/// Records in order: all of them in RAM, or all in runs.
#[derive(Debug)]
pub struct Sorted<R> {
    records: std::vec::IntoIter<R>,
    merge: Merge<R>,
}

impl<R: Record> Iterator for Sorted<R> {
    type Item = Result<R>;

    fn next(&mut self) -> Option<Result<R>> {
        self.records.next().map(Ok).or_else(|| self.merge.next())
    }
}

/// Returns the size of a run's buffer, so that those of all runs and of the one that is written fit into the RAM.
fn buffer_bytes(ram_bytes: usize) -> usize {
    (ram_bytes / (RUNS_MAX + 1)).clamp(512, 64 << 10)
}

/// A sorted run, complete.
#[derive(Debug)]
pub struct Run {
    file: File,
    len: u64,
}

impl Run {
    /// Writes records, which are in order, to a file in `folder`. `ram_bytes` is the RAM for the buffers of all runs.
    ///
    /// # Errors
    /// [`Error::Scratch`]: no space, a failed write; an error of `records`.
    pub fn write<R: Record>(
        folder: &Path,
        ram_bytes: usize,
        records: impl Iterator<Item = Result<R>>,
    ) -> Result<Self> {
        Self::write_to(scratch_file(folder)?, ram_bytes, records)
    }

    fn write_to<R: Record>(
        file: File,
        ram_bytes: usize,
        records: impl Iterator<Item = Result<R>>,
    ) -> Result<Self> {
        let mut out = BufWriter::with_capacity(buffer_bytes(ram_bytes), file);
        let (mut last, mut len) = (None, 0);
        for record in records {
            let record = record?;
            record.write(last.as_ref(), &mut out).map_err(Error::scratch(WRITE))?;
            (last, len) = (Some(record), len + 1);
        }
        Ok(Self { file: rewound(out, (WRITE, READ))?, len })
    }
}

/// A run that is being read.
#[derive(Debug)]
struct Reader {
    file: BufReader<File>,
    /// The number of records that are not read yet.
    left: u64,
}

impl Reader {
    /// Returns the next record, after `last`; `None` at the end.
    fn next<R: Record>(&mut self, last: Option<&R>) -> Result<Option<R>> {
        let Some(left) = self.left.checked_sub(1) else { return Ok(None) };
        self.left = left;
        let record = R::read(last, &mut self.file).map_err(Error::scratch(READ))?;
        if last.is_some_and(|last| record < *last) {
            let damaged = io::Error::new(io::ErrorKind::InvalidData, "it is damaged");
            return Err(Error::scratch(READ)(damaged));
        }
        Ok(Some(record))
    }
}

/// Several runs, read as one: their records in order. It holds one record of each run in RAM.
#[derive(Debug)]
pub struct Merge<R> {
    ram_bytes: usize,
    /// The runs; `None` for one that has ended.
    runs: Vec<Option<Reader>>,
    /// The next record of each run that has one, with the run's number.
    next: BinaryHeap<Reverse<(R, usize)>>,
}

impl<R: Record> Merge<R> {
    /// Creates a merge of no runs, with this much RAM in bytes for the buffers of [`RUNS_MAX`] and of one that is
    /// written.
    #[must_use]
    pub fn new(ram_bytes: usize) -> Self {
        Self { ram_bytes, runs: Vec::new(), next: BinaryHeap::new() }
    }

    /// Begins to read a run. Records that equal those of earlier runs come after these.
    ///
    /// # Errors
    /// [`Error::Scratch`]: a failed read.
    pub fn add(&mut self, run: Run) -> Result<()> {
        let file = BufReader::with_capacity(buffer_bytes(self.ram_bytes), run.file);
        let mut reader = Reader { file, left: run.len };
        if let Some(first) = reader.next(None)? {
            self.next.push(Reverse((first, self.runs.len())));
            self.runs.push(Some(reader));
        }
        Ok(())
    }

    /// The number of runs that have not ended.
    #[must_use]
    pub fn runs(&self) -> usize {
        self.next.len()
    }

    /// Returns the smallest record without removing it.
    #[must_use]
    pub fn peek(&self) -> Option<&R> {
        self.next.peek().map(|Reverse((record, _))| record)
    }
}

impl<R: Record> Iterator for Merge<R> {
    type Item = Result<R>;

    fn next(&mut self) -> Option<Result<R>> {
        let mut top = self.next.peek_mut()?;
        let Reverse((last, number)) = &*top;
        let (reader, number) = (&mut self.runs[*number], *number);
        let next = reader.as_mut().map_or(Ok(None), |reader| reader.next(Some(last)));
        Some(next.map(|next| match next {
            Some(next) => std::mem::replace(&mut *top, Reverse((next, number))).0.0,
            None => {
                *reader = None;
                PeekMut::pop(top).0.0
            }
        }))
    }
}

#[cfg(test)]
mod tests;
