//! Tests of the advice: it holds what it must, within what it may, for the fewest bytes written.

use nandex_store::buffer::Buffer;
use nandex_store::entries::{Entry, EntryLayout, SlotState};
use nandex_store::hash::{HashKind, KeyHasher};
use proptest::prelude::*;

use super::chance::Room;
use super::*;
use crate::model::{CostPreset, Load, page_slots};

const MIB: u64 = 1 << 20;

fn text(result: crate::Result<Advice>) -> String {
    result.unwrap_err().to_string()
}

/// What every advice must keep, worked out anew from its own figures.
fn check(need: &Need, advice: &Advice) {
    let Advice { partitions, buffer_pages, slices, .. } = *advice;
    assert!(partitions.is_power_of_two() && partitions <= PARTITIONS_MAX);
    assert!((8..=256).contains(&buffer_pages) && (1..=SLICES_MAX).contains(&slices));
    // Capacity: the share that finds its slice full, at the mean that the entries asked for make.
    let all = f64::from(partitions) * f64::from(slices);
    let mean = need.entries as f64 / all;
    let room = Room::new(advice.slice_entries_max);
    assert!(room.overflow(mean) <= mean * need.loss_max * 1.000_001);
    assert!(advice.entries_capacity >= need.entries - 1);
    // k, and what a flush writes.
    let flushes = need.entries as f64 / (f64::from(partitions) * advice.entries_per_flush);
    assert!((advice.incarnations - flushes).abs() < 1e-9);
    assert!(flushes <= INCARNATIONS_MAX);
    let written = f64::from(slices) * 4096.0 / advice.entries_per_flush;
    assert!((advice.bytes_written_per_entry - written).abs() < 1e-9);
    assert_eq!(advice.bytes_read_per_entry, advice.bytes_written_per_entry);
    let record = advice.bytes_written_per_entry_with_log - written;
    let plain = f64::from(1 + need.key_bytes + need.value_bytes);
    assert!((plain..plain * 1.001).contains(&record), "{record}");
    // RAM.
    let buffers = u64::from(partitions + advice.spare_buffers);
    let entry_bytes = u64::from(need.key_bytes + need.value_bytes);
    assert_eq!(
        advice.buffer_bytes,
        buffers * (u64::from(buffer_pages) * 4096 + 64 * (32 + entry_bytes))
    );
    assert_eq!(advice.ram_bytes, advice.buffer_bytes + advice.filter_bytes + advice.other_bytes);
    assert!(advice.ram_bytes <= need.ram_bytes.unwrap_or(u64::MAX));
    assert_eq!(advice.filter_bytes == 0, need.miss_reads_max >= 1.0);
    // Flash.
    let tables = u64::from(partitions + advice.spare_slicetables);
    assert_eq!(advice.flash_bytes, tables * u64::from(slices) * 4096);
    assert!(advice.flash_bytes <= need.flash_bytes.unwrap_or(u64::MAX));
    // Time.
    assert!(advice.insert_worst_ns <= need.insert_worst_ns_max.unwrap_or(f64::INFINITY));
    let busy = advice.operation_costs().busy_share(&need.device, &need.load);
    assert!(busy <= 1.0, "{busy}");
    assert!(!advice.to_string().contains("NaN"));
}

fn quarter_billion() -> Need {
    Need::new(256_000_000, 8, 8)
}

#[test]
fn a_quarter_billion_small_entries_take_160_mebibytes_with_about_32_incarnations() {
    let need = Need { ram_bytes: Some(160 * MIB), ..quarter_billion() };
    let advice = need.advise().unwrap();
    check(&need, &advice);
    assert!((28.0..=34.0).contains(&advice.incarnations), "{advice}");
    assert_eq!((advice.reads_per_hit, advice.reads_per_miss), (1.0, 1.0));
}

#[test]
fn without_a_limit_there_are_32_incarnations_as_in_the_paper() {
    let advice = quarter_billion().advise().unwrap();
    check(&quarter_billion(), &advice);
    assert!((30.0..=32.0).contains(&advice.incarnations), "{advice}");
    assert!((0.5..0.66).contains(&advice.ram_bytes_per_entry), "{advice}");
}

#[test]
fn table_5_ram_falls_and_writing_rises_with_the_incarnations() {
    // The paper's k and RAM per entry; ours needs less, since pages are fuller than its 86 %.
    let mut written_before = 0.0;
    for (bytes_per_entry, printed) in [(1.1, 16.0), (0.6, 32.0), (0.38, 48.0), (0.3, 64.0)] {
        let ram_bytes = Some((256e6 * bytes_per_entry) as u64);
        let need = Need { ram_bytes, ..quarter_billion() };
        let advice = need.advise().unwrap();
        check(&need, &advice);
        let ratio = advice.incarnations / printed;
        assert!((0.85..1.15).contains(&ratio), "k = {printed} in the paper: {advice}");
        assert!(advice.bytes_written_per_entry > written_before);
        written_before = advice.bytes_written_per_entry;
    }
}

#[test]
fn a_real_buffer_is_as_full_when_it_is_full_as_counted_on() {
    // What is left over falls on the pages that it came from; where a page has but 40 slots that shows.
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

/// Entries in the pages of a buffer that takes no more and began with what an earlier one left over.
fn filled(layout: EntryLayout, pages: usize, seed: u128) -> f64 {
    let hasher = KeyHasher::new(HashKind::Xxh3, seed);
    let mut left_over: Vec<Vec<u8>> = Vec::new();
    let mut numbers = 0_u64..;
    let mut in_pages = 0;
    for _ in 0..3 {
        let mut buffer = Buffer::new(layout, pages);
        for key in &left_over {
            assert!(buffer.put_left_over(&hasher, hasher.hash(key), entry(layout, key)));
        }
        loop {
            let mut key = vec![0; layout.key_bytes()];
            key[..8].copy_from_slice(&numbers.next().unwrap().to_le_bytes());
            if buffer.put(&hasher, hasher.hash(&key), entry(layout, &key)).is_err() {
                break;
            }
        }
        left_over = buffer.stash_entries().map(|entry| entry.key.to_vec()).collect();
        assert_eq!(left_over.len(), 64);
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
    // One in ten thousand finds a slice of 253 full when 214 are meant for it.
    assert!((212.0..217.0).contains(&slice_mean(16, 1e-4)), "{}", slice_mean(16, 1e-4));
    assert!(slice_mean(16, 1e-9) < slice_mean(16, 1e-4) - 15.0);
}

#[test]
fn filters_take_1_44_bits_for_each_halving_of_the_reads_in_vain() {
    assert_eq!(filter_bytes(8_000_000, 1.0), 0);
    assert_eq!(filter_bytes(8_000_000, 0.5), 1_442_696);
    let need = Need { miss_reads_max: 0.1, ..quarter_billion() };
    let (without, with) = (quarter_billion().advise().unwrap(), need.advise().unwrap());
    check(&need, &with);
    let bits = with.filter_bytes as f64 * 8.0 / 256e6;
    assert!((4.79..4.79 * 1.05).contains(&bits), "{with}");
    assert!(with.ram_bytes > without.ram_bytes && with.reads_per_miss == 0.1);
}

#[test]
fn a_load_gets_as_much_ram_as_it_takes_and_no_more() {
    let load = Load { inserts_per_s: 3e6, ..Load::default() };
    let need = Need { load, ..quarter_billion() };
    let advice = need.advise().unwrap();
    check(&need, &advice);
    let without = quarter_billion().advise().unwrap();
    assert!(without.inserts_per_s < 3e6 && advice.inserts_per_s >= 3e6, "{advice}");
    assert!(advice.ram_bytes > without.ram_bytes);
    let busy = advice.operation_costs().busy_share(&need.device, &load);
    assert!(busy > 0.9, "{busy}");
    assert!(advice.lifetime_years.unwrap() > 0.0 && without.lifetime_years.is_none());
}

#[test]
fn a_mixed_load_takes_a_read_for_each_lookup_and_a_share_of_the_strokes_for_each_insert() {
    let need = Need { ram_bytes: Some(160 * MIB), ..quarter_billion() };
    let advice = need.advise().unwrap();
    let device = need.device;
    let mixed = advice.ops_per_s(&device, &Load::default());
    let insert_s = advice.bytes_read_per_entry / device.read_bytes_per_s()
        + advice.bytes_written_per_entry_with_log / device.write_bytes_per_s();
    let expected = 2.0 / (1.0 / device.reads_per_s + insert_s);
    assert!((mixed / expected - 1.0).abs() < 1e-9, "{mixed}, {expected}");
}

#[test]
fn a_wish_for_short_flushes_makes_small_slicetables() {
    let need = Need { insert_worst_ns_max: Some(2e6), ..quarter_billion() };
    let advice = need.advise().unwrap();
    check(&need, &advice);
    assert!(advice.partitions > quarter_billion().advise().unwrap().partitions);
}

#[test]
fn what_cannot_be_met_is_refused_with_what_would_do() {
    let least = |message: &str| -> u64 {
        let words = message.split(' ').collect::<Vec<_>>();
        let at = words.iter().position(|word| *word == "needs").unwrap();
        words[at + 1].parse().unwrap()
    };
    let ram = |bytes| Need { ram_bytes: Some(bytes), ..quarter_billion() };
    let message = text(ram(10 * MIB).advise());
    assert!(message.starts_with("RAM: 10485760 bytes; this table needs "), "{message}");
    let bytes = least(&message);
    check(&ram(bytes), &ram(bytes).advise().unwrap());
    assert!(ram(bytes - 1).advise().is_err());

    let flash = |bytes| Need { flash_bytes: Some(bytes), ..quarter_billion() };
    let message = text(flash(MIB).advise());
    let bytes = least(&message);
    check(&flash(bytes), &flash(bytes).advise().unwrap());
    assert!(flash(bytes - 1).advise().is_err());

    let worst = |ns| Need { insert_worst_ns_max: Some(ns), ..quarter_billion() };
    let message = text(worst(1.0).advise());
    assert!(message.starts_with("worst insert: 1 ns; this table needs "), "{message}");
    let ns = least(&message) as f64;
    check(&worst(ns), &worst(ns).advise().unwrap());
    assert!(worst(ns - 1.0).advise().is_err());
}

#[test]
fn a_load_beyond_the_device_is_refused_with_the_most_that_would_do() {
    let inserting = |inserts_per_s| {
        let load = Load { inserts_per_s, ..Load::default() };
        Need { load, ..quarter_billion() }
    };
    let message = text(inserting(1e8).advise());
    assert!(
        message.starts_with("load: 100000000 inserts and 0 lookups a second are "),
        "{message}"
    );
    let most = message.split("at most ").nth(1).unwrap().split(' ').next().unwrap();
    let most: f64 = most.parse().unwrap();
    check(&inserting(most), &inserting(most).advise().unwrap());
    assert!(inserting(most + 2.0).advise().is_err());
}

#[test]
fn nonsense_is_refused_and_named() {
    let need = Need::new(1000, 8, 8);
    let entries = text(Need { entries: 0, ..need.clone() }.advise());
    assert_eq!(entries, "entries: 0; expected 1 or more");
    assert!(text(Need { key_bytes: 0, ..need.clone() }.advise()).starts_with("key bytes: 0 bytes"));
    let reads = text(Need { miss_reads_max: 2.0, ..need.clone() }.advise());
    assert_eq!(reads, "reads per miss: 2; expected 0.0001 to 1");
    let loss = text(Need { loss_max: 0.0, ..need.clone() }.advise());
    assert_eq!(loss, "loss: 0; expected 1e-12 to 0.1");
    assert!(text(Need { entries: u64::MAX, ..need }.advise()).starts_with("entries: 18446744"));
}

#[test]
fn the_report_explains_every_number_in_aligned_lines() {
    let load = Load { inserts_per_s: 1e4, ..Load::default() };
    let report = Need { load, ..Need::new(1_000_000, 8, 8) }.advise().unwrap().to_string();
    assert_eq!(report.lines().count(), 17, "{report}");
    assert!(report.lines().all(|line| &line[31..33] == "  " && !line[33..].is_empty()), "{report}");
    assert!(report.starts_with("entries               1,000,000  8 + 8 bytes each"), "{report}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn advice_always_keeps_what_it_promises(
        magnitude in 0.0..11.0, key_bytes in 1_u32..64, value_bytes in 0_u32..64,
        miss_reads_max in 0.001..2.0, inserts_per_s in 0.0..1e5, squeeze in 0.5..4.0,
        device in 0_usize..5,
    ) {
        let entries = 10_f64.powf(magnitude) as u64;
        let load = Load { inserts_per_s, lookups_per_s: 100.0, ..Load::default() };
        let need = Need {
            miss_reads_max: f64::min(miss_reads_max, 1.0),
            device: CostPreset::all()[device],
            ..Need::new(entries, key_bytes, value_bytes)
        };
        let advice = need.advise().unwrap();
        check(&need, &advice);
        let ram_bytes = Some((advice.ram_bytes as f64 * squeeze) as u64);
        for need in [Need { ram_bytes, ..need.clone() }, Need { load, ram_bytes, ..need }] {
            if let Ok(advice) = need.advise() {
                check(&need, &advice);
            }
        }
    }
}
