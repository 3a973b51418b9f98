//! The configuration of tables of groups: the parameters that all of them have, and the options of an opening.

use std::fmt::Debug;

use nandex_store::entries::EntryLayout;

use super::GroupRam;
use crate::Result;
use crate::model::PAGE_BYTES;
use crate::schema::{ParameterSpec, Stored};
use crate::write::TableShape;

/// The maximum number of partitions.
pub(super) const PARTITIONS_MAX: u32 = 1 << 16;

/// The configuration of a table of groups, declared by `parameters!`.
pub trait GroupConfig: Stored + Copy + PartialEq + Debug + Send + Sync + 'static {
    /// The name of its kind in the catalog.
    const KIND: &'static str;
    /// The names of its configuration and of its state in errors.
    const BYTES: [&'static str; 2];

    /// The specifications of its parameters.
    const SPECS: &'static [ParameterSpec];

    /// The smallest limits that work.
    fn tiny() -> Self;

    /// The parameters that all tables of groups have.
    fn common(&self) -> GroupParameters;

    /// Returns the configuration with other common parameters.
    #[must_use]
    fn with_common(self, common: GroupParameters) -> Self;

    /// Returns the RAM that it takes.
    fn ram(&self) -> GroupRam;

    /// Fails for a configuration that cannot work.
    ///
    /// # Errors
    /// [`Error::Config`](crate::Error::Config), naming the field.
    fn check(&self) -> Result<()>;
}

/// The parameters that all tables of groups have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GroupParameters {
    /// Bytes in a key.
    pub key_bytes: usize,
    /// Bytes in a value.
    pub value_bytes: usize,
    /// Partitions.
    pub partitions: u32,
    /// The maximum number of pages in a write buffer.
    pub buffer_pages: u32,
    /// Buffers in addition to one per partition.
    pub spare_buffers: u32,
    /// The maximum number of tables of a group.
    pub group_pages: u32,
    /// Whether the first buffer of each partition is flushed early.
    pub stagger: bool,
    /// RAM that the table may take, in bytes; `None` for no limit.
    pub ram_bytes_max: Option<u64>,
}

impl GroupParameters {
    /// The layout of buffer pages.
    pub(crate) fn layout(&self) -> Result<EntryLayout> {
        Ok(EntryLayout::new(self.key_bytes, self.value_bytes)?)
    }

    /// Returns the size in bytes of a log that seldom forces a table to flush early: four times the contents of its
    /// buffers, and at least 2 MiB.
    pub(crate) fn log_bytes_best(&self) -> u64 {
        let bytes = u64::from(self.partitions) * u64::from(self.buffer_pages) * PAGE_BYTES;
        (4 * bytes).next_multiple_of(1 << 20).max(Self::LOG_BYTES_MIN)
    }

    /// The least that [`log_bytes_best`](Self::log_bytes_best) returns, in bytes.
    pub(crate) const LOG_BYTES_MIN: u64 = 2 << 20;

    pub(crate) fn shape(&self) -> Result<TableShape> {
        let layout = self.layout()?;
        let slots = u32::try_from(layout.slots()).expect("at most 508") * self.buffer_pages;
        Ok(TableShape {
            layout,
            partitions: self.partitions,
            buffer_pages: self.buffer_pages,
            entries_max: slots,
            // Removals that a table without RAM to grow puts into full buffers.
            carry_over_max: slots / 16,
            spare_buffers: self.spare_buffers,
            stagger: self.stagger,
        })
    }
}
