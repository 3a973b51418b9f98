//! The multi-level index's configurations for tests, and its decoders for fuzzing.

use nandex::raw::{decode_config, decode_map, test_table};
use nandex::testing::{Decoder, TableRequest, TableTests, TestTable};

use super::{Config, Levels};

/// Variants have levels of many groups and a cache of pages, and groups of one page and no such cache.
pub(super) const TESTS: TableTests = TableTests { variants: 2, config };

fn config(request: &TableRequest) -> TestTable {
    let (first_pages, group_pages, page_cache_bytes) =
        [(1, 4, 32 << 10), (2, 1, 0)][(request.variant % 2) as usize];
    let config = Config { first_pages, group_pages, page_cache_bytes, ..Config::tiny() };
    let label = format!("multi-level, from {first_pages} pages on, groups of {group_pages}");
    test_table(request, config, label)
}

pub(super) const DECODERS: &[Decoder] = &[
    Decoder { name: "configuration", run: decode_config::<Config> },
    Decoder { name: "levels", run: decode_map::<Levels> },
];
