//! Chunks of one size: the baseline, and the right choice for disk images and database files.

use super::Chunking;

/// Cuts every `bytes` bytes.
#[derive(Clone, Debug)]
pub(super) struct Fixed {
    bytes: usize,
}

impl Fixed {
    pub(super) fn new(chunking: &Chunking) -> Self {
        Self { bytes: chunking.average_bytes() }
    }

    pub(super) fn first_len(&self, data: &[u8]) -> usize {
        data.len().min(self.bytes)
    }
}
