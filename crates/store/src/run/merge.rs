//! Merging sorted lists into one: counts of equal fingerprints add up, and sums of 0 are dropped.
//!
//! Two lists are merged without a branch that depends on a fingerprint: which of the two is smaller is
//! random, and mispredicted branches would cost a processor more than the work itself. More lists are merged
//! two by two.

use super::{Entry, Source};
use crate::Result;

/// The options of a merge.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MergeOptions {
    /// Whether to drop and count sums below zero as well: if nothing older is below, a tombstone has nothing to cancel.
    pub drop_negative: bool,
}

/// The sum of several sources: entries in ascending order, each fingerprint once, and no count 0.
///
/// A count that overflows 64 bits is clamped.
pub struct Merge<'a> {
    root: Option<Box<dyn Source + 'a>>,
    options: MergeOptions,
    unmatched: u64,
}

impl<'a> Merge<'a> {
    /// Creates a merge of any number of sources. Holds two batches of each.
    #[must_use]
    pub fn new(mut sources: Vec<Box<dyn Source + 'a>>, options: MergeOptions) -> Self {
        while sources.len() > 1 {
            let mut pairs = Vec::with_capacity(sources.len().div_ceil(2));
            let mut rest = sources.into_iter();
            while let Some(first) = rest.next() {
                pairs.push(match rest.next() {
                    Some(second) => Box::new(Pair::new(first, second)),
                    None => first,
                });
            }
            sources = pairs;
        }
        Self { root: sources.pop(), options, unmatched: 0 }
    }

    /// The number of fingerprints that summed to less than zero and were dropped.
    #[must_use]
    pub fn unmatched(&self) -> u64 {
        self.unmatched
    }
}

impl Source for Merge<'_> {
    fn next_batch(&mut self, out: &mut Vec<Entry>) -> Result<bool> {
        let start = out.len();
        let Some(root) = &mut self.root else { return Ok(false) };
        while root.next_batch(out)? {
            if self.options.drop_negative {
                self.unmatched += drop_negative(out, start);
            }
            if out.len() > start {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

impl std::fmt::Debug for Merge<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Merge").field("unmatched", &self.unmatched).finish_non_exhaustive()
    }
}

/// Drops entries below zero from `start` on, and returns their number.
fn drop_negative(out: &mut Vec<Entry>, start: usize) -> u64 {
    // Usually there are none.
    if out[start..].iter().all(|entry| entry.count > 0) {
        return 0;
    }
    let mut kept = start;
    for at in start..out.len() {
        out[kept] = out[at];
        kept += usize::from(out[at].count > 0);
    }
    let dropped = out.len() - kept;
    out.truncate(kept);
    dropped as u64
}

/// One of two sources, and what was read ahead of it.
struct Input<'a> {
    source: Box<dyn Source + 'a>,
    batch: Vec<Entry>,
    /// Entries of the batch that were taken.
    taken: usize,
    has_ended: bool,
}

impl<'a> Input<'a> {
    fn new(source: Box<dyn Source + 'a>) -> Self {
        Self { source, batch: Vec::new(), taken: 0, has_ended: false }
    }

    /// Reads more entries if none are left to take.
    fn fill(&mut self) -> Result<()> {
        while self.taken == self.batch.len() && !self.has_ended {
            self.batch.clear();
            self.taken = 0;
            self.has_ended = !self.source.next_batch(&mut self.batch)?;
        }
        Ok(())
    }

    fn left(&self) -> &[Entry] {
        &self.batch[self.taken..]
    }
}

/// The number of entries of each source that are merged at once, so that they and their sum stay in a fast cache.
const MERGE_ENTRIES: usize = 2048;

/// The sum of two sources.
struct Pair<'a>(Input<'a>, Input<'a>);

impl<'a> Pair<'a> {
    fn new(first: Box<dyn Source + 'a>, second: Box<dyn Source + 'a>) -> Self {
        Self(Input::new(first), Input::new(second))
    }
}

impl Source for Pair<'_> {
    fn next_batch(&mut self, out: &mut Vec<Entry>) -> Result<bool> {
        let Self(first, second) = self;
        let start = out.len();
        while out.len() == start {
            first.fill()?;
            second.fill()?;
            match (first.left(), second.left()) {
                ([], []) => return Ok(false),
                ([], _) => pass_on(second, out)?,
                (_, []) => pass_on(first, out)?,
                (a, b) => {
                    let at_most = |list: &'_ [Entry]| list.len().min(MERGE_ENTRIES);
                    let (a, b) = (&a[..at_most(a)], &b[..at_most(b)]);
                    let (from_a, from_b) = merge_two(a, b, out);
                    first.taken += from_a;
                    second.taken += from_b;
                }
            }
        }
        Ok(true)
    }
}

/// Passes on the batches of one input after the other has ended.
fn pass_on(input: &mut Input<'_>, out: &mut Vec<Entry>) -> Result<()> {
    out.extend_from_slice(input.left());
    input.taken = input.batch.len();
    Ok(())
}

/// Appends the sum of two lists up to the end of one of them, and returns how many entries of each it used.
fn merge_two(a: &[Entry], b: &[Entry], out: &mut Vec<Entry>) -> (usize, usize) {
    let start = out.len();
    out.resize(start + a.len() + b.len(), Entry::default());
    let mut merging = Merging { target: &mut out[start..], from_a: 0, from_b: 0, written: 0 };
    match density(a) / density(b) {
        many if many > STRETCH => merging.stretches(a, b),
        few if few < 1.0 / STRETCH => {
            std::mem::swap(&mut merging.from_a, &mut merging.from_b);
            merging.stretches(b, a);
            std::mem::swap(&mut merging.from_a, &mut merging.from_b);
        }
        _ => {}
    }
    merging.one_by_one(a, b);
    let Merging { from_a, from_b, written, .. } = merging;
    out.truncate(start + written);
    (from_a, from_b)
}

/// Returns the number of entries per fingerprint between the first and the last.
fn density(entries: &[Entry]) -> f64 {
    let [first, .., last] = entries else { return 1.0 };
    entries.len() as f64 / (last.fingerprint.saturating_sub(first.fingerprint) + 1) as f64
}

/// The number of entries of one list between two of the other from which on several are taken at a time.
const STRETCH: f64 = 3.0;

/// The most entries that are taken at once.
const STRETCH_MAX: usize = 7;

/// Two lists that are merged, with the numbers of entries taken and written.
struct Merging<'t> {
    target: &'t mut [Entry],
    from_a: usize,
    from_b: usize,
    written: usize,
}

impl Merging<'_> {
    /// Takes the smaller of the next two entries.
    fn one_by_one(&mut self, a: &[Entry], b: &[Entry]) {
        let Self { target, from_a, from_b, written } = self;
        while let (Some(x), Some(y), Some(place)) =
            (a.get(*from_a), b.get(*from_b), target.get_mut(*written))
        {
            let (takes_a, takes_b) =
                (x.fingerprint <= y.fingerprint, y.fingerprint <= x.fingerprint);
            let of_a = x.count & -i64::from(takes_a);
            let of_b = y.count & -i64::from(takes_b);
            let count = of_a.saturating_add(of_b);
            *place = Entry { fingerprint: x.fingerprint.min(y.fingerprint), count };
            *written += usize::from(count != 0);
            *from_a += usize::from(takes_a);
            *from_b += usize::from(takes_b);
        }
    }

    /// Takes all entries of `a` before the next one of `b`, several at a time, while enough entries are left. Copies a
    /// fixed number each time; the surplus is overwritten.
    fn stretches(&mut self, a: &[Entry], b: &[Entry]) {
        while let (Some(next), Some(y)) = (a.get(self.from_a..), b.get(self.from_b))
            && let Some(block) = next.first_chunk::<{ STRETCH_MAX + 1 }>()
            && let Some(target) = self.target[self.written..].first_chunk_mut()
        {
            *target = *block;
            let before = |entry: &Entry| usize::from(entry.fingerprint < y.fingerprint);
            let taken: usize = block[..STRETCH_MAX].iter().map(before).sum();
            let has_met = taken < STRETCH_MAX;
            let x = block[taken];
            let is_same = has_met & (x.fingerprint == y.fingerprint);
            let count = y.count.saturating_add(x.count & -i64::from(is_same));
            target[taken] = Entry { fingerprint: y.fingerprint, count };
            self.written += taken + usize::from(has_met & (count != 0));
            self.from_a += taken + usize::from(is_same);
            self.from_b += usize::from(has_met);
        }
    }
}

/// A sorted list as a source.
#[derive(Clone, Debug)]
pub struct Sorted {
    entries: Vec<Entry>,
    taken: usize,
}

impl Sorted {
    /// The number of entries that it returns at once.
    const BATCH: usize = 4096;

    /// Creates a source from a list in ascending order.
    ///
    /// # Panics
    /// If it is not ascending, or an entry counts 0.
    #[must_use]
    pub fn new(entries: Vec<Entry>) -> Self {
        let ascends = entries.is_sorted_by(|a, b| a.fingerprint < b.fingerprint);
        assert!(ascends && entries.iter().all(|entry| entry.count != 0), "sorted entries ascend");
        Self { entries, taken: 0 }
    }
}

impl Source for Sorted {
    fn next_batch(&mut self, out: &mut Vec<Entry>) -> Result<bool> {
        let left = &self.entries[self.taken..];
        let batch = &left[..left.len().min(Self::BATCH)];
        out.extend_from_slice(batch);
        self.taken += batch.len();
        Ok(!batch.is_empty())
    }
}
