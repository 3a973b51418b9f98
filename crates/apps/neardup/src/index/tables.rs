//! The volume of an index and its structures: what each is for, and its share of the RAM.
//!
//! | structure | key | value | share |
//! |---|---|---|---|
//! | `neardup-records` | a document's number | its [record](super::record); and the state of the index | 3/16 |
//! | `neardup-keys` | hash of an id, or of a text | the number of a document that has it | 1/4 |
//! | `neardup-alike` | bucket keys of a signature | numbers of documents | 7/16, of which 4/16 at most for its filter |
//!
//! A batch of documents takes some MiB while documents come in, and clusters take 1/4.

use std::path::Path;

use nandex::device::Create;
use nandex::raw::Stated;
use nandex::raw::signature::Family;
use nandex::raw::store::schedule::Channels;
use nandex::{
    AnyNeighbors, AnyTable, Database, LargeTable, NeighborsRequirements, OpenOptions, Policy,
    Volume, slicelsh,
};

use crate::tables::{DocumentTables, DocumentTablesPlan};
use crate::{Error, IndexConfig, Result};

/// The structures' names.
const RECORDS: &str = "neardup-records";
const KEYS: &str = "neardup-keys";
const ALIKE: &str = "neardup-alike";

/// The structures of an index.
#[derive(Debug)]
pub(super) struct Tables {
    pub(super) records: LargeTable<AnyTable>,
    pub(super) keys: AnyTable,
    pub(super) alike: AnyNeighbors,
}

/// Makes the volume of a new index.
pub(super) fn create_volume(path: &Path, log_bytes: u64) -> Result<Database> {
    Ok(nandex::options().create(Create::New).sparse().log(log_bytes).open(path)?)
}

/// Opens the volume of an index.
pub(super) fn open_volume(path: &Path) -> Result<Database> {
    Ok(nandex::options().create(Create::Open).sparse().open(path)?)
}

impl Tables {
    pub(super) fn create(
        volume: &Volume,
        (family, stated): (&Family, &Stated),
        config: &IndexConfig,
    ) -> Result<Self> {
        // Where the channels of the device are known, each table has channels of its own.
        let channels = Channels::of(&volume.device().geometry());
        let alike =
            stated_on(neighbors(family, config)?.placed_on(&channels), stated, config)?.into();
        let options = stated.options(slicelsh::KIND, neighbors_options(volume, config))?;
        let alike = AnyNeighbors::create_with(volume, ALIKE, &alike, &options)?;
        Self::create_over(volume, config, alike)
    }

    /// The same over this index of neighbours.
    pub(super) fn create_over(
        volume: &Volume,
        config: &IndexConfig,
        alike: AnyNeighbors,
    ) -> Result<Self> {
        let DocumentTables { records, numbers } = DocumentTables::create(volume, plan(config))?;
        Ok(Self { records, keys: numbers, alike })
    }

    pub(super) fn open(volume: &Volume, config: &IndexConfig) -> Result<Self> {
        let alike = AnyNeighbors::open(volume, ALIKE, &neighbors_options(volume, config))?;
        check_ram(&alike, config)?;
        Self::open_over(volume, config, alike)
    }

    /// The same over this index of neighbours.
    pub(super) fn open_over(
        volume: &Volume,
        config: &IndexConfig,
        alike: AnyNeighbors,
    ) -> Result<Self> {
        let DocumentTables { records, numbers } = DocumentTables::open(volume, plan(config))?;
        Ok(Self { records, keys: numbers, alike })
    }
}

/// The tables next to the index of neighbours: a document has an id and a text.
const fn plan(config: &IndexConfig) -> DocumentTablesPlan {
    DocumentTablesPlan {
        records: RECORDS,
        records_bytes: config.ram_bytes / 16 * 3,
        numbers: KEYS,
        numbers_bytes: config.ram_bytes / 4,
        hashes: 2,
    }
}

/// The index of neighbours of a family. It refuses more documents than it is for: what it evicted would come back as
/// new.
pub(super) fn neighbors(family: &Family, config: &IndexConfig) -> Result<slicelsh::Config> {
    let asked = NeighborsRequirements {
        bucket_ids_max: config.bucket_ids_max,
        policy: Policy::Reject,
        family: family.encode(),
        ..NeighborsRequirements::new(config.documents, family.tables())
    };
    let advised = |ram_bytes| {
        let asked = NeighborsRequirements { ram_bytes: Some(ram_bytes), ..asked.clone() };
        slicelsh::Config::advised(&asked)
    };
    // Where that is too little for the buffers, the filter has what they leave.
    let all = neighbors_bytes(config);
    Ok(advised(all - filter_bytes(config)).or_else(|_| advised(all))?)
}

/// The index of neighbours with the parameters that are stated.
///
/// # Errors
/// Those that are not the user's to state; parameters that do not work, or take too much RAM.
fn stated_on(
    made: slicelsh::Config,
    stated: &Stated,
    config: &IndexConfig,
) -> Result<slicelsh::Config> {
    let with = stated.on_one(made.clone())?;
    let fixed = |it: &slicelsh::Config| (it.policy, it.tables, it.family.clone());
    if fixed(&with) != fixed(&made) {
        let reason = "policy, tables and family follow from what near-duplicates are".to_owned();
        return Err(Error::option("parameter", reason));
    }
    check_ram_of(&with, config).map(|()| with)
}

/// RAM of the index of neighbours with its filter, at most.
const fn neighbors_bytes(config: &IndexConfig) -> u64 {
    config.ram_bytes / 16 * 7
}

/// RAM for the filter of the index of neighbours: most documents are new, and their buckets need not be read.
const fn filter_bytes(config: &IndexConfig) -> u64 {
    config.ram_bytes / 4
}

/// Refuses RAM that is too little for the buffers that the index was made with.
fn check_ram(alike: &AnyNeighbors, config: &IndexConfig) -> Result<()> {
    let made = alike.config();
    check_ram_of(made.of()?, config)
}

fn check_ram_of(made: &slicelsh::Config, config: &IndexConfig) -> Result<()> {
    let needed = made.ram_bytes();
    if needed <= neighbors_bytes(config) {
        return Ok(());
    }
    let reason = format!(
        "{} bytes; the buffers of this index take {needed} of seven sixteenths of it, so give {} or more",
        config.ram_bytes,
        needed.div_ceil(7) * 16
    );
    Err(Error::option("ram_bytes", reason))
}

/// The length of the log, in bytes.
pub(super) fn log_bytes((family, stated): (&Family, &Stated), config: &IndexConfig) -> Result<u64> {
    let neighbors_bytes = stated_on(neighbors(family, config)?, stated, config)?.log_bytes_best();
    Ok(crate::tables::log_bytes(neighbors_bytes, config.ram_bytes))
}

/// The options of the index of neighbours.
fn neighbors_options(volume: &Volume, config: &IndexConfig) -> OpenOptions {
    let ram_bytes_max = Some(neighbors_bytes(config));
    OpenOptions {
        filter_bytes: filter_bytes(config),
        ram_bytes_max,
        ..OpenOptions::suited_to(volume)
    }
}
