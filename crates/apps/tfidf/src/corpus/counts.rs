//! The counting tables of the index: the number of documents and of occurrences of each term.
//!
//! A pair of tables is filled once, from sorted runs, and then only read. The next fold fills the pair of the next
//! generation. So a crash leaves the pair that the state names whole, and perhaps another, unused one.

use nandex::counting::{self, Absorbing, BLOCK_PAGES, Config, Keys};
use nandex::raw::Stated;
use nandex::raw::counting::Counts;
use nandex::{Counting, OpenOptions, Volume};

use super::runs::Delta;
use crate::Result;
use crate::tokenise::TermKey;

/// The prefixes of the tables' names, before the generation.
const DF: &str = "tfidf-df-";
const CF: &str = "tfidf-cf-";

/// The most partitions; the tables' own limit is twice as high.
const PARTITIONS_MAX: u64 = 8192;

/// The number of terms looked up at a time.
const CHUNK: usize = 8192;

/// The tables of a generation.
#[derive(Debug)]
pub(super) struct CountTables {
    volume: Volume,
    generation: u64,
    df: Counting,
    cf: Counting,
}

impl CountTables {
    /// Creates empty tables for about `terms` terms.
    pub(super) fn create(
        volume: &Volume,
        (generation, terms): (u64, u64),
        stated: &Stated,
    ) -> Result<Self> {
        let (config, options) = (config(terms), options(stated)?);
        let create = |name: &str| {
            let name = format!("{name}{generation}");
            Counting::create_with(volume, &name, config, options.clone())
        };
        Ok(Self { volume: volume.clone(), generation, df: create(DF)?, cf: create(CF)? })
    }

    pub(super) fn open(volume: &Volume, generation: u64, stated: &Stated) -> Result<Self> {
        let options = options(stated)?;
        let open = |name: &str| {
            Counting::open_with(volume, &format!("{name}{generation}"), options.clone())
        };
        Ok(Self { volume: volume.clone(), generation, df: open(DF)?, cf: open(CF)? })
    }

    /// Begins to fill the tables.
    pub(super) fn filling(&self) -> Filling<'_> {
        Filling { df: self.df.absorb_sorted(), cf: self.cf.absorb_sorted() }
    }

    /// Returns the documents and occurrences of all terms, in the order of runs.
    pub(super) fn iter(&self) -> [Counts; 2] {
        [self.df.iter(), self.cf.iter()]
    }

    /// Returns the counts of these terms, in their order. Costs a page read for each count.
    pub(super) fn find_many(&self, keys: &[TermKey]) -> Result<Vec<Delta>> {
        let mut found = Vec::with_capacity(keys.len());
        for keys in keys.chunks(CHUNK) {
            let keys: Vec<&[u8]> = keys.iter().map(|key| &key.0[..]).collect();
            let documents = self.df.sum_many(&keys)?;
            let occurrences = self.cf.sum_many(&keys)?;
            let pairs = documents.into_iter().zip(occurrences);
            found.extend(pairs.map(|(documents, occurrences)| Delta { documents, occurrences }));
        }
        Ok(found)
    }

    /// Returns the bytes of RAM.
    pub(super) fn ram_bytes(&self) -> u64 {
        let of = |table: &Counting| nandex::Filter::stats(table).ram_bytes;
        of(&self.df) + of(&self.cf)
    }

    /// Returns the number of pages read by lookups since the opening, and of the lookups.
    pub(super) fn lookup_reads(&self) -> (u64, u64) {
        let of = |table: &Counting| {
            let stats = nandex::Filter::stats(table);
            (stats.lookup_reads, stats.positives + stats.negatives)
        };
        let (df, cf) = (of(&self.df), of(&self.cf));
        (df.0 + cf.0, df.1 + cf.1)
    }

    /// Closes the tables and frees their space.
    pub(super) fn remove(self) -> Result<()> {
        let Self { volume, generation, df, cf } = self;
        df.close()?;
        cf.close()?;
        remove_others(&volume, |found| found != generation)
    }

    pub(super) fn close(self) -> Result<()> {
        self.df.close()?;
        Ok(self.cf.close()?)
    }
}

/// A consumer of counts in the order of runs.
pub(super) struct Filling<'t> {
    df: Absorbing<'t>,
    cf: Absorbing<'t>,
}

impl Filling<'_> {
    #[inline]
    pub(super) fn push(&mut self, key: &TermKey, delta: Delta) -> Result<()> {
        self.df.push(&key.0, delta.documents)?;
        Ok(self.cf.push(&key.0, delta.occurrences)?)
    }

    /// Makes everything durable.
    pub(super) fn finish(self) -> Result<()> {
        self.df.finish()?;
        Ok(self.cf.finish()?)
    }
}

/// Removes the tables of all generations except those for which `keeps` returns true.
pub(super) fn remove_others(volume: &Volume, keeps: impl Fn(u64) -> bool) -> Result<()> {
    for structure in volume.structures() {
        let name = structure.name.as_str();
        let generation = name.strip_prefix(DF).or_else(|| name.strip_prefix(CF));
        let generation = generation.and_then(|number| number.parse().ok());
        if generation.is_some_and(|generation: u64| !keeps(generation)) {
            volume.drop_structure(name)?;
        }
    }
    Ok(())
}

/// Returns the configuration of the tables. Tables that are filled at once need hardly any buffers.
fn config(terms: u64) -> Config {
    let terms = terms.max(1);
    let usual = Config {
        discipline: nandex::counting::Discipline::Mb,
        block_pages: BLOCK_PAGES,
        k: 1,
        ..Config::whole(16, terms, 0)
    };
    let k = usual.blocks().div_ceil(PARTITIONS_MAX).max(1);
    let config = Config { k: u32::try_from(k).unwrap_or(u32::MAX), ..usual };
    debug_assert_eq!(config.keys, Keys::Whole(16));
    Config { buffer_entries: config.partitions(), ..config }
}

fn options(stated: &Stated) -> Result<OpenOptions> {
    Ok(stated.options(counting::KIND, OpenOptions::default().inline())?)
}
