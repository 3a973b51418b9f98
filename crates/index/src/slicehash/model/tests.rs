//! Tests of the advice: it meets the requirements with the fewest bytes written.

use nandex_device::Geometry;
use nandex_store::buffer::Buffer;
use nandex_store::entries::{Entry, EntryLayout, SlotState};
use nandex_store::hash::{HashKind, KeyHasher};
use nandex_store::schedule::Channels;
use proptest::prelude::*;

use super::advise::{Search, SliceHashSizing};
use super::*;
use crate::model::chance::PageFill;
use crate::model::{
    ArrayDesign, CostPreset, DeviceArray, Load, Policy, Prediction, Requirements, buffer_entries,
    log_bytes, page_slots,
};
use crate::slicehash::Config;

const MIB: u64 = 1 << 20;

fn text(result: crate::Result<Prediction>) -> String {
    result.unwrap_err().to_string()
}

/// Returns the search's result and its prediction, checked.
fn advised(requirements: &Requirements) -> (SliceHashSizing, Prediction) {
    let prediction = advise(requirements).unwrap();
    let miss_reads = prediction.costs.reads_per_miss;
    let search = Search { requirements, miss_reads, loss_max: LOSS_MAX };
    let found = search.find().unwrap();
    check(requirements, &found, &prediction);
    (found, prediction)
}

/// Checks the conditions that every advice must meet, computed again from its own figures.
fn check(requirements: &Requirements, found: &SliceHashSizing, prediction: &Prediction) {
    let config: &Config = prediction.config.of().unwrap();
    let &Config { partitions, buffer_pages, slices, .. } = config;
    assert!(partitions.is_power_of_two() && partitions <= PARTITIONS_MAX);
    assert!((8..=256).contains(&buffer_pages) && (1..=SLICES_MAX).contains(&slices));
    // Capacity: the share that finds its slice full, at the mean of the required entries.
    let all = f64::from(partitions) * f64::from(slices);
    let mean = requirements.entries as f64 / all;
    let page_fill = PageFill::new(slice_entries(requirements.entry_bytes()));
    assert!(page_fill.overflow(mean) <= mean * LOSS_MAX * 1.000_001);
    assert!(prediction.entries_capacity >= requirements.entries - 1);
    // k, and what a flush writes.
    let fresh = buffer_entries(buffer_pages.into(), page_slots(requirements.entry_bytes()));
    let flushes = requirements.entries as f64 / (f64::from(partitions) * fresh);
    assert!((found.incarnations - flushes).abs() < 1e-9);
    assert!(flushes <= INCARNATIONS_MAX);
    let costs = &prediction.costs;
    assert!((costs.insert_read_bytes - f64::from(slices) * 4096.0 / fresh).abs() < 1e-9);
    let logged = costs.insert_write_bytes - costs.insert_read_bytes;
    assert!((logged - log_bytes(requirements.entry_bytes())).abs() < 1e-9);
    // RAM.
    let buffers = u64::from(partitions + config.spare_buffers);
    let one = u64::from(buffer_pages) * 4096 + 64 * (32 + requirements.entry_bytes());
    assert_eq!(prediction.buffer_bytes, buffers * one);
    assert!(prediction.ram_bytes() <= requirements.ram_bytes.unwrap_or(u64::MAX));
    assert_eq!(prediction.filter_bytes == 0, costs.reads_per_miss >= 1.0);
    assert_eq!(prediction.options.filter_bytes, prediction.filter_bytes);
    // Flash.
    let tables = u64::from(partitions + config.spare_blocks);
    assert_eq!(prediction.flash_bytes, tables * u64::from(slices) * 4096);
    assert!(prediction.flash_bytes <= requirements.flash_bytes.unwrap_or(u64::MAX));
    // Time.
    assert!(
        prediction.insert_worst_ns <= requirements.insert_worst_ns_max.unwrap_or(f64::INFINITY)
    );
    let busy = costs.busy_share(&requirements.device, &requirements.load);
    assert!(busy <= 1.0, "{busy}");
    assert!(!prediction.to_string().contains("NaN"));
}

fn quarter_billion() -> Requirements {
    Requirements::new(256_000_000, 8, 8)
}

#[test]
fn a_quarter_billion_small_entries_take_160_mebibytes_with_about_32_incarnations() {
    let (found, advice) = advised(&quarter_billion().ram(160 * MIB));
    assert!((28.0..=34.0).contains(&found.incarnations), "{advice}");
    assert_eq!((advice.costs.reads_per_hit, advice.costs.reads_per_miss), (1.0, 1.0));
}

#[test]
fn without_a_limit_there_are_32_incarnations_as_in_the_paper() {
    let (found, advice) = advised(&quarter_billion());
    assert!((30.0..=32.0).contains(&found.incarnations), "{advice}");
    assert!((0.5..0.66).contains(&advice.ram_bytes_per_entry()), "{advice}");
}

fn array(design: ArrayDesign, devices: u32) -> Option<DeviceArray> {
    Some(DeviceArray { design, devices })
}

/// Section 5.3 and Table 6: three devices do three times the operations, or take a third of the RAM for an entry.
#[test]
fn several_devices_do_more_operations_or_take_less_ram_for_an_entry() {
    let load = Load { inserts_per_s: 1000.0, lookups_per_s: 9000.0, ..Load::default() };
    let one = Requirements { load, ..quarter_billion() };
    let alone = advise(&one).unwrap();
    let on = |design| advise(&Requirements { array: array(design, 3), ..one.clone() }).unwrap();
    let fast = on(ArrayDesign::Throughput);
    let config: &Config = fast.config.of().unwrap();
    assert_eq!((config.devices, config.slice_parts, fast.costs.reads_per_hit), (3, 1, 1.0));
    assert!((fast.ops_per_s() / alone.ops_per_s() - 3.0).abs() < 1e-6, "{fast}");
    assert!((fast.inserts_per_s() / alone.inserts_per_s() - 3.0).abs() < 1e-6);
    assert!((fast.busy_share() * 3.0 / alone.busy_share() - 1.0).abs() < 1e-6);
    assert_eq!((fast.hit_ns(), fast.ram_bytes()), (alone.hit_ns(), alone.ram_bytes()));
    assert!(fast.to_string().contains("throughput-oriented"), "{fast}");

    let small = on(ArrayDesign::Memory);
    let config: &Config = small.config.of().unwrap();
    assert_eq!((config.devices, config.slice_parts, small.costs.reads_per_hit), (1, 3, 3.0));
    // A page of each device at once takes the time of one.
    assert_eq!(small.hit_ns(), alone.hit_ns());
    let share = small.ram_bytes_per_entry() / alone.ram_bytes_per_entry();
    assert!((0.3..0.4).contains(&share), "{share}: {small}");
    assert!(small.entries_capacity >= one.entries);
    let each = small.config.describe().entries_capacity;
    assert!(small.entries_capacity - each < u64::from(3 * config.partitions), "{each}: {small}");
    assert_eq!(small.flash_bytes, config.slicetable_pages() * 4096);
    let rates = small.ops_per_s() / alone.ops_per_s();
    assert!((0.9..1.1).contains(&rates), "{rates}");
    assert!(small.to_string().contains("memory-oriented"), "{small}");
    // The configuration's own model agrees.
    let full = config.operation_costs().unwrap();
    assert!((small.costs.insert_read_bytes / full.insert_read_bytes - 1.0).abs() < 0.01);
    assert!((small.costs.insert_write_bytes / full.insert_write_bytes - 1.0).abs() < 0.01);
}

#[test]
fn designs_that_cannot_be_are_refused_and_structures_without_any_say_so() {
    let asked = |array| Requirements { array, ..quarter_billion() };
    for devices in [0, 1, 65] {
        let message = text(advise(&asked(array(ArrayDesign::Throughput, devices))));
        assert!(message.starts_with(&format!("devices: {devices} for a design")), "{message}");
    }
    let memory = asked(array(ArrayDesign::Memory, 2));
    let filters = Requirements { miss_reads_max: Some(0.1), ..memory.clone() };
    assert!(text(advise(&filters)).contains("a page of each device"));
    let little = Requirements { flash_bytes: Some(MIB), ..memory.clone() };
    assert!(text(advise(&little)).starts_with("flash: "));
    for kind in ["bufferhash", "growing", "growing-slicehash", "rhik"] {
        let grow = Requirements { policy: Policy::Grow, ..memory.clone() };
        let asked = if kind == "bufferhash" { &memory } else { &grow };
        let message = text(asked.advise_one(kind));
        assert!(message.contains("choose a slicehash"), "{kind}: {message}");
    }
    let advice = memory.advise().unwrap();
    assert_eq!(advice.chosen().config.kind(), "slicehash");
}

#[test]
fn slicetables_of_each_device_are_whole_rounds_of_its_channels() {
    let geometry = Geometry { channels: Some(12), chunk_bytes: Some(16_384), ..Geometry::opaque() };
    let asked =
        Requirements { channels: Channels::of(&geometry), ..Requirements::new(1 << 20, 8, 8) };
    for (array, aligned) in
        [(None, 48), (array(ArrayDesign::Throughput, 3), 48), (array(ArrayDesign::Memory, 3), 144)]
    {
        let advice = advise(&Requirements { array, ..asked.clone() }).unwrap();
        let config: &Config = advice.config.of().unwrap();
        assert_eq!(config.block_pages() % aligned, 0, "{config:?}");
        assert_eq!(config.align_pages % aligned, 0, "{config:?}");
        assert_eq!(config.stripe_pages() % 48, 0, "{config:?}");
        assert_eq!(advice.flash_bytes, config.slicetable_pages() * 4096);
    }
    let grow = Requirements { policy: Policy::Grow, ..asked };
    let advice = grow.advise_one("growing-slicehash").unwrap();
    let growing: &crate::slicehash::growing::Config = advice.config.of().unwrap();
    assert_eq!(growing.first.block_pages() % 48, 0, "{growing:?}");
}

#[test]
fn table_5_ram_falls_and_writing_rises_with_the_incarnations() {
    // The paper's k and RAM per entry; ours needs less, since pages are fuller than its 86 %.
    let mut written_before = 0.0;
    for (bytes_per_entry, printed) in [(1.1, 16.0), (0.6, 32.0), (0.38, 48.0), (0.3, 64.0)] {
        let requirements = quarter_billion().ram((256e6 * bytes_per_entry) as u64);
        let unfiltered = Requirements { miss_reads_max: Some(1.0), ..requirements };
        let (found, advice) = advised(&unfiltered);
        let ratio = found.incarnations / printed;
        assert!((0.85..1.15).contains(&ratio), "k = {printed} in the paper: {advice}");
        assert!(advice.costs.insert_read_bytes > written_before);
        written_before = advice.costs.insert_read_bytes;
    }
}

#[test]
fn a_real_buffer_is_as_full_when_it_is_full_as_counted_on() {
    // The carry-over goes to the pages that it came from; with only 40 slots in a page that is noticeable.
    for (key_bytes, value_bytes, apart) in [(8, 8, 0.015), (8, 0, 0.015), (32, 64, 0.05)] {
        let layout = EntryLayout::new(key_bytes, value_bytes).unwrap();
        for pages in [8, 37, 128] {
            let counted = buffer_entries(pages, page_slots((key_bytes + value_bytes) as u64));
            let found = (0..8).map(|seed| filled(layout, pages as usize, seed)).sum::<f64>() / 8.0;
            let ratio = found / counted;
            assert!((ratio - 1.0).abs() < apart, "{key_bytes} + {value_bytes}, {pages}: {ratio}");
        }
    }
}

/// Returns the entries in the pages of a full buffer that began with the carry-over of an earlier one.
fn filled(layout: EntryLayout, pages: usize, seed: u128) -> f64 {
    let hasher = KeyHasher::new(HashKind::Xxh3, seed);
    let mut carry_over: Vec<Vec<u8>> = Vec::new();
    let mut numbers = 0_u64..;
    let mut in_pages = 0;
    for _ in 0..3 {
        let mut buffer = Buffer::new(layout, hasher, pages);
        for key in &carry_over {
            assert!(buffer.put_carried_over(hasher.hash(key), entry(layout, key)));
        }
        loop {
            let mut key = vec![0; layout.key_bytes()];
            key[..8].copy_from_slice(&numbers.next().unwrap().to_le_bytes());
            if buffer.put(hasher.hash(&key), entry(layout, &key)).is_err() {
                break;
            }
        }
        carry_over = buffer.stash_entries().map(|entry| entry.key.to_vec()).collect();
        assert_eq!(carry_over.len(), 64);
        in_pages = buffer.len() - 64;
    }
    in_pages as f64
}

fn entry(layout: EntryLayout, key: &[u8]) -> Entry<'_> {
    Entry { state: SlotState::Live, key, value: &[0; 64][..layout.value_bytes()] }
}

#[test]
fn a_slice_is_a_page_but_for_two_headers() {
    assert_eq!(slice_entries(16), 253);
    assert_eq!(slice_entries(8), 507);
    assert_eq!(slice_entries(96), 42);
    // One in ten thousand finds a slice of 253 full if its mean is 214.
    assert!((212.0..217.0).contains(&slice_mean(16, 1e-4)), "{}", slice_mean(16, 1e-4));
    assert!(slice_mean(16, 1e-9) < slice_mean(16, 1e-4) - 15.0);
}

#[test]
fn filters_take_1_44_bits_for_each_halving_of_false_positive_reads() {
    assert_eq!(filter_bytes(8_000_000, 1.0), 0);
    assert_eq!(filter_bytes(8_000_000, 0.5), 1_442_696);
    let requirements = Requirements { miss_reads_max: Some(0.1), ..quarter_billion() };
    let (without, with) = (advise(&quarter_billion()).unwrap(), advised(&requirements).1);
    let bits = with.filter_bytes as f64 * 8.0 / 256e6;
    assert!((4.79..4.79 * 1.05).contains(&bits), "{with}");
    assert!(with.ram_bytes() > without.ram_bytes() && with.costs.reads_per_miss == 0.1);
}

#[test]
fn a_load_gets_as_much_ram_as_it_takes_and_no_more() {
    let load = Load { inserts_per_s: 3e6, ..Load::default() };
    let requirements = Requirements { load, ..quarter_billion() };
    let (_, advice) = advised(&requirements);
    let without = advise(&quarter_billion()).unwrap();
    let rate = |it: &Prediction| it.costs.inserts_per_s(&requirements.device);
    assert!(rate(&without) < 3e6 && rate(&advice) >= 3e6, "{advice}");
    assert!(advice.ram_bytes() > without.ram_bytes());
    let busy = advice.costs.busy_share(&requirements.device, &load);
    assert!(busy > 0.9, "{busy}");
    assert!(advice.lifetime_years().unwrap() > 0.0 && without.lifetime_years().is_none());
}

#[test]
fn a_mixed_load_takes_a_read_for_each_lookup_and_a_share_of_the_rewriting_for_each_insert() {
    let (_, advice) = advised(&quarter_billion().ram(160 * MIB));
    let device = quarter_billion().device;
    let insert_s = advice.costs.insert_read_bytes / device.read_bytes_per_s()
        + advice.costs.insert_write_bytes / device.write_bytes_per_s();
    let expected = 2.0 / (1.0 / device.reads_per_s + insert_s);
    assert!((advice.ops_per_s() / expected - 1.0).abs() < 1e-9, "{expected}");
}

#[test]
fn a_limit_on_flushes_makes_small_slicetables() {
    let partitions = |it: &Requirements| advised(it).0.layout.partitions;
    let quick = Requirements { insert_worst_ns_max: Some(2e6), ..quarter_billion() };
    assert!(partitions(&quick) > partitions(&quarter_billion()));
}

#[test]
fn a_table_of_few_entries_is_made_as_it_is_advised() {
    for entries in [1, 100, 10_000] {
        advised(&Requirements::new(entries, 8, 8));
    }
}

#[test]
fn what_cannot_be_met_is_refused_with_what_would_do() {
    let least = |message: &str| -> u64 {
        let words = message.split(' ').collect::<Vec<_>>();
        let at = words.iter().position(|word| *word == "needs").unwrap();
        words[at + 1].parse().unwrap()
    };
    let ram = |bytes| quarter_billion().ram(bytes);
    let flash = |bytes| Requirements { flash_bytes: Some(bytes), ..quarter_billion() };
    let worst = |ns| Requirements { insert_worst_ns_max: Some(ns as f64), ..quarter_billion() };
    type Limited<'l> = &'l dyn Fn(u64) -> Requirements;
    let limits: [(Limited<'_>, u64, &str); 3] = [
        (&ram, 10 * MIB, "RAM: 10485760 bytes (10.0 MiB); this table needs "),
        (&flash, MIB, "flash: 1048576 bytes (1.00 MiB); this table needs "),
        (&worst, 1, "worst insert: 1 ns (1 ns); this table needs "),
    ];
    for (limited, too_little, start) in limits {
        let message = text(advise(&limited(too_little)));
        assert!(message.starts_with(start), "{message}");
        let least = least(&message);
        advised(&limited(least));
        assert!(advise(&limited(least - 1)).is_err());
    }
}

#[test]
fn a_load_beyond_the_device_is_refused_with_the_most_that_would_do() {
    let inserting = |inserts_per_s| {
        let load = Load { inserts_per_s, ..Load::default() };
        Requirements { load, ..quarter_billion() }
    };
    let message = text(advise(&inserting(1e8)));
    assert!(
        message.starts_with("load: 100000000 inserts and 0 lookups a second are "),
        "{message}"
    );
    let most = message.split("at most ").nth(1).unwrap().split(' ').next().unwrap();
    let most: f64 = most.parse().unwrap();
    advised(&inserting(most));
    assert!(advise(&inserting(most + 2.0)).is_err());
}

#[test]
fn nonsense_is_refused_and_named() {
    let fine = Requirements::new(1000, 8, 8);
    let reads = Requirements { miss_reads_max: Some(0.0), ..fine.clone() };
    assert!(text(advise(&reads)).starts_with("reads per miss: 0 pages; expected a finite"));
    let few = Requirements { miss_reads_max: Some(0.00001), ..fine.clone() };
    assert_eq!(text(advise(&few)), "reads per miss: 0.00001; expected 0.0001 to 1");
    assert_eq!(text(advise_with(&fine, 0.0)), "loss: 0; expected 1e-12 to 0.1");
    let many = Requirements { entries: u64::MAX, ..fine.clone() };
    assert!(text(advise(&many)).starts_with("entries: 18446744"));
    let lru = Requirements { policy: Policy::Lru, ..fine.clone() };
    assert!(text(advise(&lru)).starts_with("policy: lru; a slicehash has fifo and reject"));
    let front = Requirements { policy: Policy::Reject, front_runs: 8, ..fine };
    assert!(text(advise(&front)).starts_with("front_runs: "));
}

#[test]
fn the_report_explains_every_number_in_aligned_lines() {
    let load = Load { inserts_per_s: 1e4, ..Load::default() };
    let requirements = Requirements { load, ..Requirements::new(1_000_000, 8, 8) };
    let report = advise(&requirements).unwrap().to_string();
    assert_eq!(report.lines().count(), 17, "{report}");
    assert!(report.lines().all(|line| &line[31..33] == "  " && !line[33..].is_empty()), "{report}");
    assert!(report.starts_with("entries               1,000,000  8 + 8 bytes each"), "{report}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn advice_always_keeps_what_it_promises(
        magnitude in 0.0..11.0, key_bytes in 8_u32..=32, value_bytes in 0_u32..=64,
        miss_reads_max in 0.001..2.0, inserts_per_s in 0.0..1e5, squeeze in 0.5..4.0,
        device in 0_usize..5,
    ) {
        let entries = 10_f64.powf(magnitude) as u64;
        let load = Load { inserts_per_s, lookups_per_s: 100.0, ..Load::default() };
        let asked = Requirements {
            miss_reads_max: Some(miss_reads_max),
            device: CostPreset::all()[device],
            ..Requirements::new(entries, key_bytes, value_bytes)
        };
        let (_, advice) = advised(&asked);
        let squeezed = asked.ram((advice.ram_bytes() as f64 * squeeze) as u64);
        for requirements in [squeezed.clone(), Requirements { load, ..squeezed }] {
            if advise(&requirements).is_ok() {
                advised(&requirements);
            }
        }
    }
}
