//! Log space that an update has reserved is not taken by anything that logs without a reservation.

use std::sync::Arc;

use nandex::device::MemoryDevice;
use nandex::raw::store::log::{Log, Reservation};
use nandex::{Table, Volume, VolumeOpenOptions};
use nandex_trial::Contract;
use nandex_trial::table::TableContract;

use super::support::{DURABILITIES, Setup};

/// The maximum bytes that one insert appends to the log: an entry, and the record of a move.
const INSERT_BYTES: u64 = 400;

/// Reserves all of the log except the space of one insert, as the batches of other threads do together.
fn reserve_the_rest(log: &Log) -> Option<Reservation<'_>> {
    // An eighth of the log is kept for callers without a reservation.
    let for_insert = 2 * INSERT_BYTES + 3 * log.block_bytes() + log.capacity_bytes() / 8;
    let free = log.capacity_bytes().checked_sub(log.used_bytes() + for_insert)?;
    log.try_reserve(free / 2).unwrap()
}

/// Reserves the log during flushes, which logged their carry-over without a reservation. With four threads
/// and batches in a log of 256 KiB that took the space of one of them, which then failed with LogFull.
#[test]
fn a_flush_takes_no_log_space_that_others_have_reserved() {
    for setup in Setup::every(|policy| Setup::busy(policy, DURABILITIES[1]).inline()) {
        let device = MemoryDevice::new();
        let volume = Volume::create(Arc::new(device.clone()), setup.volume_options()).unwrap();
        let table = setup.create(&volume, "t").unwrap();
        let log = volume.log();
        for number in 0..900 {
            let others = reserve_the_rest(log);
            let before = log.stats().payload_bytes;
            table.insert(&setup.key(number), &setup.value(number, 0)).unwrap();
            let appended = log.stats().payload_bytes - before;
            assert!(appended <= INSERT_BYTES, "{setup:?}: {appended} bytes for one insert");
            drop(others);
        }
        table.sync().unwrap();
        // Entries that kept their old place in the log are present after a power cut.
        let device = MemoryDevice::from_image(device.image());
        let volume = Volume::open(Arc::new(device), VolumeOpenOptions::default()).unwrap();
        let table = setup.open(&volume, "t").unwrap();
        for number in 0..900 {
            let found = table.get(&setup.key(number)).unwrap();
            assert_eq!(found.as_deref(), Some(&setup.value(number, 0)[..]), "{setup:?}: {number}");
        }
    }
}
