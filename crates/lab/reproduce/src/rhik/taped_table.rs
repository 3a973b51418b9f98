//! A table as the index of a key-value drive, on a taped device: the reads of an access, and the requests of
//! its update.

use std::sync::Arc;

use nandex::large::{TABLE_KEY_BYTES, TABLE_VALUE_BYTES};
use nandex::{Table, Volume};

use super::lab::Access;
use crate::Result;
use crate::tape::{Act, Step, Tape, TapedDevice};
use crate::volume::{LOG_BYTES_MIN, volume};

/// See the [module](self).
pub struct TapedTable<T> {
    /// The table.
    pub table: T,
    device: TapedDevice,
}

impl<T: Table> TapedTable<T> {
    /// Creates the table by `create`, in a volume whose log has `log_bytes_best` bytes, or more.
    ///
    /// # Errors
    /// Fails as `create` does.
    pub fn new(
        seed: u64,
        log_bytes_best: u64,
        create: impl FnOnce(&Volume) -> nandex::Result<T>,
    ) -> Result<Self> {
        let device = TapedDevice::new();
        let log_bytes = log_bytes_best.max(LOG_BYTES_MIN);
        let table = create(&volume(Arc::new(device.clone()), seed, log_bytes)?)?;
        device.forget();
        Ok(Self { table, device })
    }

    /// Returns whether this key is present, and the reads of the answer. Each read is a wave of its own if it
    /// waits for the one before.
    ///
    /// # Errors
    /// Fails as [`Table::get`] does.
    pub fn look_up(&self, key: u64) -> Result<(bool, Vec<Step>)> {
        let is_there = self.table.get(&key_bytes(key))?.is_some();
        Ok((is_there, self.steps()))
    }

    /// Adds or removes the key, if the access is more than a lookup, and returns the requests that this made:
    /// rewrites of full buffers, and checkpoints.
    ///
    /// # Errors
    /// Fails as [`Table::insert`] does.
    pub fn update(&self, key: u64, access: Access, is_there: bool) -> Result<Vec<Step>> {
        let key = key_bytes(key);
        match access {
            Access::Insert => self.table.insert(&key, &[7; TABLE_VALUE_BYTES])?,
            Access::Remove if is_there => self.table.remove(&key)?,
            Access::Remove | Access::Lookup => {}
        }
        Ok(self.steps())
    }

    /// Returns the requests since the last call.
    fn steps(&self) -> Vec<Step> {
        let mut tape = Tape::default();
        self.device.take(Act::Lookup, &mut tape);
        tape.operation(0).1.to_vec()
    }
}

fn key_bytes(key: u64) -> [u8; TABLE_KEY_BYTES] {
    let mut bytes = [0; TABLE_KEY_BYTES];
    bytes[..8].copy_from_slice(&key.to_le_bytes());
    bytes
}
