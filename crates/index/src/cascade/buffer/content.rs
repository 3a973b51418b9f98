//! The contents of a buffer: recent updates, and buckets that absorb them when there are enough.

use nandex_store::run::{Entry, Source, count_bytes};

use super::super::runs::RunSize;
use super::buckets::Buckets;
use super::recent::Recent;
use super::shape::BufferShape;
use crate::Result;
use crate::quotient::Counts;

/// Fingerprints and the amounts added to their counts.
#[derive(Clone, Debug)]
pub(crate) struct Content {
    shape: BufferShape,
    recent: Recent,
    buckets: Buckets,
    /// Updates below zero since everything was last put in order.
    removals: u64,
}

impl Content {
    pub(super) fn new(shape: BufferShape) -> Self {
        Self { shape, recent: Recent::new(shape), buckets: Buckets::new(shape), removals: 0 }
    }

    /// The places that its fingerprints take. After [`settle`](Self::settle), a fingerprint takes one place if counts
    /// are stored.
    pub(super) fn entries(&self) -> u64 {
        (self.recent.len() + self.buckets.slots()) as u64
    }

    pub(super) fn ram_bytes(&self) -> u64 {
        (self.recent.ram_bytes() + self.buckets.ram_bytes()) as u64
    }

    pub(super) fn count(&self, fingerprint: u64) -> i64 {
        self.recent.count(fingerprint) + self.buckets.count(fingerprint)
    }

    pub(super) fn prefetch(&self, fingerprint: u64) {
        self.buckets.prefetch(fingerprint);
    }

    /// The number of updates that are not in buckets.
    pub(super) fn recent(&self) -> usize {
        self.recent.len()
    }

    /// The additional RAM that [`settle`](Self::settle) takes, in bytes.
    pub(super) fn settle_bytes(&self) -> u64 {
        self.buckets.growth_bytes(self.recent.len())
    }

    /// Moves recent updates into buckets.
    pub(super) fn settle(&mut self) {
        self.buckets.take(&mut self.recent);
        self.recent.clear();
    }

    /// Adds updates up to the first before which it must [`settle`](Self::settle), and returns how many.
    ///
    /// # Errors
    /// As [`add`](Self::add), for the first one; before a later one that cannot be added it stops.
    pub(super) fn add_some(&mut self, updates: &[Entry]) -> Result<usize> {
        for (done, update) in updates.iter().enumerate() {
            match self.add(update) {
                Ok(true) => {}
                Err(error) if done == 0 => return Err(error),
                Ok(false) | Err(_) => return Ok(done),
            }
        }
        Ok(updates.len())
    }

    /// Adds to a count. Returns false, and changes nothing, if it must [`settle`](Self::settle) first.
    ///
    /// # Errors
    /// [`Error::CountRange`](crate::Error::CountRange) past 63 bits; then nothing has changed.
    #[inline]
    pub(super) fn add(&mut self, update: &Entry) -> Result<bool> {
        let Entry { fingerprint, count } = *update;
        let is_usual = count.unsigned_abs() == 1 && self.buckets.outliers.is_empty();
        if is_usual && self.recent.push(fingerprint, count) {
            self.removals += u64::from(count < 0);
            return Ok(true);
        }
        self.add_slowly(fingerprint, count)
    }

    /// Adds a large amount, or adds to a count that may be large, or to a list that is full.
    #[cold]
    fn add_slowly(&mut self, fingerprint: u64, amount: i64) -> Result<bool> {
        let outlier = self.buckets.outliers.get(fingerprint);
        // A count that is not an outlier is small.
        if outlier.unsigned_abs().max(amount.unsigned_abs()) > u64::from(u32::MAX) {
            Counts::Signed.sum(self.count(fingerprint), amount)?;
        }
        if outlier != 0 {
            self.buckets.outliers.add(fingerprint, amount);
        } else {
            let (copies, each) = self.shape.copies(amount);
            if !self.push(fingerprint, each) {
                return Ok(false);
            }
            let pushed =
                1 + (1..copies).take_while(|_| self.recent.push(fingerprint, each)).count();
            let rest = amount - each * pushed as i64;
            if rest != 0 {
                self.buckets.outliers.add(fingerprint, rest);
            }
        }
        self.removals += u64::from(amount < 0);
        Ok(true)
    }

    /// Adds a recent update, after adding up those of its list if necessary.
    fn push(&mut self, fingerprint: u64, count: i64) -> bool {
        if self.recent.push(fingerprint, count) {
            return true;
        }
        let outliers = &mut self.buckets.outliers;
        self.recent.add_up(fingerprint, |fingerprint, rest| outliers.add(fingerprint, rest))
            && self.recent.push(fingerprint, count)
    }

    /// Returns whether more than an eighth of the updates removed something, so that putting everything in order is
    /// likely to make space.
    pub(super) fn may_cancel(&self) -> bool {
        self.removals > self.entries() / 8
    }

    /// Puts everything in order, so that each fingerprint takes as few places as possible.
    ///
    /// Cost: reads and writes everything once, and temporarily takes the RAM of the result.
    pub(super) fn put_in_order(&mut self) {
        let mut content = Self::new(self.shape);
        let (mut source, mut batch) = (self.source(), Vec::new());
        while source.fill(&mut batch) {
            content.load(&batch);
            batch.clear();
        }
        content.settle();
        *self = Self { removals: 0, ..content };
    }

    /// Adds all of these entries.
    pub(super) fn load(&mut self, entries: &[Entry]) {
        for entry in entries {
            while !self.add(entry).expect("what was in a buffer fits one") {
                self.settle();
            }
        }
    }

    /// Returns its contents in ascending order.
    pub(in crate::cascade) fn source(&self) -> InOrder<'_> {
        InOrder {
            content: self,
            recent: self.recent.sorted(),
            taken: 0,
            bucket: 0,
            slot: 0,
            codes: Vec::new(),
        }
    }

    /// Returns the number of entries and the bytes of counts of a run of its contents. Reads all of it.
    pub(in crate::cascade) fn size(&self) -> RunSize {
        let (mut size, mut source, mut batch) = (RunSize::default(), self.source(), Vec::new());
        while source.fill(&mut batch) {
            size.entries += batch.len() as u64;
            size.count_bytes += batch.iter().map(|entry| count_bytes(entry.count)).sum::<u64>();
            batch.clear();
        }
        size
    }
}

/// The approximate number of entries in a batch.
const BATCH: usize = 2048;

/// The contents of a buffer in ascending order: sorts one bucket at a time.
pub(in crate::cascade) struct InOrder<'c> {
    content: &'c Content,
    recent: Vec<Entry>,
    /// The number of recent updates that were taken, and the next bucket and slot.
    taken: usize,
    bucket: usize,
    slot: usize,
    /// A bucket's codes.
    codes: Vec<u64>,
}

impl InOrder<'_> {
    /// Appends the next entries. Returns false if there are no more.
    pub(super) fn fill(&mut self, out: &mut Vec<Entry>) -> bool {
        let start = out.len();
        while self.bucket < self.content.shape.buckets && out.len() - start < BATCH {
            self.add_bucket(out);
        }
        out.len() > start
    }

    fn add_bucket(&mut self, out: &mut Vec<Entry>) {
        let (shape, buckets) = (&self.content.shape, &self.content.buckets);
        let first = (self.bucket as u64) << shape.remainder_bits;
        let end = first + (1 << shape.remainder_bits);
        self.codes.clear();
        let slots = buckets.sizes().get(self.bucket).map_or(0, |size| usize::from(*size));
        buckets.codes(self.slot..self.slot + slots, &mut self.codes);
        while let Some(update) = self.recent.get(self.taken).filter(|it| it.fingerprint < end) {
            self.codes.push(shape.code(update.fingerprint - first, update.count));
            self.taken += 1;
        }
        self.slot += slots;
        self.bucket += 1;
        self.codes.sort_unstable();
        let start = out.len();
        add_up(shape, first, &self.codes, out);
        if !buckets.outliers.is_empty() {
            add_outliers(buckets.outliers.range(first..end), start, out);
        }
        let mut kept = start;
        for at in start..out.len() {
            out[kept] = out[at];
            kept += usize::from(out[at].count != 0);
        }
        out.truncate(kept);
    }
}

/// Appends the sums of a bucket's sorted codes.
#[inline]
fn add_up(shape: &BufferShape, first: u64, codes: &[u64], out: &mut Vec<Entry>) {
    let mut last = u64::MAX;
    for code in codes {
        let (fingerprint, count) = (first + (code >> shape.count_bits), shape.count_in(*code));
        if fingerprint == last {
            let entry = out.last_mut().expect("the last one was appended");
            entry.count += count;
        } else {
            out.push(Entry { fingerprint, count });
        }
        last = fingerprint;
    }
}

/// Adds a bucket's outliers to its entries, which begin at `start`.
fn add_outliers(outliers: impl Iterator<Item = (u64, i64)>, start: usize, out: &mut Vec<Entry>) {
    for (fingerprint, count) in outliers {
        match out[start..].binary_search_by_key(&fingerprint, |entry| entry.fingerprint) {
            Ok(at) => out[start + at].count += count,
            Err(at) => out.insert(start + at, Entry { fingerprint, count }),
        }
    }
}

impl Source for InOrder<'_> {
    fn next_batch(&mut self, out: &mut Vec<Entry>) -> nandex_store::Result<bool> {
        Ok(self.fill(out))
    }
}
