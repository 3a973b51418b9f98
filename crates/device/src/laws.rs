//! The laws of [`Device`] as a check that every device must pass, including those of other crates.
//!
//! It is part of the crate, not of its tests, so that the author of another device can run it:
//!
//! ```
//! nandex_device::laws::check(&nandex_device::MemoryDevice::new());
//! ```

use std::collections::BTreeSet;
use std::thread;

use crate::{Completion, Device, Error, Op, OpKind, PAGE_BYTES, PageBuf, PageId, Queue};

/// The number of pages that the check uses.
const PAGES: u64 = 64;

/// Makes the device 64 pages long if it is shorter, overwrites these, and checks every law that is visible
/// from outside. It takes milliseconds.
///
/// # Panics
/// At the first broken law, with its name; also if the device cannot be written or grown.
pub fn check(device: &dyn Device) {
    growth_shows_zeros(device);
    what_is_written_is_read(device);
    many_in_flight_come_back_each_with_its_buffer(device);
    past_the_end_is_refused(device);
    a_full_queue_refuses(device);
    waiting_ends_whatever_is_asked(device);
    a_dropped_queue_has_done_its_work(device);
    a_queue_may_move_between_threads(device);
    queues_work_side_by_side(device);
    a_discard_leaves_the_neighbours(device);
}

/// Returns a buffer in which every word holds its page number and the generation.
fn marked(page: u64, pages: usize, generation: u64) -> PageBuf {
    let mut buf = PageBuf::zeroed(pages);
    for (index, bytes) in buf.chunks_exact_mut(PAGE_BYTES).enumerate() {
        let mark = ((page + index as u64) << 16 | generation).to_le_bytes();
        bytes.chunks_exact_mut(8).for_each(|word| word.copy_from_slice(&mark));
    }
    buf
}

fn assert_marked(buf: &PageBuf, page: u64, generation: u64, law: &str) {
    assert!(**buf == *marked(page, buf.pages(), generation), "{law}: at page {page}");
}

fn read(device: &dyn Device, page: u64, pages: usize) -> PageBuf {
    device.read(PageId(page), PageBuf::zeroed(pages)).expect("a read within the device succeeds")
}

fn write(device: &dyn Device, page: u64, pages: usize, generation: u64) {
    let buf = device.write(PageId(page), marked(page, pages, generation));
    let buf = buf.expect("a write within the device succeeds");
    assert_marked(&buf, page, generation, "a write gives its buffer back unchanged");
}

fn open_queue(device: &dyn Device, depth: usize) -> Box<dyn Queue> {
    let queue = device.queue(depth).expect("a queue opens");
    assert_eq!((queue.depth(), queue.in_flight()), (depth, 0), "a new queue is empty");
    queue
}

fn push_write(queue: &mut dyn Queue, page: u64, pages: usize, generation: u64) {
    let buf = marked(page, pages, generation);
    let op = Op { token: page, kind: OpKind::Write, page: PageId(page), buf };
    queue.push(op).expect("a queue with space takes a write");
}

fn push_read(queue: &mut dyn Queue, page: u64, pages: usize) {
    let buf = PageBuf::zeroed(pages);
    let op = Op { token: page, kind: OpKind::Read, page: PageId(page), buf };
    queue.push(op).expect("a queue with space takes a read");
}

fn wait(queue: &mut dyn Queue, count_min: usize) -> Vec<Completion> {
    let mut done = Vec::new();
    queue.wait(count_min, &mut done).expect("a sound queue waits");
    for completion in &done {
        completion.result.as_ref().expect("an operation within the device succeeds");
        assert_eq!(completion.token, completion.page.0, "tokens come back with their pages");
    }
    done
}

fn growth_shows_zeros(device: &dyn Device) {
    let old = device.page_count();
    device.grow(PAGES).expect("the device can be 64 pages long");
    assert!(device.page_count() >= PAGES, "growth shows in the page count");
    for page in old..PAGES {
        assert!(read(device, page, 1).iter().all(|&byte| byte == 0), "new pages are zeros");
    }
    let page_count = device.page_count();
    device.grow(1).expect("asking for less than there is does nothing");
    assert_eq!(device.page_count(), page_count, "a device never shrinks");
}

fn what_is_written_is_read(device: &dyn Device) {
    write(device, 0, usize::try_from(PAGES).expect("small"), 1);
    write(device, 5, 3, 2);
    assert_marked(&read(device, 5, 3), 5, 2, "what is written is read");
    assert_marked(&read(device, 0, 5), 0, 1, "a write leaves the pages before it");
    assert_marked(&read(device, 8, 56), 8, 1, "a write leaves the pages behind it");
}

fn many_in_flight_come_back_each_with_its_buffer(device: &dyn Device) {
    let mut queue = open_queue(device, 16);
    let mut written = BTreeSet::new();
    for page in (0..PAGES).step_by(4) {
        push_write(&mut *queue, page, 4, 3);
    }
    while queue.in_flight() > 0 {
        written.extend(wait(&mut *queue, 3).iter().map(|completion| completion.token));
    }
    assert_eq!(written.len(), 16, "every operation comes back once");
    let mut read = BTreeSet::new();
    // A stride that is coprime to 64 visits every page out of order.
    for number in 0..PAGES {
        if queue.in_flight() == queue.depth() {
            check_reads(wait(&mut *queue, 1), &mut read);
        }
        let page = number * 29 % PAGES;
        let pages = if page % 4 == 3 { 1 } else { 2 };
        push_read(&mut *queue, page, pages);
    }
    check_reads(wait(&mut *queue, usize::MAX), &mut read);
    assert_eq!((read.len() as u64, queue.in_flight()), (PAGES, 0), "every read comes back once");
}

fn check_reads(done: Vec<Completion>, seen: &mut BTreeSet<u64>) {
    for completion in done {
        let page = completion.page.0;
        assert_marked(&completion.buf, page, 3, "a read brings the pages asked for");
        assert_eq!(completion.kind, OpKind::Read, "a read comes back as one");
        assert_eq!(
            completion.buf.pages(),
            if page % 4 == 3 { 1 } else { 2 },
            "buffers keep length"
        );
        assert!(seen.insert(page), "an operation comes back once");
    }
}

fn past_the_end_is_refused(device: &dyn Device) {
    let end = device.page_count();
    let mut queue = open_queue(device, 1);
    for (page, pages) in [(end, 1), (end - 1, 2), (u64::MAX, 1), (u64::MAX - 1, 2)] {
        let buf = || PageBuf::zeroed(pages);
        let is_refused = |error: &Error| matches!(error, Error::OutOfRange { .. });
        let error = device.read(PageId(page), buf()).expect_err("past the end");
        assert!(is_refused(&error), "a read past the end is out of range: {error}");
        let error = device.write(PageId(page), buf()).expect_err("past the end");
        assert!(is_refused(&error), "a write past the end is out of range: {error}");
        let op = Op { token: 0, kind: OpKind::Read, page: PageId(page), buf: buf() };
        let error = queue.push(op).expect_err("past the end");
        assert!(is_refused(&error), "a queued read past the end is out of range: {error}");
    }
    assert_eq!(queue.in_flight(), 0, "what is refused is not in flight");
}

fn a_full_queue_refuses(device: &dyn Device) {
    let mut queue = open_queue(device, 2);
    push_read(&mut *queue, 0, 1);
    push_read(&mut *queue, 1, 1);
    let op = Op { token: 2, kind: OpKind::Read, page: PageId(2), buf: PageBuf::zeroed(1) };
    let error = queue.push(op).expect_err("the queue is full");
    assert!(matches!(error, Error::QueueFull { depth: 2 }), "a full queue says so: {error}");
    assert_eq!(queue.in_flight(), 2, "a refused push changes nothing");
    assert_eq!(wait(&mut *queue, 2).len(), 2, "a full queue gives back what it has");
    push_read(&mut *queue, 2, 1);
}

fn waiting_ends_whatever_is_asked(device: &dyn Device) {
    let mut queue = open_queue(device, 4);
    assert!(wait(&mut *queue, 0).is_empty(), "an empty queue has nothing");
    assert!(wait(&mut *queue, 9).is_empty(), "waiting for more than there is ends");
    push_read(&mut *queue, 0, 1);
    push_read(&mut *queue, 1, 1);
    assert_eq!(wait(&mut *queue, 4).len(), 2, "waiting for more than there is gives all");
    push_read(&mut *queue, 0, 1);
    let mut polls = 0_u64;
    while wait(&mut *queue, 0).is_empty() {
        polls += 1;
        assert!(polls < 100_000_000, "polling brings the completion in the end");
        thread::yield_now();
    }
}

fn a_dropped_queue_has_done_its_work(device: &dyn Device) {
    let mut queue = open_queue(device, 32);
    (0..32).for_each(|page| push_write(&mut *queue, page, 1, 4));
    drop(queue);
    assert_marked(&read(device, 0, 32), 0, 4, "dropping a queue waits for its writes");
    let mut queue = open_queue(device, 32);
    (0..32).for_each(|page| push_read(&mut *queue, page, 1));
}

fn a_queue_may_move_between_threads(device: &dyn Device) {
    let mut queue = open_queue(device, 8);
    thread::scope(|scope| {
        scope.spawn(|| (0..8).for_each(|page| push_write(&mut *queue, page, 1, 5)));
    });
    assert_eq!(wait(&mut *queue, 8).len(), 8, "what one thread pushes another can wait for");
    (0..8).for_each(|page| push_read(&mut *queue, page, 1));
    thread::scope(|scope| {
        scope.spawn(|| push_back(&mut *queue));
    });
    for completion in wait(&mut *queue, 8) {
        assert_marked(&completion.buf, completion.page.0, 5, "a moved queue reads what it wrote");
    }
}

/// Submits by polling, and pushes early completions again.
fn push_back(queue: &mut dyn Queue) {
    for completion in wait(queue, 0) {
        push_read(queue, completion.page.0, 1);
    }
}

fn queues_work_side_by_side(device: &dyn Device) {
    thread::scope(|scope| {
        for first in (0..PAGES).step_by(16) {
            scope.spawn(move || rewrite(device, first));
        }
    });
    for page in 0..PAGES {
        assert_marked(&read(device, page, 1), page, 15, "queues do not disturb one another");
    }
}

/// Writes ten generations of sixteen pages, the last one being 15.
fn rewrite(device: &dyn Device, first: u64) {
    let mut queue = open_queue(device, 16);
    for generation in 6..16 {
        (first..first + 16).for_each(|page| push_write(&mut *queue, page, 1, generation));
        wait(&mut *queue, 16);
        (first..first + 16).for_each(|page| push_read(&mut *queue, page, 1));
        for completion in wait(&mut *queue, 16) {
            let law = "a completed write is seen by every later read";
            assert_marked(&completion.buf, completion.page.0, generation, law);
        }
    }
}

fn a_discard_leaves_the_neighbours(device: &dyn Device) {
    device.sync().expect("a sync succeeds");
    device.discard(PageId(9)..PageId(23)).expect("a discard succeeds");
    device.discard(PageId(30)..PageId(30)).expect("a discard of nothing succeeds");
    assert_marked(&read(device, 0, 9), 0, 15, "a discard leaves the pages before it");
    assert_marked(&read(device, 23, 41), 23, 15, "a discard leaves the pages behind it");
    write(device, 9, 14, 16);
    assert_marked(&read(device, 9, 14), 9, 16, "discarded pages can be written again");
    device.sync().expect("a sync succeeds");
}
