//! A snapshot that a carry-over keeps, and the later updates.

use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use nandex::bufferhash::Policy;
use nandex::device::MemoryDevice;
use nandex::raw::device::{Call, Observer, OpKind, Result, Watched};
use nandex::{AnyTable, Table, Volume, VolumeOpenOptions};
use nandex_trial::Contract;
use nandex_trial::table::TableContract;

use super::support::{DURABILITIES, Setup};

/// Lets writes of whole buffers through, one for each permit, and counts them.
#[derive(Debug, Default)]
struct Gate {
    /// The number of buffers that waited to be written, and of those that may be.
    counts: Mutex<(u64, u64)>,
    changed: Condvar,
}

impl Gate {
    fn permit(&self, count: u64) {
        self.counts.lock().unwrap().1 += count;
        self.changed.notify_all();
    }

    fn begun(&self) -> u64 {
        self.counts.lock().unwrap().0
    }
}

impl Observer for Gate {
    fn before(&self, call: Call<'_>) -> Result<()> {
        if matches!(call, Call::Start { kind: OpKind::Write, pages: 3, .. }) {
            let mut counts = self.counts.lock().unwrap();
            counts.0 += 1;
            let number = counts.0;
            drop(self.changed.wait_while(counts, |counts| counts.1 < number).unwrap());
        }
        Ok(())
    }
}

fn setup() -> Setup {
    Setup { super_tables: 1, ..Setup::new(Policy::Fifo, DURABILITIES[1]) }
}

/// Lets all writes through in the end, also after a panic: closing the table waits for them.
struct Open<'g>(&'g Gate);

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.0.permit(100);
    }
}

fn create(setup: Setup, device: &MemoryDevice, gate: &Arc<Gate>) -> (Volume, AnyTable) {
    let device = Arc::new(Watched::with(device.clone(), Arc::clone(gate)));
    let volume = Volume::create(device, setup.volume_options()).unwrap();
    let table = setup.create(&volume, "t").unwrap();
    (volume, table)
}

fn wait_until(is_so: impl Fn() -> bool) {
    while !is_so() {
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn insert(table: &AnyTable, key: u64, put: u64) {
    table.insert(&setup().key(key), &setup().value(key, put)).unwrap();
}

/// Returns the keys from 0 on that the first buffer takes.
fn keys_of_a_buffer() -> u64 {
    let gate = Arc::<Gate>::default();
    gate.permit(1);
    let (_volume, table) = create(setup().inline(), &MemoryDevice::new(), &gate);
    let fits = |key: &u64| {
        insert(&table, *key, 0);
        gate.begun() == 0
    };
    (0..).take_while(fits).count() as u64
}

/// Cuts the power while a carry-over keeps a snapshot. A buffer that was full when its snapshot was taken has
/// nothing in the log. Its carry-over found no log space and kept the snapshot, and nothing kept the log of
/// the next buffer: after a power cut the snapshot's old version of a key was put above the newer one on
/// flash.
#[test]
fn a_snapshot_that_a_carry_over_keeps_hides_nothing_newer() {
    let keys = keys_of_a_buffer();
    let (memory, gate) = (MemoryDevice::new(), Arc::<Gate>::default());
    let (volume, table) = create(setup(), &memory, &gate);
    let _open = Open(&gate);
    (0..keys).for_each(|key| insert(&table, key, 0));
    table.flush().unwrap();
    // The second buffer has a newer version of the first key, and a third one is begun.
    insert(&table, keys, 0);
    insert(&table, 0, 1);
    table.sync().unwrap();
    (keys + 1..2 * keys + 60).for_each(|key| insert(&table, key, 0));
    let log = volume.log();
    let free = log.capacity_bytes() / 8 * 7 - log.used_bytes() - 2 * log.block_bytes();
    let others = log.try_reserve(free / 2 - 128).unwrap().expect("nearly all that is free");
    gate.permit(1);
    // One thread flushes: it begins with the second buffer when it has ended the first.
    wait_until(|| gate.begun() == 2);
    drop(others);
    gate.permit(1);
    wait_until(|| table.stats().flushes == 2);
    table.sync().unwrap();
    volume.checkpoint().unwrap();
    let device = MemoryDevice::from_image(memory.image());
    let volume = Volume::open(Arc::new(device), VolumeOpenOptions::default()).unwrap();
    let table = setup().open(&volume, "t").unwrap();
    let found = table.get(&setup().key(0)).unwrap();
    assert_eq!(found.as_deref(), Some(&setup().value(0, 1)[..]), "the newer version");
}
