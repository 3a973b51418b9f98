//! Arrays with a member that fails.

use std::sync::Arc;

use nandex_device::{ArrayDevice, Device, Error, MemoryDevice, Op, OpKind, PageBuf, PageId};
use nandex_device::{Striping, laws};
use nandex_sim::{Fault, FaultKind, FaultOn, FaultSpan, SimDevice};

fn op(kind: OpKind, page: u64, pages: usize) -> Op {
    Op { token: page, kind, page: PageId(page), buf: PageBuf::zeroed(pages) }
}

#[test]
fn an_array_of_simulated_devices_keeps_the_laws() {
    let members = (0..3).map(|_| Arc::new(SimDevice::instant()) as Arc<dyn Device>).collect();
    laws::check(&ArrayDevice::new(members, Striping::Extent { pages: 2 }).unwrap());
}

#[test]
fn an_error_names_its_member_in_queued_split_and_waiting_calls() {
    let bad = SimDevice::instant();
    for on in [FaultOn::Read, FaultOn::Write, FaultOn::Sync] {
        bad.arm(Fault { on, at: 1, kind: FaultKind::Io, span: FaultSpan::FromThenOn });
    }
    let members = vec![Arc::new(MemoryDevice::new()) as Arc<dyn Device>, Arc::new(bad)];
    let array = ArrayDevice::new(members, Striping::Extent { pages: 2 }).unwrap();
    array.grow(8).unwrap();
    let is_named = |error: Error| matches!(error, Error::Member { member: 1, .. });
    assert!(is_named(array.sync().unwrap_err()));
    assert!(is_named(array.read(PageId(2), PageBuf::zeroed(1)).unwrap_err()));
    assert!(is_named(array.write(PageId(1), PageBuf::zeroed(2)).unwrap_err()));
    array.read(PageId(4), PageBuf::zeroed(2)).unwrap();
    let mut queue = array.queue(2).unwrap();
    queue.push(op(OpKind::Read, 2, 2)).unwrap();
    queue.push(op(OpKind::Write, 1, 2)).unwrap();
    let mut done = Vec::new();
    queue.wait(2, &mut done).unwrap();
    assert_eq!(done.len(), 2);
    assert!(done.into_iter().all(|completion| is_named(completion.result.unwrap_err())));
}
