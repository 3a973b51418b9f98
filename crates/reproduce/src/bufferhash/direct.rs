//! A hash table without buffers: each bucket is a page of the drive, changed in place.
//!
//! It is what section 6.3 calls a traditional hash table: no cache, no log, no splits. Only its requests to the drive
//! are made, not its bytes.

use nandex_sim::workload::SplitMix64;
use nandex_sim::{Model, RequestKind};

use crate::play::Player;
use crate::tape::{Act, Step, Tape};
use crate::{Latencies, Scale};

/// A table whose buckets are on this share of a drive's pages.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Direct {
    /// 0 to 1.
    pub drive_share: f64,
    /// The seed of the keys.
    pub seed: u64,
}

/// The latencies of a table that changes its pages in place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DirectRun {
    /// Of lookups.
    pub lookups: Latencies,
    /// Of inserts.
    pub inserts: Latencies,
}

impl Direct {
    /// Lookups and inserts of random keys in turn, or inserts alone.
    fn tape(self, pages: u64, operations: u64, with_lookups: Lookups) -> Tape {
        let pages = ((pages as f64 * self.drive_share) as u64).max(1);
        let mut rng = SplitMix64::stream(self.seed, 7);
        let mut tape = Tape::default();
        while (tape.len() as u64) < operations {
            let page = rng.below(pages);
            let step = |kind, wave| Step { kind, page, pages: 1, wave };
            let (read, write) = (step(RequestKind::Read, 0), step(RequestKind::Write, 1));
            if with_lookups == Lookups::BeforeInserts {
                tape.push(Act::Lookup, &[read]);
            }
            tape.push(Act::Insert, &[read, write]);
        }
        tape
    }

    /// Plays that many operations on the drive. The first half is not counted: a drive slows down before its
    /// rate is stable.
    pub fn play(
        self,
        player: Player,
        model: &mut dyn Model,
        operations: u64,
        with_lookups: Lookups,
    ) -> DirectRun {
        let tape = self.tape(model.page_count(), operations, with_lookups);
        let played = player.play(&tape, model);
        let from = tape.len() / 2;
        DirectRun { lookups: played.of(Act::Lookup, from), inserts: played.of(Act::Insert, from) }
    }
}

/// The operations between inserts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lookups {
    /// Nothing.
    Never,
    /// Each key is looked up before it is inserted.
    BeforeInserts,
}

/// The bytes of [`Drive::DISK`](crate::Drive::DISK).
pub const DISK_BYTES: f64 = 82.3e9;

/// The share of a drive of `bytes` that the paper's 32 GiB take.
pub fn share_of(drive_bytes: f64) -> f64 {
    (32.0 * 1_073_741_824.0 / drive_bytes).min(0.95)
}

/// Operations of a run at that scale.
pub fn operations(scale: Scale) -> u64 {
    scale.of(1 << 25)
}
