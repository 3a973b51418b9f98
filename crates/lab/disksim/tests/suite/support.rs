//! Runs of DiskSim's validation suite, each made once for all tests that use it.

use std::sync::OnceLock;

use nandex_disksim::streams::{VALIDATION, Validation};
use nandex_disksim::{Counts, Elements, Responses, Shape};
use nandex_sim::Model;

/// The result of a run.
#[derive(Clone, Debug)]
pub struct Outcome {
    pub responses: Responses,
    pub counts: Vec<Counts>,
    pub erases: Vec<u32>,
}

/// Serves a run up to the moment at which its last request arrives.
pub fn serve(shape: Shape, run: &Validation) -> Outcome {
    let mut ssd = Elements::new(shape).unwrap();
    let mut done = Vec::new();
    for arrival in run.stream() {
        ssd.advance(arrival.at_ns, &mut done);
        for done in done.drain(..) {
            assert_eq!(done.parts.total_ns(), done.finished_ns - done.submitted_ns);
        }
        if arrival.request.token + 1 < run.arrivals {
            ssd.submit_at(arrival.at_ns, arrival.request);
        }
    }
    Outcome { responses: ssd.responses(), counts: ssd.counts(), erases: ssd.erases() }
}

pub fn validation(name: &str) -> Validation {
    *VALIDATION.iter().find(|run| run.name == name).unwrap()
}

/// The outcome of a run of the suite.
pub fn outcome(name: &str) -> &'static Outcome {
    static OUTCOMES: [OnceLock<Outcome>; 6] = [const { OnceLock::new() }; 6];
    let index = VALIDATION.iter().position(|run| run.name == name).unwrap();
    OUTCOMES[index].get_or_init(|| serve(Shape::SUITE, &VALIDATION[index]))
}
