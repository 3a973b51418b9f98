//! Counts the bytes that updates of a table move to and from its device, for tests of the predictions.

use std::sync::Arc;
use std::time::Duration;

use nandex_device::{Counted, Device, MemoryDevice};
use nandex_store::{Durability, Threads, Volume, VolumeOptions};

use super::{OperationCosts, PAGE_BYTES, Requirements};
use crate::Table;

/// The largest difference between a count and a prediction, as a share of the prediction.
pub(crate) const ERROR_MAX: f64 = 0.1;

/// Returns a volume without threads, whose log is written when its blocks are full.
pub(crate) fn volume(device: Arc<dyn Device>, log_bytes: u64) -> Volume {
    let options = VolumeOptions {
        log_bytes,
        durability: Durability::Every(Duration::from_secs(3600)),
        threads: Threads::Inline,
        hash_key: Some(42),
        ..VolumeOptions::default()
    };
    Volume::create(device, options).unwrap()
}

/// Updates of a table's keys at random.
pub(crate) struct Updates<'t> {
    table: &'t dyn Table,
    entries: u64,
    key: Vec<u8>,
    value: Vec<u8>,
    state: u64,
}

impl<'t> Updates<'t> {
    /// Inserts all keys of the requirements.
    pub(crate) fn fill(table: &'t dyn Table, asked: &Requirements) -> Self {
        let key = vec![0; asked.key_bytes as usize];
        let value = vec![1; asked.value_bytes as usize];
        let mut updates = Self { table, entries: asked.entries, key, value, state: 7 };
        (0..asked.entries).for_each(|number| updates.insert(number));
        updates
    }

    fn insert(&mut self, number: u64) {
        self.key[..8].copy_from_slice(&number.to_le_bytes());
        self.table.insert(&self.key, &self.value).unwrap();
    }

    /// Updates `updates` keys, chosen uniformly.
    pub(crate) fn put(&mut self, updates: u64) {
        for _ in 0..updates {
            // Knuth's MMIX generator, whose upper bits are good.
            self.state = self
                .state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let number = (u128::from(self.state) * u128::from(self.entries)) >> 64;
            self.insert(number as u64);
        }
    }
}

/// The average cost of an update.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Measured {
    read_bytes: f64,
    reads: f64,
    write_bytes: f64,
}

impl Measured {
    /// Counts all reads and writes of this number of updates, including checkpoints and the log.
    pub(crate) fn of(
        device: &Counted<MemoryDevice>,
        updates: &mut Updates<'_>,
        count: u64,
    ) -> Self {
        let before = device.snapshot();
        updates.put(count);
        let counts = device.snapshot() - before;
        let each = |number: u64| number as f64 / count as f64;
        Self {
            read_bytes: each(counts.pages_read * PAGE_BYTES),
            reads: each(counts.reads),
            write_bytes: each(counts.pages_written * PAGE_BYTES),
        }
    }

    /// Compares it with the prediction, and prints both. They may differ by the given share.
    pub(crate) fn check(&self, costs: &OperationCosts, (what, error_max): (&str, f64)) {
        println!("{what}");
        let compare = |name: &str, predicted: f64, measured: f64| {
            let error = measured / predicted - 1.0;
            println!("  {name:<15} {predicted:>10.4} {measured:>10.4} {:>+6.1} %", 100.0 * error);
            let is_near = error.abs() <= error_max || predicted == 0.0 && measured == 0.0;
            assert!(is_near, "{what}: {measured} {name} of {predicted}");
        };
        compare("bytes written", costs.update_write_bytes(), self.write_bytes);
        compare("bytes read", costs.update_read_bytes(), self.read_bytes);
        if let Some(updates) = costs.updates {
            compare("reads", updates.reads, self.reads);
        }
    }
}
