//! What a run reads, and how.

use std::path::PathBuf;
use std::thread;

use crate::compare::comparison_value_bytes;
use crate::{Chunking, Hash, VALUE_BYTES};

/// What to read, and how.
#[derive(Clone, Debug)]
pub struct Options {
    /// Files and directories to read, in this order.
    pub paths: Vec<PathBuf>,
    /// Files to skip wherever they occur: those that hold the table itself.
    pub leave_out: Vec<PathBuf>,
    /// How files are cut. An index is good for one chunking.
    pub chunking: Chunking,
    /// How chunks are named. It decides the table's key width: [`Hash::key_bytes`].
    pub hash: Hash,
    /// Threads that read, cut and hash; from 1 to 256. The walk and the index have one more each.
    pub workers: usize,
    /// Compare the trees with one another: [`Summary::comparison`](crate::Summary::comparison). It decides the table's
    /// value width, [`value_bytes`](Self::value_bytes), and needs a table without chunks of earlier runs.
    pub compare: bool,
}

impl Options {
    /// These paths with FastCDC at 8 KiB, BLAKE3 and a worker for every processor.
    pub fn new<P: Into<PathBuf>>(paths: impl IntoIterator<Item = P>) -> Self {
        Self {
            paths: paths.into_iter().map(Into::into).collect(),
            leave_out: Vec::new(),
            chunking: Chunking::default(),
            hash: Hash::default(),
            compare: false,
            workers: thread::available_parallelism().map_or(1, Into::into),
        }
    }

    /// Bytes of a value in the table.
    #[must_use]
    pub fn value_bytes(&self) -> usize {
        if self.compare { comparison_value_bytes(self.paths.len()) } else { VALUE_BYTES }
    }
}
