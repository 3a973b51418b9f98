//! The time at which updates of a table are durable, one story each.

use std::sync::Arc;
use std::time::Duration;

use nandex::bufferhash::Policy;
use nandex::{Durability, Table, Volume};
use nandex_sim::{FaultOn, SimDevice};
use nandex_trial::Contract;
use nandex_trial::table::TableContract;

use super::support::{DURABILITIES, Setup};

#[test]
fn a_period_that_is_over_is_noticed_by_the_next_acknowledgement() {
    let syncs = |durability| {
        let device = SimDevice::instant();
        let setup = Setup { widths: (16, 64), ..Setup::new(Policy::Fifo, durability).inline() };
        let table = setup.create_on(Arc::new(device.clone())).unwrap();
        for number in 0..2000 {
            table.insert(&setup.key(number), &setup.value(number, 0)).unwrap();
        }
        device.seen(FaultOn::Sync)
    };
    let [always, often, hour] = [
        DURABILITIES[0],
        // By the device's clock, a hundred looks at it or operations.
        Durability::Every(Duration::from_micros(100)),
        Durability::Every(Duration::from_secs(3600)),
    ]
    .map(syncs);
    assert!(hour < often && often < always, "{hour} {often} {always}");
}

/// Loses power after a flush: entries that a full buffer's segment could not take went on in the next buffer,
/// in no log and no longer in any image of a checkpoint: the flushed entries were lost.
#[test]
fn what_was_flushed_outlives_its_buffer_where_nothing_is_logged() {
    let device = SimDevice::instant();
    let setup = Setup::busy(Policy::Fifo, Durability::Never).inline();
    let volume = Volume::create(Arc::new(device.clone()), setup.volume_options()).unwrap();
    let table = setup.create(&volume, "t").unwrap();
    let insert = |key| table.insert(&setup.key(key), &setup.value(key, 0)).unwrap();
    (0..200).for_each(insert);
    table.flush().unwrap();
    let flushes = table.stats().flushes;
    for key in 1000.. {
        insert(key);
        if table.stats().flushes >= flushes + 2 {
            break;
        }
    }
    // One more checkpoint, as a full log would take.
    volume.checkpoint().unwrap();
    let found =
        setup.open_on(Arc::new(SimDevice::instant().with_image(device.survivors(0)))).unwrap();
    for key in 0..200 {
        assert_eq!(found.get(&setup.key(key)).unwrap().as_deref(), Some(&setup.value(key, 0)[..]));
    }
}
