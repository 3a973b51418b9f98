//! Tests of the advice: it holds what it must, within what it may, for the least RAM.

use proptest::prelude::*;

use super::*;
use crate::bufferhash::filter::{FilterKind, FilterShape, Window};

const MIB: u64 = 1 << 20;

fn text(result: crate::Result<Advice>) -> String {
    result.unwrap_err().to_string()
}

/// What every advice must keep, worked out anew from its own figures.
fn check(need: &Need, advice: &Advice) {
    let Advice { super_tables, incarnations, filter, .. } = *advice;
    assert!(super_tables.is_power_of_two() && super_tables <= SUPER_TABLES_MAX);
    let buffer_bytes = u64::from(advice.pages_per_buffer) * 4096;
    assert!((BUFFER_BYTES_MIN..=BUFFER_BYTES_MAX).contains(&buffer_bytes));
    match filter.kind() {
        FilterKind::Fuse => assert!(incarnations <= 64 * advice.words - 2),
        FilterKind::Bloom => {
            Window::sliding(incarnations as usize, 64 * advice.words as usize, 8).unwrap();
        }
    }
    assert_eq!(filter, FilterShape::from_parts(filter.parts()).unwrap());
    // Capacity: on flash alone, with one per cent to spare, bumped entries not counted.
    let live = u64::from(super_tables) * u64::from(incarnations);
    let slots = u64::from(advice.pages_per_buffer) * advice.page_slots;
    let filled = slots as f64 * FILL;
    let kept = filled * (1.0 - filter.bumped_share(filled as u64));
    assert!(advice.entries_per_incarnation as f64 <= kept + 1.0);
    assert!((live * advice.entries_per_incarnation) as f64 >= need.entries as f64 * CAPACITY_SLACK);
    assert!(f64::from(filter.entries_max()) >= slots as f64 * FILL);
    // RAM.
    let spare = (super_tables / 16).max(2);
    assert_eq!(advice.buffer_bytes, u64::from(super_tables + spare) * buffer_bytes);
    assert_eq!(advice.filter_bytes, u64::from(super_tables) * filter.ram_bytes() as u64);
    assert_eq!(advice.ram_bytes, advice.buffer_bytes + advice.filter_bytes + advice.other_bytes);
    assert!(advice.ram_bytes <= need.ram_bytes.unwrap_or(u64::MAX));
    // Flash.
    let filter_pages = (filter.column_bits() as u64).div_ceil(8).div_ceil(4064);
    assert_eq!(advice.pages_per_incarnation, u64::from(advice.pages_per_buffer) + filter_pages);
    assert!(advice.segments >= live);
    assert_eq!(advice.flash_bytes, advice.segments * advice.pages_per_incarnation * 4096);
    // Reads.
    let rate = filter.rate(advice.entries_per_incarnation);
    assert!((advice.reads_per_miss - f64::from(incarnations) * rate).abs() < 1e-12);
    assert!(advice.reads_per_hit >= 1.0);
    assert_eq!(advice.relaxed, advice.reads_per_miss > need.miss_reads_max);
    assert!(!advice.to_string().contains("NaN"));
}

#[test]
fn sixty_four_million_small_entries_take_at_most_2_2_bytes_of_ram_each() {
    let need = Need { ram_bytes: Some(256 * MIB), ..Need::new(64_000_000, 8, 8) };
    let advice = need.advise().unwrap();
    check(&need, &advice);
    assert!(advice.ram_bytes_per_entry <= 2.2, "{advice}");
    assert!(advice.reads_per_miss <= 0.01 && !advice.relaxed, "{advice}");
    assert!((128 << 10..=768 << 10).contains(&(advice.pages_per_buffer * 4096)), "{advice}");
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
    let need = Need::new(10_000_000, 8, 8);
    let unlimited = need.advise().unwrap();
    let offered = Need { ram_bytes: Some(unlimited.ram_bytes * 10), ..need };
    let advice = offered.advise().unwrap();
    assert_eq!(advice.ram_bytes, unlimited.ram_bytes);
    assert!(advice.to_string().contains("more would bring next to nothing"), "{advice}");
}

#[test]
fn with_too_little_ram_the_filters_shrink_and_misses_read_more() {
    let need = Need::new(64_000_000, 8, 8);
    let mut reads_before = 0.0;
    for mib in [120, 100, 80, 60, 40] {
        let need = Need { ram_bytes: Some(mib * MIB), ..need.clone() };
        let advice = need.advise().unwrap();
        check(&need, &advice);
        assert!(advice.relaxed && advice.reads_per_miss > reads_before, "{mib} MiB: {advice}");
        assert!(advice.to_string().contains("so the filters are smaller"), "{advice}");
        reads_before = advice.reads_per_miss;
    }
}

#[test]
fn ram_that_cannot_suffice_is_refused_with_the_least_that_would() {
    let need = Need { ram_bytes: Some(5 * MIB), ..Need::new(64_000_000, 8, 8) };
    let message = text(need.advise());
    let prefix = "RAM: 5242880 bytes; this table needs ";
    let least = message.strip_prefix(prefix).unwrap().strip_suffix(" or more").unwrap();
    let least: u64 = least.parse().unwrap();
    assert!(Need { ram_bytes: Some(least), ..need.clone() }.advise().is_ok());
    assert!(Need { ram_bytes: Some(least - 1), ..need }.advise().is_err());
}

#[test]
fn flash_that_cannot_suffice_is_refused_with_what_would() {
    let need = Need::new(1_000_000, 16, 16);
    let flash_bytes = need.advise().unwrap().flash_bytes;
    assert!(Need { flash_bytes: Some(flash_bytes), ..need.clone() }.advise().is_ok());
    let message = text(Need { flash_bytes: Some(flash_bytes - 1), ..need }.advise());
    assert!(message.ends_with(&format!("this table needs {flash_bytes} or more")), "{message}");
}

#[test]
fn bloom_filters_take_more_ram_than_fuse_filters_and_buffers_near_the_papers_optimum() {
    let fuse = Need::new(64_000_000, 8, 8);
    let bloom = Need { filter: FilterKind::Bloom, ..fuse.clone() };
    let (less, more) = (fuse.advise().unwrap(), bloom.advise().unwrap());
    check(&bloom, &more);
    assert!(more.ram_bytes as f64 > less.ram_bytes as f64 * 1.2, "{more}");
    let ratio = more.buffer_bytes as f64 / more.paper_buffer_bytes_best;
    assert!((0.5..2.0).contains(&ratio), "{more}");
}

#[test]
fn nonsense_is_refused_and_named() {
    let need = Need::new(1000, 8, 8);
    assert_eq!(
        text(Need { entries: 0, ..need.clone() }.advise()),
        "entries: 0; expected 1 or more"
    );
    assert!(text(Need { key_bytes: 0, ..need.clone() }.advise()).starts_with("key bytes: 0 bytes"));
    assert!(text(Need { key_bytes: u32::MAX, ..need.clone() }.advise()).starts_with("key bytes"));
    assert_eq!(
        text(Need { value_bytes: 65, ..need.clone() }.advise()),
        "value bytes: 65; expected 0 to 64"
    );
    let unread = Need { miss_reads_max: f64::NAN, ..need.clone() };
    assert_eq!(text(unread.advise()), "reads per miss: NaN; expected 0.0001 to 10");
    assert!(text(Need { entries: u64::MAX, ..need }.advise()).starts_with("entries: 18446744"));
    let unknown = CostPreset::by_name("floppy").unwrap_err().to_string();
    let names = "nvme, intel-x18m, transcend-ts32, crucial-m4, flash-chip";
    assert_eq!(unknown, format!("device: no preset \"floppy\"; there are {names}"));
}

#[test]
fn presets_charge_what_the_paper_measured() {
    let of = |name: &str| CostPreset::by_name(name).unwrap().costs;
    // Table 2 and section 7.2.1, in nanoseconds.
    assert!((of("flash-chip").page_read_ns() - 240_000.0).abs() < 1.0);
    assert!((of("intel-x18m").page_read_ns() - 310_000.0).abs() < 1.0);
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
    let report = Need::new(1_000_000, 8, 8).advise().unwrap().to_string();
    assert_eq!(report.lines().count(), 16);
    assert!(report.lines().all(|line| &line[31..33] == "  " && !line[33..].is_empty()), "{report}");
    assert!(report.starts_with("entries               1,000,000  8 + 8 bytes each"), "{report}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn advice_always_keeps_what_it_promises(
        magnitude in 0.0..10.5, key_bytes in 1_u32..64, value_bytes in 0_u32..64,
        miss_reads_max in 0.001..1.0, bloom: bool, squeeze in 0.5..1.5,
    ) {
        let entries = 10_f64.powf(magnitude) as u64;
        let filter = if bloom { FilterKind::Bloom } else { FilterKind::Fuse };
        let need = Need {
            miss_reads_max, filter, ..Need::new(entries, key_bytes, value_bytes)
        };
        let advice = need.advise().unwrap();
        check(&need, &advice);
        prop_assert!(!advice.relaxed);
        let need = Need { ram_bytes: Some((advice.ram_bytes as f64 * squeeze) as u64), ..need };
        if let Ok(advice) = need.advise() {
            check(&need, &advice);
        }
    }
}
