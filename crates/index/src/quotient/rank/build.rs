//! Building from entries that come sorted: each goes behind the last one, and nothing ever moves.

use nandex_store::run::{Entry, Source};

use super::blocks::SLOTS;
use super::filter::RankFilter;
use super::width::{Width, with_width};
use crate::Result;
use crate::quotient::counts::{Held, added};
use crate::quotient::full::{in_order, no_slot_behind, room};
use crate::quotient::{Shape, Slots};

/// How far a filter is built.
#[derive(Debug, Default)]
struct End {
    /// The slot behind the last one in use.
    next: usize,
    last: Option<u64>,
}

impl RankFilter {
    /// A filter of all that a source gives.
    ///
    /// Cost: one pass over the slots; nothing is moved.
    ///
    /// # Errors
    /// As [`add`](Self::add); a failed read of the source; entries that are not in ascending order or not of
    /// the shape's universe.
    pub fn from_source(shape: Shape, source: &mut dyn Source) -> Result<Self> {
        let mut filter = Self::new(shape);
        let mut end = End::default();
        let mut batch = Vec::new();
        while source.next_batch(&mut batch)? {
            with_width!(filter.kind, width => {
                batch.drain(..).try_for_each(|entry| filter.append(width, &mut end, entry))?;
            });
        }
        Ok(filter)
    }

    /// Appends a fingerprint above all before it.
    #[inline(always)]
    fn append(&mut self, width: impl Width, end: &mut End, entry: Entry) -> Result<()> {
        let Entry { fingerprint, count } = entry;
        in_order(&self.shape, end.last, fingerprint)?;
        let counts = self.shape.counts();
        let held = Held::of(counts, added(counts, 0, count)?);
        let outliers = (held.beside != 0).then_some(self.outliers.len() as u64);
        room(&self.shape, self.entries, held.slots, outliers)?;
        let (quotient, remainder) = self.split(fingerprint);
        let body = remainder << counts.bits() | held.code;
        let start = end.next.max(quotient);
        if start + held.slots > self.slots {
            return Err(no_slot_behind(&self.shape, self.entries));
        }
        for slot in start..start + held.slots {
            self.blocks.append(width, quotient, slot, body);
        }
        if held.beside != 0 {
            self.outliers.set(fingerprint, held.beside);
        }
        self.entries += held.slots as u64;
        *end = End { next: start + held.slots, last: Some(fingerprint) };
        Ok(())
    }
}

impl super::blocks::Blocks {
    /// Puts a body into a slot behind all that are in use, of the last quotient that has a run or of a later
    /// one.
    #[inline(always)]
    fn append(&mut self, width: impl Width, quotient: usize, slot: usize, body: u64) {
        let (block, place) = (quotient / SLOTS, quotient % SLOTS);
        let head = self.head(width, block);
        self.set_slot(width, slot, body);
        if head.occupieds >> place & 1 == 1 {
            // The last slot in use was this run's last one until now.
            self.flip_runend(width, slot - 1);
        } else {
            self.set_occupieds(width, block, head.occupieds | 1 << place);
        }
        self.flip_runend(width, slot);
        for block in block + 1..=slot / SLOTS {
            self.set_offset(width, block, slot + 1 - block * SLOTS);
        }
    }

    #[inline(always)]
    fn flip_runend(&mut self, width: impl Width, slot: usize) {
        let runends = self.runends(width, slot / SLOTS);
        self.set_runends(width, slot / SLOTS, runends ^ 1 << (slot % SLOTS));
    }
}

impl Slots for RankFilter {
    const FILL: f64 = 0.94;

    fn new(shape: Shape) -> Self {
        Self::new(shape)
    }

    fn from_source(shape: Shape, source: &mut dyn Source) -> Result<Self> {
        Self::from_source(shape, source)
    }

    fn shape(&self) -> Shape {
        self.shape()
    }

    fn add(&mut self, fingerprint: u64, count: i64) -> Result<()> {
        self.add(fingerprint, count)
    }

    fn count(&self, fingerprint: u64) -> i64 {
        self.count(fingerprint)
    }

    fn entries(&self) -> u64 {
        self.entries()
    }

    fn is_full(&self) -> bool {
        self.is_full()
    }

    fn clear(&mut self) {
        self.clear();
    }

    fn ram_bytes(&self) -> usize {
        self.ram_bytes()
    }

    fn iter(&self) -> impl Iterator<Item = Entry> + Send + '_ {
        self.iter()
    }

    fn source(&self) -> impl Source + '_ {
        self.source()
    }
}
