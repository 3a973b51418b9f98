//! Figure 2a of ANCS 2014: reads on all channels, on any, on one.

use nandex_sim::workload::{SplitMix64, closed_loop};
use nandex_sim::{Fill, Model, Preset, Request, RequestKind};

use crate::measure::{model, requests};

/// The thread counts of the figure.
pub const THREADS: [u32; 6] = [1, 2, 4, 8, 16, 32];
const DOMAINS: u64 = 32;
/// Host pages in a chunk of 8 KiB.
const CHUNK_PAGES: u64 = 2;
const READS: u64 = 20_000;

/// The domain of each read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    /// Each read on another domain in turn.
    Best,
    /// Random domains.
    Random,
    /// All on one domain.
    Worst,
}

/// Returns the reads a second of `threads` threads, each with one request of 4 KiB at a time.
pub fn reads_per_second(preset: &Preset, order: Order, threads: u32) -> f64 {
    let mut model = model(preset, Fill::Sequential);
    let rows = model.page_count() / (DOMAINS * CHUNK_PAGES);
    let mut rng = SplitMix64::new(7);
    let places = (0..READS).map(move |n| {
        let domain = match order {
            Order::Best => n % DOMAINS,
            Order::Random => rng.below(DOMAINS),
            Order::Worst => 0,
        };
        (rng.below(rows) * DOMAINS + domain) * CHUNK_PAGES + rng.below(CHUNK_PAGES)
    });
    run(model.as_mut(), requests(RequestKind::Read, 1, places), threads)
}

fn run(model: &mut dyn Model, all: impl Iterator<Item = Request>, threads: u32) -> f64 {
    let mut count = 0_u64;
    closed_loop(model, all, threads, |_| count += 1);
    count as f64 * 1e9 / model.now_ns() as f64
}
