//! Lists of keys with their changes, in ascending order, and merging such lists.

use std::cmp::Ordering;

use super::change::Change;
use super::keys::KEY_BYTES_MAX;
use crate::Result;

/// The entries of a merge's batch.
const BATCH: usize = 4096;

/// Keys, their places, and their changes, in ascending order of place and then key.
#[derive(Clone, Debug, Default)]
pub(crate) struct Entries {
    width: usize,
    pub places: Vec<u64>,
    keys: Vec<u8>,
    pub changes: Vec<Change>,
}

impl Entries {
    /// Creates an empty list for keys of `width` bytes.
    pub(super) fn new(width: usize) -> Self {
        Self { width, ..Self::default() }
    }

    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    pub(super) fn clear(&mut self) {
        self.places.clear();
        self.keys.clear();
        self.changes.clear();
    }

    #[inline]
    pub(super) fn key(&self, index: usize) -> &[u8] {
        &self.keys[index * self.width..][..self.width]
    }

    #[inline]
    pub(super) fn push(&mut self, place: u64, key: &[u8], change: Change) {
        self.places.push(place);
        self.keys.extend_from_slice(key);
        self.changes.push(change);
    }

    /// Appends a range of another list.
    fn extend(&mut self, other: &Self, from: usize, to: usize) {
        self.places.extend_from_slice(&other.places[from..to]);
        self.keys.extend_from_slice(&other.keys[from * self.width..to * self.width]);
        self.changes.extend_from_slice(&other.changes[from..to]);
    }

    /// Returns whether all entries from `from` on are in strictly ascending order.
    pub(super) fn ascend(&self, from: usize) -> bool {
        (from.max(1)..self.len()).all(|at| self.compare(at - 1, self, at) == Ordering::Less)
    }

    #[inline]
    fn compare(&self, at: usize, other: &Self, other_at: usize) -> Ordering {
        let places = self.places[at].cmp(&other.places[other_at]);
        places.then_with(|| self.key(at).cmp(other.key(other_at)))
    }
}

/// A source of entries in ascending order, a batch at a time.
pub(crate) trait Source: Send {
    /// Appends the next entries; returns false at the end.
    ///
    /// # Errors
    /// A failed read, damage.
    fn next_batch(&mut self, out: &mut Entries) -> Result<bool>;
}

/// A list in RAM as a source.
#[derive(Debug)]
pub(super) struct Listed {
    entries: Entries,
    at: usize,
}

impl Listed {
    pub(super) fn new(entries: Entries) -> Self {
        Self { entries, at: 0 }
    }
}

impl Source for Listed {
    fn next_batch(&mut self, out: &mut Entries) -> Result<bool> {
        let to = self.entries.len().min(self.at + BATCH);
        out.extend(&self.entries, self.at, to);
        Ok(std::mem::replace(&mut self.at, to) < to)
    }
}

/// Merges sources into one; changes of one key combine into one, the older source's first.
pub(super) struct Merge<'s> {
    /// The inputs, oldest first.
    inputs: Vec<Input<'s>>,
    /// Whether nothing is older than these sources, so that a removal has nothing to remove.
    is_oldest: bool,
}

struct Input<'s> {
    source: Box<dyn Source + 's>,
    batch: Entries,
    at: usize,
    has_ended: bool,
}

impl Input<'_> {
    /// Makes the next entry available; returns false at the end.
    fn fill(&mut self) -> Result<bool> {
        while self.at == self.batch.len() && !self.has_ended {
            self.batch.clear();
            self.at = 0;
            self.has_ended = !self.source.next_batch(&mut self.batch)?;
        }
        Ok(self.at < self.batch.len())
    }

    #[inline]
    fn place(&self) -> u64 {
        self.batch.places[self.at]
    }

    fn compare(&self, other: &Self) -> Ordering {
        self.batch.compare(self.at, &other.batch, other.at)
    }
}

impl<'s> Merge<'s> {
    /// Creates a merge of sources with keys of `width` bytes, oldest first.
    pub(super) fn new(width: usize, sources: Vec<Box<dyn Source + 's>>, is_oldest: bool) -> Self {
        let input = |source| Input { source, batch: Entries::new(width), at: 0, has_ended: false };
        Self { inputs: sources.into_iter().map(input).collect(), is_oldest }
    }

    /// Appends entries of the input with the smallest entry, up to the first entry of another input.
    fn step(&mut self, out: &mut Entries) {
        let least = self.least();
        let others = self.inputs.iter().enumerate().filter(|(index, _)| *index != least);
        let limit = others.map(|(_, input)| input.place()).min();
        let input = &self.inputs[least];
        let places = &input.batch.places[input.at..];
        // Usually short: the sources' keys are spread alike.
        let count = limit.map_or(places.len(), |limit| {
            places.iter().position(|place| *place >= limit).unwrap_or(places.len())
        });
        if count == 0 {
            return self.step_tied(least, out);
        }
        let (from, to) = (input.at, input.at + count);
        self.inputs[least].at = to;
        let input = &self.inputs[least];
        if self.is_oldest {
            for at in from..to {
                settle(out, input.batch.places[at], input.batch.key(at), input.batch.changes[at]);
            }
        } else {
            out.extend(&input.batch, from, to);
        }
    }

    /// Appends one entry whose place other inputs have too, probably with the same key.
    fn step_tied(&mut self, least: usize, out: &mut Entries) {
        let mut change = Change::default();
        let first = &self.inputs[least];
        let (place, at) = (first.place(), first.at);
        let width = first.batch.width;
        let mut stored = [0; KEY_BYTES_MAX];
        stored[..width].copy_from_slice(first.batch.key(at));
        let key = &stored[..width];
        for input in &mut self.inputs {
            if input.place() == place && input.batch.key(input.at) == key {
                change = change.then_at_most(input.batch.changes[input.at]);
                input.at += 1;
            }
        }
        if self.is_oldest {
            settle(out, place, key, change);
        } else if !change.is_nothing() {
            out.push(place, key, change);
        }
    }

    fn least(&self) -> usize {
        let mut least = 0;
        for index in 1..self.inputs.len() {
            let (one, other) = (&self.inputs[index], &self.inputs[least]);
            if one.place() < other.place()
                || one.place() == other.place() && one.compare(other).is_lt()
            {
                least = index;
            }
        }
        least
    }
}

/// Appends an entry with nothing older below it.
#[inline]
fn settle(out: &mut Entries, place: u64, key: &[u8], change: Change) {
    if change.amount != 0 {
        out.push(place, key, Change::add(change.amount));
    }
}

impl Source for Merge<'_> {
    fn next_batch(&mut self, out: &mut Entries) -> Result<bool> {
        let until = out.len() + BATCH;
        loop {
            let mut index = 0;
            while index < self.inputs.len() {
                if self.inputs[index].fill()? {
                    index += 1;
                } else {
                    self.inputs.remove(index);
                }
            }
            if self.inputs.is_empty() {
                return Ok(out.len() + BATCH > until);
            }
            while out.len() < until {
                self.step(out);
                if self.inputs.iter().any(|input| input.at == input.batch.len()) {
                    break;
                }
            }
            if out.len() >= until {
                return Ok(true);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn listed(of: &BTreeMap<u64, Change>) -> Box<dyn Source> {
        let mut entries = Entries::new(8);
        // Each two keys share a place.
        of.iter().for_each(|(key, change)| entries.push(key / 2, &key.to_be_bytes(), *change));
        Box::new(Listed::new(entries))
    }

    fn all(mut source: impl Source) -> BTreeMap<u64, Change> {
        let mut entries = Entries::new(8);
        while source.next_batch(&mut entries).unwrap() {}
        assert!(entries.ascend(0));
        let key = |at| u64::from_be_bytes(entries.key(at).try_into().unwrap());
        (0..entries.len()).map(|at| (key(at), entries.changes[at])).collect()
    }

    /// Sources of various sizes, compared with a map to which all are applied in order.
    #[test]
    fn a_merge_is_what_all_changes_in_order_make() {
        for sources in 1..6u64 {
            let source = |number: u64| -> BTreeMap<u64, Change> {
                let change = |key: u64| Change {
                    removes: (key * 7 + number).is_multiple_of(5),
                    amount: (key as i64 % 7) - 3,
                };
                let keys = (0..9000 * number).step_by(number as usize + 1);
                keys.map(|key| (key, change(key))).filter(|(_, it)| !it.is_nothing()).collect()
            };
            for is_oldest in [false, true] {
                let parts: Vec<_> = (0..sources).map(source).collect();
                let mut expected = BTreeMap::<u64, Change>::new();
                for (key, change) in parts.iter().flatten() {
                    let sum = expected.entry(*key).or_default();
                    *sum = sum.then(*change).unwrap();
                }
                if is_oldest {
                    expected.values_mut().for_each(|change| change.removes = false);
                }
                expected.retain(|_, change| !change.is_nothing());
                let merge = Merge::new(8, parts.iter().map(listed).collect(), is_oldest);
                assert_eq!(all(merge), expected);
            }
        }
    }
}
