//! A hash table without buffers: each bucket is a page of the drive, changed in place.
//!
//! It is the traditional hash table of section 6.3: no cache, no log, no splits. Only its requests to the
//! drive are made, not its bytes.

use nandex_sim::workload::SplitMix64;
use nandex_sim::{Model, RequestKind};

use crate::play::Player;
use crate::tape::{Act, Step, Tape};
use crate::{Latencies, Scale};

/// A table whose buckets take a share of a drive's pages.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Direct {
    /// The share, 0 to 1.
    pub drive_share: f64,
    /// The seed of the keys.
    pub seed: u64,
}

/// The latencies of a table that changes its pages in place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DirectRun {
    /// The latencies of lookups.
    pub lookups: Latencies,
    /// The latencies of inserts.
    pub inserts: Latencies,
}

impl Direct {
    /// Returns the tape of lookups and inserts of random keys in turn, or of inserts alone.
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

    /// Plays `operations` operations on the drive. The first half is not counted: a drive slows down before
    /// its rate is stable.
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

/// The lookups between inserts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lookups {
    /// No lookups.
    Never,
    /// Each key is looked up before it is inserted.
    BeforeInserts,
}

/// The bytes of [`Drive::DISK`](crate::Drive::DISK).
pub const DISK_BYTES: f64 = 82.3e9;

/// Returns the share of a drive of `bytes` that the paper's 32 GiB take.
pub fn share_of(drive_bytes: f64) -> f64 {
    (32.0 * 1_073_741_824.0 / drive_bytes).min(0.95)
}

/// Returns the operations of a run at a scale.
pub fn operations(scale: Scale) -> u64 {
    scale.of(1 << 25)
}
