//! The volume of an index and its structures: the purpose of each, and its share of the RAM.
//!
//! | structure | key | value | share |
//! |---|---|---|---|
//! | `neardup-records` | a document's number | its [record](super::record); and the state of the index | 3/16 |
//! | `neardup-keys` | hash of an id, or of a text | the number of a document that has it | 1/4 |
//! | `neardup-alike` | bucket keys of a signature | numbers of documents | 7/16, of which 4/16 at most for its filter |
//!
//! A batch of documents takes some MiB while documents come in, and clusters take 1/4.

use nandex::raw::Stated;
use nandex::raw::signature::Family;
use nandex::raw::store::schedule::Channels;
use nandex::{
    AnyNeighbors, AnyTable, LargeTable, NeighborsRequirements, OpenOptions, Policy, Volume,
    slicelsh,
};
use nandex_corpus::tables::{self, DOCUMENTS_FIRST, TablePlan, growing_values};

use super::numbers::{Hash, NUMBER_BYTES};
use crate::{Error, IndexConfig, Result};

/// The name of the index of neighbours.
const ALIKE: &str = "neardup-alike";

/// The structures of an index.
#[derive(Debug)]
pub(super) struct Tables {
    pub(super) records: LargeTable<AnyTable>,
    pub(super) keys: AnyTable,
    pub(super) alike: AnyNeighbors,
}

impl Tables {
    pub(super) fn create(
        volume: &Volume,
        (family, stated): (&Family, &Stated),
        config: &IndexConfig,
    ) -> Result<Self> {
        // If the channels of the device are known, each table has channels of its own.
        let channels = Channels::of(&volume.device().geometry());
        let alike =
            stated_on(neighbors(family, config)?.placed_on(&channels), stated, config)?.into();
        let options = stated.options(slicelsh::KIND, neighbors_options(volume, config))?;
        let alike = AnyNeighbors::create_with(volume, ALIKE, &alike, &options)?;
        Self::create_over(volume, (config, stated), alike)
    }

    /// Creates the tables over this index of neighbours.
    pub(super) fn create_over(
        volume: &Volume,
        (config, stated): (&IndexConfig, &Stated),
        alike: AnyNeighbors,
    ) -> Result<Self> {
        let (records, keys) = (records(config), keys(config));
        let records = records.create_records(volume, growing_values(), stated)?;
        let of_keys = keys.config((size_of::<Hash>(), NUMBER_BYTES))?;
        let keys = keys.create(volume, of_keys, stated)?;
        Ok(Self { records, keys, alike })
    }

    pub(super) fn open(volume: &Volume, (config, stated): (&IndexConfig, &Stated)) -> Result<Self> {
        let options = stated.options(slicelsh::KIND, neighbors_options(volume, config))?;
        let alike = AnyNeighbors::open(volume, ALIKE, &options)?;
        check_ram(&alike, config)?;
        stated.check(ALIKE, &alike.config())?;
        Self::open_over(volume, (config, stated), alike)
    }

    /// Opens the tables over this index of neighbours.
    pub(super) fn open_over(
        volume: &Volume,
        (config, stated): (&IndexConfig, &Stated),
        alike: AnyNeighbors,
    ) -> Result<Self> {
        let records = records(config).open_records(volume, stated)?;
        Ok(Self { records, keys: keys(config).open(volume, stated)?, alike })
    }
}

const fn records(config: &IndexConfig) -> TablePlan {
    TablePlan::within(config.ram_bytes / 16 * 3, "neardup-records", DOCUMENTS_FIRST)
}

/// The plan of the table of keys. A document has two keys: of its id and of its text.
const fn keys(config: &IndexConfig) -> TablePlan {
    TablePlan::within(config.ram_bytes / 4, "neardup-keys", 2 * DOCUMENTS_FIRST)
}

/// Configures the index of neighbours of a family. It rejects more documents than its capacity: evicted ones would come
/// back as new.
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
    // If that is too little for the buffers, the filter takes the rest.
    let all = neighbors_bytes(config);
    Ok(advised(all - filter_bytes(config)).or_else(|_| advised(all))?)
}

/// Configures the index of neighbours with the stated parameters.
///
/// # Errors
/// Parameters that the user cannot set; invalid parameters, or those that take too much RAM.
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

/// The most RAM of the index of neighbours with its filter.
const fn neighbors_bytes(config: &IndexConfig) -> u64 {
    config.ram_bytes / 16 * 7
}

/// RAM for the filter of the index of neighbours: most documents are new, and their buckets need not be read.
const fn filter_bytes(config: &IndexConfig) -> u64 {
    config.ram_bytes / 4
}

/// Fails if the RAM is too little for the buffers that the index was created with.
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

/// Returns the length of the log, in bytes: one that suits the index of neighbours, and the tables' few updates.
pub(super) fn log_bytes((family, stated): (&Family, &Stated), config: &IndexConfig) -> Result<u64> {
    let neighbors_bytes = stated_on(neighbors(family, config)?, stated, config)?.log_bytes_best();
    Ok(tables::log_bytes(neighbors_bytes + config.ram_bytes / 32))
}

/// Returns the options of the index of neighbours.
fn neighbors_options(volume: &Volume, config: &IndexConfig) -> OpenOptions {
    let ram_bytes_max = Some(neighbors_bytes(config));
    OpenOptions {
        filter_bytes: filter_bytes(config),
        ram_bytes_max,
        ..OpenOptions::suited_to(volume)
    }
}
