//! The on-flash format of a SliceHash except its slices: the part of its buffers common to all tables, its moves in the
//! log, and its configuration. docs/reference/format.md draws all of them.

use nandex_device::PageId;
use nandex_store::bytes::Reader;

use super::Config;
use crate::Result;

pub use crate::write::format::{LifeCounts, Moved, PageSnapshotRef, WriteState, decode_log_entry};

/// Decodes a configuration, and nothing after it, from untrusted bytes.
///
/// # Errors
/// Corruption, reported by the reader; a configuration that cannot work.
pub fn decode_config(bytes: &[u8]) -> Result<Config> {
    let mut reader = Reader::new(bytes, "slicehash configuration", PageId(0));
    let config = Config::decode(&mut reader)?;
    if reader.left() > 0 {
        return Err(reader.refuse("the end of the configuration", reader.left()).into());
    }
    Ok(config)
}
