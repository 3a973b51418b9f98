//! What a failed read, a poisoned volume and a power cut without a log leave of a table, one story each.

use std::sync::Arc;

use nandex::bufferhash::Policy;
use nandex::device::Device;
use nandex::{Durability, Table, Volume};
use nandex_sim::{Fault, FaultKind, FaultOn, FaultSpan, SimDevice};

use super::support::{DURABILITIES, SLICES, Setup};

#[test]
fn a_read_that_fails_once_fails_one_lookup_and_no_other() {
    let setup = Setup::new(Policy::Fifo, DURABILITIES[1]);
    read_that_fails_once(setup, 5000);
    read_that_fails_once(setup.sliced(SLICES[0]), 3000);
    read_that_fails_once(setup.sliced(SLICES[3]), 3000);
}

fn read_that_fails_once(setup: Setup, keys: u64) {
    let device = Arc::new(SimDevice::instant());
    let table = setup.create(Arc::clone(&device) as Arc<dyn Device>).unwrap();
    for key in 0..keys {
        table.insert_u64(key, key).unwrap();
    }
    table.flush().unwrap();
    let (on, kind, span) = (FaultOn::Read, FaultKind::Io, FaultSpan::Once);
    device.arm(Fault { on, at: device.seen(on) + 1, kind, span });
    let failed: Vec<_> = (0..keys).filter_map(|key| table.get_u64(key).err()).collect();
    assert_eq!(failed.len(), 1);
    assert!(failed[0].to_string().contains("read of 1 page(s) at page"), "{}", failed[0]);
    device.arm(Fault { on, at: device.seen(on) + 5, kind, span });
    let keys: Vec<_> = (0..keys).map(|key| key.to_le_bytes()).collect();
    let keys: Vec<_> = keys.iter().map(|key| &key[..]).collect();
    table.get_many(&keys).unwrap_err();
    assert!(table.get_many(&keys).unwrap().iter().all(Option::is_some));
    table.insert_u64(1, 2).unwrap();
    table.close().unwrap();
}

/// Closing said that all was well, though the buffer had not been saved.
#[test]
fn closing_a_poisoned_table_tells_that_not_all_was_saved() {
    let setup = Setup::new(Policy::Fifo, DURABILITIES[1]).inline();
    close_poisoned(setup);
    close_poisoned(setup.sliced(SLICES[0]));
}

fn close_poisoned(setup: Setup) {
    let device = SimDevice::instant();
    let table = setup.create(Arc::new(device.clone())).unwrap();
    table.insert(&setup.key(1), &setup.value(1)).unwrap();
    let (on, kind, span) = (FaultOn::Sync, FaultKind::Io, FaultSpan::Once);
    device.arm(Fault { on, at: device.seen(on) + 1, kind, span });
    table.sync().unwrap_err();
    let error = table.close().unwrap_err().to_string();
    assert!(error.contains("an earlier one failed"), "{error}");
}

/// Entries that a full buffer's segment could not take went on in the next buffer, in no log and no longer
/// in any image that a checkpoint kept: what `flush` had made durable was lost with the power.
#[test]
fn what_was_flushed_outlives_its_buffer_where_nothing_is_logged() {
    let device = SimDevice::instant();
    let setup = Setup::busy(Policy::Fifo, Durability::Never).inline();
    let volume = Volume::create(Arc::new(device.clone()), setup.volume_options()).unwrap();
    let table = setup.create_table(&volume, "t").unwrap();
    let insert = |key| table.insert(&setup.key(key), &setup.value(key)).unwrap();
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
    let found = setup.open(Arc::new(SimDevice::instant().with_image(device.survivors(0)))).unwrap();
    for key in 0..200 {
        assert_eq!(found.get(&setup.key(key)).unwrap().as_deref(), Some(&setup.value(key)[..]));
    }
}
