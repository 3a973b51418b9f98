//! The probe finds the geometry of simulated devices, whose geometry is known.
//!
//! `NANDEX_GEOMETRIES` says how many random devices are probed with and without noise; `make probe`
//! takes a thousand of each.
#![forbid(unsafe_code)]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod devices;
mod noise;

use devices::{Truth, geometry};
use nandex_device::probe::{Findings, Probe, ProbeOptions, Writes};
use nandex_device::{Device, PageId};
use nandex_sim::{Fill, SimDevice, Ssd};
use noise::NoisyClock;

/// 64 MiB: four stripes of 64 domains with chunks of 64 KiB fit into half of it, and again.
const REGION_PAGES: u64 = 16384;

fn geometries() -> u64 {
    std::env::var("NANDEX_GEOMETRIES").map_or(16, |count| count.parse().unwrap())
}

fn probe(device: &dyn Device, seed: u64) -> Findings {
    let options = ProbeOptions { writes: Writes::Allowed, seed, ..ProbeOptions::default() };
    Probe::new(options).run(device, PageId(0)..PageId(REGION_PAGES)).unwrap()
}

fn simulated(truth: &Truth, fill: Fill) -> SimDevice {
    let device = SimDevice::with_model(Box::new(Ssd::new(truth.spec.clone(), fill).unwrap()));
    device.grow(REGION_PAGES).unwrap();
    device
}

/// What is wrong with the findings; nothing where all is right.
fn mistake(found: &Findings, truth: &Truth) -> Option<String> {
    let answers = (found.chunk_bytes.value, found.channels.value, found.mapping.value);
    let right = (Some(truth.chunk_bytes), Some(truth.channels), Some(truth.mapping));
    (answers != right).then(|| {
        let confidence =
            [found.chunk_bytes.confidence, found.channels.confidence, found.mapping.confidence];
        format!(
            "found {answers:?} {confidence:.3?}, groups {:?}, not {right:?}, on {:?} {:?} {:?}",
            found.groups, truth.spec.flash, truth.spec.timing, truth.spec.parallel
        )
    })
}

#[test]
fn random_geometries_are_found_exactly() {
    let fills = [Fill::Empty, Fill::Sequential];
    let mistakes: Vec<String> = (0..geometries())
        .filter_map(|seed| {
            let truth = geometry(seed);
            let device = simulated(&truth, fills[seed as usize % 2]);
            mistake(&probe(&device, seed), &truth).map(|why| format!("seed {seed}: {why}"))
        })
        .collect();
    assert!(mistakes.is_empty(), "{} wrong:\n{}", mistakes.len(), mistakes.join("\n"));
}

#[test]
fn with_ten_percent_of_noise_at_most_one_in_a_hundred_is_not_found() {
    let mistakes: Vec<String> = (0..geometries())
        .filter_map(|seed| {
            let truth = geometry(seed);
            let device = NoisyClock::new(simulated(&truth, Fill::Empty), seed);
            mistake(&probe(&device, seed), &truth).map(|why| format!("seed {seed}: {why}"))
        })
        .collect();
    let allowed = geometries().div_ceil(100) as usize;
    eprintln!("{} of {} wrong:\n{}", mistakes.len(), geometries(), mistakes.join("\n"));
    assert!(mistakes.len() <= allowed, "{} wrong:\n{}", mistakes.len(), mistakes.join("\n"));
}
