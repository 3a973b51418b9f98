//! Options of creating or opening a volume.

use std::sync::Arc;

use nandex_device::{Access, Device, Geometry, PAGE_BYTES};

use super::Completion;
use crate::hash::HashKind;
use crate::{Durability, Error, Result};

/// The number of blocks that a log that grows begins with.
const LOG_BLOCKS_FIRST: u64 = 4;

/// The longest log, in bytes.
const LOG_BYTES_MAX: u64 = 1 << 40;

/// The threads that do a volume's own work: writing full log blocks, syncing periodically, taking checkpoints.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Threads {
    /// The volume's own threads, so that callers seldom wait.
    #[default]
    Background,
    /// The calling threads, at the moment the work falls due. The same calls from one thread on the same device then
    /// give the same device operations and the same bytes. The promise of [`Durability`] holds, except that a period
    /// ends with the first acknowledgement after it: a volume without updates does not sync. Tables of the volume need
    /// `flush_threads: 0` for the same.
    Inline,
}

/// The reaction of an opening to a lost newest superblock when an older one exists.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum StaleSuperblock {
    /// The opening fails with [`Error::Stale`].
    #[default]
    Refuse,
    /// The opening uses the older state, as far as it still exists. Later updates, creations and removals are undone,
    /// and pages that were used again since are damaged.
    Open,
}

/// Options of creating a volume.
#[derive(Clone, Debug)]
pub struct VolumeOptions {
    /// The hash function of all its structures. Default XXH3; choose SipHash for untrusted keys.
    pub hash: HashKind,
    /// The hash function's key; random by default. Set it only for runs that must repeat.
    pub hash_key: Option<u128>,
    /// The volume's id, which distinguishes its pages from those of another; random by default. Set it only for runs
    /// that must repeat.
    pub volume_id: Option<u128>,
    /// The size of the write-ahead log in bytes, all allocated at creation. Default 128 MiB. It must be several times
    /// the buffers of the tables in the volume; recovery replays at most this much.
    pub log_bytes: u64,
    /// The most bytes that the log may grow to, in the volume's own pages: for structures whose buffers need more of
    /// it, and before buffers would be flushed early because it is full. Later openings set their own limit. By default
    /// the log keeps its length, in later openings too.
    pub log_bytes_max: Option<u64>,
    /// The longest single write to the log in bytes, a whole number of pages. Default 128 KiB;
    /// the log keeps up to eight of them in RAM.
    pub log_block_bytes: usize,
    /// The device of the log, when it is separate from the volume: a second file or device (ANCS'14 section 8), which
    /// must then be given at every open.
    pub log_device: Option<Arc<dyn Device>>,
    /// The time at which an acknowledged update is durable. Default every 100 ms.
    pub durability: Durability,
    /// The threads that do the volume's own work. Default: background threads.
    pub threads: Threads,
    /// The channels of the device, if the device does not report them and they were found by a probe: the volume stores
    /// them, and every structure reads and places its pages accordingly. Default none.
    pub geometry: Option<Geometry>,
    /// Whether the volume is complete at once. Default: it is.
    pub completion: Completion,
}

impl Default for VolumeOptions {
    fn default() -> Self {
        Self {
            hash: HashKind::default(),
            hash_key: None,
            volume_id: None,
            log_bytes: 128 << 20,
            log_bytes_max: None,
            log_block_bytes: 128 << 10,
            log_device: None,
            durability: Durability::default(),
            threads: Threads::default(),
            geometry: None,
            completion: Completion::default(),
        }
    }
}

impl VolumeOptions {
    /// The smallest limits that work, so that tests reach every one of them.
    #[must_use]
    pub fn tiny() -> Self {
        Self {
            hash_key: Some(42),
            log_bytes: 64 * PAGE_BYTES as u64,
            log_block_bytes: 2 * PAGE_BYTES,
            ..Self::default()
        }
    }

    /// Returns the same options with a log that begins with four blocks, 512 KiB by default, and grows to at most
    /// `log_bytes_max`.
    #[must_use]
    pub fn with_growing_log(self, log_bytes_max: u64) -> Self {
        let log_bytes_max = log_bytes_max.min(LOG_BYTES_MAX);
        let first = (LOG_BLOCKS_FIRST * self.log_block_bytes as u64).min(log_bytes_max);
        Self { log_bytes: first, log_bytes_max: Some(log_bytes_max), ..self }
    }

    /// Rejects invalid options.
    ///
    /// # Errors
    /// [`Error::Config`].
    pub fn validate(&self) -> Result<()> {
        let block = self.log_block_bytes;
        if block < PAGE_BYTES || !block.is_multiple_of(PAGE_BYTES) || block > 16 << 20 {
            let reason = format!("{block} is not a multiple of {PAGE_BYTES} up to 16 MiB");
            return Err(Error::config("log_block_bytes", reason));
        }
        if self.log_bytes < 4 * block as u64 || self.log_bytes > LOG_BYTES_MAX {
            let reason = format!("{} is not between 4 log blocks and 1 TiB", self.log_bytes);
            return Err(Error::config("log_bytes", reason));
        }
        if self.log_bytes_max.is_some() && self.log_device.is_some() {
            let reason = "a log on a device of its own keeps its length; set log_bytes alone";
            return Err(Error::config("log_bytes_max", reason));
        }
        Ok(())
    }

    pub(super) fn log_pages(&self) -> u64 {
        self.log_bytes / PAGE_BYTES as u64
    }
}

/// Options of opening a volume.
#[derive(Clone, Debug, Default)]
pub struct VolumeOpenOptions {
    /// The access mode. Default: read and write. With [`Access::ReadOnly`] the log's updates stay in RAM, at most as
    /// much as the log holds: no buffer is flushed, no page merged or evicted and no checkpoint taken, so damaged pages
    /// do not stop a recovery. Updates fail. What an opening writes nevertheless belongs in an
    /// [`Overlay`](nandex_device::Overlay).
    pub access: Access,
    /// The reaction to a lost newest superblock. Default: refuse.
    pub stale: StaleSuperblock,
    /// The time at which an acknowledged update is durable. Default every 100 ms.
    pub durability: Durability,
    /// The most bytes that the log may grow to, if the volume was created with a log that may grow. Default: its
    /// current length.
    pub log_bytes_max: Option<u64>,
    /// The device of the log, when the volume was created with one.
    pub log_device: Option<Arc<dyn Device>>,
    /// The threads that do the volume's own work. Default: background threads.
    pub threads: Threads,
}
