//! Reads pages of which some may be damaged: each is proven by itself, so that a damaged one hides no other.

use nandex_device::{Device, PageBuf};

use crate::Result;
use crate::page::{Page, PageLabel, RawPage};

/// Reads the pages with these labels, which are one behind the other, at once. Passes each to `visit` with its
/// index among them: proven, or with the reason why it cannot be.
///
/// If the read fails, the pages are read one by one, which finds those that can be read.
pub fn read_each(
    device: &dyn Device,
    labels: &[PageLabel],
    visit: &mut dyn FnMut(usize, Result<Page<'_>>),
) {
    let Some(first) = labels.first() else { return };
    match device.read(first.page, PageBuf::zeroed(labels.len())) {
        Ok(buf) => {
            for (index, label) in labels.iter().enumerate() {
                visit(index, RawPage::new(buf.page(index)).check(*label));
            }
        }
        Err(error) if labels.len() == 1 => visit(0, Err(error.into())),
        Err(_) => {
            for (index, label) in labels.iter().enumerate() {
                read_each(device, &[*label], &mut |_, page| visit(index, page));
            }
        }
    }
}
