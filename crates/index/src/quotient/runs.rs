//! Where the run of a quotient lies: found from the metadata of its cluster alone.
//!
//! Runs stand in the order of their quotients, so within a cluster the n-th head belongs to the n-th occupied
//! slot. To find the run of q, walk left to where the cluster begins, then right, passing one run for every
//! occupied slot before q.

use std::ops::Range;

use super::slots::SlotArray;

impl SlotArray {
    /// The slots of quotient `quotient`: empty, at the place where its run would begin, where it has none.
    pub fn run(&self, quotient: usize) -> Range<usize> {
        if self.is_empty(quotient) {
            return quotient..quotient;
        }
        let start = self.run_start(quotient);
        let end = if self.is_occupied(quotient) { self.run_end(start) } else { start };
        start..end
    }

    /// The first slot of the run of a quotient whose slot is in use.
    fn run_start(&self, quotient: usize) -> usize {
        let cluster = self.cluster_start(quotient);
        let before = (cluster..quotient).filter(|&at| self.is_occupied(at)).count();
        (0..before).fold(cluster, |start, _| self.run_end(start))
    }

    /// The slot behind the run that begins at `start`.
    pub fn run_end(&self, start: usize) -> usize {
        (start + 1..self.len()).find(|&at| !self.is_continuation(at)).unwrap_or(self.len())
    }

    /// The first slot of the cluster that `at` lies in: the next one on the left that is not shifted.
    pub fn cluster_start(&self, at: usize) -> usize {
        (0..=at).rev().find(|&at| !self.is_shifted(at)).expect("the first slot is never shifted")
    }

    /// The next quotient from `from` on that has a run.
    pub fn next_occupied(&self, from: usize) -> Option<usize> {
        (from..self.len()).find(|&at| self.is_occupied(at))
    }

    /// The empty slots from `from` on.
    pub fn empties(&self, from: usize) -> impl Iterator<Item = usize> + '_ {
        (from..self.len()).filter(|&at| self.is_empty(at))
    }
}
