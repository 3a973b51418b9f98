//! The configuration of a SliceHash, stored with it on flash, and the options of an opening.

use nandex_device::Geometry;
use nandex_store::entries::{BUCKET_SLOTS, EntryLayout};
use nandex_store::schedule::Channels;
use nandex_store::shadow::ShadowShape;

use super::KIND;
use super::slice::SliceLayout;
use crate::model::buffer_entries;
use crate::schema::{FifoOrReject, Range, parameters};
use crate::write::TableShape;
use crate::{Error, Result, WhenFull};

parameters! {
    /// The configuration of a SliceHash. All of it is stored on flash and read back at open.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct Config: KIND, version 1, tiny [const];

    /// The policy when a slicetable is full.
    policy: WhenFull as FifoOrReject = WhenFull::EvictOldest;

    /// Flush the first buffer of each partition early, each at another fill. Partitions fill alike, and would
    /// otherwise all flush at once, again and again.
    stagger: bool = false;

    /// Bytes in a key: 8 to 32.
    key_bytes: usize = 8, in Range::Within(8, 32);

    /// Bytes in a value: 0 to 64.
    value_bytes: usize = 8, in Range::Within(0, 64);

    /// Partitions, a power of two up to 65,536 (the paper's n). Each has a buffer and a slicetable.
    partitions: u32 = 4, in Range::PowerOfTwo(1 << 16);

    /// Pages of 4 KiB in a buffer: the paper's H. At most 65,535.
    buffer_pages: u32 = 2, in Range::Within(1, 65_535);

    /// Slots in a bucket of the buffer's cuckoo table: 2 to 4. The paper has 3, which fill to 86 %; 4 fill
    /// to 94 %.
    bucket_slots: u32 = BUCKET_SLOTS as u32, in Range::Within(2, 4);

    /// Slices of a slicetable: the paper's S is this many pages, for each part.
    slices: u32 = 12, in Range::Within(1, 1 << 20);

    /// Pages in a slice: 1, or one for each device of an array, which are read at once (paper, section
    /// 5.3, "memory-oriented").
    slice_parts: u32 = 1, in Range::Within(1, 64);

    /// Slices whose first parts are adjacent, followed by their second parts, and so on. With more than one part this
    /// is the array's stripe in pages, so that each part is on its own device.
    group_slices: u32 = 1, in Range::Within(1, 1 << 20);

    /// Devices that alternate slicetable by slicetable (paper, section 5.3, "throughput-oriented"): the array's stripe
    /// is then a slicetable. 1 for a single device.
    devices: u32 = 1, in Range::Within(1, 64);

    /// A slicetable begins at a multiple of this many pages, and its length is rounded up to one: channels
    /// times the pages of a chunk (paper, section 5.2), or an array's stripe. 1 if neither matters.
    align_pages: u32 = 1, in Range::Within(1, 1 << 20);

    /// Physical slicetables beyond one per partition, for those being rewritten.
    spare_blocks: u32 = 2, in Range::Within(1, u32::MAX as u64);

    /// Buffers in addition to one per partition, for partitions whose buffer is being written.
    spare_buffers: u32 = 2, in Range::Within(1, u32::MAX as u64);

    /// Entries of a slicetable at which its partition is full if nothing is evicted. Less than its slices take, because
    /// slices do not fill evenly.
    entries_max: u32 = 12 * 200;

    /// Runs of the front table, the small write-optimised table for bursts (paper, section 7.2): buffers that wait on
    /// flash, unchanged, to be merged later. 0 for none, and if the policy is reject: entries that a slicetable refuses
    /// go back to RAM and the log, and a run's part of the log may be gone by then.
    front_runs: u32 = 0;
}

impl Config {
    /// The least that [`log_bytes_best`](Self::log_bytes_best) returns, in bytes: 16 of a volume's usual log blocks.
    pub const LOG_BYTES_MIN: u64 = 2 << 20;

    /// Returns the size in bytes of a log that seldom forces a table of this configuration to flush early: eight times
    /// the contents of its buffers, and at least 2 MiB.
    #[must_use]
    pub fn log_bytes_best(&self) -> u64 {
        let page_bytes = nandex_device::PAGE_BYTES as u64;
        let bytes = u64::from(self.partitions) * u64::from(self.buffer_pages) * page_bytes;
        (8 * bytes).next_multiple_of(1 << 20).max(Self::LOG_BYTES_MIN)
    }

    /// The layout of buffer pages.
    ///
    /// # Errors
    /// [`Error::Config`] for widths or buckets out of range.
    pub fn layout(&self) -> Result<EntryLayout> {
        let bucket_slots = self.bucket_slots as usize;
        Ok(EntryLayout::with_buckets(self.key_bytes, self.value_bytes, bucket_slots)?)
    }

    /// The layout of slice pages.
    pub(super) fn slice_layout(&self) -> SliceLayout {
        SliceLayout::new(self.key_bytes, self.value_bytes)
    }

    /// Entries that a slice takes, all parts together.
    #[must_use]
    pub fn slice_entries(&self) -> u32 {
        self.slice_parts * u32::try_from(self.slice_layout().capacity()).expect("fewer than 512")
    }

    /// Returns the approximate number of entries that a full buffer adds to its slicetable.
    pub(super) fn buffer_entries(&self) -> Result<u32> {
        let slots = self.layout()?.slots() as u64;
        let full = buffer_entries(self.buffer_pages.into(), slots);
        // The model assumes buckets of four; fewer slots in a bucket leave more of them empty.
        let share = match self.bucket_slots {
            2 => 0.85,
            3 => 0.95,
            _ => 1.0,
        };
        Ok((full * share).max(1.0) as u32)
    }

    /// The paper's k: the number of buffers whose entries a slicetable holds when it is full.
    ///
    /// # Errors
    /// As [`layout`](Self::layout).
    pub fn incarnations(&self) -> Result<f64> {
        Ok(f64::from(self.entries_max) / f64::from(self.buffer_entries()?))
    }

    /// Pages of a slicetable.
    #[must_use]
    pub fn block_pages(&self) -> u32 {
        let groups = self.slices.div_ceil(self.group_slices.max(1));
        let pages = groups * self.group_slices * self.slice_parts;
        if self.slice_parts == 1 {
            return self.slices.next_multiple_of(self.align_pages.max(1));
        }
        pages.next_multiple_of(self.align_pages.max(1))
    }

    /// Returns the configuration with slicetables that begin at multiples of channels times chunk, so that the place in
    /// a slicetable determines the channel (paper, section 5.2).
    #[must_use]
    pub fn aligned_to(self, channels: &Channels) -> Self {
        let align_pages = u32::try_from(channels.align_pages()).unwrap_or(1);
        Self { align_pages: align_pages.max(1), ..self }
    }

    /// Returns the configuration over this number of devices, each with its own slicetables (paper, section 5.3,
    /// "throughput-oriented"): lookups and merges of different partitions go to different devices. The array has a
    /// stripe of [`stripe_pages`](Self::stripe_pages), whole rounds of each device's channels if the configuration was
    /// [aligned](Self::aligned_to) to these before.
    #[must_use]
    pub fn throughput_oriented(self, devices: u32) -> Self {
        let block_pages = self.block_pages();
        let spare_blocks = self.spare_blocks.next_multiple_of(devices.max(1));
        Self { devices, align_pages: block_pages, spare_blocks, ..self }
    }

    /// Returns the configuration with slices of one page on each of this number of devices, which a lookup reads at
    /// once (paper, section 5.3, "memory-oriented"): a slicetable holds a multiple of the incarnations, for the same
    /// RAM. The array has a stripe of [`stripe_pages`](Self::stripe_pages), whole rounds of each device's channels if
    /// the configuration was [aligned](Self::aligned_to) to these before.
    #[must_use]
    pub fn memory_oriented(self, devices: u32) -> Self {
        /// Slices whose parts are adjacent: half a MiB on each device in turn.
        const GROUP_SLICES: u32 = 128;
        let group_slices = GROUP_SLICES.min(self.slices).next_multiple_of(self.align_pages.max(1));
        Self {
            slice_parts: devices,
            group_slices,
            align_pages: group_slices.saturating_mul(devices),
            entries_max: self.entries_max.saturating_mul(devices),
            ..self
        }
    }

    /// Returns the stripe of an array for this configuration, in pages: a slicetable if devices alternate, a group of
    /// slices if slices have a part on each device.
    #[must_use]
    pub fn stripe_pages(&self) -> u32 {
        if self.slice_parts > 1 { self.group_slices } else { self.block_pages() }
    }

    /// Rejects an array whose number of devices or stripe does not match the configuration. Accepts any single device,
    /// since a backup of an array is one.
    pub(super) fn check_array(&self, device: &Geometry) -> Result<()> {
        let devices = self.devices.max(self.slice_parts);
        let (members, stripe_pages) = (device.members, device.stripe_pages);
        let fits = members == devices && stripe_pages == u64::from(self.stripe_pages());
        if devices == 1 || members <= 1 || fits {
            return Ok(());
        }
        let reason = format!(
            "{devices} in runs of {} pages; the array has {members} with runs of {stripe_pages}; make the array for the \
             table, or the table for the array",
            self.stripe_pages()
        );
        Err(Error::Config { field: "devices", reason })
    }

    pub(super) fn shape(&self) -> Result<TableShape> {
        let layout = self.layout()?;
        let slots = u32::try_from(layout.slots()).expect("at most 508") * self.buffer_pages;
        Ok(TableShape {
            layout,
            partitions: self.partitions,
            buffer_pages: self.buffer_pages,
            entries_max: slots,
            // If nothing is evicted, full slices carry over whole buffers in the worst case: those that were being
            // written when the first of them reported it.
            carry_over_max: if self.policy == WhenFull::Refuse { 3 * slots } else { slots / 16 },
            spare_buffers: self.spare_buffers,
            stagger: self.stagger,
        })
    }

    pub(super) fn shadow_shape(&self) -> ShadowShape {
        ShadowShape {
            block_pages: self.block_pages(),
            logical: self.partitions,
            spares: self.spare_blocks,
            align_pages: self.align_pages,
            devices: self.devices,
        }
    }

    /// Pages of all slicetables, spare ones included.
    #[must_use]
    pub fn slicetable_pages(&self) -> u64 {
        self.shadow_shape().pages()
    }

    /// Pages of the front table.
    #[must_use]
    pub fn front_pages(&self) -> u64 {
        u64::from(self.front_runs) * u64::from(self.buffer_pages)
    }

    /// Fails for a configuration that cannot work.
    ///
    /// # Errors
    /// [`Error::Config`], naming the field.
    pub fn validate(&self) -> Result<()> {
        self.check_ranges()?;
        self.layout()?;
        self.validate_space()?;
        Ok(self.shadow_shape().validate()?)
    }

    fn validate_space(&self) -> Result<()> {
        let refuse = |field, reason: String| Err(Error::Config { field, reason });
        let space = u64::from(self.slices) * u64::from(self.slice_entries());
        if self.entries_max == 0 || u64::from(self.entries_max) > space {
            let reason = format!(
                "{} entries for {} slices of {}, which take {space}; take fewer, or more slices",
                self.entries_max,
                self.slices,
                self.slice_entries()
            );
            return refuse("entries_max", reason);
        }
        if self.front_runs > 0 && self.policy == WhenFull::Refuse {
            let reason = format!(
                "a table that refuses rather than evicts has no front, and this one asks for {} runs; \
                 take 0, or another policy",
                self.front_runs
            );
            return refuse("front_runs", reason);
        }
        let buffer = self.buffer_entries()?;
        if u64::from(buffer) > space {
            let reason = format!(
                "a buffer holds {buffer} entries and its slicetable {space}; take more slices or fewer \
                 pages in a buffer"
            );
            return refuse("slices", reason);
        }
        let pages = u64::from(self.block_pages()) * self.shadow_shape().physical();
        if pages > 1 << 48 {
            return refuse("slices", format!("{pages} pages in all; at most 2^48 are counted"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandex_device::PageId;
    use nandex_store::bytes::Reader;

    #[test]
    fn a_configuration_reads_back_and_never_panics_when_cut() {
        let reject = Config { policy: WhenFull::Refuse, stagger: true, ..Config::tiny() };
        let parts = Config { slice_parts: 3, group_slices: 4, devices: 2, ..Config::tiny() };
        for config in [Config::tiny(), reject, parts] {
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
    fn what_cannot_work_is_refused_by_name() {
        let refused = |config: Config, field: &str| {
            let text = config.validate().unwrap_err().to_string();
            assert!(text.contains(field), "{text}");
        };
        refused(Config { key_bytes: 7, ..Config::tiny() }, "key_bytes");
        refused(Config { policy: WhenFull::Grow, ..Config::tiny() }, "policy");
        refused(Config { bucket_slots: 5, ..Config::tiny() }, "bucket_slots");
        refused(Config { partitions: 3, ..Config::tiny() }, "partitions");
        refused(Config { slices: 0, ..Config::tiny() }, "slices");
        refused(Config { slices: 1, entries_max: 200, ..Config::tiny() }, "slices");
        refused(Config { entries_max: 12 * 254, ..Config::tiny() }, "entries_max");
        refused(Config { spare_blocks: 0, ..Config::tiny() }, "spare_blocks");
        refused(Config { slice_parts: 0, ..Config::tiny() }, "slice_parts");
        refused(Config { group_slices: 0, ..Config::tiny() }, "group_slices");
        refused(Config { devices: 65, ..Config::tiny() }, "devices");
        let policy = WhenFull::Refuse;
        refused(Config { front_runs: 8, policy, ..Config::tiny() }, "front_runs");
    }

    #[test]
    fn several_devices_take_turns_with_slicetables_or_share_each() {
        let turns = Config::tiny().throughput_oriented(3);
        assert_eq!((turns.devices, turns.stripe_pages(), turns.spare_blocks), (3, 12, 3));
        assert_eq!(turns.align_pages, turns.block_pages());
        turns.validate().unwrap();
        let share = Config::tiny().memory_oriented(3);
        assert_eq!((share.slice_parts, share.stripe_pages(), share.block_pages()), (3, 12, 36));
        assert_eq!(share.slice_entries(), 3 * Config::tiny().slice_entries());
        share.validate().unwrap();
        // Rounds of eight pages on each device.
        let in_rounds = Config { align_pages: 8, ..Config::tiny() };
        let turns = in_rounds.throughput_oriented(3);
        assert_eq!((turns.stripe_pages(), turns.align_pages, turns.block_pages()), (16, 16, 16));
        let share = in_rounds.memory_oriented(3);
        assert_eq!((share.stripe_pages(), share.align_pages, share.block_pages()), (16, 48, 48));
        [turns, share].iter().for_each(|it| it.validate().unwrap());
    }

    #[test]
    fn an_array_of_another_shape_than_the_designs_is_refused() {
        let array =
            |members, stripe_pages| Geometry { members, stripe_pages, ..Geometry::opaque() };
        let one = Config::tiny();
        for config in [one.throughput_oriented(3), one.memory_oriented(3)] {
            config.check_array(&array(3, 12)).unwrap();
            config.check_array(&array(1, 1)).unwrap();
            for wrong in [array(2, 12), array(3, 13)] {
                let text = config.check_array(&wrong).unwrap_err().to_string();
                assert!(
                    text.starts_with("devices: 3 in runs of 12 pages; the array has"),
                    "{text}"
                );
            }
        }
        one.check_array(&array(5, 7)).unwrap();
    }

    #[test]
    fn slicetables_are_rounded_up_to_whole_rounds_of_channels() {
        let aligned = Config { align_pages: 64, ..Config::tiny() };
        assert_eq!((Config::tiny().block_pages(), aligned.block_pages()), (12, 64));
        let parts = Config { slice_parts: 3, group_slices: 5, ..Config::tiny() };
        assert_eq!(parts.block_pages(), 45);
    }
}
