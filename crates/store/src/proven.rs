//! Reads pages, some of which may be damaged: each is verified separately, so that a damaged one hides no other.

use nandex_device::{Device, PageBuf};

use crate::Result;
use crate::page::{Page, PageLabel, RawPage};

/// The reaction to a failed read of several pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FailedRead {
    /// The first of them is passed with the failure, and no other page.
    Ends,
    /// The pages are read one by one, which finds those that can be read.
    Splits,
}

/// Reads consecutive pages with these labels at once. Passes each to `visit` with its index among them: verified, or
/// with the reason why it is invalid.
pub fn read_each(
    device: &dyn Device,
    labels: &[PageLabel],
    failed: FailedRead,
    visit: &mut dyn FnMut(usize, Result<Page<'_>>),
) {
    let Some(first) = labels.first() else { return };
    match device.read(first.page, PageBuf::zeroed(labels.len())) {
        Ok(buf) => {
            for (index, label) in labels.iter().enumerate() {
                visit(index, RawPage::new(buf.page(index)).check(*label));
            }
        }
        Err(error) if labels.len() == 1 || failed == FailedRead::Ends => {
            visit(0, Err(error.into()));
        }
        Err(_) => {
            for (index, label) in labels.iter().enumerate() {
                read_each(device, &[*label], failed, &mut |_, page| visit(index, page));
            }
        }
    }
}
