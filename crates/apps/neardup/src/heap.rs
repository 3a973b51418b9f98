//! A priority queue that is bigger than RAM: a heap, and sorted runs in unnamed files.
//!
//! It is a sorter too: pushed items come out in order. Items pushed in between come out at their places.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::path::{Path, PathBuf};

use nandex_corpus::sort::{Merge, RUNS_MAX, Run};

use crate::Result;

/// Two numbers, which order the items.
pub(crate) type Item = [u64; 2];

/// Items, of which the smallest comes out first.
#[derive(Debug)]
pub(crate) struct ExternalHeap {
    folder: PathBuf,
    items_max: usize,
    /// RAM for the buffers of runs: half of the total.
    buffers_bytes: usize,
    heap: BinaryHeap<Reverse<Item>>,
    runs: Merge<Item>,
}

impl ExternalHeap {
    /// Creates a queue with this much RAM in bytes, and its files in `folder`.
    pub(crate) fn new(folder: &Path, ram_bytes: usize) -> Self {
        let buffers_bytes = ram_bytes / 2;
        // A growing heap briefly takes one and a half times its memory in addition.
        let items_max = (buffers_bytes / size_of::<Item>() / 3).max(2);
        let (heap, runs) = (BinaryHeap::new(), Merge::new(buffers_bytes));
        Self { folder: folder.to_path_buf(), items_max, buffers_bytes, heap, runs }
    }

    pub(crate) fn push(&mut self, item: Item) -> Result<()> {
        if self.heap.len() >= self.items_max {
            self.spill()?;
        }
        self.heap.push(Reverse(item));
        Ok(())
    }

    /// Returns the smallest item without removing it.
    pub(crate) fn peek(&self) -> Option<Item> {
        let in_ram = self.heap.peek().map(|item| item.0);
        in_ram.into_iter().chain(self.runs.peek().copied()).min()
    }

    /// Removes and returns the smallest item.
    pub(crate) fn pop(&mut self) -> Result<Option<Item>> {
        let smallest = self.peek();
        if self.heap.peek().is_some_and(|item| Some(item.0) == smallest) {
            self.heap.pop();
            return Ok(smallest);
        }
        Ok(self.runs.next().transpose()?)
    }

    /// Writes the items in RAM as a run, and merges all runs into one if there are too many.
    fn spill(&mut self) -> Result<()> {
        let mut items: Vec<Item> = self.heap.drain().map(|item| item.0).collect();
        items.sort_unstable();
        let items = items.into_iter().map(Ok);
        self.runs.add(Run::write(&self.folder, self.buffers_bytes, items)?)?;
        if self.runs.runs() == RUNS_MAX {
            let merged = Run::write(&self.folder, self.buffers_bytes, self.runs.by_ref())?;
            self.runs = Merge::new(self.buffers_bytes);
            self.runs.add(merged)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn little_ram_gives_the_order_of_a_heap(
            steps in prop::collection::vec(prop::option::of((0..50_u64, any::<u64>())), 0..400)
        ) {
            let folder = tempfile::tempdir().unwrap();
            let (mut queue, mut oracle) = (ExternalHeap::new(folder.path(), 1), BinaryHeap::new());
            for step in steps {
                match step {
                    Some((key, value)) => {
                        queue.push([key, value]).unwrap();
                        oracle.push(Reverse([key, value]));
                    }
                    None => prop_assert_eq!(queue.pop().unwrap(), oracle.pop().map(|it| it.0)),
                }
                prop_assert_eq!(queue.peek(), oracle.peek().map(|it| it.0));
            }
        }
    }

    #[test]
    fn more_runs_than_are_merged_at_once_come_out_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let mut queue = ExternalHeap::new(folder.path(), 1);
        let number = |n: u64| n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        let count = 5 * RUNS_MAX as u64;
        (0..count).for_each(|n| queue.push([number(n), n]).unwrap());
        assert!(queue.runs.runs() < RUNS_MAX && queue.heap.len() <= 2);
        let mut expected: Vec<Item> = (0..count).map(|n| [number(n), n]).collect();
        expected.sort_unstable();
        let found: Vec<Item> = std::iter::from_fn(|| queue.pop().unwrap()).collect();
        assert_eq!(found, expected);
        assert_eq!(queue.peek(), None);
    }
}
