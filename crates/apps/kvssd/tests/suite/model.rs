//! The model of operations per second, against figures that users of such drives have measured.

use nandex_kvssd::{IopsParameters, OperationMix};

/// A user has measured 39.0 thousand reads and as many writes per second, of values of 4 KiB, half and half; another
/// one 54.1 thousand stores. The parameters predict more than either.
#[test]
fn the_model_promises_more_than_was_measured() {
    let model = IopsParameters::default();
    let half = OperationMix { reads: 0.5, updates: 0.5, ..OperationMix::default() };
    assert!(model.kiops(half, 4096).unwrap() > 60.0);
    let stores = OperationMix { inserts: 1.0, ..OperationMix::default() };
    assert!(model.kiops(stores, 4096).unwrap() > 2.0 * 50.0);
}
