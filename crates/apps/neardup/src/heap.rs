//! A priority queue that is bigger than RAM: a heap, and sorted runs in files without names.
//!
//! It is a sorter too: what is pushed comes out in order. Items that come in between go where they belong.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use nandex_corpus::scratch::{Merge, RUN_BUFFER_BYTES, RUNS_MAX, Run, rewound, scratch_file};

use crate::Result;

/// Two numbers, by whose order items come out.
pub(crate) type Item = [u64; 2];

/// What fails, in words.
const WRITE: &str = "write a sorted run of pairs";
const READ: &str = "read a sorted run of pairs";

/// Items, of which the smallest comes out first.
#[derive(Debug)]
pub(crate) struct ExternalHeap {
    folder: PathBuf,
    items_max: usize,
    heap: BinaryHeap<Reverse<Item>>,
    /// Runs, each with its next item.
    runs: Vec<(Item, RunReader)>,
}

impl ExternalHeap {
    /// A queue with about this much RAM in bytes, and its files in `folder`.
    pub(crate) fn new(folder: &Path, ram_bytes: usize) -> Self {
        // A growing heap has one and a half of its memory more for a moment.
        let items_max = (ram_bytes / size_of::<Item>() / 3).max(2);
        Self { folder: folder.to_path_buf(), items_max, heap: BinaryHeap::new(), runs: Vec::new() }
    }

    pub(crate) fn push(&mut self, item: Item) -> Result<()> {
        if self.heap.len() >= self.items_max {
            self.spill()?;
        }
        self.heap.push(Reverse(item));
        Ok(())
    }

    /// The smallest item, which stays.
    pub(crate) fn peek(&self) -> Option<Item> {
        let in_runs = self.runs.iter().map(|(item, _)| *item).min();
        let in_ram = self.heap.peek().map(|item| item.0);
        in_ram.into_iter().chain(in_runs).min()
    }

    /// Takes the smallest item out.
    pub(crate) fn pop(&mut self) -> Result<Option<Item>> {
        let Some(smallest) = self.peek() else { return Ok(None) };
        if self.heap.peek().is_some_and(|item| item.0 == smallest) {
            self.heap.pop();
            return Ok(Some(smallest));
        }
        let Some(place) = self.runs.iter().position(|(item, _)| *item == smallest) else {
            return Ok(None);
        };
        let next = self.runs[place].1.next().map_err(nandex_corpus::Error::scratch(READ))?;
        match next {
            Some(next) => self.runs[place].0 = next,
            None => drop(self.runs.swap_remove(place)),
        }
        Ok(Some(smallest))
    }

    /// Writes what is in RAM as a run, and merges all runs into one if there are too many.
    fn spill(&mut self) -> Result<()> {
        let mut items: Vec<Item> = self.heap.drain().map(|item| item.0).collect();
        items.sort_unstable();
        let run = written(&self.folder, items.into_iter().map(Ok))?;
        self.runs.extend(run);
        if self.runs.len() < RUNS_MAX {
            return Ok(());
        }
        let runs = std::mem::take(&mut self.runs);
        let mut firsts: Vec<Item> = runs.iter().map(|(first, _)| *first).collect();
        firsts.sort_unstable();
        // The first items are out of their runs already; they are few.
        let merge = Merge::new(runs.into_iter().map(|(_, run)| run).collect())?;
        let run = written(&self.folder, merge.map(|item| Ok(item?)))?;
        self.runs.extend(run);
        self.heap.extend(firsts.into_iter().map(Reverse));
        Ok(())
    }
}

/// Writes items as a run, and reads its first; nothing if there are none.
fn written(
    folder: &Path,
    items: impl Iterator<Item = Result<Item>>,
) -> Result<Option<(Item, RunReader)>> {
    let mut out = BufWriter::with_capacity(RUN_BUFFER_BYTES, scratch_file(folder)?);
    for item in items {
        let bytes = item?.map(u64::to_le_bytes).concat();
        out.write_all(&bytes).map_err(nandex_corpus::Error::scratch(WRITE))?;
    }
    let file = rewound(out, (WRITE, READ))?;
    let mut run = RunReader(BufReader::with_capacity(RUN_BUFFER_BYTES, file));
    let first = run.next().map_err(nandex_corpus::Error::scratch(READ))?;
    Ok(first.map(|first| (first, run)))
}

/// A run that is being read.
#[derive(Debug)]
struct RunReader(BufReader<File>);

impl Run for RunReader {
    type Record = Item;

    const READ: &'static str = READ;

    fn next(&mut self) -> io::Result<Option<Item>> {
        let mut bytes = [0; 16];
        if self.0.read(&mut bytes[..1])? == 0 {
            return Ok(None);
        }
        self.0.read_exact(&mut bytes[1..])?;
        let (words, _) = bytes.as_chunks::<8>();
        Ok(Some([words[0], words[1]].map(u64::from_le_bytes)))
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
        assert!(queue.runs.len() < RUNS_MAX && queue.heap.len() <= RUNS_MAX + 2);
        let mut expected: Vec<Item> = (0..count).map(|n| [number(n), n]).collect();
        expected.sort_unstable();
        let found: Vec<Item> = std::iter::from_fn(|| queue.pop().unwrap()).collect();
        assert_eq!(found, expected);
        assert_eq!(queue.peek(), None);
    }
}
