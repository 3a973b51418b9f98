//! The progress of one transfer, and whether to continue: the same rules for every engine.

use std::io;

use crate::{OpKind, PAGE_BYTES};

/// The number of consecutive answers without progress before a transfer fails.
const STALLS_MAX: u32 = 1_000;

/// The progress of one transfer.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Progress {
    /// Finished bytes, always whole pages: direct transfers must continue from an aligned place.
    pub bytes: usize,
    stalls: u32,
}

/// The next step after an answer of the kernel.
#[derive(Debug)]
pub(super) enum TransferStep {
    /// All bytes are done.
    Finished,
    /// Ask again, from `bytes` on.
    Again,
    /// Stop with an error.
    Failed(io::Error),
}

impl Progress {
    /// Processes the kernel's answer to a transfer of the bytes from `self.bytes` up to `total`.
    pub(super) fn advance(
        &mut self,
        kind: OpKind,
        total: usize,
        answer: io::Result<usize>,
    ) -> TransferStep {
        match answer {
            Ok(0) => return TransferStep::Failed(nothing_moved(kind)),
            Ok(moved) if self.bytes + moved >= total => return TransferStep::Finished,
            Ok(moved) if moved >= PAGE_BYTES => {
                self.bytes += moved / PAGE_BYTES * PAGE_BYTES;
                self.stalls = 0;
                return TransferStep::Again;
            }
            Err(source) if !is_passing(&source) => return TransferStep::Failed(source),
            Ok(_) | Err(_) => {}
        }
        self.stalls += 1;
        if self.stalls < STALLS_MAX {
            return TransferStep::Again;
        }
        TransferStep::Failed(answer.err().unwrap_or_else(|| nothing_moved(kind)))
    }
}

/// Returns whether the error is temporary: interrupted, temporarily out of some resource, or cancelled because the
/// thread that had pushed the operation into a ring has ended. None of these says anything about the pages.
fn is_passing(error: &io::Error) -> bool {
    use rustix::io::Errno;
    [Errno::INTR, Errno::AGAIN, Errno::CANCELED]
        .iter()
        .any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}

fn nothing_moved(kind: OpKind) -> io::Error {
    match kind {
        OpKind::Read => io::Error::new(
            io::ErrorKind::UnexpectedEof,
            "the file ends before these pages; has it been truncated?",
        ),
        OpKind::Write => io::Error::new(io::ErrorKind::WriteZero, "the kernel took no bytes"),
    }
}

#[cfg(test)]
mod tests {
    use rustix::io::Errno;

    use super::*;

    const TOTAL: usize = 3 * PAGE_BYTES;

    #[test]
    fn a_whole_transfer_is_finished_at_once() {
        let next = Progress::default().advance(OpKind::Read, TOTAL, Ok(TOTAL));
        assert!(matches!(next, TransferStep::Finished));
    }

    #[test]
    fn a_short_transfer_goes_on_from_the_last_whole_page() {
        let mut progress = Progress::default();
        let next = progress.advance(OpKind::Write, TOTAL, Ok(PAGE_BYTES + 512));
        assert!(matches!(next, TransferStep::Again));
        assert_eq!(progress.bytes, PAGE_BYTES);
        let next = progress.advance(OpKind::Write, TOTAL, Ok(2 * PAGE_BYTES));
        assert!(matches!(next, TransferStep::Finished));
    }

    #[test]
    fn nothing_read_is_the_end_of_the_file_and_no_loop() {
        let next = Progress::default().advance(OpKind::Read, TOTAL, Ok(0));
        let TransferStep::Failed(error) = next else { panic!("{next:?}") };
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn interruptions_are_tried_again_but_not_for_ever() {
        for errno in [Errno::INTR, Errno::AGAIN, Errno::CANCELED] {
            let mut progress = Progress::default();
            for _ in 1..STALLS_MAX {
                let next = progress.advance(OpKind::Read, TOTAL, Err(errno.into()));
                assert!(matches!(next, TransferStep::Again));
            }
            let next = progress.advance(OpKind::Read, TOTAL, Err(errno.into()));
            assert!(matches!(next, TransferStep::Failed(_)));
        }
    }

    #[test]
    fn crumbs_smaller_than_a_page_are_given_up_in_the_end() {
        let mut progress = Progress::default();
        let mut answers = 0;
        while let TransferStep::Again = progress.advance(OpKind::Write, TOTAL, Ok(512)) {
            answers += 1;
        }
        assert_eq!((answers, progress.bytes), (STALLS_MAX - 1, 0));
    }

    #[test]
    fn a_bad_sector_fails_at_once() {
        let next = Progress::default().advance(OpKind::Read, TOTAL, Err(Errno::IO.into()));
        assert!(matches!(next, TransferStep::Failed(_)));
    }
}
