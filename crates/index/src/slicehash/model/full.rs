//! The costs of a configuration once its table is full; configurations need not come from advice.

use super::advise::advise;
use crate::Result;
use crate::model::{OperationCosts, PAGE_BYTES, Requirements, log_bytes};
use crate::slicehash::Config;

impl Config {
    /// Returns the configuration that the cost model recommends for the requirements; [`advise`] predicts its costs.
    ///
    /// # Errors
    /// As [`advise`].
    pub fn advised(requirements: &Requirements) -> Result<Self> {
        advise(requirements)?.config.of().copied()
    }

    /// Returns the device operations of its operations, without filters and with the front table empty.
    ///
    /// # Errors
    /// [`Error::Config`](crate::Error::Config) for widths out of range.
    pub fn operation_costs(&self) -> Result<OperationCosts> {
        let slicetable = (u64::from(self.block_pages()) * PAGE_BYTES) as f64;
        let rewritten = slicetable / f64::from(self.buffer_entries()?);
        let entry_bytes = (self.key_bytes + self.value_bytes) as u64;
        Ok(OperationCosts {
            reads_per_hit: f64::from(self.slice_parts),
            reads_per_miss: f64::from(self.slice_parts),
            insert_read_bytes: rewritten,
            insert_write_bytes: rewritten + log_bytes(entry_bytes),
            updates: None,
        })
    }
}
