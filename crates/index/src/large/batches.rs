//! How much a map writes at a time. Records wait in a batch, whose RAM is claimed of a pool as the map writes more, and
//! is free again while it writes nothing.

use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, OnceLock};

use nandex_store::values::ValuesConfig;

use super::lock;
use crate::Result;
use crate::ram::{RamPool, SpareRam};

/// The smallest batch, in bytes, and the part of the free RAM that a larger one has at most.
const BATCH_BYTES_MIN: usize = 8 << 10;
const BATCHES_IN_FREE_RAM: u64 = 64;

/// Bytes of records that wait for their write.
#[derive(Debug)]
pub(super) struct Batches {
    config: ValuesConfig,
    /// At most, but for the last one.
    bytes: AtomicUsize,
    /// Batches that were full since there is as much RAM for them.
    full: AtomicUsize,
    pool: OnceLock<Mutex<PoolShare>>,
}

/// A map's claim of a pool.
#[derive(Debug)]
pub(crate) struct PoolShare {
    pub pool: Arc<RamPool>,
    pub name: String,
    /// What its cache may take of the pool, where that is not its table's to say.
    pub spare: Option<Arc<SpareRam>>,
}

impl PoolShare {
    fn claim(&self, config: &ValuesConfig, batch_bytes: usize) -> Result<()> {
        let bytes = config.ram_bytes_with(batch_bytes as u64);
        self.pool.claim(&self.name, (bytes, 0), self.spare.as_ref())
    }
}

impl Batches {
    /// Batches of an I/O chunk.
    pub fn new(config: ValuesConfig) -> Self {
        let bytes = AtomicUsize::new(config.io_chunk_bytes());
        Self { config, bytes, full: AtomicUsize::new(0), pool: OnceLock::new() }
    }

    /// Bytes of a batch, at most, but for the last record.
    pub fn bytes(&self) -> usize {
        self.bytes.load(Relaxed)
    }

    /// Batches of at most that many bytes.
    pub fn limit(&self, bytes: u64) {
        let most = self.config.io_chunk_bytes();
        let bytes = usize::try_from(bytes).unwrap_or(most).clamp(1, most);
        self.bytes.store(bytes, Relaxed);
    }

    /// Has their RAM be of a pool, from the smallest ones on.
    ///
    /// # Errors
    /// [`TooLittleRam`](crate::Error::TooLittleRam): the pool has less than these take.
    pub fn claim_of(&self, share: PoolShare) -> Result<()> {
        self.limit(BATCH_BYTES_MIN as u64);
        share.claim(&self.config, self.bytes())?;
        let _ = self.pool.set(Mutex::new(share));
        Ok(())
    }

    /// A batch was full: the next ones have twice the bytes, if the pool has much more. It is asked less and less
    /// often.
    pub fn was_full(&self) {
        let Some(pool) = self.pool.get() else { return };
        let full = self.full.fetch_add(1, Relaxed) + 1;
        let most = self.config.io_chunk_bytes();
        if self.bytes() >= most || !full.is_power_of_two() {
            return;
        }
        let share = lock(pool);
        let wanted = (2 * self.bytes()).min(most);
        let has_much = wanted as u64 <= share.pool.usual(&share.name) / BATCHES_IN_FREE_RAM;
        if has_much && share.claim(&self.config, wanted).is_ok() {
            self.bytes.store(wanted, Relaxed);
            self.full.store(0, Relaxed);
        }
    }

    /// Nothing waits, and nothing came for a while: others may have the RAM.
    pub fn rest(&self) {
        let Some(pool) = self.pool.get() else { return };
        if self.bytes() <= BATCH_BYTES_MIN {
            return;
        }
        let share = lock(pool);
        self.limit(BATCH_BYTES_MIN as u64);
        self.full.store(0, Relaxed);
        // It is less than it has.
        let _ = share.claim(&self.config, self.bytes());
    }
}
