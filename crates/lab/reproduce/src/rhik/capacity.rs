//! The number of keys that a drive of 3.84 TB can have: the cost of the index for each, in DRAM and on flash.

use super::lab::{Access, CAPACITY_PER_DRAM, IndexSize, KvIndex, PAGE_BYTES, key};
use super::pairs::PAIR_BYTES;
use super::records::RhikIndex;
use crate::{Chart, Experiment, Outcome, Result, Row, Scale, Scaling, Series, Table, fits, vary};

/// See the [module](self).
pub struct Capacity;

/// The drive, and the number of pairs that it took.
const CAPACITY_BYTES: f64 = 3.84e12;
const PAPER_KEYS: f64 = 3.1e9;
/// The maximum length of a value with which the drive took as many pairs.
const PAPER_VALUE_BYTES: u64 = 1024;
/// The part of the DRAM that the directory may have; write buffers and record pages have the rest.
pub const DIRECTORY_PART: f64 = 0.5;
/// The keys of the smallest index that is measured, at the paper's size; then up to twice as many, in steps.
const KEYS: u64 = 256_000_000;
const STEPS: u64 = 8;
/// The minimum number of measured keys.
const KEYS_MIN: u64 = 60_000;
/// The DRAM of the measured index for each key, for buffers that are large enough.
const DRAM_BYTES: u64 = 8;
/// The flash that rewrites of tables take in addition, over that of the tables.
pub const SPARE: f64 = 0.125;
/// Lengths of values.
const VALUE_BYTES: [u64; 4] = [16, 64, 256, 1024];

/// The cost of a key in RHIK, at most and on average over a doubling.
#[derive(Clone, Copy, Debug, Default)]
struct PerKey {
    directory_max: f64,
    flash_max: f64,
    flash_mean: f64,
    occupancy_mean: f64,
}

impl Experiment for Capacity {
    fn name(&self) -> &'static str {
        "capacity"
    }

    fn title(&self) -> &'static str {
        "Keys that a drive can have"
    }

    fn reference(&self) -> &'static str {
        "section 1"
    }

    fn run(&self, scale: Scale) -> Result<Outcome> {
        let per_key = PerKey::measure(scale)?;
        Ok(Outcome {
            setup: setup(),
            tables: vec![costs(per_key), limits(per_key), needs(per_key)],
            charts: vec![chart(per_key)],
        })
    }
}

fn setup() -> Vec<String> {
    vec![
        "RHIK grows to twice as many keys, from 256 million divided by the scale (60,000 at \
         least), and its directory and tables are measured at eight sizes between: from one \
         doubling of the tables to the next their occupancy rises and falls, so a single size \
         would say nothing."
            .into(),
        "From the dearest of these follows how many keys a drive of 3.84 TB and 3.84 GB of DRAM \
         has: half of the DRAM for the directory, and flash for keys of 16 bytes, values, 38 \
         bytes of each pair and the index with an eighth to spare. That is computed, not run."
            .into(),
        "The paper's drive took 3.1 billion pairs of values of 1 KiB or less. Its 3.84 TB over \
         3.1 billion are 1,239 bytes; such drives pad values to 1 KiB, which explains most of \
         it."
        .into(),
    ]
}

impl PerKey {
    fn measure(scale: Scale) -> Result<Self> {
        let keys = scale.of(KEYS).max(KEYS_MIN);
        let (times, seed) = (scale.times().into(), scale.seed());
        let dram_bytes = keys * DRAM_BYTES;
        let mut rhik = RhikIndex::new(IndexSize { dram_bytes, keys, times, seed })?;
        let mut number = 0;
        let mut per_key = Self::default();
        for step in 1..=STEPS {
            while number < keys + keys * step / STEPS {
                rhik.access(key(number), Access::Insert)?;
                number += 1;
            }
            per_key.add(&rhik);
        }
        Ok(per_key)
    }

    fn add(&mut self, rhik: &RhikIndex) {
        let stats = rhik.stats();
        let each = |bytes: u64| bytes as f64 / stats.entries.max(1) as f64;
        let flash = each(stats.tables * PAGE_BYTES);
        self.directory_max = self.directory_max.max(each(stats.directory_bytes));
        self.flash_max = self.flash_max.max(flash);
        self.flash_mean += flash / STEPS as f64;
        self.occupancy_mean += stats.occupancy() / STEPS as f64;
    }

    /// Returns the number of keys whose directory has space in DRAM.
    fn keys_by_dram(self) -> f64 {
        let part = vary::number(&fits::DIRECTORY_DRAM, DIRECTORY_PART);
        CAPACITY_BYTES / CAPACITY_PER_DRAM as f64 * part / self.directory_max
    }

    /// Returns the number of keys whose pairs and index have space on flash.
    fn keys_by_flash(self, value_bytes: u64) -> f64 {
        let spare = vary::number(&fits::TABLE_SPARE, SPARE);
        CAPACITY_BYTES / ((value_bytes + PAIR_BYTES) as f64 + self.flash_max * (1.0 + spare))
    }

    fn keys(self, value_bytes: u64) -> f64 {
        self.keys_by_dram().min(self.keys_by_flash(value_bytes))
    }
}

fn costs(per_key: PerKey) -> Table {
    let rows = vec![
        Row::measured("directory, at most", "B/key", per_key.directory_max),
        Row::measured("tables, at most", "B/key", per_key.flash_max),
        Row::measured("tables, mean", "B/key", per_key.flash_mean),
        Row::measured("slots in use, mean", "", per_key.occupancy_mean),
    ];
    Table { title: "RHIK: what a key costs".into(), rows }
}

fn limits(per_key: PerKey) -> Table {
    const UNIT: &str = "billion keys";
    let mut rows = Vec::new();
    for value_bytes in VALUE_BYTES {
        let keys = per_key.keys(value_bytes) / 1e9;
        let row =
            Row::assumed(format!("values of {value_bytes} B"), UNIT, keys, fits::TABLE_SPARE.name);
        rows.push(row.paper_at_least(PAPER_KEYS / 1e9).why(if value_bytes == PAPER_VALUE_BYTES {
            "Here the values themselves are the limit: 3.84 TB have 3.75 billion KiB."
        } else {
            "The paper's number is the real drive's limit, whatever the value below 1 KiB."
        }));
    }
    rows.push(
        Row::assumed(
            "of which the directory would have space for",
            UNIT,
            per_key.keys_by_dram() / 1e9,
            fits::DIRECTORY_DRAM.name,
        )
        .why("In half of 3.84 GB of DRAM."),
    );
    Table { title: "Keys of a drive of 3.84 TB".into(), rows }
}

/// Compares the stated needs of stores, for 4 TB, with the space of flash and directory.
fn needs(per_key: PerKey) -> Table {
    const UNIT: &str = "billion keys";
    let rows = vec![
        Row::stated("Baidu Atlas, the least", UNIT, 0.034),
        Row::stated("Baidu Atlas, the most", UNIT, 2.7),
        Row::stated("Facebook Memcached, the least", UNIT, 24.0),
        Row::stated("Facebook Memcached, the most", UNIT, 744.0).why(
            "5 bytes of the drive for each key: fewer than the key has, so no index can do it.",
        ),
        Row::assumed(
            "RHIK, values of no bytes, by flash",
            UNIT,
            per_key.keys_by_flash(0) / 1e9,
            fits::TABLE_SPARE.name,
        )
        .paper_at_least(24.0),
        Row::assumed(
            "RHIK, by half of 3.84 GB of DRAM",
            UNIT,
            per_key.keys_by_dram() / 1e9,
            fits::DIRECTORY_DRAM.name,
        )
        .paper_at_least(24.0)
        .why("For 24 billion keys the directory takes about as much as there is DRAM."),
    ];
    Table { title: "What stores need of a drive of 4 TB".into(), rows }
}

fn chart(per_key: PerKey) -> Chart {
    let values = [0, 16, 32, 64, 128, 256, 512, 1024];
    let points = |keys: &dyn Fn(u64) -> f64| {
        values.iter().map(|bytes| (*bytes as f64, keys(*bytes) / 1e9)).collect::<Vec<_>>()
    };
    Chart {
        title: "Keys of a drive of 3.84 TB, by the length of values".into(),
        x: "bytes of a value",
        y: "billion keys",
        x_scaling: Scaling::Linear,
        y_scaling: Scaling::Logarithmic,
        series: vec![
            Series::ours("RHIK", points(&|bytes| per_key.keys(bytes))),
            Series::paper("the drive", points(&|_| PAPER_KEYS)),
        ],
    }
}
