//! Tables of the registry's rows that have no module of their own here.

use nandex::testing::{Retention, TableRequest, TestTable};
use nandex_baseline::registry::{self, Row, TableRow};
use nandex_sim::workload::SplitMix64;

use super::cache_bytes;
use super::setup::Widths;
use crate::contract::pick;

/// The RAM of a table that grows: enough for all keys, and so little that its cache, which uses the rest, is
/// made in no time. A sweep opens thousands of tables, and looks everything up in each.
const RAM_BYTES_MAX: u64 = 2 << 20;

/// A variant of a row.
#[derive(Clone, Copy, Debug)]
pub struct Registered {
    table: &'static TableRow,
    request: TableRequest,
}

impl Registered {
    /// Creates a variant. All variants come in turn; the rest is random.
    pub(super) fn numbered(
        table: &'static TableRow,
        number: u64,
        Widths { key_bytes, value_bytes }: Widths,
        rng: &mut SplitMix64,
    ) -> Self {
        let request = TableRequest {
            variant: number % table.testing.variants,
            key_bytes,
            value_bytes,
            partitions: pick(rng, &[1, 1, 2]),
            buffer_pages: pick(rng, &[1, 1, 2]),
            keys: (rng.below(2) == 0).then_some(3320),
            cache_bytes: cache_bytes(number / table.testing.variants),
            threads: 0,
        };
        Self { table, request }
    }

    /// Returns the configuration and its law, for `threads` threads.
    pub(super) fn made(&self, threads: usize) -> TestTable {
        let mut made = (self.table.testing.config)(&TableRequest { threads, ..self.request });
        made.options.ram_bytes_max = Some(RAM_BYTES_MAX);
        made
    }

    /// Returns the entries of all buffers when they are full.
    pub(super) fn buffered_entries(&self) -> u64 {
        u64::from(self.request.partitions) * self.made(0).buffer_entries
    }

    /// Returns the number of keys: enough to fill buffers repeatedly, and at most the capacity if nothing is
    /// evicted.
    pub(super) fn keys(&self) -> u64 {
        let buffered = self.buffered_entries();
        match self.made(0).retention {
            Retention::AllUnlessForced(_) => buffered * 5 / 4,
            _ => (4 * buffered).min(400),
        }
    }

    /// Returns the entries that it must still have, with `threads` threads.
    pub(super) fn retention(&self, threads: usize) -> Retention {
        match self.made(threads).retention {
            // Without threads nothing is forced.
            Retention::AllUnlessForced(_) if threads == 0 => Retention::All,
            retention => retention,
        }
    }
}

/// Returns the rows of tables that have no module of their own here.
pub fn further() -> impl Iterator<Item = (&'static Row, &'static TableRow)> {
    registry::tables().filter(|(row, _)| !["bufferhash", "slicehash"].contains(&row.kind))
}
