//! The amount that a map writes at a time. Records wait in a batch, whose RAM is claimed from a pool as the map writes
//! more, and is released while it writes nothing.

use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, OnceLock};

use nandex_store::values::ValuesConfig;

use super::lock;
use crate::Result;
use crate::ram::{RamPool, SpareRam};

/// The smallest batch, in bytes, and the largest share of the free RAM that a larger one has.
const BATCH_BYTES_MIN: usize = 8 << 10;
const BATCHES_IN_FREE_RAM: u64 = 64;

/// The size of batches of records that wait for their write.
#[derive(Debug)]
pub(super) struct Batches {
    config: ValuesConfig,
    /// The maximum number of bytes of a batch, except for the last record.
    bytes: AtomicUsize,
    /// The number of full batches since there has been enough RAM for them.
    full: AtomicUsize,
    pool: OnceLock<Mutex<PoolShare>>,
}

/// A map's claim in a pool.
#[derive(Debug)]
pub(crate) struct PoolShare {
    pub pool: Arc<RamPool>,
    pub name: String,
    /// The RAM that its cache may take from the pool, unless its table manages that.
    pub spare: Option<Arc<SpareRam>>,
}

impl PoolShare {
    fn claim(&self, config: &ValuesConfig, batch_bytes: usize) -> Result<()> {
        let bytes = config.ram_bytes_with(batch_bytes as u64);
        self.pool.claim(&self.name, (bytes, 0), self.spare.as_ref())
    }
}

impl Batches {
    /// Creates batches of an I/O chunk.
    pub fn new(config: ValuesConfig) -> Self {
        let bytes = AtomicUsize::new(config.io_chunk_bytes());
        Self { config, bytes, full: AtomicUsize::new(0), pool: OnceLock::new() }
    }

    /// Returns the maximum number of bytes of a batch, except for the last record.
    pub fn bytes(&self) -> usize {
        self.bytes.load(Relaxed)
    }

    /// Limits batches to at most `bytes`.
    pub fn limit(&self, bytes: u64) {
        let most = self.config.io_chunk_bytes();
        let bytes = usize::try_from(bytes).unwrap_or(most).clamp(1, most);
        self.bytes.store(bytes, Relaxed);
    }

    /// Claims their RAM from a pool, beginning with the smallest batches.
    ///
    /// # Errors
    /// [`TooLittleRam`](crate::Error::TooLittleRam) if the pool has less than these take.
    pub fn claim_of(&self, share: PoolShare) -> Result<()> {
        self.limit(BATCH_BYTES_MIN as u64);
        share.claim(&self.config, self.bytes())?;
        let _ = self.pool.set(Mutex::new(share));
        Ok(())
    }

    /// Notes that a batch was full: the next ones have twice the bytes, if the pool has much more. The pool is asked
    /// less and less often.
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

    /// Notes that nothing waits, and nothing arrived for a while: the RAM is released to others.
    pub fn rest(&self) {
        let Some(pool) = self.pool.get() else { return };
        if self.bytes() <= BATCH_BYTES_MIN {
            return;
        }
        let share = lock(pool);
        self.limit(BATCH_BYTES_MIN as u64);
        self.full.store(0, Relaxed);
        // It is less than the current claim.
        let _ = share.claim(&self.config, self.bytes());
    }
}
