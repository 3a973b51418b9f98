//! What tables of groups are created with: the parameters that all of them have, and what can be chosen at each
//! opening.

use nandex_store::bytes::Reader;
use nandex_store::entries::EntryLayout;
use nandex_store::schedule::Channels;

use super::{GROUP_PAGES_MAX, GroupRam};
use crate::model::PAGE_BYTES;
use crate::write::TableShape;
use crate::{Error, Result};

/// The most partitions.
pub(super) const PARTITIONS_MAX: u32 = 1 << 16;

/// Threads that flush buffers unless the options say otherwise.
pub const FLUSH_THREADS: usize = 1;

/// The most threads that flush buffers.
const FLUSH_THREADS_MAX: usize = 64;

const VERSION: u8 = 1;

/// The configuration of a table of groups.
pub trait GroupConfig: Copy + PartialEq + std::fmt::Debug + Send + Sync + 'static {
    /// The name of its kind in the catalog.
    const KIND: &'static str;
    /// What errors call its configuration, and its state.
    const BYTES: [&'static str; 2];

    /// The smallest limits that work.
    fn tiny() -> Self;

    /// The parameters that all tables of groups have.
    fn common(&self) -> GroupParameters;

    /// The same with other ones of these.
    #[must_use]
    fn with_common(self, common: GroupParameters) -> Self;

    /// What it takes of RAM.
    fn ram(&self) -> GroupRam;

    /// Refuses what cannot work.
    ///
    /// # Errors
    /// [`Error::Config`], naming the field.
    fn check(&self) -> Result<()>;

    /// Its bytes, as the catalog keeps them.
    fn encode(&self) -> Vec<u8>;

    /// Reads a configuration from bytes that may be anything.
    ///
    /// # Errors
    /// Corruption, told by the reader.
    fn decode(reader: &mut Reader<'_>) -> Result<Self>;
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
    /// Pages in a write buffer, at most.
    pub buffer_pages: u32,
    /// Buffers in addition to one per partition.
    pub spare_buffers: u32,
    /// The most tables of a group.
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

    /// The size of a log that seldom makes a table flush early: four times what its buffers hold, at least 2 MiB, in
    /// bytes.
    pub(crate) fn log_bytes_best(&self) -> u64 {
        let bytes = u64::from(self.partitions) * u64::from(self.buffer_pages) * PAGE_BYTES;
        (4 * bytes).next_multiple_of(1 << 20).max(Self::LOG_BYTES_MIN)
    }

    /// The least that [`log_bytes_best`](Self::log_bytes_best) gives, in bytes.
    pub(crate) const LOG_BYTES_MIN: u64 = 2 << 20;

    pub(crate) fn shape(&self) -> Result<TableShape> {
        let layout = self.layout()?;
        let slots = u32::try_from(layout.slots()).expect("at most 508") * self.buffer_pages;
        Ok(TableShape {
            layout,
            partitions: self.partitions,
            buffer_pages: self.buffer_pages,
            entries_max: slots,
            // Removals that a table without RAM to grow takes into full buffers.
            carry_over_max: slots / 16,
            spare_buffers: self.spare_buffers,
            stagger: self.stagger,
        })
    }

    /// Refuses what cannot work. The structure's own `fields` are a name each, what was found, the least and the most.
    ///
    /// # Errors
    /// [`Error::Config`], naming the field.
    pub fn check(&self, fields: &[(&'static str, u32, u32, u32)]) -> Result<()> {
        self.layout()?;
        let refuse = |field, reason: String| Err(Error::Config { field, reason });
        if !self.partitions.is_power_of_two() || self.partitions > PARTITIONS_MAX {
            let reason = format!("{} is no power of two up to 65,536", self.partitions);
            return refuse("partitions", reason);
        }
        let common = [
            ("buffer_pages", self.buffer_pages, 1, 65_535),
            ("spare_buffers", self.spare_buffers, 1, 65_536),
            ("group_pages", self.group_pages, 1, GROUP_PAGES_MAX),
        ];
        for (field, found, least, most) in common.iter().chain(fields) {
            if !(least..=most).contains(&found) {
                return refuse(field, format!("{found} is not in {least}..={most}"));
            }
        }
        Ok(())
    }

    /// The bytes of a configuration with these parameters, and with `numbers` and `sizes` of the structure's own.
    #[must_use]
    pub fn encode(&self, numbers: &[u32], sizes: &[u64]) -> Vec<u8> {
        let width = |bytes: usize| u8::try_from(bytes).expect("at most 64");
        let mut out = vec![VERSION, width(self.key_bytes), width(self.value_bytes)];
        out.push(u8::from(self.stagger));
        let head = [self.partitions, self.buffer_pages, self.spare_buffers];
        for number in head.iter().chain(numbers).chain([&self.group_pages]) {
            out.extend_from_slice(&number.to_le_bytes());
        }
        for size in sizes.iter().chain([&self.ram_bytes_max.unwrap_or(0)]) {
            out.extend_from_slice(&size.to_le_bytes());
        }
        out
    }

    /// Reads what [`encode`](Self::encode) has written.
    ///
    /// # Errors
    /// Corruption, told by the reader.
    pub fn decode<const NUMBERS: usize, const SIZES: usize>(
        reader: &mut Reader<'_>,
    ) -> Result<(Self, [u32; NUMBERS], [u64; SIZES])> {
        let version = reader.u8()?;
        if version != VERSION {
            return Err(reader.refuse(format!("version {VERSION}"), version).into());
        }
        let (key_bytes, value_bytes) = (reader.u8()?.into(), reader.u8()?.into());
        let stagger = match reader.u8()? {
            0 => false,
            1 => true,
            other => return Err(reader.refuse("0 or 1", other).into()),
        };
        let [partitions, buffer_pages, spare_buffers] =
            [reader.u32()?, reader.u32()?, reader.u32()?];
        let (mut numbers, mut sizes) = ([0; NUMBERS], [0; SIZES]);
        for number in &mut numbers {
            *number = reader.u32()?;
        }
        let group_pages = reader.u32()?;
        for size in &mut sizes {
            *size = reader.u64()?;
        }
        let common = Self {
            key_bytes,
            value_bytes,
            partitions,
            buffer_pages,
            spare_buffers,
            group_pages,
            stagger,
            ram_bytes_max: Some(reader.u64()?).filter(|bytes| *bytes > 0),
        };
        Ok((common, numbers, sizes))
    }
}

/// Options chosen at each opening.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RuntimeOptions {
    /// Threads that rewrite tables with full buffers, 0 to 64. With 0 the updating thread does.
    pub flush_threads: usize,
    /// Reads in flight in a batch of lookups: 1 to 4096.
    pub read_depth: usize,
    /// RAM for a cache of entries, in bytes; 0 for none.
    pub cache_bytes: u64,
    /// RAM that the table may take from this opening on, in bytes, its cache included; `None` for what it was created
    /// with.
    pub ram_bytes_max: Option<u64>,
    /// The device's channels, if it does not tell them itself.
    pub channels: Option<Channels>,
}

impl Default for RuntimeOptions {
    fn default() -> Self {
        Self {
            flush_threads: FLUSH_THREADS,
            read_depth: 32,
            cache_bytes: 0,
            ram_bytes_max: None,
            channels: None,
        }
    }
}

impl RuntimeOptions {
    pub(super) fn validate(&self) -> Result<()> {
        let refuse = |field, reason| Err(Error::Config { field, reason });
        if self.flush_threads > FLUSH_THREADS_MAX {
            let reason = format!("{}; they must be 0 to {FLUSH_THREADS_MAX}", self.flush_threads);
            return refuse("flush_threads", reason);
        }
        if !(1..=4096).contains(&self.read_depth) {
            return refuse("read_depth", format!("{}; it must be 1 to 4096", self.read_depth));
        }
        Ok(())
    }
}
