//! The cost of a flush on a raw flash chip, measured on the simulated one and compared with the formulas of NSDI'10,
//! section 6.1, to the nanosecond.
//!
//! A partition of the chip holds incarnations of `n_i` pages one after another, each written over the oldest,
//! regardless of the block of `n_b` pages. There are two ways to do so, and the paper's C2 and C3 each belong to one of
//! them:
//!
//! - [`Partition::flush_keeping`] saves the other contents of the blocks that it must erase, and puts them back (C3).
//!   Then every flush erases, even if `n_i` is less than `n_b`, for which C2 charges a share.
//! - [`Partition::flush_evicting`] erases a block with all its contents when it enters it, as in section 5.2. Then an
//!   erase serves `n_b / n_i` flushes, as in C2, and nothing is copied.
//!
//! So for small incarnations C1 + C2 + C3 is between the two; from the size of a block on, the first is the formula.

use std::ops::Range;

use nandex::raw::bufferhash::model::paper::{FlashCosts, Linear, Medium};
use nandex_device::{Device, PAGE_BYTES, PageBuf, PageId};
use nandex_sim::{Fill, SimDevice};

use super::{BUS_NS, COMMAND_NS, ERASE_NS, PROGRAM_NS, READ_NS};

const BLOCK_PAGES: u64 = 32;
/// The paper's s: 16 bytes at half fill.
const ENTRY_BYTES: f64 = 32.0;

/// A plane of large-block SLC: blocks of 128 KiB as in the paper, in pages of 4 KiB.
fn chip() -> SimDevice {
    super::raw_chip(256, BLOCK_PAGES as u32, Fill::Empty)
}

/// Returns the linear costs of the chip by construction. All numbers are multiples of powers of two, so the floats are
/// exact.
fn costs() -> FlashCosts {
    let page = PAGE_BYTES as f64;
    let per_page = |ns: u64| Linear { fixed_ns: COMMAND_NS as f64, byte_ns: ns as f64 / page };
    FlashCosts {
        medium: Medium::Chip,
        page_bytes: page,
        block_bytes: page * BLOCK_PAGES as f64,
        read: per_page(READ_NS + BUS_NS),
        write: per_page(PROGRAM_NS + BUS_NS),
        erase: Linear {
            fixed_ns: COMMAND_NS as f64,
            byte_ns: ERASE_NS as f64 / (page * BLOCK_PAGES as f64),
        },
    }
}

fn bytes(pages: u64) -> f64 {
    pages as f64 * PAGE_BYTES as f64
}

/// A super table's part of the chip, full of incarnations; each page carries its incarnation's number.
struct Partition {
    device: SimDevice,
    incarnation_pages: u64,
    slots: u64,
    /// Incarnations written so far; number `q` is in slot `q mod slots`.
    written: u64,
    /// The incarnation in each slot, as long as all of it is there.
    held: Vec<Option<u64>>,
}

impl Partition {
    /// Returns a partition of at least four incarnations in whole blocks, all written.
    fn full(incarnation_pages: u64) -> Self {
        let blocks = (1..).find(|blocks| {
            let pages = blocks * BLOCK_PAGES;
            pages.is_multiple_of(incarnation_pages) && pages / incarnation_pages >= 4
        });
        let slots = blocks.unwrap() * BLOCK_PAGES / incarnation_pages;
        let device = chip();
        device.grow(slots * incarnation_pages).unwrap();
        let held = vec![None; slots as usize];
        let mut partition = Self { device, incarnation_pages, slots, written: 0, held };
        (0..slots).for_each(|_| partition.write_next());
        partition
    }

    fn range(&self, slot: u64) -> Range<u64> {
        slot * self.incarnation_pages..(slot + 1) * self.incarnation_pages
    }

    fn write_next(&mut self) {
        let slot = self.written % self.slots;
        let mut buf = PageBuf::zeroed(self.incarnation_pages as usize);
        buf.fill(self.written as u8);
        self.device.write(PageId(self.range(slot).start), buf).unwrap();
        self.held[slot as usize] = Some(self.written);
        self.written += 1;
    }

    fn erase(&self, pages: Range<u64>) {
        self.device.discard(PageId(pages.start)..PageId(pages.end)).unwrap();
    }

    fn read(&self, pages: &Range<u64>) -> PageBuf {
        let buf = PageBuf::zeroed((pages.end - pages.start) as usize);
        self.device.read(PageId(pages.start), buf).unwrap()
    }

    fn put_back(&self, run: &Range<u64>, saved: Option<PageBuf>) {
        if let Some(saved) = saved {
            self.device.write(PageId(run.start), saved).unwrap();
        }
    }

    /// Writes an incarnation over the oldest and keeps all others; returns the time it took.
    fn flush_keeping(&mut self) -> u64 {
        let start_ns = self.device.now();
        let new = self.range(self.written % self.slots);
        let blocks = blocks_around(&new);
        let runs = [blocks.start..new.start, new.end..blocks.end];
        let saved = runs.clone().map(|run| (!run.is_empty()).then(|| self.read(&run)));
        self.erase(blocks);
        let [before, after] = saved;
        self.put_back(&runs[0], before);
        self.write_next();
        self.put_back(&runs[1], after);
        self.device.now() - start_ns
    }

    /// Writes an incarnation and erases each block that it enters, with all its contents; returns the time it took.
    fn flush_evicting(&mut self) -> u64 {
        let start_ns = self.device.now();
        let new = self.range(self.written % self.slots);
        let entered = new.start.next_multiple_of(BLOCK_PAGES)..blocks_around(&new).end;
        if !entered.is_empty() {
            for slot in 0..self.slots {
                let range = self.range(slot);
                if range.start < entered.end && entered.start < range.end {
                    self.held[slot as usize] = None;
                }
            }
            self.erase(entered);
        }
        self.write_next();
        self.device.now() - start_ns
    }

    /// Checks that everything that should be there is, byte by byte; returns the number of incarnations.
    fn check(&self) -> usize {
        for (slot, number) in self.held.iter().enumerate() {
            let Some(number) = number else { continue };
            let read = self.read(&self.range(slot as u64));
            assert!(read.iter().all(|&byte| byte == *number as u8), "incarnation {number}");
        }
        self.held.iter().flatten().count()
    }

    /// Returns the runs of other incarnations' pages in the blocks of the next incarnation.
    fn runs(&self) -> u64 {
        let new = self.range(self.written % self.slots);
        let blocks = blocks_around(&new);
        u64::from(blocks.start < new.start) + u64::from(new.end < blocks.end)
    }
}

fn blocks_around(pages: &Range<u64>) -> Range<u64> {
    pages.start / BLOCK_PAGES * BLOCK_PAGES..pages.end.next_multiple_of(BLOCK_PAGES)
}

#[test]
fn reads_writes_and_erases_cost_what_the_linear_functions_say() {
    let costs = costs();
    let device = chip();
    device.grow(8 * BLOCK_PAGES).unwrap();
    let timed = |act: &dyn Fn()| {
        let start_ns = device.now();
        act();
        (device.now() - start_ns) as f64
    };
    for pages in [1, 2, 7, 31, 32, 33, 100, 256] {
        let erase_ns = timed(&|| device.discard(PageId(0)..PageId(8 * BLOCK_PAGES)).unwrap());
        assert_eq!(erase_ns, costs.erase.ns(8.0 * costs.block_bytes));
        let buf = || PageBuf::zeroed(pages as usize);
        let write_ns = timed(&|| drop(device.write(PageId(0), buf()).unwrap()));
        assert_eq!(write_ns, costs.write.ns(bytes(pages)));
        let read_ns = timed(&|| drop(device.read(PageId(0), buf()).unwrap()));
        assert_eq!(read_ns, costs.read.ns(bytes(pages)));
    }
    let erase_ns = timed(&|| device.discard(PageId(0)..PageId(BLOCK_PAGES)).unwrap());
    assert_eq!(erase_ns, costs.erase.ns(costs.block_bytes));
    let read_ns = timed(&|| drop(device.read(PageId(5), PageBuf::zeroed(1)).unwrap()));
    assert_eq!(read_ns, costs.page_read_ns(), "c_r of section 6.2");
}

/// Sizes whose remainder over whole blocks divides the block, so that every incarnation touches as many
/// blocks as it needs and no more: what ceil(n_i / n_b) in C2 assumes.
const PAGES: [u64; 12] = [1, 2, 4, 8, 16, 32, 40, 48, 64, 80, 96, 128];

#[test]
fn a_flush_that_keeps_the_others_costs_the_papers_c1_c2_and_c3() {
    let costs = costs();
    for pages in PAGES {
        let mut partition = Partition::full(pages);
        let flush = bytes(pages);
        let [c1, c2, c3] =
            [costs.flush_write_ns(flush), costs.flush_erase_ns(flush), costs.flush_copy_ns(flush)];
        let all_erased = costs.erase.ns(bytes(pages.next_multiple_of(BLOCK_PAGES)));
        let fixed = costs.read.fixed_ns + costs.write.fixed_ns;
        let slots = partition.slots;
        for _ in 0..2 * slots {
            let runs = partition.runs() as f64;
            let measured = partition.flush_keeping() as f64;
            // C3 has the fixed costs of one run before or after; there may be none or two. And if an incarnation is
            // smaller than a block C2 has its share of an erase, but each flush needs a whole one.
            let not_in_c2 = all_erased - c2;
            assert_eq!(measured, c1 + c2 + c3 + not_in_c2 + (runs - 1.0) * fixed, "{pages} pages");
            assert!(pages < BLOCK_PAGES || not_in_c2 == 0.0);
            assert_eq!(partition.check() as u64, slots);
        }
    }
}

#[test]
fn a_flush_of_one_block_costs_c1_and_c2_and_copies_nothing() {
    let costs = costs();
    let mut partition = Partition::full(BLOCK_PAGES);
    let flush = bytes(BLOCK_PAGES);
    let expected = costs.flush_write_ns(flush) + costs.flush_erase_ns(flush);
    for _ in 0..10 {
        assert_eq!(partition.runs(), 0);
        assert_eq!(partition.flush_keeping() as f64, expected);
        assert_eq!(partition.flush_evicting() as f64, expected);
    }
    // In numbers: 32 programs with their transfers, one erase, two commands.
    assert_eq!(expected, 32.0 * 609_600.0 + 1_500_000.0 + 10_000.0);
    assert_eq!(costs.flush_copy_ns(flush), 10_000.0, "the fixed costs that the formula charges");
}

#[test]
fn a_ring_that_erases_as_it_enters_blocks_costs_c1_and_c2_on_average() {
    let costs = costs();
    for pages in [1, 2, 4, 8, 16, 32, 64, 96, 128] {
        let mut partition = Partition::full(pages);
        let (slots, flush) = (partition.slots, bytes(pages));
        let total: u64 = (0..2 * slots).map(|_| partition.flush_evicting()).sum();
        let per_flush = costs.flush_write_ns(flush) + costs.flush_erase_ns(flush);
        assert_eq!(total as f64, per_flush * 2.0 * slots as f64, "{pages} pages");
        // The price is the space of the block that was entered: it counts for one incarnation less than it holds, until
        // it is full again.
        partition.flush_evicting();
        let lost = (BLOCK_PAGES / pages).saturating_sub(1);
        assert_eq!(partition.check() as u64, slots - lost, "{pages} pages");
    }
}

#[test]
fn the_formula_is_between_the_two_rings_for_incarnations_smaller_than_a_block() {
    let costs = costs();
    for pages in [1, 2, 4, 8, 16] {
        let formula = costs.insert_worst_ns(bytes(pages));
        let mut partition = Partition::full(pages);
        let slots = partition.slots;
        let evicting: u64 = (0..slots).map(|_| partition.flush_evicting()).sum();
        let mut partition = Partition::full(pages);
        let keeping: u64 = (0..slots).map(|_| partition.flush_keeping()).sum();
        let formula = formula * slots as f64;
        assert!((evicting as f64) < formula && formula < keeping as f64, "{pages} pages");
    }
}

#[test]
fn figure_4a_a_buffer_of_one_block_costs_least_on_average_and_at_worst() {
    // Measured: the worst flush, and the flushes' share of an insert, in nanoseconds.
    let measure = |pages: u64| {
        let mut partition = Partition::full(pages);
        let times: Vec<_> = (0..partition.slots).map(|_| partition.flush_keeping()).collect();
        let mean = times.iter().sum::<u64>() as f64 / times.len() as f64;
        let worst = times.into_iter().max().unwrap() as f64;
        (worst, mean * ENTRY_BYTES / bytes(pages))
    };
    let (worst_at_block, mean_at_block) = measure(BLOCK_PAGES);
    for pages in (1..=BLOCK_PAGES * 4).filter(|pages| *pages != BLOCK_PAGES) {
        let (worst, mean) = measure(pages);
        assert!(worst > worst_at_block, "{pages} pages");
        // Whole multiples share the fixed cost of one operation, 10 us in 21 ms.
        let bound = if pages % BLOCK_PAGES == 0 { 0.999 } else { 1.0 };
        assert!(mean > mean_at_block * bound, "{pages} pages");
    }
    // Smaller buffers cost more with each halving on average, larger ones with each block in the worst case.
    let means = [1, 2, 4, 8, 16, 32].map(|pages| measure(pages).1);
    assert!(means.is_sorted_by(|small, large| small > large), "{means:?}");
    let worst = [32, 64, 96, 128].map(|pages| measure(pages).0);
    assert!(worst.is_sorted_by(|small, large| small < large), "{worst:?}");
}
