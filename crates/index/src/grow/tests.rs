//! What the tests of tables that grow share.

use std::sync::Arc;

use nandex_device::MemoryDevice;
use nandex_store::entries::KeyState;
use nandex_store::{Volume, VolumeOptions};

pub(crate) use crate::testing::{agrees, key, update};
use crate::write::{Core, TableLayout};

pub(crate) fn volume() -> (Arc<MemoryDevice>, Volume) {
    let device = Arc::new(MemoryDevice::new());
    // What filters err about is the same each time.
    let options = VolumeOptions { hash_key: Some(42), ..VolumeOptions::tiny() };
    let volume = Volume::create(Arc::clone(&device) as _, options).unwrap();
    (device, volume)
}

/// Does a value that leaves this part come into the cache?
pub(crate) fn tells<L: TableLayout>(core: &Core<L>) -> bool {
    let cache = core.lookups.cache.get().unwrap();
    let hash = core.hasher.hash(&[7; 8]);
    cache.entries.ticket(hash);
    cache.leaving().leave(hash, &[7; 8], KeyState::Unknown);
    cache.leaving().leave(hash, &[7; 8], KeyState::Live(&[9; 8]));
    cache.entries.find(hash, &[7; 8]).is_known()
}
