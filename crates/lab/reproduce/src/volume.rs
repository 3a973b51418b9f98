//! The volume under a structure whose operations are counted.

use std::sync::Arc;

use nandex::device::{Device, MemoryDevice};
use nandex::{Durability, Threads, Volume, VolumeOptions};

use crate::Result;

/// The minimum log of most experiments, in bytes: checkpoints forced by a small log are no part of them.
pub const LOG_BYTES_MIN: u64 = 16 << 20;

/// Creates a volume without threads, and with fixed ids, so that the same keys give the same operations. The
/// papers' structures have no log; this one has it on a device of its own, and writes nothing to it without a
/// request.
pub fn volume(device: Arc<dyn Device>, seed: u64, log_bytes: u64) -> Result<Volume> {
    let elsewhere = Arc::new(MemoryDevice::new());
    let options = VolumeOptions { log_device: Some(elsewhere), ..options(seed, log_bytes) };
    Ok(Volume::create(device, options)?)
}

/// Creates a volume with the log on the volume's own device.
pub fn volume_with_log(device: Arc<dyn Device>, seed: u64, log_bytes: u64) -> Result<Volume> {
    Ok(Volume::create(device, options(seed, log_bytes))?)
}

fn options(seed: u64, log_bytes: u64) -> VolumeOptions {
    VolumeOptions {
        hash_key: Some(u128::from(seed)),
        volume_id: Some(1),
        log_bytes,
        durability: Durability::Never,
        threads: Threads::Inline,
        ..VolumeOptions::default()
    }
}
