//! Berkeley DB's hash table on a drive: the requests of its [`LinearHash`], played.

use nandex_sim::Model;

use super::direct::DirectRun;
use super::linear_hash::{LinearHash, LinearHashShape};
use crate::play::Player;
use crate::tape::{Act, Tape};

/// Pages of the file for each page of the cache: 32 GB on the drive and 4 GB of DRAM, which the paper gives its own
/// table. It does not print Berkeley DB's.
const FILE_OVER_CACHE: u64 = 8;

/// A table of Berkeley DB.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Berkeley {
    /// Its file's share of the drive, 0 to 1.
    pub drive_share: f64,
    /// The share of lookups that find their key.
    pub success_rate: f64,
    /// The seed of the keys.
    pub seed: u64,
}

/// Which keys are inserted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Inserted {
    /// The key that was looked up just before.
    SameKey,
    /// Another random key.
    OtherKey,
}

impl Berkeley {
    /// Plays that many operations, lookups and inserts in turn, on a table whose cache is full. The first half is not
    /// counted: a drive slows down before its rate is stable.
    pub fn play(
        self,
        player: Player,
        model: &mut dyn Model,
        operations: u64,
        inserted: Inserted,
    ) -> DirectRun {
        let file_pages = ((model.page_count() as f64 * self.drive_share) as u64).max(64);
        let cache_pages = file_pages / FILE_OVER_CACHE;
        let (success_rate, seed) = (self.success_rate, self.seed);
        let shape = LinearHashShape { file_pages, cache_pages, success_rate, seed };
        let tape = tape(&mut LinearHash::filled(shape), operations, inserted);
        let played = player.play(&tape, model);
        let from = tape.len() / 2;
        DirectRun { lookups: played.of(Act::Lookup, from), inserts: played.of(Act::Insert, from) }
    }
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
