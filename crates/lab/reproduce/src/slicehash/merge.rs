//! The I/O chunks of a merge, in the order in which the structure's rewriter starts them. A chunk is written
//! once it was read and all before it are being written; four are in memory.

use nandex_sim::RequestKind;

use crate::tape::Step;

/// Chunks in memory, as in the structure.
pub(super) const CHUNKS: usize = 4;

/// A slicetable, or a buffer, that is written to flash.
#[derive(Debug)]
pub(super) struct Merge {
    reads: Vec<Step>,
    writes: Vec<Step>,
    is_read: Vec<bool>,
    next_read: usize,
    next_write: usize,
    written: usize,
    waited_for: bool,
    /// The number of chunks in memory at once.
    chunks: usize,
}

/// A chunk's next state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Progress {
    Read(usize),
    Write,
}

impl Merge {
    /// Creates a merge of the reads and writes of these steps.
    pub fn new(steps: &[Step], waited_for: bool) -> Self {
        let of = |kind| steps.iter().filter(move |step| step.kind == kind).copied();
        let (reads, writes): (Vec<_>, Vec<_>) =
            (of(RequestKind::Read).collect(), of(RequestKind::Write).collect());
        // A buffer that goes to flash unchanged, or into the first slicetable, reads nothing.
        let fits = reads.is_empty() || reads.len() == writes.len();
        assert!(fits, "{} chunks read, {} written", reads.len(), writes.len());
        let is_read = vec![reads.is_empty(); writes.len()];
        let chunks = CHUNKS;
        Self { reads, writes, is_read, next_read: 0, next_write: 0, written: 0, waited_for, chunks }
    }

    /// Returns the merge with another number of chunks in memory at once.
    pub fn with_chunks(self, chunks: usize) -> Self {
        Self { chunks, ..self }
    }

    /// Returns the next chunk that may start, if any.
    pub fn next(&mut self) -> Option<(Step, Progress)> {
        let next = self.next_write;
        if self.is_read.get(next).is_some_and(|is_read| *is_read)
            && next - self.written < self.chunks
        {
            self.next_write += 1;
            return Some((self.writes[next], Progress::Write));
        }
        let chunk = self.next_read;
        if chunk >= self.reads.len() || chunk - self.written >= self.chunks {
            return None;
        }
        self.next_read += 1;
        Some((self.reads[chunk], Progress::Read(chunk)))
    }

    /// Notes that a chunk has ended.
    pub fn done(&mut self, progress: Progress) {
        match progress {
            Progress::Read(chunk) => self.is_read[chunk] = true,
            Progress::Write => self.written += 1,
        }
    }

    /// Returns whether everything is on flash.
    pub fn is_over(&self) -> bool {
        self.written == self.writes.len()
    }

    /// Returns whether an insert waits for it.
    pub fn is_waited_for(&self) -> bool {
        self.waited_for
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(kind: RequestKind, page: u64) -> Step {
        Step { kind, page, pages: 128, wave: 0 }
    }

    #[test]
    fn four_chunks_are_in_memory_and_each_is_written_once_it_was_read() {
        let chunks = |kind| (0..6).map(move |chunk| step(kind, chunk * 128));
        let steps: Vec<Step> =
            chunks(RequestKind::Read).chain(chunks(RequestKind::Write)).collect();
        let mut merge = Merge::new(&steps, false);
        for chunk in 0..4 {
            assert_eq!(merge.next().unwrap().1, Progress::Read(chunk));
        }
        assert_eq!(merge.next(), None);
        merge.done(Progress::Read(1));
        assert_eq!(merge.next(), None, "chunk 0 comes first");
        merge.done(Progress::Read(0));
        assert_eq!(merge.next(), Some((step(RequestKind::Write, 0), Progress::Write)));
        assert_eq!(merge.next(), Some((step(RequestKind::Write, 128), Progress::Write)));
        assert_eq!(merge.next(), None);
        merge.done(Progress::Write);
        assert_eq!(merge.next(), Some((step(RequestKind::Read, 512), Progress::Read(4))));
        assert!(!merge.is_over());
    }

    #[test]
    fn a_buffer_that_is_written_as_it_is_waits_for_no_read() {
        let mut merge = Merge::new(&[step(RequestKind::Write, 7)], true);
        assert_eq!(merge.next(), Some((step(RequestKind::Write, 7), Progress::Write)));
        merge.done(Progress::Write);
        assert!(merge.is_over() && merge.is_waited_for());
    }
}
