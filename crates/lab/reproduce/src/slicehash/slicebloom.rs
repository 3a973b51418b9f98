//! Section 7.5: SliceBloom under lookups and inserts, with and without knowledge of channels, and without slices.

use std::sync::Arc;

use nandex::raw::store::schedule::Channels;
use nandex::slicebloom::Config;
use nandex::{Filter as _, OpenOptions, SliceBloom};
use nandex_sim::RequestKind;

use super::lab::{BUFFER_PAGES, CHUNK_PAGES, MERGES_MIN, Mix, PARTITIONS, ROUND_PAGES};
use super::orders::on_channels;
use super::throughput::{LOOKUPS, NEW_KEYS, Part};
use super::unsliced::Unsliced;
use super::workers::WorkerModel;
use crate::tape::{Act, Tape, TapedDevice};
use crate::volume::{LOG_BYTES_MIN, volume};
use crate::{Drive, Experiment, Outcome, Result, Row, Scale, Table, Taped};

/// See the [module](self).
pub struct Bloom;

/// Keys of a buffer of 16 KiB, with which a slicetable is 1024 pages: 127 slices of 256 bits in each.
pub const BUFFER_KEYS: u32 = 4064;
/// The paper's m/n, k and number of hash functions.
pub const BITS_PER_KEY: u32 = 32;
pub const INCARNATIONS: u32 = 256;
pub const HASHES: u32 = 3;

/// The settings of a filter.
#[derive(Clone, Copy)]
struct Setup {
    partitions: u32,
    seed: u64,
}

impl Setup {
    /// The paper's filter: 512 MB of buffers.
    fn paper(scale: Scale) -> Self {
        let partitions = u32::try_from(scale.of(PARTITIONS)).unwrap_or(1 << 16);
        Self { partitions, seed: scale.seed() }
    }

    fn config(self) -> Config {
        Config {
            partitions: self.partitions,
            buffer_keys: BUFFER_KEYS,
            bits_per_key: BITS_PER_KEY,
            hashes: HASHES,
            incarnations: INCARNATIONS,
            spare_blocks: 6,
            spare_buffers: 4,
            align_pages: ROUND_PAGES,
        }
    }

    /// Returns the keys of a buffer for each partition.
    fn keys(self) -> u64 {
        u64::from(self.partitions) * u64::from(BUFFER_KEYS)
    }

    fn open(self) -> Result<Taped<SliceBloom>> {
        let (device, config) = (TapedDevice::new(), self.config());
        let log_bytes = config.log_bytes_best().max(LOG_BYTES_MIN);
        let volume = volume(Arc::new(device.clone()), self.seed, log_bytes)?;
        let options = OpenOptions {
            flush_threads: Some(0),
            io_chunk_pages: Some(CHUNK_PAGES),
            ..OpenOptions::default()
        };
        let filter = SliceBloom::create_with(&volume, "paper", config, options)?;
        Ok(Taped::new(filter, device))
    }

    /// Creates a filter with the keys from 1 on: those of two buffers for each partition, one of which is on
    /// flash. Lookups read and merges rewrite the same for any number above one.
    fn filled(self) -> Result<Taped<SliceBloom>> {
        let taped = self.open()?;
        for key in 1..=2 * self.keys() {
            taped.table.insert(&key.to_le_bytes())?;
        }
        taped.forget();
        Ok(taped)
    }

    /// Returns the tapes of lookups, and of as many inserts.
    fn tapes(self) -> Result<[Tape; 2]> {
        let mut taped = self.filled()?;
        let rounds = MERGES_MIN.div_ceil(self.partitions.into());
        let mut tape_of = |mix: Mix, operations| {
            // Keys of the first half of the first buffer are on flash, wherever buffers were flushed early.
            mix.each(operations, (self.keys() / 2, NEW_KEYS), self.seed, |act, key| {
                let key = key.to_le_bytes();
                taped.operate(act, |filter| match act {
                    Act::Lookup => Ok(filter.contains(&key).map(drop)?),
                    Act::Insert => Ok(filter.insert(&key)?),
                })
            })?;
            Ok::<_, crate::Error>(taped.take_tape())
        };
        Ok([tape_of(Mix::Lookups, LOOKUPS)?, tape_of(Mix::Both, 2 * rounds * self.keys())?])
    }

    /// Returns the RAM of each key of the window, in bits: a partition's RAM, over the keys of its
    /// slicetable.
    fn ram_bits_per_key(self) -> Result<f64> {
        let ram_bytes = |partitions| {
            let filter = Self { partitions, ..self }.open()?.table;
            Ok::<_, crate::Error>(filter.stats().ram_bytes as f64)
        };
        let few = 4;
        let each = (ram_bytes(2 * few)? - ram_bytes(few)?) / f64::from(few);
        Ok(8.0 * each / self.config().partition_window_keys() as f64)
    }
}

impl Experiment for Bloom {
    fn name(&self) -> &'static str {
        "slicebloom"
    }

    fn title(&self) -> &'static str {
        "SliceBloom"
    }

    fn reference(&self) -> &'static str {
        "sections 6 and 7.5"
    }

    fn run(&self, scale: Scale) -> Result<Outcome> {
        let setup = Setup::paper(scale);
        let tapes = setup.tapes()?;
        let [lookups, both] = tapes.each_ref().map(|tape| Part::new(tape, 0.0, 1));
        let mut sizes = sizes(setup, (&lookups, &both))?;
        let unsliced = Part::new(&Unsliced::new(setup.partitions).tape(setup.seed), 0.0, 1);
        sizes.push(Row::measured("without slices: pages read for each lookup", "", unsliced.reads));
        let tables = vec![
            Table { title: "50 % lookups, 50 % inserts".into(), rows: mixed(&both, scale)? },
            Table { title: "Lookups".into(), rows: looked_up(&lookups, &unsliced, scale)? },
            Table { title: "Sizes".into(), rows: sizes },
        ];
        Ok(Outcome { setup: described(), tables, charts: Vec::new() })
    }
}

fn described() -> Vec<String> {
    vec![
        "m/n = 32, 3 hash functions and 256 incarnations, as in the paper, which says no more \
         of sizes: buffers have 16 KiB here, 4064 keys, so that a slicetable has the 4 MiB of \
         SliceHash's. 512 MB of buffers are 32,768 partitions; scaled are these and the drive."
            .into(),
        "Looked up are keys that are on flash; absent ones read as many pages. All three pages \
         of a lookup are asked for at once. Workers and merges are those of Figure 5, and the \
         processor's times are SliceHash's, since the paper gives none."
            .into(),
        "Naive parallelism is 32 threads that take the next lookup, whatever its channels. On \
         one channel means that all pages of all lookups are on the first one, the worst case \
         of 4.2."
            .into(),
        "Without slices each incarnation is a Bloom filter of its own on flash. A lookup goes \
         from the newest to the oldest until one has all bits of its key, and reads a page for \
         each bit until one is not set: one page after another, with 32 threads."
            .into(),
    ]
}

/// Returns a part with all lookups on the first channel.
fn on_one_channel(part: &Part, scale: Scale) -> Result<Part> {
    let channels = Channels::of(&Drive::CRUCIAL.geometry()?);
    Ok(Part::new(&on_channels(&part.tape, channels, scale.seed(), |_| 0), 0.0, 1))
}

const UNIT: &str = "operations/s";

fn mixed(both: &Part, scale: Scale) -> Result<Vec<Row>> {
    let naive = |part: &Part| part.work(WorkerModel::in_order_of_arrival(), Drive::CRUCIAL, scale);
    let aware = both.work_aware(scale)?.operations_per_s;
    let (threads, worst) = (naive(both)?, naive(&on_one_channel(both, scale)?)?);
    Ok(vec![
        Row::measured("SliceBloom", UNIT, aware).paper(15_000.0).why(
            "69 K reads a second are 23 K lookups of three pages, and inserts are cheaper: a \
             4064th of a merge of 4 MiB each. The paper's 15 K are fewer than lookups alone \
             would be; it says neither how many of its operations are lookups nor what held \
             them up.",
        ),
        Row::measured("naive parallelism", UNIT, threads.operations_per_s),
        Row::measured(
            "naive parallelism, all lookups on one channel",
            UNIT,
            worst.operations_per_s,
        )
        .paper(5_000.0)
        .why(
            "More than two operations for each lookup that one channel can do, so some \
                 pages that merges have written are on other channels than their place says. \
                 Lookups alone, below, are what the worst order of 4.2 leaves of 23 K.",
        ),
        Row::measured("SliceBloom over the worst", "", aware / worst.operations_per_s).paper(3.0),
    ])
}

fn looked_up(lookups: &Part, unsliced: &Part, scale: Scale) -> Result<Vec<Row>> {
    let naive = |part: &Part| part.work(WorkerModel::in_order_of_arrival(), Drive::CRUCIAL, scale);
    let row = |what: &str, rate: f64| Row::measured(what, "lookups/s", rate);
    let worst = naive(&on_one_channel(lookups, scale)?)?;
    Ok(vec![
        row("SliceBloom", lookups.work_aware(scale)?.operations_per_s),
        row("naive parallelism", naive(lookups)?.operations_per_s),
        row("naive parallelism, all lookups on one channel", worst.operations_per_s)
            .paper(5_000.0)
            .why("The paper's number is of its mixed workload."),
        row("without slices: each incarnation as it is", naive(unsliced)?.operations_per_s),
    ])
}

fn sizes(setup: Setup, (lookups, both): (&Part, &Part)) -> Result<Vec<Row>> {
    let config = setup.config();
    let inserts = both.tape.operations().filter(|(act, _)| *act == Act::Insert);
    let (mut keys, mut written) = (0_u32, 0);
    for (_, steps) in inserts {
        let writes = steps.iter().filter(|step| step.kind == RequestKind::Write);
        keys += 1;
        written += writes.map(|step| step.pages).sum::<u32>();
    }
    let keys_per_block = f64::from(keys) * f64::from(BUFFER_PAGES) / f64::from(written.max(1));
    let keys_per_bit = f64::from(HASHES) / f64::from(BITS_PER_KEY);
    let one = (1.0 - (-keys_per_bit).exp()).powf(f64::from(HASHES));
    Ok(vec![
        Row::measured("pages read for each lookup", "", lookups.reads).paper(3.0),
        Row::measured("inserts for each block of 128 KiB written", "", keys_per_block)
            .paper(128.0),
        Row::measured("RAM", "bits/key", setup.ram_bits_per_key()?).paper(0.125).why(
            "Section 6 has 0.125, 7.5 has 0.1. On top of a buffer's 0.125 come a partition's locks, lists and maps.",
        ),
        Row::formula("absent keys that one incarnation has, by its formula", "", one)
            .paper(0.0008),
        Row::formula("absent keys that any incarnation has, by its formula", "", config.rate())
            .why("A lookup asks all 256 of them. The paper gives the rate of one."),
    ])
}
