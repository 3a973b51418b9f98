//! Code that iterates over the rows, tested with every structure: those of nandex, and those that were added.

use std::collections::HashSet;
use std::sync::Arc;

use nandex::device::MemoryDevice;
use nandex::testing::TableRequest;
use nandex::{
    AnyFilter, AnyNeighbors, AnyTable, OpenOptions, Policy, Requirements, Volume, VolumeOptions,
};
use nandex_baseline::registry::{filters, find, neighbors, rows, tables};

fn volume(log_bytes: u64) -> Volume {
    let options = VolumeOptions { log_bytes, ..VolumeOptions::tiny() };
    Volume::create(Arc::new(MemoryDevice::new()), options).unwrap()
}

#[test]
fn each_kind_has_one_row_and_says_what_it_is_good_for() {
    let kinds: HashSet<_> = rows().map(|row| row.kind).collect();
    assert_eq!(kinds.len(), rows().count());
    assert!(rows().all(|row| row.good_for.ends_with('.') && !row.name.is_empty()));
    assert!(rows().all(|row| find(row.kind).is_some_and(|found| found.name == row.name)));
}

#[test]
fn rows_that_threads_add_again_and_again_are_there_once_behind_those_of_the_crate() {
    let own = ["bufferhash", "slicehash", "cascade"];
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                (0..100).for_each(|_| nandex_baseline::register());
                let kinds: Vec<_> = rows().map(|row| row.kind).collect();
                assert_eq!(kinds[..3], own);
                let added = nandex_baseline::ROWS.iter().map(|row| row.kind);
                assert!(kinds.ends_with(&added.collect::<Vec<_>>()), "{kinds:?}");
            });
        }
    });
}

#[test]
fn advice_never_names_a_baseline() {
    let baselines = tables().filter(|(_, table)| table.is_baseline);
    assert_eq!(baselines.map(|(row, _)| row.kind).collect::<Vec<_>>(), ["multilevel"]);
    for policy in [Policy::Grow, Policy::Fifo] {
        let advice = Requirements { policy, ..Requirements::new(5000, 8, 8) }.advise().unwrap();
        let named = |kind: &str| advice.candidates.iter().any(|it| it.row.kind == kind);
        assert!(!named("multilevel") && named("bufferhash") == (policy == Policy::Fifo));
    }
}

#[test]
fn tiny_configurations_are_of_their_rows_kind_and_work() {
    let tables = tables().map(|(row, table)| (row.kind, (table.tiny)()));
    let filters = filters().map(|(row, filter)| (row.kind, (filter.tiny)()));
    let neighbors = neighbors().map(|(row, neighbors)| (row.kind, (neighbors.tiny)()));
    for (kind, config) in tables.chain(filters).chain(neighbors) {
        assert_eq!(config.kind(), kind);
        config.validate().unwrap();
        assert!(config.log_bytes_best() > 0);
    }
}

#[test]
fn a_configuration_is_made_again_from_its_values_as_text() {
    let tables = tables().map(|(_, table)| (table.tiny)());
    let filters = filters().map(|(_, filter)| (filter.tiny)());
    let all = tables.chain(filters).chain(neighbors().map(|(_, it)| (it.tiny)()));
    let mut parameters = 0;
    for config in all {
        let (values, specs) = (config.values(), config.specs());
        let of = |(name, value): &(String, String)| (name.clone(), value.clone());
        let values: Vec<_> = values.iter().map(of).collect();
        let again = config.with(values.iter().map(|(name, value)| (&name[..], &value[..])));
        assert_eq!(again.unwrap(), config);
        // Each parameter has a value, or parts that have values.
        assert!(specs.iter().all(|spec| {
            values.iter().any(|(name, _)| name.split('.').next() == Some(spec.name))
        }));
        parameters += values.len();
        if !specs.is_empty() {
            let error = config.with([("colour", "red")]).unwrap_err().to_string();
            assert!(error.contains(&format!("the parameters are {}", specs[0].name)), "{error}");
        }
    }
    assert!(parameters > 90, "{parameters}");
}

#[test]
fn what_is_made_by_its_row_is_opened_as_what_it_is() {
    for (row, table) in tables() {
        let config = (table.tiny)();
        let volume = volume(config.log_bytes_best());
        let made = AnyTable::create(&volume, "t", &config).unwrap();
        made.insert_u64(7, 42).unwrap();
        made.close().unwrap();
        let opened = AnyTable::open(&volume, "t").unwrap();
        assert_eq!((opened.kind(), opened.config()), (row.kind, config));
        assert_eq!(opened.get_u64(7).unwrap(), Some(42));
        assert_eq!(opened.iter().count(), 1);
    }
    for (row, filter) in filters() {
        let config = (filter.tiny)();
        let volume = volume(config.log_bytes_best());
        let made = AnyFilter::create(&volume, "f", &config).unwrap();
        made.insert(b"a key").unwrap();
        made.close().unwrap();
        let opened = AnyFilter::open(&volume, "f", &OpenOptions::default()).unwrap();
        assert_eq!((opened.config().kind(), opened.config()), (row.kind, config));
        assert!(opened.contains(b"a key").unwrap());
        assert_eq!(opened.delete(b"a key").is_ok(), filter.deletes, "{}", row.kind);
        assert!(AnyTable::open(&volume, "f").is_err());
    }
    for (row, neighbors) in neighbors() {
        let config = (neighbors.tiny)();
        let volume = volume(config.log_bytes_best());
        let made = AnyNeighbors::create(&volume, "n", &config).unwrap();
        let keys: Vec<u64> = (0..u64::from(made.tables())).collect();
        made.insert(7, &keys).unwrap();
        made.close().unwrap();
        let opened = AnyNeighbors::open(&volume, "n", &OpenOptions::default()).unwrap();
        assert_eq!((opened.config().kind(), opened.config()), (row.kind, config));
        assert_eq!(opened.candidates(&keys).unwrap(), [7]);
        assert!(
            AnyTable::open(&volume, "n").is_err()
                && AnyFilter::open(&volume, "n", &OpenOptions::default()).is_err()
        );
    }
}

#[test]
fn every_variant_for_tests_works_whether_flash_is_ample_or_short() {
    for (row, table) in tables() {
        let request = |variant, (keys, partitions, widths): (_, _, (usize, usize))| TableRequest {
            variant,
            key_bytes: widths.0,
            value_bytes: widths.1,
            partitions,
            keys,
            ..TableRequest::default()
        };
        let short = (None, 4, (16, 64));
        let ample = (Some(3320), 2, (8, 0));
        for request in
            (0..table.testing.variants).flat_map(|at| [short, ample].map(|it| request(at, it)))
        {
            let made = (table.testing.config)(&request);
            assert_eq!(made.config.kind(), row.kind);
            made.config.validate().unwrap_or_else(|error| panic!("{}: {error}", made.label));
        }
    }
    for (row, filter) in filters() {
        for variant in 0..filter.testing.variants {
            let made = (filter.testing.config)(variant, 1);
            assert_eq!(made.config.kind(), row.kind);
            made.config.validate().unwrap_or_else(|error| panic!("{}: {error}", made.label));
        }
    }
    for (row, neighbors) in neighbors() {
        for variant in 0..neighbors.testing.variants {
            let made = (neighbors.testing.config)(variant, 1);
            assert_eq!(made.config.kind(), row.kind);
            made.config.validate().unwrap_or_else(|error| panic!("{}: {error}", made.label));
        }
    }
}

#[test]
fn decoders_take_any_bytes() {
    let mut state = 7_u64;
    let mut bytes = [8; 5000];
    for length in (0..bytes.len()).step_by(97) {
        for byte in &mut bytes[2..] {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            *byte = (state >> 60) as u8;
        }
        for decoder in rows().flat_map(|row| row.decoders) {
            (decoder.run)(&bytes[..length]);
        }
    }
}

#[test]
fn all_structures_of_a_volume_share_its_background_threads() {
    let volume = volume(256 << 20);
    let threads_max = std::thread::available_parallelism().map_or(1, usize::from).max(2);
    let filters: Vec<_> = (0..40)
        .map(|number| {
            let config = (filters().next().unwrap().1.tiny)();
            let options = OpenOptions::default();
            AnyFilter::create_with(&volume, &format!("f{number}"), &config, &options).unwrap()
        })
        .collect();
    for key in 0..2000_u64 {
        filters.iter().for_each(|it| it.insert(&key.to_le_bytes()).unwrap());
    }
    filters.iter().for_each(|it| it.sync().unwrap());
    let threads = volume.stats().background_threads;
    assert!((1..=threads_max).contains(&threads), "{threads}");
    assert!(filters.iter().all(|it| it.contains(&1999_u64.to_le_bytes()).unwrap()));
    filters.into_iter().for_each(|it| it.close().unwrap());
}
