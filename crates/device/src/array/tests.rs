//! Arrays of memory: the laws, borders, errors with their member, and operations passed on without a copy.

use super::*;
use crate::{Counted, MemoryDevice, Op, laws};

fn memories(count: usize) -> Vec<Arc<dyn Device>> {
    (0..count).map(|_| Arc::new(MemoryDevice::new()) as Arc<dyn Device>).collect()
}

fn op(kind: OpKind, page: u64, pages: usize) -> Op {
    Op { token: page, kind, page: PageId(page), buf: PageBuf::zeroed(pages) }
}

#[test]
fn arrays_of_every_shape_keep_the_laws() {
    for (members, pages) in [(1, 1), (2, 1), (3, 2), (4, 3), (2, 64), (3, 1_000)] {
        laws::check(&ArrayDevice::new(memories(members), Striping::Extent { pages }).unwrap());
    }
    for (members, pages) in [(1, 64), (2, 32), (3, 22), (64, 1)] {
        laws::check(&ArrayDevice::new(memories(members), Striping::Partition { pages }).unwrap());
    }
}

#[test]
fn arrays_of_arrays_keep_the_laws() {
    let inner = |_| {
        let array = ArrayDevice::new(memories(2), Striping::Extent { pages: 1 }).unwrap();
        Arc::new(array) as Arc<dyn Device>
    };
    let members = (0..2).map(inner).collect();
    laws::check(&ArrayDevice::new(members, Striping::Extent { pages: 3 }).unwrap());
}

#[test]
fn a_partition_is_where_the_caller_put_it() {
    let members = memories(3);
    let array = ArrayDevice::new(members.clone(), Striping::Partition { pages: 4 }).unwrap();
    array.grow(10).unwrap();
    let counts: Vec<u64> = members.iter().map(|member| member.page_count()).collect();
    assert_eq!(counts, [4, 4, 2]);
    let mut buf = PageBuf::zeroed(1);
    buf.fill(9);
    array.write(PageId(6), buf).unwrap();
    assert_eq!(members[1].read(PageId(2), PageBuf::zeroed(1)).unwrap()[0], 9);
}

#[test]
fn partitions_end_where_they_were_said_to() {
    let array = ArrayDevice::new(memories(2), Striping::Partition { pages: 4 }).unwrap();
    assert!(matches!(array.grow(9), Err(Error::NoSpace { wanted_bytes: 36_864, .. })));
    assert!(matches!(array.grow(u64::MAX), Err(Error::NoSpace { .. })));
}

#[test]
fn an_operation_on_one_member_keeps_its_buffer_and_costs_one_operation() {
    let member = Arc::new(Counted::new(MemoryDevice::new()));
    let members = vec![Arc::clone(&member) as Arc<dyn Device>, memories(1).remove(0)];
    let array = ArrayDevice::new(members, Striping::Extent { pages: 4 }).unwrap();
    array.grow(16).unwrap();
    let mut queue = array.queue(2).unwrap();
    let op = op(OpKind::Read, 8, 4);
    let place = op.buf.as_ptr();
    queue.push(op).unwrap();
    let mut done = Vec::new();
    queue.wait(1, &mut done).unwrap();
    assert_eq!(done[0].buf.as_ptr(), place);
    assert_eq!((done[0].token, done[0].page), (8, PageId(8)));
    assert_eq!((member.snapshot().reads, member.snapshot().pages_read), (1, 4));
}

#[test]
fn parts_beyond_a_members_depth_wait_their_turn() {
    let array = ArrayDevice::new(memories(2), Striping::Extent { pages: 1 }).unwrap();
    array.grow(64).unwrap();
    let mut queue = array.queue(2).unwrap();
    queue.push(op(OpKind::Write, 0, 32)).unwrap();
    queue.push(op(OpKind::Read, 32, 32)).unwrap();
    assert!(matches!(queue.push(op(OpKind::Read, 0, 1)), Err(Error::QueueFull { depth: 2 })));
    let mut done = Vec::new();
    queue.wait(2, &mut done).unwrap();
    assert_eq!((done.len(), queue.in_flight()), (2, 0));
    queue.push(op(OpKind::Write, 0, 64)).unwrap();
}

#[test]
fn a_dropped_queue_has_written_its_backlog_too() {
    let members = memories(2);
    let array = ArrayDevice::new(members.clone(), Striping::Extent { pages: 1 }).unwrap();
    array.grow(64).unwrap();
    let mut queue = array.queue(1).unwrap();
    let mut op = op(OpKind::Write, 0, 64);
    op.buf.fill(3);
    queue.push(op).unwrap();
    drop(queue);
    for member in members {
        let buf = member.read(PageId(0), PageBuf::zeroed(32)).unwrap();
        assert!(buf.iter().all(|&byte| byte == 3));
    }
}

#[test]
fn members_that_do_not_fit_are_refused() {
    let refused =
        |members, striping| matches!(ArrayDevice::new(members, striping), Err(Error::Array { .. }));
    assert!(refused(Vec::new(), Striping::Extent { pages: 1 }));
    assert!(refused(memories(2), Striping::Extent { pages: 0 }));
    assert!(refused(memories(2), Striping::Partition { pages: u64::MAX }));
}

#[test]
fn the_report_lists_every_member() {
    let array = ArrayDevice::new(memories(2), Striping::Extent { pages: 1 }).unwrap();
    assert_eq!(array.engine().name, "memory, memory");
    assert!(array.engine().reason.contains("member 1: "));
    assert_eq!(array.geometry().depth, 64);
}
