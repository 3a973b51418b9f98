//! What a BufferHash is created with, kept with it on flash, and what can be chosen at each opening.

use std::fmt;
use std::sync::Arc;

use nandex_device::Device;
use nandex_store::buffer::STASH_LEN_MAX;
use nandex_store::bytes::Reader;
use nandex_store::entries::EntryLayout;

use super::filter::{FilterShape, ShapeParts};
pub use crate::model::Policy;
use crate::write::TableShape;
use crate::{Error, Result};

impl Policy {
    fn encode(self) -> (u8, u64) {
        match self {
            Self::Fifo => (0, 0),
            Self::Lru => (1, 0),
            Self::Update => (2, 0),
            Self::Threshold(priority) => (3, priority),
            Self::Top(thousandths) => (4, thousandths.into()),
            Self::Reject => (5, 0),
            Self::Grow => (6, 0),
        }
    }

    fn decode(number: u8, parameter: u64) -> Option<Self> {
        Some(match number {
            0 => Self::Fifo,
            1 => Self::Lru,
            2 => Self::Update,
            3 => Self::Threshold(parameter),
            4 => Self::Top(u16::try_from(parameter).ok()?),
            5 => Self::Reject,
            _ => return None,
        })
    }
}

/// Where incarnations are (paper, section 5.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Placement {
    /// On the volume, in one ring for all super tables in the order of their flushes: the whole device sees
    /// one sequential stream. For everything with a translation layer.
    #[default]
    Shared,
    /// On a raw flash chip that only this table uses, from its first page on, given at each opening
    /// ([`RuntimeOptions::chip`]). Each super table has a ring in its own part of the chip. A segment is
    /// erased by a discard just before it is written, and synced after it; by then a durable checkpoint no
    /// longer refers to its old content. Segments are whole erase blocks, so an eviction never copies: choose
    /// buffers of a block minus the filter's pages, and a flush costs the paper's C1 + C2, the minimum
    /// (section 6.4).
    ///
    /// Superblocks, checkpoints, snapshots of buffers and the log are overwritten in place, which a chip
    /// cannot do. They stay on the volume's own device: in a product with raw flash, a managed part such as
    /// eMMC or SD, or a file system made for flash. Keys spread unevenly, so a part is full before the chip
    /// is; the shared ring has no such loss. Bad blocks are not handled, and only the ring levels wear: it
    /// wears every block of a part alike. [`check`](crate::check()) refuses such a volume, since it cannot
    /// see the chip.
    Chip {
        /// Pages of 4 KiB in an erase block of the chip.
        block_pages: u32,
    },
}

/// What a BufferHash is created with. All of it is kept on flash and read back at open.
#[derive(Clone, PartialEq, Debug)]
pub struct Config {
    /// Bytes in a key: 8 to 32.
    pub key_bytes: usize,
    /// Bytes in a value: 0 to 64.
    pub value_bytes: usize,
    /// Super tables, a power of two up to 65,536 (the paper's 2^k1).
    pub super_tables: u32,
    /// Pages of 4 KiB in a buffer, and in an incarnation: the paper's B'. At most 65,535.
    pub buffer_pages: u32,
    /// Incarnations that the ring holds, of all super tables together.
    pub segments: u64,
    /// Incarnations that one super table may have, the paper's k; a little more than `segments /
    /// super_tables`, because super tables do not fill alike.
    pub incarnations_max: u32,
    /// The filter of each incarnation.
    pub filter: FilterShape,
    /// Which entries go when flash is full.
    pub policy: Policy,
    /// Incarnations that may be evicted for each one that the user's own inserts fill, before a partial
    /// discard drops live entries (paper, section 7.4).
    pub cascade_limit: u32,
    /// Segments kept free ahead of the head, so that flushes need not wait for evictions.
    pub reserve_segments: u64,
    /// Buffers in addition to one per super table, for super tables whose buffer is being written.
    pub spare_buffers: u32,
    /// Flush the first buffer of each super table early, each at another fill. Super tables fill alike, and
    /// would otherwise all flush at once, again and again.
    pub stagger: bool,
    /// Where incarnations are.
    pub placement: Placement,
}

impl Config {
    /// The smallest limits that work, so that tests reach every one of them: 4 super tables of 2-page
    /// buffers and a ring of 24 incarnations.
    #[must_use]
    pub fn tiny() -> Self {
        Self {
            key_bytes: 8,
            value_bytes: 8,
            super_tables: 4,
            buffer_pages: 2,
            segments: 24,
            incarnations_max: 12,
            filter: FilterShape::fuse(470, 12, 1).expect("these numbers are in range"),
            policy: Policy::Fifo,
            cascade_limit: 4,
            reserve_segments: 4,
            spare_buffers: 2,
            stagger: false,
            placement: Placement::Shared,
        }
    }

    /// The least that [`log_bytes_best`](Self::log_bytes_best) gives, in bytes: 16 of a volume's usual log blocks.
    pub const LOG_BYTES_MIN: u64 = 2 << 20;

    /// The size of a log that seldom makes a table of this configuration flush early: eight times what its
    /// buffers hold, at least 2 MiB, in bytes.
    #[must_use]
    pub fn log_bytes_best(&self) -> u64 {
        let entries = u64::from(self.super_tables) * u64::from(self.filter.entries_max());
        let bytes = entries * (1 + self.key_bytes + self.value_bytes) as u64;
        (8 * bytes).next_multiple_of(1 << 20).max(Self::LOG_BYTES_MIN)
    }

    /// The shortest log that lets its buffers fill before they must be saved: four times what they hold, in bytes.
    pub(super) fn log_bytes_good(&self) -> u64 {
        let entries = u64::from(self.super_tables) * u64::from(self.filter.entries_max());
        4 * entries * (1 + self.key_bytes + self.value_bytes) as u64
    }

    /// The layout of entry pages.
    ///
    /// # Errors
    /// [`Error::Config`] for widths out of range.
    pub fn layout(&self) -> Result<EntryLayout> {
        Ok(EntryLayout::new(self.key_bytes, self.value_bytes)?)
    }

    /// The shape of its buffers.
    pub(super) fn shape(&self) -> Result<TableShape> {
        Ok(TableShape {
            layout: self.layout()?,
            partitions: self.super_tables,
            buffer_pages: self.buffer_pages,
            entries_max: self.filter.entries_max(),
            // Two buffers may be carried over at once.
            carry_over_max: self.filter.entries_max() / 8,
            spare_buffers: self.spare_buffers,
            stagger: self.stagger,
        })
    }

    /// Keys of a buffer that its filter may refuse: at most 4 %.
    pub(super) fn bumped_max(&self) -> u64 {
        u64::from(self.filter.entries_max()) / 24
    }

    /// Entries that a flush mostly carries over, at most.
    pub(super) fn carry_over_usual(&self) -> usize {
        STASH_LEN_MAX + self.bumped_max() as usize
    }

    /// Refuses what cannot work.
    ///
    /// # Errors
    /// [`Error::Config`], naming the field.
    pub fn validate(&self) -> Result<()> {
        self.layout()?;
        let refuse = |field, reason: String| Err(Error::Config { field, reason });
        if !self.super_tables.is_power_of_two() || self.super_tables > 1 << 16 {
            return refuse(
                "super_tables",
                format!("{} is no power of two up to 65,536", self.super_tables),
            );
        }
        if !(1..=65_535).contains(&self.buffer_pages) {
            return refuse("buffer_pages", format!("{} is not in 1..=65,535", self.buffer_pages));
        }
        if self.segments < 2 * self.reserve_segments
            || self.segments <= u64::from(self.super_tables)
        {
            let reason = format!(
                "{} incarnations for {} super tables and a reserve of {}; take more than one each and twice the reserve",
                self.segments, self.super_tables, self.reserve_segments
            );
            return refuse("segments", reason);
        }
        let columns = 64 * self.filter.words();
        if self.incarnations_max < 2 || self.incarnations_max >= columns {
            let reason = format!("{} is not in 2..{columns}", self.incarnations_max);
            return refuse("incarnations_max", reason);
        }
        if self.reserve_segments == 0 || self.cascade_limit == 0 || self.spare_buffers == 0 {
            return refuse(
                "reserve_segments",
                "reserve, cascade limit and spare buffers are at least 1".into(),
            );
        }
        if self.policy.is_partial() && self.spare_buffers < 2 {
            return refuse(
                "spare_buffers",
                "a partial discard needs 2, one of them for itself".into(),
            );
        }
        if self.policy == Policy::Grow {
            let reason = "a BufferHash keeps its size; a bufferhash::growing::Growing grows";
            return refuse("policy", reason.into());
        }
        if matches!(self.policy, Policy::Top(thousandths) if thousandths > 900) {
            return refuse(
                "policy",
                "top-k keeps at most 900 thousandths of an incarnation".into(),
            );
        }
        self.validate_placement()
    }

    fn validate_placement(&self) -> Result<()> {
        let Placement::Chip { block_pages } = self.placement else { return Ok(()) };
        let refuse = |field, reason: String| Err(Error::Config { field, reason });
        if block_pages == 0 || !self.segment_pages().is_multiple_of(block_pages) {
            let reason = format!(
                "a segment of {} pages, {} of them the filter's, is no multiple of the chip's block of \
                 {block_pages}; change the buffer's pages by the difference",
                self.segment_pages(),
                self.filter_pages()
            );
            return refuse("buffer_pages", reason);
        }
        let tables = u64::from(self.super_tables);
        if !self.segments.is_multiple_of(tables) || !self.reserve_segments.is_multiple_of(tables) {
            let reason = format!(
                "{} and a reserve of {} do not fall to {tables} super tables alike, as on a chip they \
                 must; take multiples of {tables}",
                self.segments, self.reserve_segments
            );
            return refuse("segments", reason);
        }
        Ok(())
    }

    /// Pages of all segments, on the volume or on a chip.
    #[must_use]
    pub fn ring_pages(&self) -> u64 {
        self.segments * u64::from(self.segment_pages())
    }

    /// Those of them on the volume.
    pub(super) fn volume_ring_pages(&self) -> u64 {
        match self.placement {
            Placement::Shared => self.ring_pages(),
            Placement::Chip { .. } => 0,
        }
    }

    /// Pages of an incarnation's filter on flash.
    #[must_use]
    pub fn filter_pages(&self) -> u32 {
        let bytes = self.filter.column_bits().div_ceil(64) * 8;
        u32::try_from(bytes.div_ceil(nandex_store::page::PAGE_BODY_BYTES))
            .expect("filters are smaller than data")
    }

    /// Pages of a segment: an incarnation and its filter.
    #[must_use]
    pub fn segment_pages(&self) -> u32 {
        self.buffer_pages + self.filter_pages()
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let (policy, parameter) = self.policy.encode();
        let parts = self.filter.parts();
        let mut out = vec![CONFIG_VERSION, policy, u8::from(self.stagger)];
        for number in [
            u32::try_from(self.key_bytes).expect("at most 32"),
            u32::try_from(self.value_bytes).expect("at most 64"),
            self.super_tables,
            self.buffer_pages,
            self.incarnations_max,
            self.cascade_limit,
            self.spare_buffers,
            parts.kind,
            parts.entries_max,
            parts.slots,
            parts.bits_per_slot,
            parts.hashes,
            parts.segment,
            parts.words,
        ] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        for number in [self.segments, self.reserve_segments, parameter] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        let block_pages = match self.placement {
            Placement::Shared => 0,
            Placement::Chip { block_pages } => block_pages,
        };
        out.extend_from_slice(&block_pages.to_le_bytes());
        out
    }

    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self> {
        let version = reader.u8()?;
        if version != CONFIG_VERSION {
            return Err(reader.refuse("bufferhash configuration 1", version).into());
        }
        let (policy, stagger) = (reader.u8()?, reader.u8()?);
        let mut narrow = [0; 14];
        for number in &mut narrow {
            *number = reader.u32()?;
        }
        let (segments, reserve_segments, parameter) = (reader.u64()?, reader.u64()?, reader.u64()?);
        let placement = match reader.u32()? {
            0 => Placement::Shared,
            block_pages => Placement::Chip { block_pages },
        };
        let [
            key_bytes,
            value_bytes,
            super_tables,
            buffer_pages,
            incarnations_max,
            cascade_limit,
            ..,
        ] = narrow;
        let [.., spare_buffers, kind, entries_max, slots, bits_per_slot, hashes, segment, words] =
            narrow;
        let policy = Policy::decode(policy, parameter)
            .ok_or_else(|| reader.refuse("a known policy", policy))?;
        let config = Self {
            key_bytes: key_bytes as usize,
            value_bytes: value_bytes as usize,
            super_tables,
            buffer_pages,
            segments,
            incarnations_max,
            filter: FilterShape::from_parts(ShapeParts {
                kind,
                entries_max,
                slots,
                bits_per_slot,
                hashes,
                segment,
                words,
            })?,
            policy,
            cascade_limit,
            reserve_segments,
            spare_buffers,
            stagger: stagger != 0,
            placement,
        };
        config.validate()?;
        Ok(config)
    }
}

/// The version of the configuration's bytes.
const CONFIG_VERSION: u8 = 1;

/// Returns an entry's priority from its key and value; higher stays longer.
pub type Priority = Arc<dyn Fn(&[u8], &[u8]) -> u64 + Send + Sync>;

/// Options chosen each time a BufferHash is opened.
#[derive(Clone)]
pub struct RuntimeOptions {
    /// Threads that write full buffers. Default 1; with 0 the inserting thread writes its buffer when it is
    /// full, and the first lookup that needs the filters of a table just opened loads them.
    pub flush_threads: usize,
    /// Reads in flight in a batch of lookups. Default 32.
    pub read_depth: usize,
    /// RAM for a cache of entries, in bytes: the keys that are looked up most are answered without a read. Default 0;
    /// with [`Policy::Lru`] there is none, because an entry stays by being read.
    pub cache_bytes: u64,
    /// An entry's priority, for the priority policies. Default: the first 8 bytes of its value as a
    /// little-endian number.
    pub priority: Priority,
    /// The chip of a table with [`Placement::Chip`]; `None` for others. Nothing else may be on it.
    pub chip: Option<Arc<dyn Device>>,
}

impl Default for RuntimeOptions {
    fn default() -> Self {
        Self {
            flush_threads: 1,
            read_depth: 32,
            cache_bytes: 0,
            priority: Arc::new(value_as_priority),
            chip: None,
        }
    }
}

impl fmt::Debug for RuntimeOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("RuntimeOptions");
        out.field("flush_threads", &self.flush_threads).field("read_depth", &self.read_depth);
        out.field("cache_bytes", &self.cache_bytes).field("chip", &self.chip);
        out.finish_non_exhaustive()
    }
}

fn value_as_priority(_key: &[u8], value: &[u8]) -> u64 {
    let mut word = [0; 8];
    let len = value.len().min(8);
    word[..len].copy_from_slice(&value[..len]);
    u64::from_le_bytes(word)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandex_device::PageId;

    #[test]
    fn a_configuration_reads_back() {
        let [shared, chip] = [Placement::Shared, Placement::Chip { block_pages: 3 }];
        for (policy, placement) in [
            (Policy::Fifo, shared),
            (Policy::Threshold(7), shared),
            (Policy::Top(500), chip),
            (Policy::Reject, chip),
        ] {
            let config = Config { policy, placement, ..Config::tiny() };
            let bytes = config.encode();
            let mut reader = Reader::new(&bytes, "configuration", PageId(0));
            assert_eq!(Config::decode(&mut reader).unwrap(), config);
            for len in 0..bytes.len() {
                let mut reader = Reader::new(&bytes[..len], "configuration", PageId(0));
                assert!(Config::decode(&mut reader).is_err());
            }
        }
    }

    #[test]
    fn the_bytes_end_with_the_pages_of_a_chips_block_or_0() {
        let shared = Config::tiny().encode();
        let placement = Placement::Chip { block_pages: 0x0102_0304 };
        let chip = Config { placement, ..Config::tiny() }.encode();
        assert_eq!((shared.len(), chip.len()), (87, 87));
        assert_eq!(shared[..83], chip[..83]);
        assert_eq!((&shared[83..], &chip[83..]), (&[0, 0, 0, 0][..], &[4, 3, 2, 1][..]));
    }

    #[test]
    fn what_cannot_work_is_refused_by_name() {
        let refused = |config: Config, field: &str| {
            let text = config.validate().unwrap_err().to_string();
            assert!(text.contains(field), "{text}");
        };
        refused(Config { key_bytes: 7, ..Config::tiny() }, "key_bytes");
        refused(Config { super_tables: 3, ..Config::tiny() }, "super_tables");
        refused(Config { segments: 4, ..Config::tiny() }, "segments");
        refused(Config { incarnations_max: 64, ..Config::tiny() }, "incarnations_max");
        let chip = |block_pages| Placement::Chip { block_pages };
        refused(Config { placement: chip(2), ..Config::tiny() }, "buffer_pages");
        refused(Config { placement: chip(0), ..Config::tiny() }, "buffer_pages");
        let uneven = Config { placement: chip(3), reserve_segments: 3, ..Config::tiny() };
        refused(uneven, "segments");
        refused(Config { policy: Policy::Top(901), ..Config::tiny() }, "policy");
    }
}
