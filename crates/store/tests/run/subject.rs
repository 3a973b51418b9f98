//! The smallest structure based on runs: a list of them, newest last, in memory and in checkpoints. It adds runs and
//! merges all of them into one; extents come from the volume and are returned to it.

use nandex_store::IoChunks;
use std::sync::{Arc, Mutex};

use nandex_device::{Device, PageBuf, PageId};
use nandex_store::bytes::Reader;
use nandex_store::fingerprint::Universe;
use nandex_store::reads::LookupStep;
use nandex_store::run::{
    Entry, Merge, MergeOptions, Run, RunPlace, RunReader, RunShape, RunWriter, Source,
};
use nandex_store::space::Extent;
use nandex_store::{
    Captured, Durability, Error, Result, Structure, Threads, Volume, VolumeOpenOptions,
    VolumeOptions,
};

use crate::part::Part;

/// Two pages a chunk, so that each run takes several.
pub const CHUNKS: IoChunks = IoChunks { chunk_pages: 2, chunks: 2 };

const UNIVERSE: u64 = 1 << 40;

pub fn universe() -> Universe {
    Universe::new(UNIVERSE).unwrap()
}

/// Returns the entries of a run, determined by its number: 600 fingerprints of its own, and 150 that all runs have.
pub fn entries(number: u64) -> Vec<Entry> {
    let own = (0..600).map(|at| (at << 30) + (at * 77 + number) % 1000 * 1_000_000 + number);
    let common = (0..150).map(|at| (at << 32) + at * 1_234_567);
    let mut all: Vec<_> =
        own.chain(common).map(|fingerprint| Entry { fingerprint, count: 1 }).collect();
    all.sort_unstable();
    all.dedup();
    all
}

#[derive(Clone, Default)]
struct Kept {
    /// The last generation issued. After a crash it continues from the volume's epoch.
    generation: u64,
    /// Runs that were ever added are numbered from 1 up; the list is the sum of this number of runs.
    added: u64,
    runs: Vec<Run>,
    /// The extents that the last capture has named: only a checkpoint may free them.
    captured: Vec<Extent>,
}

impl Kept {
    fn extents(&self) -> Vec<Extent> {
        self.runs.iter().map(|run| run.place().extent).collect()
    }
}

pub struct Subject {
    volume: Volume,
    kept: Arc<Mutex<Kept>>,
    structure: Structure,
    _part: Arc<Part>,
}

impl Subject {
    /// Creates a volume with an empty subject.
    pub fn create(device: Arc<dyn Device>) -> Result<Self> {
        let (durability, threads, volume_id) = (Durability::Never, Threads::Inline, Some(1));
        let options = VolumeOptions { durability, threads, volume_id, ..VolumeOptions::tiny() };
        let volume = Volume::create(device, options)?;
        let structure = volume.create_structure("r", "runs", Vec::new(), 0)?;
        Self::assemble(volume, structure)
    }

    /// Opens the subject of an existing volume.
    pub fn open(device: Arc<dyn Device>) -> Result<Self> {
        let (durability, threads) = (Durability::Never, Threads::Inline);
        let volume = Volume::open(
            device,
            VolumeOpenOptions {
                durability,
                log_device: None,
                threads,
                ..VolumeOpenOptions::default()
            },
        )?;
        let structure = volume.open_structure("r", "runs")?;
        Self::assemble(volume, structure)
    }

    fn assemble(volume: Volume, structure: Structure) -> Result<Self> {
        let mut kept = Kept { generation: volume.epoch() << 32, ..Kept::default() };
        if !structure.state.is_empty() {
            let mut reader = Reader::new(&structure.state, "runs", PageId(0));
            kept.added = reader.u64()?;
            for _ in 0..reader.count(1)? {
                kept.runs.push(Run::decode(structure.id, universe(), &mut reader)?);
            }
            kept.captured = kept.extents();
            assert_eq!(kept.captured, structure.extents, "the catalog has the runs' extents");
        }
        let kept = Arc::new(Mutex::new(kept));
        let (captured, of_log) = (Arc::clone(&kept), volume.clone());
        let part = Part::new(move || {
            let mut kept = captured.lock().unwrap();
            kept.captured = kept.extents();
            let mut state = kept.added.to_le_bytes().to_vec();
            state.extend((kept.runs.len() as u32).to_le_bytes());
            kept.runs.iter().for_each(|run| run.encode(&mut state));
            let extents = Some(kept.captured.clone());
            Captured { state, tail: of_log.log().next_lsn(), extents }
        });
        let part = part.register(&volume, &structure);
        Ok(Self { volume, kept, structure, _part: part })
    }

    pub fn volume(&self) -> &Volume {
        &self.volume
    }

    pub fn runs(&self) -> Vec<Run> {
        self.kept.lock().unwrap().runs.clone()
    }

    /// The number of runs that were added, whether or not they were merged since.
    pub fn added(&self) -> u64 {
        self.kept.lock().unwrap().added
    }

    /// Writes a run; frees its extent if that fails.
    fn write(&self, count: u64, source: &mut dyn Source) -> Result<Run> {
        let shape = RunShape::for_entries(universe(), count, count / 4);
        let extent = self.volume().allocate(shape.pages())?;
        let generation = {
            let mut kept = self.kept.lock().unwrap();
            kept.generation += 1;
            kept.generation
        };
        let place = RunPlace { structure: self.structure.id, extent, generation };
        match self.fill(place, shape, source) {
            Ok(mut run) => {
                run.trim().into_iter().for_each(|rest| self.volume().give_back(rest));
                Ok(run)
            }
            Err(error) => {
                self.volume().give_back(extent);
                Err(error)
            }
        }
    }

    fn fill(&self, place: RunPlace, shape: RunShape, source: &mut dyn Source) -> Result<Run> {
        let volume = self.volume();
        let poison = Arc::clone(volume.poison());
        let mut writer = RunWriter::new(&**volume.device(), poison, place, shape, CHUNKS)?;
        let mut batch = Vec::new();
        while source.next_batch(&mut batch)? {
            writer.push(&batch)?;
            batch.clear();
        }
        writer.finish()
    }

    /// Adds the next run.
    pub fn add(&self) -> Result<()> {
        let entries = entries(self.added() + 1);
        let count = entries.len() as u64;
        let run = self.write(count, &mut nandex_store::run::Sorted::new(entries))?;
        let mut kept = self.kept.lock().unwrap();
        kept.runs.push(run);
        kept.added += 1;
        Ok(())
    }

    /// Merges all runs into one, which replaces them in one step.
    pub fn merge(&self) -> Result<()> {
        let runs = self.runs();
        let reader = |run: &Run| -> Result<Box<dyn Source>> {
            Ok(Box::new(RunReader::new(&**self.volume().device(), run, CHUNKS)?))
        };
        let sources = runs.iter().map(reader).collect::<Result<_>>()?;
        let count = runs.iter().map(Run::entries).sum();
        let merged =
            self.write(count, &mut Merge::new(sources, MergeOptions { drop_negative: true }))?;
        let mut kept = self.kept.lock().unwrap();
        let before = std::mem::replace(&mut kept.runs, vec![merged]);
        let extents = before.iter().map(|run| run.place().extent);
        let unnamed = extents.filter(|extent| !kept.captured.contains(extent));
        unnamed.for_each(|extent| self.volume().give_back(extent));
        Ok(())
    }

    /// Returns the sum of all runs, streamed.
    pub fn contents(&self) -> Result<Vec<Entry>> {
        let device = &**self.volume().device();
        let reader = |run: &Run| -> Result<Box<dyn Source>> {
            Ok(Box::new(RunReader::new(device, run, CHUNKS)?))
        };
        let sources = self.runs().iter().map(reader).collect::<Result<_>>()?;
        let (mut merge, mut all) = (Merge::new(sources, MergeOptions::default()), Vec::new());
        while merge.next_batch(&mut all)? {}
        Ok(all)
    }

    /// Returns the count of a fingerprint, with one lookup in each run.
    pub fn count(&self, fingerprint: u64) -> Result<i64> {
        self.runs().iter().map(|run| self.count_in(run, fingerprint)).sum()
    }

    fn count_in(&self, run: &Run, fingerprint: u64) -> Result<i64> {
        let mut page = run.page_of(fingerprint);
        loop {
            let bytes = self.volume().device().read(page, PageBuf::zeroed(1))?;
            match run.look(page, &bytes, fingerprint)? {
                LookupStep::Answer(count) => return Ok(count),
                LookupStep::Read(next) => page = next,
            }
        }
    }

    /// The number of pages that are neither free nor a run's.
    pub fn other_pages(&self) -> u64 {
        let (stats, runs) = (self.volume().stats(), self.runs());
        let of_runs: u64 = runs.iter().map(|run| run.place().extent.pages).sum();
        stats.pages - stats.free_pages - of_runs
    }
}

/// Returns the sum of a list to which `added` runs were added.
pub fn expected(added: u64) -> Vec<Entry> {
    let mut sums = std::collections::BTreeMap::new();
    for entry in (1..=added).flat_map(entries) {
        *sums.entry(entry.fingerprint).or_insert(0) += entry.count;
    }
    sums.into_iter().map(|(fingerprint, count)| Entry { fingerprint, count }).collect()
}

/// Returns whether the error is damage.
pub fn is_corrupt(error: &Error) -> bool {
    matches!(error, Error::Corrupt { .. })
}
