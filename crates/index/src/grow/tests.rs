//! Helpers that the tests of growing tables share.

use std::sync::Arc;

use nandex_device::MemoryDevice;
use nandex_store::entries::KeyState;
use nandex_store::{Threads, Volume, VolumeOptions};

use crate::Table;
pub(crate) use crate::testing::{agrees, key, update};
use crate::write::{Core, TableLayout};

pub(crate) fn volume() -> (Arc<MemoryDevice>, Volume) {
    let device = Arc::new(MemoryDevice::new());
    // The false positives of filters are the same each time.
    let options = VolumeOptions { hash_key: Some(42), ..VolumeOptions::tiny() };
    let volume = Volume::create(Arc::clone(&device) as _, options).unwrap();
    (device, volume)
}

/// Returns whether a value that leaves this part is added to the cache.
pub(crate) fn tells<L: TableLayout>(core: &Core<L>) -> bool {
    let cache = core.lookups.cache.get().unwrap();
    let hash = core.hasher.hash(&[7; 8]);
    cache.entries.ticket(hash);
    cache.leaving().leave(hash, &[7; 8], KeyState::Unknown);
    cache.leaving().leave(hash, &[7; 8], KeyState::Live(&[9; 8]));
    cache.entries.find(hash, &[7; 8]).is_known()
}

/// Returns a volume without threads.
pub(crate) fn inline_volume() -> Volume {
    let options =
        VolumeOptions { threads: Threads::Inline, hash_key: Some(42), ..VolumeOptions::tiny() };
    Volume::create(Arc::new(MemoryDevice::new()), options).unwrap()
}

/// Looks up keys of a table of several parts, and checks that the resulting idle buffers, which all parts share, are
/// counted once.
pub(crate) fn counts_shared_ram_once(volume: &Volume, table: &impl Table, keys: u64) {
    table.flush().unwrap();
    // A lookup may do work that is due.
    (0..3).for_each(|number| _ = table.get(&key(number)).unwrap());
    let ram = || (table.stats().ram_bytes, volume.shared_ram_bytes());
    let before = ram();
    let keys: Vec<_> = (0..keys).map(key).collect();
    let keys: Vec<&[u8]> = keys.iter().map(|it| &it[..]).collect();
    assert!(table.get_many(&keys).unwrap().iter().all(Option::is_some));
    let after = ram();
    assert!(after.1 > before.1, "{before:?} {after:?}");
    assert_eq!(after.0 - before.0, after.1 - before.1, "{before:?} {after:?}");
}
