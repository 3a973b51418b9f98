//! The cost model and the simulator have one Intel X18-M: the costs of `nandex advise` for a device are the
//! times of the simulated drive, and both are the printed numbers.

use nandex::raw::model::{CostPreset, FlashCosts};
use nandex_reproduce::{Drive, Filled};
use nandex_sim::{Model, Request, RequestKind};

use crate::outcome::scale;

/// Returns the time of requests that are made one after another, in nanoseconds.
fn times_ns(
    model: &mut dyn Model,
    kind: RequestKind,
    pages: u32,
    firsts: impl Iterator<Item = u64>,
) -> Vec<u64> {
    let mut times = Vec::new();
    for (token, page) in firsts.enumerate() {
        let start_ns = model.now_ns();
        model.submit(Request { token: token as u64, kind, page, pages });
        let mut done = Vec::new();
        while done.is_empty() && model.step(&mut done) {}
        times.push(done[0].finished_ns - start_ns);
    }
    times
}

/// Returns the Intel SSD of the experiments, with few blocks and written once in order.
fn intel() -> Box<dyn Model> {
    Drive::INTEL.model(scale(), Filled::Once, 0).expect("there can be such a drive")
}

fn costs() -> FlashCosts {
    CostPreset::by_name("intel-x18m").expect("it is a preset").costs
}

fn bytes(pages: u32) -> f64 {
    f64::from(pages) * 4096.0
}

#[test]
fn the_advisor_charges_what_the_simulated_drive_takes_and_the_paper_printed() {
    let costs = costs();
    // NSDI 2010, 7.2.2 and 7.2.1, and ANCS 2014, 5.4.
    for (kind, pages, charged_ns, printed_ms) in [
        (RequestKind::Read, 1, costs.page_read_ns(), 0.15),
        (RequestKind::Read, 32, costs.read.ns(bytes(32)), 0.31),
        (RequestKind::Write, 32, costs.flush_ns(bytes(32)), 0.83),
    ] {
        let taken = times_ns(&mut *intel(), kind, pages, [0, 1 << 14].into_iter())[1] as f64;
        assert!((taken - charged_ns).abs() < 10.0, "{kind:?} of {pages}: {taken}, {charged_ns}");
        assert!((charged_ns / 1e6 - printed_ms).abs() < 1e-5, "{charged_ns}");
    }
    // Until the drive must erase before it can write.
    let mut model = intel();
    let segments = model.page_count() / 32;
    let firsts = (0..2 * segments).map(|n| n % segments * 32);
    let times = times_ns(&mut *model, RequestKind::Write, 32, firsts);
    let worst = times.into_iter().max().expect("there are some") as f64;
    assert!((worst / costs.insert_worst_ns(bytes(32)) - 1.0).abs() < 0.001, "{worst}");
    assert!((worst / 2.72e6 - 1.0).abs() < 0.001, "{worst}");
}

#[test]
fn longer_reads_and_writes_are_charged_as_the_drive_takes_them() {
    let costs = costs();
    for pages in [64, 128, 256, 512] {
        let taken = |kind| times_ns(&mut *intel(), kind, pages, [0, 1 << 14].into_iter())[1] as f64;
        let read = taken(RequestKind::Read) / costs.read.ns(bytes(pages));
        let write = taken(RequestKind::Write) / costs.flush_ns(bytes(pages));
        assert!((0.9..1.1).contains(&read) && (0.9..1.1).contains(&write), "{read}, {write}");
    }
}
