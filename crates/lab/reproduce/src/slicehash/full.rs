//! A table that takes all of a drive: the merges of a small table's tape, spread over as many slicetables as fit.
//!
//! The table grows as [full drives](crate::full) need it. Its merges are alike except for their slicetable,
//! and the times at which buffers are full determine which one comes next. A merge reads a slicetable and
//! writes a spare one, whose place is free afterwards.
//!
//! ```text
//!   tape of a table with few slicetables --> one merge after another --> places on the whole drive
//!   buffers that fill by lot ------------> which slicetable is next --^
//! ```

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use nandex_sim::workload::SplitMix64;
use nandex_sim::{RequestKind, Ssd};

use crate::full::{again, last_programmed};
use crate::tape::{Act, Step, Tape};

/// The number of places for slicetables beyond one for each.
const SPARE: u64 = 6;

/// The order in which buffers are full.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MergeOrder {
    /// Keys are random and all buffers begin empty at the same time: they are full at nearly the same time.
    Together,
    /// Keys are random and buffers begin at different fills, evenly spread.
    Staggered,
    /// Any order, at each merge, as in no real table.
    AnyOrder,
}

/// The times at which buffers are full.
#[derive(Debug)]
struct Fills {
    order: MergeOrder,
    tables: u64,
    inserts_per_flush: f64,
    next: BinaryHeap<Reverse<(u64, u64)>>,
    rng: SplitMix64,
}

impl Fills {
    fn new(order: MergeOrder, tables: u64, inserts_per_flush: f64, seed: u64) -> Self {
        let rng = SplitMix64::stream(seed, 11);
        let mut fills = Self { order, tables, inserts_per_flush, next: BinaryHeap::new(), rng };
        let inserts = (inserts_per_flush * tables as f64) as u64;
        for table in 0..tables {
            let at = match order {
                MergeOrder::Staggered => inserts * table / tables,
                MergeOrder::Together | MergeOrder::AnyOrder => fills.inserts(),
            };
            fills.next.push(Reverse((at, table)));
        }
        fills
    }

    /// Returns the number of inserts into the whole table until an empty buffer is full: nearly a normal
    /// distribution.
    fn inserts(&mut self) -> u64 {
        let uniform = |rng: &mut SplitMix64| rng.below(1 << 32) as f64 / (1_u64 << 32) as f64;
        let normal = (0..12).map(|_| uniform(&mut self.rng)).sum::<f64>() - 6.0;
        let own = self.inserts_per_flush + normal * self.inserts_per_flush.sqrt();
        (own * self.tables as f64) as u64
    }

    fn next(&mut self) -> u64 {
        if self.order == MergeOrder::AnyOrder {
            return self.rng.below(self.tables);
        }
        let inserts = self.inserts();
        let Some(mut first) = self.next.peek_mut() else { return 0 };
        let Reverse((at, table)) = *first;
        *first = Reverse((at + inserts, table));
        table
    }
}

/// The table.
#[derive(Debug)]
pub struct FullTable {
    slicetable_pages: u64,
    /// The place of each slicetable, in slicetables from the drive's beginning.
    places: Vec<u64>,
    spare: VecDeque<u64>,
    fills: Fills,
    rng: SplitMix64,
}

impl FullTable {
    /// Creates a table of as many slicetables as these pages of a drive have space for, and the spare ones,
    /// in the order of the drive.
    ///
    /// # Panics
    /// Panics if they have space for none.
    pub fn new(
        pages: u64,
        slicetable_pages: u64,
        inserts_per_flush: f64,
        order: MergeOrder,
        seed: u64,
    ) -> Self {
        let tables = (pages / slicetable_pages).checked_sub(SPARE);
        let tables = tables.expect("a drive has place for some slicetables");
        Self {
            slicetable_pages,
            places: (0..tables).collect(),
            spare: (tables..tables + SPARE).collect(),
            fills: Fills::new(order, tables, inserts_per_flush, seed),
            rng: SplitMix64::stream(seed, 12),
        }
    }

    /// Returns the number of slicetables.
    pub fn tables(&self) -> u64 {
        self.places.len() as u64
    }

    /// Returns the next merge: the first page that it reads, and the first that it writes.
    fn merge(&mut self) -> (u64, u64) {
        let table = self.fills.next() as usize;
        let target = self.spare.pop_front().expect("each merge gives a place back");
        let source = std::mem::replace(&mut self.places[table], target);
        self.spare.push_back(source);
        (source * self.slicetable_pages, target * self.slicetable_pages)
    }

    /// Writes every slicetable, and then merges every buffer `rounds` times, in no time. Returns the pages
    /// that the drive programmed for each written one, in the last of these rounds.
    pub fn age(&mut self, drive: &mut Ssd, rounds: u32) -> f64 {
        for place in &self.places {
            drive.write_at_once(place * self.slicetable_pages, self.slicetable_pages as u32);
        }
        last_programmed(drive, rounds, |drive| {
            for _ in 0..self.tables() {
                let (_, target) = self.merge();
                drive.write_at_once(target, self.slicetable_pages as u32);
            }
        })
    }

    /// Repeats the operations of a small table's tape, until there are `merges` merges. They read and write
    /// the slicetables of this one, and lookups read any of them.
    ///
    /// # Panics
    /// Panics if no operation of the tape merges.
    pub fn tape(&mut self, small: &Tape, merges: u64) -> Tape {
        again(small, merges, |act, steps| self.moved(act, steps))
    }

    fn moved(&mut self, act: Act, steps: &[Step]) -> Vec<Step> {
        match (act, steps) {
            (_, []) => Vec::new(),
            (Act::Lookup, _) => {
                let place = self.places[self.rng.below(self.tables()) as usize];
                let first = place * self.slicetable_pages;
                let page = |page| first + page % self.slicetable_pages;
                steps.iter().map(|step| Step { page: page(step.page), ..*step }).collect()
            }
            (Act::Insert, _) => {
                let (mut source, mut target) = self.merge();
                let moved = |step: &Step| {
                    let next =
                        if step.kind == RequestKind::Read { &mut source } else { &mut target };
                    let page = *next;
                    *next += u64::from(step.pages);
                    Step { page, ..*step }
                };
                steps.iter().map(moved).collect()
            }
        }
    }
}

/// Returns the tape with a slicetable read and written in pieces of `pages` pages.
pub fn in_pieces(tape: &Tape, pages: u32) -> Tape {
    let mut pieces = Tape::default();
    for (act, steps) in tape.operations() {
        let split = |step: &Step| {
            let step = *step;
            let count = step.pages.div_ceil(pages);
            (0..count).map(move |piece| {
                let first = piece * pages;
                let page = step.page + u64::from(first);
                Step { page, pages: pages.min(step.pages - first), ..step }
            })
        };
        pieces.push(act, &steps.iter().flat_map(split).collect::<Vec<_>>());
    }
    pieces
}

#[cfg(test)]
mod tests {
    use nandex_sim::Model;

    use super::*;
    use crate::Drive;

    const PAGES: u64 = 1024;

    fn table(order: MergeOrder, drive: &Ssd) -> FullTable {
        FullTable::new(drive.page_count(), PAGES, 7000.0, order, 1)
    }

    #[test]
    fn a_table_fills_the_drive_and_its_slicetables_never_share_a_place() {
        let drive = Drive::CRUCIAL.ssd().unwrap();
        let mut table = table(MergeOrder::Together, &drive);
        let used = (table.tables() + SPARE) * PAGES;
        assert!(used as f64 > 0.99 * drive.page_count() as f64);
        for _ in 0..10_000 {
            let (source, target) = table.merge();
            assert_ne!(source, target);
        }
        let all: std::collections::BTreeSet<u64> =
            table.places.iter().chain(&table.spare).copied().collect();
        assert_eq!(all.len() as u64, table.tables() + SPARE);
    }

    #[test]
    fn each_buffer_is_merged_once_a_round_except_in_any_order() {
        let drive = Drive::CRUCIAL.ssd().unwrap();
        let merged = |order| {
            let mut table = table(order, &drive);
            let tables = table.tables();
            let round: std::collections::BTreeSet<u64> =
                (0..tables).map(|_| table.fills.next()).collect();
            round.len() as f64 / tables as f64
        };
        assert!(merged(MergeOrder::Together) > 0.99);
        assert!(merged(MergeOrder::Staggered) > 0.95);
        // 1 - 1/e of them are chosen, and some several times.
        assert!((0.6..0.67).contains(&merged(MergeOrder::AnyOrder)));
    }

    #[test]
    fn pieces_are_the_same_pages() {
        let mut tape = Tape::default();
        let step = Step { kind: RequestKind::Read, page: 64, pages: 128, wave: 0 };
        tape.push(Act::Insert, &[step]);
        let pieces = in_pieces(&tape, 32);
        let pages: Vec<_> = pieces.operation(0).1.iter().map(|it| (it.page, it.pages)).collect();
        assert_eq!(pages, [(64, 32), (96, 32), (128, 32), (160, 32)]);
    }
}
