//! A played tape takes the same time as the structure on the simulated drive itself, and batches fill a
//! drive's queue.

use std::sync::Arc;

use nandex::bufferhash::Config;
use nandex::device::Device;
use nandex::{BufferHash, Durability, OpenOptions, Result, Table, Threads, Volume, VolumeOptions};
use nandex_reproduce::batch::{Processor, inserts, lookups, mixed};
use nandex_reproduce::play::Player;
use nandex_reproduce::tape::TapedDevice;
use nandex_reproduce::{Drive, Filled, Scale, Taped};
use nandex_sim::{Model, SimDevice};

/// Creates a small volume without threads, and with fixed ids.
pub fn volume(device: Arc<dyn Device>) -> Result<Volume> {
    let options = VolumeOptions {
        durability: Durability::Never,
        threads: Threads::Inline,
        volume_id: Some(7),
        hash_key: Some(9),
        ..VolumeOptions::tiny()
    };
    Ok(Volume::create(device, options)?)
}

fn create(device: Arc<dyn Device>) -> Result<BufferHash> {
    let options = OpenOptions::default().inline();
    BufferHash::create_with(&volume(device)?, "t", Config::tiny(), options)
}

fn model(drive: Drive) -> Box<dyn Model> {
    drive.model(Scale::default(), Filled::Once, 4096).expect("there can be such a drive")
}

/// Returns keys in a shuffled order.
fn keys(count: u64) -> impl Iterator<Item = u64> {
    (0..count).map(move |number| number * 7919 % count)
}

#[test]
fn a_tape_takes_as_long_as_the_drive_itself() {
    const KEYS: u64 = 9_000;
    for drive in [Drive::INTEL, Drive::TRANSCEND] {
        let device = SimDevice::with_model(model(drive));
        let table = create(Arc::new(device.clone())).unwrap();
        let start_ns = device.now();
        for key in keys(KEYS) {
            table.insert_u64(key, key).unwrap();
            table.get_u64(KEYS - key).unwrap();
        }
        let direct_ns = device.now() - start_ns;

        let device = TapedDevice::new();
        let mut taped = Taped::new(create(Arc::new(device.clone())).unwrap(), device);
        for key in keys(KEYS) {
            taped.insert(key, key).unwrap();
            taped.lookup(KEYS - key).unwrap();
        }
        assert!(taped.table.stats().flushes > 12 && taped.counts().found > 1000);
        let played = Player::single(0).play(taped.tape(), &mut *model(drive));
        // The drive itself was written to while the volume was created; that is the only difference.
        let ratio = played.elapsed_ns as f64 / direct_ns as f64;
        assert!((0.98..1.02).contains(&ratio), "{drive:?}: {} of {direct_ns}", played.elapsed_ns);
        let slower = Player::single(10_000).play(taped.tape(), &mut *model(drive));
        assert!(slower.elapsed_ns >= played.elapsed_ns + 2 * KEYS * 9_000, "{drive:?}");
    }
}

#[test]
fn a_batch_of_lookups_keeps_a_drive_busy_and_single_ones_do_not() {
    let device = SimDevice::with_model(model(Drive::INTEL));
    let table = create(Arc::new(device.clone())).unwrap();
    let all: Vec<u64> = keys(5_000).collect();
    let put = inserts(&table, &device, &all, 100).unwrap();
    assert_eq!(put.operations, 5_000);
    let free = Processor { operation_ns: 0, cores: 1 };
    let rate =
        |batch| lookups(&table, &device, &all[..2_000], batch).unwrap().operations_per_s(free);
    let (single, batched) = (rate(1), rate(64));
    assert!(batched > 5.0 * single, "{single} and {batched}");
    let busy = Processor { operation_ns: 1_000_000, cores: 2 };
    let bound = lookups(&table, &device, &all, 64).unwrap().operations_per_s(busy);
    assert!((1_999.0..2_001.0).contains(&bound), "{bound}");
    assert_eq!(mixed(&table, &device, &all[..500], 50).unwrap().operations, 1_000);
}
