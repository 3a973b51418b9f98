//! What the cost models of all tables say of configurations, however these came to be.

use super::{Policy, Prediction, Requirements};
use crate::registry;

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
        // Filters and buffers that are stated larger take more.
        for (name, value) in [("filter.bits", "20"), ("buffer_pages", "1000")] {
            let Ok(more) = config.with([(name, value)]) else { continue };
            assert!(more.ram_bytes_with(ENTRIES).unwrap() > ram_bytes, "{} {name}", config.kind());
        }
    }
    for (_, filter) in registry::filters() {
        assert_eq!((filter.tiny)().ram_bytes_with(ENTRIES), None);
    }
}
