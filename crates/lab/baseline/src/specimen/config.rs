//! The configuration of a specimen, and all of its bytes: configuration, state and log entries.

use nandex::{Error, Result};
use nandex_device::{PAGE_BYTES, PageId};
use nandex_store::Lsn;
use nandex_store::bytes::Reader;
use nandex_store::entries::EntryLayout;

use super::{PUT, REMOVE, Update};

/// The maximum number of entries of a specimen.
pub const ENTRIES_MAX: u32 = 10_000;

const VERSION: u8 = 1;

/// The configuration of a specimen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Config {
    /// Bytes in a key: 8 to 32.
    pub key_bytes: usize,
    /// Bytes in a value: 0 to 64.
    pub value_bytes: usize,
    /// The maximum number of entries; more are refused.
    pub entries_max: u32,
}

/// Takes the key and the value of an entry.
pub(super) type Visit<'v> = dyn FnMut(&[u8], &[u8]) -> Result<()> + 'v;

impl Config {
    /// Creates a configuration for 1,000 entries of 8 + 8 bytes.
    #[must_use]
    pub const fn tiny() -> Self {
        Self { key_bytes: 8, value_bytes: 8, entries_max: 1000 }
    }

    pub(super) fn entry_bytes(&self) -> usize {
        self.key_bytes + self.value_bytes
    }

    /// Refuses impossible values.
    ///
    /// # Errors
    /// Fails with [`Error::Config`], which names the field.
    pub fn validate(&self) -> Result<()> {
        EntryLayout::new(self.key_bytes, self.value_bytes)?;
        if (1..=ENTRIES_MAX).contains(&self.entries_max) {
            return Ok(());
        }
        let reason = format!("{}; a specimen holds 1 to {ENTRIES_MAX}", self.entries_max);
        Err(Error::Config { field: "entries", reason })
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let width = |bytes: usize| u8::try_from(bytes).expect("at most 64");
        let mut out = vec![VERSION, width(self.key_bytes), width(self.value_bytes)];
        out.extend_from_slice(&self.entries_max.to_le_bytes());
        out
    }

    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self> {
        let version = reader.u8()?;
        if version != VERSION {
            return Err(reader.refuse(format!("version {VERSION}"), version).into());
        }
        let (key_bytes, value_bytes) = (reader.u8()?.into(), reader.u8()?.into());
        let config = Self { key_bytes, value_bytes, entries_max: reader.u32()? };
        config.validate()?;
        Ok(config)
    }

    pub(super) fn encode_state(&self, entries: &[(Vec<u8>, Vec<u8>)]) -> Vec<u8> {
        let count = u32::try_from(entries.len()).expect("at most 10,000 entries");
        let mut out = count.to_le_bytes().to_vec();
        for (key, value) in entries {
            out.extend_from_slice(key);
            out.extend_from_slice(value);
        }
        out
    }

    /// Visits each entry of a state; a specimen that no checkpoint has is empty.
    pub(super) fn decode_state(
        &self,
        reader: &mut Reader<'_>,
        visit: &mut Visit<'_>,
    ) -> Result<u64> {
        if reader.left() == 0 {
            return Ok(0);
        }
        let count = reader.count(self.entry_bytes())?;
        for _ in 0..count {
            let (key, value) = reader.take(self.entry_bytes())?.split_at(self.key_bytes);
            visit(key, value)?;
        }
        match reader.left() {
            0 => Ok(count as u64),
            left => Err(reader.refuse("the end of the state", left).into()),
        }
    }

    /// Reads a log entry.
    pub(super) fn decode_update<'a>(
        &self,
        lsn: Lsn,
        bytes: &'a [u8],
    ) -> nandex_store::Result<Update<'a>> {
        let wrong = || {
            let page = PageId(lsn.0 / PAGE_BYTES as u64);
            nandex_store::Error::corrupt("log entry", page, "a put or a removal", bytes.len())
        };
        let (tag, rest) = bytes.split_first().ok_or_else(wrong)?;
        let (key, value) = rest.split_at_checked(self.key_bytes).ok_or_else(wrong)?;
        match *tag {
            PUT if value.len() == self.value_bytes => Ok(Update { key, value: Some(value) }),
            REMOVE if value.is_empty() => Ok(Update { key, value: None }),
            _ => Err(wrong()),
        }
    }
}
