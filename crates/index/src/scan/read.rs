//! The reads of a pass: long runs of pages, each of which is verified.

use nandex_device::Device;
use nandex_store::page::{Page, PageLabel, RawPage};
use nandex_store::proven::{FailedRead, read_each};
use nandex_store::{PageRun, ReadAhead};

use crate::Result;

/// The maximum number of pages that an iteration reads at once: 512 KiB.
const CHUNK_PAGES: usize = 128;

/// The way in which a pass reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Reads {
    /// Several reads ahead of the current page. A failed read ends the pass.
    Ahead,
    /// One read after the other.
    Each(FailedRead),
}

/// Reads the pages with these labels, consecutive ones at once. Passes each to `visit` with its index: verified, or
/// with the reason why it cannot be.
///
/// # Errors
/// Those of `visit`; a failed read, if the pass reads ahead.
pub(crate) fn read(
    device: &dyn Device,
    labels: &[PageLabel],
    reads: Reads,
    visit: &mut dyn FnMut(usize, nandex_store::Result<Page<'_>>) -> Result<()>,
) -> Result<()> {
    let runs = labels.chunk_by(|page, next| page.page.plus(1) == next.page);
    let mut before = 0;
    match reads {
        Reads::Ahead => {
            let runs = runs.map(|run| PageRun { first: run[0].page, pages: run.len() as u64 });
            ReadAhead::default().read(device, runs, |_, buf| {
                (0..buf.pages()).try_for_each(|at| {
                    let index = before;
                    before += 1;
                    visit(index, RawPage::new(buf.page(at)).check(labels[index]))
                })
            })
        }
        Reads::Each(on_failure) => {
            runs.flat_map(|run| run.chunks(CHUNK_PAGES)).try_for_each(|run| {
                let mut visited = Ok(());
                read_each(device, run, on_failure, &mut |at, page| {
                    if visited.is_ok() {
                        visited = visit(before + at, page);
                    }
                });
                before += run.len();
                visited
            })
        }
    }
}
