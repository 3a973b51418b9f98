//! The output of the simulator: right numbers, complete drawings, traces that load.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod explain;
mod numbers;
mod page;
mod perfetto;
mod runs;
#[path = "../ssd/support.rs"]
#[expect(dead_code, reason = "shared with the tests of the model, which use more of it")]
mod support;

use nandex_sim::report::{Collector, Keep, Report, SsdBaseline};
use nandex_sim::{Fill, Model, Spec, Ssd};

/// Runs mixed requests on a device of this description, and returns their report.
fn mixed(spec: Spec, requests: u64, seed: u64) -> Report {
    let mut ssd = Ssd::new(spec, Fill::Sequential).unwrap();
    ssd.record_spans(1 << 16);
    let before = SsdBaseline::of(&ssd);
    let mut collector = Collector::new(ssd.now_ns(), Keep { slowest: 3, first: 1 << 16 });
    support::run_mixed(&mut ssd, requests, 16, seed).iter().for_each(|done| collector.note(done));
    while ssd.step(&mut Vec::new()) {}
    collector.report_ssd(&ssd, &before, "all sorts of requests")
}
