//! Reads pages of which some may be damaged: each is proven by itself, so that a damaged one hides no other.

use nandex_device::{Device, PageBuf};

use crate::Result;
use crate::page::{Page, PageLabel, RawPage};

/// What follows a read of several pages that fails.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FailedRead {
    /// The first of them is passed with the failure, and no other.
    Ends,
    /// They are read one by one, which finds those that can be read.
    Splits,
}

/// Reads the pages with these labels, which are one behind the other, at once. Passes each to `visit` with its
/// index among them: proven, or with the reason why it cannot be.
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
