//! The configuration of a BufferHash, stored with it on flash, and the options of an opening.

use std::fmt;
use std::sync::Arc;

use nandex_store::buffer::STASH_LEN_MAX;
use nandex_store::bytes::Reader;
use nandex_store::entries::EntryLayout;
use nandex_store::ring::{Reuse, RingShape};

use super::KIND;
use super::filter::{FilterKind, FilterShape, ShapeParts};
pub use crate::model::Policy;
use crate::options::Priority;
use crate::schema::{Range, Stored, StoredInParts, choice, parameters, word, word_of};
use crate::write::TableShape;
use crate::{Error, OpenOptions, Result};

/// The policy's number; its argument follows later.
impl Stored for Policy {
    const FORM: &'static str = "a policy, such as fifo, lru or reject";

    fn put(&self, out: &mut Vec<u8>) {
        out.push(match self {
            Self::Fifo => 0,
            Self::Lru => 1,
            Self::Update => 2,
            Self::Threshold(_) => 3,
            Self::Top(_) => 4,
            Self::Reject => 5,
            Self::Grow => 6,
        });
    }

    fn take(reader: &mut Reader<'_>) -> Result<Self> {
        let [threshold, top] = [Self::Threshold(0), Self::Top(0)];
        let all = [Self::Fifo, Self::Lru, Self::Update, threshold, top, Self::Reject];
        choice(reader, &all, "a known policy")
    }

    fn show(&self) -> String {
        self.to_string()
    }

    fn parse(text: &str) -> std::result::Result<Self, String> {
        text.parse()
    }
}

impl StoredInParts for Policy {
    fn put_rest(&self, out: &mut Vec<u8>) {
        match self {
            Self::Threshold(priority) => priority.put(out),
            Self::Top(thousandths) => u64::from(*thousandths).put(out),
            _ => 0_u64.put(out),
        }
    }

    fn take_rest(self, reader: &mut Reader<'_>) -> Result<Self> {
        let number = reader.u64()?;
        let thousandths =
            || u16::try_from(number).map_err(|_| reader.refuse("thousandths", number));
        Ok(match self {
            Self::Threshold(_) => Self::Threshold(number),
            Self::Top(_) => Self::Top(thousandths()?),
            other => other,
        })
    }
}

impl Stored for FilterShape {
    const FORM: &'static str =
        "parts of its own, after a dot: kind (bloom or fuse), bits, entries_max, words";

    fn put(&self, out: &mut Vec<u8>) {
        let it = self.parts();
        let numbers =
            [it.kind, it.entries_max, it.slots, it.bits_per_slot, it.hashes, it.segment, it.words];
        numbers.iter().for_each(|number| number.put(out));
    }

    fn take(reader: &mut Reader<'_>) -> Result<Self> {
        Self::from_parts(ShapeParts {
            kind: reader.u32()?,
            entries_max: reader.u32()?,
            slots: reader.u32()?,
            bits_per_slot: reader.u32()?,
            hashes: reader.u32()?,
            segment: reader.u32()?,
            words: reader.u32()?,
        })
    }

    fn show(&self) -> String {
        format!("{self:?}")
    }

    fn parse(_text: &str) -> std::result::Result<Self, String> {
        Err("state filter.kind, filter.bits, filter.entries_max or filter.words".to_owned())
    }

    fn set(&mut self, path: &str, text: &str) -> std::result::Result<(), String> {
        let (mut kind, mut bits) = (self.kind(), self.bits());
        let (mut entries_max, mut words) = (self.entries_max(), self.words());
        match path {
            "kind" => kind = word(text, &FilterKind::WORDS)?,
            "bits" => bits = f64::parse(text)?,
            "entries_max" => entries_max = u32::parse(text)?,
            "words" => words = u32::parse(text)?,
            _ => *self = Self::parse(text)?,
        }
        let made = match kind {
            FilterKind::Bloom => Self::bloom(entries_max, bits, words),
            FilterKind::Fuse => Self::fuse(entries_max, bits.round() as u32, words),
        };
        *self = made.map_err(|error| error.to_string())?;
        Ok(())
    }

    fn list(&self, name: &str, out: &mut Vec<(String, String)>) {
        let kind = word_of(&self.kind(), &FilterKind::WORDS);
        let numbers = [("bits", self.bits().show()), ("entries_max", self.entries_max().show())];
        let words = ("words", self.words().show());
        for (part, value) in [("kind", kind)].into_iter().chain(numbers).chain([words]) {
            out.push((format!("{name}.{part}"), value));
        }
    }
}

/// The pages of a chip's erase block; 0 if there is no chip.
impl Stored for Placement {
    const FORM: &'static str = "shared or chip:BLOCK_PAGES";

    fn put(&self, out: &mut Vec<u8>) {
        let block_pages = match self {
            Self::Shared => 0,
            Self::Chip { block_pages } => *block_pages,
        };
        block_pages.put(out);
    }

    fn take(reader: &mut Reader<'_>) -> Result<Self> {
        Ok(match reader.u32()? {
            0 => Self::Shared,
            block_pages => Self::Chip { block_pages },
        })
    }

    fn show(&self) -> String {
        match self {
            Self::Shared => "shared".to_owned(),
            Self::Chip { block_pages } => format!("chip:{block_pages}"),
        }
    }

    fn parse(text: &str) -> std::result::Result<Self, String> {
        match text.split_once(':') {
            Some(("chip", pages)) => Ok(Self::Chip { block_pages: u32::parse(pages)? }),
            _ => word(text, &[("shared", Self::Shared)])
                .map_err(|_| format!("{text:?} is neither shared nor chip:BLOCK_PAGES")),
        }
    }
}

/// The location of incarnations (paper, section 5.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Placement {
    /// On the volume, in one ring for all super tables in the order of their flushes: the whole device sees one
    /// sequential stream. For every device with a translation layer.
    #[default]
    Shared,
    /// On a raw flash chip that only this table uses, from its first page on, passed at each opening
    /// ([`OpenOptions::chip`]). Each super table has a ring in its own part of the chip. A segment is erased by a
    /// discard just before it is written, and synced after it; by then a durable checkpoint no longer refers to its old
    /// contents. Segments are whole erase blocks, so an eviction never copies: choose buffers of a block minus the
    /// filter's pages, and a flush costs the paper's C1 + C2, the minimum (section 6.4).
    ///
    /// Superblocks, checkpoints, snapshots of buffers and the log are overwritten in place, which a chip cannot do.
    /// They stay on the volume's own device: in a product with raw flash, a managed part such as eMMC or SD, or a file
    /// system made for flash. Keys spread unevenly, so a part is full before the chip is; the shared ring has no such
    /// loss. Bad blocks are not handled, and wear is levelled only by the ring, which wears every block of a part
    /// alike. [`check`](crate::check()) rejects such a volume, since it cannot see the chip.
    Chip {
        /// Pages of 4 KiB in an erase block of the chip.
        block_pages: u32,
    },
}

parameters! {
    /// The configuration of a BufferHash. All of it is stored on flash and read back at open.
    #[derive(Clone, PartialEq, Debug)]
    pub struct Config: KIND, version 3, tiny [];

    /// Which entries are evicted when flash is full.
    policy: Policy = Policy::Fifo;

    /// Flush the first buffer of each super table early, each at another fill. Super tables fill alike, and
    /// would otherwise all flush at once, again and again.
    stagger: bool = false;

    /// Bytes in a key: 8 to 32.
    key_bytes: usize = 8, in Range::Within(8, 32);

    /// Bytes in a value: 0 to 64.
    value_bytes: usize = 8, in Range::Within(0, 64);

    /// Super tables, a power of two up to 65,536 (the paper's 2^k1).
    super_tables: u32 = 4, in Range::PowerOfTwo(1 << 16);

    /// Pages of 4 KiB in a buffer, and in an incarnation: the paper's B'. At most 65,535.
    buffer_pages: u32 = 2, in Range::Within(1, 65_535);

    /// Incarnations that one super table may have, the paper's k; slightly more than `segments / super_tables`, because
    /// super tables do not fill evenly.
    incarnations_max: u32 = 12;

    /// Incarnations that may be evicted for each one that the user's own inserts fill, before a partial
    /// discard drops live entries (paper, section 7.4).
    cascade_limit: u32 = 4, in Range::Within(1, u32::MAX as u64);

    /// Buffers in addition to one per super table, for super tables whose buffer is being written.
    spare_buffers: u32 = 2, in Range::Within(1, u32::MAX as u64);

    /// The filter of each incarnation.
    filter: FilterShape = FilterShape::fuse(470, 12, 1).expect("these numbers are in range");

    /// Incarnations that the ring holds, of all super tables together.
    segments: u64 = 24, in Range::Within(2, 1 << 48);

    /// Segments kept free ahead of the head, so that flushes need not wait for evictions.
    reserve_segments: u64 = 4, in Range::Within(1, 1 << 48), then policy;

    /// The location of incarnations.
    placement: Placement = Placement::Shared;

    /// The number of keys that a table which rejects more has space for, whatever its history: when its ring is nearly
    /// full, super tables are rewritten without updated or removed entries. 0 for as many entries as the ring takes,
    /// with each version of a key counted, as in tables of version 1. Other policies, and tables on a chip, ignore it.
    entries_max: u64 = 0, in Range::Within(0, 1 << 48), since 2;

    /// Count the keys of a table that rejects more entries, but rewrite nothing: each version of a key stays, and takes
    /// space. A generation of a growing table has this until a later one takes over the entries of all before it.
    keeps_versions: bool = false, since 3;
}

impl Config {
    /// The least that [`log_bytes_best`](Self::log_bytes_best) returns, in bytes: 16 of a volume's usual log blocks.
    pub const LOG_BYTES_MIN: u64 = 2 << 20;

    /// Returns the size in bytes of a log that seldom forces a table of this configuration to flush early: eight times
    /// the contents of its buffers, and at least 2 MiB.
    #[must_use]
    pub fn log_bytes_best(&self) -> u64 {
        let entries = u64::from(self.super_tables) * u64::from(self.filter.entries_max());
        let bytes = entries * (1 + self.key_bytes + self.value_bytes) as u64;
        (8 * bytes).next_multiple_of(1 << 20).max(Self::LOG_BYTES_MIN)
    }

    /// Returns the length in bytes of the shortest log that lets its buffers fill before they must be saved: four times
    /// their contents.
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

    /// RAM of a column of its filters, in bytes.
    pub(super) fn column_bytes(&self) -> u64 {
        self.filter.column_bits().div_ceil(8) as u64
    }

    /// Returns the number of keys of a buffer that its filter may refuse: at most 4 %.
    pub(super) fn bumped_max(&self) -> u64 {
        u64::from(self.filter.entries_max()) / 24
    }

    /// Returns the maximum number of entries that a flush usually carries over.
    pub(super) fn carry_over_usual(&self) -> usize {
        STASH_LEN_MAX + self.bumped_max() as usize
    }

    /// Fails for a configuration that cannot work.
    ///
    /// # Errors
    /// [`Error::Config`], naming the field.
    pub fn validate(&self) -> Result<()> {
        self.check_ranges()?;
        self.layout()?;
        let refuse = |field, reason: String| Err(Error::Config { field, reason });
        // A table that is made for keys already states how much it needs in addition to its reserve.
        let times = if self.entries_max > 0 { 1 } else { 2 };
        if self.segments < times * self.reserve_segments
            || self.segments <= u64::from(self.super_tables)
        {
            let reason = format!(
                "{} incarnations for {} super tables and a reserve of {}; take more than one each and {times} times the reserve",
                self.segments, self.super_tables, self.reserve_segments
            );
            return refuse("segments", reason);
        }
        let columns = 64 * self.filter.words();
        if self.incarnations_max < 2 || self.incarnations_max >= columns {
            let reason = format!("{} is not in 2..{columns}", self.incarnations_max);
            return refuse("incarnations_max", reason);
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
        self.validate_cleaning()?;
        self.validate_placement()
    }

    /// Returns whether super tables are rewritten without updated or removed entries.
    pub(super) fn cleans(&self) -> bool {
        self.refuses_on_volume() && self.entries_max > 0 && !self.keeps_versions
    }

    /// Returns whether the number of keys that each incarnation has added is known.
    pub(super) fn counts_keys(&self) -> bool {
        self.refuses_on_volume() && (self.entries_max > 0 || self.keeps_versions)
    }

    fn refuses_on_volume(&self) -> bool {
        self.policy == Policy::Reject && self.placement == Placement::Shared
    }

    /// A ring of all segments.
    pub(super) fn ring_shape(&self) -> RingShape {
        let reuse = if self.counts_keys() { Reuse::Dead } else { Reuse::Oldest };
        RingShape { segment_pages: self.segment_pages(), segments: self.segments, reuse }
    }

    fn validate_cleaning(&self) -> Result<()> {
        let refuse = |reason: String| Err(Error::Config { field: "entries_max", reason });
        if !self.cleans() {
            return Ok(());
        }
        let live = self.segments.saturating_sub(self.reserve_segments);
        let most = live * u64::from(self.filter.entries_max());
        if self.entries_max > most {
            let reason = format!(
                "{} keys for {live} incarnations of {}, without the reserve; take fewer, or more segments",
                self.entries_max,
                self.filter.entries_max()
            );
            return refuse(reason);
        }
        Ok(())
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

    /// Returns the pages of all segments, on the volume or on a chip.
    #[must_use]
    pub fn ring_pages(&self) -> u64 {
        self.segments * u64::from(self.segment_pages())
    }

    /// Returns the pages of segments on the volume.
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
}

/// The ranking of entries, if the policy evicts by priority.
pub(super) struct Ranking(pub(super) Priority);

impl fmt::Debug for Ranking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ranking").finish_non_exhaustive()
    }
}

impl Ranking {
    /// Ranks by the function of the options, if there is one.
    pub(super) fn of(options: &OpenOptions) -> Self {
        Self(options.priority.clone().unwrap_or_else(|| Arc::new(value_as_priority)))
    }
}

/// Returns the default priority of an entry: the first 8 bytes of its value.
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
    fn the_bytes_end_with_the_pages_of_a_chips_block_or_0_and_the_keys_of_a_table_that_is_cleaned()
    {
        let shared = Config::tiny().encode();
        let placement = Placement::Chip { block_pages: 0x0102_0304 };
        let chip = Config { placement, ..Config::tiny() }.encode();
        assert_eq!((shared.len(), chip.len()), (96, 96));
        assert_eq!(shared[..83], chip[..83]);
        assert_eq!((&shared[83..87], &chip[83..87]), (&[0, 0, 0, 0][..], &[4, 3, 2, 1][..]));
        assert_eq!(shared[87..], [0; 9]);
        let read = |it: &[u8]| Config::decode(&mut Reader::new(it, "config", PageId(0))).unwrap();
        assert_eq!(read(&[&[1], &shared[1..87]].concat()), Config::tiny());
        let cleaned = Config { entries_max: 0x0203, policy: Policy::Reject, ..Config::tiny() };
        let bytes = cleaned.encode();
        assert_eq!(bytes[87..], [3, 2, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(read(&[&[2], &bytes[1..95]].concat()), cleaned);
        let kept = Config { keeps_versions: true, ..cleaned };
        assert_eq!(kept.encode()[87..], [3, 2, 0, 0, 0, 0, 0, 0, 1]);
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
