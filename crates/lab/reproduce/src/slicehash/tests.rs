//! Tests that workers are as fast as the structure itself on the simulated drive, and not faster.

use std::sync::Arc;

use nandex::raw::device::Geometry;
use nandex::raw::store::schedule::Channels;
use nandex::{SliceHash, Table};
use nandex_sim::workload::SplitMix64;
use nandex_sim::{RequestKind, SimDevice};

use super::lab::{Mix, Setup};
use super::throughput::Part;
use super::workers::{Span, WorkerModel};
use crate::batch::{self, Batched, Processor};
use crate::tape::{Act, Step, Tape};
use crate::{Drive, Filled, Scale};

const FREE: Processor = Processor { operation_ns: 0, cores: 1 };

fn scale() -> Scale {
    Scale::new(Scale::MOST, 1).expect("it is in range")
}

fn geometry() -> Geometry {
    Drive::CRUCIAL.geometry().unwrap()
}

fn workers() -> WorkerModel {
    let channels = Channels::of(&geometry());
    WorkerModel { lookup_cpu_ns: 0, insert_cpu_ns: 0, ..WorkerModel::channel_aware(channels, 1) }
}

/// Creates a table whose first buffers are on flash, on a drive with this geometry.
fn on_drive(setup: Setup, geometry: Geometry) -> (SliceHash, SimDevice) {
    let model = Drive::CRUCIAL.model(scale(), Filled::Once, 0).unwrap();
    let device = SimDevice::with_model(model).with_geometry(geometry);
    let table = setup.create(Arc::new(device.clone())).unwrap();
    let fill: Vec<u64> = (1..=setup.keys(2)).collect();
    batch::inserts(&table, &device, &fill, 1000).unwrap();
    (table, device)
}

#[test]
fn worker_models_look_up_as_fast_as_the_structure_itself_on_the_drive() {
    let setup = Setup::paper(scale());
    let mut rng = SplitMix64::new(5);
    let keys: Vec<u64> = (0..20_000).map(|_| 1 + rng.below(setup.keys(1) / 2)).collect();
    let [looking] = Part::of(setup, [Mix::Lookups]).unwrap();
    let spread = Geometry { serial_buses: false, ..geometry() };
    let in_runs = WorkerModel { channels: Channels::of(&geometry()), ..workers() };
    for (geometry, model, most) in [(spread, workers(), 1.03), (geometry(), in_runs, 1.05)] {
        let (table, device) = on_drive(setup, geometry);
        let [half, whole] = [10_000, 20_000]
            .map(|count| batch::lookups(&table, &device, &keys[..count], count).unwrap());
        // Without the end of a batch, when few channels have reads left.
        let lookups = Batched {
            operations: whole.operations - half.operations,
            device_ns: whole.device_ns - half.device_ns,
        };
        let worked = looking.work(model, Drive::CRUCIAL, scale()).unwrap().operations_per_s;
        let ratio = worked / lookups.operations_per_s(FREE);
        assert!((0.98..most).contains(&ratio), "{worked} and {lookups:?}");
    }
}

#[test]
fn worker_models_merge_as_fast_as_the_structure_itself_on_the_drive() {
    let setup = Setup::paper(scale());
    let (table, device) = on_drive(setup, geometry());
    let flushes = table.stats().flushes;
    let more: Vec<u64> = (0..setup.keys(6)).map(|key| (1 << 40) + key).collect();
    let inserts = batch::inserts(&table, &device, &more, 1000).unwrap();
    let flushes = table.stats().flushes - flushes;

    let [inserting] = Part::of(setup, [Mix::Inserts]).unwrap();
    // On a drive as new as the structure's, which syncs each slicetable while inserts wait for it.
    let mut drives = [Drive::CRUCIAL.model(scale(), Filled::Once, 0).unwrap()];
    let model = WorkerModel { span: Span::Whole, ..workers() };
    let worked = model.work(&inserting.tape, &mut drives).operations_per_s;
    let merges_per_s = worked / inserting.inserts_per_flush;
    let ratio = merges_per_s * inserts.device_ns as f64 / 1e9 / flushes as f64;
    assert!((0.85..1.2).contains(&ratio), "{merges_per_s} merges/s, {flushes} in {inserts:?}");
}

/// Returns the keys of a buffer.
const BUFFER_KEYS: u64 = 7_000;

/// Returns inserts, one of which in a fixed number writes a slicetable.
fn merges(operations: u64, every: u64) -> Tape {
    let mut tape = Tape::default();
    for operation in 0..operations {
        let page = operation % 64 * 1024;
        let write = [Step { kind: RequestKind::Write, page, pages: 1024, wave: 0 }];
        tape.push(Act::Insert, if operation % every == 0 { &write } else { &[] });
    }
    tape
}

#[test]
fn inserts_wait_for_merges_or_for_cores_whichever_is_slower() {
    let mut drives = [Drive::CRUCIAL.model(scale(), Filled::Once, 0).unwrap()];
    let tape = merges(40 * BUFFER_KEYS, BUFFER_KEYS);
    let free = workers().work(&tape, &mut drives);
    // 4 MiB at some 180 MB/s for each buffer.
    let buffers_per_s = free.operations_per_s / BUFFER_KEYS as f64;
    assert!((38.0..50.0).contains(&buffers_per_s), "{buffers_per_s}");
    let busy = WorkerModel { insert_cpu_ns: 80_000, ..workers() }.work(&tape, &mut drives);
    assert!((99_000.0..=100_100.0).contains(&busy.operations_per_s), "{busy:?}");
    // The drive has no state of the first two models, and the third is as fast as the first.
    let again = workers().work(&tape, &mut drives);
    let ratio = again.operations_per_s / free.operations_per_s;
    assert!((0.9..1.1).contains(&ratio), "{again:?} and {free:?}");
}

/// Inserts that take no time of the processor used to be finished before the clock of a whole run started: only
/// those behind a flush were counted, and more drives, whose buffers fill later, seemed slower.
#[test]
fn a_whole_run_counts_inserts_that_take_no_time() {
    let mut drives = [Drive::CRUCIAL.model(scale(), Filled::Once, 0).unwrap()];
    let tape = merges(40 * BUFFER_KEYS, BUFFER_KEYS);
    let free = WorkerModel { insert_cpu_ns: 0, span: Span::Whole, ..WorkerModel::buffer_hash() };
    let buffers_per_s = free.work(&tape, &mut drives).operations_per_s / BUFFER_KEYS as f64;
    // 4 MiB at some 180 MB/s for each buffer.
    assert!((38.0..50.0).contains(&buffers_per_s), "{buffers_per_s}");
}

#[test]
fn reads_of_a_slice_on_two_drives_overlap_and_those_after_one_another_do_not() {
    let lookups = |second: u64, wave: u32| {
        let mut tape = Tape::default();
        for n in 0..2_000u64 {
            let page = n * 7919 % 100_000;
            let first = Step { kind: RequestKind::Read, page, pages: 1, wave: 0 };
            tape.push(Act::Lookup, &[first, Step { page: page + second, wave, ..first }]);
        }
        let one = || Drive::CRUCIAL.model(scale(), Filled::Once, 0).unwrap();
        let mut drives = [one(), one()];
        WorkerModel { window: 1, ..workers() }.work(&tape, &mut drives).operations_per_s
    };
    let (together, apart) = (lookups(1 << 40, 0), lookups(1 << 40, 1));
    assert!((1.95..2.05).contains(&(together / apart)), "{together} and {apart}");
}
