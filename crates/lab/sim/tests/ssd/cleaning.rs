//! Cleaning: its theoretical costs, its invariants, and a test that a steady start is steady.

use nandex_sim::spec::{Spec, Victim};
use nandex_sim::{Fill, Model};

use crate::support::{amplification, random, run_mixed, ssd};

/// Returns one plane of many blocks, with a share of spare blocks in thousandths.
fn plane(victim: Victim, spare_permille: u32) -> Spec {
    let mut spec = Spec::plain();
    (spec.flash.channels, spec.flash.dies, spec.flash.planes) = (1, 1, 1);
    (spec.flash.blocks, spec.flash.pages) = (1000, 64);
    spec.ftl.victim = victim;
    spec.ftl.spare_permille = spare_permille;
    spec.ftl.clean_at_permille = 1;
    spec
}

/// Returns the write amplification after four overwrites.
fn measured(spec: Spec) -> f64 {
    let mut ssd = ssd(spec, Fill::Sequential);
    let pages = ssd.page_count();
    amplification(&mut ssd, 4 * pages, 1);
    amplification(&mut ssd, 2 * pages, 2)
}

/// Returns the theory of Desnoyers, SYSTOR 2012: with `a` blocks in use per block of data, a block that is
/// cleaned first in, first out still has the share `x` of valid pages that solves `x = exp(-a (1 - x))`, and
/// each page is programmed `1 / (1 - x)` times.
fn fifo_theory(spec: &Spec) -> f64 {
    let used =
        u64::from(spec.flash.blocks - spec.clean_at_blocks()) * u64::from(spec.block_units());
    let a = used as f64 / spec.page_count() as f64;
    let mut x = 0.5;
    for _ in 0..10_000 {
        x = f64::exp(-a * (1.0 - x));
    }
    1.0 / (1.0 - x)
}

#[test]
fn first_in_first_out_costs_what_theory_says() {
    for spare_permille in [70, 150, 280, 500] {
        let spec = plane(Victim::Fifo, spare_permille);
        let (theory, measured) = (fifo_theory(&spec), measured(spec));
        let miss = (measured / theory - 1.0).abs();
        assert!(miss < 0.02, "{spare_permille}: {measured} for {theory}");
    }
}

#[test]
fn greedy_costs_no_more_than_first_in_first_out() {
    for spare_permille in [70, 150, 280, 500] {
        let greedy = measured(plane(Victim::Greedy, spare_permille));
        let fifo = measured(plane(Victim::Fifo, spare_permille));
        assert!(greedy <= fifo * 1.001, "{spare_permille}: {greedy} and {fifo}");
    }
}

#[test]
fn a_steady_start_costs_what_a_long_warm_up_does() {
    for (victim, spare_permille) in
        [(Victim::Greedy, 70), (Victim::Greedy, 280), (Victim::Fifo, 150), (Victim::WearAware, 150)]
    {
        let spec = plane(victim, spare_permille);
        let warm = measured(spec.clone());
        let mut ssd = ssd(spec, Fill::Steady { seed: 5 });
        let pages = ssd.page_count();
        let steady = amplification(&mut ssd, pages / 2, 2);
        let miss = (steady / warm - 1.0).abs();
        assert!(miss < 0.03, "{victim:?}, {spare_permille}: {steady} for {warm}");
    }
}

#[test]
fn every_erase_is_counted_and_every_written_page_had_one_before() {
    for seed in 0..40 {
        let spec = random(seed);
        let mut ssd = ssd(spec.clone(), Fill::Sequential);
        run_mixed(&mut ssd, 6000, 16, seed);
        let ftl = ssd.counters().ftl;
        let by_block: u64 = ssd.erases().iter().map(|&count| u64::from(count)).sum();
        assert_eq!(by_block, ftl.erases, "seed {seed}");
        let blocks = u64::from(spec.flash.plane_count()) * u64::from(spec.flash.blocks);
        let filled = spec.page_count() / u64::from(spec.block_units());
        let space = (blocks - filled + ftl.erases) * u64::from(spec.flash.pages);
        assert!(ftl.programs <= space, "seed {seed}: {} pages into {space}", ftl.programs);
    }
}

/// Checks wear: with cold data under half of the device, wear-aware cleaning keeps blocks alike.
#[test]
fn wear_is_levelled_when_asked_for() {
    let spread = |victim| {
        let mut spec = plane(victim, 200);
        (spec.flash.blocks, spec.flash.pages, spec.erases_max) = (100, 16, 100);
        let mut ssd = ssd(spec, Fill::Sequential);
        let hot = ssd.page_count() / 2;
        hammer(&mut ssd, hot, 40 * hot);
        let erases = ssd.erases();
        let most = erases.iter().max().copied().unwrap_or(0);
        let mean = erases.iter().sum::<u32>() / erases.len() as u32;
        (most - mean, ssd.counters().ftl.migrations)
    };
    let ((greedy, none), (aware, migrations)) = (spread(Victim::Greedy), spread(Victim::WearAware));
    assert_eq!(none, 0);
    assert!(migrations > 0 && aware * 3 < greedy * 2, "{aware} with it, {greedy} without");
}

fn hammer(ssd: &mut nandex_sim::Ssd, pages: u64, count: u64) {
    let mut rng = nandex_sim::workload::SplitMix64::new(4);
    let mut done = Vec::new();
    for token in 0..count {
        let (kind, page) = (nandex_sim::RequestKind::Write, rng.below(pages));
        ssd.submit(nandex_sim::Request { token, kind, page, pages: 1 });
        while ssd.step(&mut done) {}
        done.clear();
    }
}
