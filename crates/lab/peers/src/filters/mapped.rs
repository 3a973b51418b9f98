//! A plain Bloom filter in a mapped file: the baseline that thrashes.
//!
//! * The number of probes is the best one for the rate. Bits are anywhere, so an insert touches as many
//!   pages as there are probes, and a lookup of an absent key two on average.
//! * A bit that is set already is not written again, so its page stays clean.
//! * The file is first written whole with zeros: holes would be filled without a read, which would flatter
//!   it.
//! * With `MADV_RANDOM` a fault reads one page; without it as much as the kernel reads ahead.
//! * A batch is a loop: page faults do not overlap within a thread, only between threads.

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, Result};
use memmap2::{Advice, MmapRaw};
use nandex_bench::subject::{Client, Spec, Status, Subject, yes};

use crate::bloom::{Plain, hash};

/// The kernel's advice on the order of accesses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReadAhead {
    /// No advice.
    Usual,
    /// Random accesses.
    Off,
}

/// An open filter.
pub struct Mapped {
    filter: Plain,
    map: MmapRaw,
    keys: AtomicU64,
}

impl Mapped {
    /// Creates an empty filter.
    pub fn create(spec: &Spec, advice: ReadAhead) -> Result<Self> {
        let filter = Plain::for_rate(spec.entries, spec.rate);
        let path = path(spec);
        let mut file =
            File::create(&path).with_context(|| format!("creating {}", path.display()))?;
        let zeros = vec![0; 1 << 20];
        let mut left = filter.bits / 8;
        while left > 0 {
            let some = left.min(1 << 20);
            file.write_all(&zeros[..usize::try_from(some)?])?;
            left -= some;
        }
        file.sync_all()?;
        let mapped = Self::open(spec, advice)?;
        mapped.keys.store(0, Ordering::Relaxed);
        Ok(mapped)
    }

    /// Opens the filter that `create` made.
    pub fn open(spec: &Spec, advice: ReadAhead) -> Result<Self> {
        let filter = Plain::for_rate(spec.entries, spec.rate);
        let path = path(spec);
        let file = File::options().read(true).write(true).open(&path);
        let file = file.with_context(|| format!("opening {}", path.display()))?;
        let map = MmapRaw::map_raw(&file)?;
        anyhow::ensure!(map.len() as u64 == filter.bits / 8, "{} is not its size", path.display());
        if advice == ReadAhead::Off {
            map.advise(Advice::Random)?;
        }
        Ok(Self { filter, map, keys: spec.entries.into() })
    }

    fn words(&self) -> &[AtomicU64] {
        let words = self.map.as_mut_ptr().cast::<AtomicU64>();
        // SAFETY: the map begins on a page, is whole pages long and lives as long as self; all access in this
        // process is by these atomics, and the file belongs to this benchmark alone, so no other process
        // truncates it.
        unsafe { std::slice::from_raw_parts(words, self.map.len() / 8) }
    }

    fn insert(&self, key: u64) {
        let (hash, words) = (hash(key), self.words());
        for probe in 0..self.filter.probes {
            let bit = self.filter.bit(hash, probe);
            let (word, mask) = (&words[(bit / 64) as usize], 1 << (bit % 64));
            if word.load(Ordering::Relaxed) & mask == 0 {
                word.fetch_or(mask, Ordering::Relaxed);
            }
        }
    }

    fn contains(&self, key: u64) -> bool {
        let (hash, words) = (hash(key), self.words());
        (0..self.filter.probes).all(|probe| {
            let bit = self.filter.bit(hash, probe);
            words[(bit / 64) as usize].load(Ordering::Relaxed) & (1 << (bit % 64)) != 0
        })
    }
}

fn path(spec: &Spec) -> PathBuf {
    spec.dir.join("mapped.bloom")
}

impl Subject for Mapped {
    fn client(&self) -> Result<Box<dyn Client + '_>> {
        Ok(Box::new(self))
    }

    fn sync(&self) -> Result<()> {
        Ok(self.map.flush()?)
    }

    fn settle(&self) -> Result<()> {
        self.sync()
    }

    fn status(&self) -> Status {
        let keys = self.keys.load(Ordering::Relaxed);
        Status {
            entries: Some(keys),
            ram_bytes: Some(0),
            flash_bytes: self.filter.bits / 8,
            rate: self.filter.rate(keys),
            ..Status::default()
        }
    }
}

impl Client for &Mapped {
    fn insert(&mut self, key: u64, value: u64) -> Result<()> {
        self.insert_many(&[(key, value)])
    }

    fn insert_many(&mut self, pairs: &[(u64, u64)]) -> Result<()> {
        pairs.iter().for_each(|&(key, _)| Mapped::insert(self, key));
        self.keys.fetch_add(pairs.len() as u64, Ordering::Relaxed);
        Ok(())
    }

    fn get(&mut self, key: u64) -> Result<Option<u64>> {
        Ok(yes(self.contains(key)))
    }

    fn get_many(&mut self, keys: &[u64], found: &mut Vec<Option<u64>>) -> Result<()> {
        found.extend(keys.iter().map(|&key| yes(self.contains(key))));
        Ok(())
    }
}
