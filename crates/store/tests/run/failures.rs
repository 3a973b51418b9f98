//! The result of failures and damage: an error, the old list, and every page where it belongs.

use std::sync::Arc;

use nandex_device::{Device, MemoryDevice, PageBuf};
use nandex_sim::{Fault, FaultKind, FaultOn, FaultSpan, SimDevice};
use nandex_store::Error;

use crate::subject::{Subject, expected, is_corrupt};

/// Fails the operation that comes after `after` others of its kind.
fn fault(device: &SimDevice, on: FaultOn, after: u64) {
    let (at, kind, span) = (device.seen(on) + 1 + after, FaultKind::Io, FaultSpan::Once);
    device.arm(Fault { on, at, kind, span });
}

fn three(device: Arc<dyn Device>) -> Subject {
    let subject = Subject::create(device).unwrap();
    (0..3).for_each(|_| subject.add().unwrap());
    subject.volume().checkpoint().unwrap();
    subject
}

/// The last write of a run ends after the last push: only the finish can report its failure.
#[test]
fn a_failed_write_be_it_the_last_fails_the_run_and_poisons_the_volume() {
    let device = SimDevice::instant();
    let subject = three(Arc::new(device.clone()));
    let before = device.seen(FaultOn::Write);
    subject.merge().unwrap();
    let writes = device.seen(FaultOn::Write) - before;
    assert!(writes > 0);
    for failing in 0..writes {
        let device = SimDevice::instant();
        let subject = three(Arc::new(device.clone()));
        let (runs, others) = (subject.runs(), subject.other_pages());
        fault(&device, FaultOn::Write, failing);
        assert!(matches!(subject.merge(), Err(Error::Device(_))), "write {failing}");
        assert_eq!((subject.runs(), subject.other_pages()), (runs, others), "its pages went back");
        assert!(matches!(subject.add(), Err(Error::Poisoned { .. })));
        assert_eq!(subject.contents().unwrap(), expected(3));
    }
}

#[test]
fn a_failed_read_ends_a_merge_and_it_can_be_tried_again() {
    let device = SimDevice::instant();
    let subject = three(Arc::new(device.clone()));
    let runs = subject.runs();
    fault(&device, FaultOn::Read, 1);
    assert!(matches!(subject.merge(), Err(Error::Device(_))));
    assert_eq!(subject.runs(), runs);
    subject.merge().unwrap();
    assert_eq!((subject.runs().len(), subject.contents().unwrap()), (1, expected(3)));
}

/// Otherwise a merge would copy damaged entries under a new checksum.
#[test]
fn a_damaged_page_ends_a_merge_and_is_named() {
    let device = MemoryDevice::new();
    let subject = three(Arc::new(device.clone()));
    let runs = subject.runs();
    for run in &runs {
        let extent = run.place().extent;
        for page in (0..extent.pages).map(|at| extent.start.plus(at)) {
            let whole = device.read(page, PageBuf::zeroed(1)).unwrap();
            let mut buf = device.read(page, PageBuf::zeroed(1)).unwrap();
            // A low bit of an entry: without its checksum the page would read normally.
            buf[70] ^= 1;
            device.write(page, buf).unwrap();
            let error = subject.merge().unwrap_err();
            assert!(is_corrupt(&error) && error.to_string().contains(&page.to_string()), "{error}");
            assert_eq!(subject.runs(), runs);
            device.write(page, whole).unwrap();
        }
    }
    subject.merge().unwrap();
    assert_eq!(subject.contents().unwrap(), expected(3));
}
