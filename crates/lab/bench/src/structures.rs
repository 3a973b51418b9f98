//! The structures of nandex as subjects: those of the registry, each in a volume of its own in a file of the
//! directory, the quotient filter in RAM, and the oracles that test the harness.

use std::path::PathBuf;
use std::sync::LazyLock;

use anyhow::{Context, Result, bail, ensure};
use clap::ValueEnum;
use clap::builder::PossibleValue;
use nandex::raw::model::FanOut;
use nandex::raw::oracle::{BucketMap, MapTable, Multiset};
use nandex::{
    AnyConfig, AnyFilter, FilterRequirements, NeighborsRequirements, OpenOptions, Policy,
    Prediction, Requirements, Table, VALUE_BYTES_MAX, counting, slicehash,
};
use nandex_baseline::registry::{self, Family, TableRow};

use crate::documents::Documents;
use crate::filters::{FilterSubject, Keys, Own};
use crate::keys::{KEY_BYTES, KeySpace};
use crate::maps;
use crate::neighbors::NeighborsSubject;
use crate::on_flash::{OnFlash, create_volume, file, open_volume};
use crate::quotient::QuotientSubject;
use crate::subject::{Client, Counts, Maker, Spec, Status, Subject};
use crate::values::Values;
use crate::workload::{Kind, Workload};

/// The structure's name in its volume.
const NAME: &str = "bench";

/// A structure of nandex, or an oracle.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Structure {
    /// A table in a `HashMap` behind a lock.
    Oracle,
    /// An exact multiset in a `HashMap` behind a lock.
    Multiset,
    /// The quotient filter, in RAM.
    Quotient,
    /// Buckets of ids in a `HashMap` behind a lock.
    Buckets,
    /// Keys and values of any size, as `db.map` makes it.
    Map,
    /// A structure of the registry, by its kind.
    Registered(&'static str),
}

/// All structures: tables, then filters, then indexes of neighbours.
static ALL: LazyLock<Vec<Structure>> = LazyLock::new(|| {
    let tables = registry::tables().map(|(row, _)| Structure::Registered(row.kind));
    let filters = registry::filters().map(|(row, _)| Structure::Registered(row.kind));
    let neighbors = registry::neighbors().map(|(row, _)| Structure::Registered(row.kind));
    let in_ram = [Structure::Multiset, Structure::Quotient];
    let tables = [Structure::Oracle].into_iter().chain(tables).chain([Structure::Map]);
    let all = tables.chain(in_ram).chain(filters);
    all.chain([Structure::Buckets]).chain(neighbors).collect()
});

impl Structure {
    fn kind_name(self) -> &'static str {
        match self {
            Self::Oracle => "oracle",
            Self::Multiset => "multiset",
            Self::Quotient => "quotient",
            Self::Buckets => "buckets",
            Self::Map => maps::KIND,
            Self::Registered(kind) => kind,
        }
    }
}

impl ValueEnum for Structure {
    fn value_variants<'a>() -> &'a [Self] {
        &ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let help = match self {
            Self::Oracle => {
                "A `HashMap` behind a lock: no flash, the ceiling of what the harness can measure"
            }
            Self::Multiset => {
                "An exact multiset in a `HashMap` behind a lock: what the harness itself is tried on"
            }
            Self::Quotient => "The quotient filter, in RAM",
            Self::Buckets => {
                "Buckets of ids in a `HashMap` behind a lock: what the harness itself is tried on"
            }
            Self::Map => "A map that grows, of keys and values of any size, as `db.map` makes it",
            Self::Registered(kind) => registry::find(kind)?.good_for.trim_end_matches('.'),
        };
        Some(PossibleValue::new(self.kind_name()).help(help))
    }
}

impl Maker for Structure {
    fn name(&self) -> &str {
        self.kind_name()
    }

    fn kind(&self) -> Kind {
        match self {
            Self::Oracle | Self::Map => Kind::Table,
            Self::Multiset | Self::Quotient => Kind::Filter,
            Self::Buckets => Kind::Neighbors,
            Self::Registered(kind) => match registry::find(kind).map(|row| &row.family) {
                Some(Family::Filter(_)) => Kind::Filter,
                Some(Family::Neighbors(_)) => Kind::Neighbors,
                _ => Kind::Table,
            },
        }
    }

    fn lasting(&self) -> bool {
        matches!(self, Self::Registered(_) | Self::Map)
    }

    fn supports(&self, workload: Workload) -> bool {
        let deletes = match self {
            Self::Registered(kind) => match registry::find(kind).map(|row| &row.family) {
                Some(Family::Filter(filter)) => filter.deletes,
                _ => true,
            },
            Self::Oracle | Self::Multiset | Self::Quotient | Self::Buckets | Self::Map => true,
        };
        deletes || !matches!(workload, Workload::Delete | Workload::Churn)
    }

    fn path(&self, spec: &Spec) -> Option<PathBuf> {
        self.lasting().then(|| file(self.kind_name(), spec))
    }

    fn describe(&self, spec: &Spec) -> Result<Option<String>> {
        let Self::Registered(kind) = self else { return Ok(None) };
        Ok(Some(config(kind, spec)?.describe().shape))
    }

    fn create(&self, spec: &Spec) -> Result<Box<dyn Subject>> {
        match self {
            Self::Oracle => Ok(Box::new(map_table(width_of_values(self.kind_name(), spec)?))),
            Self::Multiset => Ok(Box::new(multiset())),
            Self::Quotient => Ok(Box::new(QuotientSubject::create(spec)?)),
            Self::Buckets => Ok(Box::new(buckets(documents(spec)))),
            Self::Map => maps::create(spec),
            Self::Registered(kind) => create(kind, spec),
        }
    }

    fn open(&self, spec: &Spec) -> Result<Box<dyn Subject>> {
        match self {
            Self::Oracle | Self::Multiset | Self::Quotient | Self::Buckets => {
                bail!("the {} is in RAM; load it again", self.name())
            }
            Self::Map => maps::open(spec),
            Self::Registered(kind) => open(kind, spec),
        }
    }
}

fn family(kind: &str) -> Result<&'static Family> {
    Ok(&registry::find(kind).with_context(|| format!("no structure is a {kind}"))?.family)
}

/// Creates an empty structure; an earlier one in the directory is removed.
fn create(kind: &str, spec: &Spec) -> Result<Box<dyn Subject>> {
    let config = config(kind, spec)?;
    let (options, file) = (options(kind, spec)?, file(kind, spec));
    let volume = create_volume(&file, config.log_bytes_best(), spec)?;
    Ok(match family(kind)? {
        Family::Table(row) => {
            let table = (row.create)(&volume, NAME, &config, &options)?;
            Box::new(OnFlash { subject: TableSubject(table), volume, file })
        }
        Family::Filter(row) => {
            let filter = (row.create)(&volume, NAME, &config, &options)?;
            Box::new(OnFlash { subject: filter_subject(filter), volume, file })
        }
        Family::Neighbors(row) => {
            let index = (row.create)(&volume, NAME, &config, &options)?;
            let subject = NeighborsSubject { index, documents: documents(spec) };
            Box::new(OnFlash { subject, volume, file })
        }
        Family::Part | Family::Generation => bail!(no_subject(kind)),
    })
}

/// Opens the structure that [`create`] made, with everything in RAM that lookups need.
fn open(kind: &str, spec: &Spec) -> Result<Box<dyn Subject>> {
    let (options, file) = (options(kind, spec)?, file(kind, spec));
    let volume = open_volume(&file, spec)?;
    Ok(match family(kind)? {
        Family::Table(row) => {
            let table = (row.open)(&volume, NAME, &options)?;
            table.warm_up()?;
            Box::new(OnFlash { subject: TableSubject(table), volume, file })
        }
        Family::Filter(row) => {
            let filter = (row.open)(&volume, NAME, &options)?;
            Box::new(OnFlash { subject: filter_subject(filter), volume, file })
        }
        Family::Neighbors(row) => {
            let index = (row.open)(&volume, NAME, &options)?;
            let subject = NeighborsSubject { index, documents: documents(spec) };
            Box::new(OnFlash { subject, volume, file })
        }
        Family::Part | Family::Generation => bail!(no_subject(kind)),
    })
}

/// Returns the reason why a structure of this kind has no benchmark here.
fn no_subject(kind: &str) -> String {
    format!("a {kind} is a part of other structures")
}

/// Returns the width of values in a table of fixed widths.
fn width_of_values(kind: &str, spec: &Spec) -> Result<usize> {
    let value_bytes = spec.value_bytes;
    ensure!(
        value_bytes <= VALUE_BYTES_MAX,
        "--value-bytes {value_bytes}: values of {kind} have at most {VALUE_BYTES_MAX} bytes; take --index map for more"
    );
    Ok(value_bytes)
}

/// Returns the advice of a table's advisor for the budget.
fn prediction(kind: &str, row: &TableRow, spec: &Spec) -> Result<Prediction> {
    let value_bytes = width_of_values(kind, spec)?;
    let widths = (u32::try_from(KEY_BYTES)?, u32::try_from(value_bytes)?);
    let asked = Requirements::new(spec.entries, widths.0, widths.1).ram(spec.ram_bytes);
    // The paper's SliceHash has no filters, and gives all RAM to buffers.
    let miss_reads_max = (kind == slicehash::KIND).then_some(1.0);
    let policy = match (row.grows, spec.keeps_all) {
        (true, _) => Policy::Grow,
        (false, true) => Policy::Reject,
        (false, false) => asked.policy,
    };
    Ok((row.advise)(&Requirements { miss_reads_max, policy, ..asked })?)
}

/// Returns the configuration of the structure's advisor for the budget.
fn config(kind: &str, spec: &Spec) -> Result<AnyConfig> {
    match family(kind)? {
        Family::Table(row) => Ok(prediction(kind, row, spec)?.config),
        Family::Filter(row) => {
            let asked = filter_requirements(spec);
            let config = match spec.discipline {
                Some(_) if kind != counting::KIND => {
                    bail!("--discipline: a {kind} has none, only a counting table has")
                }
                Some(discipline) => counting_config(discipline, &asked).map(Into::into),
                None => (row.advise)(&asked),
            };
            config.with_context(|| format!("--ram {}", spec.ram_bytes))
        }
        Family::Neighbors(row) => {
            let asked = NeighborsRequirements::new(spec.entries, spec.documents.tables);
            let asked = NeighborsRequirements { ram_bytes: Some(spec.ram_bytes), ..asked };
            (row.advise)(&asked).with_context(|| format!("--ram {}", spec.ram_bytes))
        }
        Family::Part | Family::Generation => bail!(no_subject(kind)),
    }
}

fn filter_requirements(spec: &Spec) -> FilterRequirements {
    FilterRequirements {
        fan_out: spec.fan_out.map_or(FanOut::OneLevel, FanOut::Times),
        counts: spec.counts == Counts::Kept,
        stored_keys: spec.stored_keys,
        ..FilterRequirements::new(spec.entries, spec.rate, spec.ram_bytes)
    }
}

/// Returns the counting table of this discipline for the requirements.
fn counting_config(
    discipline: counting::Discipline,
    asked: &FilterRequirements,
) -> nandex::Result<counting::Config> {
    let keys = counting::Keys::advised(asked)?;
    counting::Config::of_discipline(discipline, keys, asked.keys, asked.ram_bytes)
}

/// Returns the options to create and open a structure.
fn options(kind: &str, spec: &Spec) -> Result<OpenOptions> {
    let mut options = OpenOptions { read_depth: Some(spec.depth), ..OpenOptions::default() };
    if let Family::Table(row) = family(kind)? {
        options.cache_bytes = match spec.cache_bytes {
            Some(cache_bytes) => cache_bytes,
            None => prediction(kind, row, spec)?.cache_bytes(),
        };
    }
    Ok(options)
}

/// Creates an empty table in a `HashMap`, of values of this width.
#[must_use]
pub fn map_table(value_bytes: usize) -> TableSubject<MapTable> {
    TableSubject(MapTable::new(KEY_BYTES, value_bytes))
}

/// Creates an empty exact multiset.
#[must_use]
pub fn multiset() -> FilterSubject<Box<Multiset>> {
    FilterSubject {
        filter: Box::default(),
        counter: |multiset| Some(&**multiset),
        own: |_| Own::Other,
    }
}

fn filter_subject(filter: AnyFilter) -> FilterSubject<AnyFilter> {
    FilterSubject { filter, counter: |filter| filter.counter(), own: own_filter }
}

fn own_filter(filter: &AnyFilter) -> Own<'_> {
    let counting = filter.of().map(Own::Counting);
    counting.or_else(|| filter.of().map(Own::SliceBloom)).unwrap_or(Own::Other)
}

/// Creates an empty index of neighbours in plain memory, for these documents.
#[must_use]
pub fn buckets(documents: Documents) -> NeighborsSubject<Box<BucketMap>> {
    let index = Box::new(BucketMap::new(documents.tables(), usize::MAX));
    NeighborsSubject { index, documents }
}

fn documents(spec: &Spec) -> Documents {
    Documents::new(KeySpace::new(spec.seed), spec.documents)
}

/// A subject of any [`Table`] with keys of 8 bytes.
#[derive(Debug)]
pub struct TableSubject<T>(pub T);

impl<T: Table> Subject for TableSubject<T> {
    fn client(&self) -> Result<Box<dyn Client + '_>> {
        let (keys, values) = (Keys::default(), Values::new(self.0.value_bytes()));
        Ok(Box::new(TableClient { table: &self.0, keys, values }))
    }

    fn sync(&self) -> Result<()> {
        Ok(self.0.sync()?)
    }

    fn status(&self) -> Status {
        let stats = self.0.stats();
        Status {
            entries: Some(stats.entries),
            ram_bytes: Some(stats.ram_bytes),
            flash_bytes: stats.flash_bytes,
            table: Some(stats),
            ..Status::default()
        }
    }
}

struct TableClient<'a, T> {
    table: &'a T,
    keys: Keys,
    values: Values,
}

impl<T: Table> Client for TableClient<'_, T> {
    fn insert(&mut self, key: u64, value: u64) -> Result<()> {
        Ok(self.table.insert(&key.to_le_bytes(), self.values.one(value))?)
    }

    fn insert_many(&mut self, pairs: &[(u64, u64)]) -> Result<()> {
        let keys = self.keys.take(pairs.iter().map(|pair| pair.0)).iter();
        let values = self.values.all(pairs.iter().map(|pair| pair.1));
        let keys = keys.map(<[u8; KEY_BYTES]>::as_slice);
        Ok(self.table.insert_many(&keys.zip(values).collect::<Vec<_>>())?)
    }

    fn get(&mut self, key: u64) -> Result<Option<u64>> {
        let value = self.table.get(&key.to_le_bytes())?;
        value.map(|value| self.values.number(&value)).transpose()
    }

    fn get_many(&mut self, keys: &[u64], found: &mut Vec<Option<u64>>) -> Result<()> {
        let values = self.table.get_many(&self.keys.of(keys.iter().copied()))?;
        for value in values {
            found.push(value.map(|value| self.values.number(&value)).transpose()?);
        }
        Ok(())
    }

    /// Removes keys one by one: a table has no call for several removals.
    fn delete_many(&mut self, keys: &[u64]) -> Result<()> {
        keys.iter().try_for_each(|key| Ok(self.table.remove(&key.to_le_bytes())?))
    }

    /// Ignores the batch: the table keeps its own number of reads in flight.
    fn stream(
        &mut self,
        keys: &mut dyn Iterator<Item = u64>,
        _batch: usize,
        answer: &mut dyn FnMut(u64, Option<u64>) -> Result<()>,
    ) -> Result<()> {
        let mut stream = self.table.stream()?;
        for key in keys {
            stream.push(&key.to_le_bytes(), key)?;
            while let Some((key, value)) = stream.poll()? {
                answer(key, value.map(|value| self.values.number(&value)).transpose()?)?;
            }
        }
        while let Some((key, value)) = stream.pull()? {
            answer(key, value.map(|value| self.values.number(&value)).transpose()?)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use nandex::cascade;

    use super::*;
    use crate::documents::DocumentSettings;
    use crate::subject::{Durability, StoredKeys};

    #[test]
    fn a_client_gives_back_what_was_put_in_singly_and_in_batches() {
        let subject = map_table(50);
        let mut client = subject.client().unwrap();
        client.insert(1, 10).unwrap();
        client.insert_many(&[(2, 20), (3, 30)]).unwrap();
        let mut found = Vec::new();
        client.get_many(&[1, 2, 4], &mut found).unwrap();
        assert_eq!(found, [Some(10), Some(20), None]);
        assert_eq!(client.get(3).unwrap(), Some(30));
        let mut answers = Vec::new();
        let mut answer = |key, value| {
            answers.push((key, value));
            Ok(())
        };
        client.stream(&mut [3, 9].into_iter(), 1, &mut answer).unwrap();
        assert_eq!(answers, [(3, Some(30)), (9, None)]);
    }

    #[test]
    fn a_budget_becomes_a_filter_that_keeps_it_or_is_refused() {
        for (ram_bytes, fan_out, counts) in [
            (64 << 20, None, Counts::Membership),
            (32 << 20, Some(8), Counts::Membership),
            (32 << 20, None, Counts::Kept),
        ] {
            let entries = 200_000_000;
            let spec = Spec { entries, ram_bytes, fan_out, counts, ..spec() };
            let advised = config(cascade::KIND, &spec).unwrap();
            let config = advised.of::<cascade::Config>().unwrap();
            assert_eq!((config.fan_out, config.counts), (fan_out, counts == Counts::Kept));
            assert!(config.costs().unwrap().ram_bytes <= ram_bytes);
            let refused = |spec: Spec| super::config(cascade::KIND, &spec).unwrap_err().to_string();
            assert!(refused(Spec { ram_bytes: 64 << 10, ..spec.clone() }).contains("--ram"));
            let discipline = Some(counting::Discipline::Mb);
            assert!(refused(Spec { discipline, ..spec }).contains("only a counting table has"));
        }
    }

    #[test]
    fn a_counting_table_is_of_the_discipline_and_stores_the_keys_that_were_asked_for() {
        use counting::{Discipline, Keys as Stored};
        for (discipline, stored_keys, keys) in [
            (Discipline::Mb, StoredKeys::Whole(8), Stored::Whole(8)),
            (Discipline::Mdb, StoredKeys::Fingerprints, Stored::Fingerprints(5)),
            (Discipline::MdbL, StoredKeys::Whole(8), Stored::Whole(8)),
        ] {
            let spec = Spec { stored_keys, discipline: Some(discipline), ..spec() };
            let advised = config(counting::KIND, &spec).unwrap();
            let own = advised.of::<counting::Config>().unwrap();
            assert_eq!((own.discipline, own.keys), (discipline, keys));
            assert!(own.ram_bytes() <= spec.ram_bytes);
        }
        let advised = config(counting::KIND, &spec()).unwrap();
        assert_eq!(advised.of::<counting::Config>().unwrap().keys, Stored::Fingerprints(5));
    }

    #[test]
    fn the_same_seed_puts_keys_into_the_same_places() {
        let folder = tempfile::tempdir().unwrap();
        let hash_key = |name: &str, seed: u64| {
            let spec = Spec { seed, ..spec() };
            create_volume(&folder.path().join(name), 2 << 20, &spec).unwrap().hasher().key()
        };
        let first = hash_key("a", 1);
        assert_eq!(hash_key("b", 1), first);
        assert!(hash_key("c", 2) != first);
    }

    fn spec() -> Spec {
        Spec {
            dir: PathBuf::new(),
            entries: 20_000_000,
            keeps_all: false,
            rate: 0.0039,
            value_bytes: 8,
            ram_bytes: 64 << 20,
            cache_bytes: None,
            fan_out: None,
            depth: 32,
            threads: 1,
            durability: Durability::Every,
            counts: Counts::Kept,
            stored_keys: StoredKeys::Fingerprints,
            discipline: None,
            documents: DocumentSettings::default(),
            seed: 1,
        }
    }
}
