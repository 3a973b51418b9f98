//! The bytes of a SliceHash beside those of its slices: what its buffers share with every table, its moves in
//! the log, and its configuration. All are drawn in docs/format.md.

use nandex_device::PageId;
use nandex_store::bytes::Reader;

use super::Config;
use crate::Result;

pub use crate::write::format::{Moved, PageSnapshotRef, WriteState, decode_log_entry};

/// Reads a configuration, and nothing behind it, from bytes that may be anything.
///
/// # Errors
/// Corruption, told by the reader; a configuration that cannot work.
pub fn decode_config(bytes: &[u8]) -> Result<Config> {
    let mut reader = Reader::new(bytes, "slicehash configuration", PageId(0));
    let config = Config::decode(&mut reader)?;
    if reader.left() > 0 {
        return Err(reader.refuse("the end of the configuration", reader.left()).into());
    }
    Ok(config)
}
