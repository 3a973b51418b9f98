//! The paper's update-based eviction, reduced to its requests and entries.
//!
//! An entry of the oldest incarnation is evicted if a newer incarnation's filter has its key, or the buffer
//! has it: nothing is read to prove it. The remaining entries go back into the buffer, which may be full
//! again; then the next oldest incarnation is evicted, until one frees space or all were tried. Then all
//! entries of the oldest are evicted.
//!
//! ```text
//!   buffer -> newest | .. | oldest -> read, ask filters -> live entries -> buffer
//! ```

use std::collections::{HashMap, VecDeque};

use nandex_sim::RequestKind;
use nandex_sim::workload::SplitMix64;

use super::lab::{BUFFER_ENTRIES, BUFFER_PAGES, INCARNATIONS};
use crate::tape::{Act, Step, Tape};

/// The false positives of a filter of 16 bits an entry, in a million: 2 to the power of -11.09.
const FALSE_PPM: u32 = 459;

/// The keys that are inserted. 40 % of inserts update a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Updates {
    /// Keys are drawn from a range; a table in FIFO order has 40 % of its keys.
    FromRange,
    /// Random keys of the table are inserted again; all others are new.
    OfStored,
}

/// A super table.
#[derive(Debug)]
pub struct SuperTable {
    updates: Updates,
    /// The buffer's keys.
    buffer: Vec<u64>,
    /// The keys of each incarnation and its place, the oldest first.
    incarnations: VecDeque<(u64, u64, Vec<u64>)>,
    /// The place of the newest version of each key: the number of its incarnation, or [`IN_BUFFER`].
    newest: HashMap<u64, u64>,
    next_incarnation: u64,
    free: Vec<u64>,
    next_key: u64,
    first_page: u64,
    rng: SplitMix64,
    /// The number of incarnations tried by each flush that evicted.
    pub tried: Vec<u32>,
    /// The entries of evicted incarnations, and those that stayed.
    pub seen: u64,
    pub kept: u64,
}

/// The value that stands for the buffer in place of an incarnation's number.
const IN_BUFFER: u64 = u64::MAX;

impl SuperTable {
    /// Creates an empty one whose pages begin at `first_page`.
    pub fn new(updates: Updates, first_page: u64, seed: u64) -> Self {
        Self {
            updates,
            buffer: Vec::new(),
            incarnations: VecDeque::new(),
            newest: HashMap::new(),
            next_incarnation: 0,
            free: (0..=INCARNATIONS).rev().collect(),
            next_key: 0,
            first_page,
            rng: SplitMix64::stream(seed, 15),
            tried: Vec::new(),
            seen: 0,
            kept: 0,
        }
    }

    /// Returns the pages that a super table takes.
    pub const fn pages() -> u64 {
        (INCARNATIONS + 1) * BUFFER_PAGES as u64
    }

    /// Returns the entries of a full one.
    pub const fn capacity() -> u64 {
        INCARNATIONS * BUFFER_ENTRIES as u64
    }

    /// Resets its counts.
    pub fn forget(&mut self) {
        self.tried.clear();
        (self.seen, self.kept) = (0, 0);
    }

    fn draw(&mut self) -> u64 {
        match self.updates {
            Updates::FromRange => {
                let remembered = Self::capacity() + u64::from(BUFFER_ENTRIES) / 2;
                self.rng.below((remembered as f64 / -(0.6_f64.ln())) as u64)
            }
            Updates::OfStored if self.rng.chance(400_000) && !self.incarnations.is_empty() => {
                let which = self.rng.below(self.incarnations.len() as u64) as usize;
                let keys = &self.incarnations[which].2;
                keys[self.rng.below(keys.len() as u64) as usize]
            }
            Updates::OfStored => {
                self.next_key += 1;
                self.next_key
            }
        }
    }

    /// Inserts a key, and puts its requests on the tape.
    pub fn insert(&mut self, tape: &mut Tape) {
        let key = self.draw();
        if self.newest.insert(key, IN_BUFFER) != Some(IN_BUFFER) {
            self.buffer.push(key);
        }
        let mut steps = Vec::new();
        if self.buffer.len() >= BUFFER_ENTRIES as usize {
            self.flush(&mut steps);
        }
        tape.push(Act::Insert, &steps);
    }

    fn flush(&mut self, steps: &mut Vec<Step>) {
        let mut tried = 0;
        loop {
            self.write(steps);
            if self.incarnations.len() as u64 <= INCARNATIONS {
                break;
            }
            tried += 1;
            let (number, place, keys) = self.incarnations.pop_front().expect("there are some");
            self.free.push(place);
            push(steps, RequestKind::Read, self.first_page + place * u64::from(BUFFER_PAGES));
            self.seen += keys.len() as u64;
            let keeps = u64::from(tried) < INCARNATIONS;
            for key in keys {
                if self.newest.get(&key) != Some(&number) {
                    continue;
                }
                if keeps && !self.seems_updated() {
                    self.newest.insert(key, IN_BUFFER);
                    self.buffer.push(key);
                } else {
                    self.newest.remove(&key);
                }
            }
            self.kept += self.buffer.len() as u64;
            if self.buffer.len() < BUFFER_ENTRIES as usize {
                break;
            }
        }
        if tried > 0 {
            self.tried.push(tried);
        }
    }

    /// Returns whether a newer incarnation's filter has a false positive for a key.
    fn seems_updated(&mut self) -> bool {
        (0..self.incarnations.len()).any(|_| self.rng.chance(FALSE_PPM))
    }

    /// Writes the buffer as the newest incarnation.
    fn write(&mut self, steps: &mut Vec<Step>) {
        let place = self.free.pop().expect("an eviction has freed a place");
        push(steps, RequestKind::Write, self.first_page + place * u64::from(BUFFER_PAGES));
        let number = self.next_incarnation;
        self.next_incarnation += 1;
        for key in &self.buffer {
            self.newest.insert(*key, number);
        }
        self.incarnations.push_back((number, place, std::mem::take(&mut self.buffer)));
    }
}

/// Adds a request of a whole incarnation, after all before.
fn push(steps: &mut Vec<Step>, kind: RequestKind, page: u64) {
    let wave = steps.len() as u32;
    steps.push(Step { kind, page, pages: BUFFER_PAGES, wave });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(updates: Updates, laps: u64) -> (SuperTable, Tape) {
        let mut table = SuperTable::new(updates, 0, 1);
        let mut tape = Tape::default();
        (0..laps * SuperTable::capacity()).for_each(|_| table.insert(&mut tape));
        (table, tape)
    }

    #[test]
    fn each_flush_writes_an_incarnation_and_later_ones_read_the_oldest_first() {
        let (table, tape) = filled(Updates::FromRange, 2);
        assert_eq!(table.incarnations.len() as u64, INCARNATIONS);
        let reads: Vec<u64> = tape
            .operations()
            .flat_map(|it| it.1)
            .filter(|step| step.kind == RequestKind::Read)
            .map(|step| step.page / u64::from(BUFFER_PAGES))
            .collect();
        assert_eq!(reads.len() as u32, table.tried.iter().sum::<u32>());
        assert!(reads[..16].iter().copied().eq(0..16), "{:?}", &reads[..16]);
    }

    #[test]
    fn a_key_whose_newest_version_is_evicted_and_live_stays() {
        let (table, _) = filled(Updates::FromRange, 2);
        assert!(table.kept > table.seen / 3 && table.kept < table.seen);
        // Every key of the table has one newest place, and is there.
        let held: std::collections::HashSet<u64> =
            table.incarnations.iter().map(|it| it.0).chain([IN_BUFFER]).collect();
        assert!(table.newest.values().all(|place| held.contains(place)));
    }

    #[test]
    fn a_table_that_grows_by_new_keys_flushes_ever_more_often() {
        let (mut table, _) = filled(Updates::OfStored, 1);
        let flushes = |table: &mut SuperTable| {
            table.forget();
            let mut tape = Tape::default();
            (0..20_000).for_each(|_| table.insert(&mut tape));
            tape.operations().filter(|it| !it.1.is_empty()).count()
        };
        let first = flushes(&mut table);
        let mut later = first;
        for _ in 0..4 {
            later = flushes(&mut table);
        }
        assert!(later > 3 * first, "{first} and {later}");
    }
}
