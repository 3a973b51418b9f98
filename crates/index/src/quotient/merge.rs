//! Merging sorted entries of any number of sources, in one pass over all: a list of filters becomes one.
//!
//! A **loser tree** holds a match between sources at each inner node: the loser stays there, the winner plays
//! on. When the winner's entry is taken, only the matches on its way to the root are played again: log2 k of
//! them for k sources, with one comparison each.
//!
//! ```text
//!                      winner: 3 (b)
//!                           |
//!                       loser: 4 (c)
//!                    /                \
//!             loser: 7 (a)        loser: 9 (d)
//!              /      \            /      \
//!            a: 7    b: 3        c: 4    d: 9
//! ```

use std::fmt;

use nandex_store::run::{Entry, Source};

use super::{QuotientFilter, Shape};
use crate::{Error, Result};

/// Above every fingerprint: the head of a source that has no more.
const END: u64 = u64::MAX;

/// Entries that a merge gives at once.
const BATCH: usize = 1024;

/// The entries of several sources as one: in ascending order, counts of one fingerprint added up, and what
/// adds up to 0 left out. A sum past 63 bits stays at the greatest, or least, count there is.
///
/// Holds one batch of each source in RAM.
pub struct Merge<'s> {
    lanes: Vec<Lane<'s>>,
    /// At 0 the winner; at node n the loser of the match between the winners of nodes 2n and 2n + 1. Nodes
    /// from the number of lanes on are lanes.
    tree: Vec<usize>,
}

impl<'s> Merge<'s> {
    /// Begins a merge, by reading a batch of each source.
    ///
    /// # Errors
    /// A failed read of a source.
    pub fn new(sources: Vec<Box<dyn Source + 's>>) -> Result<Self> {
        let mut lanes = Vec::with_capacity(sources.len());
        for source in sources {
            let mut lane = Lane { source, batch: Vec::new(), next: 0 };
            lane.fill()?;
            lanes.push(lane);
        }
        let mut merge = Self { tree: vec![0; lanes.len()], lanes };
        if !merge.lanes.is_empty() {
            merge.tree[0] = merge.play(1);
        }
        Ok(merge)
    }

    /// Plays all matches below a node, and gives the lane that won.
    fn play(&mut self, node: usize) -> usize {
        if node >= self.lanes.len() {
            return node - self.lanes.len();
        }
        let (left, right) = (self.play(2 * node), self.play(2 * node + 1));
        let (winner, loser) = self.judge(left, right);
        self.tree[node] = loser;
        winner
    }

    /// Winner and loser of two lanes.
    fn judge(&self, one: usize, other: usize) -> (usize, usize) {
        if self.lanes[one].head() <= self.lanes[other].head() { (one, other) } else { (other, one) }
    }

    /// The least fingerprint at the head of any lane.
    fn least(&self) -> u64 {
        self.tree.first().map_or(END, |&winner| self.lanes[winner].head())
    }

    /// Takes the least entry, and plays its lane's matches again.
    fn take(&mut self) -> nandex_store::Result<Entry> {
        let mut winner = self.tree[0];
        let entry = self.lanes[winner].take()?;
        let mut node = (winner + self.lanes.len()) / 2;
        while node > 0 {
            (winner, self.tree[node]) = self.judge(winner, self.tree[node]);
            node /= 2;
        }
        self.tree[0] = winner;
        Ok(entry)
    }

    /// The next fingerprint with the sum of its counts.
    fn next(&mut self) -> nandex_store::Result<Option<Entry>> {
        while self.least() != END {
            let mut sum = self.take()?;
            while self.least() == sum.fingerprint {
                sum.count = sum.count.saturating_add(self.take()?.count);
            }
            if sum.count != 0 {
                return Ok(Some(sum));
            }
        }
        Ok(None)
    }
}

impl Source for Merge<'_> {
    fn next_batch(&mut self, out: &mut Vec<Entry>) -> nandex_store::Result<bool> {
        let before = out.len();
        while out.len() - before < BATCH
            && let Some(entry) = self.next()?
        {
            out.push(entry);
        }
        Ok(out.len() > before)
    }
}

impl fmt::Debug for Merge<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Merge").field("sources", &self.lanes.len()).finish_non_exhaustive()
    }
}

/// One source, and what was read of it ahead.
struct Lane<'s> {
    source: Box<dyn Source + 's>,
    batch: Vec<Entry>,
    next: usize,
}

impl Lane<'_> {
    fn head(&self) -> u64 {
        self.batch.get(self.next).map_or(END, |entry| entry.fingerprint)
    }

    fn take(&mut self) -> nandex_store::Result<Entry> {
        let entry = self.batch[self.next];
        self.next += 1;
        if self.next == self.batch.len() {
            self.fill()?;
        }
        Ok(entry)
    }

    fn fill(&mut self) -> nandex_store::Result<()> {
        self.batch.clear();
        self.next = 0;
        self.source.next_batch(&mut self.batch)?;
        Ok(())
    }
}

impl QuotientFilter {
    /// One filter of all that several have, counts of one fingerprint added up. They may be of any sizes; their
    /// universe must be the shape's, since nobody can make longer fingerprints of short ones.
    ///
    /// Cost: one pass over all of them, and nothing is moved.
    ///
    /// # Errors
    /// [`Error::Config`] for filters of another universe, and those of [`from_source`](Self::from_source).
    pub fn merged(shape: Shape, filters: &[&Self]) -> Result<Self> {
        let size = shape.split().universe().size();
        let sizes = filters.iter().map(|filter| filter.shape.split().universe().size());
        if let Some(other) = sizes.into_iter().find(|other| *other != size) {
            let reason = format!(
                "a filter of {other} fingerprints among filters of {size}; only those of one universe can be \
                 merged"
            );
            return Err(Error::Config { field: "universe", reason });
        }
        let sources = filters.iter().map(|filter| Box::new(filter.source()) as Box<dyn Source>);
        Self::from_source(shape, &mut Merge::new(sources.collect())?)
    }
}
