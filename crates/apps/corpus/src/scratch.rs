//! What does not fit into RAM waits in files without names: they vanish with the process. Sorted runs among them are
//! merged as they are read.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::fs::File;
use std::io::{self, BufWriter, IntoInnerError, Seek};
use std::path::Path;

use crate::{Error, Result};

/// Runs that are merged at a time; each has a buffer.
pub const RUNS_MAX: usize = 64;

/// Bytes of a run's buffer.
pub const RUN_BUFFER_BYTES: usize = 64 << 10;

/// A file without a name in `folder`.
///
/// # Errors
/// [`Error::Scratch`]: a folder that cannot be written to.
pub fn scratch_file(folder: &Path) -> Result<File> {
    tempfile::tempfile_in(folder).map_err(Error::scratch("make a temporary file"))
}

/// The file behind a buffer that was written, at its beginning. The words say what has failed if writing or reading
/// fails.
///
/// # Errors
/// [`Error::Scratch`]: no space, a failed write.
pub fn rewound(file: BufWriter<File>, (write, read): (&'static str, &'static str)) -> Result<File> {
    let file = file.into_inner().map_err(IntoInnerError::into_error);
    let mut file = file.map_err(Error::scratch(write))?;
    file.rewind().map_err(Error::scratch(read))?;
    Ok(file)
}

/// A sorted run that is being read.
pub trait Run {
    /// What is sorted.
    type Record: Ord;

    /// What is said to have failed when a read fails.
    const READ: &'static str;

    /// The next record; nothing at the end.
    ///
    /// # Errors
    /// A failed read.
    fn next(&mut self) -> io::Result<Option<Self::Record>>;
}

/// Several runs, read as one: their records in order. It holds a record of each.
#[derive(Debug)]
pub struct Merge<R: Run> {
    runs: Vec<R>,
    /// The next record of each run that has one, with the run's number.
    next: BinaryHeap<Reverse<(R::Record, usize)>>,
}

impl<R: Run> Merge<R> {
    /// Begins to read these runs, each of which is in order.
    ///
    /// # Errors
    /// [`Error::Scratch`]: a failed read.
    pub fn new(mut runs: Vec<R>) -> Result<Self> {
        let mut next = BinaryHeap::with_capacity(runs.len());
        for (number, run) in runs.iter_mut().enumerate() {
            let first = run.next().map_err(Error::scratch(R::READ))?;
            next.extend(first.map(|record| Reverse((record, number))));
        }
        Ok(Self { runs, next })
    }
}

impl<R: Run> Iterator for Merge<R> {
    type Item = Result<R::Record>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut top = self.next.peek_mut()?;
        let number = top.0.1;
        let Reverse((record, _)) = match self.runs[number].next() {
            Ok(Some(next)) => std::mem::replace(&mut *top, Reverse((next, number))),
            Ok(None) => PeekMut::pop(top),
            Err(error) => return Some(Err(Error::scratch(R::READ)(error))),
        };
        Some(Ok(record))
    }
}
