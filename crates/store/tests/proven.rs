//! Unreadable pages hide no others.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use nandex_device::{Device, PAGE_BYTES, PageBuf, PageId};
use nandex_sim::{Fault, FaultKind, FaultOn, FaultSpan, SimDevice};
use nandex_store::StructureId;
use nandex_store::page::{PageKind, PageLabel, seal};
use nandex_store::proven::{FailedRead, read_each};

const PAGES: usize = 5;

fn label(index: usize) -> PageLabel {
    let page = PageId(2 + index as u64);
    PageLabel { kind: PageKind::Data, structure: StructureId(1), generation: 3, page }
}

fn device() -> SimDevice {
    let device = SimDevice::instant();
    device.grow(2 + PAGES as u64).unwrap();
    let mut buf = PageBuf::zeroed(PAGES);
    (0..PAGES).for_each(|index| seal(buf.page_mut(index), label(index)));
    device.write(PageId(2), buf).unwrap();
    device
}

/// Returns the state of each page: verified, or the reason why it is invalid.
fn read(device: &SimDevice, failed: FailedRead) -> Vec<Result<(), String>> {
    let labels: Vec<_> = (0..PAGES).map(label).collect();
    let mut read = Vec::new();
    read_each(device, &labels, failed, &mut |index, page| {
        assert_eq!(index, read.len());
        read.push(page.map(drop).map_err(|error| error.to_string()));
    });
    read
}

#[test]
fn a_page_that_cannot_be_read_is_told_and_its_neighbours_are_read() {
    let device = device();
    assert!(read(&device, FailedRead::Splits).iter().all(Result::is_ok));
    let seen = device.seen(FaultOn::Read);
    // The read of all pages, and of the third one alone.
    for at in [seen + 1, seen + 1 + 3] {
        let (on, kind, span) = (FaultOn::Read, FaultKind::Io, FaultSpan::Once);
        device.arm(Fault { on, at, kind, span });
    }
    let all = read(&device, FailedRead::Splits);
    assert!(all[2].as_ref().unwrap_err().contains("page 4 failed"), "{all:?}");
    assert_eq!(all.iter().filter(|page| page.is_ok()).count(), PAGES - 1);
}

#[test]
fn a_page_that_is_not_what_it_should_be_is_told_alone() {
    let device = device();
    let mut buf = device.read(PageId(3), PageBuf::zeroed(1)).unwrap();
    buf[PAGE_BYTES / 2] ^= 1;
    device.write(PageId(3), buf).unwrap();
    let all = read(&device, FailedRead::Splits);
    assert!(all[1].as_ref().unwrap_err().contains("expected checksum"), "{all:?}");
    assert_eq!(all.iter().filter(|page| page.is_ok()).count(), PAGES - 1);
}

#[test]
fn a_read_that_fails_once_is_told_where_nothing_may_be_left_out() {
    let device = device();
    let (on, kind, span) = (FaultOn::Read, FaultKind::Io, FaultSpan::Once);
    device.arm(Fault { on, at: device.seen(on) + 1, kind, span });
    let all = read(&device, FailedRead::Ends);
    assert!(matches!(&all[..], [Err(text)] if text.contains("page 2 failed")), "{all:?}");
}
