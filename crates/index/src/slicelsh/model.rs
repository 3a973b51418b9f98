//! The costs of a SliceLSH, and how to size one.
//!
//! N entries are on flash, L for each document, in slices that are filled to three quarters: buckets are spread by a
//! hash, so slices do not fill evenly. RAM is the buffers, 25 bytes an entry. A partition's group of slicetables holds
//! k buffers, and each merge reads and writes all of it: so the buffers have N / k entries, and each entry is written k
//! times. The paper's figures are 256 MiB of RAM for each table and 8 GiB of flash: k = 32 (section 7.5).

use super::Config;
use super::buffer::BucketBuffer;
use super::config::merge_bytes;
use super::format::update_bytes;
use crate::model::{NeighborsRequirements, OperationCosts, PAGE_BYTES, too_little_ram};
use crate::{Error, Policy, Result};

/// Entries of a slice of 253, on average, when an index is full.
const SLICE_MEAN: u64 = 190;

/// The buffers that a group of slicetables holds, if no RAM is given: about 10 bytes of RAM for a document of 10
/// tables.
const INCARNATIONS: u64 = 24;

/// The most that are advised: with more a document would be written too often.
const INCARNATIONS_MAX: u64 = 64;

/// The largest group of slicetables that is advised, in pages: a merge of 2 MiB. With more partitions the spare buffer
/// is a smaller share of the RAM.
const BLOCK_PAGES_MAX: u64 = 512;

/// The maximum number of pages that work, with 65,536 partitions.
const BLOCK_PAGES_LIMIT: u64 = (1 << 32) / 256;

/// RAM of log, queues and maps of a partition, in bytes, approximately.
const PARTITION_BYTES: u64 = 1536;
const OTHER_BYTES: u64 = 1 << 20;

/// An index whose parameters are known except for the buffers.
struct Sizes {
    tables: u32,
    partitions: u32,
    slices: u32,
    /// Entries of a partition when it is full.
    entries: u64,
}

impl Sizes {
    /// Chooses as few partitions as have slicetables of at most 2 MiB.
    fn of(asked: &NeighborsRequirements) -> Result<Self> {
        let entries = asked.documents * u64::from(asked.tables);
        for bits in 0..=16 {
            let partition = entries.div_ceil(1 << bits);
            let slices = partition.div_ceil(SLICE_MEAN * u64::from(asked.tables)).max(1);
            let most = if bits == 16 { BLOCK_PAGES_LIMIT } else { BLOCK_PAGES_MAX };
            if slices * u64::from(asked.tables) <= most {
                let slices = u32::try_from(slices).expect("at most 2^24");
                let (tables, partitions) = (asked.tables, 1 << bits);
                return Ok(Self { tables, partitions, slices, entries: partition });
            }
        }
        let reason = format!("{}; 65,536 partitions of 2^24 slices hold fewer", asked.documents);
        Err(Error::Config { field: "documents", reason })
    }

    const fn spare_buffers(&self) -> u32 {
        let spares = self.partitions / 64;
        if spares < 1 { 1 } else { spares }
    }

    fn config(&self, asked: &NeighborsRequirements, buffer_entries: u64) -> Config {
        let space = u64::from(self.slices) * u64::from(self.tables) * SLICE_MEAN;
        Config {
            tables: self.tables,
            partitions: self.partitions,
            buffer_entries: u32::try_from(buffer_entries).expect("at most 2^24"),
            slices: self.slices,
            bucket_ids_max: asked.bucket_ids_max,
            policy: asked.policy.when_full().unwrap_or_default(),
            entries_max: u32::try_from(space).expect("slicetables of at most 2^20 slices"),
            channels: 1,
            chunk_pages: 1,
            spare_blocks: (self.partitions / 32).max(2),
            spare_buffers: self.spare_buffers(),
            stagger: self.partitions > 1,
            family: asked.family.clone(),
        }
    }

    /// The limits of a buffer's entries.
    fn buffer_entries(&self, entries: u64) -> u64 {
        let most = self.entries.min(1 << 24);
        entries.min(most).max(self.entries / INCARNATIONS_MAX).max(u64::from(16 * self.tables))
    }
}

impl Config {
    /// Returns the configuration for requirements: as few buffers in a group of slicetables as the RAM allows, or 24 if
    /// no RAM is given. It stripes the tables; see [`placed_on`](Self::placed_on).
    ///
    /// # Errors
    /// RAM that is too little, with the least that is enough; a policy other than FIFO and reject; numbers out of
    /// range.
    pub fn advised(asked: &NeighborsRequirements) -> Result<Self> {
        asked.check()?;
        if !matches!(asked.policy, Policy::Fifo | Policy::Reject) {
            let reason =
                format!("{}; a slicelsh has fifo and reject; choose one of these", asked.policy);
            return Err(Error::Config { field: "policy", reason });
        }
        let tables = asked.tables.clamp(1, super::TABLES_MAX);
        if tables != asked.tables {
            let reason = format!("{} is not in 1..={}", asked.tables, super::TABLES_MAX);
            return Err(Error::Config { field: "tables", reason });
        }
        let sizes = Sizes::of(asked)?;
        let wanted = match asked.ram_bytes {
            None => sizes.entries / INCARNATIONS,
            Some(ram_bytes) => {
                let empty = sizes.config(asked, sizes.buffer_entries(0));
                let others = empty.ram_bytes() - empty.buffer_bytes();
                let buffers = u64::from(sizes.partitions) + u64::from(sizes.spare_buffers());
                // A merge also has the order of a buffer.
                let entry = buffers * BucketBuffer::bytes_of(1) + 8;
                ram_bytes.saturating_sub(others) / entry
            }
        };
        let config = sizes.config(asked, sizes.buffer_entries(wanted));
        if let Some(most) = asked.ram_bytes.filter(|most| config.ram_bytes() > *most) {
            return Err(too_little_ram(most, config.ram_bytes()));
        }
        config.validate()?;
        Ok(config)
    }

    /// Returns the RAM that an index takes with one flush thread, in bytes: buffers, a merge, maps and its share of the
    /// log.
    #[must_use]
    pub fn ram_bytes(&self) -> u64 {
        let merge = merge_bytes(self, crate::options::IO_CHUNK_PAGES);
        self.buffer_bytes() + merge + u64::from(self.partitions) * PARTITION_BYTES + OTHER_BYTES
    }

    /// Returns the number of documents that it holds if none of them share buckets.
    #[must_use]
    pub fn documents_capacity(&self) -> u64 {
        u64::from(self.partitions) * u64::from(self.entries_max) / u64::from(self.tables)
    }

    /// Returns the device operations of a document, once slicetables are full.
    pub(super) fn document_costs(&self) -> OperationCosts {
        let merge_bytes = (u64::from(self.block_pages()) * PAGE_BYTES) as f64;
        let share = f64::from(self.tables) / f64::from(self.buffer_entries);
        let log_bytes = nandex_store::log::format::written_bytes(
            update_bytes(self.tables),
            nandex_store::log::LogRegion::BLOCK_BYTES_DEFAULT,
        );
        OperationCosts {
            reads_per_hit: self.tables.into(),
            reads_per_miss: self.tables.into(),
            insert_read_bytes: merge_bytes * share,
            insert_write_bytes: merge_bytes * share + log_bytes,
            updates: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ram_decides_how_often_a_document_is_written() {
        let asked = NeighborsRequirements::new(10_000_000, 10);
        let free = Config::advised(&asked).unwrap();
        assert!((INCARNATIONS as f64 - free.incarnations()).abs() < 1.0, "{free:?}");
        assert!(free.documents_capacity() >= asked.documents);
        let per_document = free.ram_bytes() as f64 / asked.documents as f64;
        assert!(per_document < 16.0, "{per_document}");
        let of = |ram_bytes| {
            let asked = NeighborsRequirements { ram_bytes: Some(ram_bytes), ..asked.clone() };
            Config::advised(&asked).inspect(|config| {
                assert!(config.ram_bytes() <= ram_bytes && config.ram_bytes() > ram_bytes * 9 / 10);
            })
        };
        let (less, more) = (of(96 << 20).unwrap(), of(160 << 20).unwrap());
        assert!(less.incarnations() > more.incarnations());
        let written = |config: &Config| config.document_costs().insert_write_bytes;
        assert!(written(&less) > written(&more));
        let refused = of(8 << 20).unwrap_err().to_string();
        assert!(refused.starts_with("RAM: ") && refused.contains("needs"), "{refused}");
    }

    #[test]
    fn what_cannot_be_is_refused_by_name() {
        let fine = NeighborsRequirements::new(1000, 10);
        let refused = |asked: NeighborsRequirements, field: &str| {
            let text = Config::advised(&asked).unwrap_err().to_string();
            assert!(text.starts_with(&format!("{field}: ")), "{text}");
        };
        refused(NeighborsRequirements { documents: 0, ..fine.clone() }, "documents");
        refused(NeighborsRequirements { tables: 0, ..fine.clone() }, "tables");
        refused(NeighborsRequirements { tables: 65, ..fine.clone() }, "tables");
        refused(NeighborsRequirements { bucket_ids_max: 0, ..fine.clone() }, "bucket_ids_max");
        refused(NeighborsRequirements { policy: Policy::Grow, ..fine.clone() }, "policy");
        refused(NeighborsRequirements { family: vec![0; 300], ..fine.clone() }, "family");
        Config::advised(&fine).unwrap().validate().unwrap();
        Config::advised(&NeighborsRequirements::new(1, 1)).unwrap().validate().unwrap();
    }
}
