//! The output of DiskSim 4.0 with Microsoft's extension on its own files, with more digits than it prints by
//! default, compared with this model's.

use nandex_disksim::streams::Validation;
use nandex_disksim::{Cleaning, Counts, Shape};
use nandex_sim::RequestKind;

use crate::support::{outcome, serve, validation};

/// DiskSim's mean in milliseconds for each run.
const MEANS: [(&str, f64); 6] = [
    ("sr250k", 0.132_511_254),
    ("sw250k", 0.310_895_467),
    ("rr250k", 0.136_117_661),
    ("rw250k", 0.329_458_288),
    ("sw5m", 0.334_365_374),
    ("rw5m", 0.593_437_813),
];

/// DiskSim's counts of an element: pages, blocks cleaned, pages moved, microseconds cleaning and busy.
type Told = (u64, u64, u64, u64, f64);

/// The counts of all elements in rw5m.
const RW5M: [Told; 8] = [
    (989_084, 17_891, 240_844, 81_026_400, 306_426_160.8),
    (989_433, 17_904, 241_313, 81_151_425, 306_535_586.8),
    (989_006, 17_895, 241_147, 81_100_575, 306_403_176.8),
    (989_291, 17_899, 241_129, 81_102_525, 306_491_125.6),
    (989_089, 17_901, 241_462, 81_180_450, 306_429_820.8),
    (990_883, 17_922, 241_003, 81_108_675, 306_982_544.4),
    (989_622, 17_906, 241_254, 81_141_150, 306_593_771.6),
    (986_940, 17_861, 241_087, 81_036_075, 305_764_558.4),
];

/// The first two elements in the other runs.
const OTHERS: [(&str, [Told; 2]); 5] = [
    ("sr250k", [(31_250, 0, 0, 0, 4_081_250.0); 2]),
    ("sw250k", [(31_250, 0, 0, 0, 9_655_747.2); 2]),
    ("rr250k", [(49_456, 0, 0, 0, 6_458_953.6), (49_837, 0, 0, 0, 6_508_712.2)]),
    ("rw250k", [(49_456, 0, 0, 0, 15_280_902.4), (49_837, 0, 0, 0, 15_397_336.0)]),
    ("sw5m", [(713_044, 9_687, 0, 14_530_500, 220_319_244.0); 2]),
];

/// The counts of all elements in a run of 1.5 million requests of rw5m, by a DiskSim whose blocks withstand 5
/// erases and whose cleaning is wear-aware; then blocks that data moved onto, and the pages of these.
const WEAR: [(Told, u64, u64); 8] = [
    ((296_658, 4_064, 56_130, 20_064_000, 91_852_391.6), 96, 5_950),
    ((297_810, 4_096, 56_563, 20_298_075, 92_209_772.8), 103, 6_344),
    ((296_339, 4_051, 56_078, 19_891_050, 91_753_626.0), 89, 5_320),
    ((296_264, 4_060, 56_215, 20_070_375, 91_730_919.2), 97, 5_920),
    ((296_869, 4_078, 55_995, 20_196_375, 91_917_299.6), 109, 6_580),
    ((296_995, 4_094, 56_392, 20_440_425, 91_957_510.8), 116, 7_161),
    ((296_532, 4_077, 56_185, 20_252_250, 91_813_672.8), 110, 6_645),
    ((296_104, 4_056, 56_128, 20_077_200, 91_681_170.4), 97, 6_064),
];

#[test]
fn the_means_of_the_suite_are_those_of_disksim() {
    println!("run       DiskSim's mean ms   ours             relative difference");
    for (name, mean_ms) in MEANS {
        let responses = outcome(name).responses;
        let relative = responses.mean_ms() / mean_ms - 1.0;
        println!("{name:<8}  {mean_ms:<17.9}   {:<14.9}   {relative:+.1e}", responses.mean_ms());
        assert_eq!(responses.count, validation(name).arrivals - 1, "{name}");
        assert!(relative.abs() < 1e-7, "{name}");
        assert!((responses.mean_ms() - validation(name).mean_ms).abs() < 0.6e-6, "{name}");
    }
}

/// Compares counts. DiskSim prints a busy time with the rounding errors of its floating point sums, under 1
/// ns here.
fn assert_told(counts: &Counts, told: &Told, name: &str) {
    let &(pages, cleans, moved, clean_us, busy_us) = told;
    assert_eq!((counts.pages, counts.cleans, counts.moved), (pages, cleans, moved), "{name}");
    assert_eq!(counts.clean_ps, clean_us * 1_000_000, "{name}");
    assert_eq!(counts.busy_ps, (busy_us * 1e4).round() as u64 * 100, "{name}");
}

#[test]
fn elements_do_what_they_do_in_disksim() {
    for (name, told) in OTHERS {
        let counts = &outcome(name).counts;
        counts.iter().zip(&told).for_each(|(counts, told)| assert_told(counts, told, name));
    }
    let counts = &outcome("rw5m").counts;
    counts.iter().zip(&RW5M).for_each(|(counts, told)| assert_told(counts, told, "rw5m"));
    assert_eq!((counts.len(), outcome("sw5m").counts.len()), (8, 8));
}

#[test]
fn wear_aware_cleaning_does_what_it_does_in_disksim() {
    let run = Validation { arrivals: 1_500_000, ..validation("rw5m") };
    let shape = Shape { cleaning: Cleaning::WearAware, erases_max: 5, ..Shape::SUITE };
    let outcome = serve(shape, &run);
    assert!((outcome.responses.mean_ms() - 0.587_302).abs() < 1e-6, "{:?}", outcome.responses);
    assert_eq!(outcome.counts.len(), WEAR.len());
    for (counts, (told, migrations, migrated)) in outcome.counts.iter().zip(&WEAR) {
        assert_told(counts, told, "wear");
        assert_eq!((counts.migrations, counts.migrated), (*migrations, *migrated));
        assert_eq!(counts.clean_ps, cleaning_ps(counts));
    }
}

/// Returns the cleaning time: 1.5 ms for each block cleaned and 0.225 ms for each page moved. No block is
/// filled while cleaning, as a plane needs cleaning after it begins a block, and is cleaned at once.
fn cleaning_ps(counts: &Counts) -> u64 {
    1_500_000_000 * counts.cleans + 225_000_000 * (counts.moved + counts.migrated)
}

#[test]
fn times_follow_from_counts_on_every_element() {
    for (name, _) in MEANS {
        let writes = validation(name).kind == RequestKind::Write;
        let page_ps = if writes { 305_600_000 } else { 130_600_000 };
        assert_eq!(outcome(name).counts.len(), 8);
        for counts in &outcome(name).counts {
            assert_eq!(counts.clean_ps, cleaning_ps(counts), "{name}");
            assert_eq!(counts.sealed_by_cleaning, 0, "{name}");
            let sealing_ps = 213_200_000 * counts.sealed_by_host;
            assert_eq!(counts.busy_ps, page_ps * counts.pages + sealing_ps, "{name}");
        }
    }
}

/// Compares the number of summaries: `floor((pages + moved) / 63)` is the number of blocks filled if the up
/// to 8 begun blocks hold less than 63 pages together. The plane with the most free pages is written first,
/// so they hold about the same: 1 or 2 in all at the end of sw250k, and up to 62 in the runs that clean. In
/// rw250k they are further along.
#[test]
fn summaries_are_one_in_63_pages_where_begun_blocks_hold_less_than_a_block() {
    println!("run       pages in begun blocks, element by element");
    for name in ["sw250k", "sw5m", "rw250k", "rw5m"] {
        let counts = &outcome(name).counts;
        let begun = |counts: &Counts| counts.pages + counts.moved - 63 * counts.sealed_by_host;
        println!("{name:<8}  {:?}", counts.iter().map(begun).collect::<Vec<_>>());
        for counts in counts {
            let floor = (counts.pages + counts.moved) / 63;
            assert_eq!(counts.sealed_by_host == floor, name != "rw250k", "{name}");
            assert!(counts.sealed_by_host <= floor && floor < counts.sealed_by_host + 8);
        }
    }
}

#[test]
fn every_clean_is_an_erase_and_none_is_lost() {
    for name in ["sw5m", "rw5m"] {
        let outcome = outcome(name);
        for (erases, counts) in outcome.erases.chunks(8 * 2048).zip(&outcome.counts) {
            assert_eq!(erases.iter().map(|&erases| u64::from(erases)).sum::<u64>(), counts.cleans);
        }
    }
    // DiskSim prints the mean life left of element 0's blocks.
    let erases = &outcome("rw5m").erases[..8 * 2048];
    let life = 50.0 - erases.iter().sum::<u32>() as f64 / erases.len() as f64;
    assert!((life - 48.908_020).abs() < 1e-6, "{life}");
}
