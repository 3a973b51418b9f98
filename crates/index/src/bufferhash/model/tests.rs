//! Tests of the advice: it meets the requirements with the least RAM.

use std::sync::Arc;

use nandex_device::{Geometry, MemoryDevice};
use nandex_store::schedule::Channels;
use nandex_store::{Durability, Threads, Volume, VolumeOptions};
use proptest::prelude::*;

use super::advise::Search;
use super::sizing::BufferHashSizing;
use super::*;
use crate::bufferhash::filter::{FilterKind, FilterShape};
use crate::bufferhash::{BufferHash, Config};
use crate::model::{CostPreset, Load, Policy, Prediction, Requirements, log_bytes};
use crate::{OpenOptions, Table};

const MIB: u64 = 1 << 20;

fn text(result: crate::Result<Prediction>) -> String {
    result.unwrap_err().to_string()
}

/// Returns the search's result and its prediction, checked.
fn advised(requirements: &Requirements, filter: FilterKind) -> (BufferHashSizing, Prediction) {
    let found = Search::new(requirements, filter).unwrap().find().unwrap();
    let prediction = advise_with(requirements, filter).unwrap();
    check(requirements, &found, &prediction);
    (found, prediction)
}

/// Checks the conditions that every advice must meet, computed again from its own figures.
fn check(requirements: &Requirements, found: &BufferHashSizing, prediction: &Prediction) {
    let BufferHashSizing { super_tables, incarnations, filter, pages, .. } = *found;
    let config: &Config = prediction.config.of().unwrap();
    assert_eq!((config.super_tables, config.buffer_pages), (super_tables, pages));
    assert_eq!(config.incarnations(), incarnations.into());
    assert!(super_tables.is_power_of_two() && super_tables <= SUPER_TABLES_MAX);
    let buffer_bytes = u64::from(pages) * 4096;
    // If four incarnations of the smallest buffers hold the entries, these may be smaller.
    let of_smallest = BufferFill::new(8, page_slots(requirements.entry_bytes()));
    let few = of_smallest.kept_of(8 * page_slots(requirements.entry_bytes())) as u64 * 4;
    let bytes_min = if requirements.entries <= few { 2 * 4096 } else { BUFFER_BYTES_MIN };
    assert!((bytes_min..=BUFFER_BYTES_MAX).contains(&buffer_bytes));
    match filter.kind() {
        FilterKind::Fuse => assert!(incarnations <= 64 * filter.words() - 2),
        FilterKind::Bloom => {
            assert!(incarnations + 8 <= 64 * filter.words());
        }
    }
    assert_eq!(filter, FilterShape::from_parts(filter.parts()).unwrap());
    // Capacity: on flash alone, with one per cent to spare, bumped entries not counted.
    let live = u64::from(super_tables) * u64::from(incarnations);
    let slots = u64::from(pages) * page_slots(requirements.entry_bytes());
    let fill = BufferFill::new(pages, page_slots(requirements.entry_bytes()));
    let filled = fill.kept_of(slots);
    let kept = filled * (1.0 - filter.bumped_share(filled as u64));
    assert!(found.entries as f64 <= kept + 1.0);
    assert_eq!(prediction.entries_capacity, live * found.entries);
    assert!((live * found.entries) as f64 >= requirements.entries as f64 * CAPACITY_SLACK);
    assert!(f64::from(filter.entries_max()) >= filled);
    // RAM.
    let spare = (super_tables / 16).max(2);
    assert_eq!(prediction.buffer_bytes, u64::from(super_tables + spare) * buffer_bytes);
    assert_eq!(prediction.filter_bytes, u64::from(super_tables) * filter.ram_bytes() as u64);
    assert!(prediction.ram_bytes() <= requirements.ram_bytes.unwrap_or(u64::MAX));
    // Flash.
    let filter_pages = (filter.column_bits() as u64).div_ceil(8).div_ceil(4064);
    let segment_bytes = (u64::from(pages) + filter_pages) * 4096;
    assert_eq!(prediction.flash_bytes, (live + u64::from(spare)) * segment_bytes);
    // Reads and writes.
    let costs = &prediction.costs;
    let reads = f64::from(incarnations) * filter.rate(found.entries);
    assert!((costs.reads_per_miss / reads - 1.0).abs() < 0.005);
    assert!(costs.reads_per_hit >= 1.0);
    assert_eq!(
        prediction.compromise.is_some(),
        found.miss_reads > requirements.miss_reads_max.unwrap_or(0.01)
    );
    let written =
        segment_bytes as f64 / found.entries as f64 + log_bytes(requirements.entry_bytes());
    // Entries of a buffer are a whole number.
    let rounding = 0.005_f64.max(1.0 / found.entries as f64);
    assert!((costs.insert_write_bytes / written - 1.0).abs() < rounding);
    assert!(!prediction.to_string().contains("NaN"));
}

#[test]
fn sixty_four_million_small_entries_take_at_most_2_2_bytes_of_ram_each() {
    let requirements = Requirements::new(64_000_000, 8, 8).ram(256 * MIB);
    let (found, advice) = advised(&requirements, FilterKind::Fuse);
    assert!(advice.ram_bytes_per_entry() <= 2.2, "{advice}");
    assert!(advice.costs.reads_per_miss <= 0.01 && advice.compromise.is_none(), "{advice}");
    assert!((128 << 10..=768 << 10).contains(&(found.pages * 4096)), "{advice}");
}

#[test]
fn pages_hold_the_slots_the_page_format_says() {
    assert_eq!(page_slots(16), 248);
    assert_eq!(page_slots(8), 123 * 4);
    assert_eq!(page_slots(1015), 4);
    assert_eq!(page_slots(1016), 0);
}

#[test]
fn more_ram_than_needed_is_left_alone() {
    let requirements = Requirements::new(10_000_000, 8, 8);
    let needed = advise(&requirements).unwrap().ram_bytes();
    let advice = advise(&requirements.ram(needed * 10)).unwrap();
    assert_eq!(advice.ram_bytes(), needed);
    assert!(advice.to_string().contains("more would gain almost nothing"), "{advice}");
}

#[test]
fn where_the_worst_insert_decides_the_buffers_more_ram_goes_to_filters() {
    let requirements = quick(10_000_000, "nvme", 0.2);
    let least = advise(&requirements).unwrap();
    let with = |percent: u64| {
        advise(&requirements.clone().ram(least.ram_bytes() * percent / 100)).unwrap()
    };
    let (some, plenty) = (with(120), with(1000));
    for advice in [&some, &plenty] {
        assert_eq!(advice.buffer_bytes, least.buffer_bytes, "{advice}");
        assert!(advice.to_string().contains("what buffers leave goes to filters"), "{advice}");
    }
    let reads = [&least, &some, &plenty].map(|it| it.costs.reads_per_miss);
    assert!(reads[0] > reads[1] * 2.0 && reads[1] > reads[2] * 2.0, "{reads:?}");
    // One miss in ten thousand reads a page; the remaining RAM is not used.
    assert!((0.000_02..=0.0001).contains(&reads[2]), "{reads:?}");
    assert_eq!(with(2000).ram_bytes(), plenty.ram_bytes());
    let limited = Requirements { miss_reads_max: Some(0.01), ..requirements.clone() };
    let advice = advise(&limited.ram(least.ram_bytes() * 10)).unwrap();
    assert_eq!(advice.ram_bytes(), least.ram_bytes());
}

#[test]
fn filters_take_no_spare_ram_that_a_load_cannot_pay_for() {
    let requirements = quick(10_000_000, "nvme", 0.2);
    let needed = advise(&requirements).unwrap();
    let rate = needed.costs.inserts_per_s(&CostPreset::default()) * 0.999;
    let load = Load { inserts_per_s: rate, ..Load::default() };
    let loaded = Requirements { load, ..requirements.clone() };
    let advice = advise(&loaded.ram(needed.ram_bytes() * 10)).unwrap();
    assert!(advice.costs.busy_share(&CostPreset::default(), &load) <= 1.0, "{advice}");
    let plenty = advise(&requirements.ram(1 << 30)).unwrap();
    assert!(plenty.costs.busy_share(&CostPreset::default(), &load) > 1.0, "{plenty}");
}

/// Returns the requirements of a table on this device whose inserts wait at most this long.
fn quick(entries: u64, device: &str, worst_ms: f64) -> Requirements {
    let device = CostPreset::by_name(device).unwrap();
    let insert_worst_ns_max = Some(worst_ms * 1e6);
    Requirements { device, insert_worst_ns_max, ..Requirements::new(entries, 8, 8) }
}

#[test]
fn a_limit_on_the_worst_insert_makes_buffers_smaller() {
    // Section 6.4: one block of a chip takes 28 ms, 128 KiB of the Intel SSD 2.72 ms with an erase.
    for (entries, device, worst_ms) in
        [(100_000_000, "flash-chip", 40.0), (1_000_000_000, "intel-x18m", 3.0)]
    {
        let requirements = quick(entries, device, worst_ms);
        let (found, advice) = advised(&requirements, FilterKind::Fuse);
        assert!(advice.insert_worst_ns <= worst_ms * 1e6, "{advice}");
        let loose = Requirements { insert_worst_ns_max: None, ..requirements };
        let (free, looser) = advised(&loose, FilterKind::Fuse);
        assert!(device == "flash-chip" || found.pages < free.pages, "{advice}\n{looser}");
        assert!(advice.compromise.is_none() && advice.ram_bytes_per_entry() < 2.5, "{advice}");
    }
}

#[test]
fn on_a_chip_a_buffer_and_its_filter_fill_whole_blocks() {
    for (entries, kind) in [
        (10_000, FilterKind::Fuse),
        (1_000_000, FilterKind::Fuse),
        (100_000_000, FilterKind::Fuse),
        (100_000_000, FilterKind::Bloom),
    ] {
        let device = CostPreset::by_name("flash-chip").unwrap();
        let requirements = Requirements { device, ..Requirements::new(entries, 8, 8) };
        for requirements in [requirements.clone(), requirements.ram(1 << 30)] {
            let (found, advice) = advised(&requirements, kind);
            // Blocks of 128 KiB; one is the cheapest, on average and in the worst case.
            assert_eq!(found.segment_pages(), 32, "{advice}");
            assert!((27e6..28e6).contains(&advice.insert_worst_ns), "{advice}");
        }
    }
}

#[test]
fn where_channels_are_known_segments_are_whole_rounds_of_their_chunks() {
    for (channels, chunk_bytes, kind) in [
        (32, 8192, FilterKind::Fuse),
        (32, 8192, FilterKind::Bloom),
        (12, 16_384, FilterKind::Fuse),
        (2, 4096, FilterKind::Fuse),
    ] {
        let geometry = Geometry {
            channels: Some(channels),
            chunk_bytes: Some(chunk_bytes),
            ..Geometry::opaque()
        };
        let known = Channels::of(&geometry);
        let round = channels * chunk_bytes / 4096;
        for entries in [100_000, 64_000_000] {
            let plain = Requirements::new(entries, 8, 8);
            let (before, _) = advised(&plain, kind);
            let (found, advice) = advised(&Requirements { channels: known, ..plain }, kind);
            assert_eq!(found.segment_pages() % u64::from(round), 0, "{channels}: {advice}");
            let config: &Config = advice.config.of().unwrap();
            assert_eq!(u64::from(config.segment_pages()), found.segment_pages());
            // Large tables can choose among many sizes.
            let most = if entries > 1_000_000 { before.ram_bytes * 4 / 3 } else { u64::MAX };
            assert!(found.ram_bytes <= most, "{} and {}", found.ram_bytes, before.ram_bytes);
        }
        let grow =
            Requirements { policy: Policy::Grow, channels: known, ..Requirements::new(1000, 8, 8) };
        let growing = grow.advise_one("growing").unwrap();
        let growing: &crate::bufferhash::growing::Config = growing.config.of().unwrap();
        assert_eq!(growing.first.segment_pages() % round, 0, "{growing:?}");
    }
    // On a chip, the blocks decide.
    let device = CostPreset::by_name("flash-chip").unwrap();
    let geometry = Geometry { channels: Some(3), chunk_bytes: Some(4096), ..Geometry::opaque() };
    let channels = Channels::of(&geometry);
    let chip = Requirements { device, channels, ..Requirements::new(1_000_000, 8, 8) };
    assert_eq!(advised(&chip, FilterKind::Fuse).0.segment_pages(), 32);
}

#[test]
fn a_worst_insert_that_cannot_be_kept_is_refused_with_the_least_that_can() {
    for device in ["flash-chip", "intel-x18m", "nvme"] {
        let message = text(advise(&quick(100_000_000, device, 0.01)));
        let least = message.split("this table needs ").nth(1).unwrap().split(' ').next().unwrap();
        let least_ms = least.parse::<f64>().unwrap() / 1e6;
        assert!(advise(&quick(100_000_000, device, least_ms)).is_ok(), "{message}");
        assert!(advise(&quick(100_000_000, device, least_ms * 0.99)).is_err(), "{message}");
    }
    // Within the limit, the least RAM that is enough is named too.
    let little = quick(100_000_000, "flash-chip", 40.0).ram(MIB);
    let message = text(advise(&little));
    let least = message.split("this table needs ").nth(1).unwrap().split(' ').next().unwrap();
    let enough = little.ram(least.parse().unwrap());
    assert!(advise(&enough).unwrap().insert_worst_ns <= 40e6, "{message}");
}

#[test]
fn with_too_little_ram_the_filters_shrink_and_misses_read_more() {
    let mut reads_before = 0.0;
    for mib in [120, 100, 80, 60, 40] {
        let requirements = Requirements::new(64_000_000, 8, 8).ram(mib * MIB);
        let (_, advice) = advised(&requirements, FilterKind::Fuse);
        let reads = advice.costs.reads_per_miss;
        assert!(advice.compromise.is_some() && reads > reads_before, "{mib} MiB: {advice}");
        assert!(advice.to_string().contains("so the filters are smaller"), "{advice}");
        let limited = Requirements { miss_reads_max: Some(0.01), ..requirements };
        assert!(text(advise(&limited)).starts_with("reads per miss: 0.01; in this RAM it reads "));
        reads_before = reads;
    }
}

#[test]
fn ram_that_cannot_suffice_is_refused_with_the_least_that_would() {
    let requirements = Requirements::new(64_000_000, 8, 8);
    let message = text(advise(&requirements.clone().ram(5 * MIB)));
    let prefix = "RAM: 5242880 bytes (5.00 MiB); this table needs ";
    let least = message.strip_prefix(prefix).unwrap().split(' ').next().unwrap();
    let least: u64 = least.parse().unwrap();
    assert!(advise(&requirements.clone().ram(least)).is_ok());
    assert!(advise(&requirements.ram(least - 1)).is_err());
}

#[test]
fn flash_that_cannot_suffice_is_refused_with_what_would() {
    let requirements = Requirements::new(1_000_000, 16, 16);
    let bytes = advise(&requirements).unwrap().flash_bytes;
    let with = |bytes| advise(&Requirements { flash_bytes: Some(bytes), ..requirements.clone() });
    assert!(with(bytes).is_ok());
    let message = text(with(bytes - 1));
    assert!(message.contains(&format!("this table needs {bytes} or more")), "{message}");
}

#[test]
fn bloom_filters_take_more_ram_than_fuse_filters_and_buffers_near_the_papers_optimum() {
    let requirements = Requirements::new(64_000_000, 8, 8);
    let (_, less) = advised(&requirements, FilterKind::Fuse);
    let (found, more) = advised(&requirements, FilterKind::Bloom);
    assert!(more.ram_bytes() as f64 > less.ram_bytes() as f64 * 1.2, "{more}");
    let flush_bytes = (found.segment_pages() * 4096) as f64;
    let flash_bytes = found.live() as f64 * flush_bytes;
    let store = paper::Store { flash_bytes, entry_bytes: flush_bytes / found.entries as f64 };
    let ratio = more.buffer_bytes as f64 / store.buffer_bytes_best();
    assert!((0.5..2.0).contains(&ratio), "{more}");
}

#[test]
fn nonsense_is_refused_and_named() {
    let fine = Requirements::new(1000, 8, 8);
    let unread = Requirements { miss_reads_max: Some(f64::NAN), ..fine.clone() };
    assert!(text(advise(&unread)).starts_with("reads per miss: NaN pages; expected a finite"));
    let much = Requirements { miss_reads_max: Some(11.0), ..fine.clone() };
    assert_eq!(text(advise(&much)), "reads per miss: 11; expected 0.0001 to 10");
    let many = Requirements { entries: u64::MAX, ..fine.clone() };
    assert!(text(advise(&many)).starts_with("entries: 18446744"));
    let front = Requirements { front_runs: 8, ..fine.clone() };
    assert!(text(advise(&front)).starts_with("front_runs: 8; a bufferhash has no front table"));
    let quick = Requirements { insert_worst_ns_max: Some(1e3), ..fine };
    assert!(text(advise(&quick)).starts_with("worst insert: 1000 ns (1.00 us); this table needs "));
    let unknown = CostPreset::by_name("floppy").unwrap_err().to_string();
    let names = "nvme, intel-x18m, transcend-ts32, crucial-m4, flash-chip";
    assert_eq!(unknown, format!("device: no preset \"floppy\"; there are {names}"));
}

#[test]
fn the_policy_that_is_required_is_the_configurations() {
    for policy in [Policy::Lru, Policy::Top(500), Policy::Reject] {
        let requirements = Requirements { policy, ..Requirements::new(100_000, 8, 8) };
        assert_eq!(Config::advised(&requirements).unwrap().policy, policy);
    }
}

#[test]
fn presets_charge_what_the_paper_measured() {
    let of = |name: &str| CostPreset::by_name(name).unwrap().costs;
    // Table 2 and section 7.2.1, in nanoseconds.
    assert!((of("flash-chip").page_read_ns() - 240_000.0).abs() < 1.0);
    let intel = of("intel-x18m");
    assert!((intel.page_read_ns() - 150_000.0).abs() < 1.0);
    assert!((intel.read.ns(131_072.0) - 310_000.0).abs() < 1.0);
    assert!((intel.flush_ns(131_072.0) - 830_000.0).abs() < 1.0);
    assert!((of("intel-x18m").insert_worst_ns(131_072.0) - 2_720_000.0).abs() < 1.0);
    assert!((of("transcend-ts32").insert_worst_ns(131_072.0) - 30_000_000.0).abs() < 1.0);
    for preset in CostPreset::all() {
        assert_eq!(CostPreset::by_name(preset.name).unwrap(), *preset);
        let costs = preset.costs;
        assert!([costs.read, costs.write, costs.erase].iter().all(|cost| cost.fixed_ns >= 0.0));
    }
}

#[test]
fn the_report_explains_every_number_in_aligned_lines() {
    let report = advise(&Requirements::new(1_000_000, 8, 8)).unwrap().to_string();
    assert_eq!(report.lines().count(), 16);
    assert!(report.lines().all(|line| &line[31..33] == "  " && !line[33..].is_empty()), "{report}");
    assert!(report.starts_with("entries               1,000,000  8 + 8 bytes each"), "{report}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn advice_always_keeps_what_it_promises(
        magnitude in 0.0..10.5, key_bytes in 8_u32..=32, value_bytes in 0_u32..=64,
        miss_reads_max in 0.001..1.0, bloom: bool, squeeze in 0.5..1.5,
    ) {
        let entries = 10_f64.powf(magnitude) as u64;
        let filter = if bloom { FilterKind::Bloom } else { FilterKind::Fuse };
        let requirements = Requirements {
            miss_reads_max: Some(miss_reads_max),
            ..Requirements::new(entries, key_bytes, value_bytes)
        };
        let (_, advice) = advised(&requirements, filter);
        prop_assert!(advice.compromise.is_none());
        let ram_bytes = (advice.ram_bytes() as f64 * squeeze) as u64;
        let squeezed = Requirements { miss_reads_max: None, ..requirements }.ram(ram_bytes);
        if advise_with(&squeezed, filter).is_ok() {
            advised(&squeezed, filter);
        }
    }
}

#[test]
fn a_table_that_refuses_takes_the_entries_that_it_was_made_for() {
    for (key_bytes, value_bytes, entries) in [(16, 16, 150_000), (8, 8, 300_000), (8, 0, 60_000)] {
        let requirements = Requirements::new(entries, key_bytes, value_bytes);
        let config = super::one_super_table(&requirements, (entries, 8, 8)).unwrap();
        let options = VolumeOptions {
            log_bytes: config.log_bytes_best(),
            durability: Durability::Never,
            threads: Threads::Inline,
            hash_key: Some(42),
            ..VolumeOptions::default()
        };
        let volume = Volume::create(Arc::new(MemoryDevice::new()), options).unwrap();
        let inline = OpenOptions::default().inline();
        let table = BufferHash::create_with(&volume, "t", config.clone(), inline).unwrap();
        let (mut key, value) = (vec![0; key_bytes as usize], vec![0; value_bytes as usize]);
        let is_taken = |number: &u64| {
            key[..8].copy_from_slice(&number.to_le_bytes());
            table.insert(&key, &value).is_ok()
        };
        let taken = (0..2 * entries).take_while(is_taken).count() as u64;
        let pages = config.buffer_pages;
        assert!(taken >= entries, "{taken} of {entries} in buffers of {pages} pages");
        assert!(taken >= config.entries_capacity(), "{taken}, {pages} pages");
        assert!(taken < entries + entries / 4, "{taken}: more flash than is needed");
    }
}
