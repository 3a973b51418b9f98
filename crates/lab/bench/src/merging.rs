//! The merge of two indexes: entries a second, bytes, and the share of the disk's sequential bandwidth.
//!
//! Both are filled with unique keys, a stated share of which is in both, closed, and reopened read-only. Then
//! the merge is timed until the new index is closed: all operations counted are on files with direct I/O. The
//! limits of the same disk are measured before and after.
//!
//! For comparison the output has the paper's figure (NSDI'10, section 3): there each key of one index is
//! looked up in the other, which "could take as long as 2hrs" with Berkeley DB and less than two minutes with
//! BufferHash. It states no sizes; at its 6.8 ms of a lookup two hours are a million keys. So the model here
//! is by key, from the paper's mean latencies: none of it is measured here.

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use nandex::device::{Access, Create, Device, FileDevice, FileOptions};
use nandex::raw::Absorbed;
use nandex::raw::device::{Counted, Counts};
use nandex::raw::device::{Overlay, PAGE_BYTES};
use nandex::{
    AbsorbOptions, AnyTable, Durability, OpenOptions, Policy, Requirements, Table, Volume,
    VolumeOpenOptions, VolumeOptions, count_shared,
};
use serde::Serialize;

use crate::keys::KeySpace;
use crate::limit::Scratch;

/// Entries in a call while the indexes are filled.
const BATCH: u64 = 1024;
/// The hash key of all volumes that hash alike.
const HASH_KEY: u128 = 7;
/// The bytes of each index of the pair that figures are scaled to: half of section 3's data for
/// deduplication.
const PAIR_BYTES: f64 = 10e9;

/// The costs of a merge that looks up each key of the second index, and inserts those that the first does not
/// have: mean latencies as the paper states them (sections 1 and 7.2.2, Figure 7), in milliseconds.
#[derive(Clone, Copy, Debug)]
struct ByKey {
    lookup_ms: f64,
    insert_ms: f64,
}

const BDB_ON_DISK: ByKey = ByKey { lookup_ms: 6.8, insert_ms: 7.0 };
const BDB_ON_SSD: ByKey = ByKey { lookup_ms: 4.6, insert_ms: 4.8 };
const CLAM: ByKey = ByKey { lookup_ms: 0.06, insert_ms: 0.006 };

impl ByKey {
    fn seconds(self, lookups: u64, inserts: u64) -> f64 {
        (lookups as f64 * self.lookup_ms + inserts as f64 * self.insert_ms) / 1e3
    }
}

/// The load of a merge.
#[derive(Clone, Debug)]
pub struct MergeLoad {
    /// The kind of all three tables.
    pub structure: &'static str,
    /// The entries of each index.
    pub entries: u64,
    /// The share of each one's keys that the other has too, 0 to 1.
    pub overlap: f64,
    /// Bytes of each key, at least 8.
    pub key_bytes: u32,
    /// Bytes of each value.
    pub value_bytes: u32,
    /// RAM for entries while they are merged.
    pub ram_bytes: u64,
    /// Whether the second index hashes keys otherwise.
    pub hashes_otherwise: bool,
    /// Whether the shared keys are only counted, without a new index.
    pub counts: bool,
    /// The bytes of the scratch on which the disk's bandwidth is measured.
    pub scratch_bytes: u64,
    /// The time for which each bandwidth is measured.
    pub limit_time: Duration,
}

/// The results of a merge.
#[derive(Clone, Debug, Serialize)]
pub struct MergeFigures {
    /// The kind of all tables.
    pub structure: &'static str,
    /// The entries of each index.
    pub entries: u64,
    /// Keys that both have.
    pub shared: u64,
    /// Different keys of both.
    pub keys: u64,
    /// The maximum number of times that a page was read.
    pub passes: u64,
    /// The time from the first read until the new index is closed.
    pub elapsed_s: f64,
    /// The entries of both for each of these seconds.
    pub entries_per_s: f64,
    /// The entries filled in a second, of the first index.
    pub fill_entries_per_s: f64,
    /// The bytes read from both, and from the new one.
    pub read_bytes: u64,
    /// Bytes of a read on average.
    pub bytes_per_read: f64,
    /// Bytes written to the new one.
    pub written_bytes: u64,
    /// Bytes of a write on average; 0 without a new index.
    pub bytes_per_write: f64,
    /// The sequential read bandwidth of the disk, the mean of before and after.
    pub device_read_bytes_per_s: f64,
    /// The sequential write bandwidth of the disk, the mean of before and after.
    pub device_write_bytes_per_s: f64,
    /// The time in which the disk moves these bytes in long sequential operations, reads and writes one after
    /// the other, over the time of the merge. Above 1 if the disk does both at once.
    pub bandwidth_share: f64,
    /// The RAM of versions and read-ahead.
    pub merge_ram_bytes: u64,
    /// Scaled: two indexes of 10 GB of such entries, at the same entries in a second.
    pub pair_of_10_gb_s: f64,
    /// Stated: the same merge by Berkeley DB on a disk, key by key with the paper's mean latencies.
    pub bdb_on_disk_stated_s: f64,
    /// Stated: the same on an SSD of Intel.
    pub bdb_on_ssd_stated_s: f64,
    /// Stated: the same by the paper's BufferHash on that SSD.
    pub clam_stated_s: f64,
}

/// A file that is removed when it is dropped.
struct PassingFile(PathBuf);

impl Drop for PassingFile {
    fn drop(&mut self) {
        // A file that cannot be removed is replaced by the next run.
        let _ = fs::remove_file(&self.0);
    }
}

/// A device that counts its operations.
type CountedFile = Arc<Counted<Arc<dyn Device>>>;

/// An index in a file of its own. The fields are dropped in this order: closing the table writes.
struct Index {
    table: AnyTable,
    device: CountedFile,
    file: PassingFile,
}

/// Fills both indexes in `dir`, merges them and measures the merge.
///
/// # Errors
/// Returns the errors of the file system and of the engine; reports counts that differ from the load's.
pub fn merge(dir: &Path, load: &MergeLoad) -> Result<MergeFigures> {
    let scratch = Scratch::in_dir(dir, load.scratch_bytes)?;
    let shared = (load.entries as f64 * load.overlap) as u64;
    let second_from = load.entries - shared;
    let start = Instant::now();
    let first = filled(dir.join("merge-first.nandex"), load, (HASH_KEY, 0..load.entries))?;
    let fill_entries_per_s = load.entries as f64 / start.elapsed().as_secs_f64();
    let hash_key = HASH_KEY + u128::from(load.hashes_otherwise);
    let numbers = second_from..second_from + load.entries;
    let second = filled(dir.join("merge-second.nandex"), load, (hash_key, numbers))?;
    let (first, second) = (first.reopened()?, second.reopened()?);
    let before = bandwidths(&scratch, load.limit_time)?;
    // The reads of the openings are excluded.
    let opened = [&first, &second].map(|index| index.device.snapshot());
    let start = Instant::now();
    let (found, made) = absorb(dir, load, [&first, &second])?;
    let elapsed_s = start.elapsed().as_secs_f64();
    let after = bandwidths(&scratch, load.limit_time)?;
    let keys = 2 * load.entries - shared;
    ensure!((found.keys, found.shared) == (keys, shared), "not {keys} and {shared}: {found:?}");
    let [read_bytes_per_s, write_bytes_per_s] =
        [0, 1].map(|at| f64::midpoint(before[at], after[at]));
    let bytes = |pages: u64| pages * PAGE_BYTES as u64;
    let each = |pages: u64, count: u64| bytes(pages) as f64 / count.max(1) as f64;
    let read = [0, 1].map(|at| [&first, &second][at].device.snapshot() - opened[at]);
    let reads = read.iter().map(|it| it.reads).sum::<u64>() + made.reads;
    let pages_read = read.iter().map(|it| it.pages_read).sum::<u64>() + made.pages_read;
    let entries_per_s = 2.0 * load.entries as f64 / elapsed_s;
    let pair = 2.0 * PAIR_BYTES / f64::from(load.key_bytes + load.value_bytes);
    let by_key = |it: ByKey| it.seconds(load.entries, load.entries - shared);
    let least_s = bytes(pages_read) as f64 / read_bytes_per_s
        + bytes(made.pages_written) as f64 / write_bytes_per_s;
    Ok(MergeFigures {
        structure: load.structure,
        entries: load.entries,
        shared: found.shared,
        keys: found.keys,
        passes: found.passes,
        elapsed_s,
        entries_per_s,
        fill_entries_per_s,
        read_bytes: bytes(pages_read),
        bytes_per_read: each(pages_read, reads),
        written_bytes: bytes(made.pages_written),
        bytes_per_write: each(made.pages_written, made.writes),
        device_read_bytes_per_s: read_bytes_per_s,
        device_write_bytes_per_s: write_bytes_per_s,
        bandwidth_share: least_s / elapsed_s,
        merge_ram_bytes: found.ram_bytes,
        pair_of_10_gb_s: pair / entries_per_s,
        bdb_on_disk_stated_s: by_key(BDB_ON_DISK),
        bdb_on_ssd_stated_s: by_key(BDB_ON_SSD),
        clam_stated_s: by_key(CLAM),
    })
}

/// Returns the sequential read and write bandwidths of the disk, in bytes per second.
fn bandwidths(scratch: &Scratch, time: Duration) -> Result<[f64; 2]> {
    Ok([scratch.read_bytes_per_s(time)?, scratch.write_bytes_per_s(time)?])
}

/// Merges into a new index, or counts; returns the operations of the new one's device.
fn absorb(dir: &Path, load: &MergeLoad, both: [&Index; 2]) -> Result<(Absorbed, Counts)> {
    let options = AbsorbOptions { ram_bytes: load.ram_bytes, ..AbsorbOptions::default() };
    let versions = [both[0].table.versions()?, both[1].table.versions()?];
    let watch = |_: f64| std::ops::ControlFlow::Continue(());
    if load.counts {
        return Ok((count_shared(&versions, &options, &watch)?, Counts::default()));
    }
    let made = Index::create(dir.join("merge-made.nandex"), load, 2 * load.entries, HASH_KEY)?;
    let Index { mut table, device, file: _file } = made;
    let before = device.snapshot();
    let found = table.absorb(&versions, &options, &watch)?;
    table.close()?;
    Ok((found, device.snapshot() - before))
}

/// Creates an index with the entries of these numbers.
fn filled(
    path: PathBuf,
    load: &MergeLoad,
    (hash_key, numbers): (u128, Range<u64>),
) -> Result<Index> {
    let index = Index::create(path, load, load.entries, hash_key)?;
    let table = &index.table;
    let (space, widths) = (KeySpace::new(1), (load.key_bytes as usize, load.value_bytes as usize));
    for first in numbers.clone().step_by(BATCH as usize) {
        let batch = first..(first + BATCH).min(numbers.end);
        let entries: Vec<_> = batch.map(|number| entry(space.key(number), widths)).collect();
        let pairs: Vec<(&[u8], &[u8])> =
            entries.iter().map(|(key, value)| (&key[..], &value[..])).collect();
        table.insert_many(&pairs)?;
    }
    Ok(index)
}

/// Returns a key and its value of these widths; the key begins with the number.
fn entry(number: u64, (key_bytes, value_bytes): (usize, usize)) -> (Vec<u8>, Vec<u8>) {
    let word = number.to_le_bytes();
    let repeated = |bytes: usize| word.iter().copied().cycle().take(bytes).collect::<Vec<_>>();
    (repeated(key_bytes), repeated(value_bytes))
}

impl Index {
    fn open_file(path: &Path, create: Create, access: Access) -> Result<CountedFile> {
        let options = FileOptions { create, access, ..FileOptions::default() };
        let device: Arc<dyn Device> = Arc::new(FileDevice::open(path, &options)?);
        Ok(Arc::new(Counted::new(device)))
    }

    fn create(path: PathBuf, load: &MergeLoad, entries: u64, hash_key: u128) -> Result<Self> {
        if path.exists() {
            fs::remove_file(&path).with_context(|| format!("removing {}", path.display()))?;
        }
        let asked = Requirements::new(entries, load.key_bytes, load.value_bytes);
        let asked = Requirements { policy: Policy::Reject, ..asked };
        let config = asked.advise_one(load.structure)?.config;
        let device = Self::open_file(&path, Create::New, Access::ReadWrite)?;
        let options = VolumeOptions {
            log_bytes: config.log_bytes_best(),
            durability: Durability::Never,
            hash_key: Some(hash_key),
            ..VolumeOptions::default()
        };
        let volume = Volume::create(device.clone(), options)?;
        let table = AnyTable::create(&volume, "t", &config)?;
        Ok(Self { table, device, file: PassingFile(path) })
    }

    /// Closes and reopens the index read-only, and counts its operations from there on.
    fn reopened(self) -> Result<Self> {
        let Self { table, device, file } = self;
        table.close()?;
        // The file's lock goes with it.
        drop(device);
        let device = Self::open_file(&file.0, Create::Open, Access::ReadOnly)?;
        let options =
            VolumeOpenOptions { access: Access::ReadOnly, ..VolumeOpenOptions::default() };
        // The writes of an opening stay in RAM.
        let volume = Volume::open(Arc::new(Overlay::new(device.clone())), options)?;
        let table = AnyTable::open_with(&volume, "t", &OpenOptions::default().inline())?;
        Ok(Self { table, device, file })
    }
}

impl MergeFigures {
    /// Returns the results as text.
    #[must_use]
    pub fn text(&self) -> String {
        let mb = |bytes: f64| bytes / 1e6;
        format!(
            "{structure}, {entries} entries each, {shared} keys in both, {keys} in all\n\
             {rate:.0} entries of both a second, {elapsed:.2} s, {passes} pass(es); \
             filled at {fill:.0} a second\n\
             read {read:.0} MB in reads of {per_read:.0} KB; \
             written {written:.0} MB in writes of {per_write:.0} KB\n\
             the disk reads {disk_read:.0} MB/s and writes {disk_written:.0} MB/s in sequence: \
             {share:.0} % of that\n\
             {ram:.0} MB of RAM for entries\n\
             scaled: two indexes of 10 GB in {pair:.0} s\n\
             stated, key by key with the paper's latencies: Berkeley DB {disk:.0} s on a disk \
             and {ssd:.0} s on an SSD, CLAM {clam:.0} s\n",
            structure = self.structure,
            entries = self.entries,
            shared = self.shared,
            keys = self.keys,
            rate = self.entries_per_s,
            elapsed = self.elapsed_s,
            passes = self.passes,
            fill = self.fill_entries_per_s,
            read = mb(self.read_bytes as f64),
            per_read = self.bytes_per_read / 1e3,
            written = mb(self.written_bytes as f64),
            per_write = self.bytes_per_write / 1e3,
            disk_read = mb(self.device_read_bytes_per_s),
            disk_written = mb(self.device_write_bytes_per_s),
            share = self.bandwidth_share * 100.0,
            ram = mb(self.merge_ram_bytes as f64),
            pair = self.pair_of_10_gb_s,
            disk = self.bdb_on_disk_stated_s,
            ssd = self.bdb_on_ssd_stated_s,
            clam = self.clam_stated_s,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(structure: &'static str) -> MergeLoad {
        MergeLoad {
            structure,
            entries: 30_000,
            overlap: 0.4,
            key_bytes: 16,
            value_bytes: 16,
            ram_bytes: 64 << 20,
            hashes_otherwise: false,
            counts: false,
            scratch_bytes: 1 << 20,
            limit_time: Duration::from_millis(2),
        }
    }

    #[test]
    fn two_indexes_merge_with_the_overlap_that_was_stated() {
        let dir = tempfile::tempdir().unwrap();
        for structure in ["bufferhash", "slicehash"] {
            let figures = merge(dir.path(), &load(structure)).unwrap();
            assert_eq!((figures.shared, figures.keys, figures.passes), (12_000, 48_000, 1));
            // Each entry is read, and each different one written: 32 bytes, and the unused space of pages.
            let (read, written) = (figures.read_bytes, figures.written_bytes);
            assert!((60_000 * 32..240_000 * 32).contains(&read), "{figures:?}");
            assert!((48_000 * 32..240_000 * 32).contains(&written), "{figures:?}");
            assert!(figures.bandwidth_share > 0.0 && figures.text().contains("12000 keys in both"));
            // 30,000 lookups, and 18,000 inserts of keys that are new.
            let stated = figures.bdb_on_disk_stated_s;
            assert!((stated - (30.0 * 6.8 + 18.0 * 7.0)).abs() < 1e-6, "{stated}");
            let pair = figures.pair_of_10_gb_s * figures.entries_per_s;
            assert!((pair - 625e6).abs() < 1.0, "{pair} entries");
        }
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0, "all files are gone");
    }

    #[test]
    fn the_papers_two_hours_are_a_million_lookups() {
        let hours = BDB_ON_DISK.seconds(1_060_000, 0) / 3600.0;
        assert!((1.9..2.1).contains(&hours), "{hours}");
        // And its two minutes are enough for as many, if all of them are new.
        assert!(CLAM.seconds(1_060_000, 1_060_000) < 120.0);
    }

    #[test]
    fn a_count_writes_nothing_and_another_hash_is_merged_too() {
        let dir = tempfile::tempdir().unwrap();
        let counted = merge(dir.path(), &MergeLoad { counts: true, ..load("slicehash") }).unwrap();
        assert_eq!((counted.shared, counted.written_bytes), (12_000, 0));
        let other = MergeLoad { hashes_otherwise: true, ..load("bufferhash") };
        assert_eq!(merge(dir.path(), &other).unwrap().keys, 48_000);
    }
}
