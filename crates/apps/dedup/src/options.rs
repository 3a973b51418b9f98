//! The options of a run.

use std::path::PathBuf;
use std::thread;

use crate::compare::comparison_value_bytes;
use crate::{Chunking, Hash, VALUE_BYTES};

/// The inputs and settings of a run.
#[derive(Clone, Debug)]
pub struct Options {
    /// Files and directories to read, in this order.
    pub paths: Vec<PathBuf>,
    /// The files to skip wherever they occur: those of the table itself.
    pub leave_out: Vec<PathBuf>,
    /// The chunking of files. An index is useful for one chunking only.
    pub chunking: Chunking,
    /// The hash that names chunks. It determines the table's key width: [`Hash::key_bytes`].
    pub hash: Hash,
    /// The number of threads that read, cut and hash; from 1 to 256. The walk and the index have one more each.
    pub workers: usize,
    /// Whether to compare the trees with one another: [`Summary::comparison`](crate::Summary::comparison). It
    /// determines the table's value width, [`value_bytes`](Self::value_bytes), and needs a table without chunks of
    /// earlier runs.
    pub compare: bool,
}

impl Options {
    /// Creates options for these paths with FastCDC at 8 KiB, BLAKE3 and a worker for every processor.
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

    /// Returns the number of bytes of a value in the table.
    #[must_use]
    pub fn value_bytes(&self) -> usize {
        if self.compare { comparison_value_bytes(self.paths.len()) } else { VALUE_BYTES }
    }
}
