//! Measures a simulated device as data sheets and papers do.

use nandex_sim::workload::{Pattern, SplitMix64, Workload, closed_loop};
use nandex_sim::{Done, Fill, Machine, Model, Preset, Request, RequestKind, Spec, Ssd};

const PAGE_BYTES: u64 = 4096;

/// Creates a device of a preset.
pub fn model(preset: &Preset, fill: Fill) -> Box<dyn Model> {
    preset.build(fill).unwrap()
}

/// Returns requests of a kind, in the order of their submission.
pub fn requests(
    kind: RequestKind,
    pages: u32,
    places: impl Iterator<Item = u64>,
) -> impl Iterator<Item = Request> {
    (0..).zip(places).map(move |(token, page)| Request { token, kind, page, pages })
}

/// Returns the bytes in a second, in MB/s, of requests in a loop, from the end of the first `skip` on.
fn bandwidth_mb(
    model: &mut dyn Model,
    all: impl Iterator<Item = Request>,
    depth: u32,
    skip: u64,
) -> f64 {
    let (mut count, mut bytes, mut from, mut until) = (0, 0, 0, 0);
    closed_loop(model, all, depth, |done| {
        count += 1;
        if count <= skip {
            from = done.finished_ns;
        } else {
            bytes += u64::from(done.request.pages) * PAGE_BYTES;
            until = done.finished_ns;
        }
    });
    bytes as f64 * 1e3 / (until - from) as f64
}

/// Returns the MB/s of 128 KiB reads, consecutive, eight at a time.
pub fn sequential_read_mb(model: &mut dyn Model) -> f64 {
    let all = requests(RequestKind::Read, 32, (0..4000).map(|n| n * 32));
    bandwidth_mb(model, all, 8, 1000)
}

/// Returns the MB/s of 128 KiB writes, consecutive, eight at a time: from the second time on over an SSD that
/// was full before, and for at least 20 000 writes.
pub fn sequential_write_mb(spec: &Spec) -> f64 {
    let mut ssd = Ssd::new(shrunk(spec), Fill::Sequential).unwrap();
    let count = ssd.page_count() / 32;
    let measured = count.max(20_000);
    let all = requests(RequestKind::Write, 32, (0..count + measured).map(|n| n % count * 32));
    bandwidth_mb(&mut ssd, all, 8, count)
}

/// Returns the requests a second of random 4 KiB requests, from the end of the first `skip` of them on.
pub fn random_iops(
    model: &mut dyn Model,
    kind: RequestKind,
    depth: u32,
    (skip, count): (u64, u64),
) -> f64 {
    let read_ppm = if kind == RequestKind::Read { 1_000_000 } else { 0 };
    let pattern = Pattern::Uniform;
    let workload = Workload { pattern, read_ppm, ..Workload::pages(model.page_count()) };
    let all = workload.requests().unwrap().take(count as usize);
    bandwidth_mb(model, all, depth, skip) * 1e6 / PAGE_BYTES as f64
}

/// Returns the time of each of some requests alone, in nanoseconds.
pub fn alone_ns(model: &mut dyn Model, all: impl Iterator<Item = Request>) -> Vec<u64> {
    let mut times = Vec::new();
    let mut done: Vec<Done> = Vec::new();
    for request in all {
        model.submit(request);
        while model.step(&mut done) {}
        times.push(done.pop().map(|done| done.finished_ns - done.submitted_ns).unwrap());
    }
    times
}

/// Returns a thousand places below a number.
pub fn places_below(count: u64) -> impl Iterator<Item = u64> {
    let mut rng = SplitMix64::new(5);
    (0..1000).map(move |_| rng.below(count))
}

/// Returns the mean time of single 4 KiB requests, in nanoseconds.
pub fn alone_mean_ns(model: &mut dyn Model, kind: RequestKind) -> f64 {
    let count = model.page_count();
    alone_mean_within_ns(model, kind, count)
}

/// Returns the mean time of single requests in the first pages.
pub fn alone_mean_within_ns(model: &mut dyn Model, kind: RequestKind, count: u64) -> f64 {
    let times = alone_ns(model, requests(kind, 1, places_below(count)));
    times.iter().sum::<u64>() as f64 / times.len() as f64
}

/// Returns the SSD with fewer and smaller blocks, for writes over all of it: shares stay the same, and the
/// time of an erase shrinks with the block.
fn shrunk(spec: &Spec) -> Spec {
    let mut small = spec.clone();
    small.flash.blocks = spec.flash.blocks.min(128);
    small.flash.pages = spec.flash.pages.min(32);
    let whole = u64::from(spec.flash.pages);
    small.timing.erase_ns = spec.timing.erase_ns * u64::from(small.flash.pages) / whole;
    small.host.buffer_bytes = spec.host.buffer_bytes.min(16 << 20);
    small
}

/// Returns the SSD with 64 blocks in each plane.
pub fn with_few_blocks(spec: &Spec) -> Spec {
    let mut small = spec.clone();
    small.flash.blocks = 64;
    small
}

/// Returns the random 4 KiB writes a second of an SSD in its steady state. An SSD of more than 130 GB is
/// measured small, so that it fits into memory and reaches its steady state.
pub fn steady_write_iops(preset: &Preset, depth: u32) -> f64 {
    let spec = spec(preset);
    let spec = if spec.page_count() > 32_000_000 { shrunk(spec) } else { spec.clone() };
    let mut ssd = Ssd::new(spec, Fill::Steady { seed: 3 }).unwrap();
    random_iops(&mut ssd, RequestKind::Write, depth, (100_000, 300_000))
}

/// Returns the parts of an SSD.
pub fn spec(preset: &Preset) -> &Spec {
    match preset.machine() {
        Machine::Ssd(spec) => spec,
        other => panic!("{other:?} is no SSD"),
    }
}
