//! A structure of any kind, reduced to the common part: numbers are put in, as keys of 8 bytes, and are
//! present.

use std::ops::Range;

use nandex::testing::{TableRequest, TestTable};
use nandex::{
    AnyConfig, AnyFilter, AnyNeighbors, AnyTable, OpenOptions, Result, Table, Value, Volume,
};
use nandex_baseline::registry::{self, Family};

/// The configuration of a structure and the options of its opening.
#[derive(Clone, Debug)]
pub struct Made {
    pub config: AnyConfig,
    pub options: OpenOptions,
}

/// An open structure.
#[derive(Debug)]
pub enum Structure {
    Table(AnyTable),
    Filter(AnyFilter),
    Neighbors(AnyNeighbors),
}

/// Returns the bucket keys of documents that share none.
fn rows_of(numbers: &[u64], tables: u32) -> Vec<u64> {
    let row = |number: &u64| {
        let first = *number << 8;
        (0..u64::from(tables)).map(move |table| first | table)
    };
    numbers.iter().flat_map(row).collect()
}

impl From<(AnyConfig, OpenOptions)> for Made {
    fn from((config, options): (AnyConfig, OpenOptions)) -> Self {
        Self { config, options }
    }
}

impl Made {
    /// Creates a table of a kind.
    pub fn of_table(kind: &str, request: &TableRequest) -> Self {
        match registry::find(kind).map(|row| &row.family) {
            Some(Family::Table(row)) => {
                let TestTable { config, options, .. } = (row.testing.config)(request);
                Self { config, options }
            }
            _ => panic!("{kind} is no table"),
        }
    }

    /// Returns the first variant of each kind of the registry.
    pub fn each_kind() -> impl Iterator<Item = Self> {
        let request = TableRequest::default();
        let tables = registry::tables().map(move |(row, _)| Self::of_table(row.kind, &request));
        let filters = registry::filters().map(|(_, row)| (row.testing.config)(0, 1));
        let neighbors = registry::neighbors().map(|(_, row)| (row.testing.config)(0, 1));
        tables
            .chain(filters.map(|made| Self { config: made.config, options: made.options }))
            .chain(neighbors.map(|made| Self { config: made.config, options: made.options }))
    }

    fn family(&self) -> &'static Family {
        &registry::find(self.config.kind()).unwrap().family
    }

    pub fn create(&self, volume: &Volume, name: &str) -> Result<Structure> {
        let Self { config, options } = self;
        match self.family() {
            Family::Table(_) => {
                AnyTable::create_with(volume, name, config, options).map(Structure::Table)
            }
            Family::Neighbors(_) => {
                AnyNeighbors::create_with(volume, name, config, options).map(Structure::Neighbors)
            }
            _ => AnyFilter::create_with(volume, name, config, options).map(Structure::Filter),
        }
    }

    pub fn open(&self, volume: &Volume, name: &str) -> Result<Structure> {
        let options = &self.options;
        match self.family() {
            Family::Table(_) => AnyTable::open_with(volume, name, options).map(Structure::Table),
            Family::Neighbors(_) => {
                AnyNeighbors::open(volume, name, options).map(Structure::Neighbors)
            }
            _ => AnyFilter::open(volume, name, options).map(Structure::Filter),
        }
    }
}

impl Structure {
    pub fn insert(&self, number: u64) -> Result<()> {
        match self {
            Self::Table(table) => table.insert_u64(number, number),
            Self::Filter(filter) => filter.insert(&number.to_le_bytes()),
            Self::Neighbors(index) => index.insert(number, &rows_of(&[number], index.tables())),
        }
    }

    pub fn insert_many(&self, numbers: Range<u64>) -> Result<()> {
        let numbers: Vec<_> = numbers.collect();
        let keys: Vec<_> = numbers.iter().map(|number| number.to_le_bytes()).collect();
        match self {
            Self::Table(table) => {
                table.insert_many(&keys.iter().map(|it| (&it[..], &it[..])).collect::<Vec<_>>())
            }
            Self::Filter(filter) => {
                filter.insert_many(&keys.iter().map(|key| &key[..]).collect::<Vec<_>>())
            }
            Self::Neighbors(index) => {
                index.insert_many(&numbers, &rows_of(&numbers, index.tables()))
            }
        }
    }

    pub fn count(&self, number: u64) -> Result<u64> {
        Ok(self.count_many(&[number])?[0])
    }

    /// Returns how often each of these is present: in a table at most once, with its own value.
    pub fn count_many(&self, numbers: &[u64]) -> Result<Vec<u64>> {
        let keys: Vec<_> = numbers.iter().map(|number| number.to_le_bytes()).collect();
        let bytes: Vec<_> = keys.iter().map(|key| &key[..]).collect();
        match self {
            Self::Table(table) => {
                let values = table.get_many(&bytes)?;
                let count = |(key, value): (&[u8; 8], Option<Value>)| {
                    assert!(value.as_deref().is_none_or(|it| it == key), "{value:?} of {key:?}");
                    u64::from(value.is_some())
                };
                Ok(keys.iter().zip(values).map(count).collect())
            }
            Self::Filter(filter) => match filter.counter() {
                Some(counter) => counter.count_many(&bytes),
                None => Ok(filter.contains_many(&bytes)?.into_iter().map(u64::from).collect()),
            },
            Self::Neighbors(index) => {
                let found = index.candidates_many(&rows_of(numbers, index.tables()))?;
                let count = |(number, found): (&u64, Vec<u64>)| {
                    assert!(found.iter().all(|it| it == number), "{found:?} of {number}");
                    found.len() as u64
                };
                Ok(numbers.iter().zip(found).map(count).collect())
            }
        }
    }

    pub fn flush(&self) -> Result<()> {
        match self {
            Self::Table(table) => table.flush(),
            Self::Filter(filter) => filter.flush(),
            Self::Neighbors(index) => index.flush(),
        }
    }

    pub fn close(self) -> Result<()> {
        match self {
            Self::Table(table) => table.close(),
            Self::Filter(filter) => filter.close(),
            Self::Neighbors(index) => index.close(),
        }
    }
}
