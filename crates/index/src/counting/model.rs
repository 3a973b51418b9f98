//! The advisor of counting tables: the size of buffers for a RAM budget, the number of partitions, the discipline that
//! suits, and its cost.
//!
//! With `q` keys of `e` bytes on flash (the key, a byte for its count, at a fill of 92 %) and buffers of `M` keys when
//! all are full, a buffer has `m = M / q` of its partition's keys:
//!
//! - **MB** rewrites the data segment for each full buffer: `e / m` bytes are written for each key of a buffer, and a
//!   query reads a page.
//! - **MDB** and **MDB-L** with a change segment of a share `c` stage `floor(c / m)` buffers before they merge. Each
//!   key is written once more, and the data segment is rewritten once for all of them: `e + e / (m (floor(c / m) +
//!   1))`. A query reads one page of the change segment for each time that its key occurs there: `c / 2` pages on
//!   average for a uniform stream.
//!
//! So a change segment pays off once it takes at least one buffer, and with more queries than updates none may pay off
//! at all.

use nandex_store::bisect::least_between;
use nandex_store::hash::{HashKind, KeyHasher};

use super::buffer::BufferShape;
use super::config::{BLOCK_PAGES, KEYS_MAX};
use super::keys::KeyPlacing;
use super::segment::{READ_SEGMENTS, SegmentFilter};
use super::{Config, Discipline, Keys};
use crate::model::text::bytes;
use crate::model::{FilterRequirements, OperationCosts, PAGE_BYTES};
use crate::options::MERGE_THREADS;
use crate::{Error, Result};

/// RAM that does not depend on sizes: eight blocks of the log, and the pages of a batch of queries.
const FIXED_RAM_BYTES: u64 = (8 << 17) + 32 * PAGE_BYTES;

/// Pages of a partition's data segment that the advisor aims at: a merge then takes some milliseconds.
const PARTITION_PAGES: u64 = 1024;

/// The fewest keys of a partition's buffer, if there are enough: fewer are not worth a merge.
const BUFFER_ENTRIES_MIN: u64 = 512;

/// The I/O chunks in memory for each segment of a merge, and the segments of a merge: those that it reads, and the new
/// one.
const CHUNKS: u64 = 3;
const MERGED_SEGMENTS: u64 = READ_SEGMENTS as u64 + 1;

/// The divisor of the buffers' RAM that limits I/O chunks.
const CHUNKS_SHARE: u64 = 6;

/// Updates for each query above which a change segment is advised.
const UPDATES_PER_QUERY: f64 = 0.5;

impl Config {
    /// Returns the configuration with the largest buffers that fit the RAM, for `q` different keys and a stream with
    /// `updates_per_query` updates for each query.
    ///
    /// # Errors
    /// [`Error::Config`] for impossible keys, and for too little RAM, with the least that is enough.
    pub fn for_budget(keys: Keys, q: u64, ram_bytes: u64, updates_per_query: f64) -> Result<Self> {
        let wants_change_segment = updates_per_query >= UPDATES_PER_QUERY;
        let staged = fitted(keys, q, ram_bytes, Discipline::MdbL)?;
        if wants_change_segment && staged.stages() > 0 {
            return Ok(staged);
        }
        fitted(keys, q, ram_bytes, Discipline::Mb)
    }

    /// Returns the configuration of this discipline with the largest buffers that fit the RAM, whether or not it suits.
    ///
    /// # Errors
    /// As [`for_budget`](Self::for_budget).
    pub fn of_discipline(
        discipline: Discipline,
        keys: Keys,
        q: u64,
        ram_bytes: u64,
    ) -> Result<Self> {
        fitted(keys, q, ram_bytes, discipline)
    }

    /// Returns the configuration for the requirements of a filter: whole keys, or fingerprints of the width that
    /// reaches the rate.
    ///
    /// # Errors
    /// As [`for_budget`](Self::for_budget).
    pub fn advised(requirements: &FilterRequirements) -> Result<Self> {
        let FilterRequirements { keys: q, ram_bytes, .. } = *requirements;
        Self::for_budget(Keys::advised(requirements)?, q, ram_bytes, 1.0)
    }

    /// Bytes of flash for each key.
    #[must_use]
    pub fn key_flash_bytes(&self) -> f64 {
        (self.blocks() * u64::from(self.block_pages) * PAGE_BYTES) as f64 / self.q as f64
    }

    /// Returns the number of buffers that the change segment takes between two merges of a partition.
    fn stages(&self) -> u64 {
        let pages_share = u64::from(self.change_permille) * self.q / 1000;
        match self.discipline {
            Discipline::Mb => 0,
            Discipline::Mdb | Discipline::MdbL => pages_share / self.buffer_entries.max(1),
        }
    }

    /// Returns the bytes written for each different key of a buffer, and the bytes read by merges, without the log.
    fn bytes_per_key(&self) -> (f64, f64) {
        let each = (self.keys.stored_bytes() + 1) as f64 / 0.92;
        let buffers = self.q as f64 / self.buffer_entries as f64;
        let stages = self.stages() as f64;
        let staged = if stages > 0.0 { each * stages / (stages + 1.0) } else { 0.0 };
        let merged = each * buffers / (stages + 1.0);
        (staged + merged, staged + merged)
    }

    /// Returns the costs of operations with `q` keys, with each of a buffer's keys changed once.
    pub(super) fn operation_costs(&self) -> OperationCosts {
        let (written, read) = self.bytes_per_key();
        let staged = match self.stages() {
            0 => 0.0,
            _ => f64::from(self.change_permille) / 2000.0,
        };
        let (short, _) = super::format::record_bytes(self.keys.stored_bytes());
        OperationCosts {
            reads_per_hit: 1.0 + staged,
            reads_per_miss: 1.0 + 0.02 * staged,
            insert_read_bytes: read,
            insert_write_bytes: written + short as f64,
            updates: None,
        }
    }

    /// RAM in all, in bytes.
    #[must_use]
    pub fn ram_bytes(&self) -> u64 {
        let shape = self.buffer_shape();
        let staged = match self.discipline {
            Discipline::Mb => 0,
            _ => SegmentFilter::bytes_for(self.q / 1000 * u64::from(self.change_permille)),
        };
        shape.bytes_max() + staged + self.partitions() * 1500 + self.shared_ram_bytes()
    }

    /// Returns the part of the RAM that structures of a volume share: merges, and the fixed part.
    pub(super) fn shared_ram_bytes(&self) -> u64 {
        let threads = MERGE_THREADS as u64;
        let chunk_bytes = CHUNKS * u64::from(self.io_chunk_pages()) * PAGE_BYTES;
        let sorted_bytes = 2 * self.partition_entries() * (24 + self.keys.stored_bytes() as u64);
        threads * (MERGED_SEGMENTS * chunk_bytes + sorted_bytes) + FIXED_RAM_BYTES
    }
}

/// Returns the configuration of a discipline with the largest buffers that fit the RAM.
fn fitted(keys: Keys, q: u64, ram_bytes: u64, discipline: Discipline) -> Result<Config> {
    if !(1..=KEYS_MAX).contains(&q) {
        let reason = format!("{q}; a counting table is made for 1 to 2^48 different keys");
        return Err(Error::Config { field: "keys", reason });
    }
    let with_buffers = |entries| with_buffers(keys, q, entries, discipline);
    with_buffers(1).validate()?;
    let partitions = with_buffers(1).partitions();
    let least = with_buffers((partitions * BUFFER_ENTRIES_MIN).min(q.max(partitions)));
    let needed = least.ram_bytes();
    if needed > ram_bytes {
        let reason = format!(
            "{ram_bytes} bytes ({}); a counting table for {q} keys of {} bytes needs {needed} ({})",
            bytes(ram_bytes),
            keys.stored_bytes(),
            bytes(needed)
        );
        return Err(Error::TooLittleRam { field: "ram_bytes", reason });
    }
    let too_many = 2 * q.max(least.buffer_entries) + 1;
    let is_over = |entries| with_buffers(entries).ram_bytes() > ram_bytes;
    let config = with_buffers(least_between(least.buffer_entries, too_many, is_over) - 1);
    config.validate()?;
    Ok(config)
}

impl Config {
    /// Returns the shape of its buffers, whatever the volume's hash function.
    fn buffer_shape(&self) -> BufferShape {
        let hasher = KeyHasher::new(HashKind::default(), 0);
        let placing = KeyPlacing { keys: self.keys, hasher, partitions: self.partitions() };
        BufferShape { placing, entries_max: self.partition_entries() }
    }
}

fn with_buffers(keys: Keys, q: u64, buffer_entries: u64, discipline: Discipline) -> Config {
    let k = (PARTITION_PAGES / u64::from(BLOCK_PAGES)) as u32;
    let base = Config { k, discipline, keys, ..Config::whole(1, q, buffer_entries) };
    // With very many keys, partitions have more blocks.
    let times = base.partitions().div_ceil(8192).max(1) as u32;
    let config = Config { k: k * times, ..base };
    Config { buffer_entries: buffer_entries.max(config.partitions()), ..config }
}

impl Config {
    /// Pages of an I/O chunk: small ones for small tables, as [`for_budget`](Self::for_budget) assumes.
    pub(super) fn io_chunk_pages(&self) -> u32 {
        let pages = self.blocks().min(self.k.into()) * u64::from(self.block_pages);
        let chunks = CHUNKS * MERGED_SEGMENTS * MERGE_THREADS as u64;
        let share = self.buffer_shape().bytes_max() / CHUNKS_SHARE / chunks / PAGE_BYTES;
        share.min(pages / 8).clamp(4, 64) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::StoredKeys;

    #[test]
    fn buffers_fill_the_budget_and_never_more() {
        for (q, ram_bytes) in [(64_000_000, 160 << 20), (1 << 30, 1 << 30), (5_000_000, 40 << 20)] {
            let config = Config::for_budget(Keys::Whole(8), q, ram_bytes, 1.0).unwrap();
            let taken = config.ram_bytes();
            assert!((ram_bytes / 100 * 98..=ram_bytes).contains(&taken), "{config:?}: {taken}");
        }
        let error =
            Config::for_budget(Keys::Whole(8), 1 << 30, 1 << 20, 1.0).unwrap_err().to_string();
        assert!(
            error.starts_with("ram_bytes: 1048576 bytes (1.00 MiB); a counting table"),
            "{error}"
        );
    }

    /// The filters of staged segments take RAM that MB leaves to buffers.
    #[test]
    fn each_discipline_fills_the_budget_with_what_it_needs_itself() {
        let q = 64_000_000;
        for ram_bytes in [48 << 20, 500 << 20] {
            let fitting = |discipline| {
                Config::of_discipline(discipline, Keys::Whole(8), q, ram_bytes).unwrap()
            };
            let all = [Discipline::Mb, Discipline::Mdb, Discipline::MdbL].map(fitting);
            for config in &all {
                let taken = config.ram_bytes();
                assert!((ram_bytes / 100 * 98..=ram_bytes).contains(&taken), "{config:?}: {taken}");
            }
            let [mb, mdb, mdb_l] = all.map(|config| config.buffer_entries);
            assert!(mb > mdb && mdb == mdb_l, "{mb} {mdb} {mdb_l}");
            let forced = Config { discipline: Discipline::MdbL, ..all[0] };
            assert!(forced.ram_bytes() > ram_bytes, "another discipline's buffers do not fit");
        }
    }

    #[test]
    fn requirements_say_what_is_stored_and_a_discipline_is_taken_as_it_is() {
        let asked = FilterRequirements::new(64_000_000, 1e-9, 200 << 20);
        let fingerprints = Config::advised(&asked).unwrap();
        assert_eq!(fingerprints.keys, Keys::Fingerprints(7));
        let asked = FilterRequirements { stored_keys: StoredKeys::Whole(8), ..asked };
        let whole = Config::advised(&asked).unwrap();
        assert_eq!(whole.keys, Keys::Whole(8));
        for discipline in [Discipline::Mb, Discipline::Mdb, Discipline::MdbL] {
            let (q, ram_bytes) = (asked.keys, asked.ram_bytes);
            let config = Config::of_discipline(discipline, whole.keys, q, ram_bytes).unwrap();
            assert_eq!(config.discipline, discipline);
            assert!(config.ram_bytes() <= ram_bytes, "{config:?}");
        }
        let wide = FilterRequirements { stored_keys: StoredKeys::Whole(33), ..asked };
        assert!(Config::advised(&wide).unwrap_err().to_string().starts_with("keys: 33 bytes"));
    }

    #[test]
    fn a_change_segment_is_advised_where_it_takes_a_buffer_and_updates_are_many() {
        let config = |ram_bytes: u64, updates: f64| {
            Config::for_budget(Keys::Whole(8), 64_000_000, ram_bytes, updates).unwrap().discipline
        };
        assert_eq!(
            config(500 << 20, 10.0),
            Discipline::Mb,
            "buffers larger than the change segment"
        );
        assert_eq!(config(48 << 20, 10.0), Discipline::MdbL);
        assert_eq!(config(48 << 20, 0.1), Discipline::Mb, "queries");
    }
}
