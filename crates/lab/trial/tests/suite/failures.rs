//! The state that a failed read and a poisoned volume leave, for structures of any kind, one story each.

use std::sync::Arc;

use nandex::WhenFull;
use nandex::bufferhash::Policy;
use nandex_sim::workload::SplitMix64;
use nandex_sim::{Fault, FaultKind, FaultOn, FaultSpan, SimDevice};
use nandex_trial::filter::FilterSetup;
use nandex_trial::{Contract, Session, Stop, Trust};

use crate::devices::DURABILITIES;
use crate::large;
use crate::tables::{SLICES, Setup};

/// Returns a session after `calls` calls, and the generator of its further calls.
fn worked<C: Contract>(setup: C, device: &SimDevice, calls: u64) -> (Session<C>, SplitMix64) {
    let (mut session, mut rng) = (Session::new(setup), SplitMix64::new(1));
    session.create(Arc::new(device.clone())).unwrap();
    session.settle();
    work(&mut session, &mut rng, calls);
    (session, rng)
}

fn work<C: Contract>(session: &mut Session<C>, rng: &mut SplitMix64, calls: u64) {
    for _ in 0..calls {
        session.call(rng).unwrap();
        session.settle();
    }
}

/// Fails one operation, which comes after `after` others of its kind.
fn fail_once(device: &SimDevice, on: FaultOn, after: u64) {
    let (kind, span) = (FaultKind::Io, FaultSpan::Once);
    device.arm(Fault { on, at: device.seen(on) + 1 + after, kind, span });
}

/// Returns the error of a failed call.
fn error(result: Result<(), Stop>) -> String {
    match result {
        Err(Stop::Failed(error)) => error.to_string(),
        other => panic!("{other:?} where an error was expected"),
    }
}

fn read_that_fails_once<C: Contract>(setup: C, calls: u64) {
    let device = SimDevice::instant();
    let (mut session, mut rng) = worked(setup, &device, calls);
    fail_once(&device, FaultOn::Read, 4);
    let told = error(session.look());
    assert!(told.contains("read of 1 page(s) at page"), "{told}");
    session.look().unwrap();
    // From now on an error is one of the answers, so keys are looked up one by one.
    session.lower_trust(Trust::RightOrError);
    fail_once(&device, FaultOn::Read, 0);
    session.look().unwrap();
    assert_eq!(session.refusals(), 1);
    work(&mut session, &mut rng, 5);
    session.close().unwrap();
}

#[test]
fn a_read_that_fails_once_fails_one_lookup_and_no_other() {
    let setup = Setup::new(Policy::Fifo, DURABILITIES[1]).inline();
    // Entries that soon fill buffers.
    let setup = Setup { widths: (16, 64), ..setup };
    for setup in [setup, setup.sliced(SLICES[0]), setup.sliced(SLICES[3])] {
        read_that_fails_once(setup, 40);
    }
    read_that_fails_once(FilterSetup::cascade(11).wide(), 60);
}

/// Closes a poisoned structure: closing reported success, though the buffer had not been saved.
fn close_poisoned<C: Contract>(setup: C) {
    let device = SimDevice::instant();
    let (mut session, _) = worked(setup, &device, 3);
    fail_once(&device, FaultOn::Sync, 0);
    let updates = C::updates(&mut session);
    assert!(updates.iter().any(|(_, result)| result.is_err()), "{updates:?}");
    session.must_refuse().unwrap();
    session.look().unwrap();
    let told = error(session.close());
    assert!(told.contains("an earlier one failed"), "{told}");
}

#[test]
fn a_poisoned_structure_refuses_answers_and_tells_at_its_close_that_not_all_was_saved() {
    let setup = Setup::new(Policy::Fifo, DURABILITIES[1]).inline();
    close_poisoned(setup);
    close_poisoned(setup.sliced(SLICES[0]));
    close_poisoned(FilterSetup::cascade(11));
    close_poisoned(large::Setup::new(DURABILITIES[1], WhenFull::Refuse));
}
