//! Berkeley DB's hash table on a drive: the requests of its [`LinearHash`], played.

use std::cell::RefCell;
use std::collections::VecDeque;

use nandex_sim::Model;
use nandex_sim::workload::SplitMix64;

use super::direct::DirectRun;
use super::linear_hash::{LinearHash, LinearHashShape};
use crate::play::Player;
use crate::tape::{Act, Tape};
use crate::{Latencies, fits, vary};

/// Pages of the file for each page of the cache: 32 GB on the drive and 4 GB of DRAM, as the paper's own
/// table has. The paper does not print Berkeley DB's sizes.
pub const FILE_OVER_CACHE: u64 = 8;

/// Operations before a mix is measured, for each page of the cache.
const WARM_UP: u64 = 4;

/// The number of filled tables that each thread keeps: the same tables are used again with other constants
/// and for other loads.
const FILLED_MAX: usize = 4;

thread_local! {
    /// The filled tables, the latest first.
    static FILLED: RefCell<VecDeque<LinearHash>> = const { RefCell::new(VecDeque::new()) };
}

/// A table of Berkeley DB.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Berkeley {
    /// The share of the drive that its file takes, 0 to 1.
    pub drive_share: f64,
    /// The share of lookups that find their key.
    pub success_rate: f64,
    /// The seed of the keys.
    pub seed: u64,
}

/// The keys that are inserted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Inserted {
    /// The key of the lookup just before.
    SameKey,
    /// Another random key.
    OtherKey,
}

impl Berkeley {
    /// Plays `operations` operations, lookups and inserts in turn, on a table whose cache is full. The first
    /// half is not counted: a drive slows down before its rate is stable.
    pub fn play(
        self,
        player: Player,
        model: &mut dyn Model,
        operations: u64,
        inserted: Inserted,
    ) -> DirectRun {
        let tape = tape(&mut self.filled(model), operations, inserted);
        let played = player.play(&tape, model);
        let from = tape.len() / 2;
        DirectRun { lookups: played.of(Act::Lookup, from), inserts: played.of(Act::Insert, from) }
    }

    /// Plays random operations; `lookup_ppm` in a million look a key up. Returns the latencies of
    /// all that count.
    pub fn play_mix(
        self,
        player: Player,
        model: &mut dyn Model,
        operations: u64,
        lookup_ppm: u32,
    ) -> Latencies {
        let mut table = self.filled(model);
        let mut rng = SplitMix64::stream(self.seed, 13);
        let mut operate = || {
            let key = table.draw();
            match rng.chance(lookup_ppm) {
                true => (Act::Lookup, table.lookup(key)),
                false => (Act::Insert, table.insert(key)),
            }
        };
        // Pages that were changed while the table was filled leave the cache.
        for _ in 0..WARM_UP * self.cache_pages(model) {
            let _ = operate();
        }
        let mut tape = Tape::default();
        for _ in 0..operations {
            let (act, steps) = operate();
            tape.push(act, &steps);
        }
        player.play(&tape, model).all(tape.len() / 2)
    }

    fn file_pages(self, model: &dyn Model) -> u64 {
        ((model.page_count() as f64 * self.drive_share) as u64).max(64)
    }

    fn cache_pages(self, model: &dyn Model) -> u64 {
        self.file_pages(model) / vary::value(&fits::BERKELEY_FILE, FILE_OVER_CACHE)
    }

    /// Returns the table on a drive, full, as is its cache.
    pub fn filled(self, model: &dyn Model) -> LinearHash {
        let (file_pages, cache_pages) = (self.file_pages(model), self.cache_pages(model));
        let (success_rate, seed) = (self.success_rate, self.seed);
        kept_or_filled(LinearHashShape { file_pages, cache_pages, success_rate, seed })
    }
}

/// Returns a copy of the table that this thread has filled, or fills it and keeps it.
fn kept_or_filled(shape: LinearHashShape) -> LinearHash {
    FILLED.with_borrow_mut(|kept| {
        if let Some(table) = kept.iter().find(|table| table.shape() == shape) {
            return table.clone();
        }
        kept.truncate(FILLED_MAX - 1);
        kept.push_front(LinearHash::filled(shape));
        kept[0].clone()
    })
}

fn tape(table: &mut LinearHash, operations: u64, inserted: Inserted) -> Tape {
    let mut tape = Tape::default();
    while (tape.len() as u64) < operations {
        let key = table.draw();
        tape.push(Act::Lookup, &table.lookup(key));
        let key = if inserted == Inserted::SameKey { key } else { table.draw() };
        tape.push(Act::Insert, &table.insert(key));
    }
    tape
}
