//! Reads several runs as one.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

use super::format::Delta;
use super::reader::{RunReader, too_many};
use crate::tokenise::TermKey;
use crate::{Error, Result};

/// A term with its counts in all runs.
#[derive(Clone, Copy, Debug)]
pub(in crate::corpus) struct Total<'m> {
    pub(in crate::corpus) place: u64,
    pub(in crate::corpus) key: TermKey,
    pub(in crate::corpus) text: &'m [u8],
    pub(in crate::corpus) delta: Delta,
}

/// Runs in one order, each term once. RAM is a block for each run.
pub(in crate::corpus) struct Merged<'c> {
    readers: Vec<RunReader<'c>>,
    /// The next term of each run that has one.
    heap: BinaryHeap<Reverse<(u64, TermKey, usize)>>,
}

impl<'c> Merged<'c> {
    pub(in crate::corpus) fn new(mut readers: Vec<RunReader<'c>>) -> Result<Self> {
        let mut heap = BinaryHeap::with_capacity(readers.len());
        for (number, reader) in readers.iter_mut().enumerate() {
            if reader.advance()? {
                heap.push(Reverse((reader.place, reader.key, number)));
            }
        }
        Ok(Self { readers, heap })
    }

    /// Calls `take` with each term in order. Detects different terms of one hash.
    pub(in crate::corpus) fn for_each(
        mut self,
        mut take: impl FnMut(Total<'_>) -> Result<()>,
    ) -> Result<()> {
        while let Some(Reverse((place, key, first))) = self.heap.peek().copied() {
            let delta = self.sum(first)?;
            take(Total { place, key, text: self.readers[first].text(), delta })?;
            self.advance_top(first)?;
        }
        Ok(())
    }

    /// Returns the sum of all runs' counts of the least term, the first of whose runs is `first`. The others advance to
    /// their next term; the first one stays, since its text is used.
    fn sum(&mut self, first: usize) -> Result<Delta> {
        let mut delta = self.readers[first].delta;
        if self.readers.len() == 1 {
            return Ok(delta);
        }
        let Some(least) = self.heap.pop() else { return Ok(delta) };
        let Reverse((place, key, _)) = least;
        while let Some(other) = self.next_alike(place, key) {
            let text = self.readers[first].text();
            check_same(text, self.readers[other].text())?;
            let sum = delta.plus(self.readers[other].delta);
            delta = sum.ok_or_else(|| too_many(text))?;
            self.advance_top(other)?;
        }
        self.heap.push(least);
        Ok(delta)
    }

    /// Returns the run whose next term is this one, if it is the least of all.
    fn next_alike(&self, place: u64, key: TermKey) -> Option<usize> {
        let Reverse((other_place, other_key, number)) = *self.heap.peek()?;
        (other_place == place && other_key == key).then_some(number)
    }

    /// Advances the run with the least term.
    fn advance_top(&mut self, number: usize) -> Result<()> {
        let reader = &mut self.readers[number];
        let has_more = reader.advance()?;
        let Some(mut top) = self.heap.peek_mut() else { return Ok(()) };
        if has_more {
            *top = Reverse((reader.place, reader.key, number));
        } else {
            PeekMut::pop(top);
        }
        Ok(())
    }
}

fn check_same(one: &[u8], other: &[u8]) -> Result<()> {
    if one == other {
        return Ok(());
    }
    let (one, other) = (String::from_utf8_lossy(one), String::from_utf8_lossy(other));
    let reason = format!("the terms {one:?} and {other:?} have the same hash");
    Err(Error::Contradiction { reason })
}
