//! The configuration of a SliceLSH, stored with it on flash, and the options of an opening.

use nandex_device::PAGE_BYTES;
use nandex_store::bytes::Reader;
use nandex_store::schedule::Channels;
use nandex_store::shadow::ShadowShape;
use nandex_store::slice::SliceLayout;

use super::KIND;
use super::buffer::BucketBuffer;
use super::format::update_bytes;
use super::placement::Placement;
use super::snapshot::snapshot_pages;
use crate::schema::{FifoOrReject, Range, Stored, parameters};
use crate::{Error, OpenOptions, Result, WhenFull};

/// The maximum number of hash tables.
pub const TABLES_MAX: u32 = 64;

/// Entries that a slice takes.
const SLICE_ENTRIES: u64 = 253;

/// The longest family, in bytes.
pub const FAMILY_BYTES_MAX: usize = 256;

/// A family: its length in 16 bits, then its bytes.
impl Stored for Vec<u8> {
    const FORM: &'static str = "bytes in hex";

    fn put(&self, out: &mut Vec<u8>) {
        let bytes = u16::try_from(self.len()).expect("at most 256 bytes");
        out.extend_from_slice(&bytes.to_le_bytes());
        out.extend_from_slice(self);
    }

    fn take(reader: &mut Reader<'_>) -> Result<Self> {
        let bytes = usize::from(reader.u16()?);
        if bytes > FAMILY_BYTES_MAX {
            let expected = format!("a family of at most {FAMILY_BYTES_MAX} bytes");
            return Err(reader.refuse(expected, bytes).into());
        }
        Ok(reader.take(bytes)?.to_vec())
    }

    fn show(&self) -> String {
        self.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    fn parse(text: &str) -> std::result::Result<Self, String> {
        let refuse = || format!("{text:?} is no family; state its bytes in hex, two digits each");
        let digits = text.as_bytes().chunks(2).map(|pair| {
            let pair = std::str::from_utf8(pair).ok().filter(|pair| pair.len() == 2);
            pair.and_then(|pair| u8::from_str_radix(pair, 16).ok()).ok_or_else(refuse)
        });
        digits.collect()
    }
}

parameters! {
    /// The configuration of a SliceLSH. All of it is stored on flash and read back at open.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct Config: KIND, version 1, tiny [const];

    /// The policy when slicetables are full.
    policy: WhenFull as FifoOrReject = WhenFull::EvictOldest;

    /// Flush the first buffer of each partition early, each at another fill. Partitions fill alike, and would
    /// otherwise all flush at once, again and again.
    stagger: bool = false;

    /// Hash tables, 1 to 64: the bucket keys of a document, and the most pages that a lookup reads. The paper has 10.
    tables: u32 = 3, in Range::Within(1, TABLES_MAX as u64);

    /// Partitions, a power of two up to 65,536. Each has a buffer for all tables, and a slicetable of each.
    partitions: u32 = 2, in Range::PowerOfTwo(1 << 16);

    /// Entries of a buffer, of all tables: at least four times the tables, at most 2^24. Each takes 25 bytes of RAM.
    buffer_entries: u32 = 60, in Range::Within(4, 1 << 24);

    /// Slices of each table's slicetable: pages of 253 entries.
    slices: u32 = 2, in Range::Within(1, 1 << 20);

    /// The maximum number of ids that a bucket keeps, 1 to 253: the oldest. Later ones are dropped, and counted, as
    /// long as these are present.
    bucket_ids_max: u32 = 4, in Range::Within(1, SLICE_ENTRIES);

    /// Entries of a partition, of all tables, at which it is full if nothing is evicted. Less than its slices take,
    /// because slices do not fill evenly.
    entries_max: u32 = 3 * 2 * 200;

    /// Channels of the device over which tables are spread, each on its own channels (section 6); 1 stripes them.
    channels: u32 = 1, in Range::Within(1, 1 << 16);

    /// Pages of a chunk, which one channel holds; 1 if there is one channel.
    chunk_pages: u32 = 1, in Range::Within(1, 1 << 16);

    /// Physical groups of slicetables beyond one per partition, for those being rewritten.
    spare_blocks: u32 = 2, in Range::Within(1, 1 << 16);

    /// Buffers in addition to one per partition, for partitions whose buffer is being written.
    spare_buffers: u32 = 1, in Range::Within(1, 1 << 16);

    /// The family of hashes that makes the bucket keys, with its parameters, in at most 256 bytes that only its owner
    /// interprets.
    family: Vec<u8> = Vec::new();
}

impl Config {
    /// The least that [`log_bytes_best`](Self::log_bytes_best) returns, in bytes: 16 of a volume's usual log blocks.
    pub const LOG_BYTES_MIN: u64 = 2 << 20;

    /// Returns the size in bytes of a log that seldom forces an index of this configuration to flush early: eight times
    /// the contents of its buffers, and at least 2 MiB.
    #[must_use]
    pub fn log_bytes_best(&self) -> u64 {
        (8 * self.logged_bytes()).next_multiple_of(1 << 20).max(Self::LOG_BYTES_MIN)
    }

    /// Returns the bytes that the contents of all buffers take in the log, when all are full.
    pub(super) fn logged_bytes(&self) -> u64 {
        let entries = u64::from(self.partitions) * u64::from(self.buffer_entries);
        entries / u64::from(self.tables) * update_bytes(self.tables) as u64
    }

    /// The layout of slice pages.
    pub(super) const fn slice_layout() -> SliceLayout {
        SliceLayout::new(8, 8)
    }

    /// Returns the number of entries that a slice takes: 253.
    #[must_use]
    pub fn slice_entries() -> u32 {
        u32::try_from(Self::slice_layout().capacity()).expect("fewer than 512")
    }

    /// Returns the placement of slices in the pages of a block.
    #[must_use]
    pub fn placement(&self) -> Placement {
        Placement::new(self.tables, self.slices, (self.channels, self.chunk_pages))
    }

    /// Returns the configuration with each table's slicetables on their own channels (section 6), if more than one
    /// channel is known. A device of unknown geometry stripes them.
    #[must_use]
    pub fn placed_on(self, channels: &Channels) -> Self {
        let count = channels.count();
        let chunk_pages = u32::try_from(channels.align_pages() / u64::from(count)).unwrap_or(1);
        Self { channels: count, chunk_pages: if count > 1 { chunk_pages } else { 1 }, ..self }
    }

    /// The paper's k: the number of buffers whose entries the slicetables of a partition hold when they are full.
    #[must_use]
    pub fn incarnations(&self) -> f64 {
        f64::from(self.entries_max) / f64::from(self.buffer_entries)
    }

    /// Pages of the slicetables of one partition.
    #[must_use]
    pub fn block_pages(&self) -> u32 {
        u32::try_from(self.placement().block_pages()).unwrap_or(u32::MAX)
    }

    pub(super) fn shadow_shape(&self) -> ShadowShape {
        ShadowShape {
            block_pages: self.block_pages(),
            logical: self.partitions,
            spares: self.spare_blocks,
            align_pages: self.channels.saturating_mul(self.chunk_pages),
            devices: 1,
        }
    }

    /// Pages of all slicetables, spare ones included.
    #[must_use]
    pub fn slicetable_pages(&self) -> u64 {
        self.shadow_shape().pages()
    }

    /// Pages of the whole index.
    pub(super) fn pages(&self) -> u64 {
        self.slicetable_pages() + snapshot_pages(self)
    }

    /// Bytes of RAM of all buffers.
    #[must_use]
    pub fn buffer_bytes(&self) -> u64 {
        let buffers = u64::from(self.partitions) + u64::from(self.spare_buffers);
        buffers * BucketBuffer::bytes_of(self.buffer_entries.into())
    }

    /// Returns the number of entries that a snapshot of a buffer has space for. If nothing is evicted, full slices put
    /// back whole buffers in the worst case: those that were being written when the first of them reported it.
    pub(super) fn snapshot_entries_max(&self) -> u64 {
        let buffers = if self.policy == WhenFull::Refuse { 4 } else { 1 };
        buffers * u64::from(self.buffer_entries)
    }

    /// Fails for a configuration that cannot work.
    ///
    /// # Errors
    /// [`Error::Config`], naming the field.
    pub fn validate(&self) -> Result<()> {
        self.check_ranges()?;
        let refuse = |field, reason: String| Err(Error::Config { field, reason });
        let least = 4 * self.tables;
        if self.buffer_entries < least {
            let reason = format!(
                "{}; they must be at least {least}, four times the tables",
                self.buffer_entries
            );
            return refuse("buffer_entries", reason);
        }
        if self.family.len() > FAMILY_BYTES_MAX {
            let reason = format!("{} bytes; at most {FAMILY_BYTES_MAX}", self.family.len());
            return refuse("family", reason);
        }
        self.validate_space()
    }

    fn validate_space(&self) -> Result<()> {
        let refuse = |field, reason: String| Err(Error::Config { field, reason });
        let slices = u64::from(self.tables) * u64::from(self.slices);
        let space = slices * u64::from(Self::slice_entries());
        if space > u64::from(u32::MAX) {
            let reason =
                format!("{slices} for all tables take {space} entries; at most 2^32 are counted");
            return refuse("slices", reason);
        }
        if self.entries_max == 0 || u64::from(self.entries_max) > space {
            let reason = format!(
                "{} entries for {slices} slices of {}, which take {space}; take fewer, or more slices",
                self.entries_max,
                Self::slice_entries()
            );
            return refuse("entries_max", reason);
        }
        if u64::from(self.buffer_entries) > space {
            let reason = format!(
                "a buffer holds {} entries and its slicetables {space}; take more slices or smaller buffers",
                self.buffer_entries
            );
            return refuse("slices", reason);
        }
        let block_pages = self.placement().block_pages();
        let pages = block_pages.saturating_mul(u64::from(self.partitions) + (1 << 16));
        if block_pages > u64::from(u32::MAX) || pages > 1 << 48 {
            let reason = format!(
                "{block_pages} pages of each partition, placed; at most 2^32 are numbered, and 2^48 in all"
            );
            return refuse("slices", reason);
        }
        Ok(self.shadow_shape().validate()?)
    }

    /// Fails for a family other than the index's own.
    pub(super) fn check_family(&self, asked: &[u8]) -> Result<()> {
        if asked == self.family {
            return Ok(());
        }
        let reason = format!(
            "this index was made for bucket keys of the family {}, and {} was asked for; open it with its own, or make \
             another index",
            hex(&self.family),
            hex(asked)
        );
        Err(Error::Config { field: "family", reason })
    }
}

/// Formats the bytes of a family, as far as a message needs them.
fn hex(family: &[u8]) -> String {
    const SHOWN: usize = 24;
    let shown: String = family.iter().take(SHOWN).map(|byte| format!("{byte:02x}")).collect();
    match family.len() {
        0 => "of no bytes".into(),
        1..=SHOWN => shown,
        more => format!("{shown}.. ({more} bytes)"),
    }
}

/// Returns the most RAM for the filter of an index that is opened with these options, in bytes.
pub(super) fn filter_bytes(options: &OpenOptions, config: &Config) -> u64 {
    let left = options.ram_bytes_max.map(|most| most.saturating_sub(config.ram_bytes()));
    left.map_or(options.filter_bytes, |left| left.min(options.filter_bytes))
}

/// RAM in bytes of a merge: four I/O chunks, and the order of a buffer's entries.
pub(super) fn merge_bytes(config: &Config, io_chunk_pages: u32) -> u64 {
    let pages = u64::from(config.block_pages().min(io_chunk_pages));
    4 * pages * PAGE_BYTES as u64 + 8 * u64::from(config.buffer_entries)
}

#[cfg(test)]
mod tests {
    use nandex_device::{Geometry, Mapping, PageId};

    use super::*;

    #[test]
    fn a_configuration_reads_back_and_never_panics_when_cut() {
        let reject = Config { policy: WhenFull::Refuse, stagger: true, ..Config::tiny() };
        let placed = Config { channels: 8, chunk_pages: 2, family: vec![7; 256], ..Config::tiny() };
        for config in [Config::tiny(), reject, placed] {
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
    fn the_smallest_has_the_bytes_that_the_page_shows() {
        let bytes = Config::tiny().encode();
        let words = bytes.chunks(4).map(|word| word.iter().map(|it| format!("{it:02x}")).collect());
        let words = words.collect::<Vec<String>>().join(" ");
        let page = include_str!("../../../../docs/reference/format.md");
        assert!(page.contains(&format!("\n{words}\n")), "{words}");
    }

    #[test]
    fn what_cannot_work_is_refused_by_name() {
        let refused = |config: Config, field: &str| {
            let text = config.validate().unwrap_err().to_string();
            assert!(text.starts_with(&format!("{field}: ")), "{text}");
        };
        refused(Config { tables: 0, ..Config::tiny() }, "tables");
        refused(Config { policy: WhenFull::Grow, ..Config::tiny() }, "policy");
        refused(Config { tables: 65, buffer_entries: 1000, ..Config::tiny() }, "tables");
        refused(Config { partitions: 3, ..Config::tiny() }, "partitions");
        refused(Config { buffer_entries: 11, ..Config::tiny() }, "buffer_entries");
        refused(Config { slices: 0, ..Config::tiny() }, "slices");
        refused(Config { buffer_entries: 1 << 20, ..Config::tiny() }, "slices");
        refused(Config { bucket_ids_max: 254, ..Config::tiny() }, "bucket_ids_max");
        refused(Config { entries_max: 6 * 254, ..Config::tiny() }, "entries_max");
        refused(Config { channels: 0, ..Config::tiny() }, "channels");
        refused(Config { spare_blocks: 0, ..Config::tiny() }, "spare_blocks");
        refused(Config { spare_buffers: 0, ..Config::tiny() }, "spare_buffers");
        refused(Config { family: vec![0; 257], ..Config::tiny() }, "family");
    }

    #[test]
    fn a_device_of_known_channels_places_tables_and_another_stripes_them() {
        let geometry = Geometry {
            channels: Some(4),
            chunk_bytes: Some(8192),
            mapping: Some(Mapping::Lba),
            ..Geometry::opaque()
        };
        let placed = Config::tiny().placed_on(&Channels::of(&geometry));
        assert_eq!((placed.channels, placed.chunk_pages, placed.block_pages()), (4, 2, 8));
        assert_eq!(placed.shadow_shape().align_pages, 8);
        placed.validate().unwrap();
        let striped = placed.placed_on(&Channels::opaque());
        assert_eq!(striped, Config::tiny());
    }
}
