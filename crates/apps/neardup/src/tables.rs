//! What the indexes of this crate keep in addition to their buckets: records by documents' numbers, and, for that of
//! texts, numbers by hashes of what documents are called; and how their logs are made.
//!
//! The table of numbers is asked mostly for keys that are not there, which a growing BufferHash answers without a read.

use nandex::large::{TABLE_KEY_BYTES, TABLE_VALUE_BYTES, ValuesConfig, table_name};
use nandex::raw::bufferhash;
use nandex::{
    AnyConfig, AnyTable, LargeTable, OpenOptions, Policy, Requirements, Result, Table, Volume,
    WhenFull,
};

/// Documents for which the tables begin; they grow from there.
const DOCUMENTS_FIRST: u64 = 10_000;

/// Bytes of the log, at least and at most.
const LOG_BYTES_MIN: u64 = 8 << 20;
const LOG_BYTES_MAX: u64 = 256 << 20;

/// Bytes of a document's number.
pub(crate) const NUMBER_BYTES: usize = 8;

/// What a name or a text is called in the table of numbers.
pub(crate) type Hash = [u8; 16];

/// Records and numbers.
#[derive(Debug)]
pub(crate) struct DocumentTables {
    /// Records by numbers, and the state of the index.
    pub(crate) records: LargeTable<AnyTable>,
    /// Numbers by hashes.
    pub(crate) numbers: AnyTable,
}

/// What these tables are called, and the RAM of each, at most.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DocumentTablesPlan {
    pub(crate) records: &'static str,
    pub(crate) records_bytes: u64,
    pub(crate) numbers: &'static str,
    pub(crate) numbers_bytes: u64,
    /// Hashes of a document.
    pub(crate) hashes: u64,
}

impl DocumentTables {
    /// Makes the tables.
    ///
    /// # Errors
    /// RAM that is too little, names that are taken, no space, a failed write.
    pub(crate) fn create(volume: &Volume, plan: DocumentTablesPlan) -> Result<Self> {
        let records = create_records(volume, plan.records, records_ram(plan))?;
        let numbers = (plan.hashes * DOCUMENTS_FIRST, (16, NUMBER_BYTES as u32));
        let numbers = growing(numbers.0, numbers.1, Some(plan.numbers_bytes))?;
        let numbers =
            AnyTable::create_with(volume, plan.numbers, &numbers, &OpenOptions::suited_to(volume))?;
        Ok(Self { records, numbers })
    }

    /// Opens the tables.
    ///
    /// # Errors
    /// RAM that is too little, no such tables, damage, a failed read.
    pub(crate) fn open(volume: &Volume, plan: DocumentTablesPlan) -> Result<Self> {
        let records = open_records(volume, plan.records, records_ram(plan))?;
        let options = options_within(volume, Some(plan.numbers_bytes));
        let numbers = AnyTable::open_with(volume, plan.numbers, &options)?;
        Ok(Self { records, numbers })
    }
}

/// RAM of a table of records, in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RecordsRam {
    /// What its buffers and filters may take, or as much as they need.
    pub(crate) table_bytes_max: Option<u64>,
    /// What a cache of the places of records takes.
    pub(crate) cache_bytes: u64,
}

const fn records_ram(plan: DocumentTablesPlan) -> RecordsRam {
    RecordsRam { table_bytes_max: Some(plan.records_bytes), cache_bytes: 0 }
}

/// Makes a table of records.
///
/// # Errors
/// RAM that is too little, a name that is taken, no space, a failed write.
pub(crate) fn create_records(
    volume: &Volume,
    name: &str,
    ram: RecordsRam,
) -> Result<LargeTable<AnyTable>> {
    let widths = (TABLE_KEY_BYTES as u32, TABLE_VALUE_BYTES as u32);
    let references = growing(DOCUMENTS_FIRST, widths, ram.table_bytes_max)?;
    let options = records_options(volume, ram);
    let references = AnyTable::create_with(volume, &table_name(name), &references, &options)?;
    LargeTable::create(volume, name, references, ValuesConfig::holding(0, WhenFull::Grow))
}

/// Opens a table of records.
///
/// # Errors
/// RAM that is too little, no such table, damage, a failed read.
pub(crate) fn open_records(
    volume: &Volume,
    name: &str,
    ram: RecordsRam,
) -> Result<LargeTable<AnyTable>> {
    let options = records_options(volume, ram);
    let references = AnyTable::open_with(volume, &table_name(name), &options)?;
    LargeTable::open(volume, name, references)
}

fn records_options(volume: &Volume, ram: RecordsRam) -> OpenOptions {
    let mut options = options_within(volume, ram.table_bytes_max);
    options.cache_bytes = ram.cache_bytes;
    options
}

/// The numbers under these hashes.
///
/// # Errors
/// A failed read, damage.
pub(crate) fn numbers_of(numbers: &AnyTable, hashes: &[Hash]) -> Result<Vec<Option<u64>>> {
    let keys: Vec<&[u8]> = hashes.iter().map(|hash| &hash[..]).collect();
    let found = numbers.get_many(&keys)?.into_iter();
    let number = |value: nandex::Value| (*value).try_into().ok().map(u64::from_le_bytes);
    Ok(found.map(|value| value.and_then(number)).collect())
}

/// Puts numbers under hashes.
///
/// # Errors
/// RAM or flash that is full, a failed write.
pub(crate) fn put_numbers(numbers: &AnyTable, pairs: &[(Hash, u64)]) -> Result<()> {
    let pairs: Vec<(&Hash, [u8; NUMBER_BYTES])> =
        pairs.iter().map(|(hash, number)| (hash, number.to_le_bytes())).collect();
    let pairs: Vec<(&[u8], &[u8])> =
        pairs.iter().map(|(hash, number)| (&hash[..], &number[..])).collect();
    numbers.insert_many(&pairs)
}

/// The length of an index's log, in bytes: what its index of neighbours works well with, and the tables' few updates.
pub(crate) fn log_bytes(neighbors_bytes: u64, ram_bytes: u64) -> u64 {
    let wanted = neighbors_bytes + ram_bytes / 32;
    wanted.next_multiple_of(1 << 20).clamp(LOG_BYTES_MIN, LOG_BYTES_MAX)
}

/// A growing BufferHash, for keys that are asked for before they are there.
fn growing(
    entries: u64,
    (key_bytes, value_bytes): (u32, u32),
    ram_bytes: Option<u64>,
) -> Result<AnyConfig> {
    let asked = Requirements::new(entries, key_bytes, value_bytes);
    let asked = Requirements { policy: Policy::Grow, ram_bytes, ..asked };
    bufferhash::growing::Config::advised(&asked).map(AnyConfig::from)
}

fn options_within(volume: &Volume, ram_bytes_max: Option<u64>) -> OpenOptions {
    OpenOptions { ram_bytes_max, ..OpenOptions::suited_to(volume) }
}
