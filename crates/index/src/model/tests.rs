//! The common part of the cost models of all tables, for configurations of any origin.

use std::sync::Arc;

use nandex_device::{Counted, MemoryDevice};

use super::measured::{Measured, Updates, volume};
use super::{Policy, Prediction, Requirements};
use crate::registry;
use crate::{AnyTable, OpenOptions};

const ENTRIES: u64 = 1_000_000;

fn predictions() -> impl Iterator<Item = Prediction> {
    registry::tables().map(|(row, table)| {
        let policy = if table.grows { Policy::Grow } else { Policy::Reject };
        let asked = Requirements { policy, ..Requirements::new(ENTRIES, 8, 8) };
        asked.advise_one(row.kind).unwrap_or_else(|why| panic!("{}: {why}", row.kind))
    })
}

#[test]
fn the_ram_of_a_configuration_is_that_of_the_prediction_it_is_from() {
    for prediction in predictions() {
        let predicted = prediction.ram_bytes() - prediction.optional_filter_bytes;
        let config = &prediction.config;
        let ram_bytes = config.ram_bytes_with(ENTRIES).unwrap();
        let (one_percent, apart) = (predicted / 100, ram_bytes.abs_diff(predicted));
        assert!(apart <= one_percent, "{}: {ram_bytes} and {predicted}", config.kind());
        // Larger filters and buffers take more.
        for (name, value) in [("filter.bits", "20"), ("buffer_pages", "1000")] {
            let Ok(more) = config.with([(name, value)]) else { continue };
            assert!(more.ram_bytes_with(ENTRIES).unwrap() > ram_bytes, "{} {name}", config.kind());
        }
    }
    for (_, filter) in registry::filters() {
        assert_eq!((filter.tiny)().ram_bytes_with(ENTRIES), None);
    }
}

#[test]
fn an_update_of_a_table_that_is_not_cleaned_costs_what_an_insert_does() {
    // Checkpoints count here; an eviction takes one. The prediction for a RHIK is its average over a doubling.
    for (kind, policy, error_max) in [
        ("bufferhash", Policy::Fifo, 0.15),
        ("slicehash", Policy::Reject, 0.15),
        ("growing-slicehash", Policy::Grow, 0.15),
        ("rhik", Policy::Grow, 0.35),
    ] {
        let asked = Requirements { policy, ..Requirements::new(150_000, 8, 8) };
        let prediction = asked.advise_one(kind).unwrap();
        let config = &prediction.config;
        let device = Arc::new(Counted::new(MemoryDevice::new()));
        let volume = volume(Arc::clone(&device) as _, config.log_bytes_best());
        let inline = OpenOptions::default().inline();
        let table = AnyTable::create_with(&volume, "t", config, &inline).unwrap();
        let mut updates = Updates::fill(&table, &asked);
        updates.put(asked.entries);
        let measured = Measured::of(&device, &mut updates, 2 * asked.entries);
        assert!(prediction.costs.updates.is_none());
        measured.check(&prediction.costs, (kind, error_max));
    }
}
